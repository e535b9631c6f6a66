//! Operations on a file by its name: rename, stat, open and close.

use super::scratch::{Scratch, gate};
use super::{DEVICE, DIRECTORY, FILESYSTEM, in_each_directory};
use crate::failure::{FirstError, refuse};
use crate::{Cpus, Experiment, Param, PlanInput, Probe};
use latscope_bench::bench::{Batch, Bench};
use latscope_bench::gate::Gate;
use latscope_core::plan::{Params, Point, Policy};
use latscope_core::report::Semantics;
use rustix::fs::{AtFlags, OFlags, renameat, statat};
use rustix::io::Result;

static NAMES: Experiment =
    Experiment { name: "file.name", cpus: Cpus::One, scratch: true, policy: Policy::Other, run };

static PARAMS: [Param; 3] = [DIRECTORY, FILESYSTEM, DEVICE];

/// rename(2).
pub static RENAME: Probe = Probe {
    id: "file.rename",
    title: "rename a file",
    timed: "One rename of an empty file within its directory, between two names in turn; nothing is replaced.",
    times: Semantics::Operation,
    source: "rename(2)",
    params: &PARAMS,
    experiment: &NAMES,
    revision: 1,
    plan: |input, _| plan(&RENAME, input),
};

/// stat(2).
pub static STAT: Probe = Probe {
    id: "file.stat",
    title: "stat a file",
    timed: "One fstatat of a file by its name in an open directory; name and inode are in the kernel's caches.",
    times: Semantics::Operation,
    source: "stat(2)",
    params: &PARAMS,
    experiment: &NAMES,
    revision: 1,
    plan: |input, _| plan(&STAT, input),
};

/// open(2) and close(2).
pub static OPEN_CLOSE: Probe = Probe {
    id: "file.open-close",
    title: "open and close a file",
    timed: "One openat for reading, by a name in an open directory, and one close; name and inode are in the kernel's \
            caches.",
    times: Semantics::Operation,
    source: "open(2), close(2)",
    params: &PARAMS,
    experiment: &NAMES,
    revision: 1,
    plan: |input, _| plan(&OPEN_CLOSE, input),
};

fn plan(probe: &Probe, input: &PlanInput) -> Vec<Point> {
    in_each_directory(probe, input, |_| vec![(Params::new(), probe.title.to_owned(), true)])
}

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open(bench)?;
    let directory = scratch.directory();
    for (index, point) in bench.points().iter().enumerate() {
        let (mut here, mut there) = (c"one", c"other");
        if let Err(error) = scratch.file(here, OFlags::WRONLY | OFlags::CREATE) {
            refuse(bench, index, "create a file", error);
            continue;
        }
        match point.probe.as_str() {
            // The file system may wait for its journal: that is part of renaming.
            "file.rename" => time(bench, index, Gate::Open, "rename a file", || {
                renameat(directory, here, directory, there)?;
                std::mem::swap(&mut here, &mut there);
                Ok(())
            })?,
            "file.stat" => {
                time(bench, index, gate(point), "stat a file", || {
                    statat(directory, here, AtFlags::empty()).map(drop)
                })?;
            }
            _ => time(bench, index, gate(point), "open a file", || {
                scratch.file(here, OFlags::RDONLY).map(drop)
            })?,
        }
        scratch.remove(here)?;
    }
    Ok(())
}

fn time(
    bench: &mut Bench,
    point: usize,
    gate: Gate,
    operation: &str,
    mut call: impl FnMut() -> Result<()>,
) -> anyhow::Result<()> {
    if let Err(error) = call() {
        refuse(bench, point, operation, error);
        return Ok(());
    }
    let mut first = FirstError::default();
    bench.batch(point, Batch { gate, ..Batch::default() }, |calls| {
        for _ in 0..calls {
            first.check(call());
        }
    })?;
    first.report(bench, &[point], operation);
    Ok(())
}
