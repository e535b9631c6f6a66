//! Making, removing and protecting mappings, by size.

use super::calls::time_loop_in;
use crate::available;
use crate::prelude::*;
use latscope_os::kernels::code::calls::SystemCallLoop;
use rustix::io::Result;

static MAPPING: Experiment = Experiment::new("syscall.mapping", Cpus::One, run_mappings);

settings! {
    /// Settings of a mapping of memory.
    struct MemoryMappingSettings, requested as MemoryMappingRequest {
        /// Size of the mapping
        size: u64 as Size, axis;
    }
}

probes! {
    MAPPING, MemoryMappingSettings, plan_mappings, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    MMAP "syscall.mmap", "mmap", "mmap(2)",
        "One mmap of private anonymous memory, without the first touch of its pages.";
    MUNMAP "syscall.munmap", "munmap", "munmap(2)",
        "One munmap of private anonymous memory whose 4 KiB pages were all written.";
    MPROTECT "syscall.mprotect", "mprotect", "mprotect(2)",
        "One mprotect of memory whose 4 KiB pages are all there, to read-only and to writable in turn."
        { at_addresses: true, };
}

const MIB: u64 = 1 << 20;

fn plan_mappings(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let sizes: &[u64] = match input.profile {
        SurveyProfile::Quick => &[MIB],
        SurveyProfile::Normal => &[4 << 10, 64 << 10, MIB],
        SurveyProfile::Full => &[4 << 10, 64 << 10, MIB, 16 * MIB, 64 * MIB],
    };
    let point = |size: u64| {
        let title = format!("{} {}", probe.title, format_size(size));
        probe.make_point(MemoryMappingSettings { size }, title, size == MIB)
    };
    MemoryMappingRequest::of(input).size.or(sizes).into_iter().map(point).collect()
}

fn run_mappings(bench: &mut Bench) -> anyhow::Result<()> {
    let points = bench.points();
    let mut sizes = BTreeSet::new();
    let mappings = bench.settings::<MemoryMappingSettings>()?.into_iter().map(|mapping| mapping.size);
    let wanted: Vec<(&str, u64)> = points.iter().map(|point| point.probe.as_str()).zip(mappings).collect();
    for (index, (probe, size)) in wanted.iter().copied().enumerate() {
        if let Some((reason, remedy)) = available::shortage(size) {
            bench.unsupported(index, reason, remedy);
        } else if probe == MPROTECT.id {
            protect(bench, index, size);
        } else {
            sizes.insert(size);
        }
    }
    for size in sizes {
        map_and_unmap(bench, &wanted, size);
    }
    Ok(())
}

fn map_and_unmap(bench: &mut Bench, wanted: &[(&str, u64)], size: u64) {
    let mut parts = ActivityParts::default();
    let mut part = |probe: &Probe| parts.add_part(wanted, |point| *point == (probe.id, size));
    let (mmap, munmap) = (part(&MMAP), part(&MUNMAP));
    let mut first = FirstError::default();
    bench.splits(parts.point_indices(), SampleGate::Thread, |splits| {
        // After an error there is nothing to learn: the loop only runs out.
        if first.has_error() {
            return;
        }
        if let Some(mut mapping) =
            first.check_result(mmap.time_operation(splits, || PageMapping::anonymous(size as usize)))
        {
            // EINVAL: a kernel without huge pages, which is as good.
            let _ = mapping.refuse_huge_pages();
            mapping.populate();
            first.check_result(munmap.time_operation(splits, || mapping.unmap()));
        }
    });
    first.ok_or_close(bench, parts.point_indices(), "map memory");
}

fn protect(bench: &mut Bench, point: usize, size: u64) {
    let mapping = ok_or_refuse(bench, point, "map memory", populated(size as usize));
    let Some(mut mapping) = mapping else { return };
    let mut calls = SystemCallLoop::protect_and_back(bench.seed(), &mut mapping);
    time_loop_in(bench, point, Batch { ops: 2, ..Batch::default() }, "mprotect", &mut calls);
}

fn populated(bytes: usize) -> Result<PageMapping> {
    let mut mapping = PageMapping::anonymous(bytes)?;
    // EINVAL: a kernel without huge pages, which is as good.
    let _ = mapping.refuse_huge_pages();
    mapping.populate();
    Ok(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn each_part_is_measured_and_may_be_left_out() {
        for probes in [vec![&MMAP, &MUNMAP, &MPROTECT], vec![&MUNMAP]] {
            let planned: Vec<MeasurementPoint> = probes.iter().flat_map(|probe| points(probe)).collect();
            assert_eq!(planned.len(), probes.len());
            for m in measure(&MAPPING, planned) {
                check(&m);
                assert_ne!(
                    m.quality.level,
                    QualityLevel::Unsupported,
                    "{}: {:?}",
                    m.probe,
                    m.joined_reasons()
                );
            }
        }
    }

    #[test]
    fn a_size_that_cannot_be_mapped_has_a_reason() {
        let planned = [&MMAP, &MPROTECT]
            .map(|probe| probe.make_point(MemoryMappingSettings { size: 1 << 60 }, "too large", false));
        for m in measure(&MAPPING, planned.to_vec()) {
            assert_eq!(m.quality.level, QualityLevel::Unsupported);
            assert!(m.joined_reasons().is_some() && m.joined_remedies().is_some());
        }
    }
}
