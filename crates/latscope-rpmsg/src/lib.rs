//! RPMsg over shared memory: the protocol by which Linux talks to remote
//! processors, in both roles, without `std`, allocation, dependencies or
//! `unsafe`.
//!
//! The bytes in memory are those of Linux's `virtio_rpmsg_bus` and of OpenAMP:
//! a [resource table](table), two [split virtqueues](ring), and buffers with a
//! [header](header::RpmsgHeader) each. All is generic over a [`RpmsgMemory`], so that the
//! same code runs on a mapped file, in bare-metal firmware, behind a virtual
//! machine, and on the [`AtomicCellMemory`](memory::AtomicCellMemory) of a test.
//!
//! ```
//! use core::sync::atomic::AtomicU16;
//! use latscope_rpmsg::{RpmsgLink, RpmsgWindow, memory::AtomicCellMemory};
//!
//! // A window of shared memory; here both sides are in one program.
//! let window = RpmsgWindow::OPENAMP;
//! let memory = AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect::<Vec<_>>());
//! window.reset(&memory)?;
//!
//! // The driver's side is Linux, the device's the remote processor.
//! let mut host = window.host::<_, 256>(&memory)?;
//! let mut remote = window.remote(&memory)?.expect("the host is ready");
//!
//! let kick = host.send_message(0x400, 0x401, b"ping")?;
//! assert!(kick, "the remote wants to be told");
//!
//! let mut payload = [0; 496];
//! let received = remote.receive_message(&mut payload)?.expect("a message");
//! assert_eq!(&payload[..received.length], b"ping");
//! remote.send_message(received.header.destination, received.header.source, b"pong")?;
//!
//! let received = host.receive_message(&mut payload)?.expect("a reply");
//! assert_eq!(&payload[..received.length], b"pong");
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # From the memory upwards
//!
//! - [`memory`]: loads and stores by offset, and the two orderings that matter;
//! - [`ring`]: the split virtqueue, both halves;
//! - [`table`] and [`window`]: the places of all parts, and the begin of each side;
//! - [`link`]: messages over two rings, both sides;
//! - [`name_service`] and [`endpoints`]: names and addresses of endpoints;
//! - [`messages`] and [`echo`]: the messages of the benchmarks, and the replying side;
//! - [`control`] and [`image`]: orders of a host to a remote that it started, and a remote run in QEMU.
//!
//! # The peer is not trusted
//!
//! Each index, length and address is loaded once, then checked; a payload is copied out, then verified. A mistake of
//! the peer is a [`Fault`]: a value to count, never a panic, an access outside of the window, or a loop without end. A
//! call does at most one message's work. A caller that loops over calls must leave the loop at a fault, since a fault
//! of an index is found again each time.
//!
//! # What is not here
//!
//! Waiting and kicking belong to the machine: a call returns that a kick is wanted, and [`RpmsgLink::request_kick`]
//! asks for one. Features of virtio that RPMsg does not use (chains, indirect descriptors, event indices, packed rings)
//! are refused or not offered.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod control;
pub mod echo;
pub mod endpoints;
pub mod fault;
pub mod header;
pub mod image;
pub mod link;
pub mod memory;
pub mod messages;
pub mod name_service;
mod pool;
pub mod ring;
pub mod table;
pub mod window;

pub use fault::{Fault, Faults};
pub use link::{RpmsgHost, RpmsgLink, RpmsgRemote};
pub use memory::RpmsgMemory;
pub use window::RpmsgWindow;
