//! The loops of x86-64 and AArch64, made of the table of operations.

use std::arch::asm;

use super::operand::*;
use super::{Entry, Mode, Number, Op};

// By mode: how often one turn of the loop has the step of each chain, and the registers of the chains, each with
// its place in the array. Then the names of registers by width, and what else a step changes.
#[cfg(target_arch = "x86_64")]
macro_rules! integer {
    ($mode:ident, $($kernel:tt)*) => {
        match $mode {
            Mode::Latency => integer_widths!("latency" 64 [c0 0] ["e" "r"] [] $($kernel)*),
            Mode::Throughput => integer_widths!(
                "throughput" 12 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7] ["e" "r"] [] $($kernel)*
            ),
        }
    };
}
#[cfg(target_arch = "x86_64")]
macro_rules! float {
    ($mode:ident, $($kernel:tt)*) => {
        match $mode {
            Mode::Latency => float_widths!("latency" 32 [c0 0] xmm_reg ["x" "x"] $($kernel)*),
            Mode::Throughput => float_widths!(
                "throughput" 4 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11]
                xmm_reg ["x" "x"] $($kernel)*
            ),
        }
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! integer {
    ($mode:ident, $($kernel:tt)*) => {
        match $mode {
            Mode::Latency => integer_widths!("latency" 64 [c0 0] ["w" "x"] [out("v0") _,] $($kernel)*),
            Mode::Throughput => integer_widths!(
                "throughput" 8 [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11]
                ["w" "x"] [out("v0") _,] $($kernel)*
            ),
        }
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! float {
    ($mode:ident, $($kernel:tt)*) => {
        match $mode {
            Mode::Latency => float_widths!("latency" 32 [c0 0] vreg ["s" "d"] $($kernel)*),
            Mode::Throughput => float_widths!(
                "throughput" 3
                [c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11 c12 12 c13 13 c14 14 c15 15]
                vreg ["s" "d"] $($kernel)*
            ),
        }
    };
}

macro_rules! integer_widths {
    ($mode:literal $times:literal $chains:tt [$w32:literal $w64:literal] $clobbers:tt
     $number:ident, $name:literal, $step:expr) => {
        match $number {
            Number::I32 => integer_loop!(
                concat!("latscope_kernel_", $mode, "_", $name, "_i32"),
                u32::MAX as u64,
                $times,
                $chains,
                $w32,
                "s0",
                $clobbers,
                $step
            ),
            _ => integer_loop!(
                concat!("latscope_kernel_", $mode, "_", $name, "_i64"),
                u64::MAX,
                $times,
                $chains,
                $w64,
                "d0",
                $clobbers,
                $step
            ),
        }
    };
}

macro_rules! integer_loop {
    ($symbol:expr, $mask:expr, $times:literal, [$($c:ident $i:literal)+], $w:literal, $v:literal,
     [$($clobbers:tt)*], $step:expr) => {{
        const CHAINS: usize = [$($i),+].len();
        #[unsafe(export_name = $symbol)]
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
        Entry { run, ops: $times * CHAINS as u64, chains: CHAINS as u64, extra_adds_per_op: 0.0 }
    }};
}

macro_rules! float_widths {
    ($mode:literal $times:literal $chains:tt $class:ident [$w32:literal $w64:literal]
     $number:ident, $name:literal, $operands:tt, $step:expr) => {
        match $number {
            Number::F32 => float_loop!(
                concat!("latscope_kernel_", $mode, "_", $name, "_f32"),
                f32,
                $operands,
                $times,
                $chains,
                $class,
                $w32,
                "s",
                $step
            ),
            _ => float_loop!(
                concat!("latscope_kernel_", $mode, "_", $name, "_f64"),
                f64,
                $operands,
                $times,
                $chains,
                $class,
                $w64,
                "d",
                $step
            ),
        }
    };
}

macro_rules! float_loop {
    ($symbol:expr, $float:ident, [$start:expr, $a:expr, $b:expr], $times:literal, [$($c:ident $i:literal)+],
     $class:ident, $w:literal, $p:literal, $step:expr) => {{
        const CHAINS: usize = [$($i),+].len();
        #[unsafe(export_name = $symbol)]
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
        Entry { run, ops: 2 * $times * CHAINS as u64, chains: CHAINS as u64, extra_adds_per_op: 0.0 }
    }};
}

// The steps of the numbers of an iteration, the chains that the result stands for, and the additions on the chain.
macro_rules! division {
    ($mode:ident, $number:ident, $name:literal, $result:ident, $latency:expr, $throughput:expr) => {
        match $mode {
            Mode::Latency => division_widths!("latency" 64 1; 1.0 $number, $name, $result, $latency),
            Mode::Throughput => division_widths!(
                "throughput" 96 either!(8, 12); 0.0 $number, $name, $result, $throughput
            ),
        }
    };
}

macro_rules! division_widths {
    ($mode:literal $ops:literal $chains:expr; $extra:literal $number:ident, $name:literal, $result:ident,
     $step:expr) => {{
        let run: fn(u64) -> u64 = match $number {
            Number::I32 => division_loop!(
                concat!("latscope_kernel_", $mode, "_", $name, "_i32"),
                LARGE_I32,
                DIVISOR_I32,
                $ops,
                $chains,
                either!("e", "w"),
                "eax",
                $result,
                $step
            ),
            _ => division_loop!(
                concat!("latscope_kernel_", $mode, "_", $name, "_i64"),
                LARGE_I64,
                DIVISOR_I64,
                $ops,
                $chains,
                either!("r", "x"),
                "rax",
                $result,
                $step
            ),
        };
        Entry { run, ops: $ops, chains: $chains, extra_adds_per_op: $extra }
    }};
}

#[cfg(target_arch = "x86_64")]
struct Division {
    quotient: u64,
    remainder: u64,
}

#[cfg(target_arch = "x86_64")]
macro_rules! division_loop {
    ($symbol:expr, $large:expr, $divisor:expr, $times:literal, $chains:expr, $w:expr, $dividend:literal,
     $result:ident, $step:expr) => {{
        #[unsafe(export_name = $symbol)]
        #[inline(never)]
        fn run(iterations: u64) -> u64 {
            let mut division = Division { quotient: 0, remainder: 0 };
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, the divisor is not zero, the
                // quotient is smaller than the positive dividend and so fits, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        concat!(".rept ", $times),
                        concat!(".irp a, ", $dividend),
                        concat!(".irp l, {large:", $w, "}"),
                        $step,
                        // Breaks the dependency on the other result, too, while registers are renamed.
                        "xor edx, edx",
                        concat!("idiv {divisor:", $w, "}"),
                        ".endr\n.endr\n.endr",
                        again!(),
                        n = inout(reg) iterations => _,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                        inout("rax") division.quotient,
                        inout("rdx") division.remainder,
                        options(nostack),
                    );
                }
            }
            division.$result.wrapping_mul($chains)
        }
        run
    }};
}

