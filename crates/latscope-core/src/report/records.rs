//! Records of single events in a measurement: blocks in order of time, outliers, hops, exact records.

use crate::units::format_value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of a measurement in order of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampleBlock {
    /// Nanoseconds since the epoch of the run at its first sample.
    pub from: u64,
    /// Number of samples in the block.
    pub count: u64,
    /// Sum of the samples, in ticks of the histogram.
    pub sum: u64,
    /// The largest, in ticks of the histogram.
    pub max: u64,
    /// The median of at most 16 of them, as far apart as each other, in ticks.
    pub median: u64,
}

impl SampleBlock {
    /// Blocks that a measurement has at most.
    pub const MOST: usize = 256;

    /// Merges neighbours until no more than [`MOST`](SampleBlock::MOST) are left, by the least number of samples in a
    /// block that allows it, so that blocks stay alike. No maximum is lost.
    pub(crate) fn thin(blocks: &mut Vec<SampleBlock>) {
        let mut least = blocks.iter().map(|block| block.count).min().unwrap_or(0).max(1);
        while blocks.len() > SampleBlock::MOST {
            least = least.saturating_mul(2);
            let mut parts = std::mem::take(blocks).into_iter().peekable();
            while let Some(first) = parts.next() {
                let (mut count, mut together) = (first.count, vec![first]);
                while count < least
                    && let Some(next) = parts.next()
                {
                    count = count.saturating_add(next.count);
                    together.push(next);
                }
                blocks.push(SampleBlock::from_neighbours(together));
            }
        }
    }

    /// The block of neighbours. Its median is that of theirs, each as often as it has samples.
    fn from_neighbours(mut parts: Vec<SampleBlock>) -> SampleBlock {
        let whole = parts[1..].iter().fold(parts[0], |whole, part| SampleBlock {
            count: whole.count.saturating_add(part.count),
            sum: whole.sum.saturating_add(part.sum),
            max: whole.max.max(part.max),
            ..whole
        });
        parts.sort_unstable_by_key(|part| part.median);
        let mut seen = 0u64;
        let reaches_middle = |part: &&SampleBlock| {
            seen = seen.saturating_add(part.count);
            seen >= whole.count.div_ceil(2)
        };
        let median = parts.iter().find(reaches_middle).map_or(whole.median, |part| part.median);
        SampleBlock { median, ..whole }
    }
}

/// Basis for conclusions from the events of a measurement about events that did not occur.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    /// Time in which an event would have been seen, ns: of threads that ran at the same time, that of one of them.
    pub time_ns: u64,
    /// Share of the events that are independent of each other, 0 to 1: activations of one bout, and threads of one CPU,
    /// are not.
    pub independent: f64,
}

/// Event worth naming, with the causes of its duration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Nanoseconds since the epoch of the run.
    pub at: u64,
    /// CPU it happened on.
    pub cpu: u32,
    /// Duration of the event, ns.
    pub value: u64,
    /// Causes, the largest share first; empty where it was not traced. A part of its time that the trace lacks is
    /// `not-traced`; an event with no other part was not traced either.
    pub cause: Vec<Cause>,
    /// Kernel functions in which the thread was that had the CPU before, when it gave way,
    /// innermost first, and its system call behind them; only where asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// Further trace events in order of time, at most 16: those on its CPU that were asked for, and rare ones
    /// that tell much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TraceEvent>,
}

impl Outlier {
    /// Further trace events that are kept of an outlier.
    pub const EVENTS: usize = 16;

    /// Returns true if the trace has a part of the event: only then anything is known of its causes.
    pub fn is_traced(&self) -> bool {
        self.cause.iter().any(|cause| cause.kind != Cause::NOT_TRACED)
    }
}

/// A trace event within an outlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEvent {
    /// Nanoseconds after the begin of the outlier.
    pub at: u64,
    /// Name of the event: `sched_migrate_task`.
    pub name: String,
    /// Fields of the event as the kernel prints them.
    pub text: String,
}

/// A share of an outlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// `irq`, `softirq`, `nmi`, `thread`, `run-queue`, `throttling`, `quota`, `stopped`, `frozen`, `lock`, `idle-exit`,
    /// `hypervisor`, `hypervisor-or-interrupts-off`, `smi`, `unknown` or `not-traced`.
    pub kind: String,
    /// Name of the cause, if it has a name.
    pub name: String,
    /// Process id; 0 if there is no process.
    pub pid: u32,
    /// Share of the cause, ns.
    pub ns: u64,
}

impl Cause {
    /// Kind of the time without a trace; the name gives the reason.
    pub const NOT_TRACED: &str = "not-traced";
}

