//! `cargo xtask peers`, which compares latscope with tools that measure the same quantities, and runs the experiments
//! whose
//! limits latscope has to keep. It is not part of the tests.

mod builds;
mod ipc;
mod lines;
mod lmbench;
mod nodes;
mod parse;
mod plain;
mod pty;
mod remote;
mod repeat;
mod size;
mod stress;
mod table;
mod tools;
mod wake;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use latscope_core::quality::QualityLevel;
use latscope_core::report::Measurement;
use latscope_core::statistics::{ConfidenceInterval, median, quantile, ratio_of_medians};
use latscope_core::units::format_time;
use std::path::PathBuf;
use table::{LEFT_OUT, PeerComparison, TABLE};
use tools::{LatscopeBinary, PlaceholderValues};

/// Seed of the bootstrap: the same measurements give the same interval.
const SEED: u64 = 1;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PeersArguments {
    /// Only these comparisons
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Number of turns of the two sides
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    #[command(subcommand)]
    experiment: Option<PeersExperiment>,
}

#[derive(Subcommand)]
enum PeersExperiment {
    /// Movement of rows when `stress-ng --cpu 4` runs beside
    Stress {
        /// Number of pairs of an idle and a loaded run
        #[arg(long, default_value_t = 5)]
        pairs: usize,
    },
    /// `latscope wake` and cyclictest in the same pattern
    Wake {
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
        /// Length of a run
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// `latscope ipc` and other tools' transactions of the same kind; binder and rsbinder in the VM
    Ipc {
        /// Only these
        #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
        only: Vec<String>,
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
    },
    /// LMbench's programs beside `latscope as` them
    Lmbench {
        /// Directory of LMbench's programs; they are the user's, and not fetched
        #[arg(long, value_name = "BIN")]
        dir: PathBuf,
        /// Only calls with one of these words in them
        #[arg(long, value_name = "WORD,…", value_delimiter = ',')]
        only: Vec<String>,
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
    },
    /// The least client of a terminal, for `remote`
    #[command(hide = true)]
    Pty {
        /// The terminal
        path: PathBuf,
    },
    /// `latscope remote` beside what it is built on: a cache line, a futex, memory
    Remote {
        /// Only these
        #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
        only: Vec<String>,
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
    },
    /// Hand-offs and threads beside plain loops of the same
    Survey {
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
    },
    /// Loads from the memory of each node beside a plain chain of loads
    Nodes {
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
        /// MiB of the chain
        #[arg(long, default_value_t = 64)]
        mib: usize,
    },
    /// Loads of lines that another core has beside the same walk in C
    LineState {
        /// Number of turns of the two sides
        #[arg(long, default_value_t = 15)]
        pairs: usize,
    },
    /// Surveys one after the other: whether they say of each other what is true
    Repeat {
        /// Number of surveys
        #[arg(long, default_value_t = 8)]
        surveys: usize,
        /// Judge these saved results instead
        #[arg(value_name = "RESULT")]
        results: Vec<PathBuf>,
        /// Write the medians of all rounds here
        #[arg(long, value_name = "FILE")]
        rounds: Option<PathBuf>,
    },
    /// Compares the static binary with what `cargo build --release` makes
    Builds {
        /// Quick surveys of each
        #[arg(long, default_value_t = 9)]
        runs: usize,
    },
    /// Start-up, rendering, size of the binary, own memory, time of a survey
    Size,
}

/// Runs the comparisons or an experiment. Returns true if any comparison could be made, or if every limit of the
/// experiment
/// holds.
///
/// # Errors
/// latscope cannot be built, a name is unknown, or tools are missing and this process is not root.
pub fn run_experiment(arguments: &PeersArguments) -> Result<bool> {
    match &arguments.experiment {
        None => compare_all(&arguments.only, arguments.pairs),
        Some(PeersExperiment::Stress { pairs }) => stress::compare_under_load(*pairs),
        Some(PeersExperiment::Wake { pairs, seconds }) => wake::compare_wake(*pairs, *seconds),
        Some(PeersExperiment::Ipc { only, pairs }) => ipc::compare_contests(only, *pairs),
        Some(PeersExperiment::Pty { path }) => pty::client(path).map(|()| true),
        Some(PeersExperiment::Remote { only, pairs }) => remote::compare_contests(only, *pairs),
        Some(PeersExperiment::Survey { pairs }) => plain::compare_loops(*pairs),
        Some(PeersExperiment::Nodes { pairs, mib }) => nodes::compare_nodes(*pairs, *mib),
        Some(PeersExperiment::LineState { pairs }) => lines::compare_states(*pairs),
        Some(PeersExperiment::Repeat { surveys, results, rounds }) => {
            repeat::assess_surveys(*surveys, results, rounds.as_deref())
        }
        Some(PeersExperiment::Builds { runs }) => builds::compare_builds(*runs),
        Some(PeersExperiment::Lmbench { dir, only, pairs }) => {
            lmbench::compare_programs(dir, only, *pairs).map(|()| true)
        }
        Some(PeersExperiment::Size) => size::check_limits(),
    }
}

fn compare_all(only: &[String], pairs: usize) -> Result<bool> {
    let chosen = choose_comparisons(only)?;
    let lacking = tools::install_missing(chosen.iter().map(|comparison| comparison.tool))?;
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    println!("latscope / peer, a time by a time: below 1 latscope's figure is the lower one.");
    println!(
        "[95 % interval of the median ratio], by bootstrap over pairs measured in turn, latscope first;"
    );
    println!("± half the distance of the quartiles of a side's runs, in % of their median.");
    let mut compared = false;
    for comparison in &chosen {
        let program = comparison.tool.program();
        println!("\n{}: {}", comparison.name, comparison.what);
        match lacking.iter().find(|(lacking, _)| *lacking == program) {
            Some((_, why)) => println!("  not compared: {program} cannot be had: {why}"),
            None => compared |= comparison.take_turns(&latscope, &here, pairs),
        }
    }
    if only.is_empty() {
        println!("\nLeft out:");
        LEFT_OUT.iter().for_each(|(what, why)| println!("  {what}: {why}"));
    }
    Ok(compared)
}

/// Returns the comparisons of these names, or all if there are no names.
fn choose_comparisons(only: &[String]) -> Result<Vec<&'static PeerComparison>> {
    let names = || TABLE.iter().map(|comparison| comparison.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let found = TABLE.iter().find(|comparison| comparison.name == name);
        found.with_context(|| format!("no comparison {name:?}: there are {}", names()))
    };
    if only.is_empty() { Ok(TABLE.iter().collect()) } else { only.iter().map(find).collect() }
}

