//! Wake-up latencies that others published, to compare a result with. Each has its conditions: latency depends
//! on the interval, the load, the length of the run and the kernel more than on the machine, so no figure is a
//! number to be beaten.

use latscope_core::events::{ProbeEventGroup, ProbeEventRow};
use latscope_core::param;
use latscope_core::report::Report;
use latscope_core::units::{count_with_noun, format_time};
use serde::Deserialize;
use std::sync::LazyLock;

/// A published figure or promise.
#[derive(Debug, Deserialize)]
pub struct Published {
    /// Name of the machine or program that was measured.
    pub name: String,
    /// The figure, in words: `max 55 µs`.
    pub figure: String,
    /// Scheduling policy of the threads, as a value of the parameter `policy`.
    pub policy: String,
    /// Time from one activation to the next, ns, where it is published.
    pub interval: Option<u64>,
    /// Length of the run: activations of a thread, where they are published.
    pub activations: Option<u64>,
    /// Conditions of the measurement, in words.
    pub conditions: String,
    /// Publication that the figure is from.
    pub source: String,
}

#[derive(Deserialize)]
struct Table {
    published: Vec<Published>,
}

/// Published figures on periodic wake-ups.
pub static WAKE_UPS: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let table: Table = toml::from_str(include_str!("published.toml")).expect("a test reads the table");
    table.published
});

impl Published {
    /// Returns the conditions, as far as they are published.
    pub fn format_conditions(&self) -> String {
        let mut parts = vec![self.conditions.clone()];
        match self.interval {
            Some(interval) => parts.push(format!("every {}", format_time(interval as f64))),
            None => parts.push("interval unknown".to_owned()),
        }
        parts.extend(self.activations.map(|count| count_with_noun(count, "activation")));
        parts.join(", ")
    }

    /// Returns true if the figure is known not to be comparable with these measurements: another or an unknown
    /// interval, another policy, or another kind of kernel. The load differs in any case.
    pub fn is_incomparable(&self, report: &Report, group: &ProbeEventGroup) -> bool {
        let real_time = |text: &str| text.contains("PREEMPT_RT");
        let kernel = real_time(&self.conditions) && !real_time(&report.machine.kernel_version);
        let ours =
            |row: &ProbeEventRow| row.m.params.get(param::POLICY) == Some(&self.policy.as_str().into());
        let policy = !group.singles.iter().all(ours);
        kernel || policy || self.interval.is_none() || self.interval != interval(group)
    }
}

/// Returns the conditions on this machine, in the same words.
pub fn local_conditions(report: &Report, group: &ProbeEventGroup) -> String {
    let mut parts = vec![report.machine.preemption()];
    parts.retain(|part| !part.is_empty());
    parts.extend(interval(group).map(|interval| format!("every {}", format_time(interval as f64))));
    let most = group.singles.iter().map(|row| row.m.summary.count).max().unwrap_or(0);
    parts.push(count_with_noun(most, "activation"));
    parts.join(", ")
}

/// The interval of all threads; `None` where they have several.
fn interval(group: &ProbeEventGroup) -> Option<u64> {
    let interval = |row: &ProbeEventRow| row.m.numeric_param(param::INTERVAL);
    let first = interval(group.singles.first()?)?;
    group.singles.iter().all(|row| interval(row) == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;

    #[test]
    fn every_figure_has_a_source_and_conditions() {
        for published in WAKE_UPS.iter() {
            assert!(!published.source.is_empty() && !published.conditions.is_empty(), "{published:?}");
        }
    }

    #[test]
    fn conditions_are_told_on_both_sides() {
        let report = fixture::wake();
        let groups = event_groups(&report);
        assert_eq!(
            local_conditions(&report, &groups[0]),
            "PREEMPT_DYNAMIC, every 1.00 ms, 30,000 activations"
        );
        assert_eq!(
            WAKE_UPS[5].format_conditions(),
            "FIFO 98, 1 min, whatever runs beside, every 1.00 ms, 60,000 activations"
        );
        assert_eq!(WAKE_UPS[2].format_conditions(), "PREEMPT_RT, 1 min, interval unknown");
    }

    #[test]
    fn another_interval_or_kernel_is_another_thing() {
        let mut report = fixture::wake();
        let differing = |report: &Report| -> Vec<&str> {
            let groups = event_groups(report);
            WAKE_UPS
                .iter()
                .filter(|row| !row.is_incomparable(report, &groups[0]))
                .map(|row| row.name.as_str())
                .collect()
        };
        assert_eq!(differing(&report), ["LAVA gate"]);
        report.machine.kernel_version = "#1 SMP PREEMPT_RT".to_owned();
        for m in &mut report.measurements {
            m.params.insert("interval".to_owned(), 200_000u64.into());
        }
        assert_eq!(differing(&report), ["OSADL QA farm"]);
        report.measurements[0].params.insert("interval".to_owned(), 300_000u64.into());
        assert_eq!(differing(&report), [""; 0]);
    }
}
