//! What is seen while periodic threads are measured: a live screen on a
//! terminal, lines of text elsewhere. Both are observers of the run: they are
//! fed with snapshots on the coordinator and never touch a measuring thread.

mod ansi;
mod draw;
mod lines;
mod model;
mod plot;
mod screen;
mod seconds;
mod table;
#[cfg(test)]
mod testing;
mod theme;
mod view;
mod words;

use super::options::flag;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches};
use latscope_engine::observers::{Event, Observer};
use latscope_host::terminal::Terminal;
use lines::Lines;
use screen::Screen;
use std::io::{IsTerminal, stderr, stdout};

/// What was asked to be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The screen on a terminal, else lines.
    #[default]
    Usual,
    /// The screen.
    Screen,
    /// Lines.
    Lines,
    /// Nothing.
    Nothing,
}

/// Looks away.
struct Nobody;

impl Observer for Nobody {
    fn observe(&mut self, _: &Event) {}
}

/// Options about it.
pub fn arguments() -> Vec<Arg> {
    vec![
        flag("live", "The live screen on stderr, also where stdout is no terminal").conflicts_with("no-live"),
        flag("no-live", "Plain lines instead of the live screen"),
    ]
}

/// What shows how the run stands, as these options want it.
///
/// # Errors
/// As [`observer`].
pub fn watcher(matches: &ArgMatches, quiet: bool) -> Result<Box<dyn Observer>> {
    observer(match quiet {
        true => Wanted::Nothing,
        _ if matches.get_flag("live") => Wanted::Screen,
        _ if matches.get_flag("no-live") => Wanted::Lines,
        _ => Wanted::Usual,
    })
}

/// An observer that shows how the run stands, on stderr.
///
/// # Errors
/// The screen is wanted, and stderr is no terminal of ours.
pub fn observer(wanted: Wanted) -> Result<Box<dyn Observer>> {
    let lines = || Box::new(Lines::new(stderr()));
    match wanted {
        Wanted::Nothing => Ok(Box::new(Nobody)),
        Wanted::Lines => Ok(lines()),
        Wanted::Usual => match terminal() {
            Ok(terminal) if is_watched() => Ok(Box::new(Screen::new(terminal, in_colour()))),
            _ => Ok(lines()),
        },
        Wanted::Screen => Ok(Box::new(Screen::new(terminal()?, in_colour()))),
    }
}

/// The terminal of stderr: what is drawn does not mix with results on stdout,
/// and keys come from it even where stdin is a pipe.
fn terminal() -> Result<Terminal> {
    let fd = rustix::io::dup(stderr()).context("stderr is closed")?;
    let terminal = Terminal::of(fd).context("the live screen needs a terminal on stderr")?;
    if !terminal.in_foreground() {
        bail!("the live screen cannot be drawn by a job in the background");
    }
    Ok(terminal)
}

/// Whether somebody looks at the terminal who would not rather have text.
fn is_watched() -> bool {
    // What reads our stdout may draw on the terminal itself: a pager.
    stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// By `NO_COLOR`, `CLICOLOR` and what the terminal is.
fn in_colour() -> bool {
    anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never
}
