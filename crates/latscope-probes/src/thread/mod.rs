//! What a thread costs: to create, start, end and join; by the standard
//! library; for a small task; and when there are more threads than CPUs.

mod life;
mod overhead;
mod pool;

use super::{Probe, words};
use latscope_bench::bench::Bench;
use latscope_bench::waits;
use latscope_os::sched;
use std::io;

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
    /// Where the threads run.
    enum Placement {
        /// On whichever allowed CPU the kernel chooses.
        Free = "free",
        /// All on one.
        SameCore = "same-core",
    }
}

impl Placement {
    /// What a title ends with.
    fn suffix(self) -> &'static str {
        match self {
            Placement::Free => "",
            Placement::SameCore => ", same core",
        }
    }
}

/// Lets the calling thread, and those it creates, run where `placement` says.
fn place(bench: &Bench, placement: Placement) -> io::Result<()> {
    let cpus = bench.cpus();
    sched::pin(if placement == Placement::SameCore { &cpus[..1] } else { cpus })
}

/// Threads that are asked how long they waited for a CPU.
const ASKED: usize = 15;

/// A shorter wait may be that for a CPU that idled, ns: a longer one is that for another thread to give it up.
const GIVEN_UP: u64 = 500_000;

/// Counts what new threads wait for a CPU among the waits of points. The threads of the samples are too short to be
/// asked: others are started beside them.
fn add_waits(bench: &mut Bench, points: &[usize]) {
    let wait = |_| std::thread::Builder::new().spawn(waits::own).ok()?.join().ok()?;
    let typical = typical_wait((0..ASKED).filter_map(wait).collect());
    points.iter().for_each(|point| bench.add_waits(*point, typical));
}

/// The median, as the figure of a row is one: a few threads that waited do not change it. 0 below [`GIVEN_UP`].
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
