//! Progress of a trial, on stderr: one line that is rewritten on a terminal, a line a run otherwise.

use super::super::live::{RunsScreen, RunsScreenModel};
use super::plan_file::{Planned, TrialCellIndex};
use latscope_engine::observers::ProgressStyle;
use latscope_engine::remaining::format_approximate;
use latscope_process::terminal::status_width;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Times of the runs so far, and from these the time of the others.
#[derive(Debug, Default)]
pub struct TrialTimeEstimate {
    /// Times by the plans; `None` for a run that is ended by a count.
    pub planned: BTreeMap<TrialCellIndex, Option<Duration>>,
    taken: BTreeMap<TrialCellIndex, Vec<Duration>>,
}

impl TrialTimeEstimate {
    /// Notes how long a run took, with all before it.
    pub fn record_duration(&mut self, place: TrialCellIndex, duration: Duration) {
        self.taken.entry(place).or_default().push(duration);
    }

    /// Time that these runs will take: that of earlier runs of the same place, else of the same measurement, else of
    /// the plan. `None` if nothing is known of a run.
    pub fn estimate_runs(&self, runs: &[Planned]) -> Option<Duration> {
        runs.iter().map(|run| self.estimate_run(run.cell)).sum()
    }

    fn estimate_run(&self, place: TrialCellIndex) -> Option<Duration> {
        let mean = |fits: &dyn Fn(&TrialCellIndex) -> bool| {
            let all = self.taken.iter().filter(|(other, _)| fits(other)).flat_map(|(_, taken)| taken);
            let (sum, count) = all.fold((Duration::ZERO, 0), |(sum, count), one| (sum + *one, count + 1));
            (count > 0).then(|| sum / count)
        };
        mean(&|other| *other == place)
            .or_else(|| mean(&|other| other.measurement == place.measurement))
            .or_else(|| self.planned.get(&place).copied().flatten())
    }
}

/// Shows how a trial stands.
pub struct TrialProgress {
    quiet: bool,
    /// True if no line is rewritten, though stderr may be a terminal.
    plain: bool,
    screen: RefCell<Option<RunsScreen>>,
}

impl TrialProgress {
    /// On the stderr of this process.
    pub fn new(quiet: bool, style: ProgressStyle) -> TrialProgress {
        let quiet = quiet || style == ProgressStyle::None;
        TrialProgress { quiet, plain: style == ProgressStyle::Plain, screen: RefCell::new(None) }
    }

    /// Width of the line that is rewritten; `None` if there is none.
    fn line_width(&self) -> Option<usize> {
        status_width().filter(|_| !self.plain)
    }

    /// From now on a screen shows it.
    pub fn show_screen(&mut self, mut screen: RunsScreen, runs: RunsScreenModel) {
        screen.runs = runs;
        screen.take_terminal();
        self.screen = RefCell::new(Some(screen));
    }

    /// A line that stays.
    pub fn print_line(&self, line: &str) {
        if let Some(screen) = self.screen.borrow_mut().as_mut() {
            screen.runs.said.push(line.to_owned());
        } else if !self.quiet {
            self.write_text(&format!("{}{line}\n", self.clear()));
        }
    }

    /// A run of a cell begins.
    pub fn begin_run(&self, cell: &str) {
        if let Some(screen) = self.screen.borrow_mut().as_mut() {
            let known = screen.runs.cells.iter().position(|known| known.name == cell);
            screen.runs.now = known.unwrap_or_default();
        }
    }

    /// A run of the present cell is over.
    pub fn count_run(&self, took: Duration, counted: bool) {
        if let Some(screen) = self.screen.borrow_mut().as_mut() {
            let now = screen.runs.now;
            if let Some(cell) = screen.runs.cells.get_mut(now) {
                (cell.counted, cell.lost) =
                    (cell.counted + usize::from(counted), cell.lost + usize::from(!counted));
                cell.last = Some(took);
            }
        }
    }

    /// A run is under way: what it is, since when, and how long it and those after it take.
    pub fn running(&self, what: &str, since: Instant, left: Option<Duration>) {
        let mut screen = self.screen.borrow_mut();
        if let Some(screen) = screen.as_mut() {
            screen.runs.since = since.elapsed();
            let left = left.map(|left| left.saturating_sub(since.elapsed()));
            screen.runs.left = left.map(|left| format!("{} left", format_approximate(left)));
            screen.handle_keys_and_draw();
        } else if let Some(width) = self.line_width().filter(|_| !self.quiet) {
            let left = left
                .map(|left| format!(", {} left", format_approximate(left.saturating_sub(since.elapsed()))));
            let line = format!("{what}: {} s{}", since.elapsed().as_secs(), left.unwrap_or_default());
            let line: String = line.chars().take(width - 1).collect();
            self.write_text(&format!("{}{line}", self.clear()));
        }
    }

    /// A run is over.
    pub fn done(&self, what: &str, took: Duration, left: Option<Duration>) {
        if self.line_width().is_none() {
            let left = left
                .filter(|left| !left.is_zero())
                .map(|left| format!(", {} left", format_approximate(left)));
            self.print_line(&format!("{what}: {:.1} s{}", took.as_secs_f64(), left.unwrap_or_default()));
        }
    }

    /// Removes the line that is rewritten, or leaves the screen. The messages on the screen are then printed again.
    pub fn end_display(&self) {
        if let Some(screen) = self.screen.take() {
            screen.leave_terminal();
            screen.runs.said.iter().for_each(|line| self.print_line(line));
            return;
        }
        if !self.quiet {
            self.write_text(self.clear());
        }
    }

    fn clear(&self) -> &'static str {
        if self.line_width().is_some() { "\r\x1b[K" } else { "" }
    }

    /// A closed stderr is no reason to stop.
    fn write_text(&self, text: &str) {
        latscope_process::stderr::write_moving(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_known_from_the_first_block_on() {
        let place = |measurement, arm| TrialCellIndex { measurement, load: None, arm };
        let run = |measurement, arm| Planned { repetition: 0, cell: place(measurement, arm) };
        let seconds = Duration::from_secs;
        let mut remaining = TrialTimeEstimate::default();
        let left = [run(0, 0), run(0, 1), run(0, 1)];
        assert_eq!(remaining.estimate_runs(&left), None);
        remaining.planned.insert(place(0, 0), Some(seconds(5)));
        remaining.planned.insert(place(0, 1), Some(seconds(5)));
        assert_eq!(remaining.estimate_runs(&left), Some(seconds(15)));
        remaining.record_duration(place(0, 0), seconds(10));
        assert_eq!(remaining.estimate_runs(&left), Some(seconds(30)));
        remaining.record_duration(place(0, 1), seconds(20));
        assert_eq!(remaining.estimate_runs(&left), Some(seconds(50)));
        assert_eq!(remaining.estimate_runs(&[]), Some(Duration::ZERO));
        assert_eq!(remaining.estimate_runs(&[run(1, 0)]), None);
    }
}
