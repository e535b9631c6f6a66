//! The short ping: a number, a size, and four words of pattern.

use super::{Mismatch, PATTERN, PingWordSize};

/// Number of words of pattern.
const WORDS: usize = 4;

/// A message of `rpc-ping`: 48 bytes in words of eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortPing {
    /// Number that distinguishes a reply from the reply to an earlier ping. In words of four bytes its upper half is
    /// lost.
    pub number: u64,
}

impl ShortPing {
    /// The most bytes that a ping has.
    pub const SIZE: usize = (2 + WORDS) * 8;

    /// Bytes of a ping in words of this size.
    pub const fn encoded_length(word: PingWordSize) -> usize {
        (2 + WORDS) * word.bytes()
    }

    /// Writes the ping and returns it as bytes. Its size field counts the bytes of pattern.
    #[inline]
    pub fn write_ping(self, word: PingWordSize, into: &mut [u8; ShortPing::SIZE]) -> &[u8] {
        let size = (WORDS * word.bytes()) as u64;
        let length = word.write([self.number, size, PATTERN, PATTERN, PATTERN, PATTERN], into);
        &into[..length]
    }

    /// Verifies a ping. Its size field is not looked at: the original client looks at the pattern only.
    ///
    /// # Errors
    /// [`Mismatch`].
    #[inline]
    pub fn parse(word: PingWordSize, payload: &[u8]) -> Result<ShortPing, Mismatch> {
        if payload.len() != ShortPing::encoded_length(word) {
            return Err(Mismatch::Length);
        }
        let (number, rest) = word.split_first(payload).ok_or(Mismatch::Length)?;
        let (_, pattern) = word.split_first(rest).ok_or(Mismatch::Length)?;
        if word.is_pattern(pattern) { Ok(ShortPing { number }) } else { Err(Mismatch::Content) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_original() {
        let mut room = [0xEE; ShortPing::SIZE];
        let bytes = ShortPing { number: 0x0102 }.write_ping(PingWordSize::Eight, &mut room);
        let mut expected = vec![2, 1, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([0xE7, 7, 0, 0, 0, 0, 0, 0].repeat(4));
        assert_eq!((bytes, bytes.len()), (expected.as_slice(), 48));
        let short = ShortPing { number: 0x0102 }.write_ping(PingWordSize::Four, &mut room);
        let mut expected = vec![2, 1, 0, 0, 16, 0, 0, 0];
        expected.extend([0xE7, 7, 0, 0].repeat(4));
        assert_eq!((short, short.len()), (expected.as_slice(), 24));
    }

    #[test]
    fn every_damaged_byte_of_the_pattern_is_noticed() {
        let mut room = [0; ShortPing::SIZE];
        for word in PingWordSize::ALL {
            let bytes = ShortPing { number: 77 }.write_ping(word, &mut room).to_vec();
            assert_eq!(ShortPing::parse(word, &bytes), Ok(ShortPing { number: 77 }));
            assert_eq!(ShortPing::parse(word, &bytes[1..]), Err(Mismatch::Length));
            for at in 2 * word.bytes()..bytes.len() {
                let mut bytes = bytes.clone();
                bytes[at] ^= 0x80;
                assert_eq!(ShortPing::parse(word, &bytes), Err(Mismatch::Content), "byte {at}");
            }
        }
    }
}
