//! Plan of a trial, as a file contains it: measurements, the arms in which they are made, loads beside them, how often
//! and in which order. `latscope trial` makes the same plan from its arguments.

use super::super::usage::did_you_mean;
use anyhow::{Result, bail, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A plan for many runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Question that the plan answers, in a line.
    #[serde(default)]
    pub title: String,
    /// Number of times that each measurement is made in each arm under each load.
    #[serde(default = "one::<u32>")]
    pub repetitions: u32,
    /// In which order the runs of a repetition are made.
    #[serde(default)]
    pub order: TrialRunOrder,
    /// Seed of the order.
    #[serde(default = "one::<u64>")]
    pub seed: u64,
    /// Command of the shell that puts back what the arms changed; without it, the `before` of the first arm.
    pub restore: Option<String>,
    /// Measurements of the plan.
    #[serde(rename = "measurement")]
    pub measurements: Vec<TrialMeasurement>,
    /// In which circumstances, of which the first is A; none: as the machine is.
    #[serde(rename = "arm", default)]
    pub arms: Vec<Arm>,
    /// Beside what; none: no load.
    #[serde(rename = "load", default)]
    pub loads: Vec<NamedLoad>,
}

fn one<T: From<u8>>() -> T {
    1.into()
}

/// In which order the runs of a repetition are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialRunOrder {
    /// In a random order that follows from the seed.
    #[default]
    Random,
    /// In the order of the file.
    Given,
}

/// A command line of latscope that measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialMeasurement {
    /// Name of the measurement.
    pub name: String,
    /// Words of the command line: `wake --duration 10s`.
    pub run: TrialCommandLine,
    /// Command of the shell that fails where this cannot be measured.
    pub needs: Option<String>,
    /// Reason given if that command fails.
    pub otherwise: Option<String>,
}

/// Circumstances of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Name of the arm.
    pub name: String,
    /// Command of the shell that is run before each run.
    pub before: Option<String>,
    /// Files of the kernel and what they hold meanwhile; latscope puts back what they held. `*` stands for any text.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Program that starts latscope: `taskset -c 1`, `chrt -f 10`.
    #[serde(default)]
    pub prefix: TrialCommandLine,
    /// Load beside the measurement.
    pub load: Option<String>,
    /// Labels of its results.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Command of the shell that fails where there can be no such arm.
    pub needs: Option<String>,
    /// Reason given if that command fails.
    pub otherwise: Option<String>,
}

/// A load beside the measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedLoad {
    /// Name of the load.
    pub name: String,
    /// Value for `--load`, or `none`; `None` means the name.
    pub load: Option<String>,
    /// Command of the shell that fails where there can be no such load.
    pub needs: Option<String>,
    /// Reason given if that command fails.
    pub otherwise: Option<String>,
}

/// Command of the shell that fails where a part of a plan cannot be had.
#[derive(Debug, Clone, Copy)]
pub struct Requirement<'a> {
    /// Kind of the part: measurement, load or arm.
    pub kind: &'static str,
    /// Name of the part.
    pub name: &'a str,
    /// Command that the shell runs.
    pub command: &'a str,
    /// Reason given if the command fails.
    pub otherwise: &'a Option<String>,
}

impl<'a> Requirement<'a> {
    fn from_command(
        kind: &'static str,
        name: &'a str,
        command: &'a Option<String>,
        otherwise: &'a Option<String>,
    ) -> Option<Requirement<'a>> {
        Some(Requirement { kind, name, command: command.as_deref()?, otherwise })
    }
}

/// Words of a command line: a list, or one text that is split as a shell would.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LineOrWords")]
pub struct TrialCommandLine(pub Vec<String>);

impl TrialCommandLine {
    /// Splits a text as a shell would.
    ///
    /// # Errors
    /// A quote is not closed.
    pub fn from_shell_text(text: &str) -> Result<TrialCommandLine> {
        match shlex::split(text) {
            Some(words) => Ok(TrialCommandLine(words)),
            None => bail!("{text:?} has a quote that is not closed"),
        }
    }
}

