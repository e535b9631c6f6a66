//! Result of a plan whose runs have criteria: a record that can be signed.

mod row;
#[cfg(test)]
mod tests;

pub use row::AcceptanceRow;

use crate::runs::machine_name;
use crate::titles::{Titled, title_or_id, titles_apart};
use crate::verdict::{judged_measurements, report_status};
use latscope_core::machine::CheckState;
use latscope_core::report::{Measurement, Report, Verdict, VerdictStatus};
use latscope_core::units::{count_with_noun, format_span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run of the plan.
#[derive(Debug)]
pub struct AcceptanceRun<'a> {
    /// Name of the measurement.
    pub measurement: &'a str,
    /// Name of the load; empty without one.
    pub load: &'a str,
    /// Name of the arm.
    pub arm: &'a str,
    /// Result of the run.
    pub report: &'a Report,
    /// File of the result.
    pub file: HashedFile,
}

/// A file, and what proves that it has not changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HashedFile {
    /// Name of the file.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal digits; empty if the file could not be read.
    pub sha256: String,
}

/// Runs that a plan asks for, and the end of the command.
#[derive(Debug, Clone, Default)]
pub struct AcceptanceScope {
    /// Parts of the plan that were skipped, each with the reason.
    pub skipped: Vec<String>,
    /// Measurements with criteria, under each load in each arm.
    pub asked: usize,
    /// Measurements of these that were skipped.
    pub left_out: usize,
    /// Measurements of these that no run counts of for another reason.
    pub unmeasured: usize,
    /// Exit code of the command.
    pub exit: u8,
}

/// Rule by which all figures of a row are counted.
fn rule(judged: &[&Measurement]) -> String {
    let has =
        |are_events: bool| judged.iter().any(|m| m.can_miss() && row::misses_are_events(m) == are_events);
    let of_activations = ": of all activations that were due, also those that a stall swallowed (missed), each as late \
                          as it would have been";
    let of_calls = " Missed calls took longer than their deadline: they are events.";
    format!(
        "Events, quantiles, the share above the limit and the verdict of a row are of one distribution{}.{} A quantile \
         needs ten events above it.",
        if has(false) { of_activations } else { "" },
        if has(true) { of_calls } else { "" }
    )
}

/// The record of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Acceptance {
    /// The answer in one sentence.
    pub sentence: String,
    /// Worst verdict of all runs; at best inconclusive if a measurement with criteria was not judged.
    pub status: Option<VerdictStatus>,
    /// Runs that exceeded a criterion.
    pub exceeded: usize,
    /// Runs of which a criterion cannot be judged.
    pub inconclusive: usize,
    /// Runs that were judged.
    pub of: usize,
    /// Rule by which the figures of a row are counted.
    pub rule: String,
    /// Machine, kernel, its preemption model and command line, and the program that measured, a line each.
    pub machine: Vec<String>,
    /// Verdicts, with an entry for each measurement of each run.
    pub cells: Vec<AcceptanceRow>,
    /// Checks of the doctor that were bad before the first run.
    pub doctor: Vec<String>,
    /// Conditions that the runs do not cover.
    pub not_tested: Vec<String>,
}

/// Puts the record together; `None` if no run has a criterion. `binary` is the program that made the runs.
pub fn acceptance(
    runs: &[AcceptanceRun],
    scope: &AcceptanceScope,
    binary: Option<&HashedFile>,
) -> Option<Acceptance> {
    let statuses: Vec<VerdictStatus> = runs.iter().filter_map(|run| report_status(run.report)).collect();
    let first = runs.first()?;
    let exceeded = statuses.iter().filter(|status| **status == VerdictStatus::Exceeded).count();
    let inconclusive = statuses.iter().filter(|status| **status == VerdictStatus::Inconclusive).count();
    let found: Vec<(&AcceptanceRun, &Measurement, &Verdict)> = runs
        .iter()
        .flat_map(|run| judged_measurements(run.report).map(move |(m, verdict)| (run, m, verdict)))
        .collect();
    let cells = acceptance_rows(&found);
    let measured: Vec<&Measurement> = found.iter().map(|(_, m, _)| *m).collect();
    let worst = *statuses.iter().max()?;
    let status = Some(if scope.unjudged() > 0 { worst.max(VerdictStatus::Inconclusive) } else { worst });
    let bad = first.report.machine.checks.iter().filter(|check| check.state == CheckState::Bad);
    Some(Acceptance {
        sentence: sentence(exceeded, inconclusive, statuses.len(), &cells, scope),
        status,
        exceeded,
        inconclusive,
        of: statuses.len(),
        rule: rule(&measured),
        machine: machine(runs, binary),
        doctor: bad.map(|check| format!("{}: {}", check.id, check.found)).collect(),
        not_tested: not_tested(&cells, &scope.skipped),
        cells,
    })
}

