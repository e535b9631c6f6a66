//! Children that exit at once: fork by resident size, and vfork.

use crate::available;
use crate::prelude::*;
use crate::scheduled::{FreePlacement, apply_placement, suffix};
use latscope_os::process_probe::{ChildMemoryMode, fork_exit, keep_children};

static FORKS: Experiment = Experiment::new("process.fork", Cpus::One, run_forks)
    .setup_per_point(0.05)
    .fewer_rounds(4, "the memory of the parent is filled first");

settings! {
    struct ForkParentSettings, requested as ForkParentRequest {
        /// Memory of the parent that is resident
        size: u64 as Size, axis;
        /// `free`, where asked for: the scheduler places parent and child. Otherwise both are on one CPU
        placement: Option<FreePlacement>;
    }
}

probes! {
    FORKS, ForkParentSettings, plan_fork, ..ProbeFacts { by: Some(SyscallInvocation::Libc), ..ProbeFacts::DEFAULT };
    FORK "process.fork", "fork, exit, wait", "fork(2), wait(2)",
        "fork (the clone system call), a child that exits at once, and the wait for it; the parent has written \
        that much memory in 4 KiB pages, and does not write to it between the forks.";
}

probes! {
    FORKS, (), crate::only_point;
    VFORK "process.vfork", "vfork, exit, wait", "vfork(2), wait(2)",
        "vfork (the clone system call, memory shared), a child that exits at once, and the wait for it, on one CPU.";
}

const MIB: u64 = 1 << 20;

fn plan_fork(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let sizes: &[u64] = match input.profile {
        SurveyProfile::Quick => &[MIB, 64 * MIB],
        SurveyProfile::Normal => &[MIB, 64 * MIB, 256 * MIB],
        SurveyProfile::Full => &[MIB, 64 * MIB, 256 * MIB, 1024 * MIB],
    };
    let asked = ForkParentRequest::of(input);
    let placement = asked.placement.first();
    let point = |size: u64| {
        let title = format!("{}, {} resident{}", probe.title, format_size(size), suffix(placement));
        probe.make_point(ForkParentSettings { size, placement }, title, size <= 64 * MIB)
    };
    asked.size.or(sizes).into_iter().map(point).collect()
}

fn run_forks(bench: &mut Bench) -> anyhow::Result<()> {
    keep_children();
    for (index, point) in bench.points().iter().enumerate() {
        if point.probe == VFORK.id {
            apply_placement(bench, None)?;
            time_children(bench, index, ChildMemoryMode::Shared);
        } else {
            let ForkParentSettings { size, placement } = ForkParentSettings::read(point)?;
            apply_placement(bench, placement)?;
            fork(bench, index, size);
        }
    }
    Ok(())
}

fn fork(bench: &mut Bench, point: usize, size: u64) {
    if let Some((reason, remedy)) = available::shortage(size) {
        bench.unsupported(point, reason, remedy);
        return;
    }
    match PageMapping::anonymous(size as usize) {
        Err(error) => refuse(bench, point, "map memory", error),
        Ok(mut memory) => {
            // EINVAL: a kernel without huge pages, which is as good.
            let _ = memory.refuse_huge_pages();
            memory.populate();
            time_children(bench, point, ChildMemoryMode::Copied);
        }
    }
}

fn time_children(bench: &mut Bench, point: usize, memory: ChildMemoryMode) {
    let Some(()) = ok_or_refuse(bench, point, "fork", fork_exit(memory)) else { return };
    time_each(bench, point, SampleGate::Open, "fork", || fork_exit(memory));
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn children_are_made_and_none_is_left() {
        let planned: Vec<MeasurementPoint> = [&FORK, &VFORK].into_iter().flat_map(points).collect();
        assert_eq!(planned.len(), 3);
        for m in measure(&FORKS, planned) {
            check(&m);
            assert_eq!(m.quality.level, QualityLevel::Ok, "{:?}", m.joined_reasons());
        }
    }

    #[test]
    fn more_memory_than_there_is_closes_the_point_with_a_reason() {
        let point =
            FORK.make_point(ForkParentSettings { size: 1 << 50, placement: None }, "too large", false);
        let measured = measure(&FORKS, vec![point]);
        check(&measured[0]);
        assert_eq!(measured[0].quality.level, QualityLevel::Unsupported);
        assert!(measured[0].joined_remedies().is_some());
    }
}
