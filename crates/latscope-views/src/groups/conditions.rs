//! Conditions under which the events of a probe were measured.

use super::super::legend::describe_semantics;
use latscope_core::catalogue::families;
use latscope_core::events::{ProbeEventGroup, format_param};
use latscope_core::param::{
    CALLER, CLOCK, CPU, HOPS, INHERITANCE, INTERVAL, LOCK, MODE, PAIR, POLICY, PRIORITY, THREAD, TRANSPORT,
};
use latscope_core::plan::{ParamValue, Periodic, Phase, PlanStep};
use latscope_core::quality::{IDLE_NOT_HELD, MEMORY_NOT_LOCKED, POLICY_REFUSED};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::{format_count, format_time};
use latscope_judge::transactions::mode;

/// Returns the conditions that all rows of a probe have in common.
pub(in super::super) fn conditions(report: &Report, group: &ProbeEventGroup) -> String {
    let times = group.singles.first().map(|row| describe_semantics(row.m.times).to_owned());
    let mut parts: Vec<String> = times.into_iter().collect();
    parts.extend(common_params(group));
    parts.extend(format_widest_bin(group));
    let transactions = group.singles.first().is_some_and(|row| mode(row.m).is_some());
    let of_probe = |step: &&PlanStep| step.points.iter().any(|point| point.probe == group.probe);
    if let Some(step) = report.plan.steps.iter().find(of_probe) {
        // Messages to a remote have no threads whose rules there were to tell.
        let periodic = step.periodic.iter().filter(|_| families::of_probe(group.probe) != families::REMOTE);
        parts.extend(periodic.flat_map(|periodic| rules(periodic, transactions)));
        parts.extend(surroundings(step, &Got::from_group(group)));
    }
    parts.join(" · ")
}

/// Least width of a bin that is a condition, as a share of the median.
const COARSE: f64 = 0.02;

/// Returns the width of the bins of another program at the medians, the widest of all rows: `bins of 10.0 µs`. `None`
/// if all are narrow.
fn format_widest_bin(group: &ProbeEventGroup) -> Option<String> {
    let width = |m: &Measurement| {
        m.histogram.bins()?;
        let median = m.typical().or_else(|| m.median_beyond())?;
        Some(m.histogram.resolution(median)).filter(|width| *width > COARSE * median)
    };
    let widest = group.singles.iter().filter_map(|row| width(row.m)).reduce(f64::max)?;
    Some(format!("bins of {}", format_time(widest)))
}

/// The parameters that all rows share, as words.
fn common_params(group: &ProbeEventGroup) -> Vec<String> {
    let Some(first) = group.singles.first() else { return Vec::new() };
    let got = Got::from_group(group);
    let shared = |name: &str| {
        let value = first.m.params.get(name)?;
        group.singles.iter().all(|row| row.m.params.get(name) == Some(value)).then_some(value)
    };
    let mut parts = Vec::new();
    if let Some(interval) = shared(INTERVAL).and_then(ParamValue::as_number) {
        parts.push(format!("every {}", format_time(interval as f64)));
    }
    if let Some(policy) = shared(POLICY) {
        let priority = shared(PRIORITY).map(|priority| format!(" {priority}")).unwrap_or_default();
        let asked = format!("SCHED_{}{priority}", policy.to_string().to_uppercase());
        parts.push(got.granted_condition(POLICY_REFUSED, asked, "SCHED_OTHER"));
    }
    let said = [INTERVAL, POLICY, PRIORITY, CPU, THREAD, CLOCK, LOCK];
    let elsewhere = [TRANSPORT, MODE, PAIR, INHERITANCE, HOPS];
    let others = first.m.params.keys().filter(|name| !said.contains(&name.as_str()));
    let others = others.filter(|name| !(mode(first.m).is_some() && elsewhere.contains(&name.as_str())));
    parts.extend(others.filter_map(|name| {
        let asked = format_param(name, shared(name)?, &first.m.params);
        Some(if name == CALLER {
            got.granted_condition(POLICY_REFUSED, asked, "SCHED_OTHER caller")
        } else {
            asked
        })
    }));
    parts.extend(shared(CLOCK).map(|clock| format!("{clock} clock")));
    if let Some(remote) = &first.m.remote
        && group.singles.iter().all(|row| row.m.remote.as_ref() == Some(remote))
    {
        parts.push(format!("the remote says it is {}", remote.format_identity()));
    }
    parts
}

