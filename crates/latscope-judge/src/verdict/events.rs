//! Criteria on single events: how many were above a limit, and what their share proves.

use super::above::{Above, MessageLosses, ends, suggest_remedy};
use super::criterion::limit_in_words;
use super::rounds::{is_of_rounds, is_sure};
use super::{CriterionOutcome, CriterionQuantile, Metric, confidence, is_batch, not_run};
use crate::binomial::{proves_at_most, proves_more, samples_needed, share_bounds};
use latscope_core::histogram::{Histogram, Span};
use latscope_core::report::{Measurement, Sampling, VerdictStatus};
use latscope_core::units::{count_with_noun, format_apart, format_count, format_share};

/// Events that are or may be above a limit, and how many there are, both with the missed activations; `None` for
/// batches.
pub(crate) fn events_above(m: &Measurement, limit: f64) -> Option<(u64, u64)> {
    let (histogram, lost) = (m.with_missed(), MessageLosses::from_measurement(m));
    let above = lost.added_to(&Above::from_histogram(histogram, limit));
    (m.sampling == Sampling::Event).then(|| (above.most, lost.among(histogram.count())))
}

/// Result of `max` and `threshold`: no value may be above the limit, also none that a missed activation would have had.
pub(super) fn none_above(m: &Measurement, limit: f64) -> CriterionOutcome {
    let (histogram, lost) = (m.with_missed(), MessageLosses::from_measurement(m));
    let timed = Above::from_histogram(histogram, limit);
    let above = lost.added_to(&timed);
    let n = lost.among(histogram.count());
    let longest = histogram.max();
    // A lost message took longer than every message with a reply.
    let value = longest.filter(|longest| lost.count == 0 || *longest > limit);
    if above.most == 0 {
        return CriterionOutcome {
            value,
            status: VerdictStatus::Pass,
            text: confidence::none_seen(n, limit, m.tested),
        };
    }
    let (written, worst) = beside_longest(histogram, limit);
    let (words, with) = (above.format_exceedances(n, &written), lost.format_losses() + &missed_words(m));
    let of_replies = if lost.is_none() { "" } else { " that had a reply" };
    let worst = worst.map(|worst| format!("; the longest{of_replies} {worst}")).unwrap_or_default();
    if above.least > 0 {
        return CriterionOutcome {
            value,
            status: VerdictStatus::Exceeded,
            text: format!("{words}{with}{worst}"),
        };
    }
    let unsure = timed.unsure(histogram);
    let remedy =
        if timed.most > 0 { format!(": {}", suggest_remedy(m, &timed, limit)) } else { String::new() };
    let text = format!("{words}{unsure}{with}{worst}{remedy}");
    CriterionOutcome { value, status: VerdictStatus::Inconclusive, text }
}

/// A limit in words, and how long the longest value of a histogram took, if there is one.
fn beside_longest(histogram: &Histogram, limit: f64) -> (String, Option<String>) {
    match histogram.largest() {
        None => (limit_in_words(limit), None),
        Some(Span { low, high }) if low == high => {
            let [limit, worst] = format_apart([limit, low], "ns");
            (limit, Some(format!("took {worst}")))
        }
        Some(span) => (limit_in_words(limit), Some(format!("is in the bin {}", ends(span)))),
    }
}

/// Result of a quantile criterion: at most the quantile's share may be above the limit, in the distribution with the
/// missed activations if there is one. The values of the bin around the limit count against either verdict.
pub(super) fn few_above(m: &Measurement, quantile: CriterionQuantile, limit: f64) -> CriterionOutcome {
    let (histogram, lost) = (m.with_missed(), MessageLosses::from_measurement(m));
    let (n, share, independent) =
        (lost.among(histogram.count()), quantile.above, Independent::from_measurement(m));
    let timed = Above::from_histogram(histogram, limit);
    let above = lost.added_to(&timed);
    let allowed = format_share(share);
    let value = histogram.quantile_with(1.0 - share, lost.among(0));
    let unsure = timed.unsure(histogram);
    let seen = above.format_exceedances(n, &limit_in_words(limit))
        + &unsure
        + &lost.format_losses()
        + &independent.format_independent(n);
    let bounds = |k: u64| share_bounds(k, independent.effective_count(n));
    let (status, text) = if independent.prove_at_most(above.most, n, share) {
        let bound = format_share(bounds(independent.above(above.most)).high);
        let condition = confidence::condition(m.tested);
        let text =
            format!("{seen}: at most {bound} are {condition}, with 95 % confidence, and {allowed} may be");
        (VerdictStatus::Pass, text)
    } else if independent.prove_more(above.least, n, share) {
        let bound = format_share(bounds(independent.effective_count(above.least)).low);
        let text = format!("{seen}: at least {bound} are, with 95 % confidence, and {allowed} may be");
        (VerdictStatus::Exceeded, text)
    } else if independent.is_left_open(&above, n, share) {
        (
            VerdictStatus::Inconclusive,
            format!("{seen}, where {allowed} may be: {}", suggest_remedy(m, &timed, limit)),
        )
    } else {
        let needed = format_count(independent.wanting(above.most, n, share));
        // A longer run does not help a thread that gets no CPU.
        let more = not_run(m).map_or_else(
            || format!(". It takes {needed} more, none of them above"),
            |_| ", as long as the thread gets no CPU".to_owned(),
        );
        (VerdictStatus::Inconclusive, format!("{seen}, where {allowed} may be: too few to judge{more}"))
    };
    CriterionOutcome { value, status, text: text + &missed_words(m) }
}

