//! The coordinator: one loop that starts a worker for each step, listens to
//! it and to signals, and puts the report together. It never measures.

mod beside;
mod deadlines;
mod judging;
mod marks;
mod segments;
mod starved;
mod streams;
mod time_left;

use crate::criteria::CriteriaMonitor;
use crate::link::{CoordinatorEvent, WorkerLink};
use crate::observers::{Observer, RunEvent, StepRound, StepSnapshot};
use crate::outliers::Outliers;
use crate::{collect, timeline};
use anyhow::{Context, Result, anyhow};
use deadlines::{CoordinatorDeadlines, has_more_to_say};
use latscope_bench::hold::Shortfall;
use latscope_bench::kernel_clock::ClockWatch;
use latscope_bench::probe::Registry;
use latscope_bench::protocol::{Assignment, PointResult, WorkerMessage};
use latscope_bench::recorder::Slots;
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::merged::is_merged;
use latscope_core::plan::{Plan, PlanStep};
use latscope_core::quality::{LOAD_ENDED, LOAD_IDLE, QualityLevel, REAL_TIME_THROTTLED, Reason};
use latscope_core::report::{Interrupted, Measurement, ProgressAmount, Report, ToolVersion, Warning};
use latscope_judge::findings;
use latscope_machine::SystemRoot;
use latscope_machine::account::Accountant;
use latscope_os::clock::{Clock, monotonic_ns};
use latscope_os::sched;
use latscope_os::signal::{self, SignalFd, TERMINATION};
use latscope_process::guardian::{Guardian, Ticket};
use latscope_process::halted::Standstill;
use latscope_process::load::{self, LoadWorkers};
use latscope_process::{output, role};
use rustix::rand::{GetRandomFlags, getrandom};
use starved::StarvationMonitor;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use streams::Streams;
use time_left::TimeLeft;

/// Everything a run needs.
pub struct MeasurementRun<'a> {
    /// Registry of all probes.
    pub registry: &'static Registry,
    /// Plan to carry out.
    pub plan: Plan,
    /// Machine to measure on.
    pub machine: Machine,
    /// Calibrated clock of the run.
    pub timebase: Timebase,
    /// Labels given by the user.
    pub labels: BTreeMap<String, String>,
    /// Observers of the run.
    pub observers: Vec<&'a mut dyn Observer>,
}

/// Request to end the run: its source and time.
struct StopRequest {
    by: String,
    at: Instant,
}

/// State of a step that its worker has reported.
#[derive(Default)]
struct Said {
    /// Point that was begun last.
    begun: usize,
    /// Error that keeps the worker from going on.
    failure: Option<anyhow::Error>,
}

/// Two signals within this time count as one: `timeout` signals its child, and then
/// the group that it is in.
const TWICE: Duration = Duration::from_secs(1);

struct Coordinator<'a> {
    registry: &'static Registry,
    report: Report,
    timebase: Timebase,
    epoch: u64,
    epoch_ns: u64,
    observers: Vec<&'a mut dyn Observer>,
    guardian: Guardian,
    /// Dropped after the guardian.
    loaded: Option<LoadWorkers>,
    signals: SignalFd,
    timeline: Option<timeline::Recorder>,
    /// Points begun in all steps before the present one.
    begun: usize,
    /// Time at which the points measured now were begun.
    since: Instant,
    /// The round of the present step.
    round: StepRound,
    told: Option<StopRequest>,
    /// Points of the present step in which its worker was stopped, with the reason.
    halted: BTreeMap<usize, Shortfall>,
    /// Account of the use of the CPUs meanwhile.
    accountant: Accountant,
    clock: ClockWatch,
    /// State of the criteria.
    watch: CriteriaMonitor,
    /// The criteria whose exceedance ended the run, and when, ns after its start.
    stopped: Option<(String, u64)>,
    /// For each step of the plan, how many measurements the report has of it.
    entered: Vec<usize>,
    /// Iterations of the batches of each step's points, from its first round.
    iterations: Vec<Vec<Option<u64>>>,
}

