//! Figures of the family: rings of processes, hand-offs beside each other.

use super::{context_switch, hand_off};
use latscope_core::catalogue::figures::{Along, Bars, Curves, FigureAxisScale, FigureAxisUnit};

pub(super) static CURVES: &[Curves] = &[Curves {
    id: "sync-ring",
    title: "A switch in a ring of processes",
    probes: &[&context_switch::RING.facts],
    x: Along::parameter("processes", FigureAxisScale::Log2, FigureAxisUnit::Number),
    y: Along::median("one switch, median"),
    ..Curves::DEFAULT
}];

pub(super) static BARS: &[Bars] = &[Bars {
    id: "sync-hand-offs",
    title: "Hand-offs between two threads",
    probes: &[
        &hand_off::SEMAPHORE.facts,
        &hand_off::FUTEX.facts,
        &hand_off::CONDVAR.facts,
        &hand_off::EVENTFD.facts,
        &hand_off::PIPE.facts,
        &hand_off::UNIX_STREAM.facts,
        &context_switch::CONTEXT_SWITCH.facts,
    ],
    key: "placement",
    label: "round trip or switch, median",
}];
