//! Loops around system calls, of which copies lie at several addresses.
//!
//! The time of a call can depend on the address of the loop around it: the kernel's branches share the predictors of
//! the processor with those of the program. One address is a sample of one.

use super::assembler::{Argument, CodeAssembler, SystemCallSpec};
use super::executable;
use crate::kernels::random::ShuffleGenerator;
use crate::mapping::MemoryMapping;
use crate::page;
use crate::signal_probe::SelfSignal;
use crate::syscall::syscall;
use rustix::event::PollFd;
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::fs::CWD;
use rustix::io::{Errno, Result};
use rustix::io_uring::IoringEnterFlags;
use rustix::mm::ProtFlags;
use rustix::thread::MembarrierCommand;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::time::Duration;

/// Copies of a loop.
pub const COPIES: usize = 16;

/// Addresses of copies have so many bits: those that a program has on every architecture with 64 bits.
const BITS: u32 = 38;
const PAGE_BITS: u32 = 12;
/// A copy begins at a multiple of this in its page: a line of every cache.
const LINE: usize = 64;
const LINES: u64 = 48;

/// Memory that the kernel reads or writes, for the arguments of a call.
type SystemCallBuffer = Box<[usize]>;

/// Events that epoll_wait(2) can return.
const EVENTS: usize = 64;

/// Words of memory: those of so many events, and more than a `struct stat` has.
const WORDS: usize = EVENTS * 16 / size_of::<usize>();

fn answer_buffer() -> SystemCallBuffer {
    vec![0; WORDS].into()
}

/// A system call, or two, in a loop that does nothing else; the instructions are in fresh pages.
///
/// It has one address, that of a compiled loop, where instructions cannot be generated.
#[derive(Debug)]
pub struct SystemCallLoop<'a> {
    calls: Vec<SystemCallSpec>,
    /// The mapping of each copy, and the offset of the copy in it.
    copies: Vec<(MemoryMapping, usize)>,
    iterations: u64,
    _answer: Option<SystemCallBuffer>,
    _borrowed: PhantomData<&'a mut [u8]>,
}

