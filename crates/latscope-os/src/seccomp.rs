//! Filters of system calls that allow every call: seccomp(2). An installed filter cannot be removed; it ends with its
//! thread.

use crate::syscall::{check_errno, syscall};
use rustix::io::Result;
use std::io;

latscope_core::words! {
    /// Fact on a call that the verdict of a filter depends on.
    pub enum Looks {
        /// The verdict depends on the first argument: the filter is executed on every call.
        Argument = "by-argument",
        /// The verdict depends on the call alone: the kernel (since Linux 5.11) keeps it.
        Number = "by-number",
    }
}

/// Instructions of a filter that allows every call.
#[derive(Clone)]
pub struct SeccompFilter(Vec<libc::sock_filter>);

/// Most instructions of a filter.
pub const MOST: usize = 4096;

/// Codes of classic BPF: load a word, compare it, return.
const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Places in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARGUMENT: u32 = 16;

impl SeccompFilter {
    /// Returns a filter of so many instructions, all of which are executed: a load, comparisons that decide nothing,
    /// and the verdict. `None` if there is no such filter: the verdict is one instruction, and with a load at least
    /// two.
    pub fn new(instructions: usize, looks: Looks) -> Option<SeccompFilter> {
        let (least, place) = match looks {
            Looks::Number => (1, NUMBER),
            Looks::Argument => (2, ARGUMENT),
        };
        if !(least..=MOST).contains(&instructions) {
            return None;
        }
        let instruction = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
        let load = (instructions > 1).then(|| instruction(LOAD, place));
        let compared = (2..instructions as u32).map(|value| instruction(IF_EQUAL, u32::MAX - value));
        let allow = instruction(RETURN, libc::SECCOMP_RET_ALLOW);
        Some(SeccompFilter(load.into_iter().chain(compared).chain([allow]).collect()))
    }

    /// Installs the filter for the calling thread and its future children, which get no new privileges from then on.
    ///
    /// # Errors
    /// `ENOSYS`, `EINVAL`: a kernel without filters. `EPERM`: another filter refuses it. `ENOMEM`: too many
    /// instructions in all filters of the thread.
    pub fn install_for_thread(&self) -> io::Result<()> {
        let program = libc::sock_fprog { len: self.0.len() as u16, filter: self.0.as_ptr().cast_mut() };
        // SAFETY: the first call takes numbers; the second one reads the program, which lives as long as it, and
        // refuses no call of this process later.
        unsafe {
            check_errno(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
            let answer: Result<usize> =
                syscall(libc::SYS_seccomp, [mode, 0, &raw const program as usize, 0, 0, 0]);
            Ok(answer.map(drop)?)
        }
    }
}

/// Number of filters of the calling thread; `None` before Linux 5.9.
pub fn filter_count() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a filter answers to a call, and the number of its instructions that were executed.
    fn execute(filter: &SeccompFilter, number: u32, argument: u32) -> (u32, usize) {
        let (mut word, mut at, mut executed) = (0, 0, 0);
        loop {
            let instruction = filter.0[at];
            executed += 1;
            at += 1;
            match instruction.code {
                LOAD => word = if instruction.k == NUMBER { number } else { argument },
                IF_EQUAL => {
                    at += usize::from(if word == instruction.k { instruction.jt } else { instruction.jf })
                }
                _ => return (instruction.k, executed),
            }
        }
    }

    #[test]
    fn every_call_is_allowed_after_all_instructions() {
        for (count, looks) in
            [(1, Looks::Number), (2, Looks::Argument), (100, Looks::Number), (MOST, Looks::Argument)]
        {
            let filter = SeccompFilter::new(count, looks).unwrap();
            for value in [0, 7, u32::MAX, u32::MAX - 2] {
                assert_eq!(execute(&filter, value, value), (libc::SECCOMP_RET_ALLOW, count));
            }
        }
        assert!(
            SeccompFilter::new(0, Looks::Number).is_none()
                && SeccompFilter::new(1, Looks::Argument).is_none()
        );
        assert!(SeccompFilter::new(MOST + 1, Looks::Number).is_none());
    }

    #[test]
    fn a_filter_is_that_of_its_thread_and_goes_with_it() {
        let before = filter_count();
        let within = std::thread::spawn(|| {
            SeccompFilter::new(100, Looks::Argument).unwrap().install_for_thread().unwrap();
            filter_count()
        });
        assert_eq!(within.join().unwrap(), before.map(|count| count + 1));
        assert_eq!(filter_count(), before);
    }
}
