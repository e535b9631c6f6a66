//! Output of cyclicdeadline, made by pure functions.

use crate::rt::row::{RtFigureUnit, RtThreadRow};
use latscope_core::plan::MeasurementPoint;
use latscope_probes::PointSettings;
use latscope_probes::wake::thread::{WakeThreadPolicy, WakeThreadSettings};
use std::fmt::Write;

/// CPU time that a thread reserves, in µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time in each period, in µs.
    pub runtime: u64,
    /// Length of the period, in µs. The CPU time is due at its end.
    pub deadline: u64,
}

impl Reservation {
    /// Returns the reservation of the thread of a point.
    pub fn of_point(point: &MeasurementPoint) -> Reservation {
        let thread = WakeThreadSettings::read(point).expect("a thread was planned");
        let runtime = match thread.policy {
            WakeThreadPolicy::Deadline { runtime, .. } => runtime,
            _ => 0,
        };
        Reservation { runtime: runtime / 1000, deadline: thread.interval / 1000 }
    }
}

/// Lines printed before the threads begin. The activations only measure the time: the work that is "tested" takes none.
pub fn format_preamble(all: bool, reserved: &[Reservation]) -> String {
    let mut text = String::from(if all { "Using all CPUS\n" } else { "" });
    for Reservation { runtime, deadline } in reserved {
        let _ = write!(text, "interval: {runtime}:{deadline}\n  Tested at 0us of {runtime}us\n");
    }
    text
}

/// Lines about the threads, printed once they run.
pub fn introduction(main: u32, reserved: &[Reservation], rows: &[RtThreadRow]) -> String {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "deadline thread {}", row.thread);
    }
    let _ = writeln!(text, "main thread {main}");
    for (Reservation { runtime, deadline }, row) in reserved.iter().zip(rows) {
        let _ = writeln!(text, "thread[{}] runtime={runtime}us deadline={deadline}us", row.thread);
    }
    text
}

/// Status lines, one for each thread.
pub fn format_status(reserved: &[Reservation], rows: &[RtThreadRow]) -> String {
    let mut text = String::new();
    for (index, (reservation, row)) in reserved.iter().zip(rows).enumerate() {
        let us = |ns: u64| RtFigureUnit::Us.whole_units(ns);
        let _ = writeln!(
            text,
            "T:{index:2} ({:5}) I:{} C:{:7} Min:{:7} Act:{:5} Avg:{:5} Max:{:8}",
            row.thread,
            reservation.deadline,
            row.cycles,
            row.min_in(RtFigureUnit::Us),
            us(row.last),
            row.average_in(RtFigureUnit::Us),
            us(row.max)
        );
    }
    text
}

/// Lines about a run that `-b` ended.
pub fn format_break(rows: &[RtThreadRow], broken: Option<(usize, u64)>) -> String {
    broken.map_or_else(String::new, |(thread, ns)| {
        format!(
            "# Break thread: {}\n# Break value: {}\n",
            rows[thread].thread,
            RtFigureUnit::Us.whole_units(ns)
        )
    })
}

/// Part of the JSON after the common head.
pub fn format_json(rows: &[RtThreadRow]) -> String {
    let threads: Vec<String> = rows.iter().enumerate().map(thread_json).collect();
    format!(
        "  \"num_threads\": {},\n  \"resolution_in_ns\": 0,\n  \"thread\": {{\n{}\n  }}\n",
        rows.len(),
        threads.join(",\n")
    )
}

fn thread_json((index, row): (usize, &RtThreadRow)) -> String {
    format!(
        "    \"{index}\": {{\n\t \"cycles\": {},\n\t \"min\": {},\n\t \"max\": {},\n\t \"avg\": {:.2}\n    }}",
        row.cycles,
        row.min_in(RtFigureUnit::Us),
        RtFigureUnit::Us.whole_units(row.max),
        row.mean / 1000.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVED: [Reservation; 1] = [Reservation { runtime: 6000, deadline: 10_000 }];

    fn rows() -> [RtThreadRow; 1] {
        [RtThreadRow { thread: 3599, cycles: 101, min: Some(1900), last: 5000, mean: 44_070.0, max: 835_000 }]
    }

    #[test]
    fn the_lines_of_a_run() {
        assert_eq!(
            format_preamble(true, &RESERVED),
            "Using all CPUS\ninterval: 6000:10000\n  Tested at 0us of 6000us\n"
        );
        assert_eq!(
            introduction(3598, &RESERVED, &rows()),
            "deadline thread 3599\nmain thread 3598\nthread[3599] runtime=6000us deadline=10000us\n"
        );
        assert_eq!(
            format_status(&RESERVED, &rows()),
            "T: 0 ( 3599) I:10000 C:    101 Min:      1 Act:    5 Avg:   44 Max:     835\n"
        );
        assert_eq!(format_break(&rows(), Some((0, 9_999))), "# Break thread: 3599\n# Break value: 9\n");
    }

    #[test]
    fn the_json_has_the_same_figures() {
        let json: serde_json::Value = serde_json::from_str(&format!("{{{}}}", format_json(&rows()))).unwrap();
        let one = &json["thread"]["0"];
        assert_eq!((&one["cycles"], &one["max"], &one["avg"]), (&101.into(), &835.into(), &44.07.into()));
    }
}
