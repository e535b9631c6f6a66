//! Loads right behind stores: forwarding from the store buffer, and what prevents it.

/// The stores, each with a load behind it, in one iteration of [`store_and_load`].
pub const PAIRS_PER_ITERATION: u64 = 64;

/// Runs `iterations` × [`PAIRS_PER_ITERATION`] pairs: a store of 8 bytes (or of the lowest, if `narrow`) to the begin of
/// `memory`, and a load of 8 bytes `apart` bytes behind it. Returns the last word loaded, which is 0.
///
/// The stored value and the load's address come from the load before, so that the time of a pair is that from a load to
/// the next: of a store and its load where they meet, else of the load alone. The load has another base register than
/// the store, and so is not recognised by its operands.
///
/// # Panics
/// If the load leaves the memory, or is not aligned.
pub fn store_and_load(memory: &mut [u64], apart: usize, narrow: bool, iterations: u64) -> u64 {
    assert!(apart.is_multiple_of(size_of::<u64>()) && apart < size_of_val(memory));
    // The load is part of its own address.
    memory[0] = 0;
    memory[apart / size_of::<u64>()] = 0;
    let kernel = if narrow { latscope_kernel_store_narrow } else { latscope_kernel_store };
    kernel(memory, apart, iterations)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! pairs {
    ($store:expr, $memory:ident, $apart:ident, $iterations:ident) => {{
        let mut value = 0_u64;
        let store = $memory.as_mut_ptr();
        // SAFETY: stores zeros to the first word of the memory and loads a word of it that is zero (the caller saw to
        // both); changes only the declared registers and the flags.
        unsafe {
            core::arch::asm!(
                ".p2align 6",
                "2:",
                ".rept 64",
                $store,
                either!("mov {value}, [{load} + {value}]", "ldr {value}, [{load}, {value}]"),
                ".endr",
                again!(),
                n = inout(reg) $iterations => _,
                store = in(reg) store,
                load = in(reg) store.byte_add($apart),
                value = inout(reg) value,
                options(nostack),
            );
        }
        value
    }};
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! pairs {
    ($store:ident, $memory:ident, $apart:ident, $iterations:ident) => {{
        let mut value = 0_u64;
        for _ in 0..$iterations * PAIRS_PER_ITERATION {
            $memory[0] = std::hint::black_box(value);
            value = std::hint::black_box($memory[$apart / size_of::<u64>()]);
        }
        value
    }};
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! wide {
    () => {
        either!("mov [{store}], {value}", "str {value}, [{store}]")
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! narrow {
    () => {
        either!("mov [{store}], {value:l}", "strb {value:w}, [{store}]")
    };
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_store(memory: &mut [u64], apart: usize, iterations: u64) -> u64 {
    if iterations == 0 {
        return 0;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return pairs!(wide!(), memory, apart, iterations);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pairs!(wide, memory, apart, iterations)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_store_narrow(memory: &mut [u64], apart: usize, iterations: u64) -> u64 {
    if iterations == 0 {
        return 0;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return pairs!(narrow!(), memory, apart, iterations);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pairs!(narrow, memory, apart, iterations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_see_the_stores_and_nothing_else_changes() {
        for narrow in [false, true] {
            for apart in [0, 8, 4096] {
                let mut memory = vec![u64::MAX; 1024];
                assert_eq!(store_and_load(&mut memory, apart, narrow, 3), 0);
                let zeros: Vec<usize> = (0..1024).filter(|at| memory[*at] == 0).collect();
                assert_eq!(zeros, if apart == 0 { vec![0] } else { vec![0, apart / 8] });
            }
        }
    }

    #[test]
    #[should_panic(expected = "apart")]
    fn a_load_outside_is_refused() {
        store_and_load(&mut [0; 4], 32, false, 1);
    }
}
