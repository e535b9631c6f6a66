//! Cost of an event that the kernel counts: a tracepoint at a system call, a breakpoint in a function.

use super::seccomp::{CALLS, median_ns};
use crate::prelude::*;
use latscope_os::counted_event::{PerfEventCounter, probed};
use latscope_os::kernels::code::calls::SystemCallLoop;
use latscope_trace::tracefs;
use std::io;

static TRACED: Experiment =
    Experiment::new("syscall.traced", Cpus::One, run_traced_events).setup_per_point(0.05);

settings! {
    /// Settings of an event that is counted.
    struct TracedEventSettings, requested as TracedEventRequest {
        /// Event that is counted: the tracepoint raw_syscalls:sys_enter, or a uprobe
        mode: TracedEventKind;
    }
}

words! {
    /// Kind of the event.
    enum TracedEventKind {
        /// The tracepoint raw_syscalls:sys_enter.
        Tracepoint = "tracepoint",
        /// A breakpoint in an empty function.
        Uprobe = "uprobe",
    }
}

probes! {
    TRACED, TracedEventSettings, plan_traced_events, ..crate::ProbeFacts::BATCHES;
    EVENTS "syscall.traced", "event counted by the kernel", "perf_event_open(2)",
        "Mode tracepoint: one getppid while raw_syscalls:sys_enter is counted for this thread. Mode uprobe: one \
        call of an empty function with a breakpoint that is counted. `cost`: longer than without the event."
            { by_name_only: true, };
}

fn plan_traced_events(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let mut points = Vec::new();
    for mode in TracedEventRequest::of(input).mode.or(TracedEventKind::ALL) {
        let title = match mode {
            TracedEventKind::Tracepoint => "getppid, with a tracepoint",
            TracedEventKind::Uprobe => "function call, with a uprobe",
        };
        points.push(probe.make_point(TracedEventSettings { mode }, title, true));
    }
    points
}

fn run_traced_events(bench: &mut Bench) -> Result<()> {
    // In a mount namespace of this process, if it is mounted nowhere.
    tracefs::provide();
    for (index, TracedEventSettings { mode }) in
        bench.settings::<TracedEventSettings>()?.into_iter().enumerate()
    {
        measure_traced_event(bench, index, mode);
    }
    Ok(())
}

fn measure_traced_event(bench: &mut Bench, index: usize, mode: TracedEventKind) {
    let mut getppid = SystemCallLoop::getppid(bench.seed());
    let addresses = if mode == TracedEventKind::Tracepoint { getppid.address_count() } else { 1 };
    let mut run = |address, iterations| match mode {
        TracedEventKind::Tracepoint => {
            // It fails only under a filter; then the figure is that of the refusal.
            let _ = getppid.run_at(address, iterations);
        }
        TracedEventKind::Uprobe => (0..iterations).for_each(|_| probed()),
    };
    let plain = median_ns(|stretch| run(stretch % addresses, CALLS));
    let counted = match mode {
        TracedEventKind::Tracepoint => {
            tracefs::event_id("raw_syscalls/sys_enter").and_then(PerfEventCounter::tracepoint)
        }
        TracedEventKind::Uprobe => PerfEventCounter::uprobe(),
    };
    let counted = match counted {
        Ok(counted) => counted,
        Err(error) => {
            let (reason, remedy) = explain_refusal(mode, &error);
            bench.unsupported(index, reason, remedy);
            return;
        }
    };
    let mut calls = 0;
    let batch = Batch { cycles: true, ..Batch::default() };
    bench.batch_at_addresses(index, batch, addresses, |address, iterations| {
        calls += iterations;
        run(address, iterations);
    });
    // The calls of the measurement itself may be counted, too.
    if counted.read_count().is_ok_and(|count| count < calls) {
        bench.unsupported(index, "the kernel did not count every event", "");
    } else if let Some(median) = bench.median(index) {
        bench.add_value(index, "cost", median - plain, "ns", Better::Less);
    }
}

/// Returns the reason why an event cannot be counted, and the remedy.
fn explain_refusal(mode: TracedEventKind, error: &io::Error) -> (String, &'static str) {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "run as root or with CAP_PERFMON; a kernel that is locked down (/sys/kernel/security/lockdown) refuses it"
        }
        io::ErrorKind::NotFound if mode == TracedEventKind::Tracepoint => {
            "run `mount -t tracefs nodev /sys/kernel/tracing` as root"
        }
        io::ErrorKind::NotFound => "use a kernel with CONFIG_UPROBE_EVENTS",
        _ => "",
    };
    (format!("the {} cannot be counted: {error}", mode.word()), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn events_are_measured_or_say_what_is_missing() {
        let all = measure(&TRACED, points(&EVENTS));
        assert_eq!(all.len(), 2);
        for m in all {
            check(&m);
            assert!(m.values.contains_key("cost") || m.joined_reasons().is_some(), "{:?}", m.params);
        }
    }

    #[test]
    fn a_missing_right_is_named() {
        let (reason, remedy) =
            explain_refusal(TracedEventKind::Uprobe, &io::ErrorKind::PermissionDenied.into());
        assert!(reason.starts_with("the uprobe cannot be counted") && remedy.contains("CAP_PERFMON"));
    }
}
