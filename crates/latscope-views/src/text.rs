//! Full view of a family: every point, each probe laid out by its parameters.

use super::cells::{cycles, format_range, times_mark};
use super::column::{CellAlignment, ColumnBuilder, TableColumn};
use super::document::{DocumentTable, WIDER};
use super::grid::grid;
use super::head::head;
use super::headline::families;
use super::legend::{BLOCKED, REJECTED, Signs, describe_semantics, next_run, quality_mark};
use super::matrix::{Matrix, format_param, matrices, max_cell_count, varying};
use super::rows::family as family_of;
use super::style::{BOLD, DIM, HEADING, PLAIN};
use super::styled::{Text, wrap, wrap_text};
use super::verdicts::verdicts_document;
use super::{DisplayOptions, survey, unmeasured};
use latscope_core::catalogue::figures::Quantity;
use latscope_core::catalogue::{
    FASTEST_ADDRESS, ProbeCatalogue, SLOW_ADDRESSES, SLOWEST_ADDRESS, families, ids,
};
use latscope_core::machine::Machine;
use latscope_core::ordered::group_by_key;
use latscope_core::param;
use latscope_core::report::{BEYOND, Measurement, Report, Sampling, Summary};
use latscope_core::units::{format_rate, format_share, format_time, format_value};

/// Number of points from which on a probe with several varying parameters is shown as a matrix rather than a
/// list.
const SWEEP_POINTS: usize = 6;

/// The view of a family command: machine, all points, findings.
pub fn family(report: &Report, family: &str, options: &DisplayOptions) -> String {
    let mut out = head(report, options);
    add_details(&mut out, report, family, options);
    survey::conclusions(report, family == families::MEMORY).write_text(&mut out, options);
    out
}

/// All families in full.
pub fn format_families(report: &Report, options: &DisplayOptions) -> String {
    let mut out = head(report, options);
    for family in families(report.measurements.iter().map(|m| &m.probe)) {
        add_details(&mut out, report, family, options);
    }
    verdicts_document(report).write_text(&mut out, options);
    survey::conclusions(report, true).write_text(&mut out, options);
    out
}

/// Adds every point of a family, then which points are missing or degraded and why.
fn add_details(out: &mut String, report: &Report, family: &str, options: &DisplayOptions) {
    *out += &every_point(report, family, options);
    unmeasured::family_lists(report, family).write_text(out, options);
}

/// Every point of a family: a list, then the sweeps as matrices.
pub(crate) fn every_point(report: &Report, family: &str, options: &DisplayOptions) -> String {
    let measured = report.measurements.iter().filter(|m| family_of(&m.probe) == family && m.is_timed());
    let probes = group_by_key(measured.map(|m| (m.probe.as_str(), m)));
    let (sweeps, listed): (Vec<_>, Vec<_>) = probes
        .into_iter()
        .partition(|(probe, points)| is_sweep(points) && !is_over_a_value(probe, options.catalogue));
    let mut out = String::new();
    if !(listed.is_empty() && sweeps.is_empty()) {
        out += &format!("\n{}", wrap_text(&Text::in_style(BOLD, family), options));
    }
    if !listed.is_empty() {
        let points: Vec<&Measurement> = listed.into_iter().flat_map(|(_, points)| points).collect();
        out += &points_table(report, &points, (options.width * 2 / 5).max(20)).to_text(options);
    }
    for (probe, points) in sweeps {
        out.push('\n');
        out += &probe_heading(probe, &points, options);
        out += &matrix(&report.machine, &points, options);
    }
    out
}

/// The most cells of a matrix, unless it has many points.
const MOST_CELLS: usize = 1 << 12;

/// Returns true if a matrix shows the points of a probe better than a list.
fn is_sweep(points: &[&Measurement]) -> bool {
    if points.iter().all(|m| m.sampling == Sampling::Event && m.nodes().is_some()) {
        // Their quantiles matter, which a matrix does not have.
        return false;
    }
    let pairs = points.iter().filter(|m| m.params.contains_key(param::PAIR)).count();
    // Most cells of a larger one would be empty.
    let most = MOST_CELLS.max(8 * points.len());
    (points.len() >= SWEEP_POINTS && varying(points).len() > 1 || pairs > 2) && max_cell_count(points) <= most
}

/// Returns true if the figure of a probe is a curve over a measured value: a matrix of medians would not have it.
fn is_over_a_value(probe: &str, catalogue: &ProbeCatalogue) -> bool {
    let curves = catalogue.families.iter().flat_map(|family| family.curves);
    let mut own = curves.filter(|curve| curve.probes.iter().any(|facts| facts.id == probe));
    own.any(|curve| matches!(curve.x.of, Quantity::Value(..)))
}

