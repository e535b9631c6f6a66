//! Lines of cyclictest around its histogram: the state of its threads, the cycles beyond, and what ended the run.

use latscope_core::units::{count_with_noun, format_count};
use std::collections::{BTreeMap, BTreeSet};

/// Returns true for a line such as `T: 0 (25807) P:80 I:1000 C:  500 Min: …`, also of jitterdebugger.
pub(super) fn is_status(line: &str) -> bool {
    line.starts_with("T:") && line.contains(" Min:") && line.contains(" Max:")
}

/// Figures of a column that the lines below the table state.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnFigures {
    pub count: u64,
    pub min: u64,
    pub avg: u64,
    pub max: u64,
    pub overflow: u64,
}

/// A line with the state of a thread while the program ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadStatus {
    line: usize,
    /// Real-time priority, 0 without one.
    pub priority: Option<u64>,
    /// Interval of the thread, µs.
    pub interval: Option<u64>,
    count: u64,
    min: u64,
    avg: u64,
    max: u64,
}

impl ThreadStatus {
    /// Reads the last line of each thread: it repeats those before it.
    ///
    /// # Errors
    /// A line lacks a figure.
    pub(super) fn last_of_threads(
        lines: impl Iterator<Item = (usize, impl AsRef<str>)>,
    ) -> Result<BTreeMap<usize, ThreadStatus>, String> {
        let mut threads = BTreeMap::new();
        for (number, line) in lines.filter(|(_, line)| is_status(line.as_ref())) {
            let line = line.as_ref();
            let of = ThreadStatus::parse_line(number, line);
            let (thread, status) =
                of.ok_or_else(|| format!("line {number}, {line:?}, lacks a figure of its thread"))?;
            threads.insert(thread, status);
        }
        Ok(threads)
    }

    fn parse_line(line: usize, text: &str) -> Option<(usize, ThreadStatus)> {
        let word = |name: &str| text.split_once(name)?.1.split_whitespace().next();
        let number = |name: &str| word(name)?.parse::<u64>().ok();
        let [count, min, avg, max] = [" C:", " Min:", " Avg:", " Max:"].map(number);
        let (priority, interval) = (number(" P:"), number(" I:"));
        let (count, min, avg, max) = (count?, min?, avg?, max?);
        let thread = word("T:")?.parse().ok()?;
        Some((thread, ThreadStatus { line, priority, interval, count, min, avg, max }))
    }

    /// Checks the line against the column of its thread. It may be older than the end of the run: the count and the
    /// extremes grow.
    ///
    /// # Errors
    /// The line cannot be of the same thread.
    pub(super) fn check_against(&self, column: Option<&ColumnFigures>) -> Result<(), String> {
        let column = column
            .ok_or_else(|| format!("line {} is of a thread that its histogram does not have", self.line))?;
        let refused = |what: &str, stated: u64, own: u64| {
            let [stated, own] = [stated, own].map(format_count);
            Err(format!("line {}: its {what}, {stated}, contradicts its histogram with {own}", self.line))
        };
        if self.count > column.count {
            return refused("count", self.count, column.count);
        }
        let is_last = self.count == column.count;
        if self.max > column.max || is_last && self.max != column.max {
            return refused("Max", self.max, column.max);
        }
        if self.count == 0 {
            return Ok(());
        }
        if self.min < column.min || is_last && self.min != column.min {
            return refused("Min", self.min, column.min);
        }
        if !self.can_be_mean(column) {
            return refused("Avg", self.avg, column.avg);
        }
        Ok(())
    }

    /// Returns true if the mean can be that of the first values of a column. The sum of an older line may have one
    /// value more than its count: the thread goes on while another prints.
    fn can_be_mean(&self, column: &ColumnFigures) -> bool {
        if self.count == column.count {
            return self.avg == column.avg;
        }
        let [avg, min, max, count] = [self.avg, self.min, self.max, self.count].map(u128::from);
        let is_inside = avg >= min && avg * count <= max * (count + 1);
        let rest = u128::from(column.count) - count - 1;
        let least = avg * count + rest * u128::from(column.min);
        is_inside && least <= u128::from(column.count) * (u128::from(column.avg) + 1)
    }
}

/// Start of a line of a run that a threshold ended.
const BREAK: &str = "# Break ";

/// Returns true if a threshold ended the run.
///
/// # Errors
/// The value that ended it is none of the run, whose largest is `max`.
pub(super) fn is_stopped(lines: &[(usize, &str)], max: u64) -> Result<bool, String> {
    for (number, line) in lines {
        let Some(value) = line.strip_prefix("# Break value:") else { continue };
        let value = value.trim().parse::<u64>();
        let value = value.map_err(|_| format!("line {number}, {line:?}, has no number"))?;
        if value > max {
            return Err(format!(
                "line {number}: {value} ended the run, and its largest value is {max}: it is damaged"
            ));
        }
    }
    Ok(lines.iter().any(|(_, line)| line.starts_with(BREAK)))
}

/// Checks the lists of the cycles whose values were beyond the histogram: `# Thread 0: 00012 00345 # 00117 others`.
///
/// # Errors
/// A list is not of a column, or does not have as many cycles as the column has values beyond.
pub(super) fn check_cycles_beyond(lines: &[(usize, &str)], columns: &[ColumnFigures]) -> Result<(), String> {
    let mut once = BTreeSet::new();
    for (number, line) in lines {
        let list = line.strip_prefix("# Thread ").and_then(|rest| rest.split_once(':'));
        let Some((thread, list)) = list.and_then(|(word, list)| Some((word.parse::<usize>().ok()?, list)))
        else {
            continue;
        };
        let column = columns.get(thread).filter(|_| once.insert(thread)).ok_or_else(|| {
            format!("line {number}: thread {thread} is there twice, or not in its histogram: it is damaged")
        })?;
        check_cycles(list, column).map_err(|why| format!("line {number}: {why}: it is damaged"))?;
    }
    Ok(())
}

fn check_cycles(list: &str, column: &ColumnFigures) -> Result<(), String> {
    let (listed, others) = list.split_once('#').unwrap_or((list, ""));
    let listed: Option<Vec<u64>> = listed.split_whitespace().map(|word| word.parse().ok()).collect();
    let listed = listed.ok_or("it has a cycle that is no number")?;
    let others = match others.trim() {
        "" => 0,
        others => others
            .strip_suffix("others")
            .and_then(|others| others.trim().parse::<u64>().ok())
            .ok_or("it has no number of others")?,
    };
    if (listed.len() as u64).checked_add(others) != Some(column.overflow) {
        let beyond = count_with_noun(column.overflow, "value");
        return Err(format!("it lists {} cycles and {others} others, of {beyond} beyond", listed.len()));
    }
    let is_ascending = listed.windows(2).all(|pair| pair[0] < pair[1]);
    match listed.last() {
        Some(last) if !is_ascending || *last >= column.count => {
            Err(format!("its cycles do not ascend below {}", format_count(column.count)))
        }
        _ => Ok(()),
    }
}
