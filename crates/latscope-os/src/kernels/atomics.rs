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
        /// Adds one and returns the earlier value (`lock xadd`, `ldaddal`).
        FetchAdd = "fetch-add",
        /// Adds one by one attempt of compare and exchange, which expects the value that the attempt before saw; fails
        /// when another core stored in between (`lock cmpxchg`, `casal`).
        CompareExchange = "compare-exchange",
        /// Adds one by compare and exchange, tried again until it succeeds.
        CompareExchangeLoop = "compare-exchange-loop",
        /// Exchanges the word (`xchg`, `swpal`).
        Swap = "swap",
        /// Stores the word (`xchg` on x86-64, as compilers emit it; `stlr` on AArch64).
        StoreSeqCst = "store",
        /// Orders all accesses before and after, and nothing else (`mfence`, `dmb ish`), after one plain store, so that
        /// there is something to order.
        Fence = "fence",
        /// Loads the word (`mov`, `ldar`); loads need not wait for each other.
        Load = "load",
    }
}

/// Runs `n` operations, rounded up to a multiple of [`UNROLL`], on `word`, and returns how many had an effect:
/// all of them, but for [`Atomic::CompareExchange`], where it is those that found the word as expected.
///
/// [`Atomic::FetchAdd`] and the two of compare and exchange leave the word greater by the number returned;
/// [`Atomic::Swap`], [`Atomic::StoreSeqCst`] and [`Atomic::Fence`] store numbers of no meaning.
pub fn run(kind: Atomic, word: &AtomicU64, n: u64) -> u64 {
    let turns = n.div_ceil(UNROLL);
    if turns == 0 {
        return 0;
    }
    let failures = kernel(kind)(word, turns);
    turns * UNROLL - failures
}

/// The kernel over `turns` > 0 turns, which returns how many operations failed, with the lines of one operation for
/// each architecture.
///
/// `{word}` is the address; `{one}` is 1; `{value}` and `{next}` start as 0 and are free to use. On x86-64 `rax` is
/// free and starts as what is in the word, on AArch64 `{value}` does, and `{seen}` is free. `{failed}` counts.
macro_rules! kernel {
    ($name:literal $x86:literal $arm:literal $operation:expr) => {{
        #[unsafe(export_name = concat!("latscope_kernel_atomic_", $name))]
        #[inline(never)]
        fn kernel(word: &AtomicU64, turns: u64) -> u64 {
            #[cfg(target_arch = "aarch64")]
            if !std::arch::is_aarch64_feature_detected!("lse") {
                return portable(word, turns, $operation);
            }
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            {
                let mut failed = 0_u64;
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
                        "/* {failed} */",
                        n = inout(reg) turns => _,
                        word = in(reg) word.as_ptr(),
                        one = in(reg) 1_u64,
                        value = inout(reg) 0_u64 => _,
                        next = inout(reg) 0_u64 => _,
                        failed = inout(reg) failed,
                    );
                }
                failed
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            portable(word, turns, $operation)
        }
        kernel
    }};
}

macro_rules! kernels {
    ($($kind:ident $name:literal $x86:literal $arm:literal $operation:expr;)+) => {
        fn kernel(kind: Atomic) -> fn(&AtomicU64, u64) -> u64 {
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
        |word, _| Ok(word.fetch_add(1, SeqCst));
    // On x86-64 rax is what is expected; a failure puts there what was seen, after a success the next is expected.
    CompareExchange "compare_exchange"
        "lea {next}, [rax + 1]
        lock cmpxchg [{word}], {next}
        setne {value:l}
        cmove rax, {next}
        movzx {value:e}, {value:l}
        add {failed}, {value}"
        "add {next}, {value}, #1
        mov {seen}, {value}
        casal {seen}, {next}, [{word}]
        cmp {seen}, {value}
        cinc {failed}, {failed}, ne
        csel {value}, {next}, {seen}, eq"
        |word, expected| {
            let exchanged = word.compare_exchange(expected, expected.wrapping_add(1), SeqCst, SeqCst);
            exchanged.map(|seen| seen.wrapping_add(1))
        };
    CompareExchangeLoop "compare_exchange_loop"
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
            Ok(expected.wrapping_add(1))
        };
    Swap "swap"
        "xchg [{word}], {value}" "swpal {value}, {value}, [{word}]"
        |word, value| Ok(word.swap(value, SeqCst));
    StoreSeqCst "store"
        "mov {value}, {one}\nxchg [{word}], {value}" "stlr {one}, [{word}]"
        |word, value| {
            word.store(value, SeqCst);
            Ok(value)
        };
    Fence "fence"
        "mov [{word}], {one}\nmfence" "str {one}, [{word}]\ndmb ish"
        |word, value| {
            word.store(value, Relaxed);
            std::sync::atomic::fence(SeqCst);
            Ok(value)
        };
    Load "load" "mov {value}, [{word}]" "ldar {value}, [{word}]" |word, _| Ok(word.load(SeqCst));
}

/// Runs the operations of the standard library; each is handed the value that the one before returned.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(word: &AtomicU64, turns: u64, operation: fn(&AtomicU64, u64) -> Result<u64, u64>) -> u64 {
    let mut value = word.load(Relaxed);
    let mut failed = 0;
    for _ in 0..turns * UNROLL {
        value = operation(word, value).unwrap_or_else(|seen| {
            failed += 1;
            seen
        });
        value = std::hint::black_box(value);
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::word::Word;

    #[test]
    fn names_lead_back() {
        for &kind in Atomic::ALL {
            assert_eq!(Atomic::named(kind.word()), Some(kind));
        }
    }

    #[test]
    fn alone_every_operation_succeeds() {
        for &kind in Atomic::ALL {
            for n in [0, 1, 8, 1_001] {
                let word = AtomicU64::new(40);
                let done = run(kind, &word, n);
                assert_eq!(done, n.div_ceil(UNROLL) * UNROLL, "{kind}");
                let value = word.into_inner();
                match kind {
                    Atomic::FetchAdd | Atomic::CompareExchange | Atomic::CompareExchangeLoop => {
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
        for kind in [Atomic::FetchAdd, Atomic::CompareExchange, Atomic::CompareExchangeLoop] {
            let word = AtomicU64::new(0);
            let done: u64 = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| run(kind, &word, 100_000))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(word.load(SeqCst), done, "{kind}");
            if kind != Atomic::CompareExchange {
                assert_eq!(done, 300_000);
            }
        }
    }

    #[test]
    fn the_portable_loop_counts_failures() {
        let word = AtomicU64::new(0);
        assert_eq!(portable(&word, 1, |_, _| Err(0)), 8);
        assert_eq!(portable(&word, 2, |word, _| Ok(word.fetch_add(1, SeqCst))), 0);
        assert_eq!(word.into_inner(), 16);
    }
}
