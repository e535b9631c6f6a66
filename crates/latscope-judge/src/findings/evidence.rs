//! Evidence and wording of findings. Every finding is built here, so that no finding states more than the figures
//! support.
//!
//! - A figure is [`EvidenceFigure`], with the interval in which the next run's figure is expected. A row that is
//!   degraded, unstable, unsupported or incomplete, or has fewer than three rounds, has no figure.
//! - A ratio is [`Ratio`]: [`compare`] returns one only if the two ranges are apart.
//! - A sentence gives ranges, rounded outwards to two digits, and "at least" of a ratio: so the next run shows the
//!   same, or less, or more, but not otherwise.

use super::select::{format_large_count, is_measured};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Agreeing, Certainty, Evidence, Finding, Measurement};
use latscope_core::rounds::{Prediction, ReplicationUnit, prediction, unsteady};
use std::collections::BTreeMap;

/// Number of rounds that must agree before anything is claimed.
pub(crate) const ENOUGH_ROUNDS: usize = 3;

/// The least level of an interval that supports a claim. Two rounds have an interval, too, but the next figure lies in
/// it in only one of three cases.
const ENOUGH_LEVEL: f64 = 0.9;

/// A figure that supports claims.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EvidenceFigure {
    pub value: f64,
    /// Lower end of the range in which the next run's figure is expected.
    pub low: f64,
    pub high: f64,
    evidence: Vec<Evidence>,
}

impl EvidenceFigure {
    /// The median of a point.
    pub fn p50(m: &Measurement) -> Option<EvidenceFigure> {
        let interval = m.next_run().filter(supports)?;
        let value = m.typical().filter(|ns| *ns > 0.0)?;
        (is_steady(m) && m.rounds.len() >= ENOUGH_ROUNDS).then(|| EvidenceFigure {
            value,
            low: interval.low,
            high: interval.high,
            evidence: vec![evidence_of(m, "p50", value, Some(interval))],
        })
    }

    /// The 99 % quantile of a point.
    pub fn p99(m: &Measurement) -> Option<EvidenceFigure> {
        let over: Vec<f64> = m.rounds.iter().filter_map(|round| round.p99).collect();
        EvidenceFigure::over_rounds(m, "p99", m.summary.p99?, &over)
    }

    /// A named value of a point.
    pub fn from_value(m: &Measurement, name: &str) -> Option<EvidenceFigure> {
        let over: Vec<f64> = m.rounds.iter().filter_map(|round| round.values.get(name).copied()).collect();
        EvidenceFigure::over_rounds(m, name, m.values.get(name)?.value, &over)
    }

    fn over_rounds(m: &Measurement, name: &str, value: f64, over: &[f64]) -> Option<EvidenceFigure> {
        if !is_steady(m) {
            return None;
        }
        let interval = interval(over)?;
        let evidence = vec![evidence_of(m, name, value, Some(interval))];
        Some(EvidenceFigure { value, low: interval.low, high: interval.high, evidence })
    }

    /// Combined figure of several points, from one value for each round.
    pub fn combine_points(of: &[&Measurement], name: &str, over: &[f64]) -> Option<EvidenceFigure> {
        let interval = interval(over)?;
        let value = latscope_core::statistics::median(over)?;
        let evidence =
            of.iter().map(|m| evidence_of(m, name, m.typical().unwrap_or(0.0), m.next_run())).collect();
        Some(EvidenceFigure { value, low: interval.low, high: interval.high, evidence })
    }

    /// Returns the figure multiplied by `by`.
    pub fn scale_by(mut self, by: f64) -> EvidenceFigure {
        (self.value, self.low, self.high) = (self.value * by, self.low * by, self.high * by);
        self
    }

    /// Returns the difference: this figure less another.
    pub fn less(&self, other: &EvidenceFigure) -> EvidenceFigure {
        let evidence = [self.evidence.as_slice(), &other.evidence].concat();
        let (value, low, high) = (self.value - other.value, self.low - other.high, self.high - other.low);
        EvidenceFigure { value, low, high, evidence }
    }

    /// The figure as a duration: `5 to 7.3 µs`.
    pub fn format_duration(&self) -> String {
        time_range(self.low, self.high)
    }

    /// The figure as a plain number: `1.2 to 1.4`.
    pub fn format_number(&self) -> String {
        let (low, high) =
            (two_digits(self.low, RoundingDirection::Down), two_digits(self.high, RoundingDirection::Up));
        if low == high {
            format_plain(low)
        } else {
            format!("{} to {}", format_plain(low), format_plain(high))
        }
    }
}

