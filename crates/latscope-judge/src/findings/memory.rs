//! Memory and address translation.

use super::caches::chases;
use super::evidence::{EvidenceFigure, FindingBuilder, Ratio, alike, compare_figures};
use super::select::{join_list, measured_points};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::report::{Finding, Measurement, Report};
use latscope_core::units::format_size;
use std::collections::BTreeMap;

/// Distance in octaves within which two sizes are compared as the same.
const SAME_SIZE: f64 = 0.3;

/// A sum that takes this much longer a line at the largest size hardly shows a step.
const NO_STEP: f64 = 1.5;

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    [address_translation, sequential_sum].iter().filter_map(|conclusion| conclusion(report)).collect()
}

/// Time that a TLB miss and its page walk add to a load: the same random chase on small and on huge pages, or in
/// windows that the TLB covers.
fn address_translation(report: &Report) -> Option<Finding> {
    let [small, huge, window] =
        [("random", "4KiB"), ("random", "2MiB"), ("window", "4KiB")].map(|(order, pages)| {
            let points = chases(report, order, pages).into_iter();
            points
                .filter_map(|m| Some((m.numeric_param(param::SIZE)?, EvidenceFigure::p50(m)?)))
                .collect::<BTreeMap<u64, EvidenceFigure>>()
        });
    let bases = [(&huge, "on 2 MiB pages"), (&window, "in windows that the TLB covers")];
    let (size, with, without, how) = bases.into_iter().find_map(|(points, how)| {
        small.iter().rev().find_map(|(size, with)| Some((*size, with, points.get(size)?, how)))
    })?;
    let figures = format!(
        "At {} a random load takes {} on 4 KiB pages and {} {how}",
        format_size(size),
        with.format_duration(),
        without.format_duration()
    );
    let told = FindingBuilder::claim("page-walk").value("size", size as f64);
    let told = told.figure("random_4kib_ns", with).figure("without_ns", without);
    if alike(with, without) {
        return Some(told.into_finding(format!("{figures}: address translation costs little here.")));
    }
    let ratio = compare_figures(with, without)?;
    let walk = with.less(without);
    let mut told = told.figure("page_walk_ns", &walk).ratio("page_walk_ratio", &ratio);
    let mut text = format!(
        "{figures}: {} of it is address translation, a TLB miss and the page walk.",
        walk.format_duration()
    );
    if report.machine.hypervisor.is_some() {
        text += " In a virtual machine a walk goes through two sets of page tables.";
    }
    if let Some(window) = window.get(&size).filter(|_| how != bases[1].1) {
        text += &format!(" The same 4 KiB pages visited window by window take {}.", window.format_duration());
        told = told.figure("window_4kib_ns", window);
    }
    Some(told.into_finding(text))
}

/// Explains that summing an array in order shows no cache steps. This is the lesson of the talk "Latency numbers on the
/// iPhone", whose first attempt did just this.
fn sequential_sum(report: &Report) -> Option<Finding> {
    let rows = sequential_rows(report);
    let ((first, first_line, first_load), (last, last_line, last_load)) = (rows.first()?, rows.last()?);
    if last <= first {
        return None;
    }
    let chase_rise = compare_figures(last_load, first_load)?;
    // The steps of the caches are there to be seen, and the sum hides them.
    if chase_rise.low < NO_STEP {
        return None;
    }
    let rise = Ratio::between(last_line, first_line);
    let conclusion = if rise.high < NO_STEP {
        "Here the sum shows no cache steps, because in sequential order the processor fetches the next lines before they \
         are asked for; to see the caches, the order must be unpredictable."
    } else if rise.low > NO_STEP && rise.low >= chase_rise.high.sqrt() {
        "Here the steps of the caches show even in sequential order."
    } else {
        return None;
    };
    let sizes = join_list(&rows.iter().map(|(size, ..)| as_given(*size)).collect::<Vec<_>>());
    let lines = join_list(&rows.iter().map(|(_, line, _)| line.format_duration()).collect::<Vec<_>>());
    let loads = join_list(&rows.iter().map(|(.., load)| load.format_duration()).collect::<Vec<_>>());
    let told = FindingBuilder::claim("sequential-sum")
        .ratio("sum_rise", &rise)
        .ratio("chase_rise", &chase_rise)
        .figure("sum_line_ns", last_line)
        .figure("chase_line_ns", last_load)
        .resting_on(rows.iter().flat_map(|(_, line, load)| [line, load]));
    Some(told.into_finding(format!(
        "Summing {sizes} in order costs {lines} for each 64-byte line, a random chase through the same sizes {loads} a line: from \
         end to end the chase grows {}. {conclusion}",
        chase_rise.at_least()
    )))
}

/// A size as it was chosen: the talk's are round in decimal units.
fn as_given(size: u64) -> String {
    match size {
        s if s >= 1_000_000 && s % 100_000 == 0 => format!("{} MB", s as f64 / 1e6),
        s if s >= 1_000 && s % 1_000 == 0 => format!("{} kB", s / 1_000),
        s => format_size(s),
    }
}

/// The figure of the point whose size is nearest to this one, if it is near enough.
fn nearest(points: &[&Measurement], size: u64) -> Option<EvidenceFigure> {
    let distances = points.iter().map(|m| {
        (m, m.numeric_param(param::SIZE).map_or(f64::MAX, |other| (size as f64 / other as f64).log2().abs()))
    });
    let (near, distance) = distances.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    EvidenceFigure::p50(near).filter(|_| distance <= SAME_SIZE)
}

/// Size, a line in order, a line at random, of each size that has both.
fn sequential_rows(report: &Report) -> Vec<(u64, EvidenceFigure, EvidenceFigure)> {
    let random = ["2MiB", "4KiB"].map(|pages| chases(report, "random", pages));
    let Some(random) = random.iter().max_by_key(|points| points.len()) else { return Vec::new() };
    let sums: Vec<&Measurement> = measured_points(report, ids::SEQUENTIAL_SUM).collect();
    // The talk's XOR loop is the second choice.
    let mode = if sums.iter().any(|m| m.has_param_value(param::MODE, "sum")) { "sum" } else { "xor" };
    let mut rows: Vec<(u64, EvidenceFigure, EvidenceFigure)> = sums
        .into_iter()
        .filter(|m| m.has_param_value(param::MODE, mode))
        .filter_map(|m| {
            let size = m.numeric_param(param::SIZE)?;
            let lines = m.work.filter(|work| work.bytes_touched > 0)?.bytes_touched as f64 / 64.0;
            Some((size, EvidenceFigure::p50(m)?.scale_by(1.0 / lines), nearest(random, size)?))
        })
        .collect();
    rows.sort_by_key(|(size, ..)| *size);
    rows
}
