//! Figures of the family: calls by the number of descriptors, and by the size of a mapping.

use super::{mapping, ready};
use latscope_core::catalogue::figures::{Along, Curves, FigureAxisScale, FigureAxisUnit};

pub(super) static CURVES: &[Curves] = &[
    Curves {
        id: "syscall-descriptors",
        title: "Waiting for one of many descriptors",
        probes: &[&ready::SELECT.facts, &ready::POLL.facts, &ready::EPOLL.facts],
        x: Along::parameter("descriptors", FigureAxisScale::Log10, FigureAxisUnit::Count),
        y: Along::median("one call, median"),
        ..Curves::DEFAULT
    },
    Curves {
        id: "syscall-mappings",
        title: "Mappings by size",
        probes: &[&mapping::MMAP.facts, &mapping::MUNMAP.facts, &mapping::MPROTECT.facts],
        y: Along::median("one call, median"),
        ..Curves::DEFAULT
    },
];
