//! The only crate of latscope with unsafe code: kernel interfaces, one module
//! each, and the timed assembly kernels. What it exports is safe.

pub mod child;
pub mod clock;
pub mod futex;
pub mod kernels;
pub mod monitor;
pub mod sched;
pub mod semaphore;
pub mod shared;
pub mod shared_cell;
pub mod signal;
pub mod thread;
pub mod usage;
pub mod worker;
