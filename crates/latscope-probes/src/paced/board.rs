//! What the endpoints tell, in shared memory: a line of words for each, which
//! it alone writes.

use latscope_os::shared::{self, Counters};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an endpoint: two cache lines, for adjacent ones are fetched in pairs.
const WORDS: usize = 16;

/// Latest samples of the first endpoint that are kept.
pub const KEPT: usize = 1 << 14;

/// What a word of an endpoint holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Its process and thread; 0 until it is ready.
    Address,
    /// The CPU it ran on last, and 1.
    Cpu,
    /// Messages received.
    Cycles,
    /// Times it gave up waiting.
    Timeouts,
    /// Its samples: how many, the last, the least, the largest and the sum, ns.
    Samples,
    Last,
    Min,
    Max,
    Sum,
    /// When it sent, ns.
    Stamp,
    /// The error that ended it.
    Failed,
}

/// What a word of all holds, in the line before the endpoints'.
#[derive(Debug, Clone, Copy)]
enum Common {
    Go,
    Over,
    /// The endpoint whose latency was above the threshold, and 1.
    Broken,
}

/// The shared memory of a run.
#[derive(Debug)]
pub struct Board {
    counters: Counters,
    descriptor: OwnedFd,
    endpoints: usize,
}

/// The figures of an endpoint so far, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Its thread id; 0 before it runs.
    pub thread: u32,
    /// The CPU it ran on last.
    pub cpu: Option<u32>,
    /// Messages received.
    pub cycles: u64,
    /// Times it gave up waiting.
    pub timeouts: u64,
    /// How many of the messages were timed.
    pub samples: u64,
    /// The last sample.
    pub last: u64,
    /// The least.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The exact mean.
    pub mean: f64,
}

fn words(endpoints: usize) -> usize {
    (1 + endpoints) * WORDS + KEPT
}

impl Board {
    /// A board in fresh memory.
    ///
    /// # Errors
    /// No memory or descriptors are left.
    pub fn create(endpoints: usize) -> io::Result<Board> {
        Board::open(shared::create(words(endpoints))?, endpoints)
    }

    /// The board that another process has created.
    ///
    /// # Errors
    /// It is too short, or memory is exhausted.
    pub fn open(descriptor: OwnedFd, endpoints: usize) -> io::Result<Board> {
        Ok(Board { counters: Counters::map(&descriptor, words(endpoints))?, descriptor, endpoints })
    }

    /// To hand to another process.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Number of endpoints.
    pub fn endpoints(&self) -> usize {
        self.endpoints
    }

    pub(super) fn word(&self, endpoint: usize, word: Word) -> &AtomicU64 {
        &self.counters.as_slice()[(1 + endpoint) * WORDS + word as usize]
    }

    fn common(&self, word: Common) -> &AtomicU64 {
        &self.counters.as_slice()[word as usize]
    }

    /// Where a sample of the first endpoint is kept.
    pub(super) fn kept(&self, cycle: u64) -> &AtomicU64 {
        &self.counters.as_slice()[(1 + self.endpoints) * WORDS + cycle as usize % KEPT]
    }

    /// Sample of the first endpoint in a cycle, ns: of the latest [`KEPT`].
    pub fn sample(&self, cycle: u64) -> u64 {
        self.kept(cycle).load(Ordering::Relaxed)
    }

    /// Lets the senders begin.
    pub(super) fn go(&self) {
        self.common(Common::Go).store(1, Ordering::Release);
    }

    pub(super) fn gone(&self) -> bool {
        self.common(Common::Go).load(Ordering::Acquire) != 0
    }

    /// Ends the run.
    pub(super) fn end(&self) {
        self.common(Common::Over).store(1, Ordering::Release);
    }

    #[inline]
    pub(super) fn over(&self) -> bool {
        self.common(Common::Over).load(Ordering::Relaxed) != 0
    }

    /// Ends the run because of an endpoint's latency; the first one counts.
    pub(super) fn exceed(&self, endpoint: usize) {
        let word = self.common(Common::Broken);
        let _ = word.compare_exchange(0, endpoint as u64 + 1, Ordering::Relaxed, Ordering::Relaxed);
        self.end();
    }

    /// The endpoint whose latency was above the threshold.
    pub fn broken(&self) -> Option<usize> {
        (self.common(Common::Broken).load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// The first error of an endpoint.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let failed = |endpoint| self.word(endpoint, Word::Failed).load(Ordering::Relaxed);
        let code = (0..self.endpoints).map(failed).find(|code| *code != 0)?;
        Some(io::Error::from_raw_os_error(code as i32))
    }

    /// The figures of an endpoint so far.
    pub fn figures(&self, endpoint: usize) -> Figures {
        let word = |word| self.word(endpoint, word).load(Ordering::Relaxed);
        let samples = word(Word::Samples);
        Figures {
            thread: word(Word::Address) as u32,
            cpu: word(Word::Cpu).checked_sub(1).map(|cpu| cpu as u32),
            cycles: word(Word::Cycles),
            timeouts: word(Word::Timeouts),
            samples,
            last: word(Word::Last),
            min: word(Word::Min),
            max: word(Word::Max),
            mean: word(Word::Sum) as f64 / samples.max(1) as f64,
        }
    }
}
