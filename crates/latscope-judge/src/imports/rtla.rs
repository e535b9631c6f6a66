//! The tables of `rtla timerlat hist` and `rtla osnoise hist`: a row for each bin that is not empty, a column for
//! each CPU and context.

use super::bins::Counted;
use super::report::{Source, finish, measurement};
use super::whole_lines;
use latscope_core::catalogue::ids;
use latscope_core::histogram::Bins;
use latscope_core::param;
use latscope_core::plan::{Params, params};
use latscope_core::quality::{Level, Reason};
use latscope_core::report::{Report, Semantics};

const TIMERLAT: &str = "# RTLA timerlat histogram";
const OSNOISE: &str = "# RTLA osnoise histogram";

pub(super) fn is_timerlat(text: &str) -> bool {
    text.lines().any(|line| line.trim() == TIMERLAT)
}

pub(super) fn is_osnoise(text: &str) -> bool {
    text.lines().any(|line| line.trim() == OSNOISE)
}

const UNKNOWN: [&str; 2] = ["version of rtla", "size of a bin, taken from the distances of the rows"];

/// Reads the table of timerlat.
///
/// # Errors
/// The table is not complete.
pub(super) fn timerlat(text: &str) -> Result<Report, String> {
    let unknown: Vec<&str> =
        UNKNOWN.into_iter().chain(["interval", "scheduling policy", "priority"]).collect();
    read(text, TIMERLAT, "rtla timerlat", &unknown, |column| {
        let (context, cpu) = column.split_once('-')?;
        let (word, words) = match context {
            "IRQ" => ("irq", "interrupt"),
            "Thr" => ("thread", "thread"),
            "Usr" => ("user", "return to user space"),
            _ => return None,
        };
        let cpu: u64 = cpu.parse().ok()?;
        let params = params([(param::CONTEXT, word.into()), (param::CPU, cpu.into())]);
        Some((ids::WAKE_TIMERLAT, params, format!("timer latency, {words}, CPU {cpu}"), Semantics::OneWay))
    })
}

/// Reads the table of osnoise.
///
/// # Errors
/// The table is not complete.
pub(super) fn osnoise(text: &str) -> Result<Report, String> {
    let unknown: Vec<&str> = UNKNOWN.into_iter().chain(["runtime", "period", "threshold"]).collect();
    read(text, OSNOISE, "rtla osnoise", &unknown, |column| {
        let cpu: u64 = column.strip_prefix("CPU-")?.parse().ok()?;
        let params = params([(param::CPU, cpu.into())]);
        Some((ids::NOISE_OSNOISE, params, format!("osnoise on CPU {cpu}"), Semantics::Operation))
    })
}

type Named = (&'static str, Params, String, Semantics);

fn read(
    text: &str,
    heading: &str,
    program: &'static str,
    unknown: &[&str],
    name: impl Fn(&str) -> Option<Named>,
) -> Result<Report, String> {
    let table = Table::read(text, heading)?;
    let report = Source { program, version: None, text, unknown }.report();
    let mut measurements = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let (probe, params, title, times) =
            name(column).ok_or_else(|| format!("its column {column:?} is not known"))?;
        if let Some(histogram) = table.counted(at).map_err(|why| format!("column {column}: {why}"))? {
            measurements.push(measurement(probe, params, title, times, histogram));
        }
    }
    if let Some(line) = text.lines().find(|line| line.contains("events missed")) {
        for m in &mut measurements {
            m.lower(Reason::new(Level::Degraded, "trace-lost-events", line.trim(), ""));
        }
    }
    finish(report, measurements)
}

/// The table and the lines below it.
struct Table<'a> {
    tick_ps: u64,
    columns: Vec<&'a str>,
    /// The lower ends of the bins and the counts of each column.
    rows: Vec<(u64, Vec<u64>)>,
    /// The lines `over`, `count`, `min`, `avg` and `max`; unknown values are `None`.
    below: [Vec<Option<u64>>; 5],
}

/// The lines below the rows, in this order.
const BELOW: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

impl<'a> Table<'a> {
    fn read(text: &'a str, heading: &str) -> Result<Table<'a>, String> {
        if whole_lines(text).filter(|line| line.trim() == heading).count() > 1 {
            return Err("it has several tables: choose a file for each run".to_owned());
        }
        let mut lines = whole_lines(text).skip_while(|line| line.trim() != heading).skip(1);
        let mut table =
            Table { tick_ps: 0, columns: Vec::new(), rows: Vec::new(), below: Default::default() };
        for line in lines.by_ref() {
            let mut words = line.split_whitespace();
            if let Some(unit) = line.trim().strip_prefix("# Time unit is ") {
                table.tick_ps = match unit {
                    "microseconds (us)" => 1_000_000,
                    "nanoseconds (ns)" => 1_000,
                    _ => return Err(format!("its time unit is {unit:?}, which is not known")),
                };
            } else if words.next() == Some("Index") {
                table.columns = words.collect();
                break;
            }
        }
        if table.tick_ps == 0 || table.columns.is_empty() {
            return Err("it has no time unit, or no columns: nothing was counted, or it is cut off \
                        (--no-index is not read)"
                .to_owned());
        }
        for line in lines {
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            if let Some(at) = BELOW.iter().position(|name| *name == first) {
                table.below[at] = words.map(cut_off).collect();
                if at + 1 == BELOW.len() {
                    break;
                }
            } else {
                let counts = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
                let row = first.parse::<u64>().ok().zip(counts);
                let row = row.filter(|(value, counts)| {
                    counts.len() == table.columns.len()
                        && table.rows.last().is_none_or(|(last, _)| last < value)
                });
                table.rows.push(row.ok_or_else(|| format!("the line {line:?} is no row of its table"))?);
            }
        }
        if table.below.iter().all(|line| line.len() == table.columns.len()) {
            return Ok(table);
        }
        Err("its lines over, count, min, avg and max are not of all columns: it is cut off \
             (--no-summary is not read)"
            .to_owned())
    }

    /// The histogram of a column; `None` if nothing was counted.
    fn counted(&self, column: usize) -> Result<Option<latscope_core::histogram::Histogram>, String> {
        let [overflow, count, min, avg, max] = [0, 1, 2, 3, 4].map(|line| self.below[line][column]);
        let (overflow, count) = overflow.zip(count).ok_or("it has no number of events")?;
        if count == 0 {
            return Ok(None);
        }
        let counts: Vec<(u64, u64)> =
            self.rows.iter().map(|(value, counts)| (*value, counts[column])).collect();
        let sum = counts.iter().try_fold(overflow, |sum, (_, n)| sum.checked_add(*n));
        if sum != Some(count) {
            return Err(format!("its rows do not add up to its count, {count}: it is damaged or cut off"));
        }
        let (min, max) = min.zip(max).ok_or("it has no smallest and largest value")?;
        // All rows are multiples of the size of a bin: it is at most their greatest common divisor.
        let width =
            self.rows.iter().fold(0, |common, (value, _)| greatest_common_divisor(common, *value)).max(1);
        let counted = Counted {
            tick_ps: self.tick_ps,
            bins: Some(Bins { width, per_octave: None }),
            counts: &counts,
            overflow,
            min,
            max,
            mean: avg.map(|avg| avg as f64).filter(|_| overflow > 0 || width > 1),
        };
        counted.histogram().map(Some)
    }
}

/// A number without the digits after its point.
fn cut_off(word: &str) -> Option<u64> {
    word.split('.').next()?.parse().ok()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
