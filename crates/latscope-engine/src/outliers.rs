//! What becomes of events above the threshold: they are taken from the
//! measuring threads, explained as far as they can be, and acted upon.

use crate::blame::Blame;
use latscope_bench::recorder::{Cursor, Slots};
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{Action, OnThreshold, ParamValue, Point, Step};
use latscope_core::report::{Exceedance, Outlier, Warning};
use latscope_core::units::{counted, were};
use latscope_host::guardian::Guardian;
use latscope_trace::blame::Window;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The warning that a trace that was asked for could not be saved.
pub const TRACE_LOST: &str = "trace-lost";

/// The warnings that an action that was asked for could not be carried out.
pub const FAILED_ACTIONS: [&str; 2] = ["no-command", "action-failed"];

/// How long commands that still run at the end of a step are waited for.
const GRACE: Duration = Duration::from_secs(1);

/// Outliers of a point that are kept: the worst ones.
const KEPT: usize = 64;

/// Outliers that are explained and acted upon in a second; more would take the
/// machine from those who are measured.
const ATTENDED: u32 = 50;

/// How often the threshold follows the worst, and how long it waits to begin.
const SECOND: Duration = Duration::from_secs(1);

/// Watches the exceedances of one step.
pub struct Outliers {
    plan: OnThreshold,
    /// Stamp of `CLOCK_MONOTONIC` at the epoch of the run.
    epoch_ns: u64,
    points: Vec<Watched>,
    blame: Option<Blame>,
    /// Whether the trace is stopped by the first exceedance.
    stops: bool,
    /// How long the event was whose trace is saved.
    saved: Option<u64>,
    budget: Budget,
    /// When the threshold follows the worst next.
    follow_at: Option<Instant>,
    commands: Commands,
    /// What went wrong on the way.
    pub warnings: Vec<Warning>,
}

/// A point that is watched.
struct Watched {
    cpu: u32,
    cursor: Cursor,
    first: Vec<Exceedance>,
    worst: Vec<Outlier>,
    lost: u64,
}

/// The files of a trace instance that measuring threads write to.
pub(crate) struct TraceFiles {
    /// `trace_marker`.
    pub marker: PathBuf,
    /// `tracing_on`, to be switched off at the first exceedance, if that ends the run.
    pub switch: Option<PathBuf>,
}

impl Outliers {
    /// Prepares for a step. Where the kernel cannot be traced outliers are
    /// taken without a cause, and a warning says so.
    pub fn start(
        step: &Step,
        plan: &OnThreshold,
        epoch_ns: u64,
        machine: &Machine,
        guardian: &mut Guardian,
    ) -> Outliers {
        let mut outliers = Outliers::of(step, plan, epoch_ns);
        if plan.blame || plan.trace_file.is_some() {
            outliers.trace(machine, guardian);
        }
        outliers
    }

    fn of(step: &Step, plan: &OnThreshold, epoch_ns: u64) -> Outliers {
        let watched = |point| Watched {
            cpu: cpu(step, point),
            cursor: Cursor::default(),
            first: Vec::new(),
            worst: Vec::new(),
            lost: 0,
        };
        Outliers {
            plan: plan.clone(),
            epoch_ns,
            points: step.points.iter().map(watched).collect(),
            blame: None,
            stops: step.periodic.as_ref().is_some_and(|periodic| periodic.stop_at_threshold),
            saved: None,
            budget: Budget::default(),
            follow_at: None,
            commands: Commands::default(),
            warnings: Vec::new(),
        }
    }

    fn trace(&mut self, machine: &Machine, guardian: &mut Guardian) {
        match Blame::start(machine, guardian) {
            Ok(blame) => {
                if !blame.shortfalls().is_empty() {
                    let text = format!("blame is coarser on this kernel: {}", blame.shortfalls().join("; "));
                    self.warn("blame-coarse", text, None);
                }
                self.blame = Some(blame);
            }
            Err(unavailable) => {
                let text =
                    format!("events above the threshold are not explained: no trace: {}", unavailable.reason);
                self.warn("no-blame", text, Some(unavailable.remedy));
            }
        }
    }

