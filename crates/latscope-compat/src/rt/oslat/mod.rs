//! `oslat`, which runs busy loops and measures with the probe `noise.busy`.

pub mod options;
pub mod text;

use super::options::{RT_TESTS, VERSION, resolve_options};
use super::{cpuset, json};
use crate::context::{PersonalityContext, ReportSaveOutcome};
use crate::environment;
use crate::getopt::CommandLineRefusal;
use crate::personality::PersonalityProgram;
use anyhow::Result;
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{Action, Linear, OnThreshold, ParamValue, Plan};
use latscope_core::report::{Measurement, Report};
use latscope_engine::observers::{Observer, RunEvent};
use latscope_engine::planner::{self, RunRequest};
use latscope_os::sched;
use latscope_probes::noise::BUSY;
use latscope_probes::{PlanInput, REGISTRY};
use latscope_process::eprintln;
use latscope_process::stdout::print_text;
use options::{OslatOptions, SPECS};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use text::Core;

/// Program `oslat`.
pub static OSLAT: PersonalityProgram<OslatOptions> = PersonalityProgram::new(
    "oslat",
    "time stolen from busy loops",
    &RT_TESTS,
    SPECS,
    resolve_options,
    carry_out,
);

fn carry_out(options: &OslatOptions, context: &PersonalityContext) -> Result<u8> {
    if options.version || !context.dry_run {
        print_text(&format!("oslat V {}\n", VERSION));
    }
    if options.version {
        return Ok(0);
    }
    context.print_notes(&options.common.notes);
    let started = SystemTime::now();
    let (machine, timebase) = environment::snapshot_machine();
    let planned = plan_loops(options, &machine);
    if let Ok(plan) = &planned
        && context.show_dry_run(plan)
    {
        return Ok(0);
    }
    if let Some(code) = json::check_writable(&options.common) {
        return Ok(code);
    }
    options.priority.map(environment::may_be_real_time).transpose()?;
    let main = cpuset::parse_cpu_set(&options.main_cpu.to_string(), &machine)?;
    let plan = planned?;
    let watched = plan.steps[0].points.len();
    print_text(&text::format_preamble(options, watched));
    // A trace that cannot be written is not there to be stopped.
    let trace = options.trace_threshold.and_then(|_| environment::trace_directory().ok());
    let mut stopper = Stopper { main: Some(main), trace };
    let result = options.common.result.as_deref();
    let ReportSaveOutcome { report, saved } =
        context.measure_plan(plan, machine, timebase, vec![&mut stopper], result)?;
    let measured = &report.measurements[..watched];
    let there = environment::print_doubts(context, measured);
    let code = match environment::first_exceedance(measured) {
        _ if !there => 1,
        Some((index, ns)) => report_stop(options, cpu(&measured[index]), ns),
        None => print_results(options, context, started, &report, measured),
    };
    saved?;
    Ok(code)
}

/// Plan of a loop on each CPU, with the buckets that count its gaps.
///
/// # Errors
/// A CPU does not exist, or the process may not use it.
fn plan_loops(options: &OslatOptions, machine: &Machine) -> Result<Plan, CommandLineRefusal> {
    let cpus = options.cpus.as_ref().map(|set| cpuset::parse_cpu_set(set, machine)).transpose()?;
    let outside = cpus.iter().flatten().find(|cpu| !machine.allowed.0.contains(cpu));
    if let Some(cpu) = outside {
        let text = format!(
            "oslat: CPU {cpu} is outside of the mask of this process: start it with `taskset -c {cpu}`"
        );
        return Err(CommandLineRefusal::Fatal(text));
    }
    let mut values: BTreeMap<String, Vec<ParamValue>> = BTreeMap::new();
    if let Some(priority) = options.priority {
        values.insert(param::PRIORITY.to_owned(), vec![u64::from(priority).into()]);
    }
    let input = PlanInput { values, ..PlanInput::default() };
    let request = RunRequest {
        cpus: cpus.unwrap_or_default(),
        duration: options.common.duration,
        on_threshold: options
            .trace_threshold
            .map(|_| OnThreshold { actions: vec![Action::Stop], ..OnThreshold::default() }),
        ..RunRequest::new(OSLAT.name, input)
    };
    let mut plan = planner::plan_probes(&REGISTRY, &[&BUSY], &request, machine);
    for step in &mut plan.steps {
        if let Some(rules) = &mut step.periodic {
            rules.linear = Some(Linear { buckets: options.buckets, tick_ns: 1000 });
            // At the threshold, not only above it.
            rules.threshold = options.trace_threshold.map(|us| us.saturating_mul(1000) - 1);
            rules.stop_at_threshold = options.trace_threshold.is_some();
        }
    }
    Ok(plan)
}

/// Observer that moves the waiting thread to its CPU, and stops the user's trace.
struct Stopper {
    main: Option<Vec<u32>>,
    trace: Option<PathBuf>,
}

impl Observer for Stopper {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Point { .. } => {
                // The coordinator has chosen its place by now; this is asked for.
                if let Some(cpus) = self.main.take() {
                    let _ = sched::pin(&cpus);
                }
            }
            RunEvent::Outlier(outlier) => {
                if let Some(directory) = self.trace.take() {
                    stop_trace(&directory, outlier.cpu, outlier.value);
                }
            }
            _ => {}
        }
    }
}

/// Marks and stops the user's trace. Errors are ignored: a trace that can no longer be written has been stopped
/// already.
fn stop_trace(directory: &Path, cpu: u32, ns: u64) {
    let mark = format!("oslat: Trace threshold triggered on cpu {cpu} with {} us", ns / 1000);
    let _ = std::fs::write(directory.join("trace_marker"), mark);
    let _ = std::fs::write(directory.join("tracing_on"), "0");
}

