//! The only crate of latscope with unsafe code.
pub mod futex;
pub mod kernels;
pub mod monitor;
pub mod semaphore;
pub mod shared_cell;
pub mod thread;
