//! Start of this program's binary as a worker with inherited descriptors.

use crate::stdio;
use crate::syscall::{check_errno, signal_set};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// First inherited descriptor of a worker; the others follow in order.
pub const FIRST_DESCRIPTOR: RawFd = 3;

/// Number of descriptors that a worker can inherit at most.
pub const MOST_DESCRIPTORS: usize = 16;

/// Choice whether a child ends with the process that started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Killed when its parent thread ends (`PR_SET_PDEATHSIG`).
    WithParent,
    /// The child continues: it has work to do after the end of the parent.
    OnItsOwn,
}

/// Environment variable that names the program that has to run this binary: an emulator, if the kernel is that of
/// another architecture and cannot execute the binary.
pub const RUNNER: &str = "LATSCOPE_RUNNER";

/// Returns true if the kernel gave this process rights that its caller does not have (`AT_SECURE`): by a set-user-ID
/// bit, or capabilities of the file. The environment that a caller gives is not to be trusted then.
pub fn is_privileged_by_file() -> bool {
    // SAFETY: getauxval only reads what the kernel handed over at the start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the program in [`RUNNER`], unless this process has rights that its caller does not have: a caller without
/// them must not choose a program that gets them.
fn runner() -> Option<OsString> {
    std::env::var_os(RUNNER).filter(|_| !is_privileged_by_file())
}

fn own_binary() -> Command {
    match (runner(), std::env::current_exe()) {
        (Some(runner), Ok(binary)) => {
            let mut command = Command::new(runner);
            command.arg(binary);
            command
        }
        (_, Ok(_)) => Command::new("/proc/self/exe"),
        // Without /proc: the path by which the kernel was asked to execute it.
        (_, Err(_)) => Command::new(OsStr::from_bytes(rustix::param::linux_execfn().to_bytes())),
    }
}

/// Returns a command for this program's binary, behind the words of a program that executes the words after its own:
/// `taskset -c 1`. The binary is named by its path, since `/proc/self/exe` would be that program.
///
/// # Errors
/// The path of the binary is not known.
pub fn own_binary_behind(prefix: &[String]) -> io::Result<Command> {
    let [program, words @ ..] = prefix else { return Ok(own_binary()) };
    let mut command = Command::new(program);
    command.args(words).args(runner()).arg(std::env::current_exe()?);
    Ok(command)
}

/// Runs `/proc/self/exe ARGS`, with `descriptors` as 3, 4, … in a process
/// group of its own, so that the terminal's signals do not reach it.
///
/// # Errors
/// The process cannot be started.
///
/// # Panics
/// More than [`MOST_DESCRIPTORS`] are given.
pub fn spawn(args: &[&str], descriptors: &[&OwnedFd], lifetime: Lifetime) -> io::Result<Child> {
    let mut command = own_binary();
    command.args(args).stdin(null_stdio()?).stdout(null_stdio()?);
    spawn_command(command, descriptors, lifetime)
}

/// Runs another program, with `descriptors` as 3, 4, … in a process group of
/// its own; killed when the thread that started it ends (`PR_SET_PDEATHSIG`).
///
/// # Errors
/// The program cannot be started.
///
/// # Panics
/// The errors of [`spawn`].
pub fn accompany(command: Command, descriptors: &[&OwnedFd]) -> io::Result<Child> {
    spawn_command(command, descriptors, Lifetime::WithParent)
}

/// Standard stream from which nothing can be read, and into which nothing is written. It works without a /dev/null,
/// too.
fn null_stdio() -> io::Result<Stdio> {
    if Path::new("/dev/null").exists() {
        return Ok(Stdio::null());
    }
    // The other end is closed at once.
    let (reading, _) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok(Stdio::from(reading))
}

fn spawn_command(mut command: Command, descriptors: &[&OwnedFd], lifetime: Lifetime) -> io::Result<Child> {
    let fds: Vec<RawFd> = descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
    assert!(fds.len() <= MOST_DESCRIPTORS);
    let end = FIRST_DESCRIPTOR + fds.len() as RawFd;
    let parent = rustix::process::getpid();
    command.process_group(0);
    let prepare = move || {
        inherit(&fds)?;
        unblock_signals();
        // A process with work to do goes on, also if it was stopped.
        let (signal, ends) = match lifetime {
            Lifetime::WithParent => (Signal::KILL, true),
            Lifetime::OnItsOwn => (Signal::CONT, false),
        };
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        if ends && rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: `prepare` only makes system calls on plain integers: no allocation, no locks.
    unsafe { command.pre_exec(prepare) };
    // The pipe by which the child tells that it could not execute the program must be none of those places.
    let mut held: Vec<OwnedFd> = Vec::new();
    if let Some(first) = descriptors.first() {
        while held.last().is_none_or(|last| last.as_raw_fd() < end) {
            held.push(first.try_clone()?);
        }
    }
    command.spawn()
}

/// Runs a command of the shell, in a process group of its own and without
/// anything to read from or write to, with these variables beside its environment.
///
/// # Errors
/// The process cannot be started.
pub fn shell<'a>(command: &str, variables: impl IntoIterator<Item = (&'a str, String)>) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).envs(variables).process_group(0);
    shell.stdin(null_stdio()?).stdout(null_stdio()?).stderr(null_stdio()?);
    let prepare = || {
        unblock_signals();
        Ok(())
    };
    // SAFETY: `prepare` only makes a system call: no allocation, no locks.
    unsafe { shell.pre_exec(prepare) };
    shell.spawn()
}

