//! The conditions under which two threads hand over.
//!
//! Found by experiment (Linux 6.18, two CPUs, semaphores; idle, and with four
//! busy loops beside it):
//!
//! * On one CPU two threads of SCHED_OTHER with nothing else on the CPU are what
//!   a plain loop of post and wait has: 4.6 to 5.8 µs for the round trip in such
//!   a loop in C (means of 300), 4.3 to 5.4 here (single round trips), in seven
//!   pairs of runs. Both contain hand-offs that never sleep. With a SCHED_IDLE
//!   process and under SCHED_BATCH it was 6.2 to 8.3 µs here.
//! * On two CPUs a SCHED_IDLE process on each keeps it from idling. A
//!   wake-up preempts it at once: 21.2 µs and 22.1 beside the busy loops. With
//!   a short time slice a wake-up preempts the busy loops more often, and three
//!   times as many round trips get done.
//!
//! None of it takes a privilege. SCHED_FIFO gives the same figures, but only
//! to those who may.

use crate::prelude::*;
use latscope_os::child::{self, ForkChild};
use latscope_os::kernels::cycle::dependent_adds;
use latscope_os::sched::ThreadSchedPolicy;

words! {
    /// Placement of the two threads.
    pub enum HandOffPlacement {
        /// Both on one CPU.
        SameCore = "same-core",
        /// Each on its own, which idles while its thread waits.
        TwoCores = "two-cores",
        /// Each on its own, both kept from idling.
        TwoCoresAwake = "two-cores-awake",
        /// Wherever the scheduler puts them.
        Scheduler = "scheduler",
    }
}

/// Length of a time slice, as short as the kernel grants.
const SLICE_NS: u64 = 100_000;

impl HandOffPlacement {
    /// CPUs of the two threads; `None` where there are not enough.
    pub fn cpus(self, granted: &[u32]) -> Option<[u32; 2]> {
        match (self, granted) {
            (_, []) => None,
            (HandOffPlacement::SameCore, [first, ..]) => Some([*first; 2]),
            (_, [first, second, ..]) => Some([*first, *second]),
            _ => None,
        }
    }

    /// Placements that threads are put into; the scheduler's own is measured where it is asked for.
    pub const FIXED: [HandOffPlacement; 3] =
        [HandOffPlacement::SameCore, HandOffPlacement::TwoCores, HandOffPlacement::TwoCoresAwake];

    /// Gate that decides which groups of round trips are clean.
    pub fn gate(self) -> SampleGate {
        match self {
            HandOffPlacement::SameCore => SampleGate::OneCpu,
            // The waiting side sleeps while the other works: no CPU time is missing that could be asked for.
            _ => SampleGate::Open,
        }
    }

    /// The scheduling policy of both threads.
    pub fn policy(self) -> ThreadSchedPolicy {
        ThreadSchedPolicy::Other
    }

    fn awake(self) -> bool {
        self == HandOffPlacement::TwoCoresAwake
    }
}

/// Remedy for threads that could not be set up.
pub const REMEDY: &str = "allow the call (a container's seccomp filter?), more threads (ulimit -u, pids.max), and the CPUs (cpuset)";

/// Puts the calling thread on `cpu`, under the policy of the placement.
///
/// # Errors
/// The CPU or the policy is refused.
pub fn place_thread(placement: HandOffPlacement, cpu: u32) -> Result<()> {
    threads::pin(cpu)?;
    // Where the call is refused altogether, the policy may still be the right one.
    if sched::policy()? != placement.policy() {
        sched::set_policy(placement.policy())?;
    }
    // Kernels that know no slices ignore it; nothing measured depends on it
    // but how often a busy machine lets us measure.
    let _ = sched::set_slice(SLICE_NS);
    Ok(())
}

/// Lets the calling thread run on all of `cpus`, under the policy of the placement.
///
/// # Errors
/// The CPUs or the policy are refused.
pub(crate) fn settle_freely(cpus: &[u32]) -> Result<()> {
    sched::pin(cpus).context("the CPUs cannot be used")?;
    if sched::policy()? != HandOffPlacement::Scheduler.policy() {
        sched::set_policy(HandOffPlacement::Scheduler.policy())?;
    }
    Ok(())
}

