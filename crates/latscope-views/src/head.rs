//! Text above a table: the machine, the clock, and the facts that a reader needs before trusting a number.

use super::DisplayOptions;
use super::style::{ALARM, BOLD, DIM, WARNING};
use super::styled::{Text, wrap, wrap_text};
use latscope_core::merged::is_merged;
use latscope_core::plan::BackgroundLoad;
use latscope_core::report::{Account, Interrupted, Merged, ProgressAmount, Report, Sampling};
use latscope_core::units::{
    count_with_noun, fold_cpus, format_amount, format_count, format_share, format_size, format_time,
    three_digits,
};
use std::time::Duration;

/// The header of a terminal view.
pub(super) fn head(report: &Report, options: &DisplayOptions) -> String {
    let (what, processor) = report_title(report);
    let mut out = format_titled(report, format!("{what}  {processor}"), fact_lines(report), options);
    for note in fold_cpus(report.plan.notes.iter().cloned()) {
        out += &wrap(&Text::in_style(DIM, "note  "), &note, DIM, options);
    }
    out
}

/// The header of the first screen: the machine and the run in a line each.
pub(super) fn short_head(report: &Report, options: &DisplayOptions) -> String {
    let (what, processor) = report_title(report);
    let machine = &report.machine;
    let hypervisor = machine.hypervisor.as_ref().map(|name| format!(", virtual ({name})"));
    let system = format!(", Linux {}{}", machine.kernel, hypervisor.unwrap_or_default());
    format_titled(report, format!("{what}  {processor}{system}"), vec![format_run(report)], options)
}

fn format_titled(report: &Report, title: String, lines: Vec<String>, options: &DisplayOptions) -> String {
    let mut out = wrap_text(&Text::in_style(BOLD, title), options);
    for line in lines {
        out += &wrap(&Text::plain("  "), &line, DIM, options);
    }
    if let Some(text) = measured_part(report) {
        out += &wrap(&Text::in_style(ALARM, "INCOMPLETE  "), &text, ALARM, options);
    }
    for text in warning_lines(report) {
        out += &wrap(&Text::in_style(WARNING, "warning  "), &text, WARNING, options);
    }
    out
}

/// Returns each warning with its remedy; equal warnings of many CPUs are one.
pub(super) fn warning_lines(report: &Report) -> Vec<String> {
    let texts = report.warnings.iter().map(|warning| with_remedy(&warning.text, warning.remedy.as_deref()));
    fold_cpus(texts)
}

/// Returns a problem and, after an arrow, its remedy.
pub(super) fn with_remedy(text: &str, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) if !remedy.is_empty() => format!("{text} → {remedy}"),
        _ => text.to_owned(),
    }
}

/// Returns the program with the job that it measured, and the processor as far as it is known.
pub(super) fn report_title(report: &Report) -> (String, String) {
    match &report.imported {
        None => (format!("latscope {}", report.plan.job), processor(report)),
        Some(imported) => (format!("{}, imported", imported.name()), report.machine.cpu_model.clone()),
    }
}

/// Returns the name of a report among others: `latscope survey of 2026-11-21T10:00:00Z`, `fio 3.33`.
pub(super) fn report_name(report: &Report) -> String {
    let what = report.imported.as_ref().map(|imported| imported.name());
    let what = what.unwrap_or_else(|| format!("latscope {}", report.plan.job));
    if report.started.is_empty() { what } else { format!("{what} of {}", report.started) }
}

