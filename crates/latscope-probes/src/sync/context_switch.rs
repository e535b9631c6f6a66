//! The cost of a context switch, with the cost of the pipe that makes it
//! happen taken off; and of a ring of processes with their working sets.

use super::pipes;
use super::placement::{self, HandOffPlacement};
use crate::prelude::*;
use crate::scheduled::{FreePlacement, apply_placement, suffix};
use latscope_exchange::{RoundTripCall, echo, links};
use latscope_os::child::{self, ForkChild, sum_words};
use rustix::fd::AsFd;

probes! {
    EXPERIMENT, ContextSwitchSettings, plan_switches, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    CONTEXT_SWITCH "sync.context-switch", "context switch", "pipe(7); the method of LMbench's lat_ctx",
        "Half of a pipe round trip between two endpoints on one CPU, less a write and a read in one thread."
        { revision: 2, };
}

probes! {
    RING_EXPERIMENT, ProcessRingSettings, plan_ring, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    RING "sync.ring", "context switch in a ring of processes", "pipe(7); the method of LMbench's lat_ctx",
        "One hop of a token round a ring of processes on one CPU, each summing its own memory, less the same \
        write, read and sum in one process."
        { revision: 2, may_be_zero: &["size"], };
}

static EXPERIMENT: Experiment = Experiment::new("sync.context-switch", Cpus::One, run_switches);

static RING_EXPERIMENT: Experiment =
    Experiment::new("sync.ring", Cpus::One, run_ring).fewer_rounds(4, placement::AWAKE);

words! {
    /// Endpoints of a switch.
    enum SwitchEndpointKind {
        /// Threads of one process.
        Threads = "threads",
        /// Processes: the address space is switched, too.
        Processes = "processes",
    }
}

settings! {
    /// A switch between two.
    struct ContextSwitchSettings, requested as ContextSwitchRequest {
        /// Whether the two share their memory or the switch changes the address space as well.
        mode: SwitchEndpointKind;
    }
}

settings! {
    /// A ring of processes.
    struct ProcessRingSettings, requested as ProcessRingRequest {
        /// Processes in the ring, at least 2.
        processes: u64, axis;
        /// Memory each process sums.
        size: u64 as Size, axis;
        /// `free`, where asked for: the scheduler places the processes. Otherwise all are on one CPU.
        placement: Option<FreePlacement>;
    }
}

/// Largest number of processes in a ring, so that a typing error cannot start too many.
const MOST_PROCESSES: u64 = 256;

fn plan_switches(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let point = |mode: SwitchEndpointKind| {
        let title = format!("context switch between {}", mode.word());
        probe.make_point(ContextSwitchSettings { mode }, title, true)
    };
    ContextSwitchRequest::of(input).mode.or(SwitchEndpointKind::ALL).into_iter().map(point).collect()
}

fn plan_ring(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ProcessRingRequest::of(input);
    let placement = asked.placement.first();
    let mut points = Vec::new();
    for size in asked.size.or(&[0, 16 << 10, 64 << 10]) {
        for processes in asked.processes.or(&[2, 4, 8, 16]) {
            let processes = processes.clamp(2, MOST_PROCESSES);
            let title =
                format!("ring of {processes}, {} each, a switch{}", format_size(size), suffix(placement));
            let row = (processes, size) == (16, 64 << 10);
            points.push(probe.make_point(ProcessRingSettings { processes, size, placement }, title, row));
        }
    }
    points
}

fn run_switches(bench: &mut Bench) -> Result<()> {
    let cpu = bench.cpus()[0];
    for (index, point) in bench.points().iter().enumerate() {
        let _awake = placement::keep_awake(bench, index, HandOffPlacement::SameCore, [cpu; 2]);
        placement::place_thread(HandOffPlacement::SameCore, cpu)
            .context("the measuring thread cannot be set up")?;
        let measured = match ContextSwitchSettings::read(point)?.mode {
            SwitchEndpointKind::Threads => between_threads(bench, index, cpu),
            SwitchEndpointKind::Processes => ring(bench, index, Some(cpu), 2, 0),
        };
        match measured {
            Ok(alone) => show_parts(bench, index, alone),
            Err(error) => bench.unsupported(index, format!("{error:#}"), ""),
        }
    }
    Ok(())
}

