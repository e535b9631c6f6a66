//! Puts measurements together from what a worker counted and what it said.

use super::outliers::Outliers;
use super::protocol::Closing;
use super::recorder::Slots;
use crate::probe;
use latscope_core::histogram::Histogram;
use latscope_core::plan::Step;
use latscope_core::report::{Measurement, Recordings, Sampling, Summary, Support, Times, Value};
use std::collections::BTreeMap;

/// Puts a point together from what the worker counted and what it said.
pub fn measurement(
    step: &Step,
    point: usize,
    slots: Option<&Slots>,
    closing: Option<Closing>,
    failure: Option<&str>,
) -> Measurement {
    let planned = &step.points[point];
    let snapshot = slots.map(|slots| slots.snapshot(point));
    let incomplete = closing.is_none();
    let mut closing = closing.unwrap_or_default();
    // A point that turned out to be unsupported on the way has no numbers.
    let snapshot = snapshot.filter(|_| closing.support != Support::Unsupported);
    let histogram = snapshot.as_ref().map_or_else(|| Histogram::new(1000), |s| s.histogram.clone());
    let nothing = histogram.count() == 0 && !closing.uneventful;
    if closing.support != Support::Unsupported && (nothing || incomplete) {
        closing.support = if nothing { Support::Unsupported } else { Support::Degraded };
        let reason = failure.unwrap_or("nothing was measured");
        closing.reason.get_or_insert_with(|| reason.to_owned());
    }
    let recordings = slots.filter(|_| histogram.count() > 0).and_then(|slots| recordings(slots, point));
    let corrected = snapshot.as_ref().and_then(|snapshot| snapshot.corrected.clone());
    let (rejected, missed) = snapshot.as_ref().map_or((0, 0), |s| (s.preempted + s.stolen, s.missed));
    let counted = Summary { rejected, missed, cycles: closing.cycles, ..Summary::default() };
    Measurement {
        probe: planned.probe.clone(),
        params: planned.params.clone(),
        title: planned.title.clone(),
        row: planned.row,
        sampling: snapshot.and_then(|s| s.sampling).unwrap_or(Sampling::Event),
        times: probe::find(&planned.probe).map_or(Times::Operation, |probe| probe.times),
        support: closing.support,
        reason: closing.reason,
        remedy: closing.remedy,
        incomplete,
        summary: Summary::of(&histogram, &counted),
        values: closing.values,
        work: closing.work,
        histogram,
        blocks: closing.blocks,
        outliers: closing.outliers,
        hops: closing.hops,
        corrected: corrected.filter(|histogram| histogram.count() > 0),
        recordings,
        verdict: None,
    }
}

/// The exact records of a point, where the plan asked for any.
fn recordings(slots: &Slots, point: usize) -> Option<Recordings> {
    let linear = slots.linear(point)?;
    Some(Recordings { linear: Some(linear), exceedances: Vec::new() })
}

/// Adds to measurements what was found of their outliers.
pub fn add_outliers(measured: &mut [Measurement], outliers: &mut Outliers) {
    for (point, measurement) in measured.iter_mut().enumerate() {
        let (worst, first) = outliers.of_point(point);
        measurement.outliers.extend(worst);
        if !first.is_empty() {
            measurement.recordings.get_or_insert_default().exceedances = first;
        }
    }
}

/// One merged point for each set of points that differ only in `cpu` and `thread`.
pub fn merged_over_cpus(measured: &[Measurement]) -> Vec<Measurement> {
    let mut merged: Vec<Measurement> = Vec::new();
    for one in measured.iter().filter(|m| m.params.contains_key("cpu")) {
        let mut params = one.params.clone();
        params.insert("cpu".to_owned(), "all".into());
        params.remove("thread");
        match merged.iter_mut().find(|m| m.probe == one.probe && m.params == params) {
            None => {
                let title =
                    probe::find(&one.probe).map_or(one.title.clone(), |p| match params.get("context") {
                        Some(context) => format!("{}: {context}, all CPUs", p.title),
                        None => format!("{}, all CPUs", p.title),
                    });
                let blocks = Vec::new();
                merged.push(Measurement {
                    params,
                    title,
                    row: true,
                    blocks,
                    recordings: None,
                    hops: Vec::new(),
                    ..one.clone()
                });
            }
            Some(all) => add(all, one),
        }
    }
    for all in &mut merged {
        let same = |one: &&Measurement| {
            let cpu = one.params.get("cpu").is_some_and(|cpu| *cpu != "all".into());
            let others = one.params.iter().filter(|(name, _)| *name != "cpu");
            cpu && one.probe == all.probe && others.eq(all.params.iter().filter(|(name, _)| *name != "cpu"))
        };
        all.values = values_over(measured.iter().filter(same));
    }
    merged
}

/// What is counted adds up over CPUs; of shares and times there is a mean.
fn values_over<'a>(members: impl Iterator<Item = &'a Measurement>) -> BTreeMap<String, Value> {
    let mut sums: BTreeMap<String, (Value, f64)> = BTreeMap::new();
    for (name, value) in members.flat_map(|one| &one.values) {
        let (sum, n) =
            sums.entry(name.clone()).or_insert_with(|| (Value { value: 0.0, ..value.clone() }, 0.0));
        sum.value += value.value;
        *n += 1.0;
    }
    let mean = |(value, n): (Value, f64)| match value.unit.as_str() {
        "count" | "1/s" => value,
        _ => Value { value: value.value / n, ..value },
    };
    sums.into_iter().map(|(name, sum)| (name, mean(sum))).collect()
}

fn add(all: &mut Measurement, one: &Measurement) {
    all.histogram.merge(&one.histogram);
    let counted = Summary {
        rejected: all.summary.rejected + one.summary.rejected,
        missed: all.summary.missed + one.summary.missed,
        cycles: None,
        ..Summary::default()
    };
    all.summary = Summary::of(&all.histogram, &counted);
    match (&mut all.corrected, &one.corrected) {
        (Some(all), Some(one)) => all.merge(one),
        _ => all.corrected = None,
    }
    all.outliers.extend_from_slice(&one.outliers);
    all.incomplete |= one.incomplete;
    if one.support != Support::Ok {
        (all.support, all.reason, all.remedy) = (one.support, one.reason.clone(), one.remedy.clone());
    }
}
