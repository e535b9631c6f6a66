//! Figures of the family: sizes, threads and chains.

use super::{bandwidth, loaded, parallelism, sequential_sum, tlb};
use latscope_core::catalogue::figures::{Along, Curves, FigureAxisScale, FigureAxisUnit, Quantity};

pub(super) static CURVES: &[Curves] = &[
    Curves {
        id: "memory-bandwidth",
        title: "Memory bandwidth by size",
        probes: &[&bandwidth::BANDWIDTH.facts],
        y: Along::rate(Quantity::Rate, "bytes touched per second, median"),
        dashes: Some("step"),
        apart: &["threads"],
        ..Curves::DEFAULT
    },
    Curves {
        id: "memory-loaded",
        title: "Memory latency while other CPUs copy memory",
        probes: &[&loaded::LOADED.facts],
        x: Along {
            of: Quantity::Value("load", 1e9),
            label: "what the others read and write",
            scale: FigureAxisScale::Linear,
            unit: FigureAxisUnit::Rate,
        },
        y: Along { scale: FigureAxisScale::Linear, ..Along::median("one load, median") },
        within: &["delay"],
        ..Curves::DEFAULT
    },
    Curves {
        id: "memory-parallelism",
        title: "A load, several chains at once",
        probes: &[&parallelism::PARALLELISM.facts],
        x: Along::parameter("chains", FigureAxisScale::Log2, FigureAxisUnit::Number),
        y: Along::median("one load, median"),
        ..Curves::DEFAULT
    },
    Curves {
        id: "memory-tlb",
        title: "A load from another page each time, by the memory of the pages",
        probes: &[&tlb::TLB.facts],
        y: Along::median("one load, median"),
        ..Curves::DEFAULT
    },
    Curves {
        id: "memory-sequential-sum",
        title: "An element of an array that is added up",
        probes: &[&sequential_sum::SEQUENTIAL_SUM.facts],
        y: Along::median("one element, median"),
        ..Curves::DEFAULT
    },
];
