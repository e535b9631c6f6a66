//! Work of the commands on results from elsewhere, whose lists can be as long as their sender likes. Twice as long a
//! list takes about twice the work. It is counted in instructions, by Valgrind's callgrind, since time depends on the machine, and
//! a comparison of all items with all others allocates nothing that tests/growth could count.
//!
//! The lists are those of the schema of results, so that none is forgotten. Items are made by the schema too.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::fmt::{Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

const SCHEMA: &str = "docs/schema/result.schema.json";

/// Length of a list, of which twice as much is tried too. Every limit on items is above twice of it, but that on the
/// labels, 1,024.
const LENGTH: usize = 500;

/// Commands on the results `a.json` and `b.json`, with the budget `budget.toml`, and the start of the lists that each
/// works on.
const COMMANDS: [(&str, &str); 3] = [
    ("show a.json --redact --json out.json", ""),
    ("compare a.json b.json", ""),
    ("gate a.json --budget budget.toml", ".measurements"),
];

/// Lists that a sender cannot make as long: a histogram has a fixed number of buckets.
const BOUNDED: [&str; 2] = [".measurements[].corrected.buckets", ".measurements[].histogram.buckets"];

/// Checks the binary of this machine.
///
/// # Errors
/// A command takes more than its share for a longer list, or cannot be run.
pub fn check_growth(binary: &Path) -> Result<()> {
    let schema: Value = serde_json::from_slice(&fs::read(SCHEMA)?)?;
    let directory = tempfile::tempdir()?;
    let binary = std::path::absolute(binary)?;
    let measure = ["wake", "--count", "50", "--policy", "other", "--quiet", "--json", "base.json"];
    let measured = Command::new(&binary).args(measure).current_dir(&directory).status()?;
    ensure!(measured.success(), "the result to start from cannot be measured");
    let base: Value = serde_json::from_slice(&fs::read(directory.path().join("base.json"))?)?;
    let mut check = GrowthCheck { binary, base, schema: Schema(schema), counts: Vec::new() };
    check.counts = check.count_work(&check.base, ".measurements")?;
    let mut lists = check.schema.lists();
    lists.retain(|list| !BOUNDED.contains(&list.to_string().as_str()));
    let (at, wrong) = (Mutex::new(lists.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = at.lock().expect("no thread panics").next();
                    let Some(list) = next else { break };
                    match check.faster_growth_of(list) {
                        Ok(commands) => wrong.lock().expect("no thread panics").extend(commands),
                        Err(error) => {
                            wrong.lock().expect("no thread panics").push(format!("{list}: {error:#}"))
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panics");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} lists, {} commands", lists.len(), COMMANDS.len());
    Ok(())
}

/// Inputs of the check that are the same for all lists.
struct GrowthCheck {
    binary: PathBuf,
    base: Value,
    schema: Schema,
    /// Instructions that each command takes on the base.
    counts: Vec<Option<u64>>,
}

impl GrowthCheck {
    /// The commands whose work grows faster than this list, with their counts.
    fn faster_growth_of(&self, list: &ListPath) -> Result<Vec<String>> {
        let counts_of = |length| {
            let mut report = self.base.clone();
            self.schema.lengthen(&mut report, &list.0, length);
            self.count_work(&report, &list.to_string()).with_context(|| format!("{length} items"))
        };
        let (some, twice) = (counts_of(LENGTH)?, counts_of(2 * LENGTH)?);
        let mut faster = Vec::new();
        for (at, (command, _)) in COMMANDS.iter().enumerate() {
            let (Some(without), Some(some), Some(twice)) = (self.counts[at], some[at], twice[at]) else {
                continue;
            };
            if grows_faster([without, some, twice]) {
                faster.push(format!("{list}: {command}: {without}, {some}, {twice} instructions"));
            }
        }
        Ok(faster)
    }

    /// Number of instructions that each command takes on two runs with this result; `None` if it does not work on the
    /// list, or refuses the result, which may be several runs merged into one. The first command does not.
    fn count_work(&self, report: &Value, list: &str) -> Result<Vec<Option<u64>>> {
        let directory = tempfile::tempdir()?;
        let mut report = report.clone();
        for (name, run_id) in [("a.json", "01"), ("b.json", "02")] {
            report["run_id"] = run_id.repeat(16).into();
            fs::write(directory.path().join(name), serde_json::to_vec(&report)?)?;
        }
        fs::write(directory.path().join("budget.toml"), "[[limit]]\nprobe = 'wake.timer'\nmax = '1h'\n")?;
        let count = |(at, (command, lists)): (usize, &(&str, &str))| {
            if !list.starts_with(lists) {
                return Ok(None);
            }
            let count = count_instructions(&self.binary, command, directory.path());
            let count = count.with_context(|| (*command).to_owned())?;
            ensure!(at > 0 || count.is_some(), "{command}: it refuses the result");
            Ok(count)
        };
        COMMANDS.iter().enumerate().map(count).collect()
    }
}

/// Way to a list through a result.
struct ListPath(Vec<ListStep>);

#[derive(Clone)]
enum ListStep {
    Field(String),
    /// The first item of a list, or entry of a map.
    First,
}

impl Display for ListPath {
    fn fmt(&self, formatter: &mut Formatter) -> std::fmt::Result {
        for step in &self.0 {
            match step {
                ListStep::Field(name) => write!(formatter, ".{name}")?,
                ListStep::First => formatter.write_str("[]")?,
            }
        }
        Ok(())
    }
}

/// A JSON Schema, as schemars writes them.
struct Schema(Value);

impl Schema {
    /// All lists and maps of unlimited length.
    fn lists(&self) -> Vec<ListPath> {
        let mut lists = Vec::new();
        self.add_lists(&self.0, &mut Vec::new(), &mut lists);
        lists
    }

    fn add_lists(&self, node: &Value, path: &mut Vec<ListStep>, lists: &mut Vec<ListPath>) {
        let node = self.resolved(node);
        if let Some(item) = item_schema(node) {
            lists.push(ListPath(path.clone()));
            path.push(ListStep::First);
            self.add_lists(item, path, lists);
            path.pop();
        }
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            path.push(ListStep::Field(name.clone()));
            self.add_lists(property, path, lists);
            path.pop();
        }
    }

    /// Follows references, and takes the first of several forms that is not null.
    fn resolved<'a>(&'a self, mut node: &'a Value) -> &'a Value {
        loop {
            let forms = node["anyOf"].as_array().or(node["oneOf"].as_array());
            if let Some(reference) = node["$ref"].as_str() {
                node = self
                    .0
                    .pointer(reference.trim_start_matches('#'))
                    .expect("a reference leads to a definition");
            } else if let Some(form) =
                forms.and_then(|forms| forms.iter().find(|form| form["type"] != "null"))
            {
                node = form;
            } else {
                return node;
            }
        }
    }

    /// Makes the list at the end of this path as long.
    fn lengthen(&self, report: &mut Value, path: &[ListStep], length: usize) {
        let (mut node, mut value) = (self.resolved(&self.0), report);
        for step in path {
            (node, value) = match step {
                ListStep::Field(name) => (&node["properties"][name], &mut value[name]),
                ListStep::First => {
                    let item = item_schema(node).expect("a list has items");
                    if value.as_array().is_some_and(Vec::is_empty)
                        || value.as_object().is_some_and(Map::is_empty)
                    {
                        *value = self.list_of(node, 1, None);
                    }
                    match value {
                        Value::Array(items) => (item, &mut items[0]),
                        Value::Object(entries) => {
                            (item, entries.iter_mut().next().expect("it has an entry").1)
                        }
                        _ => unreachable!("a list is an array or a map"),
                    }
                }
            };
            node = self.resolved(node);
            if value.is_null() {
                *value = self.sample(node, 0);
            }
        }
        let first = value.get(0).cloned();
        *value = self.list_of(node, length, first);
    }

    /// A list or map of this length, of copies of an item, each with a parameter of its own, where one with parameters is
    /// given.
    fn list_of(&self, node: &Value, length: usize, first: Option<Value>) -> Value {
        let item = item_schema(node).expect("a list has items");
        let sample = |at| match &first {
            Some(first) if first["params"].is_object() => {
                let mut copy = first.clone();
                (copy["params"]["seed"], copy["title"]) = (json!(at), json!(format!("point {at}")));
                copy
            }
            _ => self.sample(self.resolved(item), at),
        };
        if node["type"] == "object" {
            (0..length).map(|at| (format!("e{at}"), sample(at))).collect::<Map<_, _>>().into()
        } else {
            (0..length).map(sample).collect()
        }
    }

    /// A value by its schema; those of two numbers differ where the schema leaves it open.
    fn sample(&self, node: &Value, at: usize) -> Value {
        if let Some(value) = node.get("const").or(node["enum"].get(0)) {
            return value.clone();
        }
        let kind = node["type"].as_array().map_or(&node["type"], |kinds| &kinds[0]);
        match kind.as_str() {
            Some("object") => {
                let required = node["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let field =
                    |name: &str| (name.to_owned(), self.sample(self.resolved(&node["properties"][name]), at));
                required.map(field).collect::<Map<_, _>>().into()
            }
            Some("array") => match node["prefixItems"].as_array() {
                Some(items) => items.iter().map(|item| self.sample(self.resolved(item), at)).collect(),
                None => json!([]),
            },
            // A list of CPUs too.
            Some("string") => at.to_string().into(),
            Some("boolean") => true.into(),
            Some("integer") => json!(at + 1),
            Some("number") => json!((at + 1) as f64),
            _ => json!(at.to_string()),
        }
    }
}

/// Schema of the items of a list or map of unlimited length.
fn item_schema(node: &Value) -> Option<&Value> {
    let items = node.get("items").filter(|_| node.get("prefixItems").is_none());
    items.or(node.get("additionalProperties")).filter(|items| !items.is_boolean())
}

/// Number of instructions that a command takes; `None` if it ends with an error.
fn count_instructions(binary: &Path, command: &str, directory: &Path) -> Result<Option<u64>> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary);
    let output = valgrind.args(command.split(' ')).current_dir(directory).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        // 2 and 3 are verdicts.
        Some(0 | 2 | 3) => {}
        Some(1) => return Ok(None),
        _ => bail!("{}: {said}", output.status),
    }
    let count = said.split("Collected : ").nth(1).and_then(|rest| rest.split_whitespace().next());
    count.and_then(|count| count.parse().ok()).map(Some).with_context(|| format!("no count in: {said}"))
}

