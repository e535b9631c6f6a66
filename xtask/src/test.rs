//! `cargo xtask test`: everything that must hold.

use crate::{bans, dist, guest, image, setup, shell, thefts, vm};
use anyhow::{Context, Result};
use latscope_core::report::Report;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tests counted over all that ran.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    broken: Vec<String>,
}

/// Runs every check; closes with how many tests passed and failed.
///
/// # Errors
/// Something that tests need is missing.
pub fn run() -> Result<bool> {
    setup::run()?;
    let mut tally = Tally::default();
    tally.check("formatting", shell::run(&mut shell::cargo("fmt --all -- --check")));
    let clippy = "clippy --workspace --all-targets --features latscope/vhost-user --locked -- -D warnings";
    tally.check("clippy", shell::run(&mut shell::cargo(clippy)));
    tally.check("documentation", documentation());
    tally.check("no C in the dependency tree", bans::run());
    // Ignored are those that fetch something; and no more at once than CPUs, for some measure.
    let words = "test --workspace --locked --no-fail-fast -- --include-ignored --test-threads=2";
    let tests = tally.tests(shell::cargo(words));
    tally.check("cargo test", tests);
    let tests = tally.tests(orderings());
    tally.check("orderings of the rings", tests);
    // Transports that are libraries, which the usual binary does without.
    let libraries = "test --package latscope --locked --features dbus,iceoryx2,vhost-user --lib --test cli -- transports:: probe::ipc:: every_transport vhost_user::";
    let tests = tally.tests(shell::cargo(libraries));
    tally.check("optional transports", tests);
    match dist::run() {
        Ok(binaries) => {
            binaries.iter().for_each(|binary| tally.binary(binary));
            tally.thefts(binaries.first());
        }
        Err(error) => tally.check("static binaries", Err(error)),
    }
    if let Err(reason) = image::run_all(|name, outcome| tally.check(name, outcome)) {
        println!("SKIPPED {reason}");
        tally.skipped += 1;
    }
    // The VM waits much.
    let guest = guest::prepare();
    if let Err(reason) = vm::checks::run_all(|name, outcome| tally.check(name, outcome)) {
        println!("SKIPPED {reason}");
        tally.skipped += 1;
    }
    if let Err(reason) = guest.run_all(|name, outcome| tally.check(name, outcome)) {
        println!("SKIPPED {reason}");
        tally.skipped += 1;
    }
    Ok(tally.close())
}

fn documentation() -> Result<()> {
    let mut cargo = shell::cargo("doc --workspace --no-deps --locked");
    shell::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

/// The tests of every interleaving: built apart, since all crates are compiled for loom.
fn orderings() -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| shell::workspace().join("target")).join("loom");
    let mut cargo = shell::cargo("test --package latscope-rpmsg --test loom --locked");
    cargo.arg("--target-dir").arg(target).env("RUSTFLAGS", "--cfg loom");
    cargo
}

impl Tally {
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

    /// Runs `cargo test` and adds up what each test binary reports.
    fn tests(&mut self, mut command: Command) -> Result<()> {
        eprintln!("$ {}", shell::line(&command));
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut skipped = 0;
        for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
            let line = line?;
            println!("{line}");
            // Tests that cannot run on this machine say so, and count as passed for the harness.
            skipped += u64::from(line.contains("SKIPPED "));
            if let Some(counts) = line.strip_prefix("test result: ") {
                self.count(counts);
            }
        }
        self.passed = self.passed.saturating_sub(skipped);
        self.skipped += skipped;
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "cargo test failed ({status})");
        Ok(())
    }

    /// Reads `ok. 3 passed; 0 failed; 1 ignored; …`.
    fn count(&mut self, counts: &str) {
        for part in counts.split(['.', ';']) {
            match part.split_whitespace().collect::<Vec<_>>()[..] {
                [n, "passed"] => self.passed += n.parse().unwrap_or(0),
                [n, "failed"] => self.failed += n.parse().unwrap_or(0),
                [n, "ignored"] => self.skipped += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// A static binary runs a small survey; a foreign one does so in an emulator.
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
            let json = shell::output(command.args(["cpu", "cycle", "rdtsc", "--quick", "--json", "-"]))?;
            let report = Report::from_json(json.as_bytes())?;
            let cycle = report.of_probe("cpu.cycle").next().context("no cpu.cycle in the result")?;
            anyhow::ensure!(cycle.summary.count > 0, "cpu.cycle was not measured: {:?}", cycle.reason);
            Ok(())
        });
        self.check(&name, outcome);
    }

    /// The binary of this machine finds known thefts of the CPU.
    fn thefts(&mut self, binary: Option<&PathBuf>) {
        match (thefts::reason_against(), binary) {
            (None, Some(binary)) => self.check("every theft is found, and its thief", thefts::look(binary)),
            (reason, _) => {
                println!("SKIPPED {}", reason.unwrap_or("no binary"));
                self.skipped += 1;
            }
        }
    }

    fn close(&self) -> bool {
        for name in &self.broken {
            println!("failed: {name}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        self.failed == 0
    }
}

/// The program that runs a binary of another architecture.
fn emulator(binary: &Path) -> Result<Option<String>> {
    let name = binary.to_string_lossy();
    let architecture = name.rsplit('-').next().unwrap_or_default();
    if architecture == std::env::consts::ARCH {
        return Ok(None);
    }
    let program = format!("qemu-{architecture}");
    setup::program(&program, "qemu-user")?;
    Ok(Some(program))
}
