//! The interface of a probe's code inside of a worker.

mod addresses;
mod statements;

pub use addresses::Addresses;

use crate::alarm::ExceedanceAlarm;
use crate::gate::{SampleGate, Taint};
use crate::live::{MachineSamplerHost, Recorders};
use crate::protocol::{Assignment, PointResult, WorkerMessage};
use crate::recorder::{HistogramSlotWriter, Slots};
use crate::sampler::{self, MAX_PARTS, NOT_TIMED, SampleBatchShape, SampleSink, SamplerOutcome};
use crate::settings::PointSettings;
use crate::timebase::{AnyClock, Timebase};
use crate::waits::Waits;
use anyhow::Result;
use latscope_core::plan::{MeasurementPoint, Periodic, PlanStep, Stop};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Contention, OperationWork, Sampling, disturbed_reason};
use latscope_core::statistics::median;
use latscope_machine::account::Peers;
use latscope_os::clock::Clock;
use latscope_os::trace_marker::Marker;
use rustix::fd::OwnedFd;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

/// A short operation to be timed in batches.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Operations in one iteration; figures are given for one operation.
    pub ops: u64,
    /// Bytes behind one operation.
    pub work: Option<OperationWork>,
    /// Time a chain of dependent adds beside each batch, so that the result
    /// is known in core cycles too.
    pub cycles: bool,
    /// Iterations that bring the working set back after something else ran,
    /// however long a batch is: what takes more than 1 ms or so is not worth
    /// it. 0 for a sixteenth of the batch.
    pub warm: u64,
    /// Conditions that make a batch clean.
    pub gate: SampleGate,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { ops: 1, work: None, cycles: false, warm: 0, gate: SampleGate::Thread }
    }
}

/// Sends messages to the coordinator.
pub type WorkerMessageSink<'a> = dyn FnMut(WorkerMessage) + Send + 'a;

/// The engine as a probe's code sees it.
pub struct Bench<'a> {
    assignment: Assignment,
    points: Arc<[MeasurementPoint]>,
    slots: Slots,
    marker: Option<Marker>,
    results: Vec<Option<PointResult>>,
    bell: Option<OwnedFd>,
    memory: Option<OwnedFd>,
    waits: Waits,
    peers: Peers,
    tell: &'a mut WorkerMessageSink<'a>,
}

/// The timed parts of one activity.
pub struct Splits<'a> {
    clock: AnyClock,
    started: u64,
    parts: &'a mut [u64; MAX_PARTS],
    of_group: bool,
}

impl Splits<'_> {
    /// Stamps the beginning of a part.
    #[inline(always)]
    pub fn start_part(&mut self) {
        self.started = self.clock.stamp_start();
    }

    /// Stamps the end of the part begun last.
    #[inline(always)]
    pub fn stop_part(&mut self, part: usize) {
        self.parts[part] = self.clock.stamp_end() - self.started;
    }

    /// Times an operation as a part.
    #[inline(always)]
    pub fn time_part<T>(&mut self, part: usize, operation: impl FnOnce() -> T) -> T {
        self.start_part();
        let result = operation();
        self.stop_part(part);
        result
    }

    /// The clock, for stamps on other threads.
    pub fn clock(&self) -> AnyClock {
        self.clock
    }

    /// Returns the time of a part that was timed in this activity, ticks.
    pub fn part_ticks(&self, part: usize) -> u64 {
        self.parts[part]
    }

    /// Returns true if this activity will be recorded, should the gate let it pass. An activity that only warms up
    /// after a pause is not recorded.
    pub fn is_to_record(&self) -> bool {
        self.of_group
    }

    /// A stamp taken here.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.clock.stamp_end()
    }

    /// Sets a part from two stamps; when they are in the wrong order (taken
    /// on CPUs whose counters differ by more), the part counts as not timed.
    pub fn set_part(&mut self, part: usize, from: u64, to: u64) {
        self.parts[part] = to.checked_sub(from).unwrap_or(NOT_TIMED);
    }
}

