//! Scheduling policy, by raw system call: libraries may stub the wrappers (musl answers ENOSYS), so that a tool would
//! measure under another policy than it assumes. Callers read the policy back after setting it.

use crate::syscall::check_errno;
use std::cell::RefCell;
use std::{fmt, io};

/// A scheduling policy (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadSchedPolicy {
    /// The time-sharing policy SCHED_OTHER.
    Other,
    /// SCHED_FIFO with a priority from 1 to 99.
    Fifo(u32),
    /// SCHED_RR with a priority from 1 to 99.
    RoundRobin(u32),
    /// SCHED_BATCH: time-shared, but a wake-up preempts no other task.
    Batch,
    /// SCHED_IDLE: runs only when nothing else wants the CPU.
    Idle,
    /// SCHED_DEADLINE: `runtime` of CPU time within `deadline` of the begin of
    /// each `period`, all in ns (sched(7)).
    Deadline {
        /// CPU time reserved in each period.
        runtime: u64,
        /// Time by which the runtime has been given, after the begin of the period, ns.
        deadline: u64,
        /// Length of the period, ns.
        period: u64,
    },
    /// Any other policy, by its number in the kernel.
    Number(u32),
}

impl fmt::Display for ThreadSchedPolicy {
    /// Writes the kernel's name, with the priority where there is one: `SCHED_FIFO 95`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ThreadSchedPolicy::Other => f.write_str("SCHED_OTHER"),
            ThreadSchedPolicy::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            ThreadSchedPolicy::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
            ThreadSchedPolicy::Batch => f.write_str("SCHED_BATCH"),
            ThreadSchedPolicy::Idle => f.write_str("SCHED_IDLE"),
            ThreadSchedPolicy::Deadline { .. } => f.write_str("SCHED_DEADLINE"),
            ThreadSchedPolicy::Number(number) => write!(f, "the policy {number}"),
        }
    }
}

/// Gives this thread, and its later children, a mount namespace of its own (unshare(2)). Mounts of other processes
/// still appear there as long as the mounts are shared.
///
/// # Errors
/// The call needs CAP_SYS_ADMIN.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: unshare takes flags only, and no memory of this process is concerned.
    check_errno(unsafe { libc::unshare(libc::CLONE_NEWNS) }).map(drop)
}

/// `struct sched_attr` of sched_setattr(2), first version (48 bytes).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    sched_policy: u32,
    sched_flags: u64,
    sched_nice: i32,
    sched_priority: u32,
    sched_runtime: u64,
    sched_deadline: u64,
    sched_period: u64,
}

const SIZE: u32 = size_of::<SchedAttr>() as u32;

fn set_attr(attr: SchedAttr) -> io::Result<()> {
    set_attr_of(0, attr)
}

fn set_attr_of(thread: u32, mut attr: SchedAttr) -> io::Result<()> {
    attr.size = SIZE;
    // SAFETY: `attr` is a valid sched_attr of the size it states; 0 is the calling thread.
    check_errno(unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &attr, 0) }).map(drop)
}

fn get_attr(thread: u32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most SIZE bytes to `attr`; 0 is the calling thread.
    check_errno(unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &mut attr, SIZE, 0) })?;
    Ok(attr)
}

/// Sets the policy of the calling thread (sched_setattr(2)).
///
/// # Errors
/// EPERM without the right to it, or for SCHED_DEADLINE when the thread may not
/// use all CPUs; EBUSY when a reservation is not admitted; EINVAL for a
/// priority outside of 1-99; ENOSYS or EPERM under a seccomp filter.
pub fn set_policy(policy: ThreadSchedPolicy) -> io::Result<()> {
    let attr = |number: i32| SchedAttr { sched_policy: number as u32, ..SchedAttr::default() };
    set_attr(match policy {
        ThreadSchedPolicy::Other => attr(libc::SCHED_OTHER),
        ThreadSchedPolicy::Fifo(sched_priority) => SchedAttr { sched_priority, ..attr(libc::SCHED_FIFO) },
        ThreadSchedPolicy::RoundRobin(sched_priority) => SchedAttr { sched_priority, ..attr(libc::SCHED_RR) },
        ThreadSchedPolicy::Batch => attr(libc::SCHED_BATCH),
        ThreadSchedPolicy::Idle => attr(libc::SCHED_IDLE),
        ThreadSchedPolicy::Deadline { runtime, deadline, period } => SchedAttr {
            sched_runtime: runtime,
            sched_deadline: deadline,
            sched_period: period,
            ..attr(libc::SCHED_DEADLINE)
        },
        ThreadSchedPolicy::Number(number) => attr(number as i32),
    })
}