fn cpu(m: &Measurement) -> u32 {
    m.numeric_param(param::CPU).map_or(0, |cpu| cpu as u32)
}

fn report_stop(options: &OslatOptions, cpu: u32, ns: u64) -> u8 {
    if !options.common.quiet {
        print_text("Test starts...\n");
    }
    eprintln!(
        "oslat: Trace threshold ({} us) triggered on cpu {cpu} with {} us!\nStopping the test.",
        options.trace_threshold.unwrap_or(0),
        ns / 1000
    );
    if options.common.strict_exit { 2 } else { 1 }
}

fn print_results(
    options: &OslatOptions,
    context: &PersonalityContext,
    started: SystemTime,
    report: &Report,
    measured: &[Measurement],
) -> u8 {
    let cores: Vec<Core> = measured.iter().map(|m| core(options, m)).collect();
    let megahertz = (report.machine.clock.frequency_hz / 1e6) as u64;
    print_text(&text::format_results(options, megahertz, &cores));
    let rest = || text::format_json(options, megahertz, &cores);
    match json::write_run(context, &options.common, started, rest) {
        true => exit_code(options, report),
        false => json::write_failure_code(&options.common),
    }
}

fn exit_code(options: &OslatOptions, report: &Report) -> u8 {
    if options.common.strict_exit {
        environment::strict_exit(options.trace_threshold.is_some(), false, report)
    } else {
        0
    }
}

/// Returns the figures of a CPU. Turns without a gap count in the shortest bucket.
fn core(options: &OslatOptions, m: &Measurement) -> Core {
    let value = |name: &str| m.values.get(name).map_or(0.0, |value| value.value);
    let record = m.recordings.as_ref().and_then(|recordings| recordings.linear.clone()).unwrap_or_default();
    let mut counts = record.counts;
    counts.resize(options.buckets as usize, 0);
    let (turns, gaps) = (value("turns"), m.histogram.count());
    counts[0] += (turns as u64).saturating_sub(gaps);
    if let Some(last) = counts.last_mut() {
        *last += record.overflow;
    }
    let reached = |ns: Option<f64>| ns.map_or(1, |ns| (ns / 1000.0) as u64 + 1);
    Core {
        cpu: cpu(m),
        min: if counts[0] > 0 { 1 } else { reached(m.histogram.min()) },
        max: reached(m.histogram.max()),
        mean: mean(&counts, excess_us(&m.histogram, options.buckets)),
        seconds: value("watched"),
        counts,
    }
}

/// Mean by oslat's rule, in µs. A turn counts as the upper edge of its bucket. `beyond` is what the turns in the last
/// bucket exceed its edge by, in sum.
fn mean(counts: &[u64], beyond: f64) -> f64 {
    let sum =
        |of: &dyn Fn(u64, u64) -> u64| (1..).zip(counts).map(|(edge, n)| of(edge, *n)).sum::<u64>() as f64;
    (sum(&|edge, n| edge * n) + beyond) / sum(&|_, n| n).max(1.0)
}

/// Sum of the time by which gaps are longer than the last bucket, in µs.
fn excess_us(gaps: &Histogram, buckets: u64) -> f64 {
    let excess = |ns: f64, n: u64| ((ns / 1000.0).floor() + 1.0 - buckets as f64).max(0.0) * n as f64;
    let known: f64 = gaps.buckets_ns().map(|(low, high, n)| excess(f64::midpoint(low, high), n)).sum();
    known + excess(gaps.max().unwrap_or(0.0), gaps.overflow())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::units::CpuList;

    fn planned(line: &str) -> Plan {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        let machine = Machine { online: list("0-3"), allowed: list("0-3"), ..Machine::default() };
        plan_loops(&OSLAT.read_call(&PersonalityContext::new(line.split_whitespace())).unwrap(), &machine)
            .unwrap()
    }

    #[test]
    fn a_loop_on_each_cpu_for_the_time_asked_for() {
        let plan = planned("-D 5 -c 1,3 -b 8 -f 7");
        let step = &plan.steps[0];
        let seen: Vec<_> = step.points.iter().map(|p| [&p.params["cpu"], &p.params["priority"]]).collect();
        assert_eq!((plan.steps.len(), seen), (1, vec![[&1.into(), &7.into()], [&3.into(), &7.into()]]));
        assert_eq!(step.stop.limit_ns, 5_000_000_000);
        let rules = step.periodic.as_ref().unwrap();
        assert_eq!((rules.linear, rules.threshold), (Some(Linear { buckets: 8, tick_ns: 1000 }), None));
        assert_eq!(planned("").steps[0].points.len(), 4);
    }

    #[test]
    fn the_average_is_never_below_the_minimum() {
        assert_eq!(mean(&[1000, 0, 0, 0], 0.0), 1.0);
        assert_eq!(mean(&[0, 3, 0, 1], 0.0), 2.5);
        assert_eq!(mean(&[0, 0], 0.0), 0.0);
        // Of 4 and 12 µs begun: the last bucket's edge, and 8 µs more.
        let mut gaps = Histogram::new(1000);
        [3_500, 11_500].into_iter().for_each(|ns| gaps.record(ns));
        let beyond = excess_us(&gaps, 4);
        assert!((beyond - 8.0).abs() < 0.1, "{beyond}");
        assert_eq!(mean(&[0, 0, 0, 2], 8.0), 8.0);
    }

    #[test]
    fn the_threshold_itself_ends_the_run() {
        let plan = planned("-T 50");
        let rules = plan.steps[0].periodic.as_ref().unwrap();
        assert_eq!((rules.threshold, rules.stop_at_threshold), (Some(49_999), true));
        assert_eq!(plan.on_threshold.unwrap().actions, [Action::Stop]);
    }
}
