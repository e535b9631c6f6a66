//! Reasons that what the whole command runs on gives to every measurement.

use latscope_bench::hold::Shortfall;
use latscope_core::catalogue::Facts;
use latscope_core::machine::Machine;
use latscope_core::quality::{Level, Reason};
use latscope_core::report::Measurement;
use latscope_os::worker;
use std::collections::BTreeSet;

/// The emulator that all figures are those of, if there is one.
pub(super) fn emulator(machine: &Machine) -> Option<String> {
    let runner = std::env::var(worker::RUNNER).ok();
    runner.or_else(|| machine.hypervisor.clone().filter(|name| name.contains("emulated")))
}

/// Marks a figure as an emulator's.
pub(super) fn mark_emulated(measurement: &mut Measurement, emulator: &str) {
    if measurement.quality.level != Level::Unsupported {
        let text = format!("emulated ({emulator}): the figure is the emulator's");
        measurement.lower(Reason::new(Level::Degraded, "emulated", text, "measure on the machine itself"));
    }
}

/// Marks the figure of a probe whose loop is assembly on other architectures than this.
pub(super) fn mark_compiled(measurement: &mut Measurement, probe: Option<&Facts>) {
    if measurement.quality.level != Level::Unsupported && probe.is_some_and(|facts| facts.is_loop) {
        let text =
            "the timed loop is compiled: it may have further instructions, and loads and stores between";
        measurement.lower(Reason::new(Level::Degraded, "compiled-loop", text, "measure on x86-64 or arm64"));
    }
}

/// Marks the points in which the worker was stopped by a signal, unless a gate threw those samples away.
pub(super) fn mark_halted(measured: &mut [Measurement], points: &BTreeSet<usize>) {
    for point in points {
        let Some(m) = measured.get_mut(*point) else { continue };
        if !m.contention.as_ref().is_some_and(|contention| contention.gated) {
            let Shortfall { id, reason, remedy } = Shortfall::halted();
            m.lower(Reason::new(Level::Degraded, id, reason, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::histogram::Histogram;
    use latscope_core::plan::{Point, params};
    use latscope_core::report::{Sampling, Semantics};

    #[test]
    fn only_figures_of_loops_are_marked_as_compiled() {
        let marked = |level, facts| {
            let point = Point {
                probe: "cpu.cycle".to_owned(),
                revision: 1,
                params: params([]),
                title: "core cycle".to_owned(),
                row: true,
            };
            let (sampling, times) = (Sampling::Event, Semantics::Operation);
            let mut measurement = Measurement::of(point, sampling, times, Histogram::new(1));
            measurement.lower(Reason::new(level, "one-cpu", "a test", ""));
            mark_compiled(&mut measurement, facts);
            measurement.quality.reasons.iter().any(|reason| reason.id == "compiled-loop")
        };
        assert!(marked(Level::Degraded, Some(&Facts::LOOPS)));
        assert!(!marked(Level::Degraded, Some(&Facts::BATCHES)));
        assert!(!marked(Level::Degraded, None));
        assert!(!marked(Level::Unsupported, Some(&Facts::LOOPS)));
    }
}
