//! The options of the transports.

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches};
use latscope_core::plan::ParamValue;
use latscope_exchange::remote::TRANSPORTS;
use std::collections::BTreeSet;

/// An argument for each option, under the names of its transports.
pub fn arguments() -> impl Iterator<Item = Arg> {
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
pub fn transports_with(name: &str) -> Vec<&'static str> {
    TRANSPORTS.iter().filter(|transport| transport.has(name)).map(|transport| transport.name).collect()
}

/// That each option that was given is one of `used`, options of what was chosen.
///
/// # Errors
/// It is one of other transports only.
pub fn check_used(matches: &ArgMatches, chosen: &str, used: impl Fn(&str) -> bool) -> Result<()> {
    if let Some((name, _)) = given(matches).find(|(name, _)| !used(name)) {
        bail!(
            "--{name} is for --transport {}, and {chosen} does not use it",
            transports_with(&name).join(" or ")
        );
    }
    Ok(())
}

/// The options that were given.
pub fn given(matches: &ArgMatches) -> impl Iterator<Item = (String, Vec<ParamValue>)> {
    let names: BTreeSet<&str> =
        TRANSPORTS.iter().flat_map(|known| known.options).map(|option| option.name).collect();
    names.into_iter().filter_map(|name| {
        let value: &String = matches.get_one(name)?;
        Some((name.to_owned(), vec![ParamValue::from(value.as_str())]))
    })
}
