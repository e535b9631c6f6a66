//! Text of schbench, by pure functions.

use latscope_core::histogram::Histogram;
use smart_default::SmartDefault;
use std::fmt::Write;
use std::time::Duration;

/// A percentile that is printed, and true for the one that is marked.
pub(super) type SchbenchPercentile = (f64, bool);

/// Percentiles of latencies outside of pipe mode.
pub(super) const OF_LATENCIES: [SchbenchPercentile; 4] =
    [(50.0, false), (90.0, false), (99.0, true), (99.9, false)];
/// Percentiles of latencies in pipe mode.
pub(super) const OF_PIPES: [SchbenchPercentile; 5] =
    [(20.0, false), (50.0, false), (90.0, false), (99.0, true), (99.9, false)];
/// Percentiles of requests a second.
const OF_RATES: [SchbenchPercentile; 3] = [(20.0, false), (50.0, true), (90.0, false)];

/// Work of all workers since the begin of the figures.
#[derive(Debug, Clone, SmartDefault)]
pub(super) struct SchbenchWorkTotals {
    /// From the stamp of the thread that wakes until the worker runs, ns.
    #[default(Histogram::new(1_000))]
    pub wake_ups: Histogram,
    /// From the begin of a request to its end, ns.
    #[default(Histogram::new(1_000))]
    pub requests: Histogram,
    /// Requests, or transfers in pipe mode.
    pub done: u64,
}

/// Requests a second, a figure for each second.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    rates: Vec<u64>,
    done: u64,
    until: Duration,
}

impl Requests {
    /// Adds the second that ends when `done` requests were made in `passed`.
    pub fn add_second(&mut self, done: u64, passed: Duration) {
        let lasted = passed.saturating_sub(self.until).as_secs_f64();
        let made = done.saturating_sub(self.done) as f64;
        if lasted > 0.0 {
            self.rates.push((made / lasted) as u64);
        }
        (self.done, self.until) = (done, passed);
    }

    /// Requests in the last second.
    pub fn current(&self) -> f64 {
        self.rates.last().map_or(0.0, |rate| *rate as f64)
    }

    /// Text with their percentiles.
    pub fn format_percentiles(&self, seconds: u64) -> String {
        let mut sorted = self.rates.clone();
        sorted.sort_unstable();
        let at = |percentile: f64| {
            let rank = (percentile / 100.0 * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied()
        };
        let up_to = |value: u64| sorted.iter().filter(|rate| **rate <= value).count() as u64;
        let ends = [sorted.first(), sorted.last()].map(Option::<&u64>::copied);
        let head = format_heading("RPS", "requests", seconds, sorted.len() as u64);
        head + &format_rows(&OF_RATES, at, up_to, ends)
    }
}

/// Text with the percentiles of latencies, in µs.
pub(super) fn latencies(what: &str, of: &Histogram, seconds: u64, wanted: &[SchbenchPercentile]) -> String {
    let us = |ns: Option<f64>| ns.map(|ns| (ns / 1e3) as u64);
    let at = |percentile: f64| us(of.quantile(percentile / 100.0));
    let up_to = |value: u64| {
        let below = of.buckets_ns().filter(|(low, ..)| ((low / 1e3) as u64) <= value);
        below.map(|(.., count)| count).sum()
    };
    format_heading(what, "usec", seconds, of.count())
        + &format_rows(wanted, at, up_to, [us(of.min()), us(of.max())])
}

fn format_heading(what: &str, unit: &str, seconds: u64, samples: u64) -> String {
    format!("{what} percentiles ({unit}) runtime {seconds} (s) ({samples} total samples)\n")
}

/// The figure, or a sign in its place that is no number: what was not measured is not 0.
fn format_figure(known: Option<u64>) -> String {
    known.map_or("-".to_owned(), |value| value.to_string())
}

/// Rows of percentiles, each with the samples above that of the row before, and the ends of all.
fn format_rows(
    wanted: &[SchbenchPercentile],
    at: impl Fn(f64) -> Option<u64>,
    up_to: impl Fn(u64) -> u64,
    ends: [Option<u64>; 2],
) -> String {
    let mut text = String::new();
    let mut before = 0;
    for (percentile, is_marked) in wanted {
        let (value, mark) = (at(*percentile), if *is_marked { "* " } else { "  " });
        let below = value.map_or(0, &up_to);
        let (value, samples) = (format_figure(value), below.saturating_sub(before));
        let _ = writeln!(text, "\t{mark}{percentile:.1}th: {value:<10} ({samples} samples)");
        before = before.max(below);
    }
    let [least, most] = ends.map(format_figure);
    let _ = writeln!(text, "\t  min={least}, max={most}");
    text
}

/// Time that threads were ready and did not run, and how often they ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Delay {
    pub ns: u64,
    pub times: u64,
}

/// Delays of the threads that pass messages, and of those that work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchbenchDelays {
    pub message: Delay,
    pub worker: Delay,
}

impl Delay {
    /// The delay in a `schedstat` of proc(5): time that ran, time that waited, times that it ran.
    pub fn parse(schedstat: &str) -> Option<Delay> {
        let mut words = schedstat.split_whitespace().skip(1);
        Some(Delay { ns: words.next()?.parse().ok()?, times: words.next()?.parse().ok()? })
    }