/// The probe, what its durations are, and what all its points have in common.
fn probe_heading(probe: &str, points: &[&Measurement], options: &DisplayOptions) -> String {
    let first = points[0];
    let times = describe_semantics(first.times);
    let sampling = match first.sampling {
        Sampling::Batch { .. } => "batch means",
        Sampling::Event => "each event timed",
    };
    let varying = varying(points);
    let common = first.params.iter().filter(|(name, value)| {
        !varying.contains(&name.as_str()) && points.iter().all(|m| m.params.get(*name) == Some(value))
    });
    let common: Vec<String> =
        common.map(|(name, value)| format!("{name} {}", format_param(name, value))).collect();
    let mut about = format!("{times}, median of {sampling}");
    if !common.is_empty() {
        about += &format!(" · {}", common.join(", "));
    }
    wrap(&Text::in_style(BOLD, format!("{probe}  ")), &about, DIM, options)
}

/// Returns every point of a family with every figure; `None` without a point.
pub(super) fn points(report: &Report, family: &str) -> Option<DocumentTable> {
    let ours = |m: &&Measurement| family_of(&m.probe) == family && m.is_timed();
    let points: Vec<&Measurement> = report.measurements.iter().filter(ours).collect();
    (!points.is_empty()).then(|| points_table(report, &points, usize::MAX))
}

/// Returns a row for each point, with its name in `room` columns.
fn points_table(report: &Report, points: &[&Measurement], room: usize) -> DocumentTable {
    let label = |m: &&Measurement| {
        let title = if m.title.is_empty() { &m.probe } else { &m.title };
        Text::plain(title).wrap_to_width(room - 2).append_text(quality_mark(m))
    };
    let figures =
        figure_columns(report, points).into_iter().enumerate().map(|(at, column)| column.rank(at + 1));
    let columns =
        std::iter::once(ColumnBuilder(points).left_aligned("point", label)).chain(figures).collect();
    let notes = Signs::from_measurements(points.iter().copied()).format_line().into_iter().collect();
    DocumentTable { least: usize::MAX, notes, wider: WIDER, ..DocumentTable::new(columns) }
}

/// All figures of points, the most telling first.
fn figure_columns(report: &Report, points: &[&Measurement]) -> Vec<TableColumn> {
    let rows = ColumnBuilder(points);
    let time = |name: &str, of: fn(&Summary) -> Option<f64>| {
        rows.optional_column(name, move |m| of(&m.summary).map(format_time))
    };
    let names = points.iter().flat_map(|m| m.values.keys());
    let apart = [BEYOND, FASTEST_ADDRESS, SLOWEST_ADDRESS, SLOW_ADDRESSES];
    let mut names: Vec<&String> = names.filter(|name| !apart.contains(&name.as_str())).collect();
    names.sort();
    names.dedup();
    // What is named after something met on the way comes last.
    let (details, names): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| name.contains(':'));
    let (counts, shares): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| is_count_only(points, name));
    let named = |name: &String| {
        let meaning = match name.as_str() {
            "direct" => "direct: the same work in a loop, without the thread",
            "blocked" => BLOCKED,
            _ => "",
        };
        rows.optional_column(name, |m| m.values.get(name).map(|v| format_value(v.value, &v.unit)))
            .meaning(meaning)
    };
    let lacks_next = points.iter().any(|m| m.next_run().is_none());
    let rejected =
        |m: &Measurement| Some(format_share(m.rejected_share())).filter(|_| m.summary.rejected > 0);
    let mut columns = vec![
        rows.optional_column("median", |m| m.median_in_words()),
        rows.optional_column(BEYOND, |m| m.values.get(BEYOND).map(|v| format_value(v.value, &v.unit)))
            .meaning("beyond: values beyond the last bin, of which only the largest is known"),
        rows.left_aligned("", |m| Text::in_style(DIM, times_mark(m.times))),
        rows.optional_column("touched", |m| m.rate_touched().map(format_rate))
            .meaning("touched: bytes that the program reads and writes, per second"),
        rows.optional_column("moved", |m| memory_rate(m, &report.machine).map(format_rate)).meaning(MOVED),
    ];
    columns.extend(shares.into_iter().map(named));
    columns.extend([
        rows.optional_column("next run", |m| m.next_run().map(|next| format_range(next.low, next.high)))
            .meaning(next_run(report, "", lacks_next)),
        rows.optional_column("p10-p90", |m| Some(format_range(m.summary.p10?, m.summary.p90?))),
        rows.optional_column("addresses", |m| address_medians(m))
            .meaning("addresses: medians at the fastest and the slowest of 16 addresses of the timed loop"),
        time("p99", |s| s.p99),
        time("max", |s| s.max),
        rows.optional_column("cycles", |m| m.summary.cycles.map(cycles)),
        time("min", |s| s.min),
        time("p99.9", |s| s.p99_9),
        time("p99.99", |s| s.p99_99),
        time("mean", |s| s.mean),
        rows.right("samples", |m| m.summary.count.to_string()),
        rows.optional_column("rejected", |m| rejected(m)).meaning(REJECTED),
        rows.optional_column("missed", |m| (m.summary.missed > 0).then(|| m.summary.missed.to_string())),
    ]);
    columns.extend(counts.into_iter().chain(details).map(named));
    columns
}

