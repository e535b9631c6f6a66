//! `cargo xtask peers size`: what latscope itself costs, each figure beside its
//! limit.

use super::tools::{self, Here};
use super::{middle, verdict};
use crate::{dist, shell};
use anyhow::{Context, Result, ensure};
use latscope_core::statistics::{Interval, median_interval};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often what is short is repeated.
const REPEATS: usize = 31;

/// How often memory is looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// Measures and prints everything; whether every limit holds.
///
/// # Errors
/// The binary cannot be built or does not run.
pub fn run() -> Result<bool> {
    let built = dist::run()?;
    let own = shell::workspace().join("dist").join(format!("latscope-{}", std::env::consts::ARCH));
    ensure!(built.iter().any(|path| own.ends_with(path)), "there is no static binary for this machine");
    let (binary, here) = (own.as_path(), Here::new()?);
    let saved = tools::place().join("survey.json");
    let file = saved.to_string_lossy();

    eprintln!("a survey …");
    let (survey, full) = watched(binary, &here, &format!("survey --quiet --json {file}"))?;
    eprintln!("a quick survey …");
    let (quick, _) = watched(binary, &here, "survey --quick --quiet")?;
    let (_, bare) = watched(binary, &here, "cpu cycle --duration 1s --quiet")?;
    // A run is a coordinator, a guardian and one worker at a time; the worker
    // that has no buffers is the measure of all others.
    let [coordinator, guardian] = [Role::Coordinator, Role::Guardian].map(|role| full.get(&role));
    let parts = [coordinator, guardian, bare.get(&Role::Worker)];
    let own_memory: f64 = parts.iter().flatten().map(|memory| memory.resident).sum();

    println!("{:<44} {:>10} {:>10}  verdict", "", "figure", "limit");
    let mut holds = vec![
        show("static binary, MB", &[fs::metadata(binary)?.len() as f64 / 1e6], 5.0),
        show("latscope list, ms", &repeated(binary, &["list"])?, 10.0),
        show("latscope show of that survey, ms", &repeated(binary, &["show", &file])?, 50.0),
        show("latscope survey, s", &[survey], 60.0),
        show("latscope survey --quick, s", &[quick], 10.0),
    ];
    if parts.iter().all(Option::is_some) {
        holds.push(show("own memory, all resident pages, MB", &[own_memory], 20.0));
    } else {
        println!("own memory: not seen: a process ended too soon");
        holds.push(false);
    }
    for (name, memory) in ["coordinator", "guardian", "worker without buffers"].iter().zip(parts) {
        let Some(Memory { resident, private }) = memory else { continue };
        println!("  {name:<42} {resident:>10.2}   (of which not from files: {private:.2})");
    }
    println!("The file shown has {:.2} MB.", fs::metadata(&saved)?.len() as f64 / 1e6);
    Ok(holds.into_iter().all(|holds| holds))
}

/// Prints a figure; whether its limit holds.
fn show(name: &str, figures: &[f64], limit: f64) -> bool {
    let figure = middle(figures.iter().copied());
    let interval = median_interval(figures);
    let judged = interval.unwrap_or(Interval { low: figure, high: figure });
    let verdict = verdict(figure, judged, Interval { low: 0.0, high: limit });
    let spread = interval.map_or_else(String::new, |interval| {
        format!("   [95 %: {:.2}, {:.2}; {} runs]", interval.low, interval.high, figures.len())
    });
    println!("{name:<44} {figure:>10.2} {limit:>10.0}  {verdict}{spread}");
    verdict != "EXCEEDED"
}

/// Times from start to end, ms.
fn repeated(binary: &Path, words: &[&str]) -> Result<Vec<f64>> {
    let once = |_| {
        let begun = Instant::now();
        let status = Command::new(binary).args(words).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "latscope {} failed ({status})", words.join(" "));
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    };
    (0..REPEATS).map(once).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Coordinator,
    Guardian,
    Worker,
}

/// The most memory that a process had at a time, MB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Memory {
    /// Resident pages.
    resident: f64,
    /// Those that are no file's: of its own, or shared by memfd.
    private: f64,
}

/// Runs a measurement: its seconds, and the memory of its processes.
fn watched(binary: &Path, here: &Here, line: &str) -> Result<(f64, BTreeMap<Role, Memory>)> {
    let begun = Instant::now();
    let mut child = Command::new(binary).args(here.words(line)?).stdout(Stdio::null()).spawn()?;
    let mut most: BTreeMap<Role, Memory> = BTreeMap::new();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        look(child.id(), &mut most).context("no /proc")?;
        sleep(PERIOD);
    };
    ensure!(status.success(), "latscope {line} failed ({status})");
    Ok((begun.elapsed().as_secs_f64(), most))
}

/// Looks at a coordinator and its children. What has just ended is left out.
fn look(coordinator: u32, most: &mut BTreeMap<Role, Memory>) -> Result<()> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Ok(status) = fs::read_to_string(path.join("status")) else { continue };
        let own = number(&status, "Pid") == Some(coordinator.into());
        if !own && number(&status, "PPid") != Some(coordinator.into()) {
            continue;
        }
        let command = fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        let role = match command.split('\0').nth(1) {
            _ if own => Role::Coordinator,
            Some("__guardian") => Role::Guardian,
            Some("__worker") => Role::Worker,
            // A child before it is one of these.
            _ => continue,
        };
        let Some(now) = memory(&status) else { continue };
        let known = most.entry(role).or_default();
        known.resident = known.resident.max(now.resident);
        known.private = known.private.max(now.private);
    }
    Ok(())
}

/// proc(5), the file `status`: kB are units of 1024 bytes.
fn memory(status: &str) -> Option<Memory> {
    let megabytes = |name| Some(number(status, name)? as f64 * 1024.0 / 1e6);
    Some(Memory { resident: megabytes("VmHWM")?, private: megabytes("RssAnon")? + megabytes("RssShmem")? })
}

fn number(status: &str, name: &str) -> Option<u64> {
    let value =
        |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.split_whitespace().next()?.parse().ok();
    status.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_is_read() {
        let status = "Name:\tlatscope\nPid:\t42\nPPid:\t7\nVmHWM:\t    4000 kB\nRssAnon:\t     500 kB\nRssFile:\t    3000 kB\nRssShmem:\t     500 kB\n";
        assert_eq!(
            (number(status, "Pid"), number(status, "PPid"), number(status, "Tgid")),
            (Some(42), Some(7), None)
        );
        assert_eq!(memory(status), Some(Memory { resident: 4.096, private: 1.024 }));
        assert_eq!(memory("Name:\tkthread\n"), None);
    }

    #[test]
    fn one_figure_is_judged_as_it_is_and_many_by_their_interval() {
        assert!(show("alone", &[4.9], 5.0) && !show("alone", &[5.1], 5.0));
        let mut many = vec![4.0; 12];
        many.extend([6.0; 14]);
        assert!(show("many", &many, 5.0));
    }
}
