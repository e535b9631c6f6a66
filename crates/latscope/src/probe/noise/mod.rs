//! Time stolen from a busy loop.

mod busy;
mod counters;
mod duty;
mod station;
mod watch;

pub use busy::BUSY;

use super::{Ask, Probe};
use latscope_core::plan::{End, ParamValue, Periodic, Phase, Step};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&BUSY];

/// Time that watching takes in a family's own run, and in a survey, as a
/// multiple of the profile's time for a point.
const OWN: u64 = 30;
const SURVEYED: u64 = 2;

/// Adapts a planned step of this family: it runs for a time, for nobody knows
/// how many events there will be; on the CPUs asked for; and where it is not
/// one of many steps it can be ended early.
pub fn adapt(step: &mut Step, ask: &Ask) {
    let usual = ask.profile.stop().budget_ns * if ask.survey { SURVEYED } else { OWN };
    let planned = &mut step.stop;
    // A time that was asked for is all there is; else there are other limits too.
    if planned.limit_ns != planned.budget_ns || planned.limit_ns == u64::MAX {
        planned.limit_ns = usual;
    }
    if planned.budget_ns != u64::MAX {
        planned.events = u64::MAX;
    }
    let on = |cpu: &ParamValue| step.cpus.iter().any(|known| *cpu == u64::from(*known).into());
    step.points.retain(|point| point.params.get("cpu").is_none_or(on));
    if !ask.survey {
        step.periodic.get_or_insert_with(rules);
    }
}

/// Threads that watch: each for itself, until the time is over.
fn rules() -> Periodic {
    Periodic {
        warm_up: 0,
        end: End::All,
        phase: Phase::Free,
        align_second: false,
        threshold: None,
        stop_at_threshold: false,
        corrected: false,
        linear: None,
        stream: false,
    }
}
