//! `--deepest-idle-state`, which keeps the used CPUs from all idle states deeper than a given one.

use crate::getopt::CommandLineRefusal;
use anyhow::{Context, Result, anyhow};
use latscope_process::guardian::{Guardian, UndoAction};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes `1` to the switches of the states above `deepest` (-1: of all states), and has the guardian restore the
/// former values.
///
/// # Errors
/// There is no cpuidle driver, or its switches cannot be written.
pub fn restrict(root: &Path, cpus: &[u32], deepest: i64, guardian: &Guardian) -> Result<()> {
    for cpu in cpus {
        let switches = switch_paths(root, *cpu, deepest)?;
        for path in switches {
            let before = fs::read_to_string(&path)?;
            // Undone when the guardian is dropped, with the rest of its journal.
            let _ = guardian.journal(UndoAction::Write(path.clone(), before.trim().to_owned()))?;
            fs::write(&path, "1").with_context(|| format!("{}: run as root", path.display()))?;
        }
    }
    Ok(())
}

/// Paths of the switches of a CPU's idle states above `deepest`.
fn switch_paths(root: &Path, cpu: u32, deepest: i64) -> Result<Vec<PathBuf>> {
    let directory = root.join(format!("cpu{cpu}/cpuidle"));
    let missing = || {
        let text = "FATAL: --deepest-idle-state needs a cpuidle driver, and this machine has none (a virtual machine's \
                    idle states are the host's)";
        anyhow!(CommandLineRefusal::Fatal(text.to_owned()))
    };
    let entries = fs::read_dir(&directory).map_err(|_| missing())?;
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("state")?.parse::<i64>().ok();
    let states = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut above: Vec<PathBuf> = states
        .filter(|path| number(path).is_some_and(|number| number > deepest))
        .map(|path| path.join("disable"))
        .collect();
    above.sort();
    Ok(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for state in 0..4 {
            let directory = root.path().join(format!("cpu1/cpuidle/state{state}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("disable"), if state == 3 { "1\n" } else { "0\n" }).unwrap();
        }
        root
    }

    #[test]
    fn only_the_states_above_are_meant() {
        let root = tree();
        let names = |deepest| {
            let found = switch_paths(root.path(), 1, deepest).unwrap();
            found
                .iter()
                .map(|path| path.parent().unwrap().file_name().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(1), ["state2", "state3"]);
        assert_eq!(names(-1).len(), 4);
        assert_eq!(names(9).len(), 0);
    }

    #[test]
    fn without_a_driver_it_says_so_in_a_line() {
        let text = switch_paths(tree().path(), 0, 1).unwrap_err().to_string();
        assert!(text.contains("cpuidle driver") && !text.contains('\n'), "{text}");
    }
}
