//! Reading a file that is in the page cache, by size.

use super::scratch::{CHUNK, Scratch, gate, too_large};
use super::{FileProbeDirectory, in_each_directory};
use crate::buffer::{self, AS_MALLOC, PageOffsetBuffer};
use crate::prelude::*;
use crate::ways::{by_title, other_than_bare};
use rustix::io::{Result, pread};
use std::fs::File;
use std::os::unix::fs::FileExt;

static READS: Experiment = Experiment::new("file.read", Cpus::One, run_reads).in_scratch();

words! {
    /// Handling of the file: opened for each read, or kept open.
    enum FileReadMode {
        /// The file is opened before each read and closed after it.
        OpenClose = "open-close",
        /// The file stays open: the reads alone.
        KeptOpen = "kept-open",
    }
}

settings! {
    /// A file that is read.
    struct FileReadSettings, requested as FileReadRequest {
        /// Size of the file
        size: u64 as Size, axis;
        /// Way of reading, or of the write before fsync and fdatasync
        mode: FileReadMode;
        /// Offset of the buffer from the start of a page; 16, as that of large buffers of malloc(3), if none is stated
        buffer: Option<u64> as Size;
        /// `libc`, where asked for or next to the bare instruction: by pread of the C library; the file is kept open
        by: Option<SyscallInvocation>;
        ..place: FileProbeDirectory;
    }
}

settings! {
    /// A file that is mapped.
    struct FileMappingSettings, requested as FileMappingRequest {
        /// Size of the file
        size: u64 as Size, axis;
        ..place: FileProbeDirectory;
    }
}

probes! {
    READS, FileReadSettings, plan_read, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    READ "file.read", "read a cached file", "pread(2), open(2)",
        "Reading a whole file from the page cache, at most 64 KiB a call. Kept open: the reads alone. \
        Open-close: with open and close. The buffer is 16 bytes behind the start of a page unless another place is \
        stated."
        { samples: ProbeSampleKind::Either, may_be_zero: &["size", "buffer"], most: &[("buffer", 4095)],
          headline: Some(ProbeHeadline { name: "page-cache read", preferred: &[("mode", "kept-open")] }), };
}

probes! {
    READS, FileMappingSettings, plan_mmap, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    READ_MMAP "file.read-mmap", "read a cached file through a mapping", "mmap(2)",
        "mmap of a whole open file that is in the page cache, a load from every 64 bytes of it, and munmap."
        { samples: ProbeSampleKind::Either, };
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
        SurveyProfile::Quick => &[1, 4 * KIB, 64 * KIB, MIB],
        SurveyProfile::Normal | SurveyProfile::Full => &[1, KIB, 4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB],
    };
    // A file of no bytes has nothing to read, nor to map.
    FileMappingRequest::of(input).size.or(sizes).into_iter().filter(|size| *size > 0).collect()
}

fn plan_read(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = FileReadRequest::of(input);
    let modes = asked.mode.or(FileReadMode::ALL);
    in_each_directory(probe, input, |place| {
        let mut points = Vec::new();
        for mode in FileReadMode::ALL.iter().copied().filter(|mode| modes.contains(mode)) {
            for size in sizes(input) {
                let (title, row) = match mode {
                    FileReadMode::KeptOpen => ("read, kept open,", [1, 4 * KIB, MIB].contains(&size)),
                    FileReadMode::OpenClose => ("open, read, close,", [4 * KIB, MIB].contains(&size)),
                };
                for (offset, by) in places_and_ways(&asked, mode, size) {
                    let (buffer, way) = (buffer::stated(offset), other_than_bare(by));
                    points.push((
                        FileReadSettings { size, mode, buffer, by: way, place: place.clone() },
                        by_title(
                            &format!("{title} {}{}", format_size(size), buffer::offset_title(buffer)),
                            by,
                        ),
                        row,
                    ));
                }
            }
        }
        points
    })
}

