//! `--label`, `--machine-id` and `--dry-run` in the call of any older tool: what the user calls the run and its machine,
//! for results that are saved, and whether there is to be one.

use crate::identity::NameArguments;
use crate::usage::of_parser;
use anyhow::{Result, anyhow};
use clap::Parser;
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_engine::observers::Observer;
use latscope_engine::runner::{self, Run};
use latscope_host::stdout::print;
use latscope_probes::REGISTRY;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::OnceLock;

/// What is ours in a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    labels: BTreeMap<String, String>,
    machine_id: Option<Option<String>>,
    dry_run: bool,
}

/// Those of this process, which stands in for one tool once.
static NAMES: OnceLock<Names> = OnceLock::new();

/// Takes the names out of the arguments, wherever they stand, and keeps them for [`measure`] and [`shows`].
///
/// # Errors
/// One of them has no value, or a wrong one.
pub(super) fn keep(arguments: &[OsString]) -> Result<Vec<OsString>> {
    let (names, theirs) = split(arguments)?;
    NAMES.get_or_init(|| names);
    Ok(theirs)
}

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    names: NameArguments,
    #[arg(long)]
    dry_run: bool,
}

fn split(arguments: &[OsString]) -> Result<(Names, Vec<OsString>)> {
    let (mut ours, mut theirs) = (vec!["latscope".into()], Vec::new());
    let mut rest = arguments.iter().cloned();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        match name {
            "--label" | "--machine-id" => {
                let value = if text == name { rest.next() } else { None };
                ours.extend([word].into_iter().chain(value));
            }
            "--dry-run" => ours.push(word),
            _ => theirs.push(word),
        }
    }
    let given = Arguments::try_parse_from(ours).map_err(|error| anyhow!(of_parser(&error.to_string())))?;
    let (labels, machine_id) = (given.names.labels()?, given.names.machine_id());
    Ok((Names { labels, machine_id, dry_run: given.dry_run }, theirs))
}

/// Whether a plan is to be shown, and nothing else.
pub(super) fn is_dry_run() -> bool {
    NAMES.get().is_some_and(|names| names.dry_run)
}

/// Shows a plan if that is asked for instead of carrying it out; whether it is.
pub(super) fn shows(plan: &Plan) -> bool {
    if is_dry_run() {
        print(&plan.describe());
    }
    is_dry_run()
}

/// Carries out a plan under the names that were given.
///
/// # Errors
/// As [`runner::run`].
pub(super) fn measure(
    plan: Plan,
    mut machine: Machine,
    timebase: Timebase,
    observers: Vec<&mut dyn Observer>,
) -> Result<Report> {
    let names = NAMES.get();
    if let Some(id) = names.and_then(|names| names.machine_id.as_ref()) {
        machine.id.clone_from(id);
    }
    let labels = names.map(|names| names.labels.clone()).unwrap_or_default();
    runner::run(Run { registry: &REGISTRY, plan, machine, timebase, labels, observers })
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
        for wrong in ["--label", "--label board", "--label a=1 --label a=2", "--machine-id", "--dry-run=no"] {
            let error = split(&words(wrong)).unwrap_err().to_string();
            assert!(error.contains("--") && !error.contains('\n'), "{error}");
        }
    }
}
