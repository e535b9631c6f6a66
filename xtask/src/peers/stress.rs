//! `cargo xtask peers stress`, which measures how far rows move when four busy processes of stress-ng run beside the
//! measurement, against an idle run just before.

use super::table::{PeerComparison, STRESS_NG, TABLE};
use super::tools::{self, LatscopeBinary, PlaceholderValues};
use super::{SEED, limit_verdict, median_or_nan};
use anyhow::{Context, Result, ensure};
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::report::{Measurement, Report};
use latscope_core::statistics::{ConfidenceInterval, ratio_of_medians};
use latscope_core::units::{format_size, format_time};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Arguments for the parts of the survey that are measured besides the latency of loads.
const SURVEYED: &str = "survey --only cpu.add,sync.atomic,syscall,sync.semaphore,sync.futex,sync.condvar,\
                        sync.eventfd,sync.pipe,sync.unix-stream";

/// Largest relative difference between a change in cycles and the change in time for which the core clock counts as
/// steady.
const DRIFT: f64 = 0.02;

/// Time for which the machine settles after a load begins or ends.
const SETTLE: Duration = Duration::from_secs(2);

/// Kind of a row, which determines how far it may move. The kinds have the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StressRowKind {
    /// Row of the core, measured in cycles of the core if its clock moves.
    Hardware,
    /// Row of the kernel, or of hand-offs on CPUs that do not idle.
    Kernel,
    /// Row without a limit, for this reason.
    Shown(&'static str),
}

/// Figures of a row in one run.
#[derive(Debug, Clone, Copy)]
struct StressRowFigures {
    ns: f64,
    cycles: Option<f64>,
    /// Share of the samples that were disturbed; NaN if that is not checked.
    rejected: f64,
}

/// Values by the kind and the name of a row.
type StressRowMap<T> = BTreeMap<(StressRowKind, String), T>;

/// Runs idle and loaded measurements in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope or the load does not run.
pub fn compare_under_load(pairs: usize) -> Result<bool> {
    let lacking = tools::install_missing(peers().map(|peer| peer.tool).chain([&STRESS_NG]))?;
    let no_load = lacking.iter().find(|(program, _)| *program == STRESS_NG.program());
    ensure!(no_load.is_none(), "there is no load without stress-ng: {no_load:?}");
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    let mut rows: StressRowMap<Vec<(StressRowFigures, StressRowFigures)>> = BTreeMap::new();
    for turn in 1..=pairs {
        eprint!("\rpair {turn}/{pairs}: idle   ");
        let idle = observe(&latscope, &here)?;
        eprint!("\rpair {turn}/{pairs}: loaded ");
        let load = StressNgLoad::start_load()?;
        let mut loaded = observe(&latscope, &here)?;
        drop(load);
        for (row, before) in idle {
            if let Some(after) = loaded.remove(&row) {
                rows.entry(row).or_default().push((before, after));
            }
        }
    }
    eprintln!("\r{:40}", "");
    println!(
        "Idle, and with `stress-ng --cpu 4` beside, in turn; pairs: {pairs}. Medians, and the shift of the"
    );
    println!("loaded from the idle run [95 % interval], which holds when that reaches into the limit.");
    println!("* judged in core cycles: the clock moved by more than {:.0} %.\n", DRIFT * 100.0);
    println!(
        "{:<40} {:>9} {:>9} {:>9} {:>10} {:>18} {:>6} {:>9}  verdict",
        "", "idle", "loaded", "shift", "in cycles", "interval", "limit", "rejected"
    );
    let verdicts: Vec<bool> =
        rows.iter().map(|((kind, name), pairs)| print_row(*kind, name, pairs)).collect();
    Ok(!verdicts.is_empty() && verdicts.into_iter().all(|holds| holds))
}

/// Peers that are shown under the same load.
fn peers() -> impl Iterator<Item = &'static PeerComparison> {
    TABLE.iter().filter(|comparison| ["getppid", "mutex", "pipe", "read-l1"].contains(&comparison.name))
}

