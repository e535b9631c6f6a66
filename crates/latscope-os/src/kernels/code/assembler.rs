//! Encodings of the few instructions that are generated, for x86-64 and arm64: pure, so that those of both are tested
//! everywhere.
//!
//! Registers: the number of iterations in rdi or x0, the place in the table in rsi or x1, its begin in rdx or x2; rax
//! or x3 is free. In a loop of system calls, the kernel gets its arguments in these: the number of iterations is in r12
//! or x20, and all answers go into r13 or x21 by a bitwise or.

use crate::kernels::random::ShuffleGenerator;

/// Architecture of generated instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeAssembler {
    X86,
    Arm,
}

/// An argument of a system call in a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// The same in all iterations.
    Is(usize),
    /// Answer of the call before it. Only a first argument can be that.
    Answer,
}

/// A system call in a loop: its number, and its arguments.
pub(super) type SystemCallSpec = (u32, Vec<Argument>);

/// Most bytes of code: far less than a jump reaches.
const MOST: usize = 64 << 20;

impl CodeAssembler {
    /// Returns that of this program; `None` on other architectures.
    pub fn for_host() -> Option<CodeAssembler> {
        if cfg!(target_arch = "x86_64") {
            Some(CodeAssembler::X86)
        } else {
            cfg!(target_arch = "aarch64").then_some(CodeAssembler::Arm)
        }
    }

    /// Returns `count` jumps, `stride` bytes apart, that lead to each other in random order, beginning with the first;
    /// the last leads to the end of the loop, behind them.
    pub fn jumps(self, count: usize, stride: usize, seed: u64) -> Option<Vec<u8>> {
        let end = checked_size(count, stride)?;
        let mut order: Vec<usize> = (1..count).collect();
        ShuffleGenerator::new(seed).shuffle(&mut order);
        let mut code = self.trap_padding(end);
        let mut at = 0;
        for next in order.into_iter().map(|block| block * stride).chain([end]) {
            place_code(&mut code, at, &self.jump(at, next));
            at = next;
        }
        Some(self.close_loop(code))
    }

    /// Returns `count` places, `stride` bytes apart, each of which jumps to the next address of the table; behind them
    /// is the end of the loop.
    pub fn targets(self, count: usize, stride: usize) -> Option<Vec<u8>> {
        let end = checked_size(count, stride)?;
        let mut code = self.trap_padding(end);
        (0..count).for_each(|place| place_code(&mut code, place * stride, &self.jump_by_table()));
        code.extend(self.rewind());
        Some(self.close_loop(code))
    }

    /// Returns `depth` functions, each of which calls the next, before them the loop that calls the first.
    pub fn calls(self, depth: usize, stride: usize) -> Option<Vec<u8>> {
        let mut code = self.trap_padding(checked_size(depth + 1, stride)?);
        let mut driver = self.calling(0, stride);
        driver = [driver.clone(), self.again(driver.len(), 0), self.return_to_caller()].concat();
        place_code(&mut code, 0, &driver);
        for function in 1..=depth {
            let at = function * stride;
            let body = if function < depth { self.calling(at, at + stride) } else { Vec::new() };
            place_code(&mut code, at, &[body, self.return_to_caller()].concat());
        }
        Some(code)
    }

    /// Returns a loop around system calls.
    pub fn system_calls(self, calls: &[SystemCallSpec]) -> Vec<u8> {
        let mut code = Vec::new();
        for (number, arguments) in calls {
            for (place, argument) in arguments.iter().enumerate() {
                code.extend(match argument {
                    Argument::Is(value) => self.argument(place, *value as u64),
                    Argument::Answer => self.pass_answer(),
                });
            }
            code.extend(self.enter_kernel(*number));
        }
        code.extend(self.again_by_kept_counter(code.len()));
        code.extend(self.return_to_caller());
        code
    }

    /// Sets an argument of a system call.
    fn argument(self, place: usize, value: u64) -> Vec<u8> {
        match self {
            // mov rdi, value; then rsi, rdx, r10, r8, r9
            CodeAssembler::X86 => {
                const MOVES: [[u8; 2]; 6] =
                    [[0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x49, 0xba], [0x49, 0xb8], [0x49, 0xb9]];
                [&MOVES[place][..], &value.to_le_bytes()].concat()
            }
            CodeAssembler::Arm => load_immediate(place as u32, value),
        }
    }

    /// Makes the answer of a call the first argument of the next; on arm64 both are in x0.
    fn pass_answer(self) -> Vec<u8> {
        match self {
            // mov rdi, rax
            CodeAssembler::X86 => vec![0x48, 0x89, 0xc7],
            CodeAssembler::Arm => Vec::new(),
        }
    }

