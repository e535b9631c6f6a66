//! `cargo xtask peers wake`, which compares `latscope wake`, as it is delivered, with cyclictest in the same pattern (a
//! SCHED_FIFO 95 thread on each CPU, 1 ms, locked memory). The figures are the fastest and the typical wake-up, and the
//! CPU time of the whole program for an activation. jitterdebugger is shown beside them.

use super::tools::{self, PeerTool, PlaceholderValues};
use super::{SEED, limit_verdict, median_or_nan};
use crate::dist;
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use latscope_core::statistics::{ConfidenceInterval, ratio_of_medians};
use latscope_core::units::format_time;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const CYCLICTEST: PeerTool = PeerTool::Debian("cyclictest", "rt-tests");
const JITTERDEBUGGER: PeerTool = PeerTool::Debian("jitterdebugger", "jitterdebugger");

/// Largest latency in cyclictest's histogram, in ns. The median lies far below.
const BUCKETS: u64 = 200_000;

/// Largest number of wake-ups in a second of the threads that do not measure.
const QUIET: f64 = 10.0;

/// Figures of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WakeRunFigures {
    /// Fastest wake-up, in ns.
    min: f64,
    /// Median of the wake-ups, in ns.
    p50: f64,
    /// CPU time of the whole program for an activation, user and system, in ns.
    cpu: f64,
}

/// Runs both sides in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope cannot be built, or cyclictest is missing and this process is not root.
pub fn compare_wake(pairs: usize, seconds: u64) -> Result<bool> {
    let lacking = tools::install_missing([&CYCLICTEST, &JITTERDEBUGGER].into_iter())?;
    if let Some((program, why)) = lacking.iter().find(|(program, _)| *program == CYCLICTEST.program()) {
        anyhow::bail!("{program} cannot be had: {why}");
    }
    let sides = WakePeerRunner {
        latscope: dist::for_this_machine(dist::PROFILE)?,
        here: PlaceholderValues::new()?,
        seconds,
    };
    let (mut ours, mut theirs, mut third) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 1..=pairs {
        eprint!("\rpair {turn}/{pairs} ");
        ours.push(sides.latscope()?);
        theirs.push(sides.cyclictest()?);
        third.extend(sides.jitterdebugger().ok());
    }
    eprint!("\r{:40}\r", "");
    println!(
        "A SCHED_FIFO 95 thread on each CPU, 1 ms, memory locked, {seconds} s a run, {pairs} pairs in turn."
    );
    println!("latscope / cyclictest [95 % interval of the median ratio]; at most 1.00.\n");
    let mut holds = print_row("min", |f| f.min, &ours, &theirs);
    holds &= print_row("p50", |f| f.p50, &ours, &theirs);
    holds &= print_row("CPU time of an activation", |f| f.cpu, &ours, &theirs);
    if !third.is_empty() {
        let at = |figure: fn(&WakeRunFigures) -> f64| format_time(median_or_nan(third.iter().map(figure)));
        println!("{:<28} min {}, p50 {} (whole µs)", "jitterdebugger", at(|f| f.min), at(|f| f.p50));
    }
    Ok(holds & sides.idle()? & sides.memory()?)
}

fn print_row(
    name: &str,
    figure: fn(&WakeRunFigures) -> f64,
    ours: &[WakeRunFigures],
    theirs: &[WakeRunFigures],
) -> bool {
    let pairs: Vec<(f64, f64)> = ours.iter().map(figure).zip(theirs.iter().map(figure)).collect();
    let Some((ratio, interval)) = ratio_of_medians(&pairs, SEED) else { return false };
    let judgement = limit_verdict(ratio, interval, ConfidenceInterval { low: 0.0, high: 1.0 });
    println!(
        "{name:<28} {ratio:.3} [{:.3}, {:.3}]   {} / {}   {judgement}",
        interval.low,
        interval.high,
        format_time(median_or_nan(ours.iter().map(figure))),
        format_time(median_or_nan(theirs.iter().map(figure))),
    );
    judgement != "EXCEEDED"
}

struct WakePeerRunner {
    latscope: PathBuf,
    here: PlaceholderValues,
    seconds: u64,
}

impl WakePeerRunner {
    fn wake_command(&self, seconds: u64) -> Command {
        let mut command = Command::new(&self.latscope);
        let words = ["wake", "--interval", "1ms", "--priority", "95", "--no-live", "--quiet", "--duration"];
        command.args(words).arg(format!("{seconds}s"));
        command
    }

