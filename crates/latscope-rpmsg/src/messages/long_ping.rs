//! The long ping: 4 KiB in packets that each begin with a flag.

use super::{Mismatch, PATTERN, PingWordSize};

/// Bytes of data that a long ping is meant to carry.
const TOTAL: usize = 4096;

/// Division of 4 KiB into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongPingDivision {
    /// 4096 bytes of data: the last packet is shorter.
    Exact,
    /// The division of the original program: as many whole packets as 4096 bytes hold, flags included, so that 320
    /// bytes of data are never sent.
    Legacy,
}

/// The packets of `rpc-long-ping`. The flag of a packet is its index; that of the last is all ones.
///
/// No packet states to which long ping it belongs: replies to an earlier long ping are to be drained before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongPing {
    /// Division of the data into packets.
    pub form: LongPingDivision,
    /// The size of flag and data words.
    pub word: PingWordSize,
}

impl LongPing {
    /// Bytes of a whole packet, the flag included.
    pub const PACKET: usize = 480;

    /// Returns the number of packets: 9, in the legacy form 8.
    pub const fn packets(self) -> usize {
        match self.form {
            LongPingDivision::Exact => TOTAL.div_ceil(LongPing::PACKET - self.word.bytes()),
            LongPingDivision::Legacy => TOTAL / LongPing::PACKET,
        }
    }

    /// Bytes of a packet, the flag included.
    #[inline]
    fn packet_length(self, index: usize) -> usize {
        let data = LongPing::PACKET - self.word.bytes();
        match self.form {
            LongPingDivision::Exact => self.word.bytes() + data.min(TOTAL.saturating_sub(index * data)),
            LongPingDivision::Legacy => LongPing::PACKET,
        }
    }

    /// Writes a packet and returns it as bytes; nothing from [`LongPing::packets`] on.
    #[inline]
    pub fn write_packet(self, index: usize, into: &mut [u8; LongPing::PACKET]) -> &[u8] {
        if index >= self.packets() {
            return &[];
        }
        let last = index + 1 == self.packets();
        let flag = if last { self.word.ones() } else { index as u64 };
        let words = core::iter::once(flag).chain(core::iter::repeat(PATTERN));
        let into = &mut into[..self.packet_length(index)];
        self.word.write(words, into);
        into
    }

    /// Verifies a packet and returns its index.
    ///
    /// # Errors
    /// [`Mismatch`].
    #[inline]
    pub fn parse_packet(self, payload: &[u8]) -> Result<usize, Mismatch> {
        let (flag, data) = self.word.split_first(payload).ok_or(Mismatch::Length)?;
        let last = self.packets() - 1;
        let index = match usize::try_from(flag) {
            _ if flag == self.word.ones() => last,
            Ok(index) if index < last => index,
            _ => return Err(Mismatch::Content),
        };
        if payload.len() != self.packet_length(index) {
            return Err(Mismatch::Length);
        }
        if self.word.is_pattern(data) { Ok(index) } else { Err(Mismatch::Content) }
    }

    /// Returns true if a payload is a packet of any long ping, from the view of the side that replies and does not know
    /// its form: a flag, then nothing but pattern.
    #[inline]
    pub fn is_packet(payload: &[u8]) -> bool {
        let whole = |word: PingWordSize| {
            let words = payload.len() / word.bytes();
            words > 1 && payload.len().is_multiple_of(word.bytes()) && payload.len() <= LongPing::PACKET
        };
        PingWordSize::ALL.into_iter().any(|word| whole(word) && word.is_pattern(&payload[word.bytes()..]))
    }
}

/// Outcome of the packets of a long ping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongPingTally {
    /// Packets that came as they were sent, each counted once.
    pub received: u32,
    /// Packets that came again.
    pub duplicated: u32,
    /// Packets that came after one with a higher index; they are received, too.
    pub reordered: u32,
    /// Packets that match no packet sent.
    pub mismatched: u32,
}

/// Takes the replies to a long ping.
#[derive(Debug, Clone)]
pub struct LongPingAssembler {
    sent: LongPing,
    /// A bit a packet.
    seen: u32,
    tally: LongPingTally,
}

impl LongPingAssembler {
    /// Expects the packets of `sent`.
    pub fn new(sent: LongPing) -> LongPingAssembler {
        LongPingAssembler { sent, seen: 0, tally: LongPingTally::default() }
    }

    /// Takes a reply. True if all packets are there, which is when the ping is over.
    #[inline]
    pub fn receive_packet(&mut self, payload: &[u8]) -> bool {
        match self.sent.parse_packet(payload) {
            Err(_) => self.tally.mismatched += 1,
            Ok(index) if self.seen >> index & 1 != 0 => self.tally.duplicated += 1,
            Ok(index) => {
                self.tally.received += 1;
                self.tally.reordered += u32::from(self.seen >> index != 0);
                self.seen |= 1 << index;
            }
        }
        self.missing_packets() == 0
    }

