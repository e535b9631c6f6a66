//! The timed assembly kernels.
