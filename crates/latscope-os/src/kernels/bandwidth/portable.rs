//! Plain loops over volatile accesses, which compilers neither widen nor merge.

use super::{BLOCK_BYTES, BandwidthPassFn, BandwidthStride, Operation, Width};

pub(super) fn pass(operation: Operation, step: BandwidthStride, _width: Width) -> BandwidthPassFn {
    match (operation, step) {
        (Operation::Read, BandwidthStride::Every) => read_words::<2>,
        (Operation::Write | Operation::NonTemporalWrite, BandwidthStride::Every) => write::<1>,
        (Operation::Modify, BandwidthStride::Every) => modify::<1>,
        (Operation::Copy, BandwidthStride::Every) => copy::<1>,
        (Operation::Read, BandwidthStride::EachInteger) => read::<1>,
        (Operation::Write | Operation::NonTemporalWrite, BandwidthStride::EachInteger) => write::<1>,
        (Operation::Modify, BandwidthStride::EachInteger) => modify::<1>,
        (Operation::Copy, BandwidthStride::EachInteger) => copy::<1>,
        (Operation::Read, BandwidthStride::EveryFourth) => read::<4>,
        (Operation::Write | Operation::NonTemporalWrite, BandwidthStride::EveryFourth) => write::<4>,
        (Operation::Modify, BandwidthStride::EveryFourth) => modify::<4>,
        (Operation::Copy, BandwidthStride::EveryFourth) => copy::<4>,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn is_available(width: Width) -> bool {
    width == Width::Scalar
}

/// A pass over every `STEP`th integer of 32 bits.
macro_rules! pass {
    ($name:ident, |$to:ident, $from:ident, $sum:ident| $element:expr) => {
        unsafe fn $name<const STEP: usize>(destination: *mut u8, source: *const u8, blocks: u64) -> u64 {
            let mut $sum = 0;
            for i in (0..blocks as usize * BLOCK_BYTES / size_of::<u32>()).step_by(STEP) {
                // The region that is not used may be shorter.
                let $to = destination.cast::<u32>().wrapping_add(i);
                let $from = source.cast::<u32>().wrapping_add(i);
                // SAFETY: inside the blocks that the caller vouches for.
                unsafe { $element };
            }
            $sum
        }
    };
}

pass!(read_words, |_to, from, sum| sum = u64::wrapping_add(sum, from.cast::<u64>().read_volatile()));
pass!(read, |_to, from, sum| sum = u64::from((sum as u32).wrapping_add(from.read_volatile())));
pass!(write, |to, _from, _sum| to.write_volatile(1));
pass!(modify, |to, _from, _sum| to.write_volatile(to.read_volatile().wrapping_mul(2)));
pass!(copy, |to, from, _sum| to.write_volatile(from.read_volatile()));
