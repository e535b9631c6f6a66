//! Differences between two sides beside the figures: machine, kernel, settings, load, tool, other processes.

use super::settings::{settings, shared_steps};
use crate::runs::{Run, extremes};
use latscope_core::plan::Load;
use latscope_core::report::{Account, QUIET};
use latscope_core::statistics::median;
use latscope_core::units::{counted, format_share};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A fact in which two sides differ, with the values of the runs, each once.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The fact: `kernel`, `clock source`, `label board`, `doctor: smt`.
    pub what: String,
    /// Values of the runs of A; empty if the runs have none.
    pub a: Vec<String>,
    /// Values of the runs of B.
    pub b: Vec<String>,
}

impl Difference {
    /// Returns the difference between the values of two sides, if there is one. What one side does not record is none,
    /// but for names that the user gives.
    pub(crate) fn between(fact: &str, a: Vec<String>, b: Vec<String>) -> Option<Difference> {
        let recorded = !a.is_empty() && !b.is_empty() || fact.starts_with(LABEL);
        (a != b && recorded).then(|| Difference { what: fact.to_owned(), a, b })
    }
}

/// The facts that name one machine: two values of one side are two machines.
const MACHINE: [&str; 2] = ["machine", "host"];

/// Prefix of the facts that the user names.
pub(crate) const LABEL: &str = "label ";

/// The facts in which two sides differ, in the order of their weight.
pub fn differences(a: &[&Run], b: &[&Run]) -> Vec<Difference> {
    let [reports_a, reports_b] = [a, b].map(|side| side.iter().map(|run| &run.report).collect::<Vec<_>>());
    let steps = shared_steps(&reports_a, &reports_b);
    let (of_a, of_b) = (facts(a, Some(&steps)), facts(b, Some(&steps)));
    let names: BTreeSet<&(usize, String)> = of_a.keys().chain(of_b.keys()).collect();
    let differences = names.into_iter().filter_map(|name| {
        let [a, b] = [&of_a, &of_b].map(|side| side.get(name).into_iter().flatten().cloned().collect());
        Difference::between(&name.1, a, b)
    });
    differences.collect()
}

/// Reasons why a side is less than runs of one thing (two machines, incomplete runs), and a remark if the sides were
/// measured at different times.
pub fn remarks(a: &[&Run], b: &[&Run]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (name, runs) in [("A", a), ("B", b)] {
        let machines = facts(runs, None)
            .into_iter()
            .find(|(fact, values)| MACHINE.contains(&&*fact.1) && values.len() > 1);
        if let Some((_, values)) = machines {
            let names: Vec<String> = values.into_iter().collect();
            remarks.push(format!(
                "{name} mixes {} machines ({}): what differs between them is in its spread",
                names.len(),
                names.join(", ")
            ));
        }
        remarks.extend(imported(name, runs));
        let early =
            runs.iter().filter(|run| run.report.is_unfinished() || run.report.interrupted.is_some()).count();
        if early > 0 {
            remarks.push(format!("{} of {name} ended early", counted(early as u64, "run")));
        }
        let single = runs.iter().filter(|run| run.report.plan.rounds < 2).count();
        if single > 0 {
            remarks.push(format!(
                "{} of {name} without rounds: how far a figure moves within a run is not known",
                counted(single as u64, "run")
            ));
        }
    }
    remarks.extend(apart_in_time(a, b));
    remarks
}

/// Facts that the other programs that measured a side do not record, a sentence for each program.
fn imported(name: &str, runs: &[&Run]) -> Vec<String> {
    let mut programs: BTreeMap<String, (u64, Vec<&str>)> = BTreeMap::new();
    for imported in runs.iter().filter_map(|run| run.report.imported.as_ref()) {
        let (count, unknown) = programs.entry(imported.name()).or_default();
        *count += 1;
        for fact in &imported.unknown {
            if !unknown.contains(&fact.as_str()) {
                unknown.push(fact);
            }
        }
    }
    let sentences = programs.into_iter().map(|(program, (count, unknown))| {
        let (runs, unknown) = (counted(count, "run"), unknown.join(", "));
        format!("{runs} of {name} measured by {program}, not known of it: {unknown}")
    });
    sentences.collect()
}

/// Returns a remark if one side was measured before the other; `None` if a time is not known. Times are RFC 3339 in
/// UTC, which sort as text.
fn apart_in_time(a: &[&Run], b: &[&Run]) -> Option<String> {
    let [[first_a, last_a], [first_b, last_b]] =
        [a, b].map(|side| extremes(side.iter().map(|run| &*run.report.started)));
    let (early, late) = match () {
        () if first_a.is_empty() || first_b.is_empty() => return None,
        () if last_a < first_b => ("A", "B"),
        () if last_b < first_a => ("B", "A"),
        () => return None,
    };
    let text = "what changed with time is in the ratios, too (interleave them in random order)";
    (a.len() + b.len() > 2).then(|| format!("all runs of {early} were made before those of {late}: {text}"))
}

/// Sides are unlike where the share of the CPUs that others used differs by more.
pub(crate) const UNLIKE: f64 = 0.25;

/// A sentence about the CPU time of other processes, if that differs far between two sides. A requested load is not
/// part of it.
pub(crate) fn unlike(a: &[&Run], b: &[&Run]) -> Option<String> {
    let [a, b] = [a, b].map(|runs| {
        let known = runs.iter().filter_map(|run| run.report.activity.as_ref()?.known_others());
        let shares: Vec<f64> = known.collect();
        median(&shares)
    });
    unlike_shares(a?, b?, ["A", "B"])
}

