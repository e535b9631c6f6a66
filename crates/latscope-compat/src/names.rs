//! `--label` and `--machine-id` in the call of any older tool: what the user calls the run and its
//! machine, for results that are saved.

use crate::identity;
use crate::usage::of_parser;
use anyhow::{Result, anyhow};
use clap::Command;
use latscope_core::report::Report;
use latscope_engine::runner::{self, Run};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::OnceLock;

/// The names of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    labels: BTreeMap<String, String>,
    machine_id: Option<Option<String>>,
}

/// Those of this process, which stands in for one tool once.
static NAMES: OnceLock<Names> = OnceLock::new();

/// Takes the names out of the arguments, wherever they stand, and keeps them for [`run`].
///
/// # Errors
/// One of them has no value, or a wrong one.
pub(super) fn keep(arguments: &[OsString]) -> Result<Vec<OsString>> {
    let (names, theirs) = split(arguments)?;
    NAMES.get_or_init(|| names);
    Ok(theirs)
}

fn split(arguments: &[OsString]) -> Result<(Names, Vec<OsString>)> {
    let command = Command::new("latscope").args([identity::label_option(), identity::machine_option()]);
    let (mut ours, mut theirs) = (vec!["latscope".into()], Vec::new());
    let mut rest = arguments.iter().cloned();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        if !["--label", "--machine-id"].contains(&name) {
            theirs.push(word);
            continue;
        }
        let value = if text == name { rest.next() } else { None };
        ours.extend([word].into_iter().chain(value));
    }
    let matches =
        command.try_get_matches_from(ours).map_err(|error| anyhow!(of_parser(&error.to_string())))?;
    Ok((Names { labels: identity::labels(&matches)?, machine_id: identity::machine_id(&matches) }, theirs))
}

/// Carries out a plan under the names that were given.
///
/// # Errors
/// As [`runner::run`].
pub(super) fn run(run: Run) -> Result<Report> {
    let Some(names) = NAMES.get() else { return runner::run(run) };
    let mut machine = run.machine;
    if let Some(id) = &names.machine_id {
        machine.id.clone_from(id);
    }
    runner::run(Run { machine, labels: names.labels.clone(), ..run })
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
            split(&words("-t1 --label board=a7 -q --label=boot=cold --machine-id none -D 1")).unwrap();
        assert_eq!(theirs, words("-t1 -q -D 1"));
        assert_eq!((names.labels["board"].as_str(), names.labels["boot"].as_str()), ("a7", "cold"));
        assert_eq!(names.machine_id, Some(None));
        assert_eq!(split(&words("-l 5 --lab x")).unwrap(), (Names::default(), words("-l 5 --lab x")));
        for wrong in ["--label", "--label board", "--label a=1 --label a=2", "--machine-id"] {
            let error = split(&words(wrong)).unwrap_err().to_string();
            assert!(error.contains("--") && !error.contains('\n'), "{error}");
        }
    }
}
