//! Meanings of the signs beside rows, in one line, with only the signs that are used.

use super::style::WARNING;
use super::styled::Text;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Account, Measurement, Report, Semantics};

/// The signs that some rows have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    pub round_trip: bool,
    pub one_way: bool,
    pub doubtful: bool,
    pub early: bool,
}

impl Signs {
    /// Adds the signs of a row with these properties.
    pub fn add_signs(&mut self, times: Semantics, level: QualityLevel, incomplete: bool) {
        self.round_trip |= times == Semantics::RoundTrip;
        self.one_way |= times == Semantics::OneWay;
        self.doubtful |= level.is_doubtful();
        // One sign is enough for a row.
        self.early |= incomplete && !level.is_doubtful();
    }

    /// Returns the signs of the measurements.
    pub fn from_measurements<'a>(all: impl IntoIterator<Item = &'a Measurement>) -> Signs {
        let mut signs = Signs::default();
        all.into_iter().for_each(|m| signs.add_signs(m.times, m.quality.level, m.incomplete));
        signs
    }

    /// Returns the meanings on one line, if there are any.
    pub fn format_line(self) -> Option<String> {
        Some(self.meanings().join(" · ")).filter(|text| !text.is_empty())
    }

    /// Returns the meanings of the signs, a text each.
    pub fn meanings(self) -> Vec<String> {
        let all = [
            (self.round_trip, "RT round trip"),
            (self.one_way, "→ one way"),
            (self.doubtful, "! degraded or unstable"),
            (self.early, "~ ended early"),
        ];
        all.into_iter().filter(|(used, _)| *used).map(|(_, text)| text.to_owned()).collect()
    }
}

/// Returns what one duration is of.
pub(super) fn describe_semantics(times: Semantics) -> &'static str {
    if times == Semantics::Operation { "one operation" } else { times.display_name() }
}

/// Returns the sign for how far a point can be trusted.
pub(super) fn quality_mark(m: &Measurement) -> Text {
    match m.incomplete {
        _ if m.quality.level.is_doubtful() => Text::in_style(WARNING, " !"),
        true => Text::in_style(WARNING, " ~"),
        false => Text::default(),
    }
}

/// Reasons for an empty cell of the column `next run`.
const EMPTY: &str = "; empty: the rounds are too few or differ too much, the row is degraded, or other processes used the \
                     CPUs";

/// Returns the legend of the column `next run`, with the `unit` if it is not beside the column, and with the
/// reason for empty cells if some are `empty`.
pub(super) fn next_run(report: &Report, unit: &str, empty: bool) -> String {
    let of_two = report.measurements.iter().filter_map(Measurement::next_run).any(|next| next.level < 0.9);
    let of_two = if of_two { " (of two rounds: their range)" } else { "" };
    let empty = if empty { EMPTY } else { "" };
    let busy = as_busy(report);
    format!("next run{busy}: where its median is expected, with 95 % confidence{of_two}{unit}{empty}")
}

/// Meaning of `blocked`.
pub(super) const BLOCKED: &str = "blocked: share of the waits in which the thread slept";

/// Meaning of `rejected`.
pub(super) const REJECTED: &str = "rejected: share of the samples that were disturbed and taken anew";

/// Returns the state of the machine that a next run refers to; empty for a quiet machine. Rounds beside other
/// users of the CPUs predict nothing about a quiet machine.
pub(super) fn as_busy(report: &Report) -> &'static str {
    let is_busy = report.activity.as_ref().is_some_and(Account::is_disturbed);
    if is_busy { " of a machine as busy as this" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKED, REJECTED};
    use crate::{csv, figure, golden, html, markdown, overview, table, text};
    use latscope_core::fixture;
    use latscope_core::quality::{QualityLevel, Reason};
    use latscope_core::report::{Account, Evidence, Finding, Measurement, Report};
    use latscope_core::rounds::Prediction;

    /// Returns a report whose points have an interval of this confidence level.
    fn predicted(level: f64) -> Report {
        let mut report = fixture::report();
        for m in &mut report.measurements {
            m.interval = m.summary.p50.map(|p50| Prediction { low: 0.9 * p50, high: 1.1 * p50, level });
        }
        report
    }

    /// Returns every view that shows where the next run is expected, in words or as a range.
    fn views(report: &Report) -> [String; 6] {
        let options = golden::wide(200);
        [
            table::format_table(report, &[], &options),
            text::family(report, "sync", &options),
            overview::overview(report, &[], &[], &options),
            markdown::format_report(report, &[], true, &options),
            html::report_page(report, &[], golden::catalogue()),
            figure::svg_document(report, figure::Picture::Distribution).unwrap(),
        ]
        .map(|view| view.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Checks that every view names the busy machine: its rounds predict nothing about a quiet machine.
    #[test]
    fn every_view_of_a_busy_machine_says_which_next_run_it_means() {
        let mut report = predicted(0.95);
        report.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.5, ..Account::default() });
        for view in views(&report) {
            assert!(view.contains("next run of a machine as busy as this"), "{view}");
        }
    }

    #[test]
    fn the_words_beside_rows_are_explained_where_they_stand_and_only_there() {
        let report = fixture::report();
        let views = |report: &Report| {
            [80, 200].map(|width| {
                let options = golden::wide(width);
                let text = text::family(report, "sync", &options);
                let all = table::format_table(report, &[], &options) + &text;
                all.split_whitespace().collect::<Vec<_>>().join(" ")
            })
        };
        let mut without = report.clone();
        for m in &mut without.measurements {
            m.values.remove("blocked");
            m.summary.rejected = 0;
        }
        for meaning in [BLOCKED, REJECTED] {
            let word = meaning.split(':').next().unwrap();
            for view in views(&report) {
                assert_eq!(view.contains(&format!("{word} ")), view.contains(meaning), "{meaning}: {view}");
            }
            assert!(views(&report)[1].contains(meaning), "{meaning}");
            assert!(views(&without).iter().all(|view| !view.contains(meaning)), "{meaning}");
        }
    }

    #[test]
    fn no_view_says_of_a_degraded_row_where_the_next_run_is_expected() {
        let mut report = predicted(0.95);
        report
            .measurements
            .iter_mut()
            .for_each(|m| m.lower(Reason::new(QualityLevel::Degraded, "emulated", "a test", "")));
        let rests_on = |m: &Measurement| Evidence {
            probe: m.probe.clone(),
            params: m.params.clone(),
            figure: "p50".to_owned(),
            value: m.summary.p50.unwrap_or_default(),
            interval: m.interval,
            rounds: 3,
        };
        let evidence = report.measurements.iter().map(rests_on).collect();
        report.findings = vec![Finding { evidence, ..Finding::default() }];
        let mut without = report.clone();
        without.measurements.iter_mut().for_each(|m| m.interval = None);
        without.findings[0].evidence.iter_mut().for_each(|one| one.interval = None);
        assert_eq!(views(&report), views(&without));
        assert_eq!(csv::report_csv(&report), csv::report_csv(&without));
    }

    #[test]
    fn an_interval_of_two_rounds_is_not_called_one_of_95_percent_alone() {
        for view in &views(&predicted(1.0 / 3.0))[..5] {
            assert!(view.contains("of two rounds"), "{view}");
        }
    }
}
