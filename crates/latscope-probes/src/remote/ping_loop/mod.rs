//! Pings: sent, timed, verified, and counted where they do not come back.

use super::ledger::RemoteMessageLedger;
use super::tally::RemoteFaultTally;
use latscope_exchange::remote::{ChannelFailure, RemoteChannel};
use latscope_os::clock::{Clock, monotonic_ns};
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::messages::{
    LongPing, LongPingAssembler, LongPingDivision, PingWordSize, ShortPing, block,
};

/// Number of losses in a row after which pinging ends.
pub(crate) const MOST_LOSSES: u32 = 3;

/// Longest timeout once the time of a row is over, ns.
const LAST_TIMEOUT: u64 = 1_000_000_000;

/// Longest wait for a buffer before the next try to get it, ns.
const MILLISECOND: u64 = 1_000_000;

/// Content of a ping. Each has a number, and is verified to the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingContentKind {
    /// The message of 48 bytes.
    Ping,
    /// A number and a pattern that follows from it, of any length.
    Block,
    /// A number of four bytes.
    Word,
}

impl PingContentKind {
    fn write_message(self, number: u64, into: &mut [u8]) {
        match self {
            PingContentKind::Ping => {
                let mut room = [0; ShortPing::SIZE];
                into.copy_from_slice(ShortPing { number }.write_ping(PingWordSize::Eight, &mut room));
            }
            PingContentKind::Block => block::write_block(number, into),
            PingContentKind::Word => into.copy_from_slice(&(number as u32).to_le_bytes()),
        }
    }

    /// The number of a sound message.
    fn parse_number(self, payload: &[u8]) -> Option<u64> {
        match self {
            PingContentKind::Ping => Some(ShortPing::parse(PingWordSize::Eight, payload).ok()?.number),
            PingContentKind::Block => block::verify_block(payload).ok(),
            // A word has no room for a pattern: it is the last one or wrong.
            PingContentKind::Word => None,
        }
    }
}

/// The host's end of a connection, and the record of what it sent.
pub(crate) struct PingLoop {
    /// Connection to the remote.
    pub channel: Box<dyn RemoteChannel>,
    timeout: u64,
    room: Vec<u8>,
    message: Vec<u8>,
    ledger: RemoteMessageLedger,
}

impl PingLoop {
    /// Returns a ping loop over a channel; a message that takes longer than `timeout` ns is lost.
    pub fn new(channel: Box<dyn RemoteChannel>, timeout: u64) -> PingLoop {
        let room = vec![0; channel.limit()];
        // An earlier run had other numbers.
        let ledger = RemoteMessageLedger::starting_at(monotonic_ns());
        PingLoop { channel, timeout, room, message: Vec::new(), ledger }
    }

    /// Shortens the timeout of what is no sample: the time of the row is over.
    pub fn shorten_timeout(&mut self) {
        self.timeout = self.timeout.min(LAST_TIMEOUT);
    }

    /// Counts of messages that are no sample so far.
    pub fn tally(&self) -> RemoteFaultTally {
        self.ledger.tally
    }

    /// Sends a ping of `length` bytes; returns the ticks until its echo.
    ///
    /// # Errors
    /// [`ChannelFailure::Timeout`]: the ping is lost. Other errors end the connection.
    #[inline]
    pub fn ping(
        &mut self,
        kind: PingContentKind,
        length: usize,
        clock: impl Clock,
    ) -> Result<u64, ChannelFailure> {
        let number = self.ledger.next();
        self.message.resize(length, 0);
        kind.write_message(number, &mut self.message);
        self.ledger.record_sent();
        let until = monotonic_ns() + self.timeout;
        let begun = clock.stamp_start();
        self.send_message(until, None)?;
        loop {
            let length = self.receive_message(until)?;
            let ended = clock.stamp_end();
            if self.room[..length] == *self.message {
                self.ledger.record_received(number);
                self.note_late(until);
                return Ok(ended - begun);
            }
            self.surplus(kind, length, number);
            self.in_time(until)?;
        }
    }

    /// Counts a reply that was there when the timeout had passed, since this thread could not look before. It
    /// is a sample, since it took that long.
    #[inline]
    fn note_late(&mut self, until: u64) {
        self.ledger.tally.late += u64::from(monotonic_ns() > until);
    }

