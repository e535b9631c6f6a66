//! The kernels of x86-64.

use std::arch::{asm, is_x86_feature_detected};

use super::operand::*;
use super::{Entry, Number, Op};

/// One chain of 64 operations per iteration.
const LATENCY_OPS: u64 = 64;
/// Operations per iteration over all chains.
const THROUGHPUT_OPS: u64 = 96;
const INTEGER_CHAINS: u64 = 8;
const FLOAT_CHAINS: u64 = 12;

macro_rules! integer_latency {
    ($name:ident, $mask:literal, $body:literal) => {
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
                    $body,
                    ".endr",
                    "sub {n}, 1",
                    "jnz 2b",
                    n = inout(reg) iterations => _,
                    value = inout(reg) value,
                    other = in(reg) OTHER,
                    options(nostack),
                );
            }
            value
        }
    };
}

integer_latency!(latscope_kernel_latency_add_i32, 0xffff_ffff, "add {value:e}, {other:e}");
integer_latency!(latscope_kernel_latency_add_i64, 0xffff_ffff_ffff_ffff, "add {value:r}, {other:r}");
integer_latency!(latscope_kernel_latency_sub_i32, 0xffff_ffff, "sub {value:e}, {other:e}");
integer_latency!(latscope_kernel_latency_sub_i64, 0xffff_ffff_ffff_ffff, "sub {value:r}, {other:r}");
integer_latency!(latscope_kernel_latency_mul_i32, 0xffff_ffff, "imul {value:e}, {other:e}");
integer_latency!(latscope_kernel_latency_mul_i64, 0xffff_ffff_ffff_ffff, "imul {value:r}, {other:r}");
integer_latency!(latscope_kernel_latency_and_i32, 0xffff_ffff, "and {value:e}, {other:e}");
integer_latency!(latscope_kernel_latency_and_i64, 0xffff_ffff_ffff_ffff, "and {value:r}, {other:r}");
integer_latency!(latscope_kernel_latency_or_i32, 0xffff_ffff, "or {value:e}, {other:e}");
integer_latency!(latscope_kernel_latency_or_i64, 0xffff_ffff_ffff_ffff, "or {value:r}, {other:r}");
integer_latency!(latscope_kernel_latency_xor_i32, 0xffff_ffff, "xor {value:e}, {other:e}");
integer_latency!(latscope_kernel_latency_xor_i64, 0xffff_ffff_ffff_ffff, "xor {value:r}, {other:r}");
integer_latency!(latscope_kernel_latency_shift_i32, 0xffff_ffff, "shl {value:e}, 3");
integer_latency!(latscope_kernel_latency_shift_i64, 0xffff_ffff_ffff_ffff, "shl {value:r}, 3");
integer_latency!(latscope_kernel_latency_rotate_i32, 0xffff_ffff, "ror {value:e}, 5");
integer_latency!(latscope_kernel_latency_rotate_i64, 0xffff_ffff_ffff_ffff, "ror {value:r}, 5");
integer_latency!(latscope_kernel_latency_popcount_i32, 0xffff_ffff, "popcnt {value:e}, {value:e}");
integer_latency!(latscope_kernel_latency_popcount_i64, 0xffff_ffff_ffff_ffff, "popcnt {value:r}, {value:r}");

/// The dividend is one addition away from the result before; `xor edx, edx` breaks the dependency on the other
/// result while registers are renamed.
macro_rules! division_latency {
    ($name:ident, $large:ident, $divisor:ident, $result:ident, $dividend:literal, $divide:literal) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let (mut quotient, mut remainder) = (0_u64, 0_u64);
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, the divisor is not zero, the
                // quotient is smaller than the positive dividend and so fits, and iterations > 0 ends the
                // loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        ".rept 64",
                        $dividend,
                        "xor edx, edx",
                        $divide,
                        ".endr",
                        "sub {n}, 1",
                        "jnz 2b",
                        n = inout(reg) iterations => _,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                        inout("rax") quotient,
                        inout("rdx") remainder,
                        options(nostack),
                    );
                }
            }
            division_latency!(@result $result quotient remainder)
        }
    };
    (@result Div $quotient:ident $remainder:ident) => {{
        let _ = $remainder;
        $quotient
    }};
    (@result Mod $quotient:ident $remainder:ident) => {{
        let _ = $quotient;
        $remainder
    }};
}

division_latency!(
    latscope_kernel_latency_div_i32,
    LARGE_I32,
    DIVISOR_I32,
    Div,
    "add eax, {large:e}",
    "idiv {divisor:e}"
);
division_latency!(
    latscope_kernel_latency_mod_i32,
    LARGE_I32,
    DIVISOR_I32,
    Mod,
    "lea eax, [rdx + {large:r}]",
    "idiv {divisor:e}"
);
division_latency!(
    latscope_kernel_latency_div_i64,
    LARGE_I64,
    DIVISOR_I64,
    Div,
    "add rax, {large:r}",
    "idiv {divisor:r}"
);
division_latency!(
    latscope_kernel_latency_mod_i64,
    LARGE_I64,
    DIVISOR_I64,
    Mod,
    "lea rax, [rdx + {large:r}]",
    "idiv {divisor:r}"
);

