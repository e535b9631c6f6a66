//! Lines behind a table of rtla: the section of all CPUs, and the analysis of a latency above the threshold.

use super::super::checks::StatedNumber;
use super::RtlaHistogramTable;
use std::collections::BTreeSet;

/// The heading of the section with the figures of all CPUs, which newer releases add.
pub(super) const ALL: &str = "ALL:";

/// The lines of the section of all CPUs, in this order.
pub(super) const SECTION: [&str; 4] = ["count:", "min:", "avg:", "max:"];

/// The section of all CPUs, while it is read: a column for each context.
pub(super) struct CpuSection<'a> {
    contexts: Vec<&'a str>,
    /// Place of the next line in [`SECTION`].
    at: usize,
}

impl<'a> CpuSection<'a> {
    /// Reads the heading of the section, which has each context of the table once.
    pub(super) fn read_heading(
        table: &RtlaHistogramTable,
        number: usize,
        heading: &'a str,
    ) -> Result<CpuSection<'a>, String> {
        let contexts: Vec<&str> = heading.split_whitespace().skip(1).collect();
        let of_table: BTreeSet<&str> =
            table.columns.iter().filter_map(|column| Some(column.split_once('-')?.0)).collect();
        let of_section: BTreeSet<&str> = contexts.iter().copied().collect();
        if of_section != of_table || of_section.len() != contexts.len() {
            return Err(format!("line {number}, {heading:?}, does not fit its columns: it is damaged"));
        }
        Ok(CpuSection { contexts, at: 0 })
    }

    /// Name of the next line; `None` behind the last.
    pub(super) fn next(&self) -> Option<&'static str> {
        SECTION.get(self.at).copied()
    }

    /// Checks the next line of the section against the columns of the table.
    pub(super) fn check_line(
        &mut self,
        table: &RtlaHistogramTable,
        number: usize,
        line: &str,
    ) -> Result<(), String> {
        let rest = line.trim_start().strip_prefix(SECTION[self.at]);
        let is_next = rest.is_some();
        let values: Vec<Option<StatedNumber>> =
            rest.unwrap_or_default().split_whitespace().map(StatedNumber::from_word).collect();
        let agrees = |(context, stated): (&&str, &Option<StatedNumber>)| {
            match (self.expected(table, context), stated) {
                (Some(expected), Some(stated)) if self.at == 2 => stated.agrees(expected),
                // In BPF mode the least of a CPU without samples is 0.
                (Some(_), Some(stated)) if self.at == 1 && stated.value == 0.0 => {
                    self.has_empty(table, context)
                }
                (Some(expected), Some(stated)) => stated.value == expected.value,
                // A context without samples.
                (None, stated) => stated.is_none_or(|stated| stated.value == 0.0),
                (Some(_), None) => false,
            }
        };
        let is_right = is_next
            && !values.is_empty()
            && values.len() == self.contexts.len()
            && self.contexts.iter().zip(&values).all(agrees);
        self.at += 1;
        if is_right {
            Ok(())
        } else {
            Err(format!("line {number}, {line:?}, does not fit its columns: it is damaged"))
        }
    }

    /// Returns true if a CPU has no sample of a context.
    fn has_empty(&self, table: &RtlaHistogramTable, context: &str) -> bool {
        let is_of = |column: &str| column.split_once('-').is_some_and(|(of, _)| of == context);
        let mut columns = (0..table.columns.len()).filter(|at| is_of(table.columns[*at]));
        columns.any(|at| table.stated(1, at).is_none_or(|count| count.value == 0.0))
    }

    /// The figure of the next line that the columns of a context give; `None` where these have no sample.
    fn expected(&self, table: &RtlaHistogramTable, context: &str) -> Option<StatedNumber> {
        let columns = (0..table.columns.len()).filter(|at| {
            let is_of = table.columns[*at].split_once('-').is_some_and(|(of, _)| of == context);
            is_of && table.stated(1, *at).is_some_and(|count| count.value > 0.0)
        });
        let of_columns = |line: usize| columns.clone().filter_map(move |at| table.stated(line, at));
        match self.at {
            0 => Some(StatedNumber::to_step(of_columns(1).map(|count| count.value).sum(), 0.0)),
            1 => of_columns(2).min_by(|a, b| a.value.total_cmp(&b.value)),
            2 => {
                let means: Vec<(StatedNumber, u64)> =
                    of_columns(3).zip(of_columns(1).map(|count| count.value as u64)).collect();
                (!means.is_empty()).then(|| StatedNumber::mean_of(&means))
            }
            _ => of_columns(4).max_by(|a, b| a.value.total_cmp(&b.value)),
        }
    }
}