#[cfg(target_arch = "aarch64")]
macro_rules! division_loop {
    ($symbol:expr, $large:expr, $divisor:expr, $times:literal, $chains:expr, $w:expr, $dividend:literal,
     $result:ident, $step:expr) => {{
        #[unsafe(export_name = $symbol)]
        #[inline(never)]
        fn run(iterations: u64) -> u64 {
            let mut value = 0_u64;
            if iterations > 0 {
                // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        concat!(".rept ", $times),
                        concat!(".irp c, {value:", $w, "}"),
                        concat!(".irp l, {large:", $w, "}"),
                        concat!(".irp d, {divisor:", $w, "}"),
                        concat!(".irp q, {quotient:", $w, "}"),
                        $step,
                        ".endr\n.endr\n.endr\n.endr\n.endr",
                        again!(),
                        n = inout(reg) iterations => _,
                        value = inout(reg) value,
                        large = in(reg) $large,
                        divisor = in(reg) $divisor,
                        quotient = out(reg) _,
                        options(nostack),
                    );
                }
            }
            value.wrapping_mul($chains)
        }
        run
    }};
}

macro_rules! kernels {
    (integer { $($op:ident $name:literal $x86:literal $arm:literal $rust:expr;)+ }
     division { $($div:ident $div_name:literal $result:ident ($latency_x86:literal, $throughput_x86:literal)
                  ($latency_arm:literal, $throughput_arm:literal) $div_rust:expr;)+ }
     float { $($float:ident $float_name:literal $operands:tt $float_x86:literal $float_arm:literal
               $float_rust:expr;)+ }) => {
        pub(super) fn entry(mode: Mode, op: Op, number: Number) -> Option<Entry> {
            use Number::*;
            #[cfg(target_arch = "x86_64")]
            if op == Op::Fma && !std::arch::is_x86_feature_detected!("fma")
                || op == Op::PopCount && !std::arch::is_x86_feature_detected!("popcnt")
            {
                return None;
            }
            Some(match (op, number) {
                $((Op::$op, I32 | I64) => integer!(mode, number, $name, either!($x86, $arm)),)+
                $((Op::$div, I32 | I64) => division!(
                    mode, number, $div_name, $result, either!($latency_x86, $latency_arm),
                    either!($throughput_x86, $throughput_arm)
                ),)+
                $((Op::$float, F32 | F64) => {
                    float!(mode, number, $float_name, $operands, either!($float_x86, $float_arm))
                })+
                _ => return None,
            })
        }
    };
}

operations!(kernels);
