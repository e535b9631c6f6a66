//! Installation and execution of latscope and of the tools for comparison.

use crate::{dist, shell};
use anyhow::{Context, Result, bail, ensure};
use latscope_core::param;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::CpuList;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Tool to compare with.
pub enum PeerTool {
    /// Program and its Debian package.
    Debian(&'static str, &'static str),
    /// Crate of the Cargo registry, in this version, and its program.
    Registry(&'static str, &'static str),
    /// Package in `xtask/peers` around a library, built as a static program for the VM.
    Package(&'static str),
}

impl PeerTool {
    /// Name of the program.
    pub const fn program(&self) -> &'static str {
        match self {
            PeerTool::Debian(program, _) | PeerTool::Registry(program, _) | PeerTool::Package(program) => {
                program
            }
        }
    }

    fn is_there(&self) -> bool {
        // What is built from here, cargo knows whether to build it anew.
        !matches!(self, PeerTool::Package(_))
            && (shell::is_on_path(self.program()) || peers_dir().join("bin").join(self.program()).is_file())
    }

    fn install_tool(&self) -> Result<()> {
        let root = peers_dir();
        match self {
            PeerTool::Debian(_, package) => {
                let command =
                    format!("apt-get update && apt-get install -y --no-install-recommends {package}");
                shell::run_command(Command::new("sh").args(["-c", &command]))
            }
            PeerTool::Registry(program, version) => {
                let mut cargo = shell::cargo("install --locked --version");
                cargo
                    .args([version, program, "--root"])
                    .arg(&root)
                    .arg("--target-dir")
                    .arg(root.join("build"));
                shell::run_command(&mut cargo)
            }
            PeerTool::Package(program) => {
                let built = dist::package(
                    &shell::workspace().join("xtask/peers").join(program),
                    &root.join("build"),
                )?;
                fs::create_dir_all(root.join("bin"))?;
                shell::copy_program(&built.join(program), &root.join("bin").join(program))
            }
        }
    }
}

/// Time in s after which a tool is ended.
const TIMEOUT_SECONDS: &str = "180";

/// Directory of installed crates and of the files of comparisons.
pub fn peers_dir() -> PathBuf {
    shell::workspace().join("target/peers")
}

/// Installs the tools that are missing. Returns those that cannot be installed, with the reasons.
///
/// # Errors
/// A Debian package is missing and this process is not root. The text has the command.
pub fn install_missing(
    tools: impl Iterator<Item = &'static PeerTool>,
) -> Result<Vec<(&'static str, String)>> {
    let mut lacking: Vec<(&str, String)> = Vec::new();
    for tool in tools.filter(|tool| !tool.is_there()) {
        if let PeerTool::Debian(program, package) = tool
            && shell::output(Command::new("id").arg("-u"))?.trim() != "0"
        {
            bail!("{program} is missing: run `sudo apt-get install {package}`, and this again");
        }
        if !lacking.iter().any(|(program, _)| *program == tool.program())
            && let Err(error) = tool.install_tool()
        {
            lacking.push((tool.program(), format!("{error:#}")));
        }
    }
    Ok(lacking)
}

/// Values of this machine that are filled into command lines.
pub struct PlaceholderValues {
    /// Value of `{cpu}`: the last allowed CPU.
    cpu: u32,
    /// Value of `{first}`: the first allowed CPU.
    first: u32,
    /// Value of `{pair}`: the first and the last allowed CPU; `None` if there is one CPU only.
    pair: Option<String>,
    /// Value of `{dir}`: the directory in which files are made.
    directory: PathBuf,
}

