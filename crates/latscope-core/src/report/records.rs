//! What a measurement keeps of single events: blocks in order of time, outliers, hops, exact records.

use serde::{Deserialize, Serialize};

/// A stretch of a measurement in order of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Nanoseconds since the epoch of the run at its first sample.
    pub from: u64,
    /// Samples in it.
    pub count: u64,
    /// Their sum, in ticks of the histogram.
    pub sum: u64,
    /// The largest, in ticks of the histogram.
    pub max: u64,
    /// The median of at most 16 of them, as far apart as each other, in ticks; `None` in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<u64>,
}

/// What the events of a measurement can prove about those that did not occur.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// Time in which an event would have been seen, ns: of threads that ran at the same time, that of one of them.
    pub time_ns: u64,
    /// Share of the events that are independent of each other, 0 to 1: activations of one bout, and threads of one CPU,
    /// are not.
    pub independent: f64,
}

/// One event worth naming, with what took its time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlier {
    /// Nanoseconds since the epoch of the run.
    pub at: u64,
    /// CPU it happened on.
    pub cpu: u32,
    /// Its duration, ns.
    pub value: u64,
    /// Causes, the largest share first; empty where it was not traced.
    #[serde(default)]
    pub cause: Vec<Cause>,
    /// Kernel functions in which the thread was that had the CPU before, when it gave way,
    /// innermost first; only where asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// Further trace events on its CPU that were asked for, in order of time; at most
    /// [`Outlier::EVENTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TraceEvent>,
}

impl Outlier {
    /// Further trace events that are kept of an outlier.
    pub const EVENTS: usize = 16;
}

/// A trace event that was asked for by name, within an outlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Nanoseconds after the begin of the outlier.
    pub at: u64,
    /// Name of the event: `sched_migrate_task`.
    pub name: String,
    /// Its fields as the kernel prints them.
    pub text: String,
}

/// A share of an outlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// `irq`, `softirq`, `nmi`, `thread`, `run-queue`, `throttling`, `quota`, `lock`, `idle-exit`,
    /// `hypervisor`, `hypervisor-or-interrupts-off`, `smi`, `unknown` or `not-traced`.
    pub kind: String,
    /// Its name, where it has one.
    pub name: String,
    /// Process id; 0 where there is none.
    pub pid: u32,
    /// Its share, ns.
    pub ns: u64,
}

/// An event that took longer than the plan's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceedance {
    /// Its number among the events of its thread, from 0.
    pub turn: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC` at its end.
    pub at: u64,
    /// Its duration, ns.
    pub value: u64,
}

/// Where and how a thread ran that had a part in a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// What it did: `fifo-caller`, `other-caller`, `server`.
    pub role: String,
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// The CPU it was on.
    pub cpu: u32,
    /// The number of its policy: 0 is SCHED_OTHER, 1 SCHED_FIFO.
    pub policy: u32,
    /// Its real-time priority.
    pub priority: u32,
    /// Its nice value.
    pub nice: i32,
}

/// Exact records beside the histogram, kept only when the plan asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recordings {
    /// A linear histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearRecord>,
    /// The first events above the threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceedances: Vec<Exceedance>,
}

/// What an exact linear histogram holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
