//! Environment of the sampler's loops: the clock, the gate and the core clock of this machine, and the slots that
//! samples go to.

use crate::gate::{SampleGate, SampleGateReading, Taint};
use crate::recorder::HistogramSlotWriter;
use crate::sampler::{SampleSink, SamplerHost};
use crate::timebase::{AnyClock, Timebase};
use latscope_os::clock::Clock;
use latscope_os::kernels::cycle;
use latscope_os::usage::thread_counts;

/// The machine itself, behind the measuring loops.
pub(crate) struct MachineSamplerHost<'a> {
    clock: AnyClock,
    gate: SampleGate,
    cycles: bool,
    timebase: Timebase,
    /// Work to do before each sample, outside of its stamps.
    prepare: &'a mut dyn FnMut(),
}

/// Adds in a look at the core clock: about 10 µs.
const CYCLE_ITERATIONS: u64 = 300;

impl MachineSamplerHost<'_> {
    pub(crate) fn new(
        timebase: Timebase,
        gate: SampleGate,
        cycles: bool,
        prepare: &mut dyn FnMut(),
    ) -> MachineSamplerHost<'_> {
        MachineSamplerHost { clock: timebase.clock(), gate, cycles, timebase, prepare }
    }
}

impl SamplerHost for MachineSamplerHost<'_> {
    type Clock = AnyClock;

    fn clock(&self) -> AnyClock {
        self.clock
    }

    fn yield_cpu(&mut self) -> bool {
        let before = thread_counts();
        rustix::thread::sched_yield();
        let after = thread_counts();
        (before.voluntary, before.involuntary) != (after.voluntary, after.involuntary)
    }

    fn open_gate(&mut self) -> SampleGateReading {
        (self.prepare)();
        self.gate.take_reading()
    }

    fn close_gate(&mut self, before: SampleGateReading, wall_ns: f64) -> Option<Taint> {
        self.gate.close_and_judge(before, wall_ns)
    }

    fn cycle_ps(&mut self) -> Option<f64> {
        self.cycles.then(|| {
            let start = self.clock.stamp_start();
            std::hint::black_box(cycle::dependent_adds(CYCLE_ITERATIONS));
            let ns = self.timebase.interval_ns(self.clock.stamp_end() - start);
            ns * 1e3 / (CYCLE_ITERATIONS * cycle::ADDS_PER_ITERATION) as f64
        })
    }
}

/// Records samples of several parts, each in its own slot.
pub(crate) struct Recorders {
    pub writers: Vec<HistogramSlotWriter>,
    /// Number of samples recorded of each part.
    pub recorded: Vec<u64>,
    pub timebase: Timebase,
    pub epoch: u64,
}

impl SampleSink for Recorders {
    fn record_sample(&mut self, part: usize, value: u64, at: u64) {
        let at = self.timebase.interval_ns(at.saturating_sub(self.epoch)) as u64;
        self.writers[part].record_value(value, at);
        self.recorded[part] += 1;
    }

    fn reject(&mut self, taint: Taint) {
        self.writers.iter().for_each(|writer| writer.reject(taint));
    }
}
