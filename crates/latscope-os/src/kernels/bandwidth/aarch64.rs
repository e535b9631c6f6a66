//! The passes of AArch64.

use std::arch::asm;

use super::{Operation, Pass, Step, Width};

/// Defines a pass of a loop over blocks. `{d}` and `{s}` are where the blocks are and move on by themselves, `{a}`, `{b}`,
/// `{c}` and `{e}` start as zero, the first five vector registers are free, and the result is the wrapping sum of the
/// eight words at `{lanes}`, which start as zero.
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
                    out("v0") _,
                    out("v1") _,
                    out("v2") _,
                    out("v3") _,
                    out("v4") _,
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
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "ldp {c}, {e}, [{s}, #\\o]",
    "add {a}, {a}, {c}",
    "add {b}, {b}, {e}",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b",
    "add {a}, {a}, {b}",
    "str {a}, [{lanes}]"
);

pass!(
    latscope_kernel_bandwidth_write_scalar,
    "mov {a}, #1",
    "orr {a}, {a}, {a}, lsl #32",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "stp {a}, {a}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_scalar,
    "mov {a}, #1",
    "orr {a}, {a}, {a}, lsl #32",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "stnp {a}, {a}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_copy_scalar,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "ldp {a}, {b}, [{s}, #\\o]",
    "stp {a}, {b}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_modify_scalar,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144, 148, 152, 156, 160, 164, 168, 172, 176, 180, 184, 188, 192, 196, 200, 204, 208, 212, 216, 220, 224, 228, 232, 236, 240, 244, 248, 252, 256, 260, 264, 268, 272, 276, 280, 284, 288, 292, 296, 300, 304, 308, 312, 316, 320, 324, 328, 332, 336, 340, 344, 348, 352, 356, 360, 364, 368, 372, 376, 380, 384, 388, 392, 396, 400, 404, 408, 412, 416, 420, 424, 428, 432, 436, 440, 444, 448, 452, 456, 460, 464, 468, 472, 476, 480, 484, 488, 492, 496, 500, 504, 508",
    "ldr {a:w}, [{d}, #\\o]",
    "add {a:w}, {a:w}, {a:w}",
    "str {a:w}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_read_fourth,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "ldr {c:w}, [{s}, #\\o]",
    "add {a:w}, {a:w}, {c:w}",
    "ldr {e:w}, [{s}, #(\\o + 16)]",
    "add {b:w}, {b:w}, {e:w}",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b",
    "add {a:w}, {a:w}, {b:w}",
    "str {a:w}, [{lanes}]"
);

pass!(
    latscope_kernel_bandwidth_write_fourth,
    "mov {a:w}, #1",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "str {a:w}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_fourth,
    "mov {a:w}, #1",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "str {a:w}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_copy_fourth,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "ldr {a:w}, [{s}, #\\o]",
    "str {a:w}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_modify_fourth,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
    "ldr {a:w}, [{d}, #\\o]",
    "add {a:w}, {a:w}, {a:w}",
    "str {a:w}, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_read_neon,
    "movi v0.2d, #0",
    "movi v1.2d, #0",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "ldp q2, q3, [{s}, #\\o]",
    "add v0.2d, v0.2d, v2.2d",
    "add v1.2d, v1.2d, v3.2d",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b",
    "add v0.2d, v0.2d, v1.2d",
    "str q0, [{lanes}]"
);

pass!(
    latscope_kernel_bandwidth_write_neon,
    "movi v0.4s, #1",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "stp q0, q0, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_nontemporal_neon,
    "movi v0.4s, #1",
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "stnp q0, q0, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_copy_neon,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "ldp q0, q1, [{s}, #\\o]",
    "stp q0, q1, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
);

pass!(
    latscope_kernel_bandwidth_modify_neon,
    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
    ".p2align 6",
    "2:",
    ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
    "ldp q0, q1, [{d}, #\\o]",
    "add v0.4s, v0.4s, v0.4s",
    "add v1.4s, v1.4s, v1.4s",
    "stp q0, q1, [{d}, #\\o]",
    ".endr",
    "add {d}, {d}, #512",
    "add {s}, {s}, #512",
    "subs {n}, {n}, #1",
    "b.ne 2b"
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
        (Step::Every, _, Operation::Read) => latscope_kernel_bandwidth_read_neon,
        (Step::Every, _, Operation::Write) => latscope_kernel_bandwidth_write_neon,
        (Step::Every, _, Operation::Modify) => latscope_kernel_bandwidth_modify_neon,
        (Step::Every, _, Operation::Copy) => latscope_kernel_bandwidth_copy_neon,
        (Step::Every, _, Operation::NonTemporalWrite) => latscope_kernel_bandwidth_nontemporal_neon,
    }
}

pub(super) fn is_available(width: Width) -> bool {
    matches!(width, Width::Scalar | Width::Bits128)
}
