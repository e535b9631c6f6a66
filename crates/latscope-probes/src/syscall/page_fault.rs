//! Page faults that need no device: the first touch of a page.

use crate::prelude::*;
use latscope_os::kernels::random::ShuffleGenerator;
use latscope_os::page::HUGE_PAGE;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Result;
use std::io::{self, Read};

static PAGE_FAULTS: Experiment = Experiment::new("syscall.page-fault", Cpus::One, run_page_faults);

settings! {
    /// A page that is touched.
    struct PageFaultSettings, requested as PageFaultRequest {
        /// Page size
        pages: RegionPageSize;
        /// What is behind the page
        mode: PageFaultKind;
        /// The file whose pages are touched in mode file-around and file-mapped; a memfd otherwise
        path: Option<String>;
        /// Bytes of the file that are mapped in mode file-mapped
        size: Option<u64> as Size;
        /// Bytes from one touch to the next in mode file-mapped
        stride: Option<u64> as Size;
        /// Bytes at the beginning of the mapping that are touched in mode file-mapped, if not all
        touched: Option<u64> as Size;
    }
}

words! {
    /// Backing of a page.
    enum PageFaultKind {
        /// A store to a page that the kernel clears.
        Anonymous = "anonymous",
        /// A load from a page of a file that is in the page cache.
        File = "file",
        /// A store to a page of a private file mapping that was read before.
        CopyOnWrite = "copy-on-write",
        /// All faults of a mapping together, as LMbench has them; only on request.
        FileAround = "file-around",
        /// A mapping made, touched and removed, as LMbench has it; only on request.
        FileMapped = "file-mapped",
    }
}

/// Modes that are measured if no mode is requested.
const USUAL: [PageFaultKind; 3] = [PageFaultKind::Anonymous, PageFaultKind::File, PageFaultKind::CopyOnWrite];

probes! {
    PAGE_FAULTS, PageFaultSettings, plan_page_faults;
    PAGE_FAULT "syscall.page-fault", "page fault", "mmap(2), madvise(2); faults counted by getrusage(2)",
        "The one access that faults. Anonymous: a store to a page not there yet, which the kernel clears. File: \
        a load from a page of a memfd in the page cache, without fault-around. Copy-on-write: a store to a page \
        of a private file mapping that was read before. File-around, where asked for: a load from each of 512 \
        pages of a memfd (with a path: of that file) in random order, of which the kernel may serve 16 at once, \
        as one figure. File-mapped, where asked for: mmap of a part of a copy of a file, a store to every \
        stride, and munmap, as one figure."
        {
          sensitive_to: &[Condition::Virtualisation, Condition::PageSize, Condition::UnaskedHugePages, Condition::MovedPages], };
}

fn plan_page_faults(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = PageFaultRequest::of(input);
    let mut points = Vec::new();
    for pages in asked.pages.or(RegionPageSize::ALL) {
        for mode in asked.mode.or(&USUAL) {
            // Huge pages of files depend on the file system; only anonymous ones can be relied upon.
            if pages == RegionPageSize::Base || mode == PageFaultKind::Anonymous {
                let title = format!("page fault, {}, {}", mode.word(), format_size(pages.bytes()));
                let whole = matches!(mode, PageFaultKind::FileAround | PageFaultKind::FileMapped);
                let path = asked.path.first().filter(|_| whole);
                let mapped = mode == PageFaultKind::FileMapped;
                let size = mapped.then(|| asked.size.first().unwrap_or(PAGES as u64 * pages.bytes()));
                let stride = mapped.then(|| asked.stride.first().unwrap_or(pages.bytes()));
                let touched = asked.touched.first().filter(|_| mapped);
                points.push(probe.make_point(
                    PageFaultSettings { pages, mode, path, size, stride, touched },
                    title,
                    true,
                ));
            }
        }
    }
    points
}

fn run_page_faults(bench: &mut Bench) -> anyhow::Result<()> {
    for (index, touched) in bench.settings()?.into_iter().enumerate() {
        match touched {
            PageFaultSettings { pages: RegionPageSize::Huge, .. } => huge(bench, index),
            PageFaultSettings { mode: PageFaultKind::FileAround, path, .. } => {
                measure_fault_around(bench, index, path)
            }
            touched @ PageFaultSettings { mode: PageFaultKind::FileMapped, .. } => {
                mapped(bench, index, &touched)
            }
            PageFaultSettings { mode, .. } => {
                if let Some(pages) = ok_or_refuse(bench, index, "map memory", FaultingPages::new(mode)) {
                    small(bench, index, pages);
                }
            }
        }
    }
    Ok(())
}

