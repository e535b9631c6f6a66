//! Costs of a thread: creation, start, end and join; by the standard library; for a small task; and with more
//! threads than CPUs.

mod figures;
mod life;
mod overhead;
mod pool;

use super::{Family, FamilyFacts};
use crate::prelude::*;
use latscope_bench::waits;
use std::io;

/// The family of lives of threads.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "thread",
        about: "Threads: create, start, end, join; pools larger than the machine",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::Virtualisation,
            Condition::CallFilter,
            Condition::Mitigations,
            Condition::ClockSource,
            Condition::UnaskedHugePages,
            Condition::WakeUp,
            Condition::Fairness,
            Condition::Tick,
        ],
        curves: figures::CURVES,
        bars: figures::BARS,
        on_time_line: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &life::CREATE,
    &life::START,
    &life::END,
    &life::JOIN,
    &life::TOTAL,
    &overhead::STD,
    &overhead::OVERHEAD,
    &pool::POOL,
];

words! {
    /// Placement of the threads.
    enum ThreadPlacement {
        /// Any allowed CPU, as the kernel chooses.
        Free = "free",
        /// All on the same CPU.
        SameCore = "same-core",
    }
}

impl ThreadPlacement {
    /// End of a point's title.
    fn suffix(self) -> &'static str {
        match self {
            ThreadPlacement::Free => "",
            ThreadPlacement::SameCore => ", same core",
        }
    }
}

/// Lets the calling thread, and the threads it creates, run on the CPUs of `placement`.
fn pin_to_placement(bench: &Bench, placement: ThreadPlacement) -> io::Result<()> {
    let cpus = bench.cpus();
    sched::pin(if placement == ThreadPlacement::SameCore { &cpus[..1] } else { cpus })
}

/// Number of threads whose waits for a CPU are read.
const ASKED: usize = 15;

/// Shortest wait that counts, ns: a shorter wait may be for a CPU that idled, a longer wait is for another
/// thread to give up the CPU.
const GIVEN_UP: u64 = 500_000;

/// Adds the time that new threads wait for a CPU to the waits of points. The threads of the samples are too
/// short for a reading: others are started beside them.
fn add_waits(bench: &mut Bench, points: &[usize]) {
    let wait = |_| std::thread::Builder::new().spawn(waits::own_run_delay).ok()?.join().ok()?;
    let typical = typical_wait((0..ASKED).filter_map(wait).collect());
    points.iter().for_each(|point| bench.add_waits(*point, typical));
}

/// Returns the median, as in the figure of a row: a few threads that waited do not change it. 0 below
/// [`GIVEN_UP`].
fn typical_wait(mut waits: Vec<u64>) -> u64 {
    waits.sort_unstable();
    waits.get(waits.len() / 2).copied().filter(|ns| *ns > GIVEN_UP).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_where_most_threads_wait_for_another_to_give_up_its_cpu() {
        assert_eq!(typical_wait(vec![4_000_000, 20_000, 3_900_000]), 3_900_000);
        assert_eq!(typical_wait(vec![20_000, 4_000_000, 30_000]), 0);
        assert_eq!(typical_wait(Vec::new()), 0);
    }
}