/// Carries out the plan. A step that fails becomes a reason in the report; a
/// signal ends the run with what was measured so far, `finished` being null
/// unless the run has no end of its own.
///
/// # Errors
/// Nothing can be started: no sockets to the processes, no load.
pub fn run_plan(run: MeasurementRun) -> Result<Report> {
    // A worker that is stopped may go on and end before anyone looks.
    let mut waited = [&TERMINATION[..], &[signal::CHILD]].concat();
    waited.extend(run.observers.iter().flat_map(|observer| observer.signals()));
    let signals = SignalFd::block(&waited).context("signals cannot be waited for")?;
    role::check_sockets()?;
    let epoch = run.timebase.clock().stamp_start();
    let steps = run.plan.steps.len();
    let measuring = run.plan.steps.iter().flat_map(|step| &step.cpus).copied().collect();
    let accountant = Accountant::watch_cpus(&run.plan.cpus.0).measuring_on(measuring);
    let watch = CriteriaMonitor::for_plan(&run.plan);
    let mut coordinator = Coordinator {
        registry: run.registry,
        report: empty_report(run.plan, run.machine, run.labels),
        timebase: run.timebase,
        epoch,
        epoch_ns: monotonic_ns(),
        observers: run.observers,
        guardian: Guardian::default(),
        loaded: None,
        signals,
        timeline: None,
        begun: 0,
        since: Instant::now(),
        round: StepRound { number: 1, of: 1 },
        told: None,
        halted: BTreeMap::new(),
        accountant,
        clock: ClockWatch::start_watching(SystemRoot::real()),
        watch,
        stopped: None,
        entered: vec![0; steps],
        iterations: vec![Vec::new(); steps],
    };
    coordinator.run_steps()?;
    Ok(coordinator.report)
}

