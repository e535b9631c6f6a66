//! Blocks for measuring bandwidth: a sequence number and the words that follow from it.

use super::Mismatch;

/// Bytes of a sequence number: the shortest block.
pub const SHORTEST: usize = 8;

/// Difference between neighbouring words of a block: 2^64 over the golden ratio, so that neighbours have few bits in
/// common.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Fills `into` with block `sequence`: the sequence number, then words that each are the last one
/// plus a constant. Less than [`SHORTEST`] bytes are filled in part and never verified.
#[inline]
pub fn write_block(sequence: u64, into: &mut [u8]) {
    let (words, tail) = into.as_chunks_mut();
    let mut next = sequence;
    for word in words {
        *word = next.to_le_bytes();
        next = next.wrapping_add(STEP);
    }
    tail.copy_from_slice(&next.to_le_bytes()[..tail.len()]);
}

/// Bytes that distinguish the beginning of a block from other bytes: its number, and the word that follows from it.
pub const HEADER: usize = 16;

/// Reads the number of the block that begins with these bytes, if its second word, as far as it is there, follows
/// from it.
#[must_use]
pub fn begins(bytes: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(*bytes.first_chunk()?);
    let second = number.wrapping_add(STEP).to_le_bytes();
    let rest = &bytes[SHORTEST..bytes.len().min(HEADER)];
    (*rest == second[..rest.len()]).then_some(number)
}

/// Verifies a block, every byte of it, and returns its sequence number.
///
/// # Errors
/// [`Mismatch`].
#[inline]
pub fn verify_block(block: &[u8]) -> Result<u64, Mismatch> {
    let sequence = u64::from_le_bytes(*block.first_chunk().ok_or(Mismatch::Length)?);
    let (words, tail) = block.as_chunks();
    let mut next = sequence;
    // Differing bits of all words. Without an end at the first, compilers look at several words at once.
    let mut wrong = 0;
    for word in words {
        wrong |= u64::from_le_bytes(*word) ^ next;
        next = next.wrapping_add(STEP);
    }
    let sound = wrong == 0 && *tail == next.to_le_bytes()[..tail.len()];
    if sound { Ok(sequence) } else { Err(Mismatch::Content) }
}

/// Report of a sink on the blocks that it received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Number of blocks that arrived as they were sent.
    pub blocks: u64,
    /// Number of bytes in these blocks.
    pub bytes: u64,
    /// Number of blocks that arrived damaged.
    pub mismatched: u64,
}

impl Receipt {
    /// Bytes of a receipt.
    pub const SIZE: usize = 24;

    /// Verifies a block and counts it.
    #[inline]
    pub fn count_block(&mut self, block: &[u8]) {
        match verify_block(block) {
            Ok(_) => {
                self.blocks += 1;
                self.bytes += block.len() as u64;
            }
            Err(_) => self.mismatched += 1,
        }
    }

    /// The receipt as it is sent: its fields, little-endian.
    #[inline]
    pub fn bytes(&self) -> [u8; Receipt::SIZE] {
        let mut bytes = [0; Receipt::SIZE];
        super::PingWordSize::Eight.write([self.blocks, self.bytes, self.mismatched], &mut bytes);
        bytes
    }

    /// Takes a receipt from a payload.
    ///
    /// # Errors
    /// [`Mismatch::Length`].
    #[inline]
    pub fn parse(payload: &[u8]) -> Result<Receipt, Mismatch> {
        let [blocks, bytes, mismatched] = payload.as_chunks::<8>().0 else { return Err(Mismatch::Length) };
        if payload.len() != Receipt::SIZE {
            return Err(Mismatch::Length);
        }
        let [blocks, bytes, mismatched] = [blocks, bytes, mismatched].map(|word| u64::from_le_bytes(*word));
        Ok(Receipt { blocks, bytes, mismatched })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_byte_is_noticed() {
        for length in [8, 9, 496, 1023] {
            let mut block = vec![0; length];
            write_block(0x1234_5678_9ABC_DEF0, &mut block);
            assert_eq!(verify_block(&block), Ok(0x1234_5678_9ABC_DEF0));
            for at in 8..length {
                block[at] ^= 1;
                assert_eq!(verify_block(&block), Err(Mismatch::Content), "byte {at} of {length}");
                block[at] ^= 1;
            }
        }
        assert_eq!(verify_block(&[0; 7]), Err(Mismatch::Length));
    }

    #[test]
    fn a_block_is_known_by_its_beginning() {
        let mut block = [0; 64];
        write_block(77, &mut block);
        assert_eq!([8, 11, 16, 64].map(|length| begins(&block[..length])), [Some(77); 4]);
        assert_eq!((begins(&block[..7]), begins(&block[1..])), (None, None));
    }

    #[test]
    fn pieces_of_two_blocks_are_no_block() {
        let [mut first, mut second] = [[0; 64]; 2];
        write_block(1, &mut first);
        write_block(2, &mut second);
        assert_eq!(verify_block(&[&first[..32], &second[32..]].concat()), Err(Mismatch::Content));
        assert_eq!(verify_block(&[&first[..32], &first[..32]].concat()), Err(Mismatch::Content));
    }

    #[test]
    fn a_receipt_counts_blocks_and_comes_back() {
        let mut block = [0; 100];
        write_block(7, &mut block);
        let mut receipt = Receipt::default();
        receipt.count_block(&block);
        receipt.count_block(&block[..50]);
        block[99] ^= 1;
        receipt.count_block(&block);
        assert_eq!(receipt, Receipt { blocks: 2, bytes: 150, mismatched: 1 });
        assert_eq!(Receipt::parse(&receipt.bytes()), Ok(receipt));
        assert_eq!(Receipt::parse(&receipt.bytes()[1..]), Err(Mismatch::Length));
        assert_eq!(Receipt::parse(&[0; 25]), Err(Mismatch::Length));
    }
}
