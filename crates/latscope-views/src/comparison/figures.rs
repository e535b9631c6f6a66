//! The figures of a point that was compared, and how each is written.

use latscope_core::report::Better;
use latscope_core::units::{format_percent, format_share, format_time, format_value};
use latscope_judge::compare::{ComparisonPoint, ComparisonVerdict, Contrast};

/// Figure of a point on both sides.
pub(super) struct ComparisonFigure<'a> {
    /// Name of the figure: `p50`, `p99`, `max`, `missed`, the name of a value; of a tail what is counted:
    /// `beyond p99`.
    pub name: String,
    /// Unit of the figure: `ns`, `count`, `%`, …; of a tail `share`.
    pub unit: &'a str,
    /// Figure of side A.
    pub a: Option<f64>,
    /// Figure of side B.
    pub b: Option<f64>,
    /// The last bin of a side, ns, if its figure is beyond that.
    pub beyond: [Option<f64>; 2],
    /// Difference of the sides, if it was computed.
    pub contrast: Option<&'a Contrast>,
    /// Verdict on the difference, if it was judged.
    pub verdict: Option<ComparisonVerdict>,
    /// Direction that is better.
    pub better: Better,
}

/// All figures of a point: the median first, named values last.
pub(super) fn point_figures(point: &ComparisonPoint) -> Vec<ComparisonFigure<'_>> {
    let mut all = Vec::new();
    let times =
        [("p50", &point.p50, Some(point.verdict)), ("p99", &point.p99, None), ("p99.9", &point.p99_9, None)];
    for (name, contrast, verdict) in times {
        if let Some(contrast) = contrast {
            all.push(ComparisonFigure { verdict, ..of_contrast(name, "ns", contrast) });
        }
    }
    all.push(plain_figure("max", "ns", point.max));
    if point.missed.iter().flatten().any(|missed| *missed > 0) {
        all.push(plain_figure("missed", "count", point.missed.map(|missed| Some(missed? as f64))));
    }
    for tail in &point.tails {
        let name = format!("beyond {}", tail.quantile);
        all.push(ComparisonFigure { verdict: Some(tail.verdict), ..of_contrast(&name, "share", &tail.rate) });
    }
    for (name, value) in &point.values {
        let figure = plain_figure(name, &value.unit, [Some(value.a), Some(value.b)]);
        all.push(ComparisonFigure { contrast: value.ratio.as_ref(), better: value.better, ..figure });
    }
    all
}

/// Returns a figure of both sides that is better the less it is.
fn plain_figure<'a>(name: &str, unit: &'a str, [a, b]: [Option<f64>; 2]) -> ComparisonFigure<'a> {
    ComparisonFigure {
        name: name.to_owned(),
        unit,
        a,
        b,
        beyond: [None; 2],
        contrast: None,
        verdict: None,
        better: Better::Less,
    }
}

fn of_contrast<'a>(name: &str, unit: &'a str, contrast: &'a Contrast) -> ComparisonFigure<'a> {
    ComparisonFigure {
        contrast: Some(contrast),
        ..plain_figure(name, unit, [Some(contrast.a), Some(contrast.b)])
    }
}

/// Names of the values that matter in a family beside its times. `misses` is not among them: `missed` counts
/// the same.
const TELLING: [&str; 5] = ["meet", "sync", "losses", "lost", "throughput"];

/// Returns the median of a point, without figures if it cannot be compared. One beyond the last bin has no ratio.
pub(super) fn median(point: &ComparisonPoint) -> ComparisonFigure<'_> {
    let side = |at: usize, longer: bool| {
        let beyond = point.beyond.as_ref().filter(|beyond| beyond.longer[at] == longer);
        beyond.map(|beyond| beyond.figures[at])
    };
    let known = plain_figure("p50", "ns", [0, 1].map(|at| side(at, false)));
    let unknown =
        ComparisonFigure { verdict: Some(point.verdict), beyond: [0, 1].map(|at| side(at, true)), ..known };
    point_figures(point).into_iter().find(|figure| figure.name == "p50").unwrap_or(unknown)
}

/// Returns true if a figure is how often a tail is reached.
pub(super) fn is_tail(figure: &ComparisonFigure) -> bool {
    figure.unit == "share"
}

/// Returns true if a table for people shows the figure beside the median: the times of single events, and the
/// figures that matter in its family.
pub(super) fn is_telling(figure: &ComparisonFigure) -> bool {
    let name = figure.name.as_str();
    let nothing = figure.a == Some(0.0) && figure.b == Some(0.0);
    ["p99", "p99.9", "max", "missed"].contains(&name) || TELLING.contains(&name) && !nothing
}

/// Returns a figure with its unit; a dash without a figure.
pub(crate) fn quantity(value: Option<f64>, unit: &str) -> String {
    match (value, unit) {
        (None, _) => "–".to_owned(),
        (Some(ns), "ns") => format_time(ns),
        (Some(share), "share") => format_share(share),
        (Some(percent), "%") => format_percent(percent),
        (Some(value), unit) => format_value(value, unit),
    }
}

/// Returns a ratio: `1.05`, `0.998`; a dash without a ratio.
pub(crate) fn format_ratio(contrast: Option<&Contrast>) -> String {
    contrast.map_or_else(|| "–".to_owned(), |contrast| format_ratio_value(contrast.ratio))
}

/// Returns the interval of the ratio: `1.02–1.08`; `?` if it is not known, empty without a ratio.
pub(crate) fn interval(contrast: Option<&Contrast>) -> String {
    let known = |contrast: &Contrast| match contrast.interval {
        Some(range) => format!("{}–{}", format_ratio_value(range.low), format_ratio_value(range.high)),
        None => "?".to_owned(),
    };
    contrast.map(known).unwrap_or_default()
}

fn format_ratio_value(ratio: f64) -> String {
    match ratio {
        r if r >= 1000.0 => ">999".to_owned(),
        r if r < 0.001 => "<0.001".to_owned(),
        r if r >= 99.5 => format!("{r:.0}"),
        r if r >= 9.95 => format!("{r:.1}"),
        r if r >= 0.995 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

/// A verdict in words.
pub(super) fn format_verdict(verdict: ComparisonVerdict, up: bool) -> &'static str {
    match verdict {
        ComparisonVerdict::Slower => "slower",
        ComparisonVerdict::Faster => "faster",
        ComparisonVerdict::Differs if up => "differs, up",
        ComparisonVerdict::Differs => "differs, down",
        ComparisonVerdict::Same => "same",
        ComparisonVerdict::CannotTell => "cannot tell",
    }
}

/// Returns the verdict on a figure in words; empty if it was not judged.
pub(super) fn verdict_words(figure: &ComparisonFigure) -> &'static str {
    match figure.verdict {
        Some(ComparisonVerdict::Slower) if is_tail(figure) => "more often",
        Some(ComparisonVerdict::Faster) if is_tail(figure) => "less often",
        Some(verdict) => {
            let up = figure.contrast.is_some_and(|contrast| contrast.ratio > 1.0);
            format_verdict(verdict, up || figure.beyond[1].is_some())
        }
        None => "",
    }
}
