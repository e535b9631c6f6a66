//! What a thread costs: to create, start, end and join; by the standard
//! library; for a small task; and when there are more threads than CPUs.

mod life;
mod overhead;
mod pool;

use super::{Kind, Param, Probe};
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

/// The parameter that says where the threads run.
const PLACEMENT: Param = Param {
    name: "placement",
    help: "Where the threads run: on whichever allowed CPU the kernel chooses, as in most programs, or all on one.",
    kind: Kind::Choice(&["free", "same-core"]),
    axis: false,
};

/// Lets the calling thread, and those it creates, run where `placement` says.
///
/// # Errors
/// The CPUs are refused.
fn place(bench: &Bench, placement: &str) -> io::Result<()> {
    let cpus = bench.cpus();
    sched::pin(if placement == "same-core" { &cpus[..1] } else { cpus })
}
