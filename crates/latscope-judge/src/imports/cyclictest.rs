//! The text of `cyclictest -h`: a row for each µs, a column for each thread, and lines with the totals.

use super::bins::ImportHistogram;
use super::checks::StatedNumber;
use super::cyclictest_lines::{ColumnFigures, ThreadStatus, check_cycles_beyond, is_status, is_stopped};
use super::numbered_lines;
use super::report::{ImportSource, finish_report, sampled_point};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::plan::{ParamValue, params};
use latscope_core::report::{Measurement, Report, Semantics};
use std::collections::BTreeMap;

/// Returns true if a text has the heading of a histogram, or the status lines of a run without one.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| is_heading(line) || is_status(line))
}

const HEADING: &str = "# Histogram";

const TOTAL: &str = "# Total:";

/// Returns true for the heading of the histogram. With -M a movement of the cursor stands before it.
fn is_heading(line: &str) -> bool {
    let is_movement = |before: &str| before.starts_with(['\u{1b}', '\u{fffd}']) && before.ends_with('B');
    line.strip_suffix(HEADING).is_some_and(|before| before.is_empty() || is_movement(before))
}

const UNKNOWN: &[&str] = &[
    "the unit, taken as µs since some wake-up took less than 300 of it",
    "interval",
    "CPUs of the threads",
    "scheduling policy",
    "priority",
    "how the threads wait",
    "clock",
    "missed activations",
];

/// Least plausible wake-up latency, ns. The text has no unit, but no machine wakes a thread this fast: smaller figures
/// are µs.
const LEAST_NS: u64 = 300;

/// Reads the histograms of a run.
///
/// # Errors
/// There is no histogram, its unit cannot be determined, or it is not complete.
pub(super) fn read_output(text: &str) -> Result<Report, String> {
    let table = CyclictestTable::read_table(text)?;
    let woken =
        |thread: &usize| table.overflows[*thread] > 0 || table.columns[*thread].iter().any(|n| *n > 0);
    let mut woken = (0..table.min.len()).filter(woken);
    if woken.all(|thread| table.min[thread] >= LEAST_NS) {
        return Err("it does not say its unit, and no figure is below 300: it may be ns (--nsecs) or µs; \
                    the output of --json says which"
            .to_owned());
    }
    let status = table.status(text)?;
    // What the state of every thread says.
    let is_known = |of: fn(&ThreadStatus) -> Option<u64>| {
        (0..table.min.len()).all(|thread| status.get(&thread).and_then(of).is_some())
    };
    let known = [("interval", is_known(|one| one.interval)), ("priority", is_known(|one| one.priority))];
    let is_unknown = |fact: &&str| !known.contains(&(*fact, true));
    let unknown: Vec<&str> = UNKNOWN.iter().copied().filter(is_unknown).collect();
    let mut report =
        ImportSource { program: "cyclictest", version: None, text, unknown: &unknown }.empty_report();
    let threads = (0..table.columns.len()).map(|thread| table.thread(thread, status.get(&thread)));
    let threads: Result<Vec<_>, String> = threads.collect();
    if table.is_stopped {
        report.plan.notes.push("a latency above the threshold, -b, ended the run".to_owned());
    }
    finish_report(report, threads?)
}

/// The parameter that a real-time priority is. Without one the kernel may wake the thread later, to save energy.
pub(super) fn priority(priority: u64) -> (String, ParamValue) {
    match priority {
        0 => (param::SLACK.to_owned(), "default".into()),
        _ => (param::PRIORITY.to_owned(), priority.into()),
    }
}

/// The table and the lines below it.
struct CyclictestTable {
    /// The values of the rows.
    values: Vec<u64>,
    /// The counts of each thread.
    columns: Vec<Vec<u64>>,
    min: Vec<u64>,
    avg: Vec<u64>,
    max: Vec<u64>,
    overflows: Vec<u64>,
    /// True if each value up to the longest of the histogram has a row.
    has_all_rows: bool,
    /// True if a threshold ended the run.
    is_stopped: bool,
}

/// The numbers of the line below the table that has this name, and the number of the line.
fn summary(lines: &[(usize, &str)], name: &str) -> Result<(usize, Vec<u64>), String> {
    let mut all = lines.iter().filter_map(|(number, line)| Some((*number, line.strip_prefix(name)?)));
    let (at, line) = all.next().ok_or_else(|| format!("it has no line {name:?}: it is cut off"))?;
    if let Some((number, _)) = all.next() {
        return Err(format!("line {number}: {name:?} is there twice"));
    }
    Ok((at, parse_numbers(line).ok_or_else(|| format!("line {at}: {name:?} has no numbers"))?))
}

