//! `latscope remote`: messages to another operating system.

mod live;
mod options;
mod serve;
mod window;

use super::measure::{self, Environment, Job};
use super::options::flag;
use super::output::{self, Output};
use super::{Exit, criteria, family};
use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use latscope_core::plan::Plan;
use latscope_exchange::remote::{MAILBOXES, TRANSPORTS, Transport, shm};
use latscope_probes::remote::{LEGACY, LONG_PING, MAILBOX, PROBES, SMALLEST};
use latscope_probes::{Family, Probe};
use live::Line;
use options::{check_used, given};
use std::io::{IsTerminal, stderr};

/// Adds to the command of the family the options of its own and of its transports.
pub fn command(family: &'static Family) -> Command {
    family::command(family)
        .arg(
            flag("sweep", "Payloads from 8 bytes to the limit of the transport, by doubling")
                .conflicts_with("payload"),
        )
        .arg(flag("legacy", "Long pings as MCS has them: eight packets, which are 3776 bytes of data"))
        .arg(
            flag("endless", "No limits: until it is interrupted; measures a single row")
                .conflicts_with_all(["count", "duration"]),
        )
        .mut_arg("count", |arg| arg.help("Pings, or stretches of blocks, of each row"))
        .mut_arg("duration", |arg| arg.help("Time for each row, such as 5s"))
        .args(options::arguments())
        .args_conflicts_with_subcommands(true)
        .subcommand(serve::command())
        .subcommand(window::command())
}

/// Measures and shows.
///
/// # Errors
/// Options that cannot be, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    match matches.subcommand() {
        Some(("serve", matches)) => return serve::run(matches),
        Some(("window", matches)) => return window::run(matches),
        _ => {}
    }
    let job = job(matches)?;
    let output = Output::from(matches)?;
    let environment = Environment::named(matches)?;
    let mut plan = measure::plan(&job, matches, &environment.machine)?;
    if matches.get_flag("endless") {
        endless(&mut plan)?;
    }
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files(&plan)?;
    let mut line = Line::new(stderr(), stderr().is_terminal(), output::width());
    let watcher = (!output.quiet).then_some(&mut line as _);
    let report = measure::carry_out(plan, environment, &output, watcher)?;
    measure::show(&report, &output, job.in_full)?;
    Ok(criteria::exit(&report))
}

fn job(matches: &ArgMatches) -> Result<Job> {
    let mut job = family::job("remote", matches)?;
    check_meaning(&job, matches)?;
    let payloads = job.input.numbers("payload", &[]);
    if let Some(small) = payloads.iter().find(|payload| **payload < SMALLEST) {
        bail!("--payload {small} has no room for what is verified: choose at least {SMALLEST} bytes");
    }
    let long = |probe: &&Probe| std::ptr::eq(*probe, &LONG_PING);
    if matches.get_flag("legacy") {
        if !job.probes.iter().any(long) {
            bail!("--legacy is about long pings, and there are none: add long-ping");
        }
        job.input.values.insert("form".to_owned(), vec![LEGACY.into()]);
    }
    let sized = job.input.gave("payload") || matches.get_flag("sweep");
    if sized && job.probes.iter().all(long) {
        bail!(
            "a long ping has a length of its own: leave out --payload and --sweep, or choose ping or bandwidth"
        );
    }
    if matches.get_flag("sweep") {
        job.input.values.insert("sweep".to_owned(), Vec::new());
    }
    job.input.values.extend(given(matches));
    Ok(job)
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

/// That what was given has a meaning for a transport that was chosen, and for a probe.
fn check_meaning(job: &Job, matches: &ArgMatches) -> Result<()> {
    let names = job.input.texts("transport", &[shm::SHM.name]);
    let chosen: Vec<&Transport> =
        TRANSPORTS.iter().copied().filter(|known| names.iter().any(|name| name == known.name)).collect();
    let transport = format!("--transport {}", names.join(","));
    check_used(matches, &transport, |option| chosen.iter().any(|known| known.has(option)))?;
    for wait in job.input.texts("wait", &[]) {
        if !chosen.iter().any(|known| known.waits.contains(&wait.as_str())) {
            let waits: Vec<&str> = chosen.iter().flat_map(|known| known.waits.iter().copied()).collect();
            bail!("--wait {wait} is not for {transport}, which waits by: {}", waits.join(", "));
        }
    }
    let bare = |name: &String| MAILBOXES.iter().any(|(known, _)| known == name);
    if job.probes.iter().all(|probe| std::ptr::eq(*probe, &MAILBOX)) && !names.iter().any(bare) {
        let known: Vec<&str> = MAILBOXES.iter().map(|(name, _)| *name).collect();
        bail!("the single-word mailbox requires --transport {}", known.join(" or "));
    }
    for parameter in job.input.values.keys() {
        let has = |probe: &&&Probe| probe.params.iter().any(|known| known.name == parameter);
        let users: Vec<&str> = PROBES.iter().filter(has).map(|probe| probe.id).collect();
        if !users.is_empty() && !job.probes.iter().any(|probe| has(&probe)) {
            bail!("--{parameter} is for {}, which is not measured", users.join(", "));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::options::transports_with;
    use super::*;
    use latscope_probes::FAMILIES;
    use std::collections::BTreeSet;

    /// What is to be measured by `latscope remote` with these words, or why it cannot be.
    fn asked(words: &[&str]) -> Result<Job> {
        let family = FAMILIES.iter().find(|family| family.name == "remote").unwrap();
        let words = ["remote"].iter().chain(words);
        job(&command(family).try_get_matches_from(words).unwrap())
    }

    #[track_caller]
    fn refused(words: &[&str]) -> String {
        format!("{:#}", asked(words).err().unwrap_or_else(|| panic!("{words:?} has a meaning")))
    }

    #[test]
    fn an_option_is_of_a_transport_that_is_chosen() {
        let options: BTreeSet<&str> =
            TRANSPORTS.iter().flat_map(|known| known.options).map(|option| option.name).collect();
        for transport in TRANSPORTS {
            for option in &options {
                let given = format!("--{option}");
                let words = ["ping", "--transport", transport.name, &given, "1"];
                if transport.has(option) {
                    assert!(asked(&words).is_ok(), "{words:?}");
                    continue;
                }
                let line = refused(&words);
                assert!(line.contains(&given) && line.contains(transport.name), "{line}");
                let users = transports_with(option);
                assert!(!users.is_empty() && users.iter().all(|user| line.contains(user)), "{line}");
                // One transport that has it is enough.
                let both = format!("{},{}", transport.name, users[0]);
                assert!(asked(&["ping", "--transport", &both, &given, "1"]).is_ok(), "{both} {option}");
            }
        }
    }

    #[test]
    fn a_way_to_wait_is_of_a_transport_that_is_chosen() {
        for transport in TRANSPORTS {
            for wait in latscope_exchange::remote::WAITS {
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
