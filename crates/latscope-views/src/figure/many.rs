//! Figures of more curves than can be distinguished: the highest are drawn, the others are one band.

use super::{PlotSeries, SeriesShape};
use latscope_core::units::count_with_noun;
use std::collections::BTreeMap;

/// Number of colours that can be distinguished.
pub(super) const MOST: usize = 7;

/// Approximate maximum number of corners on each side of an envelope.
const CORNERS: usize = 400;

/// Returns the curves of at most `most` colours, those with the highest curves, and an envelope of the others,
/// with a note on it. If there are no more colours, all curves are returned. The height of each curve stands
/// before it.
pub(super) fn thin_series(series: Vec<(f64, PlotSeries)>, most: usize) -> (Vec<PlotSeries>, Option<String>) {
    let all = series.len();
    let mut highest: BTreeMap<usize, f64> = BTreeMap::new();
    let series: Vec<(usize, f64, PlotSeries)> = series
        .into_iter()
        .enumerate()
        .map(|(at, (height, one))| (one.tone.map_or(at, |(colour, _)| colour), height, one))
        .collect();
    for (colour, height, _) in &series {
        let known = highest.entry(*colour).or_insert(*height);
        *known = known.max(*height);
    }
    if highest.len() <= most {
        return (series.into_iter().map(|(.., one)| one).collect(), None);
    }
    let mut ranked: Vec<(usize, f64)> = highest.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(most);
    let place = |colour: usize| ranked.iter().position(|(kept, _)| *kept == colour);
    let (mut drawn, mut others) = (Vec::new(), Vec::new());
    for (colour, _, one) in series {
        match place(colour) {
            Some(place) => drawn.push(PlotSeries { tone: one.tone.map(|(_, dash)| (place, dash)), ..one }),
            None => others.push(one),
        }
    }
    let note = format!(
        "{} of {all} curves are drawn, those with the highest values; grey: from the least to the largest of {}",
        drawn.len(),
        count_with_noun(others.len() as u64, "other")
    );
    drawn.push(envelope(&others));
    (drawn, Some(note))
}

/// Returns the band between the least and the largest of these curves.
fn envelope(others: &[PlotSeries]) -> PlotSeries {
    let mut places: Vec<f64> = others.iter().flat_map(|one| &one.points).map(|(x, _)| *x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let shape = others.first().map_or(SeriesShape::Line, |one| one.shape);
    let each = places.len().div_ceil(CORNERS).max(1);
    // Where curves have no points at the same places, each has its last value there.
    let holds = shape == SeriesShape::Steps || each > 1;
    let value = |one: &PlotSeries, x: f64| {
        let at = one.points.partition_point(|(place, _)| *place <= x).checked_sub(1)?;
        let (place, y) = one.points[at];
        (place == x || holds && at + 1 < one.points.len()).then_some(y)
    };
    let ends = |x: &f64| {
        let known = || others.iter().filter_map(|one| value(one, *x));
        Some((*x, known().reduce(f64::min)?, known().reduce(f64::max)?))
    };
    PlotSeries {
        name: count_with_noun(others.len() as u64, "other"),
        band: places.iter().step_by(each).filter_map(ends).collect(),
        shape,
        background: true,
        ..PlotSeries::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: usize) -> (f64, PlotSeries) {
        let height = at as f64;
        let points = vec![(1.0, height), (2.0, height + 1.0)];
        (height + 1.0, PlotSeries { name: at.to_string(), points, ..PlotSeries::default() })
    }

    #[test]
    fn the_highest_are_drawn_in_their_order_and_the_others_are_between_their_ends() {
        let (drawn, note) = thin_series((0..10).map(line).collect(), MOST);
        let names: Vec<&str> = drawn.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["3", "4", "5", "6", "7", "8", "9", "3 others"]);
        assert_eq!(drawn[7].band, [(1.0, 0.0, 2.0), (2.0, 1.0, 3.0)]);
        assert!(note.unwrap().starts_with("7 of 10 curves are drawn"));
    }

    #[test]
    fn curves_of_one_colour_stay_together() {
        let paired = |at: usize| {
            let (height, one) = line(at);
            (height, PlotSeries { tone: Some((at / 2, at % 2)), ..one })
        };
        assert_eq!(thin_series((0..14).map(paired).collect(), MOST).1, None);
        let (drawn, _) = thin_series((0..16).map(paired).collect(), MOST);
        assert_eq!((drawn.len(), drawn[0].tone, drawn[14].name.as_str()), (15, Some((6, 0)), "2 others"));
    }

    #[test]
    fn steps_hold_until_the_next_one() {
        let steps = |points: &[(f64, f64)]| PlotSeries {
            points: points.to_vec(),
            shape: SeriesShape::Steps,
            ..PlotSeries::default()
        };
        let band =
            envelope(&[steps(&[(0.0, 5.0), (4.0, 1.0)]), steps(&[(0.0, 2.0), (2.0, 9.0), (4.0, 1.0)])]).band;
        assert_eq!(band, [(0.0, 2.0, 5.0), (2.0, 5.0, 9.0), (4.0, 1.0, 1.0)]);
    }
}
