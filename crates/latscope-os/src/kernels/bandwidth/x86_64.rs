//! The passes of x86-64.

use std::arch::{asm, is_x86_feature_detected};

use super::{Operation, Pass, Step, Width};

/// Defines a pass of a loop over blocks. `{d}` and `{s}` are where the blocks are and move on by themselves, `{a}`, `{b}`,
/// `{c}` and `{e}` start as zero, the first five vector registers are free, and the result is the wrapping sum of the
/// eight words at `{lanes}`, which start as zero.
///
/// All vector registers are declared as changed, since `vzeroupper` at the end of the wider passes does.
macro_rules! pass {
    ($name:ident, $($line:literal),+) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        unsafe fn $name(destination: *mut u8, source: *const u8, blocks: u64) -> u64 {
            let mut lanes = [0_u64; 8];
            // SAFETY: the caller vouches for the blocks, for blocks > 0, and for the instructions; besides,
            // only the array and the declared registers and flags change.
            unsafe {
                asm!(
                    $($line,)+
                    d = inout(reg) destination => _,
                    s = inout(reg) source => _,
                    n = inout(reg) blocks => _,
                    lanes = in(reg) lanes.as_mut_ptr(),
                    a = inout(reg) 0_u64 => _,
                    b = inout(reg) 0_u64 => _,
                    c = inout(reg) 0_u64 => _,
                    e = inout(reg) 0_u64 => _,
                    out("xmm0") _,
                    out("xmm1") _,
                    out("xmm2") _,
                    out("xmm3") _,
                    out("xmm4") _,
                    out("xmm5") _,
                    out("xmm6") _,
                    out("xmm7") _,
                    out("xmm8") _,
                    out("xmm9") _,
                    out("xmm10") _,
                    out("xmm11") _,
                    out("xmm12") _,
                    out("xmm13") _,
                    out("xmm14") _,
                    out("xmm15") _,
                    options(nostack),
                );
            }
            lanes.into_iter().fold(0, u64::wrapping_add)
        }
    };
}

pass!(
    latscope_kernel_bandwidth_read_scalar,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "add {a}, [{s} + \\o + 0]",
    "add {b}, [{s} + \\o + 8]",
    "add {c}, [{s} + \\o + 16]",
    "add {e}, [{s} + \\o + 24]",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "add {a}, {b}",
    "add {c}, {e}",
    "add {a}, {c}",
    "mov [{lanes}], {a}"
);

pass!(
    latscope_kernel_bandwidth_write_scalar,
    "movabs {a}, 0x100000001",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264, 272, 280, 288, 296, 304, 312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440, 448, 456, 464, 472, 480, 488, 496, 504",
    "mov [{d} + \\o], {a}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_scalar,
    "movabs {a}, 0x100000001",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264, 272, 280, 288, 296, 304, 312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440, 448, 456, 464, 472, 480, 488, 496, 504",
    "movnti [{d} + \\o], {a}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "sfence"
);

pass!(
    latscope_kernel_bandwidth_copy_scalar,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264, 272, 280, 288, 296, 304, 312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440, 448, 456, 464, 472, 480, 488, 496, 504",
    "mov {a}, [{s} + \\o]",
    "mov [{d} + \\o], {a}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_modify_scalar,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144, 148, 152, 156, 160, 164, 168, 172, 176, 180, 184, 188, 192, 196, 200, 204, 208, 212, 216, 220, 224, 228, 232, 236, 240, 244, 248, 252, 256, 260, 264, 268, 272, 276, 280, 284, 288, 292, 296, 300, 304, 308, 312, 316, 320, 324, 328, 332, 336, 340, 344, 348, 352, 356, 360, 364, 368, 372, 376, 380, 384, 388, 392, 396, 400, 404, 408, 412, 416, 420, 424, 428, 432, 436, 440, 444, 448, 452, 456, 460, 464, 468, 472, 476, 480, 484, 488, 492, 496, 500, 504, 508",
    "mov {a:e}, [{d} + \\o]",
    "add {a:e}, {a:e}",
    "mov [{d} + \\o], {a:e}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_read_fourth,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
    "add {a:e}, [{s} + \\o + 0]",
    "add {b:e}, [{s} + \\o + 16]",
    "add {c:e}, [{s} + \\o + 32]",
    "add {e:e}, [{s} + \\o + 48]",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "add {a:e}, {b:e}",
    "add {c:e}, {e:e}",
    "add {a:e}, {c:e}",
    "mov [{lanes}], {a:e}"
);

