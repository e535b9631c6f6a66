//! Latency and throughput of the operations of the core.
//!
//! A *latency* kernel is one chain in which each operation waits for the result of the one before; a
//! *throughput* kernel runs 8 to 16 chains that do not wait for each other. Time divided by
//! `iterations * ops` is the time of one operation.
//!
//! Operands:
//!
//! * Additions, subtractions, multiplications and bit operations of integers take two registers (shift and
//!   rotate: a register and a constant), since additions of small constants cost nothing on some cores.
//!   The 32-bit kernels use 32-bit instructions, and the 64-bit kernels 64-bit ones.
//! * `div` and `mod` of integers are signed divisions of a positive dividend that never becomes small: a
//!   dividend of 31 bits by a divisor of 16 bits (`i32`), of 63 bits by 31 bits (`i64`), which gives quotients
//!   of 15 and 32 bits. On x86-64 the upper half of the dividend is zero, as compilers emit it. One addition
//!   per operation keeps the dividend large; it is on the chain of the latency kernels, and counted in
//!   [`ArithmeticKernel::extra_adds_per_op`]. `mod` on AArch64 is `sdiv` and `msub`, there being no such instruction.
//! * `popcount` on AArch64 is the sequence `fmov`, `cnt`, `addv`, `fmov` that compilers emit for it.
//! * Floating-point operands have full significands, and the values stay normal: additions grow slowly,
//!   multiplications and divisions go to and fro between two values, the fused multiplication and addition
//!   (chained through a factor) approaches a fixed point.

#[macro_use]
mod operations;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod assembly;
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use assembly as machine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable as machine;

latscope_core::words! {
    /// Type of the operands of a kernel.
    pub enum Number {
        /// Integers of 32 bits.
        I32 = "i32",
        /// Integers of 64 bits.
        I64 = "i64",
        /// Binary floating point of 32 bits.
        F32 = "f32",
        /// Binary floating point of 64 bits.
        F64 = "f64",
    }
}

