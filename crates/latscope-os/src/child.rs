//! Small child processes beside a measurement: they make system
//! calls and nothing else, so that they can be forked from a process with
//! threads, and they die with the thread that made them.
//!
//! Sources: fork(2), prctl(2) PR_SET_PDEATHSIG, close_range(2), signal-safety(7).

use crate::mapping::MemoryMapping;
use crate::sched::{self, ThreadSchedPolicy};
use crate::syscall::check_errno;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::{read, write};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, setpgid, waitpgid};
use std::hint::black_box;
use std::io;

/// A child process; killed when this is dropped.
#[derive(Debug)]
pub struct ForkChild(Pid);

impl Drop for ForkChild {
    fn drop(&mut self) {
        // A process dies on its own CPU time, which under SCHED_IDLE a busy
        // machine may withhold for seconds: no waiting for such a one. It does
        // nothing any more, and its parent's end reaps it.
        let wait = if self.set_normal_policy() { WaitOptions::empty() } else { WaitOptions::NOHANG };
        // They can only fail for a child that is gone and reaped, which it is not.
        let _ = rustix::process::kill_process(self.0, Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.0), wait);
    }
}

impl ForkChild {
    /// Returns true if the child ended by itself, because the kernel refused it something.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(rustix::process::waitid(WaitId::Pid(self.0), options), Ok(Some(_)))
    }

    /// Gives the child the normal policy; without privilege (RLIMIT_NICE) one
    /// that has SCHED_IDLE must keep it.
    fn set_normal_policy(&self) -> bool {
        let pid = self.0.as_raw_nonzero().get();
        // SAFETY: sched_param is plain data for which zeroes are valid (its other fields differ between C libraries).
        let normal: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: the parameters are valid, and the child is ours.
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, pid, libc::SCHED_OTHER, &normal) == 0 }
    }
}

/// Starts a process that keeps `cpu` from idling: it computes without end under SCHED_IDLE, and so only when nothing
/// else wants the CPU (sched(7)).
///
/// # Errors
/// No process can be made, as fork(2). A CPU or policy that is refused ends the
/// child at once: see [`ForkChild::has_ended`].
pub fn keep_awake(cpu: u32) -> io::Result<ForkChild> {
    fork(move || {
        close_from(0);
        sched::pin(&[cpu])?;
        sched::set_policy(ThreadSchedPolicy::Idle)?;
        // Plain arithmetic: in a virtual machine a loop of pauses makes the
        // hypervisor take the CPU away.
        let mut count = 0u64;
        loop {
            count = black_box(count.wrapping_add(1));
        }
    })
}

/// Starts a process that receives a byte on `input`, sums `words` 64-bit words
/// of its own memory and sends the byte on to `output`, until `input` ends.
/// It runs on `cpu`, or else where its parent may, under `policy`.
///
/// # Errors
/// No process can be made, as fork(2). What it cannot get later (the CPU, the
/// policy, memory) ends the child: its `output` closes.
pub fn relay(
    cpu: Option<u32>,
    policy: ThreadSchedPolicy,
    input: BorrowedFd,
    output: BorrowedFd,
    words: usize,
) -> io::Result<ForkChild> {
    let (input, output) = (input.as_raw_fd(), output.as_raw_fd());
    fork(move || {
        keep_only(input, output)?;
        cpu.map_or(Ok(()), |cpu| sched::pin(&[cpu]))?;
        sched::set_policy(policy)?;
        let memory = own_words(words)?;
        let mut token = [0u8];
        loop {
            // SAFETY: 0 and 1 are open (keep_only), and `token` has room for a byte.
            let got = unsafe { libc::read(0, token.as_mut_ptr().cast(), 1) };
            if got != 1 {
                return Ok(());
            }
            black_box(sum_words(memory));
            // SAFETY: as above.
            unsafe { libc::write(1, token.as_ptr().cast(), 1) };
        }
    })
}

/// Task of one process of a message group: it reports that it is ready, waits for the start, and sends messages to all
/// of its ends in turn, or receives from its only end.
#[derive(Debug)]
pub struct Talk<'a> {
    /// Descriptor to which the process writes one byte when it is ready.
    pub ready: BorrowedFd<'a>,
    /// Descriptor that becomes readable, and is not read, when all processes are to start.
    pub start: BorrowedFd<'a>,
    /// Ends to send to, or the only end to receive from.
    pub ends: &'a [OwnedFd],
    /// True if the process sends, false if it receives.
    pub sends: bool,
    /// Messages on each of its ends.
    pub messages: u64,
}

