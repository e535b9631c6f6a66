//! Differences between two sides beside the figures: machine, kernel, settings, load, tool, other processes.

use super::settings::{settings, shared_steps};
use crate::runs::{RunResult, extremes};
use latscope_core::ordered::unique_items;
use latscope_core::plan::BackgroundLoad;
pub(crate) use latscope_core::report::OTHERS;
use latscope_core::report::{Account, Imported, QUIET, RemoteIdentity};
use latscope_core::statistics::median;
use latscope_core::units::{count_with_noun, format_share};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A fact in which two sides differ, with the values of the runs, each once.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EnvironmentDifference {
    /// The fact: `kernel`, `clock source`, `label board`, `doctor: smt`.
    pub what: String,
    /// Values of the runs of A; empty if the runs have none.
    pub a: Vec<String>,
    /// Values of the runs of B.
    pub b: Vec<String>,
}

impl EnvironmentDifference {
    /// Returns the difference between the values of two sides, if there is one. What one side does not record is none,
    /// but for names that the user gives.
    pub(crate) fn between(fact: &str, a: Vec<String>, b: Vec<String>) -> Option<EnvironmentDifference> {
        let recorded = !a.is_empty() && !b.is_empty() || fact.starts_with(LABEL);
        (a != b && recorded).then(|| EnvironmentDifference { what: fact.to_owned(), a, b })
    }
}

/// The facts that name one machine: two values of one side are two machines.
const MACHINE: [&str; 2] = ["machine", "host"];

/// Prefix of the facts that the user names.
pub(crate) const LABEL: &str = "label ";

/// The facts in which two sides differ, in the order of their weight.
pub fn differences(a: &[&RunResult], b: &[&RunResult]) -> Vec<EnvironmentDifference> {
    let [reports_a, reports_b] = [a, b].map(|side| side.iter().map(|run| &run.report).collect::<Vec<_>>());
    let steps = shared_steps(&reports_a, &reports_b);
    let (of_a, of_b) = (facts(a, Some(&steps)), facts(b, Some(&steps)));
    let names: BTreeSet<&(usize, String)> = of_a.keys().chain(of_b.keys()).collect();
    let differences = names.into_iter().filter_map(|name| {
        let [a, b] = [&of_a, &of_b].map(|side| side.get(name).into_iter().flatten().cloned().collect());
        EnvironmentDifference::between(&name.1, a, b)
    });
    differences.collect()
}

/// Reasons why a side is less than runs of one thing (two machines, incomplete runs), and a remark if the sides were
/// measured at different times.
pub fn remarks(a: &[&RunResult], b: &[&RunResult]) -> Vec<String> {
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
        remarks.extend(unrecorded_facts(name, runs));
        let early =
            runs.iter().filter(|run| run.report.is_unfinished() || run.report.interrupted.is_some()).count();
        if early > 0 {
            remarks.push(format!("{} of {name} ended early", count_with_noun(early as u64, "run")));
        }
        let single = runs.iter().filter(|run| run.report.plan.rounds < 2).count();
        if single > 0 {
            remarks.push(format!(
                "{} of {name} without rounds: how far a figure moves within a run is not known",
                count_with_noun(single as u64, "run")
            ));
        }
    }
    remarks.extend(apart_in_time(a, b));
    remarks.extend(same_build(a, b));
    remarks
}

/// Remark that two sides may be of two builds: of one version, whose commit is not known.
fn same_build(a: &[&RunResult], b: &[&RunResult]) -> Option<String> {
    let own = |run: &&&RunResult| run.report.imported.is_none();
    let builds =
        |side: &[&RunResult]| side.iter().filter(own).map(|run| tool(&run.report)).collect::<BTreeSet<_>>();
    let (a_builds, b_builds) = (builds(a), builds(b));
    let unsure = a.iter().chain(b).filter(own).find(|run| {
        let tool = &run.report.tool;
        tool.commit.is_empty() || tool.commit.ends_with("-dirty")
    })?;
    let why = if unsure.report.tool.commit.is_empty() { "without a commit" } else { "of changed sources" };
    (a_builds == b_builds && a_builds.len() == 1).then(|| {
        format!(
            "A and B are of latscope {} {why}: two builds cannot be distinguished",
            unsure.report.tool.version
        )
    })
}

/// Facts that the other programs that measured a side do not record, a sentence for each program.
fn unrecorded_facts(name: &str, runs: &[&RunResult]) -> Vec<String> {
    let mut programs: BTreeMap<String, Vec<&Imported>> = BTreeMap::new();
    for imported in runs.iter().filter_map(|run| run.report.imported.as_ref()) {
        programs.entry(imported.name()).or_default().push(imported);
    }
    let sentences = programs.into_iter().map(|(program, outputs)| {
        let facts = outputs.iter().flat_map(|output| &output.unknown);
        let unknown = unique_items(facts.map(String::as_str));
        let (runs, unknown) = (count_with_noun(outputs.len() as u64, "run"), unknown.join(", "));
        format!("{runs} of {name} measured by {program}, not known of it: {unknown}")
    });
    sentences.collect()
}

