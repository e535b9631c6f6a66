//! Command-line options of `binderThroughputTest`.

use crate::binder_tests::words::{self, Common, number, option};
use crate::getopt::{Call, FLAG, Opt, Refusal, on, part, put, value};

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughputOptions {
    /// Value of `-w`: the number of workers.
    pub workers: u64,
    /// Value of `-i`: the number of calls of each worker.
    pub iterations: u64,
    /// Value of `-s`: the bytes of a request and of its reply.
    pub payload: u64,
    /// Value of `-p`: half of the workers serve.
    pub pairs: bool,
    /// Value of `-m`, in µs: the time above which a call counts as too long.
    pub most_us: u64,
    /// Value of `-t`: a training round measures the value of `-m`.
    pub training: bool,
    /// Values of the options that latscope adds.
    pub common: Common,
}

impl Default for ThroughputOptions {
    fn default() -> ThroughputOptions {
        let (workers, iterations, most_us) = (2, 10_000, 50_000);
        let common = Common::default();
        ThroughputOptions { workers, iterations, payload: 0, pairs: false, most_us, training: false, common }
    }
}

part!(ThroughputOptions, common: Common);

/// All options of `binderThroughputTest`.
#[rustfmt::skip]
pub static SPECS: &[Opt<ThroughputOptions>] = &[
    option("-w", value("N"), "workers [2]", |o, given| put(&mut o.workers, number(given, 1..=1024))),
    option("-i", value("N"), "calls of each [10000]", |o, given| put(&mut o.iterations, number(given, 1..=1_000_000_000))),
    option("-s", value("N"), "bytes of a request, and of its reply [0, which is 4]", |o, given| put(&mut o.payload, number(given, 0..=64 << 20))),
    option("-p", FLAG, "half of the workers serve the other half", |o, _| on(&mut o.pairs)),
    option("-m", value("US"), "say what share of the calls took longer [50000]",
        |o, given| put(&mut o.most_us, number(given, 1..=1_000_000_000))),
    option("-t", FLAG, "a round before, whose longest call, doubled, is taken for -m", |o, _| on(&mut o.training)),
    Opt::TRANSPORT,
    Opt::LAYOUT,
    Opt::SAVED,
    Opt::USAGE,
];

/// Checks that the workers can be split into pairs.
pub(super) fn settle(call: Call<ThroughputOptions>) -> Result<ThroughputOptions, Refusal> {
    let ThroughputOptions { pairs, workers, .. } = call.options;
    if pairs && !workers.is_multiple_of(2) {
        let text = format!("-w {workers} cannot be split into pairs: choose an even number");
        return Err(Refusal::Usage(text));
    }
    words::settle(call)
}

impl ThroughputOptions {
    /// Number of workers that call.
    pub fn callers(&self) -> u64 {
        if self.pairs { self.workers / 2 } else { self.workers }
    }
}

#[cfg(test)]
mod tests {
    use super::super::THROUGHPUT;
    use super::*;
    use crate::context::Context;

    fn read(line: &str) -> Result<ThroughputOptions, Refusal> {
        THROUGHPUT.read(&Context::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read("").unwrap();
        for Opt { spec, .. } in SPECS {
            if spec.long == "--help" {
                continue;
            }
            let value = match spec.value {
                "" => "",
                "8.0" => " 8.0",
                _ => " 8",
            };
            assert_ne!(read(&format!("{}{value}", spec.long)).unwrap(), usual, "{}", spec.long);
        }
        assert_eq!((usual.callers(), read("-p -w 6").unwrap().callers()), (2, 3));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("-w 0", "-w takes"),
            ("-p -w 3", "-w 3 cannot be split into pairs"),
            ("-m 0", "-m takes a number from 1"),
            ("-t 5", "there is no option \"5\""),
            ("-s x", "-s takes"),
        ] {
            let text = read(line).unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
    }
}
