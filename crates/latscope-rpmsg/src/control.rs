//! Words beside a link, by which a host directs a remote that it has started.
//!
//! They are the last [`SIZE`] bytes of the window, each in a cache line of its own:
//!
//! | offset | written by | what |
//! |---|---|---|
//! | 0x00 | host | the [`ControlCommand`] |
//! | 0x40 | remote | the command that it obeys |
//! | 0x80 | host | a single word |
//! | 0xC0 | remote | the same word, echoed when that is the order |
//!
//! A remote accepts a command when it has ended its earlier work. Until then it has not started, or still works for an
//! earlier host. So a host begins as follows, after any earlier host:
//! [`RpmsgWindow::reset`](crate::RpmsgWindow::reset), [`RpmsgControlBlock::issue`], wait for
//! [`RpmsgControlBlock::is_accepted`], [`RpmsgWindow::host`](crate::RpmsgWindow::host). These steps need no kick,
//! except for a remote that sleeps.
//!
//! A window of zeros orders a link, so that a remote serves a host without these words.
//!
//! ```
//! use core::sync::atomic::AtomicU16;
//! use latscope_rpmsg::control::{RpmsgControlBlock, ControlOpcode};
//! use latscope_rpmsg::memory::AtomicCellMemory;
//!
//! let memory = AtomicCellMemory([const { AtomicU16::new(0) }; 2048]);
//! let control = RpmsgControlBlock::new(&memory)?;
//!
//! let command = control.issue(ControlOpcode::Word)?;
//! assert!(!control.is_accepted(command)?);
//!
//! // The remote:
//! control.accept(control.load_command()?)?;
//!
//! assert!(control.is_accepted(command)?);
//! # Ok::<(), latscope_rpmsg::Fault>(())
//! ```

use crate::{Fault, RpmsgMemory};

/// Size of the words and of the space reserved beside them, bytes: a page.
pub const SIZE: usize = 4096;

const COMMAND: usize = 0;
const ACCEPTED: usize = 0x40;
const WORD: usize = 0x80;
const REPLY: usize = 0xC0;

/// Order to a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlOpcode {
    /// To serve the driver of the link.
    Link,
    /// To serve the driver of the link, and to sleep whenever there is nothing to do until it is
    /// kicked: for this driver's messages and orders alike.
    Doorbell,
    /// To echo the single word.
    Word,
    /// To end the program.
    Stop,
}

impl ControlOpcode {
    /// Four letters, so that accidental writes order nothing but the usual work.
    const fn code(self) -> u32 {
        u32::from_le_bytes(match self {
            ControlOpcode::Link => *b"LINK",
            ControlOpcode::Doorbell => *b"BELL",
            ControlOpcode::Word => *b"WORD",
            ControlOpcode::Stop => *b"STOP",
        })
    }
}

/// Order with a number that distinguishes it from the order before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlCommand(u64);

impl ControlCommand {
    fn new(order: ControlOpcode, number: u32) -> ControlCommand {
        ControlCommand(u64::from(number) << 32 | u64::from(order.code()))
    }

    fn sequence_number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the order; an unknown code counts as the order of a link.
    pub fn decode_opcode(self) -> ControlOpcode {
        let is = |order: &ControlOpcode| order.code() == self.0 as u32;
        [ControlOpcode::Doorbell, ControlOpcode::Word, ControlOpcode::Stop]
            .into_iter()
            .find(is)
            .unwrap_or(ControlOpcode::Link)
    }
}

/// The words, seen by either side.
#[derive(Debug, Clone, Copy)]
pub struct RpmsgControlBlock<M> {
    memory: M,
    at: usize,
}

impl<M: RpmsgMemory> RpmsgControlBlock<M> {
    /// The words at the end of a window.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] if the window is smaller than they are, or ends within a cache line.
    pub fn new(memory: M) -> Result<Self, Fault> {
        match memory.size().checked_sub(SIZE) {
            Some(at) if at.is_multiple_of(64) => Ok(RpmsgControlBlock { memory, at }),
            _ => Err(Fault::OutOfWindow),
        }
    }

