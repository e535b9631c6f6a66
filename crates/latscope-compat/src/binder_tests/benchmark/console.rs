//! Table that Google Benchmark prints, made by pure functions.

use super::runs::BinderBenchmarkRow;
use crate::binder_tests::words::AndroidOutputVersion;
use std::fmt::Write;

/// Returns the table of the given runs.
pub fn format_table(layout: AndroidOutputVersion, runs: &[&BinderBenchmarkRow]) -> String {
    let width = runs.iter().map(|run| run.full_name().len()).max().unwrap_or(0).max(10);
    let mut text = match layout {
        AndroidOutputVersion::Current => {
            let head = format!("{:<width$} {:>13} {:>15} {:>12}", "Benchmark", "Time", "CPU", "Iterations");
            let rule = "-".repeat(head.len());
            format!("{rule}\n{head}\n{rule}\n")
        }
        AndroidOutputVersion::Oreo => {
            let head = format!("{:<1$}Time          CPU           Iterations", "Benchmark", width + 6);
            format!("{head}\n{}\n", "-".repeat(head.len()))
        }
    };
    for run in runs.iter().filter(|run| layout == AndroidOutputVersion::Current || !run.is_ratio()) {
        let _ = writeln!(text, "{:<width$} {}", run.full_name(), cells(layout, run));
    }
    text
}

fn cells(layout: AndroidOutputVersion, run: &BinderBenchmarkRow) -> String {
    let (real, cpu) = (run.real, run.cpu);
    match (&run.error, layout) {
        (Some(error), _) => format!("ERROR OCCURRED: '{error}'"),
        (None, AndroidOutputVersion::Oreo) => {
            format!("{real:>10.0} ns {cpu:>10.0} ns {:>10}", run.iterations)
        }
        (None, AndroidOutputVersion::Current) if run.is_ratio() => {
            format!("{:>10.2} %    {:>10.2} %    {:>10}", 100.0 * real, 100.0 * cpu, run.iterations)
        }
        (None, AndroidOutputVersion::Current) => {
            format!("{} ns   {} ns   {:>10}", format_ns(real), format_ns(cpu), run.iterations)
        }
    }
}

/// Formats a time in ns. The fewer digits there are before the point, the more follow it.
fn format_ns(ns: f64) -> String {
    let decimals = match ns {
        _ if ns < 1.0 => 3,
        _ if ns < 10.0 => 2,
        _ if ns < 100.0 => 1,
        _ => 0,
    };
    format!("{ns:>10.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::super::runs::{self, BinderBenchmarkSample};
    use super::*;

    /// The figures of the table on the page about Android 8.0's tests.
    const OREO: [(u64, f64, f64); 15] = [
        (21_054, 70_302.0, 32_820.0),
        (21_296, 69_974.0, 32_700.0),
        (21_365, 70_079.0, 32_750.0),
        (21_310, 69_907.0, 32_686.0),
        (21_398, 70_338.0, 32_810.0),
        (21_377, 70_012.0, 32_768.0),
        (21_329, 69_836.0, 32_740.0),
        (21_296, 69_986.0, 32_830.0),
        (21_319, 69_714.0, 32_757.0),
        (20_305, 75_002.0, 34_520.0),
        (17_895, 81_955.0, 39_116.0),
        (15_350, 95_316.0, 45_710.0),
        (12_679, 112_751.0, 54_417.0),
        (9_901, 146_642.0, 71_339.0),
        (6_495, 214_796.0, 104_665.0),
    ];

    #[test]
    fn android_8_printed_this() {
        let chosen = runs::benchmarks("BM_sendVec_binderize", AndroidOutputVersion::Oreo, None);
        let sample =
            |(iterations, real, cpu)| vec![BinderBenchmarkSample { iterations, real, cpu, error: None }];
        let runs = runs::all_rows(&chosen, &OREO.map(sample));
        assert_eq!(
            format_table(AndroidOutputVersion::Oreo, &runs.iter().collect::<Vec<_>>()),
            include_str!("oreo.txt")
        );
    }

    #[test]
    fn current_versions_have_a_rule_on_both_sides() {
        let runs = super::super::json::tests::runs();
        assert_eq!(
            format_table(AndroidOutputVersion::Current, &runs.iter().collect::<Vec<_>>()),
            include_str!("current.txt")
        );
    }
}
