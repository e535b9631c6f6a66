//! Calls of an empty function.

/// The calls in one iteration of [`direct`] and of [`indirect`].
pub const CALLS_PER_ITERATION: u64 = 32;

/// Distance of the calls on x86-64, bytes. Some cores do not predict indirect calls that lie as densely as their
/// encoding allows: of 2 bytes each they took 12 cycles on an Intel core of 2023, and 3.3 at this distance.
pub const BYTES_APART: u64 = 16;

/// Calls an empty function `iterations` × [`CALLS_PER_ITERATION`] times by its address in the instruction, and
/// returns the number of calls.
///
/// One operation is a call and its return.
pub fn direct(iterations: u64) -> u64 {
    latscope_kernel_call_direct(iterations);
    iterations * CALLS_PER_ITERATION
}

/// Calls an empty function `iterations` × [`CALLS_PER_ITERATION`] times by its address in a register, and returns
/// the number of calls.
///
/// One operation is a call and its return; the target is always the same, and so is predicted.
pub fn indirect(iterations: u64) -> u64 {
    latscope_kernel_call_indirect(iterations);
    iterations * CALLS_PER_ITERATION
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_call_direct(iterations: u64) {
    if iterations == 0 {
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: each call returns to where it came from and leaves the stack as it was; only the declared registers
    // and the flags change.
    unsafe {
        asm_with!(
            [] [out("x30") _]
            either!("jmp 2f", "b 2f"),
            ".p2align 6",
            "4:",
            "ret",
            ".p2align 6",
            "2:",
            ".rept 32",
            either!(".p2align 4\ncall 4b", "bl 4b"),
            ".endr",
            again!(),
            n = inout(reg) iterations => _,
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..iterations * CALLS_PER_ITERATION {
        portable();
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn latscope_kernel_call_indirect(iterations: u64) {
    if iterations == 0 {
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: each call returns to where it came from and leaves the stack as it was; only the declared registers
    // and the flags change. The hint is `bti c`, which, as `endbr64`, allows the place to be called where branch
    // targets are checked.
    unsafe {
        asm_with!(
            [] [out("x30") _]
            either!("jmp 2f", "b 2f"),
            ".p2align 6",
            "4:",
            either!("endbr64", "hint #34"),
            "ret",
            ".p2align 6",
            "2:",
            either!("lea {target}, [rip + 4b]", "adr {target}, 4b"),
            "3:",
            ".rept 32",
            either!(".p2align 4\ncall {target}", "blr {target}"),
            ".endr",
            either!("sub {n}, 1\njnz 3b", "subs {n}, {n}, #1\nb.ne 3b"),
            n = inout(reg) iterations => _,
            target = out(reg) _,
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..iterations * CALLS_PER_ITERATION {
        std::hint::black_box(portable as fn())();
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(never)]
fn portable() {
    std::hint::black_box(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_return() {
        for kernel in [direct, indirect] {
            for iterations in [0, 1, 1_000] {
                assert_eq!(kernel(iterations), iterations * CALLS_PER_ITERATION);
            }
        }
    }
}
