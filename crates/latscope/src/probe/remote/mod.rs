//! Messages to another operating system on another core. So far to an echo
//! process that stands for it, over the same rings.

mod far;
mod measure;

pub use far::main;

use super::{Ask, Cpus, Experiment, Kind, Param, Probe};
use crate::exchange::rpmsg::Wait;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::Times;
use latscope_rpmsg::messages::{Ping, Word};

/// The probes.
pub const PROBES: &[&Probe] = &[&PING, &LONG_PING];

const SOURCE: &str =
    "the RPMsg bus of Linux, drivers/rpmsg/virtio_rpmsg_bus.c; virtio 1.2, section 2.7 (split virtqueues)";

/// One message there and back.
pub static PING: Probe = Probe {
    id: "remote.ping",
    title: "ping to a remote, 48 bytes",
    timed: "From before an RPMsg of 48 bytes is put into a buffer until the echo of all of it was taken out of another one; \
            the content is verified afterwards.",
    times: Times::RoundTrip,
    source: SOURCE,
    params: PARAMS,
    experiment: &EXPERIMENT,
    plan: |ask, _| plan(&PING, ask),
};

/// Four KiB there and back.
pub static LONG_PING: Probe = Probe {
    id: "remote.long-ping",
    title: "long ping to a remote, 4096 bytes in 9 packets",
    timed: "From before the first of nine RPMsgs, sent back to back, until the echoes of all were taken; each is verified and \
            so is their order.",
    times: Times::RoundTrip,
    source: SOURCE,
    params: PARAMS,
    experiment: &EXPERIMENT,
    plan: |ask, _| plan(&LONG_PING, ask),
};

const PARAMS: &[Param] = &[
    Param {
        name: "transport",
        help: "`shm`: an echo process of our own on another CPU, in memory that both map.",
        kind: Kind::Choice(&["shm"]),
        axis: false,
    },
    Param {
        name: "wait",
        help: "How both sides wait: `spin` looks at the ring, `eventfd` sleeps until it is kicked.",
        kind: Kind::Choice(Wait::NAMES),
        axis: false,
    },
    Param { name: "payload", help: "Bytes of data in a ping.", kind: Kind::Stated, axis: false },
];

static EXPERIMENT: Experiment = Experiment {
    name: "remote.shm",
    cpus: Cpus::Two,
    scratch: false,
    policy: Policy::Other,
    run: measure::run,
};

/// Bytes of data in a long ping.
const LONG: u64 = 4096;

fn plan(probe: &'static Probe, ask: &Ask) -> Vec<Point> {
    let payload = if probe.id == PING.id { Ping::length(Word::Eight) as u64 } else { LONG };
    let point = |wait: String| {
        let title = format!("{} ({wait})", probe.title);
        let given =
            [("transport", "shm".into()), ("wait", wait.as_str().into()), ("payload", payload.into())];
        probe.point(params(given), title, true)
    };
    ask.texts("wait", Wait::NAMES).into_iter().map(point).collect()
}
