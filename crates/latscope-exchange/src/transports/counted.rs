//! Bells that are counts in shared memory: what `exchange` calls a [`Signal`].

use super::lifeline::Lifeline;
use super::mailbox::{self, Bell, Correspondent, Extra};
use super::party::{MORE_DESCRIPTORS, Side, broken, descriptors, failed, unavailable};
use crate::Lanes;
use crate::Signal;
use crate::transaction::{Failure, Handed, Meeting, Unavailable};
use latscope_os::shared_cell::Scope;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// A bell of two counts, one for each direction.
pub(super) struct Counted<T: Signal> {
    lanes: Lanes<T>,
    side: Side,
    lifeline: Lifeline,
}

/// A meeting over shared memory with two counts beside it.
pub(super) fn meeting<T: Signal>(payload: usize) -> Result<Meeting, Unavailable> {
    let no_memory = |error| unavailable("no shared memory", error, MORE_DESCRIPTORS);
    let lanes = Lanes::<T>::create(Scope::Processes).map_err(no_memory)?;
    let descriptor = lanes.descriptor().try_clone_to_owned().map_err(no_memory)?;
    mailbox::meeting(payload, Extra::shared(vec![descriptor]).map_err(no_memory)?)
}

/// One end of it.
pub(super) fn join<T: Signal>(handed: Handed, side: Side) -> Result<Correspondent<Counted<T>>, Failure> {
    mailbox::join(handed, side, Counted::new)
}

impl<T: Signal> Counted<T> {
    fn new(lifeline: OwnedFd, mut handed: Handed, side: Side) -> Result<Self, Failure> {
        let [memory] = descriptors(&mut handed)?;
        let lanes = Lanes::<T>::open(memory).map_err(broken)?;
        let watched = lanes.clone();
        let wake = move || {
            // Full of tokens: nobody sleeps for want of one.
            let _ = watched[side.other()].signal.give();
        };
        Ok(Counted { lanes, side, lifeline: Lifeline::watch(lifeline, wake)? })
    }
}

impl<T: Signal> Bell for Counted<T> {
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