/// Returns a remark if one side was measured before the other; `None` if a time is not known. Times are RFC 3339 in
/// UTC, which sort as text.
fn apart_in_time(a: &[&RunResult], b: &[&RunResult]) -> Option<String> {
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
const UNLIKE: f64 = 0.25;

/// Share of the CPUs above which runs compete for the rest: the share no longer says with how many. Of five runs a side
/// beside the same load (loops on a guest of two CPUs), 8 of 50 points were slower or faster from 67 % on, and 0 of 35
/// up to 64 %.
const SATURATED: f64 = 0.65;

/// A sentence about the CPU time of other processes, if two sides cannot be compared because of that. A requested load
/// is not part of it.
pub(crate) fn incomparable_reason(a: &[&RunResult], b: &[&RunResult]) -> Option<String> {
    let [a, b] = [a, b].map(|runs| {
        let known = runs.iter().filter_map(|run| run.report.activity.as_ref()?.known_others());
        let shares: Vec<f64> = known.collect();
        median(&shares)
    });
    unlike_shares(a?, b?, ["A", "B"])
}

/// A sentence about two shares of CPU time of other processes, if they differ by more than [`UNLIKE`] or one is above
/// [`SATURATED`].
pub(crate) fn unlike_shares(a: f64, b: f64, names: [&str; 2]) -> Option<String> {
    let why = match ((a - b).abs() > UNLIKE, a.max(b) > SATURATED) {
        (true, _) => "the runs differ in that".to_owned(),
        (false, true) => {
            format!("above {} the competition for CPUs decides the figures", format_share(SATURATED))
        }
        (false, false) => return None,
    };
    let ([a, b], [of_a, of_b]) = ([a, b].map(format_share), names);
    Some(format!(
        "other processes used {a} of the CPUs in {of_a} and {b} in {of_b}: {why} (--accept-busy judges all the same)"
    ))
}

/// Values of each fact; facts are in the order in which they are printed.
type EnvironmentFacts = BTreeMap<(usize, String), BTreeSet<String>>;

fn facts(runs: &[&RunResult], steps: Option<&BTreeSet<&str>>) -> EnvironmentFacts {
    let mut facts = EnvironmentFacts::new();
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

/// Facts known of a run beside its figures, by name, in the order of weight; empty texts where the run has no value.
/// The settings are those of the given steps, or of all.
pub(crate) fn of_run(run: &RunResult, steps: Option<&BTreeSet<&str>>) -> Vec<(String, String)> {
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
        ("load", report.plan.load.as_ref().map_or(no_load.to_owned(), name_of_load)),
        (OTHERS, others.unwrap_or_default()),
        (TOOL, tool(report)),
        ("rounds", rounds),
    ];
    let labels = report.labels.iter().map(|(name, value)| (format!("{LABEL}{name}"), value.clone()));
    let remotes = report.measurements.iter().filter_map(|m| m.remote.as_ref());
    let remotes: BTreeSet<String> = remotes.map(RemoteIdentity::format_identity).collect();
    let remotes = remotes.into_iter().map(|words| ("remote".to_owned(), words));
    let checks = machine
        .checks
        .iter()
        .map(|check| (format!("doctor: {}", check.id), check.state.state_name().to_owned()));
    let fixed = fixed.map(|(what, value)| (what.to_owned(), value)).into_iter();
    fixed.chain(labels).chain(settings(report, steps)).chain(remotes).chain(checks).collect()
}

/// A load as the user requests it.
fn name_of_load(load: &BackgroundLoad) -> String {
    match load {
        BackgroundLoad::Command(command) => command.clone(),
        built_in => built_in.name_and_description().map_or_else(String::new, |(name, _)| name.to_owned()),
    }
}

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
    fn builds_are_told_apart_by_a_commit_alone() {
        let built = |commit: &str| {
            let mut report = fixture::wake();
            report.tool.commit = commit.to_owned();
            RunResult::from_report(report)
        };
        let [none, dirty, first, second] = ["", "1a2b-dirty", "1a2b", "3c4d"].map(built);
        let said = |a: &RunResult, b: &RunResult| same_build(&[a], &[b]);
        let text = "A and B are of latscope 0.1.0 without a commit: two builds cannot be distinguished";
        assert_eq!(said(&none, &none).as_deref(), Some(text));
        let text = "A and B are of latscope 0.1.0 of changed sources: two builds cannot be distinguished";
        assert_eq!(said(&dirty, &dirty).as_deref(), Some(text));
        assert_eq!([said(&first, &first), said(&first, &second), said(&none, &first)], [None, None, None]);
    }

    #[test]
    fn another_scheduler_is_a_difference_and_one_that_is_not_known_is_none() {
        let under = |scheduler: Option<&str>| {
            let mut report = fixture::wake();
            report.machine.scheduler = scheduler.map(str::to_owned);
            RunResult::from_report(report)
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
    fn sides_are_unlike_by_their_difference_and_if_others_left_hardly_any_time() {
        let said = |a, b| unlike_shares(a, b, ["A", "B"]);
        for (a, b) in [(0.0, 0.2), (0.4, 0.6), (0.6, 0.64)] {
            assert_eq!(said(a, b), None, "{a} {b}");
        }
        assert!(
            said(0.1, 0.4).unwrap().ends_with("the runs differ in that (--accept-busy judges all the same)")
        );
        for (a, b) in [(0.89, 0.95), (0.95, 0.95), (0.5, 0.7)] {
            let text = said(a, b).unwrap();
            assert!(text.contains("above 65 % the competition for CPUs decides the figures"), "{text}");
        }
    }

    #[test]
    fn a_load_is_named_as_it_was_asked_for() {
        let beside = |load: Option<BackgroundLoad>| {
            let mut report = fixture::wake();
            report.plan.load = load;
            RunResult::from_report(report)
        };
        let all = [
            None,
            Some(BackgroundLoad::PiStorm),
            Some(BackgroundLoad::Command("stress-ng --cpu 2".to_owned())),
        ]
        .map(beside);
        let found = differences(&[&all[0]], &[&all[1], &all[2]]);
        let load = found.iter().find(|one| one.what == "load").unwrap();
        assert_eq!(
            (&load.a[..], &load.b[..]),
            (&["none".to_owned()][..], &["pi-storm".to_owned(), "stress-ng --cpu 2".to_owned()][..])
        );
    }
}
