//! `pty_test`, which measures ping and bandwidth over a terminal that leads to an echo.

use super::pings::{McsPingKind, McsPinger};
use super::text::Rates;
use super::{Lines, MCS, Pings, disturbance, signals, text, times};
use crate::context::PersonalityContext;
use crate::environment;
use crate::getopt::{
    CommandLineRefusal, FLAG, OptionOccurrence, ProgramCall, ProgramOption, part, set_field, set_flag, value,
};
use crate::personality::PersonalityProgram;
use anyhow::Result;
use latscope_core::param;
use latscope_core::plan::Params;
use latscope_exchange::remote::{self, ChannelFailure, ChannelRequest, RemoteChannel, tty};
use latscope_os::clock::monotonic_ns;
use latscope_os::signal::SignalFd;
use latscope_process::guardian::Guardian;
use latscope_process::leftover::Leftover;
use latscope_process::stdout::print_text;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::messages::block;
use std::time::Duration;

/// Program `pty_test`.
pub static PTY_TEST: PersonalityProgram<PtyTestOptions> = PersonalityProgram::new(
    "pty_test",
    "ping and bandwidth over a terminal",
    &MCS,
    SPECS,
    resolve_options,
    carry_out,
);

/// Options of pty_test, in the order of its usage.
#[rustfmt::skip]
pub static SPECS: &[ProgramOption<PtyTestOptions>] = &[
    ProgramOption::new(Some('P'), "path", value("PATH"), "the terminal; it may stand alone, too", |o, given| set_field(&mut o.path, Ok(given.value_text().to_owned()))),
    ProgramOption::new(Some('p'), "ping", FLAG, "pings of 12 bytes: what is done if nothing else is asked for", |o, _| set_flag(&mut o.ping)),
    ProgramOption::loops(Some('l')),
    ProgramOption::new(Some('b'), "bandwidth", FLAG, "blocks of 1024 bytes, as many as go through", |o, _| set_flag(&mut o.bandwidth)),
    ProgramOption::new(Some('t'), "time", value("S"), "for so many seconds [10]", time),
    ProgramOption::HELP,
    ProgramOption::PACE,
    ProgramOption::PRINTED,
    ProgramOption::new(None, "force", FLAG, "use the terminal also if it controls a session", |o: &mut PtyTestOptions, _| set_flag(&mut o.force)).mark_added(),
];

const MILLISECOND: u64 = 1_000_000;

/// Size of a block, in bytes.
const BLOCK: usize = 1024;

/// Time from one line of bandwidth to the next, in ns.
const INTERVAL: u64 = 100 * MILLISECOND;

/// Silence of the terminal after which missing replies count as lost.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtyTestOptions {
    /// Path of the terminal.
    pub path: String,
    /// Value of `--ping`: send pings.
    pub ping: bool,
    /// Value of `--bandwidth`: send blocks. With both options, pings are sent.
    pub bandwidth: bool,
    /// Number and pace of the pings.
    pub pings: Pings,
    /// Time for which bandwidth is measured.
    pub time: Duration,
    /// Value of `--force`: use a terminal that controls a session.
    pub force: bool,
}

part!(PtyTestOptions, pings: Pings);

impl Default for PtyTestOptions {
    fn default() -> PtyTestOptions {
        let (time, pings) = (Duration::from_secs(10), Pings::default());
        PtyTestOptions { path: String::new(), ping: false, bandwidth: false, pings, time, force: false }
    }
}

/// Finds the terminal, and the only task that is done.
fn resolve_options(call: ProgramCall<PtyTestOptions>) -> Result<PtyTestOptions, CommandLineRefusal> {
    let mut options = call.options;
    options.bandwidth &= !std::mem::take(&mut options.ping);
    match (&call.operands[..], options.path.is_empty()) {
        ([], false) => {}
        ([path], true) => options.path.clone_from(path),
        ([], true) => {
            return Err(CommandLineRefusal::Usage("the terminal is needed: --path /dev/pts/N".to_owned()));
        }
        _ => return Err(CommandLineRefusal::Usage("one terminal is enough".to_owned())),
    }
    Ok(options)
}

/// Parses `-t`, in s. As in the original, 0 means the default.
fn time(options: &mut PtyTestOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    match given.parse_in_range(0..=u64::MAX)? {
        0 => Ok(()),
        seconds => set_field(&mut options.time, Ok(Duration::from_secs(seconds))),
    }
}

