//! Conclusions over several points, in plain words and as numbers.
//!
//! A finding is made only of measurements that are in the report, and says
//! only what they show: a difference is called one when the confidence
//! intervals of the medians do not overlap, and where the expected effect is
//! absent the sentence says that instead. Each carries its numbers in
//! `values`, times in ns, sizes in bytes.

mod exchange;
mod memory;
mod noise;
mod run;
mod select;
mod storage;
mod transactions;

pub(crate) use memory::rounded;
pub use memory::{LevelRow, level_rows};

use crate::report::{Finding, Report};

/// The time a frame lasts on a screen that shows 60 a second, ns.
pub const FRAME_NS: f64 = 1e9 / 60.0;

/// All conclusions that a report supports: what the caches are, then what
/// hand-offs, threads and files cost, what is stolen, what priorities do, then what to know about the run itself.
pub fn findings(report: &Report) -> Vec<Finding> {
    let parts: [fn(&Report) -> Vec<Finding>; 6] = [
        memory::findings,
        exchange::findings,
        storage::findings,
        noise::findings,
        transactions::findings,
        run::findings,
    ];
    parts.iter().flat_map(|part| part(report)).collect()
}

/// A finding with its numbers.
fn finding(id: &str, text: String, values: &[(&str, f64)]) -> Finding {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Finding { id: id.to_owned(), text, values }
}

#[cfg(test)]
mod tests;
