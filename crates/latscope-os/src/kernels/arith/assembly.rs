//! The loops of x86-64 and AArch64, made of the table of operations.

use std::arch::asm;

use super::operand::*;
use super::{ArithmeticKernelEntry, ArithmeticMode, Number, Op};

// By mode: how often one turn of the loop has the step of each chain, and the registers of the chains, each with
// its place in the array. Last, what else a step changes.
#[cfg(target_arch = "x86_64")]
macro_rules! machine {
    (integer latency $($kernel:tt)*) => { integer_loop!("latency" 64 [c0 0] [] $($kernel)*) };
    (integer throughput $($kernel:tt)*) => {
        integer_loop!("throughput" 12 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7] [] $($kernel)*)
    };
    (float latency $($kernel:tt)*) => { float_loop!("latency" 32 [c0 0] xmm_reg $($kernel)*) };
    (float throughput $($kernel:tt)*) => {
        float_loop!("throughput" 4 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11] xmm_reg $($kernel)*)
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! machine {
    (integer latency $($kernel:tt)*) => { integer_loop!("latency" 64 [c0 0] [out("v0") _,] $($kernel)*) };
    (integer throughput $($kernel:tt)*) => {
        integer_loop!("throughput" 8 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11] [out("v0") _,] $($kernel)*)
    };
    (float latency $($kernel:tt)*) => { float_loop!("latency" 32 [c0 0] vreg $($kernel)*) };
    (float throughput $($kernel:tt)*) => {
        float_loop!("throughput" 3 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11 c12 12 c13 13 c14 14 c15 15] vreg $($kernel)*)
    };
}

macro_rules! integer_loop {
    ($mode:literal $times:literal [$($c:ident $i:literal)+] [$($clobbers:tt)*]
     $name:literal $number:literal, $mask:expr, $w:expr, $v:literal, $step:expr) => {{
        const CHAINS: usize = [$($i),+].len();
        #[unsafe(export_name = concat!("latscope_kernel_", $mode, "_", $name, "_", $number))]
        #[inline(never)]
        fn run(iterations: u64) -> u64 {
            let mut c = [START & $mask; CHAINS];
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        concat!(".rept ", $times),
                        concat!(".irp v, ", $v),
                        concat!(".irp o, {other:", $w, "}"),
                        concat!(".irp c" $(, ", {", stringify!($c), ":", $w, "}")+),
                        $step,
                        ".endr\n.endr\n.endr\n.endr",
                        again!(),
                        n = inout(reg) iterations => _,
                        other = in(reg) OTHER,
                        $($c = inout(reg) c[$i],)+
                        $($clobbers)*
                        options(nostack),
                    );
                }
            }
            c.into_iter().fold(0, u64::wrapping_add)
        }
        ArithmeticKernelEntry { run, ops: $times * CHAINS as u64, chains: CHAINS as u64, extra_adds_per_op: 0.0 }
    }};
}

macro_rules! float_loop {
    ($mode:literal $times:literal [$($c:ident $i:literal)+] $class:ident
     $name:literal $number:literal, $float:ident [$start:expr, $a:expr, $b:expr], $w:expr, $p:literal, $step:expr) => {{
        const CHAINS: usize = [$($i),+].len();
        #[unsafe(export_name = concat!("latscope_kernel_", $mode, "_", $name, "_", $number))]
        #[inline(never)]
        fn run(iterations: u64) -> u64 {
            let mut c = [$start as $float; CHAINS];
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        concat!(".rept ", $times),
                        concat!(".irp p, ", $p),
                        concat!(".irp a, {a:", $w, "}"),
                        concat!(".irp b, {b:", $w, "}"),
                        ".irp f, \\a, \\b",
                        concat!(".irp c" $(, ", {", stringify!($c), ":", $w, "}")+),
                        $step,
                        ".endr\n.endr\n.endr\n.endr\n.endr\n.endr",
                        again!(),
                        n = inout(reg) iterations => _,
                        a = in($class) $a as $float,
                        b = in($class) $b as $float,
                        $($c = inout($class) c[$i],)+
                        options(nostack),
                    );
                }
            }
            u64::from(c.into_iter().sum::<$float>().to_bits())
        }
        ArithmeticKernelEntry { run, ops: 2 * $times * CHAINS as u64, chains: CHAINS as u64, extra_adds_per_op: 0.0 }
    }};
}

struct Division {
    quotient: u64,
    remainder: u64,
}

