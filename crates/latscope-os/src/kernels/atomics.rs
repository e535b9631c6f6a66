//! Atomic operations on one word, uncontended or contended.
//!
//! With the word in the cache of this core only, a loop shows what the operation itself costs; with other
//! cores running on the same word it shows the fight for the line.

use std::sync::atomic::AtomicU64;
#[cfg(any(test, not(target_arch = "x86_64")))]
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The operations in one turn of a loop.
pub const UNROLL: u64 = 8;

latscope_core::words! {
    /// An atomic operation, sequentially consistent unless its entry states another order.
    pub enum Atomic {
        /// Addition of 1 to the word.
        FetchAdd = "fetch-add",
        /// Addition of 1 by compare and exchange.
        CompareExchange = "compare-exchange",
        /// Exchange of the word for another.
        Swap = "swap",
        /// A sequentially consistent store.
        Store = "store",
        /// A full fence after a plain store.
        Fence = "fence",
        /// An acquire load of the word.
        Load = "load",
    }
}

/// Runs `n` operations, rounded up to a multiple of [`UNROLL`], on `word`, and returns their number.
///
/// [`Atomic::FetchAdd`] and [`Atomic::CompareExchange`] leave the word greater by the number returned;
/// [`Atomic::Swap`], [`Atomic::Store`] and [`Atomic::Fence`] store numbers of no meaning.
pub fn run_operations(kind: Atomic, word: &AtomicU64, n: u64) -> u64 {
    let turns = n.div_ceil(UNROLL);
    if turns > 0 {
        kernel(kind)(word, turns);
    }
    turns * UNROLL
}

/// The kernel over `turns` > 0 turns, with the lines of one operation for each architecture.
///
/// `{word}` is the address; `{one}` is 1; `{value}` and `{next}` start as 0 and are free to use. On x86-64 `rax` is
/// free and starts as what is in the word, on AArch64 `{value}` does, and `{seen}` is free.
macro_rules! kernel {
    ($name:literal $x86:literal $arm:literal $operation:expr) => {{
        #[unsafe(export_name = concat!("latscope_kernel_atomic_", $name))]
        #[inline(never)]
        fn kernel(word: &AtomicU64, turns: u64) {
            #[cfg(target_arch = "aarch64")]
            if !std::arch::is_aarch64_feature_detected!("lse") {
                return portable(word, turns, $operation);
            }
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            // SAFETY: accesses only the word, which is valid and atomic, as whole words; changes only the
            // declared registers and the flags; turns > 0 ends the loop; the processor has the
            // instructions.
            unsafe {
                asm_with!(
                    [out("rax") _, options(nostack)] [seen = out(reg) _, options(nostack)]
                    either!("/* {one} {value} {next} */", ".arch_extension lse\n/* {one} {next} {seen} */"),
                    either!("mov rax, [{word}]", "ldr {value}, [{word}]"),
                    ".p2align 6",
                    "2:",
                    ".rept 8",
                    either!($x86, $arm),
                    ".endr",
                    again!(),
                    n = inout(reg) turns => _,
                    word = in(reg) word.as_ptr(),
                    one = in(reg) 1_u64,
                    value = inout(reg) 0_u64 => _,
                    next = inout(reg) 0_u64 => _,
                );
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            portable(word, turns, $operation)
        }
        kernel
    }};
}

macro_rules! kernels {
    ($($kind:ident $name:literal $x86:literal $arm:literal $operation:expr;)+) => {
        fn kernel(kind: Atomic) -> fn(&AtomicU64, u64) {
            match kind {
                $(Atomic::$kind => kernel!($name $x86 $arm $operation),)+
            }
        }
    };
}

// An operation, its name, its lines for x86-64 and for AArch64, and the operation of the standard library.
kernels! {
    FetchAdd "fetch_add"
        "mov {value:e}, 1\nlock xadd [{word}], {value}" "ldaddal {one}, {value}, [{word}]"
        |word, _| word.fetch_add(1, SeqCst);
    // On x86-64 rax is what is expected; a failure puts there what was seen.
    CompareExchange "compare_exchange"
        "3: lea {next}, [rax + 1]
        lock cmpxchg [{word}], {next}
        jne 3b
        mov rax, {next}"
        "3: add {next}, {value}, #1
        mov {seen}, {value}
        casal {seen}, {next}, [{word}]
        cmp {seen}, {value}
        mov {value}, {seen}
        b.ne 3b
        mov {value}, {next}"
        |word, expected| {
            let mut expected = expected;
            while let Err(seen) = word.compare_exchange_weak(expected, expected.wrapping_add(1), SeqCst, SeqCst) {
                expected = seen;
            }
            expected.wrapping_add(1)
        };
    Swap "swap"
        "xchg [{word}], {value}" "swpal {value}, {value}, [{word}]"
        |word, value| word.swap(value, SeqCst);
    Store "store"
        "mov {value}, {one}\nxchg [{word}], {value}" "stlr {one}, [{word}]"
        |word, value| {
            word.store(value, SeqCst);
            value
        };
    Fence "fence"
        "mov [{word}], {one}\nmfence" "str {one}, [{word}]\ndmb ish"
        |word, value| {
            word.store(value, Relaxed);
            std::sync::atomic::fence(SeqCst);
            value
        };
    Load "load" "mov {value}, [{word}]" "ldar {value}, [{word}]" |word, _| word.load(SeqCst);
}

/// Runs the operations of the standard library; each is handed the value that the one before returned.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(word: &AtomicU64, turns: u64, operation: fn(&AtomicU64, u64) -> u64) {
    let mut value = word.load(Relaxed);
    for _ in 0..turns * UNROLL {
        value = std::hint::black_box(operation(word, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::word::KeywordEnum;

    #[test]
    fn names_lead_back() {
        for &kind in Atomic::ALL {
            assert_eq!(Atomic::from_word(kind.word()), Some(kind));
        }
    }

    #[test]
    fn alone_every_operation_succeeds() {
        for &kind in Atomic::ALL {
            for n in [0, 1, 8, 1_001] {
                let word = AtomicU64::new(40);
                let done = run_operations(kind, &word, n);
                assert_eq!(done, n.div_ceil(UNROLL) * UNROLL, "{kind}");
                let value = word.into_inner();
                match kind {
                    Atomic::FetchAdd | Atomic::CompareExchange => {
                        assert_eq!(value, 40 + done, "{kind}");
                    }
                    Atomic::Load => assert_eq!(value, 40),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn together_no_addition_is_lost() {
        for kind in [Atomic::FetchAdd, Atomic::CompareExchange] {
            let word = AtomicU64::new(0);
            let done: u64 = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..3).map(|_| scope.spawn(|| run_operations(kind, &word, 100_000))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(word.load(SeqCst), done, "{kind}");
            assert_eq!(done, 300_000);
        }
    }

    #[test]
    fn the_portable_loop_hands_each_value_to_the_next_operation() {
        let word = AtomicU64::new(0);
        portable(&word, 2, |word, value| {
            assert_eq!(value, word.fetch_add(1, SeqCst));
            value + 1
        });
        assert_eq!(word.into_inner(), 16);
    }
}
