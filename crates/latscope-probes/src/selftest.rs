//! Probes whose true result is known, for `latscope selftest`.

use crate::prelude::*;
use latscope_core::units::format_percent;
use latscope_os::kernels::cycle;

/// The probes of the self test; they are not part of any survey.
pub static PROBES: &[&Probe] = &[&EMPTY, &DELAY, &SAME, &SLOWER];

/// Probes that check the measurement.
pub static MEASURING: &[&Probe] = &[&EMPTY, &DELAY, &SAME];

/// Probes that check comparisons.
pub static COMPARING: &[&Probe] = &[&SLOWER];

probes! {
    EXPERIMENT, (), crate::only_point;
    EMPTY "selftest.empty", "nothing", "the cost of stamping is subtracted, so what is left is its error",
        "Nothing lies between the two stamps.";
    DELAY "selftest.delay", "a known delay in every tenth event", "the wait's own stamps are the truth",
        "Nothing, but a busy wait in every tenth event, which stamps its own length.";
}

settings! {
    /// Settings of a run of the self test.
    struct SelftestRunSettings {
        /// Which of the two runs.
        run: SelftestRun as Stated;
        /// Which pair of runs.
        pair: u64 as Stated, axis;
    }
}

words! {
    /// A run of a pair.
    enum SelftestRun {
        /// The first of the two.
        A = "a",
        /// The second of the two.
        B = "b",
    }
}

probes! {
    EXPERIMENT, SelftestRunSettings, plan_same;
    SAME "selftest.same", "the same operation twice", "two runs of one thing differ by the error of the instrument",
        "A thousand dependent additions, measured as run a and as run b in turn.";
}

settings! {
    /// A loop that is longer than another one.
    struct LongerLoopSettings {
        /// By so many percent.
        percent: u64 as Stated, axis;
        /// Which of several points that are alike.
        copy: u64 as Stated, axis;
    }
}

probes! {
    EXPERIMENT, LongerLoopSettings, plan_slower;
    SLOWER "selftest.slower", "a loop longer by a known share", "what it takes longer is known",
        "Ten thousand dependent additions, and so many percent more.";
}

/// Percentages by which the loops of [`SLOWER`] are longer.
pub const LONGER: [u64; 5] = [0, 3, 5, 10, 20];

/// Points of [`SLOWER`] that are alike.
pub const COPIES: u64 = 8;

fn plan_slower(probe: &Probe, _: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let loops = LONGER
        .iter()
        .flat_map(|percent| (0..COPIES).map(|copy| LongerLoopSettings { percent: *percent, copy }));
    let title = |longer: &LongerLoopSettings| {
        format!("a loop, {} longer, copy {}", format_percent(longer.percent as f64), longer.copy)
    };
    loops.map(|longer| probe.make_point(longer.clone(), title(&longer), false)).collect()
}

static EXPERIMENT: Experiment = Experiment::new("selftest", Cpus::One, run);

/// Pairs of runs of [`SAME`].
const PAIRS: u64 = 20;

/// Length of an injected delay, ns.
pub const DELAY_NS: u64 = 20_000;

fn plan_same(probe: &Probe, _: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let runs = (0..PAIRS)
        .flat_map(|pair| SelftestRun::ALL.iter().map(move |run| SelftestRunSettings { run: *run, pair }));
    let title =
        |run: &SelftestRunSettings| format!("the same operation, pair {}, run {}", run.pair, run.run.word());
    runs.map(|run| probe.make_point(run.clone(), title(&run), false)).collect()
}

fn run(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        match point.probe.as_str() {
            "selftest.empty" => bench.each(index, SampleGate::Thread, || {}),
            "selftest.delay" => delay(bench, index),
            "selftest.slower" => {
                let iterations = 100 + LongerLoopSettings::read(point)?.percent;
                let mut stop = bench.stop();
                stop.samples = stop.samples.min(10);
                bench.set_stop(stop);
                // Of the work, not of the additions: a longer loop takes longer for the same.
                let batch = Batch { ops: 100 * cycle::ADDS_PER_ITERATION, cycles: true, ..Batch::default() };
                bench.batch(index, batch, |n| cycle::dependent_adds(iterations * n));
            }
            _ => {
                let mut stop = bench.stop();
                stop.samples = stop.samples.min(20);
                bench.set_stop(stop);
                let batch = Batch { ops: 10 * cycle::ADDS_PER_ITERATION, cycles: true, ..Batch::default() };
                bench.batch(index, batch, |n| cycle::dependent_adds(10 * n));
            }
        }
    }
    Ok(())
}

/// Waits in every tenth event and sums up the true length of each wait. The gate is open: a wait that the
/// hypervisor stretched still has to be found. An event of the warm-up is not recorded, so it does not have to
/// be found.
fn delay(bench: &mut Bench, point: usize) {
    let timebase = bench.timebase();
    let clock = timebase.clock();
    let (mut turn, mut injected, mut total) = (0u64, 0u64, 0.0);
    bench.splits(&[point], SampleGate::Open, |splits| {
        turn += 1;
        splits.start_part();
        if turn.is_multiple_of(10) {
            let began = clock.stamp_start();
            let mut now = began;
            while timebase.interval_ns(now - began) < DELAY_NS as f64 {
                now = clock.stamp_end();
            }
            splits.stop_part(0);
            if splits.is_to_record() {
                injected += 1;
                total += timebase.interval_ns(now - began);
            }
        } else {
            splits.stop_part(0);
        }
    });
    bench.add_value(point, "injected", injected as f64, "count", Better::Neither);
    bench.add_value(point, "injected-ns", total, "ns", Better::Neither);
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn every_injected_delay_is_recorded() {
        let m = &harness::measure(&EXPERIMENT, harness::points(&DELAY))[0];
        harness::check(m);
        let long = m.histogram.buckets_ns().filter(|(_, high, _)| *high >= DELAY_NS as f64 * 0.99);
        let found: u64 = long.map(|(_, _, n)| n).sum();
        assert!(found as f64 >= m.values["injected"].value, "{found} found");
    }

    #[test]
    fn longer_loops_are_planned_and_measured() {
        let points = harness::points(&SLOWER);
        assert_eq!(points.len() as u64, LONGER.len() as u64 * COPIES);
        harness::measure(&EXPERIMENT, points).iter().for_each(harness::check);
    }

    #[test]
    fn the_two_runs_come_in_turn() {
        let runs: Vec<_> = harness::points(&SAME).iter().map(|p| p.text_param("run").to_owned()).collect();
        assert_eq!(runs.len() as u64, 2 * PAIRS);
        assert!(runs.chunks(2).all(|pair| pair == ["a", "b"]));
    }
}
