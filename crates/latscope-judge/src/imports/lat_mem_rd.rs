//! The text of LMbench's lat_mem_rd: for each stride a list of sizes in MiB, each with the ns of a load.

use super::report::{Source, finish, measurement};
use super::whole_lines;
use latscope_core::histogram::Histogram;
use latscope_core::param;
use latscope_core::plan::params;
use latscope_core::report::{Measurement, Report, Sampling, Semantics};
use latscope_core::units::format_size;

/// Returns true if a text has the heading of a list.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(HEADING))
}

const HEADING: &str = "\"stride=";

const UNKNOWN: &[&str] = &[
    "order of the loads: -t makes it random",
    "page size",
    "loads in a batch",
    "how the repetitions scatter: the least of them is printed",
];

/// Reads the lists of a run.
///
/// # Errors
/// A line of a list has no two numbers, or the last list is cut off.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let mut report = Source { program: "lat_mem_rd", version: None, text, unknown: UNKNOWN }.report();
    let mut measurements: Vec<Measurement> = Vec::new();
    let mut stride: Option<u64> = None;
    let mut others = 0;
    for line in whole_lines(text) {
        match (line.strip_prefix(HEADING), stride) {
            (Some(number), _) => {
                let number = number.trim().trim_end_matches('"').parse();
                stride = Some(number.map_err(|_| format!("{line:?} has no stride"))?);
            }
            (None, Some(_)) if line.trim().is_empty() => stride = None,
            (None, Some(stride)) => {
                let m = point(line, stride).ok_or_else(|| format!("{line:?} has no size in MiB and ns"))?;
                if measurements.iter().any(|other| other.params == m.params) {
                    return Err(format!("{} is there twice: choose a file for each run", m.title));
                }
                measurements.push(m);
            }
            (None, None) => others += usize::from(!line.trim().is_empty()),
        }
    }
    if stride.is_some() {
        return Err("it ends early: a list ends with an empty line".to_owned());
    }
    if others > 0 {
        report.plan.notes.push(format!("{others} lines outside of the lists were passed over"));
    }
    finish(report, measurements)
}

/// The point of a line of a list.
fn point(line: &str, stride: u64) -> Option<Measurement> {
    let [mib, ns] = line.split_whitespace().collect::<Vec<&str>>()[..] else { return None };
    let (mib, ns): (f64, f64) = (mib.parse().ok()?, ns.parse().ok()?);
    if !(mib > 0.0 && mib <= 1e9 && (0.0..=1e9).contains(&ns)) {
        return None;
    }
    let size = size(mib);
    let params = params([(param::SIZE, size.into()), (param::STRIDE, stride.into())]);
    let title = format!("load, {}, stride {}", format_size(size), format_size(stride));
    let mut histogram = Histogram::new(1);
    histogram.record((ns * 1e3).round() as u64);
    let mut m = measurement("imported.lat-mem-rd", params, title, Semantics::Operation, histogram);
    m.sampling = Sampling::Batch { ops: 0 };
    Some(m)
}

/// The size of so many MiB, with five digits after the point: the sizes of LMbench are multiples of 512 B.
fn size(mib: f64) -> u64 {
    let bytes = mib * f64::from(1 << 20);
    let whole = (bytes / 512.0).round() * 512.0;
    let digits = 5e-6 * f64::from(1 << 20) + 0.5;
    (if (bytes - whole).abs() <= digits { whole } else { bytes.round() }) as u64
}
