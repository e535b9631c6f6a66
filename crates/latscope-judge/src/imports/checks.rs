//! The check of what an output states of its values against the values themselves. Every format uses it.

use latscope_core::json::LARGEST;
use latscope_core::units::format_count;

/// Words for a mean that is not a number, though values were counted.
pub(super) const NO_MEAN: &str = "it counted values, and states no mean: it is damaged";

/// A number that an output states, and the interval of the numbers that it prints so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StatedNumber {
    pub value: f64,
    low: f64,
    high: f64,
}

impl StatedNumber {
    /// A number of which the digits after a step, such as 0.01, are rounded or cut off.
    pub(super) fn to_step(value: f64, step: f64) -> StatedNumber {
        StatedNumber { value, low: value - step, high: value + step }
    }

    /// A number whose digits after the point, at most six, are cut off.
    pub(super) fn cut_off(value: f64) -> StatedNumber {
        StatedNumber { value, low: value, high: value + 1.0 - 1e-6 }
    }

    /// Reads a number. Without a point its further digits are cut off, otherwise they are cut off or rounded.
    pub(super) fn from_word(word: &str) -> Option<StatedNumber> {
        let value: f64 = word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
        Some(match word.split_once('.') {
            None => StatedNumber::cut_off(value),
            Some((_, digits)) => StatedNumber::to_step(value, 0.1f64.powi(digits.len().min(300) as i32)),
        })
    }

    /// The number itself, if it is whole.
    pub(super) fn whole_number(self) -> Option<u64> {
        let is_whole = self.value.fract() == 0.0 && self.value < LARGEST as f64;
        is_whole.then_some(self.value as u64)
    }

    /// The mean of several means, each of so many values.
    pub(super) fn mean_of(means: &[(StatedNumber, u64)]) -> StatedNumber {
        let count: f64 = means.iter().map(|(_, n)| *n as f64).sum();
        let of = |figure: fn(&StatedNumber) -> f64| {
            means.iter().map(|(mean, n)| figure(mean) * *n as f64).sum::<f64>() / count
        };
        StatedNumber { value: of(|mean| mean.value), low: of(|mean| mean.low), high: of(|mean| mean.high) }
    }

    /// Returns true if one number may be printed in both ways.
    pub(super) fn agrees(self, other: StatedNumber) -> bool {
        !is_less(self.high, other.low) && !is_less(other.high, self.low)
    }
}

/// Values as an output has them, in any unit.
#[derive(Debug, Default)]
pub(super) struct KnownValues {
    /// The lowest and highest value of each bin, and the number of its values: ascending, without empty bins. A value
    /// that is known has a bin of its own.
    pub bins: Vec<(f64, f64, u64)>,
    /// The number of values beyond the last bin.
    pub beyond: u64,
    /// The lowest value that can be beyond the last bin.
    pub beyond_from: f64,
}

impl KnownValues {
    /// Values that are each known.
    pub(super) fn single(values: &[f64]) -> KnownValues {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        KnownValues {
            bins: sorted.into_iter().map(|value| (value, value, 1)).collect(),
            ..KnownValues::default()
        }
    }

    /// All bins, that of the values beyond among them.
    fn all(&self) -> Vec<(f64, f64, u64)> {
        let beyond = Some((self.beyond_from, f64::INFINITY, self.beyond)).filter(|_| self.beyond > 0);
        self.bins.iter().copied().chain(beyond).collect()
    }
}

/// Figures that an output states of its values, in the unit of these; `None` where it states nothing.
#[derive(Debug, Default)]
pub(super) struct StatedFigures {
    pub count: Option<u64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<StatedNumber>,
}

impl StatedFigures {
    /// Checks that there are values, and that the figures can be of them. It returns the number of values, and their
    /// mean if one is stated: the stated figure if the values allow it, else the middle of what both allow.
    ///
    /// # Errors
    /// A figure contradicts the values, or another figure.
    pub(super) fn check_values(&self, values: &KnownValues) -> Result<(u64, Option<f64>), String> {
        let all = values.all();
        let count = all.iter().try_fold(0u64, |sum, (_, _, n)| sum.checked_add(*n));
        let count = count.ok_or("its counts are larger than any can be")?;
        if let Some(stated) = self.count.filter(|stated| *stated != count) {
            return Err(format!(
                "its counts add up to {}, and it states {}: it is damaged or cut off",
                format_count(count),
                format_count(stated)
            ));
        }
        let (Some(first), Some(last)) = (all.first(), all.last()) else {
            return Err("nothing was counted".to_owned());
        };
        let in_bin = |value: f64, bin: &(f64, f64, u64)| !is_less(value, bin.0) && !is_less(bin.1, value);
        let bounds = [("smallest", self.min, first), ("largest", self.max, last)];
        for (name, value, bin) in bounds {
            if let Some(value) = value.filter(|value| !in_bin(*value, bin)) {
                return Err(format!("its {name} value, {value}, {}", where_instead(values, bin)));
            }
        }
        let (min, max) = (self.min.unwrap_or(first.0), self.max.unwrap_or(last.1));
        if is_less(max, min) || count == 1 && self.min.is_some() && self.max.is_some() && is_less(min, max) {
            return Err(format!("its smallest value is {min}, and its largest {max}: it is damaged"));
        }
        if let Some(pair) = all.windows(2).find(|pair| is_less(pair[1].0, pair[0].0)) {
            return Err(format!(
                "it has values of {}, and its histogram ends below {}: it is damaged",
                pair[0].0, pair[1].0
            ));
        }
        let mean = self.check_mean(&all, count, (min, max))?;
        Ok((count, mean))
    }

