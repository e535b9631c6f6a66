//! The first screen: how far the figures can be trusted, ten numbers, verdicts, findings.

use super::table::{cell, table};
use super::{details, list, section};
use crate::cells::between;
use crate::grid::Side;
use crate::headline::{Headline, Source, headline};
use crate::markup::{Element, element};
use crate::{groups, head, machine_state, verdicts};
use latscope_core::machine::CheckState;
use latscope_core::quality::Level;
use latscope_core::report::{Certainty, Evidence, Finding, Report, Status};
use latscope_core::units::{counted, format_count, format_time};
use latscope_judge::verdict::report_status;

/// The parts of the first screen that there are.
pub(super) fn summary(report: &Report) -> Vec<Element> {
    [Some(trust(report)), verdict(report), numbers(report), findings(report)].into_iter().flatten().collect()
}

/// What speaks for and against the figures as a whole.
fn trust(report: &Report) -> Element {
    let mut section = element("section").child(element("h2").text("How far to trust it"));
    if let Some(text) = head::unfinished(report) {
        section = section.child(element("p").with("class", "bad").text(format!("INCOMPLETE: {text}.")));
    }
    let state = machine_state::sentence(report);
    let state = state.unwrap_or_else(|| "Whether the machine was quiet is not known.".to_owned());
    section = section.child(element("p").with("class", quietness(report)).text(state));
    section = section.children(counts(report).map(|text| element("p").text(text)));
    let warnings = head::warnings(report).into_iter().map(|text| format!("Warning: {text}"));
    let notes = report.plan.notes.iter().map(|text| format!("Note: {text}"));
    let distorting = distortions(report).map(|texts| details("What distorts latency on this machine", texts));
    section.children(list(warnings.chain(notes))).children(distorting)
}

/// How to mark the sentence on the machine; a load that was asked for is no fault.
fn quietness(report: &Report) -> &'static str {
    match &report.activity {
        Some(activity) if activity.is_quiet() => "good",
        _ if report.plan.load.is_some() => "asked",
        Some(_) => "bad",
        None => "doubt",
    }
}

/// `Of 139 rows 97 are ok, 30 unstable (…), 12 degraded (…).`
fn counts(report: &Report) -> Option<String> {
    let rows: Vec<Level> = section::rows(report).map(|m| m.quality.level).collect();
    let of = |level: Level| rows.iter().filter(|known| **known == level).count();
    let levels = [
        (Level::Ok, "ok"),
        (Level::Unstable, "unstable (the rounds of this run disagree)"),
        (Level::Degraded, "degraded (measured under conditions that distort it)"),
        (Level::Unsupported, "not measured"),
    ];
    let parts: Vec<String> = levels
        .into_iter()
        .filter(|(level, _)| of(*level) > 0)
        .map(|(level, word)| format!("{} {word}", format_count(of(level) as u64)))
        .collect();
    (!rows.is_empty()).then(|| format!("Of {}: {}.", counted(rows.len() as u64, "row"), parts.join(", ")))
}

/// The doctor's checks that are bad.
fn distortions(report: &Report) -> Option<Element> {
    let bad = report.machine.checks.iter().filter(|check| check.state == CheckState::Bad);
    list(bad.map(|check| {
        let affects = match check.affects.is_empty() {
            true => String::new(),
            false => format!(" (affects {})", check.affects.join(", ")),
        };
        head::with_remedy(&format!("{}: {}{affects}", check.id, check.found), check.remedy.as_deref())
    }))
}

fn verdict(report: &Report) -> Option<Element> {
    let status = report_status(report)?;
    let class = |status| match status {
        Status::Pass => "good",
        Status::Inconclusive => "doubt",
        Status::Exceeded => "bad",
    };
    let item = |(check, text): (&latscope_core::report::Check, String)| {
        let sign = verdicts::sign(check.status).0;
        element("li").with("class", class(check.status)).text(format!("{sign} {text}"))
    };
    let lines = element("ul").with("class", "plain").children(verdicts::lines(report).into_iter().map(item));
    let heading = element("h2").text(format!("Verdict: {}", verdicts::word(status)));
    Some(element("section").with("class", class(status)).child(heading).child(lines))
}

/// The ten numbers.
fn numbers(report: &Report) -> Option<Element> {
    let found = headline(report);
    let columns = [
        ("", Side::Left),
        ("median", Side::Right),
        ("next run", Side::Right),
        ("what exactly", Side::Left),
        ("trust", Side::Left),
    ];
    let table = table(&columns, found.iter().map(number));
    let section = element("section").child(element("h2").text("In short")).child(table);
    (!found.is_empty() && !groups::is_of_events(report)).then_some(section)
}

fn number(one: &Headline) -> Element {
    let (what, next) = match &one.source {
        Source::Level(level) => (level_title(level), None),
        Source::Point(m) => (m.title.clone(), m.interval),
    };
    let ns = one.source.ns().map_or("not measured".to_owned(), format_time);
    let next = next.map_or(String::new(), |next| between(next.low, next.high));
    let row = element("tr").child(element("td").child(element("b").text(&one.name)));
    let median = element("td").with("class", "n").child(element("b").text(ns));
    row.child(median)
        .child(cell(next, Side::Right))
        .child(cell(what, Side::Left))
        .child(section::trust(one.source.quality(), None))
}

/// What a level of memory is read from.
fn level_title(level: &latscope_judge::findings::LevelRow) -> String {
    let size = level.capacity().map(|size| format!(", up to {}", latscope_core::units::format_size(size)));
    format!("loads in random order{}", size.unwrap_or_default())
}

fn findings(report: &Report) -> Option<Element> {
    let items: Vec<Element> = report.findings.iter().map(finding).collect();
    let heading = element("h2").text("Findings");
    (!items.is_empty()).then(|| element("section").child(heading).child(element("ul").children(items)))
}

/// A finding, how sure it is, and the figures that it rests on.
fn finding(finding: &Finding) -> Element {
    let item = element("li").text(&finding.text);
    let item = match finding.certainty {
        Certainty::Claim => item,
        Certainty::Doubt => item.text(" ").child(element("b").with("class", "doubt").text("(doubtful)")),
    };
    let rounds = finding.rounds.map(|rounds| format!("{} of {} rounds show it", rounds.agree, rounds.of));
    let evidence = list(finding.evidence.iter().map(evidence).chain(rounds));
    item.children(evidence.map(|evidence| details("what it rests on", evidence)))
}

fn evidence(evidence: &Evidence) -> String {
    let params: Vec<String> = evidence.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let params = if params.is_empty() { String::new() } else { format!(" ({})", params.join(", ")) };
    let timed = evidence.figure == "max" || evidence.figure.starts_with('p');
    let value = match timed {
        true => format_time(evidence.value),
        false => evidence.value.to_string(),
    };
    let next = evidence.interval.filter(|_| timed);
    let next = next.map(|next| format!(", next run {}", between(next.low, next.high))).unwrap_or_default();
    format!(
        "{}{params}: {} {value}{next}, {}",
        evidence.probe,
        evidence.figure,
        counted(evidence.rounds, "round")
    )
}
