//! This machine's figures in the definitions of published ones.

use super::{ALL_PAIRS, Definition, NO_LOAD, PAIRS_OF_A_CORE, Reference, ReferenceStatistic, Times};
use crate::findings::{LevelRow, level_rows};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report, Sampling, Semantics};
use latscope_core::statistics::median;
use latscope_core::units::{count_with_noun, format_time};
use std::collections::BTreeSet;

/// Number of published figures of one definition from which on this machine's place among them is said.
const ENOUGH: usize = 10;

/// Number of published figures shown on each side of this machine's.
const NEAREST: usize = 3;

/// Likeness of a published figure and the row beside which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Likeness {
    /// One definition: both were taken in the same way.
    Exact,
    /// One operation; the source does not state the statistic or the load.
    Stated,
    /// Two definitions, and the difference.
    Differs(String),
}

/// Published figure beside this machine's.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceComparison<'a> {
    /// Published figure that the row is compared with.
    pub reference: &'a Reference,
    /// Name of this machine's row.
    pub row: String,
    /// This machine's figure, ns, with the statistic of the published one and divided by its factor.
    pub here: f64,
    /// Likeness of the two.
    pub likeness: Likeness,
    /// True if this machine's figure is unstable or degraded.
    pub is_doubtful: bool,
    /// Pairs of CPUs measured here, and pairs of all CPUs that could be; `None` for a figure of one point.
    pub pairs: Option<(usize, usize)>,
}

/// Published figures beside one row of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceRowGroup<'a> {
    /// Name of the row.
    pub row: String,
    /// Figures beside it, from the fastest against this machine on.
    pub all: Vec<ReferenceComparison<'a>>,
}

impl ReferenceComparison<'_> {
    /// Returns the published figure, divided by this machine's.
    pub fn ratio(&self) -> f64 {
        self.reference.ns / self.here
    }

    /// Returns the sign of the likeness: `≠`, `½`, or nothing.
    pub fn sign(&self) -> &'static str {
        match (&self.likeness, self.reference.definition.times) {
            (Likeness::Differs(_), _) => "≠",
            (_, Times::HalfRoundTrip) => "½",
            _ => "",
        }
    }
}

impl<'a> ReferenceRowGroup<'a> {
    /// Returns the published figures beside the rows of a report, a group for each row, in the order of `references`.
    pub fn for_report(report: &Report, references: &'a [Reference]) -> Vec<ReferenceRowGroup<'a>> {
        let here = MachineResult { report, levels: level_rows(report) };
        let mut groups: Vec<ReferenceRowGroup> = Vec::new();
        for one in references.iter().filter_map(|reference| here.compare_reference(reference)) {
            match groups.iter_mut().find(|group| group.row == one.row) {
                Some(group) => group.all.push(one),
                None => groups.push(ReferenceRowGroup { row: one.row.clone(), all: vec![one] }),
            }
        }
        for group in &mut groups {
            group.all.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        }
        groups
    }

    /// Returns the three published figures below and the three above this machine's.
    pub fn nearest(mut self) -> ReferenceRowGroup<'a> {
        let below = self.all.partition_point(|one| one.ratio() < 1.0);
        self.all.truncate(below + NEAREST);
        self.all.drain(..below.saturating_sub(NEAREST));
        self
    }
}

/// Returns this machine's place among the published figures that have exactly the definition of one of its own, a
/// sentence for each definition with at least ten.
pub fn standings(groups: &[ReferenceRowGroup]) -> Vec<String> {
    let mut sentences = Vec::new();
    for group in groups {
        let mut left: Vec<&ReferenceComparison> =
            group.all.iter().filter(|one| one.likeness == Likeness::Exact).collect();
        while let Some(first) = left.first().copied() {
            let (same, others): (Vec<&ReferenceComparison>, Vec<&ReferenceComparison>) =
                left.into_iter().partition(|one| is_one_definition(first, one));
            sentences.extend(standing(first, &same));
            left = others;
        }
    }
    sentences
}

