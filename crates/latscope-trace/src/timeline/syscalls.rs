//! Names of system calls.

use std::borrow::Cow;
use syscall_numbers::{aarch64, x86_64};

/// Returns the name of a system call on an architecture as `uname -m` names it; `syscall 999` if the call is
/// not known.
pub fn syscall_name(architecture: &str, number: u32) -> Cow<'static, str> {
    let name = match architecture {
        "x86_64" => x86_64::sys_call_name(number as _),
        "aarch64" => aarch64::sys_call_name(number as _),
        _ => None,
    };
    name.map_or_else(|| format!("syscall {number}").into(), Cow::Borrowed)
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
        assert_eq!(syscall_name("x86_64", u32::MAX), "syscall 4294967295");
        assert_eq!(syscall_name("riscv64", 98), "syscall 98");
    }
}
