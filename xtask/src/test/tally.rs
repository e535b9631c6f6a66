//! Counts of the tests in all steps.

use crate::shell;
use anyhow::{Context, Result};
use latscope_core::units::format_time;
use latscope_os::usage::process_and_ended_children_cpu_ns;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time that a step took.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StepTime {
    name: String,
    wall_s: f64,
    /// CPU time of the processes that the step started.
    cpu_s: f64,
}

/// Time at which the tests end.
#[derive(Debug, Clone, Copy)]
pub struct TestDeadline(Instant);

impl TestDeadline {
    /// Returns the limit in so many minutes from now.
    pub fn minutes(minutes: u64) -> TestDeadline {
        TestDeadline(Instant::now() + Duration::from_secs(60 * minutes))
    }

    /// Returns true if no time is left.
    pub fn is_over(self) -> bool {
        Instant::now() >= self.0
    }

    /// Returns the number of whole minutes left.
    pub fn minutes_left(self) -> u64 {
        self.seconds_left() / 60
    }

    fn seconds_left(self) -> u64 {
        self.0.saturating_duration_since(Instant::now()).as_secs()
    }

    /// Returns a command that ends another one when no time is left.
    fn bounding(self, command: &Command) -> Command {
        let mut bounded = Command::new("timeout");
        bounded.arg("--kill-after=10");
        bounded
            .arg((self.seconds_left() + 1).to_string())
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => bounded.env(name, value),
                None => bounded.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            bounded.current_dir(directory);
        }
        bounded
    }
}

/// Largest number of failed tests that run again: more are no accident.
const FLAKY: i64 = 5;

