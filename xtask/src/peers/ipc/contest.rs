//! Quantities that latscope and another tool measure on this machine.

use super::ContestLimit;
use crate::peers::parse::ToolFigureLocator;
use crate::peers::tools::{LatscopeBinary, PeerTool, PlaceholderValues};
use anyhow::{Context, Result, bail};
use latscope_core::report::Summary;
use std::fmt;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Contest of latscope with another tool. In command lines, `{cpu}`, `{first}` and `{pair}` are filled in.
pub struct IpcContest {
    /// Name on the command line.
    pub name: &'static str,
    /// Meaning of both figures.
    pub what: &'static str,
    /// Side that latscope measures.
    pub ours: ContestSide,
    /// Tool to compare with; `None` if latscope is compared with itself.
    pub tool: Option<&'static PeerTool>,
    /// Side that the other tool measures.
    pub theirs: ContestSide,
    /// Limits, in the order of both sides' figures.
    pub rows: &'static [ContestLimit],
    /// Remaining differences between the two patterns.
    pub differs: &'static str,
}

/// Command lines of a side, and the places of its figures.
pub enum ContestSide {
    /// Point that latscope measures.
    Point(&'static str, &'static [SummaryFigureFn]),
    /// Output that latscope prints as another tool would.
    Personality(&'static str, &'static [ToolFigureLocator]),
    /// Output that another tool prints.
    Tool(&'static str, &'static [ToolFigureLocator]),
    /// Server in the first line, which runs as long as the second line.
    Served(&'static str, &'static str, &'static [ToolFigureLocator]),
}

/// Function that returns a figure of a summary.
pub type SummaryFigureFn = fn(&Summary) -> Option<f64>;

impl fmt::Display for ContestSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContestSide::Point(line, _) | ContestSide::Personality(line, _) | ContestSide::Tool(line, _) => {
                f.write_str(line)
            }
            ContestSide::Served(server, line, _) => write!(f, "{server} & {line}"),
        }
    }
}

impl ContestSide {
    /// Runs the side once. Returns its figures, in ns.
    ///
    /// # Errors
    /// The side does not run, or prints no figure.
    pub fn run_side(&self, latscope: &LatscopeBinary, here: &PlaceholderValues) -> Result<Vec<f64>> {
        match self {
            ContestSide::Point(line, figures) => {
                let point = latscope.measure_point(&here.fill_words(line)?)?;
                let reason = point.joined_reasons().unwrap_or_else(|| "no figure".to_owned());
                let found: Option<Vec<f64>> = figures.iter().map(|figure| figure(&point.summary)).collect();
                found.with_context(|| format!("latscope {line}: {reason}"))
            }
            ContestSide::Personality(line, figures) => {
                read_figures(&latscope.read_output(&here.fill_words(line)?)?, figures)
            }
            ContestSide::Tool(line, figures) => read_figures(&here.run_peer(line)?, figures),
            ContestSide::Served(server, line, figures) => {
                let _server = Server::start_server(here, server)?;
                read_figures(&patiently(here, line)?, figures)
            }
        }
    }
}

fn read_figures(output: &str, figures: &[ToolFigureLocator]) -> Result<Vec<f64>> {
    let found: Option<Vec<f64>> = figures.iter().map(|figure| figure.parse_figure(output)).collect();
    found.with_context(|| format!("no figure in: {}", output.lines().last().unwrap_or_default()))
}

/// Runs a client, and tries again while its server is not ready.
fn patiently(here: &PlaceholderValues, line: &str) -> Result<String> {
    for _ in 0..20 {
        sleep(Duration::from_millis(100));
        if let Ok(said) = here.run_peer(line) {
            return Ok(said);
        }
    }
    here.run_peer(line)
}

/// Server that ends when this value is dropped.
struct Server(Child);

impl Server {
    fn start_server(here: &PlaceholderValues, line: &str) -> Result<Server> {
        let mut command = here.peer_command(line)?;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        match child.try_wait()? {
            Some(status) => bail!("{line} ended at once ({status})"),
            None => Ok(Server(child)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `timeout` hands it on to the server, which KILL would not.
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