    fn latscope(&self) -> Result<WakeRunFigures> {
        let path = tools::peers_dir().join("files/wake.json");
        let command = format!(
            "{} wake --interval 1ms --priority 95 --no-live --quiet --duration {}s --json {}",
            self.latscope.display(),
            self.seconds,
            path.display()
        );
        let (cpu, _) = run_timed(&command)?;
        let report = Report::from_json(&std::fs::read(&path)?)?;
        let all = report.measurements.iter().find(|m| m.row).context("latscope wake has no merged row")?;
        let summary = &all.summary;
        Ok(WakeRunFigures {
            min: summary.min.context("no minimum")?,
            p50: summary.p50.context("no median")?,
            cpu: cpu / summary.count as f64,
        })
    }

    /// Runs cyclictest twice: once counting nanoseconds, and once as usual for its CPU time.
    fn cyclictest(&self) -> Result<WakeRunFigures> {
        let seconds = self.seconds;
        let fine =
            self.here.run_peer(&format!("cyclictest -m -S -p95 -i1000 -N -q -h {BUCKETS} -D {seconds}"))?;
        let (min, p50) = fine_histogram(&fine).context("cyclictest printed no histogram")?;
        let (cpu, output) = run_timed(&format!("cyclictest -m -S -p95 -i1000 -h 400 -q -D {seconds}"))?;
        let cycles = cycles(&output).context("cyclictest printed no total")?;
        Ok(WakeRunFigures { min, p50, cpu: cpu / cycles })
    }

    fn jitterdebugger(&self) -> Result<WakeRunFigures> {
        let directory = tools::peers_dir().join("files");
        let line = format!("jitterdebugger -p 95 -i 1000 -D {}s -o {}", self.seconds, directory.display());
        self.here.run_peer(&line)?;
        let text = std::fs::read(directory.join("results.json"))?;
        jitter_results(&serde_json::from_slice(&text)?).context("jitterdebugger wrote no histogram")
    }

