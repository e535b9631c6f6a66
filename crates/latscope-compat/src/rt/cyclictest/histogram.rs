//! Histogram block that `-h` and `-H` print.

use super::options::CyclictestOptions;
use crate::rt::options::Release;
use crate::rt::row::{RtFigureUnit, RtThreadRow};
use latscope_core::report::LinearRecord;
use std::fmt::Write;

/// Form of the histogram block.
#[derive(Debug, Clone, Copy)]
pub struct HistogramBlockStyle {
    /// Release whose text is printed.
    pub release: Release,
    /// True if there is a column for all threads together.
    pub summary_column: bool,
    /// Unit of the figures.
    pub unit: RtFigureUnit,
}

impl HistogramBlockStyle {
    /// Returns the form that a call asks for.
    pub fn from_options(options: &CyclictestOptions) -> HistogramBlockStyle {
        HistogramBlockStyle {
            release: options.common.release,
            summary_column: options.summary_column,
            unit: options.unit,
        }
    }

    /// Returns true if the summary column is printed. Release 2.4 leaves it out where it would repeat the only other
    /// column.
    fn summed(&self, threads: usize) -> bool {
        self.summary_column && (threads > 1 || self.release == Release::V2_10)
    }
}

/// Returns the block: rows, summary lines, and the first cycles that had no row.
pub fn block(
    style: HistogramBlockStyle,
    buckets: u64,
    records: &[LinearRecord],
    rows: &[RtThreadRow],
    smi: Option<&[u64]>,
) -> String {
    let mut text = String::from("# Histogram\n");
    let summed = style.summed(records.len());
    let mut totals = vec![0; records.len() + 1];
    for bucket in 0..buckets {
        let counts = with_sum(bucket_counts(records, bucket), summed);
        totals.iter_mut().zip(&counts).for_each(|(total, count)| *total += count);
        if style.release == Release::V2_10 && counts.iter().all(|count| *count == 0) {
            continue;
        }
        let _ = writeln!(text, "{bucket:06} {}", join_padded(&counts, 6, "\t"));
    }
    if style.release == Release::V2_4 {
        totals.truncate(records.len() + usize::from(summed));
        let _ = writeln!(text, "# Total: {}", join_padded(&totals, 9, " "));
    }
    summary(&mut text, style, records, rows, summed);
    if let Some(counts) = smi {
        let _ = writeln!(text, "# SMIs: {}", join_padded(counts, 5, " "));
    }
    text.push('\n');
    text
}

fn bucket_counts(records: &[LinearRecord], bucket: u64) -> Vec<u64> {
    records.iter().map(|record| record.counts.get(bucket as usize).copied().unwrap_or(0)).collect()
}

fn with_sum(mut counts: Vec<u64>, summed: bool) -> Vec<u64> {
    if summed {
        counts.push(counts.iter().sum());
    }
    counts
}

fn join_padded(numbers: &[u64], width: usize, between: &str) -> String {
    numbers.iter().map(|number| format!("{number:0width$}")).collect::<Vec<_>>().join(between)
}

fn summary(
    text: &mut String,
    style: HistogramBlockStyle,
    records: &[LinearRecord],
    rows: &[RtThreadRow],
    summed: bool,
) {
    let each = |of: &dyn Fn(&RtThreadRow) -> u64| rows.iter().map(of).collect::<Vec<u64>>();
    let mut line = |name: &str, numbers: &[u64]| {
        let _ = writeln!(text, "# {name}: {}", join_padded(numbers, 5, " "));
    };
    line("Min Latencies", &each(&|row| row.min_in(style.unit)));
    line("Avg Latencies", &each(&|row| row.average_in(style.unit)));
    let mut largest = each(&|row| style.unit.whole_units(row.max));
    largest.extend(summed.then(|| largest.iter().max().copied().unwrap_or(0)));
    line("Max Latencies", &largest);
    let overflows = records.iter().map(|record| record.overflow).collect();
    line("Histogram Overflows", &with_sum(overflows, summed));
    text.push_str("# Histogram Overflow at cycle number:\n");
    let after = if style.release == Release::V2_10 { " " } else { "" };
    for (thread, record) in records.iter().enumerate() {
        let _ = write!(text, "# Thread {thread}:{after}");
        for (index, turn) in record.overflow_turns.iter().enumerate() {
            let before = if index == 0 && !after.is_empty() { "" } else { " " };
            let _ = write!(text, "{before}{turn:05}");
        }
        let others = record.overflow - record.overflow_turns.len() as u64;
        if others > 0 {
            let _ = write!(text, " # {others:05} others");
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(counts: &[u64], overflow: u64, turns: &[u64]) -> LinearRecord {
        LinearRecord {
            tick_ns: 1000,
            buckets: 3,
            counts: counts.into(),
            overflow,
            overflow_turns: turns.into(),
        }
    }

    fn row(min: u64, mean: f64, max: u64) -> RtThreadRow {
        RtThreadRow { min: Some(min), mean, max, ..RtThreadRow::default() }
    }

    fn two() -> ([LinearRecord; 2], [RtThreadRow; 2]) {
        (
            [record(&[0, 4], 0, &[]), record(&[0, 1, 0], 5, &[7, 9, 12])],
            [row(1500, 1700.0, 1900), row(1100, 9000.0, 13_000)],
        )
    }

    #[test]
    fn the_text_of_2_4() {
        let (records, rows) = two();
        let style =
            HistogramBlockStyle { release: Release::V2_4, summary_column: true, unit: RtFigureUnit::Us };
        assert_eq!(
            block(style, 3, &records, &rows, Some(&[0, 2])),
            "# Histogram\n000000 000000\t000000\t000000\n000001 000004\t000001\t000005\n000002 000000\t000000\t000000\n\
             # Total: 000000004 000000001 000000005\n# Min Latencies: 00001 00001\n# Avg Latencies: 00001 00009\n\
             # Max Latencies: 00001 00013 00013\n# Histogram Overflows: 00000 00005 00005\n\
             # Histogram Overflow at cycle number:\n# Thread 0:\n# Thread 1: 00007 00009 00012 # 00002 others\n\
             # SMIs: 00000 00002\n\n"
        );
        let alone =
            block(HistogramBlockStyle { summary_column: true, ..style }, 2, &records[..1], &rows[..1], None);
        assert!(alone.contains("000001 000004\n") && alone.contains("# Max Latencies: 00001\n"), "{alone}");
    }

    #[test]
    fn the_text_of_2_10_has_no_rows_of_zeros_and_no_total() {
        let (records, rows) = two();
        let style =
            HistogramBlockStyle { release: Release::V2_10, summary_column: true, unit: RtFigureUnit::Us };
        let text = block(style, 3, &records[..1], &rows[..1], None);
        assert_eq!(
            text,
            "# Histogram\n000001 000004\t000004\n# Min Latencies: 00001\n# Avg Latencies: 00001\n\
             # Max Latencies: 00001 00001\n# Histogram Overflows: 00000 00000\n\
             # Histogram Overflow at cycle number:\n# Thread 0: \n\n"
        );
        assert!(
            block(style, 3, &records, &rows, None).contains("# Thread 1: 00007 00009 00012 # 00002 others\n")
        );
    }
}
