//! Reading a file that is in the page cache, by size.

use super::scratch::{CHUNK, Scratch, gate, too_large};
use super::{DEVICE, DIRECTORY, FILESYSTEM, MODE_HELP, in_each_directory};
use crate::failure::{FirstError, explain, refuse};
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe, Profile};
use latscope_bench::bench::{Batch, Bench};
use latscope_bench::gate::Gate;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::{Semantics, Work};
use latscope_core::units::{format_share, format_size};
use latscope_os::page::{Mapping, page_size};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::{Errno, Result, pread};
use std::ffi::CStr;
use std::hint::black_box;

static READS: Experiment =
    Experiment { name: "file.read", cpus: Cpus::One, scratch: true, policy: Policy::Other, run };

const MODES: [&str; 2] = ["open-close", "kept-open"];
const SIZE: Param = Param { name: "size", help: "Size of the file", kind: Kind::Size, axis: true };

/// pread(2).
pub static READ: Probe = Probe {
    id: "file.read",
    title: "read a cached file",
    timed: "Reading a whole file from the page cache into a buffer, at most 64 KiB a call; kept open: the reads alone, \
            open-close: with open and close around them.",
    times: Semantics::Operation,
    source: "pread(2), open(2)",
    params: &[
        SIZE,
        Param { name: "mode", help: MODE_HELP, kind: Kind::Choice(&MODES), axis: false },
        DIRECTORY,
        FILESYSTEM,
        DEVICE,
    ],
    experiment: &READS,
    revision: 1,
    plan: |input, _| plan_read(input),
};

/// mmap(2).
pub static READ_MMAP: Probe = Probe {
    id: "file.read-mmap",
    title: "read a cached file through a mapping",
    timed: "mmap of a whole open file that is in the page cache, a load from every 64 bytes of it, and munmap.",
    times: Semantics::Operation,
    source: "mmap(2)",
    params: &[SIZE, DIRECTORY, FILESYSTEM, DEVICE],
    experiment: &READS,
    revision: 1,
    plan: |input, _| plan_mmap(input),
};

/// A file whose reading takes milliseconds.
const LONG: u64 = 16 * MIB;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn sizes(input: &PlanInput) -> Vec<u64> {
    let sizes: &[u64] = match input.profile {
        Profile::Quick => &[1, 4 * KIB, 64 * KIB, MIB],
        Profile::Normal | Profile::Full => &[1, KIB, 4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB],
    };
    // A file of no bytes has nothing to read, nor to map.
    input.numbers("size", sizes).into_iter().filter(|size| *size > 0).collect()
}

fn plan_read(input: &PlanInput) -> Vec<Point> {
    let modes: Vec<String> = input.texts("mode", &MODES);
    in_each_directory(&READ, input, |_| {
        let mut points = Vec::new();
        for mode in MODES.into_iter().filter(|mode| modes.iter().any(|asked| asked == mode)) {
            for size in sizes(input) {
                let (title, row) = match mode {
                    "kept-open" => ("read, kept open,", [1, 4 * KIB, MIB].contains(&size)),
                    _ => ("open, read, close,", [4 * KIB, MIB].contains(&size)),
                };
                let values = params([("size", size.into()), ("mode", mode.into())]);
                points.push((values, format!("{title} {}", format_size(size)), row));
            }
        }
        points
    })
}

fn plan_mmap(input: &PlanInput) -> Vec<Point> {
    in_each_directory(&READ_MMAP, input, |_| {
        // Below a page the size makes no difference.
        let sizes = sizes(input).into_iter().filter(|size| input.gave("size") || *size >= 4 * KIB);
        let point = |size: u64| {
            (
                params([("size", size.into())]),
                format!("mmap, read, munmap, {}", format_size(size)),
                size == MIB,
            )
        };
        sizes.map(point).collect()
    })
}

const NAME: &CStr = c"read";

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open(bench)?;
    let points = bench.points();
    let room = scratch.room();
    let sizes = points.iter().map(|point| point.number("size"));
    let largest = sizes.filter(|size| *size <= room).max().unwrap_or(0);
    let filled = scratch.filled(NAME, largest)?;
    for (index, point) in points.iter().enumerate() {
        let size = point.number("size");
        if size > filled.bytes {
            let (reason, remedy) = match filled.error {
                Some(error) => explain("write the file to be read", error),
                None => too_large(size, room),
            };
            bench.unsupported(index, reason, remedy);
            continue;
        }
        read_point(bench, &scratch, &filled.file, index, point)?;
    }
    scratch.remove(NAME)?;
    Ok(())
}

fn read_point(
    bench: &mut Bench,
    scratch: &Scratch,
    file: &OwnedFd,
    index: usize,
    point: &Point,
) -> anyhow::Result<()> {
    let size = point.number("size");
    let mut buffer = vec![0u8; CHUNK];
    // Out of the page cache, and into the buffer where there is one.
    let moved = if point.probe == "file.read-mmap" { size } else { 2 * size };
    bench.set_work(index, Work { ops: 1, bytes_touched: size, bytes_moved: moved });
    let measured = match (point.probe.as_str(), point.params.contains_key("mode").then(|| point.text("mode")))
    {
        ("file.read-mmap", _) => time(bench, index, point, || load_all(file, size as usize))?,
        (_, Some("kept-open")) => time(bench, index, point, || read_all(file, size, &mut buffer))?,
        _ => time(bench, index, point, || read_all(&scratch.file(NAME, OFlags::RDONLY)?, size, &mut buffer))?,
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

/// Times `operation` after a first try, which also brings the file into the
/// page cache: in batches while it is short, one by one from 1 MiB on. Returns
/// whether it succeeded.
fn time(
    bench: &mut Bench,
    index: usize,
    point: &Point,
    mut operation: impl FnMut() -> Result<()>,
) -> anyhow::Result<bool> {
    // Longer than a turn of the scheduler: no sample could be expected to be undisturbed.
    let gate = if point.number("size") >= LONG { Gate::Open } else { gate(point) };
    if let Err(error) = operation() {
        refuse(bench, index, "read a file", error);
        return Ok(false);
    }
    let mut first = FirstError::default();
    if point.number("size") < MIB {
        bench.batch(index, Batch { gate, ..Batch::default() }, |count| {
            for _ in 0..count {
                first.check(operation());
            }
        })?;
    } else {
        bench.each(index, gate, || {
            first.check(operation());
        })?;
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

/// How much of the first `size` bytes is in the page cache, 0 to 1.
fn cached_share(file: &OwnedFd, size: u64) -> Result<f64> {
    let mapping = Mapping::shared(file, size as usize)?;
    let pages = size.div_ceil(page_size() as u64);
    Ok(mapping.resident(0, size as usize)? as f64 / pages as f64)
}
