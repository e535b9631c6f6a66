//! `latscope bisect-check`: measures until it is certain whether a budget holds, for `git bisect run`.

use super::budget;
use super::gate::unmet;
use super::output::{replaces, unless_unread};
use super::usage::{did_you_mean, of_parser};
use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Args, Command};
use latscope_core::report::VerdictStatus;
use latscope_core::units::{count_with_noun, format_share};
use latscope_judge::gate::sequential::{Decision, Sequential};
use latscope_judge::gate::{self, GateBudget, GateCheck, GateResult};
use latscope_judge::runs::RunResult;
use latscope_os::signal::{self, SignalFd, TERMINATION};
use latscope_os::worker::{self, Lifetime};
use latscope_process::eprintln;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus};
use std::{fmt, fs};

/// The name of the command.
pub const NAME: &str = "bisect-check";

/// The exit code that `git bisect run` takes for a commit that cannot be tested.
const CANNOT_TELL: u8 = 125;

/// The exit code that ends `git bisect run`: what is wrong would be wrong at every commit.
const WRONG: u8 = 128;

/// Reason why a commit cannot be judged, though others may.
#[derive(Debug)]
struct CannotTell(String);

impl fmt::Display for CannotTell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot tell: {}", self.0)
    }
}

impl std::error::Error for CannotTell {}

/// Returns the exit code of an error: 125 if another commit may be judged, else 128.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<CannotTell>() { CANNOT_TELL } else { WRONG })
}

/// Exit code for a bad commit.
const BAD: u8 = 1;

/// Measures until it is certain whether a budget holds: for git bisect run
///
/// Each run of the command behind -- is judged by the budget. Two runs that exceed a max or a missed are enough for
/// bad; else the runs go on until one kind is three ahead of the other. Inconclusive runs, and those beside which other
/// processes used more than 25 % of the CPUs, count as neither.
///
/// Exit codes, as git bisect run takes them: 0 good, 1 bad, 125 cannot tell, 128 wrong command, budget or probe, which
/// ends the bisection, above 128 ended by a signal.
#[derive(Debug, Args)]
#[command(
    name = NAME,
    override_usage = "latscope bisect-check [OPTIONS] --budget FILE -- COMMAND [OPTIONS OF THE COMMAND]"
)]
pub struct BisectArguments {
    /// Limits that are to hold, in TOML
    #[arg(long, value_name = "FILE")]
    budget: PathBuf,
    /// Most runs, at least 3
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// Count runs also beside which other processes used more than 25 % of the CPUs
    #[arg(long)]
    accept_busy: bool,
    /// What measures: a command of latscope with its options
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs `run` so that a panic of latscope is an error, not a bad commit.
///
/// # Errors
/// `run` fails or panics.
pub fn catch_panic(run: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| bail!("a defect of latscope: please report it"))
}

/// Runs with an event above what none may be above that are enough for bad: one may be an accident.
const CONFIRMED: usize = 2;

/// A run is no evidence beside which others used more of the CPUs.
const BUSY: f64 = 0.25;

/// Measures, and says good or bad.
///
/// # Errors
/// The command cannot be carried out, the budget cannot be read, or a run leaves no result.
pub fn run_bisect(asked: &BisectArguments, whole: Command) -> Result<ExitCode> {
    let budget = checked_budget(asked)?;
    let place =
        tempfile::Builder::new().prefix("latscope-bisect-").tempdir().context("no temporary directory")?;
    let file = place.path().join("result.json");
    let words = build_command_line(&asked.command, &file, whole)?;
    let waited: Vec<i32> = TERMINATION.into_iter().chain([Signal::CHILD.as_raw()]).collect();
    let signals = SignalFd::block(&waited).context("signals cannot be waited for")?;
    let (mut seen, mut hard) = (Sequential::default(), 0);
    for number in 1..=asked.runs {
        let (ended, signal) = run_own_binary(&words, &signals)?;
        if let Some(signal) = signal {
            eprintln!("ended by {}", signal::signal_name(signal));
            return Ok(ExitCode::from(128u8.saturating_add(signal as u8)));
        }
        let gate = judge_run(&budget, &file, ended, asked.accept_busy)?;
        match gate.status {
            VerdictStatus::Pass => seen.good += 1,
            VerdictStatus::Exceeded => seen.bad += 1,
            VerdictStatus::Inconclusive => {}
        }
        let left = asked.runs - number;
        print_run(number, &gate, &seen, left);
        hard += usize::from(gate.checks.iter().any(GateCheck::is_final));
        if let Some(why) = hopeless(&gate).filter(|_| number == 1) {
            bail!("no run of this command can hold the budget: {why}");
        }
        match if hard >= CONFIRMED { Some(Decision::Bad) } else { seen.decision() } {
            Some(Decision::Good) => return print_verdict("good", &seen, number, ExitCode::SUCCESS),
            Some(Decision::Bad) => return print_verdict("bad", &seen, number, BAD.into()),
            None if seen.fewest_left() as u64 > left => break,
            None => {}
        }
    }
    let ran = seen.good + seen.bad;
    bail!(CannotTell(format!(
        "{} good and {} bad among {} judged; --runs {} allows more",
        seen.good,
        seen.bad,
        count_with_noun(ran as u64, "run"),
        asked.runs * 2
    )))
}

