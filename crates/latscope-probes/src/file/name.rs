//! Operations on a file by its name: rename, stat, open and close.

use super::scratch::{Scratch, gate};
use super::{Place, in_each_directory};
use crate::prelude::*;
use crate::syscall::calls::time_batches;
use rustix::fs::{AtFlags, renameat, statat};

static NAMES: Experiment = Experiment::new("file.name", Cpus::One, run).in_scratch();

probes! {
    NAMES, Place, plan, ..crate::Facts::BATCHES;
    RENAME "file.rename", "rename a file", "rename(2)",
        "One rename of an empty file within its directory, between two names in turn; nothing is replaced.";
    STAT "file.stat", "stat a file", "stat(2)",
        "One fstatat of a file by its name in an open directory; name and inode are in the kernel's caches.";
    OPEN_CLOSE "file.open-close", "open and close a file", "open(2), close(2)",
        "One openat for reading, by a name in an open directory, and one close; name and inode are in the kernel's \
            caches.";
}

fn plan(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<Point> {
    in_each_directory(probe, input, |place| vec![(place, probe.title.to_owned(), true)])
}

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open(bench)?;
    let directory = scratch.directory();
    for (index, point) in bench.points().iter().enumerate() {
        let gate = gate(&Place::read(point)?);
        let batch = |gate| Batch { gate, ..Batch::default() };
        let (mut here, mut there) = (c"one", c"other");
        let created = scratch.file(here, OFlags::WRONLY | OFlags::CREATE);
        let Some(_) = possible(bench, index, "create a file", created) else { continue };
        match point.probe.as_str() {
            // The file system may wait for its journal: that is part of renaming.
            "file.rename" => time_batches(bench, index, batch(Gate::Open), "rename a file", || {
                renameat(directory, here, directory, there)?;
                std::mem::swap(&mut here, &mut there);
                Ok(())
            }),
            "file.stat" => {
                time_batches(bench, index, batch(gate), "stat a file", || {
                    statat(directory, here, AtFlags::empty()).map(drop)
                });
            }
            _ => time_batches(bench, index, batch(gate), "open a file", || {
                scratch.file(here, OFlags::RDONLY).map(drop)
            }),
        }
        scratch.remove(here)?;
    }
    Ok(())
}
