//! From a plan to what is shown: what this machine lacks is left out, every command line is tried, then the runs are
//! made, what they changed is put back, and what there is is compared.

use super::super::live::{self, RunsScreenModel};
use super::super::measure::wait_for_turn;
use super::super::{CommandExit, output, redact, results};
use super::executor::{Executor, complaint, plan_of, succeeds};
use super::hashes::own_program;
use super::order::order;
use super::outcome::{
    Compared, Ordered, SCHEMA, Skipped, TrialCellRuns, TrialOutcome, TrialRunRecord, comparisons, table,
};
use super::plan_file::{PlanFile, Planned, Requirement, TrialCellIndex};
use super::progress::{TrialProgress, TrialTimeEstimate};
use super::redacted;
use super::saved::{acceptance_record, complete};
use super::settings::ArmSettings;
use super::shared::SharedArguments;
use super::show::{self, TrialViewKind};
use anyhow::{Context, Result, bail, ensure};
use latscope_core::quality::{HALTED, THROTTLED};
use latscope_core::report::{Account, MORE_TIME, Report, Warning};
use latscope_core::units::count_with_noun;
use latscope_engine::observers::ProgressStyle;
use latscope_engine::remaining::{expected, format_approximate};
use latscope_engine::saver;
use latscope_judge::compare::ComparisonOptions;
use latscope_judge::runs::RunResult;
use latscope_judge::trial::TrialVerdict;
use latscope_process::files::{self, Looked};
use rustix::fs::Mode;
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Request to carry out a plan.
pub struct TrialRequest<'a> {
    /// Plan of the runs.
    pub plan: PlanFile,
    /// Name of the request: part of the name of its directory.
    pub name: String,
    /// Part of the outcome that is shown.
    pub view: TrialViewKind,
    /// Destination of the results.
    pub to: &'a SharedArguments,
}

/// A plan that is ready: what of it can be run here, in which order.
struct Ready {
    skipped: Vec<Skipped>,
    settings: ArmSettings,
    order: Vec<Planned>,
    remaining: TrialTimeEstimate,
}

/// Carries out a plan.
///
/// # Errors
/// A command line is refused, a command of the shell fails, what was changed cannot be put back, nothing could be
/// measured, or a file cannot be written.
pub fn carry_out(request: &TrialRequest) -> Result<CommandExit> {
    let to = request.to;
    show::check_files(to)?;
    let mut progress = TrialProgress::new(to.quiet, to.progress);
    let limit = Duration::from_nanos(to.hook_timeout);
    let mut ready = check_requirements(&request.plan, (!to.dry_run).then_some(limit))?;
    let directory = directory(request);
    if to.dry_run {
        ensure!(!to.live.is_asked(), "--dry-run runs nothing that --live or --no-live could show");
        let time = ready.remaining.estimate_runs(&ready.order);
        let directory = PathBuf::from(redact::message(&directory.display().to_string()));
        show::dry_run(&redacted::redact_plan(&request.plan), &ready.skipped, &directory, &ready.order, time)?;
        return Ok(CommandExit::Done);
    }
    // Held until the end: another run waits for all runs of the plan.
    let names = !redact::applies();
    let _turn = to.wait.map(|limit| wait_for_turn(limit, names, to.quiet)).transpose()?;
    let held = make(&directory, to.dir.is_some())?;
    let mut executor = Executor::start_executor(&request.plan, std::mem::take(&mut ready.settings), limit)?;
    let refused = executor.try_settings()?;
    skip_arms(&request.plan, refused, &mut ready.skipped)?;
    ready.order.retain(|run| !is_skipped(&request.plan, run.cell, &ready.skipped));
    claim_directory(&directory)?;
    if let Some(screen) = if to.quiet || matches!(to.progress, ProgressStyle::Plain | ProgressStyle::None) {
        None
    } else {
        to.live.runs()?
    } {
        executor.watch_screen(&screen)?;
        progress.show_screen(screen, screen_model(request, &ready.order));
    }
    progress.print_line(&format!(
        "results: {}/: {}{}",
        directory.display(),
        count_with_noun(ready.order.len() as u64, "run"),
        ready
            .remaining
            .estimate_runs(&ready.order)
            .map(|time| format!(", {}", format_approximate(time)))
            .unwrap_or_default()
    ));
    for one in &ready.skipped {
        progress.print_line(&format!("skipped: {}", one.describe_skip()));
    }
    let order = ready
        .order
        .iter()
        .enumerate()
        .map(|(at, run)| Ordered::from_planned(&request.plan, at, run))
        .collect();
    let mut trial = TrialRunner {
        plan: &request.plan,
        directory: &directory,
        held,
        executor,
        progress,
        remaining: ready.remaining,
        outcome: TrialOutcome {
            schema: SCHEMA,
            plan: redacted::redact_plan(&request.plan),
            same: request.to.same,
            binary: Some(own_program()),
            started: current_time(),
            skipped: ready.skipped,
            order,
            ..TrialOutcome::default()
        },
        counted: TrialCellRuns::new(),
        reasons: BTreeMap::new(),
    };
    trial.outcome.redact();
    // Whatever ends it, the directory says what it was to hold.
    trial.save_outcome()?;
    let ended = trial.run_all(&ready.order);
    trial.finish_trial(request, ended)
}

