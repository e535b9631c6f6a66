//! Removal from a result of what says whose machine it is: `docs/privacy.md` lists every field.
//!
//! One walk goes over all texts of a document, whatever its type. A table (`fields`) has the content of each field; a
//! field that it lacks is redacted whole. A first walk learns the names that the fields have, so that the second one
//! finds them in sentences.

mod arguments;
mod fields;
#[cfg(any(test, feature = "fixture"))]
#[doc(hidden)]
pub mod planted;
#[cfg(test)]
mod tests;
mod text;

use crate::machine::Machine;
use crate::plan::USER_PARAMETER;
use crate::report::Report;
use fields::RedactionFieldKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Text in place of one that says nothing of interest to others.
pub const REDACTED: &str = "(redacted)";

/// Begin of the name of a machine that is redacted.
const MACHINE: &str = "machine-";

/// Returns true if a name of a machine is one that redacting gave: another result's machine may have the same.
pub fn is_redacted_machine(name: &str) -> bool {
    is_numbered(name, MACHINE)
}

/// Returns the reason why the machine of results with this redacted name is not known.
pub fn not_known(name: &str) -> String {
    format!("not known ({name}: redacted results of several machines can have the same name)")
}

/// Returns a sentence if one of these machines has a redacted name: whether results are of one machine is then not
/// known.
pub fn machines_not_known<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let redacted: BTreeSet<&str> = names.filter(|name| is_redacted_machine(name)).collect();
    let names: Vec<&str> = redacted.into_iter().collect();
    (!names.is_empty())
        .then(|| format!("whether these results are of one machine is {}", not_known(&names.join(", "))))
}

/// Begin of the word for a path.
const PATH: &str = "path-";

/// Begin of the word for a process.
const PROCESS: &str = "process-";

/// Begin of the word for a name that the user or another program chose.
const NAME: &str = "name-";

/// Bytes from which on a name is replaced within words, too.
const SHORT: usize = 4;

/// The most names that are searched in each sentence. Where there are more, sentences are hidden whole.
const MOST_NAMES: usize = 4096;

/// Begin of the word for a command, in documents that tell commands apart.
const COMMAND: &str = "command-";

/// Removes names of machines, processes and paths, commands and labels, and puts numbered words in place of those that
/// must be told apart: the same machine, process or path has the same word in all results of a `Redactor`.
#[derive(Debug, Default)]
pub struct Redactor {
    machines: NumberedEntries<(Option<String>, String)>,
    paths: NumberedEntries<String>,
    processes: NumberedEntries<String>,
    names: NumberedEntries<String>,
    commands: NumberedEntries<String>,
    hosts: NumberedEntries<String>,
}

/// Entries with their numbers, from 1 in the order in which they came.
type NumberedEntries<T> = BTreeMap<T, usize>;

/// Place of a text in a document: the names of the field and of the object around it.
#[derive(Debug, Clone, Copy, Default)]
struct RedactionFieldPath<'a> {
    parent: &'a str,
    field: &'a str,
}

impl Redactor {
    /// Returns the result without what identifies the machine and its user.
    ///
    /// # Errors
    /// A text that decides how a result is read would change. None of latscope's own does.
    pub fn redact_report(&mut self, report: &Report) -> Result<Report, serde_json::Error> {
        let mut unlabelled = report.clone();
        unlabelled.labels.clear();
        // All names are known before the first sentence.
        self.learn(RedactionFieldPath::default(), &serde_json::to_value(&unlabelled)?);
        let machine = self.redact_machine(&report.machine)?;
        let mut redacted = self.redact_document(&unlabelled)?;
        redacted.machine = machine;
        redacted.measurements.iter_mut().for_each(crate::report::Measurement::derive_results);
        Ok(redacted)
    }

    /// Returns the machine without what identifies it.
    ///
    /// # Errors
    /// As [`redact_report`](Self::redact_report).
    pub fn redact_machine(&mut self, machine: &Machine) -> Result<Machine, serde_json::Error> {
        self.know_host(&machine.name);
        let has_name = !machine.name.is_empty() && !is_redacted_machine(&machine.name);
        let name = if machine.id.is_some() || has_name {
            format!(
                "{MACHINE}{}",
                number_or_add(&mut self.machines, (machine.id.clone(), machine.name.clone()))
            )
        } else {
            machine.name.clone()
        };
        let mut redacted = self.redact_document(machine)?;
        (redacted.id, redacted.command_line, redacted.name) = (None, None, name);
        Ok(redacted)
    }

