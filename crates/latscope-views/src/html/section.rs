//! Section of a family: its rows, each with the reasons for doubt, every point, what was timed, and the missing
//! points. Where every event was timed: the table of each probe, and the longest events with what took their time.

use super::strip;
use crate::cells::{cycles, format_range};
use crate::column::ColumnBuilder;
use crate::document::DocumentTable;
use crate::figure::{NamedDrawing, drawn};
use crate::head::with_remedy;
use crate::machine_state::table_measurements as rows;
use crate::markup::{Element, element};
use crate::page::{details_element, list};
use crate::rows::family as family_of;
use crate::style::{ALARM, BOLD, GOOD, PLAIN, WARNING};
use crate::styled::Text;
use crate::{DisplayOptions, figure, groups, text, unmeasured};
use anstyle::Style;
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::events::{self, ProbeEventGroup};
use latscope_core::quality::{Quality, QualityLevel};
use latscope_core::report::{Measurement, Report, Sampling, Semantics, Summary};
use latscope_core::rounds::round_figures;
use latscope_core::units::{count_with_noun, fold_cpus, format_count, format_rate, format_time};
use latscope_judge::verdict::{HOW_SURE, confidence_of};

/// Columns of the text with all points.
const WIDTH: usize = 140;

/// A family, its heading first.
pub(super) fn section(report: &Report, family: &str, catalogue: &ProbeCatalogue) -> Element {
    let section = element("section").with_attr("id", anchor(family)).child(element("h2").with_text(family));
    let section = section.children(picture_elements(&figure::of_family(report, family, catalogue)));
    let section = match catalogue.has_single_events(family) {
        true => section.children(event_elements(report, family)),
        false => section.children(point_elements(report, family)),
    };
    section.children(missing(report, family, catalogue)).children(what_was_timed(report, family, catalogue))
}

/// A name that a link can have, of any text.
pub(super) fn anchor(family: &str) -> String {
    let safe = family.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    format!("family-{}", safe.collect::<String>())
}

/// Returns the legend of the columns; `None` if no row has several rounds.
pub(super) fn column_legend(report: &Report, catalogue: &ProbeCatalogue) -> Option<Element> {
    let in_rounds = |m: &Measurement| m.rounds.len() > 1 && !catalogue.has_single_events(family_of(&m.probe));
    let legend = element("p").with_attr("class", "legend").with_text(strip::legend_of_strips(report));
    rows(report).any(in_rounds).then_some(legend)
}

/// Returns the number of doubtful rows of a family: ` 17 of 30 rows doubtful`; `None` if no row is doubtful.
pub(super) fn doubtful(report: &Report, family: &str) -> Option<String> {
    let levels: Vec<bool> = rows(report)
        .filter(|m| family_of(&m.probe) == family && m.is_timed())
        .map(|m| quality_style(&m.quality).is_some())
        .collect();
    let doubtful = levels.iter().filter(|doubtful| **doubtful).count();
    let of = count_with_noun(levels.len() as u64, "row");
    (doubtful > 0).then(|| format!(" {doubtful} of {of} doubtful"))
}

/// The rows of a family, and all its points as text.
fn point_elements(report: &Report, family: &str) -> Vec<Element> {
    let ours = |m: &&Measurement| family_of(&m.probe) == family && m.is_timed();
    let mut shown: Vec<&Measurement> = rows(report).filter(ours).collect();
    shown.sort_by(|a, b| a.typical().unwrap_or(0.0).total_cmp(&b.typical().unwrap_or(0.0)));
    let count = report.measurements.iter().filter(ours).count();
    let mut parts = Vec::new();
    if !shown.is_empty() {
        parts.push(element("div").with_attr("class", "rows").children(points_table(&shown).elements()));
    }
    if count > shown.len() {
        let options = DisplayOptions { width: WIDTH, ..DisplayOptions::default() };
        let text = text::every_point(report, family, &options);
        let content = element("pre").with_text(text.trim_start_matches('\n'));
        parts.push(details_element(&format!("All {}", count_with_noun(count as u64, "point")), content));
    }
    parts
}

