//! `cargo xtask test`, which runs all checks and counts their outcomes.

mod part;
mod tally;

pub use part::TestPart;
pub use tally::TestDeadline;

use crate::shell::FEATURES;
use crate::{advisories, bans, growth, injected_preemptions, packages, python, setup, shell};
use anyhow::Result;
use part::TestPartProcess;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tally::TestTally;

/// Runs the tests that need this machine only, or `all`. At the end, it prints how many tests passed, failed and were
/// skipped.
///
/// # Errors
/// A step cannot be started.
pub fn run_steps(all: bool, limit: TestDeadline) -> Result<bool> {
    let setup = if all {
        setup::components()?;
        // Lints and the build of the tests need nothing else.
        Some(TestPart::Setup.start_process(limit)?)
    } else {
        setup::name_missing(true);
        None
    };
    let mut tally = TestTally::with_deadline(limit);
    compile(&mut tally);
    if let Some(setup) = setup {
        setup.join(&mut tally);
    }
    let wheel = if all { Some(TestPart::Wheel.start_process(limit)?) } else { None };
    tally.run_step("cargo test", |tally| {
        let ran = tally.tests_or_flaky("cargo test", |names| Ok(workspace(all, names)));
        tally.count_failure("cargo test", ran);
    });
    if let Some(wheel) = wheel {
        run_further_tests(&mut tally, wheel, limit)?;
    }
    Ok(tally.print_summary())
}

/// Runs the steps that only compile, and builds the tests.
fn compile(tally: &mut TestTally) {
    tally.run_step("formatting", |tally| {
        tally.count_check("formatting", shell::run_command(&mut shell::cargo("fmt --all -- --check")));
    });
    tally.run_step("lints", |tally| {
        let clippy = format!("clippy --workspace --all-targets {FEATURES} --locked -- -D warnings");
        tally.count_check("clippy", shell::run_command(&mut shell::cargo(&clippy)));
        // The delivered program lacks the features that the tests turn on.
        let delivered = "clippy --workspace --locked -- -D warnings";
        tally.count_check("clippy without tests", shell::run_command(&mut shell::cargo(delivered)));
    });
    tally.run_step("documentation", |tally| tally.count_check("documentation", documentation()));
    tally.run_step("dependencies", |tally| {
        tally.count_check("no C in the dependency tree", bans::check_dependency_tree())
    });
    tally.run_step("build of the tests", |tally| {
        let build = format!("test --workspace {FEATURES} --locked --no-run");
        tally.count_check("the tests compile", shell::run_command(&mut shell::cargo(&build)));
    });
}

/// Runs the tests that take a virtual machine, another architecture or a library of Python, after those of the
/// workspace. They need the binary of this machine.
fn run_further_tests(tally: &mut TestTally, wheel: TestPartProcess, limit: TestDeadline) -> Result<()> {
    tally.run_step("advisories", |tally| match advisories::database() {
        Ok(database) => {
            tally.count_check("no advisory on a dependency", advisories::check_lock_files(&database))
        }
        Err(error) => tally.skip(Some(error)),
    });
    tally.run_step("orderings", |tally| tally.tests("orderings of the rings", orderings()));
    tally.run_step("Valgrind", |tally| match setup::check_program("valgrind", "valgrind") {
        Ok(()) => tally.tests("kernel interfaces under Valgrind", valgrind()),
        Err(error) => tally.skip(Some(error)),
    });
    wheel.join(tally);
    let [delivery, machines] =
        [TestPart::Delivery.start_process(limit)?, TestPart::Machines.start_process(limit)?];
    tally.run_step("injected preemptions", injected_preemptions);
    tally.run_step("growth", growth_of_work);
    tally.run_step("python", |tally| {
        let ran = python_checks(tally);
        tally.count_failure("python", ran);
    });
    delivery.join(tally);
    machines.join(tally);
    Ok(())
}

