//! Repeatability of surveys. Several surveys of one machine show how often the median of one lies in the interval of
//! another, how wide the intervals are, and which rows move without being marked.

use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};
use latscope_core::rounds::{self, Prediction, ReplicationUnit};
use latscope_core::statistics::{median, quantile};
use std::collections::BTreeMap;

/// Values of a row in one survey.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatabilityFigure {
    /// The figure: the median over the rounds, ns.
    pub figure: f64,
    /// Interval in which the survey predicts the next figure.
    pub interval: Option<Prediction>,
    /// True if the row is marked: unstable or degraded.
    pub marked: bool,
    /// The medians of its rounds, ns.
    pub rounds: Vec<f64>,
}

impl RepeatabilityFigure {
    /// A row from the medians of its rounds alone.
    pub fn of_rounds(rounds: Vec<f64>, resolution: f64) -> Option<RepeatabilityFigure> {
        let figure = median(&rounds)?;
        let marked = rounds::unsteady(&rounds, ReplicationUnit::Round).is_some();
        Some(RepeatabilityFigure {
            figure,
            interval: rounds::prediction(&rounds, ReplicationUnit::Round, resolution),
            marked,
            rounds,
        })
    }

    fn from_measurement(m: &Measurement) -> Option<RepeatabilityFigure> {
        let figure = m.typical()?;
        let rounds = m.rounds.iter().filter_map(|round| round.p50).collect();
        Some(RepeatabilityFigure {
            figure,
            interval: m.next_run(),
            marked: m.quality.level > QualityLevel::Ok,
            rounds,
        })
    }
}

/// Rows by probe and parameters, each as the surveys saw it in turn.
pub type RepeatabilityRows = BTreeMap<(String, String), Vec<RepeatabilityFigure>>;

/// The rows that all of these surveys have.
pub fn rows(reports: &[Report]) -> RepeatabilityRows {
    let mut rows = RepeatabilityRows::new();
    for m in reports.iter().flat_map(|report| &report.measurements).filter(|m| m.row) {
        let params: Vec<String> = m.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let seen = rows.entry((m.probe.clone(), params.join(";"))).or_default();
        seen.extend(RepeatabilityFigure::from_measurement(m));
    }
    rows.retain(|_, seen| seen.len() == reports.len());
    rows
}

/// Ratio of figures between surveys above which a row moves.
pub(crate) const MOVES: f64 = 1.25;

/// Assessment of surveys against each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Number of rows examined.
    pub rows: usize,
    /// Share of pairs of surveys and rows in which the figure of one lies in the interval of the other.
    pub coverage: f64,
    /// Median ratio of the upper to the lower end of the intervals.
    pub width: f64,
    /// The width that nine of ten intervals stay below.
    pub wide: f64,
    /// Rows that move by more than `MOVES` between surveys.
    pub moving: usize,
    /// Share of the pairs of moving rows that are announced: the survey marks the row, or the other's figure lies in
    /// its interval.
    pub told: f64,
    /// The moving rows of which fewer than nine of ten pairs are announced.
    pub untold: Vec<Untold>,
}

/// A row that moves without announcing it.
#[derive(Debug, Clone, PartialEq)]
pub struct Untold {
    /// Probe and parameters of the row.
    pub row: (String, String),
    /// Smallest and largest figure of the row, ns.
    pub figures: (f64, f64),
    /// Share of pairs that are announced, 0 to 1.
    pub told: f64,
    /// Level at which the row moves: `rounds` that are wider than their interval, or `runs` that differ by more than
    /// their rounds do.
    pub level: &'static str,
}

/// Least share of announced pairs of a moving row that counts as announced.
const TOLD: f64 = 0.9;

/// Judges rows of at least two surveys; `None` if there is nothing to judge.
pub fn assess(rows: &RepeatabilityRows) -> Option<Assessment> {
    let judged: Vec<(&(String, String), &Vec<RepeatabilityFigure>, f64)> =
        rows.iter().filter_map(|(row, seen)| Some((row, seen, share_of_pairs(seen, covers)?))).collect();
    let widths: Vec<f64> = judged
        .iter()
        .flat_map(|(_, seen, _)| seen.iter())
        .filter_map(|seen| Some(seen.interval?.end_ratio()))
        .collect();
    let moving: Vec<Untold> = judged
        .iter()
        .filter(|(_, seen, _)| extent(seen).1 / extent(seen).0 > MOVES)
        .filter_map(|(row, seen, _)| {
            let told = share_of_pairs(seen, |this, next| this.marked || covers(this, next))?;
            Some(Untold { row: (*row).clone(), figures: extent(seen), told, level: level(seen) })
        })
        .collect();
    Some(Assessment {
        rows: judged.len(),
        coverage: mean(judged.iter().map(|(.., coverage)| *coverage)),
        width: median(&widths)?,
        wide: quantile(&widths, 0.9)?,
        moving: moving.len(),
        told: mean(moving.iter().map(|row| row.told)),
        untold: moving.into_iter().filter(|row| row.told < TOLD).collect(),
    })
}

