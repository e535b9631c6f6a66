//! Conclusions over several points, in plain words and as numbers.
//!
//! A finding is made only of measurements that are in the report, and says
//! only what they show: every one goes through `evidence`, which knows what
//! figures support. A difference is called one where the intervals are apart in which
//! the next run's figures are expected; what figures do not support is worded
//! as doubt, or not said. Each carries its numbers in `values`, times in ns,
//! sizes in bytes, and what it rests on in `evidence`.

mod caches;
pub(crate) mod evidence;
mod exchange;
mod memory;
mod noise;
mod run;
mod select;
mod storage;
mod transactions;

pub use caches::{LevelRow, level_rows};
pub use select::is_operation;

use latscope_core::report::{Finding, Report};

/// The time a frame lasts on a screen that shows 60 a second, ns.
pub const FRAME_NS: f64 = 1e9 / 60.0;

/// All conclusions that a report supports: what the caches are, then what
/// hand-offs, threads and files cost, what is stolen, what priorities do, then what to know about the run itself.
pub fn findings(report: &Report) -> Vec<Finding> {
    let parts: [fn(&Report) -> Vec<Finding>; 7] = [
        caches::findings,
        memory::findings,
        exchange::findings,
        storage::findings,
        noise::findings,
        transactions::findings,
        run::findings,
    ];
    parts.iter().flat_map(|part| part(report)).collect()
}

#[cfg(test)]
mod tests;
