//! Rounds of a row as dots, beside the interval in which the next run is expected.

use crate::legend::as_busy;
use crate::markup::{Element, element};
use latscope_core::report::{Measurement, Report};
use latscope_core::rounds::round_figures;
use latscope_core::units::format_time;

/// Size of a strip, pixels.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 14.0;

/// Octaves to each side of the median: from half the median to twice the median.
const REACH: f64 = 1.0;

/// Returns the legend of the strips, with their scale.
pub(super) fn legend_of_strips(report: &Report) -> String {
    format!(
        "In the tables: median: the middle one of the medians of the rounds; percentiles, mean and maximum are of the samples \
         of all rounds, so a median may lie beyond them where rounds differ. Next run: where the median of another run{} is expected, with 95 % confidence from three rounds \
         on, of two rounds what they were; not of degraded rows. Rounds: a dot for each round, the bar is the next run. Log scale from half of \
         the median (left end) over the median (middle line) to twice the median (right end); what lies beyond stands at \
         the end. ! beside a figure: unstable or degraded; the reason stands under trust. Unstable: the rounds fall into two \
         groups, drift, or differ so much that the next run may be three times this one. Degraded: something distorted it. \
         Ok: neither was seen; with fewer than three rounds, whose number stands beside it, it could not be.",
        as_busy(report)
    )
}

/// Returns the strip of a row; `None` for a row with one round.
pub(super) fn draw_rounds(m: &Measurement) -> Option<Element> {
    let figures: Vec<f64> = round_figures(&m.rounds).into_iter().filter(|ns| *ns > 0.0).collect();
    let median = m.typical().filter(|median| *median > 0.0 && figures.len() > 1)?;
    let told: Vec<String> = figures.iter().map(|ns| format_time(*ns)).collect();
    let dots: String = figures.iter().map(|ns| format!("M{:.1} 7h0", ratio_position(ns / median))).collect();
    let next = m.next_run().map(|next| bar((next.low / median, next.high / median), "#8bbfe0", (4, 6)));
    let middle =
        element("path").with_attr("d", format!("M{:.0} 1v12", WIDTH / 2.0)).with_attr("stroke", "#888");
    let dots =
        element("path").with_attr("d", dots).with_attr("stroke", "#d55e00").with_attr("stroke-width", 4);
    let strip = element("svg")
        .with_attr("width", WIDTH)
        .with_attr("height", HEIGHT)
        .child(element("title").with_text(format!("rounds: {}", told.join(", "))))
        .children(next)
        .child(middle)
        .child(dots.with_attr("stroke-linecap", "round"));
    Some(strip)
}

/// Returns a ratio and its interval, in front of the band within which both sides are the same.
pub(crate) fn draw_ratio(ratio: f64, range: Option<(f64, f64)>, margin: f64) -> Element {
    let same = bar((1.0 / (1.0 + margin), 1.0 + margin), "#ccc", (0, 14));
    let dot = element("circle")
        .with_attr("cx", format!("{:.1}", ratio_position(ratio)))
        .with_attr("cy", 7)
        .with_attr("r", 3);
    element("svg")
        .with_attr("width", WIDTH)
        .with_attr("height", HEIGHT)
        .child(same)
        .children(range.map(|range| bar(range, "#0072b2", (6, 2))))
        .child(dot.with_attr("fill", "#d55e00"))
}

/// Returns the legend of a strip of ratios.
pub(crate) fn ratio_legend(name: &str, same: &str) -> String {
    format!(
        "{name}: the dot is the ratio, the bar its 95 % interval. Log scale from half as long (left end) to twice as \
         long (right end); what lies beyond stands at the end. The grey band is ±{same}, within which both are the same."
    )
}

/// A bar from one ratio to another, at this height.
fn bar((low, high): (f64, f64), colour: &str, (y, height): (u32, u32)) -> Element {
    let (low, high) = (ratio_position(low), ratio_position(high));
    let bar =
        element("rect").with_attr("x", format!("{low:.1}")).with_attr("y", y).with_attr("height", height);
    bar.with_attr("width", format!("{:.1}", (high - low).max(0.5))).with_attr("fill", colour)
}

/// Returns the place of a ratio on a strip.
fn ratio_position(ratio: f64) -> f64 {
    let octaves = ratio.log2().clamp(-REACH, REACH);
    let octaves = if octaves.is_nan() { 0.0 } else { octaves };
    3.0 + (octaves + REACH) / (2.0 * REACH) * (WIDTH - 6.0)
}
