//! Pipelines: the shell steps of the action, and those of the pages on CI, are run here with short measurements.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// In place of a quick survey, which takes longer.
const SHORT: &str = "survey --quick --count 3 --only cpu.cycle,syscall.getppid";

/// A limit that every machine holds, and one that none does.
const LOOSE: &str = "[[limit]]\nprobe = \"syscall.getppid\"\np50 = \"1s\"\n";
const TIGHT: &str = "[[limit]]\nprobe = \"syscall.getppid\"\np50 = \"0.001ns\"\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Directory of a job: the binary is on its path, and the files that a service provides are there.
struct Job(TempDir);

impl Job {
    fn new(budget: &str) -> Job {
        let job = Job(tempfile::tempdir().expect("a temporary directory"));
        fs::create_dir(job.at("runs")).unwrap();
        fs::create_dir(job.at("baseline")).unwrap();
        fs::create_dir(job.at("temp")).unwrap();
        fs::write(job.at("budget.toml"), budget).unwrap();
        job
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// Runs a step with these variables.
    fn step(&self, shell: &[&str], script: &str, variables: &[(&str, &str)]) -> Output {
        let binary = Path::new(env!("CARGO_BIN_EXE_latscope")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script).current_dir(self.0.path());
        command.env("PATH", format!("{}:{path}", binary.display())).env("XDG_CACHE_HOME", self.at("temp"));
        command.env("LATSCOPE_LOCK_DIR", self.at("temp"));
        command.env("RUNNER_TEMP", self.at("temp")).env("GITHUB_PATH", self.at("path"));
        command.env("GITHUB_OUTPUT", self.at("output")).env("GITHUB_STEP_SUMMARY", self.at("summary"));
        command.env("GITHUB_ACTION_PATH", root()).envs(variables.iter().copied());
        command.output().expect("the shell can be started")
    }
}

/// As GitHub calls them.
const BASH: [&str; 5] = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];

/// Shell steps of a file of YAML: `run: LINE`, or `run: |` and the lines that are indented further.
fn runs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let key = line.trim_start().trim_start_matches("- ");
        match block {
            Some(of) if line.trim().is_empty() || indent(line) > of + 1 => {
                let last = found.last_mut().expect("a block has a beginning");
                *last += &format!("{}\n", line.trim_start_matches(' '));
                continue;
            }
            _ => block = None,
        }
        match key.strip_prefix("run: ") {
            Some("|") => {
                block = Some(line.len() - key.len());
                found.push(String::new());
            }
            Some(step) => found.push(step.to_owned()),
            None => {}
        }
    }
    found
}

/// Fenced blocks of the section of a page with this heading.
fn blocks(page: &str, heading: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let section = text.split(&format!("\n## {heading}\n")).nth(1).expect("the page has the section");
    let section = section.split("\n## ").next().unwrap();
    section.split("```").skip(1).step_by(2).map(str::to_owned).collect()
}

/// The steps as written, with a short measurement.
fn short(step: &str) -> String {
    assert!(step.contains("latscope") || step.contains("gate.md"), "{step}");
    step.replace("survey --quick", SHORT)
}

