//! Bandwidth: blocks without a pause, as many on their way as there is room for, each verified by its receiver.

use super::ledger::RemoteMessageLedger;
use super::ping_loop::MOST_LOSSES;
use super::tally::RemoteFaultTally;
use latscope_exchange::remote::{ChannelFailure, RemoteChannel};
use latscope_os::clock::{Clock, monotonic_ns};
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::messages::block::{self, Receipt};

/// Longest wait for a buffer before the next try to get it, ns.
const MILLISECOND: u64 = 1_000_000;

/// A stream of blocks. Its samples are stretches: the time from the last
/// verified block of one to the last of the next.
pub struct RemoteBlockStream<C> {
    /// Connection to the remote.
    pub channel: Box<dyn RemoteChannel>,
    clock: C,
    timeout: u64,
    room: Vec<u8>,
    block: Vec<u8>,
    ledger: RemoteMessageLedger,
    verified: Verified,
    /// Time at which the last block was sent, ticks.
    sent_at: u64,
    /// True if others started the remote, so that it may be gone.
    pub is_foreign: bool,
}

/// Blocks that arrived, and their times.
#[derive(Debug, Clone, Copy, Default)]
struct Verified {
    /// Number of blocks that warm up.
    warm: u64,
    blocks: u64,
    /// Ticks of the last block that warmed up, and of the last one.
    span: Option<(u64, u64)>,
    /// Ticks of the end of the last stretch, unless blocks were lost since, and blocks since then.
    mark: Option<u64>,
    since: u64,
}

/// Result of a stream.
#[derive(Debug, Clone, Copy)]
pub struct RemoteStreamOutcome {
    /// Number of blocks sent.
    pub sent: u64,
    /// Blocks that were verified.
    pub received: u64,
    /// Blocks verified between the first and the last stamp, and the ticks between these.
    pub timed: (u64, u64),
    /// Ticks from the last block sent to the last one verified.
    pub drain: u64,
    /// Counts of messages that are no sample.
    pub tally: RemoteFaultTally,
}

impl<C: Clock> RemoteBlockStream<C> {
    /// Returns a stream of blocks of `payload` bytes over a channel; a block that takes longer than `timeout`
    /// ns is lost.
    pub fn new(
        channel: Box<dyn RemoteChannel>,
        payload: usize,
        timeout: u64,
        clock: C,
    ) -> RemoteBlockStream<C> {
        let warm = 2 * channel.window() as u64;
        RemoteBlockStream {
            room: vec![0; channel.limit()],
            block: vec![0; payload],
            ledger: RemoteMessageLedger::starting_at(monotonic_ns()),
            verified: Verified { warm, ..Verified::default() },
            channel,
            clock,
            timeout,
            sent_at: 0,
            is_foreign: true,
        }
    }

    /// Blocks of a stretch: of several halves of a window, since halves may come together.
    pub fn stretch(&self) -> u64 {
        8 * self.half()
    }

    /// Number of blocks for which a sink is asked for one receipt; it has other blocks meanwhile.
    fn half(&self) -> u64 {
        (self.channel.window() as u64 / 2).max(1)
    }

