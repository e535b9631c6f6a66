//! `cyclicdeadline`, which runs threads under SCHED_DEADLINE and measures with the probe `wake.timer`.

pub mod options;
pub mod text;

use super::cyclictest::histogram::{self, HistogramBlockStyle};
use super::cyclictest::setup::threshold_ns;
use super::options::{RT_TESTS, resolve_options};
use super::row::{RtFigureUnit, RtThreadRow};
use super::{cpuset, json};
use crate::context::{PersonalityContext, ReportSaveOutcome};
use crate::environment;
use crate::getopt::CommandLineRefusal;
use crate::personality::PersonalityProgram;
use anyhow::Result;
use latscope_core::machine::Machine;
use latscope_core::plan::{Conditions, Linear, Periodic, Phase, Plan};
use latscope_core::report::Measurement;
use latscope_engine::observers::{Observer, RunEvent};
use latscope_probes::wake::setup::WakeStepSetup;
use latscope_probes::wake::thread::{WakeMethod, WakeThreadPolicy, WakeThreadSettings};
use latscope_probes::wake::timer;
use latscope_process::stdout::{Stdout, print_text};
use options::{CyclicdeadlineOptions, SPECS};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use text::Reservation;

/// Program `cyclicdeadline`.
pub static CYCLICDEADLINE: PersonalityProgram<CyclicdeadlineOptions> = PersonalityProgram::new(
    "cyclicdeadline",
    "wake-up latency under SCHED_DEADLINE",
    &RT_TESTS,
    SPECS,
    resolve_options,
    carry_out,
);

fn carry_out(options: &CyclicdeadlineOptions, context: &PersonalityContext) -> Result<u8> {
    context.print_notes(&options.common.notes);
    let started = SystemTime::now();
    let (machine, timebase) = environment::snapshot_machine();
    let plan = plan_threads(options, &machine, options.common.trace()?.as_deref())?;
    if context.show_dry_run(&plan) {
        return Ok(0);
    }
    if let Some(code) = json::check_writable(&options.common) {
        return Ok(code);
    }
    let reserved: Vec<Reservation> = plan.steps[0].points.iter().map(Reservation::of_point).collect();
    print_text(&text::format_preamble(!matches!(options.affinity, Some(None)), &reserved));
    let mut screen = CyclicdeadlineScreen::new(options, &reserved, Stdout);
    let result = options.common.result.as_deref();
    let ReportSaveOutcome { report, saved } =
        context.measure_plan(plan, machine, timebase, vec![&mut screen], result)?;
    let measured = &report.measurements[..reserved.len()];
    if !environment::print_doubts(context, measured) {
        return Ok(1);
    }
    early(context, measured);
    screen.print_end();
    let rows = screen.rows;
    let broken = environment::first_exceedance(measured);
    print_text(&(text::format_break(&rows, broken) + &histogram(options, measured, &rows)));
    if !json::write_run(context, &options.common, started, || text::format_json(&rows)) {
        return Ok(json::write_failure_code(&options.common));
    }
    saved?;
    Ok(options.common.exit_code(broken.is_some(), &report))
}

/// Prints a note if wake-ups came before the assumed begin of a period. The begin is taken from the earliest wake-up so
/// far, which is late itself.
fn early(context: &PersonalityContext, measured: &[Measurement]) {
    let early: f64 = measured.iter().filter_map(|m| m.values.get("early")).map(|value| value.value).sum();
    if early > 0.0 {
        context.print_note(&format!(
            "the begin of the periods is taken from the earliest wake-up so far: {early} came before it and count as 0, \
             and those before them are too small by as much"
        ));
    }
}

fn histogram(options: &CyclicdeadlineOptions, measured: &[Measurement], rows: &[RtThreadRow]) -> String {
    let Some(buckets) = options.histogram else { return String::new() };
    let style = HistogramBlockStyle {
        release: options.common.release,
        summary_column: false,
        unit: RtFigureUnit::Us,
    };
    histogram::block(style, buckets, &environment::linear(measured), rows, None)
}

/// Share of its period that a thread reserves, in %. The threads together get 80 % of all CPUs, and none gets more
/// than 60 %.
fn reserved_percent(threads: u64, cpus: u64) -> u64 {
    (80 * cpus / threads).min(60)
}

fn plan_threads(
    options: &CyclicdeadlineOptions,
    machine: &Machine,
    trace: Option<&Path>,
) -> Result<Plan, CommandLineRefusal> {
    let cpus = machine.allowed.0.len() as u64;
    if let Some(Some(set)) = &options.affinity {
        covers_all(&cpuset::parse_cpu_set(set, machine)?, machine)?;
    }
    let count = if options.affinity == Some(None) { cpus } else { options.threads };
    let share = reserved_percent(count, cpus);
    if share == 0 {
        return Err(CommandLineRefusal::Fatal(format!(
            "FATAL: {count} threads leave each less than 1 % of {cpus} CPUs"
        )));
    }
    let thread = |index: u64| {
        let interval = (options.interval + index * options.step) * 1000;
        let policy =
            WakeThreadPolicy::Deadline { runtime: (interval / 100 * share).max(1024), deadline: interval };
        WakeThreadSettings { interval, policy, method: WakeMethod::Yield, ..timer::usual_thread(index, None) }
    };
    let setup = WakeStepSetup {
        threads: (0..count).map(thread).collect(),
        periodic: rules(options),
        count: u64::MAX,
        duration: options.common.duration.unwrap_or(u64::MAX),
        conditions: Conditions { lock_memory: true, cpu_dma_latency: None, scratch_in: None },
        seed: 1,
    };
    Ok(environment::plan_single_step(
        setup.plan_step(),
        CYCLICDEADLINE.name,
        options.common.break_above.is_some(),
        trace,
        machine,
    ))
}

