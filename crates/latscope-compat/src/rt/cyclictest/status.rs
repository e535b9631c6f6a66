//! Status lines, one for each thread, redrawn in place.

use super::options::{CyclictestOptions, CyclictestPolicy};
use crate::rt::row::{RtFigureUnit, RtThreadRow};
use latscope_core::plan::MeasurementPoint;
use latscope_probes::PointSettings;
use latscope_probes::wake::thread::WakeThreadSettings;
use std::fmt::Write;

/// Properties of a thread that do not change while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Priority of the thread.
    pub priority: u32,
    /// Interval of the thread, in µs.
    pub interval: u64,
    /// CPU of the thread; `None` if it runs anywhere.
    pub cpu: Option<u32>,
}

impl Fixed {
    /// Returns the properties of the thread of a point.
    pub fn of_point(point: &MeasurementPoint) -> Fixed {
        let thread = WakeThreadSettings::read(point).expect("a thread was planned");
        Fixed { priority: thread.policy.priority(), interval: thread.interval / 1000, cpu: thread.cpu }
    }
}

/// Returns a line for each thread, with the count of system management interrupts where these are counted.
pub fn format_thread_lines(
    unit: RtFigureUnit,
    fixed: &[Fixed],
    rows: &[RtThreadRow],
    smi: Option<&[u64]>,
) -> String {
    let width = if unit == RtFigureUnit::Ns { 8 } else { 5 };
    let mut text = String::new();
    for (index, (fixed, row)) in fixed.iter().zip(rows).enumerate() {
        let _ = write!(
            text,
            "T:{index:2} ({:5}) P:{:2} I:{} C:{:7} Min:{:7} Act:{:width$} Avg:{:width$} Max:{:8}",
            row.thread,
            fixed.priority,
            fixed.interval,
            row.cycles,
            row.min_in(unit),
            unit.whole_units(row.last),
            row.average_in(unit),
            unit.whole_units(row.max),
        );
        if let Some(count) = smi.and_then(|counts| counts.get(index)) {
            let _ = write!(text, " SMI:{count:8}");
        }
        text.push('\n');
    }
    text
}

/// Header lines above the lines of the threads.
pub fn header(options: &CyclictestOptions, load: &str) -> String {
    format!("policy: {}: loadavg: {}          \n\n", policy(options), load.trim_end())
}

fn policy(options: &CyclictestOptions) -> &'static str {
    match options.policy {
        Some(CyclictestPolicy::Fifo) => "fifo",
        Some(CyclictestPolicy::RoundRobin) => "rr",
        Some(CyclictestPolicy::Batch) => "batch/other",
        Some(CyclictestPolicy::Idle) => "idle/other",
        Some(CyclictestPolicy::Other) | None => "other/other",
    }
}

/// Escape sequence that moves the cursor up to the header of the frame before.
pub fn up(threads: usize) -> String {
    format!("\x1b[{}A", threads + 2)
}

/// Escape sequence that moves the cursor down below the last frame.
pub fn down(threads: usize) -> String {
    format!("\x1b[{}B", threads + 2)
}

/// Text of the status in answer to a signal.
pub(crate) fn frame_status(lines: &str) -> String {
    let ruler = "#---------------------------\n";
    format!("{ruler}# cyclictest current status:\n{lines}{ruler}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Fixed = Fixed { priority: 95, interval: 1000, cpu: Some(0) };

    #[test]
    fn widths_are_the_least_and_grow() {
        let row = RtThreadRow {
            thread: 15_429,
            cycles: 8,
            min: Some(6_900),
            last: 7_000,
            mean: 11_999.0,
            max: 23_000,
        };
        let wide = RtThreadRow { thread: 1_234_567, cycles: 123_456_789, last: 123_456_000, ..row };
        assert_eq!(
            format_thread_lines(RtFigureUnit::Us, &[FIXED; 3], &[row, RtThreadRow::default(), wide], None),
            "T: 0 (15429) P:95 I:1000 C:      8 Min:      6 Act:    7 Avg:   11 Max:      23\n\
             T: 1 (    0) P:95 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n\
             T: 2 (1234567) P:95 I:1000 C:123456789 Min:      6 Act:123456 Avg:   11 Max:      23\n"
        );
        assert_eq!(
            format_thread_lines(RtFigureUnit::Ns, &[FIXED], &[row], Some(&[4])),
            "T: 0 (15429) P:95 I:1000 C:      8 Min:   6900 Act:    7000 Avg:   11999 Max:   23000 SMI:       4\n"
        );
    }

    #[test]
    fn a_frame_is_as_high_as_its_threads_and_two_lines() {
        let text = header(&CyclictestOptions::default(), "10.77 20.84 12.61 12/174 15430\n");
        assert_eq!(text, "policy: other/other: loadavg: 10.77 20.84 12.61 12/174 15430          \n\n");
        assert_eq!((up(2), down(2)), ("\x1b[4A".to_owned(), "\x1b[4B".to_owned()));
    }
}