impl PlaceholderValues {
    /// Reads which CPUs this process may use.
    pub fn new() -> Result<PlaceholderValues> {
        let status = fs::read_to_string("/proc/self/status").context("no /proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let cpus: CpuList = list.context("no Cpus_allowed_list in /proc/self/status")?.trim().parse()?;
        let (first, last) = cpus.0.first().zip(cpus.0.last()).context("no CPU is allowed")?;
        let directory = peers_dir().join("files");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(PlaceholderValues {
            cpu: *last,
            first: *first,
            pair: (first != last).then(|| format!("{first},{last}")),
            directory,
        })
    }

    /// Last CPU that this process may use.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Returns the words of a command line, with values filled in.
    ///
    /// # Errors
    /// The line needs two CPUs and there is only one.
    pub fn fill_words(&self, line: &str) -> Result<Vec<String>> {
        ensure!(
            self.pair.is_some() || !(line.contains("{pair}") || line.contains("{first}")),
            "it needs two CPUs"
        );
        let word = |word: &str| {
            word.replace("{cpu}", &self.cpu.to_string())
                .replace("{first}", &self.first.to_string())
                .replace("{pair}", self.pair.as_deref().unwrap_or_default())
                .replace("{dir}", &self.directory.to_string_lossy())
        };
        Ok(line.split_whitespace().map(word).collect())
    }

    /// Command that starts a peer. `timeout` ends a peer that takes too long.
    ///
    /// # Errors
    /// The line needs two CPUs and there is only one.
    pub fn peer_command(&self, line: &str) -> Result<Command> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command.args(["-k", "5", TIMEOUT_SECONDS]).args(self.fill_words(line)?);
        command.env("PATH", format!("{}:{path}", peers_dir().join("bin").display())).env("LC_ALL", "C");
        Ok(command)
    }

    /// Runs a peer. Returns its output on stdout and stderr.
    ///
    /// # Errors
    /// The peer cannot be run, takes too long, or fails. The text has its last line.
    pub fn run_peer(&self, line: &str) -> Result<String> {
        let output = self.peer_command(line)?.output().context("cannot start timeout (coreutils)")?;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let said = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            bail!("{} ({})", said.trim(), output.status);
        }
        Ok(text.into_owned())
    }
}

/// Binary of latscope that is compared.
pub struct LatscopeBinary(PathBuf);

impl LatscopeBinary {
    /// Builds the release binary.
    pub fn build() -> Result<LatscopeBinary> {
        shell::run_command(&mut shell::cargo("build --release --package latscope --locked"))?;
        Ok(LatscopeBinary(shell::workspace().join("target/release/latscope")))
    }

    /// Returns the result of a run with these arguments.
    ///
    /// # Errors
    /// The run fails. The text is latscope's output on stderr.
    pub fn measure_report(&self, words: &[String]) -> Result<Report> {
        let words = [words, &["--quiet", "--json", "-"].map(str::to_owned)].concat();
        Ok(Report::from_json(self.read_output(&words)?.as_bytes())?)
    }

    /// Command that runs the binary.
    pub fn command(&self) -> Command {
        Command::new(&self.0)
    }

    /// Output on stdout with these arguments.
    ///
    /// # Errors
    /// The run fails. The text is latscope's output on stderr.
    pub fn read_output(&self, words: &[String]) -> Result<String> {
        let output = Command::new(&self.0).args(words).output()?;
        if !output.status.success() {
            bail!("latscope {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Figures of the only point that these arguments leave.
    ///
    /// # Errors
    /// The errors are those of [`LatscopeBinary::measure_report`], or there is not exactly one point.
    pub fn measure_point(&self, words: &[String]) -> Result<Measurement> {
        let mut points = self.measure_report(words)?.measurements;
        // The one pair of processes is summed up, too.
        points.retain(|point| !point.has_param_value(param::PAIR, "all"));
        let count = points.len();
        let only = points.pop().filter(|_| count == 1);
        only.with_context(|| format!("latscope {} has {count} points", words.join(" ")))
    }

    /// Median of the only point that these arguments leave, in ns.
    ///
    /// # Errors
    /// The errors are those of [`LatscopeBinary::measure_point`], or the point has no figure.
    pub fn median(&self, words: &[String]) -> Result<f64> {
        let point = self.measure_point(words)?;
        let why = || format!("latscope: {}", point.joined_reasons().as_deref().unwrap_or("no figure"));
        point.typical().filter(|ns| *ns > 0.0).with_context(why)
    }
}
