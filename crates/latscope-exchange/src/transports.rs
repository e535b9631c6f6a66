//! The mechanisms that carry transactions between processes, and the suite that
//! all of them hold (`conformance`). Messages lie in them in four ways:
//!
//! * a `stream` of bytes: each message begins with its length, four bytes of
//!   ours that travel with it in the same system call;
//! * `datagram`s: the kernel keeps messages apart;
//! * `queue`s of messages;
//! * a `mailbox`: messages lie in shared memory, and something else, the
//!   *bell*, tells that one is there.
//!
//! The first kind learns from the kernel that the other endpoint is gone; the
//! others have a `lifeline` for it. Two are libraries, and there only where
//! the features of their names are switched on.

mod bells;
#[cfg(test)]
mod conformance;
mod datagram;
#[cfg(feature = "dbus")]
mod dbus;
mod endpoint;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
mod lifeline;
mod mailbox;
mod pipes;
mod posix_queue;
mod queue;
mod sockets;
mod stream;
mod system_v_queue;

pub use posix_queue::nameless as nameless_queue;

use super::transaction::Transport;

/// All of them, in the order in which they are shown.
pub static TRANSPORTS: &[&Transport] = &[
    &super::binder::BINDER,
    &super::binder::HWBINDER,
    &bells::SPIN,
    &bells::FUTEX,
    &bells::POSIX_SEMAPHORE,
    &bells::SYSTEM_V_SEMAPHORE,
    &bells::EVENTFD,
    &bells::SIGNAL,
    &bells::IO_URING,
    &pipes::PIPE,
    &pipes::FIFO,
    &posix_queue::TRANSPORT,
    &system_v_queue::TRANSPORT,
    &sockets::UNIX_DATAGRAM,
    &sockets::UNIX_SEQPACKET,
    &sockets::UNIX_STREAM,
    &sockets::UDP,
    &sockets::TCP,
    &sockets::VSOCK,
    #[cfg(feature = "dbus")]
    &dbus::TRANSPORT,
    #[cfg(feature = "iceoryx2")]
    &iceoryx2::TRANSPORT,
];

/// The transport of this name.
pub fn named(name: &str) -> Option<&'static Transport> {
    TRANSPORTS.iter().find(|transport| transport.name == name).copied()
}

/// Largest payload of those that set no limit themselves: as much as binder
/// tests send.
const LARGEST: usize = 64 << 10;