    /// Returns a document whose texts identify nobody.
    ///
    /// # Errors
    /// A text that decides how the document is read would change.
    pub fn redact_document<T: Serialize + DeserializeOwned>(
        &mut self,
        of: &T,
    ) -> Result<T, serde_json::Error> {
        let mut value = serde_json::to_value(of)?;
        self.redact_value(&mut value);
        serde_json::from_value(value)
    }

    /// Redacts all texts of a document.
    pub fn redact_value(&mut self, value: &mut Value) {
        self.learn(RedactionFieldPath::default(), value);
        self.redact_at(RedactionFieldPath::default(), value);
    }

    /// Remembers a text that the user gave, so that sentences do not repeat it.
    pub fn know_command(&mut self, text: &str) {
        if text.len() > 1 && text != REDACTED {
            number_or_add(&mut self.commands, text.to_owned());
        }
    }

    /// Remembers a path that the user gave, so that sentences do not repeat it.
    pub fn know_path(&mut self, path: &str) {
        if !text::is_common(path) {
            number_or_add(&mut self.paths, path.to_owned());
        }
    }

    /// Remembers the name of a machine.
    pub fn know_host(&mut self, name: &str) {
        if !name.is_empty() && !is_redacted_machine(name) {
            number_or_add(&mut self.hosts, name.to_owned());
        }
    }

    /// Returns the word for a command, which is another for each.
    pub fn redact_command(&mut self, command: &str) -> String {
        let is_redacted = command.is_empty() || is_numbered(command, COMMAND);
        if is_redacted {
            command.to_owned()
        } else {
            format!("{COMMAND}{}", number_or_add(&mut self.commands, command.to_owned()))
        }
    }