    fn since(self, before: Delay) -> Delay {
        let (ns, times) = (self.ns.saturating_sub(before.ns), self.times.saturating_sub(before.times));
        Delay { ns, times }
    }

    fn mean_us(self) -> Option<u64> {
        Some(self.ns.checked_div(self.times)? / 1_000)
    }
}

impl SchbenchDelays {
    /// Returns the delays since those of `before`.
    pub fn since(&self, before: &SchbenchDelays) -> SchbenchDelays {
        SchbenchDelays {
            message: self.message.since(before.message),
            worker: self.worker.since(before.worker),
        }
    }
}

/// Line with the mean delays.
pub(super) fn delays(of: &SchbenchDelays) -> String {
    let [message, worker] = [of.message, of.worker].map(|delay| format_figure(delay.mean_us()));
    format!("sched delay: message {message} (usec) worker {worker} (usec)\n")
}

/// Last line of pipe mode: transfers of so many bytes.
pub(super) fn transfers(done: u64, bytes: u64, lasted: Duration) -> String {
    let rate = done as f64 / lasted.as_secs_f64().max(1e-9);
    let (mut moved, mut units) = (rate * bytes as f64, ["B", "KB", "MB", "GB", "TB"].iter());
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if moved < 1024.0 {
            break;
        }
        (moved, unit) = (moved / 1024.0, larger);
    }
    format!("avg worker transfer: {rate:.2} ops/sec {moved:.2}{unit}/s\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_printed_as_by_the_original() {
        let mut histogram = Histogram::new(1_000);
        for us in 1..=1_000 {
            histogram.record(us * 1_000 + 500);
        }
        let text = latencies("Wakeup Latencies", &histogram, 2, &OF_LATENCIES);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Wakeup Latencies percentiles (usec) runtime 2 (s) (1000 total samples)");
        assert!(lines[1].starts_with("\t  50.0th: 50") && lines[1].ends_with(" samples)"), "{text}");
        assert!(lines[3].starts_with("\t* 99.0th: 98"), "{text}");
        assert_eq!(lines[5], "\t  min=1, max=1000");
        // No sample is counted twice.
        let counted = |line: &&str| line.split(['(', ' ']).rev().nth(1)?.parse::<u64>().ok();
        let all: u64 = lines[1..5].iter().filter_map(counted).sum();
        assert!((990..=1_000).contains(&all), "{all}: {text}");
        let none = latencies("Wakeup Latencies", &Histogram::new(1_000), 1, &OF_PIPES);
        assert!(none.contains("\t  20.0th: -          (0 samples)\n") && none.ends_with("min=-, max=-\n"));
    }

    /// What no sample, no second and no turn of a thread says is no figure in any part of the text.
    #[test]
    fn what_was_not_measured_is_no_number() {
        let none = [
            latencies("Request Latencies", &Histogram::new(1_000), 1, &OF_LATENCIES),
            Requests::default().format_percentiles(1),
            delays(&SchbenchDelays::default()),
        ];
        for text in none {
            let figures = text
                .lines()
                .filter(|line| line.contains("th: ") || line.contains("min=") || line.contains("delay"));
            for line in figures.map(|line| line.replace("(0 samples)", "")) {
                let figure = line.rsplit_once("th:").map_or(line.as_str(), |(_, figure)| figure);
                assert!(figure.contains('-') && !figure.contains(|c: char| c.is_ascii_digit()), "{line}");
            }
        }
    }

    #[test]
    fn requests_are_counted_by_the_second() {
        let mut requests = Requests::default();
        for (done, ms) in [(10, 1_000), (30, 2_000), (30, 3_000)] {
            requests.add_second(done, Duration::from_millis(ms));
        }
        assert_eq!(requests.current(), 0.0);
        assert_eq!(
            requests.format_percentiles(3),
            "RPS percentiles (requests) runtime 3 (s) (3 total samples)\n\
             \t  20.0th: 0          (1 samples)\n\t* 50.0th: 10         (1 samples)\n\
             \t  90.0th: 20         (1 samples)\n\t  min=0, max=20\n"
        );
    }

    #[test]
    fn delays_are_means_of_an_interval() {
        let at = |text| Delay::parse(text).unwrap();
        let before = SchbenchDelays { message: at("9 1000 1\n"), worker: at("9 0 0\n") };
        let after = SchbenchDelays { message: at("9 9000 2\n"), worker: at("99 20000 4\n") };
        assert_eq!(delays(&after.since(&before)), "sched delay: message 8 (usec) worker 5 (usec)\n");
        assert_eq!(Delay::parse("1 2"), None);
    }

    #[test]
    fn transfers_have_the_unit_that_fits() {
        let second = Duration::from_secs(1);
        assert_eq!(transfers(1_024, 1_024, second), "avg worker transfer: 1024.00 ops/sec 1.00MB/s\n");
        assert_eq!(transfers(10, 8, second), "avg worker transfer: 10.00 ops/sec 80.00B/s\n");
    }
}
