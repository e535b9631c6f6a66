//! The benchmark of openEuler's MCS: `mica_main` and `pty_test`. Their
//! arguments in, our channels, their text out.
//!
//! Reading the arguments and laying out text are pure functions; each program's
//! `run` joins them. What differs is in `docs/mica.md`.

pub mod mica_main;
pub mod pty_test;
pub mod text;

mod pings;

use super::rt::arguments::{Given, Spec, number};
use super::rt::{Refusal, Tool};
use anyhow::{Context, Result};
use latscope_core::units::{counted, format_time, parse_duration};
use latscope_host::eprintln;
use latscope_host::stdout::print;
use latscope_os::signal::{Signals, TERMINATION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

/// Both, by name.
pub static TOOLS: &[Tool] = &[
    Tool { name: mica_main::NAME, summary: "pings to a client operating system", run: mica_main::run },
    Tool { name: pty_test::NAME, summary: "ping and bandwidth over a terminal", run: pty_test::run },
];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Between two pings, as the originals have it.
const PACE: Duration = Duration::from_millis(200);

/// `--pace`, which both have.
const PACE_OPTION: Spec =
    Spec::value(None, "pace", "TIME", "from one ping to the next; 0ms for back to back [200ms]").ours();

fn pace(given: &Given) -> Result<Duration, Refusal> {
    let text = given.value.as_deref().unwrap_or_default();
    parse_duration(text).map_err(|error| Refusal::Usage(format!("--pace {text}: {error}")))
}

/// The number of an option, 0 meaning for ever.
fn count(given: &Given) -> Result<u64, Refusal> {
    let text = given.value.as_deref().unwrap_or_default();
    let whole = number(text).filter(|(_, whole)| *whole).and_then(|(number, _)| u64::try_from(number).ok());
    whole.ok_or_else(|| Refusal::Usage(format!("{} {text} is no number", given.spec.name())))
}

/// Answers where a call was refused; other errors are passed on.
fn settle(name: &str, specs: &[Spec], outcome: Result<u8>) -> Result<u8> {
    let refusal = match outcome {
        Ok(code) => return Ok(code),
        Err(error) => error.downcast::<Refusal>()?,
    };
    match refusal {
        Refusal::Help => {
            print(&usage(name, specs));
            return Ok(0);
        }
        Refusal::Usage(text) => eprintln!("{name}: {text}\n{}", usage(name, specs)),
        Refusal::Fatal(text) => eprintln!("latscope: {name}: {text}"),
    }
    Ok(1)
}

fn usage(name: &str, specs: &[Spec]) -> String {
    let mut text = format!("Usage:\n{name} <options>\n\n");
    for spec in specs {
        let _ = writeln!(text, "{:<28} {}", spec.forms(), spec.help);
    }
    text + "\nThis is latscope, with the options and the output of the benchmark of MCS.\n"
}

/// Says what the figures do not.
fn note(name: &str, text: &str) {
    eprintln!("latscope: {name}: note: {text}");
}

/// How many pings there are, and how far apart.
fn times(loops: u64, pace: Duration) -> String {
    let count = if loops == 0 { "without end".to_owned() } else { counted(loops, "time") };
    format!("{count}, {} apart", format_time(pace.as_nanos() as f64))
}

fn signals() -> Result<Signals> {
    Signals::block(&TERMINATION).context("signals cannot be waited for")
}

/// Waits; whether a signal ended that.
fn pause(signals: &Signals, time: Duration) -> Result<bool> {
    let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(signals.next()?.is_some()),
        Err(error) => Err(error.into()),
    }
}

/// Lines that are replaced on a terminal; elsewhere the last of them are printed, once.
struct Lines {
    live: bool,
    last: Option<String>,
}

impl Lines {
    fn new() -> Lines {
        Lines { live: std::io::stdout().is_terminal(), last: None }
    }

    fn show(&mut self, text: String) {
        if self.live {
            let up = self.last.as_ref().map_or(0, |last| last.lines().count());
            let back = if up > 0 { format!("\x1b[{up}A") } else { String::new() };
            print(&(back + &text));
        }
        self.last = Some(text);
    }

    fn end(self) {
        if let Some(text) = self.last.filter(|_| !self.live) {
            print(&text);
        }
    }
}
