//! The arguments of both commands, and the plan that they make.

use super::super::options::some_time;
use super::super::{CommandExit, input, redact};
use super::carry_out::{TrialRequest, carry_out};
use super::plan_file::{Arm, PlanFile, TrialCommandLine, TrialMeasurement, TrialRunOrder};
use super::shared::SharedArguments;
use super::show::{TrialViewKind, check_plan};
use super::traced::add_tracing;
use super::{redacted, shipped};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use latscope_process::stdout;
use std::path::Path;

/// Does this knob help? Runs in turns without (A) and with it (B), compared
///
/// Each run is a latscope command, in a random order that is balanced: every pair of runs has one of each arm. The
/// commands of the shell are run before each run of their arm; at the end, also after SIGKILL, what they changed is
/// put back by --restore, else by --without. With neither, A and B are the same, and a difference is a false alarm.
///
/// Exit codes: 0 done, and each criterion of the runs holds, 1 error, or interrupted, 2 a run exceeded a criterion, or
/// with --fail-on worse an arm is worse than the first, 3 a criterion, or that, cannot be judged.
#[derive(Debug, Args)]
#[command(override_usage = "latscope trial [OPTIONS] --without CMD --with CMD -- COMMAND…\n       \
                      latscope trial [OPTIONS] -- COMMAND…\n       latscope trial [OPTIONS] --plan PLAN.toml")]
pub struct TrialArguments {
    /// Command of the shell before each run of A
    #[arg(long, value_name = "CMD", requires = "with")]
    without: Option<String>,
    /// Command of the shell before each run of B
    #[arg(long, value_name = "CMD", requires = "without")]
    with: Option<String>,
    /// Command of the shell at the end
    #[arg(long, value_name = "CMD", requires = "with")]
    restore: Option<String>,
    /// Program that starts latscope in A, such as 'taskset -c 1' or 'chrt -f 10'
    #[arg(long, value_name = "PROGRAM", value_parser = parse_command_line)]
    a_run: Option<TrialCommandLine>,
    /// Program that starts latscope in B
    #[arg(long, value_name = "PROGRAM", value_parser = parse_command_line)]
    b_run: Option<TrialCommandLine>,
    /// Load beside the runs of A, as after --load
    #[arg(long, value_name = "NAME|CMD")]
    a_load: Option<String>,
    /// Load beside the runs of B
    #[arg(long, value_name = "NAME|CMD")]
    b_load: Option<String>,
    /// A plan instead, which may have more arms: as `latscope run`
    #[arg(
        long,
        value_name = "PLAN",
        conflicts_with_all = ["without", "a_run", "b_run", "a_load", "b_load", "command"]
    )]
    plan: Option<String>,
    #[command(flatten)]
    shared: SharedArguments,
    /// What is measured: a command of latscope (default: survey)
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Many measurements under loads, as a plan says: one directory of results, one table
///
/// A plan is a TOML file, or the name of one that comes with latscope (--list). What a plan needs and this machine
/// lacks is skipped, with the reason.
///
/// Exit codes: 0 done, and each criterion of the runs holds, 1 error, or interrupted, 2 a run exceeded a criterion, or
/// with --fail-on worse an arm is worse than the first, 3 a criterion, or that, cannot be judged.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// A file, or the name of a plan of latscope
    #[arg(value_name = "PLAN", required_unless_present_any = ["list", "show"])]
    plan: Option<String>,
    /// The plans that come with latscope
    #[arg(long, conflicts_with_all = ["plan", "show"])]
    list: bool,
    /// The text of a plan that comes with latscope, to change it
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    show: Option<String>,
    /// Time of each measurement that has a --duration in the plan
    #[arg(long, value_name = "T", value_parser = some_time)]
    duration: Option<u64>,
    #[command(flatten)]
    shared: SharedArguments,
}

fn parse_command_line(text: &str) -> Result<TrialCommandLine, String> {
    let words = TrialCommandLine::from_shell_text(text).map_err(|error| error.to_string())?;
    if words.0.is_empty() { Err("it is empty".to_owned()) } else { Ok(words) }
}

