//! Programs that a test makes before it runs them.
//!
//! Another process writes each program. A child that another test's thread forks at that time would inherit a
//! descriptor with which this process writes. Until that child runs its own program, running the new program fails
//! ("Text file busy").
#![allow(dead_code, reason = "each test binary has needs of its own")]

use std::path::Path;
use std::process::Command;

/// Copies a program so that every user may run it.
///
/// # Panics
/// There is no such program, or the disk is full.
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied =
        Command::new("install").args(["--mode=755", "--"]).args([from.as_ref(), to.as_ref()]).output();
    let copied = copied.expect("install can be started");
    assert!(copied.status.success(), "{copied:?}");
}

/// Writes a script that every user may run.
///
/// # Panics
/// The disk is full.
#[track_caller]
pub fn write_script(path: impl AsRef<Path>, text: &str) {
    let write = r#"printf %s "$2" > "$1" && chmod 755 "$1""#;
    let written = Command::new("sh").args(["-c", write, "sh"]).arg(path.as_ref()).arg(text).output();
    let written = written.expect("sh can be started");
    assert!(written.status.success(), "{written:?}");
}
