//! Kinds of traffic with memory: the operations of the kernels, and mixes of reads and writes.

use crate::prelude::*;
use latscope_os::kernels::bandwidth::{self, BandwidthStride, Operation};

use super::sizes::{KIB, LINE};

words! {
    /// Action on each line.
    pub(super) enum MemoryTraffic {
        /// Reads.
        Read = "read",
        /// Writes.
        Write = "write",
        /// Doubles in place: memory reads a line and writes it, 1:1.
        Modify = "modify",
        /// Copies from one half to the other.
        Copy = "copy",
        /// Writes past the caches.
        NonTemporalWrite = "non-temporal-write",
        /// Two lines read and one doubled in place: memory reads three and writes one.
        ThreeReadsAWrite = "three-reads-a-write",
        /// A line read and one doubled in place: memory reads two and writes one.
        TwoReadsAWrite = "two-reads-a-write",
    }
}

/// Bytes from one change between reading and doubling to the next.
pub(super) const STRIP: u64 = 4 * KIB;

impl MemoryTraffic {
    /// The kinds that an ordinary run measures.
    pub const USUAL: [MemoryTraffic; 5] = [
        MemoryTraffic::Read,
        MemoryTraffic::Write,
        MemoryTraffic::Modify,
        MemoryTraffic::Copy,
        MemoryTraffic::NonTemporalWrite,
    ];

    /// The operation of a line, for a mix that of the lines that are written.
    pub fn operation(self) -> Operation {
        match self {
            MemoryTraffic::Read => Operation::Read,
            MemoryTraffic::Write => Operation::Write,
            MemoryTraffic::Copy => Operation::Copy,
            MemoryTraffic::NonTemporalWrite => Operation::NonTemporalWrite,
            MemoryTraffic::Modify | MemoryTraffic::ThreeReadsAWrite | MemoryTraffic::TwoReadsAWrite => {
                Operation::Modify
            }
        }
    }

    /// Lines that are only read for each that the operation works on; 0 without a mix.
    pub fn reads(self) -> u64 {
        match self {
            MemoryTraffic::ThreeReadsAWrite => 2,
            MemoryTraffic::TwoReadsAWrite => 1,
            _ => 0,
        }
    }

    /// Bytes of the shortest stretch of memory that has the whole mix; 0 without a mix.
    pub fn mix_bytes(self) -> u64 {
        if self.reads() > 0 { (self.reads() + 1) * STRIP } else { 0 }
    }

    /// Bytes touched and moved, for as many lines as a mix has, or for one.
    pub fn operation_work(self, step: BandwidthStride) -> OperationWork {
        let read = self.reads() * LINE;
        OperationWork {
            ops: self.reads() + 1,
            bytes_touched: bandwidth::bytes_touched(self.operation(), step, read + LINE),
            bytes_moved: read + bandwidth::bytes_moved(self.operation(), step, LINE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeywordEnum;

    #[test]
    fn a_mix_reads_and_writes_lines_as_its_name_says() {
        for (traffic, reads, writes) in [
            (MemoryTraffic::ThreeReadsAWrite, 3, 1),
            (MemoryTraffic::TwoReadsAWrite, 2, 1),
            (MemoryTraffic::Modify, 1, 1),
        ] {
            let work = traffic.operation_work(BandwidthStride::Every);
            // Each line but one is only read; that one is read and written.
            assert_eq!((work.ops, work.bytes_moved), (reads, (reads + writes) * LINE), "{}", traffic.word());
        }
        let usual = MemoryTraffic::USUAL.map(MemoryTraffic::word);
        assert_eq!(
            usual,
            [
                Operation::Read,
                Operation::Write,
                Operation::Modify,
                Operation::Copy,
                Operation::NonTemporalWrite
            ]
            .map(Operation::word)
        );
    }
}
