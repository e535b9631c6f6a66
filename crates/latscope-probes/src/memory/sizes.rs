//! Choice of the measured sizes: pure functions of the request and the declared caches.

use latscope_bench::param::{PlanInput, SurveyProfile};
use latscope_core::machine::{CpuCache, Machine};

/// Bytes in 1 KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in 1 MiB.
pub const MIB: u64 = 1 << 20;

/// Bytes in a line of the caches, and in a step of the chases.
pub const LINE: u64 = 64;

/// Assumed bytes of a last-level cache that is not declared.
const UNKNOWN_LAST_LEVEL: u64 = 64 * MIB;

/// Four times the last-level cache, in whole pages of 2 MiB: most of that comes from memory, whatever the
/// caches keep.
pub(crate) fn beyond_caches(machine: &Machine) -> u64 {
    let last = machine.last_level_cache().filter(|size| *size > 0).unwrap_or(UNKNOWN_LAST_LEVEL);
    (4 * last).next_multiple_of(2 * MIB)
}

/// Says of memory that is not beyond the declared caches in which of them it is: `in the declared L3`; empty beyond.
///
/// Of twice the size of a cache at least half comes from memory, whatever the cache keeps.
pub(crate) fn place_in_caches(machine: &Machine, size: u64) -> String {
    let caches = machine.caches.iter().filter(|cache| cache.kind != "Instruction" && cache.size > 0);
    match caches.max_by_key(|cache| cache.level) {
        Some(last) if size <= last.size => format!("in the declared L{}", last.level),
        Some(last) if size < 2 * last.size => format!("partly in the declared L{}", last.level),
        _ => String::new(),
    }
}

/// Returns true if sizes end where a survey's do: larger memory takes longer to fill than to measure.
pub(crate) fn is_capped(input: &PlanInput) -> bool {
    input.survey || input.profile == SurveyProfile::Quick
}

/// Sizes from `from` to `to`, `per_octave` of them from each power of two times
/// `from` to the next, evenly; `to` is the last one.
pub fn sweep(from: u64, to: u64, per_octave: u64) -> Vec<u64> {
    let octaves = std::iter::successors(Some(from), |octave| octave.checked_mul(2));
    let grid = octaves.flat_map(|octave| (0..per_octave).map(move |i| octave + octave / per_octave * i));
    let mut sizes: Vec<u64> = grid.take_while(|size| *size < to).collect();
    sizes.push(to.max(from));
    sizes
}

/// Rounds sizes down to multiples of `unit`, each once, in ascending order, without those of less than a `unit`.
pub fn round_sizes(sizes: Vec<u64>, unit: u64) -> Vec<u64> {
    let whole = sizes.into_iter().map(|size| size / unit * unit);
    let mut sizes: Vec<u64> = whole.filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Half of each declared data cache, times the number of such caches that
/// `threads` threads use: what all threads together find in that cache, if it has the declared size. The words for that
/// come with it: `half of L2`.
pub(crate) fn inside_caches(machine: &Machine, threads: u64) -> Vec<(u64, String)> {
    let data = machine.caches.iter().filter(|cache| cache.kind != "Instruction" && cache.size > 0);
    let half = |cache: &CpuCache| {
        let sharers = cache.shared.0.iter().filter(|cpu| machine.allowed.0.contains(cpu)).count() as u64;
        (cache.size / 2 * threads.div_ceil(sharers.max(1)), format!("half of L{}", cache.level))
    };
    data.map(half).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A machine of four CPUs with 32 KiB, 1 MiB and shared 32 MiB of cache.
    pub fn machine() -> Machine {
        let cache = |level, size, shared: &str| CpuCache {
            level,
            kind: if level == 1 { "Data" } else { "Unified" }.into(),
            size,
            line: 64,
            ways: 8,
            shared: shared.parse().unwrap(),
        };
        Machine {
            allowed: "0-3".parse().unwrap(),
            online: "0-3".parse().unwrap(),
            caches: vec![
                cache(1, 32 * KIB, "0"),
                CpuCache { kind: "Instruction".into(), ..cache(1, 48 * KIB, "0") },
                cache(2, MIB, "0"),
                cache(3, 32 * MIB, "0-3"),
            ],
            ..Machine::default()
        }
    }

    #[test]
    fn a_sweep_divides_octaves_evenly_and_ends_at_the_end() {
        assert_eq!(sweep(2048, 8192, 2), [2048, 3072, 4096, 6144, 8192]);
        assert_eq!(sweep(2048, 4096, 8), [2048, 2304, 2560, 2816, 3072, 3328, 3584, 3840, 4096]);
        assert_eq!(sweep(1024, 5000, 1), [1024, 2048, 4096, 5000]);
        assert_eq!(sweep(1024, 512, 1), [1024]);
        // 2 KiB to 128 MiB are 16 octaves.
        let full = sweep(2 * KIB, 128 * MIB, 8);
        assert_eq!(full.len(), 16 * 8 + 1);
        assert!(full.is_sorted() && full.iter().all(|size| size % LINE == 0));
    }

    #[test]
    fn rounding_keeps_the_order_and_makes_nothing_larger() {
        assert_eq!(round_sizes(vec![4095, 1, 100, 64, 8192], 64), [64, 4032, 8192]);
        assert_eq!(round_sizes(vec![5000, 0, 4095], 4096), [4096]);
    }

    #[test]
    fn memory_begins_at_four_times_the_last_level() {
        assert_eq!(beyond_caches(&machine()), 128 * MIB);
        assert_eq!(beyond_caches(&Machine::default()), 256 * MIB);
    }

    #[test]
    fn memory_is_named_only_beyond_the_declared_caches() {
        let of = |mib| place_in_caches(&machine(), mib * MIB);
        assert_eq!(
            [of(32), of(33), of(63)].map(|place| place.replace("the declared ", "")),
            ["in L3", "partly in L3", "partly in L3"]
        );
        assert_eq!((of(64), place_in_caches(&Machine::default(), KIB)), (String::new(), String::new()));
    }

    #[test]
    fn private_caches_count_for_each_thread_and_shared_ones_once() {
        let sizes = |threads| {
            inside_caches(&machine(), threads).into_iter().map(|(size, _)| size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(1), [16 * KIB, 512 * KIB, 16 * MIB]);
        assert_eq!(sizes(4), [64 * KIB, 2 * MIB, 16 * MIB]);
        assert_eq!(inside_caches(&machine(), 1)[2].1, "half of L3");
        assert_eq!(inside_caches(&Machine::default(), 1), []);
    }
}