impl Talk<'_> {
    /// Runs the task in the calling thread; a message is as long as `buffer`. Makes system calls and nothing else.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn exchange_messages(&self, buffer: &mut [u8]) -> io::Result<()> {
        write(self.ready, b"*")?;
        poll(&mut [PollFd::new(&self.start, PollFlags::IN)], None)?;
        for _ in 0..self.messages {
            for end in self.ends {
                let mut done = 0;
                while done < buffer.len() {
                    let moved = match self.sends {
                        true => write(end, &buffer[done..])?,
                        false => read(end, &mut buffer[done..])?,
                    };
                    if moved == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    done += moved;
                }
            }
        }
        Ok(())
    }
}

/// Processes of a message group, in a process group of their own; killed when dropped.
#[derive(Debug, Default)]
pub struct Talkers(Vec<ForkChild>);

impl Talkers {
    /// Adds one process, which exchanges messages as long as `buffer`.
    ///
    /// # Errors
    /// No process can be made, as fork(2).
    pub fn add_process(&mut self, talk: &Talk, buffer: &mut [u8]) -> io::Result<()> {
        let group = self.0.first().map(|first| first.0);
        let child = fork(|| talk.exchange_messages(buffer))?;
        let joined = setpgid(Some(child.0), group);
        self.0.push(child);
        Ok(joined?)
    }

    /// Returns the number of processes.
    pub fn process_count(&self) -> usize {
        self.0.len()
    }

    /// Waits until all of them have ended by themselves.
    ///
    /// # Errors
    /// A process failed.
    pub fn wait_all(mut self) -> io::Result<()> {
        let Some(group) = self.0.first().map(|first| first.0) else { return Ok(()) };
        while !self.0.is_empty() {
            let Some((ended, status)) = waitpgid(group, WaitOptions::empty())? else { continue };
            let ended = self.0.iter().position(|child| child.0 == ended);
            // Reaped already: there is nothing left to kill.
            ended.into_iter().for_each(|index| std::mem::forget(self.0.swap_remove(index)));
            if status.exit_status() != Some(0) {
                return Err(io::Error::other("one of the processes failed"));
            }
        }
        Ok(())
    }
}