/// Medians at the fastest and the slowest address of a loop that lies at several.
fn address_medians(m: &Measurement) -> Option<String> {
    let [low, high] = [FASTEST_ADDRESS, SLOWEST_ADDRESS].map(|name| m.values.get(name));
    Some(format_range(low?.value, high?.value))
}

/// Meaning of the column `moved`.
const MOVED: &str = "moved: the same with the fetch of a line before it is written and with copies, computed, where \
                     the data is beyond the caches";

/// Returns true if all values of this name are mere counts.
fn is_count_only(points: &[&Measurement], name: &str) -> bool {
    points.iter().filter_map(|m| m.values.get(name)).all(|value| value.unit == "count")
}

/// Bytes that the memory moves per second, where that is more than the program asked for.
fn memory_rate(m: &Measurement, machine: &Machine) -> Option<f64> {
    m.rate_moved(machine).filter(|_| m.work.is_some_and(|work| work.bytes_moved != work.bytes_touched))
}

/// Content of the cells of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatrixQuantity {
    Median,
    /// Bytes touched per second, and bytes moved if they are more and known.
    Rate,
}

/// Returns points as matrices: medians and, if bytes are known, rates. Memory has only rates, since a duration
/// there is that of a pass of arbitrary length.
fn matrix(machine: &Machine, points: &[&Measurement], options: &DisplayOptions) -> String {
    let work = points.iter().all(|m| m.rate_touched().is_some());
    let memory = points.iter().all(|m| family_of(&m.probe) == families::MEMORY);
    let mut out = String::new();
    if !(work && memory) {
        out += &matrix_of(machine, points, MatrixQuantity::Median, options);
    }
    if work {
        let moves = points.iter().any(|m| memory_rate(m, machine).is_some());
        let text = match moves {
            true => {
                "bytes touched by the program, and behind / where the data is beyond the caches those with the fetch of \
                 a line before it is written and with copies (computed), per second"
            }
            false => "bytes touched by the program, per second",
        };
        out += &wrap(&Text::plain("  "), text, DIM, options);
        out += &matrix_of(machine, points, MatrixQuantity::Rate, options);
    }
    out
}

fn matrix_of(
    machine: &Machine,
    points: &[&Measurement],
    shown: MatrixQuantity,
    options: &DisplayOptions,
) -> String {
    let cell_width = points.iter().map(|m| matrix_cell(machine, m, shown).display_width()).max().unwrap_or(0);
    let fits = |headings: &[String]| {
        let width = |heading: &String| 2 + Text::plain(heading).display_width().max(cell_width);
        10 + headings.iter().map(width).sum::<usize>() <= options.width
    };
    let mut out = String::new();
    for matrix in matrices(points, &fits) {
        if !matrix.title.is_empty() {
            out += &wrap_text(&Text::plain("  ").with_piece(BOLD, &matrix.title), options);
        }
        out += &one_matrix(machine, &matrix, shown, options);
    }
    if shown == MatrixQuantity::Median && points.iter().any(|m| !claims(machine, m).is_empty()) {
        out += &wrap(&Text::plain("  "), CLAIMS, DIM, options);
    }
    let legend =
        Signs { round_trip: false, one_way: false, ..Signs::from_measurements(points.iter().copied()) };
    if let Some(text) = legend.format_line() {
        out += &wrap(&Text::plain("  "), &text, DIM, options);
    }
    out
}

