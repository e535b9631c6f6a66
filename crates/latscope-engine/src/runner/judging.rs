//! Criteria in the coordinator: it judges with each save, shows their state, and ends the run.

use super::deadlines::CoordinatorDeadlines;
use super::{Coordinator, notify_all};
use crate::collect;
use crate::link::WorkerLink;
use crate::observers::RunEvent;
use crate::outliers::Outliers;
use latscope_core::report::Measurement;
use latscope_core::units::format_span;
use latscope_judge::verdict;
use latscope_os::clock::monotonic_ns;

/// The id of the warning that a run was ended by a criterion.
const STOPPED: &str = "stopped-when-exceeded";

impl Coordinator<'_> {
    /// Judges what the run came to.
    pub(super) fn judge_run(&mut self) {
        if let Some((criteria, at)) = self.stopped.take() {
            let at = format_span(at as f64);
            let why = "as --stop-when-exceeded asks";
            self.add_warning(
                STOPPED,
                &format!("the run was ended {at} after its start, {why}: {criteria} was exceeded"),
            );
        }
        verdict::tested::record_evidence(&mut self.report);
        verdict::judge_report(&mut self.report, &self.watch.criteria);
    }

    /// Judges what a step has so far, and gives it to those who keep the report, if that is due or a criterion is
    /// exceeded that was not; whether one is.
    pub(super) fn checkpoint(
        &mut self,
        index: usize,
        mut so_far: Vec<Measurement>,
        outliers: Option<&Outliers>,
        save: bool,
    ) -> bool {
        outliers.into_iter().for_each(|outliers| collect::add_outliers(&mut so_far, outliers));
        let (before, entered) = (self.report.measurements[self.segment(index)].to_vec(), self.entered[index]);
        self.insert_points(index, so_far);
        let exceeded = self.look_at_criteria();
        if save && !exceeded {
            notify_all(&mut self.observers, &RunEvent::Checkpoint(&self.report));
        }
        let segment = self.segment(index);
        self.report.measurements.splice(segment, before);
        self.entered[index] = entered;
        exceeded
    }

    /// Judges the report as it is now and shows how the criteria stand; whether one is exceeded that was not.
    pub(super) fn look_at_criteria(&mut self) -> bool {
        if self.watch.criteria.is_empty() {
            return false;
        }
        verdict::judge_report(&mut self.report, &self.watch.criteria);
        let (standings, exceeded) = self.watch.check_criteria(&self.report, monotonic_ns() - self.epoch_ns);
        notify_all(&mut self.observers, &RunEvent::Standings(&standings));
        if exceeded {
            notify_all(&mut self.observers, &RunEvent::Exceeded(&self.report));
            self.note_stop();
        }
        exceeded
    }

    /// Notes that the run ends, where an exceedance ends it.
    fn note_stop(&mut self) {
        if self.report.plan.stop_when_exceeded && self.stopped.is_none() {
            self.stopped = self.watch.exceeded().map(|criteria| (criteria, monotonic_ns() - self.epoch_ns));
        }
    }

    /// Ends the step, where an exceedance ends the run: it did what was asked.
    pub(super) fn stop_exceeded(&mut self, link: &WorkerLink, deadlines: &mut CoordinatorDeadlines) {
        if self.stopped.is_some() && !deadlines.ended {
            link.slots.ask_to_stop();
            deadlines.begin_grace();
        }
    }
}