fn carry_out(options: &PtyTestOptions, context: &PersonalityContext) -> Result<u8> {
    let (what, time) = match options.bandwidth {
        true => ("bandwidth".to_owned(), Some(options.time.as_nanos() as u64)),
        false => (format!("ping, {}", times(&options.pings)), None),
    };
    if environment::show_outline(context, "remote", format!("{what}, {}", options.path), time) {
        return Ok(0);
    }
    let signals = signals()?;
    let guardian = Guardian::default();
    let journal = |leftover: &Leftover| guardian.journal_leftover(leftover);
    let mut params = Params::from([(param::PATH.to_owned(), options.path.as_str().into())]);
    if options.force {
        params.insert(tty::FORCE.name.to_owned(), remote::RemoteOption::GIVEN.into());
    }
    let service = if options.bandwidth { RpmsgService::Bandwidth } else { RpmsgService::Pty };
    let notice = |text: &str| context.print_note(text);
    let (patience, journal, notice) = (Duration::MAX, &journal, &notice);
    let order = ChannelRequest { params: &params, service, cpus: &[], journal, patience, notice };
    let mut channel = (tty::TTY.open)(&order)?;
    if options.bandwidth {
        bandwidth(&mut *channel, context, options, &signals)
    } else {
        ping(&mut *channel, context, options, &signals)
    }
}

fn ping(
    channel: &mut dyn RemoteChannel,
    context: &PersonalityContext,
    options: &PtyTestOptions,
    signals: &SignalFd,
) -> Result<u8> {
    let pinger = McsPinger::new(channel, McsPingKind::Text);
    let (trips, interrupted) = pinger.run_pings(context, &options.pings, signals, text::pty_pings)?;
    print_text(if interrupted { text::INTERRUPTED } else { text::PING_OVER });
    Ok(u8::from(trips.count == 0 && !interrupted))
}

/// Counts of blocks by outcome.
#[derive(Debug, Default)]
struct Through {
    /// Number of the first block. Another run's blocks have different numbers.
    first: u64,
    written: u64,
    received: u64,
    /// Number of blocks that came damaged or cut short.
    damaged: u64,
    /// Number of blocks that came again.
    repeated: u64,
    /// Number that follows that of the latest received block.
    next: u64,
    /// Number of bytes that had come back when the last rate was printed.
    rated: u64,
}

impl Through {
    fn starting_at(first: u64) -> Through {
        Through { first, next: first, ..Through::default() }
    }

    /// Number of the block to send next.
    fn next_sequence(&self) -> u64 {
        self.first + self.written
    }

    /// Receives all available blocks, in the order in which they were sent. Waits for the first of them until `until`.
    fn receive_available(
        &mut self,
        channel: &mut dyn RemoteChannel,
        room: &mut [u8],
        until: u64,
    ) -> Result<(), ChannelFailure> {
        let mut until = until;
        loop {
            match channel.receive_message(room, until) {
                Ok(length) => self.count_block(&room[..length]),
                Err(ChannelFailure::Timeout) => return Ok(()),
                Err(failure) => return Err(failure),
            }
            until = 0;
        }
    }

    fn count_block(&mut self, block: &[u8]) {
        match block::verify_block(block) {
            Ok(number) if block.len() == BLOCK && (self.next..self.next_sequence()).contains(&number) => {
                self.received += 1;
                self.next = number + 1;
            }
            Ok(number) if block.len() == BLOCK && (self.first..self.next).contains(&number) => {
                self.repeated += 1
            }
            _ => self.damaged += 1,
        }
    }

    /// Number of bytes in blocks that came as they were sent.
    fn received_bytes(&self) -> u64 {
        self.received * BLOCK as u64
    }

    /// Number of blocks of which nothing came.
    fn missing(&self) -> u64 {
        self.written.saturating_sub(self.received + self.damaged)
    }

    /// Summary of a run, for stderr.
    fn format_summary(&self, channel: &dyn RemoteChannel, rated: u64, drained: u64) -> String {
        let (bytes, missing, faults) =
            (self.received_bytes(), self.missing() * BLOCK as u64, channel.faults());
        let Through { damaged, repeated, .. } = self;
        let mut text = format!(
            "the rates are of the {rated} bytes that had come back as they were sent by the last line; in the end {bytes} \
             bytes came back as they were sent, {missing} were lost, {damaged} blocks came otherwise, {repeated} came again, \
             {} bytes belong to no block, {faults} faults of the remote; the last came {:.2} milliseconds after the end",
            channel.foreign(),
            drained as f64 / 1e6
        );
        let failed = missing + damaged + repeated + channel.foreign() + channel.faults() > 0;
        if let Some(disturbance) = disturbance(channel, failed) {
            text += &format!(". {disturbance}");
        }
        text
    }
}

/// Rate in Mbit/s of so many bytes in a time in ns.
fn rate(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 8e3 / ns.max(1) as f64
}

/// Measures bandwidth, and prints the rates; also those of before the terminal's end.
fn bandwidth(
    channel: &mut dyn RemoteChannel,
    context: &PersonalityContext,
    options: &PtyTestOptions,
    signals: &SignalFd,
) -> Result<u8> {
    print_text(text::WAITING);
    let mut through = Through::starting_at(monotonic_ns());
    let streamed = stream(channel, &mut through, options, signals);
    let rated = through.rated;
    let written = through.written * BLOCK as u64;
    let drained = match &streamed {
        Ok(_) => drain(channel, &mut through)?,
        Err(_) => 0,
    };
    match &streamed {
        Ok(true) => print_text(text::INTERRUPTED),
        Ok(false) => print_text(&text::format_written(written)),
        Err(_) => {}
    }
    context.print_note(&through.format_summary(channel, rated, drained));
    let interrupted = streamed?;
    Ok(u8::from(through.received == 0 && !interrupted))
}

