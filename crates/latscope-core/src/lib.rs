//! The pure part of latscope: it knows no kernel and no clock.
//!
//! Everything here is a value or a function of values: [units], the
//! [histogram](histogram::Histogram), the [plan](plan::Plan) of a run, its
//! [report](report::Report), the conclusions drawn from it
//! ([findings], [levels]) and the ways to show it ([views]).
#![forbid(unsafe_code)]

pub mod binomial;
pub mod blame;
mod bounds;
pub mod devices;
pub mod doctor;
pub mod events;
pub mod extremes;
pub mod figure;
pub mod findings;
#[cfg(any(test, feature = "fixture"))]
#[doc(hidden)]
pub mod fixture;
pub mod histogram;
pub mod json;
pub mod levels;
pub mod machine;
pub mod plan;
pub mod published;
pub mod quality;
pub mod repeatability;
pub mod report;
pub mod rounds;
pub mod statistics;
#[cfg(test)]
mod testing;
pub mod timeline;
pub mod trace;
pub mod transactions;
pub mod units;
pub mod verdict;
pub mod views;
