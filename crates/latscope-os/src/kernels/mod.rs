//! Loops timed by the probes.
//!
//! Every loop whose instructions themselves are timed is here, written in assembly for x86-64 and AArch64 so that no
//! compiler folds, vectorises or spills it. Other architectures get a plain loop kept alive by
//! [`std::hint::black_box`], good for a run but not for a figure in cycles. Loops around calls, and those in which
//! cores wait for each other, stay with their probes.
//!
//! Each loop is a function of its own that is never inlined and whose symbol starts with `latscope_kernel_`, so
//! that a test can disassemble a binary and see that the chain is really there.
//!
//! Nothing here reads a clock: the caller times `run(n)`, and divides by the operations per call that each
//! item documents. A call itself costs a few nanoseconds (a function call, and the mispredicted end of its
//! loop), so let a timed call last microseconds.

/// `asm!` whose last arguments, such as the registers of a name that change, are of one architecture.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! asm_with {
    ([$($x86:tt)*] [$($arm:tt)*] $($asm:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!($($asm)* $($x86)*);
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!($($asm)* $($arm)*);
    };
}

/// The end of a loop at the label 2: counts `{n}` down, and goes back until it is zero.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! again {
    () => {
        either!("sub {n}, 1\njnz 2b", "subs {n}, {n}, #1\nb.ne 2b")
    };
}

/// Begins a repetition, which ends with `.endr`, over the offsets `\o` of a block of 512 bytes, so many bytes apart.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! offsets {
    (4) => {
        ".irp o, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, \
             92, 96, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144, 148, 152, 156, 160, \
             164, 168, 172, 176, 180, 184, 188, 192, 196, 200, 204, 208, 212, 216, 220, 224, 228, 232, \
             236, 240, 244, 248, 252, 256, 260, 264, 268, 272, 276, 280, 284, 288, 292, 296, 300, 304, \
             308, 312, 316, 320, 324, 328, 332, 336, 340, 344, 348, 352, 356, 360, 364, 368, 372, 376, \
             380, 384, 388, 392, 396, 400, 404, 408, 412, 416, 420, 424, 428, 432, 436, 440, 444, 448, \
             452, 456, 460, 464, 468, 472, 476, 480, 484, 488, 492, 496, 500, 504, 508"
    };
    (8) => {
        ".irp o, 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, \
             168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264, 272, 280, 288, 296, 304, \
             312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440, 448, \
             456, 464, 472, 480, 488, 496, 504"
    };
    (16) => {
        ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, \
             304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496"
    };
    (32) => {
        ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480"
    };
    (64) => {
        ".irp o, 0, 64, 128, 192, 256, 320, 384, 448"
    };
    (128) => {
        ".irp o, 0, 128, 256, 384"
    };
    (256) => {
        ".irp o, 0, 256"
    };
}

/// True on the architectures on which the loops are assembly.
pub const ARE_ASSEMBLY: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

pub mod arith;
pub mod atomics;
pub mod bandwidth;
pub mod branch;
pub mod call;
pub mod chase;
pub mod code;
pub mod cycle;
pub mod empty;
pub mod forward;
pub mod random;
pub mod stream;
