//! The timed kernels.
pub mod cycle;
