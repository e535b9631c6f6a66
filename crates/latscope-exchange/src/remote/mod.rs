//! The ways to another operating system: one file a transport.
//!
//! A transport opens a [`Channel`] to one service of a remote; what goes over
//! it are whole messages. What the other side writes is not trusted, and each
//! wait has an end.

mod char;
mod echo;
mod ivshmem;
mod kicks;
mod mailbox;
mod mcs;
pub mod openamp;
pub mod pty;
mod rings;
mod rptun;
pub mod shm;
pub mod tty;
#[cfg(feature = "vhost-user")]
pub mod vhost_user;

pub use rings::{LONGEST, PAYLOAD};

use anyhow::Result;
use latscope_core::plan::{ParamValue, Params};
use latscope_host::leftover::Leftover;
use latscope_rpmsg::Fault;
use latscope_rpmsg::echo::Service;
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::messages::LongPing;
use rustix::fd::BorrowedFd;
use std::io;

/// A connection to one service of a remote.
pub trait Channel {
    /// Sends a message.
    ///
    /// # Errors
    /// [`Failure::Unsent`] when there is no room for it now, or never; other failures end the channel.
    fn send(&mut self, message: &[u8]) -> Result<(), Failure>;

    /// Waits for the next message until an instant of `CLOCK_MONOTONIC`, ns; its
    /// length. An instant in the past looks once.
    ///
    /// # Errors
    /// [`Failure::Timeout`]; other failures end the channel.
    fn receive(&mut self, into: &mut [u8], until: u64) -> Result<usize, Failure>;

    /// What to sleep on until the next message may be there.
    fn alarm(&mut self) -> Result<Alarm<'_>, Failure> {
        Ok(Alarm::Unknown)
    }

    /// Gives up on messages that have not come. Where one cannot tell by itself to
    /// which message bytes belong, what is late of them is waited for and thrown away.
    fn give_up(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The longest message, bytes.
    fn limit(&self) -> usize;

    /// How many messages may be on their way at once without one that has to wait for room.
    fn window(&self) -> usize {
        4
    }

    /// What the other side did against the protocol so far; 0 where the kernel, which checks that,
    /// does not tell, or where there is no protocol.
    fn faults(&self) -> u64 {
        0
    }

    /// Bytes that belong to no message, where messages are found in a stream of bytes.
    fn foreign(&self) -> u64 {
        0
    }

    /// A sentence on what the other side does to bytes on their way, where that shows.
    fn translation(&self) -> Option<String> {
        None
    }

    /// Messages to another endpoint than ours, or from another than the service.
    fn misaddressed(&self) -> u64 {
        0
    }

    /// Messages that were found by a look every now and then, before a kick came for them.
    fn recovered(&self) -> u64 {
        0
    }

    /// How the other side ended, as far as one can know.
    fn ended(&mut self) -> Option<String>;

    /// What makes its times those of something else, in a sentence; nothing usually.
    fn distortion(&self) -> Option<&'static str> {
        None
    }
}

/// What tells that a message may be there.
#[derive(Debug)]
pub enum Alarm<'a> {
    /// One may be there already.
    Now,
    /// This becomes readable.
    Readable(BorrowedFd<'a>),
    /// Nothing that could be waited for beside other things: look again after a while.
    Unknown,
}

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Time is over.
    #[error("no message came in time")]
    Timeout,
    /// The message was not sent.
    #[error("{0}")]
    Unsent(Unsent),
    /// The remote is gone.
    #[error("the remote is gone: {0}")]
    Gone(String),
    /// The kernel refused what the transport needs.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Failure {
    /// What the other side did, where one cannot go on after it.
    pub fn of(fault: Fault) -> Failure {
        Failure::Unsent(Unsent::Fault(fault))
    }
}

/// What a channel is asked for.
pub struct Order<'a> {
    /// The parameters: `transport`, `wait`, and the transport's own options.
    pub params: &'a Params,
    /// The service at the other side.
    pub service: Service,
    /// CPUs to use: the first is that of the caller, who is there already.
    pub cpus: &'a [u32],
    /// Hears of what will have to be undone, before it is made.
    pub journal: &'a dyn Fn(&Leftover) -> Result<()>,
    /// Hears what is waited for, if that takes long.
    pub waiting: &'a dyn Fn(&str),
}

