//! Treatment of events above the threshold: they are taken from the measuring threads, explained as far as possible,
//! and acted upon.

mod commands;

use crate::blame::{Blame, Explanation, OWN_BUDGET};
use commands::OutlierCommands;
use latscope_bench::recorder::{SampleRingCursor, Slots};
use latscope_core::catalogue::ids;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{Action, MeasurementPoint, OnThreshold, ParamValue, PlanStep};
use latscope_core::report::{Cause, Exceedance, Outlier, Warning};
use latscope_core::units::{count_with_noun, format_size, were};
use latscope_process::guardian::Guardian;
use latscope_trace::blame::{LateWakeWindow, kind};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The warning that a trace that was asked for could not be saved.
const TRACE_LOST: &str = "trace-lost";

/// The warnings that a file with what was recorded, which was asked for, is not complete.
pub const LOST_FILES: [&str; 2] = [TRACE_LOST, crate::timeline::LOST];

/// The warnings that an action that was asked for could not be carried out.
pub const FAILED_ACTIONS: [&str; 2] = ["no-command", "action-failed"];

/// Longest wait at the end of a step for commands that still run.
const GRACE: Duration = Duration::from_secs(1);

/// Outliers of a point that are kept, the longest; each of them is explained.
const KEPT: usize = 512;

/// First exceedances of a point that are kept as they came.
const FIRST: usize = 64;

/// Actions that are carried out in a second.
const ATTENDED: u32 = 50;

/// Shortest time between two readings of the trace, which takes CPU time.
const PAUSE: Duration = Duration::from_millis(20);

const SECOND: Duration = Duration::from_secs(1);

/// Time after which events wait for the next look: signals, messages and the end of the run must not wait for a long
/// trace.
const LOOK: Duration = Duration::from_millis(100);

/// Time after the end of a step in which events are explained. Those left have no cause.
const LAST: Duration = Duration::from_secs(1);

/// Watches the exceedances of one step.
pub struct Outliers {
    plan: OnThreshold,
    /// Stamp of `CLOCK_MONOTONIC` at the epoch of the run.
    epoch_ns: u64,
    points: Vec<OutlierWatchPoint>,
    blame: Option<Blame>,
    /// True if the first exceedance stops the trace.
    stops: bool,
    /// Duration of the event whose trace is saved, ns.
    saved: Option<u64>,
    /// Exceedances that wait for the next reading of the trace.
    waiting: Vec<(usize, Exceedance)>,
    /// Time at which the trace was read last.
    read_at: Option<Instant>,
    /// True if the time for explanations is over.
    cut_short: bool,
    /// The time of the first event that was taken.
    begin: Option<u64>,
    budget: ActionRateLimit,
    commands: OutlierCommands,
    /// Events that real-time throttling, or a quota, delayed, and the sentence that names the cause.
    held_back: BTreeMap<&'static str, (u64, String)>,
    /// Warnings about problems on the way.
    pub warnings: Vec<Warning>,
}

/// A point that is watched.
#[derive(Default)]
struct OutlierWatchPoint {
    cpu: u32,
    /// True if its thread waits for nothing but its timer.
    by_timer: bool,
    cursor: SampleRingCursor,
    first: Vec<Exceedance>,
    /// The longest, in the order in which they came.
    worst: Vec<Outlier>,
    lost: u64,
}

/// The files of a trace instance that measuring threads write to.
pub(crate) struct TraceFiles {
    /// Path of the instance's `trace_marker`.
    pub marker: PathBuf,
    /// `tracing_on`, to be switched off at the first exceedance, if that ends the run.
    pub switch: Option<PathBuf>,
}

impl Outliers {
    /// Prepares for a step. Where the kernel cannot be traced outliers are
    /// taken without a cause, and a warning says so.
    pub fn start_step(
        step: &PlanStep,
        plan: &OnThreshold,
        epoch_ns: u64,
        machine: &Machine,
        guardian: &Guardian,
    ) -> Outliers {
        let mut outliers = Outliers::for_step(step, plan, epoch_ns);
        if plan.blame || plan.trace_file.is_some() {
            outliers.trace(machine, guardian);
        }
        outliers
    }

