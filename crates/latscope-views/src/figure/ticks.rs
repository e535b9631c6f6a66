//! Places and texts of the ticks of an axis.

use super::{Axis, FigureAxisScale, FigureAxisUnit};
use latscope_core::units::{format_count, format_rate, format_size, format_time};

/// A tick: its place on the axis, and its text.
pub(super) type Tick = (f64, String);

/// Returns ticks at round values from place `low` to place `high`: the densest set of at most `most` ticks.
pub(super) fn ticks(axis: &Axis, (low, high): (f64, f64), most: usize) -> Vec<Tick> {
    let mut best = Vec::new();
    for candidate in candidates(axis, low, high) {
        if candidate.len() > most.max(1) {
            break;
        }
        best = candidate;
    }
    if best.len() < LEAST {
        best = subdecade_places(axis, low, high)
            .into_iter()
            .find(|set| (LEAST..=most).contains(&set.len()))
            .unwrap_or(best);
    }
    let value = |place: f64| match axis.scale {
        FigureAxisScale::Linear => place,
        FigureAxisScale::Log2 => place.exp2(),
        FigureAxisScale::Log10 => 10f64.powf(place),
    };
    best.into_iter().map(|place| (place, format_axis_value(axis.unit, value(place)))).collect()
}

/// Maximum number of ticks along the axes of curves, x and y, and along the axis of bars.
pub(super) const ACROSS: usize = 8;
pub(super) const UP: usize = 9;
pub(super) const BESIDE: usize = 7;

/// The ticks within a range that are drawn.
pub(super) fn visible_ticks(axis: &Axis, range: (f64, f64), most: usize) -> Vec<Tick> {
    let inside = |(place, _): &Tick| range.0 <= *place + 1e-9 && *place <= range.1 + 1e-9;
    ticks(axis, range, most).into_iter().filter(inside).collect()
}

/// Minimum number of ticks that make the scale clear.
const LEAST: usize = 3;

/// Returns sets of places for a logarithmic axis that has hardly a decade: round values at equal distances,
/// each set denser than the one before.
fn subdecade_places(axis: &Axis, low: f64, high: f64) -> Vec<Vec<f64>> {
    let (from, to) = match axis.scale {
        FigureAxisScale::Log2 => (low.exp2(), high.exp2()),
        FigureAxisScale::Log10 if axis.unit == FigureAxisUnit::Percentile => {
            return vec![percents(low, high)];
        }
        FigureAxisScale::Log10 => (10f64.powf(low), 10f64.powf(high)),
        FigureAxisScale::Linear => return Vec::new(),
    };
    let linear = Axis { scale: FigureAxisScale::Linear, label: String::new(), ..*axis };
    let sets = candidates(&linear, from, to).into_iter();
    sets.map(|set| set.into_iter().filter_map(|value| axis.scale.axis_position(value)).collect()).collect()
}

/// Places of percentiles below the first nine.
fn percents(low: f64, high: f64) -> Vec<f64> {
    let places = [0.1, 0.25, 0.5, 0.75, 0.9].map(|q: f64| -(1.0 - q).log10());
    places.into_iter().filter(|place| (low..=high).contains(place)).collect()
}

/// Multiples of a step; none if they are too many.
fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    // A little slack: an end that is a round value has its tick.
    let slack = step * 1e-6;
    let (first, last) = (((low - slack) / step).ceil(), ((high + slack) / step).floor());
    let more = last - first;
    if more.is_nan() || more >= 1000.0 {
        return Vec::new();
    }
    (0..=more.max(-1.0) as i64).map(|i| (first + i as f64) * step).collect()
}

/// Sets of places, each denser than the one before.
fn candidates(axis: &Axis, low: f64, high: f64) -> Vec<Vec<f64>> {
    let multiples = |step| multiples(step, low, high);
    match axis.scale {
        FigureAxisScale::Log2 => [20.0, 10.0, 5.0, 4.0, 3.0, 2.0, 1.0].map(multiples).to_vec(),
        FigureAxisScale::Log10 => {
            let mut sets = [6.0, 3.0, 2.0, 1.0].map(multiples).to_vec();
            // Halves between the nines: 90 %, 95 %, 99 %.
            let second = if axis.unit == FigureAxisUnit::Percentile { 2.0 } else { 3.0 };
            sets.push(within_decades(low, high, &[1.0, second]));
            sets.push(within_decades(low, high, &[1.0, 2.0, 5.0]));
            sets
        }
        FigureAxisScale::Linear => {
            let decade = 10f64.powf((high - low).max(f64::MIN_POSITIVE).log10().floor());
            let steps = [10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05];
            steps.map(|step| multiples(step * decade)).to_vec()
        }
    }
}

/// Places of these digits in each decade.
fn within_decades(low: f64, high: f64, digits: &[f64]) -> Vec<f64> {
    let decades = low.floor() as i32..=(high.floor() as i32).min((low.floor() as i32).saturating_add(100));
    let all = decades.flat_map(|decade| digits.iter().map(move |digit| f64::from(decade) + digit.log10()));
    all.filter(|place| *place >= low - 1e-6 && *place <= high + 1e-6).collect()
}

