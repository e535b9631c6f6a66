//! `cargo xtask peers stress`: how far rows move when four busy processes of
//! stress-ng run beside the measurement, against an idle run just before.

use super::table::{STRESS_NG, TABLE};
use super::tools::{self, Here, Latscope};
use super::{SEED, middle, verdict};
use anyhow::{Context, Result, bail};
use latscope_core::machine::Machine;
use latscope_core::report::{Measurement, Report};
use latscope_core::statistics::{Interval, ratio_of_medians};
use latscope_core::units::{format_size, format_time};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What of the survey is measured besides the latency of loads.
const SURVEYED: &str = "survey --only cpu.add,sync.atomic,syscall,sync.semaphore,sync.futex,sync.condvar,sync.eventfd,\
                        sync.pipe,sync.unix-stream";

/// Peers that are shown under the same load, by their names in the table.
const PEERS: [&str; 4] = ["getppid", "mutex", "pipe", "read-l1"];

/// Cycles and time part when the core clock moves by more than this share.
const DRIFT: f64 = 0.02;

/// How long the machine settles after a load begins or ends.
const SETTLE: Duration = Duration::from_secs(2);

/// What a row is, and with it how far it may move. In the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The core's own, in its cycles where its clock moves.
    Hardware,
    /// The kernel's, and hand-offs on CPUs that do not idle.
    Kernel,
    /// Has no limit, for this reason.
    Shown(&'static str),
}

impl Kind {
    /// How far the ratio of loaded to idle may be from 1.
    fn limit(self) -> Option<f64> {
        match self {
            Kind::Hardware => Some(0.15),
            Kind::Kernel => Some(0.30),
            Kind::Shown(_) => None,
        }
    }
}

/// What a run says of a row.
#[derive(Debug, Clone, Copy)]
struct Seen {
    ns: f64,
    cycles: Option<f64>,
    /// Share of the samples that were disturbed.
    rejected: f64,
}

/// A row's name, and what it is.
type Rows<T> = BTreeMap<(Kind, String), T>;

/// Alternates idle and loaded runs; whether every limit holds.
///
/// # Errors
/// latscope or the load does not run.
pub fn run(pairs: usize) -> Result<bool> {
    let lacking = tools::install(&[&STRESS_NG])?;
    if let [(_, why), ..] = lacking.as_slice() {
        bail!("there is no load without stress-ng: {why}");
    }
    let (latscope, here) = (Latscope::build()?, Here::new()?);
    let mut rows: Rows<Vec<(Seen, Seen)>> = BTreeMap::new();
    for turn in 0..pairs {
        eprint!("\rpair {} of {pairs}: idle   ", turn + 1);
        let idle = observe(&latscope, &here)?;
        eprint!("\rpair {} of {pairs}: loaded ", turn + 1);
        let load = Load::start()?;
        let mut loaded = observe(&latscope, &here)?;
        drop(load);
        for (row, before) in idle {
            if let Some(after) = loaded.remove(&row) {
                rows.entry(row).or_default().push((before, after));
            }
        }
    }
    eprint!("\r{:40}\r", "");
    println!(
        "Idle, and with `stress-ng --cpu 4` beside; {pairs} pairs, each loaded run right after its idle one."
    );
    println!(
        "shift: loaded against idle [95 % interval of the median]; it holds when that reaches into the limit."
    );
    println!("* judged in core cycles: the clock moved by more than {:.0} %.\n", DRIFT * 100.0);
    println!(
        "{:<52} {:>9} {:>9} {:>8} {:>17} {:>8} {:>6} {:>8}  verdict",
        "row", "idle", "loaded", "shift", "", "cycles", "limit", "rejected"
    );
    let verdicts: Vec<bool> = rows.iter().map(|((kind, name), pairs)| show(*kind, name, pairs)).collect();
    Ok(!verdicts.is_empty() && verdicts.into_iter().all(|holds| holds))
}

/// `stress-ng --cpu 4`, until it is dropped.
struct Load(Child);

impl Load {
    fn start() -> Result<Load> {
        // Should this process be killed, the load ends by itself.
        let mut command = Command::new("stress-ng");
        command.args(["--cpu", "4", "--timeout", "600"]).stdout(Stdio::null()).stderr(Stdio::null());
        let load = Load(command.spawn().context("stress-ng does not start")?);
        sleep(SETTLE);
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Asked to, it ends its own processes; what is left of a failure is its time-out.
        if let Some(pid) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
        sleep(SETTLE);
    }
}

/// One run of everything.
fn observe(latscope: &Latscope, here: &Here) -> Result<Rows<Seen>> {
    let survey = latscope.measure(&here.words(SURVEYED)?)?;
    let sizes = sizes(&survey.machine);
    let list = sizes.iter().map(|(size, _)| size.to_string()).collect::<Vec<_>>().join(",");
    let loads = format!("memory latency --order random --pages 2MiB --size {list} --cpus {{cpu}}");
    let loads = latscope.measure(&here.words(&loads)?)?;
    let mut rows: Rows<Seen> = collect(&survey, |m| kind(m).map(|kind| (kind, m.title.clone())));
    rows.extend(collect(&loads, |m| load_row(m, &sizes)));
    for comparison in TABLE.iter().filter(|comparison| PEERS.contains(&comparison.name)) {
        let name = format!("{} ({})", comparison.name, comparison.tool.program());
        // Only what is installed; none of it is needed.
        if let Ok(ns) = comparison.their_time(here) {
            rows.insert((Kind::Shown("a peer"), name), Seen { ns, cycles: None, rejected: f64::NAN });
        }
    }
    Ok(rows)
}

