//! The results.json of jitterdebugger.

use super::bins::{Counted, Counts};
use super::report::{Source, SysInfo, finish, measurement};
use super::{from_json, has_names};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::plan::params;
use latscope_core::report::{Measurement, Report, Semantics};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns true if a text has names that no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["cpus_online", "resolution_in_ns", "cpu"])
}

#[derive(Deserialize)]
struct File {
    version: u64,
    sysinfo: System,
    cpu: BTreeMap<String, Cpu>,
}

#[derive(Deserialize)]
struct System {
    #[serde(flatten)]
    uname: SysInfo,
    /// Length of a tick of the histograms, ns.
    resolution_in_ns: u64,
}

#[derive(Deserialize)]
struct Cpu {
    histogram: Counts,
    count: u64,
    min: u64,
    max: u64,
    avg: f64,
}

/// The version of the form that is read.
const VERSION: u64 = 3;

const UNKNOWN: &[&str] =
    &["interval", "scheduling policy", "priority", "how the threads wait", "clock", "missed activations"];

/// Reads the histograms of a run.
///
/// # Errors
/// The text is of another version, or damaged.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let file: File = from_json(text)?;
    if file.version != VERSION {
        return Err(format!("its form is version {}, and {VERSION} is read", file.version));
    }
    let tick_ps = match file.sysinfo.resolution_in_ns {
        1 => 1_000,
        1_000 => 1_000_000,
        other => return Err(format!("its resolution_in_ns is {other}, and 1 and 1000 are known")),
    };
    let mut report = Source { program: "jitterdebugger", version: None, text, unknown: UNKNOWN }.report();
    report.machine = file.sysinfo.uname.machine();
    let mut cpus: Vec<(u64, &Cpu)> = Vec::new();
    for (name, cpu) in &file.cpu {
        cpus.push((name.parse().map_err(|_| format!("{name:?} is no number of a CPU"))?, cpu));
    }
    cpus.sort_by_key(|(number, _)| *number);
    let measured = cpus
        .into_iter()
        .map(|(number, cpu)| cpu.measurement(number, tick_ps).map_err(|why| format!("CPU {number}: {why}")));
    finish(report, measured.collect::<Result<_, _>>()?)
}

impl Cpu {
    fn measurement(&self, number: u64, tick_ps: u64) -> Result<Measurement, String> {
        let Cpu { histogram: Counts(counts), count, min, max, avg } = self;
        let counted = counts.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let overflow = counted.and_then(|counted| count.checked_sub(counted));
        let overflow =
            overflow.ok_or("its histogram has more counts than there were events: it is damaged")?;
        let mean = Some(*avg).filter(|_| overflow > 0);
        let counted = Counted { tick_ps, bins: None, counts, overflow, min: *min, max: *max, mean };
        let (params, title) =
            (params([(param::CPU, number.into())]), format!("wake-up, lateness, CPU {number}"));
        Ok(measurement(ids::WAKE_TIMER, params, title, Semantics::OneWay, counted.histogram()?))
    }
}
