//! Time taken from a busy loop.

mod busy;
pub(crate) mod counters;
mod duty;
mod gap_loop;
mod hwlat;
pub(super) mod kernel;
mod osnoise;
mod watch;

pub use busy::BUSY;
pub use duty::Duty;
pub use hwlat::HWLAT;
pub use osnoise::OSNOISE;

use super::{Condition, Family, FamilyFacts, PlanInput, Probe};
use latscope_core::plan::{Periodic, Phase, PlanStep};

/// The family of time taken from a busy loop.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "noise",
        about: "Time taken from a busy loop on each CPU, and what took it",
        sensitive_to: &[Condition::Speed, Condition::Interrupts, Condition::Tick],
        single_events: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&BUSY, &OSNOISE, &HWLAT];

/// Time of watching, in a family's own run and in a survey, as a multiple of the profile's time for a point.
const OWN: u64 = 30;
const SURVEYED: u64 = 2;

/// Adapts a planned step of this family: it runs for a time, since the number of events is not known
/// beforehand.
pub(crate) fn adapt(step: &mut PlanStep, input: &PlanInput) {
    if step.stop.limit_ns == u64::MAX {
        step.stop.limit_ns = usual_time(input);
    }
    for_a_time(step, input);
}

/// Adapts a planned step whose threads watch all requested CPUs. It runs for the requested time or number of
/// events, else for the usual time. If it is not one of many steps, it can be ended early.
pub(crate) fn for_a_time(step: &mut PlanStep, input: &PlanInput) {
    let planned = &mut step.stop;
    if planned.budget_ns != u64::MAX && planned.limit_ns != planned.budget_ns {
        // Neither a time nor a count was asked for: the profile's are for other things.
        (planned.limit_ns, planned.events) = (usual_time(input), u64::MAX);
    }
    if !input.survey {
        step.periodic.get_or_insert_with(rules);
    }
}

fn usual_time(input: &PlanInput) -> u64 {
    input.profile.stop_conditions().budget_ns * if input.survey { SURVEYED } else { OWN }
}

/// Rules of watching threads: each runs on its own until the time is over.
fn rules() -> Periodic {
    Periodic::new(Phase::Free, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SurveyProfile;
    use latscope_core::machine::Machine;
    use latscope_engine::planner::{self, RunRequest};

    fn planned(survey: bool, request: impl FnOnce(&mut RunRequest)) -> PlanStep {
        let input = PlanInput { profile: SurveyProfile::Normal, survey, ..PlanInput::default() };
        let machine = Machine { allowed: "0-2".parse().unwrap(), ..Machine::default() };
        let mut asked = RunRequest::new("noise", input);
        request(&mut asked);
        planner::plan_probes(&crate::REGISTRY, &[&BUSY], &asked, &machine).steps.remove(0)
    }

    #[test]
    fn it_lasts_as_long_as_asked_and_a_moment_in_a_survey() {
        let limits = |step: &PlanStep| (step.stop.limit_ns, step.stop.events);
        assert_eq!(limits(&planned(true, |_| ())), (200_000_000, u64::MAX));
        assert_eq!(limits(&planned(false, |_| ())), (3_000_000_000, u64::MAX));
        assert_eq!(limits(&planned(false, |r| r.duration = Some(7))), (7, u64::MAX));
        // Events may never come: there is a limit of time too.
        assert_eq!(limits(&planned(false, |r| r.count = Some(5))), (3_000_000_000, 5));
        let both = planned(false, |r| (r.count, r.duration) = (Some(5), Some(9)));
        assert_eq!(limits(&both), (9, 5));
    }

    #[test]
    fn only_a_run_of_its_own_can_be_ended_early_and_only_asked_cpus_are_watched() {
        assert!(planned(true, |_| ()).periodic.is_none());
        let step = planned(false, |r| r.cpus = vec![2, 0]);
        assert!(step.periodic.is_some());
        let cpus: Vec<u64> = step.points.iter().map(|point| point.numeric_param("cpu")).collect();
        assert_eq!(cpus, [0, 2]);
    }
}
