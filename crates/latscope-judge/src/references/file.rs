//! Files of references: TOML, one file a source.

use super::{ALL_PAIRS, Definition, PAIRS_OF_A_CORE, Reference, ReferenceStatistic, RowKey, Times};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Reason for which a file is no file of references.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text is no TOML, or an entry beside the figures is missing, unknown or of another type.
    #[error("{file}{}: {why}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
    File {
        /// Name of the file.
        file: String,
        /// Line of the text, from 1; `None` where it is not known.
        line: Option<usize>,
        /// Description of the fault.
        why: String,
    },
    /// A figure has an entry that is missing, unknown, of another type, or has a value that it cannot have.
    #[error("{file}, figure {figure}{}: {why}", key.map(|key| format!(", {key}")).unwrap_or_default())]
    Figure {
        /// Name of the file.
        file: String,
        /// Number of the figure in the file, from 1, with its name if it has one.
        figure: String,
        /// Entry that is wrong; `None` where `why` names it.
        key: Option<&'static str>,
        /// Description of the fault.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceFile {
    title: String,
    at: String,
    /// Headings of machines that have a column in every table.
    #[serde(default)]
    column: BTreeMap<String, String>,
    /// Facts on the machine of a contributed file, for readers only.
    #[serde(default)]
    #[expect(dead_code, reason = "only its shape is checked")]
    facts: BTreeMap<String, String>,
    /// Entries of every figure that does not have its own.
    #[serde(default)]
    defaults: Table,
    figure: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceFileEntry {
    name: String,
    unit: ReferenceTimeUnit,
    times: Times,
    statistic: ReferenceStatistic,
    #[serde(default)]
    over: String,
    load: String,
    tool: String,
    version: String,
    date: String,
    row: RowKey,
    #[serde(default = "one")]
    factor: f64,
    bytes: Option<u64>,
    #[serde(default)]
    differs: String,
    #[serde(default)]
    note: String,
    machines: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReferenceTimeUnit {
    Ns,
    Us,
    Ms,
    S,
}

impl ReferenceTimeUnit {
    fn ns(&self) -> f64 {
        match self {
            ReferenceTimeUnit::Ns => 1.0,
            ReferenceTimeUnit::Us => 1e3,
            ReferenceTimeUnit::Ms => 1e6,
            ReferenceTimeUnit::S => 1e9,
        }
    }
}

fn one() -> f64 {
    1.0
}

/// Reads a file of references, `name` for messages.
///
/// # Errors
/// The text is no TOML, or an entry is missing, unknown, or has a value that it cannot have; the error names file,
/// figure and entry.
pub fn parse_references(name: &str, text: &str) -> Result<Vec<Reference>, ReferenceError> {
    let file: ReferenceFile = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        ReferenceError::File { file: name.to_owned(), line, why: one_line(error.message()) }
    })?;
    let mut references = Vec::new();
    for (at, table) in file.figure.into_iter().enumerate() {
        let called = table.get("name").and_then(Value::as_str).map(|name| format!(" ({name})"));
        let called = format!("{}{}", at + 1, called.unwrap_or_default());
        let wrong =
            |key, why| ReferenceError::Figure { file: name.to_owned(), figure: called.clone(), key, why };
        let mut whole = file.defaults.clone();
        whole.extend(table);
        let figure: ReferenceFileEntry =
            whole.try_into().map_err(|error: toml::de::Error| wrong(None, one_line(error.message())))?;
        check_entry(&figure).map_err(|(key, why)| wrong(Some(key), why.to_owned()))?;
        references.extend(figure.references(&file.title, &file.at, &file.column));
    }
    let known: BTreeSet<&str> = references.iter().map(|reference| reference.machine.as_str()).collect();
    match file.column.keys().find(|machine| !known.contains(machine.as_str())) {
        None => Ok(references),
        Some(machine) => {
            let why = format!("column: no figure has the machine {machine:?}");
            Err(ReferenceError::File { file: name.to_owned(), line: None, why })
        }
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks what the types cannot.
///
/// # Errors
/// An entry has a value that it cannot have: its name, and why.
fn check_entry(figure: &ReferenceFileEntry) -> Result<(), (&'static str, &'static str)> {
    let texts = [
        ("name", &figure.name),
        ("load", &figure.load),
        ("tool", &figure.tool),
        ("version", &figure.version),
        ("date", &figure.date),
    ];
    if let Some((key, _)) = texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
        return Err((key, "it is empty: write \"not stated\" where the source does not say"));
    }
    if figure.machines.is_empty() || figure.machines.keys().any(|name| name.trim().is_empty()) {
        return Err(("machines", "it takes at least one machine, each with a name"));
    }
    if !figure.machines.values().all(|value| value.is_finite() && *value > 0.0) {
        return Err(("machines", "a figure is a number above 0"));
    }
    let factor = if figure.times == Times::HalfRoundTrip { 2.0 } else { 1.0 };
    if figure.factor != factor {
        return Err(("factor", "it is 2 for half the round trip, and 1 otherwise"));
    }
    if figure.row.level.is_some() == figure.row.probe.is_some() {
        return Err(("row", "it has either a level or a probe"));
    }
    if figure.row.level.is_some() && !figure.row.params.is_empty() {
        return Err(("row", "a level has no parameters"));
    }
    let is_known = ["", ALL_PAIRS, PAIRS_OF_A_CORE].contains(&figure.over.as_str());
    if !is_known && figure.differs.is_empty() {
        return Err(("over", "no row is taken over these: say in `differs` how they differ"));
    }
    Ok(())
}

impl ReferenceFileEntry {
    fn references(self, title: &str, at: &str, column: &BTreeMap<String, String>) -> Vec<Reference> {
        let definition = Definition {
            times: self.times,
            statistic: self.statistic,
            over: self.over,
            load: self.load,
            tool: self.tool,
            version: self.version,
            date: self.date,
            row: self.row,
            factor: self.factor,
            bytes: self.bytes,
            differs: self.differs,
            note: self.note,
        };
        let reference = |(machine, value): (String, f64)| Reference {
            column: column.get(&machine).cloned(),
            machine,
            figure: self.name.clone(),
            // Rounded to the digits of the source: 0.52 µs is 520 ns.
            ns: (value * self.unit.ns() * 1e6).round() / 1e6,
            definition: definition.clone(),
            title: title.to_owned(),
            at: at.to_owned(),
        };
        self.machines.into_iter().map(reference).collect()
    }
}