/// Returns true if a row is measured, complete and ok, so that its rounds agree, on a machine that was not busy.
pub(super) fn is_steady(m: &Measurement) -> bool {
    is_measured(m) && m.quality.level == QualityLevel::Ok && !m.incomplete && m.shows_next_run()
}

fn supports(interval: &Prediction) -> bool {
    interval.level >= ENOUGH_LEVEL && interval.low > 0.0 && interval.high.is_finite()
}

/// Interval in which the next run's figure is expected, from one value for each round; `None` if there are too few
/// rounds, or if they jump or drift.
fn interval(over: &[f64]) -> Option<Prediction> {
    if over.len() < ENOUGH_ROUNDS || unsteady(over, ReplicationUnit::Round).is_some() {
        return None;
    }
    prediction(over, ReplicationUnit::Round, 0.0).filter(supports)
}

fn evidence_of(m: &Measurement, figure: &str, value: f64, interval: Option<Prediction>) -> Evidence {
    Evidence {
        probe: m.probe.clone(),
        params: m.params.clone(),
        figure: figure.to_owned(),
        value,
        interval,
        rounds: m.rounds.len().max(1) as u64,
    }
}

/// Ratio of two figures: from the least to the most that their ranges allow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// `a` divided by `b`, where `a` is the larger: `None` unless the two ranges are apart by a tenth. Impossible values
/// were excluded before ([`latscope_core::bounds`]): a row with such a value is no [`EvidenceFigure`].
pub(super) fn compare_figures(a: &EvidenceFigure, b: &EvidenceFigure) -> Option<Ratio> {
    Some(Ratio::between(a, b)).filter(|ratio| ratio.low >= 1.1)
}

/// Returns true if both are within a fifth of each other over their whole ranges.
pub(super) fn alike(a: &EvidenceFigure, b: &EvidenceFigure) -> bool {
    a.high <= 1.2 * b.low && b.high <= 1.2 * a.low
}

impl Ratio {
    /// Ratio that the ranges allow as they are printed, even if they overlap: no sentence claims more than its reader
    /// can compute from it.
    pub fn between(a: &EvidenceFigure, b: &EvidenceFigure) -> Ratio {
        let [(a_low, a_high), (b_low, b_high)] = [a, b].map(|of| {
            (two_digits(of.low, RoundingDirection::Down), two_digits(of.high, RoundingDirection::Up))
        });
        Ratio { value: a.value / b.value, low: a_low / b_high, high: a_high / b_low }
    }

    /// `at least ×3`, rounded down.
    pub fn at_least(&self) -> String {
        format!("at least ×{}", format_large_count(floor(self.low)).trim_end_matches(".0"))
    }
}

/// The next lower number of the series 1, 1.2, 1.5, 2, 3, 5, 7, 10, …
fn floor(ratio: f64) -> f64 {
    const SERIES: [f64; 7] = [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0];
    let ten = 10f64.powf(ratio.max(1.0).log10().floor());
    SERIES.into_iter().rev().map(|step| step * ten).find(|step| *step <= ratio).unwrap_or(ten)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundingDirection {
    Down,
    Up,
}

/// The number of two digits next to it in this direction.
fn two_digits(value: f64, direction: RoundingDirection) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let exponent = value.log10().floor() - 1.0;
    // What is a number of two digits already stays, whatever the division leaves.
    let count = value / 10f64.powf(exponent);
    let near = count.round();
    let whole = match direction {
        _ if (count - near).abs() < 1e-6 => near,
        RoundingDirection::Down => count.floor(),
        RoundingDirection::Up => count.ceil(),
    };
    // Read from decimal digits it is the nearest number to them.
    format!("{whole}e{exponent}").parse().unwrap_or(value)
}