/// The two forms of a command line in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "it must be a command line, or a list of its words")]
enum LineOrWords {
    Line(String),
    Words(Vec<String>),
}

impl TryFrom<LineOrWords> for TrialCommandLine {
    type Error = anyhow::Error;

    fn try_from(form: LineOrWords) -> Result<TrialCommandLine> {
        match form {
            LineOrWords::Line(text) => TrialCommandLine::from_shell_text(&text),
            LineOrWords::Words(words) => Ok(TrialCommandLine(words)),
        }
    }
}

impl fmt::Display for TrialCommandLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let joined = shlex::try_join(self.0.iter().map(String::as_str));
        f.write_str(&joined.unwrap_or_else(|_| self.0.join(" ")))
    }
}

/// A run by its places in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Repetition of the run, from 0.
    pub repetition: u32,
    /// Place of the run's measurement, arm and load.
    pub cell: TrialCellIndex,
}

/// A measurement in an arm under a load, by their places in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialCellIndex {
    /// Index of the measurement.
    pub measurement: usize,
    /// Index of the load; `None` if the plan has no loads.
    pub load: Option<usize>,
    /// Index of the arm.
    pub arm: usize,
}

/// Name for running without a load.
const NONE: &str = "none";

impl PlanFile {
    /// Reads a plan from TOML.
    ///
    /// # Errors
    /// The text is no TOML, has a wrong key or lacks one, or describes an impossible plan; the error has the line.
    pub fn parse(text: &str) -> Result<PlanFile> {
        let plan: PlanFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            anyhow::anyhow!("{line}{}", in_words(error.message()))
        })?;
        plan.checked()
    }

    /// The plan, with an arm where it has none.
    ///
    /// # Errors
    /// A name occurs twice or is not permitted, or parts of the plan exclude each other.
    pub fn checked(mut self) -> Result<PlanFile> {
        if self.arms.is_empty() {
            self.arms.push(Arm { name: "as-is".to_owned(), ..Arm::default() });
        }
        ensure!(!self.measurements.is_empty(), "there is no [[measurement]]: what is to be measured?");
        ensure!((1..=1000).contains(&self.repetitions), "repetitions must be 1 to 1000");
        for kind in ["measurement", "arm", "load"] {
            check_names(kind, self.names_of(kind))?;
        }
        for arm in &self.arms {
            ensure!(
                arm.load.is_none() || self.loads.is_empty(),
                "arm {} has a load of its own, and so has the plan ([[load]]): choose one",
                arm.name
            );
        }
        let runs = self.cell_indices().len() * self.repetitions as usize;
        ensure!(runs <= 100_000, "these are {runs} runs, and at most 100000 are possible");
        Ok(self)
    }

    /// Every measurement under every load in every arm, in the order of the file.
    pub fn cell_indices(&self) -> Vec<TrialCellIndex> {
        let loads: Vec<Option<usize>> =
            if self.loads.is_empty() { vec![None] } else { (0..self.loads.len()).map(Some).collect() };
        let mut all = Vec::new();
        for measurement in 0..self.measurements.len() {
            for load in &loads {
                all.extend((0..self.arms.len()).map(|arm| TrialCellIndex { measurement, load: *load, arm }));
            }
        }
        all
    }

    /// Value for `--load`: the load of the arm, else that of the plan.
    pub fn load(&self, place: TrialCellIndex) -> Option<&str> {
        let named = place.load.map(|at| &self.loads[at]).map(|load| load.load.as_ref().unwrap_or(&load.name));
        let load = self.arms[place.arm].load.as_ref().or(named).map(String::as_str);
        load.filter(|load| *load != NONE)
    }

    /// The words of a run, but for where its result goes.
    pub fn command_words(&self, place: TrialCellIndex) -> Vec<String> {
        let arm = &self.arms[place.arm];
        let mut words = self.measurements[place.measurement].run.0.clone();
        if !words.iter().any(|word| word == "--quiet" || word == "-q") {
            words.push("--quiet".to_owned());
        }
        words.extend(["--label".to_owned(), format!("arm={}", arm.name)]);
        for (key, value) in &arm.labels {
            words.extend(["--label".to_owned(), format!("{key}={value}")]);
        }
        if let Some(load) = self.load(place) {
            words.extend(["--load".to_owned(), load.to_owned()]);
        }
        words
    }

    /// Names of the measurement, the load and the arm of a place.
    pub fn part_names(&self, place: TrialCellIndex) -> (String, Option<String>, String) {
        let load = place.load.map(|at| self.loads[at].name.clone());
        (self.measurements[place.measurement].name.clone(), load, self.arms[place.arm].name.clone())
    }

    /// Names of all parts of a kind, as [`Skipped`](super::outcome::Skipped) has it.
    pub fn names_of(&self, kind: &str) -> Vec<&String> {
        match kind {
            "measurement" => self.measurements.iter().map(|one| &one.name).collect(),
            "arm" => self.arms.iter().map(|arm| &arm.name).collect(),
            _ => self.loads.iter().map(|load| &load.name).collect(),
        }
    }

    /// The name of a place: `with-wake-network`.
    pub fn name(&self, place: TrialCellIndex) -> String {
        let load = place.load.map(|at| format!("-{}", self.loads[at].name)).unwrap_or_default();
        format!("{}-{}{load}", self.arms[place.arm].name, self.measurements[place.measurement].name)
    }

    /// The command that puts back what the arms change.
    pub fn restore(&self) -> Option<&str> {
        let of_first = || self.arms.first().and_then(|arm| arm.before.as_deref());
        self.restore.as_deref().or_else(of_first).filter(|command| !command.trim().is_empty())
    }

    /// What measurements, loads and arms need, in this order.
    pub fn needs(&self) -> impl Iterator<Item = Requirement<'_>> {
        let measurements = self.measurements.iter().filter_map(|one| {
            Requirement::from_command("measurement", &one.name, &one.needs, &one.otherwise)
        });
        let loads = self
            .loads
            .iter()
            .filter_map(|one| Requirement::from_command("load", &one.name, &one.needs, &one.otherwise));
        let arms = self
            .arms
            .iter()
            .filter_map(|one| Requirement::from_command("arm", &one.name, &one.needs, &one.otherwise));
        measurements.chain(loads).chain(arms)
    }

    /// Returns true if all arms are the same.
    pub fn is_same(&self) -> bool {
        let same = |one: &Arm, other: &Arm| {
            let of = |arm: &Arm| (arm.before.clone(), arm.set.clone(), arm.prefix.clone(), arm.load.clone());
            of(one) == of(other)
        };
        self.arms.windows(2).all(|pair| same(&pair[0], &pair[1]))
    }
}