    /// Makes the system call, and adds its answer to those before.
    fn enter_kernel(self, number: u32) -> Vec<u8> {
        match self {
            // mov eax, number; syscall; or r13, rax
            CodeAssembler::X86 => {
                [&[0xb8][..], &number.to_le_bytes(), &[0x0f, 0x05, 0x49, 0x09, 0xc5]].concat()
            }
            // mov x8, number; svc #0; orr x21, x21, x0
            CodeAssembler::Arm => {
                [load_immediate(8, number.into()), arm(&[0xd400_0001, 0xaa00_02b5])].concat()
            }
        }
    }

    /// Counts the iterations of system calls down, at the place `at`, and goes to the beginning unless that was the
    /// last.
    fn again_by_kept_counter(self, at: usize) -> Vec<u8> {
        match self {
            // dec r12; jnz 0
            CodeAssembler::X86 => [vec![0x49, 0xff, 0xcc], relative(&[0x0f, 0x85], at + 3, 0)].concat(),
            // subs x20, x20, #1; b.eq behind; b 0
            CodeAssembler::Arm => [arm(&[0xf100_0694, 0x5400_0000 | 2 << 5]), self.jump(at + 8, 0)].concat(),
        }
    }

    /// Adds the end of the loop: back to the begin as long as iterations are left, else back to the caller.
    fn close_loop(self, mut code: Vec<u8>) -> Vec<u8> {
        code.extend(self.again(code.len(), 0));
        code.extend(self.return_to_caller());
        code
    }

    /// So many bytes of instructions that trap.
    fn trap_padding(self, bytes: usize) -> Vec<u8> {
        match self {
            CodeAssembler::X86 => vec![0xcc; bytes],
            CodeAssembler::Arm => arm(&vec![0xd420_0000; bytes / 4]),
        }
    }

    /// `jmp to`, at the place `at`.
    fn jump(self, at: usize, to: usize) -> Vec<u8> {
        match self {
            CodeAssembler::X86 => relative(&[0xe9], at, to),
            CodeAssembler::Arm => arm(&[0x1400_0000 | branch_distance(at, to) & 0x03ff_ffff]),
        }
    }

    /// `call to`, at the place `at`; arm64 keeps the address of its own return on the stack meanwhile.
    fn calling(self, at: usize, to: usize) -> Vec<u8> {
        match self {
            CodeAssembler::X86 => relative(&[0xe8], at, to),
            // stp x30, xzr, [sp, #-16]!; bl to; ldp x30, xzr, [sp], #16
            CodeAssembler::Arm => {
                arm(&[0xa9bf_7ffe, 0x9400_0000 | branch_distance(at + 4, to) & 0x03ff_ffff, 0xa8c1_7ffe])
            }
        }
    }

    /// `ret`
    fn return_to_caller(self) -> Vec<u8> {
        match self {
            CodeAssembler::X86 => vec![0xc3],
            CodeAssembler::Arm => arm(&[0xd65f_03c0]),
        }
    }

    /// Counts the iterations down, at the place `at`, and goes to `to` unless that was the last.
    fn again(self, at: usize, to: usize) -> Vec<u8> {
        match self {
            // dec rdi; jnz to
            CodeAssembler::X86 => [vec![0x48, 0xff, 0xcf], relative(&[0x0f, 0x85], at + 3, to)].concat(),
            // subs x0, x0, #1; b.eq behind; b to
            CodeAssembler::Arm => [arm(&[0xf100_0400, 0x5400_0000 | 2 << 5]), self.jump(at + 8, to)].concat(),
        }
    }

    /// Jumps to the next address of the table.
    fn jump_by_table(self) -> Vec<u8> {
        match self {
            // mov rax, [rsi]; add rsi, 8; jmp rax
            CodeAssembler::X86 => vec![0x48, 0x8b, 0x06, 0x48, 0x83, 0xc6, 0x08, 0xff, 0xe0],
            // ldr x3, [x1], #8; br x3
            CodeAssembler::Arm => arm(&[0xf840_8423, 0xd61f_0060]),
        }
    }

    /// Sets the place in the table to its begin.
    fn rewind(self) -> Vec<u8> {
        match self {
            // mov rsi, rdx
            CodeAssembler::X86 => vec![0x48, 0x89, 0xd6],
            // mov x1, x2
            CodeAssembler::Arm => arm(&[0xaa02_03e1]),
        }
    }
}

/// Bytes of `count` pieces of code; `None` if a piece has no room for any of them, or there are none or too many.
fn checked_size(count: usize, stride: usize) -> Option<usize> {
    let fits = count > 0 && stride >= 16 && stride.is_multiple_of(4);
    count.checked_mul(stride).filter(|bytes| fits && *bytes <= MOST)
}

fn place_code(code: &mut [u8], at: usize, instructions: &[u8]) {
    code[at..at + instructions.len()].copy_from_slice(instructions);
}

/// An instruction of x86-64 that ends with the distance from its end to `to`, 32 bits.
fn relative(code: &[u8], at: usize, to: usize) -> Vec<u8> {
    let distance = to as i64 - (at + code.len() + 4) as i64;
    [code, &(distance as i32).to_le_bytes()].concat()
}

