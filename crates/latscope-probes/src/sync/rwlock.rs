//! The read-write lock: uncontended, and a writer that waits for readers.

use super::placement::{self, HandOffPlacement};
use crate::prelude::*;
use latscope_os::rwlock::RwLock;

probes! {
    EXPERIMENT, RwLockSettings, plan_rwlock, ..ProbeFacts { by: Some(SyscallInvocation::Libc), ..ProbeFacts::DEFAULT };
    RWLOCK "sync.rwlock", "read-write lock", "pthread_rwlock_rdlock(3p), pthread_rwlock_wrlock(3p)",
        "Modes read and write: lock and unlock of an uncontended lock, in a process with two threads. Mode \
        writer-waits: from before the only reader unlocks until a writer that waits on the same CPU has the \
        lock."
        { samples: ProbeSampleKind::Either, };
}

static EXPERIMENT: Experiment = Experiment::new("sync.rwlock", Cpus::One, run_rwlock);

words! {
    /// Kind of a lock, and the state in which it is taken.
    enum RwLockMode {
        /// Lock for reading, uncontended.
        Read = "read",
        /// Lock for writing, uncontended.
        Write = "write",
        /// Lock for writing, while a reader has the lock.
        WriterWaits = "writer-waits",
    }
}

settings! {
    /// A use of the lock.
    struct RwLockSettings, requested as RwLockRequest {
        /// Uncontended for reading or for writing, or a writer that waits for a reader.
        mode: RwLockMode;
    }
}

fn plan_rwlock(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let title = |mode: RwLockMode| match mode {
        RwLockMode::WriterWaits => "read-write lock, a writer waits for a reader".to_owned(),
        mode => format!("read-write lock, {} lock + unlock, uncontended", mode.word()),
    };
    let point = |mode| probe.make_point(RwLockSettings { mode }, title(mode), false);
    RwLockRequest::of(input).mode.or(RwLockMode::ALL).into_iter().map(point).collect()
}

fn run_rwlock(bench: &mut Bench) -> Result<()> {
    let cpu = bench.cpus()[0];
    for (index, point) in bench.points().iter().enumerate() {
        let lock =
            SharedCell::<RwLock>::create_zeroed(SharingScope::Threads).context("no memory for a lock")?;
        // glibc's locks may take a shorter way while a process has one thread only.
        let mut reader = RwLockReader::start_thread(bench.timebase().clock(), lock.clone(), cpu)?;
        match RwLockSettings::read(point)?.mode {
            RwLockMode::Read => {
                bench.calls(index, Batch { cycles: true, ..Batch::default() }, || lock.with_read_lock(|| ()))
            }
            RwLockMode::Write => {
                bench.calls(index, Batch { cycles: true, ..Batch::default() }, || lock.with_write_lock(|| ()))
            }
            RwLockMode::WriterWaits => writer_waits(bench, index, &lock, &mut reader)?,
        }
    }
    Ok(())
}

fn writer_waits(bench: &mut Bench, point: usize, lock: &RwLock, reader: &mut RwLockReader) -> Result<()> {
    bench.set_times(point, Semantics::OneWay);
    let placement = HandOffPlacement::SameCore;
    placement::place_thread(placement, bench.cpus()[0]).context("the measuring thread cannot be set up")?;
    bench.splits(&[point], placement.gate(), |splits| {
        reader.holds_the_lock();
        reader.shared.called.store(true, Ordering::Release);
        let called = splits.now();
        let locked = lock.with_write_lock(|| splits.now());
        // A reader that was gone before the writer came let it wait for nothing.
        let unlocked = reader.shared.unlocked.load(Ordering::Acquire);
        splits.set_part(0, if unlocked > called { unlocked } else { u64::MAX }, locked);
    });
    Ok(())
}

/// A thread that locks for reading on request.
struct RwLockReader {
    shared: Arc<RwLockReaderState>,
    thread: Option<Partner<()>>,
}

struct RwLockReaderState {
    asked: SharedCell<Semaphore>,
    holds: SharedCell<Semaphore>,
    /// True if the writer is about to lock.
    called: AtomicBool,
    /// The stamp before the last unlock.
    unlocked: AtomicU64,
    ending: AtomicBool,
}

impl RwLockReader {
    fn start_thread(clock: AnyClock, lock: SharedCell<RwLock>, cpu: u32) -> Result<RwLockReader> {
        let semaphore = || {
            SharedCell::<Semaphore>::create_zeroed(SharingScope::Threads).context("no memory for a semaphore")
        };
        let (asked, holds) = (semaphore()?, semaphore()?);
        let [called, ending] = [false; 2].map(AtomicBool::new);
        let shared =
            Arc::new(RwLockReaderState { asked, holds, called, unlocked: AtomicU64::new(0), ending });
        let theirs = Arc::clone(&shared);
        let set_up = move || {
            // Where that is refused, the writer's thread is refused it, too, and says so.
            let _ = placement::place_thread(HandOffPlacement::SameCore, cpu);
            Ok(())
        };
        let thread = threads::start_partner(set_up, move || theirs.run_reader(&clock, &lock))?;
        Ok(RwLockReader { shared, thread: Some(thread) })
    }

    /// Waits until the reader has the lock.
    fn holds_the_lock(&mut self) {
        // The semaphore's count is 0 or 1.
        let _ = self.shared.asked.post();
        self.shared.holds.wait();
    }
}

impl RwLockReaderState {
    fn run_reader(&self, clock: &AnyClock, lock: &RwLock) {
        loop {
            self.asked.wait();
            if self.ending.load(Ordering::Relaxed) {
                return;
            }
            lock.with_read_lock(|| {
                let _ = self.holds.post();
                // On one CPU the writer runs meanwhile: until it says so, and until it waits.
                while !self.called.swap(false, Ordering::Acquire) {
                    std::thread::yield_now();
                }
                std::thread::yield_now();
                self.unlocked.store(clock.stamp_start(), Ordering::Release);
            });
        }
    }
}

impl Drop for RwLockReader {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        let _ = self.shared.asked.post();
        let _ = self.thread.take().map(Partner::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn all_modes_are_measured_and_the_writer_has_waited() {
        let all = harness::measure(&EXPERIMENT, harness::points(&RWLOCK));
        assert_eq!(all.len(), 3);
        all.iter().for_each(harness::check);
        let times: Vec<Semantics> = all.iter().map(|m| m.times).collect();
        assert_eq!(times, [Semantics::Operation, Semantics::Operation, Semantics::OneWay]);
    }
}
