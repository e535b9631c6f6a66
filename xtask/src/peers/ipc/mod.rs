//! `cargo xtask peers ipc`, which compares transactions of `latscope ipc` with tools that make the same transactions,
//! and
//! binder with rsbinder in the VM.

pub mod contest;
mod emulated;
pub mod here;

use super::tools::{self, LatscopeBinary, PeerTool, PlaceholderValues};
use super::{SEED, limit_verdict, median_or_nan};
use anyhow::{Result, bail};
use contest::IpcContest;
use emulated::VmPlacement;
use latscope_core::statistics::{ConfidenceInterval, ratio_of_medians};
use latscope_core::units::format_time;

/// Runs both sides in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope cannot be built, a name is unknown, or tools are missing and this process is not root.
pub fn compare_contests(only: &[String], pairs: usize) -> Result<bool> {
    check_names(only)?;
    let chosen = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    let contests: Vec<&IpcContest> = here::CONTESTS.iter().filter(|contest| chosen(contest.name)).collect();
    let places: Vec<&VmPlacement> = emulated::PLACES.iter().filter(|place| chosen(place.name)).collect();
    let of_places = (!places.is_empty()).then_some(&emulated::RSBINDER);
    let lacking =
        tools::install_missing(contests.iter().filter_map(|contest| contest.tool).chain(of_places))?;
    let why = |tool: Option<&PeerTool>| {
        let lacks = |(program, _): &&(&str, String)| tool.is_some_and(|tool| tool.program() == *program);
        lacking.iter().find(lacks).map(|(program, why)| format!("{program} cannot be had: {why}"))
    };
    println!(
        "latscope / peer [95 % interval of the median ratio] of {pairs} pairs in turn, latscope first.\n"
    );
    let mut holds = true;
    if !contests.is_empty() {
        let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
        for (contest, outcome) in here::take_turns(&contests, &latscope, &here, pairs, |c| why(c.tool)) {
            println!("{}: {}", contest.name, contest.what);
            holds &= outcome.print_results(contest.rows);
            println!("  latscope {}\n  {}\n  differs: {}", contest.ours, contest.theirs, contest.differs);
        }
    }
    for place in places {
        println!("{}: {}", place.name, place.what);
        holds &= match why(of_places) {
            Some(why) => emulated::not_run(&why),
            None => place.take_turns(pairs),
        };
    }
    Ok(holds)
}

/// Refuses names that no contest has.
fn check_names(only: &[String]) -> Result<()> {
    let names = here::CONTESTS.iter().map(|c| c.name).chain(emulated::PLACES.iter().map(|p| p.name));
    let names: Vec<&str> = names.collect();
    match only.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => bail!("nothing is named {name:?}: there are {}", names.join(", ")),
        None => Ok(()),
    }
}

/// Limit of a figure of a contest.
pub struct ContestLimit {
    /// Name of the figure.
    pub name: &'static str,
    /// Largest ratio; infinite for a figure that is only shown.
    pub most: f64,
}

/// Results of the turns of a contest.
#[derive(Default)]
pub struct ContestOutcome {
    /// Figures of both sides in each turn, in the order of the limits.
    pub turns: Vec<Vec<(f64, f64)>>,
    /// Reasons for turns without figures.
    pub failures: Vec<String>,
}

impl ContestOutcome {
    /// Prints the results. Returns true if every turn was measured and each limit holds.
    pub fn print_results<'a>(&self, limits: impl IntoIterator<Item = &'a ContestLimit>) -> bool {
        let mut holds = self.failures.is_empty();
        for (index, limit) in limits.into_iter().enumerate() {
            let pairs: Vec<(f64, f64)> = self.turns.iter().map(|turn| turn[index]).collect();
            let Some((ratio, interval)) = ratio_of_medians(&pairs, SEED) else {
                holds = false;
                continue;
            };
            let judgement = limit_verdict(ratio, interval, ConfidenceInterval { low: 0.0, high: limit.most });
            let judged = match limit.most.is_finite() {
                true => format!("at most {:.2}: {judgement}", limit.most),
                false => "no limit".to_owned(),
            };
            println!(
                "  {:<14} {ratio:.3} [{:.3}, {:.3}]   {} / {}   {judged}",
                limit.name,
                interval.low,
                interval.high,
                format_time(median_or_nan(pairs.iter().map(|(ours, _)| *ours))),
                format_time(median_or_nan(pairs.iter().map(|(_, theirs)| *theirs))),
            );
            holds &= judgement != "EXCEEDED";
        }
        if let Some(failure) = self.failures.first() {
            let all = self.turns.len() + self.failures.len();
            println!("  NOT RUN in {} of {all} turns: {failure}", self.failures.len());
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &[ContestLimit] =
        &[ContestLimit { name: "p50", most: 1.0 }, ContestLimit { name: "mean", most: 0.6 }];

    fn outcome(turn: [(f64, f64); 2], failures: &[&str]) -> ContestOutcome {
        let failures = failures.iter().map(|text| (*text).to_owned()).collect();
        ContestOutcome { turns: vec![turn.to_vec(); 5], failures }
    }

    #[test]
    fn every_limit_has_to_hold_in_every_turn() {
        assert!(outcome([(9.0, 10.0), (5.0, 10.0)], &[]).print_results(LIMITS));
        assert!(!outcome([(9.0, 10.0), (7.0, 10.0)], &[]).print_results(LIMITS));
        assert!(!outcome([(9.0, 10.0), (5.0, 10.0)], &["no device"]).print_results(LIMITS));
        assert!(!ContestOutcome::default().print_results(LIMITS));
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        let error = check_names(&["pipes".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("pipe-same-core, ") && error.contains("binder-same-core"), "{error}");
        check_names(&["spin".to_owned(), "binder-two-cores".to_owned()]).unwrap();
    }
}
