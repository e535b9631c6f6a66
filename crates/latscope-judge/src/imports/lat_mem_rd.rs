//! The text of LMbench's lat_mem_rd: for each stride a list of sizes in MiB, each with the ns of a load.

use super::numbered_lines;
use super::report::{ImportSource, finish_report, sampled_point};
use super::time;
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{Params, params};
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

/// Starts of the headings of lists of other programs of LMbench: most are quoted, and these are not.
const OTHER_LISTS: [&str; 3] = ["\"", "Memory load parallelism", "Socket bandwidth using "];

/// Returns true for the heading of a list that another program wrote: `Memory read bandwidth`, `"mappings`.
fn is_other_heading(line: &str) -> bool {
    let is_bandwidth = line.starts_with("Memory ") && line.trim_end().ends_with(" bandwidth");
    is_bandwidth || OTHER_LISTS.iter().any(|start| line.starts_with(start))
}

/// Start of the first line of a whole result of LMbench.
const WHOLE: &str = "[lmbench";

/// Strides of a call without one, in bytes: 512 divided by the size of a pointer.
const USUAL_STRIDES: [u64; 2] = [64, 128];

/// Reads the lists of a run.
///
/// # Errors
/// A line of a list has no two numbers, or the last list is cut off.
pub(super) fn read_output(text: &str) -> Result<Report, String> {
    let mut lists = LatencyLists::default();
    for (number, line) in numbered_lines(text) {
        lists.read_line(number, line)?;
    }
    lists.check_end(text)?;
    let LatencyLists { measurements, others, empty, .. } = lists;
    if measurements.is_empty() && !empty.is_empty() {
        return Err(format!("its list of stride {} has no size", empty[0]));
    }
    let is_unknown = measurements.iter().any(|m| !m.params.contains_key(param::ORDER));
    let unknown: Vec<&str> = UNKNOWN.iter().copied().chain(is_unknown.then_some(ORDER)).collect();
    let mut report =
        ImportSource { program: "lat_mem_rd", version: None, text, unknown: &unknown }.empty_report();
    if let Some((host, kernel)) = host_and_kernel(text) {
        report.machine = Machine { name: host.to_owned(), kernel: kernel.to_owned(), ..Machine::default() };
    }
    (report.started, report.finished) = dates(text)?;
    for stride in empty {
        report.plan.notes.push(format!("the list of stride {stride} is empty: no size reaches its stride"));
    }
    if others > 0 {
        report.plan.notes.push(format!("{others} lines outside of the lists were passed over"));
    }
    finish_report(report, measurements)
}

/// The lists of a text, while its lines are read.
#[derive(Default)]
struct LatencyLists {
    measurements: Vec<Measurement>,
    known: BTreeSet<Params>,
    /// Stride of the list that is being read, and the number of its points.
    list: Option<(u64, usize)>,
    /// Number of lists so far.
    lists: usize,
    /// Strides of the lists without a point.
    empty: Vec<u64>,
    order: Option<&'static str>,
    /// Number of lines outside of the lists.
    others: usize,
    in_other_list: bool,
    has_whole: bool,
}