impl<'a> SystemCallLoop<'a> {
    /// Returns a loop of getppid(2). The copies of loops with the same seed are at the same addresses, if there is
    /// room.
    pub fn getppid(seed: u64) -> SystemCallLoop<'static> {
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_getppid, &[])], None)
    }

    /// Returns a loop of sched_yield(2).
    pub fn sched_yield(seed: u64) -> SystemCallLoop<'static> {
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_sched_yield, &[])], None)
    }

    /// Returns a loop of clock_gettime(2) on `CLOCK_MONOTONIC`.
    pub fn clock_gettime(seed: u64) -> SystemCallLoop<'static> {
        let mut answer = answer_buffer();
        let arguments = [libc::CLOCK_MONOTONIC as usize, answer.as_mut_ptr() as usize];
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_clock_gettime, &arguments)], Some(answer))
    }

    /// Returns a loop of read(2) from a file.
    pub fn read(seed: u64, file: BorrowedFd<'a>, buffer: &'a mut [u8]) -> SystemCallLoop<'a> {
        let arguments = [descriptor_argument(file), buffer.as_mut_ptr() as usize, buffer.len()];
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_read, &arguments)], None)
    }

    /// Returns a loop of write(2) to a file.
    pub fn write(seed: u64, file: BorrowedFd<'a>, bytes: &'a [u8]) -> SystemCallLoop<'a> {
        let arguments = [descriptor_argument(file), bytes.as_ptr() as usize, bytes.len()];
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_write, &arguments)], None)
    }

    /// Returns a loop of fstat(2) of an open file.
    pub fn fstat(seed: u64, file: BorrowedFd<'a>) -> SystemCallLoop<'a> {
        let mut answer = answer_buffer();
        let arguments = [descriptor_argument(file), answer.as_mut_ptr() as usize];
        SystemCallLoop::from_calls(seed, vec![call_spec(FSTAT, &arguments)], Some(answer))
    }

    /// Returns a loop of stat(2) of a path.
    pub fn stat(seed: u64, path: &'a CStr) -> SystemCallLoop<'a> {
        SystemCallLoop::stat_in(seed, CWD, path)
    }

    /// Returns a loop of fstatat(2) of a path in an open directory.
    pub fn stat_in(seed: u64, directory: BorrowedFd<'a>, path: &'a CStr) -> SystemCallLoop<'a> {
        let mut answer = answer_buffer();
        let arguments =
            [descriptor_argument(directory), path.as_ptr() as usize, answer.as_mut_ptr() as usize, 0];
        SystemCallLoop::from_calls(seed, vec![call_spec(FSTATAT, &arguments)], Some(answer))
    }

    /// Returns a loop of open(2) of a path for reading, and close(2).
    pub fn open_close(seed: u64, path: &'a CStr) -> SystemCallLoop<'a> {
        SystemCallLoop::open_close_in(seed, CWD, path)
    }

    /// Returns a loop of openat(2) of a path in an open directory for reading, and close(2).
    pub fn open_close_in(seed: u64, directory: BorrowedFd<'a>, path: &'a CStr) -> SystemCallLoop<'a> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let arguments = [descriptor_argument(directory), path.as_ptr() as usize, flags as usize, 0];
        let calls = vec![call_spec(libc::SYS_openat, &arguments), close_answer()];
        SystemCallLoop::from_calls(seed, calls, None)
    }

    /// Returns a loop of two renames in an open directory: of `one` to `other`, and back.
    pub fn rename_and_back(
        seed: u64,
        directory: BorrowedFd<'a>,
        one: &'a CStr,
        other: &'a CStr,
    ) -> SystemCallLoop<'a> {
        let rename = |from: &CStr, to: &CStr| {
            let (directory, from, to) =
                (descriptor_argument(directory), from.as_ptr() as usize, to.as_ptr() as usize);
            call_spec(libc::SYS_renameat2, &[directory, from, directory, to, 0])
        };
        SystemCallLoop::from_calls(seed, vec![rename(one, other), rename(other, one)], None)
    }

    /// Returns a loop of pread(2) from an offset of a file.
    pub fn pread(seed: u64, file: BorrowedFd<'a>, buffer: &'a mut [u8], offset: u32) -> SystemCallLoop<'a> {
        let arguments = [descriptor_argument(file), buffer.as_mut_ptr() as usize, buffer.len()];
        SystemCallLoop::from_calls(
            seed,
            vec![call_spec(libc::SYS_pread64, &[&arguments[..], &offset_arguments(offset)].concat())],
            None,
        )
    }

    /// Returns a loop of membarrier(2).
    pub fn membarrier(seed: u64, command: MembarrierCommand) -> SystemCallLoop<'static> {
        SystemCallLoop::from_calls(
            seed,
            vec![call_spec(libc::SYS_membarrier, &[command as usize, 0, 0])],
            None,
        )
    }

    /// Returns a loop of timerfd_settime(2), which lets a timer expire once, so long after the call.
    pub fn set_timer(seed: u64, timer: BorrowedFd<'a>, from_now: Duration) -> SystemCallLoop<'a> {
        let mut setting = answer_buffer();
        // A `struct itimerspec`: no interval, then seconds and nanoseconds.
        setting[2..4].copy_from_slice(&[from_now.as_secs() as usize, from_now.subsec_nanos() as usize]);
        let arguments = [descriptor_argument(timer), 0, setting.as_mut_ptr() as usize, 0];
        SystemCallLoop::from_calls(
            seed,
            vec![call_spec(libc::SYS_timerfd_settime, &arguments)],
            Some(setting),
        )
    }

    /// Returns a loop of rt_sigaction(2), which installs the handler of this signal once more.
    pub fn install_signal(seed: u64, signal: &'a SelfSignal) -> SystemCallLoop<'a> {
        SystemCallLoop::from_calls(
            seed,
            vec![call_spec(libc::SYS_rt_sigaction, &signal.sigaction_arguments())],
            None,
        )
    }

    /// Returns a loop of tgkill(2), which sends this signal to the calling thread.
    pub fn deliver_signal(seed: u64, signal: &'a SelfSignal) -> SystemCallLoop<'a> {
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_tgkill, &signal.tgkill_arguments())], None)
    }

    /// Returns a loop of epoll_wait(2) with a zero timeout.
    pub fn epoll_wait(seed: u64, set: BorrowedFd<'a>) -> SystemCallLoop<'a> {
        let mut events = answer_buffer();
        let arguments = [descriptor_argument(set), events.as_mut_ptr() as usize, EVENTS, 0, 0, 0];
        SystemCallLoop::from_calls(seed, vec![call_spec(EPOLL_WAIT, &arguments)], Some(events))
    }

    /// Returns a loop of poll(2) with a zero timeout: ppoll(2), which every architecture has.
    pub fn poll(seed: u64, list: &'a mut [PollFd<'_>]) -> SystemCallLoop<'a> {
        let mut zero = answer_buffer();
        let arguments = [list.as_mut_ptr() as usize, list.len(), zero.as_mut_ptr() as usize, 0, 0];
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_ppoll, &arguments)], Some(zero))
    }

    /// Returns a loop of getrandom(2).
    pub fn random(seed: u64, buffer: &'a mut [u8]) -> SystemCallLoop<'a> {
        let arguments = [buffer.as_mut_ptr() as usize, buffer.len(), 0];
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_getrandom, &arguments)], None)
    }

    /// Returns a loop of two calls of mprotect(2) on memory that can be written: to read-only, and back.
    pub fn protect_and_back(seed: u64, memory: &'a mut page::PageMapping) -> SystemCallLoop<'a> {
        let [start, length] = memory.writable_range();
        let protect =
            |access: ProtFlags| call_spec(libc::SYS_mprotect, &[start, length, access.bits() as usize]);
        let calls = vec![protect(ProtFlags::READ), protect(ProtFlags::READ | ProtFlags::WRITE)];
        SystemCallLoop::from_calls(seed, calls, None)
    }

    /// Returns a loop of pidfd_open(2) of the own process, and close(2).
    pub fn pidfd_open_close(seed: u64) -> SystemCallLoop<'static> {
        let own = rustix::process::getpid().as_raw_nonzero().get() as usize;
        let calls = vec![call_spec(libc::SYS_pidfd_open, &[own, 0]), close_answer()];
        SystemCallLoop::from_calls(seed, calls, None)
    }

    /// Returns a loop of io_uring_enter(2) that submits and awaits so many operations. What they do is up to the owner
    /// of the queue.
    pub(crate) fn enter_ring(seed: u64, ring: RawFd, operations: u32) -> SystemCallLoop<'static> {
        let (operations, awaited) = (operations as usize, IoringEnterFlags::GETEVENTS.bits() as usize);
        let arguments = [ring as usize, operations, operations, awaited, 0, 0];
        SystemCallLoop::from_calls(seed, vec![call_spec(libc::SYS_io_uring_enter, &arguments)], None)
    }

    fn from_calls(
        seed: u64,
        calls: Vec<SystemCallSpec>,
        answer: Option<SystemCallBuffer>,
    ) -> SystemCallLoop<'a> {
        let copies = copies(seed, &calls).unwrap_or_default();
        SystemCallLoop { calls, copies, iterations: 0, _answer: answer, _borrowed: PhantomData }
    }

    /// Returns the number of addresses at which the loop lies.
    pub fn address_count(&self) -> usize {
        self.copies.len().max(1)
    }

    /// Returns how many iterations were run without an error.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Runs the loop so many times at the address with this number.
    ///
    /// # Errors
    /// A call failed: the error of the call that fails when the loop is run once more, otherwise `EIO`.
    ///
    /// # Panics
    /// There are not so many addresses.
    pub fn run_at(&mut self, address: usize, iterations: u64) -> Result<()> {
        if iterations == 0 {
            return Ok(());
        }
        let Some((memory, offset)) = self.copies.get(address) else {
            assert!(address < self.address_count());
            return (0..iterations)
                .try_for_each(|_| self.run_once())
                .inspect(|()| self.iterations += iterations);
        };
        // SAFETY: the copy is within its mapping. Its system calls are those of a constructor, whose arguments live as
        // long as the loop; nothing else refers to what the kernel writes.
        let answers = unsafe { enter_loop(memory.start.as_ptr().add(*offset), iterations) };
        if answers < 0 {
            return self.run_once().and(Err(Errno::IO));
        }
        self.iterations += iterations;
        Ok(())
    }

    /// Makes the calls once.
    fn run_once(&self) -> Result<()> {
        let mut answer = 0;
        for (number, arguments) in &self.calls {
            let mut all = [0; 6];
            for (place, argument) in all.iter_mut().zip(arguments) {
                *place = match argument {
                    Argument::Is(value) => *value,
                    Argument::Answer => answer,
                };
            }
            // SAFETY: as in `run`.
            answer = unsafe { syscall(libc::c_long::from(*number as i32), all)? };
        }
        Ok(())
    }
}

