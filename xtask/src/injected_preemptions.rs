//! Verdicts of `latscope selftest wake`. They are judged by what was found and not by lengths, which depend on the load
//! of
//! the machine.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Reason why the self-test cannot run on this machine, if it cannot.
pub fn reason_against() -> Option<&'static str> {
    let kinds = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let possible = kinds.contains("\ttracefs\n") && rustix::process::geteuid().is_root();
    (!possible).then_some("latscope selftest wake: it needs root and a kernel with tracefs")
}

/// Runs the self-test of a binary.
///
/// # Errors
/// The errors are those of [`are_found`].
pub fn run_selftest(binary: &Path) -> Result<()> {
    let output = Command::new(std::path::absolute(binary)?).args(["selftest", "wake"]).output()?;
    let text = [output.stdout, output.stderr].concat();
    are_found(&String::from_utf8_lossy(&text))
}

/// Checks verdicts: every preemption was found and attributed to the hog.
///
/// # Errors
/// A preemption was not found or not attributed.
pub fn are_found(verdicts: &str) -> Result<()> {
    for words in ["are found", "with thread cpu_hog"] {
        let line = verdicts.lines().find(|line| line.contains(words));
        let line = line.with_context(|| format!("no verdict {words:?} in: {verdicts}"))?;
        ensure!(line.starts_with("pass"), "{line}");
    }
    Ok(())
}

/// Checks verdicts: more than half of the preemptions were found and attributed to the hog.
///
/// # Errors
/// Half of the preemptions or fewer were found and attributed.
pub fn most_are_found(verdicts: &str) -> Result<()> {
    let number = |words: &str| {
        let line = verdicts.lines().find(|line| line.contains(words))?;
        let before = line.split(words).next()?;
        before.split_whitespace().filter_map(|word| word.parse::<u32>().ok()).next_back()
    };
    let injected_preemptions = number("injected preemptions of").context("no preemptions")?;
    for words in ["are found", "of them with thread cpu_hog"] {
        let found = number(words).with_context(|| format!("no verdict {words:?} in: {verdicts}"))?;
        ensure!(2 * found > injected_preemptions, "{words}: {found} of {injected_preemptions}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_not_judged_but_finds_are() {
        let said = |found: &str, named: &str| {
            are_found(&format!(
                "{found}  of 2 injected preemptions, 2 are found\nFAIL  1 of them with their length\n{named}  2 of them with thread cpu_hog (7)\n"
            ))
        };
        said("pass", "pass").unwrap();
        assert!(said("FAIL", "pass").is_err() && said("pass", "FAIL").is_err());
        assert!(are_found("latscope: no CPU").is_err());
        let most = |found: u32, named: u32| {
            most_are_found(&format!(
                "FAIL  of 20 injected preemptions of 5.00 ms each, {found} are found\nFAIL  {named} of them with thread cpu_hog (7)\n"
            ))
        };
        most(18, 17).unwrap();
        assert!(most(10, 18).is_err() && most(18, 3).is_err() && most_are_found("no").is_err());
    }
}
