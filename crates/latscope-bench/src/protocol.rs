//! Messages between coordinator and worker: one JSON value a line.

use crate::timebase::Timebase;
use latscope_core::plan::{Params, PlanStep};
use latscope_core::quality::Quality;
use latscope_core::report::{
    Contention, MeasuredQuantity, OperationWork, Outlier, RemoteIdentity, SampleBlock, Semantics,
    TransactionHop,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Assignment of a step: the only message of the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// Step that the worker measures.
    pub step: PlanStep,
    /// Clock of the run.
    pub timebase: Timebase,
    /// Stamp of the epoch of the run.
    pub epoch: u64,
    /// `CLOCK_MONOTONIC` at the epoch of the run, ns.
    pub epoch_ns: u64,
    /// CPUs the whole run may use.
    pub allowed: Vec<u32>,
    /// The directory for files, made for this step.
    pub scratch: Option<PathBuf>,
    /// Iterations of a batch of each point as an earlier round found them.
    pub iterations: Vec<Option<u64>>,
    /// The `trace_marker` of the run's trace instance.
    pub trace_marker: Option<PathBuf>,
    /// The `tracing_on` of the trace instance that a measuring thread switches
    /// off at the first event above the threshold.
    pub trace_switch: Option<PathBuf>,
}

/// Message of a worker to the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum WorkerMessage {
    /// The worker is set up; measuring begins.
    Ready,
    /// The worker will measure, but not as requested.
    Shortfall {
        /// Difference from the request, in words.
        reason: String,
        /// Remedy for the shortfall, in words.
        remedy: String,
    },
    /// The worker waits for something that the user may have to start.
    Waiting(String),
    /// The worker's points exchange messages with these processes, which used this much CPU time since the last such
    /// message, ns.
    Peers(Vec<u32>, u64),
    /// The worker begins with a point. The result holds what is known so far: the meaning of its samples, should no
    /// other message follow.
    Started(usize, Box<PointResult>),
    /// A point is done: what no histogram holds.
    Closed(usize, Box<PointResult>),
    /// The step as a whole failed; points not closed have this reason.
    Failed(String),
    /// The worker has completed the step.
    Finished,
}

/// Data of a point beside its histogram.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PointResult {
    /// Degree to which the point can be trusted, and the reasons against a better degree.
    pub quality: Quality,
    /// Time that the measuring threads waited for a CPU.
    pub contention: Option<Contention>,
    /// Iterations of a batch, which later rounds take over.
    pub iterations: Option<u64>,
    /// Named quantities that are no durations.
    pub values: BTreeMap<String, MeasuredQuantity>,
    /// Bytes behind one operation.
    pub work: Option<OperationWork>,
    /// Core cycles of one operation.
    pub cycles: Option<f64>,
    /// The samples in order of time.
    pub blocks: Vec<SampleBlock>,
    /// Meaning of the time between the two stamps, where it differs from that of the probe.
    pub times: Option<Semantics>,
    /// Parameters that were known only when it was measured.
    pub params: Params,
    /// Outliers: events worth naming.
    pub outliers: Vec<Outlier>,
    /// Threads that took part in the first transactions.
    pub hops: Vec<TransactionHop>,
    /// Identity that the remote operating system states.
    pub remote: Option<RemoteIdentity>,
    /// The point ended before it had all it was to have.
    pub cut_short: bool,
    /// The run was asked to end before the point was done.
    pub interrupted: bool,
    /// There was nothing to record, which is a result.
    pub uneventful: bool,
}
