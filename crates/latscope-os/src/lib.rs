//! The only crate of latscope with unsafe code: kernel interfaces, one module
//! each, and the timed assembly kernels. What it exports is safe.

/// Chooses between the assembly of x86-64 and that of AArch64, in the text of an `asm!`.
#[cfg(target_arch = "x86_64")]
macro_rules! either {
    ($x86:expr, $arm:expr) => {
        $x86
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! either {
    ($x86:expr, $arm:expr) => {
        $arm
    };
}

mod access;
pub mod allocation;
pub mod binder;
pub mod child;
pub mod clock;
mod copy;
pub mod counted_event;
pub mod cpuid;
pub mod futex;
pub mod interruptions;
pub mod ivshmem;
pub mod kernels;
pub mod mailbox;
mod mapping;
pub mod mcs;
pub mod memory;
pub mod memory_lock;
pub mod message_queue;
pub mod monitor;
pub mod network;
pub mod nodes;
pub mod page;
pub mod posix_timer;
pub mod process_probe;
pub mod queued_signal;
pub mod random;
pub mod ring;
pub mod rpmsg_char;
pub mod rwlock;
pub mod sched;
pub mod seccomp;
pub mod select;
pub mod semaphore;
pub mod shared;
pub mod shared_cell;
pub mod signal;
pub mod signal_probe;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
pub mod slice_extension;
pub mod socket_peer;
pub mod stdio;
mod syscall;
pub mod system_v;
pub mod terminal;
pub mod thread;
pub mod timer_slack;
pub mod trace_marker;
pub mod uring;
pub mod usage;
pub mod vsock;
pub mod window;
pub mod worker;
