//! Exit codes, refusals, and files that are written.

use crate::programs::copy_program;
use crate::{done, root, run, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

fn code(words: &str) -> Option<i32> {
    run("cyclictest", words).status.code()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn exit_codes_are_cyclictests_but_for_its_silent_zero() {
    let cases = [
        ("--help", 0),
        ("-q -l 5 --default-system", 0),
        ("-q -l 500 -b 1 --default-system", 0),
        ("-p 100", 1),
        ("-c 3", 1),
        ("-h 0", 1),
        ("-a 1 -S", 1),
        ("-q -l 5 --default-system --json=/nonexistent/file", 2),
        // Here cyclictest exits with 0, or hangs.
        ("--nope", 1),
        ("-Z", 1),
        ("-smp", 1),
        ("-c 2", 1),
        ("-i 0", 1),
        ("-D 1x", 1),
        ("-i 1 -l 5 -q", 1),
    ];
    for (words, expected) in cases {
        assert_eq!(code(words), Some(expected), "{words}");
    }
}

#[test]
fn strict_exit_codes_say_whether_the_limit_held() {
    assert_eq!(code("-q -l 500 -b 1 --default-system --strict-exit"), Some(2));
    assert_eq!(code("-q -l 5 -b 900000 --default-system --strict-exit"), Some(0));
    let oslat = run("oslat", "-D 1 -q -c 0 -T 1 -b 8");
    assert_eq!(oslat.status.code(), Some(1), "{oslat:?}");
    assert!(
        text(&oslat.stderr).contains("oslat: Trace threshold (1 us) triggered on cpu 0 with "),
        "{oslat:?}"
    );
    assert_eq!(run("oslat", "-D 1 -q -c 0 -T 1 --strict-exit").status.code(), Some(2));
}

#[test]
fn an_unknown_option_is_answered_with_the_usage() {
    for name in latscope_compat::rt::PROGRAMS.iter().map(|program| program.name()) {
        let output = run(name, "-Z");
        assert_eq!(text(&output.stderr), format!("{name}: invalid option -- 'Z'\n"));
        assert!(text(&output.stdout).starts_with(&format!("{name} V 2.40\nUsage:\n{name} <options>\n\n")));
    }
}

#[test]
fn a_retired_option_is_noted_and_changes_nothing_else() {
    let output = run("cyclictest", "-n -q -l 5 --default-system -y other");
    let notes: Vec<&str> = text(&output.stderr).lines().collect();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        notes.len() == 2 && notes.iter().all(|note| note.starts_with("latscope: cyclictest: note: -")),
        "{notes:?}"
    );
    assert!(text(&output.stdout).starts_with("T: 0 ("), "{output:?}");
}

#[test]
fn the_subcommand_is_the_same_program() {
    let output = Command::new(env!("CARGO_BIN_EXE_latscope"))
        .args(["as", "cyclictest", "-q", "-l", "5", "--default-system"])
        .output()
        .unwrap();
    assert!(text(&output.stdout).starts_with("T: 0 (") && output.status.success(), "{output:?}");
}

#[test]
fn files_hold_what_stdout_would() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (histogram, json, result) = (path("histogram"), path("json"), path("result"));
    let words = format!(
        "-q -l 20 -h 30 --default-system --histfile={histogram} --json={json} --result={result} -b 900000"
    );
    let out = done("cyclictest", &words);
    assert!(out.starts_with("# Thread Ids: ") && out.lines().count() == 1, "{out}");
    let histogram = fs::read_to_string(histogram).unwrap();
    assert!(histogram.starts_with("# Histogram\n") && histogram.contains("# Max Latencies: "), "{histogram}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&fs::read(result).unwrap()).unwrap();
    let max = result["measurements"][0]["summary"]["max"].as_f64().unwrap();
    assert_eq!(json["thread"]["0"]["max"].as_u64(), Some((max / 1000.0) as u64));
    assert!(result["measurements"][0]["corrected"].is_object());
}

/// Runs a copy of the program that every user may execute, as the user nobody.
fn as_nobody(words: &str) -> Output {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("cyclictest");
    copy_program(env!("CARGO_BIN_EXE_latscope"), &program);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]).arg(program);
    command.args(words.split_whitespace()).current_dir("/").output().unwrap()
}

#[test]
fn without_the_right_to_a_priority_it_ends_and_without_a_priority_it_runs() {
    let name = "without_the_right_to_a_priority_it_ends_and_without_a_priority_it_runs";
    if !root(name) {
        return;
    }
    let normal = as_nobody("-q -l 5");
    if normal.status.code().is_none() {
        return skipped(name, "setpriv cannot start a program here");
    }
    assert_eq!(normal.status.code(), Some(0), "{normal:?}");
    assert!(text(&normal.stderr).contains("/dev/cpu_dma_latency"), "{normal:?}");
    let real_time = as_nobody("-q -l 5 -p 80");
    assert_eq!(real_time.status.code(), Some(1), "{real_time:?}");
    assert!(text(&real_time.stderr).starts_with("Unable to change scheduling policy!"), "{real_time:?}");
}

#[test]
fn every_option_is_documented() {
    use latscope_compat::rt::PROGRAMS;
    let page = include_str!("../../../../docs/cyclictest.md");
    let ipc = include_str!("../../../../docs/rt-ipc.md");
    assert!(PROGRAMS.is_sorted_by(|a, b| a.name() < b.name()));
    for program in PROGRAMS {
        let name = program.name();
        let [page, text] = match name {
            "cyclicdeadline" | "cyclictest" | "oslat" => ["docs/cyclictest.md", page],
            _ => ["docs/rt-ipc.md", ipc],
        };
        assert!(text.contains(name) && !program.summary().is_empty(), "{page} says nothing of {name}");
        for spec in program.specs() {
            let option = if spec.long.is_empty() { spec.name() } else { format!("--{}", spec.long) };
            assert!(text.contains(&option), "{page} says nothing of {option}");
        }
    }
}
