//! Groups of processes or threads that send messages to each other: hackbench's load. In a group each sender sends to
//! every receiver.

use anyhow::{Context, Result, bail};
use latscope_core::units::format_count;
use latscope_machine::{TaskLimit, more_tasks};
use latscope_os::child::{Talk, Talkers};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Transport of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageGroupTransport {
    /// Pairs of Unix stream sockets.
    Socket,
    /// Pipes, from senders to receivers.
    Pipe,
    /// TCP connections over loopback.
    Tcp,
}

/// Message groups to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageGroups {
    /// Number of groups to make.
    pub groups: u64,
    /// Number of senders of a group, and of its receivers.
    pub size: u64,
    /// Number of messages from each sender to each receiver; `u64::MAX` for no end.
    pub messages: u64,
    /// Size of a message, in bytes.
    pub bytes: usize,
    /// Transport of the messages.
    pub wire: MessageGroupTransport,
    /// True for threads instead of processes.
    pub threads: bool,
}

/// Message groups that wait for their start.
pub struct Gathered {
    processes: Talkers,
    threads: u64,
    done: Receiver<io::Result<()>>,
    start: OwnedFd,
}

/// Descriptors of this process that are no message's.
const OTHER_FILES: u64 = 16;

/// Stack of a thread, in bytes: small, as it only makes system calls.
const STACK_BYTES: usize = 64 << 10;

/// Raises the limit of descriptors of this process to the permitted maximum: groups of threads need all descriptors in
/// one process.
pub fn open_many() {
    let files = getrlimit(Resource::Nofile);
    // Where they do not suffice, that is reported when one is wanted.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
}

/// Values that all senders and receivers share.
#[derive(Clone)]
struct MessageGroupContext {
    ready: Arc<OwnedFd>,
    start: Arc<OwnedFd>,
    bytes: usize,
    outcomes: Sender<io::Result<()>>,
}

/// Role of a sender or receiver.
struct MessageGroupMember {
    ends: Arc<Vec<OwnedFd>>,
    sends: bool,
    messages: u64,
}

impl MessageGroups {
    /// Starts all senders and receivers; none sends yet.
    ///
    /// # Errors
    /// The system has no more processes, threads or descriptors.
    pub fn gather(&self) -> Result<Gathered> {
        self.check_limits()?;
        let (all_ready, ready) = pipe_with(PipeFlags::CLOEXEC)?;
        let (wait, start) = pipe_with(PipeFlags::CLOEXEC)?;
        let (outcomes, done) = channel();
        let common =
            MessageGroupContext { ready: ready.into(), start: wait.into(), bytes: self.bytes, outcomes };
        let mut gathered = Gathered { processes: Talkers::default(), threads: 0, done, start };
        for _ in 0..self.groups {
            // A group's descriptors are closed here before the next one's are opened.
            for role in self.group().context("no descriptors for a group (raise `ulimit -n`)")? {
                if self.threads {
                    common.thread(role).with_context(|| self.exhaustion_text(gathered.member_count()))?;
                    gathered.threads += 1;
                } else {
                    let added = gathered.processes.add_process(&common.talk(&role), &mut common.buffer());
                    added.with_context(|| self.exhaustion_text(gathered.member_count()))?;
                }
            }
        }
        for _ in 0..gathered.member_count() {
            read(&all_ready, &mut [0])?;
        }
        Ok(gathered)
    }

    /// Number of senders and receivers.
    fn task_count(&self) -> u64 {
        self.groups.saturating_mul(self.size).saturating_mul(2)
    }

    /// Number of descriptors that one process has at most.
    fn descriptors_per_process(&self) -> u64 {
        if self.threads { self.task_count() } else { 2 * self.size }
    }

    /// Checks that the machine allows as many senders, receivers and descriptors, before the first is made.
    ///
    /// # Errors
    /// It does not; the text names the limit.
    pub fn check_limits(&self) -> Result<()> {
        self.check_against(TaskLimit::smallest(self.threads).as_ref(), getrlimit(Resource::Nofile).current)
    }

    fn check_against(&self, limit: Option<&TaskLimit>, files: Option<u64>) -> Result<()> {
        let (tasks, what) = (self.task_count(), self.task_kind());
        if let Some(limit) = limit.filter(|limit| tasks > limit.left) {
            let (tasks, words, raise) = (format_count(tasks), limit.format_summary(), &limit.raise);
            bail!("{tasks} {what} are too many here: {words}; choose fewer groups, or raise it ({raise})");
        }
        let descriptors = self.descriptors_per_process();
        if let Some(files) = files.filter(|files| descriptors > files.saturating_sub(OTHER_FILES)) {
            let (descriptors, files) = (format_count(descriptors), format_count(files));
            bail!(
                "{descriptors} descriptors in one process are too many here: the limit (ulimit -n) is {files}; choose \
                 fewer groups or senders, or raise it (ulimit -n N, ulimit -Hn N as root)"
            );
        }
        Ok(())
    }

