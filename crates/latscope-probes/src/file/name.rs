//! Operations on a file by its name: rename, stat, open and close.

use super::scratch::{Scratch, gate};
use super::{FileProbeDirectory, in_each_directory};
use crate::prelude::*;
use crate::syscall::calls::{FACTS, time_loop_in};
use latscope_os::kernels::code::calls::SystemCallLoop;
use rustix::fd::AsFd;

static NAMES: Experiment = Experiment::new("file.name", Cpus::One, run_path_calls).in_scratch();

probes! {
    NAMES, FileProbeDirectory, plan_path_calls, ..FACTS;
    RENAME "file.rename", "rename a file", "rename(2)",
        "One rename of an empty file within its directory, between two names in turn; nothing is replaced.";
    STAT "file.stat", "stat a file", "stat(2)",
        "One fstatat of a file by its name in an open directory; name and inode are in the kernel's caches.";
    OPEN_CLOSE "file.open-close", "open and close a file", "open(2), close(2)",
        "One openat for reading, by a name in an open directory, and one close; name and inode are in the kernel's \
            caches.";
}

fn plan_path_calls(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    in_each_directory(probe, input, |place| vec![(place, probe.title.to_owned(), true)])
}

fn run_path_calls(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open_for_step(bench)?;
    let (directory, seed) = (scratch.directory().as_fd(), bench.seed());
    for (index, point) in bench.points().iter().enumerate() {
        let gate = gate(&FileProbeDirectory::read(point)?);
        let (here, there) = (c"one", c"other");
        let created = scratch.file(here, OFlags::WRONLY | OFlags::CREATE);
        let Some(_) = ok_or_refuse(bench, index, "create a file", created) else { continue };
        let (operation, ops, gate, mut calls) = match point.probe.as_str() {
            // The file system may wait for its journal: that is part of renaming.
            "file.rename" => {
                let calls = SystemCallLoop::rename_and_back(seed, directory, here, there);
                ("rename a file", 2, SampleGate::Open, calls)
            }
            "file.stat" => ("stat a file", 1, gate, SystemCallLoop::stat_in(seed, directory, here)),
            _ => ("open a file", 1, gate, SystemCallLoop::open_close_in(seed, directory, here)),
        };
        time_loop_in(bench, index, Batch { ops, gate, ..Batch::default() }, operation, &mut calls);
        scratch.remove(here)?;
    }
    Ok(())
}
