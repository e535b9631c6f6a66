//! `cyclictest`, which runs periodic threads and measures with the probe `wake.timer`.

pub mod histogram;
pub mod json;
pub mod options;
pub mod page;
pub mod samples;
pub mod setup;
pub mod status;

mod idle;
mod places;
mod screen;
mod smi;

use super::cpuset;
use super::json as rt_json;
use super::options::RT_TESTS;
use crate::context::{PersonalityContext, ReportSaveOutcome};
use crate::environment;
use crate::personality::PersonalityProgram;
use anyhow::{Context as _, Result};
use latscope_core::machine::Machine;
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_engine::{saver, timeline};
use latscope_os::clock::monotonic_ns;
use latscope_process::eprintln;
use latscope_process::guardian::Guardian;
use latscope_process::leftover::Leftover;
use latscope_process::stdout::{Stdout, print_text};
use options::{CyclictestOptions, SPECS};
use page::CyclictestOutcome;
use places::{CyclictestStatusFile, Fifo};
use screen::{CyclictestOutputs, CyclictestScreen};
use smi::Smi;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Program `cyclictest`.
pub static CYCLICTEST: PersonalityProgram<CyclictestOptions> = PersonalityProgram::new(
    "cyclictest",
    "wake-up latency of periodic threads",
    &RT_TESTS,
    SPECS,
    options::resolve_options,
    carry_out,
);

fn carry_out(options: &CyclictestOptions, context: &PersonalityContext) -> Result<u8> {
    if !context.dry_run {
        options.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    }
    context.print_notes(&options.common.notes);
    if options.timeline.is_some() && !context.dry_run {
        timeline::provide_tracefs();
    }
    let started = SystemTime::now();
    let (machine, timebase) = environment::snapshot_machine();
    let plan = setup::plan_run(options, &machine, options.common.trace()?.as_deref())?;
    if context.show_dry_run(&plan) {
        return Ok(0);
    }
    if let Some(code) = rt_json::check_writable(&options.common).or_else(|| no_histogram(options)) {
        return Ok(code);
    }
    let fixed: Vec<status::Fixed> = plan.steps[0].points.iter().map(status::Fixed::of_point).collect();
    let highest = fixed.iter().map(|fixed| fixed.priority).max().filter(|priority| *priority > 0);
    highest.map(environment::may_be_real_time).transpose()?;
    let guardian = Guardian::default();
    let places = prepare_outputs(options, &fixed, &machine, &guardian)?;
    let _restricted = restrict_idle_states(options, &plan)?;
    print_preamble(options, &fixed, &machine);
    let mut screen = CyclictestScreen::new(options, &fixed, places, Stdout);
    let result = options.common.result.as_deref();
    let ReportSaveOutcome { report, saved } =
        context.measure_plan(plan, machine, timebase, vec![&mut screen], result)?;
    screen.draw_last_frame();
    let lost = screen.samples.lost;
    let outcome = outcome(options, screen, &report);
    let measured = &report.measurements[..fixed.len()];
    if lost > 0 {
        context.print_note(&format!("{lost} samples came faster than they could be taken, and are missing"));
    }
    if !environment::print_doubts(context, measured) {
        return Ok(1);
    }
    let written = write_results(options, context, started, &outcome, (&fixed, &report));
    saved?;
    Ok(written.unwrap_or_else(|| options.common.exit_code(outcome.broken.is_some(), &report)))
}

/// Checks that the histogram of the end can be written. Returns the exit code if it cannot.
fn no_histogram(options: &CyclictestOptions) -> Option<u8> {
    let path = options.histogram_file.as_ref()?;
    saver::check_in_place(path).err().map(|error| report_open_error(path, &error))
}

/// Prints why the file of the histogram cannot be written. Returns the exit code.
fn report_open_error(path: &Path, error: &std::io::Error) -> u8 {
    eprintln!("opening histogram file: {}: {error}", path.display());
    1
}

