//! Numbered blocks in a stream of bytes: the places where they begin, and the bytes that belong to no block.

use latscope_rpmsg::messages::block;
use std::ops::RangeInclusive;

/// Blocks on their way through a terminal.
#[derive(Debug, Default)]
pub(super) struct TtyBlockTracker {
    /// Bytes of a block, and the numbers sent so far.
    sent: Option<(usize, RangeInclusive<u64>)>,
    /// Bytes that belong to no block.
    pub(super) foreign: u64,
}

/// Reading of the beginning of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TtyBlockMatch {
    /// Length in bytes of a block, sound, damaged or cut short.
    Block(usize),
    /// Number of bytes that belong to no block.
    Foreign(usize),
    /// More bytes are needed.
    Incomplete,
}

impl TtyBlockTracker {
    /// Notes a block that was sent.
    pub(super) fn record_sent(&mut self, message: &[u8]) {
        let Some(number) = message.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) else { return };
        let first = self.sent.take().map_or(number, |(_, numbers)| *numbers.start());
        self.sent = Some((message.len(), first..=number));
    }

    /// Reads the beginning of the input. A block begins with the number of one that was sent, and ends after its
    /// length or where another begins.
    pub(super) fn match_input(&self, input: &[u8]) -> TtyBlockMatch {
        let Some((length, numbers)) = &self.sent else { return TtyBlockMatch::Foreign(input.len()) };
        let (length, header) = (*length, (*length).min(block::HEADER));
        let begins = |at: usize| {
            block::begins(&input[at..at + header]).is_some_and(|number| numbers.contains(&number))
        };
        if input.len() < header {
            return TtyBlockMatch::Incomplete;
        }
        let next = || (1..=input.len() - header).find(|at| begins(*at));
        if !begins(0) {
            return TtyBlockMatch::Foreign(next().unwrap_or(input.len() - header + 1));
        }
        match input.get(..length) {
            None => TtyBlockMatch::Incomplete,
            Some(whole) if block::verify_block(whole).is_ok() => TtyBlockMatch::Block(length),
            Some(_) => TtyBlockMatch::Block(next().map_or(length, |at| at.min(length))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> Vec<u8> {
        let mut block = vec![0; 64];
        block::write_block(number, &mut block);
        block
    }

    /// Reads all of the input: the numbers of sound blocks, how many others came, and the bytes of none.
    fn read(input: &[&[u8]]) -> (Vec<u64>, usize, usize) {
        let mut blocks = TtyBlockTracker::default();
        (100..110).for_each(|number| blocks.record_sent(&block(number)));
        let (mut rest, mut sound, mut others, mut foreign) = (&input.concat()[..], Vec::new(), 0, 0);
        loop {
            let length = match blocks.match_input(rest) {
                TtyBlockMatch::Incomplete => return (sound, others, foreign + rest.len()),
                TtyBlockMatch::Foreign(length) => {
                    foreign += length;
                    length
                }
                TtyBlockMatch::Block(length) => {
                    match block::verify_block(&rest[..length]) {
                        Ok(number) if length == 64 => sound.push(number),
                        _ => others += 1,
                    }
                    length
                }
            };
            rest = &rest[length..];
        }
    }

    #[test]
    fn foreign_bytes_cost_no_block_beside_them() {
        let [a, b, c] = [100, 101, 102].map(block);
        assert_eq!(read(&[&a, &b, &c]), (vec![100, 101, 102], 0, 0));
        assert_eq!(read(&[b"foreign", &a, &b, b"login: ", &c]), (vec![100, 101, 102], 0, 14));
        // In the middle of a block they damage that one.
        assert_eq!(read(&[&a, &b[..30], b"foreign", &b[30..], &c]), (vec![100, 102], 1, 7));
        // What belongs to a block of another run is foreign, too.
        assert_eq!(read(&[&block(99), &a, &block(110)]), (vec![100], 0, 128));
    }

    #[test]
    fn a_block_that_was_cut_short_or_damaged_costs_no_other() {
        let [a, mut b, c] = [100, 101, 102].map(block);
        assert_eq!(read(&[&a, &b[..40], &c, &c]), (vec![100, 102, 102], 1, 0));
        b[33] ^= 1;
        assert_eq!(read(&[&a, &b, &c]), (vec![100, 102], 1, 0));
        b[3] ^= 1;
        assert_eq!(read(&[&a, &b, &c]), (vec![100, 102], 0, 64), "without its number it is none");
        assert_eq!(read(&[&b[1..], &a]), (vec![100], 0, 63));
    }
}
