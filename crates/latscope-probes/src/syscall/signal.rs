//! Signals: installation of a handler, sending of a signal to the own thread, handling of a fault.

use super::calls::{FACTS, time_loop};
use crate::prelude::*;
use latscope_core::units::format_count;
use latscope_os::kernels::code::calls::SystemCallLoop;
use latscope_os::signal_probe::{FaultTrap, SelfSignal};
use rustix::io::Result;

static SIGNAL: Experiment = Experiment::new("syscall.signal", Cpus::One, run_signals);

probes! {
    SIGNAL, (), crate::only_point, ..FACTS;
    INSTALL "syscall.signal-install", "install a signal handler", "sigaction(2)",
        "One rt_sigaction that sets a handler for SIGUSR1, the same one again.";
    DELIVER "syscall.signal-deliver", "signal to oneself, handled", "tgkill(2), signal(7)",
        "One tgkill of SIGUSR1 to the own thread: the call, the handler and the return from it. Value \
        `nothing-sent` is the call alone (signal 0), not subtracted.";
    FAULT "syscall.signal-fault", "protection fault, caught", "signal(7), mprotect(2)",
        "One store to a read-only page: the fault, SIGSEGV, a handler that steps over the store, and the return \
        from it."
        { at_addresses: false, };
}

fn run_signals(bench: &mut Bench) -> anyhow::Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        if point.probe == FAULT.id {
            fault(bench, index);
            continue;
        }
        match SelfSignal::install_handler() {
            Err(error) => refuse(bench, index, "install a signal handler", error),
            Ok(signal) if point.probe == INSTALL.id => {
                let mut calls = SystemCallLoop::install_signal(bench.seed(), &signal);
                time_loop(bench, index, "rt_sigaction", &mut calls);
            }
            Ok(signal) => deliver(bench, index, &signal),
        }
    }
    Ok(())
}

fn deliver(bench: &mut Bench, point: usize, signal: &SelfSignal) {
    if let Ok(ns) = baseline(signal) {
        bench.add_value(point, "nothing-sent", ns, "ns", Better::Less);
    }
    let mut calls = SystemCallLoop::deliver_signal(bench.seed(), signal);
    let before = signal.delivery_count();
    time_loop(bench, point, "tgkill", &mut calls);
    let (sent, handled) = (calls.iterations(), signal.delivery_count() - before);
    if handled != sent {
        let reason = format!(
            "{} of {} sent had been handled when the call returned",
            format_count(handled),
            count_with_noun(sent, "signal")
        );
        bench.unsupported(point, reason, "");
    }
}

/// Nanoseconds of sending signal 0: the best of some runs, since the figure is
/// only a value beside the point's own.
fn baseline(signal: &SelfSignal) -> Result<f64> {
    const CALLS: u32 = 1_000;
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..CALLS {
            signal.send_nothing()?;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    Ok(best)
}

fn fault(bench: &mut Bench, point: usize) {
    let trap = ok_or_refuse(bench, point, "install a SIGSEGV handler", FaultTrap::install_trap());
    let Some(mut trap) = trap else { return };
    let (mut stores, before) = (0u64, trap.caught());
    bench.batch(point, Batch { cycles: true, ..Batch::default() }, |count| {
        stores += count;
        for _ in 0..count {
            trap.try_store();
        }
    });
    let caught = trap.caught() - before;
    if caught != stores {
        bench.unsupported(point, format!("of {stores} faults, {caught} were caught"), "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn signals_and_faults_are_measured_and_all_are_handled() {
        let planned = [&INSTALL, &DELIVER, &FAULT].into_iter().flat_map(points).collect();
        for m in measure(&SIGNAL, planned) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{}: {:?}", m.probe, m.joined_reasons());
            assert_eq!(m.values.contains_key("nothing-sent"), m.probe == DELIVER.id);
        }
    }
}
