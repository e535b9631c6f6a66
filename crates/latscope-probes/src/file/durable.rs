//! Making written data durable: fsync and fdatasync.

use super::scratch::Scratch;
use super::{FileProbeDirectory, in_each_directory};
use crate::prelude::*;
use rustix::fs::{fdatasync, fsync, ftruncate};
use rustix::io::{Result, pwrite};

static DURABLE: Experiment = Experiment::new("file.durable", Cpus::One, run_syncs).in_scratch();

words! {
    /// Place at which a block is written: over another block, or at the end of the file.
    enum DurableWritePlace {
        /// The 4 KiB written before replace others.
        Overwrite = "overwrite",
        /// The 4 KiB written before make the file longer.
        Append = "append",
    }
}

settings! {
    /// Parameters of a durable write.
    struct DurableWriteSettings, requested as DurableWriteRequest {
        /// Way of reading, or of the write before fsync and fdatasync
        mode: DurableWritePlace;
        ..place: FileProbeDirectory;
    }
}

probes! {
    DURABLE, DurableWriteSettings, plan_syncs, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    FSYNC "file.fsync", "fsync", "fsync(2)",
        "One fsync after a write of 4 KiB, which is not timed: until data and inode are on the device."
        { headline: Some(crate::ProbeHeadline { name: "fsync", preferred: &[] }), };
    FDATASYNC "file.fdatasync", "fdatasync", "fdatasync(2)",
        "One fdatasync after a write of 4 KiB, which is not timed: until the data are on the device, and of the inode \
            what is needed to find them.";
}

fn plan_syncs(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let modes = DurableWriteRequest::of(input).mode.or(DurableWritePlace::ALL);
    in_each_directory(probe, input, |place| {
        let mut points = Vec::new();
        for mode in DurableWritePlace::ALL.iter().copied().filter(|mode| modes.contains(mode)) {
            let appended = if mode == DurableWritePlace::Append { " appended" } else { "" };
            // A tmpfs has nothing to make durable: the call returns at once.
            let row = mode == DurableWritePlace::Overwrite && place.filesystem != "tmpfs";
            let written = DurableWriteSettings { mode, place: place.clone() };
            points.push((written, format!("{} 4 KiB{appended}", probe.title), row));
        }
        points
    })
}

const NAME: &CStr = c"durable";
const BLOCK: u64 = 4096;
/// Blocks that are overwritten in turn, and after which appending begins anew.
const BLOCKS: u64 = 256;

fn run_syncs(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open_for_step(bench)?;
    for (index, point) in bench.points().iter().enumerate() {
        let overwrite = DurableWriteSettings::read(point)?.mode == DurableWritePlace::Overwrite;
        match prepare_file(&scratch, overwrite) {
            Ok(file) => {
                let sync: Sync =
                    if point.probe == FSYNC.id { |file| fsync(file) } else { |file| fdatasync(file) };
                time_sync(bench, index, &file, overwrite, sync);
            }
            Err(error) => refuse(bench, index, "write a file", error),
        }
        // Not there if it could not be made.
        let _ = scratch.remove(NAME);
    }
    Ok(())
}

/// Call that makes a file durable.
type Sync = fn(&OwnedFd) -> Result<()>;

/// Makes a file on the device, with all its blocks or empty.
fn prepare_file(scratch: &Scratch, full: bool) -> Result<OwnedFd> {
    if full {
        let filled = scratch.create_filled(NAME, BLOCKS * BLOCK)?;
        filled.error.map_or(Ok(()), Err)?;
    }
    let file = scratch.file(NAME, OFlags::WRONLY | OFlags::CREATE)?;
    fsync(&file)?;
    Ok(file)
}

fn time_sync(bench: &mut Bench, point: usize, file: &OwnedFd, overwrite: bool, sync: Sync) {
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
    let tried = before().and_then(|()| sync(file));
    let Some(()) = ok_or_refuse(bench, point, "write and sync a file", tried) else { return };
    let mut first = FirstError::default();
    bench.splits(&[point], SampleGate::Open, |splits| {
        if first.has_error() || first.check_result(before()).is_none() {
            return;
        }
        first.check_result(splits.time_part(0, || sync(file)));
    });
    first.ok_or_close(bench, &[point], "write and sync a file");
}