impl PeerComparison {
    /// Measures and prints the comparison. Returns true if there was anything to compare.
    fn take_turns(&self, latscope: &LatscopeBinary, here: &PlaceholderValues, pairs: usize) -> bool {
        let (mut ours, mut theirs, mut failure) = (Vec::new(), Vec::new(), None);
        for turn in 1..=pairs {
            eprint!("\r{} {turn}/{pairs} ", self.name);
            let words = here.fill_words(self.ours);
            match words.and_then(|words| Ok((latscope.median(&words)?, self.their_time(here)?))) {
                Ok((our, their)) => (ours.push(our), theirs.push(their)).0,
                Err(error) => failure = Some(error),
            }
            if ours.is_empty() && turn == 2 {
                break; // More of the same will not mend it.
            }
        }
        eprint!("\r{:40}\r", "");
        let both: Vec<(f64, f64)> = ours.iter().copied().zip(theirs.iter().copied()).collect();
        let ratio = ratio_of_medians(&both, SEED);
        if let Some((ratio, interval)) = ratio {
            let (program, count) = (self.tool.program(), both.len());
            print!("  {ratio:.3} [{:.3}, {:.3}]   latscope {}", interval.low, interval.high, side(&ours));
            println!("   {program} {}   {count} pairs", side(&theirs));
        }
        if let Some(failure) = failure {
            println!("  {} of {pairs} pairs not compared: {failure:#}", pairs - both.len());
        }
        let command = |line| here.fill_words(line).map_or_else(|_| line.to_owned(), |words| words.join(" "));
        println!("  latscope {}\n  {}", command(self.ours), command(self.theirs));
        println!("  differs: {}", self.differs);
        ratio.is_some()
    }

    /// Figure of the other tool, in ns.
    fn their_time(&self, here: &PlaceholderValues) -> Result<f64> {
        let program = self.tool.program();
        let output = here.run_peer(self.theirs).with_context(|| format!("{program} does not run here"))?;
        let last = || format!("{program} printed no figure: {}", output.lines().last().unwrap_or_default());
        self.figure.parse_figure(&output).with_context(last)
    }
}

/// Checks that nothing distorts a figure of latscope: beside a peer that does not notice it, such a figure says
/// nothing.
///
/// # Errors
/// The point is degraded or unsupported; the text has the reasons.
fn undistorted(point: &Measurement) -> Result<()> {
    let why = || point.joined_reasons().unwrap_or_default();
    ensure!(
        point.quality.level < QualityLevel::Degraded,
        "latscope cannot measure it on this machine now: {}",
        why()
    );
    Ok(())
}

/// Text with the median of the runs of a side and their spread.
fn side(runs: &[f64]) -> String {
    let at = |q| quantile(runs, q).unwrap_or(f64::NAN);
    format!("{} ± {:.1} %", format_time(at(0.5)), 50.0 * (at(0.75) - at(0.25)) / at(0.5))
}

/// Verdict on a figure with a limit. The limit holds if the interval of the median reaches into the allowed interval.
fn limit_verdict(median: f64, interval: ConfidenceInterval, allowed: ConfidenceInterval) -> &'static str {
    match (interval.is_apart_from(&allowed), allowed.contains(median)) {
        (true, _) => "EXCEEDED",
        (false, true) => "holds",
        (false, false) => "holds (its interval does, the median does not)",
    }
}

/// Median of some numbers; NaN if there are none.
fn median_or_nan(values: impl IntoIterator<Item = f64>) -> f64 {
    median(&values.into_iter().collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_when_the_interval_reaches_it() {
        let allowed = ConfidenceInterval { low: 0.85, high: 1.15 };
        let judge = |median, low, high| limit_verdict(median, ConfidenceInterval { low, high }, allowed);
        assert_eq!(judge(1.0, 0.9, 1.1), "holds");
        assert_eq!(judge(1.2, 1.1, 1.3), "holds (its interval does, the median does not)");
        assert_eq!((judge(1.3, 1.16, 1.4), judge(0.7, 0.6, 0.8)), ("EXCEEDED", "EXCEEDED"));
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        let error = choose_comparisons(&["getpid".to_owned()]).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("getppid, clock, mutex")));
        assert_eq!(choose_comparisons(&[]).map(|all| all.len()).ok(), Some(TABLE.len()));
    }
}
