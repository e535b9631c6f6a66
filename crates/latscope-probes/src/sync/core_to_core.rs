//! Time that a cache line takes from one core to another and back.

use super::placement;
use super::thread_group::{Share, ThreadGroup};
use crate::{Condition, Cpus, Experiment, Facts, PlanInput, Probe, Settings, Word, settings, words};
use anyhow::{Context, Result};
use latscope_bench::bench::Bench;
use latscope_bench::threads;
use latscope_core::machine::Machine;
use latscope_core::plan::Point;
use latscope_core::report::{Better, Semantics};
use latscope_os::shared_cell::{Lane, Scope, SharedCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// Probe of the matrix of round trips between all pairs of CPUs.
pub(crate) static CORE_TO_CORE: Probe = Probe {
    facts: Facts {
        id: "sync.core-to-core",
        title: "core to core, round trip of a cache line",
        timed: "One thread writes a cache line, the other sees it and answers, the first sees the answer; both spin, each on its own CPU.",
        times: Semantics::RoundTrip,
        source: "the processor's cache coherence protocol",
        revision: 1,
        params: Travel::LIST,
        sensitive_to: &[Condition::SharedCore],
        ..Facts::BATCHES
    },
    check: Travel::check,
    experiment: &EXPERIMENT,
    plan,
};

static EXPERIMENT: Experiment =
    Experiment::new("sync.core-to-core", Cpus::All, run).setup(0.15).fewer_rounds(4, 1, placement::AWAKE);

words! {
    /// Lines that go between the cores.
    enum Mode {
        /// A single line that both change by compare and exchange.
        Cas = "cas",
        /// A line for each direction.
        TwoLines = "two-lines",
    }
}

settings! {
    /// What travels between whom.
    struct Travel, asked for as TravelAsked {
        /// The two CPUs.
        pair: String, axis;
        /// One line that both change by compare-and-exchange, or a line for each direction.
        mode: Mode;
    }
}

/// Pairs in a survey: all pairs of eight CPUs.
const SURVEYED: usize = 28;

fn plan(input: &PlanInput, machine: &Machine) -> Vec<Point> {
    let cpus = &machine.allowed.0;
    let mut all: Vec<(u32, u32)> =
        cpus.iter().enumerate().flat_map(|(i, a)| cpus[i + 1..].iter().map(move |b| (*a, *b))).collect();
    if let ([only], true) = (cpus.as_slice(), all.is_empty()) {
        // Reported as unsupported rather than left out.
        all.push((*only, *only));
    }
    let pairs = if input.survey { sample(&all, SURVEYED) } else { all.clone() };
    let left_out = match all.len() {
        total if total > pairs.len() => format!(" ({} of {total} pairs measured)", pairs.len()),
        _ => String::new(),
    };
    let mut points = Vec::new();
    for mode in TravelAsked::of(input).mode.or(Mode::ALL) {
        for (a, b) in &pairs {
            let pair = format!("{a}-{b}");
            let named = if a == b { String::new() } else { format!(" {pair}") };
            let title = format!("core to core{named}, {}{left_out}", mode.word().replace('-', " "));
            points.push(CORE_TO_CORE.point(Travel { pair, mode }, title, (*a, *b) == pairs[0]));
        }
    }
    points
}

/// At most `count` of `all`, evenly spaced, the first and the last among them.
fn sample<T: Copy>(all: &[T], count: usize) -> Vec<T> {
    if all.len() <= count {
        return all.to_vec();
    }
    (0..count).map(|i| all[i * (all.len() - 1) / (count - 1)]).collect()
}

fn run(bench: &mut Bench) -> Result<()> {
    if bench.cpus().len() > 1 {
        placement::heat(bench);
    }
    for (index, point) in bench.points().iter().enumerate() {
        if let Err(error) = measure(bench, index, point) {
            bench.unsupported(index, format!("{error:#}"), "");
        }
    }
    Ok(())
}

fn measure(bench: &mut Bench, index: usize, point: &Point) -> Result<()> {
    let Travel { pair, mode } = Travel::read(point)?;
    let (here, there) = pair.split_once('-').context("a pair is two CPUs, a-b")?;
    let (here, there): (u32, u32) = (here.parse()?, there.parse()?);
    if here == there {
        placement::lacks_a_cpu(bench, index);
        return Ok(());
    }
    threads::pin(here)?;
    // Fresh pages for each pair, first touched on its first CPU.
    let lines = SharedCell::<[Lane<AtomicU64>; 2]>::create(Scope::Threads)?;
    let answer = answer(mode);
    let theirs = lines.clone();
    let mut turn = 0;
    let share: Share = Box::new(move |iterations, _| {
        answer(&theirs, turn, iterations);
        turn += iterations;
        iterations
    });
    let thread_group = ThreadGroup::start(bench.timebase(), vec![(there, share)])?;
    let input = ask(mode);
    let mut turn = 0;
    thread_group.measure(bench, index, 1, |iterations| {
        input(&lines, turn, iterations);
        turn += iterations;
    });
    thread_group.dismiss();
    if let Some(median) = bench.median(index) {
        bench.value(index, "one-way", median / 2.0, "ns", Better::Less);
    }
    Ok(())
}

type Lines = [Lane<AtomicU64>; 2];
type Side = fn(&Lines, u64, u64);

fn ask(mode: Mode) -> Side {
    if mode == Mode::Cas { |lines, _, count| swap(lines, 0, 1, count) } else { ask_by_two_lines }
}

fn answer(mode: Mode) -> Side {
    if mode == Mode::Cas { |lines, _, count| swap(lines, 1, 0, count) } else { answer_by_two_lines }
}

/// Waits for `from` and makes it `to`, `count` times. Each attempt wants the
/// line for itself, as a lock does that many wait for.
fn swap(lines: &Lines, from: u64, to: u64, count: u64) {
    for _ in 0..count {
        while lines[0].signal.compare_exchange_weak(from, to, Ordering::AcqRel, Ordering::Relaxed).is_err() {}
    }
}

fn ask_by_two_lines(lines: &Lines, turn: u64, count: u64) {
    for number in turn + 1..=turn + count {
        lines[0].signal.store(number, Ordering::Release);
        while lines[1].signal.load(Ordering::Acquire) != number {}
    }
}

fn answer_by_two_lines(lines: &Lines, turn: u64, count: u64) {
    for number in turn + 1..=turn + count {
        while lines[0].signal.load(Ordering::Acquire) != number {}
        lines[1].signal.store(number, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::Level;
    use latscope_engine::harness;

    fn planned(cpus: &str, survey: bool) -> Vec<Point> {
        let machine = Machine { allowed: cpus.parse().unwrap(), ..Machine::default() };
        plan(&PlanInput { survey, ..harness::input() }, &machine)
    }

    #[test]
    fn every_pair_is_planned_once_for_each_mode() {
        let pairs: Vec<_> = planned("0,2-3", true).iter().map(|p| p.text("pair").to_owned()).collect();
        assert_eq!(pairs, ["0-2", "0-3", "2-3", "0-2", "0-3", "2-3"]);
        assert_eq!(planned("5", true)[0].text("pair"), "5-5");
        assert_eq!(planned("5", true)[0].title, "core to core, cas");
    }

    #[test]
    fn a_survey_of_many_cpus_measures_some_pairs_and_says_so() {
        let some = planned("0-15", true);
        assert_eq!(some.len(), 2 * SURVEYED);
        assert!(some[0].title.ends_with("(28 of 120 pairs measured)"), "{}", some[0].title);
        assert_eq!((some[0].text("pair"), some[27].text("pair")), ("0-1", "14-15"));
        assert_eq!(planned("0-15", false).len(), 2 * 120);
    }

    #[test]
    fn lines_travel_in_both_modes() {
        for m in harness::measure(&EXPERIMENT, harness::points(&CORE_TO_CORE)) {
            harness::check(&m);
            assert_eq!(m.values.contains_key("one-way"), m.quality.level != Level::Unsupported);
        }
    }
}
