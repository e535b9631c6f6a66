//! The text of LMbench's lat_mem_rd: for each stride a list of sizes in MiB, each with the ns of a load.

use super::checks::{KnownValues, StatedFigures};
use super::numbered_lines;
use super::report::{ImportSource, finish, measurement};
use super::time;
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::params;
use latscope_core::report::{Measurement, Report, Sampling, Semantics};
use latscope_core::units::format_size;
use std::collections::BTreeSet;

/// Returns true if a text has the heading of a list.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(HEADING))
}

const HEADING: &str = "\"stride=";

/// Lines above the lists in a whole result of LMbench, and the order of the loads below each.
const ORDERS: [(&str, &str); 2] = [("Memory load latency", "forward"), ("Random load latency", "random")];

const ORDER: &str = "order of the loads: -t makes it random";

const UNKNOWN: &[&str] =
    &["page size", "loads in a batch", "how the repetitions scatter: the least of them is printed"];

/// Reads the lists of a run.
///
/// # Errors
/// A line of a list has no two numbers, or the last list is cut off.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let mut measurements: Vec<Measurement> = Vec::new();
    let mut known = BTreeSet::new();
    let mut stride: Option<u64> = None;
    let (mut order, mut others, mut in_other_list) = (None, 0, false);
    for (number, line) in numbered_lines(text) {
        match (line.strip_prefix(HEADING), stride) {
            (Some(word), _) => {
                let word = word.trim().trim_end_matches('"').parse();
                stride = Some(word.map_err(|_| format!("line {number}, {line:?}, has no stride"))?);
            }
            (None, Some(_)) if line.trim().is_empty() => stride = None,
            (None, Some(stride)) => {
                let m = point(line, stride, order);
                let m = m.ok_or_else(|| format!("line {number}, {line:?}, has no size in MiB and ns"))??;
                if !known.insert(m.params.clone()) {
                    return Err(format!(
                        "line {number}: {} is there twice: choose a file for each run",
                        m.title
                    ));
                }
                measurements.push(m);
            }
            (None, None) if line.trim().is_empty() => in_other_list = false,
            (None, None) => {
                others += 1;
                in_other_list |= line.starts_with('"');
                let heading = ORDERS.iter().find(|(heading, _)| *heading == line.trim());
                order = heading.map(|(_, order)| *order).or(order);
                if !in_other_list && point(line, 1, None).is_some() {
                    return Err(format!(
                        "line {number}, {line:?}, is of a list without a heading: it is damaged"
                    ));
                }
            }
        }
    }
    if stride.is_some() {
        return Err("it ends early: a list ends with an empty line".to_owned());
    }
    let is_unknown = measurements.iter().any(|m| !m.params.contains_key(param::ORDER));
    let unknown: Vec<&str> = UNKNOWN.iter().copied().chain(is_unknown.then_some(ORDER)).collect();
    let mut report = ImportSource { program: "lat_mem_rd", version: None, text, unknown: &unknown }.report();
    if let Some((host, kernel)) = machine(text) {
        report.machine = Machine { name: host.to_owned(), kernel: kernel.to_owned(), ..Machine::default() };
    }
    (report.started, report.finished) = dates(text)?;
    if others > 0 {
        report.plan.notes.push(format!("{others} lines outside of the lists were passed over"));
    }
    finish(report, measurements)
}

/// Dates of a whole result of LMbench: above its lists when it began, below them when it ended.
fn dates(text: &str) -> Result<(String, Option<String>), String> {
    let first_list = text.lines().position(|line| line.starts_with(HEADING)).unwrap_or_default();
    let (mut started, mut finished) = (None, None);
    for (number, line) in text.lines().enumerate() {
        let inner = line.trim().strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        let Some(date) = inner.and_then(time::of_command) else { continue };
        let date = date.map_err(|why| format!("line {}: {why}", number + 1))?;
        if number > first_list {
            finished = date;
        } else if started.is_none() {
            started = date;
        }
    }
    Ok((started.unwrap_or_default(), finished))
}

/// Host and release of the kernel in the first line of a whole result of LMbench.
fn machine(text: &str) -> Option<(&str, &str)> {
    let heading = text.lines().find(|line| line.starts_with("[lmbench"))?;
    let (_, machine) = heading.trim().strip_suffix(']')?.split_once("results for Linux ")?;
    let mut words = machine.split(' ');
    Some((words.next()?, words.next()?))
}

/// The point of a line of a list; `None` for another line.
fn point(line: &str, stride: u64, order: Option<&str>) -> Option<Result<Measurement, String>> {
    let [mib, ns] = line.split_whitespace().collect::<Vec<&str>>()[..] else { return None };
    let (mib, ns): (f64, f64) = (mib.parse().ok()?, ns.parse().ok()?);
    if !(mib > 0.0 && mib <= 1e9 && (0.0..=1e9).contains(&ns)) {
        return None;
    }
    if let Err(why) = StatedFigures::default().check(&KnownValues::single(&[ns])) {
        return Some(Err(why));
    }
    let size = size(mib);
    let mut params = params([(param::SIZE, size.into()), (param::STRIDE, stride.into())]);
    let mut title = format!("load, {}, stride {}", format_size(size), format_size(stride));
    if let Some(order) = order {
        params.insert(param::ORDER.to_owned(), order.into());
        title = format!("{title}, {order}");
    }
    let mut histogram = Histogram::new(1);
    histogram.record((ns * 1e3).round() as u64);
    let mut m = measurement("imported.lat-mem-rd", params, title, Semantics::Operation, histogram);
    m.sampling = Sampling::Batch { ops: 0 };
    Some(Ok(m))
}

/// The size of so many MiB, with five digits after the point: the sizes of LMbench are multiples of 512 B.
fn size(mib: f64) -> u64 {
    let bytes = mib * f64::from(1 << 20);
    let whole = (bytes / 512.0).round() * 512.0;
    let digits = 5e-6 * f64::from(1 << 20) + 0.5;
    (if (bytes - whole).abs() <= digits { whole } else { bytes.round() }) as u64
}
