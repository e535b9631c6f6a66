//! What coordinator and worker say to each other: one JSON value a line.

use crate::timebase::Timebase;
use latscope_core::plan::{Params, Step};
use latscope_core::quality::Quality;
use latscope_core::report::{Block, Contention, Hop, Outlier, Semantics, Value, Work};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The coordinator's one message: what to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The step.
    pub step: Step,
    /// The run's clock.
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
    #[serde(default)]
    pub iterations: Vec<Option<u64>>,
    /// The `trace_marker` of the run's trace instance.
    pub trace_marker: Option<PathBuf>,
    /// The `tracing_on` of the trace instance that a measuring thread switches
    /// off at the first event above the threshold.
    pub trace_switch: Option<PathBuf>,
}

/// What a worker reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Message {
    /// It is set up; measuring begins.
    Ready,
    /// It will measure, but not as was asked for.
    Shortfall {
        /// What is otherwise.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// It waits for something that the user may have to start.
    Waiting(String),
    /// Its points exchange messages with these processes, which used this much CPU time since the last such message, ns.
    Peers(Vec<u32>, u64),
    /// It begins with a point, of which it knows this much: what its samples mean, should there be no more.
    Started(usize, Box<PointResult>),
    /// A point is done: what no histogram holds.
    Closed(usize, Box<PointResult>),
    /// The step as a whole failed; points not closed have this reason.
    Failed(String),
    /// All is done.
    Finished,
}

/// What is known of a point beside its histogram.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PointResult {
    /// How far the point can be trusted, and why not further.
    pub quality: Quality,
    /// What the measuring threads waited for a CPU.
    #[serde(default)]
    pub contention: Option<Contention>,
    /// Iterations of a batch, which later rounds take over.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// Named quantities that are no durations.
    pub values: BTreeMap<String, Value>,
    /// Bytes behind one operation.
    pub work: Option<Work>,
    /// Core cycles of one operation.
    pub cycles: Option<f64>,
    /// The samples in order of time.
    pub blocks: Vec<Block>,
    /// What lies between the two stamps, where that is not what the probe says.
    #[serde(default)]
    pub times: Option<Semantics>,
    /// Parameters that were known only when it was measured.
    #[serde(default)]
    pub params: Params,
    /// Events worth naming.
    pub outliers: Vec<Outlier>,
    /// Who had a part in the first transactions.
    #[serde(default)]
    pub hops: Vec<Hop>,
    /// The point ended before it had all it was to have.
    #[serde(default)]
    pub cut_short: bool,
    /// The run was asked to end before the point was done.
    #[serde(default)]
    pub interrupted: bool,
    /// There was nothing to record, which is a result.
    #[serde(default)]
    pub uneventful: bool,
}
