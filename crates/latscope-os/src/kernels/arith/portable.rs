//! Plain loops for architectures without kernels of their own, each result hidden from the compiler by
//! `black_box`, which may cost a store and a load.

use std::hint::black_box;

use super::operand::*;
use super::{Entry, Number, Op};

/// One chain of 16 operations per iteration, or as many chains of 16.
const OPS: u64 = 16;
const CHAINS: u64 = 4;

macro_rules! kernels {
    ($chains:expr, $op:expr, $number:expr) => {{
        fn integer<T: Copy>(n: u64, start: T, step: impl Fn(T) -> T, end: impl Fn(T) -> u64) -> u64 {
            let mut chains = [start; $chains as usize];
            for _ in 0..n * OPS {
                for value in &mut chains {
                    *value = black_box(step(*value));
                }
            }
            chains.into_iter().fold(0, |sum: u64, value| sum.wrapping_add(end(value)))
        }
        fn i32(n: u64, step: impl Fn(u32) -> u32) -> u64 {
            integer(n, START as u32, step, u64::from)
        }
        fn i64(n: u64, step: impl Fn(u64) -> u64) -> u64 {
            integer(n, START, step, |v| v)
        }
        fn i32_from_zero(n: u64, step: impl Fn(i32) -> i32) -> u64 {
            integer(n, 0, step, |v| v as u64)
        }
        fn i64_from_zero(n: u64, step: impl Fn(i64) -> i64) -> u64 {
            integer(n, 0, step, |v| v as u64)
        }
        fn f32(n: u64, start: f32, step: impl Fn(f32, bool) -> f32) -> u64 {
            let mut chains = [start; $chains as usize];
            for turn in 0..n * OPS {
                for value in &mut chains {
                    *value = black_box(step(*value, turn % 2 == 0));
                }
            }
            u64::from(chains.into_iter().sum::<f32>().to_bits())
        }
        fn f64(n: u64, start: f64, step: impl Fn(f64, bool) -> f64) -> u64 {
            let mut chains = [start; $chains as usize];
            for turn in 0..n * OPS {
                for value in &mut chains {
                    *value = black_box(step(*value, turn % 2 == 0));
                }
            }
            u64::from(chains.into_iter().sum::<f64>().to_bits())
        }
        const OTHER_I32: u32 = OTHER as u32;
        let run: fn(u64) -> u64 = match ($op, $number) {
            (Op::Add, Number::I32) => |n| i32(n, |v| v.wrapping_add(OTHER_I32)),
            (Op::Add, Number::I64) => |n| i64(n, |v| v.wrapping_add(OTHER)),
            (Op::Sub, Number::I32) => |n| i32(n, |v| v.wrapping_sub(OTHER_I32)),
            (Op::Sub, Number::I64) => |n| i64(n, |v| v.wrapping_sub(OTHER)),
            (Op::Mul, Number::I32) => |n| i32(n, |v| v.wrapping_mul(OTHER_I32)),
            (Op::Mul, Number::I64) => |n| i64(n, |v| v.wrapping_mul(OTHER)),
            (Op::And, Number::I32) => |n| i32(n, |v| v & OTHER_I32),
            (Op::And, Number::I64) => |n| i64(n, |v| v & OTHER),
            (Op::Or, Number::I32) => |n| i32(n, |v| v | OTHER_I32),
            (Op::Or, Number::I64) => |n| i64(n, |v| v | OTHER),
            (Op::Xor, Number::I32) => |n| i32(n, |v| v ^ OTHER_I32),
            (Op::Xor, Number::I64) => |n| i64(n, |v| v ^ OTHER),
            (Op::Shift, Number::I32) => |n| i32(n, |v| v << 3),
            (Op::Shift, Number::I64) => |n| i64(n, |v| v << 3),
            (Op::Rotate, Number::I32) => |n| i32(n, |v| v.rotate_right(5)),
            (Op::Rotate, Number::I64) => |n| i64(n, |v| v.rotate_right(5)),
            (Op::PopCount, Number::I32) => |n| i32(n, |v| v.count_ones()),
            (Op::PopCount, Number::I64) => |n| i64(n, |v| v.count_ones().into()),
            (Op::Div, Number::I32) => |n| i32_from_zero(n, |v| (v + LARGE_I32 as i32) / DIVISOR_I32 as i32),
            (Op::Div, Number::I64) => |n| i64_from_zero(n, |v| (v + LARGE_I64 as i64) / DIVISOR_I64 as i64),
            (Op::Mod, Number::I32) => |n| i32_from_zero(n, |v| (v + LARGE_I32 as i32) % DIVISOR_I32 as i32),
            (Op::Mod, Number::I64) => |n| i64_from_zero(n, |v| (v + LARGE_I64 as i64) % DIVISOR_I64 as i64),
            (Op::Add, Number::F32) => |n| f32(n, SUM_START as f32, |v, _| v + ADDEND as f32),
            (Op::Sub, Number::F32) => |n| f32(n, -SUM_START as f32, |v, _| v - ADDEND as f32),
            (Op::Mul, Number::F32) => {
                |n| f32(n, FLOAT_START as f32, |v, first| v * (if first { FACTOR } else { INVERSE }) as f32)
            }
            (Op::Div, Number::F32) => {
                |n| f32(n, FLOAT_START as f32, |v, first| v / (if first { FACTOR } else { INVERSE }) as f32)
            }
            (Op::Fma, Number::F32) => {
                |n| f32(n, FLOAT_START as f32, |v, _| v.mul_add(FUSED_FACTOR as f32, FUSED_ADDEND as f32))
            }
            (Op::Add, Number::F64) => |n| f64(n, SUM_START as f64, |v, _| v + ADDEND as f64),
            (Op::Sub, Number::F64) => |n| f64(n, -SUM_START as f64, |v, _| v - ADDEND as f64),
            (Op::Mul, Number::F64) => {
                |n| f64(n, FLOAT_START as f64, |v, first| v * (if first { FACTOR } else { INVERSE }) as f64)
            }
            (Op::Div, Number::F64) => {
                |n| f64(n, FLOAT_START as f64, |v, first| v / (if first { FACTOR } else { INVERSE }) as f64)
            }
            (Op::Fma, Number::F64) => {
                |n| f64(n, FLOAT_START as f64, |v, _| v.mul_add(FUSED_FACTOR as f64, FUSED_ADDEND as f64))
            }
            _ => return None,
        };
        run
    }};
}

pub(super) fn latency(op: Op, number: Number) -> Option<Entry> {
    let run = kernels!(1, op, number);
    let extra_adds_per_op = if matches!(op, Op::Div | Op::Mod) && !number.is_float() { 1.0 } else { 0.0 };
    Some(Entry { run, ops: OPS, chains: 1, extra_adds_per_op })
}

pub(super) fn throughput(op: Op, number: Number) -> Option<Entry> {
    let run = kernels!(CHAINS, op, number);
    Some(Entry { run, ops: OPS * CHAINS, chains: CHAINS, extra_adds_per_op: 0.0 })
}