/// Distance in instructions of arm64, from `at` to `to`.
fn branch_distance(at: usize, to: usize) -> u32 {
    ((to as i64 - at as i64) / 4) as u32
}

/// Loads a value into a register of arm64: `movz`, and `movk` for each further half-word that is not zero.
fn load_immediate(register: u32, value: u64) -> Vec<u8> {
    let half = |at: u32| (value >> (16 * at)) as u32 & 0xffff;
    let code =
        |at: u32| (if at == 0 { 0xd280_0000 } else { 0xf280_0000 }) | at << 21 | half(at) << 5 | register;
    arm(&(0..4).filter(|at| *at == 0 || half(*at) != 0).map(code).collect::<Vec<_>>())
}

fn arm(instructions: &[u32]) -> Vec<u8> {
    instructions.iter().flat_map(|instruction| instruction.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_visit_every_block_once_and_end_behind_them() {
        let code = CodeAssembler::X86.jumps(50, 16, 9).unwrap();
        let mut seen = Vec::new();
        let mut at = 0;
        while at < 50 * 16 {
            seen.push(at / 16);
            assert_eq!(code[at], 0xe9);
            let distance = i32::from_le_bytes(code[at + 1..at + 5].try_into().unwrap());
            at = (at as i64 + 5 + i64::from(distance)) as usize;
        }
        assert_eq!((seen[0], at), (0, 50 * 16));
        seen.sort_unstable();
        assert_eq!(seen, Vec::from_iter(0..50));
        // dec rdi; jnz -(800 + 9); ret
        let end = [&[0x48, 0xff, 0xcf, 0x0f, 0x85][..], &(-809_i32).to_le_bytes(), &[0xc3]].concat();
        assert_eq!(code[at..], end);
    }

    #[test]
    fn encodings_of_arm_are_those_of_its_manual() {
        let code = CodeAssembler::Arm.jumps(1, 16, 1).unwrap();
        let words = |code: &[u8]| -> Vec<u32> {
            code.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
        };
        // b #16; brk; brk; brk; subs x0, x0, #1; b.eq #8; b #-24; ret
        let trap = 0xd420_0000;
        let end = [0xf100_0400, 0x5400_0040, 0x17ff_fffa, 0xd65f_03c0];
        assert_eq!(words(&code), [&[0x1400_0004, trap, trap, trap][..], &end].concat());
        let calls = words(&CodeAssembler::Arm.calls(1, 64).unwrap());
        // stp x30, xzr, [sp, #-16]!; bl #60; ldp x30, xzr, [sp], #16
        assert_eq!(calls[..3], [0xa9bf_7ffe, 0x9400_000f, 0xa8c1_7ffe]);
        assert_eq!(calls[16], 0xd65f_03c0);
        assert_eq!(words(&CodeAssembler::Arm.targets(1, 16).unwrap())[4], 0xaa02_03e1);
    }

    #[test]
    fn a_loop_of_system_calls_passes_an_answer_on() {
        let calls =
            [(257, vec![Argument::Is(0x1234_5678_9abc), Argument::Is(7)]), (3, vec![Argument::Answer])];
        let x86 = [
            &[0x48, 0xbf, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0, 0, 0x48, 0xbe, 7, 0, 0, 0, 0, 0, 0, 0][..],
            &[0xb8, 1, 1, 0, 0, 0x0f, 0x05, 0x49, 0x09, 0xc5, 0x48, 0x89, 0xc7],
            &[0xb8, 3, 0, 0, 0, 0x0f, 0x05, 0x49, 0x09, 0xc5, 0x49, 0xff, 0xcc, 0x0f, 0x85],
            &(-52_i32).to_le_bytes(),
            &[0xc3],
        ];
        assert_eq!(CodeAssembler::X86.system_calls(&calls), x86.concat());
        // mov x0, #0x9abc; movk x0, #0x5678, lsl 16; movk x0, #0x1234, lsl 32; mov x1, #7; mov x8, #257; svc; orr; …
        let words =
            [0xd293_5780, 0xf2aa_cf00, 0xf2c2_4680, 0xd280_00e1, 0xd280_2028, 0xd400_0001, 0xaa00_02b5];
        let rest =
            [0xd280_0068, 0xd400_0001, 0xaa00_02b5, 0xf100_0694, 0x5400_0040, 0x17ff_fff4, 0xd65f_03c0];
        assert_eq!(CodeAssembler::Arm.system_calls(&calls), arm(&[words, rest].concat()));
    }

    #[test]
    fn what_has_no_room_is_refused() {
        for assembler in [CodeAssembler::X86, CodeAssembler::Arm] {
            assert_eq!(assembler.jumps(3, 12, 1), None);
            assert_eq!(assembler.jumps(MOST, 64, 1), None);
            assert_eq!(assembler.targets(0, 64), None);
        }
    }
}
