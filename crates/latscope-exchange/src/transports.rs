//! The mechanisms that carry transactions between processes, one file each,
//! and the suite that all of them hold (`conformance`).
//!
//! Many are alike in how messages lie in them:
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

#[cfg(test)]
mod conformance;
mod counted;
mod datagram;
#[cfg(feature = "dbus")]
mod dbus;
mod endpoint;
mod eventfd;
mod fifo;
mod futex;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
mod io_uring;
mod lifeline;
mod mailbox;
mod pipe;
mod posix_queue;
mod posix_semaphore;
mod queue;
mod signal;
mod spin;
mod stream;
mod system_v_queue;
mod system_v_semaphore;
mod tcp;
mod udp;
mod unix;
mod vsock;

use super::transaction::Transport;

/// All of them, in the order in which they are shown.
pub static TRANSPORTS: &[&Transport] = &[
    &super::binder::BINDER,
    &super::binder::HWBINDER,
    &spin::TRANSPORT,
    &futex::TRANSPORT,
    &posix_semaphore::TRANSPORT,
    &system_v_semaphore::TRANSPORT,
    &eventfd::TRANSPORT,
    &signal::TRANSPORT,
    &io_uring::TRANSPORT,
    &pipe::TRANSPORT,
    &fifo::TRANSPORT,
    &posix_queue::TRANSPORT,
    &system_v_queue::TRANSPORT,
    &unix::DATAGRAM,
    &unix::SEQPACKET,
    &unix::STREAM,
    &udp::TRANSPORT,
    &tcp::TRANSPORT,
    &vsock::TRANSPORT,
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
