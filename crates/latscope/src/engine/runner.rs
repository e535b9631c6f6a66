//! The coordinator: one loop that starts a worker for each step, listens to
//! it and to signals, and puts the report together. It never measures.

use super::observers::{Event, Observer};
use super::protocol::{Assignment, Closing, Message};
use super::recorder::Slots;
use super::timebase::Timebase;
use super::timeline;
use crate::conditions::guardian::{Guardian, Ticket};
use crate::conditions::load::{self, Loaded};
use crate::probe;
use anyhow::{Context, Result, anyhow};
use latscope_core::findings;
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{Plan, Step};
use latscope_core::report::{Measurement, Report, SCHEMA, Sampling, Summary, Support, Times, Tool, Warning};
use latscope_sys::clock::Clock;
use latscope_sys::sched;
use latscope_sys::signal::Signals;
use latscope_sys::worker::{self, Lifetime};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

/// Everything a run needs.
pub struct Run<'a> {
    /// What to do.
    pub plan: Plan,
    /// Where it is done.
    pub machine: Machine,
    /// The calibrated clock.
    pub timebase: Timebase,
    /// Who watches.
    pub observers: Vec<&'a mut dyn Observer>,
}

/// How a worker ended, short of a crash.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Finished,
    Interrupted,
}

struct Coordinator<'a> {
    report: Report,
    timebase: Timebase,
    epoch: u64,
    observers: Vec<&'a mut dyn Observer>,
    guardian: Guardian,
    signals: Signals,
    timeline: Option<timeline::Recorder>,
    /// Points begun in all steps before the present one.
    begun: usize,
}

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Carries out the plan. A step that fails becomes a reason in the report; a
/// signal ends the run with what was measured so far, `finished` being null.
///
/// # Errors
/// Nothing could be started: no worker process, no guardian, no load.
pub fn run(run: Run) -> Result<Report> {
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("signals cannot be waited for")?;
    let epoch = run.timebase.clock().start();
    let mut coordinator = Coordinator {
        report: empty_report(run.plan, run.machine),
        timebase: run.timebase,
        epoch,
        observers: run.observers,
        guardian: Guardian::start()?,
        signals,
        timeline: None,
        begun: 0,
    };
    coordinator.run()?;
    Ok(coordinator.report)
}

