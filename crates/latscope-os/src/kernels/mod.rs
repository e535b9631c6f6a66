//! The timed kernels.
//!
//! Every loop that is put between two readings of a clock lives here, written in assembly for x86-64 and
//! AArch64 so that no compiler folds, vectorises or spills it; other architectures get a plain loop kept alive
//! by [`std::hint::black_box`], good for a run but not for a figure in cycles.
//!
//! Each loop is a function of its own that is never inlined and whose symbol starts with `latscope_kernel_`, so
//! that a test can disassemble a binary and see that the chain is really there.
//!
//! Nothing here reads a clock: the caller times `run(n)`, and divides by the operations per call that each
//! item documents. A call itself costs a few nanoseconds (a function call, and the mispredicted end of its
//! loop), so let a timed call last microseconds.

pub mod arith;
pub mod atomics;
pub mod bandwidth;
pub mod branch;
pub mod call;
pub mod chase;
pub mod cycle;
pub mod empty;
pub mod random;
pub mod stream;
