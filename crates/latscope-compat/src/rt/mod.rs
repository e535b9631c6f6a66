//! The programs of rt-tests: `cyclictest`, `oslat`, `cyclicdeadline`; those for inter-process communication;
//! `hackbench`. They take the arguments of the originals, measure with latscope's probes, and print the text of the
//! originals.
//!
//! Reading the arguments, planning and rendering are pure functions; each program's `carry_out` joins them. The
//! differences from the originals are in `docs/cyclictest.md` and `docs/rt-ipc.md`.

pub mod cyclicdeadline;
pub mod cyclictest;
pub mod hackbench;
pub mod json;
pub mod options;
pub mod oslat;
pub mod paced;
pub mod pairs;
pub mod row;

mod cpuset;

use crate::personality::Personality;

/// All programs of rt-tests, by name.
pub static PROGRAMS: &[&dyn Personality] = &[
    &cyclicdeadline::CYCLICDEADLINE,
    &cyclictest::CYCLICTEST,
    &hackbench::HACKBENCH,
    &oslat::OSLAT,
    &pairs::PMQTEST,
    &pairs::PTSEMATEST,
    &pairs::SIGNALTEST,
    &pairs::SIGWAITTEST,
    &pairs::SVSEMATEST,
];