/// The policy of the calling thread as the kernel has it (sched_getattr(2)).
///
/// # Errors
/// The call fails only under a seccomp filter.
pub fn policy() -> io::Result<ThreadSchedPolicy> {
    let attr = get_attr(0)?;
    Ok(match attr.sched_policy as i32 {
        libc::SCHED_OTHER => ThreadSchedPolicy::Other,
        libc::SCHED_FIFO => ThreadSchedPolicy::Fifo(attr.sched_priority),
        libc::SCHED_RR => ThreadSchedPolicy::RoundRobin(attr.sched_priority),
        libc::SCHED_BATCH => ThreadSchedPolicy::Batch,
        libc::SCHED_IDLE => ThreadSchedPolicy::Idle,
        libc::SCHED_DEADLINE => ThreadSchedPolicy::Deadline {
            runtime: attr.sched_runtime,
            deadline: attr.sched_deadline,
            period: attr.sched_period,
        },
        other => ThreadSchedPolicy::Number(other as u32),
    })
}

/// Scheduling of a thread at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSchedState {
    /// The number of its policy: 0 is SCHED_OTHER, 1 SCHED_FIFO, 2 SCHED_RR.
    pub policy: u32,
    /// Real-time priority; 0 under a time-sharing policy.
    pub priority: u32,
    /// Nice value; 0 under a real-time policy.
    pub nice: i32,
}

/// Returns the current scheduling of a thread of any process, 0 for the calling thread (sched_getattr(2)). A boost by a
/// PI lock does not show.
///
/// # Errors
/// There is no such thread, or a seccomp filter refuses the call.
pub fn sched_state(thread: u32) -> io::Result<ThreadSchedState> {
    let attr = get_attr(thread)?;
    Ok(ThreadSchedState { policy: attr.sched_policy, priority: attr.sched_priority, nice: attr.sched_nice })
}

/// Sets the policy SCHED_OTHER and the nice value of the calling thread.
///
/// # Errors
/// A value below that of now without CAP_SYS_NICE and beyond `ulimit -e`.
pub fn set_nice(nice: i32) -> io::Result<()> {
    set_attr(SchedAttr { sched_nice: nice, ..SchedAttr::default() })
}

/// Asks for a time slice of `ns` under a time-sharing policy (sched_setattr(2),
/// `sched_runtime`): with a shorter one a wake-up preempts a busy thread
/// sooner. Needs no privilege; kernels before 6.12 accept and ignore it.
///
/// # Errors
/// The call fails only under a seccomp filter.
pub fn set_slice(ns: u64) -> io::Result<()> {
    let now = get_attr(0)?;
    set_attr(SchedAttr {
        sched_policy: now.sched_policy,
        sched_nice: now.sched_nice,
        sched_runtime: ns,
        ..SchedAttr::default()
    })
}

/// The time slice of the calling thread under a time-sharing policy, ns (sched_getattr(2), `sched_runtime`); 0 where
/// the kernel does not say, before 6.12.
///
/// # Errors
/// The call fails only under a seccomp filter.
pub fn slice() -> io::Result<u64> {
    Ok(get_attr(0)?.sched_runtime)
}

/// Confines the calling thread to `cpus` (sched_setaffinity(2)).
///
/// # Errors
/// No CPU of `cpus` is online and permitted.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    confine(None, cpus)?;
    PLACE.set(allowed_cpus().ok());
    Ok(())
}

