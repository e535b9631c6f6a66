//! First screen of a survey: the machine, how far to trust it, ten numbers, verdicts, findings, and the place
//! of the rest.

use super::head::short_head;
use super::rows::headline_rows;
use super::style::{BOLD, DIM, PLAIN, WARNING};
use super::styled::{Text, wrap};
use super::verdicts::verdicts_document;
use super::{DisplayOptions, machine_state, table};
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::report::{Certainty, Evidence, Finding, Report};
use latscope_core::units::{fold_cpus, format_count, format_time, format_value};

/// Number of rows up to which a table is a first screen itself.
const FEW: usize = 20;

/// Maximum number of findings shown, and of figures named for each; of further ones only the number is shown.
const FINDINGS: usize = 5;
const EVIDENCE: usize = 2;

/// Returns true if a report has more rows than a screen, and at least one of the ten numbers.
pub fn is_wanted(report: &Report, catalogue: &ProbeCatalogue) -> bool {
    super::rows::survey_rows(report, &[], catalogue).len() > FEW
        && !headline_rows(report, catalogue).0.is_empty()
}

/// Returns the first screen; `standings` is the machine's place among published ones and `rest` the place of the rest,
/// a sentence each.
pub fn overview(report: &Report, standings: &[String], rest: &[String], options: &DisplayOptions) -> String {
    let mut out = short_head(report, options);
    let say = |out: &mut String, text: &str, style| {
        *out += &wrap(&Text::default(), text, style, options);
    };
    let state = machine_state::sentence(report);
    say(&mut out, &state.unwrap_or_else(|| "Whether the machine was quiet is not known.".to_owned()), PLAIN);
    machine_state::format_quality_counts(report).iter().for_each(|text| say(&mut out, text, PLAIN));
    out.push('\n');
    let (rows, missing) = headline_rows(report, options.catalogue);
    out += &table::format_short(report, &rows, options);
    for (title, why) in missing {
        let first = Text::in_style(WARNING, "not measured  ");
        out += &wrap(&first, &format!("{title}: {why}"), PLAIN, options);
    }
    standings.iter().for_each(|text| say(&mut out, text, PLAIN));
    verdicts_document(report).write_text(&mut out, options);
    out += &format_findings(report, options);
    out.push('\n');
    for note in fold_cpus(report.plan.notes.iter().cloned()) {
        out += &wrap(&Text::in_style(DIM, "note  "), &note, DIM, options);
    }
    rest.iter().for_each(|text| say(&mut out, text, DIM));
    out
}

/// Returns the first claims, a sentence each, with their evidence, and the number of the others.
fn format_findings(report: &Report, options: &DisplayOptions) -> String {
    let (claims, doubts): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|finding| finding.certainty == Certainty::Claim);
    let (shown, more) = claims.split_at(claims.len().min(FINDINGS));
    let mut out = String::new();
    for finding in shown {
        out += &wrap(&Text::plain("  • "), first_sentence(&finding.text), PLAIN, options);
        if let Some(text) = rests_on(report, finding) {
            out += &wrap(&Text::plain("    "), &text, DIM, options);
        }
    }
    let ids = |findings: &[&Finding]| {
        let mut ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
        ids.dedup();
        ids.join(", ")
    };
    let more = (!more.is_empty()).then(|| format!("more: {}", ids(more)));
    let reason =
        |one: &&Finding| one.doubt.as_ref().map_or(one.id.clone(), |why| format!("{} ({why})", one.id));
    let mut reasons: Vec<String> = doubts.iter().map(reason).collect();
    reasons.dedup();
    let doubts = (!reasons.is_empty()).then(|| format!("doubtful: {}", reasons.join(", ")));
    let rest: Vec<String> = more.into_iter().chain(doubts).collect();
    if !rest.is_empty() {
        let text = format!("In full with --table; {}", rest.join("; "));
        out += &wrap(&Text::plain("  "), &text, DIM, options);
    }
    let heading = wrap(&Text::default(), "Findings", BOLD, options);
    if out.is_empty() { out } else { format!("\n{heading}{out}") }
}

/// Returns a text up to the first point that another sentence follows.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").find(|(at, _)| text[at + 2..].starts_with(char::is_uppercase));
    ends.map_or(text, |(at, _)| &text[..=at])
}

/// Returns the evidence of a finding: `Rests on: fsync 4 KiB, ext4 73.1 µs; write a file of 4 KiB, ext4 3.46
/// µs; and 3 more figures`.
fn rests_on(report: &Report, finding: &Finding) -> Option<String> {
    let named: Vec<String> =
        finding.evidence.iter().take(EVIDENCE).map(|one| evidence(report, one)).collect();
    let more = finding.evidence.len() - named.len();
    let more = (more > 0).then(|| match more {
        1 => "and another figure".to_owned(),
        _ => format!("and {} more figures", format_count(more as u64)),
    });
    let parts: Vec<String> = named.into_iter().chain(more).collect();
    (!parts.is_empty()).then(|| format!("Rests on: {}", parts.join("; ")))
}

fn evidence(report: &Report, evidence: &Evidence) -> String {
    let of =
        |m: &&latscope_core::report::Measurement| m.probe == evidence.probe && m.params == evidence.params;
    let m = report.measurements.iter().find(of);
    let title = m.map(|m| m.title.as_str()).filter(|title| !title.is_empty()).unwrap_or(&evidence.probe);
    let unit = m.and_then(|m| m.values.get(&evidence.figure)).map(|value| value.unit.as_str());
    let figure = if evidence.figure == "p50" { String::new() } else { format!("{} ", evidence.figure) };
    let timed = unit.is_none() && (evidence.figure == "max" || evidence.figure.starts_with('p'));
    let value =
        if timed { format_time(evidence.value) } else { format_value(evidence.value, unit.unwrap_or("")) };
    format!("{title} {figure}{value}")
}
