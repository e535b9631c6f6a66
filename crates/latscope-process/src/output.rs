//! Output to a pipe or terminal whose reader may stand still. It is waited for, but never deaf to a signal.

use crate::halted::is_halted;
use crate::openers;
use latscope_os::signal::{self, TERMINATION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of one write: as many as a pipe takes without a wait if it takes any (`PIPE_BUF`).
const PIECE: usize = 4096;

/// Time between two looks at signals and at the reader.
const LOOK: Duration = Duration::from_millis(100);

/// Time for which a reader that stands still is waited for, and any reader once the run is to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// True once a signal asked for the end of the run.
static HURRIES: AtomicBool = AtomicBool::new(false);

/// Has output no longer wait for readers: a signal asked for the end of the run.
pub fn stop_waiting() {
    HURRIES.store(true, Ordering::Relaxed);
}

/// Descriptor whose writes wait for its reader, and end by a signal or if the reader stands still.
#[derive(Debug)]
pub struct BlockingOutput<T>(pub T);

impl<T: AsFd> Write for BlockingOutput<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        wait_writable(&self.0)?;
        Ok(rustix::io::write(&self.0, &bytes[..bytes.len().min(PIECE)])?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true if a descriptor takes bytes within a time.
pub(crate) fn is_writable(to: impl AsFd, time: Duration) -> io::Result<bool> {
    let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&to, PollFlags::OUT)], Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a descriptor takes bytes.
fn wait_writable(to: impl AsFd) -> io::Result<()> {
    let began = Instant::now();
    while !is_writable(&to, LOOK)? {
        let waited = began.elapsed() >= PATIENCE;
        if signal::pending(&TERMINATION).is_some() || waited && HURRIES.load(Ordering::Relaxed) {
            return Err(unread("its reader takes nothing"));
        }
        if waited && let Some(readers) = halted_readers(&to) {
            return Err(unread(&format!("it is read by {readers}, which stands still")));
        }
    }
    Ok(())
}

fn unread(why: &str) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, why)
}

/// Readers of a pipe in words, if all of them stand still.
fn halted_readers(to: impl AsFd) -> Option<String> {
    let readers = openers::readers(to.as_fd().as_raw_fd());
    readers.iter().all(|pid| is_halted(*pid)).then(|| openers::name_processes(&readers)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_stopped_reader_is_named_and_one_that_reads_gets_all() {
        for stops in [false, true] {
            let script = if stops { "kill -STOP $$; cat" } else { "wc -c" };
            let mut command = Command::new("sh");
            let command = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut reader = command.spawn().unwrap();
            let name = format!("it is read by sh (pid {}), which stands still", reader.id());
            let mut output = BlockingOutput(reader.stdin.take().unwrap());
            let written = output.write_all(&[b'x'; 1 << 20]);
            drop(output);
            if stops {
                assert_eq!(written.unwrap_err().to_string(), name);
                reader.kill().unwrap();
            }
            let read = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
            assert_eq!(read.trim(), if stops { "" } else { "1048576" });
        }
    }
}
