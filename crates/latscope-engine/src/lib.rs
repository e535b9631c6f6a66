//! The engine: turns a request into a plan and a plan into a report. The coordinator (`runner`)
//! starts a worker for each step and listens to it; it never measures.
#![forbid(unsafe_code)]

pub mod blame;
pub mod collect;
pub mod criteria;
#[cfg(any(test, feature = "harness"))]
pub mod harness;
pub mod link;
pub mod observers;
pub mod outliers;
pub mod planner;
pub mod remaining;
pub mod runner;
pub mod saver;
mod stack;
pub mod timeline;
