//! Figure of the family: fork by the memory of the parent.

use super::fork;
use latscope_core::catalogue::figures::{Along, Curves};

pub(super) static CURVES: &[Curves] = &[Curves {
    id: "process-fork",
    title: "fork, exit and wait, by the memory of the parent",
    probes: &[&fork::FORK.facts],
    y: Along::median("one process, median"),
    ..Curves::DEFAULT
}];
