//! Plain loops over volatile accesses, which compilers neither widen nor merge.

use super::{BLOCK_BYTES, Operation, Pass, Step, Width};

pub(super) fn pass(operation: Operation, step: Step, _width: Width) -> Pass {
    match (operation, step) {
        (Operation::Read, Step::Every) => read,
        (Operation::Write | Operation::NonTemporalWrite, Step::Every) => write::<1>,
        (Operation::Modify, Step::Every) => modify::<1>,
        (Operation::Copy, Step::Every) => copy::<1>,
        (Operation::Read, Step::EveryFourth) => read_fourth,
        (Operation::Write | Operation::NonTemporalWrite, Step::EveryFourth) => write::<4>,
        (Operation::Modify, Step::EveryFourth) => modify::<4>,
        (Operation::Copy, Step::EveryFourth) => copy::<4>,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn is_available(width: Width) -> bool {
    width == Width::Scalar
}

/// The integers of 32 bits in so many blocks.
fn integers(blocks: u64) -> usize {
    blocks as usize * BLOCK_BYTES / size_of::<u32>()
}

unsafe fn read(_: *mut u8, source: *const u8, blocks: u64) -> u64 {
    let mut sum = 0_u64;
    for i in 0..integers(blocks) / 2 {
        // SAFETY: inside the blocks that the caller vouches for.
        sum = sum.wrapping_add(unsafe { source.cast::<u64>().add(i).read_volatile() });
    }
    sum
}

unsafe fn read_fourth(_: *mut u8, source: *const u8, blocks: u64) -> u64 {
    let mut sum = 0_u32;
    for i in (0..integers(blocks)).step_by(4) {
        // SAFETY: inside the blocks that the caller vouches for.
        sum = sum.wrapping_add(unsafe { source.cast::<u32>().add(i).read_volatile() });
    }
    sum.into()
}

unsafe fn write<const STEP: usize>(destination: *mut u8, _: *const u8, blocks: u64) -> u64 {
    for i in (0..integers(blocks)).step_by(STEP) {
        // SAFETY: inside the blocks that the caller vouches for.
        unsafe { destination.cast::<u32>().add(i).write_volatile(1) };
    }
    0
}

unsafe fn modify<const STEP: usize>(destination: *mut u8, _: *const u8, blocks: u64) -> u64 {
    for i in (0..integers(blocks)).step_by(STEP) {
        // SAFETY: inside the blocks that the caller vouches for.
        unsafe {
            let number = destination.cast::<u32>().add(i);
            number.write_volatile(number.read_volatile().wrapping_mul(2));
        }
    }
    0
}

unsafe fn copy<const STEP: usize>(destination: *mut u8, source: *const u8, blocks: u64) -> u64 {
    for i in (0..integers(blocks)).step_by(STEP) {
        // SAFETY: inside the blocks that the caller vouches for.
        unsafe {
            destination.cast::<u32>().add(i).write_volatile(source.cast::<u32>().add(i).read_volatile())
        };
    }
    0
}