#[track_caller]
fn passes(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// Runs a pipeline of a step that measures and one that judges.
fn pipeline(shell: &[&str], steps: &[String]) {
    let job = Job::new(LOOSE);
    let page = fs::read_to_string(root().join("docs/ci.md")).unwrap();
    passes(&job.step(&["sh", "-ec"], &short(page.split("```").nth(1).unwrap().trim()), &[]));
    passes(&job.step(shell, &short(&steps[0]), &[]));
    assert!(job.text("page.html").ends_with("</html>\n"));
    assert_eq!(fs::read_dir(job.at("runs")).unwrap().count(), 5);
    // Of a figure on a busy machine any verdict is possible, and none is an error.
    let judged = job.step(shell, &steps[1], &[]);
    assert!([Some(0), Some(2), Some(3)].contains(&judged.status.code()), "{judged:?}");
    fs::remove_file(job.at("baseline/5.json")).unwrap();
    let few = job.step(shell, &steps[1], &[]);
    let said = String::from_utf8_lossy(&few.stdout).replace('\n', " ");
    assert!(few.status.code() == Some(3) && said.contains("1 run of the baseline"), "{few:?}");
}

#[test]
fn the_steps_for_github_run() {
    let blocks = blocks("ci.md", "GitHub");
    let steps = runs(&blocks[1]);
    assert_eq!(steps.len(), 3, "{steps:#?}");
    pipeline(&[&BASH[..], &["-c"]].concat(), &steps);
    let job = Job::new(LOOSE);
    fs::write(job.at("gate.md"), "| judged |").unwrap();
    passes(&job.step(&["bash", "-ec"], &steps[2], &[]));
    assert_eq!(job.text("summary"), "| judged |");
}

#[test]
fn the_steps_for_gitlab_run() {
    let block = &blocks("ci.md", "GitLab")[0];
    let lines = block.lines().filter_map(|line| line.strip_prefix("    - "));
    pipeline(&["sh", "-ec"], &lines.map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn the_steps_for_jenkins_run() {
    let block = &blocks("ci.md", "Jenkins")[0];
    let quoted = |line: &str| Some(line.split_once("'latscope")?.1.split_once('\'')?.0.to_owned());
    let measure =
        block.lines().find_map(|line| Some(line.split_once("sh 'for")?.1.split_once('\'')?.0.to_owned()));
    let judge = block.lines().find_map(quoted).map(|rest| format!("latscope{rest}"));
    pipeline(&["sh", "-ec"], &[format!("for{}", measure.unwrap()), judge.unwrap()]);
}

#[test]
fn the_action_measures_judges_and_leaves_what_is_kept() {
    let steps = runs(&fs::read_to_string(root().join("action.yml")).unwrap());
    let [install, measure, judge] = &steps[..] else { panic!("{steps:#?}") };
    let shell = [&BASH[..], &["-c"]].concat();
    let job = Job::new(LOOSE);
    let binary = env!("CARGO_BIN_EXE_latscope");
    for given in [binary, ""] {
        let installed = job.step(&shell, install, &[("BINARY", given)]);
        passes(&installed);
        assert!(String::from_utf8_lossy(&installed.stdout).starts_with("latscope "), "{installed:?}");
    }
    assert!(job.text("path").lines().all(|line| Path::new(line).join("latscope").exists()));

    let results = ("DIRECTORY", "kept results");
    let listed = SHORT.replace(' ', "\n");
    passes(&job.step(&shell, measure, &[("COMMAND", &listed), ("RUNS", "2"), ("WAIT", "3m"), results]));
    assert!(job.text("kept results/page.html").ends_with("</html>\n"));
    assert!(job.text("kept results/runs/2.json").contains("\"machine-1\""));

    let verdict = |budget: &str, inconclusive: &str| {
        fs::write(job.at("output"), "").unwrap();
        let judged = job.step(&shell, judge, &[("BUDGET", budget), ("INCONCLUSIVE", inconclusive), results]);
        (judged.status.code(), job.text("output").trim().to_owned())
    };
    assert_eq!(verdict("", "warn"), (Some(0), "verdict=none".to_owned()));
    let (code, said) = verdict("budget.toml", "warn");
    assert!(code == Some(0) && ["verdict=pass", "verdict=inconclusive"].contains(&said.as_str()), "{said}");
    assert!(job.text("summary").contains("getppid"), "{}", job.text("summary"));
    assert!(job.text("kept results/gate.xml").contains("<testsuite"));
    fs::write(job.at("budget.toml"), TIGHT).unwrap();
    let (code, said) = verdict("budget.toml", "fail");
    let expected = [(Some(2), "verdict=exceeded"), (Some(3), "verdict=inconclusive")];
    assert!(expected.contains(&(code, said.as_str())), "{code:?} {said}");
    assert_eq!(verdict("missing.toml", "warn"), (Some(1), String::new()));

    // The first results are the baseline; compared with it, two runs are too few.
    let against = || {
        fs::write(job.at("output"), "").unwrap();
        let judged = job.step(&shell, judge, &[("BASELINE", "cached"), ("INCONCLUSIVE", "warn"), results]);
        (judged.status.code(), job.text("output").trim().to_owned())
    };
    assert_eq!(against(), (Some(0), "verdict=none".to_owned()));
    assert_eq!(fs::read_dir(job.at("cached")).unwrap().count(), 2);
    fs::remove_dir_all(job.at("kept results/runs")).unwrap();
    let plan = "title = 'a plan'\n[[measurement]]\nname = 'calls'\nrun = 'survey --quick --count 3 --only cpu.cycle'\n";
    fs::write(job.at("plan.toml"), plan).unwrap();
    passes(&job.step(
        &shell,
        measure,
        &[("COMMAND", "run plan.toml"), ("RUNS", "2"), ("WAIT", "3m"), results],
    ));
    assert_eq!(against(), (Some(0), "verdict=inconclusive".to_owned()));
    assert!(
        job.text("kept results/gate.md").contains("3 runs of the baseline"),
        "{}",
        job.text("kept results/gate.md")
    );
}

#[test]
fn every_step_of_a_file_is_found() {
    let text =
        "steps:\n  - name: a\n    run: |\n      if x; then\n        y\n      fi\n  - run: z w\n  - uses: v\n";
    assert_eq!(runs(text), ["if x; then\ny\nfi\n", "z w"]);
}
