//! `mica_main`: pings to a client operating system, or a terminal that leads to it.

use super::super::rt::arguments::{self, Given, Spec};
use super::super::rt::{Refusal, environment};
use super::pings::{Message, Pinger};
use super::{Lines, PACE, PACE_OPTION, count, note, pace, settle, signals, text, times};
use anyhow::{Context, Result, ensure};
use latscope_core::plan::Params;
use latscope_exchange::remote::pty::{self, End, Terminal};
use latscope_exchange::remote::{self, Channel, Order, shm};
use latscope_host::guardian::OnDemand;
use latscope_host::leftover::Leftover;
use latscope_host::stdout::print;
use latscope_os::sched;
use latscope_rpmsg::echo::Service;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Its name.
pub const NAME: &str = "mica_main";

/// Its options.
pub static SPECS: &[Spec] = &[
    Spec::value(Some('c'), "cpu", "CPU", "CPU of the client"),
    Spec::value(Some('t'), "target", "IMAGE", "its image, on a board"),
    Spec::value(Some('a'), "address", "ADDRESS", "where the image goes, hexadecimal, on a board"),
    Spec::value(Some('e'), "entry", "ADDRESS", "where it begins, hexadecimal, on a board"),
    Spec::flag(None, "ping", "pings of 48 bytes"),
    Spec::flag(None, "long-ping", "pings of 3840 bytes in 8 packets"),
    Spec::value(None, "loop", "N", "how many; 0 for as many as there come until Ctrl-C [0]"),
    Spec::flag(None, "pty", "a terminal that leads to the client"),
    Spec::flag(Some('h'), "help", "this text"),
    PACE_OPTION,
];

/// Its endpoints, and their ids.
const ENDPOINTS: [(Service, u32); 3] = [(Service::Pty, 3), (Service::Ping, 1), (Service::LongPing, 2)];

/// The device of a board with MCS, and the transport over it.
const BOARD: (&str, &str) = ("/dev/mcs", "mcs");

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// `--ping`.
    Ping,
    /// `--long-ping`.
    LongPing,
    /// `--pty`.
    Pty,
}

impl Task {
    fn service(self) -> Service {
        match self {
            Task::Ping => Service::Ping,
            Task::LongPing => Service::LongPing,
            Task::Pty => Service::Pty,
        }
    }
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The task.
    pub task: Task,
    /// Pings; 0 for ever.
    pub loops: u64,
    /// From one to the next.
    pub pace: Duration,
    /// `-c`.
    pub cpu: Option<u64>,
    /// What a board is told: options of its transport, with their values.
    pub board: Vec<(&'static str, String)>,
}

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(arguments: &[OsString]) -> Result<Options, Refusal> {
        let words = arguments::read(SPECS, arguments)?;
        if let Some(operand) = words.operands.first() {
            return Err(Refusal::Usage(format!("{operand:?} is no option")));
        }
        let mut tasks = Vec::new();
        let mut options = Options { task: Task::Ping, loops: 0, pace: PACE, cpu: None, board: Vec::new() };
        for given in &words.options {
            options.accept(given, &mut tasks)?;
        }
        tasks.dedup();
        let [task] = tasks[..] else {
            return Err(Refusal::Usage("one of --ping, --long-ping and --pty is needed".to_owned()));
        };
        options.task = task;
        Ok(options)
    }

    fn accept(&mut self, given: &Given, tasks: &mut Vec<Task>) -> Result<(), Refusal> {
        let value = given.value.as_deref().unwrap_or_default();
        match given.spec.long {
            "ping" => tasks.push(Task::Ping),
            "long-ping" => tasks.push(Task::LongPing),
            "pty" => tasks.push(Task::Pty),
            "loop" => self.loops = count(given)?,
            "pace" => self.pace = pace(given)?,
            "cpu" => {
                self.cpu = Some(count(given)?);
                self.board.push(("mcs-cpu", value.to_owned()));
            }
            "target" => self.board.push(("mcs-image", value.to_owned())),
            "address" | "entry" => {
                let digits = value.trim_start_matches("0x");
                u64::from_str_radix(digits, 16).map_err(|_| {
                    Refusal::Usage(format!("{} {value} is no hexadecimal address", given.spec.name()))
                })?;
                let option = if given.spec.long == "entry" { "mcs-entry" } else { "mcs-address" };
                self.board.push((option, value.to_owned()));
            }
            _ => return Err(Refusal::Help),
        }
        Ok(())
    }
}

/// Carries out a call.
///
/// # Errors
/// There is no remote, or it ended.
pub fn run(arguments: &[OsString]) -> Result<u8> {
    let read = Options::read(arguments).map_err(Into::into);
    settle(NAME, SPECS, read.and_then(|options| carry_out(&options)))
}

