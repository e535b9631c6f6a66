//! Share of false changes: it decides which changes are believed, and how many runs are enough to find one.

/// Largest share of changes that may be false: half of the share in a comparison, as a history is read after each run.
pub const FALSE_CHANGES: f64 = 0.025;
