//! Printing to standard error.

use crate::clean::{Sequences, clean};
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Function that changes each text before it is written; set once.
static FILTER: OnceLock<fn(&str) -> String> = OnceLock::new();

/// Has all that this process writes from now on changed by a function.
pub fn filter(change: fn(&str) -> String) {
    let _ = FILTER.set(change);
}

/// Prints a line on stderr. The macro of the standard library panics if stderr cannot be written.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::stderr::write(&format!("{}\n", format_args!($($text)*))) };
}

/// Prints a part of a line on stderr, without a line feed, like `eprintln`.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::stderr::write(&format!($($text)*)) };
}

/// Writes a text without characters that a terminal would obey. Errors are ignored: a closed stderr is no reason to
/// stop.
pub fn write(text: &str) {
    write_allowing(text, Sequences::None);
}

/// Writes a text that redraws its own line.
pub fn write_moving(text: &str) {
    write_allowing(text, Sequences::Movements);
}

fn write_allowing(text: &str, allowed: Sequences) {
    let text = FILTER.get().map_or(Cow::Borrowed(text), |change| Cow::Owned(change(text)));
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(clean(&text, allowed).as_bytes()).and_then(|()| stderr.flush());
}
