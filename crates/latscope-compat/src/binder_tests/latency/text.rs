//! Output of the latency tests, made by pure functions. It is JSON with the spacing of the originals.

use super::Test;
use crate::binder_tests::number::general;
use crate::binder_tests::words::AndroidOutputVersion;
use std::fmt::Write;

/// Durations of one caller's calls, in ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallTimes {
    /// Number of recorded calls.
    pub calls: u64,
    /// Mean of the durations; `None` without calls.
    pub mean: Option<f64>,
    /// Longest duration; `None` without calls.
    pub worst: Option<f64>,
    /// Shortest duration; `None` without calls.
    pub best: Option<f64>,
    /// Number of calls over the deadline.
    pub misses: u64,
    /// Percentiles p50, p90, p95 and p99.
    pub quantiles: [Option<f64>; 4],
}

/// Figures of a pair, or of all pairs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BinderPairStatistics {
    /// Key in the output: `P0`, `ALL`.
    pub name: String,
    /// Number of calls that were served on the caller's CPU.
    pub synced: u64,
    /// Number of calls for which the CPU can be judged: the caller stayed on its CPU.
    pub judged: u64,
    /// Durations of the calls of the normal caller.
    pub other: CallTimes,
    /// Durations of the calls of the SCHED_FIFO threads.
    pub fifo: CallTimes,
}

/// Verdict on whether servers had the real-time priority of their callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    /// Inheritance of the priority in each call.
    Pass,
    /// Lack of the priority in at least one call.
    Fail {
        /// Number of calls without the priority.
        failed: u64,
        /// Number of all calls.
        calls: u64,
    },
    /// Lack of knowledge, for this reason.
    Skipped(&'static str),
}

/// Content of the whole output.
#[derive(Debug, Clone, PartialEq)]
pub struct BinderLatencyPage {
    /// Number of pairs asked for.
    pub pairs: u64,
    /// Number of turns asked for.
    pub iterations: u64,
    /// Deadline of a call, in µs.
    pub deadline_us: u64,
    /// True if the calls were within the process.
    pub passthrough: bool,
    /// Durations of SCHED_FIFO calls by pair, in ns; `None` without `-raw_data`.
    pub raw: Option<Vec<Vec<u64>>>,
    /// Figures of each pair, then of all.
    pub blocks: Vec<BinderPairStatistics>,
    /// Verdict on inherited priorities.
    pub inheritance: Inheritance,
}

/// Ratio of calls on the caller's CPU above which the verdict is `GOOD`.
const GOOD_SYNC: f64 = 0.6;

/// Numbers of significant digits in the output.
struct Digits {
    times: usize,
    met: usize,
    sync: usize,
}

/// Digits that latscope prints. The originals print 2, 5 and 6, which cannot distinguish the best of 100,000 calls from
/// the tenth best.
const OURS: Digits = Digits { times: 5, met: 9, sync: 9 };
const THEIRS: Digits = Digits { times: 2, met: 5, sync: 6 };

impl BinderLatencyPage {
    /// Returns the text as a program prints it.
    pub fn format_page(&self, test: &Test, layout: AndroidOutputVersion) -> String {
        let fuller = test.fuller && layout == AndroidOutputVersion::Current;
        let BinderLatencyPage { pairs, iterations, deadline_us, .. } = self;
        let mut text = format!(
            "{{\n\"cfg\":{{\"pair\":{pairs},\"iterations\":{iterations},\"deadline_us\":{deadline_us}"
        );
        if fuller {
            let _ = write!(text, ",\"passthrough\":{}", u8::from(self.passthrough));
        }
        text += "},\n";
        for (pair, values) in self.raw.iter().flatten().enumerate() {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            let _ = writeln!(text, "\"fifo_{pair}_data\": [{}],", values.join(","));
        }
        let (all, single): (Vec<&BinderPairStatistics>, Vec<&BinderPairStatistics>) =
            self.blocks.iter().partition(|pair| pair.name == "ALL");
        let all = all.into_iter().filter(|_| fuller);
        all.chain(single).for_each(|pair| text += &pair.format_pair(test, layout));
        let verdict = match self.inheritance {
            Inheritance::Pass => "PASS",
            Inheritance::Fail { .. } => "FAIL",
            Inheritance::Skipped(_) => "SKIPPED",
        };
        text + &format!("\"inheritance\": \"{verdict}\"\n}}\n")
    }
}

