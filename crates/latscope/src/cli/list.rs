//! `latscope list`: every probe, what exactly it times, and with `--check`
//! whether this machine can run it.

use super::measure::CalibratedMachine;
use super::usage::did_you_mean;
use super::{CommandExit, output};
use anyhow::{Result, bail};
use clap::Args;
use latscope_core::need::{self, ContainerRequirement};
use latscope_core::ordered::{entry, unique_items};
use latscope_core::plan::Plan;
use latscope_core::quality::{NO_TIME, QualityLevel};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::count_with_noun;
use latscope_engine::observers::ProgressDisplay;
use latscope_engine::planner::{self, RunRequest};
use latscope_probes::file::directory;
use latscope_probes::{
    self as probe, FAMILIES, Param, ParamValueKind, PlanInput, Probe, REGISTRY, SurveyProfile,
};
use latscope_views::doctor;

#[derive(Debug, Args)]
pub struct ListArguments {
    /// Also say whether this machine can run each, by trying, and how many rows which option of a container adds
    #[arg(long)]
    check: bool,
    /// Only this family
    family: Option<String>,
}

/// Lists the probes on stdout.
///
/// # Errors
/// An unknown family; with `--check`, no worker can be started.
pub fn list_probes(asked: &ListArguments) -> Result<CommandExit> {
    let only = asked.family.as_ref();
    let probes: Vec<&'static Probe> =
        probe::all_probes().filter(|p| only.is_none_or(|family| p.family() == family)).collect();
    if probes.is_empty() {
        let families: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        let name = only.map_or("", String::as_str);
        let near = did_you_mean(name, families.iter().copied());
        bail!(
            "there is no family {name:?}: choose of {}{near} (see `latscope list --help`)",
            families.join(", ")
        );
    }
    let checked = asked.check.then(|| check(&probes)).transpose()?;
    let mut text = String::new();
    for family in FAMILIES.iter().filter(|family| probes.iter().any(|probe| probe.family() == family.name)) {
        text += &wrap_text("", "", &format!("{}: {}", family.name, family.about));
        for probe in family.probes {
            text += &describe_probe(probe, checked.as_ref());
        }
        text.push('\n');
    }
    text += &checked.as_ref().map(|report| wrap_text("", "", &format_counts(report))).unwrap_or_default();
    latscope_process::stdout::write_text(&text)?;
    if let Some(interrupted) = checked.and_then(|report| report.interrupted) {
        bail!("interrupted by {}: the check is incomplete", interrupted.by);
    }
    Ok(CommandExit::Done)
}

fn describe_probe(probe: &Probe, checked: Option<&Report>) -> String {
    let name = format!("  {:<28} ", probe.id);
    let mut text = wrap_text(
        &name,
        &" ".repeat(name.len()),
        &format!("{} ({})", probe.title, probe.times.display_name()),
    );
    let mut say = |line: &str| text += &wrap_text("      ", "      ", line);
    say(probe.timed);
    let is_asked_for = |param: &&Param| param.kind != ParamValueKind::Stated;
    let (asked_for, stated): (Vec<&Param>, Vec<&Param>) = probe.params.iter().partition(is_asked_for);
    for (what, params) in [("parameters", asked_for), ("stated in results", stated)] {
        let names: Vec<_> = params.into_iter().map(|param| param.name).collect();
        if !names.is_empty() {
            say(&format!("{what}: {}", names.join(", ")));
        }
    }
    for (state, reason) in checked.map(|report| probe_states(report, probe)).unwrap_or_default() {
        say(&format!("{state}{reason}"));
    }
    text
}

/// A text in lines as wide as the terminal, behind `first` and then behind `others`.
fn wrap_text(first: &str, others: &str, text: &str) -> String {
    let lines = doctor::wrap(text, output::terminal_width().saturating_sub(others.len()));
    format!("{first}{}\n", lines.join(&format!("\n{others}")))
}

/// Returns the answers of the trial for a probe, a line for each different answer. A probe without points of its own is
/// measured beside those of its experiment.
fn probe_states(report: &Report, probe: &Probe) -> Vec<(&'static str, String)> {
    let alike = |other: &&Probe| {
        std::ptr::eq(other.experiment, probe.experiment) && report.of_probe(other.id).next().is_some()
    };
    let tried = if report.of_probe(probe.id).next().is_some() {
        Some(probe)
    } else {
        probe::all_probes().find(alike)
    };
    let Some(tried) = tried else {
        return vec![("not tried: ", "it has no points with the default parameters".to_owned())];
    };
    unique_items(report.of_probe(tried.id).map(describe_state))
}

/// Returns the state of a point, and the reason for it.
fn describe_state(m: &Measurement) -> (&'static str, String) {
    let state = match m.quality.level {
        QualityLevel::Ok => "ok",
        QualityLevel::Unstable => "unstable: ",
        QualityLevel::Degraded => "degraded: ",
        QualityLevel::Unsupported if had_no_time(m) => "not checked: ",
        QualityLevel::Unsupported if need::is_in_use(&m.quality) => "not now: ",
        QualityLevel::Unsupported => "unsupported: ",
    };
    let remedy = m.joined_remedies().as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    let reason = m.joined_reasons().as_ref().map(|reason| format!("{reason}{remedy}")).unwrap_or_default();
    (state, reason)
}

