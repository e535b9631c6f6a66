//! The device's side.

use super::{Event, Link, Received, Unsent, fits, read, write};
use crate::header::Address;
use crate::ring::{Device, Direction, Layout, Taken};
use crate::{Fault, Memory};

/// The side that is served with buffers, as a remote processor's firmware.
#[derive(Debug)]
pub struct Remote<M> {
    memory: M,
    /// Messages to the host.
    transmit: Device<M>,
    /// Messages from the host.
    receive: Device<M>,
    /// A buffer to send in that was taken and not used.
    spare: Option<Taken>,
}

impl<M: Memory + Clone> Remote<M> {
    /// Begins with rings that the host has just cleared.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`]; [`Fault::Stale`] if a device used the rings before.
    pub fn new(memory: M, rings: [Layout; 2]) -> Result<Self, Fault> {
        Remote::resume(memory, rings, [0, 0])
    }

    /// Goes on with rings at the positions where an earlier device left them.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`]; [`Fault::Stale`] if they are not there.
    pub fn resume(memory: M, rings: [Layout; 2], positions: [u16; 2]) -> Result<Self, Fault> {
        let transmit = Device::resume(memory.clone(), rings[0], Direction::ToDriver, positions[0])?;
        let receive = Device::resume(memory.clone(), rings[1], Direction::ToDevice, positions[1])?;
        Ok(Remote { memory, transmit, receive, spare: None })
    }

    /// The positions to resume from: a buffer that was taken and not used counts as not taken.
    pub fn positions(&self) -> [u16; 2] {
        let taken = u16::from(self.spare.is_some());
        [self.transmit.position().wrapping_sub(taken), self.receive.position()]
    }
}

impl<M: Memory + Clone> Link for Remote<M> {
    fn send(&mut self, source: Address, destination: Address, payload: &[u8]) -> Result<bool, Unsent> {
        let taken = match self.spare.take() {
            Some(taken) => taken,
            None => self.transmit.take()?.ok_or(Unsent::NoBuffer)?,
        };
        if !fits(payload, taken.buffer().length) {
            self.spare = Some(taken);
            return Err(Unsent::TooLong);
        }
        let written = write(&self.memory, taken.buffer().at, source, destination, payload)?;
        self.transmit.give_back(taken, written)?;
        Ok(self.transmit.wants_kick()?)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<Received>, Fault> {
        let Some(taken) = self.receive.take()? else { return Ok(None) };
        let message = read(&self.memory, taken.buffer(), taken.buffer().length, into);
        // A message that is wrong is dropped; its buffer is not.
        self.receive.give_back(taken, 0)?;
        let (header, length) = message?;
        Ok(Some(Received { header, length, kick: self.receive.wants_kick()? }))
    }

    fn listen(&mut self, event: Event) -> Result<bool, Fault> {
        match event {
            Event::Message => self.receive.listen(),
            Event::Buffer => Ok(self.transmit.listen()? || self.spare.is_some()),
        }
    }

    fn mute(&mut self, event: Event) -> Result<(), Fault> {
        match event {
            Event::Message => self.receive.mute(),
            Event::Buffer => self.transmit.mute(),
        }
    }
}
