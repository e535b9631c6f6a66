//! Removal from a result of what says whose machine it is: `docs/privacy.md` lists every field.

use crate::machine::Machine;
use crate::report::Report;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Fields whose texts are sentences, in which the host name may stand as a word.
const SENTENCES: [&str; 8] = ["text", "remedy", "found", "notes", "unknown", "by", "reason", "title"];

/// Fields whose whole text is a command of the user.
const COMMANDS: [&str; 3] = ["command", "exec", "latscope"];

/// Places that are alike on all machines; what lies below them is kept, too.
const COMMON: [&str; 4] = ["/proc", "/sys/devices/system", "/sys/kernel", "/sys/module"];

/// Paths that are alike on all machines.
const COMMON_FILES: [&str; 9] = [
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/run/lock",
    "/sys",
    "/sys/fs/cgroup",
    "/bin/sh",
    "/etc/machine-id",
    "/etc/sysctl.d",
];

/// Begin of the name of a machine that is redacted.
const MACHINE: &str = "machine-";

/// Removes names of machines, paths, commands and labels, and puts numbered words in place of those that must be told
/// apart: the same machine or path has the same word in all results of a `Redactor`.
#[derive(Debug, Default)]
pub struct Redactor {
    machines: Vec<(Option<String>, String)>,
    paths: Vec<String>,
}

impl Redactor {
    /// Returns the result without what identifies the machine and its user.
    ///
    /// # Errors
    /// A text that decides how a result is read would change. None of latscope's own does.
    pub fn report(&mut self, report: &Report) -> Result<Report, serde_json::Error> {
        let mut unlabelled = report.clone();
        unlabelled.labels.clear();
        let mut redacted = self.texts(&unlabelled, &report.machine.name)?;
        redacted.machine = self.machine(&report.machine)?;
        redacted.measurements.iter_mut().for_each(crate::report::Measurement::settle);
        Ok(redacted)
    }