    /// Messages that were sent.
    pub fn sent(&self) -> u64 {
        self.ledger.sent()
    }

    /// Messages that came back as they were sent, and all that were sent; `None` if none came or all did.
    pub fn answered(&self) -> Option<(u64, u64)> {
        let (answered, sent) = (self.ledger.received, self.ledger.sent());
        (answered > 0 && answered < sent).then_some((answered, sent))
    }

    /// Returns true if messages were sent, and all came back.
    pub fn all_answered(&self) -> bool {
        self.ledger.sent() > 0 && self.ledger.received >= self.ledger.sent()
    }

    /// Returns true if messages were sent, and none came back.
    pub fn none_answered(&self) -> bool {
        self.ledger.sent() > 0 && self.ledger.received == 0
    }

    /// Counts a message that is not the expected echo.
    #[cold]
    fn surplus(&mut self, kind: PingContentKind, length: usize, expected: u64) {
        match kind.parse_number(&self.room[..length]).filter(|number| *number != expected) {
            Some(number) => _ = self.ledger.record_received(number),
            None => self.ledger.tally.mismatched += 1,
        }
    }

    /// Sends all packets of a long ping back to back. Returns the ticks if all came as they were sent, once,
    /// and in order.
    ///
    /// # Errors
    /// The errors of [`PingLoop::ping`].
    pub fn long_ping(&mut self, sent: LongPing, clock: impl Clock) -> Result<Option<u64>, ChannelFailure> {
        let mut packets = LongPingAssembler::new(sent);
        let until = monotonic_ns() + self.timeout;
        let begun = clock.stamp_start();
        let whole = (0..sent.packets())
            .try_for_each(|index| self.post_packet(sent, index, until, &mut packets))
            .and_then(|()| self.receive_packets(&mut packets, sent.packets(), until));
        let ended = clock.stamp_end();
        let sound = self.count(&packets);
        if whole.is_ok() {
            self.note_late(until);
        }
        whole.map(|()| sound.then_some(ended - begun))
    }

    /// Sends the packets of a long ping, each when the one before came back. Returns the ticks as
    /// [`PingLoop::long_ping`] does; those of each packet go to `packet`.
    ///
    /// # Errors
    /// The errors of [`PingLoop::ping`].
    pub fn lock_step(
        &mut self,
        sent: LongPing,
        clock: impl Clock,
        mut packet: impl FnMut(u64),
    ) -> Result<Option<u64>, ChannelFailure> {
        let mut packets = LongPingAssembler::new(sent);
        let until = monotonic_ns() + self.timeout;
        let mut ticks = [(0, 0); MOST_PACKETS];
        let whole: Result<(), ChannelFailure> = (0..sent.packets()).try_for_each(|index| {
            ticks[index].0 = clock.stamp_start();
            self.post_packet(sent, index, until, &mut packets)?;
            self.receive_packets(&mut packets, index + 1, until)?;
            ticks[index].1 = clock.stamp_end();
            Ok(())
        });
        let sound = self.count(&packets);
        whole?;
        self.note_late(until);
        let ticks = &ticks[..sent.packets()];
        if !sound {
            return Ok(None);
        }
        ticks.iter().for_each(|(begun, ended)| packet(ended - begun));
        Ok(ticks.first().zip(ticks.last()).map(|((begun, _), (_, ended))| ended - begun))
    }

    fn post_packet(
        &mut self,
        sent: LongPing,
        index: usize,
        until: u64,
        packets: &mut LongPingAssembler,
    ) -> Result<(), ChannelFailure> {
        let mut room = [0; LongPing::PACKET];
        self.message.clear();
        self.message.extend_from_slice(sent.write_packet(index, &mut room));
        self.send_message(until, Some(packets))
    }

    /// Takes packets until `count` of them are there.
    fn receive_packets(
        &mut self,
        packets: &mut LongPingAssembler,
        count: usize,
        until: u64,
    ) -> Result<(), ChannelFailure> {
        while (packets.tally().received as usize) < count {
            let length = self.receive_message(until)?;
            let before = packets.tally().received;
            match is_fence(&self.room[..length]) {
                true => self.ledger.tally.late += 1,
                false => _ = packets.receive_packet(&self.room[..length]),
            }
            if packets.tally().received == before {
                self.in_time(until)?;
            }
        }
        Ok(())
    }