#[cfg(target_pointer_width = "64")]
const FSTAT: libc::c_long = libc::SYS_fstat;
#[cfg(target_pointer_width = "64")]
const FSTATAT: libc::c_long = libc::SYS_newfstatat;
#[cfg(target_pointer_width = "32")]
const FSTAT: libc::c_long = libc::SYS_fstat64;
#[cfg(target_pointer_width = "32")]
const FSTATAT: libc::c_long = libc::SYS_fstatat64;

#[cfg(target_arch = "x86_64")]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_wait;
#[cfg(not(target_arch = "x86_64"))]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_pwait;

fn call_spec(number: libc::c_long, arguments: &[usize]) -> SystemCallSpec {
    (number as u32, arguments.iter().map(|value| Argument::Is(*value)).collect())
}

/// Closes the descriptor that the call before returned.
fn close_answer() -> SystemCallSpec {
    (libc::SYS_close as u32, vec![Argument::Answer])
}

/// An offset in a file as arguments: where a register has 32 bits, of arm and others, in a pair behind an unused one.
fn offset_arguments(offset: u32) -> Vec<usize> {
    if cfg!(target_pointer_width = "64") { vec![offset as usize] } else { vec![0, offset as usize, 0] }
}

fn descriptor_argument(file: BorrowedFd) -> usize {
    file.as_raw_fd() as usize
}