/// Reports the round trip, from which the switch is computed.
fn show_parts(bench: &mut Bench, point: usize, alone_ns: f64) {
    if let Some(switch) = bench.median(point) {
        bench.add_value(point, "round-trip", 2.0 * (switch + alone_ns), "ns", Better::Less);
    }
}

fn run_ring(bench: &mut Bench) -> Result<()> {
    let cpu = bench.cpus()[0];
    for (index, point) in bench.points().iter().enumerate() {
        let ProcessRingSettings { processes, size, placement } = ProcessRingSettings::read(point)?;
        let cpu = if placement.is_none() { Some(cpu) } else { None };
        let _awake = cpu.map(|cpu| placement::keep_awake(bench, index, HandOffPlacement::SameCore, [cpu; 2]));
        match cpu {
            Some(cpu) => placement::place_thread(HandOffPlacement::SameCore, cpu),
            None => Ok(apply_placement(bench, placement)?),
        }
        .context("the measuring thread cannot be set up")?;
        let measured = ring(bench, index, cpu, processes as usize, size as usize).map(drop);
        close_failed(bench, &[index], measured, &more_tasks());
    }
    Ok(())
}

/// Measures switches between this thread and another. Returns the time that is subtracted from each, ns.
fn between_threads(bench: &mut Bench, point: usize, cpu: u32) -> Result<f64> {
    let alone = alone(&bench.timebase(), &[])?;
    let (mut near, far) = links::pipe()?;
    let partner = threads::start_partner(
        move || placement::place_thread(HandOffPlacement::SameCore, cpu),
        move || echo(far),
    )
    .context("the other thread")?;
    let went = time_hops(bench, point, HandOffPlacement::SameCore.gate(), &alone, 2, || near.call().is_ok())?;
    drop(near);
    partner.join();
    ensure!(went, "the other thread was gone");
    Ok(alone.ns)
}

/// Measures hops round a ring of this process and `processes - 1` others. Returns the time that is subtracted
/// from each, ns.
fn ring(bench: &mut Bench, point: usize, cpu: Option<u32>, processes: usize, size: usize) -> Result<f64> {
    let memory = vec![1u64; size / 8];
    let alone = alone(&bench.timebase(), &memory)?;
    let (first, output) = pipes::open_pipe()?;
    let (_others, input) = relays(first, cpu, processes - 1, memory.len())?;
    // CPU time of other processes cannot be asked for: no gate.
    let went = time_hops(bench, point, SampleGate::Open, &alone, processes as u64, || {
        black_box(sum_words(black_box(&memory)));
        pipes::write_token(&output) && pipes::read_token(&input)
    })?;
    ensure!(went, "a process of the ring ended early: it could not have the CPU, the policy or the memory");
    Ok(alone.ns)
}

/// Starts a chain of processes from `input` to the returned descriptor.
fn relays(
    mut input: OwnedFd,
    cpu: Option<u32>,
    count: usize,
    words: usize,
) -> Result<(Vec<ForkChild>, OwnedFd)> {
    let mut children = Vec::new();
    for _ in 0..count {
        let (next, output) = pipes::open_pipe()?;
        let policy = HandOffPlacement::SameCore.policy();
        let child = child::relay(cpu, policy, input.as_fd(), output.as_fd(), words);
        children.push(child.context("no further process can be made")?);
        input = next;
    }
    Ok((children, input))
}

/// Time of laps before the first timed one, as long as that of a hand-off.
const WARM_UP: Duration = Duration::from_millis(8);

/// Times `lap`, in which the CPU changes hands `hops` times, and records the share of one hop less what it
/// takes alone. Returns true if every round succeeded.
fn time_hops(
    bench: &mut Bench,
    point: usize,
    gate: SampleGate,
    alone: &RingOverheadTime,
    hops: u64,
    mut lap: impl FnMut() -> bool,
) -> Result<bool> {
    bench.add_value(point, "self", alone.ns, "ns", Better::Less);
    let mut went = true;
    let started = Instant::now();
    while went && started.elapsed() < WARM_UP {
        went = lap();
    }
    if !went {
        return Ok(false);
    }
    let (mut laps, mut faster) = (0u64, 0u64);
    bench.splits(&[point], gate, |splits| {
        let from = splits.now();
        // After a failure the rest fails at once, and the caller gets the error.
        went = went && lap();
        let to = splits.now();
        let hop = ((to - from) / hops).saturating_sub(alone.ticks);
        laps += 1;
        faster += u64::from(hop == 0);
        splits.set_part(0, to - hop, to);
    });
    if let Some(reason) = too_much_subtracted(laps, faster).filter(|_| went) {
        bench.degrade(point, "own-work", reason, "measure on a quieter machine");
    }
    Ok(went)
}