    /// The host gives an order, even one that was given before.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank, here and below.
    pub fn issue(&self, order: ControlOpcode) -> Result<ControlCommand, Fault> {
        let accepted = ControlCommand(self.memory.load_u64(self.at + ACCEPTED)?);
        let command = ControlCommand::new(order, accepted.sequence_number().wrapping_add(1));
        // What the host wrote for the remote is seen by it when it sees the order.
        self.memory.fence();
        self.memory.store_u64(self.at + COMMAND, command.0)?;
        Ok(command)
    }

    /// The host sees whether the remote obeys a command.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn is_accepted(&self, command: ControlCommand) -> Result<bool, Fault> {
        let accepted = self.memory.load_u64(self.at + ACCEPTED)?;
        self.memory.fence();
        Ok(accepted == command.0)
    }

    /// The remote sees the command. One in two halves, of a host that stores no 64 bits at
    /// once, is followed by the whole one.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn load_command(&self) -> Result<ControlCommand, Fault> {
        self.memory.load_u64(self.at + COMMAND).map(ControlCommand)
    }

    /// Accepts a command: the host sees all earlier stores of the remote before this.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn accept(&self, command: ControlCommand) -> Result<(), Fault> {
        self.memory.fence();
        self.memory.store_u64(self.at + ACCEPTED, command.0)
    }

    /// The host sends a single word: another than the one before.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn send_word(&self, word: u64) -> Result<(), Fault> {
        self.memory.store_u64(self.at + WORD, word)
    }

    /// The remote sees the host's word.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn load_word(&self) -> Result<u64, Fault> {
        self.memory.load_u64(self.at + WORD)
    }

    /// The remote sends a word back.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn send_reply(&self, word: u64) -> Result<(), Fault> {
        self.memory.store_u64(self.at + REPLY, word)
    }

    /// The host sees whether a word came back. Halves of two words are neither of them.
    ///
    /// # Errors
    /// See [`RpmsgControlBlock::issue`].
    pub fn is_echoed(&self, word: u64) -> Result<bool, Fault> {
        Ok(self.memory.load_u64(self.at + REPLY)? == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::AtomicCellMemory;
    use std::sync::atomic::AtomicU16;

    fn memory(bytes: usize) -> AtomicCellMemory<Vec<AtomicU16>> {
        AtomicCellMemory((0..bytes / 2).map(|_| AtomicU16::new(0)).collect())
    }

    #[test]
    fn every_order_is_known_and_the_rest_is_a_link() {
        for order in [ControlOpcode::Link, ControlOpcode::Doorbell, ControlOpcode::Word, ControlOpcode::Stop]
        {
            assert_eq!(ControlCommand::new(order, 7).decode_opcode(), order);
        }
        for other in [0, u64::MAX, u64::from(ControlOpcode::Stop.code()) << 32] {
            assert_eq!(ControlCommand(other).decode_opcode(), ControlOpcode::Link);
        }
    }

    #[test]
    fn an_order_given_again_is_to_be_accepted_again() {
        let memory = memory(SIZE);
        let control = RpmsgControlBlock::new(&memory).unwrap();
        let first = control.issue(ControlOpcode::Link).unwrap();
        control.accept(control.load_command().unwrap()).unwrap();
        assert_eq!(control.is_accepted(first), Ok(true));
        let second = control.issue(ControlOpcode::Link).unwrap();
        assert_eq!(control.is_accepted(second), Ok(false));
    }

    #[test]
    fn the_words_are_the_windows_last() {
        let memory = memory(0x3000);
        let control = RpmsgControlBlock::new(&memory).unwrap();
        control.send_word(0x0102_0304_0506_0708).unwrap();
        assert_eq!(memory.load_u8(0x2080), Ok(8));
        assert_eq!(control.is_echoed(0x0102_0304_0506_0708), Ok(false));
        control.send_reply(control.load_word().unwrap()).unwrap();
        assert_eq!(control.is_echoed(0x0102_0304_0506_0708), Ok(true));
        assert_eq!(memory.load_u8(0x20C0), Ok(8));
    }

    #[test]
    fn a_window_without_room_has_no_words() {
        assert!(RpmsgControlBlock::new(memory(SIZE - 64)).is_err());
        assert!(RpmsgControlBlock::new(memory(SIZE + 32)).is_err());
    }
}