fn empty_report(plan: Plan, machine: Machine) -> Report {
    let (name, version) = ("latscope".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Report {
        schema: SCHEMA.to_owned(),
        tool: Tool { name, version, commit: option_env!("LATSCOPE_COMMIT").unwrap_or_default().to_owned() },
        started: now(),
        finished: None,
        plan,
        machine,
        warnings: Vec::new(),
        findings: Vec::new(),
        measurements: Vec::new(),
    }
}

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

impl Coordinator<'_> {
    fn run(&mut self) -> Result<()> {
        let plan = self.report.plan.clone();
        tell(&mut self.observers, &Event::Started(&plan));
        let mut loaded = plan.load.as_ref().map(|load| load::start(load, &plan.cpus.0)).transpose()?;
        if let Some(path) = &plan.timeline {
            self.timeline = Some(timeline::Recorder::start(path, &mut self.guardian)?);
            self.warn(
                "timeline",
                "a time line is recorded: the durations of this run include the cost of recording",
            );
        }
        let mut complete = true;
        for step in &plan.steps {
            self.stay_off(&step.cpus, &plan.cpus.0);
            let end = self.step(step, &plan.cpus.0);
            self.begun += step.points.len();
            tell(&mut self.observers, &Event::Closed(&self.report));
            complete = end == End::Finished;
            if !complete {
                break;
            }
        }
        self.check_load(loaded.as_mut());
        if let Some(timeline) = self.timeline.take() {
            timeline.finish(&mut self.guardian)?;
        }
        self.report.findings.extend(findings::findings(&self.report));
        self.report.finished = complete.then(now);
        tell(&mut self.observers, &Event::Finished(&self.report));
        Ok(())
    }

    fn check_load(&mut self, loaded: Option<&mut Loaded>) {
        if let Some(how) = loaded.and_then(Loaded::ended) {
            self.warn(
                "load-ended",
                &format!(
                    "the load ended before the measurement did ({how}): not all figures were taken under it"
                ),
            );
        }
    }

    /// Where there is a choice the coordinator does not share a CPU with a
    /// measuring thread.
    fn stay_off(&self, measured: &[u32], allowed: &[u32]) {
        let free: Vec<u32> = allowed.iter().copied().filter(|cpu| !measured.contains(cpu)).collect();
        let home = if free.is_empty() { allowed } else { &free };
        // Only a courtesy: where it is refused the coordinator sleeps almost all the time anyway.
        let _ = sched::pin(home);
    }

    /// Measures one step and adds its points to the report.
    fn step(&mut self, step: &Step, allowed: &[u32]) -> End {
        let mut closings: Vec<Option<Closing>> = step.points.iter().map(|_| None).collect();
        let mut slots = None;
        let outcome = self.in_scratch(step, |coordinator, scratch| {
            let mut link = Link::start(step.points.len())?;
            slots = Some(link.slots.clone());
            if let Some(timeline) = &mut coordinator.timeline {
                timeline.follow(link.child.id())?;
            }
            link.assign(&Assignment {
                step: step.clone(),
                timebase: coordinator.timebase,
                epoch: coordinator.epoch,
                allowed: allowed.to_vec(),
                scratch,
                trace_marker: coordinator.timeline.as_ref().map(timeline::Recorder::marker),
            })?;
            coordinator.listen(step, &mut link, &mut closings)
        });
        let failure = match &outcome {
            Ok(End::Finished) => None,
            Ok(End::Interrupted) => Some("the run was interrupted".to_owned()),
            Err(error) => Some(format!("{error:#}")),
        };
        let mut measured: Vec<_> = (0..step.points.len())
            .zip(closings)
            .map(|(point, closing)| measurement(step, point, slots.as_ref(), closing, failure.as_deref()))
            .collect();
        self.add_timeline(step, &mut measured);
        if let Some(emulator) = emulator(&self.report.machine) {
            measured.iter_mut().for_each(|m| mark_emulated(m, &emulator));
        }
        let merged = merged_over_cpus(&measured);
        self.report.measurements.extend(measured);
        self.report.measurements.extend(merged);
        outcome.unwrap_or(End::Finished)
    }

    /// Takes what was recorded of a step: into the file, and its shares into
    /// the measurements and findings.
    fn add_timeline(&mut self, step: &Step, measured: &mut [Measurement]) {
        let Some(recorder) = &mut self.timeline else { return };
        match recorder.take() {
            Ok(recorded) => {
                measured.iter_mut().for_each(|m| timeline::add_shares(m, &recorded));
                self.report.findings.extend(latscope_core::timeline::finding(&recorded, &step.name));
            }
            Err(error) => {
                self.warn("timeline-lost", &format!("the time line of {} is lost: {error:#}", step.name))
            }
        }
    }

    /// Runs `body` with the step's scratch directory, if it wants one.
    fn in_scratch<T>(
        &mut self,
        step: &Step,
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

    /// Listens to a worker until it is done, dead, silent or to be stopped.
    fn listen(&mut self, step: &Step, link: &mut Link, closings: &mut [Option<Closing>]) -> Result<End> {
        let patience = silence_allowed(step);
        let mut failure = None;
        loop {
            match link.wait(&self.signals, patience)? {
                Heard::Signal => return Ok(End::Interrupted),
                Heard::Silence => {
                    return Err(anyhow!("the worker was silent for {patience:?} and was ended"));
                }
                Heard::Gone => return Err(failure.unwrap_or_else(|| link.how_it_ended())),
                Heard::Message(Message::Ready) => {}
                Heard::Message(Message::Started(point)) => {
                    let index = self.begun + point;
                    tell(&mut self.observers, &Event::Point { point: &step.points[point], index });
                }
                Heard::Message(Message::Closed(point, closing)) => closings[point] = Some(*closing),
                Heard::Message(Message::Failed(text)) => failure = Some(anyhow!(text)),
                Heard::Message(Message::Finished) => return failure.map_or(Ok(End::Finished), Err),
            }
        }
    }

    fn warn(&mut self, id: &str, text: &str) {
        let warning = Warning { id: id.to_owned(), text: text.to_owned(), remedy: None };
        tell(&mut self.observers, &Event::Warning(&warning));
        self.report.warnings.push(warning);
    }
}

fn tell(observers: &mut [&mut dyn Observer], event: &Event) {
    observers.iter_mut().for_each(|observer| observer.observe(event));
}

/// The emulator that all figures are those of, if there is one.
fn emulator(machine: &Machine) -> Option<String> {
    let runner = std::env::var(worker::RUNNER).ok();
    runner.or_else(|| machine.hypervisor.clone().filter(|name| name.contains("emulated")))
}

fn mark_emulated(measurement: &mut Measurement, emulator: &str) {
    if measurement.support == Support::Ok {
        measurement.support = Support::Degraded;
        measurement.reason = Some(format!("emulated ({emulator}): the figure is the emulator's"));
        measurement.remedy = Some("measure on the machine itself".to_owned());
    }
}

/// How long a worker may say nothing: several times what one point may take.
fn silence_allowed(step: &Step) -> Duration {
    let longest = step.stop.limit_ns.saturating_mul(20);
    Duration::from_nanos(longest).clamp(Duration::from_secs(60), Duration::from_secs(24 * 3600))
}

/// The coordinator's side of a running worker.
struct Link {
    child: Child,
    socket: BufReader<UnixStream>,
    slots: Slots,
}

enum Heard {
    Message(Message),
    Signal,
    Silence,
    Gone,
}

impl Link {
    fn start(points: usize) -> Result<Link> {
        let memory = Slots::create(points).context("no memory for the histograms")?;
        let slots = Slots::map(&memory, points)?;
        let (ours, theirs) = UnixStream::pair().context("no sockets to a worker process")?;
        let child = worker::spawn(&["__worker"], &[&theirs.into(), &memory], Lifetime::WithParent)
            .context("a worker process does not start")?;
        Ok(Link { child, socket: BufReader::new(ours), slots })
    }

    fn assign(&mut self, assignment: &Assignment) -> Result<()> {
        let line = serde_json::to_string(assignment)? + "\n";
        self.socket.get_mut().write_all(line.as_bytes()).map_err(|_| self.how_it_ended())
    }

    /// Waits for a message, a signal, the end of the worker, or too long.
    fn wait(&mut self, signals: &Signals, patience: Duration) -> Result<Heard> {
        if self.socket.buffer().is_empty() {
            let deadline = Instant::now() + patience;
            loop {
                let rest = deadline.saturating_duration_since(Instant::now());
                let timeout = Timespec { tv_sec: rest.as_secs() as _, tv_nsec: rest.subsec_nanos() as _ };
                let mut fds =
                    [PollFd::new(signals, PollFlags::IN), PollFd::new(self.socket.get_ref(), PollFlags::IN)];
                match poll(&mut fds, Some(&timeout)) {
                    Ok(0) => return Ok(Heard::Silence),
                    Ok(_) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if signals.next()?.is_some() {
                return Ok(Heard::Signal);
            }
        }
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => Ok(Heard::Gone),
            Ok(_) => {
                Ok(Heard::Message(serde_json::from_str(&line).context("the worker speaks another language")?))
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Heard::Gone),
            Err(error) => Err(error.into()),
        }
    }

    fn how_it_ended(&mut self) -> anyhow::Error {
        match self.child.wait() {
            Ok(status) => anyhow!("the worker process ended early ({status})"),
            Err(error) => anyhow!("the worker process is lost: {error}"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A worker that finished has ended or is about to; any other is ended
        // with everything it started.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Puts a point together from what the worker counted and what it said.
pub(super) fn measurement(
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
    if closing.support != Support::Unsupported && (histogram.count() == 0 || incomplete) {
        closing.support = if histogram.count() == 0 { Support::Unsupported } else { Support::Degraded };
        let reason = failure.unwrap_or("nothing was measured");
        closing.reason.get_or_insert_with(|| reason.to_owned());
    }
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
    }
}

/// One merged point for each set of points that differ only in `cpu`.
fn merged_over_cpus(measured: &[Measurement]) -> Vec<Measurement> {
    let mut merged: Vec<Measurement> = Vec::new();
    for one in measured.iter().filter(|m| m.params.contains_key("cpu")) {
        let mut params = one.params.clone();
        params.insert("cpu".to_owned(), "all".into());
        match merged.iter_mut().find(|m| m.probe == one.probe && m.params == params) {
            None => {
                let title =
                    probe::find(&one.probe).map_or(one.title.clone(), |p| format!("{}, all CPUs", p.title));
                let blocks = Vec::new();
                merged.push(Measurement { params, title, row: true, blocks, ..one.clone() });
            }
            Some(all) => add(all, one),
        }
    }
    merged
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
    for (name, value) in &one.values {
        all.values
            .entry(name.clone())
            .and_modify(|sum| sum.value += value.value)
            .or_insert_with(|| value.clone());
    }
    all.incomplete |= one.incomplete;
    if one.support != Support::Ok {
        (all.support, all.reason, all.remedy) = (one.support, one.reason.clone(), one.remedy.clone());
    }
}
