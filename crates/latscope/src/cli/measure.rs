//! From a request to what is on the screen: shared by everything that measures.

use super::Exit;
use super::output::{self, Output};
use crate::engine::observers::{Observer, Progress};
use crate::engine::planner::{self, Request};
use crate::engine::runner::{self, Run};
use crate::engine::saver::{self, Saver};
use crate::engine::timebase::Timebase;
use crate::machine;
use crate::probe::{Ask, Probe};
use anyhow::{Result, bail};
use clap::ArgMatches;
use latscope_core::machine::Machine;
use latscope_core::plan::{Load, Plan};
use latscope_core::report::{Report, Support};
use latscope_core::units::CpuList;
use std::path::{Path, PathBuf};

/// What a command measures.
pub struct Job {
    /// Its name in the plan.
    pub name: String,
    /// The probes.
    pub probes: Vec<&'static Probe>,
    /// What was asked of them.
    pub ask: Ask,
    /// What is left out of what is usual, and why.
    pub notes: Vec<String>,
    /// Show every point, not only the table.
    pub in_full: bool,
}

/// The machine as it is, with a calibrated clock.
pub struct Ground {
    /// The machine.
    pub machine: Machine,
    /// Its clock.
    pub timebase: Timebase,
}

impl Ground {
    /// Looks at the machine and calibrates the clock.
    pub fn survey() -> Ground {
        let (timebase, clock) = Timebase::calibrate();
        let mut machine = machine::this_machine();
        machine.clock = clock;
        Ground { machine, timebase }
    }
}

/// Plans, measures, shows and saves.
///
/// # Errors
/// Bad arguments, nothing could be measured, or a file could not be written;
/// in the latter case the table has been shown.
pub fn run(job: Job, matches: &ArgMatches) -> Result<Exit> {
    let output = Output::from(matches)?;
    let ground = Ground::survey();
    let plan = plan(&job, matches, &ground.machine)?;
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files()?;
    let report = carry_out(plan, ground, &output, None)?;
    show(&report, &output, job.in_full)?;
    Ok(if report.finished.is_some() { Exit::Done } else { Exit::Error })
}

/// The plan of a job on this machine.
///
/// # Errors
/// CPUs that cannot be used, or nothing to measure.
pub fn plan(job: &Job, matches: &ArgMatches, machine: &Machine) -> Result<Plan> {
    let request = request(job, matches);
    check_cpus(&request.cpus, machine)?;
    let plan = planner::plan(&job.probes, &request, machine);
    if plan.steps.is_empty() {
        bail!("nothing to measure: the probes asked for have no points with these parameters");
    }
    Ok(plan)
}

/// Carries out a plan; the file of results is kept up meanwhile. Progress is
/// shown unless somebody else watches.
///
/// # Errors
/// Nothing could be started.
pub fn carry_out(
    plan: Plan,
    ground: Ground,
    output: &Output,
    watcher: Option<&mut dyn Observer>,
) -> Result<Report> {
    let mut progress = Progress::new(output::width());
    let mut saver = output.json_file().map(|path| Saver::new(path, output.save_every)).transpose()?;
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    match watcher {
        Some(watcher) => observers.push(watcher),
        None if !output.quiet => observers.push(&mut progress),
        None => {}
    }
    if let Some(saver) = &mut saver {
        observers.push(saver);
    }
    let Ground { machine, timebase } = ground;
    runner::run(Run { plan, machine, timebase, observers })
}

/// Shows a report and writes its files.
///
/// # Errors
/// A file could not be written, or nothing could be measured.
pub fn show(report: &Report, output: &Output, in_full: bool) -> Result<()> {
    let shown = output.show(report, in_full);
    let saved = output.json_file().map_or(Ok(()), |path| saver::save(path, report));
    saved.and(shown)?;
    if report.measurements.iter().all(|m| m.support == Support::Unsupported) {
        let reason = report.measurements.iter().find_map(|m| m.reason.clone()).unwrap_or_default();
        bail!("nothing could be measured: {reason}");
    }
    Ok(())
}

/// The load that was asked for.
pub fn load(matches: &ArgMatches) -> Option<Load> {
    matches.get_one::<String>("load").map(|load| match load.as_str() {
        "cpu" => Load::Cpu,
        "memory" => Load::Memory,
        "hackbench" => Load::Hackbench,
        command => Load::Command(command.to_owned()),
    })
}

fn request(job: &Job, matches: &ArgMatches) -> Request {
    let duration = matches.get_one::<std::time::Duration>("duration");
    let timeline = matches.try_get_one::<PathBuf>("timeline").ok().flatten();
    Request {
        notes: job.notes.clone(),
        cpus: matches.get_one::<CpuList>("cpus").map(|list| list.0.clone()).unwrap_or_default(),
        seed: matches.get_one("seed").copied().unwrap_or(1),
        count: matches.get_one("count").copied(),
        duration: duration.map(|time| time.as_nanos() as u64),
        load: load(matches),
        timeline: timeline.map(|path: &PathBuf| Path::to_owned(path)),
        ..Request::new(&job.name, job.ask.clone())
    }
}

/// Checks CPUs that were asked for.
///
/// # Errors
/// One is offline, or outside of the mask of this process.
pub fn check_cpus(cpus: &[u32], machine: &Machine) -> Result<()> {
    match cpus.iter().find(|cpu| !machine.allowed.0.contains(cpu)) {
        None => Ok(()),
        Some(cpu) if machine.online.0.contains(cpu) => {
            bail!(
                "CPU {cpu} is outside of the mask of this process ({}): start it with `taskset -c {cpu}`",
                machine.allowed
            )
        }
        Some(cpu) => bail!("CPU {cpu} is not online: the online CPUs are {}", machine.online),
    }
}
