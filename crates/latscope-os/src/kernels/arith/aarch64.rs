//! The kernels of AArch64.

use std::arch::asm;

use super::operand::*;
use super::{Entry, Number, Op};

/// One chain of 64 operations per iteration.
const LATENCY_OPS: u64 = 64;
/// Operations per iteration over all chains.
const THROUGHPUT_OPS: u64 = 96;
const INTEGER_CHAINS: u64 = 12;
const FLOAT_CHAINS: u64 = 16;

macro_rules! integer_latency {
    ($name:ident, $mask:literal, $($body:literal),+) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut value = START & $mask;
            if iterations == 0 {
                return value;
            }
            // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
            unsafe {
                asm!(
                    "/* {other} */",
                    ".p2align 6",
                    "2:",
                    ".rept 64",
                    $($body,)+
                    ".endr",
                    "subs {n}, {n}, #1",
                    "b.ne 2b",
                    n = inout(reg) iterations => _,
                    value = inout(reg) value,
                    other = in(reg) OTHER,
                    out("v0") _,
                    options(nostack),
                );
            }
            value
        }
    };
}

integer_latency!(latscope_kernel_latency_add_i32, 0xffff_ffff, "add {value:w}, {value:w}, {other:w}");
integer_latency!(
    latscope_kernel_latency_add_i64,
    0xffff_ffff_ffff_ffff,
    "add {value:x}, {value:x}, {other:x}"
);
integer_latency!(latscope_kernel_latency_sub_i32, 0xffff_ffff, "sub {value:w}, {value:w}, {other:w}");
integer_latency!(
    latscope_kernel_latency_sub_i64,
    0xffff_ffff_ffff_ffff,
    "sub {value:x}, {value:x}, {other:x}"
);
integer_latency!(latscope_kernel_latency_mul_i32, 0xffff_ffff, "mul {value:w}, {value:w}, {other:w}");
integer_latency!(
    latscope_kernel_latency_mul_i64,
    0xffff_ffff_ffff_ffff,
    "mul {value:x}, {value:x}, {other:x}"
);
integer_latency!(latscope_kernel_latency_and_i32, 0xffff_ffff, "and {value:w}, {value:w}, {other:w}");
integer_latency!(
    latscope_kernel_latency_and_i64,
    0xffff_ffff_ffff_ffff,
    "and {value:x}, {value:x}, {other:x}"
);
integer_latency!(latscope_kernel_latency_or_i32, 0xffff_ffff, "orr {value:w}, {value:w}, {other:w}");
integer_latency!(
    latscope_kernel_latency_or_i64,
    0xffff_ffff_ffff_ffff,
    "orr {value:x}, {value:x}, {other:x}"
);
integer_latency!(latscope_kernel_latency_xor_i32, 0xffff_ffff, "eor {value:w}, {value:w}, {other:w}");
integer_latency!(
    latscope_kernel_latency_xor_i64,
    0xffff_ffff_ffff_ffff,
    "eor {value:x}, {value:x}, {other:x}"
);
integer_latency!(latscope_kernel_latency_shift_i32, 0xffff_ffff, "lsl {value:w}, {value:w}, #3");
integer_latency!(latscope_kernel_latency_shift_i64, 0xffff_ffff_ffff_ffff, "lsl {value:x}, {value:x}, #3");
integer_latency!(latscope_kernel_latency_rotate_i32, 0xffff_ffff, "ror {value:w}, {value:w}, #5");
integer_latency!(latscope_kernel_latency_rotate_i64, 0xffff_ffff_ffff_ffff, "ror {value:x}, {value:x}, #5");
integer_latency!(
    latscope_kernel_latency_popcount_i32,
    0xffff_ffff,
    "fmov s0, {value:w}",
    "cnt v0.8b, v0.8b",
    "addv b0, v0.8b",
    "fmov {value:w}, s0"
);
integer_latency!(
    latscope_kernel_latency_popcount_i64,
    0xffff_ffff_ffff_ffff,
    "fmov d0, {value:x}",
    "cnt v0.8b, v0.8b",
    "addv b0, v0.8b",
    "fmov {value:x}, d0"
);

