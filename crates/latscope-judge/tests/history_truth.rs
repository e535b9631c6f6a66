//! Histories of surveys of which the truth is known: the noise of eight real surveys, resampled, with and without
//! steps.
//!
//! `cargo test --release -p latscope-judge --test history_truth -- --ignored --nocapture` makes many more and prints
//! the rates with their intervals.
#![forbid(unsafe_code)]

mod surveys;

use latscope_core::report::Semantics;
use latscope_core::statistics::{SplitMix, median};
use latscope_judge::binomial::share_bounds;
use latscope_judge::history::{
    Archive, ArchivePointFigures, ArchiveRun, ArchiveTailCounts, ArchiveWork, ComparisonOptions,
    HistoryFigureKind, detect,
};
use surveys::{Row, recorded};

const MARGIN: f64 = 0.05;

/// What happens to a row beside its noise.
#[derive(Clone, Copy)]
enum Truth {
    Nothing,
    /// From this run on it takes so many times as long.
    Step(usize, f64),
    /// It takes so many times as long at the end, and came there slowly.
    Drift(f64),
}

/// The medians of a row over so many runs. With `together` all rows of a run are from one real run; one run in thirty
/// is an odd one, three times as long.
fn series(row: &Row, places: &[u64], truth: Truth, odd: bool, random: &mut SplitMix) -> Vec<f64> {
    let runs = places.len();
    let run = |(at, place): (usize, &u64)| {
        let figure = median(&row.run(*place as usize, random)).unwrap();
        let factor = match truth {
            Truth::Nothing => 1.0,
            Truth::Step(from, factor) => {
                if at >= from {
                    factor
                } else {
                    1.0
                }
            }
            Truth::Drift(factor) => factor.powf(at as f64 / runs as f64),
        };
        let odd = if odd && random.below(30) == 0 { 3.0 } else { 1.0 };
        figure * factor * odd
    };
    places.iter().enumerate().map(run).collect()
}

/// A history of all rows; `truth` says what happens to each.
fn history(
    rows: &[Row],
    runs: usize,
    together: bool,
    truth: &dyn Fn(usize) -> Truth,
    odd: bool,
    random: &mut SplitMix,
) -> Vec<Vec<f64>> {
    let common: Vec<u64> = (0..runs).map(|_| random.below(8)).collect();
    let mut all = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let own: Vec<u64> = (0..runs).map(|_| random.below(8)).collect();
        all.push(series(row, if together { &common } else { &own }, truth(at), odd, random));
    }
    all
}

/// Of so many histories without a change, those in which one is found.
fn false_alarms(histories: u64, runs: usize, odd: bool, seed: u64) -> u64 {
    let rows = recorded();
    let mut random = SplitMix::new(seed);
    let alarm = |at: &u64| {
        let series = history(&rows, runs, at.is_multiple_of(2), &|_| Truth::Nothing, odd, &mut random);
        detect(&series, MARGIN, *at).iter().any(|steps| !steps.is_empty())
    };
    (0..histories).filter(alarm).count() as u64
}

/// What was found of steps by `factor` in a quarter of the rows whose runs spread by at most 3 %.
#[derive(Debug, Default)]
struct Power {
    /// Steps that there are.
    steps: u64,
    /// Those found within one run.
    found: u64,
    /// All that was found.
    all: u64,
    /// Of these, what is in a row without a step, or further than one run from it.
    wrong: u64,
}

fn power(histories: u64, runs: usize, factor: f64, seed: u64) -> Power {
    let rows = recorded();
    let steady: Vec<bool> = rows.iter().map(|row| row.spread() <= 0.03).collect();
    let mut random = SplitMix::new(seed);
    let mut power = Power::default();
    for at in 0..histories {
        let place = |random: &mut SplitMix| 8 + random.below(runs as u64 - 15) as usize;
        let steps: Vec<Option<usize>> = steady
            .iter()
            .map(|steady| (*steady && random.below(4) == 0).then(|| place(&mut random)))
            .collect();
        let truth = |row: usize| steps[row].map_or(Truth::Nothing, |from| Truth::Step(from, factor));
        let series = history(&rows, runs, at.is_multiple_of(2), &truth, false, &mut random);
        for (found, step) in detect(&series, MARGIN, at).iter().zip(&steps) {
            let near = |place: &&usize| step.is_some_and(|step| step.abs_diff(**place) <= 1);
            let hits = found.iter().filter(near).count() as u64;
            power.steps += u64::from(step.is_some());
            power.found += u64::from(hits > 0);
            power.all += found.len() as u64;
            power.wrong += found.len() as u64 - hits.min(1);
        }
    }
    power
}

