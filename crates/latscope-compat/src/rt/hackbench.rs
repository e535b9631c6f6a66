//! `hackbench`, by [`message_groups`](latscope_host::message_groups).

use super::arguments::{self, Given, Spec, number};
use super::console::Voice;
use super::{Refusal, environment};
use anyhow::{Context, Result};
use latscope_host::message_groups::{MessageGroups, Wire, open_many};
use latscope_host::stdout::print;
use latscope_os::sched;
use std::ffi::OsString;
use std::time::{Duration, Instant};

const VOICE: Voice = Voice { name: "hackbench", version: "2.40", specs: SPECS };

/// Its options.
pub static SPECS: &[Spec] = &[
    Spec::value(Some('f'), "fds", "N", "senders of a group, and as many receivers [20]"),
    Spec::flag(Some('F'), "fifo", "SCHED_FIFO for the main thread, once the others are there"),
    Spec::value(Some('g'), "groups", "N", "number of groups [10]"),
    Spec::flag(Some('h'), "help", "this text"),
    Spec::value(Some('l'), "loops", "N", "messages from each sender to each receiver [100]"),
    Spec::flag(Some('p'), "pipe", "over pipes instead of sockets"),
    Spec::flag(Some('i'), "inet", "over TCP instead of sockets"),
    Spec::value(Some('s'), "datasize", "BYTES", "size of a message [100]"),
    Spec::flag(Some('T'), "threads", "threads"),
    Spec::flag(Some('P'), "process", "processes: the default"),
];

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The groups and their messages.
    pub message_groups: MessageGroups,
    /// `-F`.
    pub fifo: bool,
    /// Words on stderr.
    pub notes: Vec<String>,
}

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(arguments: &[OsString]) -> Result<Options, Refusal> {
        let words = arguments::read(SPECS, arguments)?;
        let message_groups = MessageGroups {
            groups: 10,
            size: 20,
            messages: 100,
            bytes: 100,
            wire: Wire::Socket,
            threads: false,
        };
        let mut options = Options { message_groups, fifo: false, notes: Vec::new() };
        for given in &words.options {
            options.accept(given)?;
        }
        for operand in &words.operands {
            options.notes.push(format!("{operand:?} is no option and is ignored: use -g, -l, -p, -T"));
        }
        Ok(options)
    }

    fn accept(&mut self, given: &Given) -> Result<(), Refusal> {
        let message_groups = &mut self.message_groups;
        match given.spec.long {
            "fds" => message_groups.size = count(given, 100_000)?,
            "groups" => message_groups.groups = count(given, 100_000)?,
            "loops" => message_groups.messages = count(given, u64::MAX >> 32)?,
            "datasize" => message_groups.bytes = count(given, 1 << 30)? as usize,
            "pipe" | "inet" => {
                let wire = if given.spec.long == "pipe" { Wire::Pipe } else { Wire::Tcp };
                if ![Wire::Socket, wire].contains(&message_groups.wire) {
                    return Err(Refusal::Usage("-p and -i exclude each other".to_owned()));
                }
                message_groups.wire = wire;
            }
            "threads" => message_groups.threads = true,
            "process" => message_groups.threads = false,
            "fifo" => self.fifo = true,
            _ => return Err(Refusal::Help),
        }
        Ok(())
    }
}

fn count(given: &Given, most: u64) -> Result<u64, Refusal> {
    let (name, text) = (given.spec.name(), given.value.as_deref().unwrap_or_default());
    let wrong = || Refusal::Usage(format!("{name} {text} is no number from 1 to {most}"));
    let whole = number(text).filter(|(_, whole)| *whole).and_then(|(number, _)| u64::try_from(number).ok());
    whole.filter(|number| (1..=most).contains(number)).ok_or_else(wrong)
}

/// The lines before it begins.
pub fn before(message_groups: &MessageGroups) -> String {
    let MessageGroups { groups, size, messages, bytes, threads, .. } = message_groups;
    let mode = if *threads { "threaded" } else { "process" };
    let both = 2 * size;
    format!(
        "Running in {mode} mode with {groups} groups using {both} file descriptors each (== {} tasks)\n\
         Each sender will pass {messages} messages of {bytes} bytes\n",
        groups * both
    )
}

fn title(message_groups: &MessageGroups) -> String {
    let MessageGroups { groups, size, messages, bytes, wire, threads } = message_groups;
    let tasks = if *threads { "threads" } else { "processes" };
    let wire = format!("{wire:?}").to_lowercase();
    format!("{groups} groups of {} {tasks}, {messages} messages of {bytes} bytes, {wire}", 2 * size)
}

/// The last line.
pub fn after(time: Duration) -> String {
    format!("Time: {}.{:03}\n", time.as_secs(), time.subsec_millis())
}

/// Carries out a call.
///
/// # Errors
/// Nothing could be started.
pub fn run(arguments: &[OsString]) -> Result<u8> {
    let read = Options::read(arguments).map_err(Into::into);
    VOICE.settle(read.and_then(|options| {
        VOICE.introduce(&options.notes);
        carry_out(&options)
    }))
}

fn carry_out(options: &Options) -> Result<u8> {
    if environment::shows(VOICE.name, "messages", title(&options.message_groups), None) {
        return Ok(0);
    }
    if options.fifo {
        environment::may_be_real_time(1)?;
    }
    print(&before(&options.message_groups));
    open_many();
    let message_groups = options.message_groups.gather()?;
    if options.fifo {
        sched::set_policy(sched::Policy::Fifo(1)).context("SCHED_FIFO for the main thread")?;
    }
    let begun = Instant::now();
    message_groups.start()?;
    message_groups.finish()?;
    print(&after(begun.elapsed()));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Refusal> {
        Options::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read("").unwrap();
        for spec in SPECS.iter().filter(|spec| !["help", "process"].contains(&spec.long)) {
            let value = if matches!(spec.takes, arguments::Takes::Value) { "=7" } else { "" };
            assert_ne!(read(&format!("--{}{value}", spec.long)).unwrap(), usual, "--{}", spec.long);
        }
        assert_eq!(read("-T -P").unwrap(), usual);
        assert!(read("-P -T").unwrap().message_groups.threads);
        assert_eq!(read("-p -p").unwrap().message_groups.wire, Wire::Pipe);
        assert_eq!(read("-h"), Err(Refusal::Help));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for line in ["-g 0", "-f -1", "-l x", "-s 10x", "-s 9999999999", "-p -i", "-z"] {
            let text = read(line).unwrap_err().to_string();
            assert!(!text.contains('\n') && text.contains(&line[1..2]), "{line}: {text}");
        }
    }

    #[test]
    fn a_time_has_three_digits_after_the_point() {
        assert_eq!(after(Duration::from_micros(12_034_999)), "Time: 12.034\n");
    }
}
