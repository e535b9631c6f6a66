//! Single events in full, as `wake`, `noise`, `ipc` and `remote` measure them: a row for each thread, the
//! verdict on the criteria and how sure it is, the longest events and their causes.

mod conditions;
mod outliers;
mod table;
mod transactions;

pub(super) use outliers::SHOWN;
pub use outliers::causes;
pub(super) use outliers::{causes_table, of_groups, pattern_sentences};
pub(super) use transactions::{Table, told};

use super::grid::{Column, Text, wrap};
use super::head::head;
use super::rows::family;
use super::style::{BOLD, DIM, PLAIN, WARNING};
use super::verdicts::{row_name, verdicts};
use super::{Options, survey, unmeasured};
use crate::published::{self, Published};
use latscope_core::catalogue::ids;
use latscope_core::events::{Group, groups};
use latscope_core::report::Report;
use latscope_judge::transactions::mode;
use latscope_judge::verdict::{HOW_SURE, confidence_of};

/// Families whose measurements this view is for.
pub(super) const FAMILIES: [&str; 4] = ["wake", "noise", "ipc", "remote"];

/// Returns true if a report has single events only, so that this view suits it better than the table of the
/// survey.
pub fn is_of_events(report: &Report) -> bool {
    let ours = |probe: &str| FAMILIES.contains(&family(probe));
    !report.measurements.is_empty() && report.measurements.iter().all(|m| ours(&m.probe))
}

/// Returns the whole view: machine and conditions, a table for each probe, verdict, confidence, the longest
/// events, published figures for reference, findings, and the points that could not be measured.
pub fn events(report: &Report, options: &Options) -> String {
    let mut out = head(report, options);
    let groups = groups(report);
    for group in groups.iter().filter(|group| is_shown(group, groups.len())) {
        out.push('\n');
        out += &conditions::heading(report, group, options);
        out += &table::table(group, options);
    }
    out += &transactions::comparison(report).map(|table| table.text(options)).unwrap_or_default();
    out += &transactions::throughput(report, options);
    out += &transactions::hops(report, options);
    out += &verdicts(report, options);
    out += &outliers::causes_table(&groups).map(|table| table.text(options)).unwrap_or_default();
    out += &sections(report, &groups, options);
    out += &survey::conclusions(report, false, options);
    let mut families: Vec<&str> = report.measurements.iter().map(|m| family(&m.probe)).collect();
    families.dedup();
    for family in families {
        out += &unmeasured::family_lists(report, family, options);
    }
    out
}

/// Returns the sections below the tables: confidence, the longest events, and published figures.
fn sections(report: &Report, groups: &[Group], options: &Options) -> String {
    let sure: Vec<Group> = groups.iter().filter(|group| is_shown(group, groups.len())).cloned().collect();
    let mut out = confidence(report, &sure, options);
    out += &outliers::longest(groups, options);
    out += &references(report, groups, options);
    out
}

/// Returns the tables of all probes of single events, with all rows, then transports and payloads beside each
/// other.
pub(super) fn tables(report: &Report) -> Vec<Table> {
    let table = |group: &Group| Table {
        heading: group.probe.to_owned(),
        columns: table::columns(group).into_iter().filter(|column| !column.is_empty()).collect(),
        about: conditions(report, group),
    };
    let all = groups(report);
    let groups = all.iter().map(table);
    let causes = outliers::causes_table(&all);
    let more = [transactions::comparison(report), transactions::throughput_table(report), causes];
    groups.chain(more.into_iter().flatten()).collect()
}

/// Returns the lists below the tables: a heading and lines each.
pub(super) fn lists(report: &Report) -> Vec<(String, Vec<String>)> {
    let groups = groups(report);
    let wide = Options { width: usize::MAX / 2, ..Options::default() };
    let text = transactions::hops(report, &wide) + &sections(report, &groups, &wide);
    let mut lists: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix(' '), lists.last_mut()) {
            (Some(line), Some((_, lines))) => lines.push(line.trim().to_owned()),
            _ => lists.push((line.to_owned(), Vec::new())),
        }
    }
    lists
}

/// Returns the conditions under which the events of a probe were measured.
pub(super) fn conditions(report: &Report, group: &Group) -> String {
    conditions::conditions(report, group).join(" · ")
}

/// Returns a row for each thread or pair, then the sums, with every figure that is not 0 in all rows, in tables
/// of readable width, and the notes below them.
pub(super) fn tables_of(group: &Group) -> (Vec<Vec<Column>>, Vec<String>) {
    table::tables(group)
}

