//! Builds measurements from a worker's counts and messages.

use crate::outliers::Outliers;
use latscope_bench::hold::Shortfall;
use latscope_bench::probe::Registry;
use latscope_bench::protocol::PointResult;
use latscope_bench::recorder::Slots;
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::histogram::Histogram;
use latscope_core::merged::is_part_of;
use latscope_core::param;
use latscope_core::plan::PlanStep;
use latscope_core::quality::{CUT_SHORT, NOTHING_MEASURED, QualityLevel, Reason};
use latscope_core::report::{
    MeasuredQuantity, Measurement, Recordings, Sampling, Semantics, Summary, WATCHED, adds_up, weighted_mean,
};
use latscope_trace::blame::kind;
use std::collections::BTreeMap;

/// Puts a step together; what has no closing is so far only, for this reason.
pub fn measurements(
    registry: &Registry,
    step: &PlanStep,
    slots: Option<&Slots>,
    results: &[Option<PointResult>],
    failure: Option<&str>,
) -> Vec<Measurement> {
    let points = results.iter().cloned().enumerate();
    points.map(|(point, result)| build_measurement(registry, step, point, slots, result, failure)).collect()
}

/// Notes what is known of a point that begins; what it was forewarned of stays.
pub fn begun(result: &mut Option<PointResult>, mut known: PointResult) {
    known.cut_short = true;
    known.quality.merge(&result.take().unwrap_or_default().quality);
    *result = Some(known);
}

/// Notes what all points are degraded for, until their worker closes them: it may not come to that.
pub(crate) fn note_degraded(results: &mut [Option<PointResult>], reason: &str, remedy: &str) {
    for result in results {
        let known = result.get_or_insert_with(|| PointResult { cut_short: true, ..PointResult::default() });
        known.quality.add_reason(Reason::new(QualityLevel::Degraded, "not-as-asked", reason, remedy));
    }
}

/// Builds the measurement of a point from the worker's counts and messages.
fn build_measurement(
    registry: &Registry,
    step: &PlanStep,
    point: usize,
    slots: Option<&Slots>,
    result: Option<PointResult>,
    failure: Option<&str>,
) -> Measurement {
    let planned = &step.points[point];
    let snapshot = slots.map(|slots| slots.snapshot(point));
    let broken = result.as_ref().is_none_or(|result| result.cut_short);
    let mut result = result.unwrap_or_default();
    // A point that turned out to be unsupported on the way has no numbers.
    let snapshot = snapshot.filter(|_| result.quality.level != QualityLevel::Unsupported);
    let histogram = snapshot.as_ref().map_or_else(|| Histogram::new(1000), |s| s.histogram.clone());
    let nothing = histogram.count() == 0 && !result.uneventful;
    let incomplete = broken || result.interrupted && step.stop.is_limited();
    if result.quality.level != QualityLevel::Unsupported && (nothing || broken) {
        let level = if nothing { QualityLevel::Unsupported } else { QualityLevel::Degraded };
        let (id, otherwise) = match nothing {
            true => (NOTHING_MEASURED, "nothing was measured"),
            false => (CUT_SHORT, "it ended before it was complete"),
        };
        let known = result.quality.reasons.iter().any(|reason| reason.id == id);
        if failure.is_some() || !known {
            result.quality.add_reason(Reason::new(level, id, failure.unwrap_or(otherwise), ""));
        }
    }
    let recordings = slots.filter(|_| histogram.count() > 0).and_then(|slots| recordings(slots, point));
    let corrected = snapshot.as_ref().and_then(|snapshot| snapshot.corrected.clone());
    let (rejected, missed) = snapshot.as_ref().map_or((0, 0), |s| (s.preempted + s.stolen, s.missed));
    let counted = Summary { rejected, missed, cycles: result.cycles, ..Summary::default() };
    let sampling = snapshot.and_then(|s| s.sampling).unwrap_or(Sampling::Event);
    let times = result.times.unwrap_or_else(|| {
        registry.find_probe(&planned.probe).map_or(Semantics::Operation, |probe| probe.times)
    });
    let mut planned = planned.clone();
    planned.params.append(&mut result.params);
    Measurement {
        quality: result.quality,
        incomplete,
        summary: Summary::from_histogram(&histogram, &counted),
        values: result.values,
        work: result.work,
        blocks: result.blocks,
        outliers: result.outliers,
        hops: result.hops,
        remote: result.remote,
        corrected: corrected.filter(|histogram| histogram.count() > 0),
        recordings,
        contention: result.contention,
        ..Measurement::from_samples(planned, sampling, times, histogram)
    }
}

