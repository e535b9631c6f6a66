//! Pings over any channel, made one after the other and each verified.

use super::text::Trips;
use super::{Lines, Pings, disturbance, wait_for_signal};
use crate::context::PersonalityContext;
use anyhow::Result;
use latscope_bench::timebase::Timebase;
use latscope_exchange::remote::{ChannelFailure, RemoteChannel};
use latscope_os::clock::{Clock, monotonic_ns};
use latscope_os::signal::SignalFd;
use latscope_rpmsg::messages::{LongPing, LongPingAssembler, LongPingDivision, PingWordSize, ShortPing};

/// Longest wait for the reply to a ping, in ns. A ping without a reply by then is lost.
const TIMEOUT: u64 = 1_000_000_000;

/// Silence of the remote, in ns, after which no late reply is expected.
const QUIET: u64 = 50_000_000;

/// Form of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McsPingKind {
    /// Message of 48 bytes with a number.
    Ping,
    /// Message of eight packets of 480 bytes, as the original has it.
    LongPing,
    /// Line of text with a number, as long as the original's.
    Text,
}

/// Counts of pings that were no round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct McsPingLossCounts {
    lost: u64,
    late: u64,
    mismatched: u64,
}

/// Sender of pings over a channel.
pub struct McsPinger<'a> {
    channel: &'a mut dyn RemoteChannel,
    timebase: Timebase,
    message: McsPingKind,
    number: u64,
    room: Vec<u8>,
    counts: McsPingLossCounts,
}

