//! The benchmark of openEuler's MCS: `mica_main` and `pty_test`. They take the arguments of the originals, use
//! latscope's channels, and print the text of the originals.
//!
//! Reading the arguments and formatting text are pure functions; each program's `carry_out` joins them. The differences
//! from the originals are in `docs/mica.md`.

pub mod mica_main;
pub mod pty_test;
pub mod text;

mod pings;

use crate::getopt::{self, CommandLineRefusal, ProgramOption, set_field, value};
use crate::personality::{self, Personality, PersonalitySuite};
use anyhow::{Context as _, Result};
use latscope_core::units::{count_with_noun, format_time, parse_duration};
use latscope_exchange::remote::RemoteChannel;
use latscope_os::signal::{SignalFd, TERMINATION};
use latscope_process::eprintln;
use latscope_process::stdout::print_text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use smart_default::SmartDefault;
use std::io::IsTerminal;
use std::time::Duration;

/// Both programs of MCS, by name.
pub static PROGRAMS: &[&dyn Personality] = &[&mica_main::MICA_MAIN, &pty_test::PTY_TEST];

/// Suite MCS of openEuler. The usage goes to stderr after a mistake.
static MCS: PersonalitySuite = PersonalitySuite {
    grammar: getopt::getopt,
    prepare: |_| Ok(()),
    usage: |name, _, specs| personality::long_usage(name, specs, 28, "the benchmark of MCS"),
    answer: |context, error, usage| {
        personality::answer(error, &usage, |mistake| eprintln!("{}: {mistake}\n{usage}", context.name))
    },
};

/// Source of the layout of the figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum McsFigureLayout {
    /// Page of the documentation.
    #[default]
    Page,
    /// Programs' sources of October 2023.
    Sources,
}

/// Name of [`McsFigureLayout::Sources`] on the command line.
const SOURCES: &str = "2023-10";

/// Number and pace of the pings, which both programs make.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct Pings {
    /// Number of pings; 0 for no limit.
    pub loops: u64,
    /// Time from one ping to the next.
    #[default(Duration::from_millis(200))]
    pub pace: Duration,
    /// Layout of the figures, of bandwidth as well.
    pub layout: McsFigureLayout,
}

#[rustfmt::skip]
impl<O: AsMut<Pings>> ProgramOption<O> {
    const fn loops(letter: Option<char>) -> ProgramOption<O> {
        ProgramOption::new(letter, "loop", value("N"), "how many; 0 for as many as there come until Ctrl-C [0]",
            |o, given| set_field(&mut o.as_mut().loops, given.parse_in_range(0..=u64::MAX)))
    }
    const PACE: ProgramOption<O> = ProgramOption::new(None, "pace", value("TIME"), "from one ping to the next; 0ms for back to back [200ms]",
        |o: &mut O, given| set_field(&mut o.as_mut().pace, pace(given.value_text()))).mark_added();
    const PRINTED: ProgramOption<O> = ProgramOption::new(None, "compat", value(SOURCES), "the figures as the sources of that month print them",
        |o: &mut O, given| set_field(&mut o.as_mut().layout, layout(given.value_text()))).mark_added();
}

fn layout(text: &str) -> Result<McsFigureLayout, CommandLineRefusal> {
    let wrong =
        || CommandLineRefusal::Usage(format!("--compat {text} is not known: the other layout is {SOURCES}"));
    (text == SOURCES).then_some(McsFigureLayout::Sources).ok_or_else(wrong)
}

fn pace(text: &str) -> Result<Duration, CommandLineRefusal> {
    parse_duration(text).map_err(|error| CommandLineRefusal::Usage(format!("--pace {text}: {error}")))
}

/// Text with the number of pings and the time between them.
fn times(pings: &Pings) -> String {
    let count =
        if pings.loops == 0 { "without end".to_owned() } else { count_with_noun(pings.loops, "time") };
    format!("{count}, {} apart", format_time(pings.pace.as_nanos() as f64))
}

/// What disturbed the messages of a channel, if messages `failed` or came back changed: another program that uses the
/// terminal, or the other side if there is no such program.
fn disturbance(channel: &dyn RemoteChannel, failed: bool) -> Option<String> {
    let translation = channel.translation().map(|text| format!("{text}; make it raw: stty raw -echo"));
    channel.interference(failed || translation.is_some()).or(translation)
}

fn signals() -> Result<SignalFd> {
    SignalFd::block(&TERMINATION).context("signals cannot be waited for")
}

/// Waits for a time. Returns true if a signal ended the wait.
fn wait_for_signal(signals: &SignalFd, time: Duration) -> Result<bool> {
    let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(signals.next()?.is_some()),
        Err(error) => Err(error.into()),
    }
}

/// Status lines, which replace each other on a terminal. Elsewhere all of them are printed.
struct Lines {
    live: bool,
    /// Number of lines of the last status.
    height: usize,
}

impl Lines {
    fn new() -> Lines {
        Lines { live: std::io::stdout().is_terminal(), height: 0 }
    }

    fn replace_lines(&mut self, text: &str) {
        let back =
            if self.live && self.height > 0 { format!("\x1b[{}A", self.height) } else { String::new() };
        print_text(&(back + text));
        self.height = text.lines().count();
    }
}
