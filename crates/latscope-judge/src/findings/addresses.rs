//! Timed loops whose time depends on their address.

use super::evidence::FindingBuilder;
use super::select::{finite_value, is_measured, join_list};
use latscope_core::catalogue::{FASTEST_ADDRESS, SLOW_ADDRESSES, SLOWEST_ADDRESS};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Finding, Measurement, Report};
use latscope_core::units::{format_percent, format_time};

/// Rows that are named; of more, the number is stated.
const NAMED: usize = 3;

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    two_modes(report).into_iter().collect()
}

/// A row with two modes.
struct Row<'a> {
    m: &'a Measurement,
    fast: f64,
    slow: f64,
    /// Share of addresses in the slower mode, %.
    share: f64,
}

/// The row, if at least half of its rounds show two modes. A round has few batches at an address, so that whatever
/// disturbs some of them looks like a mode: rows of a busy machine, and those that are not ok, show nothing.
fn two_mode_row(m: &Measurement) -> Option<Row<'_>> {
    let is_busy = m.account.as_ref().is_some_and(|account| !account.is_quiet());
    if is_busy || m.quality.level != QualityLevel::Ok {
        return None;
    }
    let seen = m.rounds.iter().filter_map(|round| round.values.get(SLOW_ADDRESSES));
    let (seen, two) = seen.fold((0, 0), |(seen, two), share| (seen + 1, two + usize::from(*share > 0.0)));
    let named = |name| finite_value(m, name).filter(|value| *value > 0.0);
    let row = Row {
        m,
        fast: named(FASTEST_ADDRESS)?,
        slow: named(SLOWEST_ADDRESS)?,
        share: named(SLOW_ADDRESSES)?,
    };
    (is_measured(m) && 2 * two >= seen && row.slow > row.fast).then_some(row)
}

/// Reports rows that take one of two times, depending on the address of the same instructions.
fn two_modes(report: &Report) -> Option<Finding> {
    let mut rows: Vec<Row> = report.measurements.iter().filter_map(two_mode_row).collect();
    rows.sort_by(|a, b| (b.slow / b.fast).total_cmp(&(a.slow / a.fast)));
    let first = rows.first()?;
    let words = |row: &Row| {
        let (fast, slow) = (format_time(row.fast), format_time(row.slow));
        let share = format_percent(row.share.round());
        format!("{} ({fast} or {slow}; slow at {share} of the addresses)", row.m.title)
    };
    let mut named: Vec<String> = rows.iter().take(NAMED).map(words).collect();
    match rows.len().saturating_sub(NAMED) {
        0 => {}
        1 => named.push("1 more row".to_owned()),
        more => named.push(format!("{more} more rows")),
    }
    let told = FindingBuilder::claim("two-modes-by-address")
        .values([("fast_ns", first.fast), ("slow_ns", first.slow), ("slow_percent", first.share)])
        .value("rows", rows.len() as f64)
        .points(rows.iter().map(|row| row.m));
    Some(told.into_finding(format!(
        "The address of the same loop decides the time of {}. Another build of a program can change by this factor.",
        join_list(&named)
    )))
}
