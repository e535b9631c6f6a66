//! Barriers on all CPUs at once: by interrupting those that run threads of the process, and by waiting for a grace
//! period of the kernel.

use crate::noise::counters::CpuKernelCounters;
use crate::prelude::*;
use crate::siblings::{Siblings, doubled, switches};
use latscope_bench::bench::Addresses;
use latscope_os::kernels::code::calls::SystemCallLoop;
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

probes! {
    EXPERIMENT, MembarrierSettings, plan_barriers, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), at_addresses: true, ..ProbeFacts::DEFAULT };
    MEMBARRIER "sync.membarrier", "barrier on all CPUs",
        "membarrier(2) PRIVATE_EXPEDITED, GLOBAL; CAL of proc_interrupts(5)",
        "One membarrier. Mode private: the kernel interrupts each CPU that runs a thread of this process; so \
        many others compute. Mode global: the kernel waits for an RCU grace period."
        { exclusive_cpus: ExclusiveCpus::ThreadsAndOne, may_be_zero: &["threads"],
          sensitive_to: &[Condition::Interrupts, Condition::Tick], };
}

static EXPERIMENT: Experiment = Experiment::new("sync.membarrier", Cpus::All, run_barriers)
    .setup_per_point(0.01)
    .fewer_rounds(4, "its threads compute on all CPUs");

words! {
    /// Kind of the barrier.
    enum MembarrierKind {
        /// Interrupts of the CPUs that run threads of this process.
        Private = "private",
        /// A grace period of RCU.
        Global = "global",
    }
}

settings! {
    /// Settings of a call of membarrier(2).
    struct MembarrierSettings, requested as MembarrierRequest {
        /// Interrupts of the CPUs that run this process (private), or a grace period of RCU (global).
        mode: MembarrierKind;
        /// Other threads that compute meanwhile, each on its own CPU.
        threads: u64, axis;
    }
}

impl MembarrierKind {
    fn command(self) -> MembarrierCommand {
        match self {
            MembarrierKind::Private => MembarrierCommand::PrivateExpedited,
            MembarrierKind::Global => MembarrierCommand::Global,
        }
    }
}

fn plan_barriers(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let others = (machine.allowed.0.len() as u64).saturating_sub(1).max(1);
    let asked = MembarrierRequest::of(input);
    let mut points = Vec::new();
    // In a survey the grace period alone: it is as long as the kernel's settings make it.
    let modes = if input.survey { &[MembarrierKind::Private][..] } else { MembarrierKind::ALL };
    for mode in asked.mode.or(modes) {
        let usual = match (mode, input.survey) {
            (MembarrierKind::Global, _) => BTreeSet::from([0]),
            (MembarrierKind::Private, true) => BTreeSet::from([others]),
            (MembarrierKind::Private, false) => doubled(others),
        };
        for threads in asked.threads.or(&usual.into_iter().collect::<Vec<_>>()) {
            let beside = match threads {
                0 => "alone".to_owned(),
                threads => format!("{} running", count_with_noun(threads, "other thread")),
            };
            let title = match mode {
                MembarrierKind::Private => format!("membarrier, {beside}"),
                MembarrierKind::Global => format!("RCU grace period by membarrier, {beside}"),
            };
            points.push(probe.make_point(MembarrierSettings { mode, threads }, title, input.survey));
        }
    }
    points
}

fn run_barriers(bench: &mut Bench) -> Result<()> {
    for (point, MembarrierSettings { mode, threads }) in bench.settings()?.into_iter().enumerate() {
        if !enough_cpus(bench, &[point], threads) {
            continue;
        }
        if let Err((reason, remedy)) = prepare_barrier(mode) {
            bench.unsupported(point, reason, remedy);
        } else {
            measure_barrier(bench, point, mode, threads as usize)?;
        }
    }
    Ok(())
}

