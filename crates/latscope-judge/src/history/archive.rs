//! Archives: the few figures of each point that a history needs of results. An archive grows with points, not with
//! samples.

use crate::compare::environment::of_run;
use crate::runs::{RunResult, point_id};
use latscope_core::histogram::Histogram;
use latscope_core::merged::{is_all_of, is_merged, pairs_in, without_pairs};
use latscope_core::param;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Sampling, Semantics};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Work that is timed at a point: figures of two works are never in one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveWork {
    /// Stable name of the point.
    pub id: String,
    /// Id of the probe.
    pub probe: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Revision of the probe.
    pub revision: u32,
    /// Kind of time measured: one way, round trip or operation.
    pub timed: Semantics,
    /// Requested length of a batch, ns; `None` for single events.
    pub batch_ns: Option<u64>,
    /// True if each event was timed.
    pub events: bool,
    /// Number of pairs of endpoints, if the point is a sum over these.
    pub pairs: Option<u64>,
}

type ArchiveWorkKey = (String, u32, u8, Option<u64>, bool, Option<u64>);

impl ArchiveWork {
    /// Fields that two works of one series have in common: all but the title.
    pub(super) fn series_key(&self) -> ArchiveWorkKey {
        (self.id.clone(), self.revision, self.timed as u8, self.batch_ns, self.events, self.pairs)
    }
}

/// The figures of a point of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivePointFigures {
    /// Place of its work in [`Archive::works`].
    pub work: u32,
    /// True if the point was measured in full, and is neither degraded nor unstable.
    pub trusted: bool,
    /// The median over the rounds, ns.
    pub p50: f32,
    /// The least difference of recorded medians, as a share of them.
    pub step: f32,
    /// The 99th percentile of single events, ns.
    pub p99: Option<f32>,
    /// Counts of single events that took long.
    pub tail: Option<ArchiveTailCounts>,
}

/// Numbers of samples beyond limits that are a quarter of an octave apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveTailCounts {
    /// Number of all samples.
    pub count: u64,
    /// The number of the first limit: about the 90th percentile.
    pub first: u16,
    /// Numbers of samples beyond that limit and each next one; zero beyond the last of them.
    pub beyond: Vec<u64>,
}

/// Number of limits in an octave.
const PER_OCTAVE: f64 = 4.0;

/// The limit of a number, ns: quarters of an octave from 1 ns on.
pub(super) fn tail_limit(number: u16) -> f64 {
    (f64::from(number) / PER_OCTAVE).exp2()
}

impl ArchiveTailCounts {
    /// Counts the tail of a histogram; `None` if it is empty.
    fn from_histogram(histogram: &Histogram) -> Option<ArchiveTailCounts> {
        let p90 = histogram.quantile(0.9)?;
        let first = (p90.max(1.0).log2() * PER_OCTAVE).floor() as u16;
        let mut within = Vec::new();
        for (_, high, n) in histogram.buckets_ns() {
            let number = (high.max(1.0).log2() * PER_OCTAVE).ceil() as u16;
            let at = usize::from(number.saturating_sub(first));
            within.resize(within.len().max(at + 1), 0u64);
            within[at] += n;
        }
        // Those beyond a limit are in the bins above; what overflowed is beyond all of them.
        let mut beyond = vec![0; within.len()];
        let mut sum = histogram.overflow();
        for at in (0..within.len()).rev() {
            beyond[at] = sum;
            sum += within[at];
        }
        beyond.truncate(beyond.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1));
        Some(ArchiveTailCounts { count: histogram.count(), first, beyond })
    }

    /// Number of samples beyond a limit; for limits before the first one, that of the first.
    pub(super) fn beyond(&self, number: u16) -> u64 {
        let at = usize::from(number.saturating_sub(self.first));
        self.beyond.get(at).copied().unwrap_or(0)
    }
}

/// A run with the figures of its points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveRun {
    /// Random name of the run; empty in imported results.
    pub run_id: String,
    /// RFC 3339 time of the start.
    pub started: String,
    /// True if the run was measured to its end.
    pub complete: bool,
    /// Id of the machine, or the name of the host if it has no id.
    pub machine: String,
    /// Name of the host.
    pub host: String,
    /// Places of the run's facts in [`Archive::facts`].
    pub facts: Vec<u32>,
    /// Figures of the run's points, each point once.
    pub points: Vec<ArchivePointFigures>,
}

