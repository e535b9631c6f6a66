//! The passes of x86-64 and AArch64.

use super::{BandwidthPassFn, BandwidthStride, Operation, Width};

/// A pass of a loop over blocks: what comes before the loop, the lines for each offset `\o` of so many bytes
/// apart, what comes behind the loop.
///
/// `{d}` and `{s}` are where the blocks are and move on by themselves, `{a}`, `{b}`, `{c}` and `{e}` start as zero,
/// the vector registers named first are free, and the result is the wrapping sum of the eight words at `{lanes}`,
/// which start as zero.
macro_rules! pass {
    ($name:literal [$($vector:tt)+] $before:literal $apart:tt $lines:literal $behind:literal) => {{
        #[unsafe(export_name = concat!("latscope_kernel_bandwidth_", $name))]
        #[inline(never)]
        unsafe fn pass(destination: *mut u8, source: *const u8, blocks: u64) -> u64 {
            let mut lanes = [0_u64; 8];
            // SAFETY: the caller vouches for the blocks, for blocks > 0, and for the instructions; besides,
            // only the array and the declared registers and flags change.
            unsafe {
                std::arch::asm!(
                    $before,
                    "/* {d} {s} {lanes} {a} {b} {c} {e} */",
                    ".p2align 6",
                    "2:",
                    offsets!($apart),
                    $lines,
                    ".endr",
                    either!("add {d}, 512\nadd {s}, 512", "add {d}, {d}, #512\nadd {s}, {s}, #512"),
                    again!(),
                    $behind,
                    d = inout(reg) destination => _,
                    s = inout(reg) source => _,
                    n = inout(reg) blocks => _,
                    lanes = in(reg) lanes.as_mut_ptr(),
                    a = inout(reg) 0_u64 => _,
                    b = inout(reg) 0_u64 => _,
                    c = inout(reg) 0_u64 => _,
                    e = inout(reg) 0_u64 => _,
                    $(out($vector) _,)+
                    options(nostack),
                );
            }
            lanes.into_iter().fold(0, u64::wrapping_add)
        }
        pass
    }};
}

