//! Regions of memory to measure in: anonymous mappings of a known page size,
//! every page of them present (mmap(2), madvise(2)).

use crate::mapping::MemoryMapping;
use crate::nodes;
use crate::page::{HUGE_PAGE, page_size};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mprotect};
use std::ptr::NonNull;
use std::{fmt, io};

latscope_core::words! {
    /// Size of the pages that a region is made of.
    ///
    /// Base pages are the smallest of the machine, mostly 4 KiB; transparent huge pages are ruled out
    /// (`MADV_NOHUGEPAGE`). Huge pages are reserved ones (`MAP_HUGETLB`) if there are enough, else transparent ones
    /// (`MADV_HUGEPAGE`); the kernel may grant fewer: see [`Region::huge_share`].
    pub enum RegionPageSize {
        /// The base page of the architecture.
        Base = "4KiB",
        /// A huge page of 2 MiB.
        Huge = "2MiB",
    }
}

impl RegionPageSize {
    /// Returns the size of a page, bytes, as it is called: 4 KiB also where the base page is larger.
    pub fn bytes(self) -> u64 {
        match self {
            RegionPageSize::Base => 4 << 10,
            RegionPageSize::Huge => 2 << 20,
        }
    }
}

/// Reason why there is no region of the requested size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// No region has no bytes, or more than half of the address space.
    Size(usize),
    /// More than can be had without swapping or the out-of-memory killer.
    Unavailable {
        /// Size that was requested, bytes.
        wanted: usize,
        /// Bytes that are available.
        available: u64,
    },
    /// The kernel refused the region.
    Refused {
        /// Size that was requested, bytes.
        wanted: usize,
        /// Error number that the kernel returned.
        errno: Errno,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Size(size) => write!(f, "{size} bytes are no size for a region of memory"),
            Error::Unavailable { wanted, available } => {
                write!(f, "{wanted} bytes of memory are wanted, and only {available} are available")
            }
            Error::Refused { wanted, errno } => write!(f, "{wanted} bytes of memory were refused: {errno}"),
        }
    }
}

impl std::error::Error for Error {}

/// Private memory, zero but for the first word of each page, given back when
/// dropped.
///
/// It stands between inaccessible pages, so that it is a mapping of its own
/// that the kernel does not merge with a neighbour.
#[derive(Debug)]
pub struct MemoryRegion {
    start: NonNull<u64>,
    bytes: usize,
    _mapping: MemoryMapping,
}

// SAFETY: the region owns its memory; shared references to it reach nothing of it.
unsafe impl Send for MemoryRegion {}

impl MemoryRegion {
    /// Maps at least `bytes` of memory (rounded up to whole pages of the kind
    /// asked for) and touches every page of it.
    ///
    /// # Errors
    /// The size is zero or absurd, or more than is available (checked before the memory is touched, so that the
    /// out-of-memory killer is not called), or the kernel refuses.
    pub fn new(bytes: usize, pages: RegionPageSize) -> Result<MemoryRegion, Error> {
        MemoryRegion::placed(bytes, pages, None)
    }

    /// Maps a region as [`MemoryRegion::new`] does whose pages are bound to a NUMA node.
    ///
    /// # Errors
    /// The errors are those of [`MemoryRegion::new`], where what is available is that of the node. The kernel refuses a
    /// node that does not exist or has no memory.
    pub fn on_node(bytes: usize, pages: RegionPageSize, node: u32) -> Result<MemoryRegion, Error> {
        MemoryRegion::placed(bytes, pages, Some(node))
    }

    fn placed(bytes: usize, pages: RegionPageSize, node: Option<u32>) -> Result<MemoryRegion, Error> {
        let page = match pages {
            RegionPageSize::Base => page_size(),
            RegionPageSize::Huge => HUGE_PAGE,
        };
        let rounded = bytes.checked_next_multiple_of(page).filter(|b| *b > 0 && *b < isize::MAX as usize / 2);
        let rounded = rounded.ok_or(Error::Size(bytes))?;
        // Memory bound to a node that has too little calls the out-of-memory killer, whatever others have.
        let of_node = node.and_then(nodes::available).unwrap_or(u64::MAX);
        let available = available_memory().min(of_node);
        // Some must be left for other processes.
        if rounded as u64 > available - available / 16 {
            return Err(Error::Unavailable { wanted: rounded, available });
        }
        let refused = |errno| Error::Refused { wanted: rounded, errno };
        let mut region = match (pages, MemoryRegion::reserved(rounded, node)) {
            (RegionPageSize::Huge, Some(region)) => region,
            _ => MemoryRegion::advised(rounded, page, pages, node).map_err(refused)?,
        };
        region.touch();
        Ok(region)
    }

    /// Maps a region from the pool of reserved huge pages, if the pool holds enough.
    fn reserved(bytes: usize, node: Option<u32>) -> Option<MemoryRegion> {
        let flags = MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        let mapping = MemoryMapping::anonymous(bytes, ProtFlags::READ | ProtFlags::WRITE, flags).ok()?;
        bind_to_node(mapping.start.addr().get(), bytes, node).ok()?;
        // A limit of the control group would show as SIGBUS at the first touch;
        // populating tells it as an error instead (Linux 5.14).
        // SAFETY: populating changes nothing that is visible.
        unsafe { madvise(mapping.start.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) }.ok()?;
        Some(MemoryRegion { start: mapping.start.cast(), bytes, _mapping: mapping })
    }

