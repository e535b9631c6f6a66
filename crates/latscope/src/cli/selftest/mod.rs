//! `latscope selftest`: known truths that the instrument must find.

mod compare;
mod survey;
mod wake;

use super::exit::{self, CommandExit};
use super::measure::CalibratedMachine;
use super::output::unless_unread;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_engine::observers::Observer;
use latscope_judge::verdict::describe_plan;
use latscope_process::stdout;

#[derive(Debug, Args)]
pub struct SelftestArguments {
    #[arg(value_name = "WHAT", value_enum, default_value_t = Subject::Survey)]
    what: Subject,
    /// Show the plan and measure nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Subject {
    /// Rows of a survey whose values are known
    Survey,
    /// Wake-ups beside injected delays
    Wake,
    /// Comparisons of loops that differ by a known share, or not at all
    Compare,
}

/// Known truth, and the result of checking it.
struct Verdict {
    holds: bool,
    text: String,
}

/// Measures the known truths and judges.
///
/// # Errors
/// No worker can be started.
pub fn run_selftest(asked: &SelftestArguments) -> Result<CommandExit> {
    let environment = CalibratedMachine::detect_machine();
    let plan = match asked.what {
        Subject::Survey => survey::plan(&environment.machine),
        Subject::Wake => wake::plan(&environment.machine)?,
        Subject::Compare => compare::comparison_plan(&environment.machine),
    };
    if asked.dry_run {
        stdout::write_text(&describe_plan(&plan))?;
        return Ok(CommandExit::Done);
    }
    let verdicts = match asked.what {
        Subject::Survey => survey::measure_and_judge(plan, environment)?,
        Subject::Wake => wake::measure_and_judge(plan, environment)?,
        Subject::Compare => compare::measure_and_judge(&plan)?,
    };
    for verdict in &verdicts {
        let word = if verdict.holds { "pass" } else { "FAIL" };
        unless_unread(stdout::write_text(&format!("{word}  {}\n", verdict.text)).map_err(Into::into))?;
    }
    let missed: Vec<String> =
        verdicts.into_iter().filter(|verdict| !verdict.holds).map(|verdict| verdict.text).collect();
    Ok(if missed.is_empty() { CommandExit::Done } else { CommandExit::Error(exit::first_of(&missed)) })
}

/// Measures all of a plan: what was cut short proves nothing.
///
/// # Errors
/// No worker can be started, or the run was interrupted.
fn measure_plan(
    plan: Plan,
    environment: CalibratedMachine,
    observers: Vec<&mut dyn Observer>,
) -> Result<Report> {
    let report = environment.run_plan(plan, Default::default(), observers)?;
    match &report.interrupted {
        Some(interrupted) => bail!("interrupted by {}: nothing is judged", interrupted.by),
        None => Ok(report),
    }
}