/// Largest share of the laps that may take less than what is subtracted.
const MOST_FASTER: f64 = 0.05;

/// Returns what is wrong with the figure of laps of which so many took less than what is subtracted.
fn too_much_subtracted(laps: u64, faster: u64) -> Option<String> {
    let share = faster as f64 / laps.max(1) as f64;
    let text = || {
        format!(
            "{} of the laps took less than their own work did alone, which is subtracted",
            format_share(share)
        )
    };
    (share > MOST_FASTER).then(text)
}

/// Time in which one thread sums its memory, writes to a pipe and reads from it.
struct RingOverheadTime {
    ticks: u64,
    ns: f64,
}

/// Number of trials, of which the median is taken, and repetitions in each: short enough that most are not
/// disturbed.
const TRIALS: usize = 101;
const REPETITIONS: u64 = 16;

fn alone(timebase: &Timebase, memory: &[u64]) -> Result<RingOverheadTime> {
    let (input, output) = pipes::open_pipe()?;
    let clock = timebase.clock();
    let mut went = true;
    let mut trial = || {
        let start = clock.stamp_start();
        for _ in 0..REPETITIONS {
            black_box(sum_words(black_box(memory)));
            went &= pipes::write_token(&output) && pipes::read_token(&input);
        }
        (clock.stamp_end() - start) as f64 / REPETITIONS as f64
    };
    trial();
    let trials: Vec<f64> = (0..TRIALS).map(|_| trial()).collect();
    ensure!(went, "a pipe does not carry a byte");
    let ticks = median(&trials).unwrap_or(0.0) as u64;
    Ok(RingOverheadTime { ticks, ns: timebase.interval_ns(ticks) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn a_switch_is_measured_with_its_parts() {
        for m in harness::measure(&EXPERIMENT, harness::points(&CONTEXT_SWITCH)) {
            harness::check(&m);
            assert!(m.values["self"].value > 0.0);
            assert!(m.values["round-trip"].value >= 2.0 * m.values["self"].value);
        }
    }

    #[test]
    fn laps_of_which_nothing_is_left_are_no_figure() {
        assert_eq!((too_much_subtracted(0, 0), too_much_subtracted(400, 20)), (None, None));
        let reason = too_much_subtracted(400, 264).unwrap();
        assert!(reason.starts_with("66 % of the laps took less"), "{reason}");
    }

    #[test]
    fn rings_of_all_sizes_turn() {
        let points = harness::points(&RING);
        assert_eq!(points.len(), 12);
        for m in harness::measure(&RING_EXPERIMENT, points) {
            harness::check(&m);
            assert!(m.values["self"].value > 0.0);
        }
    }

    #[test]
    fn the_scheduler_places_a_ring_where_that_is_asked_for_only() {
        let mut input = harness::input();
        assert!(
            RING.plan(&input, &harness::machine())
                .iter()
                .all(|point| !point.params.contains_key("placement"))
        );
        input.values.insert("placement".into(), vec!["free".into()]);
        input.values.insert("processes".into(), vec![2.into()]);
        input.values.insert("size".into(), vec![0.into()]);
        let measured = harness::measure(&RING_EXPERIMENT, RING.plan(&input, &harness::machine()));
        harness::check(&measured[0]);
        assert_eq!(measured[0].params["placement"], "free".into());
    }

    #[test]
    fn a_ring_has_two_processes_at_least_and_an_end() {
        let mut input = harness::input();
        input.values.insert("processes".into(), vec![0.into(), 1_000_000.into()]);
        input.values.insert("size".into(), vec![0.into()]);
        let points = RING.plan(&input, &harness::machine());
        let processes: Vec<_> = points.iter().map(|p| p.numeric_param("processes")).collect();
        assert_eq!(processes, [2, MOST_PROCESSES]);
    }
}
