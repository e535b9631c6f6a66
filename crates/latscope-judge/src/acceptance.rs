//! Result of a plan whose runs have criteria: a record that can be signed.

use crate::runs::machine_name;
use crate::verdict::{judged, report_status};
use latscope_core::machine::CheckState;
use latscope_core::quality::Level;
use latscope_core::report::{Account, Check, Measurement, Report, Status, Verdict};
use latscope_core::units::{counted, format_share, format_span};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A run of the plan.
#[derive(Debug)]
pub struct Input<'a> {
    /// Name of the measurement.
    pub measurement: &'a str,
    /// Name of the load; empty without one.
    pub load: &'a str,
    /// Name of the arm.
    pub arm: &'a str,
    /// Result of the run.
    pub report: &'a Report,
}

/// The record of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Acceptance {
    /// The answer in one sentence.
    pub sentence: String,
    /// Worst verdict of all runs.
    pub status: Option<Status>,
    /// Runs that exceeded a criterion.
    pub exceeded: usize,
    /// Runs of which a criterion cannot be judged.
    pub inconclusive: usize,
    /// Runs that were judged.
    pub of: usize,
    /// Machine, kernel and program, a line each.
    pub machine: Vec<String>,
    /// Verdicts, with an entry for each measurement of each run.
    pub cells: Vec<Judged>,
    /// Checks of the doctor that were bad before the first run.
    pub doctor: Vec<String>,
    /// Conditions that the runs do not cover.
    pub not_tested: Vec<String>,
}

/// Verdict on one measurement of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Judged {
    /// Name of the measurement.
    pub measurement: String,
    /// Name of the load; empty without one.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// Title of the measurement for a reader.
    pub title: String,
    /// Events, with the activations that were missed.
    pub events: u64,
    /// Time in which an event would have been seen, ns.
    pub time_ns: Option<u64>,
    /// Quantiles of the distribution that has the missed activations, ns: the median, p99, p99.9, p99.99.
    pub quantiles: [Option<f64>; 4],
    /// Largest value of the measurement, ns.
    pub max: Option<f64>,
    /// Events above the limit of `max`, and how many there are.
    pub above: Option<(u64, u64)>,
    /// Verdict on the measurement.
    pub status: Option<Status>,
    /// Each criterion with its result, which names the tested quantity.
    pub checks: Vec<String>,
    /// Causes that took the time of the traced events, the largest first.
    pub causes: Vec<String>,
    /// Conditions that distort the measurement.
    pub doubts: Vec<String>,
    /// Account of the processes that used the CPU time.
    pub account: Option<Account>,
}

/// Puts the record together; `None` if no run has a criterion.
pub fn acceptance(runs: &[Input], skipped: &[String]) -> Option<Acceptance> {
    let statuses: Vec<Status> = runs.iter().filter_map(|run| report_status(run.report)).collect();
    let first = runs.first()?;
    let exceeded = statuses.iter().filter(|status| **status == Status::Exceeded).count();
    let inconclusive = statuses.iter().filter(|status| **status == Status::Inconclusive).count();
    let cells: Vec<Judged> = runs.iter().flat_map(cell).collect();
    let status = Some(*statuses.iter().max()?);
    let bad = first.report.machine.checks.iter().filter(|check| check.state == CheckState::Bad);
    Some(Acceptance {
        sentence: sentence(exceeded, inconclusive, statuses.len(), &cells),
        status,
        exceeded,
        inconclusive,
        of: statuses.len(),
        machine: machine(first.report),
        doctor: bad.map(|check| format!("{}: {}", check.id, check.found)).collect(),
        not_tested: not_tested(&cells, skipped),
        cells,
    })
}

fn sentence(exceeded: usize, inconclusive: usize, of: usize, cells: &[Judged]) -> String {
    let runs = counted(of as u64, "run");
    let and = match inconclusive {
        0 => String::new(),
        number => format!("; {number} cannot be judged"),
    };
    match (exceeded, inconclusive) {
        (0, 0) => {
            let shortest = cells.iter().filter_map(|cell| cell.time_ns).min();
            let time = shortest.map_or(String::new(), |ns| {
                let (time, often) = (format_span(ns as f64), format_span(ns as f64 / 3.0));
                format!(" (at least {time} each: what recurs at random more often than once in {often} was tested)")
            });
            format!("Every criterion holds in {of} of {runs}{time}.")
        }
        (0, _) => format!("No criterion is exceeded in {runs}, but {inconclusive} cannot be judged."),
        (exceeded, _) => format!("A criterion is exceeded in {exceeded} of {runs}{and}."),
    }
}

fn machine(report: &Report) -> Vec<String> {
    let machine = &report.machine;
    let commit = &report.tool.commit;
    let commit = if commit.is_empty() { String::new() } else { format!(" ({commit})") };
    let lines = [
        machine_name(machine),
        format!("Linux {}", machine.kernel),
        format!("latscope {}{commit}", report.tool.version),
    ];
    lines.into_iter().filter(|line| !line.trim().is_empty()).collect()
}

