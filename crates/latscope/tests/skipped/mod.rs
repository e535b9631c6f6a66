//! Output of tests that this machine does not let run.
//!
//! This module is a part of every test binary of the workspace that has such tests.
#![allow(dead_code, reason = "each test binary has needs of its own")]

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Prints that a test did not run. The text bypasses the capture of the test harness, which would count the test as
/// passed. `cargo xtask test` counts these lines.
///
/// # Panics
/// Stdout is closed.
pub fn skipped(test: &str, reason: &str) {
    writeln!(std::io::stdout(), "SKIPPED {test}: {reason}").expect("stdout is open");
}

/// Prints that a part of a test did not run. The other parts count.
///
/// # Panics
/// Stdout is closed.
pub fn skipped_in_part(test: &str, reason: &str) {
    writeln!(std::io::stdout(), "SKIPPED-IN-PART {test}: {reason}").expect("stdout is open");
}

/// Returns true if a test's requirement is met. Prints that the test is skipped if not.
pub fn needs(test: &str, is_there: bool, reason: &str) -> bool {
    if !is_there {
        skipped(test, reason);
    }
    is_there
}

/// Returns true if tests that need root can run.
pub fn root(test: &str) -> bool {
    let uid = std::fs::metadata("/proc/self").map(|process| process.uid());
    needs(test, uid.is_ok_and(|uid| uid == 0), "it needs root")
}

/// Returns true if tests that need a trace of the kernel can run.
pub fn traceable(test: &str) -> bool {
    let mounted = Path::new("/sys/kernel/tracing/instances").exists();
    root(test) && needs(test, mounted, "tracefs is not mounted: `cargo xtask test` mounts it for the tests")
}

/// Returns true if tests that call a program can run.
pub fn has_program(test: &str, name: &str) -> bool {
    needs(test, is_installed(name), &format!("{name} is not installed"))
}

/// Returns true if a program is on the path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
