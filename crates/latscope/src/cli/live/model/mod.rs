//! Model of a live screen: the data of a run that it shows. It is pure, and is updated with the events that observers
//! get. Its size does not grow with the length of the run.

use super::seconds::{Seconds, fresh_max};
use super::words;
use latscope_bench::recorder::Snapshot;
use latscope_core::histogram::Histogram;
use latscope_core::plan::{MeasurementPoint, Plan, PlanStep};
use latscope_core::report::{Outlier, Warning};
use latscope_engine::criteria::Standing;
use latscope_engine::observers::{StepRound, StepSnapshot};
use latscope_engine::remaining::{RunTimeEstimate, format_approximate};
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;

/// Outliers that are kept for the ticker.
const KEPT: usize = 100;

/// Snapshots that come faster are passed over: ten a second are enough for
/// eyes, and the coordinator may share its CPU with a measuring thread.
const LEAST_GAP: u64 = 90_000_000;

/// All that is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveModel {
    /// Description of the measurement, in a line.
    pub head: String,
    /// The measuring threads, in the order of the plan.
    pub rows: Vec<LiveThreadRow>,
    /// All of them together.
    pub all: LiveThreadRow,
    /// True if the run looks for outliers.
    pub watching: bool,
    /// Threshold above which an event is an outlier, ns.
    pub threshold: Option<u64>,
    /// Warnings for readers of the numbers, oldest first, each once.
    pub warnings: Vec<String>,
    /// The last outliers, latest first.
    pub outliers: VecDeque<Outlier>,
    /// Outliers of the whole run.
    pub outlier_count: u64,
    /// State of the criteria.
    pub standings: Vec<Standing>,
    /// Name of the command that measures.
    job: String,
    /// ns since the epoch of the run: now, and when what is measured now was begun.
    at: u64,
    began: u64,
    step: Option<(PlanStep, StepRound)>,
    /// True if the rows are of several kinds, measured one after the other. Then `all` is the present row.
    kinds: bool,
    /// Point that is measured now.
    point: Option<MeasurementPoint>,
    /// Progress of a run of several steps.
    remaining: Option<RunTimeEstimate>,
}

/// Data of a measuring thread, or of all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveThreadRow {
    /// Label of the row.
    pub label: String,
    /// Histogram of the row's events.
    pub histogram: Histogram,
    /// Activations that did not take place.
    pub missed: u64,
    /// Events before their time.
    pub early: u64,
    /// Time of the largest value, ns since the epoch of the run.
    pub max_at: u64,
    /// The largest value of each second.
    pub seconds: Seconds,
    /// Events a second, over the last full second.
    pub rate: Option<f64>,
    /// Time of the last count of the events for the rate, and the number of events then.
    mark: Option<(u64, u64)>,
}

impl LiveThreadRow {
    fn new(label: String) -> LiveThreadRow {
        LiveThreadRow { label, ..LiveThreadRow::default() }
    }

    fn apply_snapshot(&mut self, snapshot: &Snapshot, at: u64) {
        let fresh = fresh_max(&self.histogram, &snapshot.histogram);
        self.histogram = snapshot.histogram.clone();
        (self.missed, self.early, self.max_at) = (snapshot.missed, snapshot.early, snapshot.max_at);
        self.update_rate(fresh, at);
    }

    fn update_rate(&mut self, fresh: Option<f64>, at: u64) {
        self.seconds.record_max(at / SECOND, fresh);
        let count = self.histogram.count();
        let (since, before) = *self.mark.get_or_insert((at, count));
        if at >= since + SECOND {
            self.rate = Some((count - before) as f64 * 1e9 / (at - since) as f64);
            self.mark = Some((at, count));
        }
    }

