//! The clock of a core after a pause: how long fixed work takes right after a sleep, beside the same work of a busy
//! core.

use crate::prelude::*;
use crate::siblings::switches;
use latscope_os::kernels::cycle::{ADDS_PER_ITERATION, dependent_adds};

probes! {
    EXPERIMENT, RampPauseSettings, plan_ramps;
    RAMP "cpu.ramp", "fixed work right after a sleep",
        "the processor's manual: performance states; cpufreq, intel_pstate, amd_pstate",
        "A chain of 20,000 dependent additions, a core cycle each, right after the thread has slept; `warm` is \
        the same work of a busy core."
        { by_name_only: true, };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.ramp", Cpus::One, run_ramps)
    .setup_per_point(0.3)
    .adapted_by(|step, _| super::sleepy(step, 40, 20));

settings! {
    /// Settings of a pause before work.
    struct RampPauseSettings, requested as RampPauseRequest {
        /// Time for which the thread sleeps before each work.
        pause: u64 as Time;
    }
}

const MS: u64 = 1_000_000;
/// Iterations of the chain: 20,000 additions, about 5 µs.
const WORK: u64 = 200;
/// Works of the busy core, and the time for which it is busy before them.
const WARM: usize = 1_001;
const BUSY: Duration = Duration::from_millis(100);
/// Works after each sleep, of which the first is a sample; by the last the core has been busy for about 1 ms.
const AFTER: usize = 200;
/// Works after which a core that has not settled is given up: a governor of the clock rate may look only every 10 ms.
const FURTHER: usize = 10_000;

fn plan_ramps(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let pauses: &[u64] = match input.profile {
        SurveyProfile::Quick => &[MS],
        _ => &[MS, 10 * MS, 100 * MS],
    };
    let point = |pause: u64| {
        let title = format!("fixed work after {} of sleep", format_time(pause as f64));
        probe.make_point(RampPauseSettings { pause }, title, false)
    };
    RampPauseRequest::of(input).pause.or(pauses).into_iter().map(point).collect()
}

fn run_ramps(bench: &mut Bench) -> Result<()> {
    let timebase = bench.timebase();
    let clock = timebase.clock();
    let work = || {
        let start = clock.stamp_start();
        black_box(dependent_adds(WORK));
        clock.stamp_end() - start
    };
    for (point, RampPauseSettings { pause }) in bench.settings()?.into_iter().enumerate() {
        let busy = std::time::Instant::now();
        while busy.elapsed() < BUSY {
            work();
        }
        let mut warm: Vec<u64> = (0..WARM).map(|_| work()).collect();
        warm.sort_unstable();
        let warm = timebase.interval_ns(warm[WARM / 2]);
        let mut steady = Vec::new();
        bench.splits(&[point], SampleGate::Open, |splits| {
            std::thread::sleep(Duration::from_nanos(pause));
            let before = switches();
            let warm = timebase.ticks(warm as u64);
            let mut works: Vec<u64> = Vec::with_capacity(FURTHER);
            works.extend((0..AFTER).map(|_| work()));
            // A switch among them may have been before the first.
            if switches() == before {
                splits.set_part(0, 0, works[0]);
                let mut after = ticks_to_settle(&works, warm);
                while after.is_none() && works.len() < FURTHER {
                    works.extend((0..AFTER).map(|_| work()));
                    // The time of another thread would count as work.
                    if switches() != before {
                        break;
                    }
                    after = ticks_to_settle(&works, warm);
                }
                steady.extend(after);
            }
        });
        bench.add_value(point, "warm", warm, "ns", Better::Less);
        if let Some(cold) = bench.median(point).filter(|_| warm > 0.0) {
            bench.add_value(point, "slowdown", cold / warm, "×", Better::Less);
        }
        let share =
            steady.len() as f64 / bench.total(point).map_or(1.0, |(samples, _)| samples.max(1) as f64);
        bench.add_value(point, "settled", 100.0 * share.min(1.0), "%", Better::More);
        steady.sort_unstable();
        if let Some(middle) = steady.get(steady.len() / 2) {
            let busy = timebase.span(*middle);
            bench.add_value(point, "settles-after", busy, "ns", Better::Less);
        }
        debug_assert_eq!(WORK * ADDS_PER_ITERATION, 20_000);
    }
    Ok(())
}

/// Ticks of work until the first that took no more than a tenth above `warm` ticks; `None` if none did.
fn ticks_to_settle(works: &[u64], warm: u64) -> Option<u64> {
    let first = works.iter().position(|ticks| *ticks <= warm + warm / 10)?;
    Some(works[..first].iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn a_core_has_settled_with_the_first_work_that_is_fast() {
        assert_eq!(ticks_to_settle(&[300, 200, 110, 400], 100), Some(500));
        assert_eq!(ticks_to_settle(&[105, 300], 100), Some(0));
        assert_eq!(ticks_to_settle(&[111, 300], 100), None);
    }

    #[test]
    fn work_after_a_sleep_is_beside_that_of_a_busy_core() {
        for m in harness::measure(&EXPERIMENT, harness::points(&RAMP)) {
            harness::check(&m);
            for name in ["warm", "slowdown"] {
                assert!(m.values[name].value > 0.0, "{m:?}");
            }
            assert!((0.0..=100.0).contains(&m.values["settled"].value), "{m:?}");
        }
    }
}
