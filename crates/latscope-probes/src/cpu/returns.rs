//! Nested calls by their depth: how many returns the processor remembers.

use super::jump::time_code;
use crate::prelude::*;
use latscope_os::kernels::code::{Code, DEEPEST};

settings! {
    /// Functions that call each other.
    struct NestedCallSettings, requested as NestedCallRequest {
        /// Calls that are open at the deepest place, at most 4096
        depth: u64, axis;
    }
}

probes! {
    EXPERIMENT, NestedCallSettings, plan_returns, ..crate::ProbeFacts::LOOPS;
    RETURNS "cpu.return-depth", "call and return, nested",
        "the processor's optimisation manual: return stack buffer",
        "One call and its return, where so many functions call each other before the first returns; beyond the \
        processor's return stack returns are mispredicted, unless another predictor knows them."
            { by_name_only: true, most: &[("depth", DEEPEST as u64)], };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.return-depth", Cpus::One, run_returns);

fn plan_returns(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let depths: &[u64] = match input.profile {
        SurveyProfile::Quick => &[4, 16, 64],
        _ => &[1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128],
    };
    let point = |depth: u64| {
        let title = format!("call and return, {} deep", count_with_noun(depth, "call"));
        probe.make_point(NestedCallSettings { depth }, title, true)
    };
    let asked = NestedCallRequest::of(input).depth.or(depths).into_iter();
    asked.filter(|depth| (1..=DEEPEST as u64).contains(depth)).map(point).collect()
}

fn run_returns(bench: &mut Bench) -> Result<()> {
    for (index, NestedCallSettings { depth }) in
        bench.settings::<NestedCallSettings>()?.into_iter().enumerate()
    {
        time_code(bench, index, Code::calls(depth as usize));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn each_depth_is_measured() {
        for m in measure(&EXPERIMENT, points(&RETURNS)) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{:?}", m.joined_reasons());
        }
    }
}
