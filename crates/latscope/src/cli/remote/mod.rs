//! `latscope remote`: messages to another operating system.

mod live;
mod options;
mod serve;
mod window;

use super::CommandExit;
use super::criteria::Criteria;
use super::family::{self, FamilyArguments};
use super::live::LiveArguments;
use super::measure::{self, Measures};
use super::options::{Dynamic, RunArguments};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use latscope_bench::settings::ParamValueRequest;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::Plan;
use latscope_core::units::format_time;
use latscope_engine::observers::{Observer, ProgressStyle};
use latscope_engine::planner::RunRequest;
use latscope_exchange::remote::{MAILBOXES, RemoteTransport, TRANSPORTS, shm};
use latscope_judge::verdict::MetricCriterion;
use latscope_probes::remote::{BANDWIDTH, LONG_PING, LongPingPackets, MAILBOX, SMALLEST_BLOCK};
use latscope_probes::{KeywordEnum, PlanInput, Probe};
use latscope_process::terminal::status_width;
use live::RemoteStatusLine;
use options::TransportOptions;
use serve::ServeArguments;
use std::io::stderr;
use window::WindowArguments;

// The options of the family, with those of its transports.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    // Its probes have a parameter of the usual name.
    mut_arg("turn", |arg| arg.long("wait-turn")),
    mut_arg("count", |arg| arg.help("Pings, or stretches of blocks, of each row")),
    mut_arg("duration", |arg| arg.help("Time for each row, such as 5s"))
)]
pub struct RemoteArguments {
    #[command(subcommand)]
    command: Option<RemoteCommand>,
    #[command(flatten)]
    family: FamilyArguments,
    /// Payloads from 8 bytes to the limit of the transport, by doubling
    #[arg(long, conflicts_with = "payload")]
    sweep: bool,
    /// Long pings as MCS has them: eight packets, which are 3776 bytes of data
    #[arg(long)]
    legacy: bool,
    /// No limits: until it is interrupted; measures a single row
    #[arg(long, conflicts_with_all = ["count", "duration", "rounds"])]
    endless: bool,
    #[command(flatten)]
    live: LiveArguments,
    #[command(flatten)]
    options: Dynamic<TransportOptions>,
    #[command(flatten)]
    criteria: Dynamic<Criteria<false, true>>,
}

#[derive(Debug, Subcommand)]
enum RemoteCommand {
    /// Is there for others until Ctrl-C: a terminal that leads to a remote, or the remote itself
    Serve(ServeArguments),
    /// Makes the memory that a responder and --transport openamp share, with its resource table
    Window(WindowArguments),
}

/// Measures, or does what one of the subcommands does.
///
/// # Errors
/// As [`measure::run`], or as the subcommand.
pub fn run_remote(asked: &RemoteArguments) -> Result<CommandExit> {
    match &asked.command {
        Some(RemoteCommand::Serve(asked)) => serve::serve_remote(asked),
        Some(RemoteCommand::Window(asked)) => window::create_window(asked),
        None => measure::run_measurement(asked),
    }
}

impl Measures for RemoteArguments {
    const IN_FULL: bool = true;

    fn run_arguments(&self) -> &RunArguments {
        &self.family.run
    }

    fn plan(&self, machine: &Machine) -> Result<Plan> {
        let (probes, request) = self.probe_request()?;
        let mut plan = family::plan_request(&probes, &request, machine)?;
        plan.stop_when_exceeded = self.criteria.stop;
        if self.endless {
            endless(&mut plan)?;
        }
        Ok(plan)
    }

    fn criteria(&self, _: &Plan) -> Vec<MetricCriterion> {
        self.criteria.with_threshold(None)
    }

    fn create_observer(&self) -> Result<Box<dyn Observer>> {
        let style = self.family.run.progress;
        let width: fn() -> Option<usize> = if style == ProgressStyle::Plain { || None } else { status_width };
        self.live.watcher_or(style, || Box::new(RemoteStatusLine::new(stderr(), width)))
    }
}

