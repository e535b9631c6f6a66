//! The latscope command, as a library: arguments become a request, request and
//! machine a plan, the plan a report, and the report what is shown.
#![forbid(unsafe_code)]

pub mod cli;
