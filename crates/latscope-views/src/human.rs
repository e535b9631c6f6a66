//! Durations on a scale that people have a feeling for: as if a hit in the L1
//! cache took a second, and how many fit into a frame of a 60 Hz screen.

use super::cells::times_mark;
use super::column::ColumnBuilder;
use super::document::{DocumentTable, ViewDocument};
use super::legend::Signs;
use super::rows::SurveyRow;
use super::style::{BOLD, DIM, magnitude};
use super::styled::Text;
use latscope_core::quality::QualityLevel;
use latscope_core::report::Report;
use latscope_core::units::{format_time, three_digits};
use latscope_judge::findings::{FRAME_NS, level_rows};

/// Returns the duration that a second stands for, ns: a hit in the L1 cache, or 1 ns if the report has no such
/// hit.
pub fn second(report: &Report) -> f64 {
    let level = level_rows(report).into_iter().find(|level| level.name == "L1");
    level.map(|level| level.ns).filter(|ns| *ns > 0.0).unwrap_or(1.0)
}

/// Writes seconds in the two largest units that people use: `0.3 s`,
/// `1 min 31 s`, `2 h 31 min`, `3 d 4 h`, `2 y 31 d`, `317 years`.
pub fn human(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY + DAY / 4;
    if seconds < 0.095 {
        return format!("{seconds:.2} s");
    }
    if seconds < 9.95 {
        let text = format!("{seconds:.1}");
        return format!("{} s", text.strip_suffix(".0").unwrap_or(&text));
    }
    let whole = seconds.round() as u64;
    let (large, unit, small, part) = match whole {
        s if s < MINUTE => return format!("{s} s"),
        s if s < HOUR => (s / MINUTE, "min", s % MINUTE, "s"),
        s if s < DAY => (s / HOUR, "h", s % HOUR / MINUTE, "min"),
        s if s < YEAR => (s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 10 * YEAR => (s / YEAR, "y", s % YEAR / DAY, "d"),
        s => return format!("{} years", s / YEAR),
    };
    match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    }
}

/// Writes how many operations of `ns` fit into a frame: `17 million`, `8170`,
/// `0.4`.
pub(crate) fn per_frame(ns: f64) -> String {
    if ns <= 0.0 {
        return "-".to_owned();
    }
    match FRAME_NS / ns {
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 9999.5 => format!("{n:.0}"),
        n if n < 999.5e3 => format!("{} thousand", three_digits(n / 1e3)),
        n if n < 999.5e6 => format!("{} million", three_digits(n / 1e6)),
        n => format!("{} billion", three_digits(n / 1e9)),
    }
}

/// Returns how often the operation of a row fits into a frame; a dash for a transfer.
fn in_a_frame(row: &SurveyRow) -> String {
    if row.operation && !row.longer { per_frame(row.ns) } else { "-".to_owned() }
}

/// Returns the table on this scale.
pub(super) fn document(report: &Report, rows: &[SurveyRow]) -> ViewDocument {
    let second = second(report);
    let scale = format!(
        "1 s stands for {}, {}; a frame at 60 frames a second is {}.",
        format_time(second),
        if second == 1.0 { "for no L1 hit was measured" } else { "a hit in the L1 cache" },
        format_time(FRAME_NS)
    );
    let mut signs = Signs::default();
    // What is doubtful has no sign on this scale.
    rows.iter().for_each(|row| signs.note(row.times, QualityLevel::Ok, false));
    let rows = ColumnBuilder(rows);
    let table = DocumentTable::new(vec![
        rows.left("operation", |row| &row.label),
        rows.left("family", |row| Text::styled(DIM, &row.family)),
        rows.right("here", |row| Text::styled(BOLD, longer(row) + &format_time(row.ns))),
        rows.left("", |row| Text::styled(DIM, times_mark(row.times))),
        rows.right("if L1 took 1 s", |row| {
            Text::styled(magnitude(row.ns), longer(row) + &human(row.ns / second))
        }),
        rows.right("in a frame", in_a_frame),
    ]);
    let notes = std::iter::once(scale).chain(signs.line()).collect();
    let mut document = ViewDocument::default();
    document.table(DocumentTable { least: usize::MAX, notes, ..table });
    document
}

/// Sign of a median beyond the last bin.
fn longer(row: &SurveyRow) -> String {
    if row.longer { "> ".to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::wide;
    use crate::{DisplayOptions, DurationScale, table};
    use latscope_core::plan::Params;
    use latscope_core::report::Semantics;
    use latscope_core::testing::{point, report};
    use proptest::prelude::*;

    #[test]
    fn a_transfer_is_no_operation_in_a_frame() {
        let row = |probe: &str, ns| point(probe, Params::new(), Semantics::Operation, ns);
        let transfers = ["memory.bandwidth", "sync.pipe-bandwidth", "remote.bandwidth", "memory.stream"];
        let mut all = transfers.map(|probe| row(probe, 155_000.0)).to_vec();
        all.extend((1..=5).map(|at| row("syscall.getppid", 100.0 * f64::from(at))));
        let options = DisplayOptions { scale: DurationScale::Human, ..wide(120) };
        let table = table::table(&report(all), &[], &options);
        for line in table.lines().filter(|line| line.contains("bandwidth") || line.contains("stream")) {
            assert!(line.trim_end().ends_with(" -"), "{line}");
        }
        assert!(table.contains("thousand"), "the others fit: {table}");
    }

    #[test]
    fn seconds_are_told_as_people_do() {
        let cases = [
            (1.0, "1 s"),
            (0.03, "0.03 s"),
            (0.27, "0.3 s"),
            (59.6, "1 min"),
            (100.0 / 1.1, "1 min 31 s"),
            (10_000.0 / 1.1, "2 h 31 min"),
            (86_400.0 * 3.5, "3 d 12 h"),
            (86_400.0 * 400.0, "1 y 34 d"),
            (1e10, "316 years"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn frames_are_counted_in_round_numbers() {
        let cases = [
            (1.1, "15.2 million"),
            (2_041.0, "8166"),
            (16.7e6, "1.0"),
            (100e6, "0.2"),
            (0.01, "1.67 billion"),
        ];
        for (ns, text) in cases {
            assert_eq!(per_frame(ns), text, "{ns}");
        }
        assert_eq!(per_frame(0.0), "-");
    }

    proptest! {
        #[test]
        fn any_duration_has_a_short_form(seconds in 0.0f64..1e15) {
            let text = human(seconds);
            prop_assert!(text.len() <= 16, "{}", text);
            prop_assert!(text.chars().next().is_some_and(|c| c.is_ascii_digit()));
        }
    }
}
