//! Threads that compute on CPUs of their own while the measuring thread makes a call that interrupts them, and that
//! note the longest time in which they did not get on.

use crate::prelude::*;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Preparation of a sibling before it computes: it touches the page of the next call.
pub type Prepare = Box<dyn FnMut() + Send>;

/// Siblings of the measuring thread, a thread a CPU.
#[derive(Debug)]
pub struct Siblings {
    shared: Arc<SiblingThreadState>,
    clock: AnyClock,
    timebase: Timebase,
    /// Number of rounds begun.
    rounds: u64,
    threads: Vec<Partner<()>>,
}

#[derive(Debug)]
struct SiblingThreadState {
    /// Phase: twice the number of the round while siblings prepare and compute, one more after it.
    phase: AtomicU64,
    /// A slot for each sibling.
    slots: Vec<SiblingGapSlot>,
}

/// Place of one sibling, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct SiblingGapSlot {
    /// Phase that this sibling has reached.
    reached: AtomicU64,
    /// Longest gap of the round, ticks; [`DISTURBED`] if another thread had the CPU.
    gap: AtomicU64,
}

const DISTURBED: u64 = u64::MAX;
const DISMISSED: u64 = u64::MAX;

/// Time for which the measuring thread spins for a sibling that is late, ns, and for which it sleeps then.
const PATIENCE_NS: f64 = 100_000.0;
const RESPITE: Duration = Duration::from_micros(100);

impl Siblings {
    /// Starts a sibling on each of `cpus`; `prepare` makes what each does at the begin of a round.
    ///
    /// # Errors
    /// A thread cannot be started or put on its CPU.
    pub fn start_threads(
        timebase: Timebase,
        cpus: &[u32],
        prepare: impl Fn() -> Prepare,
    ) -> Result<Siblings> {
        let slots = cpus.iter().map(|_| SiblingGapSlot::default()).collect();
        let shared = Arc::new(SiblingThreadState { phase: AtomicU64::new(0), slots });
        let mut siblings = Siblings {
            shared: shared.clone(),
            clock: timebase.clock(),
            timebase,
            rounds: 0,
            threads: Vec::new(),
        };
        for (index, cpu) in cpus.iter().copied().enumerate() {
            let (shared, prepare, clock) = (shared.clone(), prepare(), timebase.clock());
            let body = move || run_sibling(&shared, index, clock, prepare);
            siblings.threads.push(threads::start_partner(move || threads::pin(cpu), body)?);
        }
        Ok(siblings)
    }

    /// Begins a round: returns when all siblings have prepared themselves and compute.
    pub fn begin_round(&mut self) {
        self.rounds += 1;
        self.enter_phase(2 * self.rounds);
    }

    /// Ends a round. Returns the longest gap of each sibling, ticks; `None` if another thread had the CPU of one.
    pub fn end_round(&mut self) -> Option<impl Iterator<Item = u64>> {
        self.enter_phase(2 * self.rounds + 1);
        let gaps = || self.shared.slots.iter().map(|slot| slot.gap.load(Relaxed));
        gaps().all(|gap| gap != DISTURBED).then(gaps)
    }

    fn enter_phase(&self, phase: u64) {
        self.shared.phase.store(phase, Release);
        let mut began = self.clock.stamp_start();
        while self.shared.slots.iter().any(|slot| slot.reached.load(Acquire) != phase) {
            if self.timebase.interval_ns(self.clock.stamp_end() - began) > PATIENCE_NS {
                std::thread::sleep(RESPITE);
                began = self.clock.stamp_start();
            }
        }
    }
}

impl Drop for Siblings {
    fn drop(&mut self) {
        self.shared.phase.store(DISMISSED, Release);
        self.threads.drain(..).for_each(Partner::join);
    }
}

/// Returns the context switches of the calling thread so far. Time that a hypervisor or an interrupt takes is no
/// switch: it is a part of what a call that interrupts others costs.
pub fn switches() -> u64 {
    let counts = thread_counts();
    counts.voluntary + counts.involuntary
}

/// Body of a sibling.
fn run_sibling(shared: &SiblingThreadState, index: usize, clock: AnyClock, mut prepare: Prepare) {
    let slot = &shared.slots[index];
    let mut last = 0;
    loop {
        let phase = shared.phase.load(Acquire);
        if phase == DISMISSED {
            return;
        }
        if phase == last || phase % 2 == 1 {
            std::hint::spin_loop();
            continue;
        }
        prepare();
        let before = switches();
        // Before the caller may go on: its interrupt can come at once.
        let began = clock.stamp_end();
        slot.reached.store(phase, Release);
        let gap = longest_gap(clock, began, || shared.phase.load(Acquire) == phase);
        last = shared.phase.load(Acquire);
        slot.gap.store(if switches() == before { gap } else { DISTURBED }, Relaxed);
        slot.reached.store(last, Release);
    }
}

/// Reads the clock while `goes_on`; the longest distance of two readings, of which `before` is the first, beyond the
/// shortest one, ticks.
fn longest_gap(clock: impl Clock, mut before: u64, mut goes_on: impl FnMut() -> bool) -> u64 {
    let (mut longest, mut shortest) = (0, u64::MAX);
    while goes_on() {
        let now = clock.stamp_end();
        let gap = now.saturating_sub(before);
        (longest, shortest) = (longest.max(gap), shortest.min(gap));
        before = now;
    }
    longest.saturating_sub(shortest)
}

/// Numbers of threads beside the caller: none, powers of two, and as many as there are other CPUs.
pub(crate) fn doubled(others: u64) -> BTreeSet<u64> {
    (0..7).map(|power| 1 << power).filter(|threads| *threads < others).chain([0, others]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn the_longest_gap_is_beyond_the_usual_distance() {
        #[derive(Clone, Copy)]
        struct Scripted<'a>(&'a Cell<usize>);
        impl Clock for Scripted<'_> {
            fn stamp_start(self) -> u64 {
                self.stamp_end()
            }
            fn stamp_end(self) -> u64 {
                let index = self.0.get();
                self.0.set(index + 1);
                [100, 130, 160, 700, 731][index]
            }
        }
        let read = Cell::new(1);
        assert_eq!(longest_gap(Scripted(&read), 100, || read.get() < 5), 540 - 30);
        assert_eq!(longest_gap(Scripted(&read), 100, || false), 0, "no second reading");
    }

    #[test]
    fn each_sibling_prepares_itself_once_a_round() {
        let cpu = latscope_os::sched::allowed_cpus().unwrap()[0];
        let (timebase, _) = Timebase::calibrate();
        let prepared = Arc::new(AtomicU32::new(0));
        let prepare = || -> Prepare {
            let prepared = prepared.clone();
            Box::new(move || {
                prepared.fetch_add(1, Relaxed);
            })
        };
        let mut siblings = Siblings::start_threads(timebase, &[cpu; 2], prepare).unwrap();
        for round in 1..4 {
            siblings.begin_round();
            assert_eq!(prepared.load(Relaxed), 2 * round);
            // On one CPU the siblings disturb each other, or not.
            if let Some(gaps) = siblings.end_round() {
                assert_eq!(gaps.count(), 2);
            }
        }
    }
}
