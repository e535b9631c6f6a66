//! Printing to standard error.

use crate::clean::{Sequences, clean};
use crate::output::is_writable;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    let _ = Stderr.write_all(clean(&text, allowed).as_bytes());
}

/// Standard error, without a wait for a reader that takes nothing: what it would hold up is worth more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stderr;

/// Time in which a reader takes something.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of one write, which a pipe takes at once if it takes any (`PIPE_BUF`).
const PIECE: usize = 4096;

/// True while the reader takes nothing.
static IS_FULL: AtomicBool = AtomicBool::new(false);

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience = if IS_FULL.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
        let takes = is_writable(rustix::stdio::stderr(), patience)?;
        IS_FULL.store(!takes, Ordering::Relaxed);
        if !takes {
            return Err(ErrorKind::TimedOut.into());
        }
        io::stderr().write(&bytes[..bytes.len().min(PIECE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