/// Returns machine, clock and run, a line each; for an imported result the known facts, and a note on those
/// that are unknown.
pub(super) fn fact_lines(report: &Report) -> Vec<String> {
    let Some(imported) = &report.imported else {
        return vec![system(report), clock(report), format_run(report)];
    };
    let machine = &report.machine;
    let kernel = format!("{} {}", machine.kernel, machine.kernel_version);
    let kernel =
        Some(kernel.trim()).filter(|kernel| !kernel.is_empty()).map(|kernel| format!("Linux {kernel}"));
    let started = Some(report.started.clone()).filter(|started| !started.is_empty());
    let ended = report.finished.as_ref().filter(|_| started.is_none()).map(|ended| format!("ended {ended}"));
    // Programs that state whole seconds.
    let took = wall_time(report).map(|took| match took.is_zero() {
        true => "took less than 1 s".to_owned(),
        false => format!("took {}", format_time(took.as_nanos() as f64)),
    });
    let labels = report.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let parts = [machine.name.clone(), kernel.unwrap_or_default(), machine.architecture.clone()];
    let time: Vec<String> = match &report.merged {
        Some(merged) => vec![merged_words(merged, report.merged_noun())],
        None => started.into_iter().chain(ended).chain(took).collect(),
    };
    let parts = parts.into_iter().chain(time).chain(labels);
    let known = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    let unknown = format!("not known: {}", imported.unknown.join(", "));
    [known, unknown].into_iter().filter(|line| !line.is_empty()).collect()
}

/// Returns the processor: `Intel Xeon, 2 CPUs`.
fn processor(report: &Report) -> String {
    let machine = &report.machine;
    let model = if machine.cpu_model.is_empty() { "unknown processor" } else { &machine.cpu_model };
    let cpus = match (machine.online.0.len(), machine.allowed.0.len()) {
        (0, _) => return model.to_owned(),
        (1, _) => "1 CPU".to_owned(),
        (all, allowed) if allowed > 0 && allowed < all => format!("{allowed} of {all} CPUs"),
        (all, _) => format!("{all} CPUs"),
    };
    format!("{model}, {cpus}")
}

/// Kernel, hypervisor, caches and memory.
fn system(report: &Report) -> String {
    let machine = &report.machine;
    let mut parts = vec![format!("Linux {} {}", machine.kernel, machine.architecture)];
    parts.push(match &machine.hypervisor {
        Some(hypervisor) => format!("virtual ({hypervisor})"),
        None => "no hypervisor seen".to_owned(),
    });
    let caches = machine.caches.iter().filter(|cache| cache.kind != "Instruction");
    parts.extend(caches.map(|cache| format!("L{} {}", cache.level, format_size(cache.size))));
    if machine.memory > 0 {
        parts.push(format!("memory {}", format_amount(machine.memory)));
    }
    parts.join(" · ")
}

/// The clock and its limits.
fn clock(report: &Report) -> String {
    let clock = &report.machine.clock;
    let mut text = format!("clock {}", clock.source);
    if clock.frequency_hz > 0.0 {
        text += &format!(" {} GHz", three_digits(clock.frequency_hz / 1e9));
    }
    // An event is shown as it was; its stamps are part of it.
    let subtracted = report.measurements.iter().any(|m| m.sampling != Sampling::Event);
    text += &format!(
        ", resolution {}, overhead {}{}",
        format_time(clock.resolution_ns),
        format_time(clock.overhead_ns),
        if subtracted { " (subtracted)" } else { "" }
    );
    if !clock.reason.is_empty() {
        text += &format!(": {}", clock.reason);
    }
    text
}

/// Returns the start of the run, its duration, its rounds, its load, and the user's labels.
fn format_run(report: &Report) -> String {
    if let Some(merged) = &report.merged {
        return merged_words(merged, report.merged_noun());
    }
    let mut text = report.started.clone();
    if let Some(took) = wall_time(report) {
        text += &format!(" · took {}", format_time(took.as_nanos() as f64));
    }
    if report.plan.rounds > 1 {
        let planned = if report.is_unfinished() { " planned" } else { "" };
        text += &format!(" · {}{planned}", count_with_noun(u64::from(report.plan.rounds), "round"));
    }
    // What is known of the run itself says more than what was before it.
    text += &match &report.activity {
        Some(account) => format!(" · {}", whose_time(account)),
        None => format!(" · load average {}", three_digits(report.machine.load_average)),
    };
    match &report.plan.load {
        Some(BackgroundLoad::Command(command)) => text += &format!(" · beside the load `{command}`"),
        load => {
            if let Some((name, words)) = load.as_ref().and_then(BackgroundLoad::name_and_description) {
                text += &format!(" · beside a load of {words} (--load {name})");
            }
        }
    }
    for (key, value) in &report.labels {
        text += &format!(" · {key}={value}");
    }
    text
}