impl<'a> Bench<'a> {
    /// Creates a bench for an assignment. Messages go to `tell`.
    pub fn new(assignment: Assignment, slots: Slots, tell: &'a mut WorkerMessageSink<'a>) -> Bench<'a> {
        let points: Arc<[MeasurementPoint]> =
            assignment.step.points.iter().map(MeasurementPoint::without_kind).collect();
        let results = points.iter().map(|_| None).collect();
        // Without its signposts a time line still shows the threads.
        let marker = assignment.trace_marker.as_deref().and_then(|path| Marker::open(path).ok());
        let waits = Waits::start_counting();
        let (bell, memory, peers) = (None, None, Peers::default());
        Bench { assignment, points, slots, marker, results, bell, memory, waits, peers, tell }
    }

    /// The parameters of all points, in their order, where these are of one kind.
    ///
    /// # Errors
    /// The parameters of a point are invalid.
    pub fn settings<S: PointSettings>(&self) -> anyhow::Result<Vec<S>> {
        self.points().iter().map(S::read).collect()
    }

    /// The points of the step.
    pub fn points(&self) -> Arc<[MeasurementPoint]> {
        self.points.clone()
    }

    /// CPUs of the measuring threads; this thread is pinned to the first.
    pub fn cpus(&self) -> &[u32] {
        &self.assignment.step.cpus
    }

    /// All CPUs the run may use.
    pub fn allowed(&self) -> &[u32] {
        &self.assignment.allowed
    }

    /// Seed of permutations and random data.
    pub fn seed(&self) -> u64 {
        self.assignment.step.seed
    }

    /// Conditions under which a point has been measured enough.
    pub fn stop(&self) -> Stop {
        self.assignment.step.stop
    }

    /// Changes when points have been measured enough, from here on.
    pub fn set_stop(&mut self, stop: Stop) {
        self.assignment.step.stop = stop;
    }

    /// Clock of the run.
    pub fn timebase(&self) -> Timebase {
        self.assignment.timebase
    }

    /// Settings of the periodic threads, if the step has them.
    pub fn periodic(&self) -> Option<&Periodic> {
        self.assignment.step.periodic.as_ref()
    }

    /// `CLOCK_MONOTONIC` at the epoch of the run, ns.
    pub fn epoch_ns(&self) -> u64 {
        self.assignment.epoch_ns
    }

    /// Gives the bench the eventfd that calls the coordinator.
    pub(crate) fn set_bell(&mut self, bell: Option<OwnedFd>) {
        self.bell = bell;
    }

    /// The eventfd that calls the coordinator to what a measuring thread saw.
    pub fn bell(&self) -> Option<OwnedFd> {
        self.bell.as_ref().and_then(|bell| bell.try_clone().ok())
    }

    /// Gives the bench the descriptor of its histograms.
    pub(crate) fn set_memory(&mut self, memory: Option<OwnedFd>) {
        self.memory = memory;
    }

    /// The memfd of the step's histograms, for measuring processes.
    pub fn memory(&self) -> Option<OwnedFd> {
        self.memory.as_ref().and_then(|memory| memory.try_clone().ok())
    }

    /// The step, for measuring processes.
    pub fn step(&self) -> &PlanStep {
        &self.assignment.step
    }

    /// Returns true if the measuring threads are asked to end.
    pub fn is_stopping(&self) -> bool {
        self.slots.stopping()
    }

    /// The `trace_marker` of the run's trace instance, for measuring processes.
    pub fn trace_marker(&self) -> Option<&Path> {
        self.assignment.trace_marker.as_deref()
    }

    /// The `tracing_on` to switch off at the first event above the threshold.
    pub fn trace_switch(&self) -> Option<&Path> {
        self.assignment.trace_switch.as_deref()
    }

    /// An alarm of its own for a measuring thread.
    pub fn alarm(&self) -> ExceedanceAlarm {
        ExceedanceAlarm::new(self.bell(), self.trace_marker(), self.trace_switch())
    }

    /// Marker for signposts; `None` if no time line is recorded.
    pub fn marker(&self) -> Option<&Marker> {
        self.marker.as_ref()
    }

    /// The directory for files: empty at first, removed after the step.
    ///
    /// # Errors
    /// The experiment did not ask for a directory.
    pub fn scratch(&self) -> Result<&Path> {
        self.assignment
            .scratch
            .as_deref()
            .ok_or_else(|| anyhow::anyhow!("this experiment has no scratch directory"))
    }

    /// Times a short operation in batches: `event(n)` runs `n` iterations.
    pub fn batch<T>(&mut self, point: usize, batch: Batch, mut event: impl FnMut(u64) -> T) {
        self.batch_prepared(point, batch, &mut || (), &mut |n| {
            black_box(event(n));
        });
    }

    /// Times calls in batches, one call after the other.
    pub fn calls<T>(&mut self, point: usize, batch: Batch, mut call: impl FnMut() -> T) {
        self.batch(point, batch, |n| {
            for _ in 0..n {
                black_box(call());
            }
        });
    }

    /// Records batches that other threads timed: the time of one of `ops` operations, ns, and the stamp at the begin of
    /// each. `disturbed` batches are those of a point of which no other was clean.
    pub fn batch_means(&mut self, point: usize, ops: u64, batches: &[(f64, u64)], disturbed: bool) {
        self.begin_points(&[point]);
        let mut sink = self.recorders(&[point], Sampling::Batch { ops });
        for (ns, at) in batches {
            sink.record_sample(0, (ns * 1e3).round() as u64, *at);
            if disturbed {
                sink.reject(Taint::Preempted);
            }
        }
        let outcome = SamplerOutcome { disturbed, ..SamplerOutcome::default() };
        self.finish_points(&[point], sink, outcome, &SampleGate::ThreadGroup(Arc::default()));
    }

    /// Times a short operation as [`batch`](Self::batch) does, and calls `prepare` right before each batch, outside of
    /// its stamps, for instance to wake other threads.
    pub fn batch_prepared(
        &mut self,
        point: usize,
        batch: Batch,
        prepare: &mut dyn FnMut(),
        event: &mut dyn FnMut(u64),
    ) {
        self.batch_observed(point, batch, prepare, event, &mut |_| ());
    }

    /// Times batches as [`batch_prepared`](Self::batch_prepared) does, and passes on the time of an operation in each
    /// clean batch, ps.
    fn batch_observed(
        &mut self,
        point: usize,
        batch: Batch,
        prepare: &mut dyn FnMut(),
        event: &mut dyn FnMut(u64),
        observe: &mut dyn FnMut(u64),
    ) {
        let work = batch.work.or(self.result(point).work);
        self.result(point).work = work;
        self.begin_points(&[point]);
        let mut sink = self.recorders(&[point], Sampling::Batch { ops: batch.ops });
        let iterations = self.assignment.iterations.get(point).copied().flatten();
        let shape = SampleBatchShape { ops: batch.ops, warm: batch.warm, iterations };
        let (timebase, stop) = (self.timebase(), self.stop());
        let mut host = MachineSamplerHost::new(timebase, batch.gate.clone(), batch.cycles, prepare);
        let mut observed = Observed { sink: &mut sink, observe };
        let outcome = sampler::batches(&mut host, &timebase, &stop, shape, event, &mut observed);
        sink.writers[0].set_ops(outcome.iterations * batch.ops);
        self.result(point).iterations = Some(outcome.iterations);
        self.finish_points(&[point], sink, outcome, &batch.gate);
    }

    /// Times single events, one call of `event` each.
    pub fn each(&mut self, point: usize, gate: SampleGate, event: impl FnMut()) {
        self.each_and(0, point, gate, || (), event);
    }

    /// Times single events with the stamps in each figure: for events as short as these, which run beside the stamps in
    /// part, so that the difference can be 0. `warm` runs first, and again after another process ran.
    pub fn each_with_stamps(
        &mut self,
        point: usize,
        gate: SampleGate,
        warm: impl FnMut(),
        event: impl FnMut(),
    ) {
        self.each_and(self.timebase().overhead(), point, gate, warm, event);
    }

    /// Times single events, and adds so many ticks to each.
    fn each_and(
        &mut self,
        more: u64,
        point: usize,
        gate: SampleGate,
        warm: impl FnMut(),
        event: impl FnMut(),
    ) {
        // The clock is chosen here, once: between the stamps is code for just this one.
        match self.timebase().clock() {
            AnyClock::Counter(clock) => self.each_by(clock, more, point, gate, warm, event),
            AnyClock::MonotonicRaw(clock) => self.each_by(clock, more, point, gate, warm, event),
        }
    }

    fn each_by(
        &mut self,
        clock: impl Clock,
        more: u64,
        point: usize,
        gate: SampleGate,
        mut warm: impl FnMut(),
        mut event: impl FnMut(),
    ) {
        self.sample_events(&[point], gate, &mut |parts, is_to_record| {
            if !is_to_record {
                warm();
            }
            parts[0] = time_event(clock, &mut event) + more;
        });
    }

    /// Times the parts of an activity; part `i` of [`Splits`] belongs to the
    /// point `parts[i]`.
    ///
    /// # Panics
    /// With more than `MAX_PARTS` parts.
    pub fn splits(&mut self, parts: &[usize], gate: SampleGate, mut activity: impl FnMut(&mut Splits)) {
        assert!(parts.len() <= MAX_PARTS, "an activity has at most {MAX_PARTS} parts");
        let clock = self.timebase().clock();
        self.sample_events(parts, gate, &mut |parts, of_group| {
            activity(&mut Splits { clock, started: 0, parts, of_group });
        });
    }

    fn sample_events(
        &mut self,
        parts: &[usize],
        gate: SampleGate,
        activity: &mut dyn FnMut(&mut [u64; MAX_PARTS], bool),
    ) {
        self.begin_points(parts);
        let mut sink = self.recorders(parts, Sampling::Event);
        let (timebase, stop) = (self.timebase(), self.stop());
        let mut nothing = || ();
        let mut host = MachineSamplerHost::new(timebase, gate.clone(), false, &mut nothing);
        let outcome = sampler::time_events(&mut host, &timebase, &stop, parts.len(), activity, &mut sink);
        self.finish_points(parts, sink, outcome, &gate);
    }

    /// The private histogram of a measuring thread, for events in ns; hand it
    /// back to [`finish_writer`](Self::finish_writer).
    pub fn writer(&mut self, point: usize) -> HistogramSlotWriter {
        self.started(point);
        self.slots.writer(point, Sampling::Event)
    }

    /// Takes back a measuring thread's writer: the point is measured.
    pub fn finish_writer(&mut self, point: usize, writer: HistogramSlotWriter) {
        self.set_blocks(point, writer.into_blocks());
        self.record_waits(point, false, false);
    }

    /// Says that a point is being measured, by processes of its own.
    ///
    /// What is stated of it before counts also if this process is ended in the middle.
    pub fn started(&mut self, point: usize) {
        let known = self.results[point].clone().unwrap_or_default();
        (self.tell)(WorkerMessage::Started(point, Box::new(known)));
        self.waits = Waits::start_counting();
    }

    /// Notes what the threads waited for a CPU since the point was started, whether that distorts it, and whether a
    /// gate threw each sample away in which they did not run.
    fn record_waits(&mut self, point: usize, distorts: bool, gated: bool) {
        let (wall_ns, run_delay_ns, threads_ns) = self.waits.so_far();
        // How late periodic threads have a CPU is what they measure.
        let distorts = distorts && self.periodic().is_none();
        self.set_contention(point, Contention { wall_ns, run_delay_ns, threads_ns, distorts, gated });
    }

    /// Reports all that is known; points never touched stay unreported.
    pub fn report_results(self) {
        for (point, result) in self.results.into_iter().enumerate() {
            if let Some(result) = result {
                (self.tell)(WorkerMessage::Closed(point, Box::new(result)));
            }
        }
    }

    fn result(&mut self, point: usize) -> &mut PointResult {
        self.results[point].get_or_insert_default()
    }

    fn recorders(&self, points: &[usize], sampling: Sampling) -> Recorders {
        let writers = points.iter().map(|point| self.slots.writer(*point, sampling)).collect();
        let (timebase, epoch) = (self.assignment.timebase, self.assignment.epoch);
        Recorders { writers, recorded: vec![0; points.len()], timebase, epoch }
    }

    /// Says that points are being measured, also on the time line.
    fn begin_points(&mut self, points: &[usize]) {
        for index in points {
            self.started(*index);
            if let Some(marker) = &self.marker {
                let point = &self.points[*index];
                marker.begin_section(&signpost(&point.probe, &point.title));
            }
        }
    }

    fn finish_points(
        &mut self,
        points: &[usize],
        sink: Recorders,
        outcome: SamplerOutcome,
        gate: &SampleGate,
    ) {
        points.iter().for_each(|_| self.marker.iter().for_each(Marker::end_section));
        for ((point, writer), recorded) in points.iter().zip(sink.writers).zip(sink.recorded) {
            let quality = &mut self.result(*point).quality;
            if outcome.disturbed && recorded > 0 && quality.level != QualityLevel::Unsupported {
                quality.accumulate_reason(&disturbed_reason(recorded, recorded));
            }
            // A gate throws the samples away in which a thread waited.
            let open = matches!(gate, SampleGate::Open) || outcome.disturbed;
            self.record_waits(*point, open, !open);
            let result = self.result(*point);
            result.blocks = writer.into_blocks();
            result.cycles = median(&outcome.cycles);
        }
    }
}

#[inline(always)]
fn time_event<C: Clock>(clock: C, event: &mut impl FnMut()) -> u64 {
    let start = clock.stamp_start();
    event();
    clock.stamp_end() - start
}

/// A sink whose samples are passed on as well.
struct Observed<'a> {
    sink: &'a mut Recorders,
    observe: &'a mut dyn FnMut(u64),
}

impl SampleSink for Observed<'_> {
    fn record_sample(&mut self, part: usize, value: u64, at: u64) {
        self.sink.record_sample(part, value, at);
        (self.observe)(value);
    }

    fn reject(&mut self, taint: Taint) {
        self.sink.reject(taint);
    }
}

/// The signpost that covers the measuring of a point.
pub fn signpost(probe: &str, title: &str) -> String {
    format!("{probe} {title}")
}
