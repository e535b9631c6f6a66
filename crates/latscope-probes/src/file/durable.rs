//! Making written data durable: fsync and fdatasync.

use super::scratch::Scratch;
use super::{DEVICE, DIRECTORY, FILESYSTEM, MODE_HELP, in_each_directory};
use crate::failure::{FirstError, explain, refuse};
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe};
use latscope_bench::bench::Bench;
use latscope_bench::gate::Gate;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::Semantics;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fdatasync, fsync, ftruncate};
use rustix::io::{Errno, Result, pwrite};
use std::ffi::CStr;

static DURABLE: Experiment =
    Experiment { name: "file.durable", cpus: Cpus::One, scratch: true, policy: Policy::Other, run };

const MODES: [&str; 2] = ["overwrite", "append"];

static PARAMS: [Param; 4] = [
    Param { name: "mode", help: MODE_HELP, kind: Kind::Choice(&MODES), axis: false },
    DIRECTORY,
    FILESYSTEM,
    DEVICE,
];

/// fsync(2).
pub static FSYNC: Probe = Probe {
    id: "file.fsync",
    title: "fsync",
    timed: "One fsync after a write of 4 KiB, which is not timed: until data and inode are on the device.",
    times: Semantics::Operation,
    source: "fsync(2)",
    params: &PARAMS,
    experiment: &DURABLE,
    revision: 1,
    plan: |input, _| plan(&FSYNC, input),
};

/// fdatasync(2).
pub static FDATASYNC: Probe = Probe {
    id: "file.fdatasync",
    title: "fdatasync",
    timed: "One fdatasync after a write of 4 KiB, which is not timed: until the data are on the device, and of the inode \
            what is needed to find them.",
    times: Semantics::Operation,
    source: "fdatasync(2)",
    params: &PARAMS,
    experiment: &DURABLE,
    revision: 1,
    plan: |input, _| plan(&FDATASYNC, input),
};

fn plan(probe: &Probe, input: &PlanInput) -> Vec<Point> {
    let modes = input.texts("mode", &MODES);
    in_each_directory(probe, input, |directory| {
        let asked = MODES.into_iter().filter(|mode| modes.iter().any(|asked| asked == mode));
        let point = |mode: &'static str| {
            let title = match mode {
                "overwrite" => format!("{} 4 KiB", probe.title),
                _ => format!("{} 4 KiB appended", probe.title),
            };
            // A tmpfs has nothing to make durable: the call returns at once.
            let row = mode == "overwrite" && directory.filesystem != "tmpfs";
            (params([("mode", mode.into())]), title, row)
        };
        asked.map(point).collect()
    })
}

const NAME: &CStr = c"durable";
const BLOCK: u64 = 4096;
/// Blocks that are overwritten in turn, and after which appending begins anew.
const BLOCKS: u64 = 256;

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open(bench)?;
    for (index, point) in bench.points().iter().enumerate() {
        let overwrite = point.text("mode") == "overwrite";
        match prepared(&scratch, overwrite) {
            Ok(file) => {
                let sync: Sync =
                    if point.probe == FSYNC.id { |file| fsync(file) } else { |file| fdatasync(file) };
                time(bench, index, &file, overwrite, sync)?;
            }
            Err(error) => refuse(bench, index, "write a file", error),
        }
        // Not there if it could not be made.
        let _ = scratch.remove(NAME);
    }
    Ok(())
}

/// What makes a file durable.
type Sync = fn(&OwnedFd) -> Result<()>;

/// A file on the device: of all its blocks, or empty.
fn prepared(scratch: &Scratch, full: bool) -> Result<OwnedFd> {
    if full {
        let filled = scratch.filled(NAME, BLOCKS * BLOCK)?;
        filled.error.map_or(Ok(()), Err)?;
    }
    let file = scratch.file(NAME, OFlags::WRONLY | OFlags::CREATE)?;
    fsync(&file)?;
    Ok(file)
}

fn time(bench: &mut Bench, point: usize, file: &OwnedFd, overwrite: bool, sync: Sync) -> anyhow::Result<()> {
    let block = [1u8; BLOCK as usize];
    let mut turn = 0;
    let mut before = || -> Result<()> {
        if turn == BLOCKS {
            turn = 0;
            if !overwrite {
                ftruncate(file, 0)?;
                sync(file)?;
            }
        }
        let written = pwrite(file, &block, turn * BLOCK)?;
        turn += 1;
        if written == block.len() { Ok(()) } else { Err(Errno::NOSPC) }
    };
    if let Err(error) = before().and_then(|()| sync(file)) {
        let (reason, remedy) = explain("write and sync a file", error);
        bench.unsupported(point, reason, remedy);
        return Ok(());
    }
    let mut first = FirstError::default();
    bench.splits(&[point], Gate::Open, |splits| {
        if first.happened() || first.check(before()).is_none() {
            return;
        }
        splits.start();
        let synced = sync(file);
        splits.stop(0);
        first.check(synced);
    })?;
    first.report(bench, &[point], "write and sync a file");
    Ok(())
}