/// The rules of periodic threads; a caller that waits for a reply has no phase.
fn rules(periodic: &Periodic, transactions: bool) -> Vec<String> {
    let phase = match periodic.phase {
        Phase::Aligned(0) => "all at once".to_owned(),
        Phase::Aligned(distance) => format!("each {} after the one before", format_time(distance as f64)),
        Phase::Later(offset) => format!("all at once, {} later", format_time(offset as f64)),
        Phase::Staggered => "threads spread over the interval".to_owned(),
        Phase::Random => "threads at random phases".to_owned(),
        Phase::Free => "threads begin when they are ready".to_owned(),
    };
    let second = periodic.align_second.then(|| "from a full second on".to_owned());
    let warm_up = match periodic.warm_up {
        0 => "no warm-up".to_owned(),
        count => format!("{} for warming up", format_count(count)),
    };
    let threshold = periodic.threshold.map(|ns| format!("threshold {}", format_time(ns as f64)));
    let phase = Some(phase).filter(|_| !transactions);
    [phase, second, Some(warm_up), threshold].into_iter().flatten().collect()
}

/// Returns the settings of the machine during the measurement: locked memory and idle states.
fn surroundings(step: &PlanStep, got: &Got) -> Vec<String> {
    let not_locked = "memory not locked";
    let memory = match step.conditions.lock_memory {
        true => got.granted_condition(MEMORY_NOT_LOCKED, "memory locked".to_owned(), not_locked),
        false => not_locked.to_owned(),
    };
    let untouched = "idle states as they are";
    let idle = match step.conditions.cpu_dma_latency {
        Some(latency) => got.granted_condition(
            IDLE_NOT_HELD,
            format!("/dev/cpu_dma_latency held at {latency} µs"),
            untouched,
        ),
        None => untouched.to_owned(),
    };
    vec![memory, idle]
}

/// Conditions that the rows of a group got, of those that were asked for.
struct Got<'a> {
    rows: Vec<&'a Measurement>,
}

impl<'a> Got<'a> {
    fn from_group(group: &'a ProbeEventGroup) -> Got<'a> {
        Got { rows: group.singles.iter().map(|row| row.m).collect() }
    }

    /// Returns the condition that was asked for or, if it was refused, the condition instead of it.
    fn granted_condition(&self, id: &str, asked: String, instead: &str) -> String {
        let refused = |m: &&&Measurement| m.quality.reasons.iter().any(|reason| reason.id == id);
        match self.rows.iter().filter(refused).count() {
            0 => asked,
            n if n == self.rows.len() => format!("{instead} ({asked}: refused)"),
            n => format!("{asked}, but refused in {n} of {} rows", self.rows.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;
    use latscope_core::quality::{QualityLevel, Reason};

    fn text(report: &Report) -> String {
        conditions(report, &event_groups(report)[0])
    }

    #[test]
    fn the_heading_says_how_it_was_measured() {
        assert_eq!(
            text(&fixture::wake()),
            "one way · every 1.00 ms · SCHED_FIFO 95 · nanosleep · monotonic clock · threads spread over \
             the interval · 100 for warming up · threshold 80.0 µs · memory locked · /dev/cpu_dma_latency held at 0 µs"
        );
    }

    #[test]
    fn what_was_refused_is_not_said_to_be_so() {
        let mut report = fixture::wake();
        let refuse = |m: &mut Measurement, id| m.lower(Reason::new(QualityLevel::Degraded, id, "no", ""));
        refuse(&mut report.measurements[0], POLICY_REFUSED);
        assert!(text(&report).contains("SCHED_FIFO 95, but refused in 1 of 2 rows"), "{}", text(&report));
        for m in &mut report.measurements {
            [POLICY_REFUSED, MEMORY_NOT_LOCKED, IDLE_NOT_HELD].iter().for_each(|id| refuse(m, id));
        }
        let text = text(&report);
        for part in [
            " · SCHED_OTHER (SCHED_FIFO 95: refused) · ",
            " · memory not locked (memory locked: refused) · ",
            " · idle states as they are (/dev/cpu_dma_latency held at 0 µs: refused)",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn other_rules_are_said_too() {
        let mut report = fixture::wake();
        let step = &mut report.plan.steps[0];
        step.conditions = Default::default();
        let periodic = step.periodic.as_mut().unwrap();
        (periodic.warm_up, periodic.align_second, periodic.threshold) = (0, true, None);
        for (phase, words) in [
            (Phase::Aligned(0), "all at once"),
            (Phase::Aligned(5_000), "each 5.00 µs after the one before"),
            (Phase::Random, "threads at random phases"),
            (Phase::Free, "threads begin when they are ready"),
        ] {
            report.plan.steps[0].periodic.as_mut().unwrap().phase = phase;
            let text = text(&report);
            let end = format!(
                " · {words} · from a full second on · no warm-up · memory not locked · idle states as they are"
            );
            assert!(text.ends_with(&end), "{text}");
        }
    }

    #[test]
    fn what_differs_between_rows_is_left_to_them() {
        let mut report = fixture::wake();
        report.measurements[1].params.insert("interval".to_owned(), 1_500_000u64.into());
        assert!(!text(&report).contains("every"));
    }
}
