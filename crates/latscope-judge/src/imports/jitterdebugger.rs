//! The results.json of jitterdebugger.

use super::bins::{BinCounts, ImportHistogram, Numbered};
use super::checks::{NO_MEAN, StatedNumber};
use super::report::{ImportSource, SysInfo, finish_report, sampled_point};
use super::{from_json, has_names};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::plan::params;
use latscope_core::report::{Measurement, Report, Semantics};
use serde::Deserialize;

/// Returns true if a text has names that no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["cpus_online", "resolution_in_ns", "cpu"])
}

#[derive(Deserialize)]
struct File {
    version: u64,
    sysinfo: System,
    cpu: Numbered<Cpu>,
}

#[derive(Deserialize)]
struct System {
    #[serde(flatten)]
    uname: SysInfo,
    /// Length of a tick of the histograms, ns.
    resolution_in_ns: u64,
    cpus_online: Option<usize>,
}

#[derive(Deserialize)]
struct Cpu {
    histogram: BinCounts,
    count: u64,
    min: u64,
    max: u64,
    avg: Option<f64>,
}

/// The version of the form that is read.
const VERSION: u64 = 3;

const UNKNOWN: &[&str] =
    &["interval", "scheduling policy", "priority", "how the threads wait", "clock", "missed activations"];

/// Reads the histograms of a run.
///
/// # Errors
/// The text is of another version, or damaged.
pub(super) fn read_output(text: &str) -> Result<Report, String> {
    let file: File = from_json(text)?;
    if file.version != VERSION {
        return Err(format!("its form is version {}, and {VERSION} is read", file.version));
    }
    let tick_ps = match file.sysinfo.resolution_in_ns {
        1 => 1_000,
        1_000 => 1_000_000,
        other => return Err(format!("its resolution_in_ns is {other}, and 1 and 1000 are known")),
    };
    let Numbered(cpus) = file.cpu;
    // The key is the number of the thread, which is that of its CPU where each CPU has one.
    let is_of_cpu = file.sysinfo.cpus_online == Some(cpus.len());
    let (key, further) =
        if is_of_cpu { (param::CPU, None) } else { (param::THREAD, Some("CPUs of the threads")) };
    let unknown: Vec<&str> = UNKNOWN.iter().copied().chain(further).collect();
    let mut report =
        ImportSource { program: "jitterdebugger", version: None, text, unknown: &unknown }.empty_report();
    report.machine = file.sysinfo.uname.machine();
    let measured = cpus.iter().map(|(number, cpu)| {
        cpu.to_measurement((key, *number), tick_ps).map_err(|why| format!("thread {number}: {why}"))
    });
    finish_report(report, measured.collect::<Result<_, _>>()?)
}

impl Cpu {
    fn to_measurement(&self, (key, number): (&str, u64), tick_ps: u64) -> Result<Measurement, String> {
        let Cpu { histogram: BinCounts(counts), count, min, max, avg } = self;
        let counted = counts.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let overflow = counted.and_then(|counted| count.checked_sub(counted));
        let overflow =
            overflow.ok_or("its histogram has more counts than there were events: it is damaged")?;
        if *count > 0 && avg.is_none() {
            return Err(NO_MEAN.to_owned());
        }
        let counted = ImportHistogram {
            tick_ps,
            bins: None,
            counts,
            overflow,
            overflow_from: None,
            count: Some(*count),
            min: *min,
            max: *max,
            mean: avg.map(|avg| StatedNumber::to_step(avg, 0.01)),
        };
        let place = if key == param::CPU { "CPU" } else { "thread" };
        let (params, title) =
            (params([(key, number.into())]), format!("wake-up, lateness, {place} {number}"));
        Ok(sampled_point(ids::WAKE_TIMER, params, title, Semantics::OneWay, counted.histogram()?))
    }
}