    fn for_step(step: &PlanStep, plan: &OnThreshold, epoch_ns: u64) -> Outliers {
        let watched = |point| OutlierWatchPoint {
            cpu: cpu(step, point),
            by_timer: point.probe == ids::WAKE_TIMER && !point.params.contains_key(param::VIA),
            ..OutlierWatchPoint::default()
        };
        Outliers {
            plan: plan.clone(),
            epoch_ns,
            points: step.points.iter().map(watched).collect(),
            blame: None,
            stops: step.periodic.as_ref().is_some_and(|periodic| periodic.stop_at_threshold),
            saved: None,
            waiting: Vec::new(),
            read_at: None,
            cut_short: false,
            begin: None,
            budget: ActionRateLimit::default(),
            commands: OutlierCommands::default(),
            held_back: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    fn trace(&mut self, machine: &Machine, guardian: &Guardian) {
        match Blame::start_trace(machine, &self.plan.traced, guardian) {
            Ok(blame) => {
                if !blame.shortfalls().is_empty() {
                    let text = format!("blame is coarser on this kernel: {}", blame.shortfalls().join("; "));
                    self.add_warning("blame-coarse", text, None);
                }
                self.blame = Some(blame);
            }
            Err(unavailable) => {
                let text = format!("{}: no trace: {}", self.unexplained(), unavailable.reason);
                self.add_warning("no-blame", text, Some(unavailable.remedy));
            }
        }
    }

    /// Returns the words for which events have no cause where there is no trace.
    fn unexplained(&self) -> String {
        match self.plan.worst {
            Some(1) => "the longest event is not explained".to_owned(),
            Some(wanted) => format!("the {wanted} longest events are not explained"),
            None => "events above the threshold are not explained".to_owned(),
        }
    }

    /// Returns the words behind a number of events, and the remedy where they are too many.
    fn which(&self) -> (&'static str, &'static str) {
        match self.plan.worst {
            Some(_) => ("", "choose a smaller number of events: --blame N"),
            None => (" above the threshold", "choose a higher threshold"),
        }
    }

    fn add_warning(&mut self, id: &str, text: String, remedy: Option<&str>) {
        self.warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.map(str::to_owned) });
    }

    /// Returns the files that the measuring threads write to; `None` if there is no trace.
    pub(crate) fn trace_files(&self) -> Option<TraceFiles> {
        let own = self.blame.as_ref().map(|blame| (blame.marker_path(), blame.switch_path()));
        let foreign = self.plan.actions.iter().find_map(|action| match action {
            Action::MarkTrace(directory) => {
                Some((directory.join("trace_marker"), directory.join("tracing_on")))
            }
            _ => None,
        });
        let (marker, switch) = foreign.or(own)?;
        Some(TraceFiles { marker, switch: self.stops.then_some(switch) })
    }

    /// Time between two looks without a call.
    pub fn period(&self) -> Option<Duration> {
        self.blame.is_some().then_some(SECOND)
    }

    /// Time until waiting exceedances are examined; `None` if no exceedance waits.
    pub fn examination_delay(&self) -> Option<Duration> {
        let since = self.read_at.filter(|_| !self.waiting.is_empty())?;
        Some(PAUSE.saturating_sub(since.elapsed()))
    }

    /// Notes that the run was, or may have been, frozen or stopped until now. Call it before the events are taken.
    pub(crate) fn note_halt(&mut self) {
        self.blame.iter_mut().for_each(Blame::note_halt);
    }

    /// Lets every event exceed the threshold until there are as many as the plan wants of the
    /// worst. Call it before the first event.
    pub(crate) fn arm(&self, slots: &Slots) {
        if self.plan.worst.is_some() {
            slots.set_threshold(0);
        }
    }

    /// Takes what there is since the last time, explained and acted upon; those that come
    /// soon after others are taken with the next.
    pub fn take_outliers(&mut self, slots: &Slots) -> Vec<Outlier> {
        self.hear_of(slots);
        self.blame.iter_mut().for_each(Blame::refresh_state);
        let now = Instant::now();
        if self.waiting.is_empty() || self.read_at.is_some_and(|at| now < at + PAUSE) {
            return Vec::new();
        }
        self.explain_waiting(slots, now, LOOK)
    }

    /// Takes the last ones; nothing waits any more.
    pub(crate) fn last(&mut self, slots: &Slots) -> Vec<Outlier> {
        // At once: what other processes do from now must not displace what there is.
        self.read_trace(Blame::read_last);
        self.hear_of(slots);
        let mut taken = self.explain_waiting(slots, Instant::now(), LAST);
        if !self.waiting.is_empty() {
            taken.extend(self.take_unexplained(slots));
        }
        self.add_longest(slots);
        taken
    }