/// Defines which pass is for what.
macro_rules! passes {
    ($vectors:tt
     $($step:ident $width:pat, $operation:ident $name:literal: $before:literal $apart:tt $lines:literal $behind:literal;)+
    ) => {
        pub(super) fn pass(operation: Operation, step: BandwidthStride, width: Width) -> BandwidthPassFn {
            use {Operation::*, BandwidthStride::*, Width::*};
            match (step, width, operation) {
                $(($step, $width, $operation) => pass!($name $vectors $before $apart $lines $behind),)+
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
passes! {
    // All vector registers, since `vzeroupper` changes them.
    ["xmm0" "xmm1" "xmm2" "xmm3" "xmm4" "xmm5" "xmm6" "xmm7"
     "xmm8" "xmm9" "xmm10" "xmm11" "xmm12" "xmm13" "xmm14" "xmm15"]
    EveryFourth _, Read "read_fourth": "" 64
        "add {a:e}, [{s} + \\o]\nadd {b:e}, [{s} + \\o + 16]\nadd {c:e}, [{s} + \\o + 32]\nadd {e:e}, [{s} + \\o + 48]"
        "add {a:e}, {b:e}\nadd {c:e}, {e:e}\nadd {a:e}, {c:e}\nmov [{lanes}], {a:e}";
    EveryFourth _, Write "write_fourth": "mov {a:e}, 1" 16 "mov [{d} + \\o], {a:e}" "";
    EveryFourth _, Modify "modify_fourth": "" 16
        "mov {a:e}, [{d} + \\o]\nadd {a:e}, {a:e}\nmov [{d} + \\o], {a:e}" "";
    EveryFourth _, Copy "copy_fourth": "" 16 "mov {a:e}, [{s} + \\o]\nmov [{d} + \\o], {a:e}" "";
    EveryFourth _, NonTemporalWrite "nontemporal_fourth": "mov {a:e}, 1" 16
        "movnti [{d} + \\o], {a:e}" "sfence";
    EachInteger _, Read "read_integer": "" 16
        "add {a:e}, [{s} + \\o]\nadd {b:e}, [{s} + \\o + 4]\nadd {a:e}, [{s} + \\o + 8]\nadd {b:e}, [{s} + \\o + 12]"
        "add {a:e}, {b:e}\nmov [{lanes}], {a:e}";
    EachInteger _, Write "write_integer": "mov {a:e}, 1" 4 "mov [{d} + \\o], {a:e}" "";
    EachInteger _, Modify "modify_integer": "" 4
        "mov {a:e}, [{d} + \\o]\nadd {a:e}, {a:e}\nmov [{d} + \\o], {a:e}" "";
    EachInteger _, Copy "copy_integer": "" 4 "mov {a:e}, [{s} + \\o]\nmov [{d} + \\o], {a:e}" "";
    EachInteger _, NonTemporalWrite "nontemporal_integer": "mov {a:e}, 1" 4
        "movnti [{d} + \\o], {a:e}" "sfence";
    Every Scalar, Read "read_scalar": "" 32
        "add {a}, [{s} + \\o]\nadd {b}, [{s} + \\o + 8]\nadd {c}, [{s} + \\o + 16]\nadd {e}, [{s} + \\o + 24]"
        "add {a}, {b}\nadd {c}, {e}\nadd {a}, {c}\nmov [{lanes}], {a}";
    Every Scalar, Write "write_scalar": "movabs {a}, 0x100000001" 8 "mov [{d} + \\o], {a}" "";
    Every Scalar, Modify "modify_scalar": "" 4
        "mov {a:e}, [{d} + \\o]\nadd {a:e}, {a:e}\nmov [{d} + \\o], {a:e}" "";
    Every Scalar, Copy "copy_scalar": "" 8 "mov {a}, [{s} + \\o]\nmov [{d} + \\o], {a}" "";
    Every Scalar, NonTemporalWrite "nontemporal_scalar": "movabs {a}, 0x100000001" 8
        "movnti [{d} + \\o], {a}" "sfence";
    Every Bits128, Read "read_sse2": ".irp r, 0, 1, 2, 3\npxor xmm\\r, xmm\\r\n.endr" 64
        ".irp r, 0, 1, 2, 3\npaddq xmm\\r, [{s} + \\o + 16*\\r]\n.endr"
        "paddq xmm0, xmm1\npaddq xmm2, xmm3\npaddq xmm0, xmm2\nmovdqu [{lanes}], xmm0";
    Every Bits128, Write "write_sse2": "mov {a:e}, 1\nmovd xmm0, {a:e}\npshufd xmm0, xmm0, 0" 16
        "movdqa [{d} + \\o], xmm0" "";
    Every Bits128, Modify "modify_sse2": "" 16
        "movdqa xmm0, [{d} + \\o]\npaddd xmm0, xmm0\nmovdqa [{d} + \\o], xmm0" "";
    Every Bits128, Copy "copy_sse2": "" 16 "movdqa xmm0, [{s} + \\o]\nmovdqa [{d} + \\o], xmm0" "";
    Every Bits128, NonTemporalWrite "nontemporal_sse2": "mov {a:e}, 1\nmovd xmm0, {a:e}\npshufd xmm0, xmm0, 0" 16
        "movntdq [{d} + \\o], xmm0" "sfence";
    Every Bits256, Read "read_avx2": ".irp r, 0, 1, 2, 3\nvpxor xmm\\r, xmm\\r, xmm\\r\n.endr" 128
        ".irp r, 0, 1, 2, 3\nvpaddq ymm\\r, ymm\\r, [{s} + \\o + 32*\\r]\n.endr"
        "vpaddq ymm0, ymm0, ymm1\nvpaddq ymm2, ymm2, ymm3\nvpaddq ymm0, ymm0, ymm2\nvmovdqu [{lanes}], ymm0\nvzeroupper";
    Every Bits256, Write "write_avx2": "mov {a:e}, 1\nvmovd xmm0, {a:e}\nvpbroadcastd ymm0, xmm0" 32
        "vmovdqa [{d} + \\o], ymm0" "vzeroupper";
    Every Bits256, Modify "modify_avx2": "" 32
        "vmovdqa ymm0, [{d} + \\o]\nvpaddd ymm0, ymm0, ymm0\nvmovdqa [{d} + \\o], ymm0" "vzeroupper";
    Every Bits256, Copy "copy_avx2": "" 32 "vmovdqa ymm0, [{s} + \\o]\nvmovdqa [{d} + \\o], ymm0" "vzeroupper";
    Every Bits256, NonTemporalWrite "nontemporal_avx2": "mov {a:e}, 1\nvmovd xmm0, {a:e}\nvpbroadcastd ymm0, xmm0" 32
        "vmovntdq [{d} + \\o], ymm0" "sfence\nvzeroupper";
    Every Bits512, Read "read_avx512": ".irp r, 0, 1, 2, 3\nvpxor xmm\\r, xmm\\r, xmm\\r\n.endr" 256
        ".irp r, 0, 1, 2, 3\nvpaddq zmm\\r, zmm\\r, [{s} + \\o + 64*\\r]\n.endr"
        "vpaddq zmm0, zmm0, zmm1\nvpaddq zmm2, zmm2, zmm3\nvpaddq zmm0, zmm0, zmm2\nvmovdqu64 [{lanes}], zmm0\nvzeroupper";
    Every Bits512, Write "write_avx512": "mov {a:e}, 1\nvpbroadcastd zmm0, {a:e}" 64
        "vmovdqa64 [{d} + \\o], zmm0" "vzeroupper";
    Every Bits512, Modify "modify_avx512": "" 64
        "vmovdqa64 zmm0, [{d} + \\o]\nvpaddd zmm0, zmm0, zmm0\nvmovdqa64 [{d} + \\o], zmm0" "vzeroupper";
    Every Bits512, Copy "copy_avx512": "" 64
        "vmovdqa64 zmm0, [{s} + \\o]\nvmovdqa64 [{d} + \\o], zmm0" "vzeroupper";
    Every Bits512, NonTemporalWrite "nontemporal_avx512": "mov {a:e}, 1\nvpbroadcastd zmm0, {a:e}" 64
        "vmovntdq [{d} + \\o], zmm0" "sfence\nvzeroupper";
}

#[cfg(target_arch = "aarch64")]
passes! {
    ["v0" "v1" "v2" "v3" "v4"]
    EveryFourth _, Read "read_fourth": "" 32
        "ldr {c:w}, [{s}, #\\o]\nadd {a:w}, {a:w}, {c:w}\nldr {e:w}, [{s}, #(\\o + 16)]\nadd {b:w}, {b:w}, {e:w}"
        "add {a:w}, {a:w}, {b:w}\nstr {a:w}, [{lanes}]";
    EveryFourth _, Write "write_fourth": "mov {a:w}, #1" 16 "str {a:w}, [{d}, #\\o]" "";
    EveryFourth _, Modify "modify_fourth": "" 16
        "ldr {a:w}, [{d}, #\\o]\nadd {a:w}, {a:w}, {a:w}\nstr {a:w}, [{d}, #\\o]" "";
    EveryFourth _, Copy "copy_fourth": "" 16 "ldr {a:w}, [{s}, #\\o]\nstr {a:w}, [{d}, #\\o]" "";
    EveryFourth _, NonTemporalWrite "nontemporal_fourth": "mov {a:w}, #1" 16 "str {a:w}, [{d}, #\\o]" "";
    EachInteger _, Read "read_integer": "" 8
        "ldr {c:w}, [{s}, #\\o]\nadd {a:w}, {a:w}, {c:w}\nldr {e:w}, [{s}, #(\\o + 4)]\nadd {b:w}, {b:w}, {e:w}"
        "add {a:w}, {a:w}, {b:w}\nstr {a:w}, [{lanes}]";
    EachInteger _, Write "write_integer": "mov {a:w}, #1" 4 "str {a:w}, [{d}, #\\o]" "";
    EachInteger _, Modify "modify_integer": "" 4
        "ldr {a:w}, [{d}, #\\o]\nadd {a:w}, {a:w}, {a:w}\nstr {a:w}, [{d}, #\\o]" "";
    EachInteger _, Copy "copy_integer": "" 4 "ldr {a:w}, [{s}, #\\o]\nstr {a:w}, [{d}, #\\o]" "";
    EachInteger _, NonTemporalWrite "nontemporal_integer": "mov {a:w}, #1" 4 "str {a:w}, [{d}, #\\o]" "";
    Every Scalar, Read "read_scalar": "" 16
        "ldp {c}, {e}, [{s}, #\\o]\nadd {a}, {a}, {c}\nadd {b}, {b}, {e}"
        "add {a}, {a}, {b}\nstr {a}, [{lanes}]";
    Every Scalar, Write "write_scalar": "mov {a}, #1\norr {a}, {a}, {a}, lsl #32" 16
        "stp {a}, {a}, [{d}, #\\o]" "";
    Every Scalar, Modify "modify_scalar": "" 4
        "ldr {a:w}, [{d}, #\\o]\nadd {a:w}, {a:w}, {a:w}\nstr {a:w}, [{d}, #\\o]" "";
    Every Scalar, Copy "copy_scalar": "" 16 "ldp {a}, {b}, [{s}, #\\o]\nstp {a}, {b}, [{d}, #\\o]" "";
    Every Scalar, NonTemporalWrite "nontemporal_scalar": "mov {a}, #1\norr {a}, {a}, {a}, lsl #32" 16
        "stnp {a}, {a}, [{d}, #\\o]" "";
    Every _, Read "read_neon": "movi v0.2d, #0\nmovi v1.2d, #0" 32
        "ldp q2, q3, [{s}, #\\o]\nadd v0.2d, v0.2d, v2.2d\nadd v1.2d, v1.2d, v3.2d"
        "add v0.2d, v0.2d, v1.2d\nstr q0, [{lanes}]";
    Every _, Write "write_neon": "movi v0.4s, #1" 32 "stp q0, q0, [{d}, #\\o]" "";
    Every _, Modify "modify_neon": "" 32
        "ldp q0, q1, [{d}, #\\o]\nadd v0.4s, v0.4s, v0.4s\nadd v1.4s, v1.4s, v1.4s\nstp q0, q1, [{d}, #\\o]"
        "";
    Every _, Copy "copy_neon": "" 32 "ldp q0, q1, [{s}, #\\o]\nstp q0, q1, [{d}, #\\o]" "";
    Every _, NonTemporalWrite "nontemporal_neon": "movi v0.4s, #1" 32 "stnp q0, q0, [{d}, #\\o]" "";
}

#[cfg(target_arch = "x86_64")]
pub(super) fn is_available(width: Width) -> bool {
    match width {
        Width::Scalar | Width::Bits128 => true,
        Width::Bits256 => std::arch::is_x86_feature_detected!("avx2"),
        Width::Bits512 => std::arch::is_x86_feature_detected!("avx512f"),
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) fn is_available(width: Width) -> bool {
    matches!(width, Width::Scalar | Width::Bits128)
}