fn empty_report(plan: Plan, machine: Machine, labels: BTreeMap<String, String>) -> Report {
    let (name, version) = ("latscope".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let tool =
        ToolVersion { name, version, commit: option_env!("LATSCOPE_COMMIT").unwrap_or_default().to_owned() };
    Report { run_id: random_name(), labels, ..Report::new(tool, current_time(), plan, machine) }
}

/// 128 random bits; empty where the kernel has none yet.
fn random_name() -> String {
    let mut bits = [0; 16];
    // Early in the boot it would wait for the kernel's generator.
    match getrandom(&mut bits, GetRandomFlags::NONBLOCK) {
        Ok(16) => format!("{:032x}", u128::from_be_bytes(bits)),
        _ => String::new(),
    }
}

fn current_time() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

impl Coordinator<'_> {
    fn run_steps(&mut self) -> Result<()> {
        let plan = self.report.plan.clone();
        for undo in self.observers.iter().filter_map(|observer| observer.undo()) {
            // Stays in the journal until the guardian ends with the run.
            let _: Ticket = self.guardian.journal(undo)?;
        }
        notify_all(&mut self.observers, &RunEvent::Started(&plan));
        starved::cannot_end(&plan.cpus.0).into_iter().for_each(|warning| self.pass_on(warning));
        if let Some(load) = &plan.load {
            let loaded = load::start_load(load, &plan.cpus.0, &self.guardian)?;
            self.accountant.add_load(&loaded.workers());
            self.loaded = Some(loaded);
        }
        if let Some(path) = &plan.timeline {
            self.timeline = Some(timeline::Recorder::prepare_recording(path, &self.guardian)?);
            self.add_warning(
                "timeline",
                "a time line is recorded: the durations of this run include the cost of recording",
            );
        }
        let is_headline = |step: &PlanStep| {
            let mut probes = step.points.iter().filter_map(|point| self.registry.find_probe(&point.probe));
            probes.any(|probe| probe.headline.is_some())
        };
        let setup = |step: &str, points| self.registry.setup_s(step, points);
        let mut time = TimeLeft::for_plan(&plan, setup, is_headline);
        for (round, index) in plan.schedule() {
            if time.is_left_out(index) {
                self.begun += plan.steps[index].points.len();
                notify_all(&mut self.observers, &RunEvent::Closed(&self.report));
                continue;
            }
            let step = plan.steps[index].in_round(round);
            self.stay_off(&step.cpus, &plan.cpus.0);
            let mut families = step.points.iter().filter_map(|point| self.registry.family_of(&point.probe));
            if families.any(|family| family.served) {
                self.accountant.are_served();
            }
            (self.round, self.since) = (StepRound::of(&step, round), Instant::now());
            self.step(index, &step, &plan.cpus.0);
            self.begun += step.points.len();
            time.finish_step(index);
            self.look_at_criteria();
            notify_all(&mut self.observers, &RunEvent::Closed(&self.report));
            if self.stopped.is_some() && self.told.is_none() {
                break;
            }
            if self.told.is_some() {
                self.report.interrupted = self.run_interruption(index, &step);
                break;
            }
        }
        self.state_left_out(&time);
        if let Some(timeline) = self.timeline.take() {
            // What was measured is worth more than its time line.
            if let Err(error) = timeline.finish_recording(&self.guardian) {
                self.add_warning(timeline::LOST, &format!("the time line is not complete: {error:#}"));
            }
        }
        self.report.activity = self.accountant.total();
        let real_time = self.report.activity.as_ref().and_then(|account| account.real_time.clone());
        if let Some(real_time) = real_time {
            let remedy = Some("end that program, or let it sleep at times".to_owned());
            self.pass_on(Warning {
                id: REAL_TIME_THROTTLED.to_owned(),
                text: real_time.format_explanation(),
                remedy,
            });
        }
        if let Some(idle) = self
            .loaded
            .as_ref()
            .filter(|load| load.worker_exit_status().is_none())
            .and_then(LoadWorkers::idle)
        {
            self.add_warning(LOAD_IDLE, &format!("{idle}: check that it does what it is for"));
        }
        self.judge_run();
        self.report.findings.extend(findings::collect_findings(&self.report, &self.registry.catalogue()));
        self.report.finished = self.report.interrupted.is_none().then(current_time);
        notify_all(&mut self.observers, &RunEvent::Finished(&self.report));
        Ok(())
    }

    /// Lowers what was measured while the load ended, or after that.
    fn check_load(&mut self, measured: &mut [Measurement]) {
        let Some(how) = self.loaded.as_ref().and_then(LoadWorkers::worker_exit_status) else { return };
        let text = format!("the load ended before the measurement did ({how})");
        for m in measured.iter_mut().filter(|m| m.quality.level != QualityLevel::Unsupported) {
            m.lower(Reason::new(QualityLevel::Degraded, LOAD_ENDED, &text, "use a load that runs on"));
        }
        if !self.report.warnings.iter().any(|warning| warning.id == LOAD_ENDED) {
            self.add_warning(LOAD_ENDED, &format!("{text}: not all figures were taken under it"));
        }
    }

    /// Moves the coordinator to a CPU without a measuring thread, if there is such a CPU.
    fn stay_off(&self, measured: &[u32], allowed: &[u32]) {
        let free: Vec<u32> = allowed.iter().copied().filter(|cpu| !measured.contains(cpu)).collect();
        let home = if free.is_empty() { allowed } else { &free };
        // Only a courtesy: where it is refused the coordinator sleeps almost all the time anyway.
        let _ = sched::pin(home);
    }

    /// Returns the progress of a run that was asked to end; `None` if such a request is its only end.
    fn run_interruption(&self, index: usize, step: &PlanStep) -> Option<Interrupted> {
        let StopRequest { by, at } = self.told.as_ref()?;
        let plan = &self.report.plan;
        if !step.stop.is_limited() && index + 1 == plan.steps.len() {
            return None;
        }
        let planned: usize = plan.schedule().iter().map(|(_, index)| plan.steps[*index].points.len()).sum();
        let measured = self.report.measurements[self.segment(index)].iter().filter(|m| !is_merged(m));
        let incomplete: Vec<&Measurement> = measured.filter(|m| m.incomplete).collect();
        let done = self.begun - incomplete.len();
        let cut: Vec<u64> = incomplete.iter().map(|m| m.summary.count).filter(|count| *count > 0).collect();
        let limit = |limit: u64| (limit != u64::MAX).then_some(limit);
        let periodic = step.periodic.is_some() && !cut.is_empty();
        let (points, taken) = (cut.len() as u64, cut.iter().sum());
        Some(Interrupted {
            by: by.clone(),
            points: ProgressAmount { done: done as u64, of: Some(planned as u64) },
            events: periodic.then(|| ProgressAmount {
                done: taken,
                of: limit(step.stop.events).map(|each| each.saturating_mul(points)),
            }),
            time: periodic.then(|| ProgressAmount {
                done: at.saturating_duration_since(self.since).as_nanos() as u64,
                of: limit(step.stop.limit_ns),
            }),
        })
    }

    /// Measures one step and adds its points to the report.
    fn step(&mut self, index: usize, step: &PlanStep, allowed: &[u32]) {
        let mut results: Vec<Option<PointResult>> = step.points.iter().map(|_| None).collect();
        let mut slots = None;
        let mut outliers = self.outliers(step);
        let mut streams = Streams::new(step);
        let mut starved = StarvationMonitor::new();
        let outcome = self.in_scratch(step, |coordinator, scratch| {
            let mut link = WorkerLink::start_worker(step)?;
            slots = Some(link.slots.clone());
            outliers.iter().for_each(|outliers| outliers.arm(&link.slots));
            if let Some(timeline) = &mut coordinator.timeline {
                timeline.follow_process(link.process())?;
            }
            let files = outliers.as_ref().and_then(Outliers::trace_files);
            let (marker, switch) = files.map_or((None, None), |files| (Some(files.marker), files.switch));
            if coordinator.was_ended()? {
                return Ok(());
            }
            link.assign(&Assignment {
                step: step.clone(),
                timebase: coordinator.timebase,
                epoch: coordinator.epoch,
                allowed: allowed.to_vec(),
                scratch,
                iterations: coordinator.iterations[index].clone(),
                trace_marker: coordinator.timeline.as_ref().map(timeline::Recorder::marker_path).or(marker),
                trace_switch: switch,
                epoch_ns: coordinator.epoch_ns,
            })?;
            let watched = (&mut streams, outliers.as_mut(), &mut starved);
            coordinator.listen_to_worker(index, step, &mut link, &mut results, watched)
        });
        let ended = (monotonic_ns(), self.epoch_ns);
        let failure = match (&outcome, &self.told) {
            (Ok(()), None) if self.stopped.is_some() => {
                Some("the run was ended before, since a criterion was exceeded".to_owned())
            }
            (Ok(()), told) => told.as_ref().map(|told| format!("the run was interrupted by {}", told.by)),
            (Err(error), _) => Some(format!("{error:#}")),
        };
        // However the worker ended: these are the last figures, and the same as in the report.
        let mut unfinished = Vec::new();
        if let Some(slots) = &slots {
            unfinished = starved.record_missed(step, slots, &mut results, ended);
            let last = outliers.as_mut().map(|outliers| outliers.last(slots)).unwrap_or_default();
            last.iter().for_each(|outlier| self.notify_observers(&RunEvent::Outlier(outlier)));
            self.forward_events(slots, &mut streams, None);
            self.snapshot(step, slots);
        }
        let mut measured =
            collect::measurements(self.registry, step, slots.as_ref(), &results, failure.as_deref());
        if let Some(outliers) = &mut outliers {
            collect::add_outliers(&mut measured, outliers);
            outliers.finish_step(&self.guardian);
            outliers.warnings.iter().for_each(|warning| self.pass_on(warning.clone()));
        }
        starved::mark_overdue(&mut measured, &unfinished, &self.halted);
        marks::mark_halted(&mut measured, std::mem::take(&mut self.halted));
        self.add_timeline(step, &mut measured);
        self.iterations[index] = iterations(&results);
        let caches = &self.report.machine.last_caches;
        let account = beside::take_account(&mut self.accountant, caches, &step.cpus);
        measured.iter_mut().for_each(|m| m.account.clone_from(&account));
        self.check_load(&mut measured);
        if let Some(changed) = self.clock.objection() {
            measured.iter_mut().for_each(|m| m.lower(changed.clone()));
        }
        self.insert_points(index, measured);
    }

    /// Runs `body` with the step's scratch directory, if it wants one.
    fn in_scratch<T>(
        &mut self,
        step: &PlanStep,
        body: impl FnOnce(&mut Self, Option<PathBuf>) -> Result<T>,
    ) -> Result<T> {
        let (path, ticket): (_, Option<Ticket>) = match &step.conditions.scratch_in {
            None => (None, None),
            Some(parent) => {
                let (path, ticket) = self.guardian.scratch_directory(parent)?;
                (Some(path), Some(ticket))
            }
        };
        let outcome = body(self, path);
        ticket.map_or(Ok(()), |ticket| self.guardian.undo(ticket))?;
        outcome
    }

    /// Watches for events above the threshold, where the plan asks for it.
    fn outliers(&mut self, step: &PlanStep) -> Option<Outliers> {
        let wanted = self.report.plan.on_threshold.clone().filter(|_| step.periodic.is_some())?;
        let machine = &self.report.machine;
        let mut outliers = Outliers::start_step(step, &wanted, self.epoch_ns, machine, &self.guardian);
        outliers.warnings.drain(..).for_each(|warning| self.pass_on(warning));
        Some(outliers)
    }

    /// Listens to a worker until it is done, dead, silent or to be stopped.
    fn listen_to_worker(
        &mut self,
        index: usize,
        step: &PlanStep,
        link: &mut WorkerLink,
        results: &mut [Option<PointResult>],
        (streams, mut outliers, starved): (&mut Streams, Option<&mut Outliers>, &mut StarvationMonitor),
    ) -> Result<()> {
        let (mut said, mut halted) = (Said::default(), Standstill::default());
        let judging = self.watch.period(step);
        let mut deadlines = CoordinatorDeadlines::new(step, &self.observers, outliers.as_deref(), judging);
        loop {
            let inputs: Vec<_> = self.observers.iter().filter_map(|observer| observer.input()).collect();
            let pause = outliers.as_deref().and_then(Outliers::examination_delay).unwrap_or(marks::LOOK);
            let heard = link.wait_for_event(&self.signals, &inputs, deadlines.timeout().min(pause))?;
            drop(inputs);
            self.note_halt(step, link, said.begun, outliers.as_deref_mut());
            match heard {
                CoordinatorEvent::Signal(signal) if TERMINATION.contains(&signal) => {
                    if self.handle_signal(signal, step, link, &mut deadlines) {
                        return Ok(());
                    }
                }
                CoordinatorEvent::Signal(signal) => {
                    // A report of the state is of this moment.
                    self.snapshot(step, &link.slots);
                    self.notify_observers(&RunEvent::Signal(signal));
                }
                CoordinatorEvent::Input(_) => self.notify_observers(&RunEvent::Input),
                CoordinatorEvent::Bell | CoordinatorEvent::Silence => {}
                CoordinatorEvent::Gone => return Err(said.failure.unwrap_or_else(|| link.how_it_ended())),
                CoordinatorEvent::Message(WorkerMessage::Finished) => {
                    return said.failure.map_or(Ok(()), Err);
                }
                CoordinatorEvent::Message(message) => {
                    deadlines.note_message();
                    self.handle_message(message, step, results, &mut said);
                }
            }
            if deadlines.is_over()? {
                return Ok(());
            }
            if deadlines.progress.due() {
                self.check_progress(step, link, &mut deadlines, starved)?;
            }
            self.resume_stopped(step, link, &mut halted)?;
            self.note_halt(step, link, said.begun, outliers.as_deref_mut());
            self.forward_events(&link.slots, streams, outliers.as_deref_mut());
            if deadlines.looks.due() {
                self.snapshot(step, &link.slots);
            }
            let (save, judge) = (deadlines.checkpoints.due(), deadlines.judging.due());
            if save || judge {
                let so_far =
                    collect::measurements(self.registry, step, Some(&link.slots), results, Some(SO_FAR));
                if self.checkpoint(index, so_far, outliers.as_deref(), save) {
                    self.stop_exceeded(link, &mut deadlines);
                }
            }
            if let Some(by) = self.observers.iter().find_map(|observer| observer.wants_end()) {
                self.end_early(link, &mut deadlines, by.to_owned());
            }
        }
    }

    /// Ends the step early for a signal. Returns true if its worker is not waited for.
    fn handle_signal(
        &mut self,
        signal: i32,
        step: &PlanStep,
        link: &WorkerLink,
        deadlines: &mut CoordinatorDeadlines,
    ) -> bool {
        let again = self.told.as_ref().is_some_and(|told| told.at.elapsed() >= TWICE);
        self.end_early(link, deadlines, signal::signal_name(signal));
        // Records outlive the worker.
        let recorded = (0..step.points.len()).any(|point| link.slots.snapshot(point).histogram.count() > 0);
        again || !has_more_to_say(step, recorded)
    }

    /// Takes a message of the worker, other than its last one.
    fn handle_message(
        &mut self,
        message: WorkerMessage,
        step: &PlanStep,
        results: &mut [Option<PointResult>],
        said: &mut Said,
    ) {
        match message {
            WorkerMessage::Ready | WorkerMessage::Finished => {}
            WorkerMessage::Shortfall { reason, remedy } => {
                collect::note_degraded(results, &reason, &remedy);
                self.warn_degraded(step, &reason, remedy);
            }
            WorkerMessage::Peers(processes, used_ns) => self.accountant.add_peers(&processes, used_ns),
            WorkerMessage::Waiting(text) => {
                let warning = Warning { id: "waiting".to_owned(), text, remedy: None };
                self.notify_observers(&RunEvent::Warning(&warning));
            }
            WorkerMessage::Started(point, known) => {
                said.begun = point;
                collect::begun(&mut results[point], *known);
                let place = self.begun + point;
                self.since = Instant::now();
                let round = self.round;
                self.notify_observers(&RunEvent::Point { point: &step.points[point], index: place, round });
            }
            WorkerMessage::Closed(point, result) => results[point] = Some(*result),
            WorkerMessage::Failed(text) => said.failure = Some(anyhow!(text)),
        }
    }

    /// Warns the observers of a long step why its figures will be degraded. The report states the reason for each of
    /// them.
    fn warn_degraded(&mut self, step: &PlanStep, reason: &str, remedy: String) {
        if step.periodic.is_some() {
            let text = format!("degraded: {reason}");
            self.notify_observers(&RunEvent::Warning(&Warning {
                id: "degraded".to_owned(),
                text,
                remedy: Some(remedy),
            }));
        }
    }

    /// Returns true if a signal came that ends the run, before the worker measures anything.
    ///
    /// # Errors
    /// Signals cannot be read.
    fn was_ended(&mut self) -> Result<bool> {
        while let Some(signal) = self.signals.next()? {
            if TERMINATION.contains(&signal) {
                self.told = Some(StopRequest { by: signal::signal_name(signal), at: Instant::now() });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks the measuring threads to end, and gives them a moment; the first time counts.
    fn end_early(&mut self, link: &WorkerLink, deadlines: &mut CoordinatorDeadlines, by: String) {
        if self.told.is_none() {
            output::stop_waiting();
            self.told = Some(StopRequest { by, at: Instant::now() });
            link.slots.interrupt();
            deadlines.begin_grace();
        }
    }

    /// Passes on what there is to see between two messages.
    fn forward_events(&mut self, slots: &Slots, streams: &mut Streams, outliers: Option<&mut Outliers>) {
        for outlier in outliers.map(|outliers| outliers.take_outliers(slots)).unwrap_or_default() {
            self.notify_observers(&RunEvent::Outlier(&outlier));
        }
        streams.forward_samples(slots, |event| notify_all(&mut self.observers, event));
    }

    /// Shows those who want it how a step stands.
    fn snapshot(&mut self, step: &PlanStep, slots: &Slots) {
        if step.periodic.is_some() && self.observers.iter().any(|observer| observer.period().is_some()) {
            let points = (0..step.points.len()).map(|point| slots.snapshot(point)).collect();
            let at = monotonic_ns() - self.epoch_ns;
            let began = at.saturating_sub(self.since.elapsed().as_nanos() as u64);
            self.notify_observers(&RunEvent::Snapshot(&StepSnapshot {
                step,
                points,
                round: self.round,
                began,
                at,
            }));
        }
    }

    fn notify_observers(&mut self, event: &RunEvent) {
        notify_all(&mut self.observers, event);
    }

    fn add_warning(&mut self, id: &str, text: &str) {
        self.pass_on(Warning { id: id.to_owned(), text: text.to_owned(), remedy: None });
    }

    fn pass_on(&mut self, warning: Warning) {
        notify_all(&mut self.observers, &RunEvent::Warning(&warning));
        self.report.warnings.push(warning);
    }
}

fn notify_all(observers: &mut [&mut dyn Observer], event: &RunEvent) {
    observers.iter_mut().for_each(|observer| observer.observe(event));
}

/// The iterations that a worker found for the batches of its points.
fn iterations(results: &[Option<PointResult>]) -> Vec<Option<u64>> {
    results.iter().map(|result| result.as_ref()?.iterations).collect()
}

/// Reason why a point that is measured now has no more samples.
const SO_FAR: &str = "this was saved while it was measured";