/// A sentence about two shares of CPU time of other processes, if they differ by more than [`UNLIKE`].
pub(crate) fn unlike_shares(a: f64, b: f64, names: [&str; 2]) -> Option<String> {
    ((a - b).abs() > UNLIKE).then(|| {
        format!(
            "other processes used {} of the CPUs in {} and {} in {}: the runs differ in that (--accept-busy judges \
             all the same)",
            format_share(a),
            names[0],
            format_share(b),
            names[1]
        )
    })
}

/// Values of each fact; facts are in the order in which they are printed.
type Facts = BTreeMap<(usize, String), BTreeSet<String>>;

fn facts(runs: &[&Run], steps: Option<&BTreeSet<&str>>) -> Facts {
    let mut facts = Facts::new();
    for run in runs {
        for (place, (what, value)) in
            of_run(run, steps).into_iter().enumerate().filter(|(_, (_, value))| !value.is_empty())
        {
            facts.entry((place.min(OPEN), what)).or_default().insert(value);
        }
    }
    facts
}

/// Place from which on facts are in the order of their names: labels, settings and checks.
const OPEN: usize = 15;

/// Facts known of a run beside its figures, by name, in the order of weight; empty texts where the run has no value. The
/// settings are those of the given steps, or of all.
pub(crate) fn of_run(run: &Run, steps: Option<&BTreeSet<&str>>) -> Vec<(String, String)> {
    let report = &run.report;
    let machine = &report.machine;
    let others = report.activity.as_ref().and_then(Account::known_others).map(|others| {
        if others < QUIET {
            return "less than 5 % of the CPUs".to_owned();
        }
        let share = format_share((others * 10.0).round().max(1.0) / 10.0);
        format!("about {share} of the CPUs")
    });
    // Another program records neither load nor rounds.
    let (no_load, rounds) = match report.imported {
        Some(_) => ("", String::new()),
        None => ("none", report.plan.rounds.to_string()),
    };
    let fixed: [(&str, String); OPEN] = [
        ("machine", machine.id.clone().unwrap_or_default()),
        ("host", machine.name.clone()),
        ("architecture", machine.architecture.clone()),
        ("CPU model", machine.cpu_model.clone()),
        ("microcode", machine.microcode.clone().unwrap_or_default()),
        ("hypervisor", machine.hypervisor.clone().unwrap_or_default()),
        ("CPUs", report.plan.cpus.to_string()),
        ("kernel", format!("{} {}", machine.kernel, machine.kernel_version).trim().to_owned()),
        ("command line", machine.command_line.clone().unwrap_or_default()),
        ("scheduler", machine.scheduler.clone().unwrap_or_default()),
        ("clock source", machine.clock.source.clone()),
        ("load", report.plan.load.as_ref().map_or(no_load.to_owned(), word)),
        (OTHERS, others.unwrap_or_default()),
        (TOOL, tool(report)),
        ("rounds", rounds),
    ];
    let labels = report.labels.iter().map(|(name, value)| (format!("{LABEL}{name}"), value.clone()));
    let checks =
        machine.checks.iter().map(|check| (format!("doctor: {}", check.id), check.state.word().to_owned()));
    let fixed = fixed.map(|(what, value)| (what.to_owned(), value)).into_iter();
    fixed.chain(labels).chain(settings(report, steps)).chain(checks).collect()
}

/// A load as the user requests it.
fn word(load: &Load) -> String {
    match load {
        Load::Command(command) => command.clone(),
        built_in => built_in.words().map_or_else(String::new, |(name, _)| name.to_owned()),
    }
}

/// Name of the fact about the CPU time that other processes used.
pub(crate) const OTHERS: &str = "other processes used";

/// Name of the fact about the program that measured.
pub(crate) const TOOL: &str = "tool";

/// The program that measured, with its version and commit.
pub(super) fn tool(report: &latscope_core::report::Report) -> String {
    match &report.imported {
        Some(imported) => imported.name(),
        None => {
            let tool = &report.tool;
            format!("{} {} {}", tool.name, tool.version, tool.commit).trim().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn another_scheduler_is_a_difference_and_one_that_is_not_known_is_none() {
        let under = |scheduler: Option<&str>| {
            let mut report = fixture::wake();
            report.machine.scheduler = scheduler.map(str::to_owned);
            Run::of(report)
        };
        let [unknown, own, loaded] = [None, Some("kernel"), Some("bpfland_1.0")].map(under);
        let found = differences(&[&own], &[&loaded]);
        assert_eq!((found.len(), found[0].what.as_str()), (1, "scheduler"));
        assert_eq!(
            (&found[0].a[..], &found[0].b[..]),
            (&["kernel".to_owned()][..], &["bpfland_1.0".to_owned()][..])
        );
        assert_eq!(differences(&[&unknown], &[&loaded]), []);
    }

    #[test]
    fn a_load_is_named_as_it_was_asked_for() {
        let beside = |load: Option<Load>| {
            let mut report = fixture::wake();
            report.plan.load = load;
            Run::of(report)
        };
        let all =
            [None, Some(Load::PiStorm), Some(Load::Command("stress-ng --cpu 2".to_owned()))].map(beside);
        let found = differences(&[&all[0]], &[&all[1], &all[2]]);
        let load = found.iter().find(|one| one.what == "load").unwrap();
        assert_eq!(
            (&load.a[..], &load.b[..]),
            (&["none".to_owned()][..], &["pi-storm".to_owned(), "stress-ng --cpu 2".to_owned()][..])
        );
    }
}
