//! Children that only exit or only run another program: fork(2), vfork(2), clone3(2), execve(2), posix_spawn(3).
//!
//! A forked child executes nothing but the few instructions in here: no Rust
//! code, no library, no stack. It therefore cannot meet a lock that another
//! thread of the parent held.

use rustix::fd::{AsFd, AsRawFd};
use rustix::io::{Errno, Result};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::UnshareFlags;
use std::ffi::{CStr, c_char};
use std::ptr;

/// Exit code of a child that could not execute its program.
pub const NOT_EXECUTED: i32 = 127;

/// Use of the parent's memory by a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildMemoryMode {
    /// The child gets a copy of the page tables: fork(2).
    Copied,
    /// The child shares the memory, and the parent sleeps until the child exits: vfork(2).
    Shared,
}

impl ChildMemoryMode {
    fn flags(self) -> usize {
        let flags = match self {
            ChildMemoryMode::Copied => libc::SIGCHLD,
            ChildMemoryMode::Shared => libc::SIGCHLD | libc::CLONE_VM | libc::CLONE_VFORK,
        };
        flags as usize
    }
}

/// A program with its arguments, in the form execve(2) wants. Its environment
/// is empty.
#[derive(Debug)]
pub struct ExecProgram<'a> {
    path: &'a CStr,
    /// Pointers to the arguments, ended by a null pointer; they point into data borrowed for `'a`.
    arguments: Vec<*const c_char>,
}

impl<'a> ExecProgram<'a> {
    /// The program at `path`; `arguments` begin with its name.
    pub fn new(path: &'a CStr, arguments: &[&'a CStr]) -> ExecProgram<'a> {
        let arguments = arguments.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect();
        ExecProgram { path, arguments }
    }

    /// Path of the program.
    pub fn path(&self) -> &CStr {
        self.path
    }
}

const NO_ENVIRONMENT: [*const c_char; 1] = [ptr::null()];

/// Makes children of this process waitable: the program that started it may have
/// left SIGCHLD ignored, and then the kernel forgets children as they exit.
pub fn keep_children() {
    // SAFETY: the default action runs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Forks a child that exits at once, and waits for it.
///
/// # Errors
/// EAGAIN (limit on processes), ENOMEM (overcommit), ENOSYS on architectures
/// other than x86-64 and arm64.
#[inline]
pub fn fork_exit(memory: ChildMemoryMode) -> Result<()> {
    // SAFETY: the child does nothing but exit.
    let child = unsafe { clone_exit(memory.flags())? };
    wait_exit_code(child).map(drop)
}

/// Kinds of namespaces: namespaces(7). Other flags of clone(2) are not passed on.
const NAMESPACES: UnshareFlags = UnshareFlags::NEWUTS
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWNET)
    .union(UnshareFlags::NEWNS)
    .union(UnshareFlags::NEWPID)
    .union(UnshareFlags::NEWUSER);

/// Forks a child with a copy of the memory, in new namespaces of the kinds given, which exits at once, and waits for
/// it.
///
/// # Errors
/// The errors of [`fork_exit`]; EPERM (CAP_SYS_ADMIN), EINVAL (a kernel without namespaces of this kind), ENOSPC (a
/// limit on namespaces).
#[inline]
pub fn fork_exit_in(namespaces: UnshareFlags) -> Result<()> {
    let flags = ChildMemoryMode::Copied.flags() | (namespaces & NAMESPACES).bits() as usize;
    // SAFETY: the child does nothing but exit.
    let child = unsafe { clone_exit(flags)? };
    wait_exit_code(child).map(drop)
}

/// Forks a child with a copy of the memory, in the control group whose directory is open, which exits at once, and
/// waits for it: clone3(2), CLONE_INTO_CGROUP.
///
/// # Errors
/// The errors of [`fork_exit`]; EBADF (no directory of a control group of version 2), ENOSYS, EINVAL (before Linux
/// 5.7), EACCES, EBUSY.
#[inline]
pub fn fork_exit_into(group: impl AsFd) -> Result<()> {
    let arguments = CloneArguments {
        flags: INTO_GROUP,
        exit_signal: libc::SIGCHLD as u64,
        group: group.as_fd().as_raw_fd() as u64,
        ..CloneArguments::default()
    };
    // SAFETY: the arguments make a process with a copy of the memory, which does nothing but exit.
    let child = unsafe { clone3_exit(&arguments)? };
    wait_exit_code(child).map(drop)
}

/// `struct clone_args` of clone3(2), third version.
#[repr(C)]
#[derive(Debug, Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    group: u64,
}

