//! From a request to what is on the screen: shared by everything that measures.

use super::options::RunArguments;
use super::output::{self, ReportOutput};
use super::{CommandExit, criteria, redact};
use anyhow::{Context, Result, bail, ensure};
use latscope_bench::settings;
use latscope_bench::timebase::Timebase;
use latscope_core::catalogue::ExclusiveCpus;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{MeasurementPoint, Plan, PlanStep};
use latscope_core::quality::NO_VALID_REPLY;
use latscope_core::report::{Report, VerdictStatus, Warning};
use latscope_core::units::{count_with_noun, format_count};
use latscope_engine::observers::{Observer, ProgressDisplay, ProgressStyle, RunEvent};
use latscope_engine::outliers::LOST_FILES;
use latscope_engine::planner::RunRequest;
use latscope_engine::runner::{self, MeasurementRun};
use latscope_engine::saver::{self, Saver};
use latscope_judge::verdict::{self, MetricCriterion};
use latscope_probes::{PlanInput, REGISTRY};
use latscope_process::turn::{self, RunLock};
use latscope_views::distortion_lines;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Without `--save-every`: a night's run loses little by a crash, and is hardly disturbed.
const SAVE_EVERY: u64 = 600_000_000_000;

/// A command that measures.
pub trait Measures {
    /// True if every point is shown, not only the table.
    const IN_FULL: bool;

    fn run_arguments(&self) -> &RunArguments;

    /// Returns the plan of the measurement on this machine.
    ///
    /// # Errors
    /// Options that exclude each other, that nothing uses, or with a value that they cannot have.
    fn plan(&self, machine: &Machine) -> Result<Plan>;

    /// Returns the criteria for the result of the plan.
    fn criteria(&self, _: &Plan) -> Vec<MetricCriterion> {
        Vec::new()
    }

    /// Returns warnings that a reader must know before the first number.
    fn warnings(&self, _: &Plan, _: &Machine) -> Vec<Warning> {
        Vec::new()
    }

    /// Returns an observer that shows the state of the run.
    ///
    /// # Errors
    /// There is no terminal to show it on.
    fn create_observer(&self) -> Result<Box<dyn Observer>> {
        let style = self.run_arguments().progress;
        Ok(Box::new(ProgressDisplay::new(latscope_probes::setup_s).in_style(style)))
    }

    /// Adds findings to a result that was judged.
    fn add_findings(&self, _: &mut Report) {}
}

/// The machine as it is, with a calibrated clock.
pub struct CalibratedMachine {
    pub machine: Machine,
    pub timebase: Timebase,
}

impl CalibratedMachine {
    /// Looks at the machine and calibrates the clock.
    pub fn detect_machine() -> CalibratedMachine {
        let (timebase, clock) = Timebase::calibrate();
        CalibratedMachine {
            machine: Machine { clock, ..latscope_machine::this_machine(&latscope_probes::catalogue()) },
            timebase,
        }
    }

    /// Looks at the machine, which has the identity that the user gave it.
    fn from_arguments(arguments: &RunArguments) -> CalibratedMachine {
        let mut environment = CalibratedMachine::detect_machine();
        if let Some(id) = arguments.names.machine_id() {
            environment.machine.id = id;
        }
        environment
    }

    /// Carries out a plan, named as the user asked.
    ///
    /// # Errors
    /// Nothing could be started.
    pub fn run_plan(
        self,
        plan: Plan,
        labels: BTreeMap<String, String>,
        observers: Vec<&mut dyn Observer>,
    ) -> Result<Report> {
        let CalibratedMachine { mut machine, timebase } = self;
        latscope_machine::measured_on(&mut machine, &plan.cpus, &latscope_probes::catalogue());
        runner::run_plan(MeasurementRun { registry: &REGISTRY, plan, machine, timebase, labels, observers })
    }
}