/// The dividend is one addition away from the result before.
macro_rules! division_latency {
    ($name:ident, $large:ident, $divisor:ident, $($body:literal),+) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut value = 0_u64;
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        "/* {quotient} */",
                        ".p2align 6",
                        "2:",
                        ".rept 64",
                        $($body,)+
                        ".endr",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        n = inout(reg) iterations => _,
                        value = inout(reg) value,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                        quotient = out(reg) _,
                        options(nostack),
                    );
                }
            }
            value
        }
    };
}

division_latency!(
    latscope_kernel_latency_div_i32,
    LARGE_I32,
    DIVISOR_I32,
    "add {value:w}, {value:w}, {large:w}",
    "sdiv {value:w}, {value:w}, {divisor:w}"
);
division_latency!(
    latscope_kernel_latency_mod_i32,
    LARGE_I32,
    DIVISOR_I32,
    "add {value:w}, {value:w}, {large:w}",
    "sdiv {quotient:w}, {value:w}, {divisor:w}",
    "msub {value:w}, {quotient:w}, {divisor:w}, {value:w}"
);
division_latency!(
    latscope_kernel_latency_div_i64,
    LARGE_I64,
    DIVISOR_I64,
    "add {value:x}, {value:x}, {large:x}",
    "sdiv {value:x}, {value:x}, {divisor:x}"
);
division_latency!(
    latscope_kernel_latency_mod_i64,
    LARGE_I64,
    DIVISOR_I64,
    "add {value:x}, {value:x}, {large:x}",
    "sdiv {quotient:x}, {value:x}, {divisor:x}",
    "msub {value:x}, {quotient:x}, {divisor:x}, {value:x}"
);

macro_rules! integer_throughput {
    ($name:ident, $mask:literal, $chains:literal, $($body:literal),+) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut c = [START & $mask; INTEGER_CHAINS as usize];
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        "/* {other} */",
                        ".p2align 6",
                        "2:",
                        ".rept 8",
                        $chains,
                        $($body,)+
                        ".endr",
                        ".endr",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        n = inout(reg) iterations => _,
                        other = in(reg) OTHER,
                        c0 = inout(reg) c[0],
                        c1 = inout(reg) c[1],
                        c2 = inout(reg) c[2],
                        c3 = inout(reg) c[3],
                        c4 = inout(reg) c[4],
                        c5 = inout(reg) c[5],
                        c6 = inout(reg) c[6],
                        c7 = inout(reg) c[7],
                        c8 = inout(reg) c[8],
                        c9 = inout(reg) c[9],
                        c10 = inout(reg) c[10],
                        c11 = inout(reg) c[11],
                        out("v0") _,
                        options(nostack),
                    );
                }
            }
            c.into_iter().fold(0, u64::wrapping_add)
        }
    };
}

macro_rules! throughput_i32 {
    ($name:ident, $($body:literal),+) => {
        integer_throughput!(
            $name,
            0xffff_ffff,
            ".irp c, {c0:w}, {c1:w}, {c2:w}, {c3:w}, {c4:w}, {c5:w}, {c6:w}, {c7:w}, {c8:w}, {c9:w}, {c10:w}, {c11:w}",
            $($body),+
        );
    };
}

macro_rules! throughput_i64 {
    ($name:ident, $($body:literal),+) => {
        integer_throughput!(
            $name,
            0xffff_ffff_ffff_ffff,
            ".irp c, {c0:x}, {c1:x}, {c2:x}, {c3:x}, {c4:x}, {c5:x}, {c6:x}, {c7:x}, {c8:x}, {c9:x}, {c10:x}, {c11:x}",
            $($body),+
        );
    };
}

