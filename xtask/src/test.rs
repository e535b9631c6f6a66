//! `cargo xtask test`, which runs all checks and counts their outcomes.

use crate::{bans, dist, guest, image, injected_preemptions, packages, python, setup, shell, vm};
use anyhow::{Context, Result};
use latscope_core::units::format_time;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Counts of the tests in all steps, and the time that each step took.
#[derive(Default)]
struct Tally {
    // Below zero while a test binary has told of skipped tests, and not yet of its sum.
    passed: i64,
    failed: i64,
    broken: Vec<String>,
    /// Reasons for skipped tests.
    skipped: Vec<String>,
    steps: Vec<(&'static str, Duration)>,
    /// True if a test binary has begun and has not printed its sum yet.
    unfinished: bool,
}

/// Runs the tests that need this machine only, or `all`. At the end, it prints how many tests passed, failed and were
/// skipped.
///
/// # Errors
/// A step cannot be started.
pub fn run(all: bool) -> Result<bool> {
    setup::name_missing(!all);
    let mut tally = Tally::default();
    tally.step("formatting", |tally| {
        tally.check("formatting", shell::run(&mut shell::cargo("fmt --all -- --check")));
    });
    tally.step("lints", |tally| {
        let clippy =
            "clippy --workspace --all-targets --features latscope/vhost-user --locked -- -D warnings";
        tally.check("clippy", shell::run(&mut shell::cargo(clippy)));
        // The delivered program lacks the features that the tests turn on.
        let delivered = "clippy --workspace --locked -- -D warnings";
        tally.check("clippy without tests", shell::run(&mut shell::cargo(delivered)));
    });
    tally.step("documentation", |tally| tally.check("documentation", documentation()));
    tally.step("dependencies", |tally| tally.check("no C in the dependency tree", bans::run()));
    tally.step("cargo test", |tally| tally.tests("cargo test", workspace(all)));
    if all {
        beyond(&mut tally);
    }
    Ok(tally.close())
}

/// Runs the tests that take a virtual machine, another architecture or an optional library.
fn beyond(tally: &mut Tally) {
    tally.step("orderings", |tally| tally.tests("orderings of the rings", orderings()));
    tally.step("Valgrind", |tally| match setup::program("valgrind", "valgrind") {
        Ok(()) => tally.tests("kernel interfaces under Valgrind", valgrind()),
        Err(error) => tally.skip(Some(error)),
    });
    // Transports that are libraries, which the usual binary does without.
    let libraries = "test --package latscope --package latscope-exchange --package latscope-probes --locked --features latscope/dbus,latscope/iceoryx2,latscope/vhost-user --lib --test cli -- transports:: ipc:: every_transport vhost_user::";
    tally.step("optional transports", |tally| tally.tests("optional transports", shell::cargo(libraries)));
    tally.step("static binaries", |tally| match dist::run() {
        Ok(binaries) => {
            binaries.iter().for_each(|binary| tally.binary(binary));
            tally.injected_preemptions(binaries.first());
            tally.packages(&binaries);
        }
        Err(error) => tally.check("static binaries", Err(error)),
    });
    tally.step("wheel", |tally| {
        tally
            .check("the wheel measures and reads", python::wheel().and_then(|wheels| python::check(&wheels)));
    });
    tally.step("python", Tally::python);
    tally.step("image for QEMU", |tally| {
        let ran = image::run_all(|name, outcome| tally.check(name, outcome));
        tally.skip(ran.err());
    });
    // The VM waits much.
    let guest = guest::prepare();
    tally.step("virtual machine", |tally| {
        let ran = vm::checks::run_all(|name, outcome| tally.check(name, outcome));
        tally.skip(ran.err());
    });
    tally.step("ARM guest", |tally| {
        let ran = guest.run_all(|name, outcome| tally.check(name, outcome));
        tally.skip(ran.err());
    });
}

fn documentation() -> Result<()> {
    let mut cargo = shell::cargo("doc --workspace --no-deps --locked");
    shell::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Command for the tests of the workspace. The ignored tests are those that fetch something.
fn workspace(ignored: bool) -> Command {
    // Two for each of two CPUs: most tests wait for processes, and none judges what it measures by time.
    let mut cargo = shell::cargo("test --workspace --locked --no-fail-fast -- --test-threads=4");
    if ignored {
        cargo.arg("--include-ignored");
    }
    with_tracefs(cargo)
}

/// Returns the command with tracefs mounted, in a mount namespace of its own that leaves the machine as it is. If that
/// is impossible, the command is unchanged, and the tests print what they lack.
fn with_tracefs(command: Command) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "slave"]);
    let mut trial = Command::new("unshare");
    trial.args(unshare.get_args()).arg("true").stderr(Stdio::null());
    if !trial.status().is_ok_and(|status| status.success()) {
        return command;
    }
    const MOUNT: &str = r#"
        mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing || true
        exec "$@""#;
    unshare.args(["sh", "-c", MOUNT, "sh"]).arg(command.get_program()).args(command.get_args());
    unshare
}

