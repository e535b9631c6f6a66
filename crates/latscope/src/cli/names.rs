//! Names that the user gives a run and its machine, to find results again.

use anyhow::{Result, bail};
use clap::Parser;
use std::collections::BTreeMap;

// `--label` and `--machine-id`.
#[derive(Debug, Clone, Parser)]
#[allow(missing_docs, reason = "it would be the help of each command that takes these options")]
pub struct NameArguments {
    /// Save this with the result, such as board=a7; can be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Save this as the machine's identity, or none (default: a keyed hash of /etc/machine-id)
    #[arg(long, value_name = "TEXT|none", value_parser = parse_name)]
    machine_id: Option<String>,
}

impl NameArguments {
    /// Labels of a run.
    ///
    /// # Errors
    /// A key is given twice.
    pub fn run_labels(&self) -> Result<BTreeMap<String, String>> {
        let mut labels = BTreeMap::new();
        for (key, value) in &self.label {
            if labels.insert(key.clone(), value.clone()).is_some() {
                bail!("--label {key} is given twice: choose one value");
            }
        }
        Ok(labels)
    }

    /// Identity of the machine as the user gave it. The inner `None` stands for no identity at all.
    pub fn machine_id(&self) -> Option<Option<String>> {
        self.machine_id.clone().map(|text| Some(text).filter(|text| text != "none"))
    }
}

/// Parses `KEY=VALUE`. An empty key or value is an error, since it is mostly due to a shell variable that is not set.
fn label(text: &str) -> Result<(String, String), String> {
    let sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let Some((key, value)) = text.split_once('=') else {
        return Err("there is no \"=\": give a label as KEY=VALUE".to_owned());
    };
    if key.is_empty() || !key.chars().all(sound) {
        return Err("the key is made of letters, digits, \".\", \"_\" and \"-\"".to_owned());
    }
    Ok((key.to_owned(), parse_name(value)?))
}

/// The most bytes of a name. A result with texts much longer is not read again.
const LONGEST: usize = 4096;

/// Parses a text that is shown in one line: not empty, without control characters.
fn parse_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the value is empty".to_owned());
    }
    if text.len() > LONGEST {
        return Err(format!("the value has more than {LONGEST} bytes"));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("the value has the control character {c:?}")),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<NameArguments, clap::Error> {
        NameArguments::try_parse_from(["latscope"].iter().chain(words))
    }

    #[test]
    fn labels_and_machines_are_as_given() {
        let given = read(&["--label", "board=a7", "--label", "boot=quiet isolcpus=1"]).unwrap();
        let expected = [("board", "a7"), ("boot", "quiet isolcpus=1")];
        assert_eq!(given.run_labels().unwrap(), expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        assert_eq!(given.machine_id(), None);
        let machine = |text: &str| read(&["--machine-id", text]).unwrap().machine_id();
        assert_eq!(machine("none"), Some(None));
        assert_eq!(machine("rack 3"), Some(Some("rack 3".to_owned())));
    }

    #[test]
    fn bad_forms_are_refused() {
        for text in ["board", "=a7", "board=", "board= ", "bo ard=a7", "board=a\n7", "board=\u{1b}[31m"] {
            assert!(read(&["--label", text]).is_err(), "{text:?}");
        }
        for text in ["", " ", "rack\t3"] {
            assert!(read(&["--machine-id", text]).is_err(), "{text:?}");
        }
        let twice = read(&["--label", "board=a7", "--label", "board=a8"]).unwrap();
        assert!(twice.run_labels().unwrap_err().to_string().contains("--label board is given twice"));
    }
}