    fn warn(&mut self, id: &str, text: String, remedy: Option<&str>) {
        self.warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.map(str::to_owned) });
    }

    /// What the measuring threads write to, where there is a trace.
    pub(crate) fn trace_files(&self) -> Option<TraceFiles> {
        let own = self.blame.as_ref().map(|blame| (blame.marker(), blame.switch()));
        let foreign = self.plan.actions.iter().find_map(|action| match action {
            Action::MarkTrace(directory) => {
                Some((directory.join("trace_marker"), directory.join("tracing_on")))
            }
            _ => None,
        });
        let (marker, switch) = foreign.or(own)?;
        Some(TraceFiles { marker, switch: self.stops.then_some(switch) })
    }

    /// How often to look without being called.
    pub fn period(&self) -> Option<Duration> {
        let watching = self.blame.as_ref().is_some_and(Blame::is_watching);
        (watching || self.plan.worst.is_some()).then_some(SECOND)
    }

    /// Takes what there is since the last time, explained and acted upon.
    pub fn take(&mut self, slots: &Slots) -> Vec<Outlier> {
        self.blame.iter_mut().for_each(Blame::look);
        if let Some(wanted) = self.plan.worst {
            self.follow(slots, wanted.into(), Instant::now());
        }
        let fresh = self.fresh(slots);
        if fresh.is_empty() {
            return Vec::new();
        }
        let attended = self.attended(&fresh);
        if attended.contains(&true) {
            self.read();
        }
        let mut taken = Vec::new();
        for ((point, sample), attended) in fresh.into_iter().zip(attended) {
            let outlier = self.outlier(slots, point, sample, attended);
            self.keep(point, sample, outlier.clone());
            taken.push(outlier);
        }
        taken
    }

    /// Exceedances not taken yet, by point.
    fn fresh(&mut self, slots: &Slots) -> Vec<(usize, Exceedance)> {
        let mut fresh = Vec::new();
        for (point, watched) in self.points.iter_mut().enumerate() {
            watched.lost +=
                slots.exceedances(point, &mut watched.cursor, |sample| fresh.push((point, sample)));
        }
        fresh
    }

    /// Which of them are attended to: the worst, as many as the budget allows.
    fn attended(&mut self, fresh: &[(usize, Exceedance)]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..fresh.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(fresh[*index].1.value));
        let mut attended = vec![false; fresh.len()];
        let granted = self.budget.grant(fresh.len(), Instant::now());
        order.into_iter().take(granted).for_each(|index| attended[index] = true);
        attended
    }

    /// Reads the trace. What was measured does not depend on it.
    fn read(&mut self) {
        let Some(Err(error)) = self.blame.as_mut().map(Blame::read) else { return };
        if !self.warnings.iter().any(|warning| warning.id == "trace-failed") {
            self.warn("trace-failed", format!("the trace cannot be read: {error}"), None);
        }
    }

    fn outlier(&mut self, slots: &Slots, point: usize, sample: Exceedance, attended: bool) -> Outlier {
        let cpu = self.points[point].cpu;
        let at = sample.at.saturating_sub(self.epoch_ns);
        let from = sample.at.saturating_sub(sample.value);
        let window = Window { cpu, thread: slots.thread(point), from, until: sample.at };
        let blame = self.blame.as_ref().filter(|_| attended && self.plan.blame);
        let cause = blame.map(|blame| blame.explain(&window)).unwrap_or_default();
        let outlier = Outlier { at, cpu, value: sample.value, cause };
        if attended {
            self.act(&outlier);
        }
        outlier
    }

    fn act(&mut self, outlier: &Outlier) {
        for action in self.plan.actions.clone() {
            match action {
                Action::Continue | Action::MarkTrace(_) => {}
                Action::Stop | Action::SaveTrace => self.save(outlier.value),
                Action::Exec(command) => self.execute(&command, outlier),
                Action::Signal(process) => self.signal(process),
            }
        }
    }

    /// Saves the trace of the first exceedance; where the worst are looked for, of the longest.
    fn save(&mut self, value: u64) {
        let wanted = self.saved.is_none_or(|saved| self.plan.worst.is_some() && saved < value);
        let (Some(path), Some(blame), true) = (&self.plan.trace_file, &self.blame, wanted) else {
            return;
        };
        self.saved = Some(value);
        if let Err(error) = blame.save(path) {
            let remedy = "choose a file in a directory with room that you may write to";
            self.warn(TRACE_LOST, format!("the trace is not saved: {error:#}"), Some(remedy));
        }
    }

    fn execute(&mut self, command: &str, outlier: &Outlier) {
        if let Err(error) = self.commands.execute(command, outlier) {
            self.failed(FAILED_ACTIONS[0], format!("{command:?} does not start: {error}"));
        }
        self.hear(Duration::ZERO);
    }

    fn signal(&mut self, process: u32) {
        let Some(pid) = Pid::from_raw(process as i32) else { return };
        if let Err(error) = kill_process(pid, Signal::USR1) {
            self.failed(FAILED_ACTIONS[1], format!("no signal was sent to process {process}: {error}"));
        }
    }

    /// Hears of commands that ended, and waits so long for the others.
    fn hear(&mut self, timeout: Duration) {
        for (command, how) in self.commands.ended(timeout) {
            self.failed(FAILED_ACTIONS[1], format!("{command:?} failed: {how}"));
        }
    }

    /// The same failure is reported once.
    fn failed(&mut self, id: &str, text: String) {
        if !self.warnings.iter().any(|warning| warning.text == text) {
            self.warn(id, text, None);
        }
    }

    fn keep(&mut self, point: usize, sample: Exceedance, outlier: Outlier) {
        let watched = &mut self.points[point];
        if watched.first.len() < KEPT {
            watched.first.push(sample);
        }
        watched.worst.push(outlier);
        let all = self.points.iter().map(|watched| watched.worst.len()).sum::<usize>();
        match self.plan.worst {
            // The worst of all threads together.
            Some(wanted) if all > wanted as usize => {
                let least = self.points.iter_mut().min_by_key(|watched| least(&watched.worst));
                least.map(|watched| watched.worst.remove(least_at(&watched.worst)));
            }
            None if self.points[point].worst.len() > KEPT => {
                let worst = &mut self.points[point].worst;
                worst.remove(least_at(worst));
            }
            _ => {}
        }
    }

    /// From the first second on the threshold is the worst but so many.
    fn follow(&mut self, slots: &Slots, wanted: u64, now: Instant) {
        if now < *self.follow_at.get_or_insert(now + SECOND) {
            return;
        }
        self.follow_at = Some(now + SECOND);
        let points = (0..self.points.len()).map(|point| slots.snapshot(point).histogram);
        if let Some(threshold) = largest_but(points, wanted) {
            slots.set_threshold(threshold);
        }
    }

    /// The outliers of a point in order of time, and its first exceedances.
    pub(crate) fn of_point(&self, point: usize) -> (Vec<Outlier>, Vec<Exceedance>) {
        let watched = &self.points[point];
        (watched.worst.clone(), watched.first.clone())
    }

    /// Ends the trace, and says what was not looked into.
    pub fn finish(&mut self, guardian: &mut Guardian) {
        self.hear(GRACE);
        self.sum_up();
        if let Some(Err(error)) = self.blame.take().map(|blame| blame.finish(guardian)) {
            self.warn("trace-left", format!("{error:#}"), None);
        }
    }

    fn sum_up(&mut self) {
        if let (Some(path), Some(_), None) = (&self.plan.trace_file, &self.blame, self.saved) {
            let why = match self.plan.worst {
                None => "no event was above the threshold",
                Some(_) => "no event after the first second was among the longest",
            };
            let text = format!("{why}: there is no trace in {}", path.display());
            self.warn("no-trace", text, None);
        }
        let lost: u64 = self.points.iter().map(|watched| watched.lost).sum();
        if lost > 0 {
            let text = format!(
                "{} above the threshold came too fast to be taken: only counted",
                counted(lost, "event")
            );
            self.warn("outliers-lost", text, Some("choose a higher threshold"));
        }
        if self.budget.refused > 0 {
            let text = format!(
                "{} above the threshold {} neither explained nor acted upon: more than {ATTENDED} in a second",
                counted(self.budget.refused, "event"),
                were(self.budget.refused)
            );
            self.warn("outliers-unattended", text, Some("choose a higher threshold"));
        }
    }
}

