//! Figures of the endpoints in shared memory: a line of words for each endpoint, which alone writes it.

use latscope_os::shared::{self, SharedCounters};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an endpoint: two cache lines, for adjacent ones are fetched in pairs.
const WORDS: usize = 16;

/// Latest samples of the first endpoint that are kept.
pub const KEPT: usize = 1 << 14;

/// Words of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacedEndpointWord {
    /// Process and thread of the endpoint; 0 until it is ready.
    Address,
    /// Number of the CPU on which the endpoint ran last, plus 1.
    Cpu,
    /// Number of messages received.
    Cycles,
    /// Number of times that the endpoint gave up waiting.
    Timeouts,
    /// Number of samples. The last, the least, the largest and the sum follow, ns.
    Samples,
    Last,
    Min,
    Max,
    Sum,
    /// Time of the last message sent, ns.
    Stamp,
    /// Error that ended the endpoint.
    Failed,
}

/// Words that all share, in the line before the endpoints'.
#[derive(Debug, Clone, Copy)]
enum PacedSharedWord {
    Go,
    Over,
    /// Endpoint whose latency was above the threshold, plus 1.
    Broken,
}

/// The shared memory of a run.
#[derive(Debug)]
pub struct PacedRunMemory {
    counters: SharedCounters,
    descriptor: OwnedFd,
    endpoints: usize,
}

/// The figures of an endpoint so far, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PacedEndpointStatistics {
    /// Thread id of the endpoint; 0 before it runs.
    pub thread: u32,
    /// CPU on which the endpoint ran last.
    pub cpu: Option<u32>,
    /// Number of messages received.
    pub cycles: u64,
    /// Number of times that the endpoint gave up waiting.
    pub timeouts: u64,
    /// Number of messages that were timed.
    pub samples: u64,
    /// Last sample, in ns.
    pub last: u64,
    /// Least sample, in ns.
    pub min: u64,
    /// Largest sample, in ns.
    pub max: u64,
    /// Exact mean of the samples, ns.
    pub mean: f64,
}

fn word_count(endpoints: usize) -> usize {
    (1 + endpoints) * WORDS + KEPT
}

impl PacedRunMemory {
    /// A board in fresh memory.
    ///
    /// # Errors
    /// No memory or descriptors are left.
    pub fn for_endpoints(endpoints: usize) -> io::Result<PacedRunMemory> {
        PacedRunMemory::from_descriptor(shared::create_memfd(word_count(endpoints))?, endpoints)
    }

    /// The board that another process has created.
    ///
    /// # Errors
    /// The memory is too short, or no more can be mapped.
    pub fn from_descriptor(descriptor: OwnedFd, endpoints: usize) -> io::Result<PacedRunMemory> {
        Ok(PacedRunMemory {
            counters: SharedCounters::map_memfd(&descriptor, word_count(endpoints))?,
            descriptor,
            endpoints,
        })
    }

    /// Descriptor of the memory, to hand to another process.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Number of endpoints of the run.
    pub fn endpoints(&self) -> usize {
        self.endpoints
    }

    pub(super) fn endpoint_word(&self, endpoint: usize, word: PacedEndpointWord) -> &AtomicU64 {
        &self.counters.as_slice()[(1 + endpoint) * WORDS + word as usize]
    }

    fn shared_word(&self, word: PacedSharedWord) -> &AtomicU64 {
        &self.counters.as_slice()[word as usize]
    }

    /// Word that keeps a sample of the first endpoint.
    pub(super) fn sample_word(&self, cycle: u64) -> &AtomicU64 {
        &self.counters.as_slice()[(1 + self.endpoints) * WORDS + cycle as usize % KEPT]
    }

    /// Sample of the first endpoint in a cycle, ns: of the latest [`KEPT`].
    pub fn sample(&self, cycle: u64) -> u64 {
        self.sample_word(cycle).load(Ordering::Relaxed)
    }

    /// Lets the senders begin.
    pub(super) fn start_senders(&self) {
        self.shared_word(PacedSharedWord::Go).store(1, Ordering::Release);
    }

    pub(super) fn has_started(&self) -> bool {
        self.shared_word(PacedSharedWord::Go).load(Ordering::Acquire) != 0
    }

    /// Ends the run for all endpoints.
    pub(super) fn end_run(&self) {
        self.shared_word(PacedSharedWord::Over).store(1, Ordering::Release);
    }

    #[inline]
    pub(super) fn over(&self) -> bool {
        self.shared_word(PacedSharedWord::Over).load(Ordering::Relaxed) != 0
    }

    /// Ends the run because of an endpoint's latency; the first one counts.
    pub(super) fn exceed(&self, endpoint: usize) {
        let word = self.shared_word(PacedSharedWord::Broken);
        let _ = word.compare_exchange(0, endpoint as u64 + 1, Ordering::Relaxed, Ordering::Relaxed);
        self.end_run();
    }

    /// The endpoint whose latency was above the threshold.
    pub fn exceeding_endpoint(&self) -> Option<usize> {
        (self.shared_word(PacedSharedWord::Broken).load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// The first error of an endpoint.
    pub(super) fn first_error(&self) -> Option<io::Error> {
        let failed =
            |endpoint| self.endpoint_word(endpoint, PacedEndpointWord::Failed).load(Ordering::Relaxed);
        let code = (0..self.endpoints).map(failed).find(|code| *code != 0)?;
        Some(io::Error::from_raw_os_error(code as i32))
    }

    /// The figures of an endpoint so far.
    pub fn endpoint_statistics(&self, endpoint: usize) -> PacedEndpointStatistics {
        let word = |word| self.endpoint_word(endpoint, word).load(Ordering::Relaxed);
        let samples = word(PacedEndpointWord::Samples);
        PacedEndpointStatistics {
            thread: word(PacedEndpointWord::Address) as u32,
            cpu: word(PacedEndpointWord::Cpu).checked_sub(1).map(|cpu| cpu as u32),
            cycles: word(PacedEndpointWord::Cycles),
            timeouts: word(PacedEndpointWord::Timeouts),
            samples,
            last: word(PacedEndpointWord::Last),
            min: word(PacedEndpointWord::Min),
            max: word(PacedEndpointWord::Max),
            mean: word(PacedEndpointWord::Sum) as f64 / samples.max(1) as f64,
        }
    }
}
