//! Events of a run for its observers: progress, live screens, the file that is saved as results come in.

use crate::criteria::Standing;
use crate::remaining::{RunTimeEstimate, SetupCost, format_approximate};
use latscope_bench::recorder::Snapshot;
use latscope_core::plan::{MeasurementPoint, Params, Plan, PlanStep};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Exceedance, Measurement, Outlier, Report, Warning};
use latscope_core::units::format_time;
use latscope_process::guardian::UndoAction;
use latscope_process::terminal::status_width;
use rustix::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Event of a run, reported on the coordinator.
pub enum RunEvent<'a> {
    /// The run has begun.
    Started(&'a Plan),
    /// A worker began with a point; so many of all points were begun before.
    Point {
        /// Point that was begun.
        point: &'a MeasurementPoint,
        /// Index of the point in the order of the whole plan.
        index: usize,
        /// In which round it is measured.
        round: StepRound,
    },
    /// State of a step, at each observer's own pace.
    Snapshot(&'a StepSnapshot<'a>),
    /// Samples of a point that streams them, in order; so many before them
    /// were lost because they came faster than they could be taken.
    Samples {
        /// Index of the point in its step.
        point: usize,
        /// Samples since the last such event.
        samples: &'a [Exceedance],
        /// Number of samples that are missing before the first of them.
        lost: u64,
    },
    /// An event above the threshold, explained as far as it could be.
    Outlier(&'a Outlier),
    /// A signal that an observer asked for.
    Signal(i32),
    /// The descriptor that an observer waits for can be read.
    Input,
    /// A step is over and its measurements are in the report.
    Closed(&'a Report),
    /// The report, with what the present step has so far.
    Checkpoint(&'a Report),
    /// Report at a moment when a criterion is exceeded that was not exceeded before.
    Exceeded(&'a Report),
    /// State of the criteria of the run.
    Standings(&'a [Standing]),
    /// Something a reader of the numbers must know.
    Warning(&'a Warning),
    /// The run is over.
    Finished(&'a Report),
}

/// Position of a round among the rounds of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRound {
    /// Number of the round, from 1.
    pub number: u32,
    /// Number of rounds of the step.
    pub of: u32,
}

impl StepRound {
    /// A round of a step, by its number from 0.
    pub fn of(step: &PlanStep, round: u32) -> StepRound {
        StepRound { number: round + 1, of: step.rounds }
    }

    /// `round 2 of 3`, where there are several.
    pub fn round_text(self) -> Option<String> {
        (self.of > 1).then(|| format!("round {} of {}", self.number, self.of))
    }
}

/// State of a step while it runs.
pub struct StepSnapshot<'a> {
    /// Step that is running.
    pub step: &'a PlanStep,
    /// Records of the step's points, in their order.
    pub points: Vec<Snapshot>,
    /// Round of the step: the records are of this round alone.
    pub round: StepRound,
    /// Time at which the points measured now were begun, in nanoseconds since the epoch of the run.
    pub began: u64,
    /// Now, by the same clock.
    pub at: u64,
}

/// Watches a run; must not do long work, for the coordinator waits for it.
pub trait Observer {
    /// Reacts to an event of the run.
    fn observe(&mut self, event: &RunEvent);

    /// Time between two snapshots that the observer wants. The coordinator sleeps for as long.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// Time between two reports that the observer wants while a step lasts.
    fn checkpoints(&self) -> Option<Duration> {
        None
    }

    /// A descriptor to watch until it can be read: the keyboard.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Signals that it wants reported.
    fn signals(&self) -> &[i32] {
        &[]
    }

    /// Undoes the observer's changes: the guardian journals this before the run begins, and carries it out when the run
    /// is over, in whatever way.
    fn undo(&self) -> Option<UndoAction> {
        None
    }

    /// Request to end the run now, with the measurements so far, named by its source: `key q`.
    fn wants_end(&self) -> Option<&'static str> {
        None
    }
}

/// Form in which progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProgressStyle {
    /// `Bar` on a terminal, else `Plain`.
    #[default]
    Auto,
    /// One line that is rewritten.
    Bar,
    /// A line every ten seconds.
    Plain,
    /// No line of progress at all.
    None,
}

/// Time between two lines of progress that are not rewritten.
const PERIOD: Duration = Duration::from_secs(10);

/// Columns of a line that is rewritten on what is no terminal.
const COLUMNS: usize = 80;

/// Progress on stderr: one line that is rewritten on a terminal, a line every ten seconds otherwise.
pub struct ProgressDisplay {
    style: ProgressStyle,
    setup: SetupCost,
    total: usize,
    remaining: RunTimeEstimate,
    family: String,
    /// The most points that were begun: what is done again is done already.
    reached: usize,
    /// The point that was begun last.
    point: Option<(String, Params)>,
    /// The last figure: `L1 hit 1.08 ns, operation`.
    figure: Option<String>,
    drawn: Option<Instant>,
}

impl ProgressDisplay {
    /// Returns a display that shows nothing yet.
    pub fn new(setup: SetupCost) -> ProgressDisplay {
        let (remaining, family) = (RunTimeEstimate::default(), String::new());
        let (point, figure, drawn) = (None, None, None);
        ProgressDisplay {
            style: ProgressStyle::Auto,
            setup,
            total: 0,
            remaining,
            family,
            reached: 0,
            point,
            figure,
            drawn,
        }
    }

    /// Shows it in a form of the user's choice.
    #[must_use]
    pub fn in_style(self, style: ProgressStyle) -> ProgressDisplay {
        ProgressDisplay { style, ..self }
    }

    fn point(&mut self, point: &MeasurementPoint, index: usize) {
        self.reached = self.reached.max(index).min(self.total);
        let index = self.reached;
        point.probe.split('.').next().unwrap_or_default().clone_into(&mut self.family);
        self.point = Some((point.probe.clone(), point.params.clone()));
        if let Some(width) = self.line_width() {
            // Ten times a second is enough for eyes.
            if !self.is_due(Duration::from_millis(100)) {
                return;
            }
            let share = index * 20 / self.total.max(1);
            let bar = format!("{}{}", "━".repeat(share), "─".repeat(20 - share.min(20)));
            let left = self.time_left_text();
            let figure = self.figure.as_ref().map(|figure| format!("{figure} · ")).unwrap_or_default();
            let line =
                format!("{bar} {index}/{}{left}  {figure}{}: {}", self.total, point.probe, point.title);
            let line: String = line.chars().take(width - 1).collect();
            self.write_status(format_args!("\r\x1b[K{line}"));
        } else {
            self.print_progress();
        }
    }

    /// Says how far the run is, if that was not said of late.
    fn print_progress(&mut self) {
        if self.total > 0 && self.style != ProgressStyle::None && self.is_due(PERIOD) {
            let (family, index, left) = (&self.family, self.reached, self.time_left_text());
            let figure = self.figure.as_ref().map(|figure| format!("; {figure}")).unwrap_or_default();
            self.write_status(format_args!(
                "measuring {family} ({index} of {} points done{left}{figure})\n",
                self.total
            ));
        }
    }

    /// Takes the figure of the point that was begun last, so that a reader sees numbers long before the table.
    fn take_figure(&mut self, report: &Report) {
        let Some((probe, params)) = &self.point else { return };
        let of_point = |m: &&Measurement| m.probe == *probe && m.params == *params;
        let measured = report.measurements.iter().rev().find(of_point);
        self.figure = measured.and_then(figure).or_else(|| self.figure.take());
    }

    /// Returns true if the last text is older than `period`; the next one is then shown now.
    fn is_due(&mut self, period: Duration) -> bool {
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= period);
        if due {
            self.drawn = Some(Instant::now());
        }
        due
    }

    /// Columns of the line that is rewritten; `None` if lines are written one below the other.
    fn line_width(&self) -> Option<usize> {
        match self.style {
            ProgressStyle::Auto => status_width(),
            ProgressStyle::Bar => status_width().or(Some(COLUMNS)),
            ProgressStyle::Plain | ProgressStyle::None => None,
        }
    }

    /// `, about 32s left`, where that is known.
    fn time_left_text(&self) -> String {
        self.remaining
            .time_left()
            .map(|left| format!(", {} left", format_approximate(left)))
            .unwrap_or_default()
    }

    /// A closed stderr is no reason to stop measuring.
    fn write_status(&self, text: std::fmt::Arguments) {
        latscope_process::stderr::write_moving(&text.to_string());
    }
}

impl Observer for ProgressDisplay {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started(plan) => {
                self.total = plan.schedule().iter().map(|(_, index)| plan.steps[*index].points.len()).sum();
                self.remaining = RunTimeEstimate::for_plan(plan, self.setup);
            }
            RunEvent::Closed(report) => {
                self.remaining.finish_step();
                self.take_figure(report);
            }
            RunEvent::Point { point, index, .. } => self.point(point, *index),
            RunEvent::Warning(warning) => {
                let clear = if self.line_width().is_some() { "\r\x1b[K" } else { "" };
                self.write_status(format_args!("{clear}latscope: {}\n", warning.text));
            }
            RunEvent::Snapshot(_) if self.line_width().is_none() => self.print_progress(),
            RunEvent::Finished(_) if self.line_width().is_some() => {
                self.write_status(format_args!("\r\x1b[K"))
            }
            _ => {}
        }
    }

    fn period(&self) -> Option<Duration> {
        self.line_width().is_none().then_some(PERIOD)
    }
}