/// `131 of 144 rows here; --ulimit memlock=-1: 9 more; not now, in use by others: 1; not on this machine: 4`. A row
/// that lacks several things counts once, with all of them.
fn format_counts(report: &Report) -> String {
    let rows: Vec<_> = report.measurements.iter().filter(|m| m.row).collect();
    let mut lacking: Vec<(Vec<&'static ContainerRequirement>, usize)> = Vec::new();
    let (mut here, mut busy, mut absent, mut unchecked) = (0, 0, 0, 0);
    for m in &rows {
        let needs = needs(report, m);
        match m.quality.level {
            _ if had_no_time(m) => unchecked += 1,
            _ if need::is_in_use(&m.quality) => busy += 1,
            _ if !needs.is_empty() => *entry(&mut lacking, needs) += 1,
            QualityLevel::Unsupported => absent += 1,
            _ => here += 1,
        }
    }
    lacking.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut said = vec![format!("{here} of {} here", count_with_noun(rows.len() as u64, "row"))];
    said.extend(lacking.iter().map(|(needs, count)| {
        let options: Vec<&str> = needs.iter().map(|need| need.option).collect();
        format!("{}: {count} more", options.join(" and "))
    }));
    said.extend((busy > 0).then(|| format!("not now, in use by others: {busy}")));
    said.extend((absent > 0).then(|| format!("not on this machine: {absent}")));
    said.extend((unchecked > 0).then(|| format!("not checked: {unchecked}")));
    said.join("; ")
}

fn had_no_time(m: &Measurement) -> bool {
    m.quality.reasons.iter().any(|reason| reason.id == NO_TIME)
}

/// Returns what a row lacks. A row of a directory in memory lacks no disk where the probe has one in another directory.
fn needs(report: &Report, m: &Measurement) -> Vec<&'static ContainerRequirement> {
    let mut needs = ContainerRequirement::for_quality(&m.quality);
    let lacks_disk =
        |other: &Measurement| ContainerRequirement::for_quality(&other.quality).contains(&need::DISK);
    if report.of_probe(&m.probe).any(|other| !lacks_disk(other)) {
        needs.retain(|lack| *lack != need::DISK);
    }
    needs
}

/// Time for the check, ns: twice what it takes on a quiet machine.
const BUDGET_NS: u64 = 40_000_000_000;

/// Runs every probe with a few samples a point, as far as there is time.
fn check(probes: &[&'static Probe]) -> Result<Report> {
    let input = PlanInput {
        profile: SurveyProfile::Quick,
        survey: true,
        directories: directory::defaults().directories,
        ..PlanInput::default()
    };
    let request = RunRequest { count: Some(5), ..RunRequest::new("check", input) };
    let environment = CalibratedMachine::detect_machine();
    let plan = planner::plan_probes(&REGISTRY, probes, &request, &environment.machine);
    let plan = Plan { budget_ns: Some(BUDGET_NS), ..plan };
    let mut progress = ProgressDisplay::new(probe::setup_s);
    environment.run_plan(plan, Default::default(), vec![&mut progress])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use latscope_core::fixture;
    use latscope_core::quality::Reason;

    #[test]
    fn each_parameter_that_is_listed_is_an_option_of_its_command() {
        let program = super::super::arguments::LatscopeArguments::command();
        for family in FAMILIES {
            let command = program.find_subcommand(family.name).unwrap();
            for probe in family.probes {
                let text = describe_probe(probe, None).replace("\n      ", " ");
                let names = text.split_once("parameters: ").map_or("", |(_, names)| names);
                let names = names.split(" stated in results: ").next().unwrap_or("").trim();
                for name in names.split(", ").filter(|name| !name.is_empty()) {
                    let mut options = command.get_arguments();
                    assert!(options.any(|option| option.get_long() == Some(name)), "{}: --{name}", probe.id);
                }
            }
        }
    }

    #[test]
    fn what_is_in_use_and_what_memory_cannot_have_is_no_lack_of_an_option() {
        let mut report = fixture::report();
        report.measurements.truncate(4);
        let remedies = ["wait until its present user is done", "choose a directory on a disk (--dir)", ""];
        for (m, remedy) in report.measurements.iter_mut().zip(remedies) {
            (m.row, m.quality) = (true, Default::default());
            m.lower(Reason::new(QualityLevel::Unsupported, "not-possible-here", "refused", remedy));
        }
        let rows = |row: usize| report.measurements[row].clone();
        let (busy, memory, absent, disk) = (rows(0), rows(1), rows(2), rows(3));
        let said =
            |measurements: Vec<Measurement>| format_counts(&Report { measurements, ..fixture::report() });
        let disk =
            Measurement { row: true, probe: memory.probe.clone(), quality: Default::default(), ..disk };
        let text = said(vec![busy, memory.clone(), absent, disk]);
        assert_eq!(text, "1 of 4 rows here; not now, in use by others: 1; not on this machine: 2");
        let mut late = memory.clone();
        late.quality = Default::default();
        late.lower(Reason::new(QualityLevel::Unsupported, NO_TIME, "over", ""));
        assert_eq!(describe_state(&late), ("not checked: ", "over".to_owned()));
        assert_eq!(said(vec![late]), "0 of 1 row here; not checked: 1");
        let text = said(vec![memory]);
        assert_eq!(text, "0 of 1 row here; -v DIR:/data, --dir /data, where DIR is on a disk: 1 more");
    }
}