impl RemoteArguments {
    fn probe_request(&self) -> Result<(Vec<&'static Probe>, RunRequest)> {
        // One long stretch: its maximum and its misses are what is asked for.
        let (probes, mut request) = self.family.probe_request("remote", 1)?;
        let input = &mut request.input;
        self.check_meaning(&probes, input)?;
        let of_a_round = self.family.run.duration.map(|time| time / u64::from(request.rounds.max(1)));
        let paces = ParamValueRequest::of::<u64>(input, param::PACE).or(&[]);
        if let Some((pace, time)) = paces.iter().max().zip(of_a_round).filter(|(pace, time)| *pace >= time) {
            bail!(
                "--pace {} leaves no time for a second message in the {} of a round, and the first is a warm-up: choose a \
                 longer --duration",
                format_time(*pace as f64),
                format_time(time as f64)
            );
        }
        let payloads = ParamValueRequest::of::<u64>(input, param::PAYLOAD).or(&[]);
        let blocks = probes.iter().any(|probe| std::ptr::eq(*probe, &BANDWIDTH));
        let least = if blocks { SMALLEST_BLOCK } else { 1 };
        if let Some(small) = payloads.iter().find(|payload| **payload < least) {
            bail!("--payload {small} has no room for what is verified: choose at least {least} bytes");
        }
        let long = |probe: &&Probe| std::ptr::eq(*probe, &LONG_PING);
        if self.legacy {
            if !probes.iter().any(long) {
                bail!("--legacy is about long pings, and there are none: add long-ping");
            }
            input.values.insert(param::FORM.to_owned(), vec![LongPingPackets::Legacy.word().into()]);
        }
        if (input.values.contains_key(param::PAYLOAD) || self.sweep) && probes.iter().all(long) {
            bail!(
                "a long ping has a length of its own: leave out --payload and --sweep, or choose ping or bandwidth"
            );
        }
        if self.sweep {
            input.values.insert("sweep".to_owned(), Vec::new());
        }
        let options = self.options.0.iter().map(|(name, value)| (name.clone(), vec![value.clone()]));
        input.values.extend(options);
        Ok((probes, request))
    }

    /// Checks that each given option has a meaning for a chosen transport.
    fn check_meaning(&self, probes: &[&Probe], input: &PlanInput) -> Result<()> {
        let names = ParamValueRequest::of::<String>(input, param::TRANSPORT).or(&[shm::SHM.name.to_owned()]);
        let chosen: Vec<&RemoteTransport> =
            TRANSPORTS.iter().copied().filter(|known| names.iter().any(|name| name == known.name)).collect();
        let transport = format!("--transport {}", names.join(","));
        self.options.check_used(&transport, |option| chosen.iter().any(|known| known.has_option(option)))?;
        for wait in ParamValueRequest::of::<String>(input, param::WAIT).or(&[]) {
            if !chosen.iter().any(|known| known.waits.contains(&wait.as_str())) {
                let waits: Vec<&str> = chosen.iter().flat_map(|known| known.waits.iter().copied()).collect();
                bail!("--wait {wait} is not for {transport}, which waits by: {}", waits.join(", "));
            }
        }
        let bare = |name: &String| MAILBOXES.iter().any(|(known, _)| known == name);
        if probes.iter().all(|probe| std::ptr::eq(*probe, &MAILBOX)) && !names.iter().any(bare) {
            let known: Vec<&str> = MAILBOXES.iter().map(|(name, _)| *name).collect();
            bail!("the single-word mailbox requires --transport {}", known.join(" or "));
        }
        Ok(())
    }
}

