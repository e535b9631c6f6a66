//! Lines of the cache that go to and fro between two CPUs.

use latscope_os::shared_cell::Lane;
use std::sync::atomic::AtomicU64;

/// Lines between two CPUs.
pub(super) type PingPongLines = [Lane<AtomicU64>; 2];

/// One side of a number of trips: lines, trips before, trips to make.
pub(super) type PingPongLoop = fn(&PingPongLines, u64, u64);

/// The asking and the answering side of a pair.
pub(super) type PingPongLoopPair = (PingPongLoop, PingPongLoop);