impl CyclictestTable {
    fn read_table(text: &str) -> Result<CyclictestTable, String> {
        let lines: Vec<(usize, &str)> =
            numbered_lines(text).skip_while(|(_, line)| !is_heading(line)).skip(1).collect();
        if lines.is_empty() {
            return Err("it has no histogram, only the least, the mean and the largest figure: \
                        run cyclictest with -h 1000, or jitterdebugger with -o"
                .to_owned());
        }
        if let Some((number, _)) = lines.iter().find(|(_, line)| is_heading(line)) {
            return Err(format!(
                "it has several histograms, the second from line {number}: choose a file for each run"
            ));
        }
        // Newer releases print neither this line nor rows that are empty.
        let totals = lines.iter().any(|(_, line)| line.starts_with(TOTAL));
        let totals = totals.then(|| summary(&lines, TOTAL)).transpose()?;
        let (_, min) = summary(&lines, "# Min Latencies:")?;
        let (_, avg) = summary(&lines, "# Avg Latencies:")?;
        let (_, max) = summary(&lines, "# Max Latencies:")?;
        let (_, overflows) = summary(&lines, "# Histogram Overflows:")?;
        let threads = min.len();
        let columns_stated = totals.as_ref().map_or(max.len(), |(_, totals)| totals.len());
        if columns_stated == threads + 1 {
            return Err("it is of --histofall, whose last column is the sum of all threads: \
                        use --histogram"
                .to_owned());
        }
        let is_of_all = |line: &&Vec<u64>| line.len() == threads;
        let stated = totals.iter().map(|(_, totals)| totals).chain([&avg, &max, &overflows]);
        if threads == 0 || !stated.into_iter().all(|line| is_of_all(&line)) {
            return Err(
                "its lines are not of the same number of threads: it is damaged or cut off".to_owned()
            );
        }
        let mut table = CyclictestTable {
            values: Vec::new(),
            columns: vec![Vec::new(); threads],
            min,
            avg,
            max,
            overflows,
            has_all_rows: totals.is_some(),
            is_stopped: false,
        };
        table.read_rows(&lines)?;
        let (at, totals) = totals.unwrap_or_default();
        for (column, total) in table.columns.iter().zip(totals) {
            if column.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) != Some(total) {
                return Err(format!(
                    "line {at}: its rows do not add up to its totals: it is damaged or cut off"
                ));
            }
        }
        let columns: Vec<ColumnFigures> = (0..threads).map(|thread| table.column_figures(thread)).collect();
        check_cycles_beyond(&lines, &columns)?;
        let all: Vec<(usize, &str)> = numbered_lines(text).collect();
        table.is_stopped = is_stopped(&all, table.max.iter().copied().max().unwrap_or(0))?;
        Ok(table)
    }

    /// The state of the threads, by their numbers. It can be that of the columns.
    fn status(&self, text: &str) -> Result<BTreeMap<usize, ThreadStatus>, String> {
        let status = ThreadStatus::last_of_threads(numbered_lines(text))?;
        for (thread, one) in &status {
            let column = (*thread < self.columns.len()).then(|| self.column_figures(*thread));
            one.check_against(column.as_ref())?;
        }
        Ok(status)
    }

    fn column_figures(&self, thread: usize) -> ColumnFigures {
        let (min, avg, max) = (self.min[thread], self.avg[thread], self.max[thread]);
        let overflow = self.overflows[thread];
        let count = self.columns[thread].iter().fold(overflow, |sum, n| sum.saturating_add(*n));
        ColumnFigures { count, min, avg, max, overflow }
    }

    /// The point of a thread.
    fn thread(&self, thread: usize, status: Option<&ThreadStatus>) -> Result<Measurement, String> {
        let counts: Vec<(u64, u64)> =
            self.values.iter().copied().zip(self.columns[thread].iter().copied()).collect();
        let counted = ImportHistogram {
            tick_ps: 1_000_000,
            bins: None,
            counts: &counts,
            overflow: self.overflows[thread],
            overflow_from: self
                .values
                .last()
                .filter(|_| self.has_all_rows)
                .map(|last| last.saturating_add(1)),
            count: None,
            min: self.min[thread],
            max: self.max[thread],
            mean: Some(StatedNumber::cut_off(self.avg[thread] as f64)),
        };
        let histogram = counted.histogram().map_err(|why| format!("thread {thread}: {why}"))?;
        let mut params = params([(param::THREAD, (thread as u64).into())]);
        let interval = status.and_then(|status| status.interval?.checked_mul(1_000));
        params.extend(interval.map(|ns| (param::INTERVAL.to_owned(), ParamValue::from(ns))));
        params.extend(status.and_then(|status| status.priority).map(priority));
        let title = format!("wake-up, lateness, thread {thread}");
        Ok(sampled_point(ids::WAKE_TIMER, params, title, Semantics::OneWay, histogram))
    }

    /// Reads the rows. Every value from the first to the last has one, unless empty ones are not printed, and none
    /// stands behind the lines of totals.
    fn read_rows(&mut self, lines: &[(usize, &str)]) -> Result<(), String> {
        let is_row = |line: &str| line.starts_with(|c: char| c.is_ascii_digit());
        let rows = lines.iter().position(|(_, line)| line.starts_with('#')).unwrap_or(lines.len());
        let is_known = |line: &str| line.is_empty() || line.starts_with('#') || is_status(line);
        if let Some((number, line)) =
            lines[rows..].iter().find(|(_, line)| is_row(line) || !is_known(line.trim()))
        {
            return Err(format!("line {number}, {line:?}, follows the end of its table: it is damaged"));
        }
        for (number, line) in &lines[..rows] {
            let row = parse_numbers(line).filter(|row| row.len() == self.columns.len() + 1);
            let is_next = |row: &Vec<u64>| match self.values.last() {
                Some(last) if self.has_all_rows => last.checked_add(1) == Some(row[0]),
                Some(last) => *last < row[0],
                None => true,
            };
            let row = row.filter(is_next);
            let row =
                row.ok_or_else(|| format!("line {number}, {line:?}, is not the next row of its histogram"))?;
            self.values.push(row[0]);
            for (column, n) in self.columns.iter_mut().zip(&row[1..]) {
                column.push(*n);
            }
        }
        Ok(())
    }
}

/// All words of a line as numbers.
fn parse_numbers(line: &str) -> Option<Vec<u64>> {
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}
