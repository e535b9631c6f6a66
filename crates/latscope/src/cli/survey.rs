//! `latscope survey`: the main job.

use super::family::{self, ProfileArguments};
use super::measure::Measures;
use super::options::{DirectoryArgument, RunArguments};
use super::usage::did_you_mean;
use anyhow::{Result, bail};
use clap::Args;
use latscope_core::machine::Machine;
use latscope_core::plan::Plan;
use latscope_engine::planner::RunRequest;
use latscope_probes::file::directory::Defaults;
use latscope_probes::{self as probe, FAMILIES, PlanInput, Probe, SurveyProfile};

// The options of the survey.
#[derive(Debug, Args)]
#[command(
    mut_arg("quick", |arg| arg.help("Fewer points and samples: about 10 s, longer on a busy machine")),
    mut_arg("full", |arg| arg.help("More points and samples, however long it takes"))
)]
pub struct SurveyArguments {
    #[command(flatten)]
    profile: ProfileArguments,
    /// Only these families or probes
    #[arg(long, value_name = "FAMILY,…", value_delimiter = ',', value_parser = super::results::parse_filter_name)]
    only: Vec<String>,
    #[command(flatten)]
    directory: DirectoryArgument,
    #[command(flatten)]
    run: RunArguments,
}

impl Measures for SurveyArguments {
    const IN_FULL: bool = false;

    fn run_arguments(&self) -> &RunArguments {
        &self.run
    }

    fn plan(&self, machine: &Machine) -> Result<Plan> {
        let probes = select_probes(&self.only)?;
        let Defaults { directories, notes } = self.directory.chosen_directories(&probes)?;
        let profile = self.profile.profile();
        let input = PlanInput { profile, survey: true, directories, ..PlanInput::default() };
        let rounds = if profile == SurveyProfile::Quick { 3 } else { 8 };
        family::plan_request(
            &probes,
            &RunRequest { notes, ..self.run.build_request("survey", input, rounds) },
            machine,
        )
    }
}

/// The probes of families and probe ids, in the order of the registry; without any, the usual ones.
fn select_probes(names: &[String]) -> Result<Vec<&'static Probe>> {
    let mut wanted = Vec::new();
    for name in names {
        let name = if name == "mem" { "memory" } else { name };
        if !probe::all_probes().any(|probe| probe.id == name || probe.family() == name) {
            let families: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
            let near =
                did_you_mean(name, families.iter().copied().chain(probe::all_probes().map(|probe| probe.id)));
            bail!(
                "--only {name:?} is no family or probe: choose of {}, or an id that `latscope list` shows{near}",
                families.join(", ")
            );
        }
        wanted.push(name);
    }
    let is_wanted = |probe: &&Probe| {
        let usual = wanted.is_empty() || wanted.contains(&probe.family());
        wanted.contains(&probe.id) || usual && !probe.by_name_only
    };
    Ok(probe::all_probes().filter(is_wanted).collect())
}
