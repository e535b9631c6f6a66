//! `cargo xtask vm`, which runs a command under another kernel.
//!
//! A Debian kernel boots under QEMU's software emulation with busybox, the static latscope and the kernel modules asked
//! for. The output of the command, its exit status and the files that it leaves in /out come back. The emulator shows
//! what a kernel can do, never how long it takes.

pub mod boot;
pub mod checks;
pub mod initramfs;
pub mod kernel;
mod modules;
mod programs;

use crate::{dist, shell};
use anyhow::Result;
use boot::VirtualMachine;
use clap::{Args, Subcommand};
use kernel::VmKernel;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct VmArguments {
    #[command(flatten)]
    machine: VirtualMachine,
    /// Directory for the files that the command leaves in /out
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    out: Option<PathBuf>,
    /// Command to run; `sh -c '…'` for more than one command
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
    #[command(subcommand)]
    test: Option<Test>,
}

#[derive(Subcommand)]
enum Test {
    /// Runs the tests that need another kernel, as `cargo xtask test --all` does
    Test {
        /// Only those with this in their name
        #[arg(default_value = "")]
        word: String,
        /// Only under these kernels
        #[arg(long, value_name = "KERNEL,…", value_delimiter = ',', default_values_t = checks::ALL.to_vec())]
        kernel: Vec<VmKernel>,
        /// Profile with which cargo builds latscope
        #[arg(long, default_value = dist::PROFILE)]
        profile: String,
    },
}

/// Runs a command and ends with its exit status, or runs the tests.
///
/// # Errors
/// Something is missing, or the machine does not run to its end.
pub fn run_or_test(arguments: &VmArguments) -> Result<ExitCode> {
    if let Some(Test::Test { word, kernel, profile }) = &arguments.test {
        return checks::run_and_report(word, kernel, profile);
    }
    let ended = arguments.machine.run_job(&initramfs::job(&arguments.command))?;
    if let Some(to) = &arguments.out {
        copy(&ended.out(), to)?;
    }
    Ok(ExitCode::from(ended.status))
}

/// Copies the contents of a directory into another.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    shell::output(Command::new("cp").arg("-a").arg(from.join(".")).arg(to)).map(drop)
}

/// Makes a path absolute, so that it stays valid when the working directory changes.
fn absolute(path: &str) -> std::io::Result<PathBuf> {
    std::path::absolute(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn parsed(words: &[&str]) -> Option<VmArguments> {
        let command = VmArguments::augment_args(clap::Command::new("vm"));
        let matches = command.try_get_matches_from(std::iter::once(&"vm").chain(words)).ok()?;
        VmArguments::from_arg_matches(&matches).ok()
    }

    #[test]
    fn the_machine_comes_before_the_dashes_and_the_command_after() {
        let words = ["--kernel", "rt612", "--memory", "1GiB", "--append", "-x y", "--modules", "a,b", "--"];
        let arguments = parsed(&[words.as_slice(), &["ls", "--out", "-l"]].concat()).unwrap();
        let machine = arguments.machine;
        assert_eq!(
            (machine.kernel, machine.memory, machine.append.as_str()),
            (VmKernel::Rt612, 1 << 30, "-x y")
        );
        assert_eq!(machine.modules, ["a", "b"]);
        assert_eq!(arguments.command, ["ls", "--out", "-l"]);
        assert!(arguments.test.is_none() && arguments.out.is_none());
    }

    #[test]
    fn a_command_is_needed_but_for_the_tests() {
        assert!(parsed(&[]).is_none() && parsed(&["--kernel", "std"]).is_none());
        let Some(Test::Test { word, kernel, .. }) = parsed(&["test", "binder"]).and_then(|found| found.test)
        else {
            panic!("no tests");
        };
        assert_eq!((word.as_str(), kernel.as_slice()), ("binder", checks::ALL));
    }
}
