//! Figures of probes over one of their parameters, as the families describe them.

use super::about::of_points;
use super::many::{self, thin_series};
use super::{Axis, AxisMark, CurvePlot, Drawing, MarkAxis, NamedDrawing, PlotSeries, is_doubtful};
use crate::matrix::{show_all, varying};
use crate::rows::family as family_of;
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::catalogue::figures::{Curves, Quantity};
use latscope_core::merged::{MERGED, is_merged};
use latscope_core::ordered::{entry, index_or_push};
use latscope_core::param;
use latscope_core::plan::ParamValue;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::{count_with_noun, format_time};

/// Number of curves that can be distinguished: each colour with two kinds of dashes.
const MOST_SERIES: usize = 2 * many::MOST;

/// Curves of a family over parameters that were measured with several values.
struct CurvePlotBuilder<'a> {
    of: &'a Curves,
    family: &'a str,
}

/// Returns the figures of a family over parameters that were measured with several values.
pub(super) fn parameter_figures(
    report: &Report,
    family: &str,
    catalogue: &ProbeCatalogue,
) -> Vec<NamedDrawing> {
    let all = catalogue.family(family).into_iter().flat_map(|facts| facts.curves);
    all.flat_map(|curves| CurvePlotBuilder { of: curves, family }.build_figures(report)).collect()
}

