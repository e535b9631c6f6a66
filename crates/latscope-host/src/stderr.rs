//! Standard error.

/// A line on stderr. The macro of the standard library panics where stderr cannot be written.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// The same for a part of a line.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}
