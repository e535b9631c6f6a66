//! Printing to standard output. A failure to write there is an error of the whole run, in any part of it, except if the
//! reader closed its end.

use crate::clean::{Sequences, clean, for_terminal};
use crate::output::BlockingOutput;
use crate::terminal;
use latscope_core::log_commands;
use rustix::io::Errno;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Failure of a reader that takes nothing.
static UNREAD: OnceLock<String> = OnceLock::new();

/// The first failure, as the kernel's error number.
static FAILED: Mutex<Option<i32>> = Mutex::new(None);

/// Standard output, whose failures are remembered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        remember_failure(
            check_open().and_then(|()| LINES.lock().unwrap_or_else(PoisonError::into_inner).add_bytes(bytes)),
        )
    }

    fn flush(&mut self) -> io::Result<()> {
        remember_failure(
            check_open().and_then(|()| LINES.lock().unwrap_or_else(PoisonError::into_inner).flush()),
        )
    }
}

/// Lines that are written as soon as they are complete.
struct Lines(Vec<u8>);

static LINES: Mutex<Lines> = Mutex::new(Lines(Vec::new()));

impl Lines {
    fn add_bytes(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes);
        if bytes.contains(&b'\n') {
            self.flush()?
        }
        Ok(bytes.len())
    }

    /// Writes all bytes. Those that a reader does not take are lost: it would be waited for once more with each line.
    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.0);
        match unread() {
            None => BlockingOutput(rustix::stdio::stdout()).write_all(&bytes),
            Some(error) => Err(error),
        }
    }
}

/// Failure since the reader takes nothing, if there was one.
fn unread() -> Option<io::Error> {
    UNREAD.get().map(|why| io::Error::new(ErrorKind::TimedOut, why.clone()))
}

/// Checks that stdout is open: the runtime silently discards output to a closed one.
fn check_open() -> io::Result<()> {
    if latscope_os::stdio::stdout_was_closed() { Err(Errno::BADF.into()) } else { Ok(()) }
}

fn remember_failure<T>(outcome: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &outcome
        && error.kind() == ErrorKind::TimedOut
    {
        let _ = UNREAD.set(error.to_string());
    } else if let Err(error) = &outcome
        && error.kind() != ErrorKind::BrokenPipe
    {
        let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()));
    }
    outcome
}

/// The first failure to write, except that a reader closed its end.
pub fn failure() -> Option<io::Error> {
    let failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    failed.map(io::Error::from_raw_os_error).or_else(unread).map(add_stdout_name)
}

/// Writes a text for people at once, without characters that a terminal would obey.
///
/// # Errors
/// The text cannot be written.
pub fn write_text(text: &str) -> io::Result<()> {
    write_data(clean(text, Sequences::None).as_bytes())
}

/// Writes data for a program unchanged; to a terminal, without characters that it would obey.
///
/// # Errors
/// The data cannot be written.
pub fn write_data(data: &[u8]) -> io::Result<()> {
    let shown = io::stdout().is_terminal().then(|| String::from_utf8_lossy(data).into_owned());
    let shown = shown.map(|text| for_terminal(&text, Sequences::Movements).into_owned());
    let data = shown.as_ref().map_or(data, String::as_bytes);
    Stdout.write_all(data).and_then(|()| Stdout.flush()).map_err(add_stdout_name)
}

/// Writes a view as a file of text, such as a page or a table, of which another program may read each byte: only
/// [commands](log_commands) that texts of others have for a service that keeps the log are broken.
///
/// # Errors
/// The view cannot be written.
pub fn write_view(view: &[u8]) -> io::Result<()> {
    match str::from_utf8(view) {
        Ok(text) if log_commands::may_be_in(text) => {
            let lines = text.split_inclusive('\n').map(|line| log_commands::break_commands(line.to_owned()));
            write_data(lines.collect::<String>().as_bytes())
        }
        _ => write_data(view),
    }
}

/// Returns the error with the name of stdout added.
fn add_stdout_name(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to stdout: {error}"))
}

/// Disables colours on dumb terminals, unless `CLICOLOR_FORCE` requests them. Without this, a `CI` in the environment
/// enables them again, since the logs of CI services show colours.
pub fn spare_dumb_terminals() {
    let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    if terminal::is_dumb() && !is_forced {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Writes a text, without its colours if stdout is no terminal, or `NO_COLOR` is set.
///
/// # Errors
/// The text cannot be written.
pub fn write_styled(text: &str) -> io::Result<()> {
    match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => write_text(&anstream::adapter::strip_str(text).to_string()),
        _ => write_data(clean(text, Sequences::Colours).as_bytes()),
    }
}

/// Prints for a program that continues after a failure; [`failure`] returns it in the end.
pub fn print_text(text: &str) {
    let _ = write_data(clean(text, Sequences::Movements).as_bytes());
}