/// Contents of a screen before the first run.
fn screen_model(request: &TrialRequest, order: &[Planned]) -> RunsScreenModel {
    let plan = &request.plan;
    let command = if request.view == TrialViewKind::Comparison { "trial" } else { "run" };
    let what = if plan.title.is_empty() { &request.name } else { &plan.title };
    let what = if what == command { String::new() } else { format!("  {what}") };
    let mut cells: Vec<live::RunsScreenCell> = Vec::new();
    for name in order.iter().map(|run| plan.name(run.cell)) {
        match cells.iter_mut().find(|cell| cell.name == name) {
            Some(cell) => cell.planned += 1,
            None => cells.push(live::RunsScreenCell { name, planned: 1, ..live::RunsScreenCell::default() }),
        }
    }
    RunsScreenModel { title: format!("latscope {command}{what}"), cells, ..RunsScreenModel::default() }
}

/// Looks at what the plan needs and tries every command line of it. Without a limit of time it runs no command of the
/// plan: all that the plan needs counts as there, and latscope tries the command lines without the prefix of an arm,
/// and only those that need nothing.
fn check_requirements(plan: &PlanFile, limit: Option<Duration>) -> Result<Ready> {
    let (settings, lacking) = ArmSettings::find_files(&plan.arms)?;
    let mut skipped = Vec::new();
    for Requirement { kind, name, command, otherwise } in plan.needs() {
        if let Some(limit) = limit
            && !succeeds(command, limit)?
        {
            let why = otherwise.clone().unwrap_or_else(|| format!("what it needs is not there: {command}"));
            skipped.push(Skipped { kind: kind.to_owned(), name: name.to_owned(), why });
        }
    }
    skip_arms(plan, lacking, &mut skipped)?;
    let places: Vec<TrialCellIndex> =
        plan.cell_indices().into_iter().filter(|place| !is_skipped(plan, *place, &skipped)).collect();
    let mut remaining = TrialTimeEstimate::default();
    let needs = |place: TrialCellIndex| {
        let (measurement, load, arm) = plan.part_names(place);
        let is_of = |need: &Requirement| match need.kind {
            "measurement" => need.name == measurement,
            "load" => Some(need.name) == load.as_deref(),
            _ => need.name == arm,
        };
        plan.needs().any(|need| is_of(&need))
    };
    for place in places.iter().filter(|place| limit.is_some() || !needs(**place)) {
        let prefix = if limit.is_some() { plan.arms[place.arm].prefix.0.as_slice() } else { &[] };
        let planned = plan_of(prefix, &plan.command_words(*place));
        let planned =
            planned.with_context(|| format!("`latscope {}`", plan.command_words(*place).join(" ")))?;
        remaining.planned.insert(*place, expected(&planned, latscope_probes::setup_s));
    }
    ensure!(
        !places.is_empty(),
        "nothing of this plan can be run here: {}",
        skipped.first().map(Skipped::describe_skip).unwrap_or_default()
    );
    Ok(Ready { skipped, settings, order: order(plan, &places), remaining })
}