fn not_tested(cells: &[Judged], skipped: &[String]) -> Vec<String> {
    let mut said: Vec<String> = skipped.iter().map(|one| format!("skipped: {one}")).collect();
    if let Some(ns) = cells.iter().filter_map(|cell| cell.time_ns).min() {
        let often = format_span(ns as f64 / 3.0);
        said.push(format!("what recurs more rarely than once in {often}, in the shortest of the runs"));
    }
    said.push("loads, devices and paths of the kernel that no run used".to_owned());
    said
}

fn cell(run: &Input) -> Vec<Judged> {
    judged(run.report).map(|(m, verdict)| cell_of(run, m, verdict)).collect()
}

fn cell_of(run: &Input, m: &Measurement, verdict: &Verdict) -> Judged {
    let histogram = m.corrected.as_ref().unwrap_or(&m.histogram);
    let max = verdict.checks.iter().find(|check| ["max", "threshold"].contains(&check.metric.as_str()));
    let doubts = m.quality.reasons.iter().filter(|reason| reason.level > Level::Ok);
    Judged {
        measurement: run.measurement.to_owned(),
        load: run.load.to_owned(),
        arm: run.arm.to_owned(),
        title: m.title.clone(),
        events: histogram.count(),
        time_ns: m.tested.map(|tested| tested.time_ns),
        quantiles: [
            histogram.quantile(0.5),
            histogram.tail_quantile(0.99),
            histogram.tail_quantile(0.999),
            histogram.tail_quantile(0.9999),
        ],
        max: m.summary.max,
        above: max.and_then(|check| check.above.zip(check.of)),
        status: Some(verdict.status),
        checks: verdict.checks.iter().map(words).collect(),
        causes: causes(m),
        doubts: doubts.map(|reason| reason.text.clone()).collect(),
        account: m.account.clone().or_else(|| run.report.activity.clone()),
    }
}

fn words(check: &Check) -> String {
    format!("{}: {}", check.metric.replace('_', "."), check.text)
}

/// Causes of the events that were traced, by the time that each took of them.
fn causes(m: &Measurement) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for cause in m.outliers.iter().filter(|outlier| outlier.is_traced()).flat_map(|outlier| &outlier.cause) {
        *sums.entry(format!("{} {}", cause.kind, cause.name).trim_end().to_owned()).or_default() += cause.ns;
    }
    let all = sums.values().sum::<u64>().max(1) as f64;
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let shares = sums.into_iter().map(|(name, ns)| (name, (ns as f64 / all * 1e3).round() / 1e3));
    shares.take(3).map(|(name, share)| format!("{name} {}", format_share(share))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Criterion, judge_report};
    use latscope_core::fixture;

    fn run(limit: f64) -> Report {
        let mut report = fixture::wake();
        judge_report(&mut report, &[Criterion::new("max", limit).unwrap()]);
        report
    }

    fn record(limits: &[f64]) -> Acceptance {
        let reports: Vec<Report> = limits.iter().map(|limit| run(*limit)).collect();
        let input = |report| Input { measurement: "osadl", load: "cpu", arm: "as-is", report };
        let inputs: Vec<Input> = reports.iter().map(input).collect();
        acceptance(&inputs, &["load disk: no disk".to_owned()]).unwrap()
    }

    #[test]
    fn one_sentence_says_in_how_many_runs_what_was_asked_is_exceeded() {
        let record = record(&[50_000.0, 1e9, 50_000.0]);
        assert_eq!(record.sentence, "A criterion is exceeded in 2 of 3 runs.");
        assert_eq!((record.exceeded, record.of, record.status), (2, 3, Some(Status::Exceeded)));
        assert_eq!(record.not_tested[0], "skipped: load disk: no disk");
    }

    #[test]
    fn a_pass_says_what_was_tested_and_what_not() {
        let record = record(&[1e9]);
        assert_eq!(
            record.sentence,
            "Every criterion holds in 1 of 1 run (at least 30 s each: what recurs at random more often than once in \
             10 s was tested)."
        );
        assert!(record.not_tested[1].contains("more rarely than once in 10 s"), "{record:#?}");
    }

    #[test]
    fn figures_are_those_with_the_missed_activations() {
        let record = record(&[50_000.0]);
        let [cell] = &record.cells[..] else { panic!("{record:#?}") };
        assert_eq!(
            (cell.events, cell.above, cell.time_ns),
            (60_003, Some((2, 60_000)), Some(30_003_000_000))
        );
        assert!(cell.causes[0].starts_with("thread stress-ng-cpu"), "{cell:#?}");
        assert!(cell.checks[0].starts_with("max: 2 of 60,000"), "{cell:#?}");
    }

    #[test]
    fn without_criteria_there_is_no_record() {
        let report = fixture::wake();
        let input = Input { measurement: "osadl", load: "", arm: "", report: &report };
        assert_eq!(acceptance(&[input], &[]), None);
    }
}