/// Registers the process for the barrier. Otherwise returns the reason and the remedy.
fn prepare_barrier(mode: MembarrierKind) -> Result<(), (String, &'static str)> {
    let operation = format!("membarrier, {}", mode.word());
    // A kernel with nohz_full has no global barrier, and a filter answers that there is none at all.
    if !membarrier_query().contains_command(mode.command()) {
        return Err(explain(&operation, Errno::NOSYS));
    }
    match mode {
        MembarrierKind::Global => Ok(()),
        MembarrierKind::Private => membarrier(MembarrierCommand::RegisterPrivateExpedited)
            .map_err(|error| explain(&operation, error)),
    }
}

fn measure_barrier(bench: &mut Bench, point: usize, mode: MembarrierKind, threads: usize) -> Result<()> {
    let timebase = bench.timebase();
    let cpus = bench.cpus()[1..=threads].to_vec();
    let mut siblings = Siblings::start_threads(timebase, &cpus, || Box::new(|| ()))?;
    let mut first = FirstError::default();
    let (mut gaps, mut calls) = (Vec::new(), SystemCallLoop::membarrier(bench.seed(), mode.command()));
    let mut addresses = Addresses::new(calls.address_count(), bench.stop().events);
    let counted = CpuKernelCounters::read_current();
    bench.splits(&[point], SampleGate::Open, |splits| {
        siblings.begin_round();
        let (before, address) = (switches(), addresses.next_event());
        let start = splits.now();
        let barrier = first.check_result(calls.run_at(address, 1));
        let end = splits.now();
        // The global barrier sleeps.
        let alone = mode == MembarrierKind::Global || switches() == before;
        if let Some(seen) = siblings.end_round().filter(|_| alone && barrier.is_some()) {
            gaps.extend(seen.max().map(|gap| timebase.span(gap)));
            splits.set_part(0, start, end);
            addresses.record_time(timebase.interval_ns(end.saturating_sub(start)));
        }
    });
    let after = CpuKernelCounters::read_current();
    if !first.ok_or_close(bench, &[point], "membarrier") {
        return Ok(());
    }
    if mode == MembarrierKind::Global {
        // A grace period is thousands of times as long as what an address could decide.
        return Ok(());
    }
    bench.state_addresses(point, &addresses);
    if threads > 0 {
        let interrupts: u64 = cpus.iter().map(|cpu| after.since(&counted, *cpu).interrupts_from("CAL")).sum();
        bench.add_value(
            point,
            "interrupts",
            interrupts as f64 / calls.iterations().max(1) as f64,
            "count",
            Better::Less,
        );
        if let Some(median) = median(&gaps) {
            bench.add_value(point, "gap", median, "ns", Better::Less);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SurveyProfile;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn planned(cpus: &str, survey: bool) -> Vec<(String, u64)> {
        let machine = Machine { allowed: cpus.parse().unwrap(), ..Machine::default() };
        let input = PlanInput { profile: SurveyProfile::Normal, survey, ..harness::input() };
        MEMBARRIER
            .plan(&input, &machine)
            .iter()
            .map(|point| (point.text_param("mode").to_owned(), point.numeric_param("threads")))
            .collect()
    }

    #[test]
    fn by_the_number_of_running_threads_and_one_row_in_a_survey() {
        let of = |mode: &str, threads| (mode.to_owned(), threads);
        assert_eq!(planned("0-3", true), [of("private", 3)]);
        let all = [of("private", 0), of("private", 1), of("private", 2), of("private", 3), of("global", 0)];
        assert_eq!(planned("0-3", false), all);
    }

    /// The second method: where the kernel counts function call interrupts, each call causes one on each CPU.
    #[test]
    fn both_modes_are_measured_and_the_kernel_counts_the_interrupts() {
        let points = MEMBARRIER.plan(&PlanInput { survey: false, ..harness::input() }, &harness::machine());
        let alone = harness::machine().allowed.0.len() == 1;
        let text = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
        for m in harness::measure(&EXPERIMENT, points) {
            harness::check(&m);
            let other = m.numeric_param("threads") != Some(0);
            assert!(
                m.quality.level != QualityLevel::Unsupported
                    || other && alone
                    || m.joined_remedies().is_some(),
                "{m:?}"
            );
            if other && m.quality.level != QualityLevel::Unsupported {
                assert!(m.values["interrupts"].value > 0.0 || !text.contains("CAL:"), "{m:?}");
            }
        }
    }
}
