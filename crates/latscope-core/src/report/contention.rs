//! Time that measuring threads waited for a CPU.

use super::Account;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time that measuring threads waited for a CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Time that the point took, ns.
    pub wall_ns: u64,
    /// Time that the measuring threads waited for a CPU though they could run (run delay of
    /// `/proc/thread-self/schedstat`), ns; `None` where the kernel does not report it.
    pub run_delay_ns: Option<u64>,
    /// True if waiting distorts the figure. It does not if disturbed samples are thrown away, or if waiting is the
    /// quantity measured.
    pub distorts: bool,
    /// True where each sample was thrown away in which a thread did not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
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

    /// Returns true if others explain a part of the figure that matters. Beside a load that used more, they do not: the
    /// load was requested.
    pub(crate) fn explains(&self, account: &Account) -> bool {
        let waited = self.waited().is_some_and(|share| share >= WAITING_MATTERS);
        let others = account.others >= OTHERS_MATTER && account.others > account.load.unwrap_or(0.0);
        self.distorts && waited && others
    }

    /// Adds that of a later round, or of another thread or pair: the time is then that of all of them.
    pub fn add(&mut self, other: &Contention) {
        self.run_delay_ns = self.run_delay_ns.zip(other.run_delay_ns).map(|(a, b)| a + b);
        self.wall_ns += other.wall_ns;
        self.distorts |= other.distorts;
        self.gated &= other.gated;
    }
}
