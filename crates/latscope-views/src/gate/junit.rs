//! A judged budget as a JUnit file, which CI systems show as tests.
//!
//! A limit that is exceeded is a failure, one that is inconclusive an error: neither is shown as passed. Readers differ
//! in whether they show the attribute `message` or what is in the element: both have the reason.

use super::outcome;
use latscope_core::report::Status;
use latscope_judge::gate::{Check, Gate};
use std::fmt::Write;

/// A suite for each run, and one for what is judged against the baseline; a test for each check. The name of a test is
/// the id of its check: the same in every pipeline.
pub fn junit(gate: &Gate) -> String {
    let all: Vec<&Check> = gate.checks.iter().collect();
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _ = writeln!(out, "<testsuites name=\"latscope gate\"{}>", counts(&all));
    for (at, run) in gate.runs.iter().enumerate() {
        let place = if gate.runs.len() > 1 { Some(at + 1) } else { None };
        suite(&mut out, &run.file, Some(&run.started), &of_run(&all, Some(at)), place);
    }
    suite(&mut out, "relative to the baseline", None, &of_run(&all, None), None);
    out + "</testsuites>\n"
}

fn of_run<'a>(checks: &[&'a Check], run: Option<usize>) -> Vec<&'a Check> {
    checks.iter().copied().filter(|check| check.run == run).collect()
}

fn counts(checks: &[&Check]) -> String {
    let of = |status| checks.iter().filter(|check| check.status == status).count();
    let (failures, errors) = (of(Status::Exceeded), of(Status::Inconclusive));
    format!(" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\"", checks.len())
}

/// A suite; `place` tells its tests from those of other runs, for readers that look at names of tests only.
fn suite(out: &mut String, name: &str, started: Option<&str>, checks: &[&Check], place: Option<usize>) {
    if checks.is_empty() {
        return;
    }
    let started = started.map(|text| format!(" timestamp=\"{}\"", escape(text))).unwrap_or_default();
    let _ = writeln!(out, "  <testsuite name=\"{}\"{}{started}>", escape(name), counts(checks));
    for check in checks {
        let run = place.map(|place| format!(" (run {place})")).unwrap_or_default();
        let name = escape(&format!("{}{run}", check.id));
        let _ = write!(out, "    <testcase classname=\"{}\" name=\"{name}\"", escape(&check.probe));
        let (tag, kind) = match check.status {
            Status::Pass => ("system-out", ""),
            Status::Exceeded => ("failure", "exceeded"),
            Status::Inconclusive => ("error", "inconclusive"),
        };
        let attributes = match kind {
            "" => String::new(),
            _ => format!(" type=\"{kind}\" message=\"{}\"", escape(&outcome(check))),
        };
        let text = escape(&format!("{}, {}: {}", check.title, check.wanted(), check.text));
        let _ = writeln!(out, ">\n      <{tag}{attributes}>{text}</{tag}>\n    </testcase>");
    }
    out.push_str("  </testsuite>\n");
}

/// A text as XML has it, in attributes as well; what XML 1.0 cannot have is left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
    out
}