    /// Adds the counts of the packets to the tally; returns true if all were sound.
    fn count(&mut self, packets: &LongPingAssembler) -> bool {
        let (found, tally) = (packets.tally(), &mut self.ledger.tally);
        tally.mismatched += u64::from(found.mismatched);
        tally.duplicated += u64::from(found.duplicated);
        tally.reordered += u64::from(found.reordered);
        found.mismatched + found.duplicated + found.reordered == 0
    }

    /// Sends a packet that no long ping has, and takes all that comes before its echo, which is late: packets
    /// do not state to which long ping they belong.
    ///
    /// # Errors
    /// The errors of [`PingLoop::ping`].
    pub fn fence(&mut self) -> Result<(), ChannelFailure> {
        let number = self.ledger.next();
        self.ledger.record_sent();
        let ended = self.echo_of_fence(FENCE | number);
        match ended {
            Ok(()) => drop(self.ledger.record_received(number)),
            Err(_) => self.ledger.give_up(),
        }
        ended
    }

    fn echo_of_fence(&mut self, mark: u64) -> Result<(), ChannelFailure> {
        let sent = LongPing { form: LongPingDivision::Legacy, word: PingWordSize::Eight };
        let until = monotonic_ns() + self.timeout;
        let mut room = [0; LongPing::PACKET];
        self.message.clear();
        self.message.extend_from_slice(sent.write_packet(0, &mut room));
        self.message[..8].copy_from_slice(&mark.to_le_bytes());
        self.send_message(until, None)?;
        loop {
            let length = self.receive_message(until)?;
            if self.room[..length] == *self.message {
                return Ok(());
            }
            self.ledger.tally.late += 1;
            self.in_time(until)?;
        }
    }

    /// Sends the message; waits for a buffer if none is free. Packets of the same long ping may come meanwhile;
    /// all other messages are late.
    #[inline]
    fn send_message(
        &mut self,
        until: u64,
        packets: Option<&mut LongPingAssembler>,
    ) -> Result<(), ChannelFailure> {
        match self.channel.send_message(&self.message) {
            Err(ChannelFailure::Unsent(Unsent::NoBuffer)) => self.post_later(until, packets),
            sent => sent,
        }
    }

    #[cold]
    fn post_later(
        &mut self,
        until: u64,
        mut packets: Option<&mut LongPingAssembler>,
    ) -> Result<(), ChannelFailure> {
        loop {
            self.in_time(until)?;
            match self.channel.receive_message(&mut self.room, until.min(monotonic_ns() + MILLISECOND)) {
                Ok(length) => match &mut packets {
                    Some(packets) if !is_fence(&self.room[..length]) => {
                        packets.receive_packet(&self.room[..length]);
                    }
                    _ => self.ledger.tally.late += 1,
                },
                Err(ChannelFailure::Timeout) => {}
                Err(failure) => return Err(failure),
            }
            match self.channel.send_message(&self.message) {
                Err(ChannelFailure::Unsent(Unsent::NoBuffer)) => {}
                sent => return sent,
            }
        }
    }

    /// Receives the next message; a message that does not come in time is lost.
    #[inline]
    fn receive_message(&mut self, until: u64) -> Result<usize, ChannelFailure> {
        let taken = self.channel.receive_message(&mut self.room, until);
        if matches!(taken, Err(ChannelFailure::Timeout)) {
            self.count_loss();
            self.channel.give_up()?;
        }
        taken
    }

    /// Ends a wait in which other messages keep coming.
    fn in_time(&mut self, until: u64) -> Result<(), ChannelFailure> {
        if monotonic_ns() < until {
            return Ok(());
        }
        self.count_loss();
        Err(ChannelFailure::Timeout)
    }

    #[cold]
    fn count_loss(&mut self) {
        match self.ledger.outstanding() {
            0 => self.ledger.tally.lost += 1,
            _ => self.ledger.give_up(),
        }
    }
}

/// The most packets of a long ping.
const MOST_PACKETS: usize = 9;

/// Bit in the flag of a packet that belongs to no long ping.
const FENCE: u64 = 1 << 63;

fn is_fence(packet: &[u8]) -> bool {
    let flag = packet.first_chunk().map(|flag| u64::from_le_bytes(*flag));
    flag.is_some_and(|flag| flag & FENCE != 0 && flag != u64::MAX)
}

#[cfg(test)]
mod tests;