throughput_i32!(latscope_kernel_throughput_add_i32, "add \\c, \\c, {other:w}");
throughput_i64!(latscope_kernel_throughput_add_i64, "add \\c, \\c, {other:x}");
throughput_i32!(latscope_kernel_throughput_sub_i32, "sub \\c, \\c, {other:w}");
throughput_i64!(latscope_kernel_throughput_sub_i64, "sub \\c, \\c, {other:x}");
throughput_i32!(latscope_kernel_throughput_mul_i32, "mul \\c, \\c, {other:w}");
throughput_i64!(latscope_kernel_throughput_mul_i64, "mul \\c, \\c, {other:x}");
throughput_i32!(latscope_kernel_throughput_and_i32, "and \\c, \\c, {other:w}");
throughput_i64!(latscope_kernel_throughput_and_i64, "and \\c, \\c, {other:x}");
throughput_i32!(latscope_kernel_throughput_or_i32, "orr \\c, \\c, {other:w}");
throughput_i64!(latscope_kernel_throughput_or_i64, "orr \\c, \\c, {other:x}");
throughput_i32!(latscope_kernel_throughput_xor_i32, "eor \\c, \\c, {other:w}");
throughput_i64!(latscope_kernel_throughput_xor_i64, "eor \\c, \\c, {other:x}");
throughput_i32!(latscope_kernel_throughput_shift_i32, "lsl \\c, \\c, #3");
throughput_i64!(latscope_kernel_throughput_shift_i64, "lsl \\c, \\c, #3");
throughput_i32!(latscope_kernel_throughput_rotate_i32, "ror \\c, \\c, #5");
throughput_i64!(latscope_kernel_throughput_rotate_i64, "ror \\c, \\c, #5");
throughput_i32!(
    latscope_kernel_throughput_popcount_i32,
    "fmov s0, \\c",
    "cnt v0.8b, v0.8b",
    "addv b0, v0.8b",
    "fmov \\c, s0"
);
throughput_i64!(
    latscope_kernel_throughput_popcount_i64,
    "fmov d0, \\c",
    "cnt v0.8b, v0.8b",
    "addv b0, v0.8b",
    "fmov \\c, d0"
);

/// Each division starts from the same dividend.
macro_rules! division_throughput {
    ($name:ident, $large:ident, $divisor:ident, $($body:literal),+) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut value = 0_u64;
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        ".rept 96",
                        $($body,)+
                        ".endr",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        n = inout(reg) iterations => _,
                        value = inout(reg) value,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                        options(nostack),
                    );
                }
            }
            value.wrapping_mul(INTEGER_CHAINS)
        }
    };
}

division_throughput!(
    latscope_kernel_throughput_div_i32,
    LARGE_I32,
    DIVISOR_I32,
    "sdiv {value:w}, {large:w}, {divisor:w}"
);
division_throughput!(
    latscope_kernel_throughput_mod_i32,
    LARGE_I32,
    DIVISOR_I32,
    "sdiv {value:w}, {large:w}, {divisor:w}",
    "msub {value:w}, {value:w}, {divisor:w}, {large:w}"
);
division_throughput!(
    latscope_kernel_throughput_div_i64,
    LARGE_I64,
    DIVISOR_I64,
    "sdiv {value:x}, {large:x}, {divisor:x}"
);
division_throughput!(
    latscope_kernel_throughput_mod_i64,
    LARGE_I64,
    DIVISOR_I64,
    "sdiv {value:x}, {large:x}, {divisor:x}",
    "msub {value:x}, {value:x}, {divisor:x}, {large:x}"
);

/// Two operations in a row, so that the second can undo the first.
macro_rules! float_latency {
    ($name:ident, $float:ty, $start:expr, $a:expr, $b:expr, $first:literal, $second:literal) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut value = $start as $float;
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        "/* {a:v} {b:v} */",
                        ".p2align 6",
                        "2:",
                        ".rept 32",
                        $first,
                        $second,
                        ".endr",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        n = inout(reg) iterations => _,
                        value = inout(vreg) value,
                        a = in(vreg) $a as $float,
                        b = in(vreg) $b as $float,
                        options(nostack),
                    );
                }
            }
            u64::from(value.to_bits())
        }
    };
}

