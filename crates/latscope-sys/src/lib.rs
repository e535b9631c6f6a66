//! The only crate of latscope with unsafe code: kernel interfaces, one module
//! each, and the timed assembly kernels. What it exports is safe.

pub mod clock;
pub mod cpuid;
pub mod kernels;
pub mod memory;
pub mod memory_lock;
pub mod sched;
pub mod shared;
pub mod signal;
pub mod usage;
pub mod worker;