/// Returns the sum of all words, modulo 2^64: the work between two hand-overs. Eight sums at once keep two loads a
/// cycle in flight even where the compiler makes no vectors of them: the static binary is optimised for size when it is
/// linked.
#[inline(never)]
pub fn sum_words(words: &[u64]) -> u64 {
    let (chunks, rest) = words.as_chunks::<8>();
    let mut sums = [0u64; 8];
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Runs `body` in a child that ends with it. `body` may only make system calls
/// and touch its own memory: another thread may hold any lock of the process,
/// the allocator's too, and no thread of the child can release it.
fn fork(body: impl FnOnce() -> io::Result<()>) -> io::Result<ForkChild> {
    let parent = rustix::process::getpid();
    // SAFETY: the child runs only `body` and the calls below, all of which are
    // plain system calls (signal-safety(7)), and leaves by _exit.
    match check_errno(unsafe { libc::fork() })? {
        0 => {
            let mortal = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_ok()
                && rustix::process::getppid() == Some(parent);
            let done = mortal && body().is_ok();
            // SAFETY: _exit runs no destructors and no handlers of the parent's.
            unsafe { libc::_exit(i32::from(!done)) }
        }
        pid => Ok(ForkChild(Pid::from_raw(pid).expect("fork returns a positive process id"))),
    }
}

/// Moves two descriptors to 0 and 1 and closes all others.
fn keep_only(input: i32, output: i32) -> io::Result<()> {
    // SAFETY: duplicating descriptors changes the child's table only.
    unsafe {
        // Both out of the way first: either may be 0 or 1.
        let input = check_errno(libc::fcntl(input, libc::F_DUPFD, 3))?;
        let output = check_errno(libc::fcntl(output, libc::F_DUPFD, 3))?;
        check_errno(libc::dup2(input, 0))?;
        check_errno(libc::dup2(output, 1))?;
    }
    close_from(2);
    Ok(())
}

/// Closes all descriptors from `first` up: a descriptor held by accident would keep a pipe open for whose end another
/// process waits.
fn close_from(first: u32) {
    // SAFETY: it changes the child's table only, and nothing in the child uses
    // the closed descriptors.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) };
    if closed != 0 {
        // Before Linux 5.9, or filtered: as many as a process usually may have.
        for descriptor in first..1024 {
            // SAFETY: as above.
            unsafe { libc::close(descriptor as i32) };
        }
    }
}

/// Anonymous memory of this process alone, every page touched.
fn own_words(words: usize) -> io::Result<&'static [u64]> {
    if words == 0 {
        return Ok(&[]);
    }
    let bytes = words.checked_mul(size_of::<u64>()).ok_or(io::ErrorKind::OutOfMemory)?;
    let memory = MemoryMapping::anonymous(bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::empty())?;
    let memory = std::mem::ManuallyDrop::new(memory);
    // SAFETY: it is never unmapped, holds `words` zeroed words, and only this process has it.
    let memory = unsafe { std::slice::from_raw_parts_mut(memory.start.cast::<u64>().as_ptr(), words) };
    // Written, not read: reading untouched pages would map one zero page for all.
    for word in memory.iter_mut() {
        *word = 1;
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::Timespec;
    use rustix::fd::AsFd;
    use rustix::pipe::pipe;

    #[test]
    fn talkers_begin_together_and_move_all_messages() {
        let (told, ready) = pipe().unwrap();
        let (start, starter) = pipe().unwrap();
        let (input, output) = pipe().unwrap();
        let (input, output) = ([input], [output]);
        let talk =
            |sends, ends| Talk { ready: ready.as_fd(), start: start.as_fd(), ends, sends, messages: 3 };
        let mut talkers = Talkers::default();
        talkers.add_process(&talk(true, &output[..]), &mut [7; 5000]).unwrap();
        talkers.add_process(&talk(false, &input[..]), &mut [0; 5000]).unwrap();
        (0..2).for_each(|_| assert_eq!(read(&told, &mut [0]), Ok(1)));
        write(&starter, b"*").unwrap();
        talkers.wait_all().unwrap();
        let mut rest = [PollFd::new(&input[0], PollFlags::IN)];
        assert_eq!(poll(&mut rest, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0));
    }

    #[test]
    fn one_that_fails_ends_all() {
        let (start, starter) = pipe().unwrap();
        write(&starter, b"*").unwrap();
        let (kept, _never) = pipe().unwrap();
        let (ready, ends) = (starter.as_fd(), [kept]);
        // A message cannot go in where messages come out.
        let talk = |sends| Talk { ready, start: start.as_fd(), ends: &ends, sends, messages: 1 };
        let mut talkers = Talkers::default();
        talkers.add_process(&talk(false), &mut [0]).unwrap();
        talkers.add_process(&talk(true), &mut [0]).unwrap();
        let pids: Vec<Pid> = talkers.0.iter().map(|child| child.0).collect();
        assert!(talkers.wait_all().is_err());
        assert!(pids.iter().all(|pid| rustix::process::test_kill_process(*pid).is_err()));
    }

    #[test]
    fn a_relay_hands_on_and_ends_with_its_input() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let (input, ours) = pipe().unwrap();
        let (result, output) = pipe().unwrap();
        let child = relay(Some(cpu), ThreadSchedPolicy::Batch, input.as_fd(), output.as_fd(), 1000).unwrap();
        drop((input, output));
        let mut token = [0];
        for value in [7, 9] {
            write(&ours, &[value]).unwrap();
            assert_eq!(read(&result, &mut token), Ok(1));
            assert_eq!(token, [value]);
        }
        drop(ours);
        // The child ends and with it the last writer: end of file.
        assert_eq!(read(&result, &mut token), Ok(0));
        drop(child);
    }

    #[test]
    fn a_child_that_keeps_a_cpu_awake_has_the_idle_policy_and_goes_when_dropped() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let child = keep_awake(cpu).unwrap();
        let pid = child.0;
        // SAFETY: a query by process id.
        let policy = || unsafe { libc::syscall(libc::SYS_sched_getscheduler, pid.as_raw_nonzero().get()) };
        while policy() != i64::from(libc::SCHED_IDLE) {
            std::thread::yield_now();
        }
        drop(child);
        match rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
            Err(error) => assert_eq!(error, rustix::io::Errno::CHILD, "reaped already"),
            Ok(ended) => assert_eq!(ended.unwrap().1.terminating_signal(), Some(libc::SIGKILL)),
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_ends_the_child() {
        let child = keep_awake(8191).unwrap();
        let state = rustix::process::waitpid(Some(child.0), WaitOptions::empty()).unwrap().unwrap().1;
        assert_eq!(state.exit_status(), Some(1));
        // Reaped already: there is nothing left to kill.
        std::mem::forget(child);
    }

    #[test]
    fn a_relay_without_room_for_its_words_ends() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let (input, _ours) = pipe().unwrap();
        let (result, output) = pipe().unwrap();
        // So many bytes wrap around to 8.
        let _child =
            relay(Some(cpu), ThreadSchedPolicy::Other, input.as_fd(), output.as_fd(), usize::MAX / 8 + 2)
                .unwrap();
        drop(output);
        assert_eq!(read(&result, &mut [0]), Ok(0));
    }

    #[test]
    fn sums_wrap() {
        assert_eq!(sum_words(&[1, 2, u64::MAX]), 2);
    }
}
