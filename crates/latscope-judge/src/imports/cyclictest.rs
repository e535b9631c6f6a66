//! The text of `cyclictest -h`: a row for each µs, a column for each thread, and lines with the totals.

use super::bins::ImportHistogram;
use super::checks::StatedNumber;
use super::numbered_lines;
use super::report::{ImportSource, finish, measurement};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::plan::params;
use latscope_core::report::{Report, Semantics};

/// Returns true if a text has the heading of a histogram, or the status lines of a run without one.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| line == HEADING || is_status(line))
}

/// Start of a line of a run that a threshold ended.
const BREAK: &str = "# Break ";

const HEADING: &str = "# Histogram";

/// Returns true for a line such as `T: 0 (25807) P:80 I:1000 C:  500 Min: …`, also of jitterdebugger.
fn is_status(line: &str) -> bool {
    line.starts_with("T: ") && line.contains(" Min:") && line.contains(" Max:")
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
pub(super) fn read(text: &str) -> Result<Report, String> {
    let table = CyclictestTable::read(text)?;
    let woken =
        |thread: &usize| table.overflows[*thread] > 0 || table.columns[*thread].iter().any(|n| *n > 0);
    let mut woken = (0..table.min.len()).filter(woken);
    if woken.all(|thread| table.min[thread] >= LEAST_NS) {
        return Err("it does not say its unit, and no figure is below 300: it may be ns (--nsecs) or µs; \
                    the output of --json says which"
            .to_owned());
    }
    let mut report = ImportSource { program: "cyclictest", version: None, text, unknown: UNKNOWN }.report();
    let threads = (0..table.columns.len()).map(|thread| {
        let counts: Vec<(u64, u64)> =
            table.values.iter().copied().zip(table.columns[thread].iter().copied()).collect();
        let counted = ImportHistogram {
            tick_ps: 1_000_000,
            bins: None,
            counts: &counts,
            overflow: table.overflows[thread],
            overflow_from: table.values.last().map(|last| last.saturating_add(1)),
            count: None,
            min: table.min[thread],
            max: table.max[thread],
            mean: Some(StatedNumber::cut_off(table.avg[thread] as f64)),
        };
        let histogram = counted.histogram().map_err(|why| format!("thread {thread}: {why}"))?;
        let params = params([(param::THREAD, (thread as u64).into())]);
        let title = format!("wake-up, lateness, thread {thread}");
        Ok(measurement(ids::WAKE_TIMER, params, title, Semantics::OneWay, histogram))
    });
    let threads: Result<Vec<_>, String> = threads.collect();
    if text.lines().any(|line| line.starts_with(BREAK)) {
        report.plan.notes.push("a latency above the threshold, -b, ended the run".to_owned());
    }
    finish(report, threads?)
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
}

/// The numbers of the line below the table that has this name.
fn summary(lines: &[(usize, &str)], name: &str) -> Result<Vec<u64>, String> {
    let mut all = lines.iter().filter_map(|(number, line)| Some((number, line.strip_prefix(name)?)));
    let (_, line) = all.next().ok_or_else(|| format!("it has no line {name:?}: it is cut off"))?;
    if let Some((number, _)) = all.next() {
        return Err(format!("line {number}: {name:?} is there twice"));
    }
    numbers(line).ok_or_else(|| format!("its line {name:?} has no numbers"))
}

impl CyclictestTable {
    fn read(text: &str) -> Result<CyclictestTable, String> {
        let lines: Vec<(usize, &str)> =
            numbered_lines(text).skip_while(|(_, line)| *line != HEADING).skip(1).collect();
        if lines.is_empty() {
            return Err("it has no histogram, only the least, the mean and the largest figure: \
                        run cyclictest with -h 1000, or jitterdebugger with -o"
                .to_owned());
        }
        if let Some((number, _)) = lines.iter().find(|(_, line)| *line == HEADING) {
            return Err(format!(
                "it has several histograms, the second from line {number}: choose a file for each run"
            ));
        }
        let totals = summary(&lines, "# Total:")?;
        let min = summary(&lines, "# Min Latencies:")?;
        let avg = summary(&lines, "# Avg Latencies:")?;
        let max = summary(&lines, "# Max Latencies:")?;
        let overflows = summary(&lines, "# Histogram Overflows:")?;
        let threads = min.len();
        if totals.len() == threads + 1 {
            return Err("it is of --histofall, whose last column is the sum of all threads: \
                        use --histogram"
                .to_owned());
        }
        if threads == 0 || [&totals, &avg, &max, &overflows].iter().any(|line| line.len() != threads) {
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
        };
        table.read_rows(&lines)?;
        for (column, total) in table.columns.iter().zip(totals) {
            if column.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) != Some(total) {
                return Err("its rows do not add up to its totals: it is damaged or cut off".to_owned());
            }
        }
        Ok(table)
    }

    /// Reads the rows. Every value from the first to the last has one, and none stands behind the lines of totals.
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
            let row = numbers(line).filter(|row| row.len() == self.columns.len() + 1);
            let row =
                row.filter(|row| self.values.last().is_none_or(|last| last.checked_add(1) == Some(row[0])));
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
fn numbers(line: &str) -> Option<Vec<u64>> {
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}
