//! `--label`, `--machine-id`, `--save-every` and `--dry-run` in the call of any older tool: the names of the run and
//! its machine for saved results, the interval between saves, and whether there is to be a run.

use crate::identity::NameArguments;
use crate::usage::of_parser;
use anyhow::{Result, anyhow, ensure};
use clap::Parser;
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_core::units::parse_duration;
use latscope_engine::observers::Observer;
use latscope_engine::runner::{self, Run};
use latscope_engine::saver::{self, Saver};
use latscope_host::stdout::print;
use latscope_probes::REGISTRY;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// Interval between saves without `--save-every`, in ns.
const SAVE_EVERY: u64 = 600_000_000_000;

/// Values of the options that latscope adds to every tool.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    labels: BTreeMap<String, String>,
    machine_id: Option<Option<String>>,
    save_every: Option<u64>,
    dry_run: bool,
}

/// Values in the call of this process, which replaces one tool once.
static NAMES: OnceLock<Names> = OnceLock::new();

/// Removes latscope's options from the arguments, wherever they stand, and keeps their values for [`measure`] and
/// [`shows`].
///
/// # Errors
/// An option has no value, or a wrong one.
pub(super) fn keep(arguments: &[OsString]) -> Result<Vec<OsString>> {
    let (names, theirs) = split(arguments)?;
    NAMES.get_or_init(|| names);
    Ok(theirs)
}

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    names: NameArguments,
    #[arg(long, value_parser = interval)]
    save_every: Option<u64>,
    #[arg(long)]
    dry_run: bool,
}

fn interval(text: &str) -> Result<u64, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    let ns = u64::try_from(duration.as_nanos()).ok().filter(|ns| *ns > 0);
    ns.ok_or_else(|| "it must be longer than 0".to_owned())
}

fn split(arguments: &[OsString]) -> Result<(Names, Vec<OsString>)> {
    let (mut ours, mut theirs) = (vec!["latscope".into()], Vec::new());
    let mut rest = arguments.iter().cloned();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        match name {
            "--label" | "--machine-id" | "--save-every" => {
                let value = if text == name { rest.next() } else { None };
                ours.extend([word].into_iter().chain(value));
            }
            "--dry-run" => ours.push(word),
            _ => theirs.push(word),
        }
    }
    let given = Arguments::try_parse_from(ours).map_err(|error| anyhow!(of_parser(&error.to_string())))?;
    let (labels, machine_id) = (given.names.labels()?, given.names.machine_id());
    let Arguments { save_every, dry_run, .. } = given;
    Ok((Names { labels, machine_id, save_every, dry_run }, theirs))
}

/// Returns true if a plan is to be shown, and nothing else is to be done.
pub(super) fn is_dry_run() -> bool {
    NAMES.get().is_some_and(|names| names.dry_run)
}

/// Shows a plan if `--dry-run` asks for that instead of carrying it out. Returns true if it does.
pub(super) fn shows(plan: &Plan) -> bool {
    if is_dry_run() {
        print(&plan.describe());
    }
    is_dry_run()
}

/// Report, and the outcome of saving it. The report is shown even if it was not saved.
pub(super) struct Measured {
    pub report: Report,
    pub saved: Result<()>,
}

/// Carries out a plan under the given names, and saves the result on the way and before it is shown.
///
/// # Errors
/// The errors are those of [`runner::run`], and those that show before the run that the result cannot be saved.
pub(super) fn measure(
    plan: Plan,
    mut machine: Machine,
    timebase: Timebase,
    observers: Vec<&mut dyn Observer>,
    result: Option<&Path>,
) -> Result<Measured> {
    let names = NAMES.get();
    if let Some(id) = names.and_then(|names| names.machine_id.as_ref()) {
        machine.id.clone_from(id);
    }
    let labels = names.map(|names| names.labels.clone()).unwrap_or_default();
    let every = names.and_then(|names| names.save_every);
    ensure!(every.is_none() || result.is_some(), "--save-every is for a result that is saved");
    let every = Duration::from_nanos(every.unwrap_or(SAVE_EVERY));
    let mut saver = result.map(|path| Saver::new(path, every)).transpose()?;
    let mut all: Vec<&mut dyn Observer> = observers.into_iter().map(|one| one as &mut dyn Observer).collect();
    all.extend(saver.iter_mut().map(|saver| saver as &mut dyn Observer));
    let report = runner::run(Run { registry: &REGISTRY, plan, machine, timebase, labels, observers: all })?;
    let saved = result.map_or(Ok(()), |path| saver::save(path, &report));
    Ok(Measured { report, saved })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn names_are_taken_out_wherever_they_stand() {
        let (names, theirs) =
            split(&words("-t1 --label board=a7 -q --label=boot=cold --machine-id none --dry-run -D 1"))
                .unwrap();
        assert_eq!(theirs, words("-t1 -q -D 1"));
        assert_eq!((names.labels["board"].as_str(), names.labels["boot"].as_str()), ("a7", "cold"));
        assert_eq!((names.machine_id, names.dry_run), (Some(None), true));
        assert_eq!(split(&words("-l 5 --lab x")).unwrap(), (Names::default(), words("-l 5 --lab x")));
        assert_eq!(split(&words("--save-every 2s")).unwrap().0.save_every, Some(2_000_000_000));
        for wrong in [
            "--save-every 0s",
            "--save-every",
            "--label",
            "--label board",
            "--label a=1 --label a=2",
            "--machine-id",
            "--dry-run=no",
        ] {
            let error = split(&words(wrong)).unwrap_err().to_string();
            assert!(error.contains("--") && !error.contains('\n'), "{error}");
        }
    }
}