impl Order<'_> {
    /// Bytes of the longest message; 0 if it was not said. The data of a long ping are in several.
    pub fn payload(&self) -> usize {
        match self.params.get("payload") {
            _ if self.service == Service::LongPing => LongPing::PACKET,
            Some(ParamValue::Number(bytes)) => usize::try_from(*bytes).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// A parameter of words; empty if it was not given.
    pub fn text(&self, name: &str) -> &str {
        match self.params.get(name) {
            Some(ParamValue::Text(text)) => text,
            _ => "",
        }
    }
}

/// An option of a transport, `--name` on the command line.
#[derive(Debug)]
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// What stands for its value in help: `PATH`.
    pub value: &'static str,
    /// What it is, a sentence without its full stop.
    pub help: &'static str,
    /// Its value if it is not given; empty for none.
    pub default: &'static str,
}

impl Opt {
    const fn new(name: &'static str, value: &'static str, help: &'static str, default: &'static str) -> Opt {
        Opt { name, value, help, default }
    }
}

/// A way to a remote.
pub struct Transport {
    /// Its name on the command line.
    pub name: &'static str,
    /// The ways in which it can wait; a run measures each of them.
    pub waits: &'static [&'static str],
    /// Whether we start the remote, which waits as we do then. Of another one it is not known.
    pub ours: bool,
    /// Its options.
    pub options: &'static [Opt],
    /// Connects to a service.
    pub open: fn(&Order) -> Result<Box<dyn Channel>>,
}

impl Transport {
    /// Whether it has an option of this name.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known.name == option)
    }

    /// Its way to wait for whoever waits for other things as well: asleep on a
    /// descriptor, where it has that.
    pub fn beside_others(&self) -> &'static str {
        let descriptor = |wait: &&&str| !["spin", "spin-then-park", "futex"].contains(*wait);
        self.waits.iter().find(descriptor).unwrap_or(&self.waits[0])
    }
}

/// Every transport; the first is the usual one.
pub static TRANSPORTS: &[&Transport] = &[
    &shm::SHM,
    &openamp::OPENAMP,
    &ivshmem::IVSHMEM,
    &char::CHAR,
    &mcs::MCS,
    &rptun::RPTUN,
    &tty::TTY,
    &tty::LINES,
];

/// Their names.
pub const NAMES: &[&str] = &["shm", "openamp", "ivshmem", "char", "mcs", "rptun", "tty", "tty-line"];

/// Every way to wait, of whatever transport.
pub const WAITS: &[&str] =
    &["spin", "spin-then-park", "futex", "eventfd", "socket", "doorbell", "poll", "ipi"];

/// What opens a [`Channel`] without RPMsg: one word there and back.
pub type Mailbox = fn(&Order) -> Result<Box<dyn Channel>>;

/// The transports between whose endpoints a single word can go, in the same kind of memory.
pub static MAILBOXES: &[(&str, Mailbox)] = &[("shm", shm::mailbox), ("ivshmem", ivshmem::mailbox)];

/// The transport of this name.
pub fn transport(name: &str) -> Option<&'static Transport> {
    TRANSPORTS.iter().copied().find(|transport| transport.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::FOREIGN_REMOTES;

    #[test]
    fn names_are_those_of_the_transports() {
        let names: Vec<&str> = TRANSPORTS.iter().map(|transport| transport.name).collect();
        assert_eq!(names, NAMES);
        for transport in TRANSPORTS {
            assert!(!transport.waits.is_empty() && transport.waits.iter().all(|wait| WAITS.contains(wait)));
        }
        let foreign = TRANSPORTS.iter().filter(|transport| !transport.ours).map(|transport| transport.name);
        assert!(foreign.eq(FOREIGN_REMOTES.iter().copied()), "views say of these that nothing is known");
    }
}
