//! The programs for inter-process communication: `pmqtest`, `ptsematest`, `sigwaittest`, `signaltest`, `svsematest`.
//! They measure with [`paced`](super::paced).

pub mod options;
pub mod text;

use super::options::RT_TESTS;
use super::paced::{
    KEPT, MEMORY, PacedEndpointRules, PacedEndpointStatistics, PacedRunMemory, PacedWaitOutcome,
    PacedWakeMechanism, PacedWakeOrder, Session,
};
use super::{cpuset, json};
use crate::context::PersonalityContext;
use crate::environment;
use crate::getopt::{CommandLineRefusal, ProgramOption};
use crate::personality::PersonalityProgram;
use anyhow::Result;
use latscope_bench::hold::hold;
use latscope_core::machine::Machine;
use latscope_core::report::VerdictStatus;
use latscope_judge::verdict;
use latscope_process::stdout::{Stdout, print_text};
use options::spec::*;
use options::{PairsOptions, resolve_options};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};
use text::PacedEndpointPair;

const fn define_program(
    name: &'static str,
    summary: &'static str,
    usual: fn(&PersonalityContext) -> Result<PairsOptions, CommandLineRefusal>,
    options: &'static [ProgramOption<PairsOptions>],
) -> PersonalityProgram<PairsOptions> {
    PersonalityProgram {
        name,
        summary,
        suite: &RT_TESTS,
        form: "",
        options,
        usual,
        settle: resolve_options,
        carry_out,
    }
}

/// Program for POSIX message queues.
#[rustfmt::skip]
pub static PMQTEST: PersonalityProgram<PairsOptions> = define_program("pmqtest", "POSIX message queues, one way, paced",
    |_| Ok(PairsOptions::for_mechanism(PacedWakeMechanism::Queues, PacedWakeOrder::Pairs)), &[
        AFFINITY, ProgramOption::BREAK, DISTANCE, ProgramOption::DURATION, FORCE, ProgramOption::HELP, INTERVAL, ProgramOption::JSON, LOOPS, PRIORITY,
        ProgramOption::QUIET, SMP, THREADS, TIMEOUT, MARK, ProgramOption::STRICT,
    ]);

/// Program for POSIX mutexes, or the primitives that these are made of.
#[rustfmt::skip]
pub static PTSEMATEST: PersonalityProgram<PairsOptions> = define_program("ptsematest", "mutexes between threads, one way, paced",
    |_| Ok(PairsOptions::for_mechanism(PacedWakeMechanism::Futexes, PacedWakeOrder::Pairs)), &[
        AFFINITY, ProgramOption::BREAK, DISTANCE, ProgramOption::DURATION, ProgramOption::HELP, INTERVAL, ProgramOption::JSON, LOOPS, PRIORITY,
        ProgramOption::QUIET, SMP, THREADS, MARK, ProgramOption::STRICT,
    ]);

/// Program for System V semaphores.
#[rustfmt::skip]
pub static SVSEMATEST: PersonalityProgram<PairsOptions> = define_program("svsematest", "System V semaphores, one way, paced",
    |_| Ok(PairsOptions::for_mechanism(PacedWakeMechanism::Semaphores, PacedWakeOrder::Pairs)), FORKING);

/// Program for signals between pairs.
#[rustfmt::skip]
pub static SIGWAITTEST: PersonalityProgram<PairsOptions> = define_program("sigwaittest", "signals, one way, paced",
    |_| Ok(PairsOptions::for_mechanism(PacedWakeMechanism::Signals, PacedWakeOrder::Pairs)), FORKING);

#[rustfmt::skip]
const FORKING: &[ProgramOption<PairsOptions>] = &[
    AFFINITY, ProgramOption::BREAK, DISTANCE, ProgramOption::DURATION, FORK, ProgramOption::HELP, INTERVAL, ProgramOption::JSON, LOOPS, PRIORITY,
    ProgramOption::QUIET, SMP, THREADS, MARK, ProgramOption::STRICT,
];

