//! Deadlines of the coordinator: for periodic work, for a silent worker, for threads that end.

use crate::observers::Observer;
use crate::outliers::Outliers;
use anyhow::{Result, anyhow};
use latscope_bench::recorder::STARVED_NS;
use latscope_core::param;
use latscope_core::plan::PlanStep;
use std::time::{Duration, Instant};

/// Something that is due periodically, or never.
pub(super) struct PeriodicDeadline {
    period: Option<Duration>,
    /// Time to the first one, where that is shorter than the period.
    first: Duration,
    last: Instant,
}

impl PeriodicDeadline {
    pub(super) fn new(period: Option<Duration>, now: Instant) -> PeriodicDeadline {
        PeriodicDeadline { period, first: Duration::MAX, last: now }
    }

    /// The first time it is due after no longer than this.
    fn first_after(self, first: Duration) -> PeriodicDeadline {
        PeriodicDeadline { first, ..self }
    }

    /// Time at which the interval is due next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.last.checked_add(self.period?.min(self.first))
    }

    /// Returns true if the interval is due; then the next period begins.
    pub(super) fn due(&mut self) -> bool {
        let now = Instant::now();
        let due = self.next().is_some_and(|next| next <= now);
        if due {
            (self.last, self.first) = (now, Duration::MAX);
        }
        due
    }
}

/// Deadlines until which the coordinator may sleep, or after which it gives up.
pub(super) struct CoordinatorDeadlines {
    /// Interval between snapshots for observers.
    pub(super) looks: PeriodicDeadline,
    /// Interval between reports for observers.
    pub(super) checkpoints: PeriodicDeadline,
    /// Interval between checks of the criteria.
    pub(super) judging: PeriodicDeadline,
    /// Interval between looks at the progress of the threads.
    pub(super) progress: PeriodicDeadline,
    /// Time at which a silent worker counts as failed.
    given_up: Instant,
    silence: Duration,
    pub(super) ended: bool,
    let_go: bool,
    /// Time in which threads that were asked to end do so.
    grace: Duration,
}

/// Returns true if the coordinator waits for a worker that is asked to end: its threads report results beside their
/// samples. Threads that still warm up have nothing to report, however long they sleep.
pub(super) fn has_more_to_say(step: &PlanStep, recorded: bool) -> bool {
    step.periodic.as_ref().is_some_and(|periodic| recorded || periodic.warm_up == 0)
}

/// A thread that sleeps sees that it was asked to end when it wakes up.
fn grace(step: &PlanStep) -> Duration {
    let intervals = step.points.iter().filter_map(|point| point.params.get(param::INTERVAL)?.as_number());
    let longest = intervals.max().map_or(Duration::ZERO, Duration::from_nanos);
    Duration::from_secs(3).saturating_add(longest).min(Duration::from_secs(60))
}

impl CoordinatorDeadlines {
    pub(super) fn new(
        step: &PlanStep,
        observers: &[&mut dyn Observer],
        outliers: Option<&Outliers>,
        judging: Option<Duration>,
    ) -> CoordinatorDeadlines {
        let silence = silence_allowed(step);
        let watching = outliers.and_then(Outliers::period);
        let observing = observers.iter().filter_map(|observer| observer.period());
        let period = observing.chain(watching).min().filter(|_| step.periodic.is_some());
        let checkpoints = observers.iter().filter_map(|observer| observer.checkpoints()).min();
        let now = Instant::now();
        CoordinatorDeadlines {
            looks: PeriodicDeadline::new(period, now),
            checkpoints: PeriodicDeadline::new(checkpoints, now).first_after(FIRST_CHECKPOINT),
            judging: PeriodicDeadline::new(judging, now),
            progress: PeriodicDeadline::new(Some(PROGRESS), now),
            given_up: now + silence,
            silence,
            ended: false,
            let_go: false,
            grace: grace(step),
        }
    }

    /// Returns how long to wait now; at least 1 ms before the next look, so that the loop does not spin.
    pub(super) fn timeout(&self) -> Duration {
        let now = Instant::now();
        let rest = |at: Instant| at.saturating_duration_since(now);
        let looks = [&self.looks, &self.checkpoints, &self.judging, &self.progress];
        let due = looks.into_iter().map(PeriodicDeadline::next);
        let next = due.flatten().min();
        let Some(next) = next else { return rest(self.given_up) };
        rest(self.given_up).min(rest(next)).max(Duration::from_millis(1))
    }

    /// Notes a message of the worker, which thus has not failed.
    pub(super) fn note_message(&mut self) {
        if !self.ended {
            self.given_up = Instant::now() + self.silence;
        }
    }

    pub(super) fn begin_grace(&mut self) {
        self.ended = true;
        self.given_up = Instant::now() + self.grace;
        self.shorten_period();
    }

    /// Looks more often from here on: the step is to end.
    pub(super) fn shorten_period(&mut self) {
        self.progress.period = Some(PROGRESS / 10);
    }