/// Plans, measures, judges, shows and saves.
///
/// # Errors
/// Bad arguments, nothing could be measured, or a file could not be written;
/// in the latter case the table has been shown.
pub fn run_measurement<M: Measures>(command: &M) -> Result<CommandExit> {
    let arguments = command.run_arguments();
    let labels = arguments.names.run_labels()?;
    let output = ReportOutput::from_arguments(&arguments.views, &[])?;
    let environment = CalibratedMachine::from_arguments(arguments);
    let machine = &environment.machine;
    arguments.cpus.iter().try_for_each(|cpus| check_cpus(&cpus.0, machine))?;
    let plan = judging(command, noting_rounds(command.plan(machine)?, arguments)?)?;
    output.check_distinct(&plan)?;
    ensure!(
        arguments.save_every.is_none() || output.json_file().is_some(),
        "--save-every is for --json FILE"
    );
    if arguments.dry_run {
        return output.show_plan(&plan);
    }
    redact::check_plan_files(&plan)?;
    output.check_files(&plan)?;
    let _turn = turn(arguments)?;
    // While another one ran, its load was seen.
    let environment =
        if arguments.turn.is_some() { CalibratedMachine::from_arguments(arguments) } else { environment };
    let machine = &environment.machine;
    let warnings = command.warnings(&plan, machine);
    let silent = output.quiet() || arguments.progress == ProgressStyle::None;
    let mut watcher = if silent { None } else { Some(command.create_observer()?) };
    let mut saver = match output.json_file() {
        Some(path) => {
            let every = Duration::from_nanos(arguments.save_every.unwrap_or(SAVE_EVERY));
            let saver = Saver::new(path, every)?.without_blocks(output.leaves_out_blocks());
            Some(saver.redacting(arguments.redact))
        }
        None => None,
    };
    let earlier = output.json_file().filter(|path| path.is_file());
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    if let Some(watcher) = &mut watcher {
        warnings.iter().for_each(|warning| watcher.observe(&RunEvent::Warning(warning)));
        observers.push(watcher.as_mut());
    }
    observers.extend(saver.iter_mut().map(|saver| saver as &mut dyn Observer));
    let mut report = environment.run_plan(plan, labels, observers)?;
    report.warnings.extend(warnings);
    command.add_findings(&mut report);
    let report = redact::redact_report(report)?;
    show_report(&report, &output, M::IN_FULL, earlier)?;
    if silent && !output.shows_table() {
        for line in distortion_lines(&report) {
            latscope_process::eprintln!("latscope: {line}");
        }
    }
    Ok(criteria::exit_for_report(&report))
}

/// Waits for other runs on this host as the user asked, and lets later ones wait for this one.
///
/// # Errors
/// Another run lasts longer than the user waits, or there is no place for the lock.
fn turn(arguments: &RunArguments) -> Result<RunLock> {
    let names = !arguments.redact && !redact::applies();
    match arguments.turn {
        None => Ok(turn::begin_run()),
        Some(limit) => wait_for_turn(limit, names, arguments.views.quiet),
    }
}

/// Waits for other runs on this host for at most `limit` ns; `names` says which.
///
/// # Errors
/// Another run lasts longer, or there is no place for the lock.
pub fn wait_for_turn(limit: u64, names: bool, quiet: bool) -> Result<RunLock> {
    let limit = Duration::from_nanos(limit);
    let shown = humantime::format_duration(limit);
    let said = |other: &str| {
        if !quiet {
            eprintln!("latscope: waiting for {other}, at most {shown}");
        }
    };
    turn::wait_for_others(limit, names, said)
        .with_context(|| format!("--wait {shown}: this run has not begun"))
}

impl RunArguments {
    /// Returns the request for a run, which has `rounds` rounds unless the user gave a number.
    pub fn build_request(&self, job: &str, input: PlanInput, rounds: u32) -> RunRequest {
        RunRequest {
            cpus: self.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
            seed: self.seed,
            count: self.count,
            duration: self.duration,
            load: self.load.clone(),
            rounds: self.rounds.unwrap_or(rounds),
            rounds_asked: self.rounds.is_some(),
            ..RunRequest::new(job, input)
        }
    }
}