/// Program for signals in a circle.
#[rustfmt::skip]
pub static SIGNALTEST: PersonalityProgram<PairsOptions> = define_program("signaltest", "signals in a circle of threads",
    |_| Ok(PairsOptions::for_mechanism(PacedWakeMechanism::Signals, PacedWakeOrder::Circle)), &[
        AFFINITY, ProgramOption::BREAK, ProgramOption::DURATION, ProgramOption::HELP, ProgramOption::JSON, LOOPS, LOCK, PRIORITY, ProgramOption::QUIET, SMP,
        CIRCLE, VERBOSE, MARK, ProgramOption::STRICT,
    ]);

/// Interval between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// Interval between two checks of the processes, if nothing is drawn.
const SELDOM: Duration = Duration::from_secs(1);

fn carry_out(options: &PairsOptions, context: &PersonalityContext) -> Result<u8> {
    context.print_notes(&options.common.notes);
    let started = SystemTime::now();
    let (machine, _) = environment::snapshot_machine();
    let mut rules = rules(options, &machine)?;
    let of_each = if options.form == PacedWakeOrder::Pairs { 2 } else { 1 };
    let titles = rules.iter().step_by(of_each).map(text::format_title).collect();
    if context.show_dry_run(&environment::outline(
        context.name,
        "paced",
        titles,
        options.common.duration,
        &machine,
    )) {
        return Ok(0);
    }
    if let Some(code) = json::check_writable(&options.common) {
        return Ok(code);
    }
    if options.priority > 0 {
        environment::may_be_real_time(options.priority)?;
    }
    let trace = options.common.trace()?;
    rules.iter_mut().for_each(|rules| rules.trace.clone_from(&trace));
    let (_held, shortfalls) = hold(&MEMORY);
    shortfalls
        .iter()
        .for_each(|shortfall| context.print_note(&format!("{} ({})", shortfall.reason, shortfall.remedy)));
    let mut session = Session::start_endpoints(rules.clone(), options.fork)?;
    let mut screen = PairsScreen { context, options, rules: &rules, out: Stdout, drawn: false, told: 0 };
    let interrupted = screen.watch_run(&mut session)?;
    session.check_endpoints()?;
    let board = session.board();
    let (text, json, broken) =
        (screen.format_figures(board), screen.format_json(board), board.exceeding_endpoint());
    screen.print_end(board, &text);
    drop(session);
    if !json::write_run(context, &options.common, started, || json) {
        return Ok(json::write_failure_code(&options.common));
    }
    let status = if broken.is_some() { VerdictStatus::Exceeded } else { VerdictStatus::Pass };
    // Without an end of its own it is done when it is asked to end.
    let cut_short = interrupted && (options.common.duration.is_some() || options.loops.is_some());
    Ok(match options.common.strict_exit {
        true => verdict::exit_code(options.common.break_above.map(|_| status), cut_short),
        false => 0,
    })
}

/// Rules for each endpoint. This function is pure.
///
/// # Errors
/// A CPU does not exist.
pub fn rules(
    options: &PairsOptions,
    machine: &Machine,
) -> Result<Vec<PacedEndpointRules>, CommandLineRefusal> {
    let cpus = match (&options.affinity, options.smp) {
        (Some(Some(set)), _) => cpuset::parse_cpu_set(set, machine)?,
        (Some(None), _) | (None, true) => machine.allowed.0.clone(),
        (None, false) => Vec::new(),
    };
    let each = machine.allowed.0.len() as u64;
    let usual = if options.form == PacedWakeOrder::Circle { 2 } else { 1 };
    let count = match options.threads {
        None if options.smp => each.max(usual),
        None => usual,
        Some(0) => each,
        Some(count) => count,
    };
    let endpoints = if options.form == PacedWakeOrder::Circle { 1 } else { 2 };
    Ok((0..count).flat_map(|index| std::iter::repeat_n(rule(options, &cpus, index), endpoints)).collect())
}