    /// Ordinary memory, with advice about huge pages.
    fn advised(
        bytes: usize,
        page: usize,
        pages: RegionPageSize,
        node: Option<u32>,
    ) -> Result<MemoryRegion, Errno> {
        let mapping = MemoryMapping::anonymous(bytes + 2 * page, ProtFlags::empty(), MapFlags::NORESERVE)?;
        // The first multiple of a page of this kind that has a page of the mapping before it.
        let address = mapping.start.addr().get();
        // SAFETY: the mapping is two such pages longer than what is used, so that the place lies inside.
        let start = unsafe { mapping.start.byte_add((address + 1).next_multiple_of(page) - address) }.cast();
        let advice = match pages {
            RegionPageSize::Base => Advice::LinuxNoHugepage,
            RegionPageSize::Huge => Advice::LinuxHugepage,
        };
        // SAFETY: the range lies inside of the mapping just made, which is not used yet.
        unsafe {
            mprotect(start.as_ptr(), bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
            bind_to_node(start.addr().get(), bytes, node)?;
            // Kernels without transparent huge pages do not know the advice: no harm is done.
            let _ = madvise(start.as_ptr(), bytes, advice);
            // Only quicker than touching, and unknown before Linux 5.14.
            let _ = madvise(start.as_ptr(), bytes, Advice::LinuxPopulateWrite);
        }
        Ok(MemoryRegion { start: start.cast(), bytes, _mapping: mapping })
    }

    /// Writes to every page: a page only read would be the one page of zeroes.
    fn touch(&mut self) {
        let step = page_size() / size_of::<u64>();
        for (page, words) in (1..).zip(self.words().chunks_mut(step)) {
            words[0] = page;
        }
    }

    /// Returns the policy of the memory in words, as the kernel has it: `default`, `bind 2`.
    ///
    /// # Errors
    /// The kernel knows no nodes, or a seccomp filter refuses the call.
    pub fn policy(&self) -> io::Result<String> {
        nodes::policy(self.start.addr().get())
    }

    /// Counts the pages of the smallest size by the node that they are on at this moment.
    ///
    /// # Errors
    /// The kernel knows no nodes, or a seccomp filter refuses the call.
    pub fn pages_by_node(&self) -> io::Result<nodes::NumaPageCounts> {
        let start = self.start.addr().get();
        nodes::count_pages((start..start + self.bytes).step_by(page_size()))
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory as integers.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: `bytes` bytes from `start` are mapped, aligned to a page, initialised by the kernel, and borrowed
        // through `self` only.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes / size_of::<u64>()) }
    }

    /// The memory as links of a chain: integers of the width of an address.
    pub fn links(&mut self) -> &mut [usize] {
        // SAFETY: as in `words`; all bit patterns are valid.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / size_of::<usize>()) }
    }

    /// The memory as floating-point numbers.
    pub fn floats(&mut self) -> &mut [f64] {
        // SAFETY: as in `words`; all bit patterns are valid.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / size_of::<f64>()) }
    }

    /// The part of the region, from 0 to 1, that is in pages of 2 MiB at this
    /// moment, as `/proc/self/smaps` counts them (proc_pid_smaps(5)); `None` if that cannot be read.
    pub fn huge_share(&self) -> Option<f64> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let huge = huge_bytes(&maps, self.start.as_ptr() as usize)?;
        Some(huge as f64 / self.bytes as f64)
    }
}

/// Binds memory to a node, if there is one.
fn bind_to_node(start: usize, bytes: usize, node: Option<u32>) -> Result<(), Errno> {
    let Some(node) = node else { return Ok(()) };
    nodes::bind(start, bytes, node)
        .map_err(|error| error.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error))
}

/// The bytes in huge pages, reserved and transparent, of the mapping that starts
/// at `address`, from the text of `/proc/self/smaps`.
fn huge_bytes(maps: &str, address: usize) -> Option<u64> {
    let mut lines = maps.lines();
    let starts =
        |line: &str| line.split_once('-').and_then(|(start, _)| usize::from_str_radix(start, 16).ok());
    lines.find(|line| starts(line) == Some(address))?;
    // The lines of a mapping are `Name:  number kB`, up to the heading of the next one.
    let fields = lines.map_while(|line| {
        let (name, rest) = line.split_once(':')?;
        (!name.contains('-')).then_some((name, rest))
    });
    let huge = fields.filter(|(name, _)| matches!(*name, "AnonHugePages" | "Private_Hugetlb"));
    huge.map(|(_, rest)| kilobytes(rest)).sum()
}

/// Reads `  1024 kB`, in bytes.
fn kilobytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the bytes that can be had without swapping, as far as the machine and the control group of this process
/// report it.
pub fn available_memory() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = field(&meminfo, "MemAvailable:").and_then(kilobytes).unwrap_or_else(|| {
        let info = rustix::system::sysinfo();
        (info.freeram as u64).saturating_mul(u64::from(info.mem_unit))
    });
    group_memory().map_or(machine, |group| group.min(machine))
}

