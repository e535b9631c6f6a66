//! The processes of a run: this program's binary again, in the role that its first argument names.
//!
//! A process that gets more than its arguments has a socket to the process that started it, its first inherited
//! descriptor. JSON values go over it, one a line: the orders first, then the messages of each side.

use anyhow::{Context, Result, anyhow};
use latscope_os::signal;
use latscope_os::worker::{self, Lifetime, inherited};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;

/// Role of a process of a run.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// The first argument of the process.
    pub name: &'static str,
    /// True if signals of termination end the process. Usually it ends with the coordinator, which decides when a
    /// termination is requested.
    pub terminates: bool,
    /// Main function of the role, which gets the other arguments.
    pub main: fn(&[String]) -> Result<()>,
}

impl Role {
    /// Runs the calling process in this role.
    ///
    /// # Errors
    /// The errors of the main function.
    pub fn run(&self, arguments: &[String]) -> Result<()> {
        // Started as /proc/self/exe, it would be seen as `exe` by others.
        let _ = rustix::thread::set_name(c"latscope");
        if !self.terminates {
            for number in signal::TERMINATION {
                signal::ignore(number);
            }
        }
        (self.main)(arguments)
    }
}

/// Starts a process with its role as the first argument and a socket to this process before the descriptors.
///
/// # Errors
/// No sockets or no process can be created.
pub fn start(
    arguments: &[&str],
    descriptors: &[&OwnedFd],
    lifetime: Lifetime,
) -> io::Result<(Child, Messages)> {
    let (local, peer) = UnixStream::pair()?;
    let peer = OwnedFd::from(peer);
    let all: Vec<&OwnedFd> = [&peer].into_iter().chain(descriptors.iter().copied()).collect();
    Ok((worker::spawn(arguments, &all, lifetime)?, Messages(BufReader::new(local))))
}

/// Checks, before a run measures, that it can have the sockets to its processes.
///
/// # Errors
/// The kernel, or a seccomp filter, refuses them.
pub fn check_sockets() -> Result<()> {
    UnixStream::pair().map(drop).context("the sockets to the processes of a run cannot be made")
}

/// The socket between two processes of a run.
#[derive(Debug)]
pub struct Messages(BufReader<UnixStream>);

impl Messages {
    /// Opens the socket to the process that started this one.
    ///
    /// # Errors
    /// This process was not started by [`start`].
    pub fn inherited() -> io::Result<Messages> {
        Ok(Messages(BufReader::new(UnixStream::from(inherited(0)?))))
    }

    /// Sends a message as a line of JSON.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        self.0.get_mut().write_all(line.as_bytes())
    }

    /// Limits the wait for a message.
    ///
    /// # Errors
    /// The timeout is zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.get_ref().set_read_timeout(timeout)
    }

    /// Waits for the next message; `None` if the other process has ended, or the timeout has passed.
    ///
    /// # Errors
    /// The line is no such message, or cannot be read although the other process exists.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            // Without its end it is the last of a process that died at it.
            Ok(_) if !line.ends_with('\n') => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
            // A process that dies with messages unread resets its socket.
            Err(error) if is_over(&error) || error.kind() == ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error).context("what a process of this run says cannot be read"),
        }
    }

    /// Returns true if a message, or the begin of one, was received already.
    pub fn is_buffered(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    /// Answers orders with their result, or the reason why they could not be carried out.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn answer<T: Serialize>(&mut self, result: &Result<T>) -> io::Result<()> {
        self.send(&result.as_ref().map_err(|error| format!("{error:#}")))
    }

    /// Waits for the [`answer`](Messages::answer), at most for `timeout`; `None` if the other process has ended or does
    /// not answer.
    ///
    /// # Errors
    /// The process could not carry out its orders.
    pub fn answered<T: DeserializeOwned>(&mut self, timeout: Option<Duration>) -> Result<Option<T>> {
        self.set_timeout(timeout)?;
        let answer: Option<Result<T, String>> = self.receive()?;
        self.set_timeout(None)?;
        answer.transpose().map_err(|text| anyhow!(text))
    }
}

impl AsFd for Messages {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

/// Returns true if the timeout of a read has passed.
fn is_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8], ends: bool) -> (Messages, Option<UnixStream>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(bytes).unwrap();
        (Messages(BufReader::new(ours)), Some(theirs).filter(|_| !ends))
    }

    #[test]
    fn only_an_end_is_taken_for_one() {
        let (mut whole, _open) = after(b"7\n", false);
        assert_eq!(whole.receive::<u32>().unwrap(), Some(7));
        whole.set_timeout(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(whole.receive::<u32>().unwrap(), None, "time is over");
        for bytes in [&b""[..], b"{\"cut"] {
            assert_eq!(after(bytes, true).0.receive::<u32>().unwrap(), None, "it ended");
        }
        let (mut odd, _open) = after(b"\xff\n", false);
        let error = odd.receive::<u32>().unwrap_err();
        assert!(format!("{error:#}").contains("cannot be read"), "{error:#}");
        assert!(after(b"word\n", true).0.receive::<u32>().is_err());
        // It dies with what we sent unread.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut messages = Messages(BufReader::new(ours));
        messages.send(&1).unwrap();
        drop(theirs);
        assert_eq!(messages.receive::<u32>().unwrap(), None);
    }
}