/// ` (with the 3 missed activations)`, where the distribution has them; otherwise empty.
fn missed_words(m: &Measurement) -> String {
    match m.with_missed().count().saturating_sub(m.histogram.count()) {
        0 => String::new(),
        missed => format!(" (with the {})", count_with_noun(missed, "missed activation")),
    }
}

/// The smallest limit of a duration, ns, that the samples of a measurement pass; other doubts do not count. `None` if
/// they pass no limit, or if nothing bounds how rare longer ones are: there are too few samples, or it is a maximum.
pub fn passes_from(m: &Measurement, quantile: CriterionQuantile) -> Option<f64> {
    if is_batch(m) || is_of_rounds(m, quantile) {
        let next = m.interval.filter(|next| is_of_rounds(m, quantile) && is_sure(next));
        return next.map(|next| next.high);
    }
    let histogram = m.with_missed();
    let (lost, max) = (MessageLosses::from_measurement(m).among(0), histogram.largest()?.high);
    let n = histogram.count() + lost;
    let (mut allowed, mut too_many) = (lost, n);
    let independent = Independent::from_measurement(m);
    if !independent.prove_at_most(allowed, n, quantile.above) {
        return None;
    }
    while too_many - allowed > 1 {
        let middle = allowed + (too_many - allowed) / 2;
        if independent.prove_at_most(middle, n, quantile.above) {
            allowed = middle
        } else {
            too_many = middle
        }
    }
    let mut above = histogram.overflow().saturating_add(lost);
    let spans: Vec<(Span, u64)> = histogram.spans().collect();
    let passing = spans.iter().rev().take_while(|(_, count)| {
        above = above.saturating_add(*count);
        above <= allowed
    });
    // A limit inside of a span has all of it above: the end of the next one has none.
    let passed = passing.count();
    Some(match spans.len().checked_sub(passed + 1) {
        Some(at) if histogram.overflow().saturating_add(lost) <= allowed => spans[at].0.high.min(max),
        _ => max,
    })
}

/// Upper bound of a duration, ns, if a criterion holds and only the bound is known: a quantile of few samples, or the
/// length from which on gaps were searched.
pub(crate) fn at_most(m: &Measurement, metric: &Metric) -> Option<f64> {
    match metric {
        _ if m.summary.count == 0 && metric.is_duration() => m.values.get("gap").map(|gap| gap.value),
        Metric::Quantile(quantile) => passes_from(m, *quantile),
        _ => None,
    }
}

/// Share of samples that are independent of each other; all bounds on shares count only these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Independent(f64);

impl Independent {
    /// Share from which on all samples count as independent, because of the scatter of the estimate.
    const ALL: f64 = 0.8;

    pub fn from_measurement(m: &Measurement) -> Independent {
        let share = m.tested.map_or(1.0, |tested| tested.independent);
        Independent(if share < Independent::ALL { share } else { 1.0 })
    }

    /// Number of independent samples of `n`, rounded down.
    pub fn effective_count(self, n: u64) -> u64 {
        if self.0 < 1.0 { (n as f64 * self.0) as u64 } else { n }
    }

    /// Number of independent samples of `k` above a limit, rounded up: at least 1 unless `k` is 0.
    fn above(self, k: u64) -> u64 {
        if self.0 < 1.0 { (k as f64 * self.0).ceil() as u64 } else { k }
    }

    pub fn prove_at_most(self, k: u64, n: u64, share: f64) -> bool {
        proves_at_most(self.above(k), self.effective_count(n), share)
    }

    pub fn prove_more(self, k: u64, n: u64, share: f64) -> bool {
        proves_more(self.effective_count(k), self.effective_count(n), share)
    }

    /// Returns true if the values of which it is not known whether they are above decide, and no further samples would:
    /// all of them above, or none, would be a verdict, or the share lies between both.
    fn is_left_open(self, above: &Above, n: u64, share: f64) -> bool {
        let allowed = share * n as f64;
        (above.within.is_some() || above.beyond > 0)
            && (self.prove_at_most(above.least, n, share)
                || self.prove_more(above.most, n, share)
                || above.least as f64 <= allowed && allowed < above.most as f64)
    }

    /// Number of further samples, none of them above the limit, that would prove that at most a share is above it.
    fn wanting(self, k: u64, n: u64, share: f64) -> u64 {
        let needed = samples_needed(self.above(k), share) as f64 / self.0;
        (needed.ceil() as u64).saturating_sub(n)
    }

    /// ` (12,000 of them are independent: the others are of the same bouts, or of threads that share a CPU)`.
    fn format_independent(self, n: u64) -> String {
        if self.0 >= 1.0 {
            return String::new();
        }
        format!(
            " (as {} independent ones: the others are of the same bouts, or of threads that share a CPU)",
            format_count(self.effective_count(n))
        )
    }
}
