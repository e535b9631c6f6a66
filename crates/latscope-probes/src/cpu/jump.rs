//! Jumps of a chain by its size: how many the processor fetches and predicts without a stall.

use crate::prelude::*;
use latscope_os::kernels::code::Code;

probes! {
    EXPERIMENT, JumpChainSettings, plan_jumps, ..ProbeFacts::LOOPS;
    JUMP "cpu.jump", "jump in a chain",
        "the processor's optimisation manual: branch target buffer, instruction cache",
        "One direct jump of a chain in random order through so much memory, a jump each `stride` bytes. Beyond \
        the branch target buffer the target is learnt late, beyond the instruction cache the instruction is \
        fetched late."
        { by_name_only: true, footprint, };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.jump", Cpus::One, run_jumps);

settings! {
    /// A chain of jumps.
    struct JumpChainSettings, requested as JumpChainRequest {
        /// Memory that the jumps fill, at most 64 MiB
        size: u64 as Size, axis;
        /// Distance of the jumps, a multiple of 4 from 16 on
        stride: u64 as Size;
    }
}

const KIB: u64 = 1 << 10;
/// Bytes in a line of the caches.
const LINE: u64 = 64;

/// The lines of code that have a jump.
fn footprint(params: &Params) -> Option<Footprint> {
    let JumpChainSettings { size, stride } = JumpChainSettings::from_params(params)?;
    Some(Footprint::from_bytes(size / stride.max(LINE) * LINE))
}

fn plan_jumps(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let sizes: Vec<u64> = match input.profile {
        SurveyProfile::Quick => vec![4 * KIB, 32 * KIB, 1024 * KIB],
        _ => (0..13).map(|octave| KIB << octave).collect(),
    };
    let asked = JumpChainRequest::of(input);
    let mut points = Vec::new();
    for stride in asked.stride.or(&[16, 64]) {
        for size in asked.size.or(&sizes).into_iter().filter(|size| *size >= stride) {
            let title = format!("jump, one each {}, {}", format_size(stride), format_size(size));
            points.push(probe.make_point(JumpChainSettings { size, stride }, title, false));
        }
    }
    points
}

fn run_jumps(bench: &mut Bench) -> Result<()> {
    for (index, JumpChainSettings { size, stride }) in
        bench.settings::<JumpChainSettings>()?.into_iter().enumerate()
    {
        let count = (size / stride.max(1)) as usize;
        time_code(bench, index, Code::jumps(count, stride as usize, bench.seed()));
    }
    Ok(())
}

/// Times generated code, or says why there is none.
pub(super) fn time_code(bench: &mut Bench, index: usize, code: rustix::io::Result<Code>) {
    match code {
        Ok(code) => {
            let batch = Batch { ops: code.operations(), cycles: true, ..Batch::default() };
            bench.batch(index, batch, |iterations| code.run_iterations(iterations));
        }
        Err(rustix::io::Errno::NOSYS) => {
            bench.unsupported(index, "code is generated for x86-64 and arm64 only", "");
        }
        Err(error) => refuse(bench, index, "generate code", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn chains_are_measured_and_those_that_cannot_be_made_have_a_reason() {
        let wrong = JUMP.make_point(JumpChainSettings { size: 64, stride: 6 }, "", false);
        let mut all = measure(&EXPERIMENT, [points(&JUMP), vec![wrong]].concat());
        all.iter().for_each(check);
        let wrong = all.pop().unwrap();
        assert_eq!((all.len(), wrong.quality.level), (6, QualityLevel::Unsupported));
        assert!(
            all.iter().all(|m| m.quality.level != QualityLevel::Unsupported),
            "{:?}",
            all[0].joined_reasons()
        );
    }
}
