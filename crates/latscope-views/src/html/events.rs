//! Families whose every event was timed: the table of each probe, and the longest events with what took their time.

use super::pictures;
use crate::column::Rows;
use crate::document::Table;
use crate::figure;
use crate::groups::{self, causes};
use crate::markup::{Element, element};
use crate::page::list;
use crate::rows::{EVENT_FAMILIES, family as family_of};
use latscope_core::events::{Group, groups};
use latscope_core::quality::Level;
use latscope_core::report::Report;
use latscope_core::units::format_time;
use latscope_judge::verdict::{HOW_SURE, confidence_of};

/// Number of the longest events shown.
const LONGEST: usize = 20;

/// Returns true if a family has single events only.
pub(super) fn is_of_events(family: &str) -> bool {
    EVENT_FAMILIES.contains(&family)
}

/// The probes of a family.
pub(super) fn events(report: &Report, family: &str) -> Vec<Element> {
    let groups: Vec<Group> =
        groups(report).into_iter().filter(|group| family_of(group.probe) == family).collect();
    let mut parts: Vec<Element> = groups.iter().flat_map(|group| probe(report, group)).collect();
    parts.extend(longest(report, &groups));
    parts
}

fn probe(report: &Report, group: &Group) -> Vec<Element> {
    let doubts = group.singles.iter().chain(&group.merged).filter_map(|row| {
        let reason = row.m.quality.text().or_else(|| row.m.reason().clone())?;
        Some(format!("{}: {reason}", row.label))
    });
    let sure = groups::worst(group.whole())
        .into_iter()
        .filter_map(|row| Some(format!("{}: {}.", row.label, confidence_of(report, row.m)?)));
    let mut parts =
        vec![element("h3").text(group.probe), element("p").text(groups::conditions(report, group))];
    parts.extend(groups::table(group).elements());
    let doubts = list(latscope_core::units::fold_cpus(doubts)).map(|list| list.with("class", "bad"));
    let ok = group.singles.iter().chain(&group.merged).all(|row| row.m.quality.level == Level::Ok);
    let trust = element("p").text("Trust: ").child(element("span").with("class", "good").text("ok"));
    parts.extend(doubts.or(ok.then(|| trust.text(", nothing was seen that distorts these rows."))));
    if let Some(sure) = list(sure) {
        parts.extend([element("p").with("class", "legend").text(HOW_SURE), sure]);
    }
    parts.extend(pictures::pictures(&figure::of_events(report, group)));
    parts
}

/// Returns the time of late events by cause and by pattern, then the longest events, the worst first.
fn longest(report: &Report, groups: &[Group]) -> Vec<Element> {
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
    let rows = Rows(shown);
    let table = Table::new(vec![
        rows.right("longest", |outlier| format_time(outlier.value as f64)),
        rows.right("CPU", |outlier| outlier.cpu.to_string()),
        rows.right("s after the start", |outlier| format!("{:.3}", outlier.at as f64 / 1e9)),
        rows.left("what took the time", |outlier| causes(outlier)),
    ]);
    parts.push(element("h3").text("Longest events"));
    parts.extend(table.elements());
    parts
}