    /// Returns the machine without what identifies it.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub fn machine(&mut self, machine: &Machine) -> Result<Machine, serde_json::Error> {
        let mut redacted = self.texts(machine, &machine.name)?;
        if machine.id.is_some() || !machine.name.is_empty() && !machine.name.starts_with(MACHINE) {
            let identity = (machine.id.clone(), machine.name.clone());
            redacted.name = format!("{MACHINE}{}", place(&mut self.machines, identity));
        }
        (redacted.id, redacted.command_line) = (None, None);
        Ok(redacted)
    }

    /// Returns a value whose texts name neither paths nor commands nor the host.
    fn texts<T: Serialize + DeserializeOwned>(&mut self, of: &T, host: &str) -> Result<T, serde_json::Error> {
        let mut value = serde_json::to_value(of)?;
        self.value("", &mut value, host);
        serde_json::from_value(value)
    }

    fn value(&mut self, field: &str, value: &mut Value, host: &str) {
        match value {
            Value::String(text) => *text = self.text(field, text, host),
            Value::Array(all) => all.iter_mut().for_each(|value| self.value(field, value, host)),
            Value::Object(all) => all.iter_mut().for_each(|(field, value)| self.value(field, value, host)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, field: &str, text: &str, host: &str) -> String {
        if COMMANDS.contains(&field) {
            return "(redacted)".to_owned();
        }
        if text.starts_with('/') && !SENTENCES.contains(&field) {
            return self.path(text);
        }
        let text = self.without_paths(text);
        if SENTENCES.contains(&field) { without_word(&text, host) } else { text }
    }

    /// The word for a path, or the path itself where all machines have it.
    fn path(&mut self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        let below = |place: &&str| path.strip_prefix(*place).is_some_and(|rest| rest.starts_with('/'));
        let device = path.strip_prefix("/dev/").is_some_and(|name| !name.contains('/'));
        if device || path.is_empty() || COMMON.iter().any(|place| path == *place || below(place)) {
            return path.to_owned();
        }
        if COMMON_FILES.contains(&path) {
            return path.to_owned();
        }
        format!("path-{}", place(&mut self.paths, path.to_owned()))
    }

    /// The text with a word in place of each path in it. A path that is known, because another field has it alone, is
    /// found with its blanks.
    fn without_paths(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (at, path) in self.paths.iter().enumerate().filter(|(_, path)| path.contains(' ')) {
            text = text.replace(path, &format!("path-{}", at + 1));
        }
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = start_of_path(rest) {
            let (before, from) = rest.split_at(at);
            let end = from.find(ends_path).unwrap_or(from.len());
            let path = from[..end].trim_end_matches(['.', ':', '!', '?']);
            out.push_str(before);
            out.push_str(&self.path(path));
            rest = &from[path.len()..];
        }
        out + rest
    }
}

/// Number of an entry in a list, from 1; a new one is added.
fn place<T: PartialEq>(known: &mut Vec<T>, entry: T) -> usize {
    let at = known.iter().position(|other| *other == entry).unwrap_or_else(|| {
        known.push(entry);
        known.len() - 1
    });
    at + 1
}

/// The first place in a text where a path begins: a slash, or the dots before it, that no word ends in.
fn start_of_path(text: &str) -> Option<usize> {
    let slashes = text.match_indices('/').map(|(at, _)| at);
    slashes.map(|at| (at, text[..at].trim_end_matches(['.', '~']).len())).find_map(|(at, start)| {
        let follows = |c: char| c.is_alphanumeric() || "/._-)]%".contains(c);
        let inside = text[..start].chars().next_back().is_some_and(follows);
        let named = text[at + 1..].chars().next().is_some_and(|c| c.is_alphanumeric() || "._-".contains(c));
        (!inside && named).then_some(start)
    })
}

fn ends_path(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`,;()<>|[]{}".contains(c)
}

/// The text without a word.
fn without_word(text: &str, word: &str) -> String {
    if word.is_empty() {
        return text.to_owned();
    }
    let part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = &from[word.len()..];
        let whole = !before.chars().next_back().is_some_and(part) && !after.chars().next().is_some_and(part);
        out.push_str(before);
        out.push_str(if whole { "(redacted)" } else { word });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Load, ParamValue};

    fn clean(text: &str) -> String {
        Redactor::default().text("text", text, "thor")
    }

    #[test]
    fn paths_and_the_host_are_taken_out_of_sentences() {
        let text =
            "thor: cannot make files in /home/ann/x: Read-only; see /home/ann/x, /srv/b. (/tmp is used)";
        assert_eq!(
            clean(text),
            "(redacted): cannot make files in path-1: Read-only; see path-1, path-2. (/tmp is used)"
        );
        for same in
            ["12 GB/s, and/or 1/2", "/dev/cpu_dma_latency: no", "/proc/self/smaps", "thorn, anthor", "/ "]
        {
            assert_eq!(clean(same), same);
        }
        for serial in
            ["/dev/serial/by-id/usb-FTDI_A1", "/dev/mapper/thor-root", "/sys/fs/cgroup/user.slice/x"]
        {
            assert_eq!(clean(serial), "path-1");
        }
        assert_eq!(clean("in ./a/b or ../c or ~/d"), "in path-1 or path-2 or path-3");
    }

    #[test]
    fn a_result_keeps_its_figures_and_nothing_of_its_owner() {
        let mut report = crate::fixture::report();
        report.machine = Machine {
            id: Some("f00dfeed".to_owned()),
            name: "thorhost".to_owned(),
            command_line: Some("serial=s3cr3t hushed".to_owned()),
            ..report.machine
        };
        report.labels.insert("ownedby".to_owned(), "annalisa".to_owned());
        report.plan.load = Some(Load::Command("/home/annalisa/run --token s3cr3t".to_owned()));
        report.plan.timeline = Some("/home/annalisa/of thorhost/line.json".into());
        report.plan.notes.push("thorhost: /home/annalisa/of thorhost/line.json is on a disk".to_owned());
        report.measurements[0]
            .params
            .insert("directory".to_owned(), ParamValue::Text("/home/annalisa".to_owned()));
        let redacted = Redactor::default().report(&report).unwrap();
        let text = redacted.to_json();
        for secret in ["thorhost", "f00dfeed", "s3cr3t", "annalisa", "ownedby", "hushed"] {
            assert!(!text.contains(secret), "{secret} is left");
        }
        assert_eq!(redacted.machine.name, "machine-1");
        let figures =
            |report: &Report| report.measurements.iter().map(|m| m.summary.clone()).collect::<Vec<_>>();
        assert_eq!(figures(&redacted), figures(&report));
        assert_eq!(Report::from_json(text.as_bytes()).unwrap().to_json(), text);
        assert_eq!(Redactor::default().report(&redacted).unwrap().to_json(), text, "twice is as once");
    }

    #[test]
    fn machines_and_paths_stay_different() {
        let mut redactor = Redactor::default();
        let mut name = |host: &str| {
            let mut report = crate::fixture::report();
            (report.machine.name, report.machine.id) = (host.to_owned(), None);
            redactor.report(&report).unwrap().machine.name
        };
        assert_eq!([name("thor"), name("odin"), name("thor")], ["machine-1", "machine-2", "machine-1"]);
    }
}
