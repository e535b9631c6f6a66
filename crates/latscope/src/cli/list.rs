//! `latscope list`: every probe, what exactly it times, and with `--check`
//! whether this machine can run it.

use super::Exit;
use super::usage::did_you_mean;
use crate::engine::planner::{self, Request};
use crate::engine::runner::{self, Run};
use crate::engine::timebase::Timebase;
use crate::machine;
use crate::probe::file::directory;
use crate::probe::{self, Ask, FAMILIES, Probe, Profile};
use anyhow::{Result, bail};
use clap::ArgMatches;
use latscope_core::report::{Report, Support, Times};

/// Lists the probes.
///
/// # Errors
/// An unknown family; with `--check`, no worker can be started.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let only: Option<&String> = matches.get_one("family");
    let probes: Vec<&'static Probe> =
        probe::all().filter(|p| only.is_none_or(|family| p.family() == family)).collect();
    if probes.is_empty() {
        let families: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        let name = only.map_or("", String::as_str);
        let near = did_you_mean(name, families.iter().copied());
        bail!(
            "there is no family {name:?}: choose of {}{near} (see `latscope list --help`)",
            families.join(", ")
        );
    }
    let checked = matches.get_flag("check").then(|| check(&probes)).transpose()?;
    let mut text = String::new();
    for family in FAMILIES.iter().filter(|family| probes.iter().any(|probe| probe.family() == family.name)) {
        text += &format!("{}: {}\n", family.name, family.about);
        for probe in family.probes {
            text += &entry(probe, checked.as_ref());
        }
        text.push('\n');
    }
    crate::stdout::write(&text)?;
    Ok(Exit::Done)
}

fn entry(probe: &Probe, checked: Option<&Report>) -> String {
    let times = match probe.times {
        Times::OneWay => "one way",
        Times::RoundTrip => "round trip",
        Times::Operation => "operation",
    };
    let mut text = format!("  {:<28} {} ({times})\n", probe.id, probe.title);
    text += &format!("      {}\n", probe.timed);
    let params: Vec<_> = probe.params.iter().map(|param| param.name).collect();
    if !params.is_empty() {
        text += &format!("      parameters: {}\n", params.join(", "));
    }
    for (state, reason) in checked.map(|report| verdicts(report, probe)).unwrap_or_default() {
        text += &format!("      {state}{reason}\n");
    }
    text
}

/// What the trial said of a probe: one line for each different answer.
fn verdicts(report: &Report, probe: &Probe) -> Vec<(&'static str, String)> {
    let mut answers: Vec<(&'static str, String)> = Vec::new();
    for m in report.of_probe(probe.id) {
        let state = match m.support {
            Support::Ok => "ok",
            Support::Degraded => "degraded: ",
            Support::Unsupported => "unsupported: ",
        };
        let remedy = m.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        let reason = m.reason.as_ref().map(|reason| format!("{reason}{remedy}")).unwrap_or_default();
        if !answers.iter().any(|answer| answer.0 == state && answer.1 == reason) {
            answers.push((state, reason));
        }
    }
    answers
}

/// Runs every probe with a few samples a point.
fn check(probes: &[&'static Probe]) -> Result<Report> {
    let ask = Ask {
        profile: Profile::Quick,
        survey: true,
        values: Default::default(),
        directories: directory::defaults().directories,
    };
    let request = Request { count: Some(5), ..Request::new("check", ask) };
    let (timebase, clock) = Timebase::calibrate();
    let mut machine = machine::this_machine();
    machine.clock = clock;
    let plan = planner::plan(probes, &request, &machine);
    runner::run(Run { plan, machine, timebase, labels: Default::default(), observers: Vec::new() })
}
