//! Reading a file that is in the page cache, by size.

use super::scratch::{CHUNK, Scratch, gate, too_large};
use super::{Place, in_each_directory};
use crate::prelude::*;
use rustix::io::{Result, pread};

static READS: Experiment = Experiment::new("file.read", Cpus::One, run).in_scratch();

words! {
    /// Handling of the file: opened for each read, or kept open.
    enum Mode {
        /// The file is opened before each read and closed after it.
        OpenClose = "open-close",
        /// The file stays open: the reads alone.
        KeptOpen = "kept-open",
    }
}

settings! {
    /// A file that is read.
    struct Reading, asked for as ReadingAsked {
        /// Size of the file
        size: u64 as Size, axis;
        /// Way of reading, or of the write before fsync and fdatasync
        mode: Mode;
        ..place: Place;
    }
}

settings! {
    /// A file that is mapped.
    struct Mapped, asked for as MappedAsked {
        /// Size of the file
        size: u64 as Size, axis;
        ..place: Place;
    }
}

probes! {
    READS, Reading, plan_read;
    READ "file.read", "read a cached file", "pread(2), open(2)",
        "Reading a whole file from the page cache, at most 64 KiB a call. Kept open: the reads alone. \
        Open-close: with open and close."
        { samples: Samples::Either, may_be_zero: &["size"],
          headline: Some(Headline { name: "page-cache read", preferred: &[("mode", "kept-open")] }), };
}

probes! {
    READS, Mapped, plan_mmap;
    READ_MMAP "file.read-mmap", "read a cached file through a mapping", "mmap(2)",
        "mmap of a whole open file that is in the page cache, a load from every 64 bytes of it, and munmap."
        { samples: Samples::Either, };
}

/// Remedy for a file that is too large.
pub(super) const SMALLER_FILE: &str =
    "free some space or memory, or choose another directory (--dir) or a smaller --size";

/// Size from which on the reading of a file takes milliseconds.
const LONG: u64 = 16 * MIB;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn sizes(input: &PlanInput) -> Vec<u64> {
    let sizes: &[u64] = match input.profile {
        Profile::Quick => &[1, 4 * KIB, 64 * KIB, MIB],
        Profile::Normal | Profile::Full => &[1, KIB, 4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB],
    };
    // A file of no bytes has nothing to read, nor to map.
    MappedAsked::of(input).size.or(sizes).into_iter().filter(|size| *size > 0).collect()
}