macro_rules! integer_throughput {
    ($name:ident, $mask:literal, $chains:literal, $body:literal) => {
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
                        ".rept 12",
                        $chains,
                        $body,
                        ".endr",
                        ".endr",
                        "sub {n}, 1",
                        "jnz 2b",
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
                        options(nostack),
                    );
                }
            }
            c.into_iter().fold(0, u64::wrapping_add)
        }
    };
}

macro_rules! throughput_i32 {
    ($name:ident, $body:literal) => {
        integer_throughput!(
            $name,
            0xffff_ffff,
            ".irp c, {c0:e}, {c1:e}, {c2:e}, {c3:e}, {c4:e}, {c5:e}, {c6:e}, {c7:e}",
            $body
        );
    };
}

macro_rules! throughput_i64 {
    ($name:ident, $body:literal) => {
        integer_throughput!(
            $name,
            0xffff_ffff_ffff_ffff,
            ".irp c, {c0}, {c1}, {c2}, {c3}, {c4}, {c5}, {c6}, {c7}",
            $body
        );
    };
}

throughput_i32!(latscope_kernel_throughput_add_i32, "add \\c, {other:e}");
throughput_i64!(latscope_kernel_throughput_add_i64, "add \\c, {other}");
throughput_i32!(latscope_kernel_throughput_sub_i32, "sub \\c, {other:e}");
throughput_i64!(latscope_kernel_throughput_sub_i64, "sub \\c, {other}");
throughput_i32!(latscope_kernel_throughput_mul_i32, "imul \\c, {other:e}");
throughput_i64!(latscope_kernel_throughput_mul_i64, "imul \\c, {other}");
throughput_i32!(latscope_kernel_throughput_and_i32, "and \\c, {other:e}");
throughput_i64!(latscope_kernel_throughput_and_i64, "and \\c, {other}");
throughput_i32!(latscope_kernel_throughput_or_i32, "or \\c, {other:e}");
throughput_i64!(latscope_kernel_throughput_or_i64, "or \\c, {other}");
throughput_i32!(latscope_kernel_throughput_xor_i32, "xor \\c, {other:e}");
throughput_i64!(latscope_kernel_throughput_xor_i64, "xor \\c, {other}");
throughput_i32!(latscope_kernel_throughput_shift_i32, "shl \\c, 3");
throughput_i64!(latscope_kernel_throughput_shift_i64, "shl \\c, 3");
throughput_i32!(latscope_kernel_throughput_rotate_i32, "ror \\c, 5");
throughput_i64!(latscope_kernel_throughput_rotate_i64, "ror \\c, 5");
throughput_i32!(latscope_kernel_throughput_popcount_i32, "popcnt \\c, \\c");
throughput_i64!(latscope_kernel_throughput_popcount_i64, "popcnt \\c, \\c");

/// Each division starts from the same dividend; renaming keeps them apart.
macro_rules! division_throughput {
    ($name:ident, $large:ident, $divisor:ident, $result:ident, $dividend:literal, $divide:literal) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let (mut quotient, mut remainder) = (0_u64, 0_u64);
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, the divisor is not zero, the
                // quotient is smaller than the positive dividend and so fits, and iterations > 0 ends the
                // loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        ".rept 96",
                        $dividend,
                        "xor edx, edx",
                        $divide,
                        ".endr",
                        "sub {n}, 1",
                        "jnz 2b",
                        n = inout(reg) iterations => _,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                        inout("rax") quotient,
                        inout("rdx") remainder,
                        options(nostack),
                    );
                }
            }
            let result = division_latency!(@result $result quotient remainder);
            u64::wrapping_mul(result, INTEGER_CHAINS)
        }
    };
}

division_throughput!(
    latscope_kernel_throughput_div_i32,
    LARGE_I32,
    DIVISOR_I32,
    Div,
    "mov eax, {large:e}",
    "idiv {divisor:e}"
);
division_throughput!(
    latscope_kernel_throughput_mod_i32,
    LARGE_I32,
    DIVISOR_I32,
    Mod,
    "mov eax, {large:e}",
    "idiv {divisor:e}"
);
division_throughput!(
    latscope_kernel_throughput_div_i64,
    LARGE_I64,
    DIVISOR_I64,
    Div,
    "mov rax, {large:r}",
    "idiv {divisor:r}"
);
division_throughput!(
    latscope_kernel_throughput_mod_i64,
    LARGE_I64,
    DIVISOR_I64,
    Mod,
    "mov rax, {large:r}",
    "idiv {divisor:r}"
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
                        "/* {a} {b} */",
                        ".p2align 6",
                        "2:",
                        ".rept 32",
                        $first,
                        $second,
                        ".endr",
                        "sub {n}, 1",
                        "jnz 2b",
                        n = inout(reg) iterations => _,
                        value = inout(xmm_reg) value,
                        a = in(xmm_reg) $a as $float,
                        b = in(xmm_reg) $b as $float,
                        options(nostack),
                    );
                }
            }
            u64::from(value.to_bits())
        }
    };
}