impl<'a> McsPinger<'a> {
    /// Returns a pinger for a channel that is connected to the service for this message.
    pub fn new(channel: &'a mut dyn RemoteChannel, message: McsPingKind) -> McsPinger<'a> {
        let room = vec![0; channel.limit()];
        let (timebase, _) = Timebase::calibrate();
        McsPinger { channel, timebase, message, number: 0, room, counts: McsPingLossCounts::default() }
    }

    /// Sends as many pings as asked for, or until a signal, and prints the figures on stdout. Prints on stderr which
    /// pings were no round trip, if there were any. Returns the figures, and true if a signal ended the run.
    ///
    /// # Errors
    /// The remote is gone.
    pub(super) fn run_pings(
        mut self,
        context: &PersonalityContext,
        pings: &Pings,
        signals: &SignalFd,
        text: impl Fn(&Trips) -> String,
    ) -> Result<(Trips, bool)> {
        let mut lines = Lines::new();
        let outcome = self.repeat(pings, signals, |trips| lines.replace_lines(&text(trips)));
        let McsPingLossCounts { lost, late, mismatched } = self.counts;
        let (faults, again) = (self.channel.faults(), self.channel.duplicates());
        let failed = [lost, late, mismatched, faults, again] != [0; 5];
        if failed {
            let all = self.number;
            context.print_note(&format!(
                "of {all} pings {lost} had no reply within a second and {mismatched} another one than was sent; \
                 {late} replies came later (those that were still waited for are in the figures), {again} came again, \
                 and there were {faults} faults of the remote"
            ));
        }
        if let Some(text) = disturbance(self.channel, failed) {
            context.print_note(&text);
        }
        outcome
    }

    fn repeat(
        &mut self,
        pings: &Pings,
        signals: &SignalFd,
        mut show: impl FnMut(&Trips),
    ) -> Result<(Trips, bool)> {
        let mut trips = Trips::default();
        loop {
            if let Some(ns) = self.send_ping()? {
                trips.add_trip(ns);
                show(&trips);
            }
            if self.number == pings.loops {
                return Ok((trips, false));
            }
            if wait_for_signal(signals, pings.pace)? {
                return Ok((trips, true));
            }
        }
    }

    /// Sends one ping. Returns its time in ns, if the reply came back whole.
    fn send_ping(&mut self) -> Result<Option<u64>, ChannelFailure> {
        self.number += 1;
        match self.message {
            McsPingKind::LongPing => self.long(),
            McsPingKind::Ping => {
                let mut room = [0; ShortPing::SIZE];
                let message = ShortPing { number: self.number }.write_ping(PingWordSize::Eight, &mut room);
                self.exchange_short(message, |reply| {
                    ShortPing::parse(PingWordSize::Eight, reply).ok().map(|ping| ping.number)
                })
            }
            McsPingKind::Text => {
                let message = text(self.number);
                self.exchange_short(message.as_bytes(), number_of)
            }
        }
    }

    fn exchange_short(
        &mut self,
        message: &[u8],
        number: fn(&[u8]) -> Option<u64>,
    ) -> Result<Option<u64>, ChannelFailure> {
        let clock = self.timebase.clock();
        let until = monotonic_ns() + TIMEOUT;
        let begun = clock.stamp_start();
        self.channel.send_message(message)?;
        loop {
            let received = self.channel.receive_message(&mut self.room, until);
            let ended = clock.stamp_end();
            let reply = match received {
                Ok(length) => &self.room[..length],
                Err(ChannelFailure::Timeout) => {
                    self.counts.lost += 1;
                    self.channel.give_up()?;
                    return Ok(None);
                }
                Err(failure) => return Err(failure),
            };
            if reply == message {
                self.counts.late += u64::from(monotonic_ns() > until);
                return Ok(Some(self.timebase.interval_ns(ended - begun) as u64));
            }
            if number(reply).is_none_or(|number| number >= self.number) {
                self.counts.mismatched += 1;
                return Ok(None);
            }
            self.counts.late += 1;
        }
    }

    fn long(&mut self) -> Result<Option<u64>, ChannelFailure> {
        let sent = LongPing { form: LongPingDivision::Legacy, word: PingWordSize::Eight };
        let clock = self.timebase.clock();
        let mut assembler = LongPingAssembler::new(sent);
        let mut room = [0; LongPing::PACKET];
        let until = monotonic_ns() + TIMEOUT;
        let begun = clock.stamp_start();
        for index in 0..sent.packets() {
            self.channel.send_message(sent.write_packet(index, &mut room))?;
        }
        loop {
            match self.channel.receive_message(&mut self.room, until) {
                Ok(length) if assembler.receive_packet(&self.room[..length]) => break,
                Ok(_) => {}
                Err(ChannelFailure::Timeout) => {
                    self.counts.lost += 1;
                    self.drain()?;
                    return Ok(None);
                }
                Err(failure) => return Err(failure),
            }
        }
        let ended = clock.stamp_end();
        self.counts.late += u64::from(monotonic_ns() > until);
        let tally = assembler.tally();
        let sound = tally.mismatched + tally.duplicated + tally.reordered == 0;
        self.counts.mismatched += u64::from(!sound);
        Ok(sound.then(|| self.timebase.interval_ns(ended - begun) as u64))
    }

    /// Waits for late replies, whose packets would be taken for those of the next ping.
    fn drain(&mut self) -> Result<(), ChannelFailure> {
        self.channel.give_up()?;
        let end = monotonic_ns() + TIMEOUT;
        while monotonic_ns() < end {
            match self.channel.receive_message(&mut self.room, monotonic_ns() + QUIET) {
                Ok(_) => self.counts.late += 1,
                Err(ChannelFailure::Timeout) => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// Text of a ping, as long as `Hello,world` and its carriage return.
fn text(number: u64) -> String {
    format!("Hello,{:05}\r", number % 100_000)
}

fn number_of(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.strip_prefix("Hello,")?.strip_suffix('\r')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_has_a_number_and_the_length_of_the_original() {
        for number in [1, 99_999] {
            assert_eq!(text(number).len(), b"Hello,world\r".len());
            assert_eq!(number_of(text(number).as_bytes()), Some(number));
        }
        assert_eq!(text(100_001), text(1));
        assert_eq!(number_of(b"Hello,world\r"), None);
    }
}