/// An event that took longer than the plan's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exceedance {
    /// Number of the event among those of its thread, from 0.
    pub turn: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC` at its end.
    pub at: u64,
    /// Duration of the event, ns.
    pub value: u64,
}

/// Place and scheduling of a thread that took part in a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransactionHop {
    /// Role of the thread: `fifo-caller`, `other-caller`, `server`.
    pub role: String,
    /// Process id of the thread.
    pub pid: u32,
    /// Id of the thread (tid).
    pub tid: u32,
    /// The CPU it was on.
    pub cpu: u32,
    /// The number of its policy: 0 is SCHED_OTHER, 1 SCHED_FIFO.
    pub policy: u32,
    /// Real-time priority of the thread.
    pub priority: u32,
    /// Nice value of the thread.
    pub nice: i32,
}

/// Identity that a remote operating system states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteIdentity {
    /// Name of the core; empty if it does not say.
    pub core: String,
    /// Frequency of the core, Hz; `None` if it does not say.
    pub clock_hz: Option<u64>,
    /// Firmware with the version; empty if it does not say.
    pub firmware: String,
}

impl RemoteIdentity {
    /// Returns what is known of the remote in words: `Cortex-R5F at 600 MHz, Zephyr 4.2`; empty for nothing.
    pub fn format_identity(&self) -> String {
        let clock = self.clock_hz.map(|hz| format_value(hz as f64 / 1e6, "MHz"));
        let core = match (self.core.as_str(), clock) {
            ("", clock) => clock.unwrap_or_default(),
            (core, None) => core.to_owned(),
            (core, Some(clock)) => format!("{core} at {clock}"),
        };
        let known = [core.as_str(), self.firmware.as_str()].into_iter().filter(|text| !text.is_empty());
        known.collect::<Vec<_>>().join(", ")
    }
}

/// Exact records beside the histogram, kept only when the plan asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recordings {
    /// Linear histogram of the events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearRecord>,
    /// The first events above the threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceedances: Vec<Exceedance>,
}

/// Contents of an exact linear histogram.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinearRecord {
    /// Width of a bucket, ns.
    pub tick_ns: u64,
    /// Number of buckets; `counts` ends at the last one that is not empty.
    pub buckets: u64,
    /// Values in each bucket, from 0.
    pub counts: Vec<u64>,
    /// Values beyond the last bucket.
    pub overflow: u64,
    /// Turns of the first values beyond the last bucket, at most `buckets`.
    pub overflow_turns: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_told_by_what_it_states() {
        let told = |core: &str, clock_hz, firmware: &str| {
            RemoteIdentity { core: core.to_owned(), clock_hz, firmware: firmware.to_owned() }
                .format_identity()
        };
        assert_eq!(told("Cortex-R5F", Some(600_000_000), "Zephyr 4.2"), "Cortex-R5F at 600 MHz, Zephyr 4.2");
        assert_eq!([told("", Some(48_000_000), ""), told("", None, "")], ["48.0 MHz", ""]);
    }

    #[test]
    fn many_rounds_have_no_more_blocks_than_one_and_no_sample_is_lost() {
        let mut blocks = Vec::new();
        for round in 0..8u64 {
            let block =
                |at: u64| SampleBlock { from: 1000 * round + at, count: 4, sum: 4, max: at, median: round };
            blocks.extend((0..250).map(block));
            blocks.push(SampleBlock {
                from: 1000 * round + 250,
                count: 1,
                sum: 1,
                max: 9000 + round,
                median: round,
            });
            SampleBlock::thin(&mut blocks);
            assert!(blocks.len() <= SampleBlock::MOST, "{}", blocks.len());
            assert_eq!(blocks.iter().map(|block| block.count).sum::<u64>(), (round + 1) * 1001);
            assert_eq!(blocks.iter().map(|block| block.sum).sum::<u64>(), (round + 1) * 1001);
            assert_eq!(blocks.iter().map(|block| block.max).max(), Some(9000 + round));
        }
        assert!(blocks.is_sorted_by_key(|block| block.from) && blocks.is_sorted_by_key(|block| block.median));
        let [least, most] = [blocks.iter().min_by_key(|b| b.count), blocks.iter().max_by_key(|b| b.count)];
        let usual = blocks.len() - 1;
        assert!(
            blocks[..usual].iter().all(|block| 2 * block.count > most.unwrap().count),
            "{least:?} {most:?}"
        );
    }

    #[test]
    fn few_blocks_stay_as_they_are() {
        let mut blocks = vec![SampleBlock { count: 3, ..SampleBlock::default() }; SampleBlock::MOST];
        SampleBlock::thin(&mut blocks);
        assert_eq!(blocks, vec![SampleBlock { count: 3, ..SampleBlock::default() }; SampleBlock::MOST]);
    }
}