impl Arm {
    /// Changes that the arm makes, in words.
    pub fn describe_changes(&self) -> String {
        let mut words = Vec::from_iter(self.before.clone());
        words.extend(self.set.iter().map(|(file, value)| format!("{file} = {value}")));
        if !self.prefix.0.is_empty() {
            words.push(format!("started by {}", self.prefix));
        }
        words.extend(self.load.as_ref().map(|load| format!("load {load}")));
        if words.is_empty() { "nothing changed".to_owned() } else { words.join(", ") }
    }
}

/// Checks names, which are parts of file names and labels.
fn check_names(kind: &str, all: Vec<&String>) -> Result<()> {
    let mut known = BTreeSet::new();
    for name in all {
        let sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let named =
            name.chars().all(sound) && !name.starts_with(['.', '-']) && (1..=64).contains(&name.len());
        ensure!(
            named,
            "a {kind} cannot be called {name:?}: use up to 64 letters, digits, \".\", \"_\" and \"-\""
        );
        ensure!(known.insert(name), "two {kind}s are called {name}: choose another name for one of them");
    }
    Ok(())
}

/// An error of the parser in our words, with the name that was meant.
fn in_words(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((key, known)) if message.starts_with("unknown field") => {
            let near = did_you_mean(key, known.iter().copied());
            let known = if near.is_empty() { format!(" (known: {})", known.join(", ")) } else { near };
            format!("there is no key {key:?} here{known}")
        }
        Some((word, known)) if message.starts_with("unknown variant") => {
            format!("{word:?} is not one of: {}", known.join(", "))
        }
        Some((key, _)) if message.starts_with("missing field") => format!("the key {key:?} is missing"),
        _ => message.lines().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        repetitions = 3
        [[measurement]]
        name = "wake"
        run = "wake --duration 1s --method 'clock'"
        [[measurement]]
        name = "pipe"
        run = ["ipc", "--transport", "pipe"]
        [[arm]]
        name = "without"
        before = "off"
        [[arm]]
        name = "with"
        before = "on"
        prefix = "taskset -c 1"
        labels = { board = "a7" }
        [[load]]
        name = "idle"
        load = "none"
        [[load]]
        name = "cpu"
    "#;

    #[test]
    fn a_plan_is_read_as_it_is_written() {
        let plan = PlanFile::parse(PLAN).unwrap();
        assert_eq!((plan.cell_indices().len(), plan.restore()), (8, Some("off")));
        let last = TrialCellIndex { measurement: 0, load: Some(1), arm: 1 };
        let expected =
            "wake --duration 1s --method clock --quiet --label arm=with --label board=a7 --load cpu";
        assert_eq!(plan.command_words(last).join(" "), expected);
        assert_eq!(plan.name(last), "with-wake-cpu");
        assert_eq!(plan.load(TrialCellIndex { load: Some(0), ..last }), None);
        assert!(!plan.is_same());
        let alone = PlanFile::parse("[[measurement]]\nname = \"a\"\nrun = \"wake\"").unwrap();
        assert_eq!((alone.arms.len(), alone.repetitions, alone.restore()), (1, 1, None));
        let quiet = PlanFile::parse("[[measurement]]\nname = \"a\"\nrun = \"wake -q\"").unwrap();
        let only = TrialCellIndex { measurement: 0, load: None, arm: 0 };
        assert!(quiet.command_words(only).join(" ").starts_with("wake -q --label arm="));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_the_nearest_name() {
        let cases = [
            (
                "[[measurment]]\nname = \"a\"",
                "line 1: there is no key \"measurment\" here; did you mean measurement?",
            ),
            (
                "[[measurement]]\nname = \"a\"\nrum = \"wake\"",
                "line 3: there is no key \"rum\" here; did you mean run?",
            ),
            ("[[measurement]]\nname = \"a\"", "the key \"run\" is missing"),
            ("title = \"a\"", "the key \"measurement\" is missing"),
            ("order = \"rondom\"\nmeasurement = []", "\"rondom\" is not one of: random, given"),
            ("measurement = []", "what is to be measured?"),
            ("[[measurement]]\nname = \"a b\"\nrun = \"wake\"", "cannot be called \"a b\""),
            ("[[measurement]]\nname = \"a\"\nrun = \"wake 'x\"", "a quote that is not closed"),
            ("[[measurement]]\nname = \"a\"\nrun = 3", "a command line, or a list of its words"),
            ("repetitions = 0\n[[measurement]]\nname = \"a\"\nrun = \"wake\"", "1 to 1000"),
            ("a = [", "line 1"),
        ];
        for (text, said) in cases {
            let error = PlanFile::parse(text).unwrap_err().to_string();
            assert!(error.contains(said) && error.lines().count() == 1, "{text}\n{error}");
        }
        let twice = PLAN.replace("\"without\"", "\"with\"");
        assert!(PlanFile::parse(&twice).unwrap_err().to_string().contains("two arms are called with"));
        let loads = PLAN.replace("before = \"on\"", "load = \"cpu\"");
        assert!(PlanFile::parse(&loads).unwrap_err().to_string().contains("choose one"));
    }
}