/// Rules for the endpoints of the pair with this index.
fn rule(options: &PairsOptions, cpus: &[u32], index: u64) -> PacedEndpointRules {
    let interval_us = options.distance.saturating_mul(index).saturating_add(options.interval);
    // Strictly above, the figures being cut off first.
    let threshold = |us: u64| us.saturating_mul(1000).saturating_add(999);
    PacedEndpointRules {
        means: options.means,
        form: options.form,
        interval: interval_us.saturating_mul(1000),
        priority: match (options.smp || options.form == PacedWakeOrder::Circle, options.priority) {
            (false, 2..) => options.priority.saturating_sub(index as u32).max(1),
            _ => options.priority,
        },
        cpu: cpus.get(index as usize % cpus.len().max(1)).copied(),
        loops: options.loops.unwrap_or(u64::MAX),
        threshold: options.common.break_above.map_or(u64::MAX, threshold),
        timeout: options.timeout,
        delay: options.force_timeout,
        trace: None,
    }
}

/// Printer of the figures while the endpoints run.
struct PairsScreen<'a, W> {
    context: &'a PersonalityContext,
    options: &'a PairsOptions,
    rules: &'a [PacedEndpointRules],
    out: W,
    drawn: bool,
    /// Number of samples that `-v` has printed.
    told: u64,
}

impl<W: Write> PairsScreen<'_, W> {
    /// Draws until the run is over. Returns true if the run was asked to end.
    fn watch_run(&mut self, session: &mut Session) -> Result<bool> {
        let begun = Instant::now();
        let limit = self.options.common.duration.map_or(Duration::MAX, Duration::from_nanos);
        let draws = !self.options.common.quiet || self.options.verbose;
        self.draw_frame(session.board());
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let ended = session.wait_for_end(left.min(if draws { FRAME } else { SELDOM }))?;
            if ended != PacedWaitOutcome::Time || begun.elapsed() >= limit {
                session.end_run();
                return Ok(ended == PacedWaitOutcome::Told);
            }
            session.check_endpoints()?;
            if !self.draw_frame(session.board()) {
                session.end_run();
                return Ok(true);
            }
        }
    }

    /// Draws one frame. Returns false if the reader of stdout is gone.
    fn draw_frame(&mut self, board: &PacedRunMemory) -> bool {
        let text = match (self.options.verbose, self.options.common.quiet) {
            (true, _) => self.take_sample_lines(board),
            (false, true) => return true,
            (false, false) => self.format_frame(board),
        };
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_ok()
    }

    fn format_frame(&mut self, board: &PacedRunMemory) -> String {
        match self.options.form {
            // Not before all have something to show.
            PacedWakeOrder::Pairs
                if (0..board.endpoints())
                    .step_by(2)
                    .any(|endpoint| board.endpoint_statistics(endpoint).samples == 0) =>
            {
                String::new()
            }
            PacedWakeOrder::Pairs => self.format_figures(board) + &text::up(board.endpoints()),
            PacedWakeOrder::Circle => {
                let up = if std::mem::replace(&mut self.drawn, true) { text::up(3) } else { String::new() };
                let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
                up + &text::circle_frame(&load, self.rules[0].priority, board.endpoint_statistics(0))
            }
        }
    }

    /// Lines with the figures.
    fn format_figures(&self, board: &PacedRunMemory) -> String {
        match self.options.form {
            PacedWakeOrder::Pairs => {
                text::format_pairs(&self.endpoint_pairs(board), self.options.times_out())
            }
            PacedWakeOrder::Circle => text::circle(self.rules[0].priority, &all_statistics(board)),
        }
    }

    fn format_json(&self, board: &PacedRunMemory) -> String {
        match self.options.form {
            PacedWakeOrder::Pairs => text::pairs_json(&self.endpoint_pairs(board), self.options.times_out()),
            PacedWakeOrder::Circle => text::circle_json(&all_statistics(board)),
        }
    }

    fn endpoint_pairs(&self, board: &PacedRunMemory) -> Vec<PacedEndpointPair<'_>> {
        let receivers = (0..board.endpoints()).step_by(2);
        let pair = |endpoint: usize| PacedEndpointPair {
            rules: &self.rules[endpoint],
            receiver: board.endpoint_statistics(endpoint),
            sender: board.endpoint_statistics(endpoint + 1),
        };
        receivers.map(pair).collect()
    }

    /// Lines for the samples of `-v` that are not printed yet.
    fn take_sample_lines(&mut self, board: &PacedRunMemory) -> String {
        let cycles = board.endpoint_statistics(0).cycles;
        let kept = cycles.saturating_sub(KEPT as u64);
        if kept > self.told {
            let missing = kept - self.told;
            self.context.print_note(&format!("{missing} samples came faster than they are printed"));
            self.told = kept;
        }
        let text = (self.told..cycles).map(|cycle| text::sample(cycle, board.sample(cycle))).collect();
        self.told = cycles;
        text
    }

    /// Prints the last lines.
    fn print_end(&mut self, board: &PacedRunMemory, text: &str) {
        let mut end = String::new();
        if self.options.form == PacedWakeOrder::Circle {
            if self.options.verbose {
                end += &self.take_sample_lines(board);
            } else if !self.options.common.quiet {
                end += &self.format_frame(board);
            }
            if let Some(endpoint) = board.exceeding_endpoint() {
                end += &text::format_break(endpoint);
            }
        }
        end += text;
        if self.options.form == PacedWakeOrder::Pairs && !self.options.common.quiet {
            end += &(text::up(board.endpoints()) + &text::down(board.endpoints() + 2));
        }
        print_text(&end);
    }
}

