//! Lines below the title of a picture, which may be passed on without its report: where and how it was
//! measured, and what to doubt.

use super::is_doubtful;
use crate::legend::as_busy;
use latscope_core::events::{ProbeEventGroup, ProbeEventRow};
use latscope_core::param;
use latscope_core::plan::{BackgroundLoad, ParamValue};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::{count_with_noun, fold_cpus, format_count, format_time};

/// The lines below the title.
pub(super) fn subtitle_lines(report: &Report, group: &ProbeEventGroup) -> Vec<String> {
    let mut notes = vec![format_machine(report), format_run(report, group)];
    notes.extend(doubt_lines(group));
    if report.is_unfinished() {
        notes.push("INCOMPLETE: the run ended early".to_owned());
    }
    notes
}

/// Number of reasons that are named.
const REASONS: usize = 3;

/// Returns the number of rows that are degraded or unstable, with their names; rows with the same reason share
/// a line.
fn doubt_lines(group: &ProbeEventGroup) -> Vec<String> {
    let doubtful: Vec<&ProbeEventRow> = group.singles.iter().filter(|row| is_doubtful(row.m)).collect();
    let reason = |row: &&ProbeEventRow| {
        format!("{}: {}", row.label, row.m.joined_reasons().as_deref().unwrap_or("no reason is given"))
    };
    let named = fold_cpus(doubtful.iter().map(reason));
    let more = named.len().saturating_sub(REASONS);
    let mut lines: Vec<String> = named.into_iter().take(REASONS).collect();
    lines.extend((more > 0).then(|| format!("and {} more", count_with_noun(more as u64, "reason"))));
    if let Some(first) = lines.first_mut() {
        let (doubtful, all) = (doubtful.len(), count_with_noun(group.singles.len() as u64, "row"));
        *first = format!("DOUBTFUL: {doubtful} of {all} degraded or unstable: {first}");
    }
    lines
}

/// Returns the suffix for the name of a row that is degraded or unstable; otherwise empty.
pub(super) fn doubt_suffix(row: &ProbeEventRow) -> &'static str {
    if is_doubtful(row.m) { " (doubtful)" } else { "" }
}

/// Returns the lines below the title of a picture of several points. `interval` names the part that shows where
/// the next run is expected; it is empty if no part does.
pub(super) fn of_points(report: &Report, points: &[&Measurement], interval: &str) -> Vec<String> {
    let samples: u64 = points.iter().map(|m| m.summary.count).sum();
    // Some points are measured in fewer rounds than the run has.
    let rounds = points.iter().map(|m| m.rounds.len() as u64).max().filter(|rounds| *rounds > 0);
    let rounds = rounds.unwrap_or(u64::from(report.plan.rounds));
    let doubtful = points.iter().filter(|m| is_doubtful(m)).count();
    let banded = !interval.is_empty() && points.iter().any(|m| m.next_run().is_some());
    let tool = format!("{} {}", report.tool.name, report.tool.version);
    let mut parts = vec![count_with_noun(points.len() as u64, "point"), count_with_noun(samples, "sample")];
    parts.extend((rounds > 1).then(|| count_with_noun(rounds, "round")));
    parts.extend([report.started.clone(), tool].into_iter().filter(|part| !part.trim().is_empty()));
    let mut notes = vec![format_machine(report), parts.join(" · ")];
    if banded {
        notes.push(format!("{interval}: where the figure of the next run{} is expected", as_busy(report)));
    }
    if doubtful > 0 {
        notes.push(format!(
            "DOUBTFUL: {} of {} degraded or unstable (hollow)",
            doubtful,
            count_with_noun(points.len() as u64, "point")
        ));
    }
    if report.is_unfinished() {
        notes.push("INCOMPLETE: the run ended early".to_owned());
    }
    notes
}

