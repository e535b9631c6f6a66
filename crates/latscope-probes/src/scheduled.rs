//! Placement by the scheduler, for operations that are otherwise measured on one CPU.

use crate::prelude::*;
use std::io;

words! {
    /// Placement of threads and processes, if they are not all on one CPU.
    pub enum FreePlacement {
        /// Any allowed CPU, as the scheduler chooses.
        FreePlacement = "free",
    }
}

/// Lets the calling thread, and the threads and processes it starts, run on all allowed CPUs, or else on the
/// first of the step.
///
/// # Errors
/// The CPUs are refused.
pub fn apply_placement(bench: &Bench, placement: Option<FreePlacement>) -> io::Result<()> {
    sched::pin(if placement.is_some() { bench.allowed() } else { &bench.cpus()[..1] })
}

/// End of the title of a point.
pub fn suffix(placement: Option<FreePlacement>) -> &'static str {
    if placement.is_some() { ", placed by the scheduler" } else { "" }
}
