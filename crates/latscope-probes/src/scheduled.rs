//! Placement by the scheduler, for what is otherwise measured on one CPU.

use crate::words;
use latscope_bench::bench::Bench;
use latscope_os::sched;
use std::io;

words! {
    /// Where threads and processes run, if not all on one CPU.
    pub enum Free {
        /// Where the scheduler puts them.
        Free = "free",
    }
}

/// Lets the calling thread, and what it starts, run on all allowed CPUs, or else on the first of the step.
///
/// # Errors
/// The CPUs are refused.
pub fn place(bench: &Bench, placement: Option<Free>) -> io::Result<()> {
    sched::pin(if placement.is_some() { bench.allowed() } else { &bench.cpus()[..1] })
}

/// End of the title of a point.
pub fn suffix(placement: Option<Free>) -> &'static str {
    if placement.is_some() { ", placed by the scheduler" } else { "" }
}
