//! Reading from the device itself, past the page cache.

use super::scratch::{Filled, Scratch, too_large};
use super::{FileProbeDirectory, in_each_directory};
use crate::prelude::*;
use rustix::fs::{Advice, fadvise, fsync};
use rustix::io::{Result, pread};

static DIRECT: Experiment = Experiment::new("file.read-direct", Cpus::One, run_direct_reads).in_scratch();

probes! {
    DIRECT, DirectReadSettings, plan_direct_reads, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    READ_DIRECT "file.read-direct", "read from the device (O_DIRECT)", "open(2), O_DIRECT",
        "One pread past the page cache (O_DIRECT), at a random multiple of its size in a file of 16 MiB or more.";
}

settings! {
    /// Settings of a read past the page cache.
    struct DirectReadSettings, requested as DirectReadRequest {
        /// Bytes of one read, a multiple of 512
        size: u64 as Size;
        ..place: FileProbeDirectory;
    }
}

/// Returns true for file systems without a device: they read directly from memory.
pub(super) fn has_no_device(filesystem: &str) -> bool {
    ["tmpfs", "ramfs"].contains(&filesystem)
}

fn plan_direct_reads(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    in_each_directory(probe, input, |place| {
        let point = |size: u64| {
            let title = format!("O_DIRECT random read {}", format_size(size));
            (
                DirectReadSettings { size, place: place.clone() },
                title,
                size == 4096 && !has_no_device(&place.filesystem),
            )
        };
        // A family's --size means file sizes to its other probes: only sizes that a device reads at once count.
        let fits = |size: &u64| *size > 0 && size.is_multiple_of(512) && *size <= 1 << 20;
        let sizes = if input.profile == SurveyProfile::Full {
            vec![4 << 10, 64 << 10, 1 << 20]
        } else {
            vec![4 << 10]
        };
        DirectReadRequest::of(input).size.or(&sizes).into_iter().filter(fits).map(point).collect()
    })
}

const NAME: &CStr = c"direct";
pub(super) const FILE_BYTES: u64 = 16 << 20;

fn run_direct_reads(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open_for_step(bench)?;
    for (index, read) in bench.settings::<DirectReadSettings>()?.iter().enumerate() {
        match obstacle(&scratch, &read.place.filesystem) {
            Some((reason, remedy)) => bench.unsupported(index, reason, remedy),
            None => read_directly(bench, &scratch, index, read)?,
        }
    }
    Ok(())
}

/// Returns the reason why no file here can be read from a device, and the remedy; `None` if one can.
pub(super) fn obstacle(scratch: &Scratch, filesystem: &str) -> Option<(String, &'static str)> {
    if has_no_device(filesystem) {
        let reason = format!("{filesystem} is memory: there is no device below the page cache");
        return Some((reason, "choose a directory on a disk (--dir)"));
    }
    (scratch.usable_bytes() < FILE_BYTES).then(|| too_large(FILE_BYTES, scratch.usable_bytes()))
}

/// Remedy for a file system that does not read past the page cache.
pub(super) const OTHERS: &str = "choose a directory on another file system (--dir)";

fn read_directly(
    bench: &mut Bench,
    scratch: &Scratch,
    index: usize,
    read: &DirectReadSettings,
) -> anyhow::Result<()> {
    let filled = scratch.create_filled(NAME, FILE_BYTES)?;
    let opened = match filled.error {
        Some(error) => Err(error),
        None => on_device(&filled).and_then(|()| scratch.file(NAME, OFlags::RDONLY | OFlags::DIRECT)),
    };
    match opened {
        Ok(file) => time_direct_read(bench, &filled, &file, index, read)?,
        Err(Errno::INVAL | Errno::OPNOTSUPP) => {
            bench.unsupported(index, format!("{} refuses O_DIRECT", read.place.filesystem), OTHERS);
        }
        Err(error) => refuse(bench, index, "make a file of 16 MiB for direct reads", error),
    }
    scratch.remove(NAME)?;
    Ok(())
}

/// Brings the file to the device and out of the page cache.
pub(super) fn on_device(filled: &Filled) -> Result<()> {
    fsync(&filled.file)?;
    fadvise(&filled.file, 0, None, Advice::DontNeed)
}

fn time_direct_read(
    bench: &mut Bench,
    filled: &Filled,
    file: &OwnedFd,
    index: usize,
    read: &DirectReadSettings,
) -> anyhow::Result<()> {
    let size = read.size;
    let mut memory = PageMapping::anonymous((size as usize).next_multiple_of(page_size()))?;
    let buffer = &mut memory.as_mut_slice()[..size as usize];
    let mut random = Offsets { state: bench.seed() | 1, size };
    let mut first = FirstError::default();
    if let Err(error) = pread(file, &mut *buffer, 0) {
        let (reason, _) = explain("read past the page cache", error);
        bench.unsupported(index, reason, OTHERS);
        return Ok(());
    }
    bench.set_work(index, OperationWork { ops: 1, bytes_touched: size, bytes_moved: size });
    bench.splits(&[index], SampleGate::Open, |splits| {
        let offset = random.next();
        first.check_result(splits.time_part(0, || pread(file, &mut *buffer, offset)));
    });
    report_device_reads(bench, index, first, filled, &read.place)
}

/// Closes a point of which a read failed, and lowers its quality if the page cache has the file.
pub(super) fn report_device_reads(
    bench: &mut Bench,
    index: usize,
    first: FirstError,
    filled: &Filled,
    place: &FileProbeDirectory,
) -> anyhow::Result<()> {
    let bytes = filled.bytes as usize;
    let cached = || PageMapping::shared(&filled.file, bytes)?.resident(0, bytes);
    if first.ok_or_close(bench, &[index], "read past the page cache")
        && (cached()? * page_size()) as u64 > FILE_BYTES / 4
    {
        let reason =
            format!("{} answered from its page cache although it was asked not to", place.filesystem);
        bench.degrade(index, "went-through-page-cache", reason, OTHERS);
    }
    Ok(())
}

/// Random multiples of `size` within the file (xorshift64).
pub(super) struct Offsets {
    pub state: u64,
    pub size: u64,
}

impl Offsets {
    pub fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % (FILE_BYTES / self.size) * self.size
    }
}