pass!(
    latscope_kernel_bandwidth_write_fourth,
    "mov {a:e}, 1",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "mov [{d} + \\o], {a:e}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_fourth,
    "mov {a:e}, 1",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "movnti [{d} + \\o], {a:e}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "sfence"
);

pass!(
    latscope_kernel_bandwidth_copy_fourth,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "mov {a:e}, [{s} + \\o]",
    "mov [{d} + \\o], {a:e}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_modify_fourth,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "mov {a:e}, [{d} + \\o]",
    "add {a:e}, {a:e}",
    "mov [{d} + \\o], {a:e}",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_read_sse2,
    "pxor xmm0, xmm0",
    "pxor xmm1, xmm1",
    "pxor xmm2, xmm2",
    "pxor xmm3, xmm3",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
    "paddq xmm0, [{s} + \\o + 0]",
    "paddq xmm1, [{s} + \\o + 16]",
    "paddq xmm2, [{s} + \\o + 32]",
    "paddq xmm3, [{s} + \\o + 48]",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "paddq xmm0, xmm1",
    "paddq xmm2, xmm3",
    "paddq xmm0, xmm2",
    "movdqu [{lanes}], xmm0"
);

pass!(
    latscope_kernel_bandwidth_write_sse2,
    "mov {a:e}, 1",
    "movd xmm0, {a:e}",
    "pshufd xmm0, xmm0, 0",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "movdqa [{d} + \\o], xmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_sse2,
    "mov {a:e}, 1",
    "movd xmm0, {a:e}",
    "pshufd xmm0, xmm0, 0",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "movntdq [{d} + \\o], xmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "sfence"
);

pass!(
    latscope_kernel_bandwidth_copy_sse2,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "movdqa xmm0, [{s} + \\o]",
    "movdqa [{d} + \\o], xmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_modify_sse2,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "movdqa xmm0, [{d} + \\o]",
    "paddd xmm0, xmm0",
    "movdqa [{d} + \\o], xmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b"
);

pass!(
    latscope_kernel_bandwidth_read_avx2,
    "vpxor xmm0, xmm0, xmm0",
    "vpxor xmm1, xmm1, xmm1",
    "vpxor xmm2, xmm2, xmm2",
    "vpxor xmm3, xmm3, xmm3",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 128, 256, 384",
    "vpaddq ymm0, ymm0, [{s} + \\o + 0]",
    "vpaddq ymm1, ymm1, [{s} + \\o + 32]",
    "vpaddq ymm2, ymm2, [{s} + \\o + 64]",
    "vpaddq ymm3, ymm3, [{s} + \\o + 96]",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vpaddq ymm0, ymm0, ymm1",
    "vpaddq ymm2, ymm2, ymm3",
    "vpaddq ymm0, ymm0, ymm2",
    "vmovdqu [{lanes}], ymm0",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_write_avx2,
    "mov {a:e}, 1",
    "vmovd xmm0, {a:e}",
    "vpbroadcastd ymm0, xmm0",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "vmovdqa [{d} + \\o], ymm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_avx2,
    "mov {a:e}, 1",
    "vmovd xmm0, {a:e}",
    "vpbroadcastd ymm0, xmm0",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "vmovntdq [{d} + \\o], ymm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "sfence",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_copy_avx2,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "vmovdqa ymm0, [{s} + \\o]",
    "vmovdqa [{d} + \\o], ymm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_modify_avx2,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "vmovdqa ymm0, [{d} + \\o]",
    "vpaddd ymm0, ymm0, ymm0",
    "vmovdqa [{d} + \\o], ymm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_read_avx512,
    "vpxor xmm0, xmm0, xmm0",
    "vpxor xmm1, xmm1, xmm1",
    "vpxor xmm2, xmm2, xmm2",
    "vpxor xmm3, xmm3, xmm3",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 256",
    "vpaddq zmm0, zmm0, [{s} + \\o + 0]",
    "vpaddq zmm1, zmm1, [{s} + \\o + 64]",
    "vpaddq zmm2, zmm2, [{s} + \\o + 128]",
    "vpaddq zmm3, zmm3, [{s} + \\o + 192]",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vpaddq zmm0, zmm0, zmm1",
    "vpaddq zmm2, zmm2, zmm3",
    "vpaddq zmm0, zmm0, zmm2",
    "vmovdqu64 [{lanes}], zmm0",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_write_avx512,
    "mov {a:e}, 1",
    "vpbroadcastd zmm0, {a:e}",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
    "vmovdqa64 [{d} + \\o], zmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_avx512,
    "mov {a:e}, 1",
    "vpbroadcastd zmm0, {a:e}",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
    "vmovntdq [{d} + \\o], zmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "sfence",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_copy_avx512,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
    "vmovdqa64 zmm0, [{s} + \\o]",
    "vmovdqa64 [{d} + \\o], zmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vzeroupper"
);

