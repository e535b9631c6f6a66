//! `latscope remote serve --pty`: a terminal that leads to a remote.

use super::ServeArguments;
use crate::cli::CommandExit;
use crate::cli::options::word_parser;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::units::count_with_noun;
use latscope_exchange::remote::pty::{self, Flow, PseudoTerminal, PtyRelayEnd, PtyRelayTotals};
use latscope_exchange::remote::{self, ChannelRequest, NAMES, RemoteChannel, shm};
use latscope_os::sched;
use latscope_os::signal::{SignalFd, TERMINATION};
use latscope_process::eprintln;
use latscope_process::files::{HeldDirectory, Looked};
use latscope_process::guardian::Guardian;
use latscope_process::leftover::{Leftover, Leftovers};
use latscope_rpmsg::echo::RpmsgService;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct PtyArguments {
    /// No remote: the terminal itself sends back what it gets
    #[arg(long, conflicts_with_all = ["openamp", "vhost_user", "transport", "wait", "cpus"])]
    echo: bool,
    /// The way to the remote
    #[arg(long, conflicts_with_all = ["openamp", "vhost_user"], value_name = "WORD", value_parser = word_parser(NAMES.iter().copied()), default_value = shm::SHM.name)]
    transport: String,
    /// A symbolic link to the terminal, removed at the end
    #[arg(long, conflicts_with_all = ["openamp", "vhost_user"], value_name = "PATH")]
    link: Option<PathBuf>,
}

/// Serves until it is ended.
///
/// # Errors
/// There is no terminal or no remote, or the remote ended.
pub fn serve_pty(asked: &ServeArguments) -> Result<CommandExit> {
    let signals = || SignalFd::block(&TERMINATION).context("signals cannot be waited for");
    let guardian = Guardian::default();
    let terminal = PseudoTerminal::open()?;
    let journal = |leftover: &Leftover| guardian.journal_leftover(leftover);
    if asked.pty.echo {
        asked.options.check_used("serve --pty --echo", |_| false)?;
        let signals = signals()?;
        let _link = create_link(asked.pty.link.as_deref(), &terminal.path, &journal)?;
        print_path(&terminal.path)?;
        let bytes = pty::echo(&terminal, &signals)?;
        eprintln!("{} echoed {bytes} bytes", terminal.path.display());
        return Ok(CommandExit::Done);
    }
    let mut channel = connect(asked, &journal)?;
    // Until here a signal ends the process: a remote may take its time to come.
    let signals = signals()?;
    let _link = create_link(asked.pty.link.as_deref(), &terminal.path, &journal)?;
    print_path(&terminal.path)?;
    let (tally, end) = pty::relay(&terminal, &mut *channel, &signals)?;
    eprintln!("{}", format_totals(&tally));
    match end {
        PtyRelayEnd::Signal(_) => Ok(CommandExit::Done),
        PtyRelayEnd::Remote(how) => anyhow::bail!("the remote is gone: {how}"),
    }
}

/// Connects to the echo of the remote.
fn connect(
    asked: &ServeArguments,
    journal: &dyn Fn(&Leftover) -> Result<()>,
) -> Result<Box<dyn RemoteChannel>> {
    let name = &asked.pty.transport;
    let transport = remote::transport(name).context("no such transport")?;
    asked.options.check_used(&format!("--transport {name}"), |option| transport.has_option(option))?;
    let wait = match asked.wait.as_deref() {
        None => transport.beside_others(),
        Some(wait) => {
            ensure!(transport.waits.contains(&wait), "{name} waits by: {}", transport.waits.join(", "));
            wait
        }
    };
    let mut params = Params::from([(param::WAIT.to_owned(), ParamValue::from(wait))]);
    params.extend(transport.options.iter().map(|option| (option.name.to_owned(), option.default.into())));
    params.extend(asked.options.0.clone());
    let cpus = match &asked.cpus {
        None => sched::allowed_cpus()?,
        Some(list) => {
            sched::pin(&list.0[..1]).with_context(|| format!("CPU {} cannot be used", list.0[0]))?;
            list.0.clone()
        }
    };
    let notice = |text: &str| eprintln!("latscope: {text}");
    let (params, cpus, notice) = (&params, &cpus, &notice);
    // Who serves waits for the remote as long as it takes to give up.
    let (service, patience) = (RpmsgService::Pty, Duration::MAX);
    (transport.open)(&ChannelRequest { params, service, cpus, journal, patience, notice })
}

/// The symbolic link, if there is to be one.
fn create_link(
    path: Option<&Path>,
    terminal: &Path,
    journal: &dyn Fn(&Leftover) -> Result<()>,
) -> Result<Leftovers> {
    let Some(path) = path else { return Ok(Leftovers::none()) };
    let cannot = || format!("{} cannot be made", path.display());
    let held = HeldDirectory::of_file(path).with_context(cannot)?;
    // What others made is not ours to remove.
    match Looked::at_name(&held.path_to(path)) {
        Ok(_) => bail!("{} is there already", path.display()),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(cannot),
        Err(_) => {}
    }
    let leftover = Leftover::Link(std::path::absolute(path)?, terminal.to_owned());
    journal(&leftover)?;
    symlink(terminal, held.path_to(path)).with_context(cannot)?;
    Ok(Leftovers::from([leftover]))
}

/// The path alone on stdout, for scripts.
fn print_path(path: &Path) -> Result<()> {
    Ok(latscope_process::stdout::write_text(&format!("{}\n", path.display()))?)
}

/// Summary of the relayed messages, in a line.
fn format_totals(tally: &PtyRelayTotals) -> String {
    let flow = |flow: &Flow| {
        format!("{} in {}", count_with_noun(flow.bytes, "byte"), count_with_noun(flow.messages, "message"))
    };
    let PtyRelayTotals { there, back, unsent, unread } = tally;
    format!(
        "to the remote: {}, {} not sent; from the remote: {}, {} not delivered",
        flow(there),
        count_with_noun(*unsent, "byte"),
        flow(back),
        count_with_noun(*unread, "byte")
    )
}
