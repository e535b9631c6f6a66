//! What a thread costs: to create, start, end and join; by the standard
//! library; for a small task; and when there are more threads than CPUs.

mod life;
mod overhead;
mod pool;

use super::{Probe, words};
use latscope_bench::bench::Bench;
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
