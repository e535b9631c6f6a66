//! `cargo xtask peers size`, which measures what latscope itself costs, and prints each figure beside its limit.

use super::tools::{self, PlaceholderValues};
use super::{limit_verdict, median_or_nan};
use crate::{dist, shell};
use anyhow::{Context, Result, ensure};
use latscope_core::statistics::{ConfidenceInterval, median_interval};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Number of repetitions of short measurements.
const REPEATS: usize = 31;

/// Interval between two readings of memory.
const PERIOD: Duration = Duration::from_millis(20);

/// Measures and prints everything. Returns true if every limit holds.
///
/// # Errors
/// The static binary cannot be built or does not run.
pub fn check_limits() -> Result<bool> {
    let binary = shell::workspace().join("dist").join(format!("latscope-{}", std::env::consts::ARCH));
    // What an older build left must not be taken for this one.
    let _ = fs::remove_file(&binary);
    if let Err(error) = dist::build_binaries(dist::PROFILE) {
        println!("cargo xtask dist: {error:#}");
    }
    let bytes = fs::metadata(&binary).context("there is no static binary for this machine")?.len();
    let here = PlaceholderValues::new()?;
    let saved = tools::peers_dir().join("survey.json");
    let file = saved.to_string_lossy();

    let (survey, memory) = run_and_watch(&binary, &here, &format!("survey --quiet --json {file}"))?;
    let (quick, _) = run_and_watch(&binary, &here, "survey --quick --quiet")?;
    let (_, bare) = run_and_watch(&binary, &here, "cpu cycle --duration 1s --quiet")?;
    // A run is a coordinator, a guardian and one worker at a time; the worker
    // that has no buffers is the measure of all others.
    let seen =
        |processes: &BTreeMap<String, PeakMemory>, role| processes.get(role).copied().unwrap_or_default();
    let roles = [("coordinator", &memory), ("__guardian", &memory), ("__worker", &bare)];
    let parts = roles.map(|(role, processes)| (role, seen(processes, role)));

    println!("{:<36} {:>8} {:>6}", "", "figure", "limit");
    let holds = [
        print_figure("static binary, MiB", &[bytes as f64 / f64::from(1 << 20)], 10.0),
        print_figure("latscope list, ms", &time_runs(&binary, &["list"])?, 10.0),
        print_figure("latscope show of that survey, ms", &time_runs(&binary, &["show", &file])?, 50.0),
        print_figure("latscope survey, s", &[survey], 60.0),
        print_figure("latscope survey --quick, s", &[quick], 10.0),
        print_figure("own memory, MB", &[parts.iter().map(|(_, memory)| memory.resident).sum()], 20.0),
    ];
    for (role, PeakMemory { resident, private }) in parts {
        println!("  {role:<34} {resident:>8.2}         pages that are not a file's: {private:.2}");
    }
    println!("The survey shown has {:.2} MB.", fs::metadata(&saved)?.len() as f64 / 1e6);
    Ok(holds.into_iter().all(|holds| holds))
}

/// Prints a figure. Returns true if its limit holds.
fn print_figure(name: &str, figures: &[f64], limit: f64) -> bool {
    let figure = median_or_nan(figures.iter().copied());
    let interval = median_interval(figures).unwrap_or(ConfidenceInterval { low: figure, high: figure });
    let verdict = limit_verdict(figure, interval, ConfidenceInterval { low: 0.0, high: limit });
    let (low, high, runs) = (interval.low, interval.high, figures.len());
    println!("{name:<36} {figure:>8.2} {limit:>6.0}  {verdict} [{low:.2}, {high:.2}; runs: {runs}]");
    verdict != "EXCEEDED"
}

/// Times from start to end of repeated runs, in ms.
fn time_runs(binary: &Path, words: &[&str]) -> Result<Vec<f64>> {
    let once = |_| {
        let begun = Instant::now();
        let status = Command::new(binary).args(words).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "latscope {} failed ({status})", words.join(" "));
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    };
    (0..REPEATS).map(once).collect()
}

/// Largest memory of a process at any time, in MB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PeakMemory {
    /// Size of the resident pages.
    resident: f64,
    /// Size of the resident pages without those of files: private pages, and pages shared by memfd.
    private: f64,
}

/// Runs a measurement. Returns its time in s, and the memory of its processes by role.
fn run_and_watch(
    binary: &Path,
    here: &PlaceholderValues,
    line: &str,
) -> Result<(f64, BTreeMap<String, PeakMemory>)> {
    eprintln!("latscope {line}");
    let begun = Instant::now();
    let mut child = Command::new(binary).args(here.fill_words(line)?).stdout(Stdio::null()).spawn()?;
    let mut most: BTreeMap<String, PeakMemory> = BTreeMap::new();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        update_peaks(child.id(), &mut most)?;
        sleep(PERIOD);
    };
    ensure!(status.success(), "latscope {line} failed ({status})");
    Ok((begun.elapsed().as_secs_f64(), most))
}

/// Reads the memory of a coordinator and its children. Processes that have just ended are left out.
fn update_peaks(coordinator: u32, most: &mut BTreeMap<String, PeakMemory>) -> Result<()> {
    for entry in fs::read_dir("/proc").context("no /proc")? {
        let path = entry?.path();
        let Ok(status) = fs::read_to_string(path.join("status")) else { continue };
        let is = |name| parse_status_number(&status, name) == Some(coordinator.into());
        let role = match fs::read_to_string(path.join("cmdline")) {
            _ if is("Pid") => "coordinator".to_owned(),
            Ok(command) if is("PPid") => command.split('\0').nth(1).unwrap_or_default().to_owned(),
            _ => continue,
        };
        if let Some(now) = memory(&status) {
            let known = most.entry(role).or_default();
            known.resident = known.resident.max(now.resident);
            known.private = known.private.max(now.private);
        }
    }
    Ok(())
}

/// Parses the file `status` of proc(5), in which kB are units of 1024 bytes.
fn memory(status: &str) -> Option<PeakMemory> {
    let megabytes = |name| Some(parse_status_number(status, name)? as f64 * 1024.0 / 1e6);
    Some(PeakMemory {
        resident: megabytes("VmHWM")?,
        private: megabytes("RssAnon")? + megabytes("RssShmem")?,
    })
}

fn parse_status_number(status: &str, name: &str) -> Option<u64> {
    let value =
        |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.split_whitespace().next()?.parse().ok();
    status.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_is_read() {
        let status = "Name:\tlatscope\nPid:\t42\nPPid:\t7\nVmHWM:\t    4000 kB\nRssAnon:\t     500 kB\nRssShmem:\t     500 kB\n";
        assert_eq!(
            (parse_status_number(status, "Pid"), parse_status_number(status, "PPid")),
            (Some(42), Some(7))
        );
        assert_eq!(memory(status), Some(PeakMemory { resident: 4.096, private: 1.024 }));
        assert_eq!(memory("Name:\tkthread\n"), None);
    }

    #[test]
    fn one_figure_is_judged_as_it_is_and_many_by_their_interval() {
        assert!(print_figure("alone", &[4.9], 5.0) && !print_figure("alone", &[5.1], 5.0));
        assert!(print_figure("many", &[[4.0; 12], [6.0; 12]].concat(), 5.0));
    }
}