impl ArchiveRun {
    /// Returns true if both entries are of one run. Runs without a name, as imported ones, must be equal in all fields.
    pub fn is_same(&self, other: &ArchiveRun) -> bool {
        if self.run_id.is_empty() { self == other } else { self.run_id == other.run_id }
    }
}

/// Figures read from many results. Texts that the results share are stored once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    /// Works of all points.
    pub works: Vec<ArchiveWork>,
    /// Names and values of further facts of runs: kernel, tool, checks of the doctor.
    pub facts: Vec<(String, String)>,
}

/// An archive that is being extended.
#[derive(Debug, Default)]
pub struct ArchiveWriter {
    archive: Archive,
    works: HashMap<(ArchiveWorkKey, String), u32>,
    facts: HashMap<(String, String), u32>,
}

impl ArchiveWriter {
    /// Starts with an existing archive, to which results are added.
    pub fn new(archive: Archive) -> ArchiveWriter {
        let works = (0..)
            .zip(&archive.works)
            .map(|(at, work)| ((work.series_key(), work.title.clone()), at))
            .collect();
        let facts = (0..).zip(&archive.facts).map(|(at, fact)| (fact.clone(), at)).collect();
        ArchiveWriter { archive, works, facts }
    }

    /// Adds the texts of a run; returns its entry.
    pub fn encode_run(&mut self, run: &RunResult) -> ArchiveRun {
        let report = &run.report;
        let host = report.machine.name.clone();
        let facts = of_run(run, None).into_iter().filter(|(_, value)| !value.is_empty());
        let facts = facts.map(|fact| self.fact(fact)).collect();
        let mut seen = BTreeSet::new();
        let mut points = Vec::new();
        // Few results have any.
        let sums: Vec<&Measurement> = report
            .measurements
            .iter()
            .filter(|m| m.params.contains_key(param::PAIR) && is_merged(m))
            .collect();
        for (m, batch_ns) in run.points() {
            // A single pair of endpoints is the sum of all: its figures are there once, without a number.
            if sums.iter().any(|sum| is_all_of(m, sum)) {
                continue;
            }
            if let Some(mut figures) = point_figures(m)
                && seen.insert((m.probe.as_str(), &m.params))
            {
                figures.work = self.work(m, pairs_in(report, m), batch_ns);
                points.push(figures);
            }
        }
        ArchiveRun {
            run_id: report.run_id.clone(),
            started: report.started.clone(),
            // Other programs do not say when a run was over.
            complete: (report.finished.is_some() || report.imported.is_some())
                && report.interrupted.is_none(),
            machine: report.machine.id.clone().unwrap_or_else(|| format!("host {host}")),
            host,
            facts,
            points,
        }
    }

    /// Returns the extended archive.
    pub fn into_archive(self) -> Archive {
        self.archive
    }

    fn fact(&mut self, fact: (String, String)) -> u32 {
        let facts = &mut self.archive.facts;
        *self.facts.entry(fact).or_insert_with_key(|fact| {
            facts.push(fact.clone());
            facts.len() as u32 - 1
        })
    }

    fn work(&mut self, m: &Measurement, pairs: Option<u64>, batch_ns: Option<u64>) -> u32 {
        let id = point_id(&m.probe, &m.params);
        let title = if pairs == Some(1) { without_pairs(&m.title) } else { &m.title };
        let title = if title.is_empty() { id.clone() } else { title.to_owned() };
        let events = matches!(m.sampling, Sampling::Event);
        let (probe, revision, timed) = (m.probe.clone(), m.revision, m.times);
        let work = ArchiveWork { id, probe, title, revision, timed, batch_ns, events, pairs };
        let works = &mut self.archive.works;
        *self.works.entry((work.series_key(), work.title.clone())).or_insert_with(|| {
            works.push(work);
            works.len() as u32 - 1
        })
    }
}

