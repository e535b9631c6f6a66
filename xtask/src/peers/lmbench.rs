//! `cargo xtask peers lmbench`, which compares LMbench's programs, from a directory of the user's, with `latscope as`
//! them, in turns.

use super::tools::{LatscopeBinary, peers_dir};
use super::{SEED, median_or_nan};
use anyhow::{Context, Result, ensure};
use latscope_core::statistics::ratio_of_medians;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Length of LMbench's intervals, in µs. Without it, LMbench finds the length by experiment, which takes minutes.
const ENOUGH: &str = "100000";

/// Number of intervals in a run of LMbench's program.
const REPETITIONS: &str = "3";

/// Size of the file that is read and mapped, in bytes.
const FILE_BYTES: usize = 64 << 20;

/// Distance of a ratio from 1 that counts as equal.
const NEAR: f64 = 0.1;

/// Calls of programs, as both sides take them. `{file}` is a file of [`FILE_BYTES`]. `lat_fifo` is left out, because
/// LMbench's leaves a process behind that writes errors without end.
const CALLS: &[&str] = &[
    "lat_syscall null",
    "lat_syscall read",
    "lat_syscall write",
    "lat_syscall stat {file}",
    "lat_syscall fstat {file}",
    "lat_syscall open {file}",
    "lat_sig install",
    "lat_sig catch",
    "lat_sig prot {file}",
    "lat_select -n 100 file",
    "lat_select -n 100 tcp",
    "lat_proc procedure",
    "lat_proc fork",
    "lat_proc exec",
    "lat_proc shell",
    "lat_pagefault {file}",
    "lat_mmap 4m {file}",
    "lat_ctx -s 0 2",
    "lat_ctx -s 64 8",
    "lat_pipe",
    "lat_unix",
    "lat_sem",
    "bw_pipe",
    "bw_unix",
    "bw_mem 8m rd",
    "bw_mem 8m wr",
    "bw_mem 8m rdwr",
    "bw_mem 8m cp",
    "bw_mem 8m frd",
    "bw_mem 8m fwr",
    "bw_mem 8m fcp",
    "bw_mem 8m bzero",
    "bw_mem 8m bcopy",
    "bw_file_rd 8m io_only {file}",
    "bw_mmap_rd 8m open2close {file}",
];

/// Runs both sides in turns, and prints a row for each call as soon as it is measured.
///
/// # Errors
/// The directory has none of the programs, or latscope cannot be built.
pub fn compare_programs(directory: &Path, only: &[String], pairs: usize) -> Result<()> {
    let there = |call: &&&str| directory.join(program_name(call)).is_file();
    let chosen = |call: &&&str| only.is_empty() || only.iter().any(|word| call.contains(word.as_str()));
    let calls: Vec<&str> = CALLS.iter().filter(there).filter(chosen).copied().collect();
    ensure!(!calls.is_empty(), "{}: none of LMbench's programs that are compared", directory.display());
    let latscope = LatscopeBinary::build()?;
    let file = file()?;
    println!("{:<32} {:>12} {:>12}  ratio, 95 % interval of {pairs} pairs", "call", "LMbench", "latscope");
    for call in calls {
        match turns(directory, &latscope, call, &file, pairs) {
            Ok(turns) => println!("{}", format_row(call, &turns)),
            Err(error) => println!("{call:<32} {error:#}"),
        }
    }
    Ok(())
}

fn program_name(call: &str) -> &str {
    call.split(' ').next().unwrap_or(call)
}

fn file() -> Result<PathBuf> {
    let path = peers_dir().join("lmbench-file");
    fs::create_dir_all(peers_dir())?;
    fs::write(&path, vec![1; FILE_BYTES]).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Figures of both sides in each turn, latscope's first.
fn turns(
    directory: &Path,
    latscope: &LatscopeBinary,
    call: &str,
    file: &Path,
    pairs: usize,
) -> Result<Vec<(f64, f64)>> {
    let words: Vec<String> =
        call.split(' ').skip(1).map(|word| word.replace("{file}", &file.to_string_lossy())).collect();
    let one = || {
        let mut theirs = Command::new("timeout");
        theirs
            .args(["-k", "5", "60"])
            .arg(directory.join(program_name(call)))
            .args(["-N", REPETITIONS])
            .args(&words);
        let theirs = measure_figure(&mut theirs, call)?;
        let mut ours = latscope.command();
        ours.args(["as", program_name(call)]).args(&words);
        Ok((measure_figure(&mut ours, call)?, theirs))
    };
    (0..pairs).map(|_| one()).collect()
}

fn measure_figure(command: &mut Command, call: &str) -> Result<f64> {
    let output = command.env("ENOUGH", ENOUGH).env("LC_ALL", "C").env_remove("LMBENCH_SCHED").output()?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let who = command.get_program().to_string_lossy().into_owned();
    parse_figure(call, &text).with_context(|| format!("{who} printed no figure: {}", text.trim()))
}

/// Returns the figure in a program's text: the last number of its last line, without the notes of latscope.
fn parse_figure(call: &str, text: &str) -> Option<f64> {
    let mut lines = text.lines().filter(|line| !line.starts_with("latscope:"));
    let line = lines.rfind(|line| !line.trim().is_empty())?;
    // "Select on 100 tcp fd's: 5.1 microseconds": what is before the colon are words of the call.
    let line = line.rsplit(": ").next().unwrap_or(line);
    let figure = line.split_whitespace().filter_map(|word| word.parse().ok()).next_back();
    figure.filter(|value: &f64| *value > 0.0 && !call.is_empty())
}

fn format_row(call: &str, turns: &[(f64, f64)]) -> String {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = turns.iter().copied().unzip();
    let (ours, theirs) = (median_or_nan(ours), median_or_nan(theirs));
    let Some((ratio, interval)) = ratio_of_medians(turns, SEED) else {
        return format!("{call:<32} {theirs:>12.4} {ours:>12.4}  too few pairs");
    };
    let near = 1.0 - NEAR..=1.0 + NEAR;
    let word = match (interval.low > 1.0 + NEAR || interval.high < 1.0 - NEAR, near.contains(&ratio)) {
        (true, _) => "differs",
        (false, true) => "equal",
        (false, false) => "undecided",
    };
    format!(
        "{call:<32} {theirs:>12.4} {ours:>12.4}  {ratio:.2} [{:.2}, {:.2}] {word}",
        interval.low, interval.high
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_of_each_kind_of_line_is_read() {
        for (text, figure) in [
            ("Pipe latency: 6.0588 microseconds\n", 6.0588),
            ("Select on 100 tcp fd's: 5.25 microseconds\n", 5.25),
            ("Pagefaults on /tmp/a1 b: 0.0344 microseconds\nlatscope: note: degraded: 3\n", 0.0344),
            ("\n\"size=0k ovr=0.96\n2 2.70\n", 2.70),
            ("8.39 22952.98\n", 22952.98),
        ] {
            assert_eq!(parse_figure("call", text), Some(figure), "{text}");
        }
        assert_eq!(parse_figure("call", "Usage: lat_pipe\n"), None);
    }

    #[test]
    fn a_row_says_whether_both_are_equal() {
        let turns = |ours: f64| (0..15).map(|turn| (ours + f64::from(turn) * 0.01, 10.0)).collect::<Vec<_>>();
        assert!(format_row("call", &turns(10.0)).ends_with("equal"));
        assert!(format_row("call", &turns(2.0)).ends_with("differs"));
    }
}
