//! Flags of Google Benchmark, and `-m`.

use super::BinderBenchmark;
use super::filter::BenchmarkFilter;
use super::runs::{BinderBenchmarkRow, BinderBenchmarkRowKind};
use crate::binder_tests::words::{BinderCommonOptions, SWITCH, option, parse_in_range, parse_switch};
use crate::getopt::{CommandLineRefusal, OptionOccurrence, ProgramOption, Takes, part, set_field, value};
use std::path::PathBuf;

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkFormat {
    /// Table for the console.
    Console,
    /// JSON, as Google Benchmark writes it.
    Json,
    /// CSV, as Google Benchmark writes it.
    Csv,
}

/// Length of the run of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkRunLength {
    /// Time of the run, in ns.
    Time(u64),
    /// Number of calls in the run.
    Iterations(u64),
}

/// Values of the options of a call.
#[derive(Debug, Clone)]
pub struct BenchmarkOptions {
    /// Benchmark that the program makes.
    pub bench: &'static BinderBenchmark,
    /// Value of `--benchmark_format`: the form of stdout.
    pub format: BenchmarkFormat,
    /// Value of `--benchmark_filter`: the benchmarks to run; `None` for all.
    pub filter: Option<BenchmarkFilter>,
    /// Value of `--benchmark_repetitions`: the number of rounds over all benchmarks.
    pub repetitions: u64,
    /// Value of `--benchmark_report_aggregates_only`: show and write only statistics of repetitions.
    pub aggregates_only: bool,
    /// Value of `--benchmark_display_aggregates_only`: show only statistics, but write all runs to the file.
    pub display_aggregates_only: bool,
    /// Value of `--benchmark_min_time`: the length of each run.
    pub length: BenchmarkRunLength,
    /// Value of `--benchmark_out`: the file to write.
    pub out: Option<PathBuf>,
    /// Value of `--benchmark_out_format`: the form of that file.
    pub out_format: BenchmarkFormat,
    /// Value of `--benchmark_list_tests`: print the names and measure nothing.
    pub list: bool,
    /// Value of `-m PASSTHROUGH`: call within the process.
    pub passthrough: bool,
    /// Values of the options that latscope adds.
    pub common: BinderCommonOptions,
}

impl BenchmarkOptions {
    /// Returns the options of a call of a program without arguments.
    pub fn for_benchmark(bench: &'static BinderBenchmark) -> BenchmarkOptions {
        BenchmarkOptions {
            bench,
            format: BenchmarkFormat::Console,
            filter: None,
            repetitions: 1,
            aggregates_only: false,
            display_aggregates_only: false,
            length: BenchmarkRunLength::Time(500_000_000),
            out: None,
            out_format: BenchmarkFormat::Json,
            list: false,
            passthrough: false,
            common: BinderCommonOptions::default(),
        }
    }
}

part!(BenchmarkOptions, common: BinderCommonOptions);

const FORMAT: (Takes, &str) = value("console|json|csv");

/// Returns an option that has no effect.
const fn ignored_option(
    name: &'static str,
    takes: (Takes, &'static str),
    help: &'static str,
) -> ProgramOption<BenchmarkOptions> {
    option(name, takes, help, |_, _| Ok(()))
}

/// All options of the two programs.
#[rustfmt::skip]
static SPECS: [ProgramOption<BenchmarkOptions>; 21] = [
    option("-m", value("PASSTHROUGH"), "call within the process; any other word: over hwbinder",
        |o, given| set_field(&mut o.passthrough, Ok(given.value_text() == "PASSTHROUGH"))),
    option("--benchmark_list_tests", SWITCH, "print the names, and measure nothing", |o, given| set_field(&mut o.list, parse_switch(given))),
    option("--benchmark_filter", value("REGEX"), "only those that match; -REGEX: that do not", |o, given| set_field(&mut o.filter, filter(given.value_text()))),
    option("--benchmark_min_time", value("T"), "seconds of each, as 0.5 or 0.5s, or calls, as 100x [0.5]", |o, given| set_field(&mut o.length, length(given.value_text()))),
    option("--benchmark_repetitions", value("N"), "so many rounds over all of them [1]", |o, given| set_field(&mut o.repetitions, parse_in_range(given, 1..=1000))),
    option("--benchmark_report_aggregates_only", SWITCH, "of repetitions only mean, median, stddev, cv",
        |o, given| set_field(&mut o.aggregates_only, parse_switch(given))),
    option("--benchmark_display_aggregates_only", SWITCH, "the same, but the file has all",
        |o, given| set_field(&mut o.display_aggregates_only, parse_switch(given))),
    option("--benchmark_format", FORMAT, "of stdout [console]", |o, given| set_field(&mut o.format, format(given))),
    option("--benchmark_out", value("FILE"), "write them to a file, too", |o, given| set_field(&mut o.out, given.path())),
    option("--benchmark_out_format", FORMAT, "of that file [json]", |o, given| set_field(&mut o.out_format, format(given))),
    ignored_option("--benchmark_color", value("auto|true|false"), "no effect: there is no colour"),
    ignored_option("--benchmark_counters_tabular", SWITCH, "no effect: there are no counters"),
    ignored_option("--benchmark_enable_random_interleaving", SWITCH, "no effect: repetitions are rounds over all of them"),
    ignored_option("--benchmark_min_warmup_time", value("S"), "no effect: the first 100 calls are never recorded"),
    option("--benchmark_dry_run", SWITCH, "one call of each",
        dry_run),
    option("--benchmark_time_unit", value("ns"), "only ns", |_, given| time_unit(given)),
    ignored_option("--v", value("N"), "no effect"),
    ProgramOption::TRANSPORT,
    ProgramOption::LAYOUT,
    ProgramOption::SAVED,
    ProgramOption::USAGE,
];

/// Options that a program has. Only hwbinder's has `-m`.
pub(super) const fn specs(bench: &BinderBenchmark) -> &'static [ProgramOption<BenchmarkOptions>] {
    if bench.passthrough.is_some() { &SPECS } else { SPECS.split_at(1).1 }
}

