//! Loads right behind stores: forwarding from the store buffer, and what prevents it.

/// The stores, each with a load behind it, in one iteration of [`store_and_load`].
pub const PAIRS_PER_ITERATION: u64 = 64;

/// A store, by what its address and width are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Store {
    /// Only the lowest byte is stored.
    pub narrow: bool,
    /// The address comes from the load before, as that of the load does; else it is known long before.
    pub late: bool,
}

/// Runs `iterations` × [`PAIRS_PER_ITERATION`] pairs: a store of 8 bytes (or of the lowest one) to the begin of
/// `memory`, and a load of 8 bytes `apart` bytes behind it. Returns the last word loaded, which is 0.
///
/// The stored value and the load's address come from the load before, so that the time of a pair is that from a load to
/// the next: of a store and its load where they meet, else of the load alone. The load has another base register than
/// the store, and so is not recognised by its operands.
///
/// # Panics
/// If the load leaves the memory, or is not aligned.
pub fn store_and_load(memory: &mut [u64], apart: usize, store: Store, iterations: u64) -> u64 {
    assert!(apart.is_multiple_of(size_of::<u64>()) && apart < size_of_val(memory));
    // The load is part of its own address.
    memory[0] = 0;
    memory[apart / size_of::<u64>()] = 0;
    let kernel = match (store.narrow, store.late) {
        (false, false) => latscope_kernel_store,
        (true, false) => latscope_kernel_store_narrow,
        (false, true) => latscope_kernel_store_late,
        (true, true) => latscope_kernel_store_narrow_late,
    };
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
    ($store:expr, $memory:ident, $apart:ident, $iterations:ident) => {{
        let mut value = 0_u64;
        for _ in 0..$iterations * PAIRS_PER_ITERATION {
            $memory[0] = std::hint::black_box(value);
            value = std::hint::black_box($memory[$apart / size_of::<u64>()]);
        }
        value
    }};
}

/// A kernel of this name with this store.
macro_rules! kernel {
    ($name:ident, $x86:literal, $arm:literal) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name(memory: &mut [u64], apart: usize, iterations: u64) -> u64 {
            if iterations == 0 {
                return 0;
            }
            pairs!(either!($x86, $arm), memory, apart, iterations)
        }
    };
}

kernel!(latscope_kernel_store, "mov [{store}], {value}", "str {value}, [{store}]");
kernel!(latscope_kernel_store_narrow, "mov [{store}], {value:l}", "strb {value:w}, [{store}]");
kernel!(latscope_kernel_store_late, "mov [{store} + {value}], {value}", "str {value}, [{store}, {value}]");
kernel!(
    latscope_kernel_store_narrow_late,
    "mov [{store} + {value}], {value:l}",
    "strb {value:w}, [{store}, {value}]"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_see_the_stores_and_nothing_else_changes() {
        let stores = [(false, false), (false, true), (true, false), (true, true)];
        for store in stores.map(|(narrow, late)| Store { narrow, late }) {
            for apart in [0, 8, 4096] {
                let mut memory = vec![u64::MAX; 1024];
                assert_eq!(store_and_load(&mut memory, apart, store, 3), 0);
                let zeros: Vec<usize> = (0..1024).filter(|at| memory[*at] == 0).collect();
                assert_eq!(zeros, if apart == 0 { vec![0] } else { vec![0, apart / 8] });
            }
        }
    }

    #[test]
    #[should_panic(expected = "apart")]
    fn a_load_outside_is_refused() {
        store_and_load(&mut [0; 4], 32, Store::default(), 1);
    }
}
