//! Messages in two queues of the kernel, one in each direction. A queue does not report the end of its other user: see
//! [`lifeline`](super::lifeline).

use super::endpoint::{EndpointSide, MessageEndpoint, broken_failure};
use super::lifeline::{self, Lifeline};
use crate::transaction::{EndpointHandle, TransactionFailure};
use latscope_os::message_queue::Blocking;
use rustix::io::Errno;

/// View of an endpoint on two queues.
pub(super) trait Queues: Send + Sized + 'static {
    /// Error that the kernel returns for an empty queue to a call that does not wait.
    const EMPTY: Errno;

    /// Number of copies of each message.
    const COPIES: u32 = 2;

    /// Opens the queues from the words and descriptors passed beside the lifeline.
    fn open_queues(handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure>;

    /// Puts a message into the other endpoint's queue.
    fn enqueue_message(&mut self, message: &[u8], blocking: Blocking) -> Result<(), Errno>;

    /// Takes a message from the own queue, as much of it as fits, and returns its length.
    fn dequeue_message(&mut self, buffer: &mut [u8], blocking: Blocking) -> Result<usize, Errno>;

    /// Opens another view of the same queues.
    fn again(&self) -> std::io::Result<Self>;

    /// Puts an empty message into the own queue, if there is room.
    fn nudge(&mut self);

    /// Removes the messages from the other endpoint's queue.
    fn empty(&mut self);

    /// Returns the failure that an error of a transfer stands for.
    fn transfer_failure(error: Errno) -> TransactionFailure;
}

/// Endpoint over two queues.
pub(super) struct Queued<Q> {
    queues: Q,
    lifeline: Lifeline,
}

impl<Q: Queues> MessageEndpoint for Queued<Q> {
    const QUEUES: bool = true;

    const COPIES: u32 = Q::COPIES;

    fn from_handle(mut handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure> {
        let lifeline = lifeline::take_from_handle(&mut handle)?;
        let queues = Q::open_queues(handle, side)?;
        let mut watched = queues.again().map_err(broken_failure)?;
        let lifeline = Lifeline::watch_socket(lifeline, move || {
            // Who sleeps for want of a message gets an empty one; if there is
            // no room for it, no thread does. Who sleeps for want of room gets
            // some: what is taken away would not be read any more.
            watched.empty();
            watched.nudge();
        })?;
        Ok(Queued { queues, lifeline })
    }

    #[inline]
    fn send_message(&mut self, message: &[u8]) -> Result<(), TransactionFailure> {
        loop {
            if self.lifeline.gone() {
                return Err(TransactionFailure::Gone);
            }
            match self.queues.enqueue_message(message, Blocking::Yes) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Q::transfer_failure(error)),
            }
        }
    }

    #[inline]
    fn receive_message(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure> {
        loop {
            let blocking = if self.lifeline.gone() { Blocking::No } else { Blocking::Yes };
            match self.queues.dequeue_message(buffer, blocking) {
                // The empty message of the lifeline.
                Ok(0) | Err(Errno::INTR) => {}
                Ok(length) => return Ok(length),
                Err(error) if error == Q::EMPTY => return Err(TransactionFailure::Gone),
                Err(error) => return Err(Q::transfer_failure(error)),
            }
        }
    }
}