/// Command for the tests of every interleaving.
fn orderings() -> Command {
    apart("test --package latscope-rpmsg --package latscope-bench --test loom --locked", "loom", "loom")
}

/// Command for the tests of the crate with unsafe code under Valgrind. It leaves out the tests that Valgrind does not
/// carry out as Linux does, a test that takes long, and the loops of a thousand instructions, for which Valgrind has no
/// room. Valgrind hides the vDSO, where rustix expects it.
fn valgrind() -> Command {
    let mut cargo = apart("test --package latscope-os --lib --locked", "valgrind", "rustix_use_libc");
    let runner = "valgrind --quiet --error-exitcode=9 --vex-guest-max-insns=40";
    cargo.args(["--config", &format!("target.'cfg(all())'.runner='{runner}'"), "--", "--test-threads=2"]);
    let skipped = [
        "kernels::arith::",
        "window::tests::long_messages_go_round",
        "memory_lock::tests::a_trial_is_granted",
        "page::tests::a_page_that_is_given_back",
        "process_probe::tests::a_missing_program",
        "counted_event::tests::each_call_of_the_function",
        "seccomp::tests::a_filter_is_that_of_its_thread",
    ];
    cargo.args(skipped.iter().flat_map(|name| ["--skip", name]));
    cargo
}

/// Cargo command with a build directory of its own, since a `cfg` causes all crates to be compiled.
fn apart(words: &str, directory: &str, cfg: &str) -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| shell::workspace().join("target")).join(directory);
    let mut cargo = shell::cargo(words);
    cargo.arg("--target-dir").arg(target).env("RUSTFLAGS", format!("--cfg {cfg}"));
    cargo
}

impl Tally {
    /// Runs a step, and prints the time that it took.
    fn step(&mut self, name: &'static str, run: impl FnOnce(&mut Tally)) {
        let begun = Instant::now();
        run(self);
        let took = begun.elapsed();
        eprintln!("xtask: {name} took {}", format_time(took.as_secs_f64() * 1e9));
        self.steps.push((name, took));
    }