impl BinderPairStatistics {
    fn format_pair(&self, test: &Test, layout: AndroidOutputVersion) -> String {
        let digits = if layout == AndroidOutputVersion::Oreo { THEIRS } else { OURS };
        let calls = self.other.calls + self.fifo.calls;
        // Theirs is of all calls, which is what S and I beside it say.
        let of = if layout == AndroidOutputVersion::Oreo { calls } else { self.judged };
        let ratio = self.synced as f64 / of as f64;
        let sync = match of {
            0 => "UNKNOWN",
            _ if ratio > GOOD_SYNC => "GOOD",
            _ => "POOR",
        };
        // What R is a share of, where that is not what S and I say.
        let judged = if of == calls { String::new() } else { format!("\"judged\":{of},") };
        let mut text = format!(
            "\"{}\":{{\"SYNC\":\"{sync}\",\"S\":{},\"I\":{calls},{judged}\"R\":{},\n",
            self.name,
            self.synced,
            general(ratio, digits.sync)
        );
        let separator = if test.fuller { ", " } else { "," };
        text += &format!("  \"other_ms\":{},\n", self.other.format_times(&digits, separator));
        text += &format!("  \"fifo_ms\": {}", self.fifo.format_times(&digits, separator));
        if test.fuller && layout == AndroidOutputVersion::Current {
            text += &format!(",\n  \"otherdis\":{},\n", self.other.percentiles(&digits));
            text += &format!("  \"fifodis\": {}", self.fifo.percentiles(&digits));
        }
        text + "\n},\n"
    }
}

/// Formats a time given in ns as ms.
fn ms(ns: Option<f64>, digits: &Digits) -> String {
    general(ns.unwrap_or(f64::NAN) / 1e6, digits.times)
}

impl CallTimes {
    fn format_times(&self, digits: &Digits, separator: &str) -> String {
        let width = digits.times + 2;
        let [average, worst, best] = [self.mean, self.worst, self.best].map(|ns| ms(ns, digits));
        let met = general(1.0 - self.misses as f64 / self.calls as f64, digits.met);
        format!(
            "{{ \"avg\":{average:<width$}{separator}\"wst\":{worst:<width$}{separator}\"bst\":{best:<width$}{separator}\
             \"miss\":{}{separator}\"meetR\":{met}}}",
            self.misses
        )
    }

