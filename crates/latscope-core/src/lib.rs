//! The vocabulary of latscope: values, and functions of values.
//!
//! [Units](units), the [histogram](histogram::Histogram), the [plan](plan::Plan) of a run and its
//! [report](report::Report). Nothing here knows a kernel or a clock.
#![forbid(unsafe_code)]

pub mod account;
pub mod bounds;
pub mod catalogue;
pub mod events;
#[cfg(any(test, feature = "fixture"))]
#[doc(hidden)]
pub mod fixture;
pub mod footprint;
pub mod histogram;
pub mod json;
pub mod log_commands;
pub mod machine;
pub mod merged;
pub mod modes;
pub mod need;
pub mod ordered;
pub mod param;
pub mod plan;
pub mod quality;
pub mod redact;
pub mod report;
pub mod rounds;
pub mod schema;
pub mod statistics;
#[cfg(any(test, feature = "fixture"))]
#[doc(hidden)]
pub mod testing;
pub mod units;
pub mod value;
pub mod word;
