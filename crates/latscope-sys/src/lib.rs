//! The only crate of latscope with unsafe code.
pub mod kernels;
pub mod page;
pub mod process_probe;
pub mod select;
pub mod signal_probe;
mod syscall;
