//! `mica_main`: pings to a client operating system, or a terminal that leads to it.

use super::pings::{McsPingKind, McsPinger};
use super::{MCS, Pings, signals, text, times};
use crate::context::PersonalityContext;
use crate::environment;
use crate::getopt::{
    CommandLineRefusal, FLAG, OptionOccurrence, ProgramCall, ProgramOption, part, set_field, value,
};
use crate::personality::PersonalityProgram;
use anyhow::{Context as _, Result, ensure};
use latscope_core::param;
use latscope_core::plan::Params;
use latscope_exchange::remote::pty::{self, PseudoTerminal, PtyRelayEnd};
use latscope_exchange::remote::{self, ChannelRequest, RemoteChannel, shm};
use latscope_os::sched;
use latscope_process::guardian::Guardian;
use latscope_process::leftover::Leftover;
use latscope_process::stdout::print_text;
use latscope_rpmsg::echo::RpmsgService;
use std::path::Path;
use std::time::Duration;

/// Program `mica_main`.
pub static MICA_MAIN: PersonalityProgram<MicaMainOptions> = PersonalityProgram::new(
    "mica_main",
    "pings to a client operating system",
    &MCS,
    SPECS,
    resolve_options,
    carry_out,
);

/// Options of mica_main, in the order of its usage.
#[rustfmt::skip]
pub static SPECS: &[ProgramOption<MicaMainOptions>] = &[
    ProgramOption::new(Some('c'), "cpu", value("CPU"), "CPU of the client", cpu),
    ProgramOption::new(Some('t'), "target", value("IMAGE"), "its image, on a board", |o, given| o.add_board_option("mcs-image", given)),
    ProgramOption::new(Some('a'), "address", value("ADDRESS"), "where the image goes, hexadecimal, on a board",
        |o, given| hexadecimal(given).and(o.add_board_option("mcs-address", given))),
    ProgramOption::new(Some('e'), "entry", value("ADDRESS"), "where it begins, hexadecimal, on a board",
        |o, given| hexadecimal(given).and(o.add_board_option("mcs-entry", given))),
    ProgramOption::new(None, "ping", FLAG, "pings of 48 bytes", |o, _| o.add_task(MicaMainTask::Ping)),
    ProgramOption::new(None, "long-ping", FLAG, "pings of 3840 bytes in 8 packets", |o, _| o.add_task(MicaMainTask::LongPing)),
    ProgramOption::loops(None),
    ProgramOption::new(None, "pty", FLAG, "a terminal that leads to the client", |o, _| o.add_task(MicaMainTask::Pty)),
    ProgramOption::HELP,
    ProgramOption::PACE,
    ProgramOption::PRINTED,
];

/// Services with the ids of their endpoints.
const ENDPOINTS: [(RpmsgService, u32); 3] =
    [(RpmsgService::Pty, 3), (RpmsgService::Ping, 1), (RpmsgService::LongPing, 2)];

/// Path of the device of a board with MCS, and the name of the transport over it.
const BOARD: (&str, &str) = ("/dev/mcs", "mcs");

/// Task that a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicaMainTask {
    /// Task of `--ping`: pings of 48 bytes.
    Ping,
    /// Task of `--long-ping`: pings of 3840 bytes in 8 packets.
    LongPing,
    /// Task of `--pty`: a terminal that leads to the client.
    Pty,
}

impl MicaMainTask {
    fn service(self) -> RpmsgService {
        match self {
            MicaMainTask::Ping => RpmsgService::Ping,
            MicaMainTask::LongPing => RpmsgService::LongPing,
            MicaMainTask::Pty => RpmsgService::Pty,
        }
    }
}

/// Values of the options of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MicaMainOptions {
    /// Tasks asked for. A call that is carried out has exactly one task.
    pub tasks: Vec<MicaMainTask>,
    /// Number and pace of the pings.
    pub pings: Pings,
    /// Value of `-c`: the CPU of the client.
    pub cpu: Option<u64>,
    /// Options for the transport of a board, with their values.
    pub board: Vec<(&'static str, String)>,
}

part!(MicaMainOptions, pings: Pings);

