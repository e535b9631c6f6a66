//! Calls of older tools: the options that latscope adds to all of them, and the choice of the personality.

use super::names::NameArguments;
use super::options::some_time;
use super::redact;
use super::usage::{did_you_mean, of_parser};
use anyhow::{Result, anyhow};
use clap::Parser;
use latscope_compat::{self as compat, PersonalityContext, REFUSED};
use std::ffi::OsString;

/// Runs as the older tool with this name and these arguments. Returns its exit code.
///
/// # Errors
/// There is no such tool, an option that latscope adds is wrong, or the tool has an error.
pub fn run_older_tool(name: &str, arguments: &[OsString]) -> Result<u8> {
    let context = PersonalityContext { variable: |name| std::env::var_os(name), ..context(arguments)? };
    compat::find_program(name).ok_or_else(|| unknown_tool_error(name))?.run_program(&context)
}

fn unknown_tool_error(name: &str) -> anyhow::Error {
    if let Some(refused) = REFUSED.iter().find(|refused| refused.name == name) {
        return anyhow!("{name} has no stand-in: {}", refused.instead);
    }
    let near = did_you_mean(name, compat::all_programs().map(|personality| personality.name()));
    anyhow!("{name} is none of the programs latscope stands in for{near} (see `latscope as --help`)")
}

#[derive(Parser)]
struct Added {
    #[command(flatten)]
    names: NameArguments,
    #[arg(long, value_parser = some_time)]
    save_every: Option<u64>,
    #[arg(long)]
    dry_run: bool,
    #[arg(long)]
    redact: bool,
}

/// Takes the options that latscope adds out of the arguments, wherever they stand.
///
/// # Errors
/// An option has no value, or a wrong one.
fn context(arguments: &[OsString]) -> Result<PersonalityContext> {
    let (mut added, mut original) = (vec!["latscope".into()], Vec::new());
    let mut rest = arguments.iter().cloned();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        match name {
            "--label" | "--machine-id" | "--save-every" => {
                let value = if text == name { rest.next() } else { None };
                added.extend([word].into_iter().chain(value));
            }
            "--dry-run" | redact::OPTION => added.push(word),
            _ => original.push(word),
        }
    }
    let given = Added::try_parse_from(added).map_err(|error| anyhow!(of_parser(&error.to_string())))?;
    let (labels, machine_id) = (given.names.run_labels()?, given.names.machine_id());
    let Added { save_every, dry_run, redact, .. } = given;
    Ok(PersonalityContext {
        labels,
        machine_id,
        save_every,
        dry_run,
        redact,
        ..PersonalityContext::new(original)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn added_options_are_taken_out_wherever_they_stand() {
        let line = "-t1 --label board=a7 -q --label=boot=cold --redact --machine-id none --dry-run -D 1";
        let taken = context(&words(line)).unwrap();
        assert_eq!(taken.arguments, words("-t1 -q -D 1"));
        assert_eq!((taken.labels["board"].as_str(), taken.labels["boot"].as_str()), ("a7", "cold"));
        assert_eq!((taken.machine_id, taken.dry_run, taken.redact), (Some(None), true, true));
        let none = context(&words("-l 5 --lab x")).unwrap();
        assert_eq!(none.arguments, words("-l 5 --lab x"));
        assert!(none.labels.is_empty() && none.machine_id.is_none() && !none.dry_run && !none.redact);
        assert_eq!(context(&words("--save-every 2s")).unwrap().save_every, Some(2_000_000_000));
        for wrong in [
            "--save-every 0s",
            "--save-every",
            "--label",
            "--label board",
            "--label a=1 --label a=2",
            "--machine-id",
            "--dry-run=no",
        ] {
            let error = context(&words(wrong)).unwrap_err().to_string();
            assert!(error.contains("--") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_tool_without_a_personality_is_answered_with_the_nearest() {
        let refused = run_older_tool("lat_usleep", &[]).unwrap_err().to_string();
        assert!(refused.contains("latscope wake"), "{refused}");
        let unknown = run_older_tool("lat_mem", &[]).unwrap_err().to_string();
        assert!(unknown.contains("did you mean lat_mem_rd?"), "{unknown}");
    }
}
