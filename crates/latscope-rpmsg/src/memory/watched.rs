//! Memory for tests that reports each store.

use super::{AtomicCellMemory, RpmsgMemory};
use crate::Fault;
use std::sync::atomic::AtomicU16;

/// A view of a memory that calls `storing` with the place right before each store.
#[derive(Clone, Copy)]
pub struct StoreHookMemory<'a> {
    /// Memory to which the stores go.
    pub memory: &'a AtomicCellMemory<Vec<AtomicU16>>,
    /// Function called with the offset before each store.
    pub storing: &'a dyn Fn(usize),
}

impl RpmsgMemory for StoreHookMemory<'_> {
    fn size(&self) -> usize {
        self.memory.size()
    }
    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        self.memory.load_u8(at)
    }
    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        (self.storing)(at);
        self.memory.store_u8(at, value)
    }
    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        self.memory.load_u16(at)
    }
    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        (self.storing)(at);
        self.memory.store_u16(at, value)
    }
    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        self.memory.load_index(at)
    }
    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        (self.storing)(at);
        self.memory.store_index(at, value)
    }
    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        self.memory.load_u32(at)
    }
    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        (self.storing)(at);
        self.memory.store_u32(at, value)
    }
    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        self.memory.read_bytes(at, into)
    }
    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        (self.storing)(at);
        self.memory.write_bytes(at, from)
    }
    fn fence(&self) {
        self.memory.fence()
    }
}