/// The budget, if it and the number of runs can decide, and the command leaves it alone.
fn checked_budget(asked: &BisectArguments) -> Result<GateBudget> {
    let fewest = Sequential::lead() as u64;
    ensure!(asked.runs >= fewest, "--runs {}: {fewest} runs that agree are needed", asked.runs);
    let budget = budget::load_budget(&asked.budget, [])?;
    if let Some(limit) = budget.relative() {
        bail!(
            "limit {} ({}) is relative to a baseline, and each run is judged alone",
            limit.number,
            limit.name()
        );
    }
    // `--csv FILE` and `--csv=FILE`.
    let path =
        |word: &String| Path::new(word.split_once('=').map_or(word.as_str(), |(_, path)| path)).to_owned();
    ensure!(
        !asked.command.iter().any(|word| replaces(&path(word), &asked.budget)),
        "the command behind -- would write to the budget, {}: choose another file",
        asked.budget.display()
    );
    Ok(budget)
}

/// Returns the reason why no run of this command can hold the budget, with what would; `None` if a run can.
fn hopeless(gate: &GateResult) -> Option<String> {
    if gate.status == VerdictStatus::Exceeded {
        return None;
    }
    if gate.checks.is_empty() {
        return Some("nothing is judged".to_owned());
    }
    let hopeless: Vec<&GateCheck> = gate.checks.iter().filter(|check| check.is_hopeless).collect();
    // A check that no length mends comes first, then the one that takes the longest run.
    let never = hopeless.iter().find(|check| check.takes.is_none());
    let check = never.or(hopeless.iter().max_by_key(|check| check.takes))?;
    let remedy = match check.takes {
        None => "choose what fits the budget behind --".to_owned(),
        Some(length) => format!("add {length} to the command behind --"),
    };
    let text = check.text.as_str();
    Some(format!("{}: {text} ({remedy})", check.id))
}

fn print_verdict(verdict: &str, seen: &Sequential, runs: u64, code: ExitCode) -> Result<ExitCode> {
    let text =
        format!("{verdict}: {} good and {} bad of {}\n", seen.good, seen.bad, count_with_noun(runs, "run"));
    unless_unread(latscope_process::stdout::write_text(&text).map_err(Into::into))?;
    Ok(code)
}

/// Prints a line about a run to stderr.
fn print_run(number: u64, gate: &GateResult, seen: &Sequential, left: u64) {
    let word = match gate.status {
        VerdictStatus::Pass => "good",
        VerdictStatus::Exceeded => "bad",
        VerdictStatus::Inconclusive => "inconclusive",
    };
    let why = unmet(gate).into_iter().next().map(|why| format!(": {why}"));
    let counts = format!("{} good, {} bad, at most {left} more", seen.good, seen.bad);
    eprintln!("run {number} {word} ({counts}){}", why.unwrap_or_default());
}

