//! Runs an experiment inside of a test, with a handful of samples.

use crate::collect;
use latscope_bench::bench::Bench;
use latscope_bench::probe::{Experiment, PlanInput, Probe, Registry, SurveyProfile};
use latscope_bench::protocol::{Assignment, PointResult, WorkerMessage};
use latscope_bench::recorder::{HistogramSlotLayout, Slots};
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::{MeasurementPoint, PlanStep, Stop};
use latscope_core::quality::QualityLevel;
use latscope_core::report::Measurement;
use latscope_core::units::CpuList;
use latscope_os::clock::{Clock, monotonic_ns};
use latscope_os::sched;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// A registry without probes: what is measured inside of a test comes with its probe.
pub(crate) static NOTHING: Registry = Registry { families: &[], hidden: &[] };

/// Enough to see that a probe works; says nothing about time.
pub const STOP: Stop =
    Stop { samples: 3, events: 20, batch_ns: 20_000, budget_ns: 20_000_000, limit_ns: 200_000_000 };

/// A request as a quick survey makes it.
pub fn input() -> PlanInput {
    PlanInput {
        profile: SurveyProfile::Quick,
        survey: true,
        values: Default::default(),
        directories: Vec::new(),
    }
}

/// This machine, as far as planning needs it.
pub fn machine() -> Machine {
    let allowed = CpuList(sched::allowed_cpus().unwrap());
    Machine { online: allowed.clone(), allowed, ..Machine::default() }
}

/// The points of a probe in a quick survey of this machine.
pub fn points(probe: &Probe) -> Vec<MeasurementPoint> {
    probe.plan(&input(), &machine())
}

/// Measures points of one experiment in a thread of this process.
pub fn measure(experiment: &'static Experiment, points: Vec<MeasurementPoint>) -> Vec<Measurement> {
    std::thread::spawn(move || measure_here(experiment, points)).join().unwrap()
}

/// A step of points on all CPUs, the last one first.
pub fn step(name: &str, points: Vec<MeasurementPoint>) -> PlanStep {
    let allowed = sched::allowed_cpus().unwrap();
    PlanStep::new(name, points, allowed.into_iter().rev().collect(), STOP)
}

fn measure_here(experiment: &'static Experiment, points: Vec<MeasurementPoint>) -> Vec<Measurement> {
    // As the coordinator makes it.
    let private = Permissions::from_mode(0o700);
    let scratch = tempfile::Builder::new().permissions(private).tempdir().unwrap();
    let allowed = sched::allowed_cpus().unwrap();
    let step = step(experiment.name, points);
    sched::pin(&step.cpus[..1]).unwrap();
    let (timebase, _) = Timebase::calibrate();
    let count = step.points.len();
    let layout = HistogramSlotLayout::of_step(&step);
    let slots = Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap();
    let assignment = Assignment {
        step: step.clone(),
        timebase,
        epoch: timebase.clock().stamp_start(),
        allowed,
        scratch: Some(scratch.path().to_owned()),
        epoch_ns: monotonic_ns(),
        iterations: Vec::new(),
        trace_marker: None,
        trace_switch: None,
    };
    let mut results: Vec<Option<PointResult>> = (0..count).map(|_| None).collect();
    let mut tell = |message| {
        if let WorkerMessage::Closed(point, result) = message {
            results[point] = Some(*result);
        }
    };
    let mut bench = Bench::new(assignment, slots.clone(), &mut tell);
    let outcome = (experiment.run)(&mut bench);
    bench.report_results();
    outcome.unwrap();
    collect::measurements(&NOTHING, &step, Some(&slots), &results, None)
}

/// Asserts properties of every measurement that hold however fast the machine is.
pub fn check(m: &Measurement) {
    let name = format!("{} {:?}: {:?}", m.probe, m.params, m.joined_reasons());
    assert!(!m.incomplete, "{name}: not closed");
    if m.quality.level == QualityLevel::Unsupported {
        assert!(m.joined_reasons().is_some() && m.summary.count == 0, "{name}");
        return;
    }
    assert!(m.summary.count > 0, "{name}: nothing was recorded");
    let counted: u64 = m.histogram.buckets_ns().map(|(_, _, n)| n).sum();
    assert_eq!(counted + m.histogram.overflow(), m.summary.count, "{name}");
    let (min, p50, max) = (m.summary.min.unwrap(), m.summary.p50.unwrap(), m.summary.max.unwrap());
    assert!(min <= p50 && p50 <= max, "{name}");
}