/// Pages of the normal size in a row: 2 MiB of 4 KiB pages, so that they share
/// one page table and its allocation is not part of a fault.
const PAGES: usize = 512;

/// Pages that fault when touched, one after the other.
struct FaultingPages {
    memory: PageMapping,
    mode: PageFaultKind,
    next: usize,
}

impl FaultingPages {
    fn new(mode: PageFaultKind) -> Result<FaultingPages> {
        let memory = match mode {
            PageFaultKind::Anonymous => PageMapping::anonymous(PAGES * page_size())?,
            PageFaultKind::File | PageFaultKind::FileAround | PageFaultKind::FileMapped => {
                PageMapping::page_by_page(cached_file()?, PAGES)?
            }
            PageFaultKind::CopyOnWrite => PageMapping::private(cached_file()?, PAGES * page_size())?,
        };
        // EINVAL: a kernel without huge pages, which is as good.
        let _ = memory.refuse_huge_pages();
        let mut pages = FaultingPages { memory, mode, next: 0 };
        pages.renew()?;
        Ok(pages)
    }

    /// Makes all pages fault again.
    fn renew(&mut self) -> Result<()> {
        self.memory.discard()?;
        if self.mode == PageFaultKind::CopyOnWrite {
            for page in 0..PAGES {
                self.memory.read_byte(page * page_size());
            }
        }
        self.next = 0;
        Ok(())
    }

    /// Makes a page of a file fault once, untimed, and removes it again. Each page has a mapping of its own,
    /// and the kernel's data for it would be in no cache after another process ran.
    fn prepare_page(&mut self, offset: usize) -> Result<()> {
        if self.mode == PageFaultKind::File {
            self.memory.read_byte(offset);
            self.memory.discard_page(offset)?;
        }
        Ok(())
    }

    /// Touches the next page: a fault.
    #[inline(always)]
    fn touch(&mut self, offset: usize) {
        match self.mode {
            PageFaultKind::File | PageFaultKind::FileAround | PageFaultKind::FileMapped => {
                self.memory.read_byte(offset);
            }
            PageFaultKind::Anonymous | PageFaultKind::CopyOnWrite => self.memory.write_byte(offset),
        }
    }
}

/// A file of [`PAGES`] pages that exists only in the page cache.
fn cached_file() -> Result<OwnedFd> {
    let file = memfd_create("latscope-page-fault", MemfdFlags::CLOEXEC)?;
    let page = vec![1u8; page_size()];
    for number in 0..PAGES {
        rustix::io::pwrite(&file, &page, (number * page_size()) as u64)?;
    }
    Ok(file)
}

fn small(bench: &mut Bench, point: usize, mut pages: FaultingPages) {
    let (mut first, mut touched) = (FirstError::default(), 0u64);
    let before = thread_counts().minor_faults;
    bench.splits(&[point], SampleGate::Thread, |splits| {
        if pages.next == PAGES && first.check_result(pages.renew()).is_none() {
            return;
        }
        let offset = pages.next * page_size();
        if first.check_result(pages.prepare_page(offset)).is_none() {
            return;
        }
        splits.start_part();
        pages.touch(offset);
        splits.stop_part(0);
        pages.next += 1;
        touched += 1 + u64::from(pages.mode == PageFaultKind::File);
    });
    let faults = thread_counts().minor_faults - before;
    if first.has_error() {
        first.ok_or_close(bench, &[point], "give pages back");
    } else if faults < touched {
        let reason =
            format!("{touched} pages were touched, but only {faults} faulted: they were there before");
        bench.unsupported(point, reason, "run it without locked memory (mlockall)");
    } else if page_size() != 4096 {
        let reason = format!("the pages of this kernel have {} bytes", page_size());
        bench.degrade(point, "page-size", reason, "");
    }
}

/// Largest number of bytes of a file that are mapped; all of them are read ahead, and there is an order of
/// their pages.
const LONGEST: u64 = 1 << 30;

/// Returns the file at `path`, all of it in the page cache, or a new one without a path; with its length in
/// whole pages.
fn file_of(path: Option<&str>) -> Result<(OwnedFd, usize)> {
    let Some(path) = path else { return Ok((cached_file()?, PAGES * page_size())) };
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
    let found = rustix::fs::fstat(&file)?;
    if rustix::fs::FileType::from_raw_mode(found.st_mode) != rustix::fs::FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let length = (found.st_size as u64).min(LONGEST) as usize / page_size() * page_size();
    let (mut chunk, mut at) = (vec![0; 1 << 20], 0);
    while at < length as u64 {
        match rustix::io::pread(&file, &mut chunk[..], at)? {
            0 => return Err(Errno::INVAL),
            read => at += read as u64,
        }
    }
    if length == 0 { Err(Errno::INVAL) } else { Ok((file, length)) }
}

