//! Names of system calls that latency probes and their libraries make.

use std::borrow::Cow;

/// Number of a system call that the architecture does not have.
const NONE: u32 = u32::MAX;

/// Name, number on x86_64 (`asm/unistd_64.h`), number on aarch64
/// (`asm-generic/unistd.h`).
#[rustfmt::skip]
const SYSCALLS: &[(&str, u32, u32)] = &[
    ("accept", 43, 202),
    ("accept4", 288, 242),
    ("access", 21, NONE),
    ("alarm", 37, NONE),
    ("arch_prctl", 158, NONE),
    ("bind", 49, 200),
    ("brk", 12, 214),
    ("clock_getres", 229, 114),
    ("clock_gettime", 228, 113),
    ("clock_nanosleep", 230, 115),
    ("clone", 56, 220),
    ("clone3", 435, 435),
    ("close", 3, 57),
    ("connect", 42, 203),
    ("copy_file_range", 326, 285),
    ("dup", 32, 23),
    ("dup3", 292, 24),
    ("epoll_create1", 291, 20),
    ("epoll_ctl", 233, 21),
    ("epoll_pwait", 281, 22),
    ("epoll_wait", 232, NONE),
    ("eventfd2", 290, 19),
    ("execve", 59, 221),
    ("execveat", 322, 281),
    ("exit", 60, 93),
    ("exit_group", 231, 94),
    ("fadvise64", 221, 223),
    ("fallocate", 285, 47),
    ("fcntl", 72, 25),
    ("fdatasync", 75, 83),
    ("fork", 57, NONE),
    ("fstat", 5, 80),
    ("fsync", 74, 82),
    ("ftruncate", 77, 46),
    ("futex", 202, 98),
    ("futex_waitv", 449, 449),
    ("getcpu", 309, 168),
    ("getdents64", 217, 61),
    ("getitimer", 36, 102),
    ("getpid", 39, 172),
    ("getppid", 110, 173),
    ("getrandom", 318, 278),
    ("getrusage", 98, 165),
    ("getsockopt", 55, 209),
    ("gettid", 186, 178),
    ("io_uring_enter", 426, 426),
    ("io_uring_setup", 425, 425),
    ("ioctl", 16, 29),
    ("kill", 62, 129),
    ("listen", 50, 201),
    ("lseek", 8, 62),
    ("lstat", 6, NONE),
    ("madvise", 28, 233),
    ("mbind", 237, 235),
    ("membarrier", 324, 283),
    ("memfd_create", 319, 279),
    ("mincore", 27, 232),
    ("mkdir", 83, NONE),
    ("mkdirat", 258, 34),
    ("mlock", 149, 228),
    ("mlockall", 151, 230),
    ("mmap", 9, 222),
    ("move_pages", 279, 239),
    ("mprotect", 10, 226),
    ("mq_open", 240, 180),
    ("mq_timedreceive", 243, 183),
    ("mq_timedsend", 242, 182),
    ("mremap", 25, 216),
    ("msgrcv", 70, 188),
    ("msgsnd", 69, 189),
    ("msync", 26, 227),
    ("munlock", 150, 229),
    ("munmap", 11, 215),
    ("nanosleep", 35, 101),
    ("newfstatat", 262, 79),
    ("open", 2, NONE),
    ("openat", 257, 56),
    ("pause", 34, NONE),
    ("perf_event_open", 298, 241),
    ("pipe", 22, NONE),
    ("pipe2", 293, 59),
    ("poll", 7, NONE),
    ("ppoll", 271, 73),
    ("prctl", 157, 167),
    ("pread64", 17, 67),
    ("prlimit64", 302, 261),
    ("pselect6", 270, 72),
    ("pwrite64", 18, 68),
    ("read", 0, 63),
    ("readv", 19, 65),
    ("recvfrom", 45, 207),
    ("recvmsg", 47, 212),
    ("rename", 82, NONE),
    ("renameat2", 316, 276),
    ("restart_syscall", 219, 128),
    ("rseq", 334, 293),
    ("rt_sigaction", 13, 134),
    ("rt_sigprocmask", 14, 135),
    ("rt_sigreturn", 15, 139),
    ("rt_sigsuspend", 130, 133),
    ("rt_sigtimedwait", 128, 137),
    ("rt_tgsigqueueinfo", 297, 240),
    ("sched_getaffinity", 204, 123),
    ("sched_getattr", 315, 275),
    ("sched_getscheduler", 145, 120),
    ("sched_setaffinity", 203, 122),
    ("sched_setattr", 314, 274),
    ("sched_setscheduler", 144, 119),
    ("sched_yield", 24, 124),
    ("select", 23, NONE),
    ("semctl", 66, 191),
    ("semget", 64, 190),
    ("semop", 65, 193),
    ("semtimedop", 220, 192),
    ("sendfile", 40, 71),
    ("sendmsg", 46, 211),
    ("sendto", 44, 206),
    ("set_mempolicy", 238, 237),
    ("set_robust_list", 273, 99),
    ("set_tid_address", 218, 96),
    ("setitimer", 38, 103),
    ("setsockopt", 54, 208),
    ("shmat", 30, 196),
    ("shutdown", 48, 210),
    ("sigaltstack", 131, 132),
    ("signalfd4", 289, 74),
    ("socket", 41, 198),
    ("socketpair", 53, 199),
    ("stat", 4, NONE),
    ("statx", 332, 291),
    ("tgkill", 234, 131),
    ("timerfd_create", 283, 85),
    ("timerfd_settime", 286, 86),
    ("tkill", 200, 130),
    ("uname", 63, 160),
    ("unlink", 87, NONE),
    ("unlinkat", 263, 35),
    ("vfork", 58, NONE),
    ("wait4", 61, 260),
    ("waitid", 247, 95),
    ("write", 1, 64),
    ("writev", 20, 66),
];

/// Returns the name of a system call on an architecture as `uname -m` names it; `syscall 999` if the call is
/// not known.
pub fn syscall_name(architecture: &str, number: u32) -> Cow<'static, str> {
    let found = match architecture {
        "x86_64" => SYSCALLS.iter().find(|call| call.1 == number),
        "aarch64" => SYSCALLS.iter().find(|call| call.2 == number),
        _ => None,
    };
    match found {
        Some((name, ..)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("syscall {number}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_the_architecture_says() {
        assert_eq!(syscall_name("x86_64", 202), "futex");
        assert_eq!(syscall_name("aarch64", 98), "futex");
        assert_eq!(syscall_name("aarch64", 435), "clone3");
        assert_eq!(syscall_name("x86_64", 24), "sched_yield");
        assert_eq!(syscall_name("x86_64", 9999), "syscall 9999");
        assert_eq!(syscall_name("riscv64", 98), "syscall 98");
    }

    #[test]
    fn no_number_has_two_names() {
        for column in [|call: &(&str, u32, u32)| call.1, |call: &(&str, u32, u32)| call.2] {
            let mut numbers: Vec<u32> =
                SYSCALLS.iter().map(column).filter(|number| *number != NONE).collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
    }
}
