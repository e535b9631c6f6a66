//! Branches that can be predicted and branches that cannot.

use super::random::ShuffleGenerator;

/// Number of random bits that no branch predictor of today learns: a mebibit (128 KiB).
///
/// Some predictors learn sequences of tens of thousands of bits when they see them again and again.
const UNPREDICTABLE_BITS: u64 = 1 << 20;

/// Runs one conditional jump per bit of `bits`, from the lowest bit of the first word on, taken where the bit is
/// clear, and returns how many are set.
///
/// Operations per call: 64 per word. It is a real jump and no conditional move. Run it over
/// [`random_bits`] and over as many constant bits: the difference per bit, divided by the rate of
/// mispredictions (one half for random bits), is the cost of a mispredicted branch. With the chain of shifts
/// running ahead of the jumps, that is the refill of the pipeline and no wait for data.
pub fn mispredict(bits: &[u64]) -> u64 {
    latscope_kernel_branch(bits)
}

/// Returns at least 2²⁰ random bits.
pub fn random_bits(seed: u64) -> Vec<u64> {
    let mut words = vec![0; (UNPREDICTABLE_BITS / 64) as usize];
    ShuffleGenerator::new(seed).fill_words(&mut words);
    words
}

/// Returns as many clear bits as [`random_bits`] returns random ones: each jump is taken.
pub fn clear_bits() -> Vec<u64> {
    vec![0; (UNPREDICTABLE_BITS / 64) as usize]
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_branch(bits: &[u64]) -> u64 {
    let mut count = 0_u64;
    if bits.is_empty() {
        return count;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: reads as many words as the slice has, one at least, and changes only the declared registers and
    // the flags.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2:",
            either!("mov {word}, [{bits}]\nadd {bits}, 8", "ldr {word}, [{bits}], #8"),
            ".rept 64",
            either!(
                "shr {word}, 1\njnc 3f\nadd {count}, 1\n3:",
                "tbz {word}, #0, 3f\nadd {count}, {count}, #1\n3:\nlsr {word}, {word}, #1"
            ),
            ".endr",
            again!(),
            n = inout(reg) bits.len() => _,
            bits = inout(reg) bits.as_ptr() => _,
            word = out(reg) _,
            count = inout(reg) count,
            options(nostack),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for word in bits {
        for bit in 0..64 {
            if std::hint::black_box(word >> bit & 1) == 1 {
                count = std::hint::black_box(count + 1);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_bits() {
        let random = random_bits(1);
        let ones: u64 = random.iter().map(|word| u64::from(word.count_ones())).sum();
        assert_eq!(mispredict(&random), ones);
        assert_eq!(mispredict(&clear_bits()), 0);
        assert_eq!(mispredict(&vec![u64::MAX; (UNPREDICTABLE_BITS / 64) as usize]), UNPREDICTABLE_BITS);
        assert_eq!(mispredict(&[]), 0);
        assert_eq!(mispredict(&[1, 1 << 63, 0b101]), 4);
    }

    #[test]
    fn random_bits_are_balanced() {
        let share = mispredict(&random_bits(2)) as f64 / UNPREDICTABLE_BITS as f64;
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
}