    /// Remembers the names in a document.
    fn learn(&mut self, at: RedactionFieldPath, value: &Value) {
        match value {
            Value::String(text) => self.learn_text(at, text),
            Value::Array(all) => all.iter().for_each(|value| self.learn(at, value)),
            Value::Object(all) => {
                all.iter().for_each(|(field, value)| self.learn(at.child_field(field), value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn learn_text(&mut self, at: RedactionFieldPath, text: &str) {
        match at.field_kind() {
            RedactionFieldKind::Process => self.learn_process(text),
            RedactionFieldKind::Cause | RedactionFieldKind::Sentence | RedactionFieldKind::Title => {
                self.learn_processes(text::names_in(text))
            }
            RedactionFieldKind::Event => self.learn_processes(event_names(text)),
            RedactionFieldKind::Path if !is_numbered(text, PATH) => {
                self.know_path(text.trim_end_matches('/'))
            }
            RedactionFieldKind::Private if at.parent == "params" && !is_numbered(text, NAME) => {
                number_or_add(&mut self.names, text.to_owned());
            }
            RedactionFieldKind::Private if at.field == "name" => self.know_host(text),
            RedactionFieldKind::Private if at.field != "labels" && at.parent != "labels" => {
                self.know_command(text)
            }
            _ => {}
        }
    }

    fn learn_processes(&mut self, names: Vec<&str>) {
        names.into_iter().for_each(|name| self.learn_process(name));
    }

    fn learn_process(&mut self, name: &str) {
        if text::common_thread(name).is_none() && !is_numbered(name, PROCESS) {
            number_or_add(&mut self.processes, name.to_owned());
        }
    }

    fn redact_at(&mut self, at: RedactionFieldPath, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact_text(at, text),
            Value::Array(all) => all.iter_mut().for_each(|value| self.redact_at(at, value)),
            Value::Object(all) => self.walk_object(at, all),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn walk_object(&mut self, at: RedactionFieldPath, all: &mut Map<String, Value>) {
        if at.field == "differs" {
            self.walk_differing(all);
        }
        if at.field == "cause" {
            self.walk_cause(all);
        }
        if at.field == "params" {
            self.rename_parameters(all);
        }
        if at.field == "facts" {
            all.retain(|name, _| !name.starts_with(fields::LABEL));
        }
        if at.field == "labels" {
            all.clear();
        }
        for (field, value) in all.iter_mut() {
            self.redact_at(at.child_field(field), value);
        }
    }

    /// Redacts the names of parameters that the user named.
    fn rename_parameters(&mut self, all: &mut Map<String, Value>) {
        let own: Vec<String> = all.keys().filter(|name| name.starts_with(USER_PARAMETER)).cloned().collect();
        for name in own {
            let value = all.remove(&name).unwrap_or_default();
            let word = self.redact_name(&name[USER_PARAMETER.len()..]);
            all.insert(format!("{}{word}", USER_PARAMETER), value);
        }
    }

    /// Redacts the values of a fact in which merged runs differ; they are names of entries.
    fn walk_differing(&mut self, all: &mut Map<String, Value>) {
        let fact = all.get("what").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_label = fact.starts_with(fields::LABEL);
        if is_label {
            all.insert("what".to_owned(), format!("{}{}", fields::LABEL, self.redact_name(&fact)).into());
        }
        let Some(Value::Object(values)) = all.get_mut("values") else { return };
        let known = std::mem::take(values);
        for (value, count) in known {
            let hides = is_label || fields::is_identifying(&fact);
            values.insert(if hides { self.redact_name(&value) } else { value }, count);
        }
    }

    /// Redacts the name of a cause whose kind is a thread, before the others, which are sentences.
    fn walk_cause(&mut self, all: &mut Map<String, Value>) {
        let is_thread =
            all.get("kind").and_then(Value::as_str).is_some_and(|kind| ["thread", "lock"].contains(&kind));
        if let Some(Value::String(name)) = all.get_mut("name").filter(|_| is_thread) {
            *name = self.process(name);
        }
    }

    fn redact_text(&mut self, at: RedactionFieldPath, text: &str) -> String {
        match at.field_kind() {
            RedactionFieldKind::Word => text.to_owned(),
            RedactionFieldKind::Parameter if text.starts_with('/') => self.path(text),
            RedactionFieldKind::Parameter => self.sentence(text),
            RedactionFieldKind::Sentence | RedactionFieldKind::Title | RedactionFieldKind::Cause => {
                // Each cause of each event: it is not searched for all names.
                let is_done = text.is_empty() || is_numbered(text, PROCESS);
                match self.has_many_names() {
                    _ if is_done => text.to_owned(),
                    true => REDACTED.to_owned(),
                    false => self.sentence(text),
                }
            }
            RedactionFieldKind::Path => self.path(text),
            RedactionFieldKind::Process => self.process(text),
            RedactionFieldKind::Event => self.redact_event(text),
            RedactionFieldKind::Fact => self.redact_name(text),
            RedactionFieldKind::Private if at.parent == "params" => self.redact_name(text),
            RedactionFieldKind::Private => REDACTED.to_owned(),
        }
    }

    /// Returns true if there are too many names to search each sentence for all of them.
    fn has_many_names(&self) -> bool {
        let known = [&self.commands, &self.paths, &self.hosts, &self.names, &self.processes];
        known.iter().map(|entries| entries.len()).sum::<usize>() > MOST_NAMES
    }

    /// Returns the word for a path, or the path itself where all machines have it.
    pub fn path(&mut self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        if text::is_common(path) || is_numbered(path, PATH) {
            return path.to_owned();
        }
        format!("{PATH}{}", number_or_add(&mut self.paths, path.to_owned()))
    }

    /// Returns the word for a process, or the name itself of a thread that all machines have.
    fn process(&mut self, name: &str) -> String {
        match text::common_thread(name) {
            Some(common) => common.to_owned(),
            None if is_numbered(name, PROCESS) => name.to_owned(),
            None => format!("{PROCESS}{}", number_or_add(&mut self.processes, name.to_owned())),
        }
    }

    /// Returns the word for a name that the user or another program chose.
    pub fn redact_name(&mut self, name: &str) -> String {
        let is_redacted = name.is_empty() || is_numbered(name, NAME);
        if is_redacted {
            name.to_owned()
        } else {
            format!("{NAME}{}", number_or_add(&mut self.names, name.to_owned()))
        }
    }

    /// Returns the fields of an event of the kernel, with those that are numbers.
    fn redact_event(&mut self, text: &str) -> String {
        let mut out = text.to_owned();
        for name in event_names(text) {
            let word = self.process(name);
            out = text::with_word_replaced(&out, name, &word);
        }
        let mut words = Vec::new();
        for word in out.split(' ') {
            words.push(match word.split_once('=') {
                Some((key, value)) if text::is_plain_value(key, value) || self.is_own_word(value) => {
                    word.to_owned()
                }
                Some((key, _)) => format!("{key}={REDACTED}"),
                None if word.chars().all(|c| c.is_ascii_digit()) || self.is_own_word(word) => word.to_owned(),
                None if text::is_word_of_events(word) => word.to_owned(),
                None => REDACTED.to_owned(),
            });
        }
        words.join(" ")
    }

    fn is_own_word(&self, word: &str) -> bool {
        word == REDACTED || is_numbered(word, PROCESS) || text::common_thread(word) == Some(word)
    }

    /// Returns a sentence without the names that are known, and without paths.
    pub fn sentence(&mut self, text: &str) -> String {
        self.learn_processes(text::names_in(text));
        let mut out = text.to_owned();
        for command in longest_first(&self.commands) {
            out = text::with_word_replaced(&out, command.1, REDACTED);
        }
        let mut below = Vec::new();
        for (at, path) in longest_first(&self.paths) {
            let is_apart = path.contains(' ') || !path.starts_with('/') && path.len() > 2;
            if is_apart {
                (out, below) = text::with_path_replaced(&out, path, &format!("{PATH}{at}"), below);
            }
        }
        for path in below {
            let word = self.path(&path);
            out = text::with_word_replaced(&out, &path, &word);
        }
        out = self.without_paths(&out);
        for host in self.hosts.keys() {
            out = text::with_word_replaced(&out, host, REDACTED);
        }
        for (at, name) in longest_first(&self.names) {
            let word = format!("{NAME}{at}");
            // A job named "a" is no part of "read"; a longer name may stand within a word.
            let is_short = name.len() < SHORT;
            out =
                if is_short { text::with_word_replaced(&out, name, &word) } else { out.replace(name, &word) };
        }
        for (at, name) in longest_first(&self.processes) {
            let is_word = name.len() > 1 && name.chars().any(char::is_alphabetic);
            out = if is_word { text::with_word_replaced(&out, name, &format!("{PROCESS}{at}")) } else { out };
        }
        out
    }

    /// Returns the text with a word in place of each path in it.
    fn without_paths(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = text::start_of_path(rest) {
            let (before, from) = rest.split_at(at);
            let end = from.find(text::ends_path).unwrap_or(from.len());
            let path = from[..end].trim_end_matches(['.', ':', '!', '?']);
            out.push_str(before);
            out.push_str(&self.path(path));
            rest = &from[path.len()..];
        }
        out + rest
    }
}

impl<'a> RedactionFieldPath<'a> {
    /// The place of a field of the object here. Entries of a map belong to the map.
    fn child_field(self, field: &'a str) -> RedactionFieldPath<'a> {
        RedactionFieldPath { parent: self.field, field }
    }

    fn field_kind(self) -> RedactionFieldKind {
        fields::field_kind(self.parent, self.field)
    }
}

/// Returns true if a text is a word that redacting gave: this beginning, and a number. A program's name may begin with the same word.
fn is_numbered(text: &str, begin: &str) -> bool {
    text.strip_prefix(begin).is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Number of an entry; a new one is added.
fn number_or_add<T: Ord>(known: &mut NumberedEntries<T>, entry: T) -> usize {
    let next = known.len() + 1;
    *known.entry(entry).or_insert(next)
}

/// The texts with their numbers, those first that may contain others.
fn longest_first(known: &NumberedEntries<String>) -> Vec<(usize, &str)> {
    let mut all: Vec<(usize, &str)> = known.iter().map(|(text, number)| (*number, text.as_str())).collect();
    all.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    all
}

/// The names of processes in the fields of an event of the kernel.
fn event_names(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (key, _) in text.match_indices("comm=") {
        let rest = &text[key + "comm=".len()..];
        let next = rest.match_indices('=').next().and_then(|(at, _)| rest[..at].rfind(' '));
        found.extend([rest[..next.unwrap_or(rest.len())].trim()].into_iter().filter(|name| !name.is_empty()));
    }
    found
}