    /// Takes the exceedances from the measuring threads. Where the worst are looked for, the
    /// threshold follows them.
    fn hear_of(&mut self, slots: &Slots) {
        // Where the worst are looked for, the first are none in particular.
        let first = if self.plan.worst.is_some() { 0 } else { FIRST };
        for (point, watched) in self.points.iter_mut().enumerate() {
            let take = |sample| {
                if watched.first.len() < first {
                    watched.first.push(sample);
                }
                self.waiting.push((point, sample));
            };
            watched.lost += slots.exceedances(point, &mut watched.cursor, take);
        }
        let Some(wanted) = self.plan.worst.map(|wanted| wanted as usize) else { return };
        let kept = self.points.iter().flat_map(|watched| watched.worst.iter().map(|outlier| outlier.value));
        let waiting = self.waiting.iter().map(|(_, sample)| sample.value);
        if let Some(threshold) = largest_but(kept.chain(waiting).collect(), wanted) {
            slots.set_threshold(threshold);
            self.waiting.retain(|(_, sample)| sample.value >= threshold);
        }
    }

    /// Returns the exceedances that waited, in order of time, up to those for which `limit` leaves no time: these wait
    /// on. Those among the longest are explained, the longest first, before the trace of any can be overwritten.
    fn explain_waiting(&mut self, slots: &Slots, now: Instant, limit: Duration) -> Vec<Outlier> {
        let mut waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Vec::new();
        }
        self.read_at = Some(now);
        self.read_trace(Blame::read_trace);
        waiting.sort_by_key(|(_, sample)| std::cmp::Reverse(sample.value));
        let mut taken: Vec<Outlier> = Vec::new();
        let mut waiting = waiting.into_iter();
        for (point, sample) in waiting.by_ref() {
            let outlier = self.build_outlier(slots, point, sample);
            self.act(&outlier, now);
            taken.push(outlier.clone());
            self.keep_worst(point, outlier);
            if now.elapsed() > limit {
                break;
            }
        }
        self.waiting.extend(waiting);
        taken.sort_by_key(|outlier| outlier.at);
        if self.plan.worst.is_some() {
            // In the first second each event is among the worst so far: that is no news.
            let begin = *self.begin.get_or_insert(taken[0].at);
            taken.retain(|outlier| outlier.at >= begin + SECOND.as_nanos() as u64);
        }
        taken
    }

    /// Takes the exceedances that still wait without an explanation, and warns of them.
    fn take_unexplained(&mut self, slots: &Slots) -> Vec<Outlier> {
        let count = self.waiting.len() as u64;
        self.cut_short = true;
        let taken = self.explain_waiting(slots, Instant::now(), Duration::MAX);
        let text = format!(
            "{} {} not explained: the trace takes longer to read than {} s after the end",
            count_with_noun(count, "event"),
            were(count),
            LAST.as_secs()
        );
        self.add_warning("blame-cut-short", text, Some(self.which().1));
        taken
    }

    /// Reads the trace. What was measured does not depend on it.
    fn read_trace(&mut self, how: fn(&mut Blame) -> io::Result<()>) {
        let Some(Err(error)) = self.blame.as_mut().map(how) else { return };
        if !self.warnings.iter().any(|warning| warning.id == "trace-failed") {
            self.add_warning("trace-failed", format!("the trace cannot be read: {error}"), None);
        }
    }

    fn build_outlier(&mut self, slots: &Slots, point: usize, sample: Exceedance) -> Outlier {
        let cpu = self.points[point].cpu;
        let at = sample.at.saturating_sub(self.epoch_ns);
        let outlier = Outlier { at, cpu, value: sample.value, ..Outlier::default() };
        if !self.is_kept(point, sample.value) || !self.plan.blame {
            return outlier;
        }
        let from = sample.at.saturating_sub(sample.value);
        let (thread, by_timer) = (slots.thread(point), self.points[point].by_timer);
        let window = LateWakeWindow { cpu, thread, from, until: sample.at, by_timer };
        let Some(blame) = &mut self.blame else { return outlier };
        if self.cut_short {
            let (kind, name) = (kind::NOT_TRACED.to_owned(), "no time to read the trace".to_owned());
            return Outlier { cause: vec![Cause { kind, name, pid: 0, ns: sample.value }], ..outlier };
        }
        let Explanation { cause, stack, events } = blame.explain(&window);
        self.count_held_back(&cause);
        Outlier { cause, stack, events, ..outlier }
    }

    /// Counts an event that the scheduler delayed more than anything else did: only then the remedy helps.
    fn count_held_back(&mut self, cause: &[Cause]) {
        let Some(largest) = cause.first() else { return };
        if let Some(kind) = [kind::THROTTLING, kind::QUOTA].into_iter().find(|kind| largest.kind == *kind) {
            let (count, text) = self.held_back.entry(kind).or_default();
            *count += 1;
            text.clone_from(&largest.name);
        }
    }

    fn act(&mut self, outlier: &Outlier, now: Instant) {
        for action in self.plan.actions.clone() {
            match action {
                Action::Continue | Action::MarkTrace(_) => {}
                Action::Stop | Action::SaveTrace => self.save_trace(outlier.value),
                Action::Exec(_) | Action::Signal(_) if !self.budget.grants(now) => {}
                Action::Exec(command) => self.execute(&command, outlier),
                Action::Signal(process) => self.signal(process),
            }
        }
    }

    /// Saves the trace of the first exceedance; where the worst are looked for, of the longest.
    fn save_trace(&mut self, value: u64) {
        let wanted = self.saved.is_none_or(|saved| self.plan.worst.is_some() && saved < value);
        let (Some(path), Some(blame), true) = (&self.plan.trace_file, &mut self.blame, wanted) else {
            return;
        };
        self.saved = Some(value);
        if let Err(error) = blame.save_trace(path) {
            let remedy = "choose a file in a directory with room that you may write to";
            self.add_warning(TRACE_LOST, format!("the trace is not saved: {error:#}"), Some(remedy));
        }
    }

    fn execute(&mut self, command: &str, outlier: &Outlier) {
        if let Err(error) = self.commands.execute(command, outlier) {
            self.add_failure(FAILED_ACTIONS[0], format!("{command:?} does not start: {error}"));
        }
        self.add_command_failures(Duration::ZERO);
    }

    fn signal(&mut self, process: u32) {
        let Some(pid) = Pid::from_raw(process as i32) else { return };
        if let Err(error) = kill_process(pid, Signal::USR1) {
            self.add_failure(FAILED_ACTIONS[1], format!("no signal was sent to process {process}: {error}"));
        }
    }

    /// Hears of commands that ended, and waits so long for the others.
    fn add_command_failures(&mut self, timeout: Duration) {
        for (command, how) in self.commands.wait_for_failures(timeout) {
            self.add_failure(FAILED_ACTIONS[1], format!("{command:?} failed: {how}"));
        }
    }

    /// Adds a warning of a failure, unless the same text was added before.
    fn add_failure(&mut self, id: &str, text: String) {
        if !self.warnings.iter().any(|warning| warning.text == text) {
            self.add_warning(id, text, None);
        }
    }

    /// Returns true if an event of this length is among the longest so far.
    fn is_kept(&self, point: usize, value: u64) -> bool {
        let full = |kept: usize, least: u64, most: usize| kept < most || least < value;
        match self.plan.worst {
            Some(wanted) => {
                let kept = self.points.iter().map(|watched| watched.worst.len()).sum();
                let least = self.points.iter().map(|watched| least(&watched.worst)).min();
                full(kept, least.unwrap_or(0), wanted as usize)
            }
            None => {
                let worst = &self.points[point].worst;
                full(worst.len(), least(worst), KEPT)
            }
        }
    }

    fn keep_worst(&mut self, point: usize, outlier: Outlier) {
        self.points[point].worst.push(outlier);
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

    /// The longest event of each point stands in the list, also if it came too fast to be taken.
    fn add_longest(&mut self, slots: &Slots) {
        for point in 0..self.points.len() {
            let snapshot = slots.snapshot(point);
            let longest = snapshot.histogram.max().map_or(0, |max| max as u64);
            let known = self.points[point].worst.iter().map(|outlier| outlier.value).max();
            if self.points[point].lost > 0 && known.is_none_or(|known| known < longest) {
                let (at, cpu) = (snapshot.max_at, self.points[point].cpu);
                self.keep_worst(point, Outlier { at, cpu, value: longest, ..Outlier::default() });
            }
        }
    }

    /// The outliers of a point in order of time, and its first exceedances.
    pub(crate) fn of_point(&self, point: usize) -> (Vec<Outlier>, Vec<Exceedance>) {
        let watched = &self.points[point];
        let mut worst = watched.worst.clone();
        worst.sort_by_key(|outlier| outlier.at);
        (worst, watched.first.clone())
    }

    /// Ends the trace, and says what was not looked into.
    pub fn finish_step(&mut self, guardian: &Guardian) {
        self.add_command_failures(GRACE);
        self.sum_up();
        if let Some(Err(error)) = self.blame.take().map(|blame| blame.finish_trace(guardian)) {
            self.add_warning("trace-left", format!("{error:#}"), None);
        }
    }

    fn sum_up(&mut self) {
        let (which, remedy) = self.which();
        if let (Some(path), Some(_), None) = (&self.plan.trace_file, &self.blame, self.saved) {
            let text = format!("no event{which} was seen: there is no trace in {}", path.display());
            self.add_warning("no-trace", text, None);
        }
        let lost: u64 = self.points.iter().map(|watched| watched.lost).sum();
        if lost > 0 {
            let text =
                format!("{}{which} came too fast to be taken: only counted", count_with_noun(lost, "event"));
            self.add_warning("outliers-lost", text, Some(remedy));
        }
        if self.budget.refused > 0 {
            let text = format!(
                "{}{which} {} not acted upon: more than {ATTENDED} in a second",
                count_with_noun(self.budget.refused, "event"),
                were(self.budget.refused)
            );
            self.add_warning("outliers-unattended", text, Some(remedy));
        }
        self.sum_up_losses();
        for (kind, (count, name)) in std::mem::take(&mut self.held_back) {
            let (id, text, remedy) = held_back(kind, count, &name);
            self.add_warning(id, text, Some(remedy));
        }
    }

    /// Adds a warning of how many kept events have no trace because the buffer was too small, with the remedy.
    fn sum_up_losses(&mut self) {
        let kept = self.points.iter().flat_map(|watched| &watched.worst);
        let lost = |cause: &&Cause| cause.kind == kind::NOT_TRACED && cause.name.contains("buffer");
        let lost = kept.filter(|outlier| outlier.cause.iter().any(|cause| lost(&cause))).count() as u64;
        if let Some(buffer) = self.blame.as_ref().map(Blame::buffer).filter(|_| lost > 0) {
            let text = format!(
                "of {} a part of the trace was overwritten before it was read: each CPU's buffer holds {}",
                count_with_noun(lost, "event"),
                format_size(buffer)
            );
            self.add_warning("trace-overwritten", text, Some("give --buffer a larger size"));
        }
    }
}

