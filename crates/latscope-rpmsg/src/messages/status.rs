//! What a remote says of itself: what it is, and what it counted.

use super::{Mismatch, PingWordSize};

/// Bytes of the name of a core, with the zero at its end.
const CORE: usize = 32;
/// Bytes of the name of a firmware, with the zero at its end.
const FIRMWARE: usize = 64;

/// Counts of the messages that a remote took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RpmsgServiceCounts {
    /// Number of messages replied to.
    pub replied: u64,
    /// Blocks that the sink took.
    pub sunk: u64,
    /// Messages without reply because they were not what the service expects, or longer than the buffer of this side.
    pub mismatched: u64,
    /// Messages to addresses without an endpoint.
    pub unknown: u64,
    /// Replies that did not fit the buffers of the other direction.
    pub too_long: u64,
    /// Times that a reply had to wait for a buffer.
    pub stalls: u64,
}

impl core::ops::AddAssign for RpmsgServiceCounts {
    fn add_assign(&mut self, more: RpmsgServiceCounts) {
        self.replied += more.replied;
        self.sunk += more.sunk;
        self.mismatched += more.mismatched;
        self.unknown += more.unknown;
        self.too_long += more.too_long;
        self.stalls += more.stalls;
    }
}

/// Answer of the service [`RpmsgStatus`](crate::echo::RpmsgService::Status). Counts are those since the remote began,
/// also of other hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmsgStatus {
    /// Counts of the messages that came.
    pub counts: RpmsgServiceCounts,
    /// Faults of hosts against the protocol.
    pub faults: u64,
    /// Time from a message found to its reply sent, in sum, ns; 0 where the remote has no clock.
    pub busy_ns: u64,
    /// The longest of these times since the last answer, ns; 0 where the remote has no clock.
    pub longest_ns: u64,
    /// Frequency of the remote's core, Hz; 0 if it does not say.
    pub clock_hz: u64,
    core: [u8; CORE],
    firmware: [u8; FIRMWARE],
}

impl RpmsgStatus {
    /// Bytes of an answer.
    pub const SIZE: usize = RpmsgStatus::WORDS * 8 + CORE + FIRMWARE;

    /// Number of words before the names.
    const WORDS: usize = 10;

    /// Returns an answer with these counts of a remote that has no clock. Names are cut to their room.
    pub fn new(counts: RpmsgServiceCounts, faults: u64, core: &str, firmware: &str) -> RpmsgStatus {
        let [busy_ns, longest_ns, clock_hz] = [0; 3];
        let mut status = RpmsgStatus {
            counts,
            faults,
            busy_ns,
            longest_ns,
            clock_hz,
            core: [0; CORE],
            firmware: [0; FIRMWARE],
        };
        write_name(core, &mut status.core);
        write_name(firmware, &mut status.firmware);
        status
    }

    /// The answer as it is sent: words, little-endian, then the names.
    pub fn encode_bytes(&self) -> [u8; RpmsgStatus::SIZE] {
        let RpmsgStatus { counts, faults, busy_ns, longest_ns, clock_hz, .. } = *self;
        let RpmsgServiceCounts { replied, sunk, mismatched, unknown, too_long, stalls } = counts;
        let words =
            [replied, sunk, mismatched, unknown, too_long, stalls, faults, busy_ns, longest_ns, clock_hz];
        let mut bytes = [0; RpmsgStatus::SIZE];
        PingWordSize::Eight.write(words, &mut bytes[..RpmsgStatus::WORDS * 8]);
        bytes[RpmsgStatus::WORDS * 8..][..CORE].copy_from_slice(&self.core);
        bytes[RpmsgStatus::WORDS * 8 + CORE..].copy_from_slice(&self.firmware);
        bytes
    }

    /// Takes an answer from a payload.
    ///
    /// # Errors
    /// [`Mismatch::Length`].
    pub fn parse(payload: &[u8]) -> Result<RpmsgStatus, Mismatch> {
        let payload: &[u8; RpmsgStatus::SIZE] = payload.try_into().map_err(|_| Mismatch::Length)?;
        let (words, names) = payload.split_at(RpmsgStatus::WORDS * 8);
        let word = |at: usize| words.as_chunks().0.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        let counts = RpmsgServiceCounts {
            replied: word(0),
            sunk: word(1),
            mismatched: word(2),
            unknown: word(3),
            too_long: word(4),
            stalls: word(5),
        };
        let mut status = RpmsgStatus::new(counts, word(6), "", "");
        (status.busy_ns, status.longest_ns, status.clock_hz) = (word(7), word(8), word(9));
        status.core.copy_from_slice(&names[..CORE]);
        status.firmware.copy_from_slice(&names[CORE..]);
        Ok(status)
    }

    /// Name of the core; empty if the remote does not say, or says no text.
    pub fn core(&self) -> &str {
        read_name(&self.core)
    }

    /// Name and version of the firmware; empty if the remote does not say, or says no text.
    pub fn firmware(&self) -> &str {
        read_name(&self.firmware)
    }
}

/// Writes a name before a zero.
fn write_name(name: &str, into: &mut [u8]) {
    let mut length = name.len().min(into.len() - 1);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    into[..length].copy_from_slice(&name.as_bytes()[..length]);
}

/// The text before the first zero.
fn read_name(bytes: &[u8]) -> &str {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    core::str::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_as_it_was() {
        let counts =
            RpmsgServiceCounts { replied: 1, sunk: 2, mismatched: 3, unknown: 4, too_long: 5, stalls: 6 };
        let mut status = RpmsgStatus::new(counts, 7, "Cortex-R5F", "Zephyr 4.2");
        (status.busy_ns, status.longest_ns, status.clock_hz) = (8, 9, 600_000_000);
        let found = RpmsgStatus::parse(&status.encode_bytes()).unwrap();
        assert_eq!((found, found.core(), found.firmware()), (status, "Cortex-R5F", "Zephyr 4.2"));
        assert_eq!(RpmsgStatus::parse(&status.encode_bytes()[1..]), Err(Mismatch::Length));
    }

    #[test]
    fn names_are_cut_and_what_is_no_text_is_no_name() {
        let status = RpmsgStatus::new(RpmsgServiceCounts::default(), 0, &"é".repeat(40), "");
        assert_eq!((status.core(), status.firmware()), ("é".repeat(15).as_str(), ""));
        let mut bytes = status.encode_bytes();
        bytes[RpmsgStatus::SIZE - FIRMWARE..].fill(0xff);
        assert_eq!(RpmsgStatus::parse(&bytes).unwrap().firmware(), "");
    }
}