/// Prepares what the screen uses beside the standard streams, before anything is printed.
fn prepare_outputs(
    options: &CyclictestOptions,
    fixed: &[status::Fixed],
    machine: &Machine,
    guardian: &Guardian,
) -> Result<CyclictestOutputs> {
    if options.resolution {
        resolution();
    }
    let fifo = options.fifo.as_deref().map(|path| {
        let named = || format!("the FIFO {} cannot be made", path.display());
        let fifo = Fifo::create_or_reuse(path).with_context(named)?;
        // Not before: what has this name already is not ours to remove.
        if fifo.is_made_here() {
            guardian.journal_leftover(&Leftover::File(path.to_owned()))?;
        }
        Ok::<Fifo, anyhow::Error>(fifo)
    });
    let board = CyclictestStatusFile::path(Path::new("/dev/shm"));
    guardian.journal_leftover(&Leftover::File(board.clone()))?;
    let registers = || Smi::open_registers(Path::new("/dev/cpu"), fixed.iter().filter_map(|fixed| fixed.cpu));
    Ok(CyclictestOutputs {
        main: options.main_affinity.as_ref().map(|set| cpuset::parse_cpu_set(set, machine)).transpose()?,
        fifo: fifo.transpose()?,
        // Without shared memory SIGUSR2 has no answer, as there.
        board: CyclictestStatusFile::create(board).ok(),
        smi: options.smi.then(registers).transpose()?,
    })
}

/// Keeps CPUs from idle states as long as the returned guardian lives.
fn restrict_idle_states(options: &CyclictestOptions, plan: &Plan) -> Result<Option<Guardian>> {
    let Some(deepest) = options.deepest_idle_state else { return Ok(None) };
    let step = &plan.steps[0];
    let cpus = if step.cpus.is_empty() { &plan.cpus.0 } else { &step.cpus };
    let guardian = Guardian::default();
    idle::restrict(Path::new("/sys/devices/system/cpu"), cpus, deepest, &guardian)?;
    Ok(Some(guardian))
}

/// Prints the lines before the first frame.
fn print_preamble(options: &CyclictestOptions, fixed: &[status::Fixed], machine: &Machine) {
    let online = machine.online.0.len();
    let [cpus, intervals] = page::preamble(options, fixed, machine.cpus.len().max(online), online);
    let held = match options.leave_system {
        true => String::new(),
        false => match environment::may_hold_latency() {
            Ok(()) => format!("# /dev/cpu_dma_latency set to {}us\n", options.latency),
            Err(error) => {
                eprintln!("WARN: /dev/cpu_dma_latency cannot be held: {error}");
                String::new()
            }
        },
    };
    print_text(&(cpus + &held + &intervals));
}

/// Prints the smallest step of the clock that can be observed.
fn resolution() {
    let clock = rustix::time::ClockId::Monotonic;
    let declared = rustix::time::clock_getres(clock).tv_nsec as u64;
    let mut last = monotonic_ns();
    let mut step = |_| {
        let now = monotonic_ns();
        now - std::mem::replace(&mut last, now)
    };
    let measured = (0..100_000).map(&mut step).filter(|step| *step > 0).min().unwrap_or(declared);
    if measured > declared {
        eprintln!("WARN: reported clock resolution: {declared} nsec");
        eprintln!("WARN: measured clock resolution approximately: {measured} nsec");
    }
}

fn outcome(
    options: &CyclictestOptions,
    screen: CyclictestScreen<impl Write>,
    report: &Report,
) -> CyclictestOutcome {
    let threads = &report.measurements[..screen.rows.len()];
    CyclictestOutcome {
        smi: screen.smi(),
        rows: screen.rows,
        records: if options.histogram.is_some() { environment::linear(threads) } else { Vec::new() },
        spikes: screen.samples.spikes(clock_offset_ns(options)),
        broken: environment::first_exceedance(threads),
    }
}

/// Offset of the threads' clock from `CLOCK_MONOTONIC`, in ns.
fn clock_offset_ns(options: &CyclictestOptions) -> u64 {
    match options.clock {
        Some(latscope_probes::wake::thread::ClockName::Realtime) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            (now.as_nanos() as u64).saturating_sub(monotonic_ns())
        }
        _ => 0,
    }
}

/// Prints and writes the results of the run. Returns an exit code if that fails.
fn write_results(
    options: &CyclictestOptions,
    context: &PersonalityContext,
    started: SystemTime,
    outcome: &CyclictestOutcome,
    (fixed, report): (&[status::Fixed], &Report),
) -> Option<u8> {
    let mut failure = None;
    let style = (options.common.release, options.unit);
    let measured = report.measurements.iter().take(fixed.len());
    let missed: Vec<u64> = measured.map(|m| m.summary.missed).collect();
    let rest =
        || json::format_threads(style, &report.machine, (fixed, &outcome.rows, &missed), &outcome.records);
    if !rt_json::write_run(context, &options.common, started, rest) {
        failure = Some(rt_json::write_failure_code(&options.common));
    }
    print_text(&page::format_end(options, fixed, outcome));
    if let Some(path) = &options.histogram_file
        && let Err(error) = saver::write_in_place(path, page::histogram(options, outcome).as_bytes())
    {
        failure = failure.or(Some(report_open_error(path, &error)));
    }
    failure
}
