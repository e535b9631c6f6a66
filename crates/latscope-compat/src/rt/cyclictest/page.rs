//! Text printed at the end of the run, made by pure functions.

use super::histogram::{self, HistogramBlockStyle};
use super::options::CyclictestOptions;
use super::status::{self, Fixed};
use crate::rt::row::{RtFigureUnit, RtThreadRow};
use latscope_core::report::LinearRecord;
use std::fmt::Write;

/// Results of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CyclictestOutcome {
    /// Figures of each thread.
    pub rows: Vec<RtThreadRow>,
    /// Linear histograms of the threads; empty without `-h`.
    pub records: Vec<LinearRecord>,
    /// Samples above the limit of `--spike`.
    pub spikes: Spikes,
    /// Thread whose latency was above `-b`, and that latency in ns.
    pub broken: Option<(usize, u64)>,
    /// System management interrupts on the CPU of each thread; `None` if they are not counted.
    pub smi: Option<Vec<u64>>,
}

/// Samples above a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spikes {
    /// Number of samples above the limit.
    pub count: u64,
    /// First samples above the limit: instant in ns, thread, value in ns.
    pub first: Vec<(u64, usize, u64)>,
}

/// Text on stdout after the last frame and the JSON.
pub fn format_end(options: &CyclictestOptions, fixed: &[Fixed], outcome: &CyclictestOutcome) -> String {
    let mut text = String::new();
    if options.common.quiet && options.histogram.is_none() {
        text += &status::format_thread_lines(options.unit, fixed, &outcome.rows, outcome.smi.as_deref());
    }
    text += &spikes(&outcome.spikes, options.unit);
    if options.histogram_file.is_none() {
        text += &histogram(options, outcome);
    }
    text + &format_break_report(options, outcome)
}

/// Histogram block; empty if no histogram is asked for.
pub fn histogram(options: &CyclictestOptions, outcome: &CyclictestOutcome) -> String {
    options.histogram.map_or_else(String::new, |buckets| {
        histogram::block(
            HistogramBlockStyle::from_options(options),
            buckets,
            &outcome.records,
            &outcome.rows,
            outcome.smi.as_deref(),
        )
    })
}

fn spikes(spikes: &Spikes, unit: RtFigureUnit) -> String {
    if spikes.count == 0 {
        return String::new();
    }
    let mut text = String::from("\n");
    for (at, thread, value) in &spikes.first {
        let _ = writeln!(text, "T:{thread:2} Spike:{:8}: TS: {:12}", unit.whole_units(*value), at / 1000);
    }
    let _ = writeln!(text, "spikes = {}\n", spikes.count);
    text
}

fn format_break_report(options: &CyclictestOptions, outcome: &CyclictestOutcome) -> String {
    if options.common.break_above.is_none() {
        return String::new();
    }
    let mut text = String::from("# Thread Ids:");
    outcome.rows.iter().for_each(|row| text += &format!(" {:05}", row.thread));
    text.push('\n');
    if let Some((thread, value)) = outcome.broken {
        let _ = writeln!(text, "# Break thread: {}", outcome.rows[thread].thread);
        let _ = writeln!(text, "# Break value: {}", options.unit.whole_units(value));
    }
    text
}

/// Lines that `-v` prints before the threads begin.
pub fn preamble(
    options: &CyclictestOptions,
    fixed: &[Fixed],
    configured: usize,
    online: usize,
) -> [String; 2] {
    if !options.verbose {
        return Default::default();
    }
    let intervals = fixed
        .iter()
        .enumerate()
        .map(|(thread, fixed)| format!("Thread {thread} Interval: {}\n", fixed.interval));
    [format!("Max CPUs = {configured}\nOnline CPUs = {online}\n"), intervals.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::options::RtTestsCommonOptions;

    fn outcome() -> CyclictestOutcome {
        let row = RtThreadRow {
            thread: 812,
            cycles: 1,
            min: Some(15_000),
            last: 15_000,
            mean: 15_000.0,
            max: 15_000,
        };
        CyclictestOutcome {
            rows: vec![row, RtThreadRow { thread: 813, ..row }],
            broken: Some((1, 15_900)),
            ..CyclictestOutcome::default()
        }
    }

    fn fixed() -> Vec<Fixed> {
        vec![Fixed { priority: 80, interval: 1000, cpu: None }; 2]
    }

    #[test]
    fn a_break_names_the_thread_and_the_value() {
        let options = CyclictestOptions {
            common: RtTestsCommonOptions {
                break_above: Some(10),
                quiet: true,
                ..RtTestsCommonOptions::default()
            },
            ..CyclictestOptions::default()
        };
        let text = format_end(&options, &fixed(), &outcome());
        assert!(
            text.ends_with("# Thread Ids: 00812 00813\n# Break thread: 813\n# Break value: 15\n"),
            "{text}"
        );
        let unbroken = format_end(&options, &fixed(), &CyclictestOutcome { broken: None, ..outcome() });
        assert!(unbroken.ends_with("# Thread Ids: 00812 00813\n"), "{unbroken}");
    }

    #[test]
    fn spikes_are_listed_as_far_as_they_were_kept_and_counted_all() {
        let spikes = Spikes { count: 20, first: vec![(14_284_476_039_999, 0, 5_748_900)] };
        let text =
            format_end(&CyclictestOptions::default(), &fixed(), &CyclictestOutcome { spikes, ..outcome() });
        assert_eq!(text, "\nT: 0 Spike:    5748: TS:  14284476039\nspikes = 20\n\n");
    }

    #[test]
    fn only_the_verbose_print_a_preamble() {
        let options = CyclictestOptions { verbose: true, ..CyclictestOptions::default() };
        let [cpus, intervals] = preamble(&options, &fixed(), 4, 2);
        assert_eq!(cpus, "Max CPUs = 4\nOnline CPUs = 2\n");
        assert_eq!(intervals, "Thread 0 Interval: 1000\nThread 1 Interval: 1000\n");
        assert_eq!(preamble(&CyclictestOptions::default(), &fixed(), 4, 2), <[String; 2]>::default());
    }
}