thread_local! {
    /// CPUs of the calling thread after it was last [pinned](pin).
    static PLACE: RefCell<Option<Vec<u32>>> = const { RefCell::new(None) };
}

/// Returns the CPUs on which the calling thread was [pinned](pin) and those on which it may run now, if another program
/// or the kernel, which takes a CPU offline, has changed them.
pub fn changed_affinity() -> Option<(Vec<u32>, Vec<u32>)> {
    let place = PLACE.with_borrow(Clone::clone)?;
    let allowed = allowed_cpus().ok()?;
    (place != allowed).then_some((place, allowed))
}

/// Gives another thread the policy SCHED_OTHER.
///
/// # Errors
/// The thread no longer exists, or belongs to another user.
pub fn make_normal(thread: u32) -> io::Result<()> {
    set_attr_of(thread, SchedAttr { sched_policy: libc::SCHED_OTHER as u32, ..SchedAttr::default() })
}

/// Confines another thread to `cpus`.
///
/// # Errors
/// The errors of [`pin`]; the thread no longer exists, or belongs to another user.
pub fn pin_thread(thread: u32, cpus: &[u32]) -> io::Result<()> {
    let thread = thread.try_into().ok().and_then(rustix::thread::Pid::from_raw);
    confine(Some(thread.ok_or(io::ErrorKind::InvalidInput)?), cpus)
}

fn confine(thread: Option<rustix::thread::Pid>, cpus: &[u32]) -> io::Result<()> {
    let mask = mask(cpus);
    let thread = thread.map_or(0, |thread| thread.as_raw_nonzero().get());
    // SAFETY: the kernel reads as many bytes as the mask has.
    check_errno(unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(&*mask), mask.as_ptr())
    })
    .map(drop)
}

/// The CPUs the calling thread may run on (sched_getaffinity(2)).
///
/// # Errors
/// The call fails only under a seccomp filter.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let mut words = (1024 / CpuMaskWord::BITS) as usize;
    loop {
        let mut mask: Vec<CpuMaskWord> = vec![0; words];
        // SAFETY: the kernel writes at most as many bytes as the mask has.
        let got = check_errno(unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&*mask), mask.as_mut_ptr())
        });
        match got {
            Ok(_) => return Ok(cpus_of_mask(&mask)),
            // The mask is shorter than that of the kernel.
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL)
                    && words < (MOST_CPUS / CpuMaskWord::BITS) as usize =>
            {
                words *= 2
            }
            Err(error) => return Err(error),
        }
    }
}

/// Word of the kernel's masks of CPUs.
type CpuMaskWord = libc::c_ulong;

/// More CPUs than any kernel can be built for. A longer mask is not tried.
const MOST_CPUS: u32 = 1 << 20;

/// Returns a mask of CPUs, as long as its last one needs.
fn mask(cpus: &[u32]) -> Vec<CpuMaskWord> {
    let possible = || cpus.iter().filter(|cpu| **cpu < MOST_CPUS);
    let mut mask: Vec<CpuMaskWord> =
        vec![0; possible().max().map_or(1, |last| (last / CpuMaskWord::BITS) as usize + 1)];
    for cpu in possible() {
        mask[(cpu / CpuMaskWord::BITS) as usize] |= 1 << (cpu % CpuMaskWord::BITS);
    }
    mask
}

