//! Passes over memory, for bandwidth.
//!
//! A pass works on blocks of [`BLOCK_BYTES`], one per turn of its loop, in order. What a pass does is fixed in
//! assembly, so no compiler makes a `memset` or `memcpy` of it.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[path = "assembly.rs"]
mod machine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "portable.rs"]
mod machine;
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "portable.rs"]
mod portable;

/// Size of the blocks of a region, bytes; a rest of less than a block is not touched.
pub const BLOCK_BYTES: usize = 512;

/// Blocks begin at a multiple of this many bytes; words before the first are not touched.
pub const ALIGNMENT: usize = 64;

const BLOCK_WORDS: usize = BLOCK_BYTES / size_of::<u64>();

latscope_core::words! {
    /// Action of a pass on each element.
    pub enum Operation {
        /// Reads the source and adds it up.
        Read = "read",
        /// Writes the number 1, as an integer of 32 bits, to the destination.
        Write = "write",
        /// Doubles the integers of 32 bits of the destination in place.
        Modify = "modify",
        /// Copies the source to the destination.
        Copy = "copy",
        /// Writes the same past the caches where the machine can (`movntdq`, `movnti`, `stnp`),
        /// and waits for the order of these writes at the end of the pass (`sfence`).
        NonTemporalWrite = "non-temporal-write",
    }
}

latscope_core::words! {
    /// Elements that a pass touches.
    pub enum BandwidthStride {
        /// Touches all elements, by vectors.
        Every = "every",
        /// Touches one integer of 32 bits in every four, by itself (as LMbench's `rd`, `wr`, `rdwr` and `cp`).
        EveryFourth = "fourth",
        /// Touches all elements, one integer of 32 bits after the other (as LMbench's `frd` and `fcp`).
        EachInteger = "integer",
    }
}

/// Amount that one instruction of [`BandwidthStride::Every`] reads or writes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Width {
    /// Words of 64 bits in general registers; [`Operation::Modify`] takes integers of 32 bits.
    Scalar,
    /// Vectors of 128 bits: SSE2, NEON.
    Bits128,
    /// Vectors of 256 bits: AVX2.
    Bits256,
    /// Vectors of 512 bits: AVX-512F.
    Bits512,
}

impl Width {
    /// All widths, narrow to wide.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Bits128, Self::Bits256, Self::Bits512];

    /// Returns true if this processor has instructions of this width.
    pub fn is_available(self) -> bool {
        machine::is_available(self)
    }

    /// Returns the widest that this processor has.
    pub fn widest() -> Self {
        Self::ALL.into_iter().rev().find(|width| width.is_available()).unwrap_or(Self::Scalar)
    }

    /// Returns the name of the instruction set on this architecture.
    pub const fn instruction_set(self) -> &'static str {
        match self {
            Self::Scalar => "scalar-64",
            Self::Bits128 if cfg!(target_arch = "aarch64") => "neon-128",
            Self::Bits128 => "sse2-128",
            Self::Bits256 => "avx2-256",
            Self::Bits512 => "avx512-512",
        }
    }
}

impl std::fmt::Display for Width {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.instruction_set())
    }
}

/// Makes one pass in the widest form there is: [`run_passes`] with [`Width::widest`] and one pass.
pub fn run_pass(operation: Operation, step: BandwidthStride, destination: &mut [u64], source: &[u64]) -> u64 {
    run_passes(operation, step, Width::widest(), destination, source, 1)
}

/// Makes `passes` passes, and returns the wrapping sum of what was read in all passes for [`Operation::Read`] (words
/// of 64 bits for [`BandwidthStride::Every`], the touched integers of 32 bits added up in 32 bits per pass for
/// [`BandwidthStride::EveryFourth`] and [`BandwidthStride::EachInteger`]), zero for the other operations.
///
/// Each region is rounded inward: to [`ALIGNMENT`] at its start, to whole blocks of [`BLOCK_BYTES`] at its end. A
/// region that is aligned and has a multiple of 64 words is used as a whole. An operation that needs only one of
/// the regions ignores the other; a copy stops at the end of the shorter one. The width matters
/// for [`BandwidthStride::Every`] only, and one that the processor does not have is replaced by the widest it has.
///
/// Choose the source and the destination of a copy at different offsets modulo 4096, so that loads do not wait
/// for earlier stores that look like theirs.
pub fn run_passes(
    operation: Operation,
    step: BandwidthStride,
    width: Width,
    destination: &mut [u64],
    source: &[u64],
    passes: u64,
) -> u64 {
    let width = if width.is_available() { width } else { Width::widest() };
    passes_of(machine::pass(operation, step, width), operation, destination, source, passes)
}