fn covers(this: &RepeatabilityFigure, next: &RepeatabilityFigure) -> bool {
    this.interval.is_some_and(|interval| interval.contains(next.figure))
}

/// Share of ordered pairs of surveys for which `holds`; `None` without a pair
/// whose first has an interval.
fn share_of_pairs(
    seen: &[RepeatabilityFigure],
    holds: impl Fn(&RepeatabilityFigure, &RepeatabilityFigure) -> bool,
) -> Option<f64> {
    let pairs: Vec<bool> = (0..seen.len())
        .flat_map(|this| (0..seen.len()).map(move |next| (this, next)))
        .filter(|(this, next)| this != next && seen[*this].interval.is_some())
        .map(|(this, next)| holds(&seen[this], &seen[next]))
        .collect();
    (!pairs.is_empty()).then(|| pairs.iter().filter(|held| **held).count() as f64 / pairs.len() as f64)
}

fn extent(seen: &[RepeatabilityFigure]) -> (f64, f64) {
    let figures = seen.iter().map(|seen| seen.figure);
    (figures.clone().fold(f64::MAX, f64::min), figures.fold(0.0, f64::max))
}

/// Level at which a row moves: `runs` if the runs scatter further than the rounds of a run do, else `rounds`.
fn level(seen: &[RepeatabilityFigure]) -> &'static str {
    let within: Vec<f64> = seen.iter().map(|seen| log_deviation(&seen.rounds)).collect();
    let between = log_deviation(&seen.iter().map(|seen| seen.figure).collect::<Vec<f64>>());
    if between > median(&within).unwrap_or(0.0) { "runs" } else { "rounds" }
}

/// Standard deviation on the log scale.
fn log_deviation(values: &[f64]) -> f64 {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (logs.len().max(2) - 1) as f64).sqrt()
}

/// Mean of shares; 1 if there are none.
fn mean(shares: impl ExactSizeIterator<Item = f64>) -> f64 {
    let number = shares.len();
    if number == 0 { 1.0 } else { shares.sum::<f64>() / number as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(surveys: &[&[f64]]) -> RepeatabilityRows {
        let seen = surveys
            .iter()
            .filter_map(|rounds| RepeatabilityFigure::of_rounds(rounds.to_vec(), 0.1))
            .collect();
        RepeatabilityRows::from([(("sync.pipe".to_owned(), String::new()), seen)])
    }

    #[test]
    fn a_row_that_stays_is_covered() {
        let assessment = assess(&rows_of(&[&[10.0, 10.2, 9.9, 10.1], &[10.1, 10.0, 10.2, 9.9]])).unwrap();
        assert_eq!((assessment.coverage, assessment.moving, assessment.rows), (1.0, 0, 1));
        assert!(assessment.width < 1.35, "{assessment:?}");
    }

    #[test]
    fn a_row_that_jumps_between_runs_and_not_within_is_named_with_its_level() {
        let assessment = assess(&rows_of(&[&[10.0, 10.1, 10.0, 10.1], &[20.0, 20.1, 20.0, 20.2]])).unwrap();
        assert_eq!((assessment.coverage, assessment.moving, assessment.told), (0.0, 1, 0.0));
        assert_eq!(assessment.untold[0].level, "runs");
    }

    #[test]
    fn a_row_in_two_groups_is_told() {
        let jumping = [55.0, 203.0, 56.0, 201.0, 205.0, 54.0, 55.0, 204.0];
        let jumped = [203.0, 204.0, 203.0, 201.0, 205.0, 54.0, 203.0, 55.0];
        let assessment = assess(&rows_of(&[&jumping, &jumped])).unwrap();
        assert_eq!((assessment.moving, assessment.told), (1, 1.0));
    }

    /// Rounds of real surveys, as `cargo xtask peers repeat --rounds` writes them.
    fn recorded(name: &str) -> RepeatabilityRows {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rounds").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let mut rows = RepeatabilityRows::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split('\t').collect();
            let [_survey, probe, params, rounds @ ..] = &words[..] else { panic!("{line:?}") };
            let rounds: Vec<f64> = rounds.iter().map(|ns| ns.parse().unwrap()).collect();
            let seen = rows.entry(((*probe).to_owned(), (*params).to_owned())).or_default();
            // Figures are recorded with a step of 0.8 % at most.
            seen.extend(median(&rounds).and_then(|ns| RepeatabilityFigure::of_rounds(rounds, ns * 0.008)));
        }
        rows
    }

    #[test]
    fn eight_real_surveys_say_of_each_other_what_is_true() {
        let assessment = assess(&recorded("idle.tsv")).unwrap();
        assert!(assessment.rows > 130, "{assessment:#?}");
        assert!(assessment.coverage >= 0.9 && assessment.told >= 0.9, "{assessment:#?}");
        assert!(assessment.width <= 1.4, "{assessment:#?}");
    }
}
