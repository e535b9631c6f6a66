//! Android's binder driver (drivers/android): transactions between processes
//! through one system call a side.
//!
//! A process opens a device and maps its buffer ([`BinderDriver`]); a thread writes
//! commands and reads returns through a [`Port`]. What a transaction brought
//! is a [`BinderBuffer`] in the mapping, which its holder gives back. Nodes are
//! what a process offers, handles what it has of others' nodes.
//!
//! Source: include/uapi/linux/android/{binder,binderfs}.h, protocol version 8.

mod abi;
pub mod binderfs;
mod commands;
mod driver;
mod parcel;
mod port;
mod returns;

pub use abi::{ExtendedError, PROTOCOL};
pub use driver::{BinderDriver, BinderOpenError};
pub use parcel::{Composed, Payload};
pub use port::{BinderBuffer, Incoming, Port, Return};
pub use returns::BinderNode;

/// A reference to another process's node, by its number in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// The context manager of a device: the one handle that every process has.
pub const MANAGER: Handle = Handle(0);

/// The transaction has no reply (`TF_ONE_WAY`).
pub const ONE_WAY: u32 = 0x01;

/// Flag of a node: its transactions run under the real-time policy and
/// priority of their callers. Only Android's own kernels know it; others accept
/// and ignore it.
pub const INHERIT_RT: u32 = 0x800;