/// Returns the table of some rows. A narrow screen shows only the first four columns.
fn points_table(shown: &[&Measurement]) -> DocumentTable {
    let rows = ColumnBuilder(shown);
    DocumentTable::new(vec![
        rows.left_aligned("operation", |m| label(m)),
        rows.right("median", |m| figure_with_sign(m.median_in_words().unwrap_or_default(), &m.quality)),
        rows.optional_column("next run", |m| m.next_run().map(|next| format_range(next.low, next.high))),
        rows.left_aligned("trust", |m| trust(&m.quality, row_restriction(m).as_deref())),
        rows.drawing("rounds", |m| strip::draw_rounds(m)),
        rows.right("tail", |m| tail(m)),
        rows.right("samples", |m| format_count(m.summary.count)),
        rows.optional_column("cycles", |m| m.summary.cycles.map(cycles)),
    ])
}

fn label(m: &Measurement) -> String {
    let mut label = if m.title.is_empty() { m.probe.clone() } else { m.title.clone() };
    if m.times != Semantics::Operation {
        label += &format!(" ({})", m.times.display_name());
    }
    if let Some(rate) = m.rate_touched() {
        label += &format!(", {}", format_rate(rate));
    }
    label
}

/// Returns a restriction of a row beside its quality.
fn row_restriction(m: &Measurement) -> Option<String> {
    match m.incomplete {
        true => Some("the run ended before it was measured in full".to_owned()),
        false if m.is_imported() => None,
        false => few_rounds(m.next_run().is_some(), round_figures(&m.rounds).len()),
    }
}

/// Returns the highest quantile that the samples of single events can show, or the longest event if they show
/// none; empty for batches, whose quantiles are those of means.
fn tail(m: &Measurement) -> String {
    let Summary { p90, p95, p99, p99_9, max, .. } = m.summary;
    if m.sampling != Sampling::Event {
        return String::new();
    }
    let known = [("p99.9", p99_9), ("p99", p99), ("p95", p95), ("p90", p90), ("max", max)];
    let known = known.into_iter().find_map(|(name, ns)| Some(format!("{name} {}", format_time(ns?))));
    known.unwrap_or_default()
}

/// Meaning of the sign beside a figure.
pub(super) const SIGN: &str = "! beside a figure: unstable or degraded; the reason stands under trust.";

/// Returns the style of a figure that cannot be fully trusted.
pub(super) fn quality_style(quality: &Quality) -> Option<Style> {
    match quality.level {
        QualityLevel::Ok | QualityLevel::Unsupported => None,
        QualityLevel::Unstable => Some(WARNING),
        QualityLevel::Degraded => Some(ALARM),
    }
}

/// Returns a figure, and a sign beside it if the figure cannot be fully trusted.
pub(super) fn figure_with_sign(text: String, quality: &Quality) -> Text {
    let text = Text::in_style(BOLD, text);
    quality_style(quality).into_iter().fold(text, |text, style| text.with_piece(style, " !"))
}

/// Returns the number of rounds of a figure without a `next` run, if there are only one or two: nothing speaks
/// against the figure, but too few rounds confirm it.
pub(super) fn few_rounds(next: bool, rounds: usize) -> Option<String> {
    // Of a single one no list is kept.
    (!next && rounds < 3).then(|| count_with_noun(rounds.max(1) as u64, "round"))
}

/// Returns how far a figure can be trusted, and the reason.
pub(super) fn trust(quality: &Quality, also: Option<&str>) -> Text {
    let (style, word) = match quality.level {
        QualityLevel::Ok => (GOOD, "ok"),
        QualityLevel::Unstable => (WARNING, "unstable"),
        QualityLevel::Degraded => (ALARM, "degraded"),
        QualityLevel::Unsupported => (ALARM, "not measured"),
    };
    let why = quality.text().filter(|_| quality.level != QualityLevel::Ok);
    let why = why.into_iter().chain(also.map(str::to_owned)).collect::<Vec<String>>().join("; ");
    let text = Text::in_style(style, word);
    match quality.level {
        _ if why.is_empty() => text,
        QualityLevel::Ok => text.with_piece(PLAIN, format!(", {why}")),
        _ => text.with_piece(PLAIN, format!(": {}", with_remedy(&why, quality.remedy().as_deref()))),
    }
}

