//! A pseudo terminal that leads to a remote: what is written to it goes there,
//! and what comes from there can be read from it.

use super::{ChannelFailure, MessageWakeSource, RemoteChannel};
use crate::notify::poll;
use anyhow::Result;
use latscope_os::signal::SignalFd;
pub use latscope_process::pseudo_terminal::PseudoTerminal;
use latscope_rpmsg::link::Unsent;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::AsFd;
use rustix::io::{Errno, ioctl_fionread, read, write};
use std::io;
use std::time::Duration;

/// Longest wait before a check that the remote still runs.
const WATCHDOG: Duration = Duration::from_millis(100);

/// Wait for an event that nothing announces: a free buffer of the remote, or a message where the transport has no
/// notification.
const STALL: Duration = Duration::from_millis(1);

/// Looks at the traffic in both directions between two looks at the signals.
const LOOKS: u32 = 64;

/// Bytes read from the terminal, or kept for it, at once.
const ROOM: usize = 4096;

/// Traffic in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Number of bytes relayed.
    pub bytes: u64,
    /// Messages they were in.
    pub messages: u64,
}

/// Traffic that was relayed, and its losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PtyRelayTotals {
    /// Traffic from the terminal to the remote.
    pub there: Flow,
    /// Traffic from the remote to the terminal.
    pub back: Flow,
    /// Bytes that were written to the terminal and did not get to the remote.
    pub unsent: u64,
    /// Bytes that came from the remote and did not get to the terminal.
    pub unread: u64,
}

/// Reason why a relay ended.
#[derive(Debug, PartialEq, Eq)]
pub enum PtyRelayEnd {
    /// Number of the signal that ended it.
    Signal(i32),
    /// The remote ended: its manner of ending, as far as that can be known.
    Remote(String),
}

/// Relays until a signal arrives or the remote ends.
///
/// One loop serves both directions and never waits for one direction alone. It holds at most one message of each
/// direction, and takes the next only after that message is written, so that only a side that writes and does not read
/// is delayed.
///
/// # Errors
/// The kernel refuses to read or write.
pub fn relay(
    terminal: &PseudoTerminal,
    channel: &mut dyn RemoteChannel,
    signals: &SignalFd,
) -> Result<(PtyRelayTotals, PtyRelayEnd)> {
    let limit = channel.limit();
    let mut relay = Relay {
        terminal,
        channel,
        there: PtyMessageBuffer::new(limit.min(ROOM)),
        back: PtyMessageBuffer::new(limit),
        tally: PtyRelayTotals::default(),
    };
    let end = relay.run_loop(signals)?;
    let waiting = ioctl_fionread(&terminal.master).unwrap_or(0);
    relay.tally.unsent = relay.there.remaining_len() as u64 + waiting;
    relay.tally.unread = relay.back.remaining_len() as u64;
    Ok((relay.tally, end))
}

/// A message under way.
struct PtyMessageBuffer {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl PtyMessageBuffer {
    fn new(size: usize) -> PtyMessageBuffer {
        PtyMessageBuffer { bytes: vec![0; size], from: 0, to: 0 }
    }

    fn remaining_len(&self) -> usize {
        self.to - self.from
    }

    fn remaining_bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    fn set_length(&mut self, length: usize) {
        (self.from, self.to) = (0, length);
    }
}

struct Relay<'a> {
    terminal: &'a PseudoTerminal,
    channel: &'a mut dyn RemoteChannel,
    there: PtyMessageBuffer,
    back: PtyMessageBuffer,
    tally: PtyRelayTotals,
}