/// The exact records of a point, where the plan asked for any.
fn recordings(slots: &Slots, point: usize) -> Option<Recordings> {
    let linear = slots.linear(point)?;
    Some(Recordings { linear: Some(linear), exceedances: Vec::new() })
}

/// Adds to measurements what was found of their outliers.
pub(crate) fn add_outliers(measured: &mut [Measurement], outliers: &Outliers) {
    for (point, measurement) in measured.iter_mut().enumerate() {
        let (worst, first) = outliers.of_point(point);
        for (kind, halted) in [(kind::FROZEN, Shortfall::frozen()), (kind::STOPPED, Shortfall::run_stopped())]
        {
            if worst.iter().flat_map(|outlier| &outlier.cause).any(|cause| cause.kind == kind) {
                let Shortfall { id, reason, remedy } = halted;
                measurement.lower(Reason::new(QualityLevel::Degraded, id, reason, remedy));
            }
        }
        measurement.outliers.extend(worst);
        if !first.is_empty() {
            measurement.recordings.get_or_insert_default().exceedances = first;
        }
    }
}

/// Returns the merged points: a point for each set of points that differ only in `thread` and in `cpu`, or in `pair`
/// where pairs are numbered.
pub fn merge_points(registry: &Registry, measured: &[Measurement]) -> Vec<Measurement> {
    let mut merged: Vec<Measurement> = Vec::new();
    for one in measured {
        let Some(axis) = axis(one) else { continue };
        let mut params = one.params.clone();
        params.insert(axis.to_owned(), "all".into());
        params.remove(param::THREAD);
        match merged.iter_mut().find(|m| m.probe == one.probe && m.params == params) {
            None => {
                let title = merged_title(registry, one, axis);
                let (blocks, hops) = (Vec::new(), Vec::new());
                let row = axis == param::CPU;
                let recordings = None;
                merged.push(Measurement { params, title, row, blocks, hops, recordings, ..one.clone() });
            }
            Some(all) => merge(all, one),
        }
    }
    for all in &mut merged {
        let members: Vec<&Measurement> = measured.iter().filter(|one| is_part_of(one, all)).collect();
        all.values = values_over(members.iter().copied());
        throughput_of_all(&mut all.values, &members);
        // That of several pairs was by the sum of their calls' durations once; of one pair it still is.
        if members.len() > 1 && all.values.contains_key("throughput") {
            all.revision += 1;
        }
    }
    merged
}

/// The parameter over which a measurement is summed up.
fn axis(m: &Measurement) -> Option<&'static str> {
    let numbered = m.numeric_param(param::PAIR).is_some();
    if m.params.contains_key(param::CPU) { Some(param::CPU) } else { numbered.then_some(param::PAIR) }
}

fn merged_title(registry: &Registry, one: &Measurement, axis: &str) -> String {
    if axis == param::PAIR {
        let what = one.title.rsplit_once(", pair ");
        return what.map_or(one.title.clone(), |(what, _)| format!("{what}, all pairs"));
    }
    registry.find_probe(&one.probe).map_or(one.title.clone(), |p| match one.params.get(param::CONTEXT) {
        Some(context) => format!("{}: {context}, all CPUs", p.title),
        None => format!("{}, all CPUs", p.title),
    })
}

