//! Comparison of latscope's output and that of the real programs with the golden files.

use crate::cases::{CASES, Case};
use crate::mask::masked;
use crate::skipped::{needs, root, skipped};
use crate::{Tracing, done, with_debugfs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Path of the golden file of a case.
fn path(case: &Case) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/rt/{}-{}.txt", case.1, case.0))
}

/// Text of the golden file of a case.
pub fn golden(case: &Case) -> String {
    std::fs::read_to_string(path(case)).unwrap_or_else(|error| panic!("{}: {error}", path(case).display()))
}

/// Number of runs of a real program before its output counts. On a busy machine it is late, and then an additional or
/// missing line does not concern its format.
const RUNS: usize = 4;

/// Output of the real program; `None` if release 2.4 is not installed.
fn real(case: &Case) -> Option<String> {
    let run = |words: &str| {
        let words: Vec<&str> = std::iter::once(case.1).chain(words.split_whitespace()).collect();
        with_debugfs(&words).output().unwrap()
    };
    let help = String::from_utf8(run("--help").stdout).ok()?;
    let printed = || {
        let ran = run(case.2);
        let text = String::from_utf8(ran.stdout).unwrap();
        // One that prints nothing has its reason in the place of its text.
        match text.is_empty() {
            true => format!("{} {}", ran.status, String::from_utf8_lossy(&ran.stderr)),
            false => text,
        }
    };
    let later = || {
        std::thread::sleep(Duration::from_secs(1));
        printed()
    };
    let as_recorded = |text: &String| !path(case).exists() || masked(text) == golden(case);
    let mut runs = std::iter::once(printed).map(|run| run()).chain((2..RUNS).map(|_| later()));
    help.contains(" V 2.40\n").then(|| runs.find(as_recorded).unwrap_or_else(later))
}

/// Compares all lines. The message has the case and the first line that differs.
#[track_caller]
fn same(case: &Case, text: &str, whose: &str) {
    let (text, golden) = (masked(text), golden(case));
    let first = text.lines().zip(golden.lines()).find(|(ours, theirs)| ours != theirs);
    assert!(
        text == golden,
        "{} {}: {whose} first differs in {first:#?}\n{text}\n--\n{golden}",
        case.1,
        case.2
    );
}

#[test]
fn the_golden_files_are_what_the_real_programs_print() {
    let name = "the_golden_files_are_what_the_real_programs_print";
    let can_mount = || with_debugfs(&["true"]).status().is_ok_and(|status| status.success());
    if !root(name) || !needs(name, can_mount(), "debugfs and tracefs cannot be mounted here") {
        return;
    }
    let _tracing = Tracing::kept();
    for case in CASES {
        let Some(text) = real(case) else {
            return skipped(name, "rt-tests 2.4 is not installed");
        };
        if std::env::var_os("LATSCOPE_RECORD").is_some() {
            std::fs::write(path(case), masked(&text)).unwrap();
        }
        same(case, &text, "the real program's text");
    }
}

#[test]
fn our_programs_print_the_same_lines() {
    if !root("our_programs_print_the_same_lines") {
        return;
    }
    let _tracing = Tracing::kept();
    for case in CASES {
        same(case, &done(case.1, case.2), "our text");
    }
}

#[test]
fn every_golden_file_belongs_to_a_case() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rt");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut wanted: Vec<PathBuf> = CASES.iter().map(path).collect();
    files.sort();
    wanted.sort();
    assert_eq!(files, wanted);
}
