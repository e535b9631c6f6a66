//! Calibrates `latscope gate --baseline` on real runs of known state, and prints the tables of docs/gate.md.
//!
//! ```text
//! cargo run -p latscope-judge --example calibrate_gate -- python/tests/faults/set [draws] [seed]
//! ```
#![forbid(unsafe_code)]

use flate2::read::GzDecoder;
use latscope_core::report::VerdictStatus;
use latscope_core::statistics::SplitMix;
use latscope_core::units::format_share;
use latscope_judge::gate::{Accepted, GateResult, against};
use latscope_judge::imports::read_run;
use latscope_judge::runs::RunResult;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{File, read_dir};
use std::io::Read;
use std::path::Path;

type Named = (String, RunResult);

/// Numbers of runs a side that are tried.
const SIDES: [usize; 2] = [5, 9];

/// Slowdowns that are put into rows.
const SLOWER: [f64; 3] = [1.1, 1.3, 2.0];

/// Numbers of rows that are made slower.
const ROWS: [usize; 3] = [1, 3, 8];

/// Share of the draws that power and faults are tried with.
const FEWER: usize = 5;

/// Way of taking two sides from runs in the order of time.
#[derive(Clone, Copy)]
enum Order {
    Random,
    Time,
    Next,
    Later,
}

impl Order {
    const ALL: [(Order, &str); 4] = [
        (Order::Random, "any runs, in random order"),
        (Order::Time, "any runs, the baseline's first"),
        (Order::Next, "runs in a row, and the next ones"),
        (Order::Later, "runs in a row, and later runs in a row (a kept baseline)"),
    ];

    /// Places of the baseline's runs and of the judged ones.
    fn draw(self, all: usize, side: usize, random: &mut SplitMix) -> [Vec<usize>; 2] {
        let mut below = |limit: usize| random.below(limit as u64) as usize;
        let (first, second) = match self {
            Order::Next => {
                let first = below(all - 2 * side + 1);
                (first, first + side)
            }
            Order::Later => {
                let first = below(all - 2 * side + 1);
                (first, first + side + below(all - 2 * side - first + 1))
            }
            Order::Random | Order::Time => {
                let mut places = choose(all, 2 * side, random);
                if matches!(self, Order::Time) {
                    places.sort_unstable();
                }
                let judged = places.split_off(side);
                return [places, judged];
            }
        };
        [first, second].map(|from| (from..from + side).collect())
    }
}

/// Chooses some of so many places, in random order.
fn choose(all: usize, some: usize, random: &mut SplitMix) -> Vec<usize> {
    let mut places: Vec<usize> = (0..all).collect();
    for at in 0..some.min(all) {
        let other = at + random.below((all - at) as u64) as usize;
        places.swap(at, other);
    }
    places.truncate(some);
    places
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let set = arguments.get(1).ok_or("name the directory of the set")?;
    let number = |at: usize, usual: u64| arguments.get(at).map_or(Ok(usual), |text| text.parse::<u64>());
    let (draws, seed) = (number(2, 500)? as usize, number(3, 1)?);
    let kinds = load(Path::new(set))?;
    let healthy = kinds.get("healthy").ok_or("the set has no healthy runs")?;
    false_alarms(healthy, draws, &mut SplitMix::new(seed));
    power(healthy, draws / FEWER, &mut SplitMix::new(seed + 1));
    faults(&kinds, healthy, draws / FEWER, &mut SplitMix::new(seed + 2));
    Ok(())
}

/// The runs of each kind in the order of time, from files `KIND-NN.json.gz`.
fn load(set: &Path) -> Result<BTreeMap<String, Vec<Named>>, Box<dyn Error>> {
    let mut kinds: BTreeMap<String, Vec<Named>> = BTreeMap::new();
    for entry in read_dir(set)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((kind, _)) = name.strip_suffix(".json.gz").and_then(|name| name.rsplit_once('-')) else {
            continue;
        };
        let mut text = Vec::new();
        GzDecoder::new(File::open(&path)?).read_to_end(&mut text)?;
        let mut run = read_run(&text)?;
        // The gate does not judge them.
        run.report.measurements.iter_mut().for_each(|m| m.values.clear());
        kinds.entry(kind.to_owned()).or_default().push((name.clone(), run));
    }
    for runs in kinds.values_mut() {
        runs.sort_by(|(_, a), (_, b)| a.report.started.cmp(&b.report.started));
    }
    Ok(kinds)
}

fn taken(runs: &[Named], places: &[usize]) -> Vec<Named> {
    places.iter().map(|at| runs[*at].clone()).collect()
}

fn judged(baseline: &[Named], runs: &[Named]) -> GateResult {
    against(baseline, runs, Accepted::default())
}

fn share(of: usize, all: usize) -> String {
    format_share(of as f64 / all.max(1) as f64)
}

