//! What `latscope selftest wake` says, read for what it finds and not for how
//! long things took: that depends on what else the machine does.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Why it cannot run on this machine, if so.
pub fn reason_against() -> Option<&'static str> {
    let traceable = Path::new("/sys/kernel/tracing/instances").exists();
    let possible = traceable && rustix::process::geteuid().is_root();
    (!possible).then_some("latscope selftest wake: it needs root and a mounted tracefs")
}

/// Runs it.
///
/// # Errors
/// As [`are_found`].
pub fn look(binary: &Path) -> Result<()> {
    let output = Command::new(std::path::absolute(binary)?).args(["selftest", "wake"]).output()?;
    let text = [output.stdout, output.stderr].concat();
    are_found(&String::from_utf8_lossy(&text))
}

/// Every theft was found and put down to the thief, as these verdicts say.
///
/// # Errors
/// Not every one.
pub fn are_found(verdicts: &str) -> Result<()> {
    for words in ["are found", "with thread thief"] {
        let line = verdicts.lines().find(|line| line.contains(words));
        let line = line.with_context(|| format!("no verdict {words:?} in: {verdicts}"))?;
        ensure!(line.starts_with("pass"), "{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_not_judged_but_finds_are() {
        let said = |found: &str, thief: &str| {
            are_found(&format!(
                "{found}  of 2 thefts, 2 are found\nFAIL  1 of them with their length\n{thief}  2 of them with thread thief (7)\n"
            ))
        };
        said("pass", "pass").unwrap();
        assert!(said("FAIL", "pass").is_err() && said("pass", "FAIL").is_err());
        assert!(are_found("latscope: no CPU").is_err());
    }
}