/// Returns the notes of [`of_points`] for the cells of a map with these sides.
pub(super) fn of_map(report: &Report, points: &[&Measurement], sides: &str) -> Vec<String> {
    let mark = format!("(marked with ?, of many {sides} with a white dot)");
    of_points(report, points, "").into_iter().map(|note| note.replace("(hollow)", &mark)).collect()
}

fn format_machine(report: &Report) -> String {
    let machine = &report.machine;
    let mut parts = vec![machine.name.clone(), machine.cpu_model.clone()];
    if !machine.kernel.is_empty() {
        parts.push(format!("Linux {} {}", machine.kernel, machine.preemption()).trim().to_owned());
    }
    match &machine.hypervisor {
        Some(name) if is_emulator(name) => parts.push(format!("EMULATED, {name}: no figures of hardware")),
        Some(name) => parts.push(format!("virtual ({name})")),
        None => {}
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// Returns true if a hypervisor emulates the processor in software.
fn is_emulator(hypervisor: &str) -> bool {
    hypervisor.contains("TCG") || hypervisor.contains("emulated")
}

fn format_run(report: &Report, group: &ProbeEventGroup) -> String {
    let first = group.singles.first().map(|row| &row.m.params);
    let shown = |name: &str| first.and_then(|params| params.get(name));
    let mut parts = Vec::new();
    if let Some(interval) = shown(param::INTERVAL).and_then(ParamValue::as_number) {
        parts.push(format!("every {}", format_time(interval as f64)));
    }
    if let Some(policy) = shown(param::POLICY) {
        let priority = shown(param::PRIORITY).map(|priority| format!(" {priority}")).unwrap_or_default();
        parts.push(format!("SCHED_{}{priority}", policy.to_string().to_uppercase()));
    }
    let events: u64 = group.singles.iter().map(|row| row.m.summary.count).sum();
    parts.push(count_with_noun(events, "event"));
    let missed: u64 = group.singles.iter().map(|row| row.m.summary.missed).sum();
    if missed > 0 {
        parts.push(format!("{} missed", format_count(missed)));
    }
    match &report.plan.load {
        Some(BackgroundLoad::Command(command)) => parts.push(format!("beside `{command}`")),
        Some(BackgroundLoad::Hackbench) => parts.push("beside hackbench".to_owned()),
        load => parts.extend(
            load.as_ref()
                .and_then(BackgroundLoad::name_and_description)
                .map(|(_, words)| format!("beside {words}")),
        ),
    }
    parts.push(report.started.clone());
    parts.push(format!("{} {}", report.tool.name, report.tool.version).trim().to_owned());
    parts.extend(report.imported.as_ref().map(|imported| format!("measured by {}", imported.name())));
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;
    use latscope_core::quality::{QualityLevel, Reason};

    fn lines(report: &Report) -> Vec<String> {
        subtitle_lines(report, &event_groups(report)[0])
    }

    #[test]
    fn a_picture_says_where_and_how_it_was_measured() {
        assert_eq!(
            lines(&fixture::wake()),
            [
                "bench · Intel(R) Xeon(R) Processor @ 2.60GHz · Linux 6.18.0 PREEMPT_DYNAMIC · virtual (KVM)",
                "every 1.00 ms · SCHED_FIFO 95 · 60,000 events · 3 missed · 2026-11-21T10:00:00Z · latscope 0.1.0",
            ]
        );
    }

    #[test]
    fn doubts_are_in_the_picture() {
        let mut report = fixture::wake();
        report.machine.hypervisor = Some("TCG (emulated)".to_owned());
        report.finished = None;
        report.measurements[1].lower(Reason::new(
            QualityLevel::Degraded,
            "not-as-asked",
            "ran as SCHED_OTHER",
            "",
        ));
        let lines = lines(&report);
        assert!(lines[0].ends_with("EMULATED, TCG (emulated): no figures of hardware"), "{lines:?}");
        let doubt = "DOUBTFUL: 1 of 2 rows degraded or unstable: CPU 1: ran as SCHED_OTHER";
        assert_eq!(lines[2..], [doubt, "INCOMPLETE: the run ended early"]);
    }
}
