//! The latscope command, as a library: arguments become a request, request and
//! machine a plan, the plan a report, and the report what is shown.
#![forbid(unsafe_code)]

pub mod cli;
pub mod compat;
pub mod conditions;
pub mod engine;
pub mod exchange;
pub mod machine;
pub mod probe;
