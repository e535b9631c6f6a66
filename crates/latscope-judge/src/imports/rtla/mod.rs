//! The tables of `rtla timerlat hist` and `rtla osnoise hist`: a row for each bin that is not empty, a column for
//! each CPU and context.

mod section;

use super::bins::ImportHistogram;
use super::checks::StatedNumber;
use super::numbered_lines;
use super::report::{ImportSource, UNEVENTFUL, finish_report, note_watched, sampled_point};
use latscope_core::catalogue::ids;
use latscope_core::histogram::{Histogram, HistogramBinning};
use latscope_core::param;
use latscope_core::plan::{Params, params};
use latscope_core::quality::{NOTHING_MEASURED, QualityLevel, Reason};
use latscope_core::report::{Measurement, Report, Semantics};
use section::{ALL, CpuSection, StopAnalysis, check_contexts};
use std::collections::BTreeSet;

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
    read_tracer(text, TIMERLAT, "rtla timerlat", &unknown, |column| {
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
    read_tracer(text, OSNOISE, "rtla osnoise", &unknown, |column| {
        let cpu: u64 = column.strip_prefix("CPU-")?.parse().ok()?;
        let params = params([(param::CPU, cpu.into())]);
        Some((ids::NOISE_OSNOISE, params, format!("osnoise on CPU {cpu}"), Semantics::Operation))
    })
}

type RtlaColumnPoint = (&'static str, Params, String, Semantics);

fn read_tracer(
    text: &str,
    heading: &str,
    program: &'static str,
    unknown: &[&str],
    name: impl Fn(&str) -> Option<RtlaColumnPoint>,
) -> Result<Report, String> {
    let table = RtlaHistogramTable::read_table(text, heading)?;
    // The kernel counts osnoise, and rtla knows of each sample the lower end of its bin only.
    let is_osnoise = heading == OSNOISE;
    let mut report = ImportSource { program, version: None, text, unknown }.empty_report();
    let mut measurements = Vec::new();
    if table.columns.is_empty() {
        let title = "osnoise on all CPUs that were watched".to_owned();
        let nothing = Histogram::new(table.tick_ps);
        measurements.push(sampled_point(
            ids::NOISE_OSNOISE,
            params([]),
            title,
            Semantics::Operation,
            nothing,
        ));
    }
    for (at, column) in table.columns.iter().enumerate() {
        let (probe, params, title, times) =
            name(column).ok_or_else(|| format!("its column {column:?} is not known"))?;
        // The figures of a column are in successive lines.
        let place = |why| {
            let first = table.end.saturating_sub(BELOW.len() - 1);
            format!("lines {first} to {}, column {column}: {why}", table.end)
        };
        let histogram = table.column_histogram(at, is_osnoise).map_err(place)?;
        measurements.push(sampled_point(probe, params, title, times, histogram));
    }
    for (at, us) in &table.beyond {
        let text = format!("a latency of {us} µs ended the run, and the histogram lacks it");
        measurements[*at].lower(Reason::new(QualityLevel::Degraded, "contradictory", text, ""));
    }
    // A CPU without noise has no column.
    let is_beyond = |m: &Measurement| is_osnoise && !table.columns.is_empty() && m.histogram.count() == 0;
    for m in measurements.iter_mut().filter(|m| is_beyond(m)) {
        let text = "all of its noise is beyond the histogram";
        m.lower(Reason::new(QualityLevel::Unsupported, NOTHING_MEASURED, text, "a larger -E or -b"));
    }
    for m in measurements.iter().filter(|_| is_osnoise && table.columns.is_empty()) {
        report.plan.notes.push(format!("{}: none was counted", m.title));
    }
    for m in &mut measurements {
        note_watched(m, table.seconds as f64)?;
        if is_osnoise && table.columns.is_empty() {
            m.lower(Reason::new(QualityLevel::Ok, UNEVENTFUL, "rtla counted no noise", ""));
        }
        if let Some(line) = table.lost {
            m.lower(Reason::new(QualityLevel::Degraded, "trace-lost-events", line.trim(), ""));
        }
    }
    if table.is_stopped {
        report.plan.notes.push("a latency above the threshold ended the run".to_owned());
    }
    finish_report(report, measurements)
}

/// The table and the lines below it.
#[derive(Default)]
pub(super) struct RtlaHistogramTable<'a> {
    pub tick_ps: u64,
    /// Duration of the run in whole seconds; 0 if it is not stated.
    seconds: u64,
    pub columns: Vec<&'a str>,
    /// The lower ends of the bins and the counts of each column.
    pub rows: Vec<(u64, Vec<u64>)>,
    /// The lines `over`, `count`, `min`, `avg` and `max`; unknown values are `None`.
    below: [Option<Vec<Option<StatedNumber>>>; 5],
    /// Number of the last of these lines.
    end: usize,
    /// The line that says how many events were missed.
    pub lost: Option<&'a str>,
    /// True if a threshold ended the run.
    is_stopped: bool,
    /// Columns whose histogram lacks the latency that ended the run, µs, by the analysis.
    beyond: Vec<(usize, f64)>,
}

/// The lines below the rows, in this order.
const BELOW: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

/// Returns the place in [`BELOW`] of a line's name, and the rest of the line. A number of nine digits follows its name
/// without a space.
fn below(line: &str) -> Option<(usize, &str)> {
    let names = BELOW.iter().enumerate();
    names.filter_map(|(at, name)| Some((at, line.trim_start().strip_prefix(name)?))).next()
}

impl<'a> RtlaHistogramTable<'a> {
    fn read_table(text: &'a str, heading: &str) -> Result<RtlaHistogramTable<'a>, String> {
        let is_heading = |line: &str| line.trim() == heading;
        if let Some((number, _)) = numbered_lines(text).filter(|(_, line)| is_heading(line)).nth(1) {
            return Err(format!(
                "it has several tables, the second from line {number}: choose a file for each run"
            ));
        }
        let mut table = RtlaHistogramTable {
            lost: text.lines().find(|line| line.contains(LOST)),
            ..RtlaHistogramTable::default()
        };
        let mut lines = numbered_lines(text).skip_while(|(_, line)| !is_heading(line)).skip(1);
        if !table.read_head(&mut lines)? {
            return Err(
                "it has no time unit, or no columns: it is cut off (--no-index is not read)".to_owned()
            );
        }
        table.read_rows(&mut lines)?;
        let is_whole =
            |line: &Option<Vec<_>>| line.as_ref().is_some_and(|line| line.len() == table.columns.len());
        if !table.below.iter().all(is_whole) {
            return Err("its lines over, count, min, avg and max are not of all columns: it is cut off \
                        (--no-summary is not read)"
                .to_owned());
        }
        if table.columns.is_empty() && heading != OSNOISE {
            return Err("no thread was woken: there is no figure in it".to_owned());
        }
        table.read_rest(&mut lines)?;
        check_contexts(&table)?;
        Ok(table)
    }

    /// Reads the lines up to the names of the columns. Returns false if a part of them is missing.
    fn read_head(&mut self, lines: &mut dyn Iterator<Item = (usize, &'a str)>) -> Result<bool, String> {
        for (number, line) in lines {
            let mut words = line.split_whitespace();
            if let Some(unit) = line.trim().strip_prefix("# Time unit is ") {
                self.tick_ps = match unit {
                    "microseconds (us)" => 1_000_000,
                    "nanoseconds (ns)" => 1_000,
                    _ => return Err(format!("line {number}: its time unit is {unit:?}, which is not known")),
                };
            } else if let Some(duration) = line.trim().strip_prefix("# Duration:") {
                let of = seconds(duration);
                self.seconds =
                    of.ok_or_else(|| format!("line {number}: {:?} is no duration", duration.trim()))?;
            } else if words.next() == Some("Index") {
                self.columns = words.collect();
                let mut once = BTreeSet::new();
                if let Some(column) = self.columns.iter().find(|column| !once.insert(**column)) {
                    return Err(format!("line {number}: column {column} is there twice"));
                }
                return Ok(self.tick_ps > 0);
            }
        }
        Ok(false)
    }

    /// Reads the rows, and the lines below them up to the last.
    fn read_rows(&mut self, lines: &mut dyn Iterator<Item = (usize, &'a str)>) -> Result<(), String> {
        for (number, line) in lines {
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            if let Some((at, rest)) = below(line) {
                let mut values: Vec<Option<StatedNumber>> =
                    rest.split_whitespace().map(StatedNumber::from_word).collect();
                if self.columns.is_empty() && values.iter().flatten().all(|number| number.value == 0.0) {
                    values.clear();
                }
                if self.below[at].is_some() || values.len() != self.columns.len() {
                    return Err(format!("line {number}, {line:?}: it is there twice, or not of all columns"));
                }
                self.below[at] = Some(values);
                self.end = number;
                if at + 1 == BELOW.len() {
                    return Ok(());
                }
                continue;
            }
            let counts = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
            let row = first.parse::<u64>().ok().zip(counts);
            let row = row.filter(|(value, counts)| {
                !counts.is_empty()
                    && counts.len() == self.columns.len()
                    && self.below.iter().all(Option::is_none)
                    && self.rows.last().is_none_or(|(last, _)| last < value)
            });
            self.rows.push(row.ok_or_else(|| format!("line {number}, {line:?}, is not a row of its table"))?);
        }
        Ok(())
    }

    /// Reads the lines behind the table: the section of all CPUs, and messages.
    fn read_rest(&mut self, lines: &mut dyn Iterator<Item = (usize, &'a str)>) -> Result<(), String> {
        let mut section: Option<CpuSection> = None;
        let mut analysis = StopAnalysis::default();
        for (number, line) in lines {
            analysis.read_line(self, line);
            match (line.split_whitespace().next(), &mut section) {
                (None, _) => {}
                (Some(ALL), None) => section = Some(CpuSection::read_heading(self, number, line)?),
                (Some(_), Some(section)) if section.next().is_some() => {
                    section.check_line(self, number, line)?
                }
                _ if is_message(line) => self.is_stopped |= line.contains(STOPPED),
                // The analysis of the threshold, whose form differs between releases.
                (Some(first), _)
                    if self.is_stopped
                        && (line.starts_with('\t') || !first.starts_with(|c: char| c.is_ascii_digit())) => {}
                _ => {
                    return Err(format!(
                        "line {number}, {line:?}, follows the end of its table: it is damaged"
                    ));
                }
            }
        }
        self.beyond = analysis.beyond;
        match section.and_then(|section| section.next()) {
            Some(next) => Err(format!("its section ALL is cut off: it has no line {next:?}")),
            None => Ok(()),
        }
    }

    /// A line below the rows, by its place in [`BELOW`], for a column. The table is whole.
    pub(super) fn stated(&self, line: usize, column: usize) -> Option<StatedNumber> {
        *self.below[line].as_ref()?.get(column)?
    }

    /// Size of a bin, in ticks. All rows are multiples of it, so that it is at most their greatest common divisor. If
    /// all is in the first bin, only the longest that the kernel counts bounds it.
    pub(super) fn bin_width(&self) -> u64 {
        let divisor = self.rows.iter().fold(0, |common, (value, _)| greatest_common_divisor(common, *value));
        let longest = LONGEST_PS / self.tick_ps;
        if divisor == 0 { longest } else { divisor.min(longest) }
    }

    /// The histogram of a column.
    fn column_histogram(&self, column: usize, extremes: bool) -> Result<Histogram, String> {
        let whole = |line: usize| self.stated(line, column).and_then(StatedNumber::whole_number);
        let (overflow, count) = whole(0).zip(whole(1)).ok_or("it has no number of events")?;
        let counts: Vec<(u64, u64)> =
            self.rows.iter().map(|(value, counts)| (*value, counts[column])).collect();
        let is_empty = count == 0 && overflow == 0 && counts.iter().all(|(_, n)| *n == 0);
        if is_empty {
            // Before Linux 6.10 the least value of nothing is the largest number.
            let is_unset = |line: usize, value: f64| line == 2 && value >= u64::MAX as f64;
            let stated = (2..5).filter_map(|line| Some((line, self.stated(line, column)?)));
            let stated = stated.filter(|(line, one)| one.value > 0.0 && !is_unset(*line, one.value));
            let stated = stated.map(|(_, one)| one).next();
            if let Some(stated) = stated {
                return Err(format!("it counted nothing, and states {}: it is damaged", stated.value));
            }
            return Ok(Histogram::new(self.tick_ps));
        }
        let (min, max) = whole(2).zip(whole(4)).ok_or("it has no smallest and largest value")?;
        let counted = ImportHistogram {
            tick_ps: self.tick_ps,
            bins: Some(HistogramBinning { extremes, ..HistogramBinning::of_width(self.bin_width()) }),
            counts: &counts,
            overflow,
            overflow_from: None,
            count: Some(count),
            min,
            max,
            mean: Some(self.stated(3, column).ok_or("it has no mean")?),
        };
        counted.histogram()
    }
}

/// Words of the line that says how many events the kernel's trace lost.
const LOST: &str = "events missed";

/// Words of the line that says that a threshold ended the run.
const STOPPED: &str = "hit stop tracing";

/// Returns true for a message of rtla: lines of the analysis of a threshold are indented.
fn is_message(line: &str) -> bool {
    let is_indented = line.starts_with("  ") && line.trim().starts_with(|c: char| c.is_alphabetic());
    is_indented
        || line.ends_with(STOPPED)
        || line.starts_with("rtla ")
        || line.starts_with("## CPU ")
        || line.contains(LOST)
}

/// The longest noise that the kernel counts: the period in which it looks, unless that was changed, ps.
const LONGEST_PS: u64 = 1_000_000_000_000;

/// Seconds of a duration such as `0 00:01:00`: days, hours, minutes and seconds.
fn seconds(duration: &str) -> Option<u64> {
    let (days, clock) = duration.trim().split_once(' ')?;
    let parts: Vec<u64> = clock.trim().split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let of_days = days.parse::<u64>().ok()?.checked_mul(86_400)?;
    let of_clock = hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
    of_days.checked_add(of_clock)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