/// A number with its unit, without zeros at the end.
fn trim_zeros(text: &str) -> String {
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

/// Returns a round value with its unit, with no more digits than necessary.
pub(super) fn format_axis_value(unit: FigureAxisUnit, value: f64) -> String {
    match unit {
        FigureAxisUnit::Bytes => format_size(value.round() as u64),
        FigureAxisUnit::Nanoseconds => trim_zeros(&format_time(value)),
        FigureAxisUnit::Rate if value == 0.0 => "0".to_owned(),
        FigureAxisUnit::Rate => trim_zeros(&format_rate(value)),
        FigureAxisUnit::Count => format_count(value.round() as u64),
        // As many decimals as the number has digits: 99.9 % of 1000.
        FigureAxisUnit::Percentile => {
            let digits = (value.log10().ceil() - 1.0).clamp(0.0, 15.0) as usize;
            let percent = format!("{:.digits$}", 100.0 - 100.0 / value.max(1.0));
            let short =
                if digits > 0 { percent.trim_end_matches('0').trim_end_matches('.') } else { &percent };
            format!("{short} %")
        }
        // Four decimals hide what is left of adding up tenths, and have 1/16.
        FigureAxisUnit::Number => format!("{}", (value * 1e4).round() / 1e4),
    }
}

/// Returns the position of a place within a range, 0 to 1.
pub(super) fn relative_position(place: f64, (low, high): (f64, f64)) -> f64 {
    ((place - low) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(scale: FigureAxisScale, unit: FigureAxisUnit, range: (f64, f64), most: usize) -> Vec<String> {
        let axis = Axis { label: String::new(), scale, unit, ends: None };
        ticks(&axis, range, most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn sizes_have_ticks_at_powers_of_two() {
        assert_eq!(
            texts(FigureAxisScale::Log2, FigureAxisUnit::Bytes, (11.0, 29.0), 7),
            ["4 KiB", "32 KiB", "256 KiB", "2 MiB", "16 MiB", "128 MiB"]
        );
        assert_eq!(
            texts(FigureAxisScale::Log2, FigureAxisUnit::Bytes, (11.0, 29.0), 4),
            ["32 KiB", "1 MiB", "32 MiB"]
        );
    }

    #[test]
    fn times_have_ticks_at_decades_and_between_when_there_is_room() {
        let times = |range, most| texts(FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds, range, most);
        assert_eq!(times((0.0, 2.2), 4), ["1 ns", "10 ns", "100 ns"]);
        assert_eq!(times((0.0, 2.2), 6), ["1 ns", "3 ns", "10 ns", "30 ns", "100 ns"]);
        assert_eq!(times((-0.5, 3.1), 5), ["1 ns", "10 ns", "100 ns", "1 µs"]);
        assert_eq!(times((1.1, 1.6), 6), ["15 ns", "20 ns", "25 ns", "30 ns", "35 ns"]);
    }

    #[test]
    fn percentiles_have_a_tick_for_each_nine() {
        assert_eq!(
            texts(FigureAxisScale::Log10, FigureAxisUnit::Percentile, (0.0, 5.1), 8),
            ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]
        );
        assert_eq!(
            texts(FigureAxisScale::Log10, FigureAxisUnit::Percentile, (0.0, 2.1), 6),
            ["0 %", "50 %", "90 %", "95 %", "99 %"]
        );
        assert_eq!(
            texts(FigureAxisScale::Log10, FigureAxisUnit::Count, (-0.1, 4.2), 5),
            ["1", "10", "100", "1,000", "10,000"]
        );
    }

    #[test]
    fn linear_axes_have_round_steps() {
        assert_eq!(
            texts(FigureAxisScale::Linear, FigureAxisUnit::Number, (0.0, 1.0), 6),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(
            texts(FigureAxisScale::Linear, FigureAxisUnit::Nanoseconds, (0.0, 3500.0), 4),
            ["0 ns", "1 µs", "2 µs", "3 µs"]
        );
    }

    proptest! {
        #[test]
        fn ticks_lie_in_range_and_are_no_more_than_fit(low in -1e12f64..1e12, width in 0.0f64..1e12,
                                                       most in 0usize..30, scale in 0usize..3) {
            let scale = [FigureAxisScale::Linear, FigureAxisScale::Log2, FigureAxisScale::Log10][scale];
            let axis = Axis { label: String::new(), scale, unit: FigureAxisUnit::Number, ends: None };
            let found = ticks(&axis, (low, low + width), most);
            prop_assert!(found.len() <= most.max(1));
            let slack = 1e-4 * width + 1e-3;
            prop_assert!(found.iter().all(|(at, _)| *at >= low - slack && *at <= low + width + slack));
        }
    }
}
