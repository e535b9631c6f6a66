//! The only crate of latscope with unsafe code: kernel interfaces, one module
//! each, and the timed assembly kernels. What it exports is safe.

pub mod binder;
pub mod child;
pub mod clock;
pub mod cpuid;
pub mod futex;
pub mod interruptions;
pub mod ivshmem;
pub mod kernels;
pub mod mailbox;
pub mod mcs;
pub mod memory;
pub mod memory_lock;
pub mod message_queue;
pub mod monitor;
pub mod page;
pub mod posix_timer;
pub mod process_probe;
pub mod queued_signal;
pub mod ring;
pub mod rpmsg_char;
pub mod sched;
pub mod select;
pub mod semaphore;
pub mod shared;
pub mod shared_cell;
pub mod signal;
pub mod signal_probe;
pub mod stdio;
mod syscall;
pub mod system_v;
pub mod thread;
pub mod usage;
pub mod vsock;
pub mod window;
pub mod worker;