impl Relay<'_> {
    fn run_loop(&mut self, signals: &SignalFd) -> Result<PtyRelayEnd> {
        let mut looks = 0u32;
        loop {
            let moved = match self.move_bytes() {
                Ok(moved) => moved,
                Err(ChannelFailure::Io(error)) => return Err(error.into()),
                Err(failure) => {
                    return Ok(PtyRelayEnd::Remote(
                        self.channel.end_description().unwrap_or(failure.to_string()),
                    ));
                }
            };
            looks = if moved { looks + 1 } else { 0 };
            if looks.is_multiple_of(LOOKS) {
                if let Some(signal) = signals.next()? {
                    return Ok(PtyRelayEnd::Signal(signal));
                }
                if let Some(end) = self.channel.end_description() {
                    return Ok(PtyRelayEnd::Remote(end));
                }
            }
            if !moved {
                self.wait_until_ready(signals)?;
            }
        }
    }

    /// Moves all bytes that can be moved; returns true if there were any.
    fn move_bytes(&mut self) -> Result<bool, ChannelFailure> {
        let mut moved = false;
        if self.there.remaining_len() == 0 {
            let length = no_wait(read(&self.terminal.master, &mut self.there.bytes[..]))?;
            self.there.set_length(length);
        }
        if self.there.remaining_len() > 0 {
            match self.channel.send_message(self.there.remaining_bytes()) {
                Ok(()) => {
                    count_message(&mut self.tally.there, self.there.remaining_len());
                    self.there.set_length(0);
                    moved = true;
                }
                Err(ChannelFailure::Unsent(Unsent::NoBuffer)) => {}
                Err(failure) => return Err(failure),
            }
        }
        if self.back.remaining_len() == 0 {
            match self.channel.receive_message(&mut self.back.bytes, 0) {
                Ok(length) => {
                    count_message(&mut self.tally.back, length);
                    self.back.set_length(length);
                    moved = true;
                }
                Err(ChannelFailure::Timeout) => {}
                Err(failure) => return Err(failure),
            }
        }
        if self.back.remaining_len() > 0 {
            let length = no_wait(write(&self.terminal.master, self.back.remaining_bytes()))?;
            self.back.from += length;
            moved |= length > 0;
        }
        Ok(moved)
    }

    /// Sleeps until something can be moved.
    fn wait_until_ready(&mut self, signals: &SignalFd) -> Result<(), ChannelFailure> {
        let mut flags = PollFlags::empty();
        if self.there.remaining_len() == 0 {
            flags |= PollFlags::IN;
        }
        if self.back.remaining_len() > 0 {
            flags |= PollFlags::OUT;
        }
        let stalled = self.there.remaining_len() > 0;
        let terminal = PollFd::from_borrowed_fd(self.terminal.master.as_fd(), flags);
        let signals = PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN);
        match self.channel.wake_source()? {
            // Nothing is taken from it before the last message has gone.
            _ if self.back.remaining_len() > 0 => poll(&mut [terminal, signals], STALL)?,
            MessageWakeSource::Now => return Ok(()),
            MessageWakeSource::Readable(remote) => {
                let remote = PollFd::from_borrowed_fd(remote, PollFlags::IN);
                poll(&mut [terminal, signals, remote], if stalled { STALL } else { WATCHDOG })?
            }
            MessageWakeSource::Unknown => poll(&mut [terminal, signals], STALL)?,
        };
        Ok(())
    }
}

fn count_message(flow: &mut Flow, length: usize) {
    flow.bytes += length as u64;
    flow.messages += 1;
}

/// Returns the byte count of a call that does not wait; 0 where the call would have to wait.
fn no_wait(done: rustix::io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        done => Ok(done?),
    }
}

/// Sends back all bytes written to a terminal, until a signal arrives, and returns their number. There is no remote.
///
/// # Errors
/// The kernel refuses to read or write.
pub fn echo(terminal: &PseudoTerminal, signals: &SignalFd) -> Result<u64> {
    let mut held = PtyMessageBuffer::new(ROOM);
    let (mut bytes, mut looks) = (0, 0u32);
    loop {
        if held.remaining_len() == 0 {
            let length = no_wait(read(&terminal.master, &mut held.bytes[..]))?;
            held.set_length(length);
        }
        let length = if held.remaining_len() > 0 {
            no_wait(write(&terminal.master, held.remaining_bytes()))?
        } else {
            0
        };
        held.from += length;
        bytes += length as u64;
        looks = if length > 0 { looks + 1 } else { 0 };
        if !looks.is_multiple_of(LOOKS) {
            continue;
        }
        if signals.next()?.is_some() {
            return Ok(bytes);
        }
        if length > 0 {
            continue;
        }
        let flags = if held.remaining_len() > 0 { PollFlags::OUT } else { PollFlags::IN };
        let terminal = PollFd::from_borrowed_fd(terminal.master.as_fd(), flags);
        let signals = PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN);
        poll(&mut [terminal, signals], WATCHDOG)?;
    }
}

#[cfg(test)]
mod tests;