fn plan_read(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<Point> {
    let modes = ReadingAsked::of(input).mode.or(Mode::ALL);
    in_each_directory(probe, input, |place| {
        let mut points = Vec::new();
        for mode in Mode::ALL.iter().copied().filter(|mode| modes.contains(mode)) {
            for size in sizes(input) {
                let (title, row) = match mode {
                    Mode::KeptOpen => ("read, kept open,", [1, 4 * KIB, MIB].contains(&size)),
                    Mode::OpenClose => ("open, read, close,", [4 * KIB, MIB].contains(&size)),
                };
                points.push((
                    Reading { size, mode, place: place.clone() },
                    format!("{title} {}", format_size(size)),
                    row,
                ));
            }
        }
        points
    })
}

fn plan_mmap(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<Point> {
    in_each_directory(probe, input, |place| {
        // Below a page the size makes no difference.
        let given = MappedAsked::of(input).size.given();
        let sizes = sizes(input).into_iter().filter(|size| given || *size >= 4 * KIB);
        let title = |size| format!("mmap, read, munmap, {}", format_size(size));
        sizes.map(|size| (Mapped { size, place: place.clone() }, title(size), size == MIB)).collect()
    })
}

const NAME: &CStr = c"read";

/// Size of the file to read, mode of the reads (`None` for a mapping), and place of the file.
type Wanted = (u64, Option<Mode>, Place);

fn wanted(point: &Point) -> anyhow::Result<Wanted> {
    if point.probe == READ_MMAP.id {
        let Mapped { size, place } = Mapped::read(point)?;
        return Ok((size, None, place));
    }
    let Reading { size, mode, place } = Reading::read(point)?;
    Ok((size, Some(mode), place))
}

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open(bench)?;
    let files = bench.points().iter().map(wanted).collect::<anyhow::Result<Vec<Wanted>>>()?;
    let room = scratch.room();
    let largest = files.iter().map(|(size, ..)| *size).filter(|size| *size <= room).max().unwrap_or(0);
    let filled = scratch.filled(NAME, largest)?;
    for (index, (size, mode, place)) in files.into_iter().enumerate() {
        if size > filled.bytes {
            match filled.error {
                Some(error) => refuse(bench, index, "write the file to be read", error),
                None => bench.unsupported(index, too_large(size, room).0, SMALLER_FILE),
            }
            continue;
        }
        read_point(bench, &scratch, &filled.file, index, (size, mode, gate(&place)))?;
    }
    scratch.remove(NAME)?;
    Ok(())
}

fn read_point(
    bench: &mut Bench,
    scratch: &Scratch,
    file: &OwnedFd,
    index: usize,
    (size, mode, gate): (u64, Option<Mode>, Gate),
) -> anyhow::Result<()> {
    let mut buffer = vec![0u8; CHUNK];
    // Out of the page cache, and into the buffer where there is one.
    let moved = if mode.is_none() { size } else { 2 * size };
    bench.set_work(index, Work { ops: 1, bytes_touched: size, bytes_moved: moved });
    let measured = match mode {
        None => time(bench, index, size, gate, || load_all(file, size as usize))?,
        Some(Mode::KeptOpen) => time(bench, index, size, gate, || read_all(file, size, &mut buffer))?,
        Some(Mode::OpenClose) => time(bench, index, size, gate, || {
            read_all(&scratch.file(NAME, OFlags::RDONLY)?, size, &mut buffer)
        })?,
    };
    if !measured {
        return Ok(());
    }
    match cached_share(file, size) {
        Ok(share) if share < 1.0 => {
            let reason = format!("only {} of the file stayed in the page cache", format_share(share));
            bench.degrade(index, "not-in-page-cache", reason, "free memory, or choose a smaller --size");
        }
        Ok(_) => {}
        Err(error) => {
            let reason = format!("it is unknown whether the file was in the page cache: {error}");
            bench.degrade(index, "page-cache-unknown", reason, "");
        }
    }
    Ok(())
}

/// Times `operation` after a first try, which also brings the file into the page cache: in batches while it is
/// short, one by one from 1 MiB on. Returns true on success.
fn time(
    bench: &mut Bench,
    index: usize,
    size: u64,
    gate: Gate,
    mut operation: impl FnMut() -> Result<()>,
) -> anyhow::Result<bool> {
    // Longer than a turn of the scheduler: no sample could be expected to be undisturbed.
    let gate = if size >= LONG { Gate::Open } else { gate };
    if possible(bench, index, "read a file", operation()).is_none() {
        return Ok(false);
    }
    let mut first = FirstError::default();
    if size < MIB {
        bench.calls(index, Batch { gate, ..Batch::default() }, || {
            first.check(operation());
        });
    } else {
        bench.each(index, gate, || {
            first.check(operation());
        });
    }
    Ok(first.report(bench, &[index], "read a file"))
}

/// Reads the first `size` bytes through the buffer.
#[inline(always)]
fn read_all(file: &OwnedFd, size: u64, buffer: &mut [u8]) -> Result<()> {
    let mut at = 0;
    while at < size {
        let wanted = buffer.len().min((size - at) as usize);
        match pread(file, &mut buffer[..wanted], at)? {
            0 => return Err(Errno::IO),
            count => at += count as u64,
        }
    }
    Ok(())
}

/// Maps the first `size` bytes and loads from each line.
fn load_all(file: &OwnedFd, size: usize) -> Result<()> {
    const LINE: usize = 64;
    let mapping = Mapping::shared(file, size)?;
    if size < 8 {
        black_box(mapping.read(0));
    } else {
        black_box(mapping.sum(LINE));
    }
    mapping.unmap()
}

/// Share of the first `size` bytes that is in the page cache, 0 to 1.
fn cached_share(file: &OwnedFd, size: u64) -> Result<f64> {
    let mapping = Mapping::shared(file, size as usize)?;
    let pages = size.div_ceil(page_size() as u64);
    Ok(mapping.resident(0, size as usize)? as f64 / pages as f64)
}
