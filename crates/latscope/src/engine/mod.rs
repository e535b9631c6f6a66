//! The engine: turns a plan into a report. The coordinator (`runner`) starts a
//! worker for each step; inside of it `bench` and `sampler` measure, `gate`
//! judges each sample and `recorder` counts in shared memory.

pub mod bench;
pub mod blame;
pub mod collect;
pub mod gate;
#[cfg(test)]
pub mod harness;
pub mod link;
pub mod observers;
pub mod outliers;
pub mod planner;
pub mod protocol;
pub mod recorder;
pub mod runner;
pub mod sampler;
pub mod saver;
pub mod timebase;
pub mod timeline;
pub mod waits;
pub mod worker;