fn rules(options: &CyclicdeadlineOptions) -> Periodic {
    Periodic {
        threshold: options.common.break_above.map(|limit| threshold_ns(limit, RtFigureUnit::Us)),
        stop_at_threshold: options.common.break_above.is_some(),
        corrected: options.common.result.is_some(),
        linear: options.histogram.map(|buckets| Linear { buckets, tick_ns: 1000 }),
        // The first wake-up says where the periods begin.
        ..Periodic::new(Phase::Free, 1)
    }
}

/// Checks that a set has all CPUs. Only a partition of CPUs can confine a thread under SCHED_DEADLINE.
fn covers_all(cpus: &[u32], machine: &Machine) -> Result<(), CommandLineRefusal> {
    if machine.allowed.0.iter().all(|cpu| cpus.contains(cpu)) {
        return Ok(());
    }
    Err(CommandLineRefusal::Fatal(
        "FATAL: SCHED_DEADLINE wants all CPUs for each thread: make a cpuset whose cpuset.cpus.partition is root, and \
         run this in it without -a"
            .to_owned(),
    ))
}

/// Observer that prints while the threads run.
struct CyclicdeadlineScreen<'a, W> {
    quiet: bool,
    reserved: &'a [Reservation],
    out: W,
    rows: Vec<RtThreadRow>,
    introduced: bool,
    drawn: Option<Instant>,
    gone: bool,
}

/// Interval between two frames.
const FRAME: Duration = Duration::from_millis(100);

impl<'a, W: Write> CyclicdeadlineScreen<'a, W> {
    fn new(
        options: &CyclicdeadlineOptions,
        reserved: &'a [Reservation],
        out: W,
    ) -> CyclicdeadlineScreen<'a, W> {
        let rows = vec![RtThreadRow::default(); reserved.len()];
        CyclicdeadlineScreen {
            quiet: options.common.quiet,
            reserved,
            out,
            rows,
            introduced: false,
            drawn: None,
            gone: false,
        }
    }

    fn print_text(&mut self, text: &str) {
        let printed = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.gone |= printed.is_err();
    }

    fn up(&self) -> String {
        self.drawn.map_or_else(String::new, |_| format!("\x1b[{}A", self.reserved.len()))
    }

    fn print_introduction(&mut self) {
        if !std::mem::replace(&mut self.introduced, true) {
            let text = text::introduction(std::process::id(), self.reserved, &self.rows);
            self.print_text(&text);
        }
    }

    fn draw_frame(&mut self) {
        let frame = self.up() + &text::format_status(self.reserved, &self.rows);
        self.print_text(&frame);
        self.drawn = Some(Instant::now());
    }

    /// Prints the last frame and the last lines.
    fn print_end(&mut self) {
        self.print_introduction();
        self.draw_frame();
        if !self.quiet {
            let end = self.up() + &format!("\x1b[{}B", self.reserved.len() + 2);
            self.print_text(&end);
        }
    }
}

impl<W: Write> Observer for CyclicdeadlineScreen<'_, W> {
    fn observe(&mut self, event: &RunEvent) {
        let RunEvent::Snapshot(live) = event else { return };
        self.rows = live.points.iter().take(self.reserved.len()).map(RtThreadRow::from_snapshot).collect();
        let there = self.rows.iter().all(|row| row.cycles > 0);
        if there {
            self.print_introduction();
        }
        if there && !self.quiet && self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            self.draw_frame();
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(if self.quiet { Duration::from_secs(3600) } else { FRAME })
    }

    fn wants_end(&self) -> Option<&'static str> {
        self.gone.then_some("stdout cannot be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::units::CpuList;

    fn planned(line: &str) -> Result<Plan, CommandLineRefusal> {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        let machine = Machine { online: list("0-1"), allowed: list("0-1"), ..Machine::default() };
        plan_threads(
            &CYCLICDEADLINE.read_call(&PersonalityContext::new(line.split_whitespace())).unwrap(),
            &machine,
            None,
        )
    }

    #[test]
    fn reservations_share_what_there_is() {
        let reserved = |line: &str| {
            let plan = planned(line).unwrap();
            let all: Vec<_> = plan.steps[0].points.iter().map(Reservation::of_point).collect();
            all.iter().map(|one| (one.runtime, one.deadline)).collect::<Vec<_>>()
        };
        assert_eq!(reserved("-i 10000 -t 2"), [(6000, 10_000), (6300, 10_500)]);
        assert_eq!(reserved("-i 10000 -t 3 -s 0")[2], (5300, 10_000));
        assert_eq!(reserved("-i 10000 -a").len(), 2);
        assert_eq!([4, 5, 6, 8].map(|threads| reserved_percent(threads, 2)), [40, 32, 26, 20]);
    }

    #[test]
    fn a_part_of_the_cpus_is_refused_with_the_way_to_it() {
        let text = planned("-a 1").unwrap_err().to_string();
        assert!(text.contains("cpuset.cpus.partition") && !text.contains('\n'), "{text}");
        assert!(planned("-a 0-1").is_ok() && planned("-t 200").is_err());
    }

    #[test]
    fn frames_are_as_high_as_their_threads() {
        let reserved = [Reservation { runtime: 600, deadline: 1000 }; 2];
        let mut out = Vec::new();
        let mut screen = CyclicdeadlineScreen::new(&CyclicdeadlineOptions::default(), &reserved, &mut out);
        screen.draw_frame();
        screen.print_end();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\x1b[2AT: 0 (") && text.ends_with("\n\x1b[2A\x1b[4B"), "{text:?}");
    }
}
