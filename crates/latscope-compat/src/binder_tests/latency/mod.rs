//! `schd-dbg` and `libhwbinder_latency`: pairs of processes. In each turn a fresh SCHED_FIFO thread makes a call, and
//! then a normal caller does.

pub mod hops;
pub mod options;
pub mod text;

use super::measure::{self, BinderRunEnvironment, failed_calls, of_pairs, value_or_zero};
use super::words;
use crate::context::PersonalityContext;
use crate::environment;
use crate::personality::PersonalityProgram;
use anyhow::{Context as _, Result};
use hops::Main;
use latscope_core::param;
use latscope_core::plan::{Action, OnThreshold, Periodic};
use latscope_core::report::{Measurement, Report};
use latscope_engine::observers::{Observer, RunEvent};
use latscope_probes::ipc::passthrough;
use latscope_probes::ipc::point::Caller;
use latscope_probes::ipc::setup::{IpcStepSetup, usual_rules};
use latscope_process::eprint;
use latscope_process::stdout::print_text;
use options::LatencyOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;
use text::{BinderLatencyPage, BinderPairStatistics, CallTimes, Inheritance};

/// Description of one of the two programs.
#[derive(Debug, PartialEq, Eq)]
pub struct Test {
    /// Name of the transport, which is also the program's word for a serving thread.
    pub transport: &'static str,
    /// Word in the output for a process that serves.
    pub server: &'static str,
    /// True if the output has percentiles and the sum of all pairs.
    pub fuller: bool,
}

/// Test of `schd-dbg`, over binder.
pub static BINDER: Test = Test { transport: "binder", server: "server", fuller: false };

/// Test of `libhwbinder_latency`, over hwbinder.
pub static HWBINDER: Test = Test { transport: "hwbinder", server: "service", fuller: true };

/// Program `schd-dbg`.
pub static SCHD_DBG: PersonalityProgram<LatencyOptions> = words::define_program(
    "schd-dbg",
    "binder latency, deadline, sync and inheritance",
    &options::BINDER,
    |context| words::usual(LatencyOptions::for_test(&BINDER), context),
    carry_out,
);

/// Program `libhwbinder_latency`.
pub static LIBHWBINDER_LATENCY: PersonalityProgram<LatencyOptions> = words::define_program(
    "libhwbinder_latency",
    "hwbinder latency, deadline, sync and inheritance",
    &options::HWBINDER,
    |context| words::usual(LatencyOptions::for_test(&HWBINDER), context),
    carry_out,
);

/// Highest real-time priority of Linux.
const PRIORITY: u32 = 99;

/// Largest number of turns that `-v` prints in full.
const TOLD: u64 = 1000;

fn carry_out(options: &LatencyOptions, context: &PersonalityContext) -> Result<u8> {
    let test = options.test;
    let usual = if options.passthrough { passthrough::NAME } else { test.transport };
    let transport = measure::transport(&options.common, usual)?;
    let trace = options.trace.then(recorded_trace).transpose()?;
    let real_time = environment::may_be_real_time(PRIORITY).is_ok();
    let environment = BinderRunEnvironment::of_this_machine(context);
    let setup = step_setup(options, IpcStepSetup::for_transport(transport, &environment.machine));
    let mut raw = FifoLatencyObserver { pairs: vec![Vec::new(); options.pairs as usize], lost: 0 };
    let observer: Option<&mut dyn Observer> = if options.raw_data { Some(&mut raw) } else { None };
    let plan = environment.plan(vec![setup.plan_step()], trace.as_deref().map(stop_at_miss));
    if context.show_dry_run(&plan) {
        return Ok(0);
    }
    let main = Main::of_this_thread();
    let report = environment.carry_out(plan, observer, &options.common)?;
    if options.verbose {
        print_hops(context, options, &main, &report);
    }
    if raw.lost > 0 {
        let text = format!("-raw_data lacks {} calls that came faster than they could be taken", raw.lost);
        context.print_note(&text);
    }
    let page = page(options, &report, real_time, options.raw_data.then_some(raw.pairs));
    print_text(&page.format_page(test, options.common.layout));
    Ok(print_run_notes(context, options, &report, &page, trace.as_deref()))
}

/// Directory of the trace that is being recorded, which the first miss stops.
///
/// # Errors
/// No trace is being recorded.
fn recorded_trace() -> Result<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
    let on =
        |place: &PathBuf| std::fs::read(place.join("tracing_on")).is_ok_and(|text| text.starts_with(b"1"));
    let place = places.iter().find(|place| on(place));
    let wanted = "-trace: no trace is running that could be stopped: as root, begin one first, as with \
                  `trace-cmd start -e sched -e binder`";
    Ok(place.context(wanted)?.clone())
}

/// Path of the stopped trace, as the original prints it: the older path if that exists.
fn log(directory: &Path) -> PathBuf {
    let older = Path::new("/sys/kernel/debug/tracing/trace");
    if older.exists() { older.to_owned() } else { directory.join("trace") }
}

/// Actions at the first miss: mark the trace, and stop.
fn stop_at_miss(trace: &Path) -> OnThreshold {
    OnThreshold { actions: vec![Action::MarkTrace(trace.to_owned()), Action::Stop], ..OnThreshold::default() }
}

/// Prints on stderr which processes and threads took part in each call.
fn print_hops(context: &PersonalityContext, options: &LatencyOptions, main: &Main, report: &Report) {
    eprint!("{}", hops::format_hops(options.test, options.common.layout, main, &pairs_of_hops(report)));
    if options.iterations > TOLD {
        context.print_note(&format!("-v prints the first {TOLD} turns"));
    }
}