/// Returns the text that follows `name` at the start of a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// Returns the bytes that the control groups (version 2) of this process leave of their limits: memory beyond
/// `memory.max` calls the out-of-memory killer too.
fn group_memory() -> Option<u64> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = field(&membership, "0::")?.trim_end();
    std::path::Path::new(path).ancestors().filter_map(|group| group_left(group.to_str()?)).min()
}

fn group_left(group: &str) -> Option<u64> {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/sys/fs/cgroup{}/{name}", group.trim_end_matches('/'))).ok()
    };
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    // Cached files that were not used of late make room.
    let cached = read("memory.stat").and_then(|stat| field(&stat, "inactive_file ")?.trim().parse().ok());
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;

    #[test]
    fn a_region_is_whole_pages_all_present_and_writable() {
        for pages in [RegionPageSize::Base, RegionPageSize::Huge] {
            let mut region = MemoryRegion::new(3 << 20, pages).unwrap();
            let page = if pages == RegionPageSize::Huge { HUGE_PAGE } else { page_size() };
            assert!(region.bytes() >= 3 << 20 && region.bytes().is_multiple_of(page), "{pages:?}");
            assert_eq!(region.words().as_ptr() as usize % page, 0, "{pages:?}");
            let step = page_size() / 8;
            let first: Vec<u64> = region.words().iter().step_by(step).copied().collect();
            assert_eq!(first, (1..=first.len() as u64).collect::<Vec<_>>());
            region.links().fill(7);
            region.floats().fill(1.5);
            assert!(region.words().iter().all(|word| *word == 1.5_f64.to_bits()));
        }
    }

    #[test]
    fn base_pages_are_never_huge_and_huge_ones_are_counted() {
        let base = MemoryRegion::new(8 << 20, RegionPageSize::Base).unwrap();
        let huge = MemoryRegion::new(8 << 20, RegionPageSize::Huge).unwrap();
        let beside = MemoryRegion::new(8 << 20, RegionPageSize::Huge).unwrap();
        if let Some(share) = base.huge_share() {
            assert_eq!(share, 0.0);
            for region in [huge, beside] {
                assert!((0.0..=1.0).contains(&region.huge_share().unwrap()));
            }
        }
    }

    #[test]
    fn memory_bound_to_a_node_is_there_page_by_page() {
        // The node of the first page that comes without a policy has memory.
        let pages = MemoryRegion::new(1, RegionPageSize::Base).unwrap().pages_by_node();
        let Some(node) = pages.ok().and_then(|pages| pages.into_keys().next().flatten()) else {
            return skipped("memory_bound_to_a_node", "the kernel does not tell on which node a page is");
        };
        for pages in [RegionPageSize::Base, RegionPageSize::Huge] {
            let Ok(region) = MemoryRegion::on_node(4 << 20, pages, node) else { continue };
            let counted = region.pages_by_node().unwrap();
            assert_eq!(counted.values().sum::<u64>(), (region.bytes() / page_size()) as u64);
            assert_eq!(counted.into_keys().collect::<Vec<_>>(), [Some(node)], "{pages:?}");
            assert_eq!(region.policy().unwrap(), format!("bind {node}"));
        }
        assert!(matches!(MemoryRegion::on_node(1, RegionPageSize::Base, 1000), Err(Error::Refused { .. })));
    }

    #[test]
    fn impossible_sizes_are_refused_before_anything_is_touched() {
        assert_eq!(MemoryRegion::new(0, RegionPageSize::Base).unwrap_err(), Error::Size(0));
        assert_eq!(MemoryRegion::new(usize::MAX, RegionPageSize::Huge).unwrap_err(), Error::Size(usize::MAX));
        let more = usize::try_from(available_memory()).unwrap() + (1 << 30);
        for pages in [RegionPageSize::Base, RegionPageSize::Huge] {
            let error = MemoryRegion::new(more, pages).unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error}");
            assert!(error.to_string().contains("available"));
        }
    }

    #[test]
    fn the_mapping_that_starts_there_is_the_one_that_counts() {
        let maps = "7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n\
                    Size:               2048 kB\nAnonHugePages:      2048 kB\nPrivate_Hugetlb:       0 kB\n\
                    VmFlags: rd wr mr\n\
                    7f0000400000-7f0000800000 rw-p 00000000 00:00 0 \n\
                    Size:               4096 kB\nAnonHugePages:         0 kB\nPrivate_Hugetlb:    4096 kB\n\
                    7f0000800000-7f0000900000 ---p 00000000 00:00 0 \nAnonHugePages:       100 kB\n";
        assert_eq!(huge_bytes(maps, 0x7f00_0000_0000), Some(2 << 20));
        assert_eq!(huge_bytes(maps, 0x7f00_0040_0000), Some(4 << 20));
        assert_eq!(huge_bytes(maps, 0x7f00_0020_0000), None);
        assert_eq!(huge_bytes("", 0), None);
    }
}
