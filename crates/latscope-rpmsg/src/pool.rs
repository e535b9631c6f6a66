//! Pool of equal buffers in a window of shared memory.

use crate::ring::WindowBuffer;
use crate::{Fault, RpmsgMemory};

/// Equal buffers one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmsgBufferPool {
    /// Offset of the first buffer.
    pub at: usize,
    /// Size of each buffer, header included, bytes.
    pub buffer: u32,
    /// Number of buffers in the pool.
    pub count: u16,
}

impl RpmsgBufferPool {
    /// The first offset behind the last buffer.
    pub const fn end_offset(&self) -> usize {
        self.at + self.buffer as usize * self.count as usize
    }

    /// Checks that all buffers are in the window: [`Fault::OutOfWindow`] if not.
    pub(crate) fn check_window(&self, memory: &impl RpmsgMemory) -> Result<(), Fault> {
        let bytes = u64::from(self.buffer) * u64::from(self.count);
        let length = u32::try_from(bytes).map_err(|_| Fault::OutOfWindow)?;
        memory.locate(self.at as u64, length).map(|_| ())
    }

    /// Takes the first buffer out of the pool.
    pub(crate) fn take_first(&mut self) -> Option<WindowBuffer> {
        self.count = self.count.checked_sub(1)?;
        let buffer = WindowBuffer { at: self.at, length: self.buffer };
        self.at = self.at.checked_add(self.buffer as usize)?;
        Some(buffer)
    }
}
