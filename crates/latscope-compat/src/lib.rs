//! Replacements for older tools: the programs of LMbench 3 in [`lmbench`], those of rt-tests in [`rt`], AOSP's tests of
//! binder in [`binder_tests`], the benchmark of openEuler's MCS in [`mcs`], and [`schbench`]. They take the arguments
//! of the originals, measure with latscope's probes, and print the text of the originals.
//!
//! Each is a [`PersonalityProgram`]: its options, and functions that read a call and carry it out. Reading the
//! arguments and printing the text are pure functions. The numbers are always latscope's.
#![forbid(unsafe_code)]

pub mod binder_tests;
pub mod getopt;
pub mod lmbench;
pub mod mcs;
pub mod rt;
pub mod schbench;

mod context;
mod environment;
mod notes;
mod personality;

pub use context::PersonalityContext;
pub use lmbench::{REFUSED, UnsupportedProgram};
pub use notes::NotesDestination;
pub use personality::{Personality, PersonalityProgram, PersonalitySuite};

use latscope_process::role::ProcessRole;
use std::ffi::OsStr;
use std::path::Path;

/// Roles of processes that this crate starts.
pub const ROLES: &[ProcessRole] = &[rt::paced::ROLE];

/// Returns every program that latscope replaces.
pub fn all_programs() -> impl Iterator<Item = &'static dyn Personality> {
    let tools = rt::PROGRAMS
        .iter()
        .chain(binder_tests::PROGRAMS)
        .chain(mcs::PROGRAMS)
        .chain(schbench::PROGRAMS)
        .copied();
    tools.chain(lmbench::PROGRAMS.iter().map(|program| program as &dyn Personality))
}

/// List of the programs that latscope replaces, as `latscope as` prints it.
pub fn listing() -> String {
    let lines = all_programs().map(|program| format!("  {:<22} {}\n", program.name(), program.summary()));
    format!(
        "Behave as an older tool: its arguments, its output, our numbers\n\n\
         Usage: latscope as NAME [ARGS]…, or a link of that name to latscope\n\n{}\n\
         All of them take --label KEY=VALUE and --machine-id TEXT|none, which are saved with latscope's result,\n\
         --save-every T, the interval between saves of that result, --redact, which leaves out of all files whose machine it \
         is,\nand --dry-run, which shows the plan and measures nothing.\n\
         Notes go to the standard stream without figures: LATSCOPE_NOTES=stderr|none|FILE sends them elsewhere.\n",
        lines.collect::<String>()
    )
}

/// Returns the program with this name.
pub fn find_program(name: &str) -> Option<&'static dyn Personality> {
    all_programs().find(|program| program.name() == name)
}

/// Name of the program that was called by this name or path.
pub fn by_name(argv0: &OsStr) -> Option<&'static str> {
    find_program(Path::new(argv0).file_name()?.to_str()?).map(|program| program.name())
}
