//! The ten numbers that say most about a machine, each a row of the survey.

use latscope_core::catalogue::Catalogue;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::quality::Quality;
use latscope_core::report::{Measurement, Report};
use latscope_core::rounds::figures;
use latscope_judge::findings::{LevelRow, level_rows};

/// Number of the headline, with its name.
#[derive(Debug, Clone)]
pub(crate) struct Headline<'a> {
    /// Name in two words: `L1 hit`, `hand-off`.
    pub name: String,
    /// Source of the number.
    pub source: Source<'a>,
}

/// Source of a number of the headline.
#[derive(Debug, Clone)]
pub(crate) enum Source<'a> {
    /// Level of memory, read off the curve.
    Level(Box<LevelRow>),
    /// Point of a probe; a point without a number has a reason.
    Point(&'a Measurement),
}

/// The size of the read of the headline, bytes.
const READ: u64 = 4096;

/// Returns the ten numbers, as far as they were to be measured: caches and memory, then the others in the order of the
/// catalogue.
pub(crate) fn headline<'a>(report: &'a Report, catalogue: &Catalogue) -> Vec<Headline<'a>> {
    let levels = level_rows(report).into_iter().map(|level| Headline {
        name: if level.name == "memory" { "memory read".to_owned() } else { format!("{} hit", level.name) },
        source: Source::Level(Box::new(level)),
    });
    let points = catalogue.probes.iter().filter_map(|facts| {
        let headline = facts.headline?;
        let source = Source::Point(chosen(report, facts.id, headline.preferred)?);
        Some(Headline { name: headline.name.to_owned(), source })
    });
    levels.chain(points).collect()
}

/// Returns the point of a probe with the first of these parameters that a point has; rows of the survey only.
fn chosen<'a>(report: &'a Report, probe: &'a str, params: &[(&str, &str)]) -> Option<&'a Measurement> {
    let rows = || report.of_probe(probe).filter(|m| m.row && sized(&m.params));
    let preferred = params.iter().find_map(|(name, value)| {
        rows().find(|m| m.params.get(*name).is_some_and(|known| known.to_string() == *value))
    });
    preferred.or_else(|| rows().next())
}

/// Returns true unless `params` are of a transfer whose size is not `READ`.
fn sized(params: &Params) -> bool {
    !params.contains_key("mode") || params.get("size").is_none_or(|size| *size == ParamValue::Number(READ))
}

impl Source<'_> {
    /// Returns the figure, ns; `None` without a figure.
    pub fn ns(&self) -> Option<f64> {
        match self {
            Source::Level(level) => Some(level.ns),
            Source::Point(m) => m.typical(),
        }
    }

    /// Returns the interval in which the figure of the next run is expected, ns.
    pub fn next_run(&self) -> Option<(f64, f64)> {
        match self {
            Source::Level(level) => level.next,
            Source::Point(m) => m.next_run().map(|next| (next.low, next.high)),
        }
    }

    /// Returns the number of rounds behind the figure.
    pub fn rounds(&self) -> usize {
        match self {
            Source::Level(level) => level.rounds,
            Source::Point(m) => figures(&m.rounds).len(),
        }
    }

    /// Returns how far the figure can be trusted.
    pub fn quality(&self) -> &Quality {
        match self {
            Source::Level(level) => &level.quality,
            Source::Point(m) => &m.quality,
        }
    }
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
        assert!(found.iter().all(|one| one.source.ns().is_some()));
    }

    #[test]
    fn a_report_of_other_things_has_no_headline() {
        assert!(headline(&fixture::ipc::latency(), catalogue()).is_empty());
    }
}
