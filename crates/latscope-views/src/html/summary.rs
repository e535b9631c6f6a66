//! The first screen: how far the figures can be trusted, ten numbers, verdicts, findings.

use super::section;
use crate::cells::format_range;
use crate::column::ColumnBuilder;
use crate::document::{DocumentTable, class};
use crate::headline::{HeadlineFigure, HeadlineSource, headline};
use crate::legend::{as_busy, next_run};
use crate::markup::{Element, element};
use crate::page::{details_element, list};
use crate::style::BOLD;
use crate::styled::Text;
use crate::{groups, head, machine_state, verdicts};
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::machine::CheckState;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Evidence, Finding, Report};
use latscope_core::units::{count_with_noun, format_size, format_time};
use latscope_judge::findings::LevelRow;
use latscope_judge::verdict::report_status;

/// Returns the parts of the first screen that have content.
pub(super) fn summary(report: &Report, catalogue: &ProbeCatalogue) -> Vec<Element> {
    [
        Some(trust(report)),
        verdict_section(report),
        headline_section(report, catalogue),
        findings_section(report),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the section on how far the figures as a whole can be trusted.
fn trust(report: &Report) -> Element {
    let mut section = element("section").child(element("h2").with_text("How far to trust it"));
    if let Some(text) = head::measured_part(report) {
        section =
            section.child(element("p").with_attr("class", "bad").with_text(format!("INCOMPLETE: {text}.")));
    }
    let state = machine_state::sentence(report);
    let state = state.unwrap_or_else(|| "Whether the machine was quiet is not known.".to_owned());
    section = section.child(element("p").with_attr("class", quietness(report)).with_text(state));
    section = section
        .children(machine_state::to_use(report).map(|text| element("p").child(element("b").with_text(text))));
    section = section
        .children(machine_state::format_quality_counts(report).map(|text| element("p").with_text(text)));
    let warnings = head::warning_lines(report).into_iter().map(|text| format!("Warning: {text}"));
    let notes = report.plan.notes.iter().map(|text| format!("Note: {text}"));
    let distorting =
        bad_check_list(report).map(|texts| details_element("What distorts latency on this machine", texts));
    section.children(list(warnings.chain(notes))).children(distorting)
}

/// Returns the class of the sentence on the machine; a load that was asked for is no fault.
fn quietness(report: &Report) -> &'static str {
    match &report.activity {
        Some(account) if account.throttled().is_some() || account.is_slowed_by_host() => "bad",
        Some(account) if account.known_others().is_none() => "doubt",
        Some(account) if account.is_quiet() && report.plan.load.is_some() => "asked",
        Some(account) if account.is_surely_quiet() => "good",
        Some(account) if account.is_quiet() => "doubt",
        Some(_) => "bad",
        None => "doubt",
    }
}

/// The doctor's checks that are bad.
fn bad_check_list(report: &Report) -> Option<Element> {
    let bad = report.machine.checks.iter().filter(|check| check.state == CheckState::Bad);
    list(bad.map(|check| {
        let affects = match check.affects.is_empty() {
            true => String::new(),
            false => format!(" (affects {})", check.affects.join(", ")),
        };
        head::with_remedy(&format!("{}: {}{affects}", check.id, check.found), check.remedy.as_deref())
    }))
}

fn verdict_section(report: &Report) -> Option<Element> {
    let status = report_status(report)?;
    let class = |status| class(verdicts::status_mark(status).style);
    let item = |(check, text): (&latscope_core::report::CriterionCheck, String)| {
        let sign = verdicts::status_mark(check.status).word;
        element("li").with_attr("class", class(check.status)).with_text(format!("{sign}{text}"))
    };
    let lines = element("ul")
        .with_attr("class", "plain")
        .children(verdicts::criterion_lines(report).into_iter().map(item));
    let heading = element("h2").with_text(format!("Verdict: {}", verdicts::status_word(status)));
    Some(element("section").with_attr("class", class(status)).child(heading).child(lines))
}

/// Returns the section with the ten numbers.
fn headline_section(report: &Report, catalogue: &ProbeCatalogue) -> Option<Element> {
    let found = headline(report, catalogue);
    let rows = ColumnBuilder(&found);
    let empty = found.iter().any(|one| one.source.next_run().is_none());
    let value = |one: &HeadlineFigure| one.source.figure_ns().map_or("not measured".to_owned(), format_time);
    let few =
        |one: &HeadlineFigure| section::few_rounds(one.source.next_run().is_some(), one.source.round_count());
    let columns = vec![
        rows.left_aligned("", |one| Text::in_style(BOLD, &one.name)),
        rows.right("median", |one| section::figure_with_sign(value(one), one.source.quality())),
        rows.optional_column("next run", |one| {
            one.source.next_run().map(|(low, high)| format_range(low, high))
        })
        .meaning(next_run(report, "", empty)),
        rows.left_aligned("trust", |one| section::trust(one.source.quality(), few(one).as_deref())),
        rows.left_aligned("what exactly", source_title),
    ];
    let is_marked = found.iter().any(|one| section::quality_style(one.source.quality()).is_some());
    let notes = is_marked.then(|| section::SIGN.to_owned()).into_iter().collect();
    let table = DocumentTable { notes, ..DocumentTable::new(columns) };
    let section = element("section").with_attr("class", "rows").child(element("h2").with_text("In short"));
    let section = section.children(table.elements());
    (!found.is_empty() && !groups::is_of_events(report, catalogue)).then_some(section)
}

fn source_title(one: &HeadlineFigure) -> String {
    match &one.source {
        HeadlineSource::Level(level) => level_title(level),
        HeadlineSource::Point(m) => m.title.clone(),
    }
}

/// Returns the description of the loads that a level of memory is read from.
fn level_title(level: &LevelRow) -> String {
    let (from, to) = level.sizes;
    let sizes =
        if from == to { format_size(from) } else { format!("{} to {}", format_size(from), format_size(to)) };
    format!("loads in random order from {sizes}, pages of {}", level.pages)
}

fn findings_section(report: &Report) -> Option<Element> {
    let items: Vec<Element> = report.findings.iter().map(|one| finding(report, one)).collect();
    let heading = element("h2").with_text("Findings");
    (!items.is_empty()).then(|| element("section").child(heading).child(element("ul").children(items)))
}

/// A finding, how sure it is, and the figures that it rests on.
fn finding(report: &Report, finding: &Finding) -> Element {
    let item = element("li").with_text(&finding.text);
    let item = match finding.doubt_in_words() {
        None => item,
        Some(doubt) => item.with_text(" ").child(element("b").with_attr("class", "doubt").with_text(doubt)),
    };
    let rounds = finding.rounds.map(|rounds| format!("{} of {} rounds show it", rounds.agree, rounds.of));
    let evidence = list(finding.evidence.iter().map(|one| evidence(report, one)).chain(rounds));
    item.children(evidence.map(|evidence| details_element("what it rests on", evidence)))
}

fn evidence(report: &Report, evidence: &Evidence) -> String {
    let params: Vec<String> = evidence.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let params = if params.is_empty() { String::new() } else { format!(" ({})", params.join(", ")) };
    let timed = evidence.figure == "max" || evidence.figure.starts_with('p');
    let value = match timed {
        true => format_time(evidence.value),
        false => evidence.value.to_string(),
    };
    let own = report.of_probe(&evidence.probe).find(|m| m.params == evidence.params);
    let next =
        evidence.interval.filter(|_| timed && own.is_none_or(|m| m.quality.level < QualityLevel::Degraded));
    let next = next
        .map(|next| format!(", next run{} {}", as_busy(report), format_range(next.low, next.high)))
        .unwrap_or_default();
    let sign = if own.is_some_and(|m| section::quality_style(&m.quality).is_some()) { " !" } else { "" };
    format!(
        "{}{params}: {} {value}{sign}{next}, {}",
        evidence.probe,
        evidence.figure,
        count_with_noun(evidence.rounds, "round")
    )
}