/// CLONE_INTO_CGROUP.
const INTO_GROUP: u64 = 1 << 33;

/// A child that exits at once, and is waited for when this is dropped.
#[derive(Debug)]
pub struct ZombieChild(Pid);

impl ZombieChild {
    /// Forks a child with a copy of the memory, which exits at once.
    ///
    /// # Errors
    /// The errors of [`fork_exit`].
    pub fn child() -> Result<ZombieChild> {
        // SAFETY: the child does nothing but exit.
        unsafe { clone_exit(ChildMemoryMode::Copied.flags()).map(ZombieChild) }
    }

    /// Returns the id of the child, which no other process gets meanwhile.
    pub fn id(&self) -> Pid {
        self.0
    }
}

impl Drop for ZombieChild {
    fn drop(&mut self) {
        // It can only fail for a child that is gone and reaped, which it is not.
        let _ = wait_exit_code(self.0);
    }
}

/// Forks a child with a copy of the memory, which executes `program`; waits
/// for it and returns its exit code, [`NOT_EXECUTED`] if it did not start.
///
/// # Errors
/// The errors of [`fork_exit`].
#[inline]
pub fn fork_execute(program: &ExecProgram<'_>) -> Result<i32> {
    let flags = ChildMemoryMode::Copied.flags();
    let execve = [
        program.path.as_ptr() as usize,
        program.arguments.as_ptr() as usize,
        NO_ENVIRONMENT.as_ptr() as usize,
    ];
    // SAFETY: the pointers are those of a path and two null-terminated lists
    // that live as long as `program`; the child reads its own copy of them.
    let child = unsafe { clone_execute(flags, execve)? };
    wait_exit_code(child)
}

/// Starts `program` by posix_spawn(3), which shares the memory until the new
/// program runs; waits for it and returns its exit code.
///
/// # Errors
/// Why it could not be started: ENOENT, EACCES (no execute permission, or the
/// file system is mounted noexec), EAGAIN, ENOMEM.
#[inline]
pub fn spawn(program: &ExecProgram<'_>) -> Result<i32> {
    let mut child = 0;
    // SAFETY: the lists end with a null pointer, and the C library only reads
    // them, mutable as their C type may be.
    let code = unsafe {
        libc::posix_spawn(
            &mut child,
            program.path.as_ptr(),
            ptr::null(),
            ptr::null(),
            program.arguments.as_ptr().cast(),
            NO_ENVIRONMENT.as_ptr().cast(),
        )
    };
    match code {
        0 => wait_exit_code(Pid::from_raw(child).ok_or(Errno::SRCH)?),
        code => Err(Errno::from_raw_os_error(code)),
    }
}

/// Waits for a child and returns its exit code; 128 and the signal's number if
/// a signal ended it, as a shell does.
#[inline]
fn wait_exit_code(child: Pid) -> Result<i32> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let signal = || status.terminating_signal().map(|signal| 128 + signal);
                return Ok(status.exit_status().or_else(signal).unwrap_or(NOT_EXECUTED));
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the child's id, or the error, from the value that the kernel left in the register.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline]
fn child(answer: isize) -> Result<Pid> {
    match i32::try_from(answer) {
        Ok(id) if id > 0 => Pid::from_raw(id).ok_or(Errno::SRCH),
        Ok(error) => Err(Errno::from_raw_os_error(-error)),
        Err(_) => Err(Errno::INVAL),
    }
}

/// clone(2) or clone3(2), by its number and first two arguments; the child runs `$child`, then exits with what is in
/// the register of the first argument. It disturbs no memory of a parent that it shares it with, since only registers
/// are used. `{names}` of operands are those of registers that system calls preserve.
#[cfg(target_arch = "x86_64")]
macro_rules! clone {
    ($number:expr, $first:expr, $second:expr, $child:expr, $($operand:tt)*) => {{
        let answer: isize;
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            $child,
            "mov eax, {exit_group}",
            "syscall",
            "2:",
            exit_group = const libc::SYS_exit_group,
            $($operand)*
            inlateout("rax") $number as isize => answer,
            inlateout("rdi") $first => _, inlateout("rsi") $second => _, inlateout("rdx") 0usize => _,
            in("r10") 0usize, in("r8") 0usize,
            out("rcx") _, out("r11") _,
        );
        child(answer)
    }};
}
#[cfg(target_arch = "aarch64")]
macro_rules! clone {
    ($number:expr, $first:expr, $second:expr, $child:expr, $($operand:tt)*) => {{
        let answer: isize;
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            $child,
            "mov x8, {exit_group}",
            "svc #0",
            "2:",
            exit_group = const libc::SYS_exit_group,
            $($operand)*
            inlateout("x8") $number => _,
            inlateout("x0") $first => answer, inlateout("x1") $second => _, inlateout("x2") 0usize => _,
            in("x3") 0usize, in("x4") 0usize,
        );
        child(answer)
    }};
}

