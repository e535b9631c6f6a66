//! Figures of the family, of all its transports: by payload, and beside each other.

use latscope_core::catalogue::figures::{Along, Bars, Curves, Quantity};

pub(super) static CURVES: &[Curves] = &[
    Curves {
        id: "ipc-throughput",
        title: "Throughput of transactions by payload",
        only: Some(("mode", "throughput")),
        x: Along::PAYLOAD,
        y: Along::rate(Quantity::Value("throughput", 1.0), "payload per second"),
        within: &["transport", "deadline", "copies"],
        ..Curves::DEFAULT
    },
    Curves {
        id: "ipc-by-payload",
        title: "Round trip of a transaction by payload",
        only: Some(("mode", "latency")),
        x: Along::PAYLOAD,
        y: Along::median("round trip, median"),
        within: &["transport", "deadline", "priority", "caller-thread"],
        ..Curves::DEFAULT
    },
    Curves {
        id: "ipc-tails",
        title: "p99 and maximum of a transaction by payload",
        only: Some(("mode", "latency")),
        apart: &["transport"],
        within: &["deadline", "priority", "caller-thread"],
        ..Curves::TAILS
    },
];

pub(super) static BARS: &[Bars] = &[Bars {
    id: "ipc-transports",
    title: "Transactions of the transports",
    probes: &[],
    key: "caller",
    label: "round trip, median",
}];
