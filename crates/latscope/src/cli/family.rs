//! `latscope cpu|memory|…`: one family with its own parameters.

use super::Exit;
use super::measure::{self, Job};
use super::options::{self, file, flag, run_arguments, view_arguments};
use anyhow::{Result, anyhow, bail};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Command};
use latscope_core::plan::ParamValue;
use latscope_core::units::{ParseError, parse_duration, parse_size};
use latscope_os::kernels::chase::MAX_CHAINS;
use latscope_probes::file::directory::{self, Defaults};
use latscope_probes::{self as probe, Directory, FAMILIES, Family, Kind, Param, PlanInput, Probe, Profile};
use std::path::PathBuf;

/// The command of a family, with its parameters from the registry.
pub fn command(family: &'static Family) -> Command {
    let short = |id: &'static str| id.split_once('.').map_or(id, |(_, name)| name);
    let mut command = Command::new(family.name)
        .about(family.about)
        .arg(
            Arg::new("probe")
                .value_name("PROBE")
                .num_args(0..)
                .value_parser(PossibleValuesParser::new(family.probes.iter().map(|probe| short(probe.id))))
                .help("Only these probes of the family"),
        )
        .arg(flag("quick", "Fewer points and samples"))
        .arg(flag("full", "More points and samples").conflicts_with("quick"))
        .args(parameters(family).into_iter().map(parameter_argument))
        .args(run_arguments())
        .args(view_arguments());
    if family.name == "memory" {
        command = command.alias("mem");
    }
    if family.probes.iter().any(|probe| probe.experiment.scratch) {
        command = command.arg(options::directory());
    }
    if matches!(family.name, "thread" | "sync") {
        command = command.arg(file("timeline", "Record what each thread did and write it for Perfetto"));
    }
    command
}

/// The parameters of a family that can be asked for, each once.
fn parameters(family: &'static Family) -> Vec<(&'static Param, Vec<&'static str>)> {
    let mut found: Vec<(&'static Param, Vec<&'static str>)> = Vec::new();
    for probe in family.probes {
        for param in probe.params.iter().filter(|param| param.kind != Kind::Stated) {
            let choices = if let Kind::Choice(choices) = param.kind { choices } else { &[] };
            match found.iter_mut().find(|(known, _)| known.name == param.name) {
                None => found.push((param, choices.to_vec())),
                Some((_, known)) => {
                    known.extend(choices.iter().filter(|c| !known.contains(c)).copied().collect::<Vec<_>>())
                }
            }
        }
    }
    found
}

fn parameter_argument((param, choices): (&'static Param, Vec<&'static str>)) -> Arg {
    let (value_name, parser): (_, ValueParser) = match param.kind {
        Kind::Size => ("SIZE,…", ValueParser::new(|text: &str| parse_size(text).map(ParamValue::Number))),
        Kind::Time => ("TIME,…", ValueParser::new(time)),
        Kind::Number => ("N,…", ValueParser::new(|text: &str| text.parse().map(ParamValue::Number))),
        Kind::Choice(_) | Kind::Stated => {
            let words =
                clap::builder::TypedValueParser::map(PossibleValuesParser::new(choices), ParamValue::Text);
            ("WORD,…", words.into())
        }
    };
    let units =
        if matches!(param.kind, Kind::Size) { "\n4K and 4KiB are 4096 bytes, 4kB is 4000" } else { "" };
    Arg::new(param.name)
        .long(param.name)
        .value_name(value_name)
        .value_delimiter(',')
        .value_parser(parser)
        .help(format!("{}{units}", param.help))
        .help_heading("Parameters")
}

fn time(text: &str) -> Result<ParamValue, ParseError> {
    parse_duration(text).map(|time| ParamValue::Number(time.as_nanos() as u64))
}