/// Reason why experiments that keep CPUs busy first are measured in fewer rounds.
pub(crate) const AWAKE: &str = "all CPUs are kept busy first";

/// Time for which CPUs are kept busy before operations that need several busy CPUs are timed.
const HEAT: Duration = Duration::from_millis(300);

/// Keeps all of `cpus` busy for a while, so that what is measured next finds
/// them as they are under lasting work. A host puts virtual CPUs that are all
/// busy on cores of their own within some 100 ms and lets those that mostly
/// sleep share a neighbourhood: a line went from CPU to CPU and back in 104 ns
/// before and 490 ns after that (KVM, two CPUs). Clocks that rise under work
/// settle as well. For that an experiment has fewer rounds in a survey.
pub fn warm_up_cpus(bench: &Bench) {
    let name = &bench.step().name;
    let fewer = crate::REGISTRY.experiment(name).is_none_or(|experiment| experiment.fewer_rounds.is_some());
    debug_assert!(fewer, "{name} keeps CPUs busy first: its experiment has `fewer_rounds`");
    std::thread::scope(|scope| {
        for cpu in bench.cpus() {
            // A CPU that stays cool is no reason not to measure.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _ = sched::pin(&[*cpu]);
                let begun = Instant::now();
                while begun.elapsed() < HEAT {
                    std::hint::black_box(dependent_adds(1_000));
                }
            });
        }
    });
}

/// Starts the processes that keep the CPUs of a placement from idling, until they are dropped. A point for
/// which that fails is marked.
pub fn keep_awake(
    bench: &mut Bench,
    point: usize,
    placement: HandOffPlacement,
    cpus: [u32; 2],
) -> Vec<ForkChild> {
    let mut children = Vec::new();
    if placement.awake() {
        let second = if cpus[0] == cpus[1] { 1 } else { 2 };
        for cpu in &cpus[..second] {
            match child::keep_awake(*cpu) {
                Ok(child) => children.push(child),
                Err(error) => {
                    let reason = format!("CPU {cpu} was not kept from idling: no process for it: {error}");
                    bench.degrade(point, "not-kept-awake", reason, more_tasks());
                }
            }
        }
    }
    children
}

/// Fewest round trips whose median is worth showing.
const ENOUGH: u64 = 64;

/// Marks a point for which a busy machine left too little time.
pub(crate) fn check_count(bench: &mut Bench, point: usize, trips: u64) {
    let wanted = bench.stop().events.min(ENOUGH);
    if trips < wanted {
        let reason =
            format!("only {trips} round trips were possible in the time: other threads held the CPUs");
        let remedy = "run it on a quieter machine, or longer (--full, --duration)";
        bench.degrade(point, "few-samples", reason, remedy);
    }
}

/// Marks a point for which a CPU may have idled after all.
pub(crate) fn check_awake(bench: &mut Bench, point: usize, children: &[ForkChild]) {
    if children.iter().any(ForkChild::has_ended) {
        let reason = "the CPU was not kept from idling: its process got no CPU, or not the policy SCHED_IDLE";
        bench.degrade(point, "not-kept-awake", reason, "allow sched_setattr(2) in the seccomp filter");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeywordEnum;

    #[test]
    fn a_placement_takes_the_cpus_it_needs() {
        assert_eq!(HandOffPlacement::SameCore.cpus(&[3, 5]), Some([3, 3]));
        assert_eq!(HandOffPlacement::TwoCores.cpus(&[3, 5]), Some([3, 5]));
        assert_eq!(HandOffPlacement::TwoCoresAwake.cpus(&[3]), None);
        assert_eq!(HandOffPlacement::SameCore.cpus(&[]), None);
        assert!(HandOffPlacement::ALL.iter().all(|placement| placement.cpus(&[0, 1]).is_some()));
    }

    #[test]
    fn a_settled_thread_has_its_cpu_and_policy() {
        std::thread::spawn(|| {
            let cpu = sched::allowed_cpus().unwrap()[0];
            for placement in [HandOffPlacement::SameCore, HandOffPlacement::TwoCores] {
                place_thread(placement, cpu).unwrap();
                assert_eq!(sched::allowed_cpus().unwrap(), [cpu]);
                assert_eq!(sched::policy().unwrap(), placement.policy());
            }
        })
        .join()
        .unwrap();
    }
}
