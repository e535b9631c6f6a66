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

/// Defines an enum of what kernels do, each item with its name in lower case: `ALL`, `name`, `from_name`, `Display`.
macro_rules! named {
    ($(#[$about:meta])* $kind:ident { $($(#[$doc:meta])* $item:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum $kind {
            $($(#[$doc])* $item,)+
        }

        impl $kind {
            /// All of them, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$item),+];

            /// Returns the name in lower case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$item => $name,)+
                }
            }

            /// Returns the item with this [name](Self::name).
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|item| item.name() == name)
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// Chooses between the assembly of x86-64 and that of AArch64, in the text of an `asm!`.
#[cfg(target_arch = "x86_64")]
macro_rules! either {
    ($x86:expr, $arm:expr) => {
        $x86
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! either {
    ($x86:expr, $arm:expr) => {
        $arm
    };
}

/// The end of a loop at the label 2: counts `{n}` down, and goes back until it is zero.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! again {
    () => {
        either!("sub {n}, 1\njnz 2b", "subs {n}, {n}, #1\nb.ne 2b")
    };
}

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
