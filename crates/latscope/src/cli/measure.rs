//! From a request to what is on the screen: shared by everything that measures.

use super::output::{self, Output};
use super::usage::did_you_mean;
use super::{Exit, criteria};
use anyhow::{Result, bail};
use clap::ArgMatches;
use latscope_bench::timebase::Timebase;
use latscope_compat::identity;
use latscope_core::machine::Machine;
use latscope_core::plan::{Load, Plan, Step};
use latscope_core::report::{Report, Support};
use latscope_core::units::{CpuList, counted, format_count};
use latscope_engine::observers::{Observer, Progress};
use latscope_engine::outliers::TRACE_LOST;
use latscope_engine::planner::{self, Request};
use latscope_engine::runner::{self, Run};
use latscope_engine::saver::{self, Saver};
use latscope_host::load;
use latscope_host::machine;
use latscope_judge::verdict;
use latscope_probes::REGISTRY;
use latscope_probes::{PlanInput, Probe, Profile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a command measures.
pub struct Job {
    /// Its name in the plan.
    pub name: String,
    /// The probes.
    pub probes: Vec<&'static Probe>,
    /// What was asked of them.
    pub input: PlanInput,
    /// What is left out of what is usual, and why.
    pub notes: Vec<String>,
    /// Show every point, not only the table.
    pub in_full: bool,
}

/// The machine as it is, with a calibrated clock.
pub struct Environment {
    /// The machine.
    pub machine: Machine,
    /// Its clock.
    pub timebase: Timebase,
    /// What the user calls the run.
    pub labels: BTreeMap<String, String>,
}

impl Environment {
    /// Looks at the machine and calibrates the clock.
    pub fn survey() -> Environment {
        let (timebase, clock) = Timebase::calibrate();
        let mut machine = machine::this_machine();
        machine.clock = clock;
        Environment { machine, timebase, labels: BTreeMap::new() }
    }

    /// The same, named as the user asked.
    ///
    /// # Errors
    /// Two labels of the same name.
    pub fn named(matches: &ArgMatches) -> Result<Environment> {
        let labels = identity::labels(matches)?;
        let mut environment = Environment::survey();
        if let Some(id) = identity::machine_id(matches) {
            environment.machine.id = id;
        }
        Ok(Environment { labels, ..environment })
    }
}

/// Plans, measures, shows and saves.
///
/// # Errors
/// Bad arguments, nothing could be measured, or a file could not be written;
/// in the latter case the table has been shown.
pub fn run(job: Job, matches: &ArgMatches) -> Result<Exit> {
    let output = Output::from(matches)?;
    let environment = Environment::named(matches)?;
    let plan = plan(&job, matches, &environment.machine)?;
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files(&plan)?;
    let report = carry_out(plan, environment, &output, None)?;
    show(&report, &output, job.in_full)?;
    Ok(criteria::exit(&report))
}

/// The plan of a job on this machine.
///
/// # Errors
/// CPUs that cannot be used, or nothing to measure.
pub fn plan(job: &Job, matches: &ArgMatches, machine: &Machine) -> Result<Plan> {
    let request = request(job, matches)?;
    check_cpus(&request.cpus, machine)?;
    let plan = planner::plan(&REGISTRY, &job.probes, &request, machine);
    if plan.steps.is_empty() {
        bail!("nothing to measure: the probes asked for have no points with these parameters");
    }
    if job.input.gave("threads") {
        check_threads(&plan)?;
    }
    Ok(noting_rounds(plan, matches))
}

/// Probes whose threads take a CPU each.
const A_CPU_EACH: [&str; 4] = ["sync.atomic", "memory.bandwidth", "memory.stream", "memory.loaded"];

/// Checks threads that were asked for.
///
/// # Errors
/// Every point takes more CPUs than there are.
fn check_threads(plan: &Plan) -> Result<()> {
    let mut refused = None;
    for (step, point) in plan.steps.iter().flat_map(|step| step.points.iter().map(move |point| (step, point)))
    {
        // Those that are a load run beside the thread that measures.
        let most = step.cpus.len() - usize::from(point.probe == "memory.loaded");
        if !A_CPU_EACH.contains(&point.probe.as_str()) || point.number("threads") <= most as u64 {
            return Ok(());
        }
        refused.get_or_insert((step, point, most));
    }
    let Some((step, point, most)) = refused else { return Ok(()) };
    bail!(
        "--threads {}: {} takes a CPU for each, and this run may use {}: choose at most {most}, or allow more CPUs (--cpus, taskset)",
        point.number("threads"),
        point.probe,
        counted(step.cpus.len() as u64, "CPU")
    )
}

/// Carries out a plan; the file of results is kept up meanwhile. Progress is
/// shown unless somebody else watches.
///
/// # Errors
/// Nothing could be started.
pub fn carry_out(
    plan: Plan,
    environment: Environment,
    output: &Output,
    watcher: Option<&mut dyn Observer>,
) -> Result<Report> {
    let trace = plan.on_threshold.as_ref().and_then(|rules| rules.trace_file.as_ref());
    trace.into_iter().chain(&plan.timeline).try_for_each(|path| saver::check(path))?;
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
    let Environment { machine, timebase, labels } = environment;
    runner::run(Run { registry: &REGISTRY, plan, machine, timebase, labels, observers })
}

/// Shows a report and writes its files.
///
/// # Errors
/// A file could not be written, or nothing could be measured.
pub fn show(report: &Report, output: &Output, in_full: bool) -> Result<()> {
    let shown = output.show(report, in_full);
    let saved = output.json_file().map_or(Ok(()), |path| saver::save(path, report));
    saved.and(shown)?;
    if let Some(lost) = report.warnings.iter().find(|warning| warning.id == TRACE_LOST) {
        bail!("{}", lost.text);
    }
    let judged = report.interrupted.is_some() && verdict::report_status(report).is_some();
    if !judged && report.measurements.iter().all(|m| m.support == Support::Unsupported) {
        if let Some(interrupted) = &report.interrupted {
            bail!("interrupted by {} before anything was measured", interrupted.by);
        }
        let reason = report.measurements.iter().find_map(|m| m.reason.clone()).unwrap_or_default();
        bail!("nothing could be measured: {reason}");
    }
    Ok(())
}

/// The load that was asked for.
///
/// # Errors
/// A command that there is not.
pub fn load(matches: &ArgMatches) -> Result<Option<Load>> {
    let Some(load) = matches.get_one::<String>("load") else { return Ok(None) };
    Ok(Some(match load.as_str() {
        "cpu" => Load::Cpu,
        "memory" => Load::Memory,
        "hackbench" => Load::Hackbench,
        command if load::is_command(command) => Load::Command(command.to_owned()),
        other => {
            let near = did_you_mean(other, ["cpu", "memory", "hackbench"].into_iter());
            bail!("--load {other}: neither a load of latscope nor a command of the shell{near}");
        }
    }))
}

fn request(job: &Job, matches: &ArgMatches) -> Result<Request> {
    let duration = matches.get_one::<std::time::Duration>("duration");
    let timeline = matches.try_get_one::<PathBuf>("timeline").ok().flatten();
    Ok(Request {
        notes: job.notes.clone(),
        cpus: matches.get_one::<CpuList>("cpus").map(|list| list.0.clone()).unwrap_or_default(),
        seed: matches.get_one("seed").copied().unwrap_or(1),
        count: matches.get_one("count").copied(),
        duration: duration.map(|time| time.as_nanos() as u64),
        load: load(matches)?,
        rounds: rounds(job, matches),
        rounds_asked: matches.contains_id("rounds"),
        timeline: timeline.map(|path: &PathBuf| Path::to_owned(path)),
        ..Request::new(&job.name, job.input.clone())
    })
}

/// Rounds that were asked for, or as many as tell how far the next run will be from this one.
fn rounds(job: &Job, matches: &ArgMatches) -> u32 {
    if let Some(rounds) = matches.get_one("rounds") {
        return *rounds;
    }
    // Eyes read a time line; they need every event once.
    if matches.try_get_one::<PathBuf>("timeline").ok().flatten().is_some() {
        return 1;
    }
    // One long stretch: its maximum and its misses are what is asked for.
    if ["noise", "remote"].contains(&job.name.as_str()) {
        return 1;
    }
    match (job.input.survey, job.input.profile) {
        (true, Profile::Normal | Profile::Full) => 8,
        _ => 3,
    }
}

/// A plan of a family that is measured in one stretch, unless other rounds were asked for.
///
/// # Errors
/// Several rounds of a run that the first exceedance ends.
pub fn in_rounds(plan: Plan, matches: &ArgMatches) -> Result<Plan> {
    let rounds = matches.get_one("rounds").copied().unwrap_or(1);
    let ends = |step: &Step| step.periodic.as_ref().is_some_and(|periodic| periodic.stop_at_threshold);
    if rounds > 1 && plan.steps.iter().any(ends) {
        bail!(
            "--rounds {rounds} and a run that ends at the first exceedance exclude each other: add --on-threshold continue"
        );
    }
    Ok(noting_rounds(plan.in_rounds(rounds), matches))
}

/// The plan with a note, where it has fewer rounds than were asked for.
fn noting_rounds(mut plan: Plan, matches: &ArgMatches) -> Plan {
    if let Some(asked) = matches.get_one::<u32>("rounds").filter(|asked| **asked > plan.rounds) {
        let rounds = counted(plan.rounds.into(), "round");
        plan.notes.push(format!(
            "{rounds} and not {}: --count is for all rounds together",
            format_count((*asked).into())
        ));
    }
    plan
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
