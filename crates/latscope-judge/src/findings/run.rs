//! Findings about the run as a whole: the clock, the neighbours, the scale.

use super::evidence::{ENOUGH_ROUNDS, EvidenceFigure, FindingBuilder, is_steady};
use super::select::join_list;
use super::{FRAME_NS, NOT_KNOWN};
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::report::{Finding, Measurement, Report};
use latscope_core::statistics::{median, quantile};
use latscope_core::units::{count_with_noun, format_percent, format_share, format_time, three_digits};
use std::collections::BTreeMap;

pub(super) fn findings(report: &Report, catalogue: &ProbeCatalogue) -> Vec<Finding> {
    let all = [clock_drift(report), busy_machine(report), report_frame_share(report, catalogue)];
    all.into_iter().flatten().collect()
}

/// Least number of points in a round that shows the clock.
const CLOCK_POINTS: usize = 5;

/// Ratio of clocks below which they count as the same, because of the noise of timing.
const CLOCK_CHANGE: f64 = 1.05;

/// Reports if cycles and nanoseconds disagree from round to round. Then the core clock changed, and rows measured at
/// different moments compare only in cycles. A few disturbed points are no change of the clock: the middle halves of
/// two rounds must be apart.
fn clock_drift(report: &Report) -> Option<Finding> {
    let points: Vec<&Measurement> = report.measurements.iter().filter(|m| is_steady(m)).collect();
    let rounds = points.iter().map(|m| m.rounds.len()).max()?;
    let clocks = (0..rounds).map(|round| {
        let of_points = points.iter().filter_map(|m| {
            let round = m.rounds.get(round)?;
            Some(round.cycles.filter(|cycles| *cycles > 0.0)? / round.p50.filter(|ns| *ns > 0.0)?)
        });
        of_points.collect()
    });
    let clocks: Vec<Vec<f64>> = clocks.filter(|clocks: &Vec<f64>| clocks.len() >= CLOCK_POINTS).collect();
    if clocks.len() < ENOUGH_ROUNDS {
        return None;
    }
    let typical: Vec<f64> = clocks.iter().filter_map(|clock| median(clock)).collect();
    let slowest =
        clocks.iter().min_by(|a, b| median(a).unwrap_or(0.0).total_cmp(&median(b).unwrap_or(0.0)))?;
    let fastest =
        clocks.iter().max_by(|a, b| median(a).unwrap_or(0.0).total_cmp(&median(b).unwrap_or(0.0)))?;
    let (low, high) = (quantile(&typical, 0.0)?, quantile(&typical, 1.0)?);
    let apart = quantile(fastest, 0.25)? > quantile(slowest, 0.75)?;
    (high > CLOCK_CHANGE * low && apart).then(|| {
        let text = format!(
            "In this run the core clock changed from round to round, between {} and {} GHz (core cycles for each \
             nanosecond, medians of {} rounds): compare rows in cycles.",
            three_digits(low),
            three_digits(high),
            clocks.len()
        );
        let doubt = Some("the clock of this run; the next run has its own");
        let told = FindingBuilder::unless(doubt, "clock-drift").values([("low_ghz", low), ("high_ghz", high)]);
        told.agreeing(clocks.len(), rounds).into_finding(text)
    })
}

/// Reports if many samples were disturbed and discarded.
fn busy_machine(report: &Report) -> Option<Finding> {
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for m in report.measurements.iter().filter(|m| m.summary.count + m.summary.rejected > 0) {
        shares.entry(&m.probe).or_default().push(100.0 * m.rejected_share());
    }
    let points: Vec<f64> = shares.values().flatten().copied().collect();
    let average = mean(&points);
    if points.is_empty() || average < 10.0 {
        return None;
    }
    let mut worst: Vec<(&str, f64)> = shares.iter().map(|(probe, of)| (*probe, mean(of))).collect();
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named: Vec<String> =
        worst.iter().take(3).map(|(probe, share)| format!("{probe} {}", format_percent(*share))).collect();
    let text = format!(
        "In this run {} of the samples of a point on average were disturbed and rejected (most: {}). \
         {}; rows that block or do I/O cannot be guarded so, and may contain the disturbance.",
        format_percent(average),
        join_list(&named),
        what_remains(report)
    );
    let doubt = Some("what disturbed this run; the next run has its own disturbances");
    Some(FindingBuilder::unless(doubt, "busy-machine").value("rejected_percent", average).into_finding(text))
}

/// Says whether the samples that are shown were disturbed.
fn what_remains(report: &Report) -> String {
    let disturbed = report.measurements.iter().filter(|m| m.disturbed() > 0).count() as u64;
    let at_all = report.measurements.iter().any(|m| m.summary.count > m.disturbed());
    let points = count_with_noun(disturbed, "point");
    match (disturbed, at_all) {
        (0, _) => "What remains is undisturbed".to_owned(),
        (_, true) => {
            format!("What remains is undisturbed, but for {points} of which disturbed samples are shown")
        }
        (_, false) => "Only disturbed samples remain, which are shown".to_owned(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Rows that take a large part of the time that a person notices: a frame of the screen.
fn report_frame_share(report: &Report, catalogue: &ProbeCatalogue) -> Option<Finding> {
    let rows = report.measurements.iter().filter(|m| m.row && catalogue.is_operation(&m.probe));
    let figures = rows.filter_map(|m| Some((m, EvidenceFigure::p50(m)?)));
    let slow: Vec<(&Measurement, EvidenceFigure)> =
        figures.filter(|(_, figure)| figure.low > FRAME_NS / 10.0).collect();
    let (_, first) = slow.first()?;
    let doubt = report.activity.as_ref().and_then(|account| match account.throttled() {
        Some(quota) => Some(quota.format_throttling()),
        None if account.is_quiet() => account.known_others().is_none().then(|| NOT_KNOWN.to_owned()),
        None => Some(format!("other processes used {} of the CPUs", format_share(account.others))),
    });
    let told = FindingBuilder::unless(doubt.as_deref(), "frame").value("frame_ns", FRAME_NS);
    let told = told.figure("slow_ns", first).resting_on(slow.iter().map(|(_, figure)| figure));
    let words: Vec<String> =
        slow.iter().map(|(m, figure)| format!("{} ({})", m.title, figure.format_duration())).collect();
    let mut named = words[..words.len().min(3)].to_vec();
    named.extend((words.len() > 3).then(|| format!("{} more", words.len() - 3)));
    Some(told.into_finding(format!(
        "A frame of a 60 fps screen lasts {}. What takes a tenth of it or more: {}.",
        format_time(FRAME_NS),
        join_list(&named)
    )))
}
