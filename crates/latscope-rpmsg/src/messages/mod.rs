//! Messages that the benchmarks send, and their verification.
//!
//! Messages are made of little-endian words; all but the first are the same number, [`PATTERN`],
//! so that both ends can verify them.

pub mod block;
mod long_ping;
mod ping;
mod status;

pub use long_ping::{LongPing, LongPingAssembler, LongPingDivision, LongPingTally};
pub use ping::ShortPing;
pub use status::{RpmsgServiceCounts, RpmsgStatus};

use core::fmt;

/// Number that fills the words of pings.
pub const PATTERN: u64 = 2023;

/// Size of a word: `unsigned long` in the source of the messages, which depends on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingWordSize {
    /// Four bytes, as on 32-bit remotes.
    Four,
    /// Eight bytes, as on 64-bit remotes and on this side.
    Eight,
}

/// Difference between a message and the message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The message is longer or shorter.
    Length,
    /// The message has the right length and another content.
    Content,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Mismatch::Length => "a message has another length than was sent",
            Mismatch::Content => "a message has another content than was sent",
        })
    }
}

impl core::error::Error for Mismatch {}

impl PingWordSize {
    /// Both sizes of a word.
    pub const ALL: [PingWordSize; 2] = [PingWordSize::Eight, PingWordSize::Four];

    /// Bytes of a word.
    pub const fn bytes(self) -> usize {
        match self {
            PingWordSize::Four => 4,
            PingWordSize::Eight => 8,
        }
    }

    /// A word of all ones.
    const fn ones(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes() as u32)
    }

    /// Writes words to the beginning of `into`, as many as there are or fit, and returns the number of bytes written.
    #[inline]
    fn write(self, words: impl IntoIterator<Item = u64>, into: &mut [u8]) -> usize {
        let written = match self {
            PingWordSize::Four => {
                let places = into.as_chunks_mut().0.iter_mut();
                places.zip(words).map(|(place, word)| *place = (word as u32).to_le_bytes()).count()
            }
            PingWordSize::Eight => {
                let places = into.as_chunks_mut().0.iter_mut();
                places.zip(words).map(|(place, word)| *place = word.to_le_bytes()).count()
            }
        };
        written * self.bytes()
    }

    /// Takes the first word off a message.
    #[inline]
    fn split_first(self, from: &[u8]) -> Option<(u64, &[u8])> {
        match self {
            PingWordSize::Four => {
                from.split_first_chunk().map(|(word, rest)| (u32::from_le_bytes(*word).into(), rest))
            }
            PingWordSize::Eight => {
                from.split_first_chunk().map(|(word, rest)| (u64::from_le_bytes(*word), rest))
            }
        }
    }

    /// Returns true if all words of a message are [`PATTERN`]; an incomplete word at the end is not checked.
    #[inline]
    fn is_pattern(self, words: &[u8]) -> bool {
        // All are looked at, which is faster than to stop at the first that differs.
        let wrong = match self {
            PingWordSize::Four => words
                .as_chunks()
                .0
                .iter()
                .fold(0, |wrong, word| wrong | u64::from(u32::from_le_bytes(*word) ^ PATTERN as u32)),
            PingWordSize::Eight => words
                .as_chunks()
                .0
                .iter()
                .fold(0, |wrong, word| wrong | (u64::from_le_bytes(*word) ^ PATTERN)),
        };
        wrong == 0
    }
}