/// Returns the number of runs, or what the noun says, that were merged, when they began, and what differs between them.
fn merged_words(merged: &Merged, noun: &str) -> String {
    let began: Vec<&str> =
        merged.runs.iter().map(|run| &*run.started).filter(|time| !time.is_empty()).collect();
    let mut text = format!("merged from {}", count_with_noun(merged.runs.len() as u64, noun));
    if let [first, .., last] = began[..] {
        text += &format!(", begun from {first} to {last}");
    }
    text += "; each counts as a round";
    let facts = merged.differs.iter().map(|fact| {
        let values = fact.values.iter().map(|(value, runs)| match fact.values.len() {
            ..=4 => format!("{value} ({runs})"),
            _ => value.clone(),
        });
        let values: Vec<String> = values.take(4).collect();
        let more = if fact.values.len() > 4 { ", …" } else { "" };
        format!(" · {}: {}{more}", fact.what, values.join(", "))
    });
    text + &facts.collect::<String>()
}

/// Returns the account in a few words: the quota that stopped the run, otherwise the share that others used;
/// then the load and the peer.
fn whose_time(account: &Account) -> String {
    let mut text = match account.throttled() {
        Some(quota) => quota.format_throttling(),
        None => match account.others_words() {
            Some(share) => format!("others used {share} of the CPUs"),
            None => format!("what others used is not known ({})", account.too_short()),
        },
    };
    for (share, who) in [(account.load, "load"), (account.peer, "peer")] {
        text += &share.map_or(String::new(), |share| format!(", the {who} {}", format_share(share)));
    }
    text
}

/// Returns the wall time of the run, also of an interrupted run.
fn wall_time(report: &Report) -> Option<Duration> {
    let Some(finished) = &report.finished else {
        return report.activity.as_ref().map(|activity| Duration::from_nanos(activity.wall_ns));
    };
    let start = humantime::parse_rfc3339_weak(&report.started).ok()?;
    humantime::parse_rfc3339_weak(finished).ok()?.duration_since(start).ok()
}

/// Returns the part of an interrupted run that was measured; `None` for a finished run.
pub fn measured_part(report: &Report) -> Option<String> {
    if !report.is_unfinished() {
        return None;
    }
    if let Some(interrupted) = &report.interrupted {
        return Some(describe_interruption(interrupted, report));
    }
    let planned: usize = report.plan.steps.iter().map(|step| step.points.len()).sum();
    let done = report.measurements.iter().filter(|m| !m.incomplete && !is_merged(m)).count();
    let of = (planned > 0).then_some(planned as u64);
    Some(format!("the run ended early: {}", format_progress(&ProgressAmount { done: done as u64, of })))
}

/// Returns the progress in words: as [`complete`], or `16 of 710 rounds of 316 points are complete` where a point
/// counts once for each of its rounds.
fn complete_in_rounds(points: &ProgressAmount, report: &Report) -> String {
    let planned: u64 = report.plan.steps.iter().map(|step| step.points.len() as u64).sum();
    match points.of {
        Some(of) if of > planned => format!(
            "{} of {} rounds of {} are complete (up to {} each)",
            format_count(points.done),
            format_count(of),
            count_with_noun(planned, "point"),
            u64::from(report.plan.rounds)
        ),
        _ => format_progress(points),
    }
}

