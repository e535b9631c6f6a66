//! Steps that Apache Otava finds, in the same series: a history must have them at the same places.
//!
//! Otava is fetched once into the target directory, so the test is `ignored` unless asked for:
//!
//! ```text
//! cargo test -p latscope-judge --test otava -- --ignored
//! ```
#![forbid(unsafe_code)]

#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
mod surveys;

use latscope_core::statistics::{SplitMix, median};
use latscope_judge::history::detect;
use skipped::needs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use surveys::{Row, recorded};

const TEST: &str = "steps_are_where_otava_finds_them";

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otava").join(file)
}

/// The directory with Otava; fetched if it is not there yet; `None` where it cannot be.
fn otava() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("otava");
    if !home.join("otava").exists() {
        // What it needs beside these is for data bases and graphs.
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--requirement"]);
        let output = pip.arg(here("requirements.txt")).arg("--target").arg(&home).output();
        if !output.is_ok_and(|output| output.status.success()) {
            return None;
        }
    }
    Some(home)
}

/// The places of the change points of each series.
fn ask(home: &Path, series: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let mut python = Command::new("python3");
    python.arg(here("points.py")).env("PYTHONPATH", home).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    let lines: Vec<String> = series
        .iter()
        .map(|figures| figures.iter().map(f64::to_string).collect::<Vec<_>>().join(" ") + "\n")
        .collect();
    child.stdin.take().unwrap().write_all(lines.concat().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let places = |line: &str| line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    String::from_utf8(output.stdout).unwrap().lines().map(places).collect()
}

#[test]
#[ignore = "fetches Apache Otava; `cargo xtask test --all` runs it"]
fn steps_are_where_otava_finds_them() {
    let home = otava();
    if !needs(TEST, home.is_some(), "Apache Otava cannot be installed with `python3 -m pip`") {
        return;
    }
    let home = home.unwrap();
    let mut random = SplitMix::new(11);
    let rows: Vec<Row> = recorded().into_iter().filter(|row| row.spread() <= 0.03).collect();
    let steps: Vec<usize> = rows.iter().map(|_| 15 + random.below(31) as usize).collect();
    let figure = |row: &Row, at: usize, step: usize, random: &mut SplitMix| {
        let figure = median(&row.run(random.below(8) as usize, random)).unwrap();
        figure * if at < step { 1.0 } else { 1.2 }
    };
    let series: Vec<Vec<f64>> = rows
        .iter()
        .zip(&steps)
        .map(|(row, step)| (0..60).map(|at| figure(row, at, *step, &mut random)).collect())
        .collect();
    let (ours, theirs) = (detect(&series, 0.05, 1), ask(&home, &series));
    assert_eq!((series.len() >= 20, theirs.len()), (true, series.len()));
    let near = |places: &[usize], step: usize| places.iter().any(|place| place.abs_diff(step) <= 1);
    let all = steps.iter().zip(&ours).zip(&theirs);
    let missed: Vec<_> = all.filter(|((step, a), b)| !near(a, **step) || !near(b, **step)).collect();
    println!(
        "{} of {} series: ours or Otava's is further than one run: {missed:?}",
        missed.len(),
        series.len()
    );
    assert!(missed.len() * 20 <= series.len());
}
