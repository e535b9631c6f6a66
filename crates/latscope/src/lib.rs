//! The latscope command, as a library: arguments become a request, request and
//! machine a plan, the plan a report, and the report what is shown.
#![forbid(unsafe_code)]

/// A line on stderr. The macro of the standard library panics where stderr cannot be written.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// The same for a part of a line.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

pub mod cli;
pub mod compat;
pub mod conditions;
pub mod engine;
pub mod exchange;
pub mod machine;
pub mod probe;
#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;
pub mod stdout;
