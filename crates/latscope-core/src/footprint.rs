//! Memory that a point uses.

/// Memory that a point comes back to, as caches hold it: whole lines, and only those that it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of the lines that all its threads touch.
    pub bytes: u64,
    /// Bytes of those that one CPU touches.
    pub of_one_cpu: u64,
}

impl Footprint {
    /// Returns the footprint of a point that uses so many bytes on one CPU.
    pub fn from_bytes(bytes: u64) -> Footprint {
        Footprint::of_threads(bytes, 1)
    }

    /// Returns the footprint of a point whose threads, on a CPU each, share so many bytes out among them.
    pub fn of_threads(bytes: u64, threads: u64) -> Footprint {
        Footprint { bytes, of_one_cpu: bytes.div_ceil(threads.max(1)) }
    }
}