impl AcceptanceScope {
    /// Measurements with criteria of which none was judged.
    fn unjudged(&self) -> usize {
        self.left_out + self.unmeasured
    }

    /// Returns which measurements were not judged, and the words for the remaining ones.
    fn format_scope(&self) -> (String, String) {
        let of = count_with_noun(self.asked as u64, "measurement");
        let was = |number: usize| if number == 1 { "was" } else { "were" };
        let said = [(self.left_out, "skipped"), (self.unmeasured, "not measured")];
        let said = said.into_iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> =
            said.map(|(number, how)| format!("{number} of {of} {} {how}", was(number))).collect();
        match (self.unjudged(), self.asked.saturating_sub(self.unjudged())) {
            (0, _) => (String::new(), String::new()),
            (_, 1) => (format!("{}: not judged. ", said.join(" and ")), " of the other".to_owned()),
            (_, left) => (format!("{}: not judged. ", said.join(" and ")), format!(" of the other {left}")),
        }
    }
}

/// Rows of measurements, whose titles tell them apart.
fn acceptance_rows(found: &[(&AcceptanceRun, &Measurement, &Verdict)]) -> Vec<AcceptanceRow> {
    let titles: Vec<String> = found.iter().map(|(_, m, _)| title_or_id(m)).collect();
    let points = found.iter().zip(&titles);
    let points: Vec<Titled> =
        points.map(|((_, m, _), title)| (m.probe.as_str(), title.as_str(), &m.params)).collect();
    let apart = titles_apart(&points);
    found
        .iter()
        .zip(apart)
        .map(|((run, m, verdict), title)| row::acceptance_row(run, m, verdict, title))
        .collect()
}

fn sentence(
    exceeded: usize,
    inconclusive: usize,
    of: usize,
    cells: &[AcceptanceRow],
    scope: &AcceptanceScope,
) -> String {
    let (unjudged, of_rest) = scope.format_scope();
    let code = if scope.exit == 0 { String::new() } else { format!(" Exit code {}.", scope.exit) };
    let runs = count_with_noun(of as u64, "run");
    let and = match inconclusive {
        0 => String::new(),
        number => format!("; {number} cannot be judged"),
    };
    let answer = match (exceeded, inconclusive) {
        (0, 0) => {
            let shortest = cells.iter().filter_map(|cell| cell.time_ns).min();
            let time = shortest.map_or(String::new(), |ns| {
                let (time, often) = (format_span(ns as f64), format_span(ns as f64 / 3.0));
                format!(" (at least {time} each: what recurs at random more often than once in {often} was tested)")
            });
            format!("Every criterion{of_rest} holds in {of} of {runs}{time}.")
        }
        (0, _) => format!("No criterion is exceeded in {runs}, but {inconclusive} cannot be judged."),
        (exceeded, _) => format!("A criterion is exceeded in {exceeded} of {runs}{and}."),
    };
    format!("{unjudged}{answer}{code}")
}

/// Facts that the runs share; where they differ, each value.
fn machine(runs: &[AcceptanceRun], binary: Option<&HashedFile>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact_of in FACTS {
        for fact in runs.iter().map(|run| fact_of(run.report)) {
            if !fact.trim().is_empty() && !lines.contains(&fact) {
                lines.push(fact);
            }
        }
    }
    let hash = |file: &HashedFile| format!("SHA-256 of the program {}: {}", file.name, file.sha256);
    lines.extend(binary.filter(|file| !file.sha256.is_empty()).map(hash));
    lines
}

/// Facts about the machine and the program, a line each; empty where a result does not have it.
const FACTS: [fn(&Report) -> String; 5] = [
    |report| machine_name(&report.machine),
    |report| {
        format!("Linux {} {}", report.machine.kernel, report.machine.kernel_version).trim_end().to_owned()
    },
    |report| format_named("preemption", &report.machine.preemption()),
    |report| format_named("kernel command line", report.machine.command_line.as_deref().unwrap_or_default()),
    |report| {
        let tool = &report.tool;
        let commit = if tool.commit.is_empty() { String::new() } else { format!(" ({})", tool.commit) };
        format!("latscope {}{commit}", tool.version)
    },
];

fn format_named(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!("{name}: {value}") }
}

fn not_tested(cells: &[AcceptanceRow], skipped: &[String]) -> Vec<String> {
    let mut said: Vec<String> = skipped.iter().map(|one| format!("skipped: {one}")).collect();
    if let Some(ns) = cells.iter().filter_map(|cell| cell.time_ns).min() {
        let often = format_span(ns as f64 / 3.0);
        said.push(format!("what recurs more rarely than once in {often}, in the shortest of the runs"));
    }
    said.push("loads, devices and paths of the kernel that no run used".to_owned());
    said
}
