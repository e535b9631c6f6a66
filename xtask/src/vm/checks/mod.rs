//! Tests that need another kernel: a command in the VM, and the conditions on its outcome. Each kernel boots once, and
//! runs all its commands one after another. A command that changes the machine must restore it.
//!
//! A new test is a new line in the file of its family:
//!
//! ```text
//! Check::new("what must hold", ALL, "latscope …", |ran| ran.says("…")),
//! ```

mod account;
mod binder;
mod binder_tests;
mod ipc;
mod machine;
mod nodes;
mod noise;
mod ran;
mod wake;

use super::VmKernel;
use super::boot::VirtualMachine;
use crate::debian::AVAILABLE;
use crate::dist;
use crate::shell::quote_word;
use anyhow::{Context, Result, bail, ensure};
pub use ran::Ran;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Families of tests, each with its own file.
const FAMILIES: [&[VmCheck]; 7] = [
    account::CHECKS,
    machine::CHECKS,
    wake::CHECKS,
    noise::CHECKS,
    binder::CHECKS,
    ipc::CHECKS,
    binder_tests::CHECKS,
];

/// Every kernel that tests run under.
pub const ALL: &[VmKernel] = &[VmKernel::Rt, VmKernel::Std, VmKernel::Rt612];

/// Kernels with PREEMPT_RT, which also have the tracers timerlat and osnoise.
pub const REAL_TIME: &[VmKernel] = &[VmKernel::Rt, VmKernel::Rt612];

/// Longest time of a command in s, unless [`VmCheck::with_time_limit`] sets another. An emulated machine is slow next
/// to other work.
const LIMIT: u32 = 180;

/// Command to run in the VM, and the conditions on its outcome.
pub struct VmCheck {
    /// Name of the test: the condition that must hold.
    pub name: &'static str,
    kernels: &'static [VmKernel],
    command: &'static str,
    status: i32,
    /// Longest time of the command, in s.
    pub limit: u32,
    holds: fn(&Ran) -> Result<()>,
}

impl VmCheck {
    /// Returns a test with a line for the shell that must succeed, in an empty directory of its own.
    pub const fn new(
        name: &'static str,
        kernels: &'static [VmKernel],
        command: &'static str,
        holds: fn(&Ran) -> Result<()>,
    ) -> VmCheck {
        VmCheck { name, kernels, command, status: 0, limit: LIMIT, holds }
    }

    /// Returns this test for a command that must end with this exit status.
    pub const fn exits(self, status: i32) -> VmCheck {
        VmCheck { status, ..self }
    }

    /// Returns this test for a command that may take up to so many seconds.
    pub const fn with_time_limit(self, limit: u32) -> VmCheck {
        VmCheck { limit, ..self }
    }

    /// Checks the outcome of the command.
    ///
    /// # Errors
    /// The error names the condition that does not hold.
    pub fn check_outcome(&self, ran: &Ran) -> Result<()> {
        if ran.status != self.status {
            bail!("exit status {} instead of {}: {}", ran.status, self.status, ran.output_text());
        }
        (self.holds)(ran)
    }
}

/// Runs the tests with a word in their name, and prints each outcome.
///
/// # Errors
/// No test has this name.
pub fn run_and_report(word: &str, kernels: &[VmKernel], profile: &str) -> Result<ExitCode> {
    let (mut passed, mut failed) = (0, 0);
    run_matching(word, kernels, profile, |name, outcome| match outcome {
        Ok(()) => (println!("{name} ... ok"), passed += 1).1,
        Err(error) => (println!("{name} ... FAILED: {error:#}"), failed += 1).1,
    });
    ensure!(passed + failed > 0, "no test under these kernels has {word:?} in its name");
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all tests, if this machine can. Passes the name and the outcome of each to `each`.
///
/// # Errors
/// The error is the reason why the tests cannot run.
pub fn run_all(each: impl FnMut(&str, Result<()>)) -> Result<(), &'static str> {
    if !AVAILABLE {
        return Err("tests in the VM: it is an x86-64 machine, this is not");
    }
    run_matching("", ALL, dist::PROFILE, each);
    Ok(())
}

/// Runs the tests with a word in their name. Passes the name and the outcome of each to `each`.
fn run_matching(word: &str, kernels: &[VmKernel], profile: &str, mut each: impl FnMut(&str, Result<()>)) {
    for kernel in kernels {
        let wanted = |check: &&VmCheck| check.kernels.contains(kernel) && check.name.contains(word);
        let usual = FAMILIES.iter().copied().flatten().filter(wanted).collect::<Vec<_>>();
        let of_nodes = nodes::CHECKS.iter().filter(wanted).collect::<Vec<_>>();
        let machines = [("", usual, usual_shape as VmAdjustment), (" of four nodes", of_nodes, nodes::shape)];
        for (machine, chosen, shape) in machines.into_iter().filter(|(_, chosen, _)| !chosen.is_empty()) {
            for (check, outcome) in
                chosen.iter().zip(outcomes(&chosen, |checks| run_in_machine(*kernel, checks, profile, shape)))
            {
                each(&format!("VM {kernel}{machine}: {}", check.name), outcome);
            }
        }
    }
}

/// Largest number of failed tests that run again: more are no accident.
const FLAKY: usize = 5;