/// Returns the values of a merged point. Counts add up; every other value is a mean. Shares and rates of CPUs count by
/// the time that each CPU was watched, so that a rate is all events by all time watched. Values of pairs count by the
/// events that they are shares of.
fn values_over<'a>(
    members: impl Iterator<Item = &'a Measurement> + Clone,
) -> BTreeMap<String, MeasuredQuantity> {
    let names: BTreeMap<&String, &MeasuredQuantity> = members.clone().flat_map(|one| &one.values).collect();
    let figure = |name: &str, unit: &str| {
        let known =
            members.clone().filter_map(|one| Some((one.values.get(name)?.value, weight(one, name, unit))));
        if adds_up(unit) { known.map(|(value, _)| value).sum() } else { weighted_mean(known) }
    };
    let value = |(name, value): (&String, &MeasuredQuantity)| {
        (name.clone(), MeasuredQuantity { value: figure(name, &value.unit), ..value.clone() })
    };
    names.into_iter().map(value).collect()
}

/// Weight of a member in the mean of a value.
fn weight(one: &Measurement, name: &str, unit: &str) -> f64 {
    match (axis(one), unit) {
        (Some(param::CPU), "%" | "1/s") => one.values.get(WATCHED).map_or(1.0, |watched| watched.value),
        (Some(param::CPU), _) => 1.0,
        _ => share_of(one, name),
    }
}

/// Sets the throughput of several pairs: the amount that they carried by the time in which they ran, side by side. By
/// the sum of their calls' durations two pairs would be no faster than one pair.
fn throughput_of_all(values: &mut BTreeMap<String, MeasuredQuantity>, members: &[&Measurement]) {
    let of = |m: &Measurement, name: &str| m.values.get(name).map_or(0.0, |value| value.value);
    let sum = |each: &dyn Fn(&Measurement) -> f64| members.iter().map(|m| each(m)).sum::<f64>();
    let calls = sum(&|m| of(m, "wall-time"));
    let carried = sum(&|m| of(m, "throughput") * of(m, "wall-time"));
    let mut set = |name: &str, figure: f64| values.get_mut(name).map(|value| value.value = figure);
    set("wall-time", calls);
    let ran = if members.len() > 1 {
        members.iter().map(|m| of(m, RUN_ELAPSED)).fold(0.0, f64::max)
    } else {
        calls
    };
    if ran > 0.0 {
        set("throughput", carried / ran);
    }
}

/// Number of events that a value is a share of: the value `NAME-of` where it exists, else the count of all events.
fn share_of(m: &Measurement, name: &str) -> f64 {
    m.values.get(&format!("{name}-of")).map_or(m.summary.count as f64, |of| of.value)
}