/// Function that makes one pass over `blocks` > 0 blocks of [`BLOCK_BYTES`].
///
/// # Safety
///
/// The memory that the operation needs of `destination` and `source` is valid for so many blocks and aligned to
/// [`ALIGNMENT`], and the processor has the instructions.
type BandwidthPassFn = unsafe fn(destination: *mut u8, source: *const u8, blocks: u64) -> u64;

fn passes_of(
    pass: BandwidthPassFn,
    operation: Operation,
    destination: &mut [u64],
    source: &[u64],
    passes: u64,
) -> u64 {
    let to = aligned(destination.as_ptr().addr(), destination.len());
    let from = aligned(source.as_ptr().addr(), source.len());
    let to = &mut destination[to];
    let from = &source[from];
    let words = match operation {
        Operation::Read => from.len(),
        Operation::Copy => from.len().min(to.len()),
        _ => to.len(),
    };
    let blocks = (words / BLOCK_WORDS) as u64;
    if blocks == 0 {
        return 0;
    }
    let (to, from) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
    let mut sum = 0_u64;
    for _ in 0..passes {
        // SAFETY: the regions in use are aligned and have at least so many whole blocks; `repeat` has checked
        // the width.
        sum = sum.wrapping_add(unsafe { pass(to, from, blocks) });
    }
    sum
}

/// Returns the range of whole blocks in a region.
fn aligned(address: usize, words: usize) -> std::ops::Range<usize> {
    let skip = (address.wrapping_neg() % ALIGNMENT / size_of::<u64>()).min(words);
    skip..skip + (words - skip) / BLOCK_WORDS * BLOCK_WORDS
}

/// Returns how many bytes of a region of `region_bytes` one pass touches: each byte counts once, however often it
/// is read and written, and a copy counts what it copies (LMbench counts so too, but as if all were touched).
///
/// `region_bytes` is the size of the source or of the destination, in whole blocks of [`BLOCK_BYTES`].
pub const fn bytes_touched(operation: Operation, step: BandwidthStride, region_bytes: u64) -> u64 {
    let _ = operation;
    match step {
        BandwidthStride::Every | BandwidthStride::EachInteger => region_bytes,
        BandwidthStride::EveryFourth => region_bytes / 4,
    }
}

/// Returns how many bytes one pass moves to and from memory when the region is too large for the caches, by whole
/// lines: a line that is written is fetched before and written back later, except by
/// [`Operation::NonTemporalWrite`].
///
/// The step does not matter, since each line is touched all the same. A processor that sees that lines are written
/// as a whole moves less for [`Operation::Write`] and [`Operation::Copy`]; one that has to write incomplete lines
/// past the caches moves more.
pub const fn bytes_moved(operation: Operation, step: BandwidthStride, region_bytes: u64) -> u64 {
    let _ = step;
    match operation {
        Operation::Read | Operation::NonTemporalWrite => region_bytes,
        Operation::Write | Operation::Modify => 2 * region_bytes,
        Operation::Copy => 3 * region_bytes,
    }
}

/// Adds up the words of `region` one after the other, each addition waiting for the one before, and returns the
/// wrapping sum. One operation per word, in groups of 64; words left over are not read.
///
/// One addition per cycle and the prefetchers hide the caches: the steps between them are hardly seen.
pub fn sequential_sum(region: &[u64]) -> u64 {
    latscope_kernel_sequential_sum(region)
}

/// Combines the words of `region` like [`sequential_sum`], but with exclusive or.
pub fn sequential_xor(region: &[u64]) -> u64 {
    latscope_kernel_sequential_xor(region)
}

