//! The ten numbers that say most about a machine, each a row of the survey.

use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::catalogue::families::{self, of_probe as family};
use latscope_core::ordered::unique_items;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::quality::Quality;
use latscope_core::report::{Measurement, Report};
use latscope_core::rounds::round_figures;
use latscope_judge::findings::{LevelRow, level_rows};
use std::collections::BTreeSet;

/// Number of the headline, with its name.
#[derive(Debug, Clone)]
pub(crate) struct HeadlineFigure<'a> {
    /// Name in two words: `L1 hit`, `hand-off`.
    pub name: String,
    /// Source of the number.
    pub source: HeadlineSource<'a>,
}

/// Source of a number of the headline.
#[derive(Debug, Clone)]
pub(crate) enum HeadlineSource<'a> {
    /// Level of memory, read off the curve.
    Level(Box<LevelRow>),
    /// Point of a probe; a point without a number has a reason.
    Point(&'a Measurement),
}

/// Number of numbers in the headline of a survey of everything.
const MOST: usize = 10;

/// The size of the read of the headline, bytes.
const READ: u64 = 4096;

/// Returns the ten numbers, as far as they were to be measured: caches and memory, then the others in the order of the
/// catalogue. Where a survey of some families has fewer, each family without one adds its first row.
pub(crate) fn headline<'a>(report: &'a Report, catalogue: &ProbeCatalogue) -> Vec<HeadlineFigure<'a>> {
    let levels = level_rows(report).into_iter().map(|level| HeadlineFigure {
        name: level.read_title(),
        source: HeadlineSource::Level(Box::new(level)),
    });
    let points = catalogue.probes.iter().filter_map(|facts| {
        let headline = facts.headline?;
        let source = HeadlineSource::Point(choose_point(report, facts.id, headline.preferred)?);
        Some(HeadlineFigure { name: headline.name.to_owned(), source })
    });
    let mut found: Vec<HeadlineFigure> = levels.chain(points).collect();
    if !found.is_empty() && report.plan.job == "survey" {
        add_families(report, &mut found);
    }
    found
}

/// Adds the first row of each family that has none among the numbers, up to ten.
fn add_families<'a>(report: &'a Report, found: &mut Vec<HeadlineFigure<'a>>) {
    let mut known: BTreeSet<&str> = found.iter().map(|one| one.source.family()).collect();
    for m in report.measurements.iter().filter(|m| m.row && m.typical().is_some()) {
        if found.len() < MOST && known.insert(family(&m.probe)) {
            let name = m.probe.split_once('.').map_or(&*m.probe, |(_, name)| name);
            found.push(HeadlineFigure { name: name.to_owned(), source: HeadlineSource::Point(m) });
        }
    }
}

/// Returns the point of a probe with the first of these parameters that a point has; rows of the survey only.
fn choose_point<'a>(report: &'a Report, probe: &'a str, params: &[(&str, &str)]) -> Option<&'a Measurement> {
    let rows = || report.of_probe(probe).filter(|m| m.row && is_headline_size(&m.params));
    let preferred = params.iter().find_map(|(name, value)| {
        rows().find(|m| m.params.get(*name).is_some_and(|known| known.to_string() == *value))
    });
    preferred.or_else(|| rows().next())
}

/// Returns true unless `params` are of a transfer whose size is not `READ`.
fn is_headline_size(params: &Params) -> bool {
    !params.contains_key(param::MODE)
        || params.get(param::SIZE).is_none_or(|size| *size == ParamValue::Number(READ))
}

impl<'a> HeadlineSource<'a> {
    /// Returns the family that the number is of.
    fn family(&self) -> &'a str {
        match self {
            HeadlineSource::Level(_) => families::MEMORY,
            HeadlineSource::Point(m) => family(&m.probe),
        }
    }

    /// Returns the figure, ns; `None` without a figure.
    pub fn figure_ns(&self) -> Option<f64> {
        match self {
            HeadlineSource::Level(level) => Some(level.ns),
            HeadlineSource::Point(m) => m.typical(),
        }
    }

    /// Returns the interval in which the figure of the next run is expected, ns.
    pub fn next_run(&self) -> Option<(f64, f64)> {
        match self {
            HeadlineSource::Level(level) => level.next,
            HeadlineSource::Point(m) => m.next_run().map(|next| (next.low, next.high)),
        }
    }

    /// Returns the number of rounds behind the figure.
    pub fn round_count(&self) -> usize {
        match self {
            HeadlineSource::Level(level) => level.rounds,
            HeadlineSource::Point(m) => round_figures(&m.rounds).len(),
        }
    }

    /// Returns how far the figure can be trusted.
    pub fn quality(&self) -> &Quality {
        match self {
            HeadlineSource::Level(level) => &level.quality,
            HeadlineSource::Point(m) => &m.quality,
        }
    }
}

/// The families of these probes, each once.
pub(crate) fn families<'a>(probes: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    unique_items(probes.map(|probe| family(probe)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::catalogue;
    use latscope_core::fixture;

    #[test]
    fn the_headline_is_of_rows_of_the_survey() {
        let report = fixture::report();
        let found = headline(&report, catalogue());
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert!(names.contains(&"L1 hit") && names.contains(&"mutex"), "{names:?}");
        assert!(found.len() <= 10, "{names:?}");
        assert!(found.iter().all(|one| one.source.figure_ns().is_some()));
    }

    #[test]
    fn a_survey_of_some_families_has_a_number_of_each() {
        let mut report = fixture::report();
        report.measurements.retain(|m| ["syscall", "file"].contains(&family(&m.probe)));
        let names = |report: &Report| -> Vec<String> {
            headline(report, catalogue()).into_iter().map(|one| one.name).collect()
        };
        let mut of_files = report.clone();
        of_files.measurements.retain(|m| family(&m.probe) == "file");
        let (survey, files) = (names(&report), names(&of_files));
        let first = report.measurements.iter().find(|m| m.row && family(&m.probe) == "syscall").unwrap();
        assert_eq!(survey[..files.len()], files);
        assert_eq!(survey[files.len()..], [first.probe.split_once('.').unwrap().1]);
        report.plan.job = "file".to_owned();
        assert_eq!(names(&report), files);
    }

    #[test]
    fn a_report_of_other_things_has_no_headline() {
        assert!(headline(&fixture::ipc::latency(), catalogue()).is_empty());
    }
}