macro_rules! float_throughput {
    ($name:ident, $float:ty, $start:expr, $a:expr, $b:expr, $chains:expr, $first:literal, $second:literal) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut c = [$start as $float; FLOAT_CHAINS as usize];
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        "/* {a:v} {b:v} */",
                        ".p2align 6",
                        "2:",
                        ".rept 3",
                        $chains,
                        $first,
                        ".endr",
                        $chains,
                        $second,
                        ".endr",
                        ".endr",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        n = inout(reg) iterations => _,
                        a = in(vreg) $a as $float,
                        b = in(vreg) $b as $float,
                        c0 = inout(vreg) c[0],
                        c1 = inout(vreg) c[1],
                        c2 = inout(vreg) c[2],
                        c3 = inout(vreg) c[3],
                        c4 = inout(vreg) c[4],
                        c5 = inout(vreg) c[5],
                        c6 = inout(vreg) c[6],
                        c7 = inout(vreg) c[7],
                        c8 = inout(vreg) c[8],
                        c9 = inout(vreg) c[9],
                        c10 = inout(vreg) c[10],
                        c11 = inout(vreg) c[11],
                        c12 = inout(vreg) c[12],
                        c13 = inout(vreg) c[13],
                        c14 = inout(vreg) c[14],
                        c15 = inout(vreg) c[15],
                        options(nostack),
                    );
                }
            }
            u64::from(c.into_iter().sum::<$float>().to_bits())
        }
    };
}

macro_rules! chains_f32 {
    () => {
        ".irp c, {c0:s}, {c1:s}, {c2:s}, {c3:s}, {c4:s}, {c5:s}, {c6:s}, {c7:s}, {c8:s}, {c9:s}, {c10:s}, {c11:s}, {c12:s}, {c13:s}, {c14:s}, {c15:s}"
    };
}
macro_rules! chains_f64 {
    () => {
        ".irp c, {c0:d}, {c1:d}, {c2:d}, {c3:d}, {c4:d}, {c5:d}, {c6:d}, {c7:d}, {c8:d}, {c9:d}, {c10:d}, {c11:d}, {c12:d}, {c13:d}, {c14:d}, {c15:d}"
    };
}

float_latency!(
    latscope_kernel_latency_add_f32,
    f32,
    SUM_START,
    ADDEND,
    ADDEND,
    "fadd {value:s}, {value:s}, {a:s}",
    "fadd {value:s}, {value:s}, {b:s}"
);
float_latency!(
    latscope_kernel_latency_sub_f32,
    f32,
    -SUM_START,
    ADDEND,
    ADDEND,
    "fsub {value:s}, {value:s}, {a:s}",
    "fsub {value:s}, {value:s}, {b:s}"
);
float_latency!(
    latscope_kernel_latency_mul_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "fmul {value:s}, {value:s}, {a:s}",
    "fmul {value:s}, {value:s}, {b:s}"
);
float_latency!(
    latscope_kernel_latency_div_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "fdiv {value:s}, {value:s}, {a:s}",
    "fdiv {value:s}, {value:s}, {b:s}"
);
float_latency!(
    latscope_kernel_latency_fma_f32,
    f32,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    "fmadd {value:s}, {value:s}, {a:s}, {b:s}",
    "fmadd {value:s}, {value:s}, {a:s}, {b:s}"
);
float_throughput!(
    latscope_kernel_throughput_add_f32,
    f32,
    SUM_START,
    ADDEND,
    ADDEND,
    chains_f32!(),
    "fadd \\c, \\c, {a:s}",
    "fadd \\c, \\c, {b:s}"
);
float_throughput!(
    latscope_kernel_throughput_sub_f32,
    f32,
    -SUM_START,
    ADDEND,
    ADDEND,
    chains_f32!(),
    "fsub \\c, \\c, {a:s}",
    "fsub \\c, \\c, {b:s}"
);
float_throughput!(
    latscope_kernel_throughput_mul_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    chains_f32!(),
    "fmul \\c, \\c, {a:s}",
    "fmul \\c, \\c, {b:s}"
);
float_throughput!(
    latscope_kernel_throughput_div_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    chains_f32!(),
    "fdiv \\c, \\c, {a:s}",
    "fdiv \\c, \\c, {b:s}"
);
float_throughput!(
    latscope_kernel_throughput_fma_f32,
    f32,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    chains_f32!(),
    "fmadd \\c, \\c, {a:s}, {b:s}",
    "fmadd \\c, \\c, {a:s}, {b:s}"
);
float_latency!(
    latscope_kernel_latency_add_f64,
    f64,
    SUM_START,
    ADDEND,
    ADDEND,
    "fadd {value:d}, {value:d}, {a:d}",
    "fadd {value:d}, {value:d}, {b:d}"
);
float_latency!(
    latscope_kernel_latency_sub_f64,
    f64,
    -SUM_START,
    ADDEND,
    ADDEND,
    "fsub {value:d}, {value:d}, {a:d}",
    "fsub {value:d}, {value:d}, {b:d}"
);
float_latency!(
    latscope_kernel_latency_mul_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "fmul {value:d}, {value:d}, {a:d}",
    "fmul {value:d}, {value:d}, {b:d}"
);
float_latency!(
    latscope_kernel_latency_div_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "fdiv {value:d}, {value:d}, {a:d}",
    "fdiv {value:d}, {value:d}, {b:d}"
);
float_latency!(
    latscope_kernel_latency_fma_f64,
    f64,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    "fmadd {value:d}, {value:d}, {a:d}, {b:d}",
    "fmadd {value:d}, {value:d}, {a:d}, {b:d}"
);
float_throughput!(
    latscope_kernel_throughput_add_f64,
    f64,
    SUM_START,
    ADDEND,
    ADDEND,
    chains_f64!(),
    "fadd \\c, \\c, {a:d}",
    "fadd \\c, \\c, {b:d}"
);
float_throughput!(
    latscope_kernel_throughput_sub_f64,
    f64,
    -SUM_START,
    ADDEND,
    ADDEND,
    chains_f64!(),
    "fsub \\c, \\c, {a:d}",
    "fsub \\c, \\c, {b:d}"
);
float_throughput!(
    latscope_kernel_throughput_mul_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    chains_f64!(),
    "fmul \\c, \\c, {a:d}",
    "fmul \\c, \\c, {b:d}"
);
float_throughput!(
    latscope_kernel_throughput_div_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    chains_f64!(),
    "fdiv \\c, \\c, {a:d}",
    "fdiv \\c, \\c, {b:d}"
);
float_throughput!(
    latscope_kernel_throughput_fma_f64,
    f64,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    chains_f64!(),
    "fmadd \\c, \\c, {a:d}, {b:d}",
    "fmadd \\c, \\c, {a:d}, {b:d}"
);