/// Returns the offsets of the buffer that a size is read into, and the ways of the calls: where copies of the kernel
/// differ most also one at a page, and for one size also the C library.
fn places_and_ways(asked: &FileReadRequest, mode: FileReadMode, size: u64) -> Vec<(u64, SyscallInvocation)> {
    let kept = mode == FileReadMode::KeptOpen;
    let both = kept && [4 * KIB, 64 * KIB].contains(&size);
    let offsets = asked.buffer.or(if both { &[AS_MALLOC, 0] } else { &[AS_MALLOC] });
    let usual: &[SyscallInvocation] = if kept && size == 4 * KIB && !asked.buffer.given() {
        SyscallInvocation::ALL
    } else {
        &SyscallInvocation::ALL[..1]
    };
    let mut all = Vec::new();
    for by in asked.by.or(usual).into_iter().filter(|by| kept || *by == SyscallInvocation::Instruction) {
        // Next to each other are points that differ in one way.
        let offsets =
            if by == SyscallInvocation::Libc && !asked.by.given() { &offsets[..1] } else { &offsets[..] };
        all.extend(offsets.iter().map(|offset| (*offset, by)));
    }
    all
}

fn plan_mmap(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    in_each_directory(probe, input, |place| {
        // Below a page the size makes no difference.
        let given = FileMappingRequest::of(input).size.given();
        let sizes = sizes(input).into_iter().filter(|size| given || *size >= 4 * KIB);
        let title = |size| format!("mmap, read, munmap, {}", format_size(size));
        sizes
            .map(|size| (FileMappingSettings { size, place: place.clone() }, title(size), size == MIB))
            .collect()
    })
}

const NAME: &CStr = c"read";

/// Point that is wanted.
struct FileReadPoint {
    /// Size of the file to read.
    size: u64,
    /// Way of the reads; `None` for a mapping.
    mode: Option<FileReadMode>,
    /// Offset of the buffer from the start of a page.
    offset: u64,
    by: SyscallInvocation,
    gate: SampleGate,
}

fn point_settings(point: &MeasurementPoint) -> anyhow::Result<FileReadPoint> {
    if point.probe == READ_MMAP.id {
        let FileMappingSettings { size, place } = FileMappingSettings::read(point)?;
        return Ok(FileReadPoint {
            size,
            mode: None,
            offset: AS_MALLOC,
            by: SyscallInvocation::Instruction,
            gate: gate(&place),
        });
    }
    let FileReadSettings { size, mode, buffer, by, place } = FileReadSettings::read(point)?;
    let (offset, by) = (buffer.unwrap_or(AS_MALLOC), by.unwrap_or(SyscallInvocation::Instruction));
    Ok(FileReadPoint { size, mode: Some(mode), offset, by, gate: gate(&place) })
}

fn run_reads(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open_for_step(bench)?;
    let files = bench.points().iter().map(point_settings).collect::<anyhow::Result<Vec<FileReadPoint>>>()?;
    let room = scratch.usable_bytes();
    let largest = files.iter().map(|wanted| wanted.size).filter(|size| *size <= room).max().unwrap_or(0);
    let filled = scratch.create_filled(NAME, largest)?;
    for (index, wanted) in files.into_iter().enumerate() {
        let size = wanted.size;
        if size > filled.bytes {
            match filled.error {
                Some(error) => refuse(bench, index, "write the file to be read", error),
                None => bench.unsupported(index, too_large(size, room).0, SMALLER_FILE),
            }
            continue;
        }
        read_point(bench, &scratch, &filled.file, index, wanted)?;
    }
    scratch.remove(NAME)?;
    Ok(())
}

