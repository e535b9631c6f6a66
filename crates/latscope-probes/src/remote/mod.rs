//! Messages to another operating system on another core: pings, long pings and bandwidth, over each transport.

mod deadlines;
mod figures;
mod ledger;
mod measure;
mod patience;
mod ping_loop;
mod plan;
mod status;
mod stream;
mod tally;
#[cfg(test)]
mod testing;

use super::{Cpus, Experiment, Family, FamilyFacts, Param, ParamValueKind, PlanInput, Probe};
use crate::{PointSettings, ProbeFacts, Subject};
use latscope_core::plan::{Periodic, PlanStep};
use latscope_core::report::Semantics;
use latscope_exchange::remote;

pub use plan::{BANDWIDTH, LONG_PING, LongPingPackets, MAILBOX, SMALLEST_BLOCK};

/// The family of messages to another operating system.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "remote",
        about: "Messages to another operating system on another core: ping, long ping, bandwidth",
        served: true,
        curves: figures::CURVES,
        bars: figures::BARS,
        single_events: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub const PROBES: &[&Probe] = &[&plan::PING, &plan::LONG_PING, &plan::BANDWIDTH, &plan::MAILBOX];

static EXPERIMENT: Experiment =
    Experiment::new("remote", Cpus::Two, measure::measure_points).setup_per_point(0.02).adapted_by(adapt);

/// Outside of a survey a user may watch, and end it before its time.
fn adapt(step: &mut PlanStep, input: &PlanInput) {
    // What warms up is not counted in activations of a thread.
    let rules = || Periodic { warm_up: 0, ..super::ipc::setup::usual_rules() };
    step.periodic = (!input.survey).then(rules);
}

const TRANSPORT: Param = Param {
    name: "transport",
    help: "Way to the remote.",
    kind: ParamValueKind::Choice(remote::NAMES),
    axis: false,
};

const WAIT: Param = Param {
    name: "wait",
    help: "How the host waits, and the remote of `shm` and `ivshmem`, too.",
    kind: ParamValueKind::Choice(remote::WAITS),
    axis: false,
};

const PAYLOAD: Param = Param {
    name: "payload",
    help: "Bytes of a message, 1 (of a block 8) to the limit of the transport: of a ping 48, of a block also the longest.",
    kind: ParamValueKind::Size,
    axis: true,
};

const TIMEOUT: Param = Param {
    name: "timeout",
    help: "What takes longer to come back is lost.",
    kind: ParamValueKind::Time,
    axis: false,
};

const PACE: Param = Param {
    name: "pace",
    help: "Time from one ping to the next, such as the 200ms of MCS; without it they go back to back.",
    kind: ParamValueKind::Time,
    axis: false,
};

const WARM_UP: Param = Param {
    name: "warm-up",
    help: "Pings before the first that is recorded; without it 100, with `--pace` 1, for at most a tenth of the time.",
    kind: ParamValueKind::Number,
    axis: false,
};

/// A probe of the family.
const fn probe(
    id: &'static str,
    title: &'static str,
    timed: &'static str,
    (times, subject): (Semantics, Subject),
    params: &'static [Param],
) -> Probe {
    const SOURCE: &str = "the RPMsg bus of Linux, drivers/rpmsg/virtio_rpmsg_bus.c; virtio 1.2, section 2.7 (split virtqueues)";
    let facts =
        ProbeFacts { id, title, timed, times, source: SOURCE, params, subject, ..ProbeFacts::DEFAULT };
    Probe { facts, check: plan::Sent::check, experiment: &EXPERIMENT, plan: plan::plan_points }
}
