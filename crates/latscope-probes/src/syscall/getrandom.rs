//! Random bytes from the kernel.

use super::calls::{FACTS, time_loop};
use crate::available;
use crate::prelude::*;
use latscope_os::kernels::code::calls::SystemCallLoop;
use latscope_os::random;

probes! {
    EXPERIMENT, GetrandomSettings, plan_getrandom, ..FACTS;
    GETRANDOM "syscall.getrandom", "getrandom", "getrandom(2)",
        "One getrandom of n bytes by the system call itself, never the vDSO's.";
}

static EXPERIMENT: Experiment = Experiment::new("syscall.getrandom", Cpus::One, run_getrandom);

settings! {
    /// Settings of a call of getrandom(2).
    struct GetrandomSettings, requested as GetrandomRequest {
        /// Random bytes of a call
        size: u64 as Size, axis;
    }
}

/// Bytes of the seed of a hash table, for the survey's table.
const SEED: u64 = 16;

fn plan_getrandom(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let sizes: &[u64] = match input.profile {
        SurveyProfile::Quick => &[SEED],
        SurveyProfile::Normal => &[SEED, 256],
        SurveyProfile::Full => &[SEED, 32, 64, 256, 4 << 10],
    };
    let point = |size: u64| {
        let title = format!("getrandom {}", format_size(size));
        probe.make_point(GetrandomSettings { size }, title, size == SEED)
    };
    GetrandomRequest::of(input).size.or(sizes).into_iter().map(point).collect()
}

fn run_getrandom(bench: &mut Bench) -> anyhow::Result<()> {
    for (index, GetrandomSettings { size }) in bench.settings::<GetrandomSettings>()?.into_iter().enumerate()
    {
        if let Some((reason, remedy)) = available::shortage(size) {
            bench.unsupported(index, reason, remedy);
            continue;
        }
        match random::is_seeded() {
            Ok(true) => {
                let mut buffer = vec![0; size as usize];
                let filled = random::fill_buffer(&mut buffer);
                let Some(()) = ok_or_refuse(bench, index, "getrandom", filled) else { continue };
                let seed = bench.seed();
                time_loop(bench, index, "getrandom", &mut SystemCallLoop::random(seed, &mut buffer));
            }
            Ok(false) => {
                let remedy = "wait until the kernel has logged `crng init done`";
                bench.unsupported(index, "getrandom: the kernel's generator has no seed yet", remedy);
            }
            Err(error) => refuse(bench, index, "getrandom", error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn sizes(profile: SurveyProfile) -> Vec<u64> {
        let points = GETRANDOM.plan(&PlanInput { profile, ..harness::input() }, &harness::machine());
        points.iter().map(|point| GetrandomSettings::read(point).unwrap().size).collect()
    }

    #[test]
    fn a_seed_and_a_few_keys_are_usual() {
        assert_eq!(sizes(SurveyProfile::Normal), [16, 256]);
        assert!(
            [SurveyProfile::Quick, SurveyProfile::Full].into_iter().all(|profile| sizes(profile)[0] == SEED)
        );
    }

    #[test]
    fn any_size_is_measured_that_there_is_memory_for() {
        let point = |size| GETRANDOM.make_point(GetrandomSettings { size }, "", false);
        let all = harness::measure(&EXPERIMENT, [SEED, 256, 1 << 20, 1 << 60].map(point).to_vec());
        all.iter().for_each(harness::check);
        let (too_large, measured) = all.split_last().unwrap();
        for m in measured {
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{:?}", m.joined_reasons());
        }
        assert!(
            too_large.quality.level == QualityLevel::Unsupported && too_large.joined_remedies().is_some()
        );
    }
}
