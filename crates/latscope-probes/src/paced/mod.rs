//! One way, paced: a sender wakes a receiver, which stamps, rests for the
//! interval and asks for the next. The pattern of rt-tests' programs for
//! inter-process communication; and their circle of threads that wake each
//! other in turn.
//!
//! The endpoints are threads of this process or processes of their own. All
//! that they tell is on a [`Board`] in shared memory; they write to no stream.

mod board;
mod endpoint;
mod means;
mod session;

pub use board::{Board, Figures, KEPT};
pub(crate) use endpoint::ROLE;
pub use session::{Ended, Session};

use latscope_core::plan::Conditions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a process with endpoints does first: memory is locked.
pub const MEMORY: Conditions = Conditions { lock_memory: true, cpu_dma_latency: None, scratch_in: None };

/// What wakes the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Means {
    /// Two POSIX message queues for one message each: mq_overview(7).
    Queues,
    /// A set of two System V semaphores: semop(2).
    Semaphores,
    /// Two futexes: futex(2).
    Futexes,
    /// Signals to a thread that waits for them: sigwaitinfo(2).
    Signals,
}

impl Means {
    /// What to do where there are no more of them.
    fn remedy(self) -> &'static str {
        match self {
            Means::Queues => {
                "no message queues (ask for fewer pairs, or raise `ulimit -q` and fs.mqueue.queues_max)"
            }
            Means::Semaphores => "no System V semaphores (ask for fewer pairs, or raise kernel.sem)",
            Means::Futexes => "no shared memory (ask for fewer pairs, or raise `ulimit -n`)",
            Means::Signals => "no signals",
        }
    }
}

/// Who wakes whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// Pairs: endpoint 2n receives what endpoint 2n+1 sends.
    Pairs,
    /// One circle: each wakes the next, and times a whole turn. The first
    /// rests now and then, so that the machine lives.
    Circle,
}

/// What an endpoint is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// What wakes the other.
    pub means: Means,
    /// Who wakes whom.
    pub form: Form,
    /// Time from one message of the pair to the next, ns.
    pub interval: u64,
    /// SCHED_FIFO with this priority; 0 for SCHED_OTHER.
    pub priority: u32,
    /// The CPU it stays on.
    pub cpu: Option<u32>,
    /// Messages after which the run is over; `u64::MAX` for no limit.
    pub loops: u64,
    /// The run is over when a latency is above, ns; `u64::MAX` for no limit.
    pub threshold: u64,
    /// The receiver gives up waiting, and counts that, after so many seconds; 0 for never.
    pub timeout: u64,
    /// The sender rests before each message, s.
    pub delay: u64,
    /// The trace that is marked and stopped at the threshold: its directory.
    pub trace: Option<PathBuf>,
}
