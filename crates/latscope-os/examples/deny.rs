//! Runs a command to which the kernel refuses some system calls, as the
//! seccomp filters of containers do: `deny EPERM sched_setattr,mlockall CMD ARGS…`.
//!
//! In place of a system call the list may hold `huge-pages`: then the kernel
//! makes no transparent huge pages for the command (`PR_SET_THP_DISABLE`).

use std::ffi::{c_long, c_ulong};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What can be refused by name.
const CALLS: &[(&str, c_long)] = &[
    ("clone3", libc::SYS_clone3),
    ("close_range", libc::SYS_close_range),
    ("copy_file_range", libc::SYS_copy_file_range),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("eventfd2", libc::SYS_eventfd2),
    ("faccessat2", libc::SYS_faccessat2),
    ("fsync", libc::SYS_fsync),
    ("getrandom", libc::SYS_getrandom),
    ("getrusage", libc::SYS_getrusage),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("mlockall", libc::SYS_mlockall),
    ("openat2", libc::SYS_openat2),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("rseq", libc::SYS_rseq),
    ("sched_getattr", libc::SYS_sched_getattr),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("sched_setattr", libc::SYS_sched_setattr),
    ("sched_setscheduler", libc::SYS_sched_setscheduler),
    ("seccomp", libc::SYS_seccomp),
    ("signalfd4", libc::SYS_signalfd4),
    ("socketpair", libc::SYS_socketpair),
    ("statx", libc::SYS_statx),
    ("timer_create", libc::SYS_timer_create),
    ("timerfd_create", libc::SYS_timerfd_create),
    ("unshare", libc::SYS_unshare),
];

const ERRORS: &[(&str, i32)] =
    &[("EACCES", libc::EACCES), ("EINVAL", libc::EINVAL), ("ENOSYS", libc::ENOSYS), ("EPERM", libc::EPERM)];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [error, list, program, rest @ ..] = &arguments[..] else {
        eprintln!("usage: deny ERROR CALL,… COMMAND [ARGUMENT…]");
        return ExitCode::FAILURE;
    };
    let outcome = refuse(error, list).map(|()| Command::new(program).args(rest).exec());
    let failure = outcome.unwrap_or_else(|failure| failure);
    eprintln!("deny: {failure}");
    ExitCode::FAILURE
}

fn refuse(error: &str, list: &str) -> io::Result<()> {
    let errno = lookup(ERRORS, error)?;
    let (state, calls): (Vec<&str>, Vec<&str>) = list.split(',').partition(|name| *name == "huge-pages");
    if !state.is_empty() {
        control(libc::PR_SET_THP_DISABLE, 1)?;
    }
    let numbers: Vec<c_long> = calls.into_iter().map(|name| lookup(CALLS, name)).collect::<Result<_, _>>()?;
    if numbers.is_empty() { Ok(()) } else { install(&program(&numbers, errno)) }
}

fn lookup<T: Copy>(table: &[(&str, T)], name: &str) -> io::Result<T> {
    let found = table.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not known here")))
}

/// A filter that answers `calls` with `errno` and lets all else pass (seccomp(2)).
fn program(calls: &[c_long], errno: i32) -> Vec<libc::sock_filter> {
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let equal = |value, yes, no| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, yes, no);
    let answer = |value| step(libc::BPF_RET | libc::BPF_K, value, 0, 0);
    // Offsets in seccomp_data: the call's number first, then the architecture.
    let mut filter = vec![load(4), equal(ARCHITECTURE, 1, 0), answer(libc::SECCOMP_RET_ALLOW), load(0)];
    for call in calls {
        filter.push(equal(*call as u32, 0, 1));
        filter.push(answer(libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    filter
}

fn step(code: u32, value: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    control(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_MODE_FILTER as c_ulong;
    // SAFETY: the kernel copies the filter, which lives until the call returns, and writes nothing to it.
    succeeded(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) })
}

/// Sets an attribute of this process that takes a number (prctl(2)).
fn control(attribute: i32, value: c_ulong) -> io::Result<()> {
    let unused: c_ulong = 0;
    // SAFETY: the attributes used here take plain numbers and no pointer.
    succeeded(unsafe { libc::prctl(attribute, value, unused, unused, unused) })
}

fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