    /// Becomes the sum of these rows.
    fn sum_rows(&mut self, rows: &[LiveThreadRow], at: u64) {
        // What has not begun does not know its tick yet.
        let mut begun = rows.iter().map(|row| &row.histogram).filter(|histogram| histogram.count() > 0);
        let Some(first) = begun.next() else { return };
        let merged = begun.fold(first.clone(), |mut sum, histogram| {
            sum.merge(histogram);
            sum
        });
        let fresh = fresh_max(&self.histogram, &merged);
        self.histogram = merged;
        self.missed = rows.iter().map(|row| row.missed).sum();
        self.early = rows.iter().map(|row| row.early).sum();
        let largest = |row: &&LiveThreadRow| row.histogram.max().map(|ns| ns as u64);
        self.max_at = rows.iter().max_by_key(largest).map_or(0, |row| row.max_at);
        self.update_rate(fresh, at);
    }
}

impl LiveModel {
    /// Sets the model to the beginning of the run.
    pub fn start_run(&mut self, plan: &Plan) {
        self.warnings.extend_from_slice(&plan.notes);
        self.watching = plan.on_threshold.is_some();
        self.job.clone_from(&plan.job);
        self.head = format!("latscope {}", plan.job);
        let several = plan.schedule().len() > 1 || plan.steps.iter().any(words::is_of_kinds);
        self.remaining = several.then(|| RunTimeEstimate::for_plan(plan, latscope_probes::setup_s));
        if let Some(step) = plan.steps.iter().find(|step| step.periodic.is_some()) {
            self.begin_step(&step.in_round(0), StepRound::of(step, 0));
        }
    }

    fn begin_step(&mut self, step: &PlanStep, round: StepRound) {
        self.head = format!("latscope {}  {}", self.job, words::what_runs(step));
        self.rows = words::point_labels(step).into_iter().map(LiveThreadRow::new).collect();
        self.kinds = words::is_of_kinds(step);
        let of_cpus = self.is_of_cpus();
        self.all = LiveThreadRow::new(match &self.rows[..] {
            [only] => only.label.clone(),
            _ if self.kinds => "now".to_owned(),
            _ if of_cpus => "all".to_owned(),
            _ => "all of them".to_owned(),
        });
        self.threshold = step.periodic.as_ref().and_then(|periodic| periodic.threshold);
        (self.at, self.began) = (0, 0);
        self.step = Some((step.clone(), round));
    }

    /// Updates the model with the state of the step.
    pub fn apply_step_snapshot(&mut self, live: &StepSnapshot) {
        let known = self
            .step
            .as_ref()
            .is_some_and(|(step, round)| step.points == live.step.points && *round == live.round);
        if !known {
            self.begin_step(live.step, live.round);
        } else if self.at > 0 && live.at < self.at + LEAST_GAP {
            return;
        }
        (self.at, self.began) = (live.at, live.began);
        for (row, snapshot) in self.rows.iter_mut().zip(&live.points) {
            row.apply_snapshot(snapshot, live.at);
        }
        if !self.kinds {
            return self.all.sum_rows(&self.rows, live.at);
        }
        let present = self.present();
        if let Some((row, snapshot)) = self.rows.get(present).zip(live.points.get(present)) {
            // Another one begins anew.
            if self.all.histogram.count() > row.histogram.count() {
                self.all = LiveThreadRow::new(self.all.label.clone());
            }
            self.all.apply_snapshot(snapshot, live.at);
        }
    }

    /// A point is begun.
    pub fn begin_point(&mut self, point: &MeasurementPoint) {
        self.point = Some(point.clone());
    }

    /// The index of what is measured now, where rows are measured one after the other.
    fn present(&self) -> usize {
        let points = self.step.iter().flat_map(|(step, _)| &step.points);
        points
            .enumerate()
            .find(|(_, point)| Some(*point) == self.point.as_ref())
            .map_or(0, |(index, _)| index)
    }

    /// The number of the row that has to be seen, whichever is chosen: the present one, where it is not all of them.
    pub fn in_view(&self) -> usize {
        if self.kinds { self.present() + 1 } else { 0 }
    }

    /// Name of the row with this number; for number 0 the present row, if rows are measured one after the other.
    pub fn row_name(&self, number: usize) -> String {
        let number = if number == 0 { self.in_view() } else { number };
        let label = &self.row_at(number).label;
        if label == "all" { "all CPUs".to_owned() } else { words::row_name(label) }
    }

