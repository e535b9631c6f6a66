//! `latscope remote`: messages to another operating system.

mod serve;

use super::arguments::family_command;
use super::measure;
use super::{Exit, family};
use crate::exchange::remote::TRANSPORTS;
use crate::probe::Family;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command};
use latscope_core::plan::ParamValue;

/// Adds to the command of the family the options of its transports.
pub fn command(family: &'static Family) -> Command {
    family_command(family).args(options()).args_conflicts_with_subcommands(true).subcommand(serve::command())
}

/// Measures and shows.
///
/// # Errors
/// Options that cannot be, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    if let Some(("serve", matches)) = matches.subcommand() {
        return serve::run(matches);
    }
    let mut job = family::job("remote", matches)?;
    job.ask.values.extend(given(matches));
    measure::run(job, matches)
}

/// An argument for each option, under the name of its transport.
fn options() -> impl Iterator<Item = Arg> {
    TRANSPORTS.iter().flat_map(|transport| {
        transport.options.iter().map(move |option| {
            Arg::new(option.name)
                .long(option.name)
                .value_name(option.value)
                .help(option.help)
                .help_heading(format!("Transport {}", transport.name))
        })
    })
}

/// The options that were given.
fn given(matches: &ArgMatches) -> impl Iterator<Item = (String, Vec<ParamValue>)> {
    let names = TRANSPORTS.iter().flat_map(|transport| transport.options.iter().map(|option| option.name));
    names.filter_map(|name| {
        let value: &String = matches.get_one(name)?;
        Some((name.to_owned(), vec![ParamValue::from(value.as_str())]))
    })
}