pub(super) fn latency(op: Op, number: Number) -> Option<Entry> {
    let run: fn(u64) -> u64 = match (op, number) {
        (Op::Add, Number::I32) => latscope_kernel_latency_add_i32,
        (Op::Add, Number::I64) => latscope_kernel_latency_add_i64,
        (Op::Add, Number::F32) => latscope_kernel_latency_add_f32,
        (Op::Add, Number::F64) => latscope_kernel_latency_add_f64,
        (Op::Sub, Number::I32) => latscope_kernel_latency_sub_i32,
        (Op::Sub, Number::I64) => latscope_kernel_latency_sub_i64,
        (Op::Sub, Number::F32) => latscope_kernel_latency_sub_f32,
        (Op::Sub, Number::F64) => latscope_kernel_latency_sub_f64,
        (Op::Mul, Number::I32) => latscope_kernel_latency_mul_i32,
        (Op::Mul, Number::I64) => latscope_kernel_latency_mul_i64,
        (Op::Mul, Number::F32) => latscope_kernel_latency_mul_f32,
        (Op::Mul, Number::F64) => latscope_kernel_latency_mul_f64,
        (Op::Div, Number::I32) => latscope_kernel_latency_div_i32,
        (Op::Div, Number::I64) => latscope_kernel_latency_div_i64,
        (Op::Div, Number::F32) => latscope_kernel_latency_div_f32,
        (Op::Div, Number::F64) => latscope_kernel_latency_div_f64,
        (Op::Mod, Number::I32) => latscope_kernel_latency_mod_i32,
        (Op::Mod, Number::I64) => latscope_kernel_latency_mod_i64,
        (Op::And, Number::I32) => latscope_kernel_latency_and_i32,
        (Op::And, Number::I64) => latscope_kernel_latency_and_i64,
        (Op::Or, Number::I32) => latscope_kernel_latency_or_i32,
        (Op::Or, Number::I64) => latscope_kernel_latency_or_i64,
        (Op::Xor, Number::I32) => latscope_kernel_latency_xor_i32,
        (Op::Xor, Number::I64) => latscope_kernel_latency_xor_i64,
        (Op::Shift, Number::I32) => latscope_kernel_latency_shift_i32,
        (Op::Shift, Number::I64) => latscope_kernel_latency_shift_i64,
        (Op::Rotate, Number::I32) => latscope_kernel_latency_rotate_i32,
        (Op::Rotate, Number::I64) => latscope_kernel_latency_rotate_i64,
        (Op::PopCount, Number::I32) => latscope_kernel_latency_popcount_i32,
        (Op::PopCount, Number::I64) => latscope_kernel_latency_popcount_i64,
        (Op::Fma, Number::F32) => latscope_kernel_latency_fma_f32,
        (Op::Fma, Number::F64) => latscope_kernel_latency_fma_f64,
        _ => return None,
    };
    let extra_adds_per_op = if matches!(op, Op::Div | Op::Mod) && !number.is_float() { 1.0 } else { 0.0 };
    Some(Entry { run, ops: LATENCY_OPS, chains: 1, extra_adds_per_op })
}

