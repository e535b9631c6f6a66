//! What measuring threads waited for a CPU.

use serde::{Deserialize, Serialize};

/// What stood between measuring threads and a CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Time that the point took, ns.
    pub wall_ns: u64,
    /// Time that the measuring threads waited for a CPU though they could run
    /// (run delay of `/proc/thread-self/schedstat`), ns; `None` where the kernel does not tell.
    pub run_delay_ns: Option<u64>,
    /// Share of the CPUs of the run that other processes used meanwhile, 0 to 1
    /// (`/proc/stat`); `None` where the kernel does not tell.
    pub others: Option<f64>,
    /// Whether waiting distorts the figure: not where samples are thrown away that
    /// were disturbed, nor where waiting is what is measured.
    pub distorts: bool,
}

/// Shares of time below which waiting explains nothing.
const WAITING_MATTERS: f64 = 0.05;
const OTHERS_MATTER: f64 = 0.10;

impl Contention {
    /// Share of the time in which a measuring thread waited for a CPU, 0 to 1.
    pub fn waited(&self) -> Option<f64> {
        // Several threads can wait at once.
        Some((self.run_delay_ns? as f64 / self.wall_ns.max(1) as f64).min(1.0))
    }

    /// Whether others explain a part of the figure that matters.
    pub(crate) fn explains(&self) -> bool {
        let over = |share: Option<f64>, limit: f64| share.is_some_and(|share| share >= limit);
        self.distorts && over(self.waited(), WAITING_MATTERS) && over(self.others, OTHERS_MATTER)
    }

    /// Adds that of a later round, or of another thread or pair: the time is then that of all of them.
    pub fn add(&mut self, other: &Contention) {
        let (mine, its) = (self.wall_ns as f64, other.wall_ns as f64);
        self.others =
            self.others.zip(other.others).map(|(a, b)| (a * mine + b * its) / (mine + its).max(1.0));
        self.run_delay_ns = self.run_delay_ns.zip(other.run_delay_ns).map(|(a, b)| a + b);
        self.wall_ns += other.wall_ns;
        self.distorts |= other.distorts;
    }
}
