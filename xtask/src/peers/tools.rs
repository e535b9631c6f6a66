//! Getting and running latscope and the tools it is compared with.

use crate::{dist, shell};
use anyhow::{Context, Result, bail, ensure};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::CpuList;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A tool to compare with.
pub enum Tool {
    /// A program out of a Debian package.
    Debian(&'static str, &'static str),
    /// A crate of the Cargo registry, in this version, and its program.
    Registry(&'static str, &'static str),
    /// A package of ours around a library, in `xtask/peers`: built static, for the VM.
    Package(&'static str),
}

impl Tool {
    /// The program's name.
    pub const fn program(&self) -> &'static str {
        match self {
            Tool::Debian(program, _) | Tool::Registry(program, _) | Tool::Package(program) => program,
        }
    }

    fn is_there(&self) -> bool {
        // What is built from here, cargo knows whether to build it anew.
        !matches!(self, Tool::Package(_))
            && (shell::has(self.program()) || place().join("bin").join(self.program()).is_file())
    }

    fn install(&self) -> Result<()> {
        let root = place();
        match self {
            Tool::Debian(_, package) => {
                let command =
                    format!("apt-get update && apt-get install -y --no-install-recommends {package}");
                shell::run(Command::new("sh").args(["-c", &command]))
            }
            Tool::Registry(program, version) => {
                let mut cargo = shell::cargo("install --locked --version");
                cargo
                    .args([version, program, "--root"])
                    .arg(&root)
                    .arg("--target-dir")
                    .arg(root.join("build"));
                shell::run(&mut cargo)
            }
            Tool::Package(program) => {
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

/// A tool that has not ended after so many seconds is ended.
const TIMEOUT_SECONDS: &str = "180";

/// Where crates are installed, and files of the comparisons.
pub fn place() -> PathBuf {
    shell::workspace().join("target/peers")
}

/// Installs the tools that are missing. Returns what cannot be had, and why.
///
/// # Errors
/// A Debian package is missing and this is not root; the text has the command.
pub fn install(tools: impl Iterator<Item = &'static Tool>) -> Result<Vec<(&'static str, String)>> {
    let mut lacking: Vec<(&str, String)> = Vec::new();
    for tool in tools.filter(|tool| !tool.is_there()) {
        if let Tool::Debian(program, package) = tool
            && shell::output(Command::new("id").arg("-u"))?.trim() != "0"
        {
            bail!("{program} is missing: run `sudo apt-get install {package}`, and this again");
        }
        if !lacking.iter().any(|(program, _)| *program == tool.program())
            && let Err(error) = tool.install()
        {
            lacking.push((tool.program(), format!("{error:#}")));
        }
    }
    Ok(lacking)
}

/// The machine's part of a command line.
pub struct Here {
    /// `{cpu}`: the last CPU allowed.
    cpu: u32,
    /// `{first}`: the first.
    first: u32,
    /// `{pair}`: the first and the last.
    pair: Option<String>,
    /// `{dir}`: where files are made.
    directory: PathBuf,
}

impl Here {
    /// Looks which CPUs this process may use.
    pub fn new() -> Result<Here> {
        let status = fs::read_to_string("/proc/self/status").context("no /proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let cpus: CpuList = list.context("no Cpus_allowed_list in /proc/self/status")?.trim().parse()?;
        let (first, last) = cpus.0.first().zip(cpus.0.last()).context("no CPU is allowed")?;
        let directory = place().join("files");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Here {
            cpu: *last,
            first: *first,
            pair: (first != last).then(|| format!("{first},{last}")),
            directory,
        })
    }

    /// The last CPU allowed.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// The words of a command line.
    ///
    /// # Errors
    /// It needs two CPUs and there is one.
    pub fn words(&self, line: &str) -> Result<Vec<String>> {
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

    /// A peer, to be started; `timeout` ends it when it takes for ever.
    ///
    /// # Errors
    /// It needs two CPUs and there is one.
    pub fn command(&self, line: &str) -> Result<Command> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command.args(["-k", "5", TIMEOUT_SECONDS]).args(self.words(line)?);
        command.env("PATH", format!("{}:{path}", place().join("bin").display())).env("LC_ALL", "C");
        Ok(command)
    }

    /// Runs a peer; what it prints on stdout and stderr.
    ///
    /// # Errors
    /// It cannot be run, takes for ever, or fails; the text has its last line.
    pub fn run(&self, line: &str) -> Result<String> {
        let output = self.command(line)?.output().context("cannot start timeout (coreutils)")?;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let said = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            bail!("{} ({})", said.trim(), output.status);
        }
        Ok(text.into_owned())
    }
}

/// The command under comparison.
pub struct Latscope(PathBuf);

impl Latscope {
    /// Builds the release binary.
    pub fn build() -> Result<Latscope> {
        shell::run(&mut shell::cargo("build --release --package latscope --locked"))?;
        Ok(Latscope(shell::workspace().join("target/release/latscope")))
    }

    /// The result of a run with these arguments.
    ///
    /// # Errors
    /// It fails; the text is what it says.
    pub fn measure(&self, words: &[String]) -> Result<Report> {
        let words = [words, &["--quiet", "--json", "-"].map(str::to_owned)].concat();
        Ok(Report::from_json(self.says(&words)?.as_bytes())?)
    }

    /// A call of it.
    pub fn command(&self) -> Command {
        Command::new(&self.0)
    }

    /// What it prints on stdout with these arguments.
    ///
    /// # Errors
    /// It fails; the text is what it says.
    pub fn says(&self, words: &[String]) -> Result<String> {
        let output = Command::new(&self.0).args(words).output()?;
        if !output.status.success() {
            bail!("latscope {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The figures of the one point that these arguments leave.
    ///
    /// # Errors
    /// As [`Latscope::measure`], or there is not one point.
    pub fn point(&self, words: &[String]) -> Result<Measurement> {
        let mut points = self.measure(words)?.measurements;
        // The one pair of processes is summed up, too.
        points.retain(|point| point.params.get("pair").is_none_or(|pair| pair.to_string() != "all"));
        let count = points.len();
        let only = points.pop().filter(|_| count == 1);
        only.with_context(|| format!("latscope {} has {count} points", words.join(" ")))
    }

    /// The median of the one point that these arguments leave, ns.
    ///
    /// # Errors
    /// As [`Latscope::measure`], or the point has no figure.
    pub fn median(&self, words: &[String]) -> Result<f64> {
        let point = self.point(words)?;
        let why = || format!("latscope: {}", point.reason.as_deref().unwrap_or("no figure"));
        point.typical().filter(|ns| *ns > 0.0).with_context(why)
    }
}