/// Puts copies of a loop at random addresses.
fn copies(seed: u64, calls: &[SystemCallSpec]) -> Result<Vec<(MemoryMapping, usize)>> {
    let code = CodeAssembler::for_host().ok_or(Errno::NOSYS)?.system_calls(calls);
    let mut random = ShuffleGenerator::new(seed);
    let mut copy = || {
        let page = 1 + random.below((1 << (BITS - PAGE_BITS)) - 1);
        let offset = random.below(LINES) as usize * LINE;
        Ok((executable((page << PAGE_BITS) as usize, offset, &code)?, offset))
    };
    (0..COPIES).map(|_| copy()).collect()
}

/// Runs a loop of system calls, and returns all answers joined by a bitwise or: negative if one was an error.
///
/// # Safety
/// At `entry` is such a loop, whose system calls are sound.
unsafe fn enter_loop(entry: *const u8, iterations: u64) -> i64 {
    let mut answers = 0_i64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for the loop. It counts r12 down to zero, joins answers in r13, changes the registers
    // of arguments and those that the kernel destroys, and returns with the stack as it was.
    unsafe {
        core::arch::asm!(
            "call {entry}",
            entry = in(reg) entry,
            inout("r12") iterations => _, inout("r13") answers,
            out("rax") _, out("rcx") _, out("r11") _,
            out("rdi") _, out("rsi") _, out("rdx") _, out("r10") _, out("r8") _, out("r9") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above, with x20, x21, and the registers of arguments.
    unsafe {
        core::arch::asm!(
            "blr {entry}",
            entry = in(reg) entry,
            inout("x20") iterations => _, inout("x21") answers,
            out("x0") _, out("x1") _, out("x2") _, out("x3") _, out("x4") _, out("x5") _, out("x8") _,
            out("x30") _,
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (entry, iterations, &mut answers);
    answers
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, PollFlags, epoll, eventfd};
    use rustix::fd::AsFd;
    use rustix::thread::membarrier;
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create, timerfd_gettime};
    use std::collections::BTreeSet;
    use std::fs::File;

    /// Places in the address space.
    fn places(calls: &SystemCallLoop) -> Vec<usize> {
        calls.copies.iter().map(|(memory, offset)| memory.start.as_ptr() as usize + offset).collect()
    }

    #[test]
    fn every_copy_makes_the_calls() {
        let (zero, null) =
            (File::open("/dev/zero").unwrap(), File::options().write(true).open("/dev/null").unwrap());
        let mut buffer = [7; 3];
        let mut loops = [
            SystemCallLoop::getppid(1),
            SystemCallLoop::sched_yield(1),
            SystemCallLoop::clock_gettime(1),
            SystemCallLoop::read(1, zero.as_fd(), &mut buffer),
            SystemCallLoop::write(1, null.as_fd(), b"text"),
            SystemCallLoop::fstat(1, null.as_fd()),
            SystemCallLoop::stat(1, c"/etc"),
            SystemCallLoop::open_close(1, c"/etc"),
            SystemCallLoop::membarrier(1, MembarrierCommand::PrivateExpedited),
        ];
        membarrier(MembarrierCommand::RegisterPrivateExpedited).unwrap();
        loops.iter_mut().for_each(runs_at_each_address);
        drop(loops);
        assert_eq!(buffer, [0; 3]);
    }

    fn runs_at_each_address(calls: &mut SystemCallLoop) {
        assert_eq!(calls.address_count(), COPIES);
        for address in 0..COPIES {
            for iterations in [0, 1, 100] {
                assert_eq!(calls.run_at(address, iterations), Ok(()), "{calls:?}");
            }
        }
    }

    #[test]
    fn a_process_is_opened_and_closed_at_each_address() {
        runs_at_each_address(&mut SystemCallLoop::pidfd_open_close(1));
    }

    #[test]
    fn the_kernel_does_what_a_copy_asks_for() {
        let mut calls = SystemCallLoop::clock_gettime(2);
        calls.run_at(COPIES - 1, 1).unwrap();
        assert!(calls._answer.unwrap()[..2].iter().any(|word| *word != 0));
        let pipe = std::io::pipe().unwrap();
        SystemCallLoop::write(2, pipe.1.as_fd(), b"ab").run_at(3, 4).unwrap();
        drop(pipe.1);
        assert_eq!(std::io::read_to_string(pipe.0).unwrap(), "abababab");
        let mut random = [0; 16];
        SystemCallLoop::random(2, &mut random).run_at(4, 1).unwrap();
        assert_ne!(random, [0; 16]);
    }

    #[test]
    fn files_are_read_and_renamed_as_asked() {
        let directory = std::env::temp_dir().join(format!("latscope-calls-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("one"), b"abcdef").unwrap();
        let (file, open) = (File::open(directory.join("one")).unwrap(), File::open(&directory).unwrap());
        let mut read = [0; 3];
        SystemCallLoop::pread(6, file.as_fd(), &mut read, 2).run_at(1, 3).unwrap();
        assert_eq!(&read, b"cde");
        let mut rename = SystemCallLoop::rename_and_back(6, open.as_fd(), c"one", c"other");
        rename.run_at(2, 3).unwrap();
        SystemCallLoop::stat_in(6, open.as_fd(), c"one").run_at(3, 2).unwrap();
        SystemCallLoop::open_close_in(6, open.as_fd(), c"one").run_at(3, 2).unwrap();
        std::fs::remove_file(directory.join("one")).unwrap();
        assert_eq!(rename.run_at(2, 1), Err(Errno::NOENT));
        std::fs::remove_dir(directory).unwrap();
    }

    #[test]
    fn timers_signals_and_events_are_those_given() {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
        SystemCallLoop::set_timer(7, timer.as_fd(), Duration::from_secs(5000)).run_at(0, 2).unwrap();
        let left = timerfd_gettime(&timer).unwrap();
        assert!((4000..=5000).contains(&left.it_value.tv_sec) && left.it_interval.tv_sec == 0, "{left:?}");
        let signal = SelfSignal::install_handler().unwrap();
        let before = signal.delivery_count();
        SystemCallLoop::install_signal(7, &signal).run_at(1, 3).unwrap();
        SystemCallLoop::deliver_signal(7, &signal).run_at(2, 3).unwrap();
        assert_eq!(signal.delivery_count() - before, 3);
        let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(&set, &ready, epoll::EventData::new_u64(9), epoll::EventFlags::IN).unwrap();
        SystemCallLoop::epoll_wait(7, set.as_fd()).run_at(3, 2).unwrap();
        let mut list = [PollFd::new(&ready, PollFlags::IN)];
        SystemCallLoop::poll(7, &mut list).run_at(4, 2).unwrap();
        assert_eq!(list[0].revents(), PollFlags::IN);
    }

    #[test]
    fn memory_is_writable_again_after_each_iteration() {
        let mut memory = page::PageMapping::anonymous(page::page_size()).unwrap();
        SystemCallLoop::protect_and_back(8, &mut memory).run_at(1, 3).unwrap();
        memory.write_byte(0);
        assert_eq!(memory.read_byte(0), 1);
    }

    #[test]
    fn a_call_that_fails_is_an_error() {
        let null = File::open("/dev/null").unwrap();
        assert_eq!(SystemCallLoop::write(3, null.as_fd(), b"x").run_at(0, 5), Err(Errno::BADF));
        assert_eq!(SystemCallLoop::open_close(3, c"/no such path").run_at(9, 5), Err(Errno::NOENT));
    }

    #[test]
    fn addresses_are_apart_and_the_same_for_a_seed() {
        let first = SystemCallLoop::getppid(4);
        let kept = places(&first);
        assert_eq!(BTreeSet::from_iter(kept.iter().map(|place| place >> PAGE_BITS)).len(), COPIES);
        assert!(BTreeSet::from_iter(kept.iter().map(|place| place % 4096)).len() > COPIES / 2);
        drop(first);
        assert_eq!(places(&SystemCallLoop::sched_yield(4)), kept);
        assert_ne!(places(&SystemCallLoop::getppid(5)), kept);
    }
}