impl LatencyLists {
    fn read_line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(word) = line.strip_prefix(HEADING) {
            self.end_list();
            let stride = word.trim().trim_end_matches('"').parse().ok().filter(|stride| *stride > 0);
            self.list = Some((stride.ok_or_else(|| format!("line {number}, {line:?}, has no stride"))?, 0));
            self.lists += 1;
            return Ok(());
        }
        match self.list {
            Some(_) if line.trim().is_empty() => self.end_list(),
            Some((stride, points)) => {
                self.read_point(number, line, stride, points)?;
                self.list = Some((stride, points + 1));
            }
            None if line.trim().is_empty() => self.in_other_list = false,
            None => self.read_other(number, line)?,
        }
        Ok(())
    }

    fn end_list(&mut self) {
        if let Some((stride, 0)) = self.list.take() {
            self.empty.push(stride);
        }
    }

    fn read_point(&mut self, number: usize, line: &str, stride: u64, points: usize) -> Result<(), String> {
        let m = parse_point(line, stride, self.order);
        let m = m.ok_or_else(|| format!("line {number}, {line:?}, has no size in MiB and ns"))?;
        let m = m.map_err(|why| format!("line {number}: {why}"))?;
        let size = |m: &Measurement| m.numeric_param(param::SIZE);
        if points > 0 && self.measurements.last().and_then(size) > size(&m) {
            return Err(format!("line {number}: {} is less than the size above it: it is damaged", m.title));
        }
        if !self.known.insert(m.params.clone()) {
            return Err(format!("line {number}: {} is there twice: choose a file for each run", m.title));
        }
        self.measurements.push(m);
        Ok(())
    }

    /// Reads a line outside of the lists.
    fn read_other(&mut self, number: usize, line: &str) -> Result<(), String> {
        self.others += 1;
        if line.starts_with(WHOLE) {
            if self.has_whole {
                return Err(format!(
                    "it has several results, the second from line {number}: choose a file for each"
                ));
            }
            self.has_whole = true;
        }
        self.in_other_list |= is_other_heading(line);
        if let Some((_, order)) = ORDERS.iter().find(|(heading, _)| *heading == line.trim()) {
            self.order = Some(order);
        }
        if !self.in_other_list && parse_point(line, 1, None).is_some() {
            return Err(format!("line {number}, {line:?}, is of a list without a heading: it is damaged"));
        }
        Ok(())
    }

    /// Checks that the last list is whole. An empty line ends it, but for the only list of a call without a stride:
    /// that one ends with the size of the call, which is in MiB.
    fn check_end(&mut self, text: &str) -> Result<(), String> {
        let Some((stride, _)) = self.list else { return Ok(()) };
        let last = self.measurements.last().and_then(|m| m.numeric_param(param::SIZE)).unwrap_or(1);
        let is_of_call = self.lists == 1 && USUAL_STRIDES.contains(&stride) && last.is_multiple_of(1 << 20);
        if !(is_of_call && text.ends_with('\n')) {
            let last = text.lines().count();
            return Err(format!("it ends early, in line {last}: a list ends with an empty line"));
        }
        self.list = None;
        Ok(())
    }
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
fn host_and_kernel(text: &str) -> Option<(&str, &str)> {
    let heading = text.lines().find(|line| line.starts_with(WHOLE))?;
    let (_, machine) = heading.trim().strip_suffix(']')?.split_once("results for Linux ")?;
    let mut words = machine.split(' ');
    Some((words.next()?, words.next()?))
}

/// The point of a line of a list; `None` for another line.
fn parse_point(line: &str, stride: u64, order: Option<&str>) -> Option<Result<Measurement, String>> {
    let [mib, ns] = line.split_whitespace().collect::<Vec<&str>>()[..] else { return None };
    let (mib, ns): (f64, f64) = (mib.parse().ok()?, ns.parse().ok()?);
    if !(mib > 0.0 && mib <= 1e9 && (0.0..=1e9).contains(&ns)) {
        return None;
    }
    if ns == 0.0 {
        return Some(Err("0 ns is no time of a load: it is damaged".to_owned()));
    }
    let size = size_from_mib(mib);
    if size < stride {
        let [size, stride] = [size, stride].map(format_size);
        return Some(Err(format!("a size of {size} cannot have loads {stride} apart: it is damaged")));
    }
    let mut params = params([(param::SIZE, size.into()), (param::STRIDE, stride.into())]);
    let mut title = format!("load, {}, stride {}", format_size(size), format_size(stride));
    if let Some(order) = order {
        params.insert(param::ORDER.to_owned(), order.into());
        title = format!("{title}, {order}");
    }
    let mut histogram = Histogram::new(1);
    histogram.record((ns * 1e3).round() as u64);
    let mut m = sampled_point("imported.lat-mem-rd", params, title, Semantics::Operation, histogram);
    m.sampling = Sampling::Batch { ops: 0 };
    Some(Ok(m))
}

/// The size of so many MiB, with five digits after the point: the sizes of LMbench are multiples of 512 B.
fn size_from_mib(mib: f64) -> u64 {
    let bytes = mib * f64::from(1 << 20);
    let whole = (bytes / 512.0).round() * 512.0;
    let digits = 5e-6 * f64::from(1 << 20) + 0.5;
    (if (bytes - whole).abs() <= digits { whole } else { bytes.round() }) as u64
}