fn false_alarms(healthy: &[Named], draws: usize, random: &mut SplitMix) {
    println!(
        "| {} healthy runs, {draws} draws each | runs a side | exit 2 | exit 3 |\n|---|---|---|---|",
        healthy.len()
    );
    for (order, name) in Order::ALL {
        for side in SIDES {
            let mut counts = [0; 3];
            let mut why: BTreeMap<String, usize> = BTreeMap::new();
            for _ in 0..draws {
                let [a, b] = order.draw(healthy.len(), side, random).map(|places| taken(healthy, &places));
                let gate = judged(&a, &b);
                counts[gate.status as usize] += 1;
                for check in gate.checks.iter().filter(|check| check.status != VerdictStatus::Pass) {
                    *why.entry(check.id.clone()).or_insert(0) += 1;
                }
            }
            let [exceeded, inconclusive] = [VerdictStatus::Exceeded, VerdictStatus::Inconclusive]
                .map(|status| share(counts[status as usize], draws));
            println!("| {name} | {side} | {exceeded} | {inconclusive} |");
            let mut why: Vec<(usize, String)> = why.into_iter().map(|(id, times)| (times, id)).collect();
            why.sort_unstable_by(|a, b| b.cmp(a));
            why.iter().take(5).for_each(|(times, id)| eprintln!("    {times} × {id}"));
        }
    }
}

/// Makes the medians of these points slower.
fn slowed(runs: &mut [Named], points: &BTreeSet<String>, factor: f64) {
    for m in runs.iter_mut().flat_map(|(_, run)| &mut run.report.measurements) {
        if points.contains(&latscope_judge::runs::point_id(&m.probe, &m.params)) {
            m.summary.p50 = m.summary.p50.map(|ns| ns * factor);
        }
    }
}

fn power(healthy: &[Named], draws: usize, random: &mut SplitMix) {
    println!(
        "\n| found in {draws} draws in the order of time | runs a side | 1 row | 3 rows | 8 rows | rows of 8 |"
    );
    println!("|---|---|---|---|---|---|");
    for factor in SLOWER {
        for side in SIDES {
            let mut cells = Vec::new();
            let mut rows_found = 0;
            for rows in ROWS {
                let mut found = 0;
                for _ in 0..draws {
                    let [a, mut b] =
                        Order::Time.draw(healthy.len(), side, random).map(|places| taken(healthy, &places));
                    let points = some_points(&a, rows, random);
                    slowed(&mut b, &points, factor);
                    let gate = judged(&a, &b);
                    let seen = gate.checks.iter().filter(|check| {
                        check.status == VerdictStatus::Exceeded
                            && points.iter().any(|id| check.id == format!("{id} p50 relative"))
                    });
                    let seen = seen.count();
                    found += usize::from(seen > 0);
                    rows_found += if rows == 8 { seen } else { 0 };
                }
                cells.push(share(found, draws));
            }
            println!("| × {factor} | {side} | {} | {} |", cells.join(" | "), share(rows_found, 8 * draws));
        }
    }
}

/// Points that can be trusted in most of these runs.
fn some_points(runs: &[Named], number: usize, random: &mut SplitMix) -> BTreeSet<String> {
    let mut sound: BTreeMap<String, usize> = BTreeMap::new();
    for m in runs.iter().flat_map(|(_, run)| &run.report.measurements) {
        let is_sound = m.quality.level == latscope_core::quality::QualityLevel::Ok && m.summary.p50.is_some();
        *sound.entry(latscope_judge::runs::point_id(&m.probe, &m.params)).or_insert(0) +=
            usize::from(is_sound);
    }
    let sound: Vec<String> =
        sound.into_iter().filter(|(_, times)| 2 * times > runs.len()).map(|(id, _)| id).collect();
    choose(sound.len(), number, random).into_iter().map(|at| sound[at].clone()).collect()
}

fn faults(kinds: &BTreeMap<String, Vec<Named>>, healthy: &[Named], draws: usize, random: &mut SplitMix) {
    println!(
        "\n| fault, 5 runs against 5 healthy ones, {draws} draws | exit 2 | exit 3 | most often |\n|---|---|---|---|"
    );
    for (kind, runs) in kinds.iter().filter(|(kind, _)| *kind != "healthy") {
        let mut counts = [0; 3];
        let mut why: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..draws {
            let a = taken(healthy, &choose(healthy.len(), 5, random));
            let b = taken(runs, &choose(runs.len(), 5, random));
            let gate = judged(&a, &b);
            counts[gate.status as usize] += 1;
            for check in gate.checks.iter().filter(|check| check.status != VerdictStatus::Pass) {
                *why.entry(format!("{}, {}", check.title, check.metric)).or_insert(0) += 1;
            }
        }
        let most = why.into_iter().max_by_key(|(_, times)| *times).map_or_else(String::new, |(name, _)| name);
        let [exceeded, inconclusive] = [VerdictStatus::Exceeded, VerdictStatus::Inconclusive]
            .map(|status| share(counts[status as usize], draws));
        println!("| {kind} | {exceeded} | {inconclusive} | {most} |");
    }
}
