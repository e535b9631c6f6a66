//! `latscope remote serve --pty`: a terminal that leads to a remote.

use crate::cli::Exit;
use crate::cli::options::flag;
use crate::cli::remote::options::{check_used, given};
use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches, value_parser};
use latscope_core::plan::{ParamValue, Params};
use latscope_core::units::{CpuList, counted};
use latscope_exchange::remote::pty::{self, End, Flow, Tally, Terminal};
use latscope_exchange::remote::{self, Channel, NAMES, Order, shm};
use latscope_host::eprintln;
use latscope_host::guardian::OnDemand;
use latscope_host::leftover::{Leftover, Leftovers};
use latscope_os::sched;
use latscope_os::signal::{Signals, TERMINATION};
use latscope_rpmsg::echo::Service;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Its options.
pub fn arguments() -> Vec<Arg> {
    let all = vec![
        flag("echo", "No remote: the terminal itself sends back what it gets")
            .conflicts_with_all(["transport", "wait"]),
        Arg::new("transport")
            .long("transport")
            .value_name("WORD")
            .value_parser(NAMES.to_vec())
            .default_value(shm::SHM.name)
            .help("The way to the remote"),
        Arg::new("link")
            .long("link")
            .value_name("PATH")
            .value_parser(value_parser!(PathBuf))
            .help("A symbolic link to the terminal, removed at the end"),
    ];
    all.into_iter().map(|arg| arg.help_heading("With --pty").requires("pty")).collect()
}

/// Serves until it is ended.
///
/// # Errors
/// There is no terminal or no remote, or the remote ended.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let signals = Signals::block(&TERMINATION).context("signals cannot be waited for")?;
    let guardian = OnDemand::default();
    let terminal = Terminal::open()?;
    let journal = |leftover: &Leftover| guardian.journal(leftover);
    if matches.get_flag("echo") {
        check_used(matches, "serve --pty --echo", |_| false)?;
        let _link = linked(matches, &terminal.path, &journal)?;
        say(&terminal.path)?;
        let bytes = pty::echo(&terminal, &signals)?;
        eprintln!("{} echoed {bytes} bytes", terminal.path.display());
        return Ok(Exit::Done);
    }
    let mut channel = connect(matches, &journal)?;
    let _link = linked(matches, &terminal.path, &journal)?;
    say(&terminal.path)?;
    let (tally, end) = pty::relay(&terminal, &mut *channel, &signals)?;
    eprintln!("{}", told(&tally));
    match end {
        End::Signal(_) => Ok(Exit::Done),
        End::Remote(how) => anyhow::bail!("the remote is gone: {how}"),
    }
}

/// Connects to the echo of the remote.
fn connect(matches: &ArgMatches, journal: &dyn Fn(&Leftover) -> Result<()>) -> Result<Box<dyn Channel>> {
    let name: &String = matches.get_one("transport").context("--transport is needed")?;
    let transport = remote::transport(name).context("no such transport")?;
    check_used(matches, &format!("--transport {name}"), |option| transport.has(option))?;
    let wait = match matches.get_one::<String>("wait").map(String::as_str) {
        None => transport.beside_others(),
        Some(wait) => {
            ensure!(transport.waits.contains(&wait), "{name} waits by: {}", transport.waits.join(", "));
            wait
        }
    };
    let mut params = Params::from([("wait".to_owned(), ParamValue::from(wait))]);
    params.extend(transport.options.iter().map(|option| (option.name.to_owned(), option.default.into())));
    params.extend(given(matches).filter_map(|(name, values)| Some((name, values.into_iter().next()?))));
    let cpus = match matches.get_one::<CpuList>("cpus") {
        None => sched::allowed_cpus()?,
        Some(list) => {
            sched::pin(&list.0[..1]).with_context(|| format!("CPU {} cannot be used", list.0[0]))?;
            list.0.clone()
        }
    };
    let waiting = |text: &str| eprintln!("latscope: {text}");
    let order = Order { params: &params, service: Service::Pty, cpus: &cpus, journal, waiting: &waiting };
    (transport.open)(&order)
}

/// The symbolic link, if there is to be one.
fn linked(
    matches: &ArgMatches,
    terminal: &Path,
    journal: &dyn Fn(&Leftover) -> Result<()>,
) -> Result<Leftovers> {
    let Some(path) = matches.get_one::<PathBuf>("link") else { return Ok(Leftovers::none()) };
    // What others made is not ours to remove.
    ensure!(path.symlink_metadata().is_err(), "{} is there already", path.display());
    let path = std::path::absolute(path)?;
    journal(&Leftover::File(path.clone()))?;
    symlink(terminal, &path).with_context(|| format!("{} cannot be made", path.display()))?;
    Ok(Leftovers::from([Leftover::File(path)]))
}

/// The path alone on stdout, for scripts.
fn say(path: &Path) -> Result<()> {
    Ok(latscope_host::stdout::write(&format!("{}\n", path.display()))?)
}

/// What was relayed, in a line.
fn told(tally: &Tally) -> String {
    let flow =
        |flow: &Flow| format!("{} in {}", counted(flow.bytes, "byte"), counted(flow.messages, "message"));
    let Tally { there, back, unsent, unread } = tally;
    format!(
        "to the remote: {}, {} not sent; from the remote: {}, {} not delivered",
        flow(there),
        counted(*unsent, "byte"),
        flow(back),
        counted(*unread, "byte")
    )
}