    /// Checks the rate of voluntary switches of all threads but the measuring threads while nothing happens.
    fn idle(&self) -> Result<bool> {
        let run = KillOnDropChild(self.wake_command(6).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        sleep(Duration::from_secs(2));
        let before = switches(run.0.id());
        sleep(Duration::from_secs(3));
        let after = switches(run.0.id());
        ensure!(!before.is_empty(), "latscope ended early");
        let rate = before.iter().map(|(tid, n)| after.get(tid).map_or(0, |later| later - n)).sum::<u64>()
            as f64
            / 3.0;
        let holds = rate <= QUIET;
        println!("{:<28} {rate:.1}/s, at most {QUIET}   {}", "wake-ups beside measuring", limit_word(holds));
        Ok(holds)
    }

    /// Checks that the memory of the coordinator and the worker together keeps its limit, and does not grow with
    /// activations.
    fn memory(&self) -> Result<bool> {
        let run = KillOnDropChild(self.wake_command(6).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let resident = || process_tree(run.0.id()).into_iter().map(proportional).sum::<f64>();
        sleep(Duration::from_secs(2));
        let early = resident();
        sleep(Duration::from_secs(3));
        let late = resident();
        let holds = late <= 32e6 && late - early <= 100e3;
        println!(
            "{:<28} {:.1} MB, {:+.2} MB in 3 s more; at most 32 MB   {}",
            "memory of all processes",
            late / 1e6,
            (late - early) / 1e6,
            limit_word(holds)
        );
        Ok(holds)
    }
}

fn limit_word(holds: bool) -> &'static str {
    if holds { "holds" } else { "EXCEEDED" }
}

/// Run that ends when this value is dropped.
struct KillOnDropChild(Child);

impl Drop for KillOnDropChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command line. Returns the CPU time of it and all its processes in ns, and its output on stdout.
fn run_timed(line: &str) -> Result<(f64, String)> {
    let script = format!("TIMEFORMAT='%3U %3S'; time {line}");
    let output = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C").output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code().is_some_and(|code| code < 2), "{line}: {said}");
    let last = said.lines().last().unwrap_or_default();
    let seconds: f64 = last.split(' ').filter_map(|number| number.parse::<f64>().ok()).sum();
    ensure!(seconds > 0.0, "{line}: no CPU time in {last:?}");
    Ok((seconds * 1e9, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Returns a process and all its descendants.
fn process_tree(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let mut all = vec![process];
    all.extend(children.split_whitespace().filter_map(|id| id.parse().ok()).flat_map(process_tree));
    all
}

/// Number of voluntary switches of each thread of a run that does not measure.
fn switches(process: u32) -> BTreeMap<u32, u64> {
    let threads = process_tree(process).into_iter().flat_map(|process| {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
        tasks.filter_map(move |task| Some((process, task.ok()?.file_name().to_str()?.parse::<u32>().ok()?)))
    });
    let count = |(process, thread): (u32, u32)| {
        let status = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let measures = field("Name:")?.starts_with("wake/");
        (!measures).then_some(())?;
        Some((thread, field("voluntary_ctxt_switches:")?.parse().ok()?))
    };
    threads.filter_map(count).collect()
}

/// Proportional set size, in bytes. Pages that processes share count once.
fn proportional(process: u32) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

/// Minimum and median of all threads together, from cyclictest's histogram.
fn fine_histogram(text: &str) -> Option<(f64, f64)> {
    let minima = text.lines().find_map(|line| line.strip_prefix("# Min Latencies:"))?;
    let min = minima.split_whitespace().filter_map(|n| n.parse::<f64>().ok()).reduce(f64::min)?;
    let rows = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let counts: Vec<(f64, u64)> = rows
        .filter_map(|line| {
            let mut numbers = line.split_whitespace();
            let bucket = numbers.next()?.parse().ok()?;
            Some((bucket, numbers.filter_map(|n| n.parse::<u64>().ok()).sum()))
        })
        .collect();
    let overflows = text.lines().find_map(|line| line.strip_prefix("# Histogram Overflows:"))?;
    let beyond: u64 = overflows.split_whitespace().filter_map(|n| n.parse::<u64>().ok()).sum();
    let total = counts.iter().map(|(_, n)| n).sum::<u64>() + beyond;
    Some((min, median_of(&counts, total)?))
}

fn median_of(counts: &[(f64, u64)], total: u64) -> Option<f64> {
    let mut seen = 0;
    counts
        .iter()
        .find(|(_, n)| {
            seen += n;
            2 * seen >= total && total > 0
        })
        .map(|(value, _)| *value)
}

/// Number of cycles of all threads, from cyclictest's totals and overflows.
fn cycles(text: &str) -> Option<f64> {
    let sum = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().filter_map(|n| n.parse::<f64>().ok()).sum::<f64>())
    };
    Some(sum("# Total:")? + sum("# Histogram Overflows:")?)
}

fn jitter_results(results: &serde_json::Value) -> Option<WakeRunFigures> {
    let cpus = results.get("cpu")?.as_object()?;
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for cpu in cpus.values() {
        for (bucket, n) in cpu.get("histogram")?.as_object()? {
            *counts.entry(bucket.parse().ok()?).or_default() += n.as_u64()?;
        }
    }
    let min = cpus.values().filter_map(|cpu| cpu.get("min")?.as_f64()).reduce(f64::min)?;
    let counts: Vec<(f64, u64)> = counts.into_iter().map(|(us, n)| (us as f64, n)).collect();
    let total = counts.iter().map(|(_, n)| n).sum();
    Some(WakeRunFigures { min: min * 1e3, p50: median_of(&counts, total)? * 1e3, cpu: f64::NAN })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000004 000001\t000000\n\
        000007 000002\t000003\n000009 000001\t000001\n# Total: 000000004 000000004\n\
        # Min Latencies: 00004 00007\n# Histogram Overflows: 00001 00000\n";

    #[test]
    fn cyclictests_histogram_gives_minimum_median_and_cycles() {
        assert_eq!(fine_histogram(FINE), Some((4.0, 7.0)));
        assert_eq!(cycles(FINE), Some(9.0));
        assert_eq!(fine_histogram("policy: fifo"), None);
    }

    #[test]
    fn jitterdebuggers_results_are_merged_over_cpus() {
        let text = r#"{"cpu": {"0": {"histogram": {"5": 3}, "min": 5}, "1": {"histogram": {"4": 1, "9": 1}, "min": 4}}}"#;
        let figures = jitter_results(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!((figures.min, figures.p50), (4000.0, 5000.0));
    }

    #[test]
    fn the_time_of_a_command_is_that_of_its_processes() {
        let (ns, said) =
            run_timed("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done'").unwrap();
        assert!(ns > 0.0 && said == "done\n");
        assert!(run_timed("sh -c 'exit 7'").is_err());
    }
}