/// Leaves out arms for these reasons. All others are compared with the first.
fn skip_arms(plan: &PlanFile, reasons: Vec<Option<String>>, skipped: &mut Vec<Skipped>) -> Result<()> {
    for (arm, why) in plan.arms.iter().zip(reasons) {
        let known = skipped.iter().any(|one| one.kind == "arm" && one.name == arm.name);
        if let Some(why) = why.filter(|_| !known) {
            skipped.push(Skipped { kind: "arm".to_owned(), name: arm.name.clone(), why });
        }
    }
    let first = skipped.iter().find(|one| one.kind == "arm" && one.name == plan.arms[0].name);
    match first {
        Some(first) => bail!("the first arm, {}, cannot be run here: {}", first.name, first.why),
        None => Ok(()),
    }
}

fn is_skipped(plan: &PlanFile, place: TrialCellIndex, skipped: &[Skipped]) -> bool {
    let (measurement, load, arm) = plan.part_names(place);
    skipped.iter().any(|one| one.covers(&measurement, load.as_deref(), &arm))
}

/// Directory of the results: `latscope-trial-2026-11-23T00-10-05.042Z`. Trials that begin in one second have their own.
fn directory(request: &TrialRequest) -> PathBuf {
    let time = current_time().replace(':', "-");
    let own = || PathBuf::from(format!("latscope-{}-{time}", request.name));
    request.to.dir.clone().unwrap_or_else(own)
}

/// Makes the directory of results: one of its own name is new, and one that was named new or empty. No other
/// user can write into it, nor give its name to another one.
fn make(directory: &Path, named: bool) -> Result<Looked> {
    let cannot =
        || format!("cannot make the directory {} (choose another one with --dir)", directory.display());
    if let Some(above) = directory.parent().filter(|above| named && !above.as_os_str().is_empty()) {
        files::create_directories(above).with_context(cannot)?;
    }
    let above = files::directory_of(directory);
    ensure!(
        !geteuid().is_root()
            || !files::is_of_others(above).with_context(cannot)?
                && !files::may_be_replaced(above).with_context(cannot)?,
        "{}: another user can replace what is in {}, and could make root write elsewhere: choose a directory of root \
         with --dir",
        cannot(),
        above.display()
    );
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if named && error.kind() == ErrorKind::AlreadyExists => {}
        made => made.with_context(cannot)?,
    }
    let empty = fs::read_dir(directory).with_context(cannot)?.next().is_none();
    ensure!(empty, "--dir {}: it is not empty: choose another directory", directory.display());
    let held = Looked::at_target(directory).with_context(cannot)?;
    let others = Mode::WGRP | Mode::WOTH;
    ensure!(
        !geteuid().is_root() || held.is_of_root() && !held.mode().intersects(others),
        "--dir {}: another user can write to it, and could make root write elsewhere: choose a new directory",
        directory.display()
    );
    Ok(held)
}

/// Makes the file of the trial, which only one of two trials that found the directory empty can.
fn claim_directory(directory: &Path) -> Result<()> {
    let taken =
        || format!("--dir {}: another trial began there: choose another directory", directory.display());
    File::create_new(directory.join(results::TRIAL)).map(drop).with_context(taken)
}

fn current_time() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// A run that failed so often, and never succeeded, is left out from then on.
const TRIES: usize = 2;

/// The runs that are being made.
struct TrialRunner<'a> {
    plan: &'a PlanFile,
    directory: &'a Path,
    /// The directory as it was made: another user may give its name to one of his own.
    held: Looked,
    executor: Executor,
    progress: TrialProgress,
    remaining: TrialTimeEstimate,
    /// Outcome of the runs so far.
    outcome: TrialOutcome,
    counted: TrialCellRuns,
    /// Reasons why runs do not count, by their place.
    reasons: BTreeMap<TrialCellIndex, Vec<String>>,
}

