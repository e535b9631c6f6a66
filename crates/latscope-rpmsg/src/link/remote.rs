//! Device's side of a link.

use super::{RpmsgLink, RpmsgLinkEvent, RpmsgMessage, Unsent, fits, read_message, write_message};
use crate::header::RpmsgAddress;
use crate::ring::{VirtqueueDevice, VirtqueueDirection, VirtqueueElement, VirtqueueLayout};
use crate::table::{NAME_SERVICE, ResourceTable};
use crate::{Fault, RpmsgMemory};

/// Gives a buffer back with its whole length as what was written. OpenAMP's driver takes that for the length of the
/// buffer when it uses it again, also of one that was only read, so that OpenAMP's own remotes say the same.
#[inline]
fn give_back_whole<M: RpmsgMemory>(
    ring: &mut VirtqueueDevice<M>,
    taken: VirtqueueElement,
) -> Result<(), Fault> {
    let length = taken.buffer().length;
    ring.give_back(taken, length)
}

/// The side that is served with buffers, as a remote processor's firmware.
#[derive(Debug)]
pub struct RpmsgRemote<M> {
    memory: M,
    /// Messages to the host.
    transmit: VirtqueueDevice<M>,
    /// Messages from the host.
    receive: VirtqueueDevice<M>,
    /// A buffer to send in that was taken and not used.
    spare: Option<VirtqueueElement>,
    /// The buffer of the message that was taken last.
    held: Option<VirtqueueElement>,
    /// Table that holds the driver's status.
    table: Option<ResourceTable>,
    /// True if the driver accepted the name service.
    names: bool,
}

impl<M: RpmsgMemory + Clone> RpmsgRemote<M> {
    /// Begins with rings that the host has just cleared.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`]; [`Fault::Stale`] if a device used the rings before.
    pub fn new(memory: M, rings: [VirtqueueLayout; 2]) -> Result<Self, Fault> {
        RpmsgRemote::resume(memory, rings, [0, 0])
    }

    /// Goes on with rings at the positions where an earlier device left them.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`]; [`Fault::Stale`] if they are not there.
    pub fn resume(memory: M, rings: [VirtqueueLayout; 2], positions: [u16; 2]) -> Result<Self, Fault> {
        let transmit =
            VirtqueueDevice::resume(memory.clone(), rings[0], VirtqueueDirection::ToDriver, positions[0])?;
        let receive =
            VirtqueueDevice::resume(memory.clone(), rings[1], VirtqueueDirection::ToDevice, positions[1])?;
        Ok(RpmsgRemote { memory, transmit, receive, spare: None, held: None, table: None, names: true })
    }

    /// Looks at the driver's status in this table, too, in each [`RpmsgRemote::check_reset`]: a driver that ends, or is
    /// about to begin again, is noticed before the rings are cleared. Names are announced only if the driver accepted
    /// that in the table.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    pub fn watch_status(self, table: ResourceTable) -> Result<Self, Fault> {
        let accepted = table.accepted(&self.memory)?;
        Ok(RpmsgRemote { table: Some(table), ..self.with_features(accepted) })
    }

    /// Begins with these features accepted by the driver, where no table has them. Without this, all are.
    pub fn with_features(self, features: u32) -> Self {
        RpmsgRemote { names: features & NAME_SERVICE != 0, ..self }
    }

    /// The positions to resume from: buffers that were taken and not given back count as not taken.
    pub fn positions(&self) -> [u16; 2] {
        let taken = [self.spare.is_some(), self.held.is_some()].map(u16::from);
        [self.transmit.position().wrapping_sub(taken[0]), self.receive.position().wrapping_sub(taken[1])]
    }

    /// Returns the reason why there is no buffer: a driver that has ended gives none back.
    fn without_buffer(&self) -> Unsent {
        self.check_reset().err().map_or(Unsent::NoBuffer, Unsent::Fault)
    }

    /// Checks that the driver has not begun again since this side began, as far as that can be seen: before the first
    /// message, a new driver looks like the old one. Every call of [`RpmsgLink`] makes this check before it stores, or
    /// before it returns that there is nothing. The check reads only lines that this side writes.
    ///
    /// # Errors
    /// [`Fault::Reset`] if the driver began again: its status or one of this side's indices shows that.
    #[inline]
    pub fn check_reset(&self) -> Result<(), Fault> {
        self.transmit.check_reset()?;
        self.receive.check_reset()?;
        match self.table {
            Some(table) if !table.is_still_ready(&self.memory)? => Err(Fault::Reset),
            _ => Ok(()),
        }
    }
}

impl<M: RpmsgMemory + Clone> RpmsgLink for RpmsgRemote<M> {
    fn takes_announcements(&self) -> bool {
        self.names
    }

    #[inline]
    fn post(
        &mut self,
        source: RpmsgAddress,
        destination: RpmsgAddress,
        payload: &[u8],
    ) -> Result<(), Unsent> {
        let taken = match self.spare.take() {
            Some(taken) => taken,
            None => self.transmit.take_buffer()?.ok_or_else(|| self.without_buffer())?,
        };
        if !fits(payload, taken.buffer().length) {
            self.spare = Some(taken);
            return Err(Unsent::TooLong);
        }
        write_message(&self.memory, taken.buffer().at, source, destination, payload)?;
        self.check_reset()?;
        Ok(give_back_whole(&mut self.transmit, taken)?)
    }

    #[inline]
    fn take_message(&mut self, into: &mut [u8]) -> Result<Option<RpmsgMessage>, Fault> {
        self.release_buffer()?;
        let Some(taken) = self.receive.take_buffer()? else { return self.check_reset().map(|()| None) };
        let buffer = taken.buffer();
        // A message that is wrong is dropped; its buffer is not.
        self.held = Some(taken);
        read_message(&self.memory, buffer, buffer.length, into).map(Some)
    }

    #[inline]
    fn release_buffer(&mut self) -> Result<(), Fault> {
        match self.held.take() {
            Some(taken) => {
                self.check_reset()?;
                give_back_whole(&mut self.receive, taken)
            }
            None => Ok(()),
        }
    }

    #[inline]
    fn wants_kick(&self, event: RpmsgLinkEvent) -> Result<bool, Fault> {
        match event {
            RpmsgLinkEvent::Message => self.transmit.wants_kick(),
            RpmsgLinkEvent::Buffer => self.receive.wants_kick(),
        }
    }

    fn request_kick(&mut self, event: RpmsgLinkEvent) -> Result<bool, Fault> {
        let pending = match event {
            RpmsgLinkEvent::Message => self.receive.request_kick(),
            RpmsgLinkEvent::Buffer => Ok(self.transmit.request_kick()? || self.spare.is_some()),
        };
        // A remote that the driver forgot gets no kick.
        self.check_reset()?;
        pending
    }

    fn suppress_kicks(&mut self, event: RpmsgLinkEvent) -> Result<(), Fault> {
        match event {
            RpmsgLinkEvent::Message => self.receive.suppress_kicks(),
            RpmsgLinkEvent::Buffer => self.transmit.suppress_kicks(),
        }
    }
}