    /// Looks again soon, once.
    pub(super) fn look_soon(&mut self) {
        self.progress.first = PROGRESS / 10;
    }

    /// Gives threads that were let go a moment to end.
    pub(super) fn let_go(&mut self) {
        let soon = Instant::now() + MOMENT;
        self.given_up = if self.let_go { self.given_up } else { soon };
        (self.ended, self.let_go) = (true, true);
        self.shorten_period();
    }

    /// Returns true if the threads that were asked to end had enough time.
    ///
    /// # Errors
    /// The worker was silent for too long.
    pub(super) fn is_over(&self) -> Result<bool> {
        let late = Instant::now() >= self.given_up;
        if late && !self.ended {
            return Err(anyhow!("the worker was silent for {:?} and was ended", self.silence));
        }
        Ok(late)
    }
}

/// Longest silence of a worker: several times the limit of a point.
fn silence_allowed(step: &PlanStep) -> Duration {
    if step.periodic.is_some() {
        // Threads that sleep say nothing for as long as they were asked to.
        return Duration::from_nanos(step.stop.limit_ns)
            .saturating_add(Duration::from_secs(3600))
            .min(FOREVER);
    }
    let longest = step.stop.limit_ns.saturating_mul(20);
    Duration::from_nanos(longest).clamp(Duration::from_secs(60), Duration::from_secs(24 * 3600))
}

/// Time between two looks at the progress of the threads: one that has none for so long is starved.
const PROGRESS: Duration = Duration::from_nanos(STARVED_NS);

/// Time in which threads end that were let go.
const MOMENT: Duration = Duration::from_secs(1);

/// The first time that a step is saved while it lasts: a run that is killed early has left something.
const FIRST_CHECKPOINT: Duration = Duration::from_secs(10);

/// Longer than any run, and short enough to be added to an instant.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker's time, which is over now.
    fn over() -> CoordinatorDeadlines {
        let now = Instant::now();
        let never = || PeriodicDeadline::new(None, now);
        let (silence, grace) = (Duration::from_secs(60), Duration::from_secs(3));
        let [looks, checkpoints, judging, progress] = [(); 4].map(|()| never());
        let (ended, let_go) = (false, false);
        CoordinatorDeadlines {
            looks,
            checkpoints,
            judging,
            progress,
            given_up: now,
            silence,
            ended,
            let_go,
            grace,
        }
    }

    #[test]
    fn a_worker_has_failed_when_it_says_nothing_for_too_long_however_long_it_works() {
        let mut deadlines = over();
        let error = deadlines.is_over().unwrap_err().to_string();
        assert!(error.contains("silent for 60s"), "{error}");
        deadlines.note_message();
        assert!(!deadlines.is_over().unwrap());
        // What it says when it was asked to end gives it no more time.
        let mut deadlines = CoordinatorDeadlines { ended: true, ..over() };
        deadlines.note_message();
        assert!(deadlines.is_over().unwrap());
    }

    #[test]
    fn a_worker_that_warms_up_is_not_waited_for() {
        use latscope_core::plan::{Periodic, Phase};
        let periodic = Periodic::new(Phase::Staggered, 100);
        let mut step =
            PlanStep { periodic: Some(periodic), ..crate::harness::step("wake.timer", Vec::new()) };
        assert_eq!([true, false].map(|recorded| has_more_to_say(&step, recorded)), [true, false]);
        // Where there is no warm-up, that nothing came is a result.
        step.periodic.as_mut().unwrap().warm_up = 0;
        assert!(has_more_to_say(&step, false));
        step.periodic = None;
        assert!(!has_more_to_say(&step, true));
    }

    #[test]
    fn without_deadlines_the_wait_lasts_until_the_worker_has_failed() {
        let mut deadlines = over();
        deadlines.note_message();
        assert!(deadlines.timeout() > Duration::from_secs(30));
        deadlines.checkpoints = PeriodicDeadline::new(Some(Duration::ZERO), Instant::now());
        assert_eq!(deadlines.timeout(), Duration::from_millis(1));
        assert!(deadlines.checkpoints.due() && !deadlines.looks.due());
    }

    #[test]
    fn the_first_checkpoint_comes_early() {
        let now = Instant::now();
        let every = |period: u64| PeriodicDeadline::new(Some(Duration::from_secs(period)), now);
        let next = |interval: &PeriodicDeadline| interval.next().unwrap() - now;
        assert_eq!(next(&every(600).first_after(FIRST_CHECKPOINT)), FIRST_CHECKPOINT);
        assert_eq!(next(&every(2).first_after(FIRST_CHECKPOINT)), Duration::from_secs(2));
        let mut interval = every(600).first_after(Duration::ZERO);
        assert!(interval.due() && !interval.due());
        assert!(interval.next().unwrap() >= now + Duration::from_secs(600));
    }
}
