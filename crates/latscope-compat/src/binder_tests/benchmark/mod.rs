//! `libbinder_benchmark` and `libhwbinder_benchmark`: round trips by payload,
//! with the flags and the output of Google Benchmark.

pub mod console;
pub mod context;
pub mod csv;
pub mod filter;
pub mod json;
pub mod options;
pub mod runs;

use super::measure::{self, BinderRunEnvironment, failed_calls, of_pairs, value_or_zero};
use super::words;
use crate::context::PersonalityContext;
use crate::personality::PersonalityProgram;
use anyhow::{Result, ensure};
use context::BenchmarkContext;
use latscope_core::param;
use latscope_core::redact::REDACTED;
use latscope_core::report::{Measurement, Report};
use latscope_engine::saver;
use latscope_judge::verdict;
use latscope_probes::ipc::passthrough;
use latscope_probes::ipc::point::{Caller, IpcMeasureMode};
use latscope_probes::ipc::setup::IpcStepSetup;
use latscope_process::eprint;
use latscope_process::stdout::print_text;
use options::{BenchmarkFormat, BenchmarkOptions, BenchmarkRunLength};
use runs::{BinderBenchmarkRow, BinderBenchmarkSample};

/// Description of one of the two programs.
#[derive(Debug, PartialEq, Eq)]
pub struct BinderBenchmark {
    /// Name of the transport.
    pub transport: &'static str,
    /// Name of the benchmark.
    pub family: &'static str,
    /// Name of the benchmark with `-m PASSTHROUGH`; `None` if the program does not take that option.
    pub passthrough: Option<&'static str>,
}

/// `libbinder_benchmark`, which measures over binder.
pub static BINDER: BinderBenchmark =
    BinderBenchmark { transport: "binder", family: "BM_sendVec_binder", passthrough: None };

/// `libhwbinder_benchmark`, which measures over hwbinder.
pub static HWBINDER: BinderBenchmark = BinderBenchmark {
    transport: "hwbinder",
    family: "BM_sendVec_binderize",
    passthrough: Some("BM_sendVec_passthrough"),
};

/// Program `libbinder_benchmark`.
pub static LIBBINDER_BENCHMARK: PersonalityProgram<BenchmarkOptions> = words::define_program(
    "libbinder_benchmark",
    "binder round trips by payload, as Google Benchmark",
    options::specs(&BINDER),
    |context| words::usual(BenchmarkOptions::for_benchmark(&BINDER), context),
    carry_out,
);

/// Program `libhwbinder_benchmark`.
pub static LIBHWBINDER_BENCHMARK: PersonalityProgram<BenchmarkOptions> = words::define_program(
    "libhwbinder_benchmark",
    "hwbinder round trips by payload, as Google Benchmark",
    options::specs(&HWBINDER),
    |context| words::usual(BenchmarkOptions::for_benchmark(&HWBINDER), context),
    carry_out,
);

fn carry_out(options: &BenchmarkOptions, context: &PersonalityContext) -> Result<u8> {
    let bench = options.bench;
    let family = bench.passthrough.filter(|_| options.passthrough).unwrap_or(bench.family);
    let chosen = runs::benchmarks(family, options.common.layout, options.filter.as_ref());
    ensure!(!chosen.is_empty(), "no benchmark's name is matched by --benchmark_filter");
    if options.list {
        print_text(&chosen.iter().map(|(name, _)| format!("{name}\n")).collect::<String>());
        return Ok(0);
    }
    let usual = if options.passthrough { passthrough::NAME } else { bench.transport };
    let transport = measure::transport(&options.common, usual)?;
    options.out.as_ref().map_or(Ok(()), |path| saver::check_writable(path))?;
    let environment = BinderRunEnvironment::of_this_machine(context);
    let payloads: Vec<u64> = chosen.iter().map(|(_, payload)| *payload).collect();
    let setup = step_setup(options, payloads, IpcStepSetup::for_transport(transport, &environment.machine));
    let steps = (0..options.repetitions).map(|_| setup.plan_step()).collect();
    let plan = environment.plan(steps, None);
    if context.show_dry_run(&plan) {
        return Ok(0);
    }
    let report = environment.carry_out(plan, None, &options.common)?;
    let samples: Vec<Vec<BinderBenchmarkSample>> =
        chosen.iter().map(|(_, payload)| samples(&report, *payload)).collect();
    let runs = runs::all_rows(&chosen, &samples);
    let mut machine = BenchmarkContext::of_this_machine(context.name, &environment.machine);
    if context.redact {
        REDACTED.clone_into(&mut machine.host);
    }
    let shown: Vec<&BinderBenchmarkRow> = runs.iter().filter(|run| options.prints_run(run)).collect();
    if options.format == BenchmarkFormat::Console {
        eprint!("{}", machine.format_console(options.common.layout));
    }
    print_text(&render(options.format, options, &machine, &shown));
    if let Some(path) = &options.out {
        let kept: Vec<&BinderBenchmarkRow> = runs.iter().filter(|run| options.keeps(run)).collect();
        saver::replace(path, render(options.out_format, options, &machine, &kept).as_bytes())?;
    }
    let failed = verdict::is_cut_short(&report)
        || of_pairs(&report).any(|m| failed_calls(m) > 0 || m.summary.count == 0);
    if failed {
        context.print_note("not all of it was measured");
    }
    Ok(u8::from(failed))
}

/// Setup of a single pair, whose client makes calls for the time or count asked for.
fn step_setup(options: &BenchmarkOptions, payloads: Vec<u64>, usual: IpcStepSetup) -> IpcStepSetup {
    let (count, duration) = match options.length {
        BenchmarkRunLength::Time(ns) => (u64::MAX, ns),
        BenchmarkRunLength::Iterations(count) => (count, u64::MAX),
    };
    IpcStepSetup {
        mode: IpcMeasureMode::Throughput,
        callers: vec![Caller::Other],
        payloads,
        count,
        duration,
        ..usual
    }
}

/// Repetitions of a payload, in order.
fn samples(report: &Report, payload: u64) -> Vec<BinderBenchmarkSample> {
    let of_payload = |m: &&Measurement| m.numeric_param(param::PAYLOAD) == Some(payload);
    of_pairs(report).filter(of_payload).map(summarize_repetition).collect()
}

fn summarize_repetition(m: &Measurement) -> BinderBenchmarkSample {
    let unmeasured = || m.joined_reasons().clone().unwrap_or_else(|| "nothing was measured".to_owned());
    BinderBenchmarkSample {
        iterations: m.summary.count,
        real: m.summary.mean.unwrap_or(0.0),
        cpu: value_or_zero(m, "caller-cpu"),
        error: (m.summary.count == 0).then(unmeasured),
    }
}

fn render(
    format: BenchmarkFormat,
    options: &BenchmarkOptions,
    context: &BenchmarkContext,
    runs: &[&BinderBenchmarkRow],
) -> String {
    let layout = options.common.layout;
    match format {
        BenchmarkFormat::Console => console::format_table(layout, runs),
        BenchmarkFormat::Json => json::format_json(layout, context, runs),
        BenchmarkFormat::Csv => csv::format_csv(runs),
    }
}
