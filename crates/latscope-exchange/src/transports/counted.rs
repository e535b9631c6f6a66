//! Bells that are counts in shared memory: what `exchange` calls a [`TokenCounter`].

use super::endpoint::{MORE_DESCRIPTORS, Side, broken, descriptors, failed, unavailable};
use super::lifeline::Lifeline;
use super::mailbox::{self, Bell, Extra, MailboxEndpoint};
use crate::Lanes;
use crate::TokenCounter;
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Unavailable};
use latscope_os::shared_cell::Scope;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// A bell of two counts, one for each direction.
pub(super) struct Counted<T: TokenCounter> {
    lanes: Lanes<T>,
    side: Side,
    lifeline: Lifeline,
}

/// An endpoint pair over shared memory with two counts beside it.
pub(super) fn endpoint_pair<T: TokenCounter>(payload: usize) -> Result<EndpointPair, Unavailable> {
    let no_memory = |error| unavailable("no shared memory", error, MORE_DESCRIPTORS);
    let lanes = Lanes::<T>::create(Scope::Processes).map_err(no_memory)?;
    let descriptor = lanes.descriptor().try_clone_to_owned().map_err(no_memory)?;
    mailbox::endpoint_pair(payload, Extra::shared(vec![descriptor]).map_err(no_memory)?)
}

/// One end of it.
pub(super) fn join<T: TokenCounter>(
    handle: EndpointHandle,
    side: Side,
) -> Result<MailboxEndpoint<Counted<T>>, Failure> {
    mailbox::join(handle, side, Counted::new)
}

impl<T: TokenCounter> Counted<T> {
    fn new(lifeline: OwnedFd, mut handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        let [memory] = descriptors(&mut handle)?;
        let lanes = Lanes::<T>::open(memory).map_err(broken)?;
        let watched = lanes.clone();
        let wake = move || {
            // Full of tokens: no thread sleeps for want of one.
            let _ = watched[side.other()].signal.give();
        };
        Ok(Counted { lanes, side, lifeline: Lifeline::watch(lifeline, wake)? })
    }
}

impl<T: TokenCounter> Bell for Counted<T> {
    #[inline]
    fn ring(&mut self) -> Result<(), Failure> {
        let rung = self.lanes[self.side.own()].signal.give();
        rung.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }

    #[inline]
    fn wait(&mut self, _: impl Fn() -> bool) -> Result<(), Failure> {
        self.lanes[self.side.other()].signal.take();
        Ok(())
    }

    #[inline]
    fn gone(&self) -> bool {
        self.lifeline.gone()
    }
}
