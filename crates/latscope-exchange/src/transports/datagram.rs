//! Messages that the kernel keeps apart: sockets of datagrams and of sequenced
//! packets.

use super::endpoint::{EndpointSide, MessageEndpoint, broken_failure, descriptors, failure_from_errno};
use super::lifeline::{self, Lifeline};
use crate::transaction::{EndpointHandle, TransactionFailure};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

/// Endpoint of a connected socket. `QUEUES` is true if a sender that is faster than the receiver waits for it, so that
/// nothing is lost.
pub(super) struct DatagramEndpoint<const QUEUES: bool> {
    socket: OwnedFd,
    lifeline: Option<Lifeline>,
}

impl<const QUEUES: bool> MessageEndpoint for DatagramEndpoint<QUEUES> {
    const QUEUES: bool = QUEUES;

    /// Joins with a lifeline, unless the socket itself reports the end of the other endpoint.
    fn from_handle(mut handle: EndpointHandle, _: EndpointSide) -> Result<Self, TransactionFailure> {
        let lifeline =
            if handle.descriptors.len() > 1 { Some(lifeline::take_from_handle(&mut handle)?) } else { None };
        let [socket] = descriptors(&mut handle)?;
        let lifeline = lifeline.map(|lifeline| {
            let own = socket.try_clone().map_err(broken_failure)?;
            // What came before can still be received; then it is the end.
            Lifeline::watch_socket(lifeline, move || shutdown(&own, Shutdown::Both).unwrap_or(()))
        });
        Ok(DatagramEndpoint { lifeline: lifeline.transpose()?, socket })
    }

    #[inline]
    fn send_message(&mut self, message: &[u8]) -> Result<(), TransactionFailure> {
        retry_on_intr(|| send(&self.socket, message, SendFlags::NOSIGNAL))
            .map(drop)
            .map_err(failure_from_errno)
    }

    #[inline]
    fn receive_message(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure> {
        // With this flag the length is that of the message, not of what fits.
        match retry_on_intr(|| recv(&self.socket, &mut *buffer, RecvFlags::TRUNC)) {
            // No message is empty.
            Ok((_, 0)) => Err(TransactionFailure::Gone),
            Ok((_, length)) => Ok(length),
            Err(Errno::AGAIN) if self.is_peer_gone() => Err(TransactionFailure::Gone),
            Err(error) => Err(failure_from_errno(error)),
        }
    }
}

impl<const QUEUES: bool> DatagramEndpoint<QUEUES> {
    fn is_peer_gone(&self) -> bool {
        self.lifeline.as_ref().is_some_and(Lifeline::gone)
    }
}
