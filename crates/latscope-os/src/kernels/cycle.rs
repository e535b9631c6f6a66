//! The chain that shows the length of a core cycle.

/// The dependent additions in one iteration of [`dependent_adds`].
pub const ADDS_PER_ITERATION: u64 = 100;

/// Runs `iterations` times a chain of [`ADDS_PER_ITERATION`] integer additions, each waiting for the one
/// before, and returns their number.
///
/// An addition of two registers takes one cycle on every core of today, so that the time of one addition is
/// the time of one core cycle. The form `add register, register` is used since cores from Golden Cove on carry
/// out an addition of a small constant while renaming, in no time. The loop counter is a second, shorter
/// chain, hidden behind the first.
pub fn dependent_adds(iterations: u64) -> u64 {
    latscope_kernel_adds(iterations, 1)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_adds(iterations: u64, operand: u64) -> u64 {
    let mut value = 0_u64;
    if iterations == 0 {
        return value;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: only the declared registers and the flags change, and iterations > 0 ends the loop.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2:",
            ".rept 100",
            either!("add {value}, {operand}", "add {value}, {value}, {operand}"),
            ".endr",
            again!(),
            n = inout(reg) iterations => _,
            value = inout(reg) value,
            operand = in(reg) operand,
            options(nostack),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..iterations {
        for _ in 0..ADDS_PER_ITERATION {
            value = std::hint::black_box(value.wrapping_add(operand));
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_additions() {
        for n in [0, 1, 7, 1_000] {
            assert_eq!(dependent_adds(n), n * ADDS_PER_ITERATION);
        }
    }
}