impl TrialRunner<'_> {
    /// Makes the runs in their order.
    ///
    /// # Errors
    /// A command before a run fails.
    fn run_all(&mut self, order: &[Planned]) -> Result<Option<String>> {
        for (at, run) in order.iter().enumerate() {
            if let Some(signal) = self.executor.stopped()? {
                return Ok(Some(signal));
            }
            let hopeless = self.reasons.get(&run.cell).is_some_and(|reasons| reasons.len() >= TRIES);
            if !hopeless || self.counted.contains_key(&run.cell) {
                self.carry_out_run(order, at)?;
            }
        }
        self.executor.stopped()
    }

    /// Does what comes before a run of an arm.
    fn prepare_arm(&mut self, arm: usize, log: &Path) -> Result<()> {
        self.executor.apply_arm(arm)?;
        match self.plan.arms[arm].before.as_ref().filter(|command| !command.trim().is_empty()) {
            Some(before) => self.executor.shell(before, log),
            None => Ok(()),
        }
    }

    fn carry_out_run(&mut self, order: &[Planned], at: usize) -> Result<()> {
        let Planned { cell, .. } = order[at];
        let plan = self.plan;
        let name = plan.name(cell);
        let began = Instant::now();
        let planned = self.outcome.order[at].clone();
        let result = self.directory.join(&planned.file);
        let log = result.with_extension("log");
        let arm = &plan.arms[cell.arm];
        let shown = format!("run {} of {}, {name}", at + 1, order.len());
        self.progress.begin_run(&name);
        ensure!(
            Looked::at_target(self.directory).is_ok_and(|now| now.is(&self.held)),
            "before {shown}: {} is not the directory any more that this trial made: it ends",
            self.directory.display()
        );
        self.prepare_arm(cell.arm, &log).with_context(|| format!("before {shown}"))?;
        if self.executor.stopped()?.is_some() {
            return Ok(());
        }
        let mut words = plan.command_words(cell);
        words.extend(["--json".to_owned(), result.to_string_lossy().into_owned()]);
        if redact::applies() && !words.iter().any(|word| word == redact::OPTION) {
            words.push(redact::OPTION.to_owned());
        }
        let left = self.remaining.estimate_runs(&order[at..]);
        let (progress, executor) = (&self.progress, &mut self.executor);
        let mut tick = || progress.running(&shown, began, left);
        let exit = executor.run_latscope(&arm.prefix.0, &words, &log, &mut tick)?;
        let (why, warnings) = match self.judge_run(exit, &result, &log) {
            Ok(run) => {
                let mut warnings = run.report.warnings.clone();
                warnings.extend([busy(&run.report), halted(&run.report)].into_iter().flatten());
                self.counted.entry(cell).or_default().push(run);
                (None, warnings)
            }
            Err(why) => (Some(why), Vec::new()),
        };
        remove_empty(&log);
        let took = began.elapsed();
        match &why {
            None => self.remaining.record_duration(cell, took),
            Some(why) => self.reasons.entry(cell).or_default().push(why.clone()),
        }
        self.outcome.runs.push(TrialRunRecord {
            planned,
            exit,
            seconds: (took.as_secs_f64() * 1e3).round() / 1e3,
            counted: why.is_none(),
            why: why.clone(),
            warnings,
        });
        self.outcome.redact();
        // The one at the end says so if it cannot be written.
        let _ = self.save_outcome();
        self.progress.count_run(took, why.is_none());
        self.progress.done(&shown, took, self.remaining.estimate_runs(&order[at + 1..]));
        if let Some(why) = why {
            self.progress.print_line(&format!("{shown} does not count: {why}"));
        }
        Ok(())
    }

    /// The result of a run, or why it does not count.
    fn judge_run(&mut self, exit: Option<i32>, result: &Path, log: &Path) -> Result<RunResult, String> {
        let said = || complaint(log).map(|said| format!(": {said}")).unwrap_or_default();
        match exit {
            None => return Err(format!("it was killed by a signal{}", said())),
            Some(0 | 2 | 3) => {}
            Some(_) => {
                let stopped = self.executor.stopped().ok().flatten();
                return Err(match stopped {
                    Some(signal) => format!("it was interrupted by {signal}"),
                    None => complaint(log).unwrap_or_else(|| "it failed".to_owned()),
                });
            }
        }
        complete(result)
    }

    /// Writes what is known so far.
    fn save_outcome(&self) -> Result<()> {
        saver::replace_name(&self.directory.join(results::TRIAL), &output::json_line(&self.outcome)?)
    }

    /// Puts back what was changed, compares what there is, shows and saves it.
    fn finish_trial(mut self, request: &TrialRequest, ended: Result<Option<String>>) -> Result<CommandExit> {
        let log = self.directory.join("restore.log");
        let restored = self.executor.restore(&log);
        remove_empty(&log);
        self.progress.end_display();
        let restored = restored.and(self.executor.release_screen());
        let (failed, interrupted) = match ended {
            Ok(signal) => (None, signal),
            Err(error) => (Some(error), None),
        };
        let changes = self.executor.is_changed() || self.plan.arms.iter().any(|arm| !arm.set.is_empty());
        let options =
            ComparisonOptions { same: request.to.same, accept_busy: true, ..ComparisonOptions::default() };
        self.outcome.finished = Some(current_time());
        self.outcome.interrupted = interrupted;
        self.outcome.failed = failed.as_ref().map(|error| format!("{error:#}"));
        self.outcome.restored = changes.then_some(restored.is_ok());
        self.outcome.table = table(self.plan, &self.counted, &|place| Some(self.why(place)));
        let code = self.outcome.exit(&self.counted);
        // The record quotes the reasons.
        self.outcome.redact();
        self.outcome.acceptance = acceptance_record(&self.outcome, request.view, self.directory, code);
        self.outcome.comparisons = comparisons(self.plan, &self.counted, &options);
        let saved = self.save_outcome();
        let outcome = &self.outcome;
        let restore = if changes && restored.is_ok() { "what was changed is put back, and " } else { "" };
        let at = format!("results are in {}", self.directory.display());
        let results = if outcome.interrupted.is_some() { format!("{restore}{at}") } else { at };
        if let Some(error) = failed {
            return Err(with_restored(&error, restored.map(|()| changes), &results));
        }
        let shown =
            output::unless_unread(show::show_outcome(outcome, request.view, request.to.output_options()));
        // That the machine is not as it was is worse than a file that cannot be written.
        restored.and(saved).and(shown)?;
        if let Some(signal) = outcome.interrupted.as_ref().filter(|_| !self.counted.is_empty()) {
            self.progress.print_line(&format!("ended by {signal}: {results}"));
        }
        let code = trial_exit(outcome, &self.counted, &results)?;
        Ok(if request.to.fail_on.is_some() { worse(outcome, code) } else { code })
    }

    /// Reason why a place has no run that counts.
    fn why(&self, place: TrialCellIndex) -> String {
        let failed = || self.reasons.get(&place).and_then(|reasons| reasons.last().cloned());
        self.outcome
            .why_skipped(place)
            .or_else(failed)
            .unwrap_or_else(|| "the trial ended before it".to_owned())
    }
}

