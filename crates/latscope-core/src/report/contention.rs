//! Time that measuring threads waited for a CPU.

use super::Account;
use crate::units::format_share;
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
    /// Time of all measuring threads, ns, of which they waited for `run_delay_ns`: of two threads twice `wall_ns`.
    /// Absent where the threads take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_ns: Option<u64>,
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
    /// Share of the time of the measuring threads in which they waited for a CPU, 0 to 1.
    pub fn waited(&self) -> Option<f64> {
        let time = self.threads_ns.unwrap_or(self.wall_ns).max(1);
        // Threads that take turns may both wait for a moment.
        Some((self.run_delay_ns? as f64 / time as f64).min(1.0))
    }

    /// Returns how long the threads waited, and of what: `48 % of their time`.
    pub(crate) fn format_waiting(&self) -> String {
        let share = format_share(self.waited().unwrap_or(0.0));
        match self.threads_ns {
            Some(_) => format!("{share} of their time"),
            None => format!("{share} of the time in which it was measured"),
        }
    }

    /// Returns true if others explain a part of the figure that matters. Beside a load that used more, they do not: the
    /// load was requested.
    pub(crate) fn explains(&self, account: &Account) -> bool {
        // One thread that waits holds up all: the share is of the time that the point took.
        let limit = WAITING_MATTERS * self.wall_ns.max(1) as f64;
        let waited = self.run_delay_ns.is_some_and(|delay| delay as f64 >= limit);
        let others = account.others >= OTHERS_MATTER && account.others > account.load.unwrap_or(0.0);
        self.distorts && waited && others
    }

    /// Adds that of a later round, or of another thread or pair: the time is then that of all of them.
    pub fn add_later(&mut self, other: &Contention) {
        self.run_delay_ns = self.run_delay_ns.zip(other.run_delay_ns).map(|(a, b)| a + b);
        // If the sides take turns, their time is the wall's.
        if self.threads_ns.is_some() || other.threads_ns.is_some() {
            let [mine, its] = [&*self, other].map(|one| one.threads_ns.unwrap_or(one.wall_ns));
            self.threads_ns = Some(mine + its);
        }
        self.wall_ns += other.wall_ns;
        self.distorts |= other.distorts;
        self.gated &= other.gated;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_several_threads_is_of_their_time() {
        let two = Contention {
            wall_ns: 1_000_000_000,
            run_delay_ns: Some(1_200_000_000),
            threads_ns: Some(2_000_000_000),
            ..Contention::default()
        };
        assert_eq!((two.waited(), two.format_waiting().as_str()), (Some(0.6), "60 % of their time"));
        let one =
            Contention { run_delay_ns: Some(300_000_000), threads_ns: Some(1_000_000_000), ..two.clone() };
        let mut all = two.clone();
        all.add_later(&one);
        assert_eq!((all.waited(), all.wall_ns), (Some(0.5), 2_000_000_000));
        let in_turns = Contention { run_delay_ns: Some(480_000_000), threads_ns: None, ..two };
        assert_eq!(in_turns.format_waiting(), "48 % of the time in which it was measured");
    }
}