/// A number of two digits without trailing zeros.
fn format_plain(value: f64) -> String {
    let digits = if value > 0.0 { (1.0 - value.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
    let text = format!("{value:.digits$}");
    if digits > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A range of durations, rounded outwards to two digits: `5 to 7.3 µs`, `940 ns
/// to 1.2 µs`, or `5 µs` where both ends are the same so.
pub(super) fn time_range(low: f64, high: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    let (low, high) = (two_digits(low, RoundingDirection::Down), two_digits(high, RoundingDirection::Up));
    let [(first, low_unit), (last, high_unit)] = [low, high].map(|ns| {
        let (scale, unit) = UNITS.into_iter().find(|(scale, _)| ns >= *scale * 0.9999).unwrap_or(UNITS[3]);
        (format_plain(ns / scale), unit)
    });
    if low == high {
        format!("{last} {high_unit}")
    } else if low_unit == high_unit {
        format!("{first} to {last} {high_unit}")
    } else {
        format!("{first} {low_unit} to {last} {high_unit}")
    }
}

/// A finding that is being built, with the figures behind it; [`FindingBuilder::say`] adds the sentence.
#[derive(Debug, Clone)]
pub(crate) struct FindingBuilder {
    id: String,
    values: BTreeMap<String, f64>,
    evidence: Vec<Evidence>,
    doubt: Option<String>,
    rounds: Option<Agreeing>,
}

impl FindingBuilder {
    /// Starts a finding that the figures support.
    pub fn claim(id: &str) -> FindingBuilder {
        FindingBuilder {
            id: id.to_owned(),
            values: BTreeMap::new(),
            evidence: Vec::new(),
            doubt: None,
            rounds: None,
        }
    }

    /// Starts a finding that the next run may not confirm, with the doubt as the reason; without a doubt, a claim.
    pub fn unless(doubt: Option<&str>, id: &str) -> FindingBuilder {
        FindingBuilder { doubt: doubt.map(str::to_owned), ..FindingBuilder::claim(id) }
    }

    /// Returns the finding with an exact number: a size, or a requested count.
    pub fn value(mut self, name: &str, value: f64) -> FindingBuilder {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Returns the finding with several exact numbers.
    pub fn values<'a>(mut self, values: impl IntoIterator<Item = (&'a str, f64)>) -> FindingBuilder {
        self.values.extend(values.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// Returns the finding with a figure: its value in two digits, and the ends of its range as `…_low` and `…_high`.
    pub(super) fn figure(self, name: &str, figure: &EvidenceFigure) -> FindingBuilder {
        self.range(name, (figure.value, figure.low, figure.high)).resting_on([figure])
    }

    /// Returns the finding with the evidence of further figures.
    pub(super) fn resting_on<'a>(
        mut self,
        figures: impl IntoIterator<Item = &'a EvidenceFigure>,
    ) -> FindingBuilder {
        for new in figures.into_iter().flat_map(|figure| &figure.evidence) {
            if !self.evidence.contains(new) {
                self.evidence.push(new.clone());
            }
        }
        self
    }

    /// Returns the finding with a ratio; see [`FindingBuilder::figure`].
    pub(super) fn ratio(self, name: &str, ratio: &Ratio) -> FindingBuilder {
        self.range(name, (ratio.value, ratio.low, ratio.high))
    }

    fn range(mut self, name: &str, (value, low, high): (f64, f64, f64)) -> FindingBuilder {
        let near = (two_digits(value, RoundingDirection::Down), two_digits(value, RoundingDirection::Up));
        let near = if value - near.0 <= near.1 - value { near.0 } else { near.1 };
        self.values.insert(name.to_owned(), near);
        self.values.insert(format!("{name}_low"), two_digits(low, RoundingDirection::Down));
        self.values.insert(format!("{name}_high"), two_digits(high, RoundingDirection::Up));
        self
    }

    /// Returns the finding with points as they are, with their medians as the figures.
    pub fn points<'a>(mut self, points: impl IntoIterator<Item = &'a Measurement>) -> FindingBuilder {
        let points = points.into_iter();
        self.evidence.extend(points.map(|m| evidence_of(m, "p50", m.typical().unwrap_or(0.0), m.next_run())));
        self
    }

    /// Returns the finding with the number of rounds that show it.
    pub(crate) fn agreeing(mut self, agree: usize, of: usize) -> FindingBuilder {
        self.rounds = Some(Agreeing { agree: agree as u64, of: of as u64 });
        self
    }

    /// The finding, in these words.
    pub fn into_finding(self, text: impl Into<String>) -> Finding {
        Finding {
            id: self.id,
            text: text.into(),
            values: self.values,
            certainty: if self.doubt.is_some() { Certainty::Doubt } else { Certainty::Claim },
            doubt: self.doubt,
            evidence: self.evidence,
            rounds: self.rounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, low: f64, high: f64) -> EvidenceFigure {
        EvidenceFigure { value, low, high, evidence: Vec::new() }
    }

    #[test]
    fn a_ratio_is_that_of_the_printed_ranges() {
        // 3.05 by the exact ends.
        let (chase, line) = (figure(35.2, 34.9, 36.0), figure(11.3, 11.2, 11.43));
        assert_eq!(
            (chase.format_duration(), line.format_duration()),
            ("34 to 36 ns".to_owned(), "11 to 12 ns".to_owned())
        );
        assert_eq!(Ratio::between(&chase, &line).at_least(), "at least ×2");
        let apart = figure(40.0, 37.5, 42.0);
        assert_eq!(Ratio::between(&apart, &line).at_least(), "at least ×3");
    }
}