/// The warning of events that the scheduler held back: its name, text and remedy.
fn held_back(kind: &str, count: u64, name: &str) -> (&'static str, String, &'static str) {
    let events = count_with_noun(count, "event");
    let is_own_budget = name.starts_with(OWN_BUDGET);
    let name = if name.is_empty() { String::new() } else { format!(": {name}") };
    if kind == kind::QUOTA {
        let text = format!("the CPU quota of a control group delayed {events}{name}");
        return ("quota", text, "raise the quota: cpu.max, or cpu.cfs_quota_us");
    }
    let text = format!("real-time throttling delayed {events}{name}");
    if is_own_budget {
        return ("rt-throttling", text, "raise cpu.rt_runtime_us of that group, or run in another one");
    }
    let remedy = "let that thread sleep, or set kernel.sched_rt_runtime_us to -1 (sysctl), from Linux 6.12 on \
        also sched/fair_server/cpuN/runtime in debugfs to 0";
    ("rt-throttling", text, remedy)
}

/// The CPU of a point's thread; any of the step's where it has none of its own.
fn cpu(step: &PlanStep, point: &MeasurementPoint) -> u32 {
    let own = point.params.get(param::CPU).and_then(ParamValue::as_number).map(|cpu| cpu as u32);
    own.or(step.cpus.first().copied()).unwrap_or(0)
}