/// Setup with a point for each caller of each pair, SCHED_FIFO first.
fn step_setup(options: &LatencyOptions, usual: IpcStepSetup) -> IpcStepSetup {
    let rules = Periodic {
        warm_up: 0,
        threshold: options.trace.then_some(options.deadline_ns()),
        stop_at_threshold: options.trace,
        stream: options.raw_data,
        ..usual_rules()
    };
    IpcStepSetup {
        callers: vec![Caller::Fifo(PRIORITY), Caller::Other],
        pairs: options.pairs,
        fresh: true,
        deadline: options.deadline_ns(),
        hops: if options.verbose { options.iterations.min(TOLD) } else { 0 },
        watched: true,
        rules,
        count: options.iterations,
        ..usual
    }
}

/// Observer that keeps the durations of SCHED_FIFO calls, by pair.
struct FifoLatencyObserver {
    pairs: Vec<Vec<u64>>,
    lost: u64,
}

impl Observer for FifoLatencyObserver {
    fn observe(&mut self, event: &RunEvent) {
        let RunEvent::Samples { point, samples, lost } = event else { return };
        // Points alternate: SCHED_FIFO, normal.
        if point % 2 == 0 {
            self.pairs[point / 2].extend(samples.iter().map(|sample| sample.value));
            self.lost += lost;
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(50))
    }
}

fn times(m: &Measurement) -> CallTimes {
    let quantile = |q| m.histogram.quantile(q);
    CallTimes {
        calls: m.summary.count,
        mean: m.summary.mean,
        worst: m.summary.max,
        best: m.summary.min,
        misses: m.summary.missed,
        quantiles: [0.5, 0.9, 0.95, 0.99].map(quantile),
    }
}

/// Rows of one caller: of each pair, then of all.
fn caller_rows<'a>(report: &'a Report, caller: &str) -> Vec<&'a Measurement> {
    let is = |m: &&Measurement| m.text_param(param::CALLER) == Some(caller);
    report.measurements.iter().filter(is).collect()
}

fn page(
    options: &LatencyOptions,
    report: &Report,
    real_time: bool,
    raw: Option<Vec<Vec<u64>>>,
) -> BinderLatencyPage {
    let (fifo, other) = (caller_rows(report, "fifo"), caller_rows(report, "other"));
    let pairs: Vec<BinderPairStatistics> =
        fifo.iter().zip(&other).map(|(fifo, other)| pair_statistics(fifo, other)).collect();
    BinderLatencyPage {
        pairs: options.pairs,
        iterations: options.iterations,
        deadline_us: options.deadline_us,
        passthrough: options.passthrough,
        raw,
        blocks: pairs,
        inheritance: inheritance(report, real_time),
    }
}

/// Verdict over all calls. It is a pass only if the servers reported on each call.
fn inheritance(report: &Report, real_time: bool) -> Inheritance {
    let told = of_pairs(report).all(|m| m.summary.count > 0 && m.values.contains_key("uninherited"));
    let failed = of_pairs(report).map(|m| value_or_zero(m, "uninherited") as u64).sum();
    match (real_time, told, failed) {
        (false, ..) => Inheritance::Skipped("no call was made by a real-time thread"),
        (_, false, 0) => Inheritance::Skipped("it is not known of all calls how they were served"),
        (_, _, 0) => Inheritance::Pass,
        _ => Inheritance::Fail { failed, calls: of_pairs(report).map(|m| m.summary.count).sum() },
    }
}

fn pair_statistics(fifo: &Measurement, other: &Measurement) -> BinderPairStatistics {
    let both = |name: &str| (value_or_zero(fifo, name) + value_or_zero(other, name)) as u64;
    let synced =
        |m: &Measurement| (value_or_zero(m, "sync") * value_or_zero(m, "sync-of") / 100.0).round() as u64;
    BinderPairStatistics {
        name: fifo.numeric_param(param::PAIR).map_or("ALL".to_owned(), |pair| format!("P{pair}")),
        synced: synced(fifo) + synced(other),
        judged: both("sync-of"),
        other: times(other),
        fifo: times(fifo),
    }
}

/// Hops of each pair: those of its SCHED_FIFO caller, and those of its normal caller.
fn pairs_of_hops(report: &Report) -> Vec<hops::CallerHopPair<'_>> {
    let hops = |caller| caller_rows(report, caller).into_iter().map(|m| m.hops.as_slice());
    hops("fifo").zip(hops("other")).filter(|(fifo, _)| !fifo.is_empty()).collect()
}

/// Prints notes on what the text does not show, and returns the exit code.
fn print_run_notes(
    context: &PersonalityContext,
    options: &LatencyOptions,
    report: &Report,
    page: &BinderLatencyPage,
    trace: Option<&Path>,
) -> u8 {
    let failed = of_pairs(report).map(failed_calls).sum::<u64>() > 0;
    let short = of_pairs(report).any(|m| m.summary.count < options.iterations);
    let measured: Vec<Measurement> = of_pairs(report).cloned().collect();
    if let Some(directory) = trace.filter(|_| environment::first_exceedance(&measured).is_some()) {
        // Behind the page, which stays valid JSON.
        eprint!("deadline triggered: halt & stop trace\nlog:{}\n", log(directory).display());
    } else if short {
        context.print_note("it ended before all iterations were done");
    }
    match page.inheritance {
        Inheritance::Pass => {}
        Inheritance::Fail { failed, calls } => context.print_note(&format!(
            "in {failed} of {calls} calls the server had another real-time priority than the caller"
        )),
        Inheritance::Skipped(why) => context.print_note(&format!("inheritance is not judged: {why}")),
    }
    u8::from(failed || short || page.inheritance != Inheritance::Pass)
}
