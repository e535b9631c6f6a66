//! Messages between io_uring instances: IORING_OP_MSG_RING.

use super::{Notifier, without};
use latscope_os::ring::{self, Completion, UringLayout, UringMessageRing};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::time::Duration;

/// Mark of a message in the completion queue.
const MARK: u64 = 1;

/// Side of two io_uring instances.
#[derive(Debug)]
pub(crate) struct IoUring(UringMessageRing);

/// Two instances, each the ring of the side of its index.
///
/// # Errors
/// The kernel has none, or one that knows no messages.
pub(crate) fn create_rings() -> io::Result<([OwnedFd; 2], UringLayout)> {
    let (first, layout) = ring::create_ring()?;
    let (second, _) = ring::create_ring()?;
    check_messages(&first, layout)?;
    Ok(([first, second], layout))
}

/// Makes a ring send itself a message, as a check: an older kernel knows no such operation.
fn check_messages(descriptor: &OwnedFd, layout: UringLayout) -> io::Result<()> {
    let mut ring = UringMessageRing::map_ring(descriptor.try_clone()?, layout, descriptor.try_clone()?)?;
    ring.prepare_message(MARK)?;
    ring.submit_and_wait(1)?;
    match ring.completion() {
        Some(Completion { mark: MARK, result: 0 }) => Ok(()),
        Some(completion) => Err(io::Error::from_raw_os_error(-completion.result)),
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}

impl IoUring {
    /// Opens side 0 or 1 of the instances that [`create_rings`] returned.
    ///
    /// # Errors
    /// The descriptors are not two such instances.
    pub(crate) fn from_descriptors(
        [first, second]: [OwnedFd; 2],
        layout: UringLayout,
        side: usize,
    ) -> io::Result<IoUring> {
        let (own, peer) = if side == 0 { (first, second) } else { (second, first) };
        Ok(IoUring(UringMessageRing::map_ring(own, layout, peer)?))
    }

    /// Returns a function that wakes this side from another thread, by a ring of its own.
    pub(crate) fn waker(&self) -> io::Result<impl FnMut() + Send + 'static> {
        let to = self.0.as_fd().try_clone_to_owned()?;
        let (descriptor, layout) = ring::create_ring()?;
        let mut ring = UringMessageRing::map_ring(descriptor, layout, to)?;
        // It fails only where the ring does not work any more.
        Ok(move || drop(ring.prepare_message(MARK).and_then(|()| ring.submit_and_wait(0))))
    }
}

impl Notifier for IoUring {
    /// The message goes with the next wait: one system call for both.
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        self.0.prepare_message(MARK)
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        without(timeout)?;
        loop {
            self.0.submit_and_wait(1)?;
            match self.0.completion() {
                Some(Completion { mark: MARK, .. }) => return Ok(true),
                Some(Completion { result, .. }) => return Err(io::Error::from_raw_os_error(-result)),
                None => {}
            }
        }
    }
}
