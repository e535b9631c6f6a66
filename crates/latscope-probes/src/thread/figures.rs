//! Figures of the family: pools by their threads, the steps of a life beside each other.

use super::{life, overhead, pool};
use latscope_core::catalogue::figures::{Along, Bars, Curves, FigureAxisScale, FigureAxisUnit};

pub(super) static CURVES: &[Curves] = &[Curves {
    id: "thread-pool",
    title: "A pool by its threads: until each has done its task",
    probes: &[&pool::POOL.facts],
    x: Along::parameter("threads", FigureAxisScale::Log2, FigureAxisUnit::Number),
    y: Along::median("all tasks, median"),
    ..Curves::DEFAULT
}];

pub(super) static BARS: &[Bars] = &[Bars {
    id: "thread-life",
    title: "The life of a thread, step by step",
    probes: &[
        &life::CREATE.facts,
        &life::START.facts,
        &life::END.facts,
        &life::JOIN.facts,
        &life::TOTAL.facts,
        &overhead::STD.facts,
    ],
    key: "mode",
    label: "step, median",
}];
