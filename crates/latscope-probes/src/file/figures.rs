//! Figure of the family: operations by size, a figure for each directory.

use super::{direct, lifecycle, read};
use latscope_core::catalogue::figures::{Along, Curves};

pub(super) static CURVES: &[Curves] = &[Curves {
    id: "file-by-size",
    title: "File operations by size",
    probes: &[
        &read::READ.facts,
        &read::READ_MMAP.facts,
        &direct::READ_DIRECT.facts,
        &lifecycle::CREATE.facts,
        &lifecycle::WRITE.facts,
        &lifecycle::CLOSE.facts,
        &lifecycle::UNLINK.facts,
    ],
    y: Along::median("one operation, median"),
    apart: &["filesystem", "directory"],
    within: &["device"],
    ..Curves::DEFAULT
}];