impl CurvePlotBuilder<'_> {
    fn is_of(&self, m: &Measurement) -> bool {
        let drawn = self.of.probes.is_empty() || self.of.probes.iter().any(|facts| facts.id == m.probe);
        // Quantity threads and pairs that were summed the sum is enough.
        let summed = !MERGED.iter().any(|name| m.params.contains_key(*name)) || is_merged(m);
        let only = self.of.only.is_none_or(|(name, value)| param_text(m, name).as_deref() == Some(value));
        let ours = drawn && family_of(&m.probe) == self.family;
        ours && summed && only && m.quality.level != QualityLevel::Unsupported
    }

    fn build_figures(&self, report: &Report) -> Vec<NamedDrawing> {
        let points: Vec<&Measurement> = report.measurements.iter().filter(|m| self.is_of(m)).collect();
        let mut figures: Vec<(Vec<String>, Vec<&Measurement>)> = Vec::new();
        for m in points {
            let key: Vec<String> = self.of.apart.iter().filter_map(|name| split_label(name, m)).collect();
            entry(&mut figures, key).push(m);
        }
        let mut named = Vec::new();
        for (key, of) in figures {
            let Some(figure) = self.build_figure(report, &key, &of) else { continue };
            let key = key.iter().map(String::as_str).filter(|key| !key.contains('/'));
            let id = std::iter::once(self.of.id).chain(key).collect::<Vec<_>>().join("-");
            named.push(NamedDrawing::new(self.family, &id, Drawing::Curves(figure)));
        }
        named
    }

    fn build_figure(&self, report: &Report, apart: &[String], points: &[&Measurement]) -> Option<CurvePlot> {
        let (curves, without_place) = self.curves(points);
        // A curve of one point is one only beside others.
        if !curves.iter().any(|curve| curve.points.len() > 1) {
            return None;
        }
        let has = |m: &&&Measurement| curves.iter().any(|curve| curve.has_point(m));
        let mut notes = of_points(report, &points.iter().filter(has).copied().collect::<Vec<_>>(), "band");
        if without_place > 0 {
            let (points, what) = (count_with_noun(without_place, "point"), self.of.x.label);
            notes.push(format!("{points} with a {what} of 0 not drawn: a logarithmic axis has no 0"));
        }
        let marks = self.limit_marks(points);
        let dashed = curves.iter().any(|curve| curve.tone.is_some());
        let most = if dashed { many::MOST } else { MOST_SERIES };
        let (series, thinned) = thin_series(curves.into_iter().map(ParameterCurve::series).collect(), most);
        notes.extend(thinned);
        let [x, y] = [&self.of.x, &self.of.y].map(|along| Axis::new(along.label, along.scale, along.unit));
        let y = Axis { ends: ends_with(&series, &marks), ..y };
        let title = [&[self.of.title.to_owned()], &self.common_value(points)[..], apart].concat().join(", ");
        Some(CurvePlot { title, notes, x, y, series, marks })
    }

    /// Returns the value that dashes would show, if it is the same in all points.
    fn common_value(&self, points: &[&Measurement]) -> Vec<String> {
        let name = self.of.dashes.filter(|name| !varying(points).contains(name));
        name.and_then(|name| param_text(points.first()?, name))
            .iter()
            .map(|value| dash_name(value).to_owned())
            .collect()
    }

    /// Returns the curves, and the number of points without a place on the x axis.
    fn curves<'a>(&self, points: &[&'a Measurement]) -> (Vec<ParameterCurve<'a>>, u64) {
        let along = match self.of.x.of {
            Quantity::Parameter(name) => name,
            _ => "",
        };
        let ignored =
            |name: &&str| *name == along || self.of.apart.contains(name) || self.of.within.contains(name);
        let mut names: Vec<&str> = varying(points).into_iter().filter(|name| !ignored(name)).collect();
        let dashed = self.of.dashes.filter(|dashes| names.contains(dashes));
        names.retain(|name| Some(*name) != dashed);
        let several = points.iter().any(|m| m.probe != points[0].probe);
        let parts = if self.of.several.is_empty() { &[("", self.of.y.of)] } else { self.of.several };
        let (mut colours, mut dashes) = (Vec::new(), Vec::new());
        let mut curves: Vec<ParameterCurve> = Vec::new();
        let mut without_place = 0;
        for m in points {
            let Some(x) = point_value(self.of.x.of, m).filter(|_| point_value(self.of.y.of, m).is_some())
            else {
                continue;
            };
            if self.of.x.scale.axis_position(x).is_none() {
                without_place += 1;
                continue;
            }
            let colour = self.name(m, &names, several);
            for (what, of) in parts.iter().filter(|(_, of)| point_value(*of, m).is_some()) {
                let dash =
                    dashed.map_or_else(|| (*what).to_owned(), |name| param_text(m, name).unwrap_or_default());
                let tone = Some((
                    index_or_push(&mut colours, colour.clone()),
                    index_or_push(&mut dashes, dash.clone()),
                ));
                match curves.iter_mut().find(|known| known.tone == tone) {
                    Some(known) => known.points.push((x, *m)),
                    None => {
                        let name = curve_name(&colour, &dash);
                        curves.push(ParameterCurve { name, tone, of: *of, points: vec![(x, *m)] });
                    }
                }
            }
        }
        if dashes.len() < 2 {
            curves.iter_mut().for_each(|curve| curve.tone = None);
        }
        (curves, without_place)
    }

    /// The values of the limit.
    fn limit_marks(&self, points: &[&Measurement]) -> Vec<AxisMark> {
        let value =
            |m: &&Measurement| point_value(Quantity::Parameter(self.of.limit?), m).filter(|ns| *ns > 0.0);
        let mut values: Vec<f64> = points.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let label = |at: f64| format!("{} {}", self.of.limit.unwrap_or_default(), format_time(at));
        values.into_iter().map(|at| AxisMark::new(MarkAxis::Y, at, label(at))).collect()
    }

    /// Returns the name of a curve: the probe, if there are several, and the parameters that distinguish its
    /// points; for a single curve the label of the y axis.
    fn name(&self, m: &Measurement, names: &[&str], several: bool) -> String {
        let probe = m.probe.split_once('.').map_or(m.probe.as_str(), |(_, name)| name);
        let probe = Some(probe).filter(|_| several).map(str::to_owned);
        let parts: Vec<String> =
            probe.into_iter().chain(names.iter().filter_map(|name| curve_label(name, m))).collect();
        if parts.is_empty() { self.of.y.label.to_owned() } else { parts.join(" ") }
    }
}