/// Returns true if a probe has a table of its own. Transports that are only compared with each other, and
/// payloads, share a table.
fn is_shown(group: &Group, groups: usize) -> bool {
    let transactions = group.singles.first().and_then(|row| mode(row.m));
    transactions.is_none_or(|mode| mode != "throughput" && groups < transactions::MANY)
}

/// Returns a heading after an empty line.
fn section(title: &str, options: &Options) -> String {
    format!("\n{}", wrap(&Text::default(), title, BOLD, options.width, options.color))
}

/// Returns the section on whether the rows ran long enough; empty if nothing is known.
fn confidence(report: &Report, groups: &[Group], options: &Options) -> String {
    let mut out = String::new();
    for group in groups {
        for row in group.whole() {
            let Some(text) = confidence_of(report, row.m) else { continue };
            let text = format!("{}: {text}.", row_name(groups, group, &row.label));
            out += &wrap(&Text::plain("  "), &text, PLAIN, options.width, options.color);
        }
    }
    if out.is_empty() {
        return out;
    }
    let how = wrap(&Text::plain("  "), HOW_SURE, DIM, options.width, options.color);
    section("How sure", options) + &how + &out
}

/// Returns the figures that others published on timer wake-ups; empty without such wake-ups.
fn references(report: &Report, groups: &[Group], options: &Options) -> String {
    let Some(group) = groups.iter().find(|group| group.probe == ids::WAKE_TIMER) else {
        return String::new();
    };
    let mut out = section("For reference", options);
    let here = format!(
        "Published elsewhere; here: {}. The load is a different one in each.",
        published::here(report, group)
    );
    out += &wrap(&Text::plain("  "), &here, DIM, options.width, options.color);
    let (others, same): (Vec<Published>, Vec<Published>) =
        published::WAKE_UPS.into_iter().partition(|published| published.differs(report, group));
    for published in same {
        let text = format!("{}, {}: {}", published.figure, published.name, published.described());
        out += &wrap(&Text::plain("    "), &text, DIM, options.width, options.color);
    }
    if !others.is_empty() {
        let text = format!(
            "{} more are of another interval, policy or kernel and cannot be compared.",
            others.len()
        );
        out += &wrap(&Text::plain("  ").with(WARNING, "≠ "), &text, DIM, options.width, options.color);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::quality::{Level, Reason};
    use latscope_judge::verdict::{Criterion, judge_report};

    fn judged(criteria: &[(&str, f64)]) -> Report {
        let mut report = fixture::wake();
        let criteria: Vec<Criterion> =
            criteria.iter().map(|(name, limit)| Criterion::new(name, *limit).unwrap()).collect();
        judge_report(&mut report, &criteria);
        report
    }

    fn wide() -> Options<'static> {
        Options { width: 200, ..Options::default() }
    }

    #[test]
    fn verdicts_have_a_sign_a_word_and_a_reason() {
        let report = judged(&[("p99_9", 60_000.0), ("max", 50_000.0), ("p99_9999", 5e6), ("missed", 3.0)]);
        let text = events(&report, &wide());
        for part in [
            "\nVerdict: exceeded\n",
            "  ✔ p99.9 ≤ 60.0 µs pass: ",
            "  ✘ max ≤ 50.0 µs exceeded: 2 of 60,000 were above 50.0 µs; the longest took 3.41 ms",
            "  ? p99.9999 ≤ 5.00 ms inconclusive: ",
            "  ✔ missed ≤ 3 pass: missed 3, at most 3 allowed",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn without_criteria_there_is_no_verdict() {
        assert!(!events(&fixture::wake(), &wide()).contains("Verdict"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let report = judged(&[("max", 50_000.0)]);
        for width in [40, 60, 80, 100, 200] {
            for line in events(&report, &Options { width, ..Options::default() }).lines() {
                assert!(Text::plain(line).width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn the_view_is_for_reports_of_events_alone() {
        assert!(is_of_events(&fixture::wake()));
        assert!(!is_of_events(&fixture::report()));
        let nothing = Report { measurements: Vec::new(), ..fixture::wake() };
        assert!(!is_of_events(&nothing));
        assert!(events(&nothing, &wide()).starts_with("latscope wake"));
    }

    #[test]
    fn doubtful_rows_are_marked_and_explained() {
        let mut report = fixture::wake();
        for m in &mut report.measurements {
            m.lower(Reason::new(Level::Degraded, "not-as-asked", "ran as SCHED_OTHER", ""));
        }
        let text = events(&report, &wide());
        assert!(text.contains("CPU 0 !") && text.contains("! Degraded or unstable"), "{text}");
        assert!(text.contains("ran as SCHED_OTHER"));
    }
}