fn collect(report: &Report, row: impl Fn(&Measurement) -> Option<(Kind, String)>) -> Rows<Seen> {
    let seen = |m: &Measurement| {
        let summary = &m.summary;
        let rejected = summary.rejected as f64 / (summary.count + summary.rejected).max(1) as f64;
        Some(Seen { ns: m.typical()?, cycles: summary.cycles, rejected })
    };
    report.measurements.iter().filter_map(|m| Some((row(m)?, seen(m)?))).collect()
}

/// Sizes of working sets, each with the level that holds it and what is asked of it.
fn sizes(machine: &Machine) -> Vec<(u64, Kind)> {
    let last = machine.last_level_cache().unwrap_or(0);
    let level = |level| machine.cache_size(level).filter(|size| *size > 0 && *size < last);
    let mut sizes = vec![(16 << 10, Kind::Hardware)];
    sizes.extend(level(2).map(|size| (size / 2, Kind::Hardware)));
    if last > 0 {
        sizes.push((last / 8, Kind::Shown("shared with the load")));
    }
    sizes.push(((4 * last).clamp(128 << 20, 512 << 20), Kind::Hardware));
    sizes
}

fn load_row(m: &Measurement, sizes: &[(u64, Kind)]) -> Option<(Kind, String)> {
    let size: u64 = m.params.get("size")?.to_string().parse().ok()?;
    let place = sizes.iter().position(|(asked, _)| *asked == size)?;
    let level = match place {
        place if place + 1 == sizes.len() => "memory".to_owned(),
        place => format!("L{}", place + 1),
    };
    Some((sizes[place].1, format!("load, {level} ({})", format_size(size))))
}

/// What is asked of a row of the survey; `None` for what is not looked at.
fn kind(m: &Measurement) -> Option<Kind> {
    let is = |name: &str, value: &str| m.params.get(name).is_some_and(|is| is.to_string() == value);
    match m.probe.as_str() {
        "cpu.add" => is("mode", "latency").then_some(Kind::Hardware),
        "sync.atomic" => (is("sharing", "private") && is("threads", "1")).then_some(Kind::Hardware),
        probe if probe.starts_with("syscall.") => m.row.then_some(Kind::Kernel),
        _ if is("placement", "two-cores") => {
            Some(Kind::Shown("contains the idle exit that the load removes"))
        }
        _ => Some(Kind::Kernel),
    }
}

/// Prints a row; whether its limit holds.
fn show(kind: Kind, name: &str, pairs: &[(Seen, Seen)]) -> bool {
    let shift_in = |figure: fn(&Seen) -> f64| {
        let ratios: Vec<(f64, f64)> =
            pairs.iter().map(|(idle, loaded)| (figure(loaded), figure(idle))).collect();
        ratio_of_medians(&ratios, SEED)
    };
    let Some(in_time) = shift_in(|seen| seen.ns) else { return true };
    let in_cycles = shift_in(|seen| seen.cycles.unwrap_or(f64::NAN));
    let drifted = |cycles: f64| (cycles / in_time.0 - 1.0).abs() > DRIFT;
    let by_cycles = in_cycles.filter(|(cycles, _)| kind == Kind::Hardware && drifted(*cycles));
    let (ratio, interval) = by_cycles.unwrap_or(in_time);
    let judgement = match (kind, kind.limit()) {
        (_, Some(limit)) => verdict(ratio, interval, Interval { low: 1.0 - limit, high: 1.0 + limit }),
        (Kind::Shown(why), None) => why,
        (_, None) => "",
    };
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    println!(
        "{name:<52} {:>9} {:>9} {:>8} {:>17} {:>8} {:>6} {:>8}  {}{judgement}",
        format_time(middle(pairs.iter().map(|(idle, _)| idle.ns))),
        format_time(middle(pairs.iter().map(|(_, loaded)| loaded.ns))),
        percent(in_time.0),
        format!(
            "[{}, {}]",
            percent(interval.low).replace(" %", ""),
            percent(interval.high).replace(" %", "")
        ),
        in_cycles.map_or_else(String::new, |(ratio, _)| percent(ratio)),
        kind.limit().map_or_else(String::new, |limit| format!("{:.0} %", 100.0 * limit)),
        percentage(middle(pairs.iter().map(|(_, loaded)| loaded.rejected))),
        if by_cycles.is_some() { "* " } else { "" },
    );
    judgement != "EXCEEDED"
}

fn percentage(share: f64) -> String {
    if share.is_nan() { String::new() } else { format!("{:.0} %", 100.0 * share) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::machine::Cache;

    fn seen(ns: f64, cycles: f64) -> Seen {
        Seen { ns, cycles: Some(cycles), rejected: 0.0 }
    }

    #[test]
    fn a_slower_clock_moves_no_hardware_row_but_a_kernel_row() {
        let slower = [(seen(1.0, 4.0), seen(1.5, 4.0)); 5];
        assert!(show(Kind::Hardware, "load", &slower));
        assert!(!show(Kind::Kernel, "getppid", &slower));
        assert!(show(Kind::Shown("a peer"), "getppid", &slower));
    }

    #[test]
    fn cycles_do_not_excuse_a_row_whose_clock_stands() {
        assert!(!show(Kind::Hardware, "load", &[(seen(1.0, 4.0), seen(1.2, 4.8)); 5]));
    }

    #[test]
    fn working_sets_follow_the_caches() {
        let cache = |level, size| Cache { level, size, kind: "Unified".into(), ..Cache::default() };
        let machine = Machine { caches: vec![cache(2, 1 << 20), cache(3, 32 << 20)], ..Machine::default() };
        let found: Vec<u64> = sizes(&machine).into_iter().map(|(size, _)| size).collect();
        assert_eq!(found, [16 << 10, 512 << 10, 4 << 20, 128 << 20]);
        assert_eq!(sizes(&Machine::default()).len(), 2);
    }
}