/// Moves `fds` to 3, 4, … without close-on-exec.
fn inherit(fds: &[RawFd]) -> io::Result<()> {
    // First out of the way of each other, then in place.
    let mut aside = [-1; MOST_DESCRIPTORS];
    for (fd, aside) in fds.iter().zip(&mut aside) {
        let free = FIRST_DESCRIPTOR + MOST_DESCRIPTORS as RawFd;
        // SAFETY: duplicating descriptors after fork touches nothing but the child's table.
        *aside = check_errno(unsafe { libc::fcntl(*fd, libc::F_DUPFD_CLOEXEC, free) })?;
    }
    for (aside, place) in aside[..fds.len()].iter().zip(FIRST_DESCRIPTOR..) {
        // SAFETY: as above.
        check_errno(unsafe { libc::dup2(*aside, place) })?;
    }
    Ok(())
}

/// A signal mask survives exec; a worker starts with none blocked.
fn unblock_signals() {
    // SAFETY: the set is only read.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &signal_set(&[]), std::ptr::null_mut()) };
}

/// Returns true if a child was stopped since the last call (`SIGSTOP`, `SIGTSTP`), or went on; false if it has ended.
/// The kernel keeps that for its parent (waitid(2)), and tells it by `SIGCHLD`.
pub fn was_halted(child: &Child) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(Some(_)))
}

/// Makes this process die with the process `parent` (`PR_SET_PDEATHSIG`). The setting of [`Lifetime::WithParent`] does
/// not outlive the exec of a binary with file capabilities, so that a process that must not stay behind repeats it.
///
/// # Errors
/// The parent has already ended.
pub fn die_with(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match rustix::process::getppid() {
        Some(now) if now.as_raw_nonzero().get() as u32 == parent => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Takes over the inherited descriptor `FIRST_DESCRIPTOR + index`.
///
/// # Errors
/// The process was not started by [`spawn`] with that many descriptors, or
/// the descriptor was taken before.
pub fn take_descriptor(index: u32) -> io::Result<OwnedFd> {
    let number = index.checked_add(FIRST_DESCRIPTOR as u32).filter(|number| stdio::take_inherited(*number));
    let number = number.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "no such descriptor was inherited, or it was taken before")
    })?;
    // SAFETY: the descriptor is open since before `main`, so that nothing in this process owns it, and is
    // taken only once.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number as RawFd) };
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_opened_is_not_inherited() {
        let own = rustix::fs::memfd_create("own", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        for index in [own.as_raw_fd() - FIRST_DESCRIPTOR, 29, 31, 32, -1].map(|index| index as u32) {
            assert!(take_descriptor(index).is_err(), "{index}");
        }
        assert!(rustix::io::fcntl_getfd(&own).is_ok());
    }
}