/// Instructions by which counts of one command differ from run to run.
const NOISE: u64 = 2_000_000;

/// Returns true if the counts without items, of some and of twice as many grow more than in proportion: what is constant
/// is gone in their differences. The second difference is as large as the first in linear work, and three times the
/// first in quadratic work.
fn grows_faster([without, some, twice]: [u64; 3]) -> bool {
    let (first, second) = (some.saturating_sub(without), twice.saturating_sub(some));
    2 * second > 3 * first + NOISE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadratic_work_grows_faster_and_linear_work_does_not() {
        let counts = |work: fn(u64) -> u64| [0, 500, 1_000].map(work);
        assert!(!grows_faster(counts(|n| 30_000_000 + 9_000 * n)));
        assert!(!grows_faster(counts(|n| 30_000_000 + 900 * n * u64::from(n.max(1).ilog2()))));
        assert!(grows_faster(counts(|n| 30_000_000 + 900 * n + 10 * n * n)));
        // A view may end where a list is long.
        assert!(!grows_faster([90_000_000, 50_000_000, 50_000_000]));
    }

    #[test]
    fn lists_of_lists_and_maps_are_found_and_made_longer() {
        let point = json!({ "type": "object", "required": ["at"], "properties": {
            "at": { "type": "integer" },
            "names": { "type": ["array", "null"], "items": { "type": "string" } },
            "bins": { "type": "array", "items": { "type": "array", "prefixItems": [{ "type": "integer" }, {}] } },
        } });
        let schema = Schema(json!({ "type": "object", "$defs": { "Point": point }, "properties": {
            "points": { "type": "array", "items": { "$ref": "#/$defs/Point" } },
            "labels": { "anyOf": [
                { "type": "null" },
                { "type": "object", "additionalProperties": { "type": "string" } },
            ] },
        } }));
        let lists: Vec<String> = schema.lists().iter().map(ToString::to_string).collect();
        assert_eq!(lists, [".labels", ".points", ".points[].bins", ".points[].names"]);
        let mut report = json!({});
        for list in schema.lists() {
            schema.lengthen(&mut report, &list.0, 2);
        }
        let first = json!({ "at": 1, "names": ["0", "1"], "bins": [[1, "0"], [2, "1"]] });
        assert_eq!(report, json!({ "labels": { "e0": "0", "e1": "1" }, "points": [first, { "at": 2 }] }));
    }
}