    /// Position in the run: by time, or by the row, if rows are measured one after the other.
    pub fn position(&self) -> String {
        match self.kinds {
            true => format!("row {} of {}", self.in_view(), self.rows.len()),
            false => words::elapsed(self.elapsed(), self.time_limit_ns()),
        }
    }

    /// A step is over.
    pub fn finish_step(&mut self) {
        self.remaining.iter_mut().for_each(RunTimeEstimate::finish_step);
    }

    /// `about 20s left`, of a run of several steps.
    pub fn remaining_text(&self) -> Option<String> {
        let left = self.remaining.as_ref()?.time_left()?;
        Some(format!("{} left", format_approximate(left)))
    }

    /// Returns true if the rows are CPUs, or threads on them.
    pub fn is_of_cpus(&self) -> bool {
        let is_number = |label: &str| label.chars().all(|c| c.is_ascii_digit());
        self.rows.iter().all(|row| row.label.starts_with('#') || is_number(&row.label))
    }

    /// An event above the threshold.
    pub fn add_outlier(&mut self, outlier: &Outlier) {
        self.outlier_count += 1;
        // They come CPU by CPU.
        let place = self.outliers.iter().position(|other| other.at <= outlier.at);
        self.outliers.insert(place.unwrap_or(self.outliers.len()), outlier.clone());
        self.outliers.truncate(KEPT);
    }

    /// Something a reader must know.
    pub fn add_warning(&mut self, warning: &Warning) {
        let text = words::warning(warning);
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// `round 2 of 3`, where the step has several: the figures are of that round.
    pub fn round(&self) -> Option<String> {
        self.step.as_ref()?.1.round_text()
    }

    /// Time for which the present points have been measured, ns.
    pub fn elapsed(&self) -> u64 {
        self.at.saturating_sub(self.began)
    }

    /// Limit on the time of the step, ns; `None` without a limit.
    pub fn time_limit_ns(&self) -> Option<u64> {
        self.step.as_ref().map(|(step, _)| step.stop.limit_ns).filter(|limit| *limit != u64::MAX)
    }

    /// Events wanted of all threads together; `None` without a limit.
    pub fn event_limit(&self) -> Option<u64> {
        let each =
            self.step.as_ref().map(|(step, _)| step.stop.events).filter(|events| *events != u64::MAX)?;
        if self.kinds { Some(each) } else { each.checked_mul(self.rows.len() as u64) }
    }

    /// Progress of the step, 0 to 1, by the limit that is nearer; `None` without a limit.
    pub fn progress(&self) -> Option<f64> {
        let share = self.measurement_progress()?;
        match self.kinds {
            true => Some((self.present() as f64 + share) / self.rows.len().max(1) as f64),
            false => Some(share),
        }
    }

    /// Progress of the present measurement, 0 to 1.
    fn measurement_progress(&self) -> Option<f64> {
        let share = |part: u64, whole: u64| (part as f64 / whole.max(1) as f64).min(1.0);
        let time = self.time_limit_ns().map(|duration| share(self.elapsed(), duration));
        let events = self.event_limit().map(|events| share(self.all.histogram.count(), events));
        time.into_iter().chain(events).reduce(f64::max)
    }

    /// Time since the largest value of a row, ns; `None` before there is one.
    pub fn age_of_max(&self, row: &LiveThreadRow) -> Option<u64> {
        (row.histogram.count() > 0).then(|| self.at.saturating_sub(row.max_at))
    }

    /// The row with this number, 0 being all of them together.
    pub fn row_at(&self, number: usize) -> &LiveThreadRow {
        number.checked_sub(1).and_then(|index| self.rows.get(index)).unwrap_or(&self.all)
    }

    /// Number of rows to choose from.
    pub fn choices(&self) -> usize {
        if self.rows.len() > 1 { self.rows.len() + 1 } else { 1 }
    }
}

#[cfg(test)]
mod tests;