/// clone(2) with these flags; the child exits with 0.
///
/// # Safety
/// The flags make a process, not a thread.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline]
unsafe fn clone_exit(flags: usize) -> Result<Pid> {
    // SAFETY: as the caller vouches; the child only exits.
    unsafe { clone!(libc::SYS_clone, flags, 0usize, either!("xor edi, edi", "mov x0, 0"),) }
}

/// clone3(2) with these arguments; the child exits with 0.
///
/// # Safety
/// The arguments make a process, not a thread.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline]
unsafe fn clone3_exit(arguments: &CloneArguments) -> Result<Pid> {
    // SAFETY: as the caller vouches; the child only exits.
    unsafe {
        clone!(
            libc::SYS_clone3,
            &raw const *arguments as usize,
            size_of::<CloneArguments>(),
            either!("xor edi, edi", "mov x0, 0"),
        )
    }
}

/// clone(2) with these flags; the child executes a program or exits with
/// [`NOT_EXECUTED`].
///
/// # Safety
/// The flags make a process, not a thread; `execve` are valid arguments of
/// execve(2).
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline]
unsafe fn clone_execute(flags: usize, execve: [usize; 3]) -> Result<Pid> {
    // SAFETY: as the caller vouches; no argument is in the register of one that is set before it, since those are
    // taken by the arguments of clone(2).
    unsafe {
        clone!(
            libc::SYS_clone,
            flags,
            0usize,
            either!(
                "mov rdi, {path}\nmov rsi, {arguments}\nmov rdx, {environment}
                 mov eax, {execve}\nsyscall\nmov edi, {not_executed}",
                "mov x0, {path}\nmov x1, {arguments}\nmov x2, {environment}
                 mov x8, {execve}\nsvc #0\nmov x0, {not_executed}"
            ),
            execve = const libc::SYS_execve,
            not_executed = const NOT_EXECUTED,
            path = in(reg) execve[0],
            arguments = in(reg) execve[1],
            environment = in(reg) execve[2],
        )
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone_exit(_: usize) -> Result<Pid> {
    Err(Errno::NOSYS)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone3_exit(_: &CloneArguments) -> Result<Pid> {
    Err(Errno::NOSYS)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone_execute(_: usize, _: [usize; 3]) -> Result<Pid> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_exit_and_are_waited_for() {
        keep_children();
        for memory in [ChildMemoryMode::Copied, ChildMemoryMode::Shared] {
            assert_eq!(fork_exit(memory), Ok(()));
        }
    }

    #[test]
    fn children_in_namespaces_exit_or_a_right_is_missing() {
        keep_children();
        assert_eq!(fork_exit_in(UnshareFlags::empty()), Ok(()));
        assert_eq!(fork_exit_in(!NAMESPACES), Ok(()), "no other flag is passed on");
        for namespace in NAMESPACES {
            let made = fork_exit_in(namespace);
            assert!([Ok(()), Err(Errno::PERM), Err(Errno::INVAL)].contains(&made), "{namespace:?}: {made:?}");
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!([Err(Errno::BADF), Err(Errno::NOSYS)].contains(&fork_exit_into(&file)));
        drop(ZombieChild::child().unwrap());
    }

    #[test]
    fn exit_codes_of_executed_programs_come_back() {
        keep_children();
        let code = |script| {
            let program = ExecProgram::new(c"/bin/sh", &[c"sh", c"-c", script]);
            [fork_execute(&program), spawn(&program)]
        };
        assert_eq!(code(c":"), [Ok(0), Ok(0)]);
        assert_eq!(code(c"exit 3"), [Ok(3), Ok(3)]);
        assert_eq!(code(c"kill -9 $$"), [Ok(137), Ok(137)]);
    }

    #[test]
    fn a_missing_program_is_told() {
        keep_children();
        let program = ExecProgram::new(c"/nonexistent/program", &[c"program"]);
        assert_eq!(fork_execute(&program), Ok(NOT_EXECUTED));
        assert_eq!(spawn(&program), Err(Errno::NOENT));
    }

    #[test]
    fn the_environment_is_empty() {
        keep_children();
        let program = ExecProgram::new(c"/bin/sh", &[c"sh", c"-c", c"test -z \"$HOME\""]);
        assert_eq!(spawn(&program), Ok(0));
    }
}