/// The CPU of a point's thread; any of the step's where it has none of its own.
fn cpu(step: &Step, point: &Point) -> u32 {
    match point.params.get("cpu") {
        Some(ParamValue::Number(cpu)) => *cpu as u32,
        _ => step.cpus.first().copied().unwrap_or(0),
    }
}

fn least_at(outliers: &[Outlier]) -> usize {
    (0..outliers.len()).min_by_key(|index| outliers[*index].value).unwrap_or(0)
}

/// The least value; above all where there is none.
fn least(outliers: &[Outlier]) -> u64 {
    outliers.iter().map(|outlier| outlier.value).min().unwrap_or(u64::MAX)
}

/// The value that so many others reach, of all histograms together, to the
/// width of a bucket; `None` where there are not so many.
fn largest_but(histograms: impl Iterator<Item = Histogram>, wanted: u64) -> Option<u64> {
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    for histogram in histograms {
        buckets.extend(histogram.buckets_ns().map(|(low, _, count)| (low as u64, count)));
    }
    buckets.sort_unstable_by_key(|(low, _)| std::cmp::Reverse(*low));
    let mut sum = 0;
    let reaches = |(_, count): &&(u64, u64)| {
        sum += count;
        sum >= wanted
    };
    buckets.iter().find(reaches).map(|(low, _)| *low)
}