/// Load of `stress-ng --cpu 4`, until this value is dropped.
struct StressNgLoad(Child);

impl StressNgLoad {
    fn start_load() -> Result<StressNgLoad> {
        let mut command = Command::new(STRESS_NG.program());
        // Should this process be killed, the load ends by itself.
        command.args(["--cpu", "4", "--timeout", "600"]).stdout(Stdio::null()).stderr(Stdio::null());
        let load = StressNgLoad(command.spawn().context("stress-ng does not start")?);
        sleep(SETTLE);
        Ok(load)
    }
}

impl Drop for StressNgLoad {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0.id() as i32) {
            // Asked to, it ends its own processes; should that fail, its time does.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
        sleep(SETTLE);
    }
}

/// Measures all rows once.
fn observe(latscope: &LatscopeBinary, here: &PlaceholderValues) -> Result<StressRowMap<StressRowFigures>> {
    let survey = latscope.measure_report(&here.fill_words(SURVEYED)?)?;
    let sizes = sizes(&survey.machine);
    let list = sizes.iter().map(|(size, ..)| size.to_string()).collect::<Vec<_>>().join(",");
    let loads = format!("memory latency --order random --pages 2MiB --cpus {{cpu}} --size {list}");
    let loads = latscope.measure_report(&here.fill_words(&loads)?)?;
    let mut rows = collect(&survey, |m| Some((kind(m)?, m.title.clone())));
    rows.extend(collect(&loads, |m| load_row(m, &sizes)));
    for peer in peers() {
        // What does not run is reported by the comparison itself.
        if let Ok(ns) = peer.their_time(here) {
            let name = format!("{} ({})", peer.name, peer.tool.program());
            rows.insert(
                (StressRowKind::Shown("a peer"), name),
                StressRowFigures { ns, cycles: None, rejected: f64::NAN },
            );
        }
    }
    Ok(rows)
}

fn collect(
    report: &Report,
    row: impl Fn(&Measurement) -> Option<(StressRowKind, String)>,
) -> StressRowMap<StressRowFigures> {
    let seen = |m: &Measurement| {
        let summary = &m.summary;
        let rejected = summary.rejected as f64 / (summary.count + summary.rejected).max(1) as f64;
        Some(StressRowFigures { ns: m.typical()?, cycles: summary.cycles, rejected })
    };
    report.measurements.iter().filter_map(|m| Some((row(m)?, seen(m)?))).collect()
}

/// Sizes of working sets in bytes, the level that holds each, and the kind of its row.
fn sizes(machine: &Machine) -> Vec<(u64, &'static str, StressRowKind)> {
    let last = machine.last_level_cache().unwrap_or(0);
    let second = machine.cache_size(2).filter(|size| *size > 0 && *size < last);
    let beyond = (4 * last).clamp(128 << 20, 512 << 20);
    let mut sizes =
        vec![(16 << 10, "L1", StressRowKind::Hardware), (beyond, "memory", StressRowKind::Hardware)];
    sizes.extend(second.map(|size| (size / 2, "L2", StressRowKind::Hardware)));
    sizes.extend((last > 0).then_some((
        last / 8,
        "last level",
        StressRowKind::Shown("shared with the load"),
    )));
    sizes
}

fn load_row(m: &Measurement, sizes: &[(u64, &str, StressRowKind)]) -> Option<(StressRowKind, String)> {
    let asked = m.numeric_param(param::SIZE)?;
    let (size, level, kind) = sizes.iter().find(|(size, ..)| *size == asked)?;
    Some((*kind, format!("load, {level} ({})", format_size(*size))))
}