/// The words of a run: those that were asked for, which must be of a command that measures, and where its result goes.
fn build_command_line(command: &[String], file: &Path, whole: Command) -> Result<Vec<String>> {
    let file = file.to_str().context("the temporary directory has no name in UTF-8")?;
    let name = command.first().map_or("", String::as_str);
    let measuring = || latscope_probes::FAMILIES.iter().map(|family| family.name).chain(["survey", "mem"]);
    ensure!(
        measuring().any(|known| known == name),
        "the command behind --: {name:?} measures nothing (choose a family such as wake, or survey){}",
        did_you_mean(name, measuring())
    );
    let mut words = command.to_vec();
    words.extend(["--json".to_owned(), file.to_owned()]);
    if !command.iter().any(|word| word == "--quiet" || word == "-q") {
        words.push("--quiet".to_owned());
    }
    let whole = whole.mut_subcommands(|sub| sub.disable_help_flag(true)).disable_version_flag(true);
    let parsed = whole.try_get_matches_from(["latscope".to_owned()].iter().chain(&words));
    let parsed = parsed.map_err(|error| {
        let text = of_parser(&error.to_string());
        anyhow::anyhow!("the command behind --: {text}")
    })?;
    let is_dry =
        |matches: &ArgMatches| matches.try_get_one("dry_run").ok().flatten().is_some_and(|dry: &bool| *dry);
    ensure!(
        !parsed.subcommand().is_some_and(|(_, matches)| is_dry(matches)),
        "--dry-run measures nothing: leave it out"
    );
    Ok(words)
}

/// Runs our own binary; a signal to this process is passed on, and ends both.
fn run_own_binary(words: &[String], signals: &SignalFd) -> Result<(ExitStatus, Option<i32>)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut child = worker::spawn(&words, &[], Lifetime::WithParent).context("cannot start latscope")?;
    let mut told = None;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for latscope")? {
            return Ok((status, told));
        }
        poll(&mut [PollFd::new(signals, PollFlags::IN)], None).context("cannot wait for latscope")?;
        while let Some(signal) = signals.next().context("cannot wait for latscope")? {
            if TERMINATION.contains(&signal) {
                told = told.or(Some(signal));
                pass_on(&child, signal);
            }
        }
    }
}

fn pass_on(child: &Child, signal: i32) {
    let signal = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
    // It may have ended just now.
    let _ = kill_process(Pid::from_child(child), signal);
}

/// The result of a run, judged.
fn judge_run(budget: &GateBudget, file: &Path, ended: ExitStatus, accept_busy: bool) -> Result<GateResult> {
    let done = [0, 2, 3].map(Some).contains(&ended.code());
    ensure!(done, CannotTell(format!("the run failed ({ended})")));
    let text = fs::read(file).map_err(|why| CannotTell(format!("the run left no result: {why}")))?;
    let run =
        RunResult::from_json(&text).map_err(|why| CannotTell(format!("the result cannot be used: {why}")))?;
    fs::remove_file(file).context("cannot remove the result of the run")?;
    let busy = run.report.activity.as_ref().map(|account| account.others).filter(|others| *others > BUSY);
    let judges = run.report.measurements.iter().any(|m| m.verdict.is_some());
    ensure!(!judges, "the command has criteria of its own: write them in the budget, which decides");
    let mut gate = gate::judge_runs(budget, &[("this run".to_owned(), run)], &[]);
    if let Some(others) = busy.filter(|_| !accept_busy) {
        gate.distrust(&format!("other processes used {} of the CPUs", format_share(others)));
    }
    Ok(gate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::report::{Account, VerdictStatus};
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_run_beside_what_others_ran_is_no_evidence() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("run.json");
        let limits = place.path().join("budget.toml");
        fs::write(&limits, "[[limit]]\nprobe = 'wake.timer'\nmax = '1ns'").unwrap();
        let budget = budget::load_budget(&limits, []).unwrap();
        let status = |others: f64, accept_busy: bool| {
            let account = Account { others, ..Account::default() };
            let mut report = latscope_core::report::Report { activity: Some(account), ..fixture::wake() };
            report.measurements.iter_mut().for_each(|m| m.verdict = None);
            fs::write(&file, report.to_json()).unwrap();
            judge_run(&budget, &file, ExitStatus::from_raw(0), accept_busy).unwrap().status
        };
        assert_eq!(status(0.1, false), VerdictStatus::Exceeded);
        assert_eq!(status(0.6, false), VerdictStatus::Inconclusive);
        assert_eq!(status(0.6, true), VerdictStatus::Exceeded);
    }
}
