//! The loop that does nothing, for the self-test of the instrument.

/// Runs a loop of `n` turns with nothing in it, which the compiler can neither shorten nor remove, and returns
/// `n`.
///
/// One turn is a decrement and a taken branch: one cycle on most cores, two on some. Nothing is read or
/// written.
pub fn empty(n: u64) -> u64 {
    latscope_kernel_empty(n);
    n
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_empty(n: u64) {
    if n == 0 {
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: only the declared register and the flags change, and n > 0 ends the loop.
    unsafe {
        core::arch::asm!(".p2align 6", "2:", again!(), n = inout(reg) n => _, options(nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for turn in 0..n {
        std::hint::black_box(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::empty;

    #[test]
    fn returns_the_number_of_turns() {
        for n in [0, 1, 2, 1_000] {
            assert_eq!(empty(n), n);
        }
    }
}
