//! The memory in which the probes of this family measure, and doubts about it.

use crate::prelude::*;
use latscope_os::memory;

/// Smallest share of huge pages at which the figures of a region count as those of huge pages.
const ENOUGH: f64 = 0.95;

pub(crate) const SMALLER: &str = "choose a smaller --size, or free memory";

/// Returns a region for the largest of the points at `indices` for which there is memory, and the points that
/// fit. The others are closed.
pub(crate) fn for_points(
    bench: &mut Bench,
    indices: Vec<usize>,
    pages: RegionPageSize,
    bytes: impl Fn(usize) -> u64,
) -> Option<(MemoryRegion, Vec<usize>)> {
    let mut fitting = indices;
    fitting.sort_by_key(|index| bytes(*index));
    while let Some(largest) = fitting.last() {
        let wanted = usize::try_from(bytes(*largest)).unwrap_or(usize::MAX);
        match MemoryRegion::new(wanted, pages) {
            Ok(region) => {
                page_size_doubt(&region, pages)
                    .into_iter()
                    .for_each(|doubt| doubt.degrade_points(bench, &fitting));
                return Some((region, fitting));
            }
            Err(error) => bench.unsupported(*largest, error.to_string(), SMALLER),
        }
        fitting.pop();
    }
    None
}

/// Returns a region for each of the threads: thread `i` gets `bytes[i]` on `cpus[i]`. Each region is made on
/// its CPU, so that it is on the node of that CPU.
///
/// # Errors
/// There is too little memory, or a CPU cannot be used.
pub(crate) fn for_threads(
    cpus: &[u32],
    bytes: &[usize],
    pages: RegionPageSize,
) -> anyhow::Result<Vec<MemoryRegion>> {
    let wanted: u64 = bytes.iter().map(|bytes| *bytes as u64).sum();
    let available = memory::available_memory();
    anyhow::ensure!(
        wanted <= available,
        "{wanted} bytes of memory are wanted for all threads, and only {available} are available"
    );
    let make = |cpu: u32, bytes: usize| -> anyhow::Result<MemoryRegion> {
        threads::pin(cpu)?;
        Ok(MemoryRegion::new(bytes, pages)?)
    };
    // One after the other: each has to see what the ones before took.
    cpus.iter()
        .zip(bytes)
        .map(|(cpu, bytes)| {
            std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || make(*cpu, *bytes));
                let thread = thread.context("no thread can be created")?;
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
        .collect()
}

/// Difference between a region and the request for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    reason: String,
    remedy: &'static str,
}

impl Doubt {
    /// Marks points as degraded for this reason.
    pub fn degrade_points(&self, bench: &mut Bench, indices: &[usize]) {
        for index in indices {
            bench.degrade(*index, "page-size", self.reason.as_str(), self.remedy);
        }
    }
}

/// Returns a doubt if the pages of a region are not of the requested size.
pub fn page_size_doubt(region: &MemoryRegion, pages: RegionPageSize) -> Option<Doubt> {
    judge_pages(pages, region.huge_share(), rustix::param::page_size())
}

/// Returns the first doubt about the regions of a thread group.
pub fn first_doubt(regions: &[MemoryRegion], pages: RegionPageSize) -> Option<Doubt> {
    regions.iter().find_map(|region| page_size_doubt(region, pages))
}

fn judge_pages(pages: RegionPageSize, huge_share: Option<f64>, base: usize) -> Option<Doubt> {
    match (pages, huge_share) {
        (RegionPageSize::Base, _) if base != 4096 => Some(Doubt {
            reason: format!("the smallest pages of this machine are of {} KiB, not 4 KiB", base >> 10),
            remedy: "",
        }),
        (RegionPageSize::Base, _) => None,
        (RegionPageSize::Huge, None) => Some(Doubt {
            reason: "whether the memory is in pages of 2 MiB is not known: /proc/self/smaps cannot be read".to_owned(),
            remedy: "mount /proc",
        }),
        (RegionPageSize::Huge, Some(share)) => (share < ENOUGH).then(|| Doubt {
            reason: format!(
                "{} of the memory is in pages of 2 MiB, the rest in small ones that add misses of the TLB",
                format_share(share)
            ),
            remedy: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and free or compact memory (echo 1 > /proc/sys/vm/compact_memory)",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_doubted_unless_verified() {
        assert_eq!(judge_pages(RegionPageSize::Huge, Some(1.0), 4096), None);
        assert_eq!(judge_pages(RegionPageSize::Huge, Some(0.96), 4096), None);
        let few = judge_pages(RegionPageSize::Huge, Some(0.5), 4096).unwrap();
        assert!(few.reason.starts_with("50 % of the memory") && few.remedy.contains("transparent_hugepage"));
        assert!(judge_pages(RegionPageSize::Huge, None, 4096).unwrap().reason.contains("not known"));
        assert_eq!(judge_pages(RegionPageSize::Base, Some(0.0), 4096), None);
        assert!(judge_pages(RegionPageSize::Base, Some(0.0), 65_536).unwrap().reason.contains("64 KiB"));
    }

    #[test]
    fn threads_get_what_they_asked_for_or_an_error_that_says_why() {
        let cpus = latscope_os::sched::allowed_cpus().unwrap();
        let regions = for_threads(&cpus[..1], &[3 << 20], RegionPageSize::Huge).unwrap();
        assert_eq!(regions[0].bytes(), 4 << 20);
        let error = for_threads(&cpus[..1], &[usize::MAX / 4], RegionPageSize::Huge).unwrap_err();
        assert!(error.to_string().contains("available"));
    }
}
