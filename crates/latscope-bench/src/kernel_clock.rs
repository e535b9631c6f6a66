//! The clock source by which the kernel keeps time, and whether it stayed the same during a run.

use latscope_core::quality::{QualityLevel, Reason};
use latscope_machine::SystemRoot;

/// Id of a reason: the kernel changed its clock source.
pub const CLOCK_CHANGED: &str = "clock-source-changed";

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Returns the kernel's clock source, such as `tsc`; `None` where it is not visible.
pub fn clock_source(root: &SystemRoot) -> Option<String> {
    root.read_text(SOURCE)
}

/// Watches the kernel's clock source from the start of a run.
#[derive(Debug)]
pub struct ClockWatch {
    root: SystemRoot,
    first: Option<String>,
    /// Source at the last look.
    last: Option<String>,
}

impl ClockWatch {
    /// Watches the clock source of a machine from now on.
    pub fn start_watching(root: SystemRoot) -> ClockWatch {
        let first = clock_source(&root);
        ClockWatch { root, last: first.clone(), first }
    }

    /// Returns the reason against what was measured since the last call, if the source was another than at the start.
    /// A change to and fro between two calls is not seen.
    pub fn objection(&mut self) -> Option<Reason> {
        let now = clock_source(&self.root);
        let before = std::mem::replace(&mut self.last, now.clone());
        let (first, other) = (self.first.as_ref()?, [now, before].into_iter().flatten());
        let other = other.into_iter().find(|source| source != first)?;
        let text = format!(
            "the kernel's clock source changed during the run, from {first} to {other}: stamps and timers before and \
             after that are of different clocks"
        );
        let remedy =
            format!("find the reason in the kernel's log; repeat the run with {first} or {other} throughout");
        Some(Reason::new(QualityLevel::Degraded, CLOCK_CHANGED, text, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn rows_are_doubted_from_the_change_until_the_step_after_the_change_back() {
        let place = tempfile::tempdir().unwrap();
        let root = SystemRoot::at(place.path());
        let file = root.path(SOURCE);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let set = |source: &str| fs::write(&file, format!("{source}\n")).unwrap();
        set("tsc");
        let mut clock = ClockWatch::start_watching(root);
        assert_eq!(clock.objection(), None);
        set("acpi_pm");
        let reason = clock.objection().unwrap();
        assert_eq!((reason.id.as_str(), reason.level), (CLOCK_CHANGED, QualityLevel::Degraded));
        assert!(reason.text.contains("from tsc to acpi_pm"), "{reason:?}");
        assert!(clock.objection().is_some(), "still another one");
        set("tsc");
        assert!(clock.objection().is_some(), "it was another one when the step began");
        assert_eq!(clock.objection(), None);
    }

    #[test]
    fn a_source_that_is_not_visible_never_changes() {
        let place = tempfile::tempdir().unwrap();
        let mut clock = ClockWatch::start_watching(SystemRoot::at(place.path()));
        assert_eq!(clock.objection(), None);
    }
}
