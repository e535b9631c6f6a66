//! Comparison of the programs of rt-tests with golden files of the originals' output, and with the parsers that users
//! apply
//! to it.
//!
//! The golden files hold masked output of rt-tests 2.4. If that is installed, `LATSCOPE_RECORD=1 cargo test -p latscope
//! --test rt` records them again.
#![forbid(unsafe_code)]

mod cases;
mod consumers;
mod exits;
mod goldens;
mod mask;
mod pairs;
#[path = "../programs/mod.rs"]
mod programs;
mod rendering;
mod signals;
#[path = "../skipped/mod.rs"]
mod skipped;

use skipped::{root, skipped, traceable};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Creates a link with the program's name to latscope, and returns a command for it.
fn dropin(directory: &Path, name: &str) -> Command {
    let link = directory.join(name);
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_latscope"), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.stdin(Stdio::null());
    command
}

/// Runs a program of latscope with these words.
fn run(name: &str, words: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    dropin(directory.path(), name).args(words.split_whitespace()).output().unwrap()
}

/// Longest wait, far above the time of any test.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until `look` finds something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns stdout of a run that must succeed.
#[track_caller]
fn done(name: &str, words: &str) -> String {
    let output = run(name, words);
    assert_eq!(output.status.code(), Some(0), "{name} {words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Path of the switch of the user's own tracing.
const TRACING_ON: &str = "/sys/kernel/tracing/tracing_on";

/// Switch of the user's own tracing, which the real programs turn off with `-b`. Its former state is restored, and no
/// other test runs a program meanwhile.
struct Tracing {
    found: Option<String>,
    _alone: MutexGuard<'static, ()>,
}

impl Tracing {
    fn kept() -> Tracing {
        // What an earlier test failed of does not matter to this one.
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Tracing { found: fs::read_to_string(TRACING_ON).ok(), _alone }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        if let Some(found) = &self.found {
            // Who may not write it has not changed it.
            let _ = fs::write(TRACING_ON, found);
        }
    }
}

/// Lock for each test that switches tracing or runs programs. Two programs would not be admitted to SCHED_DEADLINE
/// together.
static ALONE: Mutex<()> = Mutex::new(());

/// Program in a mount namespace of its own, with the file systems that the real programs look for, whatever this
/// machine has mounted.
fn with_debugfs(words: &[&str]) -> Command {
    const MOUNT: &str = r#"
        for kind in debugfs:/sys/kernel/debug tracefs:/sys/kernel/tracing; do
            mountpoint -q "${kind#*:}" || mount -t "${kind%:*}" nodev "${kind#*:}"
        done
        exec env _=/bin/sh "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", MOUNT, "sh"]).args(words);
    command.stdin(Stdio::null());
    command
}