fn read_point(
    bench: &mut Bench,
    scratch: &Scratch,
    file: &OwnedFd,
    index: usize,
    FileReadPoint { size, mode, offset, by, gate }: FileReadPoint,
) -> anyhow::Result<()> {
    let mut memory = PageOffsetBuffer::new(CHUNK, offset);
    let buffer = memory.bytes();
    // Out of the page cache, and into the buffer where there is one.
    let moved = if mode.is_none() { size } else { 2 * size };
    bench.set_work(index, OperationWork { ops: 1, bytes_touched: size, bytes_moved: moved });
    let measured = match mode {
        None => time_read(bench, index, size, gate, || load_all(file, size as usize))?,
        Some(FileReadMode::KeptOpen) if by == SyscallInvocation::Libc => {
            let file = File::from(file.try_clone()?);
            let pread = |part: &mut [u8], at| {
                file.read_at(part, at).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            };
            time_read(bench, index, size, gate, || read_all(pread, size, buffer))?
        }
        Some(FileReadMode::KeptOpen) => {
            time_read(bench, index, size, gate, || read_all(|part, at| pread(file, part, at), size, buffer))?
        }
        Some(FileReadMode::OpenClose) => time_read(bench, index, size, gate, || {
            let file = scratch.file(NAME, OFlags::RDONLY)?;
            read_all(|part, at| pread(&file, part, at), size, buffer)
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
fn time_read(
    bench: &mut Bench,
    index: usize,
    size: u64,
    gate: SampleGate,
    mut operation: impl FnMut() -> Result<()>,
) -> anyhow::Result<bool> {
    // Longer than a turn of the scheduler: no sample could be expected to be undisturbed.
    let gate = if size >= LONG { SampleGate::Open } else { gate };
    if ok_or_refuse(bench, index, "read a file", operation()).is_none() {
        return Ok(false);
    }
    let mut first = FirstError::default();
    if size < MIB {
        bench.calls(index, Batch { gate, ..Batch::default() }, || {
            first.check_result(operation());
        });
    } else {
        bench.each(index, gate, || {
            first.check_result(operation());
        });
    }
    Ok(first.ok_or_close(bench, &[index], "read a file"))
}

/// Reads the first `size` bytes through the buffer, by calls of `pread`.
#[inline(always)]
fn read_all(pread: impl Fn(&mut [u8], u64) -> Result<usize>, size: u64, buffer: &mut [u8]) -> Result<()> {
    let mut at = 0;
    while at < size {
        let wanted = buffer.len().min((size - at) as usize);
        match pread(&mut buffer[..wanted], at)? {
            0 => return Err(Errno::IO),
            count => at += count as u64,
        }
    }
    Ok(())
}

/// Maps the first `size` bytes and loads from each line.
fn load_all(file: &OwnedFd, size: usize) -> Result<()> {
    const LINE: usize = 64;
    let mapping = PageMapping::shared(file, size)?;
    if size < 8 {
        black_box(mapping.read_byte(0));
    } else {
        black_box(mapping.sum_words(LINE));
    }
    mapping.unmap()
}

/// Share of the first `size` bytes that is in the page cache, 0 to 1.
fn cached_share(file: &OwnedFd, size: u64) -> Result<f64> {
    let mapping = PageMapping::shared(file, size as usize)?;
    let pages = size.div_ceil(page_size() as u64);
    Ok(mapping.resident(0, size as usize)? as f64 / pages as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    /// Returns the points of a size with the file kept open: the offset of the buffer and the way, as results have
    /// them.
    fn planned(more: &[(&str, ParamValue)]) -> Vec<(Option<u64>, Option<SyscallInvocation>)> {
        let mut input = harness::input();
        input.directories = vec![crate::ScratchDirectory {
            path: "/data".into(),
            filesystem: "ext4".to_owned(),
            device: "/dev/vda".to_owned(),
            free: 1 << 40,
        }];
        let given = [("size", 4096.into()), ("mode", "kept-open".into())];
        input
            .values
            .extend(given.iter().chain(more).map(|(name, value)| ((*name).to_owned(), vec![value.clone()])));
        let points = READ.plan(&input, &harness::machine());
        points
            .iter()
            .map(|point| FileReadSettings::read(point).unwrap())
            .map(|read| (read.buffer, read.by))
            .collect()
    }

    #[test]
    fn both_places_and_both_ways_are_next_to_the_point_of_earlier_versions() {
        assert_eq!(planned(&[]), [(None, None), (Some(0), None), (None, Some(SyscallInvocation::Libc))]);
        assert_eq!(planned(&[("buffer", 16.into())]), [(None, None)]);
        assert_eq!(
            planned(&[("buffer", 64.into()), ("by", "libc".into())]),
            [(Some(64), Some(SyscallInvocation::Libc))]
        );
    }
}
