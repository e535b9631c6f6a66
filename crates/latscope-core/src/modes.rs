//! Mixtures: events of two kinds, whose median is at best the figure of one of them.

use crate::histogram::Histogram;
use crate::quality::{QualityLevel, Reason};
use crate::units::{format_share, format_time};

/// Id of the reason that names the two modes of a distribution.
pub const TWO_MODES: &str = "two-modes";

/// Fewest events that show two modes.
const ENOUGH: u64 = 100;

/// Least share of the events in a mode.
const LEAST: f64 = 0.1;

/// Ratio of the ends of a gap between two modes, and the largest share of the events within it.
const GAP: f64 = 1.5;
const WITHIN: f64 = 0.005;

/// Two kinds of events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture {
    /// Median of the faster events, ns.
    pub low: f64,
    /// Median of the slower events, ns.
    pub high: f64,
    /// Share of the faster events, 0 to 1.
    pub share: f64,
}

impl Mixture {
    /// Returns the two modes of a distribution of single events: a gap, in which hardly any event lies, has a tenth of
    /// them or more on either side. `None` if there is no such gap, for few events, and for those in bins of other
    /// programs.
    pub fn from_histogram(events: &Histogram) -> Option<Mixture> {
        if events.count() < ENOUGH || events.overflow() > 0 || events.bins().is_some() {
            return None;
        }
        let buckets: Vec<(f64, u64)> =
            events.buckets_ns().map(|(low, high, count)| (f64::midpoint(low, high), count)).collect();
        let all = events.count() as f64;
        let mut widest: Option<(f64, usize, usize)> = None;
        for (low, high) in gaps(&buckets, WITHIN * all) {
            let below: u64 = buckets[..=low].iter().map(|(_, count)| count).sum();
            let above: u64 = buckets[high..].iter().map(|(_, count)| count).sum();
            let ratio = buckets[high].0 / buckets[low].0;
            let is_wider = ratio >= GAP && widest.is_none_or(|(known, ..)| ratio > known);
            if is_wider && below.min(above) as f64 >= LEAST * all {
                widest = Some((ratio, low, high));
            }
        }
        let (_, low, high) = widest?;
        let below: u64 = buckets[..=low].iter().map(|(_, count)| count).sum();
        Some(Mixture {
            // What is 0 was subtracted away, and is no kind of event.
            low: weighted_median(&buckets[..=low]).filter(|ns| *ns > 0.0)?,
            high: weighted_median(&buckets[high..])?,
            share: below as f64 / all,
        })
    }

    /// The two modes as a remark, which says nothing against the row.
    pub fn remark(&self) -> Reason {
        let text = format!(
            "its events are of two kinds: {} take around {}, the rest around {}",
            format_share(self.share),
            format_time(self.low),
            format_time(self.high)
        );
        let reason = Reason::new(QualityLevel::Ok, TWO_MODES, text, "");
        reason.with_number("low", self.low).with_number("high", self.high).with_number("share", self.share)
    }
}

/// For each bucket the furthest one above it, as two places, with at most `most` events between both.
fn gaps(buckets: &[(f64, u64)], most: f64) -> impl Iterator<Item = (usize, usize)> {
    (0..buckets.len().saturating_sub(1)).filter(|low| buckets[*low].0 > 0.0).map(move |low| {
        let mut within = 0.0;
        let further = buckets[low + 1..].iter().take_while(|(_, count)| {
            within += *count as f64;
            within <= most
        });
        (low, (low + 1 + further.count()).min(buckets.len() - 1))
    })
}

/// Median of counted values in ascending order.
fn weighted_median(buckets: &[(f64, u64)]) -> Option<f64> {
    let half = buckets.iter().map(|(_, count)| count).sum::<u64>().div_ceil(2);
    let mut below = 0;
    buckets
        .iter()
        .find(|(_, count)| {
            below += count;
            below >= half
        })
        .map(|(ns, _)| *ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut events = Histogram::new(1000);
        values.into_iter().for_each(|value| events.record(value));
        events
    }

    #[test]
    fn events_of_which_nothing_is_left_are_no_mode() {
        let some = |zeros: usize| std::iter::repeat_n(0, zeros).chain([1; 10]).chain([6_000; 150]);
        assert_eq!(Mixture::from_histogram(&histogram(some(250))), None);
        assert!(
            Mixture::from_histogram(&histogram([1; 10].into_iter().chain([6_000; 150]).chain([1; 100])))
                .is_some()
        );
    }

    #[test]
    fn a_timer_that_is_programmed_in_some_calls_has_two_modes() {
        let fast = (0..270).map(|at| 720 + at % 20);
        let slow = (0..730).map(|at| 13_500 + at % 1000);
        // A few calls in between do not join them.
        let odd = [3_000, 5_000, 6_000];
        let modes = Mixture::from_histogram(&histogram(fast.chain(slow).chain(odd))).expect("two modes");
        assert!(
            (modes.low / 730.0 - 1.0).abs() < 0.02 && (modes.high / 14_000.0 - 1.0).abs() < 0.02,
            "{modes:?}"
        );
        assert!((modes.share - 0.27).abs() < 0.005, "{modes:?}");
        let remark = modes.remark();
        assert_eq!(remark.level, QualityLevel::Ok);
        assert!(
            remark.text.starts_with("its events are of two kinds: 26.9 % take around"),
            "{}",
            remark.text
        );
    }

    #[test]
    fn a_tail_is_not_a_mode_and_few_events_say_nothing() {
        let tail = (0..950).map(|at| 700 + at % 50).chain((0..50).map(|at| 20_000 + at));
        assert_eq!(Mixture::from_histogram(&histogram(tail)), None);
        assert_eq!(Mixture::from_histogram(&histogram([700; 20].into_iter().chain([14_000; 20]))), None);
        assert_eq!(Mixture::from_histogram(&histogram((0..1000).map(|at| 500 + at))), None);
        assert_eq!(Mixture::from_histogram(&histogram([])), None);
    }

    proptest! {
        #[test]
        fn one_even_cloud_has_no_modes(from in 100u64..1_000_000, wide in 2u64..4) {
            let values = (0..2000).map(|at| from + at * from * (wide - 1) / 2000);
            prop_assert_eq!(Mixture::from_histogram(&histogram(values)), None);
        }

        #[test]
        fn two_clouds_have_two_modes(low in 200u64..100_000, by in 2u64..50, share in 20usize..80) {
            let values = (0..1000).map(|at| if at % 100 < share { low } else { low * by + at as u64 % 7 });
            let modes = Mixture::from_histogram(&histogram(values)).expect("two modes");
            prop_assert!((modes.share - share as f64 / 100.0).abs() < 1e-9);
            prop_assert!((modes.low / low as f64 - 1.0).abs() < 0.02);
            prop_assert!((modes.high / (low * by) as f64 - 1.0).abs() < 0.05);
        }
    }
}