/// Counts of the tests in all steps, and the time that each step took.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TestTally {
    // Below zero while a test binary has told of skipped tests, and not yet of its sum.
    passed: i64,
    failed: i64,
    broken: Vec<String>,
    /// Names of the tests that failed among others and passed alone.
    flaky: Vec<String>,
    /// Reasons for skipped tests.
    skipped: Vec<String>,
    steps: Vec<StepTime>,
    /// True if a test binary has begun and has not printed its sum yet.
    #[serde(skip)]
    unfinished: bool,
    #[serde(skip)]
    limit: Option<TestDeadline>,
    /// File that holds these counts for the process that waits for this one.
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl TestTally {
    /// Returns counts of steps that begin before this limit.
    pub fn with_deadline(limit: TestDeadline) -> TestTally {
        TestTally { limit: Some(limit), ..TestTally::default() }
    }

    /// Returns these counts, to be kept in a file.
    pub fn kept_in(self, file: PathBuf) -> TestTally {
        TestTally { file: Some(file), ..self }
    }

    /// Writes the counts to their file, if they have one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_counts(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let new = file.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        Ok(fs::rename(new, file)?)
    }

    /// Runs a step, and prints the time that it took. Skips it if no time is left.
    pub fn run_step(&mut self, name: &str, run: impl FnOnce(&mut TestTally)) {
        if self.limit.is_some_and(TestDeadline::is_over) {
            return self.skip(Some(format!("{name}: the time of the tests was over")));
        }
        let (begun, cpu) = (Instant::now(), process_and_ended_children_cpu_ns());
        run(self);
        let wall_s = begun.elapsed().as_secs_f64();
        let cpu_s = (process_and_ended_children_cpu_ns() - cpu) as f64 / 1e9;
        eprintln!("xtask: {name} took {}", format_time(wall_s * 1e9));
        self.steps.push(StepTime { name: name.to_owned(), wall_s, cpu_s });
    }

    /// Adds the counts and the steps of a part that ran in a process of its own.
    pub fn add_part(&mut self, part: TestTally) {
        self.passed += part.passed;
        self.failed += part.failed;
        self.broken.extend(part.broken);
        self.flaky.extend(part.flaky);
        self.skipped.extend(part.skipped);
        self.steps.extend(part.steps);
    }

    /// Counts a check by its outcome.
    pub fn count_check(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => {
                eprintln!("xtask: {name}: {error:#}");
                self.failed += 1;
                self.broken.push(name.to_owned());
            }
        }
        if let Err(error) = self.save_counts() {
            eprintln!("xtask: the counts are not kept: {error:#}");
        }
    }

    /// Counts a failure to run checks, if there is one.
    pub fn count_failure(&mut self, name: &str, outcome: Result<()>) {
        if outcome.is_err() {
            self.count_check(name, outcome);
        }
    }

    /// Records that something cannot be done here, if there is a reason.
    pub fn skip(&mut self, reason: Option<impl std::fmt::Display>) {
        if let Some(reason) = reason {
            println!("SKIPPED {reason}");
            self.skipped.push(reason.to_string());
        }
    }

    /// Runs `cargo test`, and adds up the reports of the test binaries. A failure of the step itself counts only if no
    /// test reported one. What has no time left is skipped.
    pub fn tests(&mut self, name: &str, command: Command) {
        let failed = self.failed;
        let outcome = self.read_tests(match self.limit {
            Some(limit) => limit.bounding(&command),
            None => command,
        });
        if outcome.is_err() && self.limit.is_some_and(TestDeadline::is_over) {
            self.unfinished = false;
            return self.skip(Some(format!("the rest of {name}: its time was over")));
        }
        self.binary_ends();
        if outcome.is_err() && self.failed == failed {
            self.count_check(name, outcome);
        }
    }

    /// Runs tests like [`TestTally::tests`]. `command` takes the names of those to run, none for all. The tests that
    /// fail, if they are few, run again, alone: those that pass then are flaky, which the end says.
    ///
    /// # Errors
    /// There is no command.
    pub fn tests_or_flaky(
        &mut self,
        name: &str,
        command: impl Fn(&[String]) -> Result<Command>,
    ) -> Result<()> {
        let of_this = || TestTally { limit: self.limit, ..TestTally::default() };
        let mut first = of_this();
        first.tests(name, command(&[])?);
        let few = first.broken.len() as i64 == first.failed && (1..=FLAKY).contains(&first.failed);
        if few {
            let names = std::mem::take(&mut first.broken);
            eprintln!("xtask: again, alone: {}", names.join(", "));
            let mut second = of_this();
            second.tests(name, command(&names)?);
            if second.passed + second.failed < first.failed {
                // One did not run again, such as one of a binary that crashes.
                second = TestTally { failed: first.failed, broken: names.clone(), ..TestTally::default() };
            }
            first.failed = 0;
            first.flaky = names.into_iter().filter(|name| !second.broken.contains(name)).collect();
            self.add_part(second);
        }
        self.add_part(first);
        Ok(())
    }

    fn read_tests(&mut self, mut command: Command) -> Result<()> {
        eprintln!("$ {}", shell::command_line(&command));
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
            let line = line?;
            println!("{line}");
            self.parse_test_line(&line);
        }
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "cargo test failed ({status})");
        Ok(())
    }

    /// Reads a line of a test binary. A test that cannot run on this machine prints that, and passes for the harness. A
    /// test of
    /// which only a part cannot run has passed.
    fn parse_test_line(&mut self, line: &str) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.binary_ends();
            self.unfinished = true;
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.broken.push(name.to_owned());
        } else if let Some((_, reason)) = line.split_once("SKIPPED ") {
            self.skipped.push(reason.to_owned());
            self.passed -= 1;
        } else if let Some((_, reason)) = line.split_once("SKIPPED-IN-PART ") {
            self.skipped.push(reason.to_owned());
        } else if let Some((name, reason)) = line.split_once(" ... ignored") {
            let name = name.trim_start_matches("test ");
            self.skipped.push(format!("{name}: {}", reason.trim_start_matches(", ")));
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.parse_counts(counts);
            self.unfinished = false;
        }
    }

    /// Counts a test binary that ended without its sum, such as one that crashed.
    fn binary_ends(&mut self) {
        if std::mem::take(&mut self.unfinished) {
            self.failed += 1;
            self.broken.push("a test binary that ended before its tests did".to_owned());
        }
    }

    /// Reads the counts in `ok. 3 passed; 0 failed; 1 ignored; …`. Ignored tests have lines of their own.
    fn parse_counts(&mut self, counts: &str) {
        for part in counts.split(['.', ';']) {
            match part.split_whitespace().collect::<Vec<_>>()[..] {
                [n, "passed"] => self.passed += n.parse().unwrap_or(0),
                [n, "failed"] => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// Prints the time of each step, what was skipped, what failed, and the sum. Returns true if nothing failed.
    pub fn print_summary(&self) -> bool {
        println!("\n{:<28} {:>8} {:>10}", "step", "time", "CPU time");
        for StepTime { name, wall_s, cpu_s } in &self.steps {
            println!("{name:<28} {wall_s:>6.1} s {cpu_s:>8.1} s");
        }
        let cpu_s: f64 = self.steps.iter().map(|step| step.cpu_s).sum();
        println!("{:<28} {:>8} {cpu_s:>8.1} s\n", "all", "");
        self.skipped.iter().for_each(|reason| println!("skipped: {reason}"));
        self.flaky.iter().for_each(|name| println!("flaky, passed alone: {name}"));
        self.broken.iter().for_each(|name| println!("failed: {name}"));
        println!("{}", self.last_line());
        self.failed == 0
    }

    fn last_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_has_not_passed() {
        let mut tally = TestTally::default();
        for line in [
            "test a ... ok",
            "SKIPPED b: it needs root",
            "test b ... ok",
            "test c ... SKIPPED c: no node",
            "ok",
            "SKIPPED-IN-PART a: fish is not installed",
            "test d ... ignored, fetches much",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 9.9s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        ] {
            tally.parse_test_line(line);
        }
        assert_eq!(tally.last_line(), "5 passed, 2 failed, 4 skipped");
        assert_eq!(tally.skipped[3], "d: fetches much");
    }

    #[test]
    fn a_failed_test_and_its_step_are_one_failure() {
        let ran = |script: &str| {
            let mut tally = TestTally::default();
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            tally.tests("cargo test", command);
            (tally.last_line(), tally.broken.join(", "))
        };
        let told = |line: &str, broken: &str| (line.to_owned(), broken.to_owned());
        let one = "echo 'running 2 tests'; echo 'test a::b ... FAILED'; echo 'test c ... ok'";
        let sum = "echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'";
        assert_eq!(ran(&format!("{one}; {sum}; exit 101")), told("1 passed, 1 failed, 0 skipped", "a::b"));
        assert_eq!(ran("exit 101"), told("0 passed, 1 failed, 0 skipped", "cargo test"));
        let crashed = "a test binary that ended before its tests did";
        assert_eq!(ran("echo 'running 1 test'; exit 101"), told("0 passed, 1 failed, 0 skipped", crashed));
        let then = format!("echo 'running 1 test'; {one}; {sum}; exit 101");
        let both = format!("{crashed}, a::b");
        assert_eq!(ran(&then), told("1 passed, 2 failed, 0 skipped", &both));
        let passed = "echo 'running 1 test'; echo 'test result: ok. 1 passed; 0 failed'";
        assert_eq!(ran(passed), told("1 passed, 0 failed, 0 skipped", ""));
    }

    #[test]
    fn a_test_that_passes_alone_is_flaky() {
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let first = "echo 'running 3 tests'; echo 'test a ... FAILED'; echo 'test b ... FAILED'; \
            echo 'test result: FAILED. 1 passed; 2 failed'; exit 101";
        let ran = |second: &str| {
            let mut tally = TestTally::default();
            let command = |names: &[String]| {
                assert!(names.is_empty() || names == ["a", "b"], "{names:?}");
                Ok(sh(if names.is_empty() { first } else { second }))
            };
            tally.tests_or_flaky("cargo test", command).unwrap();
            (tally.last_line(), tally.broken.join(","), tally.flaky.join(","))
        };
        let is =
            |line: &str, broken: &str, flaky: &str| (line.to_owned(), broken.to_owned(), flaky.to_owned());
        let both = "echo 'running 2 tests'; echo 'test result: ok. 2 passed; 0 failed'";
        assert_eq!(ran(both), is("3 passed, 0 failed, 0 skipped", "", "a,b"));
        let one = "echo 'running 2 tests'; echo 'test b ... FAILED'; \
            echo 'test result: FAILED. 1 passed; 1 failed'; exit 101";
        assert_eq!(ran(one), is("2 passed, 1 failed, 0 skipped", "b", "a"));
        assert_eq!(ran("exit 0"), is("1 passed, 2 failed, 0 skipped", "a,b", ""));
    }

    #[test]
    fn a_step_that_has_no_time_left_is_skipped_by_name() {
        let mut tally = TestTally::with_deadline(TestDeadline::minutes(0));
        tally.run_step("virtual machine", |tally| tally.count_check("boots", Ok(())));
        assert_eq!(tally.last_line(), "0 passed, 0 failed, 1 skipped");
        assert!(tally.skipped[0].starts_with("virtual machine: "), "{}", tally.skipped[0]);
        let mut tally = TestTally::with_deadline(TestDeadline::minutes(1));
        tally.run_step("virtual machine", |tally| tally.count_check("boots", Ok(())));
        assert_eq!(tally.last_line(), "1 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn tests_that_have_no_time_left_are_skipped_and_what_they_counted_stays() {
        let mut tally = TestTally::with_deadline(TestDeadline(Instant::now() + Duration::from_millis(1500)));
        let mut command = Command::new("sh");
        command.env("SUM", "test result: ok. 2 passed; 0 failed");
        command.args(["-c", "echo \"$SUM\"; echo 'running 3 tests'; exec sleep 60"]);
        tally.tests("cargo test", command);
        assert_eq!(tally.last_line(), "2 passed, 0 failed, 1 skipped");
        assert_eq!(tally.skipped, ["the rest of cargo test: its time was over"]);
    }

    #[test]
    fn the_counts_of_a_part_are_kept_after_each_check() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("part.json");
        let mut tally = TestTally::default().kept_in(file.clone());
        tally.count_check("a", Ok(()));
        let kept: TestTally = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(kept.last_line(), "1 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn a_part_in_another_process_counts() {
        let mut tally = TestTally { passed: 2, failed: 1, broken: vec!["a".into()], ..TestTally::default() };
        let mut part = TestTally::default();
        part.run_step("wheel", |part| part.count_check("b", Err(anyhow::anyhow!("c"))));
        part.skip(Some("no node"));
        tally.add_part(serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap());
        assert_eq!(tally.last_line(), "2 passed, 2 failed, 1 skipped");
        assert_eq!((tally.broken.join(","), tally.steps[0].name.as_str()), ("a,b".into(), "wheel"));
    }
}