/// Returns the median of a measurement with what it times, and a mark if it is doubtful: there is no room for reasons.
fn figure(m: &Measurement) -> Option<String> {
    let mark = if m.quality.level == QualityLevel::Ok { "" } else { " (degraded)" };
    Some(format!("{} {}, {}{mark}", m.title, format_time(m.summary.p50?), m.times.display_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;

    #[test]
    fn progress_never_goes_back() {
        let point = MeasurementPoint {
            probe: "cpu.add".to_owned(),
            revision: 1,
            params: params([]),
            title: String::new(),
            row: false,
        };
        let mut progress = ProgressDisplay { total: 144, ..ProgressDisplay::new(|_, _| 0.0) };
        let seen = [3, 39, 32, 40, 200].map(|index| {
            progress.point(&point, index);
            progress.reached
        });
        assert_eq!(seen, [3, 39, 39, 40, 144]);
    }

    #[test]
    fn the_last_figure_is_shown_as_soon_as_there_is_one() {
        let report = latscope_core::fixture::report();
        let m = report.measurements.iter().find(|m| m.summary.p50.is_some()).unwrap();
        let mut progress = ProgressDisplay::new(|_, _| 0.0);
        progress.take_figure(&report);
        assert_eq!(progress.figure, None);
        progress.point = Some((m.probe.clone(), m.params.clone()));
        progress.take_figure(&report);
        let shown = progress.figure.clone().unwrap();
        assert!(shown.starts_with(&m.title) && shown.contains(m.times.display_name()), "{shown}");
        let mut degraded = m.clone();
        degraded.quality.level = QualityLevel::Degraded;
        assert!(figure(&degraded).unwrap().ends_with(" (degraded)"));
        progress.point = Some(("not.measured".to_owned(), params([])));
        progress.take_figure(&report);
        assert_eq!(progress.figure, Some(shown), "the last one stays");
    }
}
