//! Messages to another operating system on another core: the pings, whatever
//! they go over.

mod measure;

use super::{Ask, Cpus, Experiment, Kind, Param, Probe};
use crate::exchange::remote::{self, TRANSPORTS, Transport, shm};
use latscope_core::plan::{ParamValue, Point, Policy, params};
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
        help: "`shm`: an echo process of our own on another CPU, in memory that both map. `tty`: a terminal that leads to a \
               remote, raw; `tty-line`: in lines.",
        kind: Kind::Choice(remote::NAMES),
        axis: false,
    },
    Param {
        name: "wait",
        help: "How both sides wait: `spin` looks at the ring, `eventfd` sleeps until it is kicked; `read` sleeps in the read from a terminal.",
        kind: Kind::Choice(remote::WAITS),
        axis: false,
    },
    Param { name: "payload", help: "Bytes of data in a ping.", kind: Kind::Stated, axis: false },
];

static EXPERIMENT: Experiment =
    Experiment { name: "remote", cpus: Cpus::Two, scratch: false, policy: Policy::Other, run: measure::run };

/// Bytes of data in a long ping.
const LONG: u64 = 4096;

/// A point for each transport and way to wait that it has.
fn plan(probe: &'static Probe, ask: &Ask) -> Vec<Point> {
    let asked = ask.texts("transport", &[shm::SHM.name]);
    let transports = TRANSPORTS.iter().copied().filter(|known| asked.iter().any(|name| name == known.name));
    transports
        .flat_map(|transport| {
            let waits = ask.choices("wait", transport.waits, transport.waits);
            waits.into_iter().map(move |wait| point(probe, ask, transport, &wait))
        })
        .collect()
}

fn point(probe: &'static Probe, ask: &Ask, transport: &'static Transport, wait: &str) -> Point {
    let payload = if probe.id == PING.id { Ping::length(Word::Eight) as u64 } else { LONG };
    let given = [("transport", transport.name.into()), ("wait", wait.into()), ("payload", payload.into())];
    let mut params = params(given);
    for option in transport.options {
        let value = ask.values.get(option.name).and_then(|values| values.first());
        params.insert(option.name.to_owned(), value.cloned().unwrap_or(ParamValue::from(option.default)));
    }
    let over = if transport.name == shm::SHM.name { String::new() } else { format!("{}, ", transport.name) };
    probe.point(params, format!("{} ({over}{wait})", probe.title), true)
}
