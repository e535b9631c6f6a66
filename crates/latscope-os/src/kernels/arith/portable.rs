//! Plain loops for architectures without kernels of their own, each result hidden from the compiler by
//! `black_box`, which may cost a store and a load.

use std::hint::black_box;

use super::operand::*;
use super::{ArithmeticKernelEntry, ArithmeticMode, Number, Op};

/// Operations of one chain per iteration. An iteration has a single chain, or [`CHAINS`] of them.
const OPS: u64 = 16;
const CHAINS: usize = 4;

/// Runs chains of the step, which is also given whether its turn is an even one.
fn chains<T: Copy, const CHAINS: usize>(n: u64, start: T, step: impl Fn(T, bool) -> T) -> [T; CHAINS] {
    let mut chains = [start; CHAINS];
    for turn in 0..n * OPS {
        for value in &mut chains {
            *value = black_box(step(*value, turn % 2 == 0));
        }
    }
    chains
}

macro_rules! integer {
    ($int:ident, $step:expr) => {
        |n| {
            let step: fn($int, $int) -> $int = $step;
            let values = chains::<_, CHAINS>(n, START as $int, |v, _| step(v, OTHER as $int));
            values.into_iter().fold(0, |sum: u64, value| sum.wrapping_add(value as u64))
        }
    };
}

macro_rules! division {
    ($int:ident, $large:expr, $divisor:expr, $step:expr) => {
        |n| {
            let step: fn($int, $int, $int) -> $int = $step;
            let values = chains::<_, CHAINS>(n, 0, |v, _| step(v, $large as $int, $divisor as $int));
            values.into_iter().fold(0, |sum: u64, value| sum.wrapping_add(value as u64))
        }
    };
}

macro_rules! float {
    ($float:ident, [$start:expr, $a:expr, $b:expr], $step:expr) => {
        |n| {
            let step: fn($float, $float, $float, $float) -> $float = $step;
            let (a, b) = ($a as $float, $b as $float);
            let values =
                chains::<_, CHAINS>(n, $start as $float, |v, even| step(v, if even { a } else { b }, a, b));
            values.into_iter().sum::<$float>().to_bits() as u64
        }
    };
}

macro_rules! kernels {
    (integer { $($op:ident $name:literal $x86:literal $arm:literal $step:expr;)+ }
     division { $($div:ident $div_name:literal $result:ident $div_x86:tt $div_arm:tt $div_step:expr;)+ }
     float { $($float:ident $float_name:literal $operands:tt $float_x86:literal $float_arm:literal
               $float_step:expr;)+ }) => {
        fn run<const CHAINS: usize>(op: Op, number: Number) -> Option<fn(u64) -> u64> {
            Some(match (op, number) {
                $((Op::$op, Number::I32) => integer!(u32, $step),
                (Op::$op, Number::I64) => integer!(u64, $step),)+
                $((Op::$div, Number::I32) => division!(i32, LARGE_I32, DIVISOR_I32, $div_step),
                (Op::$div, Number::I64) => division!(i64, LARGE_I64, DIVISOR_I64, $div_step),)+
                $((Op::$float, Number::F32) => float!(f32, $operands, $float_step),
                (Op::$float, Number::F64) => float!(f64, $operands, $float_step),)+
                _ => return None,
            })
        }
    };
}

operations!(kernels);

pub(super) fn entry(mode: ArithmeticMode, op: Op, number: Number) -> Option<ArithmeticKernelEntry> {
    let on_chain = if matches!(op, Op::Div | Op::Mod) && !number.is_float() { 1.0 } else { 0.0 };
    let (run, chains, extra_adds_per_op) = match mode {
        ArithmeticMode::Latency => (run::<1>(op, number)?, 1, on_chain),
        ArithmeticMode::Throughput => (run::<CHAINS>(op, number)?, CHAINS as u64, 0.0),
    };
    Some(ArithmeticKernelEntry { run, ops: OPS * chains, chains, extra_adds_per_op })
}
