//! Making, removing and protecting mappings, by size.

use crate::activity::Parts;
use crate::failure::{FirstError, refuse};
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe, Profile, available};
use latscope_bench::bench::{Batch, Bench};
use latscope_bench::gate::Gate;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::Semantics;
use latscope_core::units::format_size;
use latscope_os::page::{Access, Mapping};
use rustix::io::Result;
use std::collections::BTreeSet;

static MAPPING: Experiment =
    Experiment { name: "syscall.mapping", cpus: Cpus::One, scratch: false, policy: Policy::Other, run };

static PARAMS: [Param; 1] =
    [Param { name: "size", help: "Size of the mapping", kind: Kind::Size, axis: true }];

/// mmap(2).
pub static MMAP: Probe = Probe {
    id: "syscall.mmap",
    title: "mmap",
    timed: "One mmap of private anonymous memory; its pages come later, with the first touch.",
    times: Semantics::Operation,
    source: "mmap(2)",
    params: &PARAMS,
    experiment: &MAPPING,
    revision: 1,
    plan: |input, _| plan(&MMAP, input),
};

/// munmap(2).
pub static MUNMAP: Probe = Probe {
    id: "syscall.munmap",
    title: "munmap",
    timed: "One munmap of private anonymous memory whose 4 KiB pages were all written before: they are given back.",
    times: Semantics::Operation,
    source: "munmap(2)",
    params: &PARAMS,
    experiment: &MAPPING,
    revision: 1,
    plan: |input, _| plan(&MUNMAP, input),
};

/// mprotect(2).
pub static MPROTECT: Probe = Probe {
    id: "syscall.mprotect",
    title: "mprotect",
    timed: "One mprotect of memory whose 4 KiB pages are all there, to read-only and to writable in turn.",
    times: Semantics::Operation,
    source: "mprotect(2)",
    params: &PARAMS,
    experiment: &MAPPING,
    revision: 1,
    plan: |input, _| plan(&MPROTECT, input),
};

const MIB: u64 = 1 << 20;

fn plan(probe: &Probe, input: &PlanInput) -> Vec<Point> {
    let sizes: &[u64] = match input.profile {
        Profile::Quick => &[MIB],
        Profile::Normal => &[4 << 10, 64 << 10, MIB],
        Profile::Full => &[4 << 10, 64 << 10, MIB, 16 * MIB, 64 * MIB],
    };
    let point = |size: u64| {
        let title = format!("{} {}", probe.title, format_size(size));
        probe.point(params([("size", size.into())]), title, size == MIB)
    };
    input.numbers("size", sizes).into_iter().map(point).collect()
}

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let points = bench.points();
    let mut sizes = BTreeSet::new();
    for (index, point) in points.iter().enumerate() {
        let size = point.number("size");
        if let Some((reason, remedy)) = available::shortage(size) {
            bench.unsupported(index, reason, remedy);
        } else if point.probe == MPROTECT.id {
            protect(bench, index, size)?;
        } else {
            sizes.insert(size);
        }
    }
    sizes.into_iter().try_for_each(|size| map_and_unmap(bench, &points, size))
}

fn map_and_unmap(bench: &mut Bench, points: &[Point], size: u64) -> anyhow::Result<()> {
    let mut parts = Parts::default();
    let mut part = |probe: &Probe| parts.part(points, |p| p.probe == probe.id && p.number("size") == size);
    let (mmap, munmap) = (part(&MMAP), part(&MUNMAP));
    let mut first = FirstError::default();
    bench.splits(parts.points(), Gate::Thread, |splits| {
        // After an error there is nothing to learn: the loop only runs out.
        if first.happened() {
            return;
        }
        if let Some(mut mapping) = first.check(mmap.time(splits, || Mapping::anonymous(size as usize))) {
            // EINVAL: a kernel without huge pages, which is as good.
            let _ = mapping.refuse_huge_pages();
            mapping.populate();
            first.check(munmap.time(splits, || mapping.unmap()));
        }
    })?;
    first.report(bench, parts.points(), "map memory");
    Ok(())
}

fn protect(bench: &mut Bench, point: usize, size: u64) -> anyhow::Result<()> {
    let mut mapping = match populated(size as usize) {
        Ok(mapping) => mapping,
        Err(error) => {
            refuse(bench, point, "map memory", error);
            return Ok(());
        }
    };
    let mut first = FirstError::default();
    bench.batch(point, Batch { ops: 2, ..Batch::default() }, |pairs| {
        for _ in 0..pairs {
            first.check(mapping.protect(Access::Read));
            first.check(mapping.protect(Access::ReadWrite));
        }
    })?;
    first.report(bench, &[point], "mprotect");
    Ok(())
}

fn populated(bytes: usize) -> Result<Mapping> {
    let mut mapping = Mapping::anonymous(bytes)?;
    // EINVAL: a kernel without huge pages, which is as good.
    let _ = mapping.refuse_huge_pages();
    mapping.populate();
    Ok(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::report::Support;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn each_part_is_measured_and_may_be_left_out() {
        for probes in [vec![&MMAP, &MUNMAP, &MPROTECT], vec![&MUNMAP]] {
            let planned: Vec<Point> = probes.iter().flat_map(|probe| points(probe)).collect();
            assert_eq!(planned.len(), probes.len());
            for m in measure(&MAPPING, planned) {
                check(&m);
                assert_ne!(m.support, Support::Unsupported, "{}: {:?}", m.probe, m.reason);
            }
        }
    }

    #[test]
    fn a_size_that_cannot_be_mapped_has_a_reason() {
        let planned = [&MMAP, &MPROTECT]
            .map(|probe| probe.point(params([("size", (1u64 << 60).into())]), "too large", false));
        for m in measure(&MAPPING, planned.to_vec()) {
            assert_eq!(m.support, Support::Unsupported);
            assert!(m.reason.is_some() && m.remedy.is_some());
        }
    }
}