/// Sends blocks, receives them again, and prints the rates. Returns true if a signal ended it.
fn stream(
    channel: &mut dyn RemoteChannel,
    through: &mut Through,
    options: &PtyTestOptions,
    signals: &SignalFd,
) -> Result<bool> {
    let begun = through.first;
    let (mut lines, mut rates) = (Lines::new(), Rates::default());
    let (mut next, mut room) = ([0; BLOCK], vec![0; channel.limit()]);
    let end = begun.saturating_add(options.time.as_nanos() as u64);
    let mut shown = begun;
    while monotonic_ns() < end {
        block::write_block(through.next_sequence(), &mut next);
        let wait = match channel.send_message(&next) {
            Ok(()) => {
                through.written += 1;
                0
            }
            // It is full: until something comes back.
            Err(ChannelFailure::Unsent(Unsent::NoBuffer)) => monotonic_ns() + MILLISECOND,
            Err(failure) => return Err(failure.into()),
        };
        through.receive_available(channel, &mut room, wait)?;
        let now = monotonic_ns();
        if now - shown >= INTERVAL {
            let last = rate(through.received_bytes() - through.rated, now - shown);
            rates.add_interval((now - shown) as f64 / 1e6, last, rate(through.received_bytes(), now - begun));
            lines.replace_lines(&text::rates(&rates, options.pings.layout));
            (shown, through.rated) = (now, through.received_bytes());
            if signals.next()?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Receives the blocks that are still under way. Returns how long that took, in ns.
fn drain(channel: &mut dyn RemoteChannel, through: &mut Through) -> Result<u64, ChannelFailure> {
    let mut room = vec![0; channel.limit()];
    let begun = monotonic_ns();
    let mut last = begun;
    while through.missing() > 0 {
        let before = through.missing();
        through.receive_available(channel, &mut room, monotonic_ns() + REPLY_TIMEOUT.as_nanos() as u64)?;
        if through.missing() == before {
            break;
        }
        last = monotonic_ns();
    }
    Ok(last - begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<PtyTestOptions, CommandLineRefusal> {
        PTY_TEST.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn the_documented_calls_are_understood() {
        let bare = read("/dev/pts/0").unwrap();
        assert_eq!((bare.path.as_str(), bare.bandwidth, bare.pings.loops), ("/dev/pts/0", false, 0));
        assert_eq!(read("--path /dev/pts/0 --ping").unwrap(), bare);
        assert_eq!(
            read("-P/dev/pts/0 -p -l 10").unwrap(),
            PtyTestOptions { pings: Pings { loops: 10, ..Pings::default() }, ..bare.clone() }
        );
        let bandwidth = PtyTestOptions { bandwidth: true, ..bare.clone() };
        assert_eq!(read("--path /dev/pts/0 --bandwidth").unwrap(), bandwidth);
        let time = Duration::from_secs(20);
        assert_eq!(
            read("--path /dev/pts/0 --bandwidth --time 20").unwrap(),
            PtyTestOptions { time, ..bandwidth }
        );
        // As there: if both are asked for, it is a ping.
        assert_eq!(read("--path /dev/pts/0 --bandwidth --ping").unwrap(), bare);
        assert_eq!(read("--help"), Err(CommandLineRefusal::Help));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for line in ["", "--ping", "a b", "--path a b", "a --loop x", "a --time -1", "a --pace 1", "a -z"] {
            let Err(CommandLineRefusal::Usage(text)) = read(line) else { panic!("{line}") };
            assert!(!text.contains('\n'), "{line}: {text}");
        }
    }

    #[test]
    fn blocks_are_counted_once_and_nothing_wraps() {
        let mut through = Through::starting_at(1000);
        let block = |number| {
            let mut block = [0; BLOCK];
            block::write_block(number, &mut block);
            block
        };
        through.written = 3;
        through.count_block(&block(1000));
        through.count_block(&block(1000));
        through.count_block(&block(1002));
        assert_eq!((through.received, through.repeated, through.damaged, through.missing()), (2, 1, 0, 1));
        // More than was written: each block came damaged, and again.
        (0..5).for_each(|_| through.count_block(b"otherwise"));
        through.count_block(&block(1003));
        assert_eq!((through.damaged, through.missing(), through.received_bytes()), (6, 0, 2048));
    }

    #[test]
    fn megabits_are_of_a_second() {
        assert_eq!(rate(125_000, 1_000_000_000), 1.0);
        assert!(rate(1, 0).is_finite());
    }
}