fn documentation() -> Result<()> {
    let mut cargo = shell::cargo("doc --workspace --no-deps --locked");
    shell::run_command(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Command for the tests of the workspace, or for those with these names. The ignored tests are those that fetch
/// something.
fn workspace(ignored: bool, names: &[String]) -> Command {
    // Two for each of two CPUs: most tests wait for processes, and none judges what it measures by time.
    let tests = format!("test --workspace {FEATURES} --locked --no-fail-fast -- --test-threads=4");
    let mut cargo = shell::cargo(&tests);
    if ignored {
        cargo.arg("--include-ignored");
    }
    if !names.is_empty() {
        cargo.arg("--exact").args(names);
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
    cargo_in_own_dir(
        "test --package latscope-rpmsg --package latscope-bench --test loom --locked",
        "loom",
        "loom",
    )
}

/// Command for the tests of the crate with unsafe code under Valgrind. It leaves out the tests that Valgrind does not
/// carry out as Linux does, a test that takes long, and the loops of a thousand instructions, for which Valgrind has no
/// room. Valgrind hides the vDSO, where rustix expects it.
fn valgrind() -> Command {
    let mut cargo =
        cargo_in_own_dir("test --package latscope-os --lib --locked", "valgrind", "rustix_use_libc");
    let runner = "valgrind --quiet --error-exitcode=9 --vex-guest-max-insns=40";
    cargo.args(["--config", &format!("target.'cfg(all())'.runner='{runner}'"), "--", "--test-threads=2"]);
    let skipped = [
        "kernels::arith::",
        "kernels::code::calls::tests::a_process_is_opened_and_closed",
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
fn cargo_in_own_dir(words: &str, directory: &str, cfg: &str) -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| shell::workspace().join("target")).join(directory);
    let mut cargo = shell::cargo(words);
    cargo.arg("--target-dir").arg(target).env("RUSTFLAGS", format!("--cfg {cfg}"));
    cargo
}

/// Makes the packages, and checks them.
fn check_packages(tally: &mut TestTally, binaries: &[PathBuf]) {
    match packages::build(binaries) {
        Ok(()) => {
            let ran = packages::checks::run_all(|name, outcome| tally.count_check(name, outcome));
            tally.skip(ran.err());
        }
        Err(error) => tally.count_check("packages", Err(error)),
    }
}

/// Checks that a static binary runs a quick survey and refuses what it does not know. A binary for another architecture
/// runs in an emulator.
fn check_binary(tally: &mut TestTally, binary: &Path) {
    let mut check = |name: &str, check: fn(&mut Command) -> Result<()>| {
        let outcome = command_of(binary).and_then(|mut command| check(&mut command));
        tally.count_check(&format!("{} {name}", binary.display()), outcome);
    };
    check("measures", packages::checks::survey);
    check("refuses an unknown option", packages::checks::refuses);
}

/// Command that runs a binary.
fn command_of(binary: &Path) -> Result<Command> {
    let program = std::path::absolute(binary)?;
    let Some(emulator) = emulator(binary)? else { return Ok(Command::new(program)) };
    let mut command = Command::new(&emulator);
    command.arg(program).env("LATSCOPE_RUNNER", emulator);
    Ok(command)
}

/// Runs the checks of the Python package. Its tests print what `cargo test` would.
fn python_checks(tally: &mut TestTally) -> Result<()> {
    for (name, mut command) in python::checks()? {
        tally.count_check(name, shell::run_command(&mut command));
    }
    tally.tests_or_flaky("pytest", python::test_command)
}

/// Checks that the binary of this machine finds injected preemptions.
fn injected_preemptions(tally: &mut TestTally) {
    let binary = Path::new("dist").join(format!("latscope-{}", std::env::consts::ARCH));
    match injected_preemptions::reason_against() {
        None => tally.count_check(
            "every injected preemption is found, with its thread",
            injected_preemptions::run_selftest(&binary),
        ),
        Some(reason) => tally.skip(Some(reason)),
    }
}

/// Checks that the work of this machine's binary grows in proportion to the lists of a result.
fn growth_of_work(tally: &mut TestTally) {
    let binary = Path::new("dist").join(format!("latscope-{}", std::env::consts::ARCH));
    match setup::check_program("valgrind", "valgrind") {
        Ok(()) => tally.count_check("work grows in proportion to lists", growth::check_growth(&binary)),
        Err(error) => tally.skip(Some(error)),
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
    setup::check_program(&program, "qemu-user-static")?;
    Ok(Some(program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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

    /// Returns true if a file belongs to this module, which reads what others may not print.
    fn is_here(path: &Path) -> bool {
        path.parent().is_some_and(|parent| parent.ends_with("xtask/src/test"))
    }

    /// Lines that end the body of a test early, although neither the line nor the condition right before it prints a
    /// reason.
    fn silent_returns(source: &str) -> Vec<String> {
        const SAYS_WHY: [&str; 7] =
            ["root(", "traceable(", "needs(", "has_program(", "possible(", "prepared(", "skipped("];
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
            let of_tests = !is_here(&path);
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
        for path in found.iter().filter(|path| !is_here(path)) {
            let source = fs::read_to_string(path).unwrap();
            assert_eq!(busy_programs(&source), [""; 0], "{}", path.display());
        }
    }
}