/// Returns true if two published figures differ in machine, value and tool only.
fn is_one_definition(a: &ReferenceComparison, b: &ReferenceComparison) -> bool {
    let [a, b] = [&a.reference.definition, &b.reference.definition];
    (a.times, a.statistic, &a.over, &a.row, a.bytes) == (b.times, b.statistic, &b.over, &b.row, b.bytes)
}

fn standing(first: &ReferenceComparison, same: &[&ReferenceComparison]) -> Option<String> {
    let slower = same.iter().filter(|one| one.reference.ns > one.here).count();
    let (measured, all) = first.pairs.unwrap_or_default();
    let pairs = match measured {
        0 => String::new(),
        _ if measured < all => format!("; here {measured} of {}", count_with_noun(all as u64, "pair")),
        _ => format!("; here {}", count_with_noun(measured as u64, "pair")),
    };
    // The place of a figure that was distorted says nothing about the machine.
    (same.len() >= ENOUGH && !first.is_doubtful).then(|| {
        format!(
            "{} {} ({}{pairs}): faster than {slower} of {} published machines",
            first.reference.figure,
            format_time(first.here),
            first.reference.format_definition(),
            same.len()
        )
    })
}

/// Figure of this machine.
struct MachineFigureRow {
    name: String,
    ns: f64,
    level: QualityLevel,
    times: Semantics,
    sampling: Sampling,
    pairs: Option<(usize, usize)>,
}

/// Result of this machine, with its levels of memory.
struct MachineResult<'a> {
    report: &'a Report,
    levels: Vec<LevelRow>,
}

