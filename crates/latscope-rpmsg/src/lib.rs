//! RPMsg over shared memory.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod fault;
pub mod header;
pub mod memory;
pub mod name_service;
pub mod ring;

pub use fault::{Fault, Faults};
pub use memory::Memory;