/// Checks that exactly one task is asked for.
fn resolve_options(mut call: ProgramCall<MicaMainOptions>) -> Result<MicaMainOptions, CommandLineRefusal> {
    if let Some(operand) = call.operands.first() {
        return Err(CommandLineRefusal::Usage(format!("{operand:?} is no option")));
    }
    call.options.tasks.dedup();
    match call.options.tasks[..] {
        [_] => Ok(call.options),
        [] => Err(CommandLineRefusal::Usage("one of --ping, --long-ping and --pty is needed".to_owned())),
        _ => Err(CommandLineRefusal::Usage(
            "--ping, --long-ping and --pty are calls of their own: give one of them".to_owned(),
        )),
    }
}

impl MicaMainOptions {
    fn task(&self) -> MicaMainTask {
        self.tasks[0]
    }

    fn add_task(&mut self, task: MicaMainTask) -> Result<(), CommandLineRefusal> {
        self.tasks.push(task);
        Ok(())
    }

    fn add_board_option(
        &mut self,
        option: &'static str,
        given: &OptionOccurrence,
    ) -> Result<(), CommandLineRefusal> {
        self.board.push((option, given.value_text().to_owned()));
        Ok(())
    }
}

fn cpu(options: &mut MicaMainOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    set_field(&mut options.cpu, given.parse_in_range(0..=u64::MAX).map(Some))?;
    options.add_board_option("mcs-cpu", given)
}

fn hexadecimal(given: &OptionOccurrence) -> Result<(), CommandLineRefusal> {
    let wrong = |_| {
        CommandLineRefusal::Usage(format!("{} {} is no hexadecimal address", given.name, given.value_text()))
    };
    u64::from_str_radix(given.value_text().trim_start_matches("0x"), 16).map(drop).map_err(wrong)
}

fn carry_out(options: &MicaMainOptions, context: &PersonalityContext) -> Result<u8> {
    let what = match options.task() {
        MicaMainTask::Pty => "a terminal".to_owned(),
        task => format!("{}, {}", name_of(task.service()), times(&options.pings)),
    };
    if environment::show_outline(context, "remote", what, None) {
        return Ok(0);
    }
    let guardian = Guardian::default();
    let journal = |leftover: &Leftover| guardian.journal_leftover(leftover);
    let terminal = (options.task() == MicaMainTask::Pty).then(PseudoTerminal::open).transpose()?;
    if let Some(terminal) = &terminal {
        print_text(&text::format_terminal(
            terminal.master_descriptor(),
            &terminal.path.display().to_string(),
        ));
    }
    let mut channel = connect(options, context, &journal)?;
    // Until here a signal ends the process: a remote may take its time to come.
    let signals = signals()?;
    let channel = &mut *channel;
    let (message, policy) = match (options.task(), terminal) {
        (MicaMainTask::LongPing, _) => (McsPingKind::LongPing, "long_ping_msg"),
        (_, None) => (McsPingKind::Ping, "ping_msg"),
        (_, Some(terminal)) => {
            return match pty::relay(&terminal, channel, &signals)?.1 {
                PtyRelayEnd::Signal(_) => Ok(0),
                PtyRelayEnd::Remote(how) => anyhow::bail!("the remote is gone: {how}"),
            };
        }
    };
    let pinger = McsPinger::new(channel, message);
    let (trips, interrupted) = pinger.run_pings(context, &options.pings, &signals, |trips| {
        text::pings(policy, trips, options.pings.layout)
    })?;
    Ok(u8::from(trips.count == 0 && !interrupted))
}

