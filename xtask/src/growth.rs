//! Work of the commands on results of others, whose lists can be as long as the sender likes. Twice as long a list takes
//! about twice the work. It is counted in instructions, by Valgrind's callgrind, since time depends on the machine, and
//! a comparison of all items with all others allocates nothing that tests/growth could count.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Makes a list of a result this long.
type LongerList = fn(&mut Value, usize);

/// Lists that a sender can make long, with the longest length that is tried.
const LISTS: [(&str, usize, LongerList); 8] = [
    ("rounds", 2048, |report, length| {
        let round = |at| json!({ "count": 1, "min": 5000 + at, "p50": 5000 + at, "max": 5000 + at });
        report["measurements"][0]["rounds"] = (0..length).map(round).collect();
    }),
    ("reasons", 512, |report, length| {
        let reason =
            |at| json!({ "level": "degraded", "id": format!("r{at}"), "text": format!("text {at}") });
        report["measurements"][0]["quality"] =
            json!({ "level": "degraded", "reasons": (0..length).map(reason).collect::<Value>() });
    }),
    ("values", 1000, |report, length| {
        let value = |at| (format!("v{at}"), json!({ "value": at, "unit": "ns", "better": "less" }));
        report["measurements"][0]["values"] = Value::Object((0..length).map(value).collect());
    }),
    ("parameters", 1000, |report, length| {
        (0..length).for_each(|at| report["measurements"][0]["params"][format!("p{at}")] = at.into());
    }),
    ("warnings", 1024, |report, length| {
        let warning = |at| json!({ "id": format!("w{at}"), "text": format!("text {at}") });
        report["warnings"] = (0..length).map(warning).collect();
    }),
    ("labels", 1000, |report, length| {
        report["labels"] = Value::Object((0..length).map(|at| (format!("l{at}"), "x".into())).collect());
    }),
    ("single events", 1024, |report, length| {
        let cause = |at: usize| json!({ "kind": "thread", "name": format!("x{at}"), "pid": at, "ns": 5000 });
        let event = |at| json!({ "at": at, "value": 5000, "cpu": 0, "thread": 1, "cause": [cause(at)] });
        report["measurements"][0]["outliers"] = (0..length).map(event).collect();
    }),
    ("points", 512, |report, length| {
        let point = report["measurements"][0].clone();
        let with_seed = |at: usize| {
            let mut point = point.clone();
            (point["params"]["seed"], point["title"]) = (at.into(), format!("point {at}").into());
            point
        };
        report["measurements"] = (0..length).map(with_seed).collect();
    }),
];

/// Commands on the results `a.json` and `b.json`, with the budget `budget.toml`.
const COMMANDS: [&str; 3] =
    ["show a.json --redact --json out.json", "gate a.json --budget budget.toml", "compare a.json b.json"];

/// Checks the binary of this machine.
///
/// # Errors
/// A command takes more than its share for a longer list, or cannot be run.
pub fn check_growth(binary: &Path) -> Result<()> {
    let place = tempfile::tempdir()?;
    let binary = std::path::absolute(binary)?;
    fs::write(place.path().join("budget.toml"), "[[limit]]\nprobe = 'wake.timer'\nmax = '1h'\n")?;
    let measure = ["wake", "--count", "50", "--policy", "other", "--quiet", "--json", "base.json"];
    let measured = Command::new(&binary).args(measure).current_dir(place.path()).status()?;
    ensure!(measured.success(), "the result to start from cannot be measured");
    let base: Value = serde_json::from_slice(&fs::read(place.path().join("base.json"))?)?;
    let mut wrong = Vec::new();
    for (list, longest, make_longer) in LISTS {
        let mut counts = vec![Vec::new(); COMMANDS.len()];
        for length in [longest / 4, longest / 2, longest] {
            let mut report = base.clone();
            make_longer(&mut report, length);
            for (name, run_id) in [("a.json", "01"), ("b.json", "02")] {
                report["run_id"] = run_id.repeat(16).into();
                fs::write(place.path().join(name), serde_json::to_vec(&report)?)?;
            }
            for (command, counts) in COMMANDS.iter().zip(&mut counts) {
                let count = count_instructions(&binary, command, place.path());
                counts.push(count.with_context(|| format!("{command}, {length} {list}"))?);
            }
        }
        let commands = COMMANDS.iter().zip(&counts).filter(|(_, counts)| grows_faster(counts));
        wrong.extend(commands.map(|(command, counts)| format!("{command}, {list}: {counts:?} instructions")));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Number of instructions that a command takes.
fn count_instructions(binary: &Path, command: &str, directory: &Path) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary);
    let output = valgrind.args(command.split(' ')).current_dir(directory).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // 2 and 3 are verdicts.
    ensure!(matches!(output.status.code(), Some(0 | 2 | 3)), "{}: {said}", output.status);
    let count = said.split("Collected : ").nth(1).and_then(|rest| rest.split_whitespace().next());
    count.and_then(|count| count.parse().ok()).with_context(|| format!("no count in: {said}"))
}

/// Instructions by which counts of one command differ from run to run.
const NOISE: u64 = 2_000_000;

/// Returns true if the counts of a length, of twice and of four times that length grow more than in proportion: what is
/// constant is gone in their differences, of which the second is twice the first in linear work, and four times the
/// first in quadratic work.
fn grows_faster(counts: &[u64]) -> bool {
    let [once, twice, four] = counts else { return false };
    let (first, second) = (twice.saturating_sub(*once), four.saturating_sub(*twice));
    second > 3 * first + NOISE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadratic_work_grows_faster_and_linear_work_does_not() {
        let counts = |work: fn(u64) -> u64| [1_000, 2_000, 4_000].map(work);
        assert!(!grows_faster(&counts(|n| 30_000_000 + 9_000 * n)));
        assert!(!grows_faster(&counts(|n| 30_000_000 + 900 * n * u64::from(n.ilog2()))));
        assert!(grows_faster(&counts(|n| 30_000_000 + 900 * n + 10 * n * n)));
        // A view may end where a list is long.
        assert!(!grows_faster(&[90_000_000, 50_000_000, 50_000_000]));
    }
}
