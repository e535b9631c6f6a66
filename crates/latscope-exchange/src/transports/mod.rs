//! Mechanisms that carry transactions between processes, and the suite that all of them pass (`conformance`). They hold
//! messages in four ways:
//!
//! * a `stream` of bytes: each message begins with its length, four bytes that this program sends with it in the same
//!   system call;
//! * `datagram`s: the kernel keeps messages apart;
//! * `queue`s of messages;
//! * a `mailbox`: messages are in shared memory, and a separate mechanism, the *bell*, reports that a message is there.
//!
//! With the first kind, the kernel reports the end of the other endpoint; the others have a `lifeline` for it.

mod bells;
#[cfg(test)]
mod conformance;
mod datagram;
mod endpoint;
mod lifeline;
mod mailbox;
mod pipes;
mod posix_queue;
mod queue;
mod sockets;
mod stream;
mod system_v_queue;

pub use posix_queue::create_unlinked as nameless_queue;

use super::transaction::IpcTransport;

/// All transports, in the order in which they are shown.
pub static TRANSPORTS: &[&IpcTransport] = &[
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
];

/// The transport of this name.
pub fn find_transport(name: &str) -> Option<&'static IpcTransport> {
    TRANSPORTS.iter().find(|transport| transport.name == name).copied()
}

/// Largest payload of those that set no limit themselves: as much as binder
/// tests send.
const LARGEST: usize = 64 << 10;
