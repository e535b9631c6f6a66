//! Changes of the machine that the guardian undoes.

use crate::leftover::Leftover;
use crate::terminal::KeyModes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Action that undoes a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UndoAction {
    /// Remove a directory of latscope with its content.
    RemoveDirectory(PathBuf),
    /// Remove an empty directory, such as a trace instance, whose files are the kernel's.
    RemoveInstance(PathBuf),
    /// Leave the alternate screen of the terminal on stderr, and restore its modes.
    RestoreTerminal(KeyModes),
    /// Remove a leftover of an exchange between processes.
    Remove(Leftover),
    /// Write the previous value to a file of the kernel.
    Write(PathBuf, String),
    /// Kill a group of processes.
    EndGroup(u32),
    /// Run a command of the shell, once.
    Shell(String),
}

impl fmt::Display for UndoAction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            UndoAction::RemoveDirectory(path) | UndoAction::RemoveInstance(path) => {
                write!(f, "remove the directory {}", path.display())
            }
            UndoAction::RestoreTerminal(_) => f.write_str("restore the terminal"),
            UndoAction::Remove(leftover) => write!(f, "remove {leftover}"),
            UndoAction::Write(path, text) => write!(f, "write {:?} to {}", text.trim(), path.display()),
            UndoAction::EndGroup(group) => write!(f, "end the process group {group}"),
            UndoAction::Shell(command) => write!(f, "run `{command}`"),
        }
    }
}