    /// Sends blocks that are echoed and verified here, as long as `more` returns true. The ticks of each
    /// stretch without a loss go to `record`.
    ///
    /// # Errors
    /// The connection ended, or nothing came for several timeouts.
    pub fn echoed(
        &mut self,
        more: &mut dyn FnMut() -> bool,
        record: &mut dyn FnMut(u64),
    ) -> Result<(), ChannelFailure> {
        let (window, mut losses) = (self.channel.window(), 0);
        loop {
            let sending = more();
            while sending && self.ledger.outstanding() < window && self.send_block()? {
                self.ledger.record_sent();
            }
            if self.ledger.outstanding() == 0 && !sending {
                return Ok(());
            }
            match self.channel.receive_message(&mut self.room, monotonic_ns() + self.timeout) {
                Ok(length) => {
                    losses = 0;
                    if self.echo(length) {
                        self.count_verified(1, record);
                    }
                }
                Err(ChannelFailure::Timeout) => {
                    // A remote of others that answers nothing of a whole window at the end has fallen silent. One that
                    // this program started is there, and may have had no CPU.
                    let silent =
                        self.is_foreign && !sending && window > 1 && self.ledger.outstanding() == window;
                    self.ledger.give_up();
                    self.channel.give_up()?;
                    self.verified.mark = None;
                    losses += 1;
                    if losses == MOST_LOSSES || silent {
                        return Err(ChannelFailure::Timeout);
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Verifies an echo; returns true if it is a block that is on its way.
    #[inline]
    fn echo(&mut self, length: usize) -> bool {
        match block::verify_block(&self.room[..length]) {
            Ok(number) if length == self.block.len() => self.ledger.record_received(number),
            _ => {
                self.ledger.tally.mismatched += 1;
                false
            }
        }
    }

    /// Sends blocks that the other side verifies; it reports now and then how many were sound.
    ///
    /// # Errors
    /// The errors of [`RemoteBlockStream::echoed`]. Receipts do not state what they are for, so that the first lost
    /// receipt ends the stream.
    pub fn send_to_sink(
        &mut self,
        more: &mut dyn FnMut() -> bool,
        record: &mut dyn FnMut(u64),
    ) -> Result<(), ChannelFailure> {
        self.clear_sink()?;
        let half = self.half();
        // Messages left of the present half, the last of which asks; halves without a receipt; their blocks.
        let (mut left, mut open, mut unanswered, mut silent) = (0, 0, 0, 0);
        loop {
            if left == 0 && open < 2 && more() {
                left = half + 1;
            }
            while left > 1 && self.send_block()? {
                self.ledger.skip_number();
                (left, unanswered) = (left - 1, unanswered + 1);
            }
            if left == 1 && self.try_send(&[])? {
                (left, open) = (0, open + 1);
            }
            if left == 0 && open == 0 {
                return Ok(());
            }
            // The other half may find room while the first is on its way.
            if left == 0 && open < 2 && more() {
                continue;
            }
            let timeout = if left > 0 { MILLISECOND } else { self.timeout };
            match self.channel.receive_message(&mut self.room, monotonic_ns() + timeout) {
                Ok(length) => {
                    silent = 0;
                    match Receipt::parse(&self.room[..length]) {
                        Ok(receipt) if open > 0 => {
                            (open, unanswered) = (open - 1, unanswered - half);
                            self.receipt(receipt, half, record);
                        }
                        _ => self.ledger.tally.mismatched += 1,
                    }
                }
                Err(ChannelFailure::Timeout) => {
                    silent += timeout;
                    if silent >= self.timeout {
                        self.ledger.tally.lost += unanswered;
                        return Err(ChannelFailure::Timeout);
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes the receipt of messages that were sent before this stream.
    fn clear_sink(&mut self) -> Result<(), ChannelFailure> {
        self.try_send(&[])?;
        let until = monotonic_ns() + self.timeout;
        loop {
            let length = self.channel.receive_message(&mut self.room, until)?;
            if Receipt::parse(&self.room[..length]).is_ok() {
                return Ok(());
            }
            if monotonic_ns() >= until {
                return Err(ChannelFailure::Timeout);
            }
        }
    }

    fn receipt(&mut self, receipt: Receipt, sent: u64, record: &mut dyn FnMut(u64)) {
        let Receipt { blocks, bytes, mismatched } = receipt;
        let whole = blocks.checked_mul(self.block.len() as u64) == Some(bytes);
        let tally = &mut self.ledger.tally;
        tally.mismatched = tally.mismatched.saturating_add(mismatched).saturating_add(u64::from(!whole));
        tally.duplicated = tally.duplicated.saturating_add(blocks.saturating_sub(sent));
        tally.lost += sent.saturating_sub(blocks.saturating_add(mismatched));
        if whole && blocks <= sent {
            self.ledger.received += blocks;
            if blocks < sent {
                self.verified.mark = None;
            }
            self.count_verified(blocks, record);
        } else {
            self.verified.mark = None;
        }
    }

    /// Sends the next block; false if there is no room for it.
    #[inline]
    fn send_block(&mut self) -> Result<bool, ChannelFailure> {
        block::write_block(self.ledger.next(), &mut self.block);
        let block = std::mem::take(&mut self.block);
        let sent = self.try_send(&block);
        self.block = block;
        if *sent.as_ref().unwrap_or(&false) {
            self.sent_at = self.clock.stamp_end();
        }
        sent
    }

    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Result<bool, ChannelFailure> {
        match self.channel.send_message(message) {
            Ok(()) => Ok(true),
            Err(ChannelFailure::Unsent(Unsent::NoBuffer)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Counts `blocks` blocks that were verified just now.
    #[inline]
    fn count_verified(&mut self, blocks: u64, record: &mut dyn FnMut(u64)) {
        let (now, stretch) = (self.clock.stamp_end(), self.stretch());
        let verified = &mut self.verified;
        verified.blocks += blocks;
        if verified.blocks <= verified.warm {
            verified.span = Some((now, now));
            (verified.mark, verified.since) = (Some(now), 0);
            return;
        }
        if let Some((_, last)) = &mut verified.span {
            *last = now;
        }
        verified.since += blocks;
        match verified.mark {
            Some(mark) if verified.since >= stretch => record(now - mark),
            Some(_) => return,
            None => {}
        }
        (verified.mark, verified.since) = (Some(now), 0);
    }

    /// Returns the result of the stream.
    pub fn outcome(&self) -> RemoteStreamOutcome {
        let verified = &self.verified;
        let (first, last) = verified.span.unwrap_or_default();
        RemoteStreamOutcome {
            sent: self.ledger.sent(),
            received: self.ledger.received,
            timed: (verified.blocks.saturating_sub(verified.warm), last - first),
            drain: last.saturating_sub(self.sent_at),
            tally: self.ledger.tally,
        }
    }
}

#[cfg(test)]
mod tests;