/// The values given for the parameters of a family.
fn given(family: &'static Family, matches: &ArgMatches) -> Vec<(String, Vec<ParamValue>)> {
    let names = parameters(family).into_iter().map(|(param, _)| param.name);
    names
        .filter_map(|name| {
            let mut values: Vec<ParamValue> = Vec::new();
            for value in matches.get_many::<ParamValue>(name)? {
                // A point is measured once, however often it was asked for.
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            Some((name.to_owned(), values))
        })
        .collect()
}

/// Measures a family.
///
/// # Errors
/// A parameter that cannot be, a file that cannot be written, nothing measured.
pub fn run(name: &str, matches: &ArgMatches) -> Result<Exit> {
    measure::run(job(name, matches)?, matches)
}

/// What is to be measured of a family.
///
/// # Errors
/// A parameter that cannot be.
pub fn job(name: &str, matches: &ArgMatches) -> Result<Job> {
    let family =
        FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| anyhow!("no family {name:?}"))?;
    let only: Vec<&String> = matches.get_many("probe").into_iter().flatten().collect();
    let named = |probe: &Probe| only.iter().any(|name| probe.id.ends_with(&format!(".{name}")));
    let wanted = |probe: &&Probe| named(probe) || only.is_empty() && !probe::by_name_only(probe);
    let probes: Vec<&'static Probe> = family.probes.iter().copied().filter(wanted).collect();
    let values = given(family, matches);
    for (parameter, values) in &values {
        check(name, parameter, values)?;
    }
    let Defaults { directories, notes } = directories(matches, &probes)?;
    let input = PlanInput {
        profile: profile(matches),
        survey: false,
        values: values.into_iter().collect(),
        directories,
    };
    Ok(Job { name: name.to_owned(), probes, input, notes, in_full: true })
}

/// Parameters for which "none" is something to measure, by family.
const MAY_BE_ZERO: [(&str, &str); 4] =
    [("memory", "delay"), ("memory", "threads"), ("sync", "size"), ("file", "size")];

/// The largest number of a parameter that can be measured on any machine, by family.
const MOST: [(&str, &str, u64); 1] = [("memory", "chains", MAX_CHAINS as u64)];

/// What cannot be on any machine, or not on this one, is told before anything
/// is measured.
fn check(family: &str, parameter: &str, values: &[ParamValue]) -> Result<()> {
    if values.contains(&ParamValue::Number(0)) && !MAY_BE_ZERO.contains(&(family, parameter)) {
        bail!("--{parameter} 0 leaves nothing to measure: choose 1 or more");
    }
    let beyond = |value: &&ParamValue| matches!(value, ParamValue::Number(priority) if *priority > 99);
    if let Some(priority) = values.iter().find(|value| parameter == "priority" && beyond(value)) {
        bail!("--priority {priority} does not exist: real-time priorities are 1 to 99");
    }
    for (_, _, most) in MOST.iter().filter(|(f, p, _)| (*f, *p) == (family, parameter)) {
        let beyond = |value: &&ParamValue| matches!(value, ParamValue::Number(number) if number > most);
        if let Some(number) = values.iter().find(beyond) {
            bail!("--{parameter} {number}: it must be 1 to {most}");
        }
    }
    if parameter != "size" {
        return Ok(());
    }
    let memory = rustix::system::sysinfo();
    let total = memory.totalram as u64 * u64::from(memory.mem_unit);
    for value in values {
        if let ParamValue::Number(size) = value
            && *size > total
        {
            bail!(
                "--size {size} is more than the {total} bytes of memory that this machine has: choose a smaller one"
            );
        }
    }
    Ok(())
}

/// How much time was given.
pub fn profile(matches: &ArgMatches) -> Profile {
    match (matches.get_flag("quick"), matches.get_flag("full")) {
        (true, _) => Profile::Quick,
        (_, true) => Profile::Full,
        _ => Profile::Normal,
    }
}

/// Where file probes work, if any of `probes` does.
///
/// # Errors
/// A directory that was asked for does not exist or cannot be written to.
pub fn directories(matches: &ArgMatches, probes: &[&Probe]) -> Result<Defaults> {
    if !probes.iter().any(|probe| probe.family() == "file") {
        return Ok(Defaults::default());
    }
    match matches.get_many::<PathBuf>("dir") {
        Some(paths) => {
            let mut directories: Vec<Directory> = Vec::new();
            for path in paths {
                let found = directory::resolve(path)?;
                if directories.iter().all(|known| known.path != found.path) {
                    directories.push(found);
                }
            }
            Ok(Defaults { directories, notes: Vec::new() })
        }
        None => Ok(directory::defaults()),
    }
}
