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

use anyhow::{Context, Result, bail};
use clap::Args;
use latscope_engine::observers::Observer;
use latscope_host::terminal::Terminal;
pub use lines::Lines;
use screen::Screen;
use std::io::{IsTerminal, stderr, stdout};

// What is shown while periodic threads are measured.
#[derive(Debug, Args)]
pub struct LiveArguments {
    /// The live screen on stderr, also where stdout is no terminal
    #[arg(long, conflicts_with_all = ["no_live", "quiet"])]
    live: bool,
    /// Plain lines instead of the live screen
    #[arg(long)]
    no_live: bool,
}

impl LiveArguments {
    /// An observer that shows how the run stands, on stderr: the screen on a terminal, else lines.
    ///
    /// # Errors
    /// The screen is wanted, and stderr is no terminal of ours.
    pub fn watcher(&self) -> Result<Box<dyn Observer>> {
        let usual = !self.no_live && is_watched();
        match (self.live || usual).then(terminal) {
            Some(Ok(terminal)) => Ok(Box::new(Screen::new(terminal, in_colour()))),
            Some(Err(error)) if self.live => Err(error),
            _ => Ok(Box::new(Lines::new(stderr()))),
        }
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

/// Whether the screen can be seen: stdout is a terminal as well, and no dumb one.
fn is_watched() -> bool {
    // What reads our stdout may draw on the terminal itself: a pager.
    stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// By `NO_COLOR`, `CLICOLOR` and what the terminal is.
fn in_colour() -> bool {
    anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never
}
