//! The processes of a run: this program's binary again, in the role that its first argument names.
//!
//! A process that gets more than its arguments has a socket to the process that started it, its first inherited
//! descriptor. JSON values go over it, one a line: the orders first, then the messages of each side.

use anyhow::{Context, Result, anyhow};
use latscope_os::worker::{self, Lifetime, take_descriptor};
use latscope_os::{sched, signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// Role of a process of a run.
#[derive(Debug, Clone, Copy)]
pub struct ProcessRole {
    /// The first argument of the process.
    pub name: &'static str,
    /// True if signals of termination end the process. Usually it ends with the coordinator, which decides when a
    /// termination is requested.
    pub terminates: bool,
    /// Main function of the role, which gets the other arguments.
    pub main: fn(&[String]) -> Result<()>,
}

impl ProcessRole {
    /// Runs the calling process in this role.
    ///
    /// # Errors
    /// The errors of the main function.
    pub fn run_role(&self, arguments: &[String]) -> Result<()> {
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
pub fn start_process(
    arguments: &[&str],
    descriptors: &[&OwnedFd],
    lifetime: Lifetime,
) -> io::Result<(Child, MessageSocket)> {
    let (local, peer) = UnixStream::pair()?;
    let peer = OwnedFd::from(peer);
    let all: Vec<&OwnedFd> = [&peer].into_iter().chain(descriptors.iter().copied()).collect();
    Ok((worker::spawn(arguments, &all, lifetime)?, MessageSocket::from_stream(local)))
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
pub struct MessageSocket {
    socket: UnixStream,
    /// Bytes of the messages that are not yet taken.
    received: Vec<u8>,
}

/// Result of one read from the socket.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageRead<T> {
    /// A whole message, parsed from its line.
    Message(T),
    /// No whole message yet.
    Partial,
    /// The other process has ended, or the timeout has passed.
    Ended,
}

impl MessageSocket {
    fn from_stream(socket: UnixStream) -> MessageSocket {
        MessageSocket { socket, received: Vec::new() }
    }

    /// Opens the socket to the process that started this one.
    ///
    /// # Errors
    /// This process was not started by [`start_process`].
    pub fn inherited() -> io::Result<MessageSocket> {
        Ok(MessageSocket::from_stream(UnixStream::from(take_descriptor(0)?)))
    }

    /// Sends a message as a line of JSON.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn send_message(&mut self, message: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        self.socket.write_all(line.as_bytes())
    }

    /// Limits the wait for a message.
    ///
    /// # Errors
    /// The timeout is zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    /// Waits for the next message; `None` if the other process has ended, or the timeout has passed.
    ///
    /// # Errors
    /// The line is no such message, or cannot be read although the other process exists.
    pub fn receive_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        loop {
            match self.read_message()? {
                MessageRead::Message(message) => return Ok(Some(message)),
                MessageRead::Partial => {}
                MessageRead::Ended => return Ok(None),
            }
        }
    }

    /// Reads once, unless a whole message was received already. The beginning of a message is kept for the next call,
    /// so that a caller who polls never waits for a process that gets no CPU in the middle of one.
    ///
    /// # Errors
    /// The errors of [`receive_message`](MessageSocket::receive_message).
    pub fn read_message<T: DeserializeOwned>(&mut self) -> Result<MessageRead<T>> {
        const UNREADABLE: &str = "what a process of this run says cannot be read";
        if !self.has_message() {
            let mut bytes = [0; 1 << 14];
            match self.socket.read(&mut bytes) {
                // Bytes without an end of line are the last of a process that died at it.
                Ok(0) => return Ok(MessageRead::Ended),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A process that dies with messages unread resets its socket.
                Err(error) if is_over(&error) || error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(MessageRead::Ended);
                }
                Err(error) => return Err(error).context(UNREADABLE),
            }
        }
        let Some(end) = self.received.iter().position(|byte| *byte == b'\n') else {
            return Ok(MessageRead::Partial);
        };
        let line: Vec<u8> = self.received.drain(..=end).collect();
        let line = std::str::from_utf8(&line).context(UNREADABLE)?;
        Ok(MessageRead::Message(serde_json::from_str(line)?))
    }

    /// Waits for a message for at most this time. Returns true if there is one, or the other process has ended.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn is_ready(&self, time: Duration) -> io::Result<bool> {
        let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&time)) {
            _ if self.has_message() => Ok(true),
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if a whole message was received that is not yet taken.
    pub fn has_message(&self) -> bool {
        self.received.contains(&b'\n')
    }

    /// Answers orders with their result, or the reason why they could not be carried out.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn send_answer<T: Serialize>(&mut self, result: &Result<T>) -> io::Result<()> {
        self.send_message(&result.as_ref().map_err(|error| format!("{error:#}")))
    }

    /// Waits for the [`send_answer`](MessageSocket::send_answer), at most for `timeout`; `None` if the other process
    /// has ended or does not answer.
    ///
    /// # Errors
    /// The process could not carry out its orders.
    pub fn receive_answer<T: DeserializeOwned>(&mut self, timeout: Option<Duration>) -> Result<Option<T>> {
        self.set_timeout(timeout)?;
        let answer: Option<Result<T, String>> = self.receive_message()?;
        self.set_timeout(None)?;
        answer.transpose().map_err(|text| anyhow!(text))
    }
}