impl Number {
    /// Returns true if these are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

latscope_core::words! {
    /// An arithmetic or bitwise operation.
    pub enum Op {
        /// Addition of two operands.
        Add = "add",
        /// Subtraction of two operands.
        Sub = "sub",
        /// Multiplication; for integers its lower half.
        Mul = "mul",
        /// Division of two operands.
        Div = "div",
        /// Remainder of the division, integers only.
        Mod = "mod",
        /// Bitwise and, integers only.
        And = "and",
        /// Bitwise or, integers only.
        Or = "or",
        /// Bitwise exclusive or, integers only.
        Xor = "xor",
        /// Shift to the left by a constant, integers only.
        Shift = "shift",
        /// Rotation by a constant, integers only.
        Rotate = "rotate",
        /// Number of bits that are set, integers only.
        PopCount = "popcount",
        /// Multiplication and addition with one rounding, floating point only.
        Fma = "fma",
    }
}

impl Op {
    /// Returns true if the operation has a meaning for such numbers.
    pub const fn applies_to(self, number: Number) -> bool {
        match self {
            Self::Add | Self::Sub | Self::Mul | Self::Div => true,
            Self::Mod | Self::And | Self::Or | Self::Xor | Self::Shift | Self::Rotate | Self::PopCount => {
                !number.is_float()
            }
            Self::Fma => number.is_float(),
        }
    }
}

/// A loop over one operation.
#[derive(Clone, Copy, Debug)]
pub struct ArithmeticKernel {
    /// Operation of the kernel.
    pub op: Op,
    /// Type of the operands.
    pub number: Number,
    /// Number of operations that one iteration carries out, over all chains.
    pub ops: u64,
    /// Number of independent chains: 1 for latency.
    pub chains: u64,
    /// Number of integer additions, of one cycle each, on the chain beside each operation. They are to be taken off the
    /// measured time; zero where the operation is alone, and always zero for throughput.
    pub extra_adds_per_op: f64,
    run: fn(u64) -> u64,
}

impl ArithmeticKernel {
    /// Runs the loop `iterations` times, and returns the result of the operands: for integers the wrapping sum of the
    /// chains, for floating point the bits of their sum, which is a normal number.
    pub fn run(&self, iterations: u64) -> u64 {
        (self.run)(iterations)
    }
}

/// Function and figures that an architecture has for a kernel.
struct ArithmeticKernelEntry {
    run: fn(u64) -> u64,
    ops: u64,
    chains: u64,
    extra_adds_per_op: f64,
}

#[derive(Clone, Copy)]
enum ArithmeticMode {
    Latency,
    Throughput,
}

/// Returns an architecture's kernel of an operation that applies to the numbers, if this processor has it.
type ArithmeticKernelLookup = fn(ArithmeticMode, Op, Number) -> Option<ArithmeticKernelEntry>;

/// Returns the kernel in which each operation waits for the one before; none where the operation has no
/// meaning for such numbers, or this processor does not have it (`fma` and `popcount` on old x86-64).
pub fn latency(op: Op, number: Number) -> Option<ArithmeticKernel> {
    kernel(machine::entry, ArithmeticMode::Latency, op, number)
}

/// Returns the kernel of independent operations; none where [`latency`] has none.
pub fn throughput_kernel(op: Op, number: Number) -> Option<ArithmeticKernel> {
    kernel(machine::entry, ArithmeticMode::Throughput, op, number)
}

fn kernel(
    table: ArithmeticKernelLookup,
    mode: ArithmeticMode,
    op: Op,
    number: Number,
) -> Option<ArithmeticKernel> {
    let ArithmeticKernelEntry { run, ops, chains, extra_adds_per_op } = table(mode, op, number)?;
    Some(ArithmeticKernel { op, number, ops, chains, extra_adds_per_op, run })
}

/// Operands, the same for all architectures.
mod operand {
    /// Starts the chains of integers.
    pub const START: u64 = 0x0123_4567_89ab_cdef;
    /// The second operand of integers: odd, with its lower half odd and not small.
    pub const OTHER: u64 = 0x9e37_79b9_7f4a_7c15;
    /// Added to the quotient or remainder to make the dividend of 32 bits.
    pub const LARGE_I32: u64 = 0x4b1d_3c5f;
    /// Divisor for the dividend of 32 bits.
    pub const DIVISOR_I32: u64 = 0x9e37;
    /// Added to the quotient or remainder to make the dividend of 64 bits.
    pub const LARGE_I64: u64 = 0x4b1d_3c5f_5bd1_e995;
    /// Divisor for the dividend of 64 bits.
    pub const DIVISOR_I64: u64 = 0x6a09_e667;
    /// Starts the chains of floating-point numbers; `START * FACTOR * INVERSE` and `START / FACTOR / INVERSE`
    /// are `START` again after rounding, in both precisions.
    pub const FLOAT_START: f64 = 1.234_567_890_123_456_7;
    /// Factor and divisor of the chains of floating-point numbers.
    pub const FACTOR: f64 = 1.732_050_807_568_877_2;
    pub const INVERSE: f64 = 1.0 / FACTOR;
    /// Starts additions (its negative starts subtractions, so that none comes near zero).
    pub const SUM_START: f64 = 1.0;
    /// Summand that is added and subtracted.
    pub const ADDEND: f64 = 0.001;
    /// Multiplies in fused operations, with a fixed point at `FUSED_ADDEND / (1 - FUSED_FACTOR)`.
    pub const FUSED_FACTOR: f64 = 0.7;
    /// Summand of fused operations.
    pub const FUSED_ADDEND: f64 = 0.6;
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::word::KeywordEnum;

    /// Returns the kernels of both tables, each with a unique name.
    fn all() -> Vec<(String, ArithmeticKernel)> {
        let tables: [(_, ArithmeticKernelLookup); 2] =
            [("machine", machine::entry), ("portable", portable::entry)];
        let mut all = Vec::new();
        for (name, table) in tables {
            for (mode, mode_name) in
                [(ArithmeticMode::Latency, "latency"), (ArithmeticMode::Throughput, "throughput")]
            {
                for &op in Op::ALL {
                    let kernels = Number::ALL.iter().filter_map(|n| kernel(table, mode, op, *n));
                    all.extend(kernels.map(|k| (format!("{name} {mode_name} {op} {}", k.number), k)));
                }
            }
        }
        all
    }

    fn float(number: Number, bits: u64) -> f64 {
        match number {
            Number::F32 => f64::from(f32::from_bits(u32::try_from(bits).unwrap())),
            _ => f64::from_bits(bits),
        }
    }