impl BenchmarkOptions {
    /// Returns true if a run is printed on stdout.
    pub fn prints_run(&self, run: &BinderBenchmarkRow) -> bool {
        self.keeps(run) && !(self.display_aggregates_only && self.is_single(run))
    }

    /// Returns true if a run is written to the file.
    pub fn keeps(&self, run: &BinderBenchmarkRow) -> bool {
        !(self.aggregates_only && self.is_single(run))
    }

    fn is_single(&self, run: &BinderBenchmarkRow) -> bool {
        self.repetitions > 1
            && run.error.is_none()
            && matches!(run.kind, BinderBenchmarkRowKind::Repetition(_))
    }
}

fn format(given: &OptionOccurrence) -> Result<BenchmarkFormat, CommandLineRefusal> {
    match given.value_text() {
        "console" => Ok(BenchmarkFormat::Console),
        "json" => Ok(BenchmarkFormat::Json),
        "csv" => Ok(BenchmarkFormat::Csv),
        word => {
            Err(CommandLineRefusal::Usage(format!("{} is console, json or csv, not {word:?}", given.name)))
        }
    }
}

fn dry_run(options: &mut BenchmarkOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    if parse_switch(given)? {
        options.length = BenchmarkRunLength::Iterations(1);
    }
    Ok(())
}

fn time_unit(given: &OptionOccurrence) -> Result<(), CommandLineRefusal> {
    match given.value_text() {
        "ns" => Ok(()),
        unit => Err(CommandLineRefusal::Usage(format!("{}={unit}: only ns is covered", given.name))),
    }
}

fn filter(text: &str) -> Result<Option<BenchmarkFilter>, CommandLineRefusal> {
    BenchmarkFilter::parse_filter(text).map_err(|error| CommandLineRefusal::Usage(format!("{error:#}")))
}

/// Parses a length: `0.5`, `0.5s`, `100x`.
fn length(text: &str) -> Result<BenchmarkRunLength, CommandLineRefusal> {
    let count = text.strip_suffix('x').map(|count| count.parse().ok().filter(|count| *count > 0));
    let seconds = || text.strip_suffix('s').unwrap_or(text).parse().ok();
    let time = || seconds().filter(|seconds: &f64| *seconds > 0.0 && *seconds <= 1e6);
    let length = match count {
        Some(count) => count.map(BenchmarkRunLength::Iterations),
        None => time().map(|seconds| BenchmarkRunLength::Time((seconds * 1e9) as u64)),
    };
    length.ok_or_else(|| {
        let text = format!("--benchmark_min_time takes seconds, as 0.5s, or calls, as 100x, not {text:?}");
        CommandLineRefusal::Usage(text)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{LIBBINDER_BENCHMARK, LIBHWBINDER_BENCHMARK};
    use super::*;
    use crate::context::PersonalityContext;

    fn read(line: &str) -> Result<BenchmarkOptions, CommandLineRefusal> {
        LIBHWBINDER_BENCHMARK.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn flags_mean_what_they_mean_there() {
        let options = read(
            "--benchmark_format=json --benchmark_repetitions=3 --benchmark_report_aggregates_only \
             --benchmark_min_time=0.25s --benchmark_out=x --benchmark_out_format=csv -m PASSTHROUGH --benchmark_color=no",
        )
        .unwrap();
        assert_eq!(
            (options.format, options.repetitions, options.out_format),
            (BenchmarkFormat::Json, 3, BenchmarkFormat::Csv)
        );
        assert_eq!(options.length, BenchmarkRunLength::Time(250_000_000));
        assert!(options.aggregates_only && options.passthrough && options.out.is_some());
        assert_eq!(read("--benchmark_min_time=7x").unwrap().length, BenchmarkRunLength::Iterations(7));
        assert!(!read("--benchmark_list_tests=false").unwrap().list);
    }

    #[test]
    fn a_filter_is_a_regular_expression_that_may_be_turned_round() {
        let takes = |filter: &str, name: &str| {
            read(&format!("--benchmark_filter={filter}"))
                .unwrap()
                .filter
                .is_none_or(|filter| filter.selects_name(name))
        };
        assert!(
            takes("ize/(4|8)$", "BM_sendVec_binderize/8") && !takes("ize/(4|8)$", "BM_sendVec_binderize/64")
        );
        assert!(takes("-/8$", "BM/4") && !takes("-/8$", "BM/8") && takes("all", "BM/4"));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("--benchmark_filter=(", "is no regular expression"),
            ("--benchmark_format=xml", "is console, json or csv"),
            ("--benchmark_min_time=soon", "takes seconds"),
            ("--benchmark_min_time=0x", "takes seconds"),
            ("--benchmark_repetitions=0", "takes a number from 1"),
            ("--benchmark_list_tests=maybe", "is true or false"),
            ("--benchmark_time_unit=ms", "only ns"),
            ("--benchmark_perf_counters=cycles", "there is no option"),
        ] {
            let text = format!("{:#}", read(line).unwrap_err());
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
        assert!(LIBBINDER_BENCHMARK.read_call(&PersonalityContext::new(["-m", "PASSTHROUGH"])).is_err());
    }
}