    fn check(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => {
                eprintln!("xtask: {name}: {error:#}");
                self.failed += 1;
                self.broken.push(name.to_owned());
            }
        }
    }

    /// Records that something cannot be done here, if there is a reason.
    fn skip(&mut self, reason: Option<impl std::fmt::Display>) {
        if let Some(reason) = reason {
            println!("SKIPPED {reason}");
            self.skipped.push(reason.to_string());
        }
    }

    /// Runs `cargo test`, and adds up the reports of the test binaries. A failure of the step itself counts only if no
    /// test reported one.
    fn tests(&mut self, name: &str, command: Command) {
        let failed = self.failed;
        let outcome = self.read_tests(command);
        self.binary_ends();
        if outcome.is_err() && self.failed == failed {
            self.check(name, outcome);
        }
    }

    fn read_tests(&mut self, mut command: Command) -> Result<()> {
        eprintln!("$ {}", shell::line(&command));
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
            let line = line?;
            println!("{line}");
            self.read(&line);
        }
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "cargo test failed ({status})");
        Ok(())
    }

    /// Reads a line of a test binary. A test that cannot run on this machine prints that, and passes for the harness. A
    /// test of
    /// which only a part cannot run has passed.
    fn read(&mut self, line: &str) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.binary_ends();
            self.unfinished = true;
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.broken.push(name.to_owned());
        } else if let Some((_, reason)) = line.split_once("SKIPPED ") {
            self.skipped.push(reason.to_owned());
            self.passed -= 1;
        } else if let Some((_, reason)) = line.split_once("SKIPPED-IN-PART ") {
            self.skipped.push(reason.to_owned());
        } else if let Some((name, reason)) = line.split_once(" ... ignored") {
            let name = name.trim_start_matches("test ");
            self.skipped.push(format!("{name}: {}", reason.trim_start_matches(", ")));
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.count(counts);
            self.unfinished = false;
        }
    }

    /// Counts a test binary that ended without its sum, such as one that crashed.
    fn binary_ends(&mut self) {
        if std::mem::take(&mut self.unfinished) {
            self.failed += 1;
            self.broken.push("a test binary that ended before its tests did".to_owned());
        }
    }

    /// Reads the counts in `ok. 3 passed; 0 failed; 1 ignored; …`. Ignored tests have lines of their own.
    fn count(&mut self, counts: &str) {
        for part in counts.split(['.', ';']) {
            match part.split_whitespace().collect::<Vec<_>>()[..] {
                [n, "passed"] => self.passed += n.parse().unwrap_or(0),
                [n, "failed"] => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// Makes the packages, and checks them.
    fn packages(&mut self, binaries: &[PathBuf]) {
        match packages::build(binaries) {
            Ok(()) => {
                let ran = packages::checks::run_all(|name, outcome| self.check(name, outcome));
                self.skip(ran.err());
            }
            Err(error) => self.check("packages", Err(error)),
        }
    }

    /// Checks that a static binary runs a quick survey. A binary for another architecture runs in an emulator.
    fn binary(&mut self, binary: &Path) {
        let name = format!("{} measures", binary.display());
        let outcome = emulator(binary).and_then(|emulator| {
            let program = std::path::absolute(binary)?;
            let mut command = match &emulator {
                Some(emulator) => Command::new(emulator),
                None => Command::new(&program),
            };
            if let Some(emulator) = &emulator {
                command.arg(&program).env("LATSCOPE_RUNNER", emulator);
            }
            packages::checks::survey(&mut command)
        });
        self.check(&name, outcome);
    }

    /// Runs the checks of the Python package. Its tests print what `cargo test` would.
    fn python(&mut self) {
        match python::checks() {
            Ok([lint, format, types, (name, tests)]) => {
                for (name, mut command) in [lint, format, types] {
                    self.check(name, shell::run(&mut command));
                }
                self.tests(name, tests);
            }
            Err(error) => self.check("python", Err(error)),
        }
    }

    /// Checks that the binary of this machine finds injected preemptions.
    fn injected_preemptions(&mut self, binary: Option<&PathBuf>) {
        match (injected_preemptions::reason_against(), binary) {
            (None, Some(binary)) => self.check(
                "every injected preemption is found, with its thread",
                injected_preemptions::look(binary),
            ),
            (reason, _) => self.skip(Some(reason.unwrap_or("no binary"))),
        }
    }

    fn close(&self) -> bool {
        println!("\n{:<24} {:>8}", "step", "time");
        for (name, took) in &self.steps {
            println!("{name:<24} {:>6.1} s", took.as_secs_f64());
        }
        let sum: Duration = self.steps.iter().map(|(_, took)| *took).sum();
        println!("{:<24} {:>6.1} s\n", "all", sum.as_secs_f64());
        self.skipped.iter().for_each(|reason| println!("skipped: {reason}"));
        self.broken.iter().for_each(|name| println!("failed: {name}"));
        println!("{}", self.last_line());
        self.failed == 0
    }

    fn last_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }
}

/// Name of the program that runs a binary of another architecture; `None` for a binary of this machine.
fn emulator(binary: &Path) -> Result<Option<String>> {
    let name = binary.to_string_lossy();
    let architecture = name.rsplit('-').next().unwrap_or_default();
    if architecture == std::env::consts::ARCH {
        return Ok(None);
    }
    let program = format!("qemu-{}-static", if architecture == "armv7" { "arm" } else { architecture });
    setup::program(&program, "qemu-user-static")?;
    Ok(Some(program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_skipped_has_not_passed() {
        let mut tally = Tally::default();
        for line in [
            "test a ... ok",
            "SKIPPED b: it needs root",
            "test b ... ok",
            "test c ... SKIPPED c: no node",
            "ok",
            "SKIPPED-IN-PART a: fish is not installed",
            "test d ... ignored, fetches much",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 9.9s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.last_line(), "5 passed, 2 failed, 4 skipped");
        assert_eq!(tally.skipped[3], "d: fetches much");
    }

    #[test]
    fn a_failed_test_and_its_step_are_one_failure() {
        let ran = |script: &str| {
            let mut tally = Tally::default();
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            tally.tests("cargo test", command);
            (tally.last_line(), tally.broken.join(", "))
        };
        let told = |line: &str, broken: &str| (line.to_owned(), broken.to_owned());
        let one = "echo 'running 2 tests'; echo 'test a::b ... FAILED'; echo 'test c ... ok'";
        let sum = "echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'";
        assert_eq!(ran(&format!("{one}; {sum}; exit 101")), told("1 passed, 1 failed, 0 skipped", "a::b"));
        assert_eq!(ran("exit 101"), told("0 passed, 1 failed, 0 skipped", "cargo test"));
        let crashed = "a test binary that ended before its tests did";
        assert_eq!(ran("echo 'running 1 test'; exit 101"), told("0 passed, 1 failed, 0 skipped", crashed));
        let then = format!("echo 'running 1 test'; {one}; {sum}; exit 101");
        let both = format!("{crashed}, a::b");
        assert_eq!(ran(&then), told("1 passed, 2 failed, 0 skipped", &both));
        let passed = "echo 'running 1 test'; echo 'test result: ok. 1 passed; 0 failed'";
        assert_eq!(ran(passed), told("1 passed, 0 failed, 0 skipped", ""));
    }

    /// Collects all sources of the workspace below a directory.
    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// Lines that end the body of a test early, although neither the line nor the condition right before it prints a
    /// reason.
    fn silent_returns(source: &str) -> Vec<String> {
        const SAYS_WHY: [&str; 6] =
            ["root(", "traceable(", "needs(", "has_program(", "possible(", "skipped("];
        let lines: Vec<&str> = source.lines().collect();
        let mut silent = Vec::new();
        let begins = (0..lines.len()).filter(|at| lines[*at].trim() == "#[test]");
        for begin in begins {
            let indent = lines[begin].len() - lines[begin].trim_start().len();
            let body = begin + 1..lines.len();
            let body = body.take_while(|at| !lines[*at].starts_with(&format!("{:indent$}}}", "")));
            // In a function or a closure within the test it ends that only.
            let returns = body.filter(|at| {
                let line = lines[*at].trim();
                let inner = lines[*at].len() - line.len() > indent + 8;
                (line.starts_with("return;") && !inner) || line.ends_with("else { return };")
            });
            let says = |at: &usize| {
                lines[at.saturating_sub(3)..=*at]
                    .iter()
                    .any(|line| SAYS_WHY.iter().any(|word| line.contains(word)))
            };
            silent
                .extend(returns.filter(|at| !says(at)).map(|at| format!("{}: {}", at + 1, lines[at].trim())));
        }
        silent
    }

    #[test]
    fn no_test_ends_early_without_saying_why() {
        let silent = "#[test]\nfn a() {\n    if !there() {\n        return;\n    }\n}\n";
        assert_eq!(silent_returns(silent), ["4: return;"]);
        assert_eq!(silent_returns(&silent.replace("there()", "root(\"a\")")), [""; 0]);
        let mut found = Vec::new();
        ["crates", "xtask"].iter().for_each(|place| sources(&shell::workspace().join(place), &mut found));
        assert!(found.len() > 300);
        for path in found {
            let source = fs::read_to_string(&path).unwrap();
            assert_eq!(silent_returns(&source), [""; 0], "{}", path.display());
            // The test harness keeps these for itself: `skipped` writes past it.
            let kept = ["println!(\"SKIPPED", "println!(\"not tested"];
            let of_tests = !path.ends_with("xtask/src/test.rs");
            assert!(!of_tests || kept.iter().all(|words| !source.contains(words)), "{}", path.display());
        }
    }

    /// Lines that make a file which is then run, outside of the helpers that let another process write it. A child that
    /// another
    /// thread forks at that time would hold the file open, and running it would fail ("Text file busy").
    fn busy_programs(source: &str) -> Vec<&str> {
        let script = ["\"#!/", "from_mode(0o755)"].iter().all(|word| source.contains(word));
        let copies = |line: &&str| {
            let program = ["CARGO_BIN_EXE", "BINARY", "current_exe", "debug/latscope", "/latscope\""];
            line.contains("fs::copy(") && program.iter().any(|word| line.contains(word))
                || script && line.contains("\"#!/")
        };
        source.lines().map(str::trim).filter(copies).collect()
    }

    #[test]
    fn only_a_process_of_its_own_makes_a_program() {
        assert_eq!(busy_programs("fs::copy(env!(\"CARGO_BIN_EXE_latscope\"), &program)").len(), 1);
        assert_eq!(busy_programs("fs::write(p, \"#!/bin/sh\")\nset(from_mode(0o755))").len(), 1);
        let mut found = Vec::new();
        ["crates", "xtask"].iter().for_each(|place| sources(&shell::workspace().join(place), &mut found));
        for path in found.iter().filter(|path| !path.ends_with("xtask/src/test.rs")) {
            let source = fs::read_to_string(path).unwrap();
            assert_eq!(busy_programs(&source), [""; 0], "{}", path.display());
        }
    }
}