/// Returns the value of a point, in the unit of its axis.
fn point_value(of: Quantity, m: &Measurement) -> Option<f64> {
    match of {
        Quantity::Parameter(name) => m.numeric_param(name).map(|number| number as f64),
        Quantity::Value(name, unit) => m.values.get(name).map(|value| value.value * unit),
        Quantity::Median => m.typical(),
        Quantity::P99 => m.summary.p99,
        Quantity::Maximum => m.summary.max,
        Quantity::Rate => m.rate_touched(),
    }
}

/// Returns the interval in which the figure of the next run is expected, derived from that of the median.
fn band(of: Quantity, m: &Measurement) -> Option<(f64, f64)> {
    let (next, median, at) = (m.next_run()?, m.typical()?, point_value(of, m)?);
    match of {
        Quantity::Median => Some((next.low, next.high)),
        // A rate that was measured over all of the time has none.
        Quantity::Rate if !m.values.contains_key("throughput") => {
            Some((at * median / next.high, at * median / next.low))
        }
        _ => None,
    }
}

/// Returns a value by which figures are split, as their titles and files have it: `tmpfs`, `2 threads`.
fn split_label(name: &str, m: &Measurement) -> Option<String> {
    match m.params.get(name)? {
        ParamValue::Number(1) if name == param::THREADS => Some("1 thread".to_owned()),
        ParamValue::Number(number) => Some(format!("{number} {name}")),
        ParamValue::Text(text) => Some(text.clone()),
    }
}

/// The value of a parameter as the name of a curve has it: `1 thread`, `4 KiB pages`.
fn curve_label(name: &str, m: &Measurement) -> Option<String> {
    match (name, m.params.get(name)?) {
        (param::THREADS, ParamValue::Number(number)) => Some(count_with_noun(*number, "thread")),
        (param::PAGES, pages) => Some(format!("{} pages", space_unit(&pages.to_string()))),
        _ => Some(show_all(&m.params, &[name])).filter(|text| !text.is_empty()),
    }
}

fn param_text(m: &Measurement, name: &str) -> Option<String> {
    m.params.get(name).map(ToString::to_string)
}

/// Points of a curve, with its name and style.
struct ParameterCurve<'a> {
    name: String,
    /// Colour and dashes, if several curves have one colour.
    tone: Option<(usize, usize)>,
    of: Quantity,
    points: Vec<(f64, &'a Measurement)>,
}

impl ParameterCurve<'_> {
    fn has_point(&self, m: &Measurement) -> bool {
        self.points.iter().any(|(_, known)| std::ptr::eq(*known, m))
    }

    /// Returns the curve with its highest value before it.
    fn series(self) -> (f64, PlotSeries) {
        let one = PlotSeries { tone: self.tone, ..build_series(self.name, self.points, self.of) };
        (one.points.iter().map(|(_, y)| *y).fold(0.0, f64::max), one)
    }
}

/// Returns a value that has dashes of its own, in words.
fn dash_name(value: &str) -> &str {
    match value {
        "every" => "every byte",
        "fourth" => "4 of every 16 bytes",
        other => other,
    }
}

