//! `binderThroughputTest`, which measures how many transactions a second its workers get.

pub mod text;

use super::measure::{self, BinderRunEnvironment, failed_calls, of_pairs};
use super::words::{self, AOSP, BinderCommonOptions};
use crate::context::PersonalityContext;
use crate::getopt::{CommandLineRefusal, FLAG, ProgramCall, ProgramOption, part, set_field, set_flag, value};
use crate::personality::PersonalityProgram;
use anyhow::Result;
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::histogram::Histogram;
use latscope_core::plan::Periodic;
use latscope_core::report::Report;
use latscope_probes::ipc::point::Caller;
use latscope_probes::ipc::setup::{IpcStepSetup, usual_rules};
use latscope_process::stdout::print_text;
use smart_default::SmartDefault;
use text::ThroughputStatistics;

/// Program `binderThroughputTest`.
pub static THROUGHPUT: PersonalityProgram<ThroughputOptions> = PersonalityProgram {
    usual: |context| words::usual(ThroughputOptions::default(), context),
    ..PersonalityProgram::new(
        "binderThroughputTest",
        "binder transactions a second, by processes that call each other",
        &AOSP,
        SPECS,
        resolve_options,
        carry_out,
    )
};

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct ThroughputOptions {
    /// Value of `-w`: the number of workers.
    #[default(2)]
    pub workers: u64,
    /// Value of `-i`: the number of calls of each worker.
    #[default(10_000)]
    pub iterations: u64,
    /// Value of `-s`: the bytes of a request and of its reply.
    pub payload: u64,
    /// Value of `-p`: half of the workers serve.
    pub pairs: bool,
    /// Value of `-m`, in µs: the time above which a call counts as too long.
    #[default(50_000)]
    pub most_us: u64,
    /// Value of `-t`: a training round measures the value of `-m`.
    pub training: bool,
    /// Values of the options that latscope adds.
    pub common: BinderCommonOptions,
}

part!(ThroughputOptions, common: BinderCommonOptions);

/// All options of `binderThroughputTest`.
#[rustfmt::skip]
pub static SPECS: &[ProgramOption<ThroughputOptions>] = &[
    words::option("-w", value("N"), "workers [2]", |o, given| set_field(&mut o.workers, words::parse_in_range(given, 1..=1024))),
    words::option("-i", value("N"), "calls of each [10000]", |o, given| set_field(&mut o.iterations, words::parse_in_range(given, 1..=1_000_000_000))),
    words::option("-s", value("N"), "bytes of a request, and of its reply [0, which is 4]", |o, given| set_field(&mut o.payload, words::parse_in_range(given, 0..=64 << 20))),
    words::option("-p", FLAG, "half of the workers serve the other half", |o, _| set_flag(&mut o.pairs)),
    words::option("-m", value("US"), "say what share of the calls took longer [50000]",
        |o, given| set_field(&mut o.most_us, words::parse_in_range(given, 1..=1_000_000_000))),
    words::option("-t", FLAG, "a round before, whose longest call, doubled, is taken for -m", |o, _| set_flag(&mut o.training)),
    ProgramOption::TRANSPORT,
    ProgramOption::LAYOUT,
    ProgramOption::SAVED,
    ProgramOption::USAGE,
];

/// Checks that the workers can be split into pairs.
fn resolve_options(call: ProgramCall<ThroughputOptions>) -> Result<ThroughputOptions, CommandLineRefusal> {
    let ThroughputOptions { pairs, workers, .. } = call.options;
    if pairs && !workers.is_multiple_of(2) {
        let text = format!("-w {workers} cannot be split into pairs: choose an even number");
        return Err(CommandLineRefusal::Usage(text));
    }
    words::resolve_options(call)
}

impl ThroughputOptions {
    /// Number of workers that call.
    pub fn callers(&self) -> u64 {
        if self.pairs { self.workers / 2 } else { self.workers }
    }
}

fn carry_out(options: &ThroughputOptions, context: &PersonalityContext) -> Result<u8> {
    let transport = measure::transport(&options.common, "binder")?;
    let environment = BinderRunEnvironment::of_this_machine(context);
    let plan = |most: u64| {
        let setup = step_setup(options, most, IpcStepSetup::for_transport(transport, &environment.machine));
        environment.plan(vec![setup.plan_step()], None)
    };
    let round = |most: u64| environment.carry_out(plan(most), None, &options.common);
    let mut most = options.most_us * 1000;
    if context.show_dry_run(&plan(most)) {
        return Ok(0);
    }
    if options.training {
        print_text("Start training round\n");
        let figures = collect_statistics(&round(most)?);
        print_text(&(text::round(options.workers, &figures) + &text::format_training(&figures)));
        most = 2 * figures.worst as u64;
    }
    let report = round(most)?;
    let figures = collect_statistics(&report);
    print_text(&(text::round(options.workers, &figures) + &text::format_figures(&figures)));
    if !options.pairs {
        context.print_note("each worker calls a server process of its own, not another worker at random");
    }
    let short = of_pairs(&report).any(|m| m.summary.count < options.iterations);
    if short {
        context.print_note("it ended before all iterations were done");
    }
    Ok(u8::from(short || of_pairs(&report).map(failed_calls).sum::<u64>() > 0))
}

/// Setup with a pair of processes for each worker that calls.
fn step_setup(options: &ThroughputOptions, most: u64, usual: IpcStepSetup) -> IpcStepSetup {
    IpcStepSetup {
        callers: vec![Caller::Other],
        pairs: options.callers(),
        payloads: vec![options.payload.max(LEAST)],
        deadline: most,
        rules: Periodic { warm_up: 0, ..usual_rules() },
        count: options.iterations,
        ..usual
    }
}

/// Least number of bytes in a request, which lets a stale reply be noticed.
const LEAST: u64 = 4;

fn collect_statistics(report: &Report) -> ThroughputStatistics {
    let mut histogram = Histogram::new(of_pairs(report).next().map_or(1000, |m| m.histogram.tick_ps()));
    of_pairs(report).for_each(|m| histogram.merge(&m.histogram));
    let longest = |name| of_pairs(report).map(|m| measure::value_or_zero(m, name)).fold(0.0, f64::max);
    let elapsed = longest(RUN_ELAPSED).max(longest("elapsed"));
    let quantile = |q| histogram.quantile(q).unwrap_or(f64::NAN);
    ThroughputStatistics {
        calls: histogram.count(),
        misses: of_pairs(report).map(|m| m.summary.missed).sum(),
        elapsed,
        mean: histogram.mean().unwrap_or(f64::NAN),
        worst: histogram.max().unwrap_or(f64::NAN),
        best: histogram.min().unwrap_or(f64::NAN),
        quantiles: [0.5, 0.9, 0.95, 0.99].map(quantile),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ThroughputOptions, CommandLineRefusal> {
        THROUGHPUT.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read("").unwrap();
        for ProgramOption { spec, .. } in SPECS {
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