impl AsFd for MessageSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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
        reap(&mut self.0);
    }
}

/// Time for which a process that was killed is waited for.
const REAPED_WITHIN: Duration = Duration::from_secs(1);

/// Waits for the end of a process that was killed. One that gets no CPU cannot even die: it is moved to the CPU of the
/// caller. One that is frozen dies when it goes on.
pub(crate) fn reap(child: &mut Child) {
    let began = Instant::now();
    let mut moved = false;
    while matches!(child.try_wait(), Ok(None)) && began.elapsed() < REAPED_WITHIN {
        if !moved && began.elapsed() > REAPED_WITHIN / 10 {
            moved = true;
            move_here(child.id());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets the threads of a process run on the CPU of the caller, which the caller has.
fn move_here(pid: u32) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()) {
        let _ = sched::pin_thread(thread, &[rustix::thread::sched_getcpu() as u32]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn after(bytes: &[u8], ends: bool) -> (MessageSocket, Option<UnixStream>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(bytes).unwrap();
        (MessageSocket::from_stream(ours), Some(theirs).filter(|_| !ends))
    }

    #[test]
    fn only_an_end_is_taken_for_one() {
        let (mut whole, _open) = after(b"7\n", false);
        assert_eq!(whole.receive_message::<u32>().unwrap(), Some(7));
        whole.set_timeout(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(whole.receive_message::<u32>().unwrap(), None, "time is over");
        for bytes in [&b""[..], b"{\"cut"] {
            assert_eq!(after(bytes, true).0.receive_message::<u32>().unwrap(), None, "it ended");
        }
        let (mut odd, _open) = after(b"\xff\n", false);
        let error = odd.receive_message::<u32>().unwrap_err();
        assert!(format!("{error:#}").contains("cannot be read"), "{error:#}");
        assert!(after(b"word\n", true).0.receive_message::<u32>().is_err());
        // It dies with what we sent unread.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut messages = MessageSocket::from_stream(ours);
        messages.send_message(&1).unwrap();
        drop(theirs);
        assert_eq!(messages.receive_message::<u32>().unwrap(), None);
    }
    #[test]
    fn half_a_message_is_kept_and_not_waited_for() {
        let (mut messages, peer) = after(b"1\n{\"x\"", false);
        assert_eq!(messages.read_message::<u32>().unwrap(), MessageRead::Message(1));
        assert!(!messages.has_message());
        let mut peer = peer.unwrap();
        peer.write_all(b":2").unwrap();
        assert_eq!(messages.read_message::<BTreeMap<String, u32>>().unwrap(), MessageRead::Partial);
        messages.set_timeout(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(messages.receive_message::<BTreeMap<String, u32>>().unwrap(), None, "time is over");
        peer.write_all(b"}\n3\n").unwrap();
        let expected = BTreeMap::from([("x".to_owned(), 2)]);
        assert_eq!(messages.receive_message().unwrap(), Some(expected));
        assert_eq!(messages.receive_message::<u32>().unwrap(), Some(3));
    }
}