/// How many outliers are attended to.
#[derive(Debug, Default)]
struct Budget {
    second: Option<Instant>,
    spent: u32,
    refused: u64,
}

impl Budget {
    /// As many of those wanted as this second still allows.
    fn grant(&mut self, wanted: usize, now: Instant) -> usize {
        if self.second.is_none_or(|second| now >= second + SECOND) {
            (self.second, self.spent) = (Some(now), 0);
        }
        let granted = wanted.min((ATTENDED - self.spent) as usize);
        self.spent += granted as u32;
        self.refused += (wanted - granted) as u64;
        granted
    }
}

/// Commands that were started. The measurement goes on meanwhile, and the screen stays as it is.
#[derive(Default)]
struct Commands {
    running: usize,
    channel: Option<(Sender<Ended>, Receiver<Ended>)>,
}

/// A command, and what was wrong with its end.
type Ended = (String, Option<String>);

impl Commands {
    fn execute(&mut self, command: &str, outlier: &Outlier) -> std::io::Result<()> {
        let mut child = start(command, outlier)?;
        let sender = self.channel.get_or_insert_with(channel).0.clone();
        let command = command.to_owned();
        // Only waits: a command that ended must not stay as a zombie.
        std::thread::Builder::new().spawn(move || {
            let how = match child.wait() {
                Ok(status) => (!status.success()).then(|| status.to_string()),
                Err(error) => Some(error.to_string()),
            };
            // A receiver that does not wait any more gets nothing.
            let _ = sender.send((command, how));
        })?;
        self.running += 1;
        Ok(())
    }

    /// Those that failed since the last time, or do so while they are waited for.
    fn ended(&mut self, timeout: Duration) -> Vec<(String, String)> {
        let until = Instant::now() + timeout;
        let mut failed = Vec::new();
        let Some((_, receiver)) = &self.channel else { return failed };
        while self.running > 0
            && let Ok((command, how)) = receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.running -= 1;
            failed.extend(how.map(|how| (command, how)));
        }
        failed
    }
}

fn start(command: &str, outlier: &Outlier) -> std::io::Result<Child> {
    let causes: Vec<String> =
        outlier.cause.iter().map(|c| format!("{} {} {}", c.kind, c.name, c.ns)).collect();
    let environment = [
        ("LATSCOPE_CPU", outlier.cpu.to_string()),
        ("LATSCOPE_NS", outlier.value.to_string()),
        ("LATSCOPE_CAUSE", causes.join("; ")),
    ];
    latscope_os::worker::shell(command, environment)
}

#[cfg(test)]
mod tests;