pass!(
    latscope_kernel_bandwidth_modify_avx512,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
    "vmovdqa64 zmm0, [{d} + \\o]",
    "vpaddd zmm0, zmm0, zmm0",
    "vmovdqa64 [{d} + \\o], zmm0",
    ".endr",
    "add {d}, 512",
    "add {s}, 512",
    "sub {n}, 1",
    "jnz 2b",
    "vzeroupper"
);

pub(super) fn pass(operation: Operation, step: Step, width: Width) -> Pass {
    match (step, width, operation) {
        (Step::EveryFourth, _, Operation::Read) => latscope_kernel_bandwidth_read_fourth,
        (Step::EveryFourth, _, Operation::Write) => latscope_kernel_bandwidth_write_fourth,
        (Step::EveryFourth, _, Operation::Modify) => latscope_kernel_bandwidth_modify_fourth,
        (Step::EveryFourth, _, Operation::Copy) => latscope_kernel_bandwidth_copy_fourth,
        (Step::EveryFourth, _, Operation::NonTemporalWrite) => latscope_kernel_bandwidth_nontemporal_fourth,
        (Step::Every, Width::Scalar, Operation::Read) => latscope_kernel_bandwidth_read_scalar,
        (Step::Every, Width::Scalar, Operation::Write) => latscope_kernel_bandwidth_write_scalar,
        (Step::Every, Width::Scalar, Operation::Modify) => latscope_kernel_bandwidth_modify_scalar,
        (Step::Every, Width::Scalar, Operation::Copy) => latscope_kernel_bandwidth_copy_scalar,
        (Step::Every, Width::Scalar, Operation::NonTemporalWrite) => {
            latscope_kernel_bandwidth_nontemporal_scalar
        }
        (Step::Every, Width::Bits128, Operation::Read) => latscope_kernel_bandwidth_read_sse2,
        (Step::Every, Width::Bits128, Operation::Write) => latscope_kernel_bandwidth_write_sse2,
        (Step::Every, Width::Bits128, Operation::Modify) => latscope_kernel_bandwidth_modify_sse2,
        (Step::Every, Width::Bits128, Operation::Copy) => latscope_kernel_bandwidth_copy_sse2,
        (Step::Every, Width::Bits128, Operation::NonTemporalWrite) => {
            latscope_kernel_bandwidth_nontemporal_sse2
        }
        (Step::Every, Width::Bits256, Operation::Read) => latscope_kernel_bandwidth_read_avx2,
        (Step::Every, Width::Bits256, Operation::Write) => latscope_kernel_bandwidth_write_avx2,
        (Step::Every, Width::Bits256, Operation::Modify) => latscope_kernel_bandwidth_modify_avx2,
        (Step::Every, Width::Bits256, Operation::Copy) => latscope_kernel_bandwidth_copy_avx2,
        (Step::Every, Width::Bits256, Operation::NonTemporalWrite) => {
            latscope_kernel_bandwidth_nontemporal_avx2
        }
        (Step::Every, Width::Bits512, Operation::Read) => latscope_kernel_bandwidth_read_avx512,
        (Step::Every, Width::Bits512, Operation::Write) => latscope_kernel_bandwidth_write_avx512,
        (Step::Every, Width::Bits512, Operation::Modify) => latscope_kernel_bandwidth_modify_avx512,
        (Step::Every, Width::Bits512, Operation::Copy) => latscope_kernel_bandwidth_copy_avx512,
        (Step::Every, Width::Bits512, Operation::NonTemporalWrite) => {
            latscope_kernel_bandwidth_nontemporal_avx512
        }
    }
}

pub(super) fn is_available(width: Width) -> bool {
    match width {
        Width::Scalar | Width::Bits128 => true,
        Width::Bits256 => is_x86_feature_detected!("avx2"),
        Width::Bits512 => is_x86_feature_detected!("avx512f"),
    }
}
