//! Display while threads, calls and messages are measured: a live screen on a terminal, lines of text elsewhere. Both
//! are observers of the run: they receive snapshots on the coordinator and never touch a measuring thread.

mod ansi;
mod draw;
mod lines;
mod model;
mod plot;
mod runs;
mod screen;
mod seconds;
mod table;
#[cfg(test)]
mod testing;
mod theme;
mod view;
mod words;

use anyhow::{Context, Result, ensure};
use clap::Args;
use latscope_engine::observers::{Observer, ProgressStyle};
use latscope_process::terminal::InteractiveTerminal;
use lines::LiveLineWriter;
pub use lines::newly_exceeded;
pub use runs::{RunsScreen, RunsScreenCell, RunsScreenModel};
use screen::LiveScreen;
use std::io::{IsTerminal, stderr, stdout};

// What is shown while it is measured.
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
    /// Returns an observer that shows the state of the run on stderr: the screen on a terminal, else lines.
    ///
    /// # Errors
    /// The screen was requested, but stderr is not the process's own terminal.
    pub fn create_observer(&self, style: ProgressStyle) -> Result<Box<dyn Observer>> {
        self.watcher_or(style, || Box::new(LiveLineWriter::new(stderr())))
    }

    /// The screen on a terminal, else another observer.
    ///
    /// # Errors
    /// As [`watcher`](Self::watcher).
    pub fn watcher_or(
        &self,
        style: ProgressStyle,
        other: impl FnOnce() -> Box<dyn Observer>,
    ) -> Result<Box<dyn Observer>> {
        let screen = |terminal| -> Box<dyn Observer> { Box::new(LiveScreen::new(terminal, in_colour())) };
        Ok(self.screen_terminal(style)?.map_or_else(other, screen))
    }

    /// The screen of many runs, if there is a terminal for it.
    ///
    /// # Errors
    /// As [`watcher`](Self::watcher).
    pub fn runs(&self) -> Result<Option<RunsScreen>> {
        Ok(self.screen_terminal(ProgressStyle::Auto)?.map(|terminal| RunsScreen::new(terminal, in_colour())))
    }

    /// Returns true if one of the options was given.
    pub fn is_asked(&self) -> bool {
        self.live || self.no_live
    }

    /// The terminal that a screen is to be drawn on, if there is one.
    ///
    /// # Errors
    /// As [`watcher`](Self::watcher).
    fn screen_terminal(&self, style: ProgressStyle) -> Result<Option<InteractiveTerminal>> {
        let asked = self.live || style == ProgressStyle::Bar;
        let usual = !self.no_live && style == ProgressStyle::Auto && is_watched();
        match (asked || usual).then(stderr_terminal) {
            Some(Err(error)) if asked => Err(error),
            found => Ok(found.and_then(Result::ok)),
        }
    }
}

/// The terminal of stderr: what is drawn does not mix with results on stdout,
/// and keys come from it even where stdin is a pipe.
fn stderr_terminal() -> Result<InteractiveTerminal> {
    let fd = rustix::io::dup(stderr()).context("stderr is closed")?;
    let terminal = InteractiveTerminal::from_fd(fd).context("the live screen needs a terminal on stderr")?;
    ensure!(terminal.in_foreground(), "the live screen cannot be drawn by a job in the background");
    Ok(terminal)
}

/// Returns true if the screen can be seen: stdout is a terminal as well, and no dumb one.
fn is_watched() -> bool {
    // What reads our stdout may draw on the terminal itself: a pager.
    stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// By `NO_COLOR`, `CLICOLOR` and what the terminal is.
fn in_colour() -> bool {
    anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never
}