/// An error that ended a trial, with whether something was changed and is put back.
fn with_restored(error: &anyhow::Error, restored: Result<bool>, results: &str) -> anyhow::Error {
    match restored {
        Ok(false) => anyhow::anyhow!("{error:#}\nthe trial is over, it had changed nothing; {results}"),
        Ok(true) => anyhow::anyhow!("{error:#}\nthe trial is over, what it changed is put back; {results}"),
        Err(not) => anyhow::anyhow!("{error:#}\nthe trial is over, and {not:#}; {results}"),
    }
}

/// Exit code of a trial.
///
/// # Errors
/// Nothing could be measured, or an arm has nothing to be compared.
fn trial_exit(outcome: &TrialOutcome, counted: &TrialCellRuns, results: &str) -> Result<CommandExit> {
    let reasons: BTreeSet<&str> = outcome.table.iter().filter_map(|cell| cell.why.as_deref()).collect();
    if counted.is_empty() {
        let reasons = Vec::from_iter(reasons).join("; ");
        match &outcome.interrupted {
            Some(signal) => bail!("interrupted by {signal} before a run was complete; {results}"),
            None => bail!("no run counts: {reasons}; {results}"),
        }
    }
    let code = outcome.exit(counted);
    let lost = outcome.table.iter().find(|cell| cell.runs == 0 && !outcome.is_skipped(cell));
    if let Some(cell) = lost.filter(|_| code == 1 && outcome.interrupted.is_none()) {
        let why = cell.why.as_deref().unwrap_or_default();
        bail!("no run of {} in arm {} counts: {why}; {results}", cell.measurement, cell.arm);
    }
    Ok(CommandExit::of_code(code, || show::failure_reason(outcome)))
}

