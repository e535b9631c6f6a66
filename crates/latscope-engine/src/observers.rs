//! What happens during a run, for its observers: progress, live screens,
//! the file that is saved as results come in.

use crate::criteria::Standing;
use crate::remaining::{Remaining, about};
use latscope_bench::recorder::Snapshot;
use latscope_core::plan::{Plan, Point, Step};
use latscope_core::report::{Exceedance, Outlier, Report, Warning};
use latscope_host::guardian::Undo;
use latscope_host::terminal::status_width;
use rustix::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Something that happened, told on the coordinator.
pub enum Event<'a> {
    /// The run begins.
    Started(&'a Plan),
    /// A worker began with a point; so many of all points were begun before.
    Point {
        /// The point.
        point: &'a Point,
        /// Its place in the order of the whole plan.
        index: usize,
        /// In which round it is measured.
        round: Round,
    },
    /// How a step stands, at each observer's own pace.
    Snapshot(&'a Live<'a>),
    /// Samples of a point that streams them, in order; so many before them
    /// were lost because they came faster than they could be taken.
    Samples {
        /// The point.
        point: usize,
        /// The samples.
        samples: &'a [Exceedance],
        /// How many are missing before the first of them.
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
    /// The same, since a criterion is exceeded that was not before.
    Exceeded(&'a Report),
    /// How the criteria of the run stand.
    Standings(&'a [Standing]),
    /// Something a reader of the numbers must know.
    Warning(&'a Warning),
    /// The run is over.
    Finished(&'a Report),
}

/// Which of the rounds of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl Round {
    /// A round of a step, by its number from 0.
    pub fn of(step: &Step, round: u32) -> Round {
        Round { number: round + 1, of: step.rounds }
    }

    /// `round 2 of 3`, where there are several.
    pub fn words(self) -> Option<String> {
        (self.of > 1).then(|| format!("round {} of {}", self.number, self.of))
    }
}

/// How a step stands while it runs.
pub struct Live<'a> {
    /// The step.
    pub step: &'a Step,
    /// What its points have recorded, in their order.
    pub points: Vec<Snapshot>,
    /// Its round: what was recorded is of this one alone.
    pub round: Round,
    /// When the points that are measured now were begun, in nanoseconds since the epoch of the run.
    pub began: u64,
    /// Now, by the same clock.
    pub at: u64,
}

/// Watches a run; must not do long work, for the coordinator waits for it.
pub trait Observer {
    /// Takes notice.
    fn observe(&mut self, event: &Event);

    /// How often it wants snapshots; the coordinator sleeps for as long.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// How often it wants the report while a step lasts.
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

    /// How to undo what it will change, for the guardian: journalled before
    /// the run begins, undone when that is over, in whatever way.
    fn undo(&self) -> Option<Undo> {
        None
    }

    /// What tells the run to end now, with what was measured so far: `key q`.
    fn wants_end(&self) -> Option<&'static str> {
        None
    }
}

/// Progress on stderr: one line that is rewritten on a terminal, a line for
/// each family otherwise.
#[derive(Debug, Default)]
pub struct Progress {
    total: usize,
    remaining: Remaining,
    family: String,
    /// The most points that were begun: what is done again is done already.
    reached: usize,
    drawn: Option<Instant>,
}

impl Progress {
    fn point(&mut self, point: &Point, index: usize) {
        self.reached = self.reached.max(index).min(self.total);
        let index = self.reached;
        let family = point.probe.split('.').next().unwrap_or_default();
        if let Some(width) = status_width() {
            // Ten times a second is enough for eyes.
            if self.drawn.is_some_and(|drawn| drawn.elapsed().as_millis() < 100) {
                return;
            }
            self.drawn = Some(Instant::now());
            let share = index * 20 / self.total.max(1);
            let bar = format!("{}{}", "━".repeat(share), "─".repeat(20 - share.min(20)));
            let left = self.left();
            let line = format!("{bar} {index}/{}{left}  {}: {}", self.total, point.probe, point.title);
            let line: String = line.chars().take(width - 1).collect();
            self.say(format_args!("\r\x1b[K{line}"));
        } else if family != self.family {
            let left = self.left();
            self.say(format_args!("measuring {family} ({index} of {} points done{left})\n", self.total));
        }
        family.clone_into(&mut self.family);
    }

    /// `, about 32s left`, where that is known.
    fn left(&self) -> String {
        self.remaining.left().map(|left| format!(", {} left", about(left))).unwrap_or_default()
    }

    /// A closed stderr is no reason to stop measuring.
    fn say(&self, text: std::fmt::Arguments) {
        latscope_host::stderr::write_moving(&text.to_string());
    }
}

impl Observer for Progress {
    fn observe(&mut self, event: &Event) {
        match event {
            Event::Started(plan) => {
                self.total = plan.schedule().iter().map(|(_, index)| plan.steps[*index].points.len()).sum();
                self.remaining = Remaining::of(plan);
            }
            Event::Closed(_) => self.remaining.closed(),
            Event::Point { point, index, .. } => self.point(point, *index),
            Event::Warning(warning) => {
                let clear = if status_width().is_some() { "\r\x1b[K" } else { "" };
                self.say(format_args!("{clear}latscope: {}\n", warning.text));
            }
            Event::Finished(_) if status_width().is_some() => self.say(format_args!("\r\x1b[K")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;

    #[test]
    fn progress_never_goes_back() {
        let point = Point {
            probe: "cpu.add".to_owned(),
            revision: 1,
            params: params([]),
            title: String::new(),
            row: false,
        };
        let mut progress = Progress { total: 144, ..Progress::default() };
        let seen = [3, 39, 32, 40, 200].map(|index| {
            progress.point(&point, index);
            progress.reached
        });
        assert_eq!(seen, [3, 39, 39, 40, 144]);
    }
}