/// The result stands for so many chains.
macro_rules! division_loop {
    ($mode:literal $ops:literal, $chains:expr, $extra:literal, $name:literal $number:literal,
     $large:expr, $divisor:expr, $w:expr, $dividend:literal, $result:ident, $step:expr) => {{
        #[unsafe(export_name = concat!("latscope_kernel_", $mode, "_", $name, "_", $number))]
        #[inline(never)]
        fn run(iterations: u64) -> u64 {
            let mut division = Division { quotient: 0, remainder: 0 };
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, the divisor is not zero, the quotient is
                // smaller than the positive dividend and so fits, and iterations > 0 ends the loop.
                unsafe {
                    asm_with!(
                        [inout("rax") division.quotient, inout("rdx") division.remainder, options(nostack)]
                        [value = inout(reg) division.$result, quotient = out(reg) _, options(nostack)]
                        ".p2align 6",
                        "2:",
                        concat!(".rept ", $ops),
                        either!(concat!(".irp a, ", $dividend), concat!(".irp c, {value:", $w, "}")),
                        either!(".irp q, none", concat!(".irp q, {quotient:", $w, "}")),
                        concat!(".irp l, {large:", $w, "}"),
                        concat!(".irp d, {divisor:", $w, "}"),
                        $step,
                        // `xor` also breaks the dependency on the other result, while registers are renamed.
                        either!("xor edx, edx\nidiv \\d", ""),
                        ".endr\n.endr\n.endr\n.endr\n.endr",
                        again!(),
                        n = inout(reg) iterations => _,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                    );
                }
            }
            division.$result.wrapping_mul($chains)
        }
        ArithmeticKernelEntry { run, ops: $ops, chains: $chains, extra_adds_per_op: $extra }
    }};
}

macro_rules! kernels {
    (integer { $($op:ident $name:literal $x86:literal $arm:literal $rust:expr;)+ }
     division { $($div:ident $div_name:literal $result:ident ($latency_x86:literal, $throughput_x86:literal)
                  ($latency_arm:literal, $throughput_arm:literal) $div_rust:expr;)+ }
     float { $($float:ident $float_name:literal $operands:tt $float_x86:literal $float_arm:literal
               $float_rust:expr;)+ }) => {
        pub(super) fn entry(mode: ArithmeticMode, op: Op, number: Number) -> Option<ArithmeticKernelEntry> {
            use {ArithmeticMode::*, Number::*};
            #[cfg(target_arch = "x86_64")]
            if op == Op::Fma && !std::arch::is_x86_feature_detected!("fma")
                || op == Op::PopCount && !std::arch::is_x86_feature_detected!("popcnt")
            {
                return None;
            }
            // With the names of registers of this width; for AArch64's `popcount` also that of a vector register.
            Some(match (op, number, mode) {
                $((Op::$op, I32, Latency) => machine!(integer latency
                    $name "i32", u32::MAX as u64, either!("e", "w"), "s0", either!($x86, $arm)),
                (Op::$op, I32, Throughput) => machine!(integer throughput
                    $name "i32", u32::MAX as u64, either!("e", "w"), "s0", either!($x86, $arm)),
                (Op::$op, I64, Latency) => machine!(integer latency
                    $name "i64", u64::MAX, either!("r", "x"), "d0", either!($x86, $arm)),
                (Op::$op, I64, Throughput) => machine!(integer throughput
                    $name "i64", u64::MAX, either!("r", "x"), "d0", either!($x86, $arm)),)+
                $((Op::$div, I32, Latency) => division_loop!("latency" 64, 1, 1.0, $div_name "i32", LARGE_I32, DIVISOR_I32,
                    either!("e", "w"), "eax", $result, either!($latency_x86, $latency_arm)),
                (Op::$div, I32, Throughput) => division_loop!("throughput" 96, either!(8, 12), 0.0, $div_name "i32",
                    LARGE_I32, DIVISOR_I32, either!("e", "w"), "eax", $result, either!($throughput_x86, $throughput_arm)),
                (Op::$div, I64, Latency) => division_loop!("latency" 64, 1, 1.0, $div_name "i64", LARGE_I64, DIVISOR_I64,
                    either!("r", "x"), "rax", $result, either!($latency_x86, $latency_arm)),
                (Op::$div, I64, Throughput) => division_loop!("throughput" 96, either!(8, 12), 0.0, $div_name "i64",
                    LARGE_I64, DIVISOR_I64, either!("r", "x"), "rax", $result, either!($throughput_x86, $throughput_arm)),)+
                $((Op::$float, F32, Latency) => machine!(float latency
                    $float_name "f32", f32 $operands, either!("x", "s"), "s", either!($float_x86, $float_arm)),
                (Op::$float, F32, Throughput) => machine!(float throughput
                    $float_name "f32", f32 $operands, either!("x", "s"), "s", either!($float_x86, $float_arm)),
                (Op::$float, F64, Latency) => machine!(float latency
                    $float_name "f64", f64 $operands, either!("x", "d"), "d", either!($float_x86, $float_arm)),
                (Op::$float, F64, Throughput) => machine!(float throughput
                    $float_name "f64", f64 $operands, either!("x", "d"), "d", either!($float_x86, $float_arm)),)+
                _ => return None,
            })
        }
    };
}

operations!(kernels);
