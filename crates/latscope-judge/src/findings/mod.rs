//! Conclusions over several points, in plain words and as numbers.
//!
//! A finding uses only measurements that are in the report, and states only what they show: `evidence` builds every
//! finding and decides what the figures support. Two figures differ if the intervals are apart in which the next run's
//! figures are expected. A statement that the figures do not support is worded as doubt, or left out. Each finding
//! carries its numbers in `values`, times in ns, sizes in bytes, and its measurements in `evidence`.

mod addresses;
mod caches;
pub(crate) mod evidence;
mod exchange;
mod memory;
mod nodes;
mod noise;
mod odd;
mod run;
mod select;
mod storage;
mod transactions;

pub use caches::{LevelRow, level_rows};

use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::report::{Finding, Report};

/// The time a frame lasts on a screen that shows 60 a second, ns.
pub const FRAME_NS: f64 = 1e9 / 60.0;

/// Doubt of a run without an account, or too short for one.
const NOT_KNOWN: &str = "whether the machine was quiet is not known";

/// All conclusions that a report supports: loops with two modes, the caches, then the cost of hand-offs, threads and
/// files, stolen time, priorities, what is odd, then facts about the run itself.
pub fn collect_findings(report: &Report, catalogue: &ProbeCatalogue) -> Vec<Finding> {
    let parts: [fn(&Report) -> Vec<Finding>; 9] = [
        addresses::findings,
        caches::findings,
        memory::findings,
        nodes::findings,
        exchange::findings,
        storage::findings,
        noise::findings,
        transactions::findings,
        odd::findings,
    ];
    parts.iter().flat_map(|part| part(report)).chain(run::findings(report, catalogue)).collect()
}

#[cfg(test)]
mod tests;