/// Returns the outcome of each test. If a few fail, they are tried again in a machine that boots for them alone, and
/// said to have failed: an emulator that lacks CPU time may starve a program for seconds.
fn outcomes(checks: &[&VmCheck], boot: impl Fn(&[&VmCheck]) -> Vec<Result<()>>) -> Vec<Result<()>> {
    let mut outcomes = boot(checks);
    let failed: Vec<usize> = (0..checks.len()).filter(|index| outcomes[*index].is_err()).collect();
    let again: Vec<&VmCheck> = failed.iter().map(|index| checks[*index]).collect();
    if !(1..=FLAKY).contains(&again.len()) {
        return outcomes;
    }
    for (index, outcome) in failed.into_iter().zip(boot(&again)) {
        let first = std::mem::replace(&mut outcomes[index], outcome);
        println!("{}: tried twice; the first time: {:#}", checks[index].name, first.expect_err("it failed"));
    }
    outcomes
}

/// Changes a machine before it boots.
type VmAdjustment = fn(&mut VirtualMachine);

fn usual_shape(_: &mut VirtualMachine) {}

/// Runs tests under a single kernel, on a machine of this shape. Returns the outcome of each.
fn run_in_machine(
    kernel: VmKernel,
    checks: &[&VmCheck],
    profile: &str,
    shape: VmAdjustment,
) -> Vec<Result<()>> {
    let trials = match dist::example("binder_trials", profile) {
        Ok(trials) => trials.to_string_lossy().into_owned(),
        Err(error) => return checks.iter().map(|_| Err(anyhow::anyhow!("{error:#}"))).collect(),
    };
    let mut machine = VirtualMachine {
        kernel,
        memory: 512 << 20,
        cpus: 2,
        timeout: Duration::from_secs(60 + checks.iter().map(|check| u64::from(check.limit)).sum::<u64>()),
        silence: checks.iter().map(|check| Duration::from_secs(60 + u64::from(check.limit))).max(),
        append: String::new(),
        modules: ["binder_linux", "vsock_loopback"].map(str::to_owned).to_vec(),
        programs: vec![trials],
        overlay: None,
        profile: profile.to_owned(),
        topology: Vec::new(),
    };
    shape(&mut machine);
    match machine.run_patiently(&script(checks)) {
        Ok(ended) => (0..checks.len())
            .map(|index| {
                let ran =
                    Ran::read_outcome(&ended.out().join(index.to_string())).context("it did not run")?;
                checks[index].check_outcome(&ran)
            })
            .collect(),
        Err(error) => checks.iter().map(|_| Err(anyhow::anyhow!("{error:#}"))).collect(),
    }
}

/// Script that runs each command in a directory of its own, numbered in their order. It writes the name of the running
/// test
/// to the console, so that a machine which stands still is noticed.
pub fn script(checks: &[&VmCheck]) -> String {
    let mut script = String::new();
    for (index, check) in checks.iter().enumerate() {
        let (command, limit) = (quote_word(check.command), check.limit);
        let _ = writeln!(script, "echo {} >/dev/console", quote_word(check.name));
        let _ = writeln!(script, "mkdir -p /out/{index}/files && cd /out/{index}/files");
        let _ =
            writeln!(script, "timeout {limit} sh -c {command} >../stdout 2>../stderr; echo $? >../status");
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FAILS: VmCheck =
        VmCheck::new("a", ALL, "echo out; echo err >&2; exit 2", |ran| ran.check_stdout("out"));

    fn ran(check: &VmCheck) -> Ran {
        let place = tempfile::tempdir().unwrap();
        let script = script(&[check]).replace("/out/", &format!("{}/", place.path().display()));
        let script = script.replace("/dev/console", "/dev/null");
        crate::shell::output(std::process::Command::new("sh").args(["-c", &script])).unwrap();
        Ran::read_outcome(&place.path().join("0")).unwrap()
    }

    #[test]
    fn only_a_test_that_fails_twice_has_failed() {
        let checks =
            [VmCheck::new("sound", ALL, "", |_| Ok(())), FAILS, VmCheck::new("starved", ALL, "", |_| Ok(()))];
        let boots = std::cell::RefCell::new(Vec::new());
        let boot = |checks: &[&VmCheck]| {
            let names: Vec<_> = checks.iter().map(|check| check.name).collect();
            boots.borrow_mut().push(names.join(" "));
            let first = boots.borrow().len() == 1;
            let ends =
                |name: &&str| if *name == "a" || first && *name == "starved" { bail!("no") } else { Ok(()) };
            names.iter().map(ends).collect()
        };
        let ended = outcomes(&checks.each_ref(), boot);
        assert_eq!(ended.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(*boots.borrow(), ["sound a starved", "a starved"]);
    }

    #[test]
    fn the_exit_status_is_judged_before_what_was_said() {
        let ran = ran(&FAILS);
        assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (2, "out\n", "err\n"));
        let error = FAILS.check_outcome(&ran).unwrap_err().to_string();
        assert_eq!(error, "exit status 2 instead of 0: out\nerr\n");
        VmCheck { status: 2, ..FAILS }.check_outcome(&ran).unwrap();
    }

    #[test]
    fn names_are_unique_and_every_test_has_a_kernel() {
        let checks: Vec<&VmCheck> = FAMILIES.iter().copied().flatten().chain(nodes::CHECKS).collect();
        let names: BTreeSet<&str> = checks.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), checks.len());
        assert!(checks.iter().all(|check| !check.kernels.is_empty()));
    }
}