    fn task_kind(&self) -> &'static str {
        if self.threads { "threads" } else { "processes" }
    }

    /// Returns the sentence for a sender or receiver that could not be made after `made` others.
    fn exhaustion_text(&self, made: u64) -> String {
        let (made, tasks, what) = (format_count(made), format_count(self.task_count()), self.task_kind());
        format!("only {made} of {tasks} {what} can be had ({})", more_tasks())
    }

    /// The roles of a group.
    fn group(&self) -> io::Result<Vec<MessageGroupMember>> {
        let pairs = (0..self.size).map(|_| self.wire.open_pair()).collect::<io::Result<Vec<_>>>()?;
        let (inputs, outputs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let messages = self.size.saturating_mul(self.messages);
        let receivers = inputs.into_iter().map(|input| MessageGroupMember {
            ends: Arc::new(vec![input]),
            sends: false,
            messages,
        });
        let outputs = Arc::new(outputs);
        let senders = (0..self.size).map(|_| MessageGroupMember {
            ends: outputs.clone(),
            sends: true,
            messages: self.messages,
        });
        Ok(receivers.chain(senders).collect())
    }
}

impl MessageGroupContext {
    fn talk<'a>(&'a self, role: &'a MessageGroupMember) -> Talk<'a> {
        let MessageGroupMember { ends, sends, messages } = role;
        let (ready, start) = (self.ready.as_fd(), self.start.as_fd());
        Talk { ready, start, ends, sends: *sends, messages: *messages }
    }

    fn buffer(&self) -> Vec<u8> {
        vec![b'-'; self.bytes]
    }

    fn thread(&self, role: MessageGroupMember) -> io::Result<()> {
        let common = self.clone();
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let outcome = common.talk(&role).exchange_messages(&mut common.buffer());
            // No thread listens any more when another one failed.
            let _ = common.outcomes.send(outcome);
        });
        thread.map(drop)
    }
}

impl Gathered {
    /// Number of senders and receivers.
    fn member_count(&self) -> u64 {
        self.processes.process_count() as u64 + self.threads
    }

    /// Lets all senders send.
    ///
    /// # Errors
    /// The senders cannot be reached.
    pub fn start(&self) -> io::Result<()> {
        write(&self.start, b"*")?;
        Ok(())
    }

    /// Waits until all messages are received.
    ///
    /// # Errors
    /// A sender or receiver failed. Then all processes have ended, but threads may still run.
    pub fn wait_until_done(self) -> io::Result<()> {
        for _ in 0..self.threads {
            self.done.recv().unwrap_or(Ok(()))?;
        }
        self.processes.wait_all()
    }
}

impl MessageGroupTransport {
    /// Opens a connection: returns the end to read from and the end to write to.
    fn open_pair(self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            MessageGroupTransport::Socket => {
                let (unix, stream) = (AddressFamily::UNIX, SocketType::STREAM);
                Ok(socketpair(unix, stream, SocketFlags::CLOEXEC, None)?)
            }
            MessageGroupTransport::Pipe => Ok(pipe_with(PipeFlags::CLOEXEC)?),
            MessageGroupTransport::Tcp => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let output = TcpStream::connect(listener.local_addr()?)?;
                Ok((listener.accept()?.0.into(), output.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_machine_allows_are_refused_with_the_limit() {
        let limit = TaskLimit {
            name: "kernel.pid_max".to_owned(),
            limit: 32_768,
            left: 12_000,
            raise: "sysctl kernel.pid_max=N".to_owned(),
        };
        let of = |groups, threads| MessageGroups {
            groups,
            size: 20,
            messages: 1,
            bytes: 1,
            wire: MessageGroupTransport::Pipe,
            threads,
        };
        assert!(of(300, false).check_against(Some(&limit), Some(100)).is_ok());
        assert!(of(5_000, false).check_against(None, None).is_ok());
        let refusal = of(301, false).check_against(Some(&limit), None).unwrap_err().to_string();
        let expected = "12,040 processes are too many here: kernel.pid_max allows 32,768, of which 12,000 are left; \
            choose fewer groups, or raise it (sysctl kernel.pid_max=N)";
        assert_eq!(refusal, expected);
        let refusal = of(u64::MAX, true).check_against(Some(&limit), None).unwrap_err().to_string();
        assert!(refusal.contains(" threads are"), "{refusal}");
        let refusal = of(300, true).check_against(Some(&limit), Some(4_096)).unwrap_err().to_string();
        assert!(refusal.starts_with("12,000 descriptors") && refusal.contains("is 4,096"), "{refusal}");
    }

    #[test]
    fn all_messages_arrive_over_every_wire_between_threads_and_processes() {
        for wire in [MessageGroupTransport::Socket, MessageGroupTransport::Pipe, MessageGroupTransport::Tcp] {
            for threads in [false, true] {
                let message_groups =
                    MessageGroups { groups: 2, size: 3, messages: 4, bytes: 7000, wire, threads };
                let gathered = message_groups.gather().unwrap();
                assert_eq!(gathered.member_count(), 12);
                gathered.start().unwrap();
                gathered.wait_until_done().unwrap();
            }
        }
    }
}