/// End where no arm may be worse than the first.
fn worse(outcome: &TrialOutcome, exit: CommandExit) -> CommandExit {
    let answers = || outcome.comparisons.iter().map(|one| one.answer.answer);
    let worse = |one: &&Compared| matches!(one.answer.answer, TrialVerdict::Hurts | TrialVerdict::Mixed);
    let known = |answer: &TrialVerdict| matches!(answer, TrialVerdict::Helps | TrialVerdict::Same);
    if matches!(exit, CommandExit::Error(_)) {
        return exit;
    }
    if let Some(one) = outcome.comparisons.iter().find(worse) {
        return CommandExit::Exceeded(format!(
            "--fail-on worse: {} is worse than {} in {}",
            one.b, one.a, one.measurement
        ));
    }
    let unknown = answers().filter(|answer| !known(answer)).count();
    if exit != CommandExit::Done || unknown == 0 && answers().next().is_some() {
        return exit;
    }
    let what = match unknown {
        0 => "nothing was compared".to_owned(),
        unknown => format!("{} cannot be decided", count_with_noun(unknown as u64, "comparison")),
    };
    CommandExit::Inconclusive(format!("--fail-on worse: inconclusive: {what}"))
}

fn remove_empty(log: &Path) {
    if fs::metadata(log).is_ok_and(|about| about.len() == 0) {
        let _ = fs::remove_file(log);
    }
}

/// Warning of a run that a quota stopped, or beside which others used the CPUs: not the load that was asked for.
fn busy(report: &Report) -> Option<Warning> {
    let others = report.activity.as_ref();
    if let Some(quota) = others.and_then(Account::throttled_much) {
        let text =
            format!("limited to {:.2} CPU by a control group, which stopped the run at times", quota.cpus);
        let remedy = Some(MORE_TIME.to_owned());
        return Some(Warning { id: THROTTLED.to_owned(), text, remedy });
    }
    others.filter(|others| others.is_disturbed()).map(|others| Warning {
        id: "busy-machine".to_owned(),
        text: format!(
            "{} more than 5 % of the CPUs; the figures are those of a machine as busy as that",
            if others.is_quiet() { "the hypervisor took" } else { "other processes used" }
        ),
        remedy: Some("measure on a quieter machine".to_owned()),
    })
}

/// Warning of a run whose processes were stopped or frozen: its longest times are of that.
fn halted(report: &Report) -> Option<Warning> {
    let mut reasons = report.measurements.iter().flat_map(|m| &m.quality.reasons);
    let reason = reasons.find(|reason| reason.id == HALTED)?;
    Some(Warning { id: HALTED.to_owned(), text: reason.text.clone(), remedy: reason.remedy.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::{QualityLevel, Reason};

    #[test]
    fn a_run_that_was_halted_has_a_warning() {
        let mut report = latscope_core::fixture::wake();
        assert_eq!(halted(&report), None);
        report.measurements[0].lower(Reason::new(
            QualityLevel::Degraded,
            HALTED,
            "it was frozen for 500 ms",
            "",
        ));
        assert_eq!(halted(&report).unwrap().text, "it was frozen for 500 ms");
    }

    #[test]
    fn one_of_two_trials_takes_an_empty_directory() {
        let place = tempfile::tempdir().unwrap();
        make(place.path(), true).unwrap();
        claim_directory(place.path()).unwrap();
        assert!(claim_directory(place.path()).unwrap_err().to_string().contains("another trial began there"));
        assert!(make(place.path(), true).unwrap_err().to_string().contains("not empty"));
    }
}
