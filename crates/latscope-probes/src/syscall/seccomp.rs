//! A system call of a thread that has a filter: seccomp.

use super::calls::{FACTS, time_loop};
use crate::apart::measure_apart;
use crate::prelude::*;
use latscope_os::kernels::code::calls::SystemCallLoop;
use latscope_os::seccomp::{Looks, SeccompFilter, filter_count};

static SECCOMP: Experiment =
    Experiment::new("syscall.seccomp", Cpus::One, run_filtered_calls).setup_per_point(0.02);

settings! {
    /// Settings of a filter of system calls.
    struct SeccompFilterSettings, requested as SeccompFilterRequest {
        /// Instructions of the filter, all of which are executed, at most 4096
        instructions: u64, axis;
        /// Whether the filter's verdict depends on the first argument, so that it is executed on every call, or on the
        /// call alone, so that the kernel (since Linux 5.11) keeps the verdict
        mode: Looks;
    }
}

probes! {
    SECCOMP, SeccompFilterSettings, plan_filtered_calls, ..FACTS;
    FILTERED "syscall.seccomp", "getppid, with a seccomp filter", "seccomp(2)",
        "One getppid of a thread with one more filter, which allows the call; `cost`: longer than before the \
        filter."
            { by_name_only: true, most: &[("instructions", 4096)], };
}

fn plan_filtered_calls(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let counts: &[u64] = match input.profile {
        SurveyProfile::Quick => &[1, 100],
        SurveyProfile::Normal => &[1, 100, 1000],
        SurveyProfile::Full => &[1, 10, 100, 1000, 4096],
    };
    let asked = SeccompFilterRequest::of(input);
    let mut points = Vec::new();
    for mode in asked.mode.or(Looks::ALL) {
        for count in asked.instructions.or(counts) {
            // A look at the argument is an instruction of its own.
            let instructions = if mode == Looks::Argument { count.max(2) } else { count };
            let of = count_with_noun(instructions, "instruction");
            let title = format!("{} of {of}, {}", probe.title, mode.word().replace('-', " "));
            points.push(probe.make_point(SeccompFilterSettings { instructions, mode }, title, true));
        }
    }
    points
}

fn run_filtered_calls(bench: &mut Bench) -> Result<()> {
    for (index, filtered) in bench.settings::<SeccompFilterSettings>()?.into_iter().enumerate() {
        match SeccompFilter::new(filtered.instructions as usize, filtered.mode) {
            None => bench.unsupported(index, "a filter has from 1 (by argument 2) to 4096 instructions", ""),
            Some(filter) => measure_apart(bench, |bench| measure_filtered_call(bench, index, &filter))?,
        }
    }
    Ok(())
}

fn measure_filtered_call(bench: &mut Bench, index: usize, filter: &SeccompFilter) -> Result<()> {
    // The same addresses before and after.
    let mut calls = SystemCallLoop::getppid(bench.seed());
    let (plain, before) = (median_of_loop(&mut calls), filter_count());
    let Some(()) = ok_or_refuse(bench, index, "install a filter", filter.install_for_thread()) else {
        return Ok(());
    };
    anyhow::ensure!(filter_count() == before.map(|count| count + 1), "the kernel does not count the filter");
    time_loop(bench, index, "getppid", &mut calls);
    if let Some(median) = bench.median(index) {
        bench.add_value(index, "cost", median - plain, "ns", Better::Less);
    }
    Ok(())
}

/// Number of calls in a stretch, and number of stretches of which the median counts: about 10 ms together.
pub(super) const CALLS: u64 = 1000;
const STRETCHES: usize = 32;

/// Median time of a call in a loop that cannot fail, at all of its addresses, ns, for comparison.
pub(super) fn median_of_loop(calls: &mut SystemCallLoop) -> f64 {
    median_ns(|stretch| {
        // A call that fails is refused later, where it is timed.
        let _ = calls.run_at(stretch % calls.address_count(), CALLS);
    })
}

/// Median time of a call, ns, of stretches of [`CALLS`] calls. A stretch gets its number.
pub(super) fn median_ns(mut stretch: impl FnMut(usize)) -> f64 {
    let time = |number| {
        let began = Instant::now();
        stretch(number);
        began.elapsed().as_nanos() as f64 / CALLS as f64
    };
    median(&(0..STRETCHES).map(time).collect::<Vec<_>>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn filters_are_measured_and_none_is_left() {
        let before = filter_count();
        let too_long =
            FILTERED.make_point(SeccompFilterSettings { instructions: 4097, mode: Looks::Number }, "", false);
        let mut all = measure(&SECCOMP, [points(&FILTERED), vec![too_long]].concat());
        all.iter().for_each(check);
        assert_eq!(all.pop().unwrap().quality.level, QualityLevel::Unsupported);
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|m| m.values.contains_key("cost") || m.joined_reasons().is_some()));
        assert_eq!(filter_count(), before);
    }
}