    /// Returns true if the last packet is there. At that point the original program takes the ping to be over.
    pub fn has_last_packet(&self) -> bool {
        self.seen >> (self.sent.packets() - 1) & 1 != 0
    }

    /// Returns how many packets are missing so far.
    pub fn missing_packets(&self) -> u32 {
        self.sent.packets() as u32 - self.tally.received
    }

    /// Returns the outcome of the packets so far.
    #[inline]
    pub fn tally(&self) -> LongPingTally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: LongPing = LongPing { form: LongPingDivision::Exact, word: PingWordSize::Eight };
    const LEGACY: LongPing = LongPing { form: LongPingDivision::Legacy, word: PingWordSize::Eight };

    fn packets(ping: LongPing) -> Vec<Vec<u8>> {
        let mut room = [0xEE; LongPing::PACKET];
        (0..ping.packets()).map(|index| ping.write_packet(index, &mut room).to_vec()).collect()
    }

    #[test]
    fn exactly_4096_bytes_are_nine_packets() {
        let lengths: Vec<usize> = packets(EXACT).iter().map(Vec::len).collect();
        assert_eq!(lengths, [480, 480, 480, 480, 480, 480, 480, 480, 328]);
        for word in PingWordSize::ALL {
            let packets = packets(LongPing { word, ..EXACT });
            assert_eq!(packets.iter().map(|packet| packet.len() - word.bytes()).sum::<usize>(), 4096);
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_original() {
        let packets = packets(LEGACY);
        assert_eq!(packets.len(), 8);
        let pattern = [0xE7, 7, 0, 0, 0, 0, 0, 0].repeat(59);
        assert_eq!(packets[1], [[1, 0, 0, 0, 0, 0, 0, 0].as_slice(), &pattern].concat());
        assert_eq!(packets[7], [[0xFF; 8].as_slice(), &pattern].concat());
    }

    #[test]
    fn every_packet_is_known_by_both_sides() {
        for form in [LongPingDivision::Exact, LongPingDivision::Legacy] {
            for word in PingWordSize::ALL {
                let ping = LongPing { form, word };
                for (index, packet) in packets(ping).iter().enumerate() {
                    assert_eq!(ping.parse_packet(packet), Ok(index));
                    assert!(LongPing::is_packet(packet));
                }
            }
        }
    }

    #[test]
    fn other_packets_are_known_by_none() {
        let good = packets(EXACT);
        assert_eq!(EXACT.parse_packet(&[]), Err(Mismatch::Length));
        assert_eq!(EXACT.parse_packet(&good[0][..472]), Err(Mismatch::Length));
        assert_eq!(EXACT.parse_packet(&[&good[8][..], &good[8][8..16]].concat()), Err(Mismatch::Length));
        let mut wrong = good[0].clone();
        wrong[479] = 1;
        assert_eq!(EXACT.parse_packet(&wrong), Err(Mismatch::Content));
        assert!(!LongPing::is_packet(&wrong));
        let mut beyond = good[0].clone();
        beyond[0] = 8;
        assert_eq!(EXACT.parse_packet(&beyond), Err(Mismatch::Content), "the last has another flag");
        for bad in [&[][..], &[0; 8], &good[0][..475], &[&good[0][..], &good[0][8..16]].concat()] {
            assert!(!LongPing::is_packet(bad), "{} bytes", bad.len());
        }
        assert_eq!(EXACT.write_packet(9, &mut [0; 480]), []);
    }

    #[test]
    fn a_long_ping_is_over_with_its_last_missing_packet() {
        let packets = packets(EXACT);
        let mut assembler = LongPingAssembler::new(EXACT);
        for packet in &packets[..8] {
            assert!(!assembler.receive_packet(packet));
        }
        assert!(!assembler.has_last_packet());
        assert!(assembler.receive_packet(&packets[8]) && assembler.has_last_packet());
        assert_eq!(assembler.tally(), LongPingTally { received: 9, ..LongPingTally::default() });
    }

    #[test]
    fn what_goes_wrong_is_counted() {
        let packets = packets(EXACT);
        let mut assembler = LongPingAssembler::new(EXACT);
        for index in [0, 2, 1, 1, 8, 5, 5] {
            assert!(!assembler.receive_packet(&packets[index]));
        }
        assembler.receive_packet(b"what is this");
        let expected = LongPingTally { received: 5, duplicated: 2, reordered: 2, mismatched: 1 };
        assert_eq!(
            (assembler.tally(), assembler.missing_packets(), assembler.has_last_packet()),
            (expected, 4, true)
        );
    }
}