/// Rows of single events of which only the tail changes.
const EVENTS: usize = 40;

fn work(row: usize) -> ArchiveWork {
    let id = format!("wake.timer[row={row}]");
    ArchiveWork {
        title: id.clone(),
        id,
        probe: "wake.timer".to_owned(),
        revision: 1,
        timed: Semantics::OneWay,
        batch_ns: None,
        events: true,
        pairs: None,
    }
}

/// Figures of 20,000 single events, of which one in a hundred times `factor` is beyond the limit. Medians scatter by
/// 1 %, p99 by 3 %, and how often the tail is reached by 15 %, and as events do that are counted.
fn events(row: usize, factor: f64, random: &mut SplitMix) -> ArchivePointFigures {
    let uniform = |random: &mut SplitMix| random.below(1 << 32) as f64 / f64::from(u32::MAX);
    let mut normal = || (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0;
    let (p50, p99) = (1000.0 * (0.01 * normal()).exp(), 4000.0 * (0.03 * normal()).exp());
    let rate = factor * (0.15 * normal()).exp();
    let mut counted = |mean: f64| (mean * rate + (mean * rate).sqrt() * normal()).max(0.0) as u64;
    let [seldom, more] = [counted(60.0), counted(139.0)];
    let (p50, p99) = (p50 as f32, Some(p99 as f32));
    let tail = Some(ArchiveTailCounts {
        count: 20_000,
        first: 44,
        beyond: vec![2000, 600 + seldom + more, seldom + more, seldom],
    });
    ArchivePointFigures { work: row as u32, trusted: true, p50, step: 0.001, p99, tail }
}

/// What was found of tails that are reached `factor` times as often, in a quarter of the rows, from a run on; and the
/// histories with anything else.
fn tails(histories: u64, runs: usize, factor: f64, seed: u64) -> (Power, u64) {
    let archive = Archive { works: (0..EVENTS).map(work).collect(), facts: Vec::new() };
    let mut random = SplitMix::new(seed);
    let (mut power, mut alarms) = (Power::default(), 0);
    for at in 0..histories {
        let steps: Vec<Option<usize>> = (0..EVENTS)
            .map(|row| (factor > 1.0 && row % 4 == 0).then(|| 8 + random.below(runs as u64 - 15) as usize))
            .collect();
        let entry = |run: usize| ArchiveRun {
            run_id: format!("{run:032x}"),
            started: format!("2026-01-01T{:02}:{:02}:00Z", run / 60, run % 60),
            complete: true,
            machine: "m".to_owned(),
            host: "h".to_owned(),
            facts: Vec::new(),
            points: Vec::new(),
        };
        let mut entries: Vec<ArchiveRun> = (0..runs).map(entry).collect();
        for (run, entry) in entries.iter_mut().enumerate() {
            let now = |step: &Option<usize>| step.is_some_and(|step| run >= step);
            let points = steps.iter().enumerate();
            let points =
                points.map(|(row, step)| events(row, if now(step) { factor } else { 1.0 }, &mut random));
            entry.points = points.collect();
        }
        let named: Vec<(&str, &ArchiveRun)> = entries.iter().map(|entry| ("", entry)).collect();
        let found = latscope_judge::history::history(
            &archive,
            &named,
            &ComparisonOptions { seed: at, ..ComparisonOptions::default() },
        );
        let moved: Vec<_> = found.machines[0].changes.iter().flat_map(|change| &change.moved).collect();
        let mut hits = 0;
        for (row, step) in steps.iter().enumerate() {
            let Some(step) = step else { continue };
            let hit = moved.iter().any(|one| {
                one.figure == HistoryFigureKind::Tail
                    && one.id == archive.works[row].id
                    && one.run.abs_diff(*step) <= 1
            });
            power.steps += 1;
            hits += u64::from(hit);
        }
        power.found += hits;
        power.all += moved.len() as u64;
        power.wrong += moved.len() as u64 - hits;
        alarms += u64::from(moved.len() as u64 > hits);
    }
    (power, alarms)
}

#[test]
fn a_change_of_the_tail_alone_is_found() {
    let (power, _) = tails(5, 40, 2.0, 7);
    assert!(power.found as f64 >= 0.9 * power.steps as f64, "{power:?}");
    assert!(power.wrong as f64 <= 0.1 * power.all as f64, "{power:?}");
    let (_, alarms) = tails(20, 40, 1.0, 8);
    assert!(alarms <= 3, "{alarms} of 20");
}

#[test]
fn histories_without_a_change_have_none() {
    // If 5 % of histories had a change, 40 of them would have at most 4 with a probability of 95 %.
    let alarms = false_alarms(40, 40, false, 1);
    assert!(alarms <= 4, "{alarms} of 40");
    let alarms = false_alarms(20, 60, true, 2);
    assert!(alarms <= 3, "{alarms} of 20 with odd runs");
}

#[test]
fn steps_are_found_within_one_run_and_nothing_else_is() {
    let power = power(30, 40, 1.10, 3);
    assert!(power.steps > 200, "{power:?}");
    assert!(power.found as f64 >= 0.9 * power.steps as f64, "{power:?}");
    assert!(power.wrong as f64 <= 0.05 * power.all as f64, "{power:?}");
}

#[test]
fn a_slow_drift_is_no_change() {
    let rows: Vec<Row> = recorded().into_iter().filter(|row| row.spread() <= 0.03).collect();
    let mut random = SplitMix::new(4);
    let series = history(&rows, 60, false, &|_| Truth::Drift(1.4), false, &mut random);
    let found = detect(&series, MARGIN, 1);
    let stepped = found.iter().filter(|steps| !steps.is_empty()).count();
    assert!(stepped * 20 <= rows.len(), "{stepped} of {}", rows.len());
}

/// Seed of the rates that docs/history.md shows.
const SEED: u64 = 20_261_123;

#[test]
#[ignore = "takes half a minute; `cargo xtask test --all` runs it"]
fn the_rates_of_many_histories() {
    let shown = |k: u64, n: u64| {
        let bounds = share_bounds(k, n);
        let [share, low, high] = [k as f64 / n.max(1) as f64, bounds.low, bounds.high].map(|x| x * 100.0);
        format!("{k} of {n}: {share:.2} % ({low:.2} % to {high:.2} %)")
    };
    for (runs, odd) in [(10, false), (40, false), (200, false), (40, true)] {
        let alarms = false_alarms(500, runs, odd, SEED);
        println!("no change, {runs} runs, odd runs {odd}: histories with a change {}", shown(alarms, 500));
        assert!(share_bounds(alarms, 500).low <= 0.05, "{alarms} of 500");
    }
    for (runs, percent) in [(40, 5), (40, 7), (40, 10), (40, 20), (200, 10)] {
        let power = power(50, runs, 1.0 + f64::from(percent) / 100.0, SEED + 1);
        println!(
            "{runs} runs, +{percent} %: within one run {}, wrong {}",
            shown(power.found, power.steps),
            shown(power.wrong, power.all)
        );
        assert!(percent < 10 || share_bounds(power.found, power.steps).high >= 0.9);
    }
    let (_, alarms) = tails(500, 40, 1.0, SEED + 2);
    println!("single events, no change, 40 runs: histories with a change {}", shown(alarms, 500));
    for factor in [1.5, 2.0] {
        let (power, _) = tails(50, 40, factor, SEED + 3);
        println!(
            "40 runs, tails reached {factor} times as often: within one run {}, wrong {}",
            shown(power.found, power.steps),
            shown(power.wrong, power.all)
        );
    }
}
