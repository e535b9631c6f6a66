//! The options of the transports.

use crate::cli::options::Registered;
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use latscope_core::plan::{ParamValue, Params};
use latscope_exchange::remote::{RemoteOption, TRANSPORTS};
use std::collections::BTreeSet;

/// The options of transports that were given.
#[derive(Debug, Clone)]
pub struct TransportOptions(pub Params);

/// Each option of a transport, once: where several have it, the first says what it is.
fn options() -> impl Iterator<Item = &'static RemoteOption> {
    let mut known = BTreeSet::new();
    TRANSPORTS.iter().flat_map(|transport| transport.options).filter(move |option| known.insert(option.name))
}

impl Registered for TransportOptions {
    fn add_options(command: Command) -> Command {
        command.args(options().map(|option| {
            let argument = Arg::new(option.name).long(option.name);
            let argument = if option.value.is_empty() {
                argument.action(ArgAction::SetTrue)
            } else {
                argument.value_name(option.value)
            };
            argument
                .help(option.help)
                .help_heading(format!("Transport {}", transports_with(option.name).join(", ")))
        }))
    }

    fn read_options(matches: &ArgMatches) -> Self {
        let given = |option: &RemoteOption| {
            let value = if option.value.is_empty() {
                matches.get_flag(option.name).then_some(RemoteOption::GIVEN)?
            } else {
                matches.get_one::<String>(option.name)?
            };
            Some((option.name.to_owned(), ParamValue::from(value)))
        };
        TransportOptions(options().filter_map(given).collect())
    }
}

impl TransportOptions {
    /// Checks that each given option is in `used`, the options of the chosen transports.
    ///
    /// # Errors
    /// An option is of other transports only.
    pub fn check_used(&self, chosen: &str, used: impl Fn(&str) -> bool) -> Result<()> {
        if let Some(name) = self.0.keys().find(|name| !used(name)) {
            let users = transports_with(name).join(" or ");
            bail!("--{name} is for --transport {users}, and {chosen} does not use it");
        }
        Ok(())
    }
}

/// The transports that have an option of this name.
pub fn transports_with(name: &str) -> Vec<&'static str> {
    TRANSPORTS.iter().filter(|transport| transport.has_option(name)).map(|transport| transport.name).collect()
}
