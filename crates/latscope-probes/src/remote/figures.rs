//! Figures of the family: by payload, and ways to a remote beside each other.

use super::plan;
use latscope_core::catalogue::figures::{Along, Bars, Curves, Quantity};

pub(super) static CURVES: &[Curves] = &[
    Curves {
        id: "remote-ping-tails",
        title: "p99 and maximum of a ping to a remote by payload",
        probes: &[&plan::PING.facts],
        apart: &["transport"],
        within: &["timeout"],
        ..Curves::TAILS
    },
    Curves {
        id: "remote-long-ping-tails",
        title: "p99 and maximum of a long ping to a remote by payload",
        probes: &[&plan::LONG_PING.facts],
        apart: &["transport"],
        within: &["timeout"],
        ..Curves::TAILS
    },
    Curves {
        id: "remote-by-payload",
        title: "Ping and long ping to a remote by payload",
        probes: &[&plan::PING.facts, &plan::LONG_PING.facts],
        x: Along::PAYLOAD,
        y: Along::median("round trip, median"),
        within: &["timeout"],
        ..Curves::DEFAULT
    },
    Curves {
        id: "remote-bandwidth",
        title: "Bandwidth to a remote by payload",
        probes: &[&plan::BANDWIDTH.facts],
        x: Along::PAYLOAD,
        y: Along::rate(Quantity::Rate, "payload per second"),
        within: &["timeout"],
        ..Curves::DEFAULT
    },
];

pub(super) static BARS: &[Bars] = &[Bars {
    id: "remote-ways",
    title: "Ping to a remote",
    probes: &[&plan::PING.facts, &plan::LONG_PING.facts, &plan::MAILBOX.facts],
    key: "wait",
    label: "round trip, median",
}];
