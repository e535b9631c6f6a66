//! Figures of memory that lie in a cache which other CPUs share, and what these CPUs did to it.

use super::Measurement;
use crate::footprint::Footprint;
use crate::machine::Machine;
use crate::quality::{QualityLevel, Reason, SHARED_CACHE};
use crate::units::{format_share, format_size};

/// Share of the time in which the CPUs beside were used from which a figure is not that of the cache alone: in the
/// experiment of docs/method.md, 5 % of one CPU doubled it.
const USE_MATTERS: f64 = 0.05;

impl Measurement {
    /// Derives anew whether its memory fits into a last-level cache that others used for a share of the time that
    /// matters. A point without a footprint has no such memory.
    pub fn settle_shared_cache(&mut self, machine: &Machine, footprint: Option<Footprint>) {
        self.quality.retain(|reason| reason.id != SHARED_CACHE);
        let used = self.account.as_ref().and_then(|account| account.beside);
        let used = used.filter(|share| *share >= USE_MATTERS && self.summary.count > 0);
        if let Some((used, cache)) = used.zip(footprint.and_then(|data| cache_shared(machine, data))) {
            let text = format!(
                "its data fit into the last-level cache of {}, and other work used CPUs of that cache {} of the time",
                format_size(cache),
                format_share(used)
            );
            let reason =
                Reason::new(QualityLevel::Degraded, SHARED_CACHE, text, "measure on a quieter machine");
            self.quality.add_reason(reason.with_number("used", used));
        }
    }
}

/// Size of the last-level cache into which the data fit, if no cache of one CPU alone holds what that CPU uses.
fn cache_shared(machine: &Machine, data: Footprint) -> Option<u64> {
    let caches = machine.caches.iter().filter(|cache| cache.kind != "Instruction");
    let own = caches.filter(|cache| cache.shared.0.len() == 1).map(|cache| cache.size).max();
    let last = machine.last_level_cache()?;
    (data.of_one_cpu > own.unwrap_or(0) && data.bytes <= last).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::CpuCache;
    use crate::plan::params;
    use crate::report::{Account, Contention, Semantics};
    use crate::testing::point;
    use crate::units::CpuList;

    fn machine() -> Machine {
        let cache = |level, size, shared: &[u32]| CpuCache {
            level,
            size,
            kind: "Unified".to_owned(),
            shared: CpuList(shared.to_vec()),
            ..CpuCache::default()
        };
        Machine { caches: vec![cache(2, 1 << 20, &[0]), cache(3, 32 << 20, &[0, 1])], ..Machine::default() }
    }

    fn row(size: u64, beside: Option<f64>) -> Measurement {
        let mut m = point("memory.latency", params([("size", size.into())]), Semantics::Operation, 14.0);
        m.account = Some(Account { wall_ns: 1, beside, ..Account::default() });
        m.settle_shared_cache(&machine(), Some(Footprint::from_bytes(size)));
        m
    }

    #[test]
    fn rows_in_a_cache_that_others_used_are_degraded_and_those_in_their_own_are_not() {
        let level = |size, beside| row(size, beside).quality.level;
        assert_eq!(level(8 << 20, Some(0.81)), QualityLevel::Degraded);
        for (size, beside) in
            [(8 << 20, Some(0.01)), (8 << 20, None), (512 << 10, Some(0.81)), (64 << 20, Some(0.81))]
        {
            assert_eq!(level(size, beside), QualityLevel::Ok, "{size} {beside:?}");
        }
    }

    #[test]
    fn what_each_cpu_uses_counts_for_its_own_cache_and_all_of_it_for_the_shared_one() {
        let level = |footprint| {
            let mut m = row(8 << 20, Some(0.81));
            m.settle_shared_cache(&machine(), footprint);
            m.quality.level
        };
        let of_four = |bytes| Some(Footprint::of_threads(bytes, 4));
        assert_eq!(level(of_four(4 << 20)), QualityLevel::Ok);
        assert_eq!(level(of_four(8 << 20)), QualityLevel::Degraded);
        assert_eq!(level(of_four(64 << 20)), QualityLevel::Ok);
        assert_eq!(level(None), QualityLevel::Ok);
    }

    #[test]
    fn a_later_round_without_others_makes_the_reason_go() {
        let mut m = row(8 << 20, Some(0.5));
        assert!(
            m.joined_reasons()
                .as_ref()
                .is_some_and(|text| text.contains("32 MiB") && text.contains("50 % of the time"))
        );
        m.account.as_mut().unwrap().beside = Some(0.02);
        m.settle_shared_cache(&machine(), Some(Footprint::from_bytes(8 << 20)));
        assert!(m.quality.level == QualityLevel::Ok && m.joined_reasons().is_none());
    }

    #[test]
    fn reading_a_row_again_keeps_the_order_of_its_reasons() {
        let mut m = row(8 << 20, Some(0.5));
        let account = m.account.as_mut().unwrap();
        (account.wall_ns, account.others) = (1_000_000, 0.9);
        m.contention = Some(Contention {
            wall_ns: 1_000_000,
            run_delay_ns: Some(800_000),
            distorts: true,
            ..Contention::default()
        });
        m.derive_results();
        m.settle_shared_cache(&machine(), Some(Footprint::from_bytes(8 << 20)));
        let written = m.clone();
        m.derive_results();
        assert_eq!(m.quality, written.quality);
        let ids: Vec<_> = m.quality.reasons.iter().map(|reason| &*reason.id).collect();
        assert_eq!(ids, ["waited-for-a-cpu", SHARED_CACHE]);
    }
}