/// The figures of a measurement, without a work; `None` if it has no figures.
fn point_figures(m: &Measurement) -> Option<ArchivePointFigures> {
    let p50 = m.typical().filter(|ns| m.quality.level != QualityLevel::Unsupported && ns.is_finite())?;
    let events = m.sampling == Sampling::Event;
    Some(ArchivePointFigures {
        work: 0,
        trusted: m.quality.level == QualityLevel::Ok && !m.incomplete,
        p50: p50 as f32,
        step: if p50 > 0.0 { (m.histogram.resolution(p50) / p50) as f32 } else { 0.0 },
        p99: m.summary.p99.filter(|_| events).map(|ns| ns as f32),
        tail: ArchiveTailCounts::from_histogram(&m.histogram).filter(|_| events),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::format_param;
    use latscope_core::fixture;
    use latscope_core::report::{Imported, Report};

    #[test]
    fn a_tail_counts_what_the_histogram_has_beyond_each_limit() {
        let mut histogram = Histogram::new(1000);
        (0..5000u64)
            .for_each(|i| histogram.record(1000 + i * i % 7919 + if i % 100 == 0 { 90_000 } else { 0 }));
        histogram.record(u64::MAX / 2);
        let tail = ArchiveTailCounts::from_histogram(&histogram).unwrap();
        assert!(tail_limit(tail.first) <= histogram.quantile(0.9).unwrap());
        for number in tail.first..tail.first + 40 {
            let beyond: u64 = histogram
                .buckets_ns()
                .filter(|(_, high, _)| *high > tail_limit(number))
                .map(|(.., n)| n)
                .sum();
            assert_eq!(tail.beyond(number), beyond + 1, "{number}");
            if usize::from(number - tail.first) + 1 == tail.beyond.len() {
                break;
            }
        }
        assert_eq!(tail.beyond(0), tail.beyond(tail.first));
        assert_eq!(tail.beyond(tail.first + tail.beyond.len() as u16), 0);
        assert_eq!(ArchiveTailCounts::from_histogram(&Histogram::new(1000)), None);
    }

    #[test]
    fn texts_are_there_once_and_figures_are_those_of_the_result() {
        let run = RunResult::from_report(fixture::wake());
        let mut writer = ArchiveWriter::default();
        let first = writer.encode_run(&run);
        let archive = writer.into_archive();
        let mut writer = ArchiveWriter::new(archive.clone());
        assert_eq!(writer.encode_run(&run), first);
        assert_eq!(writer.into_archive(), archive);
        let m = run.report.measurements.iter().find(|m| m.typical().is_some()).unwrap();
        let figures = first
            .points
            .iter()
            .find(|point| archive.works[point.work as usize].id == point_id(&m.probe, &m.params));
        let figures = figures.unwrap();
        assert_eq!(figures.p50, m.typical().unwrap() as f32);
        assert_eq!(figures.tail.as_ref().unwrap().count, m.histogram.count());
    }

    #[test]
    fn a_single_pair_of_endpoints_is_there_once_without_its_number() {
        let mut report = fixture::ipc::latency();
        let pair = |m: &mut Measurement| {
            m.title += &format!(", {}", format_param("pair", &m.params["pair"], &m.params))
        };
        report.measurements.iter_mut().for_each(pair);
        let mut writer = ArchiveWriter::default();
        writer.encode_run(&RunResult::from_report(report));
        let titles = writer.into_archive().works.into_iter().map(|work| work.title).collect::<Vec<_>>();
        let binder =
            |caller| ["pair 0", "pair 1", "all pairs"].map(|pair| format!("binder, {caller} caller, {pair}"));
        let single = ["fifo", "other"].map(|caller| format!("unix-stream, {caller} caller"));
        assert_eq!(titles, [&binder("fifo")[..], &binder("other"), &single].concat());
    }

    #[test]
    fn sums_over_other_numbers_of_pairs_are_other_work() {
        let two = fixture::ipc::latency();
        let mut one = two.clone();
        one.measurements.retain(|m| m.numeric_param("pair") != Some(1));
        let mut writer = ArchiveWriter::default();
        let [of_two, of_one] =
            [two, one].map(|report| writer.encode_run(&RunResult::from_report(report)).points);
        let works = writer.into_archive().works;
        let sum = |points: &[ArchivePointFigures]| -> ArchiveWorkKey {
            let mut keys = points.iter().map(|point| works[point.work as usize].series_key());
            keys.find(|key| key.0.contains("binder") && key.0.contains("pair=all")).unwrap()
        };
        assert_eq!((sum(&of_two).5, sum(&of_one).5), (Some(2), Some(1)));
    }

    #[test]
    fn a_run_of_another_program_is_not_taken_for_one_that_ended_early() {
        let complete = |report| ArchiveWriter::default().encode_run(&RunResult::from_report(report)).complete;
        let unfinished = Report { finished: None, ..fixture::wake() };
        let imported = Imported { program: "fio".to_owned(), version: None, unknown: Vec::new() };
        assert!(!complete(unfinished.clone()));
        assert!(complete(Report { imported: Some(imported), ..unfinished }));
    }
}
