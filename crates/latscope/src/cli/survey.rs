//! `latscope survey`: the main job.

use super::measure::{self, Job};
use super::usage::did_you_mean;
use super::{Exit, family};
use anyhow::{Result, bail};
use clap::ArgMatches;
use latscope_probes::file::directory::Defaults;
use latscope_probes::{self as probe, FAMILIES, Probe};

/// Runs the survey.
///
/// # Errors
/// An unknown family, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let probes = match matches.get_many::<String>("only") {
        None => probe::all().filter(|probe| !probe::by_name_only(probe)).collect(),
        Some(names) => chosen(names)?,
    };
    let profile = family::profile(matches);
    let Defaults { directories, notes } = family::directories(matches, &probes)?;
    let input = probe::PlanInput { profile, survey: true, values: Default::default(), directories };
    measure::run(Job { name: "survey".to_owned(), probes, input, notes, in_full: false }, matches)
}

/// The probes of families and probe ids, in the order of the registry.
fn chosen<'a>(names: impl Iterator<Item = &'a String>) -> Result<Vec<&'static Probe>> {
    let mut wanted = Vec::new();
    for name in names {
        let name = if name == "mem" { "memory" } else { name };
        if !probe::all().any(|probe| probe.id == name || probe.family() == name) {
            let families: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
            let near = did_you_mean(name, families.iter().copied().chain(probe::all().map(|probe| probe.id)));
            bail!(
                "--only {name:?} is no family or probe: choose of {}, or an id that `latscope list` shows{near}",
                families.join(", ")
            );
        }
        wanted.push(name);
    }
    let is_wanted = |probe: &&Probe| {
        wanted.contains(&probe.id) || wanted.contains(&probe.family()) && !probe::by_name_only(probe)
    };
    Ok(probe::all().filter(is_wanted).collect())
}