/// Connects to the endpoints of a call, and returns the channel of its task. Pings without a board connect to all
/// endpoints, as the original does.
fn connect(
    options: &MicaMainOptions,
    context: &PersonalityContext,
    journal: &dyn Fn(&Leftover) -> Result<()>,
) -> Result<Box<dyn RemoteChannel>> {
    let wanted = options.task().service();
    let board = Path::new(BOARD.0).exists();
    let transport = match board {
        true => remote::transport(BOARD.1).context("no way to /dev/mcs")?,
        false => &shm::SHM,
    };
    let cpus = cpus(options, context, board)?;
    let mut params: Params = transport
        .options
        .iter()
        .map(|option| {
            let given = options.board.iter().find(|(name, _)| *name == option.name);
            let value = given.map_or(option.default, |(_, value)| value);
            (option.name.to_owned(), value.into())
        })
        .collect();
    params.insert(param::WAIT.to_owned(), transport.beside_others().into());
    let mut kept = None;
    for (service, id) in ENDPOINTS {
        // A board has one client, which is started once; and a terminal is announced alone.
        if (board || wanted == RpmsgService::Pty) && service != wanted {
            continue;
        }
        let channel = (transport.open)(&ChannelRequest {
            params: &params,
            service,
            cpus: &cpus,
            journal,
            patience: Duration::MAX,
            notice: &|_| (),
        })?;
        print_text(&text::matched(&name_of(service), id));
        if service == wanted {
            kept = Some(channel);
        }
    }
    kept.context("no endpoint")
}

fn name_of(service: RpmsgService) -> String {
    service.endpoint_name().to_string()
}

/// Returns the CPUs of this process and of the remote, and moves this process to its own.
fn cpus(options: &MicaMainOptions, context: &PersonalityContext, board: bool) -> Result<Vec<u32>> {
    let allowed = sched::allowed_cpus()?;
    let wanted = options.cpu.and_then(|cpu| u32::try_from(cpu).ok());
    if board {
        return Ok(wanted.map_or(allowed.clone(), |cpu| vec![allowed[0], cpu]));
    }
    let there = wanted.filter(|cpu| allowed.contains(cpu)).or(allowed.get(1).copied()).unwrap_or(allowed[0]);
    let here = allowed.iter().copied().find(|cpu| *cpu != there).unwrap_or(there);
    let asked = match wanted.filter(|cpu| *cpu != there) {
        Some(cpu) => format!("; -c {cpu} is for a board, and here no CPU that may be used"),
        None => String::new(),
    };
    context.print_note(&format!(
        "there is no {}: the remote is a process of latscope on CPU {there}{asked}",
        BOARD.0
    ));
    ensure!(sched::pin(&[here]).is_ok(), "CPU {here} cannot be used");
    Ok(vec![here, there])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(line: &str) -> Result<MicaMainOptions, CommandLineRefusal> {
        MICA_MAIN.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn the_documented_calls_are_understood() {
        let options = read("-c 3 -t zephyr-image.bin -a 0x7a000000 --ping --loop 10").unwrap();
        assert_eq!((options.task(), options.pings.loops, options.cpu), (MicaMainTask::Ping, 10, Some(3)));
        let board = [("mcs-cpu", "3"), ("mcs-image", "zephyr-image.bin"), ("mcs-address", "0x7a000000")];
        let board = board.map(|(name, value)| (name, value.to_owned()));
        assert_eq!((&options.board[..], options.pings.pace), (&board[..], Duration::from_millis(200)));
        assert_eq!(read("--long-ping --loop 10 -e 7a000000").unwrap().task(), MicaMainTask::LongPing);
        assert_eq!(
            read("-c3 --pty").unwrap(),
            MicaMainOptions { tasks: vec![MicaMainTask::Pty], ..read("-c 3 --ping").unwrap() }
        );
        assert_eq!(read("--ping --pace 0ms").unwrap().pings.pace, Duration::ZERO);
        assert_eq!(read("-h"), Err(CommandLineRefusal::Help));
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
    fn several_tasks_are_told_from_none() {
        let said = |line: &str| match read(line) {
            Err(CommandLineRefusal::Usage(text)) => text,
            other => panic!("{line}: {other:?}"),
        };
        assert!(said("").contains("is needed"));
        assert!(said("--ping --long-ping").contains("give one of them"));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        // The original crashes without a value of -a, and takes two tasks at once.
        for line in [
            "", "-a", "-a x --ping", "--ping --pty", "--loop x --ping", "--ping more", "--pace 3 --ping",
            "-z",
        ] {
            let Err(CommandLineRefusal::Usage(text)) = read(line) else { panic!("{line}") };
            assert!(!text.contains('\n'), "{line}: {text}");
        }
    }
}
