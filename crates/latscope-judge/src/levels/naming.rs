//! Working sets that stand for a level, and the name of a level that may be another one.

/// Sizes of a level, smallest and largest, that its row is computed of. A working set as large as a cache is in part
/// elsewhere, so that those of a cache of `declared` bytes end at three quarters of it. Memory has no `declared` size:
/// its sizes begin at twice the last declared cache, of `last` bytes, which keeps at most half of them. Where the level
/// has none of these, all stay.
pub(crate) fn sizes_of((from, to): (u64, u64), declared: Option<u64>, last: Option<u64>) -> (u64, u64) {
    match (declared.map(|cache| cache / 4 * 3), last) {
        (Some(most), _) if from <= most => (from, to.min(most)),
        (None, Some(last)) if to / 2 >= last => (from.max(2 * last), to),
        _ => (from, to),
    }
}

/// Name of a level beyond the second, such as `L3 or memory`, if the curve does not show memory and the level has sizes
/// above five times the second cache, of `second` bytes: nothing says then that the level is not memory.
pub(crate) fn doubted_name(
    name: &str,
    largest: u64,
    second: Option<u64>,
    memory_seen: bool,
) -> Option<String> {
    let number: u32 = name.strip_prefix('L')?.parse().ok()?;
    let far = second.is_none_or(|second| largest > second.saturating_mul(5));
    (number > 2 && far && !memory_seen).then(|| format!("{name} or memory"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_row_of_a_cache_has_no_size_above_three_quarters_of_it() {
        assert_eq!(sizes_of((2 * MIB, 40 * MIB), Some(32 * MIB), None), (2 * MIB, 24 * MIB));
        assert_eq!(sizes_of((2 * MIB, 6 * MIB), Some(32 * MIB), None), (2 * MIB, 6 * MIB));
        assert_eq!(sizes_of((25 * MIB, 40 * MIB), Some(32 * MIB), None), (25 * MIB, 40 * MIB));
    }

    #[test]
    fn a_row_of_memory_has_no_size_of_which_a_declared_cache_holds_more_than_half() {
        assert_eq!(sizes_of((8 * MIB, 96 * MIB), None, Some(32 * MIB)), (64 * MIB, 96 * MIB));
        assert_eq!(sizes_of((8 * MIB, 40 * MIB), None, Some(32 * MIB)), (8 * MIB, 40 * MIB));
        assert_eq!(sizes_of((8 * MIB, 16 * MIB), None, Some(32 * MIB)), (8 * MIB, 16 * MIB));
        assert_eq!(sizes_of((8 * MIB, 16 * MIB), None, None), (8 * MIB, 16 * MIB));
    }

    #[test]
    fn nothing_far_beyond_the_second_cache_is_the_third_without_memory() {
        let name = |largest, seen| doubted_name("L3", largest, Some(MIB), seen);
        assert_eq!(name(32 * MIB, false).as_deref(), Some("L3 or memory"));
        assert_eq!((name(32 * MIB, true), name(5 * MIB, false)), (None, None));
        assert_eq!(doubted_name("L2", 32 * MIB, Some(MIB), false), None);
        assert_eq!(doubted_name("memory", 32 * MIB, Some(MIB), false), None);
    }

    proptest! {
        #[test]
        fn the_sizes_of_a_row_are_some_of_its_level(
            from in 1..1u64 << 40, more in 0..1u64 << 40,
            declared in proptest::option::of(0..1u64 << 40), last in proptest::option::of(0..1u64 << 40),
        ) {
            let to = from + more;
            let (low, high) = sizes_of((from, to), declared, last);
            prop_assert!(from <= low && low <= high && high <= to);
            // An end that was measured stays, so that a row has a point.
            prop_assert!(low == from || high == to);
        }
    }
}
