//! The ways to another operating system: one file a transport.
//!
//! A transport opens a [`RemoteChannel`] to one service of a remote; what goes over
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
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::word::Meaning;
use latscope_process::leftover::Leftover;
use latscope_rpmsg::Fault;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::messages::{LongPing, RpmsgStatus};
use rustix::fd::BorrowedFd;
use std::io;
use std::time::Duration;

/// Longest wait for what a remote says of itself.
pub const STATUS_TIMEOUT: Duration = Duration::from_millis(200);

/// A connection to one service of a remote.
pub trait RemoteChannel {
    /// Sends a message to the service.
    ///
    /// # Errors
    /// [`ChannelFailure::Unsent`] when there is no room for it now, or never; other failures end the channel.
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure>;

    /// Waits for the next message until an instant of `CLOCK_MONOTONIC`, ns; its
    /// length. An instant in the past looks once.
    ///
    /// # Errors
    /// [`ChannelFailure::Timeout`]; other failures end the channel.
    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure>;

    /// Returns the event to sleep on until the next message may be there.
    fn wake_source(&mut self) -> Result<MessageWakeSource<'_>, ChannelFailure> {
        Ok(MessageWakeSource::Unknown)
    }

    /// Returns true if the connection serves further orders: by [`turn_to`](RemoteChannel::turn_to).
    fn is_reusable(&self) -> bool {
        false
    }

    /// Turns to the service of another order over the same connection. Counts begin again.
    ///
    /// # Errors
    /// The remote does not have the service, or is gone; or each order takes a connection of its own.
    fn turn_to(&mut self, _order: &ChannelRequest) -> Result<()> {
        anyhow::bail!("each order takes a connection of its own")
    }

    /// Asks the remote what it is and what it counted. `None` if it has no such service, or does not answer in
    /// [`STATUS_TIMEOUT`].
    fn status(&mut self) -> Option<RpmsgStatus> {
        None
    }

    /// Gives up on messages that have not arrived. Where a channel cannot find out which message bytes belong to, it
    /// waits for late bytes and drops them.
    fn give_up(&mut self) -> Result<(), ChannelFailure> {
        Ok(())
    }

    /// The longest message, bytes.
    fn limit(&self) -> usize;

    /// Returns the number of messages that may be on their way at once without a wait for room.
    fn window(&self) -> usize {
        4
    }

    /// Returns the number of protocol violations by the other side; 0 where the kernel checks them and does not report
    /// them, or where there is no protocol.
    fn faults(&self) -> u64 {
        0
    }

    /// Returns the number of messages that came again and were skipped for it; 0 where the receiver sees them itself.
    fn duplicates(&self) -> u64 {
        0
    }

    /// Returns the number of bytes that belong to no message, where messages are found in a stream of bytes.
    fn foreign(&self) -> u64 {
        0
    }

    /// A sentence on what the other side does to bytes on their way, where that shows.
    fn translation(&self) -> Option<String> {
        None
    }

    /// A sentence on other programs that use the same device, if they changed it, or if messages `failed` and they
    /// could be the cause.
    fn interference(&self, _failed: bool) -> Option<String> {
        None
    }

    /// Returns the number of messages to an endpoint other than this channel's, or from one other than the service.
    fn misaddressed(&self) -> u64 {
        0
    }

    /// Returns the number of messages that were found by an occasional look, before a kick came for them.
    fn recovered(&self) -> u64 {
        0
    }

    /// Returns a description of the end of the other side, as far as it can be known; `None` while it runs.
    fn end_description(&mut self) -> Option<String>;

    /// Returns the reason, in a sentence, why the times are not those of the transport alone; usually `None`.
    fn distortion(&self) -> Option<&'static str> {
        None
    }
}

/// Event after which a message may be there.
#[derive(Debug)]
pub enum MessageWakeSource<'a> {
    /// No event: a message may be there already.
    Now,
    /// Descriptor that becomes readable.
    Readable(BorrowedFd<'a>),
    /// No event that can be waited for beside other things: look again after a while.
    Unknown,
}

/// Reason why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum ChannelFailure {
    /// The time is over.
    #[error("no message came in time")]
    Timeout,
    /// The message was not sent.
    #[error("{0}")]
    Unsent(Unsent),
    /// The remote no longer runs.
    #[error("the remote is gone: {0}")]
    Gone(String),
    /// The kernel refused a call that the transport needs.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ChannelFailure {
    /// Returns the failure for a fault of the other side after which the channel cannot continue.
    pub fn from_fault(fault: Fault) -> ChannelFailure {
        ChannelFailure::Unsent(Unsent::Fault(fault))
    }
}

/// Error of a remote that is not there: nothing showed in all of the time for which it was waited for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RemoteAbsent(pub(super) String);

/// Request for a channel.
pub struct ChannelRequest<'a> {
    /// The parameters: `transport`, `wait`, and the transport's own options.
    pub params: &'a Params,
    /// The service at the other side.
    pub service: RpmsgService,
    /// CPUs to use: the first is the CPU of the caller, which runs there already.
    pub cpus: &'a [u32],
    /// Called with each object that will have to be removed, before it is made.
    pub journal: &'a dyn Fn(&Leftover) -> Result<()>,
    /// Longest wait for a remote that is not there yet; each transport has a limit of its own as well.
    pub patience: Duration,
    /// Called with what the user should know before anything is measured: the reason of a long wait, or of doubt.
    pub notice: &'a dyn Fn(&str),
}