macro_rules! sequential {
    ($name:ident, $x86:literal, $arm:literal, $portable:expr) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(region: &[u64]) -> u64 {
            let mut result = 0_u64;
            if region.len() < BLOCK_WORDS {
                return result;
            }
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            // SAFETY: reads whole blocks of the region, one at least, and changes only the declared registers
            // and the flags.
            unsafe {
                core::arch::asm!(
                    "/* {a} {b} */",
                    ".p2align 6",
                    "2:",
                    either!(offsets!(8), offsets!(16)),
                    either!($x86, $arm),
                    ".endr",
                    either!("add {region}, 512", "add {region}, {region}, #512"),
                    again!(),
                    n = inout(reg) region.len() / BLOCK_WORDS => _,
                    region = inout(reg) region.as_ptr() => _,
                    result = inout(reg) result,
                    a = out(reg) _,
                    b = out(reg) _,
                    options(nostack, readonly),
                );
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            for word in &region[..region.len() / BLOCK_WORDS * BLOCK_WORDS] {
                let step: fn(u64, u64) -> u64 = $portable;
                result = std::hint::black_box(step(result, *word));
            }
            result
        }
    };
}

sequential!(
    latscope_kernel_sequential_sum,
    "add {result}, [{region} + \\o]",
    "ldp {a}, {b}, [{region}, #\\o]\nadd {result}, {result}, {a}\nadd {result}, {result}, {b}",
    u64::wrapping_add
);
sequential!(
    latscope_kernel_sequential_xor,
    "xor {result}, [{region} + \\o]",
    "ldp {a}, {b}, [{region}, #\\o]\neor {result}, {result}, {a}\neor {result}, {result}, {b}",
    |result, word| result ^ word
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::random::ShuffleGenerator;
    use latscope_core::word::KeywordEnum;

    /// A region that begins `offset` words after a multiple of the alignment.
    struct Region {
        memory: Vec<u64>,
        first: usize,
        words: usize,
    }

    impl Region {
        fn new(offset: usize, words: usize, seed: u64) -> Self {
            let mut memory = vec![0; words + 16];
            ShuffleGenerator::new(seed).fill_words(&mut memory);
            let first = memory.as_ptr().addr().wrapping_neg() % 64 / 8 + offset;
            Self { memory, first, words }
        }

        fn words(&mut self) -> &mut [u64] {
            &mut self.memory[self.first..self.first + self.words]
        }
    }

    fn integers(words: &[u64]) -> Vec<u32> {
        words
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect::<Vec<u8>>()
            .chunks_exact(4)
            .map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap()))
            .collect()
    }

    /// Returns the destination after one pass, and the value that the pass returns.
    fn expected(operation: Operation, step: BandwidthStride, to: &[u64], from: &[u64]) -> (Vec<u32>, u64) {
        let (mut to, from32) = (integers(to), integers(from));
        let stride = if step == BandwidthStride::EveryFourth { 4 } else { 1 };
        let mut sum = 0;
        let touched = match operation {
            Operation::Read => 0,
            Operation::Copy => (to.len() / 128).min(from32.len() / 128) * 128,
            _ => to.len() / 128 * 128,
        };
        for i in (0..touched).step_by(stride) {
            to[i] = match operation {
                Operation::Modify => to[i].wrapping_mul(2),
                Operation::Copy => from32[i],
                _ => 1,
            };
        }
        if operation == Operation::Read {
            let whole = from.len() / 64 * 64;
            sum = match step {
                BandwidthStride::Every => {
                    from[..whole].iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
                }
                BandwidthStride::EveryFourth | BandwidthStride::EachInteger => from32[..2 * whole]
                    .iter()
                    .step_by(stride)
                    .fold(0, |sum: u32, number| sum.wrapping_add(*number))
                    .into(),
            };
        }
        (to, sum)
    }

    fn passes() -> Vec<(String, Operation, BandwidthStride, BandwidthPassFn)> {
        let mut all = Vec::new();
        for &operation in Operation::ALL {
            for &step in BandwidthStride::ALL {
                for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
                    let name = format!("{operation} {step} {width}");
                    all.push((name, operation, step, machine::pass(operation, step, width)));
                }
                #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
                {
                    let pass = portable::pass(operation, step, Width::Scalar);
                    all.push((format!("{operation} {step} portable"), operation, step, pass));
                }
            }
        }
        all
    }

    #[test]
    fn each_pass_does_what_it_says_and_no_more() {
        for (name, operation, step, pass) in passes() {
            for (to_words, from_words) in [(0, 0), (63, 64), (64, 63), (64, 64), (200, 320), (1_024, 640)] {
                let (mut to, mut from) = (Region::new(0, to_words, 1), Region::new(0, from_words, 2));
                let source = from.words();
                let (after, sum) = expected(operation, step, to.words(), source);
                let (head, tail) =
                    (to.memory[..to.first].to_vec(), to.memory[to.first + to_words..].to_vec());
                let result = passes_of(pass, operation, to.words(), source, 1);
                assert_eq!(integers(to.words()), after, "{name} {to_words} {from_words}");
                assert_eq!(to.memory[..to.first], head);
                assert_eq!(to.memory[to.first + to_words..], tail);
                assert_eq!(result, sum, "{name} {to_words} {from_words}");
            }
        }
    }

    #[test]
    fn a_region_that_is_not_aligned_is_rounded_inward() {
        for (name, operation, step, pass) in passes() {
            for offset in 1..8 {
                let mut to = Region::new(offset, 200, 1);
                let mut from = Region::new(offset, 200, 2);
                let skip = 8 - offset;
                let (source, before) = (from.words(), to.words().to_vec());
                let (after, sum) = expected(operation, step, &before[skip..], &source[skip..]);
                assert_eq!(passes_of(pass, operation, to.words(), source, 1), sum, "{name}");
                assert_eq!(to.words()[..skip], before[..skip], "{name}");
                assert_eq!(integers(&to.words()[skip..]), after, "{name}");
            }
        }
    }

    #[test]
    fn passes_are_repeated() {
        let mut to = Region::new(0, 64, 1);
        let mut from = Region::new(0, 64, 2);
        let source = from.words();
        let sum: u64 = source.iter().fold(0, |sum, word| sum.wrapping_add(*word));
        let read = run_passes(Operation::Read, BandwidthStride::Every, Width::Bits512, to.words(), source, 3);
        assert_eq!(read, sum.wrapping_mul(3));
        assert_eq!(run_pass(Operation::Read, BandwidthStride::Every, to.words(), source), sum);
        let doubled: Vec<u32> = integers(to.words()).into_iter().map(|n| n << 3).collect();
        run_passes(Operation::Modify, BandwidthStride::Every, Width::widest(), to.words(), source, 3);
        assert_eq!(integers(to.words()), doubled);
    }

    #[test]
    fn bytes_are_counted() {
        use Operation::*;
        for &step in BandwidthStride::ALL {
            let moved: Vec<u64> =
                Operation::ALL.iter().map(|operation| bytes_moved(*operation, step, 4_096)).collect();
            assert_eq!(moved, [4_096, 8_192, 8_192, 12_288, 4_096]);
        }
        assert_eq!(bytes_touched(Copy, BandwidthStride::Every, 4_096), 4_096);
        assert_eq!(bytes_touched(Modify, BandwidthStride::EveryFourth, 4_096), 1_024);
    }

    #[test]
    fn sequences_fold_the_region() {
        for words in [0, 63, 64, 1_000] {
            let mut region = Region::new(3, words, 4);
            let region = region.words();
            let whole = &region[..words / 64 * 64];
            assert_eq!(
                sequential_sum(region),
                whole.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
            );
            assert_eq!(sequential_xor(region), whole.iter().fold(0, |xor, word| xor ^ word));
        }
    }

    #[test]
    fn names_lead_back() {
        for &operation in Operation::ALL {
            assert_eq!(Operation::from_word(operation.word()), Some(operation));
        }
        for &step in BandwidthStride::ALL {
            assert_eq!(BandwidthStride::from_word(step.word()), Some(step));
        }
        assert!(Width::Scalar.is_available());
    }
}