/// Takes the limits away.
fn endless(plan: &mut Plan) -> Result<()> {
    let rows = plan.steps.iter().map(|step| step.points.len()).sum::<usize>();
    if rows != 1 {
        bail!("--endless measures one row, and this is {rows}: choose for instance `ping --wait futex`");
    }
    for step in &mut plan.steps {
        (step.stop.events, step.stop.limit_ns) = (u64::MAX, u64::MAX);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::options::transports_with;
    use super::*;
    use clap::{Command, FromArgMatches};
    use std::collections::BTreeSet;

    /// Returns the request of `latscope remote` with these words, or the reason why it cannot be measured.
    fn asked(words: &[&str]) -> Result<RunRequest> {
        let words = ["remote"].iter().chain(words);
        let matches =
            RemoteArguments::augment_args(Command::new("remote")).try_get_matches_from(words).unwrap();
        Ok(RemoteArguments::from_arg_matches(&matches).unwrap().probe_request()?.1)
    }

    #[track_caller]
    fn refused(words: &[&str]) -> String {
        format!("{:#}", asked(words).err().unwrap_or_else(|| panic!("{words:?} has a meaning")))
    }

    #[test]
    fn an_option_is_of_a_transport_that_is_chosen() {
        let known = || TRANSPORTS.iter().flat_map(|transport| transport.options);
        let options: BTreeSet<&str> = known().map(|option| option.name).collect();
        let flag = |name: &str| known().any(|option| option.name == name && option.value.is_empty());
        for transport in TRANSPORTS {
            for option in &options {
                let given = format!("--{option}{}", if flag(option) { "" } else { "=1" });
                let words = ["ping", "--transport", transport.name, &given];
                if transport.has_option(option) {
                    assert!(asked(&words).is_ok(), "{words:?}");
                    continue;
                }
                let line = refused(&words);
                assert!(line.contains(&format!("--{option}")) && line.contains(transport.name), "{line}");
                let users = transports_with(option);
                assert!(!users.is_empty() && users.iter().all(|user| line.contains(user)), "{line}");
                // One transport that has it is enough.
                let both = format!("{},{}", transport.name, users[0]);
                assert!(asked(&["ping", "--transport", &both, &given]).is_ok(), "{both} {option}");
            }
        }
    }

    #[test]
    fn a_way_to_wait_is_of_a_transport_that_is_chosen() {
        for transport in TRANSPORTS {
            for (wait, _) in latscope_exchange::remote::WAITS {
                let words = ["ping", "--transport", transport.name, "--wait", wait];
                if transport.waits.contains(wait) {
                    assert!(asked(&words).is_ok(), "{words:?}");
                } else {
                    let line = refused(&words);
                    assert!(transport.waits.iter().all(|known| line.contains(known)), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_bare_word_goes_over_some_transports() {
        for transport in TRANSPORTS {
            let possible = MAILBOXES.iter().any(|(name, _)| *name == transport.name);
            assert_eq!(
                asked(&["mailbox", "--transport", transport.name]).is_ok(),
                possible,
                "{}",
                transport.name
            );
            // Where other probes are measured, too, it is left out.
            assert!(asked(&["mailbox", "ping", "--transport", transport.name]).is_ok());
        }
        assert!(refused(&["mailbox", "--transport", "openamp"]).contains("shm or ivshmem"));
    }

    #[test]
    fn a_pace_leaves_time_for_a_second_message() {
        for words in [
            "ping --pace 3s --duration 1s",
            "ping --pace 1s --duration 1s",
            "ping --pace 300ms --duration 1s --rounds 4",
        ] {
            let line = refused(&words.split(' ').collect::<Vec<_>>());
            assert!(line.contains("choose a longer --duration"), "{line}");
        }
        assert!(asked(&["ping", "--pace", "300ms", "--duration", "1s"]).is_ok());
    }

    #[test]
    fn a_parameter_is_of_a_probe_that_is_measured() {
        for (words, users) in [
            (["ping", "--mode", "lock-step"], "remote.long-ping"),
            (["ping", "--direction", "echoed"], "remote.bandwidth"),
            (["bandwidth", "--pace", "1s"], "remote.ping"),
        ] {
            let line = refused(&words);
            assert!(line.contains(users) && line.contains(words[1]), "{line}");
            assert!(asked(&words[1..]).is_ok(), "of all probes one has it");
        }
    }
}
