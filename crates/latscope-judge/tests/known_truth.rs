//! Comparisons of surveys of which the truth is known: the noise of eight real surveys, resampled, with and without a
//! shift. Bimodal, drifting and heavy-tailed rows are among them.
//!
//! `cargo test --release -p latscope-judge --test known_truth -- --ignored --nocapture` makes many more and prints
//! the rates with their intervals.
#![forbid(unsafe_code)]

mod surveys;

use latscope_core::statistics::SplitMix;
use latscope_judge::binomial::share_bounds;
use latscope_judge::compare::{ComparisonVerdict, Levels, verdicts};
use surveys::{Row, recorded};

const MARGIN: f64 = 0.05;
const RUNS: usize = 9;

/// A side of a survey. With `together` all rows of a run are from one real run: rows that move, move together.
fn side(rows: &[&Row], runs: usize, together: bool, random: &mut SplitMix) -> Vec<Levels> {
    let mut side: Vec<Levels> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        let place = random.below(8) as usize;
        for (row, levels) in rows.iter().zip(&mut side) {
            let place = if together { place } else { random.below(8) as usize };
            levels.push(row.run(place, random));
        }
    }
    side
}

fn found(verdict: &ComparisonVerdict) -> bool {
    matches!(verdict, ComparisonVerdict::Slower | ComparisonVerdict::Faster)
}

/// Of so many comparisons of whole surveys without a difference, those with at least one finding.
fn false_alarms(surveys: u64, runs: usize, seed: u64) -> u64 {
    let rows = recorded();
    let rows: Vec<&Row> = rows.iter().collect();
    let mut random = SplitMix::new(seed);
    let alarms = |survey: &u64| {
        let mut side = || side(&rows, runs, survey.is_multiple_of(2), &mut random);
        let sides: Vec<(Levels, Levels)> = side().into_iter().zip(side()).collect();
        verdicts(&sides, MARGIN, *survey).iter().any(found)
    };
    (0..surveys).filter(alarms).count() as u64
}

/// Shifts a quarter of the rows whose runs spread by at most 3 % by `factor`, so that few findings are made beside
/// each other; returns how many of these were
/// found, of how many, and the mean share of wrong findings in a comparison.
fn power(surveys: u64, factor: f64, seed: u64) -> (u64, u64, f64) {
    let rows = recorded();
    let rows: Vec<&Row> = rows.iter().collect();
    let steady: Vec<bool> = rows.iter().map(|row| row.spread() <= 0.03).collect();
    let mut random = SplitMix::new(seed);
    let (mut hits, mut shifted, mut false_share) = (0, 0, 0.0);
    for survey in 0..surveys {
        let (a, mut b) = (
            side(&rows, RUNS, survey.is_multiple_of(2), &mut random),
            side(&rows, RUNS, survey.is_multiple_of(2), &mut random),
        );
        let slower: Vec<bool> = steady.iter().map(|steady| *steady && random.below(4) == 0).collect();
        for (levels, _) in b.iter_mut().zip(&slower).filter(|(_, slower)| **slower) {
            levels.iter_mut().flatten().for_each(|ns| *ns *= factor);
        }
        let sides: Vec<(Levels, Levels)> = a.into_iter().zip(b).collect();
        let (mut wrong, mut findings) = (0, 0);
        for (verdict, slower) in verdicts(&sides, MARGIN, survey).iter().zip(slower) {
            shifted += u64::from(slower);
            hits += u64::from(slower && *verdict == ComparisonVerdict::Slower);
            findings += u32::from(found(verdict));
            wrong += u32::from(found(verdict) && !(slower && *verdict == ComparisonVerdict::Slower));
        }
        false_share += f64::from(wrong) / f64::from(findings.max(1)) / surveys as f64;
    }
    (hits, shifted, false_share)
}

#[test]
fn surveys_that_do_not_differ_give_no_alarm() {
    // If 5 % of comparisons had an alarm, 40 of them would have at most 4 with a probability of 95 %.
    let alarms = false_alarms(40, RUNS, 1);
    assert!(alarms <= 4, "{alarms} of 40");
}

#[test]
fn ten_percent_are_found_with_nine_runs_a_side() {
    // If 95 % of 120 were found, it would be 110 or more with a probability of 96 %.
    let (hits, shifted, false_share) = power(20, 1.10, 2);
    assert!(shifted > 100, "{shifted}");
    assert!(hits as f64 >= 0.92 * shifted as f64, "{hits} of {shifted}");
    assert!(false_share <= 0.05, "{false_share}");
}

/// Surveys compared for a rate; a debug build is slower.
const MANY: u64 = if cfg!(debug_assertions) { 50 } else { 1000 };

#[test]
#[ignore = "takes half a minute; `cargo xtask test --all` runs it"]
fn the_rates_of_many_surveys() {
    let shown = |k: u64, n: u64| {
        let bounds = share_bounds(k, n);
        format!("{k} of {n} ({:.2} % to {:.2} %)", bounds.low * 100.0, bounds.high * 100.0)
    };
    for runs in [2, 4, 5, RUNS] {
        let alarms = false_alarms(MANY, runs, 3);
        println!("A/A, {runs} runs a side, surveys with an alarm: {}", shown(alarms, MANY));
        assert!(share_bounds(alarms, MANY).low <= 0.05, "{alarms} of {MANY}");
    }
    for percent in [3, 5, 10, 20] {
        let (hits, shifted, false_share) = power(MANY / 5, 1.0 + f64::from(percent) / 100.0, 4);
        println!(
            "+{percent} %: found {}, false discoveries {:.2} %",
            shown(hits, shifted),
            false_share * 100.0
        );
        assert!(percent < 10 || share_bounds(hits, shifted).high >= 0.95, "{hits} of {shifted}");
    }
}