/// Adds a member to the sum. Of a member that has not begun only the counts and the quality are known.
fn merge(all: &mut Measurement, one: &Measurement) {
    let begun = one.histogram.count() > 0;
    let first = begun && all.histogram.count() == 0;
    all.histogram.merge(&one.histogram);
    let counted = Summary {
        rejected: all.summary.rejected + one.summary.rejected,
        missed: all.summary.missed + one.summary.missed,
        cycles: None,
        ..Summary::default()
    };
    all.summary = Summary::from_histogram(&all.histogram, &counted);
    all.outliers.extend_from_slice(&one.outliers);
    all.incomplete |= one.incomplete;
    all.merge_quality(&one.quality);
    if first {
        (all.sampling, all.times, all.work) = (one.sampling, one.times, one.work);
        (all.corrected, all.contention) = (one.corrected.clone(), one.contention.clone());
    } else if begun {
        match (&mut all.corrected, &one.corrected) {
            (Some(all), Some(one)) => all.merge(one),
            _ => all.corrected = None,
        }
        match (&mut all.contention, &one.contention) {
            (Some(all), Some(one)) => all.add_later(one),
            _ => all.contention = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::NOTHING;
    use latscope_core::plan::{MeasurementPoint, params};
    use latscope_core::report::{Better, OperationWork};

    fn pair(number: u64, calls: u64, sync: (f64, f64)) -> Measurement {
        let value =
            |value, unit: &str| MeasuredQuantity { value, unit: unit.to_owned(), better: Better::More };
        let mut histogram = Histogram::new(1000);
        (0..calls).for_each(|_| histogram.record(10));
        let values =
            [("sync", value(sync.0, "%")), ("sync-of", value(sync.1, "count")), ("meet", value(50.0, "%"))];
        let point = MeasurementPoint {
            probe: "ipc.pipe".to_owned(),
            revision: 1,
            params: params([("pair", number.into()), ("caller", "other".into())]),
            title: format!("pipes, other caller, pair {number}"),
            row: false,
        };
        Measurement {
            summary: Summary::from_histogram(&histogram, &Summary { missed: 1, ..Summary::default() }),
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Measurement::from_samples(point, Sampling::Event, Semantics::RoundTrip, histogram)
        }
    }

    #[test]
    fn what_is_known_of_a_point_that_begins_counts_beside_what_it_was_forewarned_of() {
        let mut results = [None];
        note_degraded(&mut results, "no SCHED_FIFO", "");
        let work = OperationWork { ops: 3, bytes_touched: 64, bytes_moved: 128 };
        begun(&mut results[0], PointResult { work: Some(work), ..PointResult::default() });
        let [Some(result)] = results else { panic!("it is known") };
        assert_eq!((result.work, result.cut_short), (Some(work), true));
        assert_eq!(result.quality.text().unwrap(), "no SCHED_FIFO");
    }

    #[test]
    fn each_reason_of_a_point_without_samples_has_a_text() {
        let point = MeasurementPoint {
            probe: "ipc.pipe".to_owned(),
            revision: 1,
            params: params([]),
            title: "pipes".to_owned(),
            row: false,
        };
        let step = crate::harness::step("pipe", vec![point]);
        let mut known = PointResult::default();
        known.quality.add_reason(Reason::new(QualityLevel::Degraded, "few-samples", "the time was over", ""));
        let m = build_measurement(&NOTHING, &step, 0, None, Some(known), None);
        assert_eq!(m.quality.text().unwrap(), "the time was over; nothing was measured");
        assert!(m.quality.reasons.iter().all(|reason| !reason.text.is_empty()), "{:?}", m.quality.reasons);
    }

    #[test]
    fn members_that_have_not_begun_are_left_out_of_the_sum_in_whatever_order_they_come() {
        let begun = |number| {
            let mut one = pair(number, 5, (50.0, 5.0));
            one.corrected = Some(one.histogram.clone());
            one
        };
        // Its writer has not told its tick, so that it seems to be of picoseconds.
        let waiting = |number| {
            let mut one = pair(number, 0, (0.0, 0.0));
            one.histogram = Histogram::new(1);
            one.sampling = Sampling::Batch { ops: 1 };
            one.summary = Summary::from_histogram(&one.histogram, &Summary::default());
            one
        };
        let mut members = [begun(0), begun(1), waiting(2), waiting(3)];
        for _ in 0..members.len() {
            members.rotate_left(1);
            let sum = &merge_points(&NOTHING, &members)[0];
            assert_eq!((sum.summary.count, sum.histogram.tick_ps()), (10, 1000));
            assert_eq!((sum.sampling, sum.summary.max), (Sampling::Event, Some(10.0)));
            assert_eq!(sum.corrected.as_ref().map(Histogram::count), Some(10));
        }
        assert_eq!(merge_points(&NOTHING, &[waiting(0), waiting(1)])[0].summary.count, 0);
    }

    #[test]
    fn shares_of_pairs_weigh_by_what_they_are_shares_of() {
        let merged = merge_points(&NOTHING, &[pair(0, 100, (100.0, 90.0)), pair(1, 100, (0.0, 10.0))]);
        assert_eq!(merged.len(), 1);
        let all = &merged[0];
        assert_eq!((all.summary.count, all.summary.missed), (200, 2));
        assert_eq!((all.values["sync"].value, all.values["sync-of"].value), (90.0, 100.0));
        assert_eq!(all.values["meet"].value, 50.0);
        assert_eq!(all.title, "pipes, other caller, all pairs");
        assert_eq!(all.params["pair"], "all".into());
    }

    #[test]
    fn rates_of_cpus_that_were_watched_for_unequal_times_are_by_the_time_of_each() {
        let cpu = |number: u64, watched: f64, gaps: f64, lost: f64| {
            let mut one = pair(0, 1, (0.0, 0.0));
            one.params = params([("cpu", number.into())]);
            let value =
                |value, unit: &str| MeasuredQuantity { value, unit: unit.to_owned(), better: Better::Less };
            one.values = [
                ("watched".to_owned(), value(watched, "s")),
                ("gaps".to_owned(), value(gaps / watched, "1/s")),
                ("lost".to_owned(), value(100.0 * lost / watched, "%")),
                ("steal".to_owned(), value(5.0, "ms")),
                ("faults".to_owned(), value(gaps, "count")),
            ]
            .into();
            one
        };
        // 900 gaps and 0.9 s lost in 9 s, 300 gaps and 0.3 s lost in 1 s.
        let all = &merge_points(&NOTHING, &[cpu(0, 9.0, 900.0, 0.9), cpu(1, 1.0, 300.0, 0.3)])[0];
        let figure = |name: &str| all.values[name].value;
        assert_eq!((figure("gaps"), figure("faults")), (120.0, 1200.0));
        assert!((figure("lost") - 12.0).abs() < 1e-9, "{}", figure("lost"));
        assert_eq!(figure("watched"), 5.0);
        assert_eq!(figure("steal"), 10.0, "an amount");
        // The same in rounds: the time adds up.
        let mut one = cpu(0, 9.0, 900.0, 0.9);
        one.add_round(cpu(0, 1.0, 300.0, 0.3));
        assert_eq!((one.values["gaps"].value, one.values["watched"].value), (120.0, 10.0));
    }

    #[test]
    fn throughput_of_pairs_is_by_the_time_in_which_all_of_them_ran() {
        // Each carries 4 KB in calls that take 2 ms; side by side, 1 ms apart.
        let one = |number| {
            let mut one = pair(number, 1, (0.0, 0.0));
            for (name, value, unit) in
                [("throughput", 2e6, "B/s"), ("wall-time", 2e6, "ns"), (RUN_ELAPSED, 3e6, "ns")]
            {
                let value = MeasuredQuantity { value, unit: unit.to_owned(), better: Better::More };
                one.values.insert(name.to_owned(), value);
            }
            one
        };
        let value = |all: &Measurement, name: &str| all.values[name].value;
        let alone = &merge_points(&NOTHING, &[one(0)])[0];
        assert_eq!((value(alone, "throughput"), value(alone, "wall-time")), (2e6, 2e6));
        let all = &merge_points(&NOTHING, &[one(0), one(1)])[0];
        assert_eq!((value(all, "throughput"), value(all, "wall-time")), (8e6 / 3.0, 4e6));
        assert_eq!((alone.revision, all.revision), (1, 2), "what changed its meaning is not compared");
    }

    #[test]
    fn the_worst_member_decides_with_all_reasons_in_whatever_order_they_come() {
        let with = |number, level, id| {
            let mut one = pair(number, 10, (0.0, 0.0));
            one.lower(Reason::new(level, id, id, format!("mend {id}")));
            one
        };
        let all = [
            pair(0, 10, (0.0, 0.0)),
            with(1, QualityLevel::Degraded, "a"),
            with(2, QualityLevel::Unsupported, "b"),
            with(3, QualityLevel::Unstable, "c"),
            pair(4, 10, (0.0, 0.0)),
        ];
        for rotated in 0..all.len() {
            let mut members = all.clone();
            members.rotate_left(rotated);
            let sum = &merge_points(&NOTHING, &members)[0];
            assert_eq!(sum.quality.level, QualityLevel::Unsupported);
            for part in ["a", "b", "c"] {
                assert!(
                    sum.quality.reasons.iter().any(|reason| reason.id == part),
                    "{part}: {:?}",
                    sum.quality
                );
                assert!(
                    sum.joined_remedies().as_ref().unwrap().contains(&format!("mend {part}")),
                    "{:?}",
                    sum.joined_remedies()
                );
            }
        }
    }

    #[test]
    fn pairs_of_cpus_have_no_sum() {
        let mut one = pair(0, 1, (0.0, 0.0));
        one.params.insert("pair".to_owned(), "0-1".into());
        assert!(super::merge_points(&NOTHING, &[one]).is_empty());
    }
}