/// Returns a copy of a file's first `length` bytes, in the same directory and without a name: its pages can be
/// stored to. A file without a path is used as it is.
fn copy_of(path: Option<&str>, file: OwnedFd, length: usize) -> std::io::Result<std::fs::File> {
    let original = std::fs::File::from(file);
    let Some(path) = path else { return Ok(original) };
    let directory = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut copy = tempfile::tempfile_in(directory.unwrap_or(Path::new(".")))?;
    std::io::copy(&mut original.take(length as u64), &mut copy)?;
    Ok(copy)
}

/// Maps part of a copy of a file, stores to every `stride` of it, and unmaps it.
fn mapped(bench: &mut Bench, point: usize, asked: &PageFaultSettings) {
    let path = asked.path.as_deref();
    let copied = file_of(path).map_err(io::Error::from).and_then(|(file, length)| {
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
        Ok((copy_of(path, file, length)?, length))
    });
    let Some((file, length)) = ok_or_refuse(bench, point, "copy the file", copied) else { return };
    let bytes = |asked: Option<u64>, usual: usize| asked.map_or(usual, |bytes| bytes as usize);
    let size = bytes(asked.size, length).clamp(1, length);
    let touched = bytes(asked.touched, size).clamp(1, size);
    let stride = bytes(asked.stride, page_size()).max(1);
    let mut first = FirstError::default();
    bench.splits(&[point], SampleGate::Thread, |splits| {
        if first.has_error() {
            return;
        }
        splits.start_part();
        if let Some(mut mapping) = first.check_result(PageMapping::shared_writable(&file, size)) {
            for offset in (0..touched).step_by(stride) {
                mapping.write_byte(offset);
            }
            first.check_result(mapping.unmap());
        }
        splits.stop_part(0);
    });
    first.ok_or_close(bench, &[point], "map the file");
}

/// Loads from all pages of a file, mapped anew each time, in random order.
fn measure_fault_around(bench: &mut Bench, point: usize, path: Option<String>) {
    let mapped =
        file_of(path.as_deref()).and_then(|(file, length)| Ok((PageMapping::shared(file, length)?, length)));
    let Some((mut memory, length)) = ok_or_refuse(bench, point, "map the file", mapped) else { return };
    let pages = length / page_size();
    let order = shuffled(pages, bench.seed());
    let mut first = FirstError::default();
    let before = thread_counts().minor_faults;
    bench.set_work(point, OperationWork { ops: pages as u64, ..OperationWork::default() });
    bench.splits(&[point], SampleGate::Thread, |splits| {
        if first.check_result(memory.discard()).is_none() {
            return;
        }
        splits.start_part();
        for page in &order {
            memory.read_byte(page * page_size());
        }
        splits.stop_part(0);
    });
    if first.has_error() {
        first.ok_or_close(bench, &[point], "give pages back");
    } else if thread_counts().minor_faults == before {
        let remedy = "run it without locked memory (mlockall)";
        bench.unsupported(point, "no page faulted: they were there before", remedy);
    }
}

/// The numbers below `count` in an order that follows from the seed.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    ShuffleGenerator::new(seed).shuffle(&mut order);
    order
}

/// Number of huge pages in a row. They are few, so that the kernel hands out the same pages again: in a virtual
/// machine others may have gone back to the host, and a fault would time that. They are flushed before they are
/// given back. Otherwise part of them would still be in a last-level cache, as large a part as other programs
/// leave room for.
const HUGE_PAGES: usize = 8;

fn huge(bench: &mut Bench, point: usize) {
    let remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root), and free memory";
    let prepared = PageMapping::huge_aligned(HUGE_PAGES * HUGE_PAGE).and_then(|memory| {
        memory.want_huge_pages()?;
        Ok(memory)
    });
    let mut memory = match prepared {
        Ok(memory) => memory,
        Err(error) => {
            bench.unsupported(point, format!("no transparent huge pages: {error}"), remedy);
            return;
        }
    };
    memory.write_byte(0);
    if !is_huge(&memory, 0) {
        let reason = "no huge page came, although one was asked for (madvise, checked by mincore)";
        bench.unsupported(point, reason, remedy);
        return;
    }
    memory.populate();
    let (mut first, mut next, mut flushed) = (FirstError::default(), HUGE_PAGES, true);
    let (mut touched, mut small) = (0u64, 0u64);
    bench.splits(&[point], SampleGate::Thread, |splits| {
        if next == HUGE_PAGES {
            flushed = memory.flush(0, memory.len());
            if first.check_result(memory.discard()).is_none() {
                return;
            }
            next = 0;
        }
        let offset = next * HUGE_PAGE;
        let from = splits.now();
        memory.write_byte(offset);
        let to = splits.now();
        touched += 1;
        // A fault that got a small page is another operation: it does not count.
        if is_huge(&memory, offset) {
            splits.set_part(0, from, to);
        } else {
            small += 1;
        }
        next += 1;
    });
    if first.has_error() {
        first.ok_or_close(bench, &[point], "give pages back");
    } else if small > 0 {
        let reason =
            format!("of {touched} faults, {small} got a small page and were left out: huge pages are scarce");
        let remedy = "free memory, or compact it: echo 1 > /proc/sys/vm/compact_memory (as root)";
        bench.degrade(point, "not-huge", reason, remedy);
    } else if !flushed {
        let reason = "part of the pages was in the caches: nothing flushes them on this processor";
        bench.degrade(point, "in-caches", reason, "");
    }
}

