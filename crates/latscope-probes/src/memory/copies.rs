//! Copies from one buffer to another, by the places of both in their pages.

use crate::buffer::PageOffsetBuffer;
use crate::prelude::*;
use crate::syscall::calls::time_loop_in;
use latscope_os::kernels::code::calls::SystemCallLoop;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::pread;

static COPIES: Experiment = Experiment::new("memory.copy", Cpus::One, run_copies)
    .fewer_rounds(4, "its rows are compared within a round");

settings! {
    /// Who copies how many bytes, from where to where.
    struct BufferCopySettings, requested as BufferCopyRequest {
        /// Bytes of a copy
        size: u64 as Size, axis;
        /// What copies: memcpy of the C library (`libc`), or the kernel, from the page cache by pread (`kernel`)
        mode: BufferCopyMode;
        /// Offset of the source from the start of a page
        source: u64 as Size;
        /// Offset of the destination from the start of a page
        buffer: u64 as Size;
    }
}

words! {
    /// Code that makes the copy.
    enum BufferCopyMode {
        /// The function memcpy of the C library.
        Libc = "libc",
        /// The kernel, from the page cache to the user's buffer.
        Kernel = "kernel",
    }
}

probes! {
    COPIES, BufferCopySettings, plan_copies, ..ProbeFacts::BATCHES;
    COPY "memory.copy", "copy", "memcpy(3), pread(2)",
        "One copy of n bytes that are in the cache. Mode libc: one memcpy. Mode kernel: one pread of a memfd, whose loop \
        lies at 16 addresses. Source and destination begin so many bytes behind the start of a page."
        { footprint: |params| Some(Footprint::from_bytes(BufferCopySettings::from_params(params)?.size.saturating_mul(2))),
          may_be_zero: &["source", "buffer"], most: &[("source", 4095), ("buffer", 4095)],
          subject: Subject::Many, };
}

/// Places in a page: its start, and that of large blocks of malloc(3).
const PLACES: &[u64] = &[0, crate::buffer::AS_MALLOC];

/// Size that a survey has.
const USUAL: u64 = 4 << 10;

fn plan_copies(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    // The place of the destination is what tells.
    let (sizes, sources): (&[u64], _) =
        if input.survey { (&[USUAL], &PLACES[..1]) } else { (&[USUAL, 64 << 10], PLACES) };
    let asked = BufferCopyRequest::of(input);
    let mut points = Vec::new();
    for mode in asked.mode.or(BufferCopyMode::ALL) {
        for size in asked.size.or(sizes).into_iter().filter(|size| *size > 0) {
            for source in asked.source.or(sources) {
                for buffer in asked.buffer.or(PLACES) {
                    let copied = BufferCopySettings { size, mode, source, buffer };
                    let title = format_title(&copied);
                    points.push(probe.make_point(copied, title, size == USUAL));
                }
            }
        }
    }
    points
}

fn format_title(copied: &BufferCopySettings) -> String {
    let by = match copied.mode {
        BufferCopyMode::Libc => "memcpy",
        BufferCopyMode::Kernel => "pread",
    };
    let place = |offset| if offset == 0 { "page".to_owned() } else { format!("page + {offset}") };
    format!("{by} {}, {} to {}", format_size(copied.size), place(copied.source), place(copied.buffer))
}

fn run_copies(bench: &mut Bench) -> Result<()> {
    for (index, copied) in bench.settings::<BufferCopySettings>()?.into_iter().enumerate() {
        let BufferCopySettings { size, mode, source, buffer } = copied;
        if let Some((reason, remedy)) = crate::available::shortage(2 * size) {
            bench.unsupported(index, reason, remedy);
            continue;
        }
        let mut to = PageOffsetBuffer::new(size as usize, buffer);
        bench.set_work(index, OperationWork { ops: 1, bytes_touched: size, bytes_moved: 2 * size });
        match mode {
            BufferCopyMode::Libc => {
                let mut from = PageOffsetBuffer::new(size as usize, source);
                let (from, to) = (from.bytes(), to.bytes());
                // Pages that were never written are all one page of zeros.
                from.fill(1);
                bench.calls(index, Batch { cycles: true, ..Batch::default() }, || {
                    to.copy_from_slice(black_box(&*from));
                    black_box(&mut *to);
                });
            }
            BufferCopyMode::Kernel => by_kernel(bench, index, source, to.bytes()),
        }
    }
    Ok(())
}

fn by_kernel(bench: &mut Bench, index: usize, source: u64, to: &mut [u8]) {
    let file = ok_or_refuse(bench, index, "make a memfd", create_filled_file(source as usize + to.len()));
    let Some(file) = file else { return };
    let whole = pread(&file, &mut *to, source)
        .and_then(|read| if read == to.len() { Ok(()) } else { Err(Errno::IO) });
    let Some(()) = ok_or_refuse(bench, index, "pread", whole) else { return };
    let mut calls = SystemCallLoop::pread(bench.seed(), file.as_fd(), to, source as u32);
    time_loop_in(bench, index, Batch { cycles: true, ..Batch::default() }, "pread", &mut calls);
}

fn create_filled_file(bytes: usize) -> rustix::io::Result<OwnedFd> {
    let file = memfd_create("latscope-copy", MemfdFlags::CLOEXEC)?;
    let mut content = &vec![1; bytes][..];
    while !content.is_empty() {
        match rustix::io::write(&file, content)? {
            0 => return Err(Errno::IO),
            written => content = &content[written..],
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, input, machine, measure, points};

    #[test]
    fn a_survey_has_a_row_for_each_way_and_place() {
        let titles: Vec<String> = points(&COPY).into_iter().map(|point| point.title).collect();
        assert_eq!(titles.len(), 4);
        assert_eq!(titles[..2], ["memcpy 4 KiB, page to page", "memcpy 4 KiB, page to page + 16"]);
        assert_eq!(titles[3], "pread 4 KiB, page to page + 16");
        let alone = PlanInput { survey: false, ..input() };
        assert_eq!(COPY.plan(&alone, &machine()).len(), 16);
    }

    #[test]
    fn each_copy_is_measured() {
        let odd = BufferCopySettings { size: 100, mode: BufferCopyMode::Kernel, source: 4095, buffer: 1 };
        let all = [points(&COPY), vec![COPY.make_point(odd, "odd", false)]].concat();
        for m in measure(&COPIES, all) {
            check(&m);
            assert_ne!(
                m.quality.level,
                QualityLevel::Unsupported,
                "{:?}: {:?}",
                m.params,
                m.joined_reasons()
            );
        }
    }

    #[test]
    fn a_size_without_memory_has_a_reason() {
        let huge = BufferCopySettings { size: 1 << 60, mode: BufferCopyMode::Libc, source: 0, buffer: 0 };
        let measured = measure(&COPIES, vec![COPY.make_point(huge, "huge", false)]);
        assert!(
            measured[0].quality.level == QualityLevel::Unsupported && measured[0].joined_reasons().is_some()
        );
    }

    #[test]
    fn the_file_has_as_many_bytes_as_are_read() {
        let mut read = vec![0; 5000];
        assert_eq!(pread(create_filled_file(5016).unwrap(), &mut read[..], 16), Ok(5000));
        assert_eq!(read, vec![1; 5000]);
    }
}