/// Returns a matrix as text. Columns that do not fit stand below, with the side repeated.
fn one_matrix(machine: &Machine, matrix: &Matrix, shown: MatrixQuantity, options: &DisplayOptions) -> String {
    let side: Vec<Text> = matrix.rows.iter().map(|row| Text::plain("  ").with_piece(PLAIN, row)).collect();
    let side =
        TableColumn::new(Text::plain("  ").with_piece(HEADING, matrix.axis), CellAlignment::Right, side);
    let mut waiting = matrix.columns.iter().enumerate().map(|(at, heading)| {
        let cells = matrix
            .cells
            .iter()
            .map(|row| row[at].map_or(Text::plain("·"), |m| matrix_cell(machine, m, shown)));
        TableColumn::new(Text::in_style(HEADING, heading), CellAlignment::Right, cells.collect())
    });
    let mut out = String::new();
    let mut next = waiting.next();
    while next.is_some() {
        let mut columns = vec![side.clone()];
        let mut used = side.width();
        while let Some(column) = next.take_if(|c| columns.len() == 1 || used + 2 + c.width() <= options.width)
        {
            used += 2 + column.width();
            columns.push(column);
            next = waiting.next();
        }
        out += &grid(&columns, 2, options);
    }
    out
}

/// Returns what firmware states for a load from one node's memory by the CPUs of another: the distance, then the
/// latency.
fn claims(machine: &Machine, m: &Measurement) -> Vec<String> {
    let Some((from, to)) = m.nodes().filter(|_| m.probe == ids::MEMORY_LATENCY) else {
        return Vec::new();
    };
    let distance = machine.distance(from, to).map(|distance| distance.to_string());
    distance.into_iter().chain(machine.claimed_latency(from, to).map(|ns| ns.to_string())).collect()
}

/// Meaning of the numbers behind a median.
const CLAIMS: &str = "behind · what firmware states: the distance (SLIT, 10 is the own memory), and the latency of a read in ns (HMAT)";

/// Returns the text of a point in a matrix, with its mark.
fn matrix_cell(machine: &Machine, m: &Measurement, shown: MatrixQuantity) -> Text {
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), format_rate);
    let text = match shown {
        MatrixQuantity::Median => {
            let median = m.median_in_words().unwrap_or("-".to_owned());
            claims(machine, m).into_iter().fold(median, |text, claim| format!("{text} · {claim}"))
        }
        MatrixQuantity::Rate => match memory_rate(m, machine) {
            Some(moved) => join_quantities(&rate(m.rate_touched()), &format_rate(moved)),
            None => rate(m.rate_touched()),
        },
    };
    Text::plain(text).append_text(quality_mark(m))
}

/// Returns two quantities, with the unit once if it is the same.
fn join_quantities(first: &str, second: &str) -> String {
    match (first.split_once(' '), second.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} / {second}"),
        _ => format!("{first} / {second}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::quality::QualityLevel;

    fn details(report: &Report, family: &str, options: &DisplayOptions) -> String {
        let mut out = "\n".to_owned();
        super::add_details(&mut out, report, family, options);
        out
    }

    fn wide() -> DisplayOptions<'static> {
        DisplayOptions { width: 120, ..DisplayOptions::default() }
    }

    #[test]
    fn a_family_without_a_number_has_no_heading() {
        let mut report = fixture::report();
        report.measurements.retain(|m| m.quality.level == QualityLevel::Unsupported);
        let text = details(&report, "memory", &DisplayOptions::default());
        assert!(text.trim_start().starts_with("Not measured"), "{text}");
    }

    #[test]
    fn every_sweep_has_its_heading_and_nothing_is_silent() {
        let report = fixture::report();
        let text = details(&report, "memory", &wide());
        for probe in ["memory.latency", "memory.bandwidth", "memory.tlb"] {
            assert!(text.contains(probe), "{probe} in\n{text}");
        }
        assert!(!text.contains("sync."));
    }

    #[test]
    fn bandwidth_states_bytes_touched_and_bytes_moved() {
        let text = details(&fixture::report(), "memory", &wide());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("bytes touched by the program, and behind / where the data is beyond"),
            "{text}"
        );
        assert!(text.contains("6.51 / 13.0 GB/s"), "{text}");
    }

    #[test]
    fn what_fits_in_the_caches_is_not_said_to_be_moved_by_memory() {
        let mut report = fixture::report();
        report.machine.caches.iter_mut().for_each(|cache| cache.size = 1 << 40);
        for family in ["memory", "file", "sync"] {
            let text = details(&report, family, &wide());
            assert!(text.contains(family) && !text.contains("moved") && !text.contains(" / "), "{text}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let report = fixture::report();
        for width in [40, 60, 80, 120] {
            let text = format_families(&report, &DisplayOptions { width, ..DisplayOptions::default() });
            for line in text.lines() {
                assert!(Text::plain(line).display_width() <= width, "{width}: {line}");
            }
        }
    }
}