fn least_at(outliers: &[Outlier]) -> usize {
    (0..outliers.len()).min_by_key(|index| outliers[*index].value).unwrap_or(0)
}

/// Least value of `outliers`; `u64::MAX` if there are no outliers.
fn least(outliers: &[Outlier]) -> u64 {
    outliers.iter().map(|outlier| outlier.value).min().unwrap_or(u64::MAX)
}

/// The value that so many reach; `None` where there are not so many.
fn largest_but(mut values: Vec<u64>, wanted: usize) -> Option<u64> {
    let at = values.len().checked_sub(wanted)?;
    if at == values.len() {
        return None;
    }
    Some(*values.select_nth_unstable(at).1)
}

/// Limit on how often something is done in a second. More would take CPU time from the measuring threads.
#[derive(Debug, Default)]
struct ActionRateLimit {
    second: Option<Instant>,
    spent: u32,
    refused: u64,
}

impl ActionRateLimit {
    /// Returns true if the limit of this second still permits a further action.
    fn grants(&mut self, now: Instant) -> bool {
        if self.second.is_none_or(|second| now >= second + SECOND) {
            (self.second, self.spent) = (Some(now), 0);
        }
        let granted = self.spent < ATTENDED;
        if granted {
            self.spent += 1;
        } else {
            self.refused += 1;
        }
        granted
    }
}

#[cfg(test)]
mod tests;
