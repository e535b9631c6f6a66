//! Paced messages in one direction: a sender wakes a receiver, which stamps, rests for the interval and asks
//! for the next message. This is the pattern of rt-tests' programs for inter-process communication. Their
//! circle of threads that wake each other in turn is here, too.
//!
//! The endpoints are threads of this process or processes of their own. Their figures are on a [`PacedRunMemory`] in
//! shared memory; they write to no stream.

mod board;
mod endpoint;
mod means;
mod session;

pub use board::{KEPT, PacedEndpointStatistics, PacedRunMemory};
pub(crate) use endpoint::ROLE;
pub use session::{PacedWaitOutcome, Session};

use latscope_core::plan::Conditions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Conditions that a process with endpoints sets first: its memory is locked.
pub const MEMORY: Conditions = Conditions { lock_memory: true, cpu_dma_latency: None, scratch_in: None };

/// Means of waking the other endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacedWakeMechanism {
    /// Two POSIX message queues for one message each: mq_overview(7).
    Queues,
    /// A set of two System V semaphores: semop(2).
    Semaphores,
    /// Two futexes, see futex(2).
    Futexes,
    /// Signals to a thread that waits for them: sigwaitinfo(2).
    Signals,
}

impl PacedWakeMechanism {
    /// Returns the error text for means that are exhausted, with the remedy.
    fn exhaustion_text(self) -> &'static str {
        match self {
            PacedWakeMechanism::Queues => {
                "no message queues (ask for fewer pairs, or raise `ulimit -q` and fs.mqueue.queues_max)"
            }
            PacedWakeMechanism::Semaphores => {
                "no System V semaphores (ask for fewer pairs, or raise kernel.sem)"
            }
            PacedWakeMechanism::Futexes => "no shared memory (ask for fewer pairs, or raise `ulimit -n`)",
            PacedWakeMechanism::Signals => "no signals",
        }
    }
}

/// Order in which endpoints wake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacedWakeOrder {
    /// Pairs: endpoint 2n receives the messages of endpoint 2n+1.
    Pairs,
    /// A circle: each endpoint wakes the next, and times a whole turn. The first rests now and then, so that
    /// other programs get CPU time.
    Circle,
}

/// Rules of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacedEndpointRules {
    /// Means of waking the other endpoint.
    pub means: PacedWakeMechanism,
    /// Order in which endpoints wake each other.
    pub form: PacedWakeOrder,
    /// Time from one message of the pair to the next, ns.
    pub interval: u64,
    /// SCHED_FIFO with this priority; 0 for SCHED_OTHER.
    pub priority: u32,
    /// CPU on which the endpoint stays.
    pub cpu: Option<u32>,
    /// Messages after which the run is over; `u64::MAX` for no limit.
    pub loops: u64,
    /// Latency above which the run is over, ns; `u64::MAX` for no limit.
    pub threshold: u64,
    /// Time after which the receiver gives up waiting, and counts that, s; 0 for never.
    pub timeout: u64,
    /// Time that the sender rests before each message, s.
    pub delay: u64,
    /// Directory of the trace that is marked and stopped at the threshold.
    pub trace: Option<PathBuf>,
}