    fn percentiles(&self, digits: &Digits) -> String {
        let [p50, p90, p95, p99] = self.quantiles.map(|ns| ms(ns, digits));
        format!("{{ \"p50\":{p50}, \"p90\":{p90}, \"p95\":{p95}, \"p99\": {p99}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BINDER, HWBINDER};
    use super::*;

    fn times(ms: [f64; 3], misses: u64) -> CallTimes {
        let [mean, worst, best] = ms.map(|ms| Some(ms * 1e6));
        let quantiles = [0.150_123_4, 0.2, 0.25, 1.5].map(|ms| Some(ms * 1e6));
        CallTimes { calls: 5000, mean, worst, best, misses, quantiles }
    }

    fn pair(name: &str, synced: u64, other: CallTimes, fifo: CallTimes) -> BinderPairStatistics {
        BinderPairStatistics { name: name.to_owned(), synced, judged: 10_000, other, fifo }
    }

    /// Figures of the sample on the page about Android 8.0's tests.
    fn sample() -> BinderLatencyPage {
        BinderLatencyPage {
            pairs: 3,
            iterations: 5000,
            deadline_us: 2500,
            passthrough: false,
            raw: None,
            blocks: vec![
                pair("P0", 9352, times([0.2, 2.8, 0.0534], 2), times([0.16, 1.5, 0.0671], 0)),
                pair("P1", 9334, times([0.19, 2.9, 0.055], 2), times([0.16, 3.1, 0.066], 1)),
                pair("P2", 9369, times([0.19, 4.8, 0.055], 6), times([0.15, 1.8, 0.067], 0)),
                pair("ALL", 9352, times([0.19, 4.8, 0.0534], 10), times([0.157, 3.1, 0.066], 1)),
            ],
            inheritance: Inheritance::Pass,
        }
    }

    #[test]
    fn android_8_printed_this() {
        assert_eq!(sample().format_page(&HWBINDER, AndroidOutputVersion::Oreo), include_str!("oreo.txt"));
    }

    #[test]
    fn current_versions_add_the_sum_and_percentiles() {
        let page = sample();
        let blocks = vec![page.blocks[0].clone(), page.blocks[3].clone()];
        let raw = Some(vec![vec![51_000, 49_990], vec![]]);
        let page = BinderLatencyPage { blocks, raw, ..page };
        let text = page.format_page(&HWBINDER, AndroidOutputVersion::Current);
        assert_eq!(text, include_str!("current.txt"));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["ALL"]["otherdis"]["p50"], 0.15012);
    }

    #[test]
    fn schd_dbg_has_no_blanks_and_no_sum() {
        let page = BinderLatencyPage { blocks: sample().blocks.split_off(2), ..sample() };
        let inheritance = Inheritance::Fail { failed: 3, calls: 9 };
        let text =
            BinderLatencyPage { inheritance, ..page }.format_page(&BINDER, AndroidOutputVersion::Current);
        let expected = "{\n\"cfg\":{\"pair\":3,\"iterations\":5000,\"deadline_us\":2500},\n\
            \"P2\":{\"SYNC\":\"GOOD\",\"S\":9369,\"I\":10000,\"R\":0.9369,\n  \
            \"other_ms\":{ \"avg\":0.19   ,\"wst\":4.8    ,\"bst\":0.055  ,\"miss\":6,\"meetR\":0.9988},\n  \
            \"fifo_ms\": { \"avg\":0.15   ,\"wst\":1.8    ,\"bst\":0.067  ,\"miss\":0,\"meetR\":1}\n},\n\
            \"inheritance\": \"FAIL\"\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn android_8_has_the_ratio_of_all_calls_and_current_layouts_that_of_those_that_can_be_judged() {
        let moved = BinderPairStatistics { judged: 9_800, ..sample().blocks[0].clone() };
        let page = BinderLatencyPage { blocks: vec![moved], ..sample() };
        let ratio = |layout| {
            let json: serde_json::Value = serde_json::from_str(&page.format_page(&BINDER, layout)).unwrap();
            json["P0"]["R"].as_f64().unwrap()
        };
        assert_eq!(ratio(AndroidOutputVersion::Oreo), 0.9352);
        assert_eq!(ratio(AndroidOutputVersion::Current), 0.954285714);
        assert!(
            page.format_page(&BINDER, AndroidOutputVersion::Current)
                .contains("\"I\":10000,\"judged\":9800,\"R\":0.954285714")
        );
        assert!(!page.format_page(&BINDER, AndroidOutputVersion::Oreo).contains("judged"));
    }

    #[test]
    fn without_calls_it_is_json_all_the_same() {
        let empty = BinderPairStatistics { name: "P0".to_owned(), ..BinderPairStatistics::default() };
        let page =
            BinderLatencyPage { blocks: vec![empty], inheritance: Inheritance::Skipped(""), ..sample() };
        let json: serde_json::Value =
            serde_json::from_str(&page.format_page(&HWBINDER, AndroidOutputVersion::Current)).unwrap();
        assert_eq!((&json["P0"]["SYNC"], &json["P0"]["R"]), (&"UNKNOWN".into(), &serde_json::Value::Null));
        assert_eq!(json["inheritance"], "SKIPPED");
    }
}