impl ChannelRequest<'_> {
    /// Returns the length of the longest message, bytes; 0 if it is not given. A long ping divides its data among
    /// several messages.
    pub fn payload(&self) -> usize {
        match self.params.get(param::PAYLOAD) {
            _ if self.service == RpmsgService::LongPing => LongPing::PACKET,
            Some(ParamValue::Number(bytes)) => usize::try_from(*bytes).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Returns the way in which the sides wait; empty if it was not given.
    pub fn wait_mode(&self) -> &str {
        self.text_param(param::WAIT)
    }

    /// Returns true if an option without a value was given.
    pub fn has_flag(&self, option: &RemoteOption) -> bool {
        self.text_param(option.name) == RemoteOption::GIVEN
    }

    /// A parameter of words; empty if it was not given.
    pub fn text_param(&self, name: &str) -> &str {
        self.params.get(name).and_then(ParamValue::as_text).unwrap_or_default()
    }
}

/// An option of a transport, `--name` on the command line.
#[derive(Debug)]
pub struct RemoteOption {
    /// Name on the command line.
    pub name: &'static str,
    /// Placeholder of the value in help: `PATH`; empty for an option without a value.
    pub value: &'static str,
    /// Description, a sentence without its full stop.
    pub help: &'static str,
    /// Value if the option is not given; empty for none.
    pub default: &'static str,
}

impl RemoteOption {
    const fn new(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        default: &'static str,
    ) -> RemoteOption {
        RemoteOption { name, value, help, default }
    }

    /// Option that takes no value. As a parameter it is [`RemoteOption::GIVEN`] or absent.
    const fn flag(name: &'static str, help: &'static str) -> RemoteOption {
        RemoteOption::new(name, "", help, "")
    }

    /// Value of the parameter of an option that takes no value, if it was given.
    pub const GIVEN: &str = "yes";
}

/// A way to a remote.
pub struct RemoteTransport {
    /// Name on the command line.
    pub name: &'static str,
    /// The ways in which it can wait; a run measures each of them.
    pub waits: &'static [&'static str],
    /// True if this program starts the remote, which then waits in the same way. The way of any other remote is
    /// unknown.
    pub ours: bool,
    /// Options of this transport.
    pub options: &'static [RemoteOption],
    /// Connects to a service.
    pub open: fn(&ChannelRequest) -> Result<Box<dyn RemoteChannel>>,
}

impl RemoteTransport {
    /// Returns true if the transport has an option of this name.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.iter().any(|known| known.name == option)
    }

    /// Returns the way to wait for a caller that waits for other things as well: a sleep on a descriptor, where the
    /// transport has that.
    pub fn beside_others(&self) -> &'static str {
        let descriptor = |wait: &&&str| !["spin", "spin-then-park", "futex"].contains(*wait);
        self.waits.iter().find(descriptor).unwrap_or(&self.waits[0])
    }
}

/// Every transport; the first is the usual one.
pub static TRANSPORTS: &[&RemoteTransport] = &[
    &shm::SHM,
    &openamp::OPENAMP,
    &ivshmem::IVSHMEM,
    &char::CHAR,
    &mcs::MCS,
    &rptun::RPTUN,
    &tty::TTY,
    &tty::LINES,
];

/// Names of the transports.
pub const NAMES: &[Meaning] = &[
    ("shm", "latscope's echo process on another CPU, in memory that both map"),
    ("openamp", "another process, in named memory and by a socket as OpenAMP has them"),
    ("ivshmem", "latscope's image in QEMU"),
    ("char", "Linux's `/dev/rpmsgN`"),
    ("mcs", "a client OS by the device of openEuler's MCS (untested on a board)"),
    ("rptun", "Apache NuttX in a virtual machine, by the file behind its ivshmem device"),
    ("tty", "a terminal that leads to a remote, raw"),
    ("tty-line", "a terminal that leads to a remote, in lines"),
];

/// All ways to wait, over all transports.
pub const WAITS: &[Meaning] = &[
    ("spin", "looks at the ring all the time"),
    ("spin-then-park", "sleeps on a futex after 50 µs of looking"),
    ("futex", "sleeps on a futex"),
    ("eventfd", "sleeps in a read of an eventfd"),
    ("socket", "sleeps until a byte comes"),
    ("doorbell", "sleeps until an interrupt comes from the other side's doorbell"),
    ("poll", "sleeps in poll(2)"),
    ("ipi", "sleeps until an interrupt comes from another core"),
];

/// Function that opens a [`RemoteChannel`] without RPMsg: one word there and back.
pub type MailboxOpener = fn(&ChannelRequest) -> Result<Box<dyn RemoteChannel>>;

/// The transports between whose endpoints a single word can go, in the same kind of memory.
pub static MAILBOXES: &[(&str, MailboxOpener)] = &[("shm", shm::mailbox), ("ivshmem", ivshmem::mailbox)];

/// The transport of this name.
pub fn transport(name: &str) -> Option<&'static RemoteTransport> {
    TRANSPORTS.iter().copied().find(|transport| transport.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::FOREIGN_REMOTES;

    #[test]
    fn names_are_those_of_the_transports() {
        let names: Vec<&str> = TRANSPORTS.iter().map(|transport| transport.name).collect();
        assert!(names.iter().eq(NAMES.iter().map(|(name, _)| name)), "{names:?}");
        for transport in TRANSPORTS {
            assert!(
                !transport.waits.is_empty()
                    && transport.waits.iter().all(|wait| WAITS.iter().any(|(known, _)| known == wait))
            );
        }
        let foreign = TRANSPORTS.iter().filter(|transport| !transport.ours).map(|transport| transport.name);
        assert!(foreign.eq(FOREIGN_REMOTES.iter().copied()), "views say of these that nothing is known");
    }
}
