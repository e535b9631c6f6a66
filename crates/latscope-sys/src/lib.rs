//! The only crate of latscope with unsafe code.
pub mod cpuid;
pub mod kernels;
pub mod memory_lock;