pub(super) fn throughput(op: Op, number: Number) -> Option<Entry> {
    let run: fn(u64) -> u64 = match (op, number) {
        (Op::Add, Number::I32) => latscope_kernel_throughput_add_i32,
        (Op::Add, Number::I64) => latscope_kernel_throughput_add_i64,
        (Op::Add, Number::F32) => latscope_kernel_throughput_add_f32,
        (Op::Add, Number::F64) => latscope_kernel_throughput_add_f64,
        (Op::Sub, Number::I32) => latscope_kernel_throughput_sub_i32,
        (Op::Sub, Number::I64) => latscope_kernel_throughput_sub_i64,
        (Op::Sub, Number::F32) => latscope_kernel_throughput_sub_f32,
        (Op::Sub, Number::F64) => latscope_kernel_throughput_sub_f64,
        (Op::Mul, Number::I32) => latscope_kernel_throughput_mul_i32,
        (Op::Mul, Number::I64) => latscope_kernel_throughput_mul_i64,
        (Op::Mul, Number::F32) => latscope_kernel_throughput_mul_f32,
        (Op::Mul, Number::F64) => latscope_kernel_throughput_mul_f64,
        (Op::Div, Number::I32) => latscope_kernel_throughput_div_i32,
        (Op::Div, Number::I64) => latscope_kernel_throughput_div_i64,
        (Op::Div, Number::F32) => latscope_kernel_throughput_div_f32,
        (Op::Div, Number::F64) => latscope_kernel_throughput_div_f64,
        (Op::Mod, Number::I32) => latscope_kernel_throughput_mod_i32,
        (Op::Mod, Number::I64) => latscope_kernel_throughput_mod_i64,
        (Op::And, Number::I32) => latscope_kernel_throughput_and_i32,
        (Op::And, Number::I64) => latscope_kernel_throughput_and_i64,
        (Op::Or, Number::I32) => latscope_kernel_throughput_or_i32,
        (Op::Or, Number::I64) => latscope_kernel_throughput_or_i64,
        (Op::Xor, Number::I32) => latscope_kernel_throughput_xor_i32,
        (Op::Xor, Number::I64) => latscope_kernel_throughput_xor_i64,
        (Op::Shift, Number::I32) => latscope_kernel_throughput_shift_i32,
        (Op::Shift, Number::I64) => latscope_kernel_throughput_shift_i64,
        (Op::Rotate, Number::I32) => latscope_kernel_throughput_rotate_i32,
        (Op::Rotate, Number::I64) => latscope_kernel_throughput_rotate_i64,
        (Op::PopCount, Number::I32) => latscope_kernel_throughput_popcount_i32,
        (Op::PopCount, Number::I64) => latscope_kernel_throughput_popcount_i64,
        (Op::Fma, Number::F32) => latscope_kernel_throughput_fma_f32,
        (Op::Fma, Number::F64) => latscope_kernel_throughput_fma_f64,
        _ => return None,
    };
    let chains = if number.is_float() { FLOAT_CHAINS } else { INTEGER_CHAINS };
    Some(Entry { run, ops: THROUGHPUT_OPS, chains, extra_adds_per_op: 0.0 })
}