/// Lines of the analysis with a latency that the table has, and the contexts of the columns that may have it. The
/// latency of a thread may be that of its return to user space.
const ANALYSED: [(&str, &[&str]); 2] = [("IRQ latency:", &["IRQ"]), ("Thread latency:", &["Thr", "Usr"])];

/// Half of the last digit of a latency in the analysis, µs.
const HALF_A_DIGIT: f64 = 0.005;

/// The analysis of the latency that ended a run, while it is read: `## CPU 1 hit stop tracing …` names the CPU, and the
/// latencies are below.
#[derive(Default)]
pub(super) struct StopAnalysis<'a> {
    cpu: Option<&'a str>,
    /// Columns that lack the latency, which the trace may have lost, or which came as it ended; and the latency, µs.
    pub beyond: Vec<(usize, f64)>,
}

impl<'a> StopAnalysis<'a> {
    /// Reads a line of the analysis.
    pub(super) fn read_line(&mut self, table: &RtlaHistogramTable, line: &'a str) {
        if let Some(rest) = line.strip_prefix("## CPU ") {
            self.cpu = rest.split_whitespace().next();
        }
        let analysed = ANALYSED.iter().find_map(|(name, of)| Some((line.trim().strip_prefix(name)?, of)));
        let (Some((rest, contexts)), Some(cpu)) = (analysed, self.cpu) else { return };
        let mut words = rest.split_whitespace();
        let (Some(Ok(us)), Some("us")) = (words.next().map(str::parse::<f64>), words.next()) else { return };
        let names: Vec<String> = contexts.iter().map(|context| format!("{context}-{cpu:0>3}")).collect();
        let columns =
            (0..table.columns.len()).filter(|at| names.iter().any(|name| name == table.columns[*at]));
        let columns: Vec<usize> = columns.collect();
        let ticks = (us - HALF_A_DIGIT) * 1e6 / table.tick_ps as f64;
        // The largest of a column is cut to a whole number.
        let has_it = |at: &usize| table.stated(4, *at).is_none_or(|max| ticks < max.value + 1.0);
        if !columns.iter().any(has_it) {
            self.beyond.extend(columns.first().map(|at| (*at, us)));
        }
    }
}

/// Contexts of timerlat: a wake-up goes through each of a pair, in this order.
const PAIRS: [(&str, &str); 2] = [("IRQ", "Thr"), ("Thr", "Usr")];

/// Checks that the contexts of a CPU can be of the same wake-ups: the second of a pair is as frequent as the first, and
/// comes later. Older releases do not say what the trace lost, so that only half of the wake-ups must agree.
pub(super) fn check_contexts(table: &RtlaHistogramTable) -> Result<(), String> {
    let count = |at: usize| table.stated(1, at).and_then(StatedNumber::whole_number).unwrap_or(0);
    for (at, column) in table.columns.iter().enumerate() {
        let Some((context, cpu)) = column.split_once('-') else { continue };
        let Some((_, later)) = PAIRS.iter().find(|(first, _)| *first == context) else { continue };
        let of_later = format!("{later}-{cpu}");
        let Some(second) = table.columns.iter().position(|column| *column == of_later) else { continue };
        let (first_count, second_count) = (count(at), count(second));
        if first_count == 0 || table.lost.is_some() {
            continue;
        }
        let tolerated = first_count / 2 + 1;
        if second_count > first_count.saturating_add(tolerated) {
            return Err(format!(
                "column {of_later} has {second_count} wake-ups, and {column} {first_count}: it is damaged"
            ));
        }
        let least = table.stated(2, at).and_then(StatedNumber::whole_number).unwrap_or(0);
        let is_earlier = |value: u64| value.saturating_add(table.bin_width()) <= least;
        let earlier = table.rows.iter().filter(|(value, _)| is_earlier(*value));
        let earlier = earlier.fold(0u64, |sum, (_, counts)| sum.saturating_add(counts[second]));
        if earlier > tolerated {
            return Err(format!(
                "{earlier} wake-ups of column {of_later} are shorter than any of {column}: it is damaged"
            ));
        }
    }
    Ok(())
}