/// Returns the name of a curve, from the names of its colour and of its dashes.
fn curve_name(colour: &str, dash: &str) -> String {
    [colour, dash_name(dash)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The ends of an axis on which all marks are seen; `None` without marks.
fn ends_with(series: &[PlotSeries], marks: &[AxisMark]) -> Option<(f64, f64)> {
    let points = series.iter().flat_map(|one| one.points.iter().map(|(_, y)| *y));
    let all = || points.clone().chain(marks.iter().map(|mark| mark.at)).filter(|y| *y > 0.0);
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    (!marks.is_empty()).then_some((low / 1.3, high * 1.3))
}

/// A size as a parameter has it, `4KiB`, with a space before its unit.
pub(super) fn space_unit(size: &str) -> String {
    size.replace("KiB", " KiB").replace("MiB", " MiB")
}

/// Returns a curve of medians over a quantity, in ascending order, with the intervals in which the next run's
/// are expected.
pub(super) fn median_series(name: String, points: Vec<(f64, &Measurement)>) -> PlotSeries {
    build_series(name, points, Quantity::Median)
}

fn build_series(name: String, mut points: Vec<(f64, &Measurement)>, y: Quantity) -> PlotSeries {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let band = points.iter().filter_map(|(x, m)| band(y, m).map(|(low, high)| (*x, low, high))).collect();
    let doubtful = points.iter().filter(|(_, m)| is_doubtful(m)).map(|(x, _)| *x).collect();
    let points = points.iter().filter_map(|(x, m)| Some((*x, point_value(y, m)?))).collect();
    PlotSeries { name, points, band, doubtful, ..PlotSeries::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::catalogue;
    use latscope_core::fixture;
    use latscope_core::fixture::ipc;

    fn of(report: &Report, family: &str) -> Vec<(String, Vec<String>)> {
        let names = |figure: &NamedDrawing| match &figure.drawing {
            Drawing::Curves(figure) => figure.series.iter().map(|series| series.name.clone()).collect(),
            _ => Vec::new(),
        };
        parameter_figures(report, family, catalogue())
            .iter()
            .map(|figure| (figure.id.clone(), names(figure)))
            .collect()
    }

    #[test]
    fn bandwidth_has_a_figure_for_each_number_of_threads_and_both_steps_of_an_operation_in_one_colour() {
        let found = of(&fixture::report(), "memory");
        let curves = ["read", "write", "copy"].map(str::to_owned).to_vec();
        assert_eq!(found[0], ("memory-bandwidth-1-thread".to_owned(), curves.clone()));
        assert_eq!(found[1], ("memory-bandwidth-2-threads".to_owned(), curves));
        let figures = parameter_figures(&fixture::server(), "memory", catalogue());
        let Drawing::Curves(figure) = &figures[0].drawing else { panic!("curves") };
        let tone = |name: &str| figure.series.iter().find(|one| one.name == name).unwrap().tone;
        assert_eq!(
            (tone("copy, every byte"), tone("copy, 4 of every 16 bytes")),
            (Some((2, 0)), Some((2, 1)))
        );
        assert_eq!(figure.series.len(), 8);
    }

    #[test]
    fn tails_by_payload_have_the_deadline_within_the_axis() {
        let figures = parameter_figures(&ipc::payloads(), "ipc", catalogue());
        let tails = figures.iter().find(|figure| figure.id == "ipc-tails-binder").unwrap();
        let Drawing::Curves(figure) = &tails.drawing else { panic!("curves") };
        let names: Vec<&str> = figure.series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["fifo, p99", "fifo, maximum", "other, p99", "other, maximum"]);
        assert_eq!(figure.marks[0].label, "deadline 2.50 ms");
        let (low, high) = figure.y.ends.unwrap();
        assert!(low < 25_000.0 && high > 2_820_000.0);
    }

    #[test]
    fn file_operations_have_a_figure_for_each_file_system() {
        let ids: Vec<String> = of(&fixture::report(), "file").into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["file-by-size-ext4", "file-by-size-tmpfs"]);
        let figures = parameter_figures(&fixture::report(), "file", catalogue());
        let Drawing::Curves(figure) = &figures[0].drawing else { panic!("curves") };
        assert!(figure.title.ends_with(", ext4, /root"), "{}", figure.title);
        assert!(figure.notes.iter().any(|note| note.contains("of 0 not drawn")), "{:?}", figure.notes);
    }

    #[test]
    fn throughput_has_a_curve_for_each_transport() {
        let found = of(&ipc::throughput(), "ipc");
        assert_eq!(found[0].0, "ipc-throughput");
        assert_eq!(found[0].1, ["unix-stream", "passthrough"]);
    }

    #[test]
    fn one_value_of_a_parameter_is_no_figure() {
        assert!(of(&ipc::latency(), "ipc").is_empty());
    }
}
