//! The only crate of latscope with unsafe code.
pub mod kernels;
