//! `cargo xtask peers line-state`, which compares `latscope sync line-state` with the same walk in plain C.

use super::tools::{self, LatscopeBinary, PlaceholderValues};
use super::{SEED, limit_verdict, side};
use crate::shell;
use anyhow::{Context, Result};
use latscope_core::statistics::{ConfidenceInterval, ratio_of_medians};
use std::process::Command;

/// Limits of the ratio of latscope's median to that of the C program.
const ALLOWED: ConfidenceInterval = ConfidenceInterval { low: 0.95, high: 1.05 };

/// States that two CPUs can have.
const STATES: [&str; 2] = ["modified", "exclusive"];

/// Compares each state in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope or the C program cannot be built, there is one CPU only, or a side measures nothing.
pub fn compare_states(turns: usize) -> Result<bool> {
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    let source = shell::workspace().join("xtask/peers/line_state.c");
    let program = tools::peers_dir().join("line_state");
    shell::run_command(Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(source))?;
    println!("latscope / the same walk in C, medians, in turn, [95 % interval]; 0.95 to 1.05.");
    let mut all = true;
    for state in STATES {
        let (mut loads, mut own) = (Vec::new(), Vec::new());
        for turn in 1..=turns {
            eprint!("\r{state} {turn}/{turns} ");
            let ours = latscope.measure_point(
                &here.fill_words(&format!("sync line-state --state {state} --cpus {{pair}}"))?,
            )?;
            super::undistorted(&ours)?;
            let cpus = here.fill_words("{first} {cpu}")?;
            let theirs = shell::output(Command::new(&program).args(cpus).args([state, &turn.to_string()]))?;
            let (load, hit) = theirs.trim().split_once(' ').context("the C program printed no figures")?;
            let value = ours.values.get("own-cache").context("latscope: no figure of the own cache")?.value;
            loads.push((ours.typical().context("latscope: no figure")?, load.parse()?));
            own.push((value, hit.parse()?));
        }
        eprint!("\r{:40}\r", "");
        all &= print_figure(state, loads)?;
        all &= print_figure("  then from the own cache", own)?;
    }
    Ok(all)
}

/// Prints both sides of a figure. Returns true if the limit holds.
fn print_figure(name: &str, both: Vec<(f64, f64)>) -> Result<bool> {
    let (ratio, interval) = ratio_of_medians(&both, SEED).context("no pair has two figures")?;
    let (ours, theirs): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    println!(
        "{name:<25} {ratio:.3} [{:.3}, {:.3}]  latscope {}  C {}  {}",
        interval.low,
        interval.high,
        side(&ours),
        side(&theirs),
        limit_verdict(ratio, interval, ALLOWED)
    );
    Ok(!interval.is_apart_from(&ALLOWED))
}
