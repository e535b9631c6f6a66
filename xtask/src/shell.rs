//! Functions that run other programs.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Features with which lints, tests and the ARM guest compile the workspace, so that it is compiled once.
pub const FEATURES: &str = "--features latscope/vhost-user";

/// Directory of the workspace.
pub fn workspace() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}

/// Directory in which cargo builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// Quotes a word so that the shell takes it as it is.
pub fn quote_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Runs a program with its output on the screen.
///
/// # Errors
/// The program cannot be started, or fails.
pub fn run_command(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", command_line(command));
    let status = command.status().with_context(|| format!("cannot start {}", command_line(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", command_line(command));
    }
    Ok(())
}

/// Runs a program and returns what it printed on stdout.
///
/// # Errors
/// The program cannot be started, or fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", command_line(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", command_line(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies a program that is run afterwards, even over a running program. Another process makes the copy, because a
/// child that this process forks at that time would hold the copy open, and the copy could not be run.
///
/// # Errors
/// There is no such program, or the disk is full.
pub fn copy_program(from: &Path, to: &Path) -> Result<()> {
    output(Command::new("cp").arg("--remove-destination").arg("--").args([from, to])).map(drop)
}

/// Writes a script that is run afterwards. As in [`copy_program`], another process writes it.
///
/// # Errors
/// The disk is full.
pub fn write_script(path: &Path, text: &str) -> Result<()> {
    let write = r#"rm -f "$1" && printf %s "$2" > "$1" && chmod 755 "$1""#;
    output(Command::new("sh").args(["-c", write, "sh"]).arg(path).arg(text)).map(drop)
}

/// Returns a cargo command with these words.
pub fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split_whitespace());
    command
}

/// Returns true if a program is on the path.
pub fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Command line that a user would type for a command.
pub fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
