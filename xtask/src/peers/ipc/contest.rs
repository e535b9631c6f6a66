//! A quantity that latscope and another tool measure on this machine.

use super::Limit;
use crate::peers::parse::Figure;
use crate::peers::tools::{Here, Latscope, Tool};
use anyhow::{Context, Result, bail};
use latscope_core::report::Summary;
use std::fmt;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A contest. In command lines `{cpu}`, `{first}` and `{pair}` are filled in.
pub struct Contest {
    /// Its name on the command line.
    pub name: &'static str,
    /// What both figures are.
    pub what: &'static str,
    /// latscope's side.
    pub ours: Side,
    /// The other tool; `None` where latscope is beside itself.
    pub tool: Option<&'static Tool>,
    /// Its side.
    pub theirs: Side,
    /// What is judged, in the order of both sides' figures.
    pub rows: &'static [Limit],
    /// Where the two patterns differ all the same.
    pub differs: &'static str,
}

/// How a side is run, and where its figures stand.
pub enum Side {
    /// latscope measures one point.
    Point(&'static str, &'static [Of]),
    /// latscope prints, as another tool would.
    Personality(&'static str, &'static [Figure]),
    /// Another tool prints.
    Tool(&'static str, &'static [Figure]),
    /// The first line is a server as long as the second runs.
    Served(&'static str, &'static str, &'static [Figure]),
}

/// A figure of a summary.
pub type Of = fn(&Summary) -> Option<f64>;

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Side::Point(line, _) | Side::Personality(line, _) | Side::Tool(line, _) => f.write_str(line),
            Side::Served(server, line, _) => write!(f, "{server} & {line}"),
        }
    }
}

impl Side {
    /// Runs it once; its figures, ns.
    ///
    /// # Errors
    /// It does not run, or prints no figure.
    pub fn run(&self, latscope: &Latscope, here: &Here) -> Result<Vec<f64>> {
        match self {
            Side::Point(line, figures) => {
                let point = latscope.point(&here.words(line)?)?;
                let reason = point.reason.unwrap_or_else(|| "no figure".to_owned());
                let found: Option<Vec<f64>> = figures.iter().map(|figure| figure(&point.summary)).collect();
                found.with_context(|| format!("latscope {line}: {reason}"))
            }
            Side::Personality(line, figures) => read(&latscope.says(&here.words(line)?)?, figures),
            Side::Tool(line, figures) => read(&here.run(line)?, figures),
            Side::Served(server, line, figures) => {
                let _server = Server::start(here, server)?;
                read(&patiently(here, line)?, figures)
            }
        }
    }
}

fn read(output: &str, figures: &[Figure]) -> Result<Vec<f64>> {
    let found: Option<Vec<f64>> = figures.iter().map(|figure| figure.read(output)).collect();
    found.with_context(|| format!("no figure in: {}", output.lines().last().unwrap_or_default()))
}

/// A client is tried again while its server is not there yet.
fn patiently(here: &Here, line: &str) -> Result<String> {
    for _ in 0..20 {
        sleep(Duration::from_millis(100));
        if let Ok(said) = here.run(line) {
            return Ok(said);
        }
    }
    here.run(line)
}

/// A server that ends with this.
struct Server(Child);

impl Server {
    fn start(here: &Here, line: &str) -> Result<Server> {
        let mut command = here.command(line)?;
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
