//! `latscope remote`: messages to another operating system.

mod live;
mod serve;

use super::arguments::{family_command, flag};
use super::measure::{self, Ground, Job};
use super::output::{self, Output};
use super::{Exit, family};
use crate::exchange::remote::{TRANSPORTS, Transport};
use crate::probe::remote::{LEGACY, LONG_PING, SMALLEST};
use crate::probe::{Family, Probe};
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use latscope_core::plan::{ParamValue, Plan};
use live::Line;
use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr};

/// Adds to the command of the family the options of its own and of its transports.
pub fn command(family: &'static Family) -> Command {
    family_command(family)
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
        .args(options())
        .args_conflicts_with_subcommands(true)
        .subcommand(serve::command())
}

/// Measures and shows.
///
/// # Errors
/// Options that cannot be, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    if let Some(("serve", matches)) = matches.subcommand() {
        return serve::run(matches);
    }
    let job = job(matches)?;
    let output = Output::from(matches)?;
    let ground = Ground::survey();
    let mut plan = measure::plan(&job, matches, &ground.machine)?;
    if matches.get_flag("endless") {
        endless(&mut plan)?;
    }
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files()?;
    let mut line = Line::new(stderr(), stderr().is_terminal(), output::width());
    let watcher = (!output.quiet).then_some(&mut line as _);
    let report = measure::carry_out(plan, ground, &output, watcher)?;
    measure::show(&report, &output, job.in_full)?;
    let whole = report.finished.is_some() && !report.measurements.iter().any(|m| m.incomplete);
    Ok(if whole { Exit::Done } else { Exit::Error })
}

fn job(matches: &ArgMatches) -> Result<Job> {
    let mut job = family::job("remote", matches)?;
    let payloads = job.ask.numbers("payload", &[]);
    if let Some(small) = payloads.iter().find(|payload| **payload < SMALLEST) {
        bail!("--payload {small} has no room for what is verified: choose at least {SMALLEST} bytes");
    }
    let long = |probe: &&Probe| std::ptr::eq(*probe, &LONG_PING);
    if matches.get_flag("legacy") {
        if !job.probes.iter().any(long) {
            bail!("--legacy is about long pings, and there are none: add long-ping");
        }
        job.ask.values.insert("form".to_owned(), vec![LEGACY.into()]);
    }
    let sized = job.ask.gave("payload") || matches.get_flag("sweep");
    if sized && job.probes.iter().all(long) {
        bail!(
            "a long ping has a length of its own: leave out --payload and --sweep, or choose ping or bandwidth"
        );
    }
    if matches.get_flag("sweep") {
        job.ask.values.insert("sweep".to_owned(), Vec::new());
    }
    job.ask.values.extend(given(matches));
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

/// An argument for each option, under the names of its transports.
pub(super) fn options() -> impl Iterator<Item = Arg> {
    let all = TRANSPORTS.iter().flat_map(|transport| transport.options);
    let mut known = BTreeSet::new();
    // Where several have it, the first tells what it is.
    all.filter(move |option| known.insert(option.name)).map(|option| {
        Arg::new(option.name)
            .long(option.name)
            .value_name(option.value)
            .help(option.help)
            .help_heading(format!("Transport {}", transports_with(option.name).join(", ")))
    })
}

/// The transports that have an option of this name.
fn transports_with(name: &str) -> Vec<&'static str> {
    let has = |transport: &&Transport| transport.options.iter().any(|option| option.name == name);
    TRANSPORTS.iter().copied().filter(has).map(|transport| transport.name).collect()
}

/// The options that were given.
fn given(matches: &ArgMatches) -> impl Iterator<Item = (String, Vec<ParamValue>)> {
    let names: BTreeSet<&str> =
        TRANSPORTS.iter().flat_map(|known| known.options).map(|option| option.name).collect();
    names.into_iter().filter_map(|name| {
        let value: &String = matches.get_one(name)?;
        Some((name.to_owned(), vec![ParamValue::from(value.as_str())]))
    })
}
