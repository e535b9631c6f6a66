//! `cargo xtask peers builds`, which checks that the static binary and `cargo build --release` measure the same. The
//! way a program is compiled influences the time of a short operation.

use super::tools;
use crate::{dist, shell};
use anyhow::Result;
use std::fs;
use std::process::{Command, Stdio};

/// Margin by which rows of the static binary may take longer. glibc's locks take half a nanosecond more where they are
/// linked statically.
const MARGIN: &str = "15%";

/// Measures quick surveys with both in turns, and compares them. Returns true if no row of the static binary is slower.
///
/// # Errors
/// A binary cannot be built or does not run.
pub fn compare_builds(runs: usize) -> Result<bool> {
    shell::run_command(&mut shell::cargo("build --release --locked --package latscope"))?;
    let release = shell::target().join("release/latscope");
    let binaries = [("release", release.clone()), ("static", dist::for_this_machine(dist::PROFILE)?)];
    let place = tools::peers_dir().join("builds");
    let _ = fs::remove_dir_all(&place);
    for (name, _) in &binaries {
        fs::create_dir_all(place.join(name))?;
    }
    for run in 0..runs {
        eprint!("\r{}/{runs} ", run + 1);
        // ABBA: what drifts falls on both.
        let mut turn: Vec<_> = binaries.iter().collect();
        turn.rotate_left(run.div_ceil(2) % 2);
        for (name, binary) in turn {
            let file = place.join(name).join(format!("{run}.json"));
            shell::run_command(
                Command::new(binary)
                    .args(["survey", "--quick", "--quiet", "--json"])
                    .arg(file)
                    .stdout(Stdio::null()),
            )?;
        }
    }
    let sides = binaries.map(|(name, _)| place.join(name));
    let mut compare = Command::new(release);
    compare.arg("compare").args(sides).args(["--same", MARGIN, "--fail-on", "slower"]);
    Ok(compare.status()?.success())
}
