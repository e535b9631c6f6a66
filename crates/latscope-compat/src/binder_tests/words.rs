//! The command lines of AOSP's tests: words that begin with one dash, as in
//! `-pair 3`, and flags of Google Benchmark, as in `--benchmark_format=json`.

use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fmt::{Display, Write};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// An option.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// As it is written, with its dashes.
    pub name: &'static str,
    /// What the value is called in the usage; empty for those without.
    pub value: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
}

/// Shorthand for tables.
pub const fn option(name: &'static str, value: &'static str, help: &'static str) -> Spec {
    Spec { name, value, help }
}

/// The value of an option that may be given without one: `--flag`, `--flag=false`.
pub const SWITCH: &str = "true|false";

/// Options of ours that all of the programs take.
pub const OURS: [Spec; 4] = [
    option("--transport", "NAME", "ours: what carries the transactions, such as unix-stream"),
    option("--compat", "8.0", "ours: the output of Android 8.0"),
    option("--result", "FILE", "ours: save latscope's result too"),
    option("--help", "", "this text"),
];

/// Whose output is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// That of current versions.
    #[default]
    Current,
    /// That of Android 8.0.
    Oreo,
}

/// What all of the programs are asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Common {
    /// `--transport`.
    pub transport: Option<String>,
    /// `--compat`.
    pub layout: Layout,
    /// `--result`.
    pub result: Option<std::path::PathBuf>,
    /// `--help`.
    pub help: bool,
}

impl Common {
    /// Takes an option of ours; returns whether it was one.
    ///
    /// # Errors
    /// A release that is not known.
    pub fn accept(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "--transport" => self.transport = Some(value.to_owned()),
            "--result" => self.result = Some(value.into()),
            "--compat" => {
                ensure!(value == "8.0", "--compat {value} is not known: the older layout there is is 8.0");
                self.layout = Layout::Oreo;
            }
            "--help" | "-h" => self.help = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads a call: options in order, each with its value.
///
/// # Errors
/// A word that is no option (the originals ignore it), or a value that is
/// missing (they read whatever is behind their arguments).
pub fn read(specs: &[Spec], arguments: &[OsString]) -> Result<Vec<(&'static str, String)>> {
    let mut words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let mut given = Vec::new();
    while let Some(word) = words.next() {
        let (name, own) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let known = specs.iter().chain(&OURS).find(|spec| spec.name == name);
        let spec = known.with_context(|| format!("there is no option {word:?} (see --help)"))?;
        let value = match (spec.value, own) {
            ("", Some(_)) => bail!("{name} takes no value"),
            ("", None) => String::new(),
            (SWITCH, own) => own.unwrap_or_else(|| "true".to_owned()),
            (_, Some(own)) => own,
            (wanted, None) => words.next().with_context(|| format!("{name} needs a value: {wanted}"))?,
        };
        given.push((spec.name, value));
    }
    Ok(given)
}

/// A number within a range.
///
/// # Errors
/// It is none, or outside.
pub fn number<T>(name: &str, text: &str, range: RangeInclusive<T>) -> Result<T>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.with_context(|| {
        format!("{name} takes a number from {} to {}, not {text:?}", range.start(), range.end())
    })
}

/// A switch.
///
/// # Errors
/// It is neither on nor off.
pub fn switch(name: &str, text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "y" | "yes" | "on" => Ok(true),
        "0" | "f" | "false" | "n" | "no" | "off" => Ok(false),
        _ => bail!("{name} is true or false, not {text:?}"),
    }
}

/// The usage of a program, made from its options.
pub fn usage(name: &str, specs: &[Spec]) -> String {
    let mut text = format!("Usage: {name} [OPTIONS]\n");
    for Spec { name, value, help } in specs.iter().chain(&OURS) {
        let separator = if value.is_empty() || name.starts_with("--") { "=" } else { " " };
        let form = if value.is_empty() { (*name).to_owned() } else { format!("{name}{separator}{value}") };
        let _ = writeln!(text, "  {form:<44} {help}");
    }
    text + "This is latscope, with the options and the output of AOSP's test.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec] = &[
        option("-i", "N", ""),
        option("-v", "", ""),
        option("--list", SWITCH, ""),
        option("--out", "FILE", ""),
    ];

    fn words(line: &str) -> Result<Vec<(&'static str, String)>> {
        read(SPECS, &line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn values_stand_apart_or_behind_an_equals_sign() {
        let read = words("-i 5 -v --list --out=a=b --transport pipe --list=false").unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let expected =
            [("-i", "5"), ("-v", ""), ("--list", "true"), ("--out", "a=b"), ("--transport", "pipe")];
        assert_eq!((&read[..5], read[5]), (&expected[..], ("--list", "false")));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, said) in [
            ("5", "there is no option \"5\""),
            ("-pair 5", "there is no option \"-pair\""),
            ("-v -i", "-i needs a value: N"),
            ("--help=1", "--help takes no value"),
        ] {
            assert!(words(line).unwrap_err().to_string().contains(said), "{line}");
        }
        assert!(Common::default().accept("--compat", "9").is_err());
        assert!(number::<u64>("-i", "-1", 1..=5).is_err() && switch("--x", "maybe").is_err());
    }
}
