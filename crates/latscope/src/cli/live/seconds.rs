//! The largest value of each of the last seconds.

use latscope_core::histogram::Histogram;
use std::collections::VecDeque;

/// Seconds that are kept: five minutes.
const KEPT: usize = 300;

/// The largest value of each of the last seconds, ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seconds {
    /// Number of the second after the last one.
    next: u64,
    largest: VecDeque<Option<f64>>,
}

impl Seconds {
    /// Adds the largest value since the last time to this second.
    pub fn record_max(&mut self, second: u64, value: Option<f64>) {
        if self.largest.is_empty() {
            self.next = second;
        }
        // After a pause longer than all that is kept, only so much of it is filled in.
        self.next = self.next.max((second + 1).saturating_sub(KEPT as u64));
        while self.next <= second {
            self.largest.push_back(None);
            self.next += 1;
        }
        self.largest.drain(..self.largest.len().saturating_sub(KEPT));
        // f64::max takes the other side of a NaN, of which there is none here.
        if let (Some(last), Some(value)) = (self.largest.back_mut(), value) {
            *last = Some(last.map_or(value, |last| last.max(value)));
        }
    }

    /// The last so many seconds, oldest first; `None` where nothing was recorded.
    pub fn last(&self, count: usize) -> impl Iterator<Item = Option<f64>> {
        self.largest.iter().skip(self.largest.len().saturating_sub(count)).copied()
    }
}

/// The largest value, ns, that is in `now` and was not yet in `before`: exact
/// where it is the largest of all, else within 0.4 %.
pub(super) fn fresh_max(before: &Histogram, now: &Histogram) -> Option<f64> {
    if now.count() == before.count() {
        return None;
    }
    if now.max() != before.max() || now.overflow() != before.overflow() {
        return now.max();
    }
    let old: Vec<_> = before.buckets_ns().collect();
    let mut old = old.into_iter().rev().peekable();
    let new: Vec<_> = now.buckets_ns().collect();
    for (low, high, count) in new.into_iter().rev() {
        while old.next_if(|(other, ..)| *other > low).is_some() {}
        let counted = old.next_if(|(other, ..)| *other == low).map_or(0, |(_, _, count)| count);
        if count > counted {
            return now.max().map(|max| f64::midpoint(low, high).min(max));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new(1000);
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    fn kept(seconds: &Seconds) -> Vec<Option<f64>> {
        seconds.last(usize::MAX).collect()
    }

    #[test]
    fn what_is_fresh_is_found_below_an_older_maximum() {
        let before = histogram(&[5, 90, 100_000]);
        assert_eq!(fresh_max(&before, &before), None);
        assert_eq!(fresh_max(&before, &histogram(&[5, 90, 100_000, 7])), Some(7.0));
        assert_eq!(fresh_max(&before, &histogram(&[5, 90, 100_000, 90, 6])), Some(90.0));
        assert_eq!(fresh_max(&before, &histogram(&[5, 90, 100_000, 100_001, 6])), Some(100_001.0));
        assert_eq!(fresh_max(&before, &histogram(&[5, 90, 100_000, 100_000])), Some(100_000.0));
        assert_eq!(fresh_max(&histogram(&[]), &histogram(&[3])), Some(3.0));
        // A second one beyond the last bucket: all that is known is the largest.
        let beyond = histogram(&[1 << 50]);
        assert_eq!(fresh_max(&beyond, &histogram(&[1 << 50, 1 << 49])), beyond.max());
    }

    #[test]
    fn a_second_keeps_its_largest() {
        let mut seconds = Seconds::default();
        seconds.record_max(7, None);
        assert_eq!(kept(&seconds), [None]);
        seconds.record_max(7, Some(3.0));
        seconds.record_max(7, Some(9.0));
        seconds.record_max(7, Some(4.0));
        seconds.record_max(8, Some(1.0));
        seconds.record_max(11, Some(2.0));
        assert_eq!(kept(&seconds), [Some(9.0), Some(1.0), None, None, Some(2.0)]);
        assert_eq!(seconds.last(2).collect::<Vec<_>>(), [None, Some(2.0)]);
    }

    #[test]
    fn memory_is_constant() {
        let mut seconds = Seconds::default();
        (0..10_000).for_each(|second| seconds.record_max(second, Some(second as f64)));
        assert_eq!((kept(&seconds).len(), kept(&seconds)[KEPT - 1]), (KEPT, Some(9999.0)));
        seconds.record_max(1 << 60, Some(1.0));
        let kept = kept(&seconds);
        assert_eq!((kept.len(), kept[KEPT - 1], kept[0]), (KEPT, Some(1.0), None));
    }
}