fn all_statistics(board: &PacedRunMemory) -> Vec<PacedEndpointStatistics> {
    (0..board.endpoints()).map(|endpoint| board.endpoint_statistics(endpoint)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        program: &PersonalityProgram<PairsOptions>,
        line: &str,
    ) -> Result<Vec<PacedEndpointRules>, CommandLineRefusal> {
        let cpus = || "0-1".parse().unwrap();
        let machine = Machine { online: cpus(), allowed: cpus(), ..Machine::default() };
        rules(&program.read_call(&PersonalityContext::new(line.split_whitespace()))?, &machine)
    }

    /// Priority, interval in µs and CPU of each endpoint.
    fn told(program: &PersonalityProgram<PairsOptions>, line: &str) -> Vec<(u32, u64, Option<u32>)> {
        let rules = read(program, line).unwrap();
        rules.iter().map(|rules| (rules.priority, rules.interval / 1000, rules.cpu)).collect()
    }

    #[test]
    fn pairs_differ_in_priority_interval_and_cpu() {
        assert_eq!(told(&PMQTEST, ""), [(0, 1000, None); 2]);
        let three = told(&PMQTEST, "-t3 -a -p 2 -i 100 -d 10");
        assert_eq!(three[..2], [(2, 100, Some(0)); 2]);
        assert_eq!(three[2..], [(1, 110, Some(1)), (1, 110, Some(1)), (1, 120, Some(0)), (1, 120, Some(0))]);
        assert_eq!(told(&SVSEMATEST, "-S -p 9")[2], (9, 1500, Some(1)));
        assert_eq!(told(&PTSEMATEST, "-a1 -t2")[3].2, Some(1));
        assert!(read(&PMQTEST, "-a 2").is_err());
    }

    #[test]
    fn a_circle_has_one_priority_and_one_endpoint_a_thread() {
        assert_eq!(told(&SIGNALTEST, "-p 5 -t3").iter().map(|told| told.0).collect::<Vec<_>>(), [5; 3]);
        assert_eq!(told(&SIGNALTEST, "").len(), 2);
        assert_eq!(told(&SIGNALTEST, "-S -a 1"), [(0, 1000, Some(1)), (0, 1500, Some(1))]);
    }

    #[test]
    fn a_limit_is_exceeded_by_the_next_whole_microsecond() {
        assert_eq!(read(&PMQTEST, "-b 20").unwrap()[0].threshold, 20_999);
        assert_eq!(read(&PMQTEST, "").unwrap()[0].threshold, u64::MAX);
    }
}