/// Carries out a trial.
///
/// # Errors
/// Bad arguments, a command that fails, no run that counts, or a file that cannot be written.
pub fn trial(asked: &TrialArguments) -> Result<CommandExit> {
    if let Some(plan) = &asked.plan {
        return of_plan(plan, None, &asked.shared);
    }
    let named = if asked.with.is_some() { ["without", "with"] } else { ["a", "b"] };
    let arm =
        |at: usize, before: &Option<String>, prefix: &Option<TrialCommandLine>, load: &Option<String>| Arm {
            name: named[at].to_owned(),
            before: before.clone(),
            prefix: prefix.clone().unwrap_or_default(),
            load: load.clone(),
            ..Arm::default()
        };
    let command = if asked.command.is_empty() { vec!["survey".to_owned()] } else { asked.command.clone() };
    let plan = PlanFile {
        title: String::new(),
        repetitions: asked.shared.runs.unwrap_or(9),
        order: TrialRunOrder::Random,
        seed: asked.shared.seed.unwrap_or(1),
        restore: asked.restore.clone(),
        measurements: vec![TrialMeasurement {
            name: command[0].trim_start_matches('-').to_owned(),
            run: TrialCommandLine(command),
            needs: None,
            otherwise: None,
        }],
        arms: vec![
            arm(0, &asked.without, &asked.a_run, &asked.a_load),
            arm(1, &asked.with, &asked.b_run, &asked.b_load),
        ],
        loads: Vec::new(),
    };
    carry_out(&TrialRequest {
        plan: redacted::redact_names(plan.checked()?),
        name: "trial".to_owned(),
        view: TrialViewKind::Comparison,
        to: &asked.shared,
    })
}

/// Carries out a plan, or shows those there are.
///
/// # Errors
/// As [`trial`], or there is no such plan.
pub fn run(asked: &PlanArguments) -> Result<CommandExit> {
    let shown = match (&asked.show, &asked.plan) {
        (Some(name), _) => {
            shipped::plan_text(name).with_context(|| shipped::unknown_plan_message(name))?.to_owned()
        }
        (None, None) => shipped::list(),
        (None, Some(plan)) => return of_plan(plan, asked.duration, &asked.shared),
    };
    stdout::write_text(&shown)?;
    Ok(CommandExit::Done)
}

fn of_plan(plan: &str, duration: Option<u64>, shared: &SharedArguments) -> Result<CommandExit> {
    let path = Path::new(plan);
    let text = match shipped::plan_text(plan) {
        Some(text) => text.to_owned(),
        None if path.exists() => {
            check_plan(shared, path)?;
            input::read_text(path)?
        }
        None => bail!("{}", shipped::unknown_plan_message(plan)),
    };
    let mut read = PlanFile::parse(&text).with_context(|| format!("cannot use the plan {plan}"))?;
    read.repetitions = shared.runs.unwrap_or(read.repetitions);
    read.seed = shared.seed.unwrap_or(read.seed);
    if let Some(duration) = duration {
        let changed =
            read.measurements.iter_mut().map(|one| lasting(&mut one.run.0, duration)).filter(|it| *it);
        ensure!(changed.count() > 0, "--duration is for measurements with a --duration, and {plan} has none");
    }
    let of_user = redact::applies() && shipped::plan_text(plan).is_none();
    let stem = if of_user { "run".into() } else { path.file_stem().unwrap_or_default().to_string_lossy() };
    let (plan, name) = (add_tracing(redacted::redact_names(read)), stem.into_owned());
    carry_out(&TrialRequest { plan, name, view: TrialViewKind::Table, to: shared })
}

/// Gives the words another `--duration`, if they have one.
fn lasting(words: &mut [String], ns: u64) -> bool {
    let duration = format!("{}ns", ns);
    let mut found = false;
    for at in 0..words.len() {
        if words[at] == "--duration" && at + 1 < words.len() {
            words[at + 1].clone_from(&duration);
            found = true;
        } else if words[at].starts_with("--duration=") {
            words[at] = format!("--duration={duration}");
            found = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_duration_gets_another() {
        let mut words = ["wake", "--duration", "1h", "--max", "1ms"].map(str::to_owned);
        assert!(lasting(&mut words, 2_000_000_000));
        assert_eq!(words.join(" "), "wake --duration 2000000000ns --max 1ms");
        assert!(!lasting(&mut ["survey".to_owned()], 1));
    }
}
