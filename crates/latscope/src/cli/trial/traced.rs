//! Tracing of late events in the runs of a plan, so that its record has the cause of each.

use super::executor::plan_of;
use super::plan_file::PlanFile;
use latscope_core::plan::Plan;
use latscope_trace::tracefs::has_event;

/// Event without which nothing is explained.
const SWITCHES: &str = "sched:sched_switch";

/// Returns the plan in which measurements with a longest permitted time (`--max`) also trace what exceeds it, if this
/// process can trace. Those that say themselves what becomes of late events stay as they are, and so do commands that
/// do not trace.
pub fn add_tracing(mut plan: PlanFile) -> PlanFile {
    if !rustix::process::geteuid().is_root() || has_event(SWITCHES) == Some(false) {
        return plan;
    }
    let prefix = plan.arms.first().map(|arm| arm.prefix.0.clone()).unwrap_or_default();
    for one in &mut plan.measurements {
        let Some(limit) = plan_of(&prefix, &one.run.0).ok().as_ref().and_then(untraced_limit) else {
            continue;
        };
        let mut words = one.run.0.clone();
        words.extend(["--threshold".to_owned(), format!("{limit}ns")]);
        // A command that does not trace refuses the option.
        if plan_of(&prefix, &words).is_ok_and(|planned| planned.on_threshold.is_some()) {
            one.run.0 = words;
        }
    }
    plan
}

/// The limit of `max`, ns, if nothing is to become of events above it.
fn untraced_limit(plan: &Plan) -> Option<u64> {
    let max = plan.criteria.iter().find(|criterion| criterion.metric == "max")?;
    (plan.on_threshold.is_none() && max.limit >= 1.0).then_some(max.limit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::{OnThreshold, PlanCriterion};

    #[test]
    fn only_a_longest_time_of_which_nothing_was_said_is_traced() {
        let criterion = |metric: &str, limit| PlanCriterion { metric: metric.to_owned(), limit };
        let mut plan = Plan { criteria: vec![criterion("missed", 0.0)], ..Plan::default() };
        assert_eq!(untraced_limit(&plan), None);
        plan.criteria.push(criterion("max", 100_000.0));
        assert_eq!(untraced_limit(&plan), Some(100_000));
        plan.on_threshold = Some(OnThreshold::default());
        assert_eq!(untraced_limit(&plan), None);
    }
}
