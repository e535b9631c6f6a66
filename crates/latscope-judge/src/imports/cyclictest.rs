//! The text of `cyclictest -h`: a row for each µs, a column for each thread, and lines with the totals.

use super::bins::Counted;
use super::report::{Source, finish, measurement};
use super::whole_lines;
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::plan::params;
use latscope_core::report::{Report, Semantics};

/// Returns true if a text has the heading of a histogram, or the status lines of a run without one.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| line == HEADING || is_status(line))
}

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
    let table = Table::read(text)?;
    if table.min.iter().all(|least| *least >= LEAST_NS) {
        return Err("it does not say its unit, and no figure is below 300: it may be ns (--nsecs) or µs; \
                    the output of --json says which"
            .to_owned());
    }
    let report = Source { program: "cyclictest", version: None, text, unknown: UNKNOWN }.report();
    let threads = (0..table.columns.len()).map(|thread| {
        let counts: Vec<(u64, u64)> =
            table.values.iter().copied().zip(table.columns[thread].iter().copied()).collect();
        let counted = Counted {
            tick_ps: 1_000_000,
            bins: None,
            counts: &counts,
            overflow: table.overflows[thread],
            min: table.min[thread],
            max: table.max[thread],
            mean: Some(table.avg[thread] as f64).filter(|_| table.overflows[thread] > 0),
        };
        let histogram = counted.histogram().map_err(|why| format!("thread {thread}: {why}"))?;
        let params = params([(param::THREAD, (thread as u64).into())]);
        let title = format!("wake-up, lateness, thread {thread}");
        Ok(measurement(ids::WAKE_TIMER, params, title, Semantics::OneWay, histogram))
    });
    let threads: Result<Vec<_>, String> = threads.collect();
    finish(report, threads?)
}

/// The table and the lines below it.
struct Table {
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
fn summary(lines: &[&str], name: &str) -> Result<Vec<u64>, String> {
    let line = lines.iter().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| format!("it has no line {name:?}: it is cut off"))?;
    numbers(line).ok_or_else(|| format!("its line {name:?} has no numbers"))
}

impl Table {
    fn read(text: &str) -> Result<Table, String> {
        let lines: Vec<&str> = whole_lines(text).skip_while(|line| *line != HEADING).skip(1).collect();
        if lines.is_empty() {
            return Err("it has no histogram, only the least, the mean and the largest figure: \
                        run cyclictest with -h 1000, or jitterdebugger with -o"
                .to_owned());
        }
        if lines.contains(&HEADING) {
            return Err("it has several histograms: choose a file for each run".to_owned());
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
        let (mut values, mut columns) = (Vec::new(), vec![Vec::new(); threads]);
        for line in lines.iter().take_while(|line| !line.starts_with('#')) {
            let row = numbers(line).filter(|row| row.len() == threads + 1);
            let row = row.filter(|row| values.last().is_none_or(|last| *last < row[0]));
            let row = row.ok_or_else(|| format!("the line {line:?} is no row of its histogram"))?;
            values.push(row[0]);
            for (column, n) in columns.iter_mut().zip(&row[1..]) {
                column.push(*n);
            }
        }
        for (column, total) in columns.iter().zip(totals) {
            if column.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) != Some(total) {
                return Err("its rows do not add up to its totals: it is damaged or cut off".to_owned());
            }
        }
        Ok(Table { values, columns, min, avg, max, overflows })
    }
}

/// All words of a line as numbers.
fn numbers(line: &str) -> Option<Vec<u64>> {
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}
