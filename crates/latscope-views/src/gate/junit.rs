//! A judged budget as a JUnit file, which CI systems show as tests.
//!
//! A limit that is exceeded is a failure, one that is inconclusive an error: neither is shown as passed. Readers differ
//! in whether they show the attribute `message` or what is in the element: both have the reason.

use super::{endings, outcome};
use latscope_core::report::VerdictStatus;
use latscope_judge::gate::{GateCheck, GateResult};
use std::fmt::Write;

/// Returns a suite for each run, and a suite for the checks against the baseline, with a test for each check.
/// The name of a test is the id of its check: it is the same in every pipeline.
pub fn junit(gate: &GateResult) -> String {
    let all: Vec<&GateCheck> = gate.checks.iter().collect();
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _ = writeln!(out, "<testsuites name=\"latscope gate\"{}>", format_count_attributes(&all));
    let files = endings(gate);
    for (at, run) in gate.runs.iter().enumerate() {
        let file = files.get(at).filter(|_| gate.runs.len() > 1).map(String::as_str);
        suite(&mut out, &run.file, Some(&run.started), &of_run(&all, Some(at)), file, &gate.warnings);
    }
    let (of_files, relative): (Vec<&GateCheck>, Vec<&GateCheck>) =
        of_run(&all, None).into_iter().partition(|check| check.is_of_file());
    suite(&mut out, "relative to the baseline", None, &relative, None, &gate.warnings);
    suite(&mut out, "files", None, &of_files, None, &[]);
    out + "</testsuites>\n"
}

fn of_run<'a>(checks: &[&'a GateCheck], run: Option<usize>) -> Vec<&'a GateCheck> {
    checks.iter().copied().filter(|check| check.run == run).collect()
}

fn format_count_attributes(checks: &[&GateCheck]) -> String {
    let of = |status| checks.iter().filter(|check| check.status == status).count();
    let (failures, errors) = (of(VerdictStatus::Exceeded), of(VerdictStatus::Inconclusive));
    format!(" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\"", checks.len())
}

/// Writes a suite; `file` distinguishes its tests from those of other runs, for readers that look at names of
/// tests only.
fn suite(
    out: &mut String,
    name: &str,
    started: Option<&str>,
    checks: &[&GateCheck],
    file: Option<&str>,
    warnings: &[String],
) {
    if checks.is_empty() {
        return;
    }
    let started = started.filter(|text| !text.is_empty());
    let started = started.map(|text| format!(" timestamp=\"{}\"", escape(text))).unwrap_or_default();
    let _ =
        writeln!(out, "  <testsuite name=\"{}\"{}{started}>", escape(name), format_count_attributes(checks));
    if !warnings.is_empty() {
        out.push_str("    <properties>\n");
        for text in warnings {
            let _ = writeln!(out, "      <property name=\"warning\" value=\"{}\"/>", escape(text));
        }
        out.push_str("    </properties>\n");
    }
    for check in checks {
        let run = file.map(|file| format!(" ({file})")).unwrap_or_default();
        let name = escape(&format!("{}{run}", check.id));
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{name}\"",
            escape(match () {
                () if check.is_of_file() => "file",
                () if check.is_of_point() => &check.probe,
                () => "baseline",
            })
        );
        let (tag, kind) = match check.status {
            VerdictStatus::Pass => ("system-out", ""),
            VerdictStatus::Exceeded => ("failure", "exceeded"),
            VerdictStatus::Inconclusive => ("error", "inconclusive"),
        };
        let attributes = match kind {
            "" => String::new(),
            _ => format!(" type=\"{kind}\" message=\"{}\"", escape(&outcome(check))),
        };
        let text = escape(&check.sentence());
        let _ = writeln!(out, ">\n      <{tag}{attributes}>{text}</{tag}>\n    </testcase>");
    }
    out.push_str("  </testsuite>\n");
}

/// Returns a text as XML has it, also in attributes; characters that XML 1.0 does not allow are left out.
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