/// Points without a number, and doubtful ones without a row.
fn missing(report: &Report, family: &str, catalogue: &ProbeCatalogue) -> Vec<Element> {
    let in_rows: Vec<&Measurement> = rows(report).collect();
    let has_row = |m: &Measurement| in_rows.iter().any(|row| std::ptr::eq(*row, m));
    let aside = |m: &Measurement| !catalogue.has_single_events(family) && !has_row(m);
    let [missing, doubtful] = unmeasured::of_family(report, family, aside);
    unmeasured::list_groups([(unmeasured::MISSING, missing), (unmeasured::ASIDE, doubtful)]).elements()
}

/// Returns the list of what each probe times between its stamps.
fn what_was_timed(report: &Report, family: &str, catalogue: &ProbeCatalogue) -> Option<Element> {
    let mut probes: Vec<&Measurement> = Vec::new();
    for m in report.measurements.iter().filter(|m| family_of(&m.probe) == family) {
        if !probes.iter().any(|known| known.probe == m.probe) {
            probes.push(m);
        }
    }
    let entries: Vec<Element> = probes
        .into_iter()
        .filter_map(|m| {
            Some([element("dt").with_text(&m.probe), element("dd").with_text(catalogue.timed(m)?)])
        })
        .flatten()
        .collect();
    (!entries.is_empty()).then(|| details_element("What was timed", element("dl").children(entries)))
}

/// Returns the pictures as parts of the page.
fn picture_elements(all: &[NamedDrawing]) -> Vec<Element> {
    all.iter().map(|picture| element("figure").child(drawn(&picture.drawing))).collect()
}

/// Number of the longest events shown.
const LONGEST: usize = 20;

/// The probes of a family.
fn event_elements(report: &Report, family: &str) -> Vec<Element> {
    let groups: Vec<ProbeEventGroup> =
        events::event_groups(report).into_iter().filter(|group| family_of(group.probe) == family).collect();
    let mut parts: Vec<Element> = groups.iter().flat_map(|group| probe(report, group)).collect();
    parts.extend(longest(report, &groups));
    parts
}

fn probe(report: &Report, group: &ProbeEventGroup) -> Vec<Element> {
    let doubts = group.singles.iter().chain(&group.merged).filter_map(|row| {
        let reason = row.m.quality.text().or_else(|| row.m.joined_reasons().clone())?;
        Some(format!("{}: {reason}", row.label))
    });
    let sure = groups::worst(group.whole_probe_rows())
        .into_iter()
        .filter_map(|row| Some(format!("{}: {}.", row.label, confidence_of(report, row.m)?)));
    let mut parts =
        vec![element("h3").with_text(group.probe), element("p").with_text(groups::conditions(report, group))];
    parts.extend(groups::group_table(group).elements());
    let doubts = list(fold_cpus(doubts)).map(|list| list.with_attr("class", "bad"));
    let ok = group.singles.iter().chain(&group.merged).all(|row| row.m.quality.level == QualityLevel::Ok);
    let trust =
        element("p").with_text("Trust: ").child(element("span").with_attr("class", "good").with_text("ok"));
    parts.extend(doubts.or(ok.then(|| trust.with_text(", nothing was seen that distorts these rows."))));
    if let Some(sure) = list(sure) {
        parts.extend([element("p").with_attr("class", "legend").with_text(HOW_SURE), sure]);
    }
    parts.extend(picture_elements(&figure::of_events(report, group)));
    parts
}

/// Returns the time of late events by cause and by pattern, then the longest events, the worst first.
fn longest(report: &Report, groups: &[ProbeEventGroup]) -> Vec<Element> {
    let outliers = groups::of_groups(groups);
    if outliers.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    if let Some(causes) = groups::causes_table(groups) {
        parts.extend(causes.elements());
    }
    parts.extend(list(groups::pattern_sentences(report, groups)));
    let shown = &outliers[..outliers.len().min(LONGEST)];
    let rows = ColumnBuilder(shown);
    let table = DocumentTable::new(vec![
        rows.right("longest", |outlier| format_time(outlier.value as f64)),
        rows.right("CPU", |outlier| outlier.cpu.to_string()),
        rows.right("s after the start", |outlier| format!("{:.3}", outlier.at as f64 / 1e9)),
        rows.left_aligned("what took the time", |outlier| groups::causes(outlier)),
    ]);
    parts.push(element("h3").with_text("Longest events"));
    parts.extend(table.elements());
    parts
}