/// Returns the progress in words: `0 of 2 points are complete`.
fn format_progress(points: &ProgressAmount) -> String {
    match points {
        ProgressAmount { done, of: Some(1) } => {
            format!("its only point is {}complete", if *done == 0 { "not " } else { "" })
        }
        ProgressAmount { done, of: Some(of) } => {
            format!("{} of {} points are complete", format_count(*done), format_count(*of))
        }
        ProgressAmount { done, of: None } => format!("{} complete", count_with_noun(*done, "point")),
    }
}

/// Returns the interruption in words: `interrupted by SIGINT after 1.50 s of 20.0 s, 2,990 events: 0 of 2
/// points are complete`.
fn describe_interruption(interrupted: &Interrupted, report: &Report) -> String {
    let Interrupted { by, points, events, time } = interrupted;
    let amount =
        |progress: &ProgressAmount, format: fn(u64) -> String, bare: fn(u64) -> String| match progress.of {
            Some(whole) => format!("{} of {}", bare(progress.done), format(whole)),
            None => format(progress.done),
        };
    let nanoseconds = |ns| format_time(ns as f64);
    let time = time.as_ref().map(|time| amount(time, nanoseconds, nanoseconds));
    let events =
        events.as_ref().map(|events| amount(events, |count| count_with_noun(count, "event"), format_count));
    let came: Vec<String> = time.into_iter().chain(events).collect();
    let came = if came.is_empty() { String::new() } else { format!(" after {}", came.join(", ")) };
    format!("interrupted by {by}{came}: {}", complete_in_rounds(points, report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn the_header_names_machine_clock_and_doubts() {
        let mut report = fixture::report();
        report.plan.rounds = 2;
        report.labels = [("board".to_owned(), "a7".to_owned())].into();
        let head = head(&report, &DisplayOptions { width: 100, ..DisplayOptions::default() });
        for part in [
            "Xeon",
            "2 CPUs",
            "virtual (KVM)",
            "L3 105 MiB",
            "warning",
            "tsc 2.60 GHz",
            "took 52.3 s · 2 rounds · ",
            "board=a7",
        ] {
            assert!(head.contains(part), "{part} in\n{head}");
        }
        assert!(!head.contains("INCOMPLETE"));
    }

    #[test]
    fn an_interrupted_run_says_so_and_has_no_wall_time() {
        let mut report = fixture::report();
        report.finished = None;
        let head = head(&report, &DisplayOptions::default());
        assert!(head.contains("INCOMPLETE  the run ended early"), "{head}");
        assert!(!head.contains("took"));
        let all = |done, of| Some(ProgressAmount { done, of });
        let by = || "SIGTERM".to_owned();
        let points = ProgressAmount { done: 0, of: Some(2) };
        let interrupted = Interrupted {
            by: by(),
            points,
            events: all(2990, None),
            time: all(1_500_000_000, Some(20_000_000_000)),
        };
        assert_eq!(
            describe_interruption(&interrupted, &report),
            "interrupted by SIGTERM after 1.50 s of 20.0 s, 2,990 events: 0 of 2 points are complete"
        );
        let interrupted = Interrupted { by: by(), points, events: None, time: None };
        assert_eq!(
            describe_interruption(&interrupted, &report),
            "interrupted by SIGTERM: 0 of 2 points are complete"
        );
        let one = ProgressAmount { done: 0, of: Some(1) };
        let interrupted = Interrupted { points: one, events: all(1, None), ..interrupted };
        assert_eq!(
            describe_interruption(&interrupted, &report),
            "interrupted by SIGTERM after 1 event: its only point is not complete"
        );
        report.plan.rounds = 8;
        let planned: u64 = report.plan.steps.iter().map(|step| step.points.len() as u64).sum();
        let points = ProgressAmount { done: 16, of: Some(8 * planned) };
        let interrupted = Interrupted { points, events: None, ..interrupted };
        let expected = format!(
            "interrupted by SIGTERM: 16 of {} rounds of {planned} points are complete (up to 8 each)",
            format_count(8 * planned)
        );
        assert_eq!(describe_interruption(&interrupted, &report), expected);
    }
}
