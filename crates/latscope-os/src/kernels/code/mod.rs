//! Instructions that are generated: chains of jumps, indirect jumps and nested calls, of any length.

mod assembler;
pub mod calls;

use super::random::ShuffleGenerator;
use crate::mapping::MemoryMapping;
use assembler::CodeAssembler;
use rustix::io::{Errno, Result};
use rustix::mm::{self, MapFlags, MprotectFlags, ProtFlags};

/// Generated instructions, in a mapping of their own that cannot be written any more.
#[derive(Debug)]
pub struct Code {
    memory: MemoryMapping,
    /// Addresses that indirect jumps go to, in their order.
    table: Vec<usize>,
    operations: u64,
}

/// Bytes between two functions, or two targets of indirect jumps: a line of every cache.
const APART: usize = 64;

/// Indirect jumps in one iteration: more than any predictor of today remembers.
const INDIRECT_JUMPS: usize = 1 << 15;

/// Deepest nesting of [`Code::calls`], which takes at most 16 bytes of stack a call.
pub const DEEPEST: usize = 4096;

impl Code {
    /// Makes `count` jumps, `stride` bytes apart, that lead to each other in a random order.
    ///
    /// # Errors
    /// `ENOSYS` on other architectures than x86-64 and arm64, `EINVAL` for a stride in which no jump has room, `EACCES`
    /// or `EPERM` where memory that was written cannot be executed, `ENOMEM`.
    pub fn jumps(count: usize, stride: usize, seed: u64) -> Result<Code> {
        let code =
            CodeAssembler::for_host().ok_or(Errno::NOSYS)?.jumps(count, stride, seed).ok_or(Errno::INVAL)?;
        Code::load_code(&code, count as u64, |_| Vec::new())
    }

    /// Makes a random sequence of 2¹⁵ indirect jumps to `targets` places, each of which has the jump
    /// to the next one.
    ///
    /// # Errors
    /// The errors of [`jumps`](Self::jumps); `EINVAL` without targets.
    pub fn indirect(targets: usize, seed: u64) -> Result<Code> {
        let code =
            CodeAssembler::for_host().ok_or(Errno::NOSYS)?.targets(targets, APART).ok_or(Errno::INVAL)?;
        Code::load_code(&code, INDIRECT_JUMPS as u64, |start| {
            let mut random = ShuffleGenerator::new(seed);
            let mut next = || start + random.below(targets as u64) as usize * APART;
            // The last one leads to the end of the iteration, behind all targets.
            let jumps = (1..INDIRECT_JUMPS).map(|_| next()).collect::<Vec<_>>();
            jumps.into_iter().chain([start + targets * APART]).collect()
        })
    }

    /// Makes functions that call each other, `depth` calls deep, and then return.
    ///
    /// # Errors
    /// The errors of [`jumps`](Self::jumps); `EINVAL` for a depth of 0 or beyond [`DEEPEST`].
    pub fn calls(depth: usize) -> Result<Code> {
        let assembler = CodeAssembler::for_host().ok_or(Errno::NOSYS)?;
        let deep = (1..=DEEPEST).contains(&depth);
        let code = deep.then(|| assembler.calls(depth, APART)).flatten().ok_or(Errno::INVAL)?;
        Code::load_code(&code, depth as u64, |_| Vec::new())
    }

    fn load_code(code: &[u8], operations: u64, table: impl FnOnce(usize) -> Vec<usize>) -> Result<Code> {
        let memory = executable(0, 0, code)?;
        let table = table(memory.start.as_ptr() as usize);
        Ok(Code { memory, table, operations })
    }

    /// Number of jumps, or calls with their returns, in one iteration.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Runs the code `iterations` times.
    pub fn run_iterations(&self, iterations: u64) {
        if iterations == 0 {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the code was made by the assembler: it counts rdi down to zero, reads addresses of the table by rsi,
        // which rdx sets back, uses rax, and returns with the stack as it was.
        unsafe {
            core::arch::asm!(
                "call {entry}",
                entry = in(reg) self.memory.start.as_ptr(),
                inout("rdi") iterations => _,
                inout("rsi") self.table.as_ptr() => _,
                in("rdx") self.table.as_ptr(),
                out("rax") _,
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the code was made by the assembler: it counts x0 down to zero, reads addresses of the table by x1,
        // which x2 sets back, uses x3, and returns with the stack as it was.
        unsafe {
            core::arch::asm!(
                "blr {entry}",
                entry = in(reg) self.memory.start.as_ptr(),
                inout("x0") iterations => _,
                inout("x1") self.table.as_ptr() => _,
                in("x2") self.table.as_ptr(),
                out("x3") _,
                out("x30") _,
            );
        }
    }
}

/// Puts code into a mapping of its own, `offset` bytes behind its start, at the address `near` if there is room.
fn executable(near: usize, offset: usize, code: &[u8]) -> Result<MemoryMapping> {
    let (length, access) = (offset + code.len(), ProtFlags::READ | ProtFlags::WRITE);
    let memory = MemoryMapping::anonymous_near(near, length, access, MapFlags::empty())?;
    let start = memory.start.as_ptr();
    // SAFETY: the mapping is that long, and nothing else refers to it; only its owner executes it.
    unsafe {
        start.add(offset).copy_from_nonoverlapping(code.as_ptr(), code.len());
        mm::mprotect(start.cast(), length, MprotectFlags::READ | MprotectFlags::EXEC)?;
        synchronise(start.add(offset), code.len());
    }
    Ok(memory)
}

/// Makes code that was just written visible to the fetching of instructions; x86-64 does so by itself.
///
/// # Safety
/// The bytes are mapped and readable.
unsafe fn synchronise(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "aarch64")]
    {
        // The shortest line of any cache: more often than needed is no harm.
        for offset in (0..bytes).step_by(16) {
            // SAFETY: within the bytes; both instructions change no memory and no register.
            unsafe { core::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) start.add(offset)) };
        }
        // SAFETY: barriers.
        unsafe { core::arch::asm!("dsb ish", "isb") };
    }
    let _ = (start, bytes);
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn generated_code_comes_to_its_end() {
        for (count, stride) in [(1, 16), (2, 16), (1000, 64), (1 << 14, 16)] {
            let code = Code::jumps(count, stride, 7).unwrap();
            code.run_iterations(3);
            assert_eq!(code.operations(), count as u64);
        }
        for targets in [1, 2, 300] {
            Code::indirect(targets, 7).unwrap().run_iterations(2);
        }
        for depth in [1, 2, 64, DEEPEST] {
            Code::calls(depth).unwrap().run_iterations(3);
        }
    }

    #[test]
    fn every_target_is_in_the_table() {
        let code = Code::indirect(5, 3).unwrap();
        let places: std::collections::BTreeSet<usize> = code.table.iter().copied().collect();
        let start = code.memory.start.as_ptr() as usize;
        assert_eq!(Vec::from_iter(places), Vec::from_iter((0..=5).map(|place| start + place * APART)));
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        for code in [Code::jumps(1, 4, 1), Code::jumps(0, 16, 1), Code::indirect(0, 1), Code::calls(0)] {
            assert_eq!(code.unwrap_err(), Errno::INVAL);
        }
        assert!(Code::calls(DEEPEST + 1).is_err());
    }
}