/// Kind of a row of the survey; `None` if the row is not examined.
fn kind(m: &Measurement) -> Option<StressRowKind> {
    let is = |name: &str, value: &str| m.params.get(name).is_some_and(|is| is.to_string() == value);
    match m.probe.as_str() {
        "cpu.add" => is("mode", "latency").then_some(StressRowKind::Hardware),
        "sync.atomic" => m.row.then_some(StressRowKind::Hardware),
        probe if probe.starts_with("syscall.") => m.row.then_some(StressRowKind::Kernel),
        _ if is("placement", "two-cores") => {
            Some(StressRowKind::Shown("contains the idle exit that the load removes"))
        }
        _ => Some(StressRowKind::Kernel),
    }
}

/// Prints a row. Returns true if its limit holds.
fn print_row(kind: StressRowKind, name: &str, pairs: &[(StressRowFigures, StressRowFigures)]) -> bool {
    let shift_of = |figure: fn(&StressRowFigures) -> f64| {
        let ratios = pairs.iter().map(|(idle, loaded)| (figure(loaded), figure(idle)));
        ratio_of_medians(&ratios.collect::<Vec<_>>(), SEED)
    };
    let Some(time) = shift_of(|seen| seen.ns) else { return true };
    let cycles = shift_of(|seen| seen.cycles.unwrap_or(f64::NAN));
    let drifted = |cycles: f64| (cycles / time.0 - 1.0).abs() > DRIFT;
    let by_cycles = cycles.filter(|(cycles, _)| kind == StressRowKind::Hardware && drifted(*cycles));
    let (ratio, interval) = by_cycles.unwrap_or(time);
    let judged =
        |limit| limit_verdict(ratio, interval, ConfidenceInterval { low: 1.0 - limit, high: 1.0 + limit });
    let (limit, judgement) = match kind {
        StressRowKind::Hardware => ("15 %", judged(0.15)),
        StressRowKind::Kernel => ("30 %", judged(0.30)),
        StressRowKind::Shown(why) => ("", why),
    };
    let shift = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let rejected = 100.0 * median_or_nan(pairs.iter().map(|(_, loaded)| loaded.rejected));
    println!(
        "{name:<40} {:>9} {:>9} {:>9} {:>10} {:>18} {limit:>6} {:>9}  {}{judgement}",
        format_time(median_or_nan(pairs.iter().map(|(idle, _)| idle.ns))),
        format_time(median_or_nan(pairs.iter().map(|(_, loaded)| loaded.ns))),
        shift(time.0),
        cycles.map_or_else(String::new, |(ratio, _)| shift(ratio)),
        format!("[{:+.1}, {:+.1}]", 100.0 * (interval.low - 1.0), 100.0 * (interval.high - 1.0)),
        if rejected.is_nan() { String::new() } else { format!("{rejected:.0} %") },
        if by_cycles.is_some() { "* " } else { "" },
    );
    judgement != "EXCEEDED"
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::machine::CpuCache;

    #[test]
    fn only_hardware_rows_are_excused_by_a_slower_clock_and_only_by_that() {
        let seen = |ns, cycles| StressRowFigures { ns, cycles: Some(cycles), rejected: 0.0 };
        let slower_clock = [(seen(1.0, 4.0), seen(1.5, 4.0)); 5];
        assert!(
            print_row(StressRowKind::Hardware, "load", &slower_clock)
                && !print_row(StressRowKind::Kernel, "getppid", &slower_clock)
        );
        assert!(!print_row(StressRowKind::Hardware, "load", &[(seen(1.0, 4.0), seen(1.2, 4.8)); 5]));
    }

    #[test]
    fn working_sets_follow_the_caches() {
        let cache = |level, size| CpuCache { level, size, kind: "Unified".into(), ..CpuCache::default() };
        let machine = Machine { caches: vec![cache(2, 1 << 20), cache(3, 32 << 20)], ..Machine::default() };
        let found: Vec<u64> = sizes(&machine).into_iter().map(|(size, ..)| size).collect();
        assert_eq!(found, [16 << 10, 128 << 20, 512 << 10, 4 << 20]);
        assert_eq!(sizes(&Machine::default()).len(), 2);
    }
}
