//! `hackbench`, which measures with [`message_groups`](latscope_process::message_groups).

use super::options::RT_TESTS;
use crate::context::PersonalityContext;
use crate::environment;
use crate::getopt::{CommandLineRefusal, FLAG, ProgramCall, ProgramOption, set_field, set_flag, value};
use crate::personality::PersonalityProgram;
use anyhow::{Context as _, Result};
use latscope_os::sched;
use latscope_process::message_groups::{MessageGroupTransport, MessageGroups, open_many};
use latscope_process::stdout::print_text;
use std::time::{Duration, Instant};

/// Program `hackbench`.
pub static HACKBENCH: PersonalityProgram<HackbenchOptions> = PersonalityProgram::new(
    "hackbench",
    "a load: groups that send messages to each other",
    &RT_TESTS,
    SPECS,
    resolve_options,
    carry_out,
);

/// Options of hackbench, in the order of its usage.
#[rustfmt::skip]
pub static SPECS: &[ProgramOption<HackbenchOptions>] = &[
    ProgramOption::new(Some('f'), "fds", value("N"), "senders of a group, and as many receivers [20]",
        |o, given| set_field(&mut o.message_groups.size, given.parse_in_range(1..=100_000))),
    ProgramOption::new(Some('F'), "fifo", FLAG, "SCHED_FIFO for the main thread, once the others are there", |o, _| set_flag(&mut o.fifo)),
    ProgramOption::new(Some('g'), "groups", value("N"), "number of groups [10]", |o, given| set_field(&mut o.message_groups.groups, given.parse_in_range(1..=100_000))),
    ProgramOption::HELP,
    ProgramOption::new(Some('l'), "loops", value("N"), "messages from each sender to each receiver [100]",
        |o, given| set_field(&mut o.message_groups.messages, given.parse_in_range(1..=u64::MAX >> 32))),
    ProgramOption::new(Some('p'), "pipe", FLAG, "over pipes instead of sockets", |o, _| wire(o, MessageGroupTransport::Pipe)),
    ProgramOption::new(Some('i'), "inet", FLAG, "over TCP instead of sockets", |o, _| wire(o, MessageGroupTransport::Tcp)),
    ProgramOption::new(Some('s'), "datasize", value("BYTES"), "size of a message [100]",
        |o, given| set_field(&mut o.message_groups.bytes, given.parse_in_range(1..=1 << 30).map(|bytes| bytes as usize))),
    ProgramOption::new(Some('T'), "threads", FLAG, "threads", |o, _| set_flag(&mut o.message_groups.threads)),
    ProgramOption::new(Some('P'), "process", FLAG, "processes: the default", |o, _| set_field(&mut o.message_groups.threads, Ok(false))),
];

/// Options of a call of hackbench.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HackbenchOptions {
    /// Groups of processes or threads, and their messages.
    pub message_groups: MessageGroups,
    /// Value of `-F`: SCHED_FIFO for the main thread.
    pub fifo: bool,
    /// Notes about ignored arguments, for stderr.
    pub notes: Vec<String>,
}

impl Default for HackbenchOptions {
    fn default() -> HackbenchOptions {
        let (groups, size, messages, bytes) = (10, 20, 100, 100);
        let message_groups = MessageGroups {
            groups,
            size,
            messages,
            bytes,
            wire: MessageGroupTransport::Socket,
            threads: false,
        };
        HackbenchOptions { message_groups, fifo: false, notes: Vec::new() }
    }
}

fn resolve_options(mut call: ProgramCall<HackbenchOptions>) -> Result<HackbenchOptions, CommandLineRefusal> {
    let note = |operand| format!("{operand:?} is no option and is ignored: use -g, -l, -p, -T");
    call.options.notes = call.operands.iter().map(note).collect();
    Ok(call.options)
}

fn wire(options: &mut HackbenchOptions, wire: MessageGroupTransport) -> Result<(), CommandLineRefusal> {
    if ![MessageGroupTransport::Socket, wire].contains(&options.message_groups.wire) {
        return Err(CommandLineRefusal::Usage("-p and -i exclude each other".to_owned()));
    }
    set_field(&mut options.message_groups.wire, Ok(wire))
}

/// Lines printed before the messages begin.
pub fn format_preamble(message_groups: &MessageGroups) -> String {
    let MessageGroups { groups, size, messages, bytes, threads, .. } = message_groups;
    let mode = if *threads { "threaded" } else { "process" };
    let both = 2 * size;
    format!(
        "Running in {mode} mode with {groups} groups using {both} file descriptors each (== {} tasks)\n\
         Each sender will pass {messages} messages of {bytes} bytes\n",
        groups * both
    )
}

fn format_title(message_groups: &MessageGroups) -> String {
    let MessageGroups { groups, size, messages, bytes, wire, threads } = message_groups;
    let tasks = if *threads { "threads" } else { "processes" };
    let wire = format!("{wire:?}").to_lowercase();
    format!("{groups} groups of {} {tasks}, {messages} messages of {bytes} bytes, {wire}", 2 * size)
}

/// Last line of the output, with the time in s.
pub fn format_elapsed(time: Duration) -> String {
    format!("Time: {}.{:03}\n", time.as_secs(), time.subsec_millis())
}

fn carry_out(options: &HackbenchOptions, context: &PersonalityContext) -> Result<u8> {
    context.print_notes(&options.notes);
    if environment::show_outline(context, "messages", format_title(&options.message_groups), None) {
        return Ok(0);
    }
    if options.fifo {
        environment::may_be_real_time(1)?;
    }
    open_many();
    options.message_groups.check_limits()?;
    print_text(&format_preamble(&options.message_groups));
    let message_groups = options.message_groups.gather()?;
    if options.fifo {
        sched::set_policy(sched::ThreadSchedPolicy::Fifo(1)).context("SCHED_FIFO for the main thread")?;
    }
    let begun = Instant::now();
    message_groups.start()?;
    message_groups.wait_until_done()?;
    print_text(&format_elapsed(begun.elapsed()));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::Takes;

    fn read(line: &str) -> Result<HackbenchOptions, CommandLineRefusal> {
        HACKBENCH.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read("").unwrap();
        let specs = SPECS.iter().map(|option| &option.spec);
        for spec in specs.filter(|spec| !["help", "process"].contains(&spec.long)) {
            let value = if matches!(spec.takes, Takes::Value) { "=7" } else { "" };
            assert_ne!(read(&format!("--{}{value}", spec.long)).unwrap(), usual, "--{}", spec.long);
        }
        assert_eq!(read("-T -P").unwrap(), usual);
        assert!(read("-P -T").unwrap().message_groups.threads);
        assert_eq!(read("-p -p").unwrap().message_groups.wire, MessageGroupTransport::Pipe);
        assert_eq!(read("-h"), Err(CommandLineRefusal::Help));
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
        assert_eq!(format_elapsed(Duration::from_micros(12_034_999)), "Time: 12.034\n");
    }
}