fn carry_out(options: &Options) -> Result<u8> {
    let what = match options.task {
        Task::Pty => "a terminal".to_owned(),
        task => format!("{}, {}", name_of(task.service()), times(options.loops, options.pace)),
    };
    if environment::shows(NAME, "remote", what, None) {
        return Ok(0);
    }
    let signals = signals()?;
    let guardian = OnDemand::default();
    let journal = |leftover: &Leftover| guardian.journal(leftover);
    let terminal = (options.task == Task::Pty).then(Terminal::open).transpose()?;
    if let Some(terminal) = &terminal {
        print(&text::terminal(terminal.descriptor(), &terminal.path.display().to_string()));
    }
    let mut channel = connect(options, &journal)?;
    let channel = &mut *channel;
    let (message, policy) = match (options.task, terminal) {
        (Task::LongPing, _) => (Message::LongPing, "long_ping_msg"),
        (_, None) => (Message::Ping, "ping_msg"),
        (_, Some(terminal)) => {
            return match pty::relay(&terminal, channel, &signals)?.1 {
                End::Signal(_) => Ok(0),
                End::Remote(how) => anyhow::bail!("the remote is gone: {how}"),
            };
        }
    };
    let mut lines = Lines::new();
    let mut pinger = Pinger::new(channel, message);
    let outcome =
        pinger.repeat(options.loops, options.pace, &signals, |trips| lines.show(text::pings(policy, trips)));
    lines.end();
    pinger.tell(NAME);
    let (trips, interrupted) = outcome?;
    Ok(u8::from(trips.count == 0 && !interrupted))
}

/// Connects to all endpoints, as the original does, and keeps the one that is used.
fn connect(options: &Options, journal: &dyn Fn(&Leftover) -> Result<()>) -> Result<Box<dyn Channel>> {
    let wanted = options.task.service();
    let board = Path::new(BOARD.0).exists();
    let transport = match board {
        true => remote::transport(BOARD.1).context("no way to /dev/mcs")?,
        false => &shm::SHM,
    };
    let cpus = cpus(options, board)?;
    let mut params: Params = transport
        .options
        .iter()
        .map(|option| {
            let given = options.board.iter().find(|(name, _)| *name == option.name);
            let value = given.map_or(option.default, |(_, value)| value);
            (option.name.to_owned(), value.into())
        })
        .collect();
    params.insert("wait".to_owned(), transport.beside_others().into());
    let mut kept = None;
    for (service, id) in ENDPOINTS {
        // A board has one client, which is started once; and a terminal is announced alone.
        if (board || wanted == Service::Pty) && service != wanted {
            continue;
        }
        let channel =
            (transport.open)(&Order { params: &params, service, cpus: &cpus, journal, waiting: &|_| () })?;
        print(&text::matched(&name_of(service), id));
        if service == wanted {
            kept = Some(channel);
        }
    }
    kept.context("no endpoint")
}

fn name_of(service: Service) -> String {
    service.name().to_string()
}

/// CPUs of this process and of the remote. This one goes to its own.
fn cpus(options: &Options, board: bool) -> Result<Vec<u32>> {
    let allowed = sched::allowed_cpus()?;
    let wanted = options.cpu.and_then(|cpu| u32::try_from(cpu).ok());
    if board {
        return Ok(wanted.map_or(allowed.clone(), |cpu| vec![allowed[0], cpu]));
    }
    let there = wanted.filter(|cpu| allowed.contains(cpu)).or(allowed.get(1).copied()).unwrap_or(allowed[0]);
    let here = allowed.iter().copied().find(|cpu| *cpu != there).unwrap_or(there);
    note(NAME, &format!("there is no {}: the remote is a process of latscope on CPU {there}", BOARD.0));
    ensure!(sched::pin(&[here]).is_ok(), "CPU {here} cannot be used");
    Ok(vec![here, there])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Refusal> {
        Options::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_documented_calls_are_understood() {
        let options = read("-c 3 -t zephyr-image.bin -a 0x7a000000 --ping --loop 10").unwrap();
        assert_eq!((options.task, options.loops, options.cpu), (Task::Ping, 10, Some(3)));
        let board = [("mcs-cpu", "3"), ("mcs-image", "zephyr-image.bin"), ("mcs-address", "0x7a000000")];
        let board = board.map(|(name, value)| (name, value.to_owned()));
        assert_eq!((&options.board[..], options.pace), (&board[..], Duration::from_millis(200)));
        assert_eq!(read("--long-ping --loop 10 -e 7a000000").unwrap().task, Task::LongPing);
        assert_eq!(read("-c3 --pty").unwrap(), Options { task: Task::Pty, ..read("-c 3 --ping").unwrap() });
        assert_eq!(read("--ping --pace 0ms").unwrap().pace, Duration::ZERO);
        assert_eq!(read("-h"), Err(Refusal::Help));
    }

    #[test]
    fn a_board_is_told_by_options_that_it_has() {
        let board = remote::transport(BOARD.1).unwrap();
        let options = read("-c 3 -t x -a 0 -e 0 --ping").unwrap();
        assert_eq!(options.board.len(), 4);
        for (name, _) in options.board {
            assert!(board.options.iter().any(|option| option.name == name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        // The original crashes without a value of -a, and takes two tasks at once.
        for line in [
            "",
            "-a",
            "-a x --ping",
            "--ping --pty",
            "--loop x --ping",
            "--ping more",
            "--pace 3 --ping",
            "-z",
        ] {
            let Err(Refusal::Usage(text)) = read(line) else { panic!("{line}") };
            assert!(!text.contains('\n'), "{line}: {text}");
        }
    }
}
