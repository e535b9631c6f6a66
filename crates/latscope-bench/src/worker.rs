//! The worker process: sets itself up, runs one step, reports, ends.

use crate::bench::Bench;
use crate::hold::{self, Shortfall};
use crate::probe::Registry;
use crate::protocol::{Assignment, WorkerMessage};
use crate::recorder::{HistogramSlotLayout, Slots};
use crate::threads;
use anyhow::{Context, Result, anyhow};
use latscope_core::plan::MeasuringThreadPolicy;
use latscope_os::sched;
use latscope_os::worker::take_descriptor;
use latscope_process::role::MessageSocket;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The role of the worker process.
pub const NAME: &str = "__worker";

/// Runs the step that arrives on the first inherited descriptor, counting in
/// the memfd that is the second.
///
/// # Errors
/// The process was not started by a coordinator, or the coordinator is gone.
pub fn main(registry: &Registry) -> Result<()> {
    let by_hand = "a worker is started by latscope itself, for one step: run `latscope survey`";
    let mut messages = MessageSocket::inherited().context(by_hand)?;
    let memory = take_descriptor(1).context(by_hand)?;
    let assignment: Assignment = messages.receive_message().context(by_hand)?.context(by_hand)?;
    let slots = Slots::map_memfd(&memory, HistogramSlotLayout::of_step(&assignment.step))?;
    // A coordinator that is gone takes this process with it; a failed write needs no other answer.
    let mut tell = |message: WorkerMessage| drop(messages.send_message(&message));
    if let Err(error) = run_step(registry, assignment, (slots, memory), &mut tell) {
        tell(WorkerMessage::Failed(format!("{error:#}")));
    }
    tell(WorkerMessage::Finished);
    Ok(())
}

fn run_step(
    registry: &Registry,
    assignment: Assignment,
    (slots, memory): (Slots, OwnedFd),
    tell: &mut (dyn FnMut(WorkerMessage) + Send),
) -> Result<()> {
    let step = &assignment.step;
    let experiment =
        registry.experiment(&step.name).ok_or_else(|| anyhow!("no experiment {:?}", step.name))?;
    for point in &step.points {
        let probe = registry.find_probe(&point.probe).ok_or_else(|| anyhow!("no probe {:?}", point.probe))?;
        (probe.check)(&point.without_kind())?;
    }
    // Periodic threads place themselves; this one only waits for them, on any CPU.
    let pin = step.cpus.first().copied().filter(|_| step.periodic.is_none());
    let mut shortfalls = prepare_thread(pin, step.policy)?;
    let (_held, missing) = hold::hold(&step.conditions);
    shortfalls.extend(missing);
    tell(WorkerMessage::Ready);
    let mut bench = Bench::new(assignment, slots.clone(), tell);
    bench.set_bell(take_descriptor(2).ok());
    bench.set_memory(Some(memory));
    shortfalls.iter().for_each(|shortfall| bench.announce_shortfall(shortfall));
    let outcome = catch_unwind(AssertUnwindSafe(|| (experiment.run)(&mut bench)));
    // Threads that were let go were moved by the coordinator.
    if slots.let_go_at().is_none() {
        shortfalls.extend(threads::all_moved());
    }
    for shortfall in &shortfalls {
        (0..bench.points().len()).for_each(|point| bench.fell_short(point, shortfall));
    }
    bench.report_results();
    match outcome {
        Ok(result) => result,
        Err(panic) => Err(anyhow!("{}: {}", experiment.name, panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "a panic".to_owned())
}

/// Pins the process, sets its policy and reads it back.
fn prepare_thread(cpu: Option<u32>, policy: MeasuringThreadPolicy) -> Result<Vec<Shortfall>> {
    let mut shortfalls = Vec::new();
    if let Some(cpu) = cpu {
        shortfalls.extend(pin_thread(cpu)?);
    }
    if let MeasuringThreadPolicy::Fifo(priority) = policy {
        shortfalls.extend(hold::apply_policy(sched::ThreadSchedPolicy::Fifo(priority)));
    }
    Ok(shortfalls)
}

/// A CPU that is not there is an error; a kernel without affinity is not.
fn pin_thread(cpu: u32) -> Result<Option<Shortfall>> {
    match sched::pin(&[cpu]) {
        Ok(()) => Ok(None),
        Err(error)
            if matches!(
                error.raw_os_error().map(Errno::from_raw_os_error),
                Some(Errno::PERM | Errno::NOSYS)
            ) =>
        {
            let remedy = "allow sched_setaffinity(2) in the seccomp filter";
            Ok(Some(Shortfall {
                id: "not-pinned",
                reason: format!("not kept on CPU {cpu}: {error}"),
                remedy,
            }))
        }
        Err(error) => Err(error).with_context(|| format!("CPU {cpu} cannot be used")),
    }
}
