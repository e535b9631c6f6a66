//! Pictures of the single events of both sides.

use super::figures::format_verdict;
use super::head;
use crate::figure::{CurvePlot, overlay_figure, shift_figure};
use latscope_core::quality::QualityLevel;
use latscope_judge::compare::ComparisonResult;

/// Returns both sides at each percentile, and their ratio there, for single events; the points that differ come
/// first.
pub(crate) fn by_percentile(comparison: &ComparisonResult) -> Vec<CurvePlot> {
    let figures = comparison.quantiles.iter().filter_map(|quantiles| {
        let point = comparison.points.iter().find(|point| point.id == quantiles.id)?;
        let title = format!(
            "{}: {}",
            point.title,
            format_verdict(point.verdict, point.contrast().is_some_and(|p50| p50.ratio > 1.0))
        );
        let sides = [("A", &comparison.a), ("B", &comparison.b)];
        let sides = sides.map(|(name, side)| format!("{name}: {}", head::side_and_machine(side)));
        let marked =
            (point.level != QualityLevel::Ok).then(|| format!("DOUBTFUL: {}", point.reasons.join("; ")));
        let notes: Vec<String> = sides.into_iter().chain(marked).collect();
        Some([
            overlay_figure(quantiles, &title, &notes),
            shift_figure(quantiles, &title, &notes, point.margin),
        ])
    });
    figures.flatten().collect()
}
