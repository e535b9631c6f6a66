//! What the user calls a run and its machine, so that results are found again.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, builder::ValueParser};
use std::collections::BTreeMap;

/// `--label`.
pub fn label_option() -> Arg {
    Arg::new("label")
        .long("label")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .value_parser(ValueParser::new(label))
        .help("Save this with the result, such as board=a7; can be given several times")
}

/// `--machine-id`.
pub fn machine_option() -> Arg {
    Arg::new("machine-id")
        .long("machine-id")
        .value_name("TEXT|none")
        .value_parser(ValueParser::new(name))
        .help("Save this as the machine's identity, or none (default: a keyed hash of /etc/machine-id)")
}

/// The labels of a run.
///
/// # Errors
/// A key that is given twice.
pub fn labels(matches: &ArgMatches) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for (key, value) in matches.get_many::<(String, String)>("label").into_iter().flatten() {
        if labels.insert(key.clone(), value.clone()).is_some() {
            bail!("--label {key} is given twice: choose one value");
        }
    }
    Ok(labels)
}

/// The identity of the machine that the user gave: the inner `None` for none at all.
pub fn machine_id(matches: &ArgMatches) -> Option<Option<String>> {
    let given = matches.get_one::<String>("machine-id")?;
    Some(Some(given.clone()).filter(|text| text != "none"))
}

/// `KEY=VALUE`. What is empty is most often a variable of the shell that is not set.
fn label(text: &str) -> Result<(String, String), String> {
    let sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let Some((key, value)) = text.split_once('=') else {
        return Err("there is no \"=\": give a label as KEY=VALUE".to_owned());
    };
    if key.is_empty() || !key.chars().all(sound) {
        return Err("the key is made of letters, digits, \".\", \"_\" and \"-\"".to_owned());
    }
    Ok((key.to_owned(), name(value)?))
}

/// Text that stands in one line of a view.
fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the value is empty".to_owned());
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("the value has the control character {c:?}")),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn matches(words: &[&str]) -> Result<ArgMatches, clap::Error> {
        let words = ["latscope"].iter().chain(words);
        Command::new("latscope").args([label_option(), machine_option()]).try_get_matches_from(words)
    }

    #[test]
    fn labels_and_machines_are_as_given() {
        let given = matches(&["--label", "board=a7", "--label", "boot=quiet isolcpus=1"]).unwrap();
        let expected = [("board", "a7"), ("boot", "quiet isolcpus=1")];
        assert_eq!(labels(&given).unwrap(), expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        assert_eq!(machine_id(&given), None);
        let machine = |text: &str| machine_id(&matches(&["--machine-id", text]).unwrap());
        assert_eq!(machine("none"), Some(None));
        assert_eq!(machine("rack 3"), Some(Some("rack 3".to_owned())));
    }

    #[test]
    fn bad_forms_are_refused() {
        for text in ["board", "=a7", "board=", "board= ", "bo ard=a7", "board=a\n7", "board=\u{1b}[31m"] {
            assert!(matches(&["--label", text]).is_err(), "{text:?}");
        }
        for text in ["", " ", "rack\t3"] {
            assert!(matches(&["--machine-id", text]).is_err(), "{text:?}");
        }
        let twice = matches(&["--label", "board=a7", "--label", "board=a8"]).unwrap();
        assert!(labels(&twice).unwrap_err().to_string().contains("--label board is given twice"));
    }
}
