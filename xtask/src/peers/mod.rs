//! `cargo xtask peers`: latscope beside the tools that measure the same
//! quantities, and the experiments whose limits latscope has to keep. Not part
//! of the tests: nothing here is judged by them.

mod parse;
mod size;
mod stress;
mod table;
mod tools;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use latscope_core::statistics::{Interval, median, quantile, ratio_of_medians};
use latscope_core::units::format_time;
use std::collections::BTreeMap;
use table::{Comparison, LEFT_OUT, TABLE};
use tools::{Here, Latscope, Tool};

/// Seed of the bootstrap: the same measurements give the same interval.
const SEED: u64 = 1;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Only these comparisons
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// How often the two sides take turns
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    #[command(subcommand)]
    experiment: Option<Experiment>,
}

#[derive(Subcommand)]
enum Experiment {
    /// How far rows move when `stress-ng --cpu 4` runs beside
    Stress {
        /// How often an idle run is followed by a loaded one
        #[arg(long, default_value_t = 5)]
        pairs: usize,
    },
    /// Start-up, rendering, size of the binary, own memory, time of a survey
    Size,
}

/// Runs the comparisons or an experiment; whether every limit holds.
///
/// # Errors
/// latscope cannot be built, a name is unknown, or tools are missing and this
/// is not root.
pub fn run(arguments: &Arguments) -> Result<bool> {
    match arguments.experiment {
        None => compare(&arguments.only, arguments.pairs),
        Some(Experiment::Stress { pairs }) => stress::run(pairs),
        Some(Experiment::Size) => size::run(),
    }
}

/// Whether anything could be compared.
fn compare(only: &[String], pairs: usize) -> Result<bool> {
    let chosen = chosen(only)?;
    let tools: BTreeMap<&str, &'static Tool> = chosen.iter().map(|c| (c.tool.program(), c.tool)).collect();
    let lacking = tools::install(&tools.into_values().collect::<Vec<_>>())?;
    let (latscope, here) = (Latscope::build()?, Here::new()?);
    println!("latscope / peer, a time by a time: below 1 latscope's figure is the lower one.");
    println!(
        "[95 % interval of the median ratio], by bootstrap over pairs measured in turn, latscope first;"
    );
    println!("± half the distance of the quartiles of a side's runs, in % of their median.");
    let mut compared = 0;
    for comparison in &chosen {
        println!("\n{}: {}", comparison.name, comparison.what);
        let program = comparison.tool.program();
        if let Some((_, why)) = lacking.iter().find(|(lacking, _)| *lacking == program) {
            println!("  not compared: {program} cannot be had: {why}");
            continue;
        }
        let (measured, failure) = take_turns(comparison, &latscope, &here, pairs);
        compared += usize::from(show(comparison, &measured));
        if let Some(failure) = failure {
            println!("  {} of {pairs} pairs failed, the last one: {failure:#}", pairs - measured.len());
        }
        println!("  latscope {}\n  {}", comparison.ours, comparison.theirs);
        println!("  differs: {}", comparison.differs);
    }
    if only.is_empty() {
        println!("\nLeft out:");
        LEFT_OUT.iter().for_each(|(what, why)| println!("  {what}: {why}"));
    }
    Ok(compared > 0)
}

fn chosen(only: &[String]) -> Result<Vec<&'static Comparison>> {
    if only.is_empty() {
        return Ok(TABLE.iter().collect());
    }
    let find = |name: &String| TABLE.iter().find(|comparison| comparison.name == name);
    let names = || TABLE.iter().map(|comparison| comparison.name).collect::<Vec<_>>().join(", ");
    only.iter()
        .map(|name| find(name).with_context(|| format!("no comparison {name:?}: there are {}", names())))
        .collect()
}

/// The pairs that could be measured, and why the last of the others could not.
fn take_turns(
    comparison: &Comparison,
    latscope: &Latscope,
    here: &Here,
    pairs: usize,
) -> (Vec<(f64, f64)>, Option<anyhow::Error>) {
    let (mut measured, mut failure) = (Vec::new(), None);
    for turn in 0..pairs {
        eprint!("\r{} {}/{pairs} ", comparison.name, turn + 1);
        let pair = || Ok((comparison.our_time(latscope, here)?, comparison.their_time(here)?));
        match pair() {
            Ok(pair) => measured.push(pair),
            Err(error) => failure = Some(error),
        }
        // What fails at first will not be mended by repeating it.
        if measured.is_empty() && turn == 1 {
            break;
        }
    }
    eprint!("\r{:40}\r", "");
    (measured, failure)
}

impl Comparison {
    fn our_time(&self, latscope: &Latscope, here: &Here) -> Result<f64> {
        latscope.median(&here.words(self.ours)?)
    }

    /// The other tool's figure, ns.
    fn their_time(&self, here: &Here) -> Result<f64> {
        let program = self.tool.program();
        let output = here.run(self.theirs).with_context(|| format!("{program} does not run here"))?;
        let last = || format!("{program} printed no figure: {}", output.lines().last().unwrap_or_default());
        self.figure.read(&output).with_context(last)
    }
}

fn show(comparison: &Comparison, pairs: &[(f64, f64)]) -> bool {
    let Some((ratio, interval)) = ratio_of_medians(pairs, SEED) else {
        println!("  not compared");
        return false;
    };
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    println!(
        "  {ratio:.3} [{:.3}, {:.3}]   latscope {}   {} {}   {} pairs",
        interval.low,
        interval.high,
        side(&ours),
        comparison.tool.program(),
        side(&theirs),
        pairs.len()
    );
    true
}

/// The median of the runs of a side and how far they lie apart.
fn side(runs: &[f64]) -> String {
    let q = |q| quantile(runs, q).unwrap_or(f64::NAN);
    format!("{} ± {:.1} %", format_time(q(0.5)), 50.0 * (q(0.75) - q(0.25)) / q(0.5))
}

/// How a figure with a limit came out: it holds when the interval of its
/// median reaches into what is allowed.
fn verdict(median: f64, interval: Interval, allowed: Interval) -> &'static str {
    match (interval.is_apart_from(&allowed), allowed.contains(median)) {
        (true, _) => "EXCEEDED",
        (false, true) => "holds",
        (false, false) => "holds (its interval does, the median does not)",
    }
}

/// The middle of some numbers; NaN when there is none.
fn middle(values: impl IntoIterator<Item = f64>) -> f64 {
    median(&values.into_iter().collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_when_the_interval_reaches_it() {
        let allowed = Interval { low: 0.85, high: 1.15 };
        let judge = |median, low, high| verdict(median, Interval { low, high }, allowed);
        assert_eq!(judge(1.0, 0.9, 1.1), "holds");
        assert_eq!(judge(1.2, 1.1, 1.3), "holds (its interval does, the median does not)");
        assert_eq!(judge(1.3, 1.16, 1.4), "EXCEEDED");
        assert_eq!(judge(0.7, 0.6, 0.8), "EXCEEDED");
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        let error = chosen(&["getpid".to_owned()]).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("getppid, clock, mutex")));
        assert_eq!(chosen(&[]).map(|all| all.len()).ok(), Some(TABLE.len()));
    }
}
