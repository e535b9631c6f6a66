//! Indirect jumps by the number of their targets.

use super::jump::time_code;
use crate::prelude::*;
use latscope_os::kernels::code::Code;

settings! {
    /// Places that jumps go to.
    struct IndirectJumpSettings, requested as IndirectJumpRequest {
        /// Number of targets of each jump, at most 2^20
        targets: u64, axis;
    }
}

probes! {
    EXPERIMENT, IndirectJumpSettings, plan_indirect_jumps, ..crate::ProbeFacts::LOOPS;
    INDIRECT "cpu.indirect-branch", "indirect branch",
        "the processor's optimisation manual: prediction of indirect branches",
        "One indirect jump to a random one of so many places, with the load of its address, which is known \
        early. Of n targets at best one jump in n is predicted."
            { by_name_only: true, most: &[("targets", MOST)], };
}

/// Most targets of a jump.
const MOST: u64 = 1 << 20;

static EXPERIMENT: Experiment = Experiment::new("cpu.indirect-branch", Cpus::One, run_indirect_jumps);

fn plan_indirect_jumps(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let numbers: &[u64] = match input.profile {
        SurveyProfile::Quick => &[1, 2, 16],
        _ => &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    };
    let point = |targets: u64| {
        let title = format!("{} to {}", probe.title, count_with_noun(targets, "target"));
        probe.make_point(IndirectJumpSettings { targets }, title, true)
    };
    let asked = IndirectJumpRequest::of(input).targets.or(numbers).into_iter();
    asked.filter(|targets| (1..=MOST).contains(targets)).map(point).collect()
}

fn run_indirect_jumps(bench: &mut Bench) -> Result<()> {
    for (index, IndirectJumpSettings { targets }) in
        bench.settings::<IndirectJumpSettings>()?.into_iter().enumerate()
    {
        time_code(bench, index, Code::indirect(targets as usize, bench.seed()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn each_number_of_targets_is_measured() {
        for m in measure(&EXPERIMENT, points(&INDIRECT)) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{:?}", m.joined_reasons());
        }
    }
}