    /// Returns the value of a chain of integers after `count` operations.
    fn expected(op: Op, number: Number, count: u64) -> Option<u64> {
        use operand::*;
        if number.is_float() || matches!(op, Op::Div | Op::Mod) {
            return None;
        }
        let narrow = number == Number::I32;
        let mut v = if narrow { START & 0xffff_ffff } else { START };
        for _ in 0..count {
            let wide = match op {
                Op::Add => v.wrapping_add(OTHER),
                Op::Sub => v.wrapping_sub(OTHER),
                Op::Mul => v.wrapping_mul(OTHER),
                Op::And => v & OTHER,
                Op::Or => v | OTHER,
                Op::Xor => v ^ OTHER,
                Op::Shift => v << 3,
                Op::PopCount => u64::from(v.count_ones()),
                Op::Rotate if narrow => u64::from((v as u32).rotate_right(5)),
                Op::Rotate => v.rotate_right(5),
                _ => return None,
            };
            v = if narrow { wide & 0xffff_ffff } else { wide };
        }
        Some(v)
    }

    #[test]
    fn every_operation_that_applies_has_both_kernels() {
        for &op in Op::ALL {
            for &number in Number::ALL {
                let known = latency(op, number).is_some();
                assert_eq!(known, throughput_kernel(op, number).is_some(), "{op} {number}");
                let optional = matches!(op, Op::Fma | Op::PopCount);
                assert!(known == op.applies_to(number) || (optional && !known), "{op} {number}");
            }
        }
        assert!(latency(Op::Fma, Number::I64).is_none());
        assert!(latency(Op::Mod, Number::F64).is_none());
        assert!(latency(Op::Xor, Number::F32).is_none());
    }

    #[test]
    fn names_are_unique_and_lead_back() {
        for &op in Op::ALL {
            assert_eq!(Op::from_word(op.word()), Some(op));
        }
        for &number in Number::ALL {
            assert_eq!(Number::from_word(number.word()), Some(number));
        }
        assert_eq!(Op::from_word("Add"), None);
        assert_eq!(format!("{:>4}|{:<5}|", Op::Add, Number::I32), " add|i32  |");
    }

    #[test]
    fn integer_chains_compute_what_they_say() {
        for (name, kernel) in all() {
            for iterations in [0, 1, 3] {
                let each = iterations * kernel.ops / kernel.chains;
                let Some(one) = expected(kernel.op, kernel.number, each) else {
                    continue;
                };
                assert_eq!(kernel.run(iterations), one.wrapping_mul(kernel.chains), "{name} × {iterations}");
            }
        }
    }

    #[test]
    fn divisions_keep_a_large_dividend() {
        use operand::*;
        for (number, large, divisor) in
            [(Number::I32, LARGE_I32, DIVISOR_I32), (Number::I64, LARGE_I64, DIVISOR_I64)]
        {
            let limit = if number == Number::I32 { 1 << 31 } else { 1 << 63 };
            for op in [Op::Div, Op::Mod] {
                for table in [machine::entry as ArithmeticKernelLookup, portable::entry] {
                    let kernel = kernel(table, ArithmeticMode::Latency, op, number).unwrap();
                    let mut value = 0;
                    for _ in 0..kernel.ops {
                        let dividend = value + large;
                        assert!(dividend < limit);
                        value = if op == Op::Div { dividend / divisor } else { dividend % divisor };
                    }
                    assert_eq!(kernel.run(1), value, "{op} {number}");
                }
            }
        }
    }

    #[test]
    fn float_values_stay_normal() {
        for (name, kernel) in all().into_iter().filter(|(_, kernel)| kernel.number.is_float()) {
            for iterations in [0, 1, 2, 1_000] {
                let value = float(kernel.number, kernel.run(iterations));
                assert!(value.is_normal(), "{name}: {value}");
                assert!(value.abs() < 1e6, "{name}: {value}");
            }
        }
    }

    #[test]
    fn float_chains_compute_what_they_say() {
        use operand::*;
        for (name, kernel) in all().into_iter().filter(|(_, kernel)| kernel.number.is_float()) {
            let each = (kernel.ops / kernel.chains) as f64;
            let one = match kernel.op {
                Op::Add => SUM_START + each * ADDEND,
                Op::Sub => -SUM_START - each * ADDEND,
                // Two operations lead back to the start, so that no number of them leads away.
                Op::Mul | Op::Div => {
                    assert_eq!(kernel.run(1), kernel.run(0), "{name}");
                    FLOAT_START
                }
                _ => {
                    let fixed = FUSED_ADDEND / (1.0 - FUSED_FACTOR);
                    fixed + (FLOAT_START - fixed) * FUSED_FACTOR.powf(each)
                }
            };
            let value = float(kernel.number, kernel.run(1)) / kernel.chains as f64;
            assert!((value / one - 1.0).abs() < 1e-5, "{name}: {value}");
        }
    }
}