    /// Checks that the mean can be one of values in these bins, of which one is the smallest, and one the largest.
    /// Returns the stated mean, or the middle of what is possible.
    fn check_mean(
        &self,
        all: &[(f64, f64, u64)],
        count: u64,
        (min, max): (f64, f64),
    ) -> Result<Option<f64>, String> {
        let Some(mean) = self.mean else { return Ok(None) };
        let sum = |value: &dyn Fn(&(f64, f64, u64)) -> f64| {
            all.iter().map(|bin| value(bin).clamp(min, max) * bin.2 as f64).sum::<f64>()
        };
        let (mut least, mut most) = (sum(&|bin| bin.0), sum(&|bin| bin.1));
        if count > 1 {
            least += all.last().map_or(0.0, |bin| max - bin.0.clamp(min, max));
            most -= all.first().map_or(0.0, |bin| bin.1.clamp(min, max) - min);
        }
        let (least, most) = (least / count as f64, most / count as f64);
        let possible = StatedNumber { value: mean.value, low: least, high: most };
        if possible.agrees(mean) {
            let [low, high] = [least.max(mean.low), most.min(mean.high)];
            let is_inside = low <= mean.value && mean.value <= high;
            return Ok(Some(if is_inside { mean.value } else { (low + high) / 2.0 }));
        }
        Err(format!(
            "its mean, {}, is impossible for its {} values, whose mean is {} to {}: it is damaged",
            mean.value,
            format_count(count),
            round_two_places(least),
            round_two_places(most)
        ))
    }
}

/// Standard deviation of a sample; `None` of a single value.
pub(super) fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

/// Describes where a smallest or largest value had to be.
fn where_instead(values: &KnownValues, bin: &(f64, f64, u64)) -> String {
    match bin.1.is_finite() {
        true if bin.0 == bin.1 => format!("is not that of its values, {}: it is damaged", bin.0),
        true => format!("is not in its bin, {} to {}: it is damaged or cut off", bin.0, bin.1),
        false => format!(
            "is below {}, where the {} values beyond its histogram are: it is damaged or cut off",
            bin.0,
            format_count(values.beyond)
        ),
    }
}

/// Returns true if a number is less than another by more than the error of a sum.
fn is_less(a: f64, b: f64) -> bool {
    a < b - 1e-9 * a.abs().max(b.abs()).min(f64::MAX)
}

/// A number with two digits after the point.
fn round_two_places(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten values of 0 to 9, five of 20 to 29, and three that are 100 or more.
    fn values() -> KnownValues {
        KnownValues { bins: vec![(0.0, 9.0, 10), (20.0, 29.0, 5)], beyond: 3, beyond_from: 100.0 }
    }

    fn check(count: u64, min: f64, max: f64, mean: &str) -> Result<u64, String> {
        let (count, min, max) = (Some(count), Some(min), Some(max));
        StatedFigures { count, min, max, mean: StatedNumber::from_word(mean) }
            .check_values(&values())
            .map(|(count, _)| count)
    }

    #[test]
    fn figures_that_can_be_of_the_values_are_accepted_up_to_their_bounds() {
        // Nine of 2 and one of 2, five of 20, two of 100 and one of 150: 470; 2, 9 × 9, 5 × 29, 3 × 150: 678.
        for mean in ["26", "26.11", "30.0", "37.66", "37"] {
            assert_eq!(check(18, 2.0, 150.0, mean), Ok(18), "{mean}");
        }
        for (mean, words) in
            [("25", "its mean, 25, is impossible"), ("26.09", "26.11 to 37.67"), ("38", "impossible")]
        {
            assert!(check(18, 2.0, 150.0, mean).unwrap_err().contains(words), "{mean}");
        }
        assert_eq!(StatedFigures::default().check_values(&values()), Ok((18, None)), "it states nothing");
    }

    #[test]
    fn counts_and_extremes_are_those_of_the_values() {
        for (result, words) in [
            (check(19, 2.0, 150.0, "30"), "add up to 18, and it states 19"),
            (check(18, 12.0, 150.0, "30"), "its smallest value, 12, is not in its bin, 0 to 9"),
            (check(18, 2.0, 29.0, "10"), "where the 3 values beyond its histogram are"),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
        let none = StatedFigures::default().check_values(&KnownValues::default());
        assert_eq!(none.unwrap_err(), "nothing was counted");
        let one = StatedFigures { min: Some(1.0), max: Some(2.0), ..StatedFigures::default() };
        let bin = KnownValues { bins: vec![(0.0, 9.0, 1)], ..KnownValues::default() };
        assert!(one.check_values(&bin).unwrap_err().contains("its smallest value is 1, and its largest 2"));
    }

    #[test]
    fn words_are_numbers_with_the_digits_that_they_lack() {
        let number = StatedNumber::from_word("4.75").unwrap();
        assert!(
            number.agrees(StatedNumber::to_step(4.755, 0.0))
                && !number.agrees(StatedNumber::to_step(4.77, 0.0))
        );
        assert!(StatedNumber::from_word("4").unwrap().agrees(StatedNumber::to_step(4.99, 0.0)));
        for word in ["-", "-1", "nan", "inf", "", "1.0.0"] {
            assert_eq!(StatedNumber::from_word(word), None, "{word}");
        }
    }
}