/// Returns the CPUs of a mask, ascending.
fn cpus_of_mask(mask: &[CpuMaskWord]) -> Vec<u32> {
    let all = 0..mask.len() as u32 * CpuMaskWord::BITS;
    all.filter(|cpu| mask[(cpu / CpuMaskWord::BITS) as usize] >> (cpu % CpuMaskWord::BITS) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_the_names_of_the_kernel() {
        let names = [ThreadSchedPolicy::Fifo(95), ThreadSchedPolicy::RoundRobin(1), ThreadSchedPolicy::Other]
            .map(|policy| policy.to_string());
        assert_eq!(names, ["SCHED_FIFO 95", "SCHED_RR 1", "SCHED_OTHER"]);
        assert_eq!(ThreadSchedPolicy::Number(7).to_string(), "the policy 7");
    }

    #[test]
    fn sched_attr_has_the_layout_of_the_kernel() {
        assert_eq!(SIZE, 48);
        assert_eq!(std::mem::offset_of!(SchedAttr, sched_priority), 20);
        assert_eq!(std::mem::offset_of!(SchedAttr, sched_runtime), 24);
    }

    #[test]
    fn a_mask_has_room_for_any_cpu() {
        for some in [&[][..], &[0], &[63, 64], &[5, 1023, 1024, 4099]] {
            assert_eq!(cpus_of_mask(&mask(some)), some);
        }
        std::thread::spawn(|| {
            let allowed = allowed_cpus().unwrap();
            // CPUs that do not exist are ignored beside one that does.
            pin(&[allowed[0], 5000]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), allowed[..1]);
            assert!(pin(&[5000]).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_that_another_one_moves_learns_of_it() {
        let allowed = allowed_cpus().unwrap();
        let (first, last) = (allowed[0], *allowed.last().unwrap());
        let mover = || {
            assert_eq!(changed_affinity(), None, "it was never pinned");
            pin(&[first]).unwrap();
            assert_eq!(changed_affinity(), None);
            let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            std::thread::scope(|scope| {
                scope.spawn(|| pin_thread(thread, &allowed).unwrap()).join().unwrap();
            });
            // On one CPU there is nowhere to go.
            assert_eq!(changed_affinity(), (first != last).then(|| (vec![first], allowed.clone())));
            pin(&[last]).unwrap();
            assert_eq!(changed_affinity(), None, "it moved itself");
        };
        std::thread::scope(|scope| scope.spawn(mover).join().unwrap());
    }

    #[test]
    fn the_state_of_another_thread_is_seen() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            set_nice(7).unwrap();
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            let _ = ended.recv();
            sched_state(0).unwrap()
        });
        let seen = sched_state(told.recv().unwrap()).unwrap();
        drop(end);
        assert_eq!(seen, ThreadSchedState { policy: 0, priority: 0, nice: 7 });
        assert_eq!(thread.join().unwrap(), seen);
        assert!(sched_state(u32::MAX >> 1).is_err());
    }

    #[test]
    fn another_thread_is_made_normal() {
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                set_policy(ThreadSchedPolicy::Batch).unwrap();
                tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
                let _ = ended.recv();
            });
            let thread = told.recv().unwrap();
            make_normal(thread).unwrap();
            assert_eq!(sched_state(thread).unwrap(), ThreadSchedState::default());
            drop(end);
        });
        assert!(make_normal(u32::MAX >> 1).is_err());
    }

    #[test]
    fn a_slice_is_read_back_as_set_or_is_not_known() {
        std::thread::spawn(|| {
            set_slice(3_000_000).unwrap();
            assert!([0, 3_000_000].contains(&slice().unwrap()));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_policy_is_read_back_as_set_or_refused() {
        std::thread::spawn(|| {
            match set_policy(ThreadSchedPolicy::Fifo(1)) {
                Ok(()) => assert_eq!(policy().unwrap(), ThreadSchedPolicy::Fifo(1)),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
            }
            let reserved =
                ThreadSchedPolicy::Deadline { runtime: 1_000_000, deadline: 9_000_000, period: 10_000_000 };
            match set_policy(reserved) {
                Ok(()) => assert_eq!(policy().unwrap(), reserved),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
            }
            set_policy(ThreadSchedPolicy::Idle).unwrap();
            assert_eq!(policy().unwrap(), ThreadSchedPolicy::Idle);
            assert!(set_policy(ThreadSchedPolicy::Fifo(0)).is_err());
            assert!(set_policy(ThreadSchedPolicy::Fifo(100)).is_err());
        })
        .join()
        .unwrap();
    }
}