/// Checks threads that were asked for.
///
/// # Errors
/// Every point takes more CPUs than there are.
pub fn check_threads(plan: &Plan) -> Result<()> {
    let threads = |point: &MeasurementPoint| settings::get::<u64>(&point.params, param::THREADS).unwrap_or(0);
    let mut refused = None;
    for (step, point) in plan.steps.iter().flat_map(|step| step.points.iter().map(move |point| (step, point)))
    {
        let exclusive = latscope_probes::find_probe(&point.probe).map(|probe| probe.exclusive_cpus);
        // Threads that are a load run beside the one that measures.
        let most = step.cpus.len() - usize::from(exclusive == Some(ExclusiveCpus::ThreadsAndOne));
        let takes_cpus = exclusive.is_some_and(|exclusive| exclusive != ExclusiveCpus::None);
        if !takes_cpus || threads(point) <= most as u64 {
            return Ok(());
        }
        refused.get_or_insert((step, point, most));
    }
    let Some((step, point, most)) = refused else { return Ok(()) };
    bail!(
        "--threads {}: {} takes a CPU for each, and this run may use {}: choose at most {most}, or allow more CPUs (--cpus, taskset)",
        threads(point),
        point.probe,
        count_with_noun(step.cpus.len() as u64, "CPU")
    )
}

/// Shows a report and writes its files. A result that was there `earlier` is kept if nothing was measured.
///
/// # Errors
/// A file could not be written, or nothing could be measured.
fn show_report(report: &Report, output: &ReportOutput, in_full: bool, earlier: Option<&Path>) -> Result<()> {
    let status = verdict::report_status(report);
    // That nothing came but what is wrong is a result.
    let judged = status == Some(VerdictStatus::Exceeded) || report.interrupted.is_some() && status.is_some();
    let is_empty = !judged && !report.has_figures();
    let kept = earlier.filter(|_| is_empty);
    // A reader may take the table late, or never: what is saved by then cannot be lost.
    let file = output.json_file().filter(|_| kept.is_none());
    let saved = file.map_or(Ok(()), |path| saver::save_report(path, &output.saved_form(report)));
    let shown = output::unless_unread(output.show_report(report, in_full, None));
    saved.and(shown)?;
    if let Some(lost) = report.warnings.iter().find(|warning| LOST_FILES.contains(&warning.id.as_str())) {
        bail!("{}", lost.text);
    }
    if is_empty {
        if let Some(path) = kept {
            eprintln!("latscope: {} keeps its earlier result", path.display());
        }
        if let Some(interrupted) = &report.interrupted {
            bail!("interrupted by {} before anything was measured", interrupted.by);
        }
        let first = report.measurements.iter().find(|m| m.joined_reasons().is_some());
        let reason = first.and_then(|m| m.joined_reasons().clone()).unwrap_or_default();
        match first.map(|m| &m.quality.reasons) {
            Some(reasons) if reasons.iter().any(|reason| reason.id == NO_VALID_REPLY) => bail!("{reason}"),
            _ if reason == "nothing was measured" => bail!("nothing could be measured"),
            _ => bail!("nothing could be measured: {reason}"),
        }
    }
    Ok(())
}

/// The plan with what is asked of its result.
///
/// # Errors
/// Nothing is asked that could end the run.
fn judging<M: Measures>(command: &M, plan: Plan) -> Result<Plan> {
    let criteria: Vec<_> = command.criteria(&plan).iter().map(MetricCriterion::to_plan_criterion).collect();
    ensure!(
        !plan.stop_when_exceeded || !criteria.is_empty(),
        "--stop-when-exceeded requires a criterion, such as --max 100us"
    );
    Ok(Plan { criteria, ..plan })
}

/// The plan with a note, where it has fewer rounds than were asked for.
///
/// # Errors
/// Several rounds of a run that the first exceedance ends.
fn noting_rounds(mut plan: Plan, arguments: &RunArguments) -> Result<Plan> {
    let Some(asked) = arguments.rounds else { return Ok(plan) };
    let ends = |step: &PlanStep| step.periodic.as_ref().is_some_and(|periodic| periodic.stop_at_threshold);
    if asked > 1 && plan.steps.iter().any(ends) {
        bail!(
            "--rounds {asked} and a run that ends at the first exceedance exclude each other: add --on-threshold continue"
        );
    }
    if asked > plan.rounds {
        let (rounds, asked) = (count_with_noun(plan.rounds.into(), "round"), format_count(asked.into()));
        plan.notes.push(format!("{rounds} and not {asked}: --count is for all rounds together"));
    }
    Ok(plan)
}

/// Checks the requested CPUs.
///
/// # Errors
/// A CPU is offline, or outside of the mask of this process.
fn check_cpus(cpus: &[u32], machine: &Machine) -> Result<()> {
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