impl MachineResult<'_> {
    /// Returns a published figure beside this machine's; `None` if there is none here.
    fn compare_reference<'r>(&self, reference: &'r Reference) -> Option<ReferenceComparison<'r>> {
        let definition = &reference.definition;
        let row = if definition.row.level.is_some() {
            self.level(reference)?
        } else if [ALL_PAIRS, PAIRS_OF_A_CORE].contains(&definition.over.as_str()) {
            self.over_pairs(reference)?
        } else {
            self.of_point(reference)?
        };
        let likeness = self.likeness(reference, row.times, row.sampling);
        let here = row.ns / definition.factor;
        let is_doubtful = row.level.is_doubtful();
        let one =
            ReferenceComparison { reference, row: row.name, here, likeness, is_doubtful, pairs: row.pairs };
        (here > 0.0).then_some(one)
    }

    fn level(&self, reference: &Reference) -> Option<MachineFigureRow> {
        let mut sure = self.levels.iter().filter(|level| level.within.is_none());
        let level = sure.find(|level| reference.definition.row.is_level(&level.name))?;
        Some(MachineFigureRow {
            name: level.read_title(),
            ns: level.ns,
            level: level.quality.level,
            times: Semantics::Operation,
            sampling: Sampling::Batch { ops: 0 },
            pairs: None,
        })
    }

    fn over_pairs(&self, reference: &Reference) -> Option<MachineFigureRow> {
        let Definition { over, statistic, .. } = &reference.definition;
        let of_a_core = over == PAIRS_OF_A_CORE;
        let is_wanted =
            |m: &&Measurement| m.cpu_pair().is_some_and(|(a, b)| !of_a_core || self.share_a_core(a, b));
        let found: Vec<&Measurement> = self.matching_points(reference).filter(is_wanted).collect();
        let figures: Vec<f64> = found.iter().filter_map(|m| statistic_ns(m, *statistic)).collect();
        let first = *found.first()?;
        Some(MachineFigureRow {
            name: reference.figure.clone(),
            ns: median(&figures)?,
            level: found.iter().map(|m| m.quality.level).max()?,
            times: first.times,
            sampling: first.sampling,
            pairs: Some((found.len(), self.possible(over))),
        })
    }

    fn of_point(&self, reference: &Reference) -> Option<MachineFigureRow> {
        // The point of the survey's table, if there is one.
        let meant: Vec<&Measurement> = self.matching_points(reference).collect();
        let m = *meant.iter().find(|m| m.row).or(meant.first())?;
        let part = match reference.definition.bytes {
            None => 1.0,
            Some(bytes) => {
                let touched = m.work.map(|work| work.bytes_touched).filter(|touched| *touched > 0)?;
                bytes as f64 / touched as f64
            }
        };
        Some(MachineFigureRow {
            name: if m.title.is_empty() { m.probe.clone() } else { m.title.clone() },
            ns: part * statistic_ns(m, reference.definition.statistic)?,
            level: m.quality.level,
            times: m.times,
            sampling: m.sampling,
            pairs: None,
        })
    }

    /// Returns the measured points that a figure may stand beside.
    fn matching_points<'m>(&'m self, reference: &'m Reference) -> impl Iterator<Item = &'m Measurement> {
        let row = &reference.definition.row;
        let measured =
            |m: &&Measurement| m.typical().is_some() && m.quality.level != QualityLevel::Unsupported;
        self.report.measurements.iter().filter(measured).filter(|m| row.is_point(&m.probe, &m.params))
    }

    fn share_a_core(&self, a: u32, b: u32) -> bool {
        self.report.machine.cpus.iter().any(|cpu| cpu.id == a && cpu.siblings.0.contains(&b))
    }

    /// Returns the number of pairs that a whole measurement has.
    fn possible(&self, over: &str) -> usize {
        let machine = &self.report.machine;
        let allowed: BTreeSet<u32> = machine.allowed.0.iter().copied().collect();
        if over == ALL_PAIRS {
            return allowed.len() * allowed.len().saturating_sub(1) / 2;
        }
        let mut pairs = 0;
        for cpu in machine.cpus.iter().filter(|cpu| allowed.contains(&cpu.id)) {
            pairs +=
                cpu.siblings.0.iter().filter(|other| **other > cpu.id && allowed.contains(other)).count();
        }
        pairs
    }

    fn likeness(&self, reference: &Reference, times: Semantics, sampling: Sampling) -> Likeness {
        let definition = &reference.definition;
        let is_converted = matches!(
            (definition.times, times),
            (Times::RoundTrip | Times::HalfRoundTrip, Semantics::RoundTrip)
                | (Times::OneWay, Semantics::OneWay)
                | (Times::Operation, Semantics::Operation)
        );
        let of_events = !matches!(
            definition.statistic,
            ReferenceStatistic::Mean | ReferenceStatistic::Median | ReferenceStatistic::NotStated
        );
        if !definition.differs.is_empty() {
            Likeness::Differs(definition.differs.clone())
        } else if !is_converted {
            Likeness::Differs(format!(
                "{}; the row is: {}",
                definition.times.display_name(),
                times.display_name()
            ))
        } else if of_events && sampling != Sampling::Event {
            Likeness::Differs("of single events; the row has means of many".to_owned())
        } else if definition.load != "not stated"
            && (definition.load == NO_LOAD) != self.report.plan.load.is_none()
        {
            Likeness::Differs(format!("load there: {}; another one here", definition.load))
        } else if definition.statistic == ReferenceStatistic::NotStated || definition.load == "not stated" {
            Likeness::Stated
        } else {
            Likeness::Exact
        }
    }
}

/// Returns a statistic of a measurement, ns.
fn statistic_ns(m: &Measurement, statistic: ReferenceStatistic) -> Option<f64> {
    match statistic {
        ReferenceStatistic::Mean => m.summary.mean,
        ReferenceStatistic::Median | ReferenceStatistic::NotStated => m.typical(),
        ReferenceStatistic::Minimum => m.summary.min,
        ReferenceStatistic::Maximum => m.summary.max,
        ReferenceStatistic::P99 => m.summary.p99,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_a_thousand_cpus_are_counted_without_a_look_at_each() {
        let mut report = latscope_core::testing::report(Vec::new());
        report.machine = latscope_core::fixture::machines::thousand();
        let here = MachineResult { report: &report, levels: Vec::new() };
        assert_eq!((here.possible(ALL_PAIRS), here.possible(PAIRS_OF_A_CORE)), (1024 * 1023 / 2, 512));
    }
}