/// Returns true if one touch brought a whole huge page.
fn is_huge(memory: &PageMapping, offset: usize) -> bool {
    memory.resident(offset, HUGE_PAGE) == Ok(HUGE_PAGE / page_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{self, check, measure, points};

    #[test]
    fn every_touch_is_a_fault_in_every_mode() {
        for mode in USUAL {
            let mut pages = FaultingPages::new(mode).unwrap();
            for _ in 0..2 {
                let before = thread_counts().minor_faults;
                (0..PAGES).for_each(|page| pages.touch(page * page_size()));
                let faults = thread_counts().minor_faults - before;
                assert!(faults >= PAGES as u64, "{mode:?}: {faults} faults");
                pages.renew().unwrap();
            }
        }
    }

    #[test]
    fn all_pages_of_a_mapping_are_touched_once_and_make_one_figure() {
        let mut order = shuffled(PAGES, 1);
        assert!(order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < PAGES / 8);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..PAGES));
        let mut input = latscope_engine::harness::input();
        input.values.insert("mode".to_owned(), vec!["file-around".into()]);
        let points = PAGE_FAULT.plan(&input, &harness::machine());
        assert_eq!(points.len(), 1);
        let measured = measure(&PAGE_FAULTS, points);
        check(&measured[0]);
        assert_eq!(measured[0].work.unwrap().ops, PAGES as u64, "{:?}", measured[0].joined_reasons());
    }

    #[test]
    fn a_file_that_is_named_is_the_one_that_is_mapped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![7; 40 * page_size() + 5]).unwrap();
        let mut input = latscope_engine::harness::input();
        let mut put = |name: &str, value: latscope_core::plan::ParamValue| {
            input.values.insert(name.to_owned(), vec![value]);
        };
        put("path", path.to_str().unwrap().into());
        put("mode", "file-around".into());
        put("pages", "4KiB".into());
        let measured = measure(&PAGE_FAULTS, PAGE_FAULT.plan(&input, &harness::machine()));
        check(&measured[0]);
        assert_eq!(measured[0].work.unwrap().ops, 40, "{:?}", measured[0].joined_reasons());
        let mut put = |name: &str, value: latscope_core::plan::ParamValue| {
            input.values.insert(name.to_owned(), vec![value]);
        };
        put("mode", "file-mapped".into());
        put("size", (32 << 10).into());
        put("stride", (16 << 10).into());
        let measured = measure(&PAGE_FAULTS, PAGE_FAULT.plan(&input, &harness::machine()));
        check(&measured[0]);
        assert_eq!(measured[0].quality.level, QualityLevel::Ok, "{:?}", measured[0].joined_reasons());
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7), "the file itself was stored to");
        std::fs::remove_file(&path).unwrap();
        let gone = measure(&PAGE_FAULTS, PAGE_FAULT.plan(&input, &harness::machine()));
        assert_eq!(gone[0].quality.level, QualityLevel::Unsupported);
    }

    #[test]
    fn small_pages_do_not_pass_for_huge_ones() {
        let mut memory = PageMapping::huge_aligned(HUGE_PAGE).unwrap();
        let _ = memory.refuse_huge_pages();
        memory.write_byte(0);
        assert!(!is_huge(&memory, 0));
    }

    #[test]
    fn all_modes_are_measured_or_say_why_not() {
        let planned = points(&PAGE_FAULT);
        assert_eq!(planned.len(), 4);
        for m in measure(&PAGE_FAULTS, planned) {
            check(&m);
            let huge = m.has_param_value("pages", "2MiB");
            assert!(huge || m.quality.level != QualityLevel::Unsupported, "{:?}", m.joined_reasons());
        }
    }
}