macro_rules! float_throughput {
    ($name:ident, $float:ty, $start:expr, $a:expr, $b:expr, $first:literal, $second:literal) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut c = [$start as $float; FLOAT_CHAINS as usize];
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        "/* {a} {b} */",
                        ".p2align 6",
                        "2:",
                        ".rept 4",
                        ".irp c, {c0}, {c1}, {c2}, {c3}, {c4}, {c5}, {c6}, {c7}, {c8}, {c9}, {c10}, {c11}",
                        $first,
                        ".endr",
                        ".irp c, {c0}, {c1}, {c2}, {c3}, {c4}, {c5}, {c6}, {c7}, {c8}, {c9}, {c10}, {c11}",
                        $second,
                        ".endr",
                        ".endr",
                        "sub {n}, 1",
                        "jnz 2b",
                        n = inout(reg) iterations => _,
                        a = in(xmm_reg) $a as $float,
                        b = in(xmm_reg) $b as $float,
                        c0 = inout(xmm_reg) c[0],
                        c1 = inout(xmm_reg) c[1],
                        c2 = inout(xmm_reg) c[2],
                        c3 = inout(xmm_reg) c[3],
                        c4 = inout(xmm_reg) c[4],
                        c5 = inout(xmm_reg) c[5],
                        c6 = inout(xmm_reg) c[6],
                        c7 = inout(xmm_reg) c[7],
                        c8 = inout(xmm_reg) c[8],
                        c9 = inout(xmm_reg) c[9],
                        c10 = inout(xmm_reg) c[10],
                        c11 = inout(xmm_reg) c[11],
                        options(nostack),
                    );
                }
            }
            u64::from(c.into_iter().sum::<$float>().to_bits())
        }
    };
}

float_latency!(
    latscope_kernel_latency_add_f32,
    f32,
    SUM_START,
    ADDEND,
    ADDEND,
    "addss {value}, {a}",
    "addss {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_sub_f32,
    f32,
    -SUM_START,
    ADDEND,
    ADDEND,
    "subss {value}, {a}",
    "subss {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_mul_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "mulss {value}, {a}",
    "mulss {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_div_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "divss {value}, {a}",
    "divss {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_fma_f32,
    f32,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    "vfmadd213ss {value}, {a}, {b}",
    "vfmadd213ss {value}, {a}, {b}"
);
float_throughput!(
    latscope_kernel_throughput_add_f32,
    f32,
    SUM_START,
    ADDEND,
    ADDEND,
    "addss \\c, {a}",
    "addss \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_sub_f32,
    f32,
    -SUM_START,
    ADDEND,
    ADDEND,
    "subss \\c, {a}",
    "subss \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_mul_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "mulss \\c, {a}",
    "mulss \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_div_f32,
    f32,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "divss \\c, {a}",
    "divss \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_fma_f32,
    f32,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    "vfmadd213ss \\c, {a}, {b}",
    "vfmadd213ss \\c, {a}, {b}"
);
float_latency!(
    latscope_kernel_latency_add_f64,
    f64,
    SUM_START,
    ADDEND,
    ADDEND,
    "addsd {value}, {a}",
    "addsd {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_sub_f64,
    f64,
    -SUM_START,
    ADDEND,
    ADDEND,
    "subsd {value}, {a}",
    "subsd {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_mul_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "mulsd {value}, {a}",
    "mulsd {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_div_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "divsd {value}, {a}",
    "divsd {value}, {b}"
);
float_latency!(
    latscope_kernel_latency_fma_f64,
    f64,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    "vfmadd213sd {value}, {a}, {b}",
    "vfmadd213sd {value}, {a}, {b}"
);
float_throughput!(
    latscope_kernel_throughput_add_f64,
    f64,
    SUM_START,
    ADDEND,
    ADDEND,
    "addsd \\c, {a}",
    "addsd \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_sub_f64,
    f64,
    -SUM_START,
    ADDEND,
    ADDEND,
    "subsd \\c, {a}",
    "subsd \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_mul_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "mulsd \\c, {a}",
    "mulsd \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_div_f64,
    f64,
    FLOAT_START,
    FACTOR,
    INVERSE,
    "divsd \\c, {a}",
    "divsd \\c, {b}"
);
float_throughput!(
    latscope_kernel_throughput_fma_f64,
    f64,
    FLOAT_START,
    FUSED_FACTOR,
    FUSED_ADDEND,
    "vfmadd213sd \\c, {a}, {b}",
    "vfmadd213sd \\c, {a}, {b}"
);

/// Returns whether the processor has the instruction.
fn supported(op: Op) -> bool {
    match op {
        Op::Fma => is_x86_feature_detected!("fma"),
        Op::PopCount => is_x86_feature_detected!("popcnt"),
        _ => true,
    }
}

pub(super) fn latency(op: Op, number: Number) -> Option<Entry> {
    if !supported(op) {
        return None;
    }
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
    if !supported(op) {
        return None;
    }
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
