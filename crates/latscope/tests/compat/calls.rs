//! Calls of personalities: refused calls, variables of the environment, and calls of the program itself.

use super::synthetic::job;
use super::{CASES, labelled};
use latscope_compat::getopt::CommandLineRefusal;
use latscope_compat::lmbench::page::LmbenchOutput;
use latscope_compat::lmbench::{PROGRAMS, answer, find_program};
use latscope_compat::{PersonalityContext, REFUSED, by_name};
use latscope_core::plan::ParamValue;
use latscope_core::report::Report;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Refusal of a call, and the answer of the program.
fn refused(words: &[&str]) -> (CommandLineRefusal, LmbenchOutput) {
    let program = find_program(words[0]).unwrap();
    let context =
        PersonalityContext { name: program.name, ..PersonalityContext::new(words[1..].iter().copied()) };
    let refusal = program.read_call(&context).unwrap_err();
    let answer = answer(&context, &refusal, &program.usage());
    (refusal, answer)
}

#[test]
fn wrong_arguments_give_lmbenchs_usage_and_exit_code() {
    for wrong in [
        &["lat_mem_rd"][..],
        &["lat_mem_rd", "0"],
        &["lat_mem_rd", "1", "7"],
        &["bw_mem", "1m"],
        &["bw_mem", "100", "rd"],
        &["bw_mem", "1m", "nonsense"],
        &["lat_ctx", "-s", "0"],
        &["lat_ctx", "1"],
        &["lat_syscall"],
        &["lat_proc", "fork", "exec"],
        &["lat_sig", "nonsense"],
        &["lat_select", "pipe"],
        &["bw_file_rd", "1m", "nonsense", "F"],
        &["stream", "-v", "3"],
        &["stream", "-M", "8"],
        &["mhz", "-P", "1"],
        &["lat_fs", "a", "b"],
        &["lat_pipe", "operand"],
    ] {
        let (refusal, answer) = refused(wrong);
        assert!(matches!(refusal, CommandLineRefusal::Usage(_)), "{wrong:?}");
        assert_eq!(answer.exit_code, 255, "{wrong:?}");
        assert!(answer.stderr.starts_with(&format!("Usage: {} ", wrong[0])) && answer.stdout.is_empty());
    }
}

#[test]
fn what_no_probe_covers_is_refused_in_one_line() {
    for words in [
        &["lat_syscall", "-P", "4", "null"][..],
        &["lat_mem_rd", "-P", "2", "1"],
        &["lat_ctx", "-P", "2", "2"],
        &["bw_pipe", "-P", "2"],
        &["lat_fifo", "-P", "2"],
        &["bw_tcp", "other.host"],
        &["bw_mem", "1m", "cp", "conflict"],
        &["bw_mmap_rd", "1m", "mmap_only", "F"],
        &["stream", "-v", "2"],
        &["tlb", "-L", "128"],
    ] {
        let (refusal, answer) = refused(words);
        assert!(matches!(refusal, CommandLineRefusal::Fatal(_)), "{words:?}");
        assert_eq!((answer.exit_code, answer.stderr.lines().count()), (1, 1), "{words:?}");
        assert!(answer.stderr.starts_with(&format!("latscope: {}: ", words[0])), "{words:?}");
    }
}

#[test]
fn parallelism_goes_to_the_probes_that_know_it() {
    for words in [&["bw_mem", "-P", "3", "1m", "rd"][..], &["stream", "-P", "3"]] {
        let job = job(words);
        assert!(
            job.queries.iter().all(|query| query.params["threads"] == ParamValue::Number(3)),
            "{words:?}"
        );
    }
}

#[test]
fn the_environment_places_the_endpoints() {
    let placed = |variable: fn(&str) -> Option<OsString>| {
        let context = PersonalityContext { variable, ..PersonalityContext::new([""; 0]) };
        let job = find_program("lat_pipe").unwrap().read_call(&context);
        job.map(|job| job.queries[0].params["placement"].clone())
    };
    assert_eq!(placed(|_| None), Ok("free".into()));
    assert_eq!(placed(|_| Some("DEFAULT".into())), Ok("free".into()));
    assert_eq!(placed(|_| Some("BALANCED".into())), Ok("same-core".into()));
    assert_eq!(placed(|_| Some("UNIQUE".into())), Ok("two-cores".into()));
    assert!(placed(|_| Some("CUSTOM 0 1".into())).is_err());
}

/// The files and placements that calls name must be those of the measured parameters.
#[test]
fn what_a_call_names_is_what_is_measured() {
    for (words, parameter, value) in [
        (&["lat_syscall", "open", "/tmp"][..], "path", "/tmp"),
        (&["lat_syscall", "stat", "/tmp/x"], "path", "/tmp/x"),
        (&["lat_syscall", "fstat", "F"], "path", "F"),
        (&["lat_pagefault", "F"], "path", "F"),
        (&["lat_mmap", "1m", "F"], "path", "F"),
        (&["lat_mmap", "-r", "1m", "F"], "path", "F"),
        (&["lat_select", "tcp"], "mode", "write-tcp"),
        (&["bw_mem", "8m", "frd"], "step", "integer"),
        (&["lat_ctx", "2"], "placement", "free"),
        (&["lat_unix"], "placement", "free"),
        (&["lat_sem"], "placement", "free"),
        (&["bw_pipe"], "placement", "free"),
        (&["lat_proc", "fork"], "placement", "free"),
        (&["lat_proc", "exec"], "placement", "free"),
        (&["lat_proc", "shell"], "mode", "fork-program"),
    ] {
        assert_eq!(job(words).queries[0].params.get(parameter), Some(&value.into()), "{words:?}");
    }
    let alone = PersonalityContext { variable: |_| Some("SINGLE".into()), ..PersonalityContext::new(["2"]) };
    let ring = find_program("lat_ctx").unwrap().read_call(&alone).unwrap();
    assert!(!ring.queries[0].params.contains_key("placement"));
}

#[test]
fn arguments_without_effect_are_noted() {
    let notes = |words: &[&str]| job(words).notes;
    assert_eq!(notes(&["bw_pipe", "-M", "10m"]).len(), 1);
    assert_eq!(notes(&["lat_fs", "-n", "50"]).len(), 1);
    assert_eq!(notes(&["lat_syscall", "stat", "/tmp/x"]), Vec::<String>::new());
    assert_eq!(notes(&["bw_tcp", "-S", "localhost"]).len(), 1);
    assert_eq!(notes(&["mhz", "-d"]).len(), 1);
    assert_eq!(notes(&["lat_syscall", "-P", "1", "null"]), Vec::<String>::new());
}

#[test]
fn a_program_is_known_by_its_own_name_and_path() {
    assert_eq!(by_name(OsStr::new("/usr/lib/lmbench/bin/lat_mem_rd")), Some("lat_mem_rd"));
    assert_eq!(by_name(OsStr::new("lat_ops")), Some("lat_ops"));
    assert!(by_name(OsStr::new("latscope")).is_none());
    assert!(by_name(OsStr::new("")).is_none());
}

#[test]
fn names_are_sorted_unique_and_documented() {
    let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    let refused: Vec<&str> = REFUSED.iter().map(|refused| refused.name).collect();
    assert!(refused.is_sorted_by(|a, b| a < b) && refused.iter().all(|name| !names.contains(name)));
    let page = include_str!("../../../../docs/lmbench.md");
    for name in names.iter().chain(&refused) {
        assert!(page.contains(&format!("`{name}`")), "docs/lmbench.md says nothing of {name}");
    }
}

fn executed(program: &Path, arguments: &[&str]) -> std::process::Output {
    std::process::Command::new(program).args(arguments).env_remove("LMBENCH_SCHED").output().unwrap()
}

#[test]
fn a_real_call_prints_a_positive_number_and_saves_it() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("result.json");
    let arguments = ["as", "lat_syscall", "-P", "1", "null", "--json", json.to_str().unwrap()];
    let output = executed(Path::new(env!("CARGO_BIN_EXE_latscope")), &arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]), "{stderr}");
    let (label, microseconds, unit) = &labelled(&stderr)[0];
    assert_eq!((label.as_str(), unit.as_str()), ("Simple syscall", "microseconds"));
    let report = Report::from_json(&std::fs::read(&json).unwrap()).unwrap();
    let median = report.of_probe("syscall.getppid").next().unwrap().summary.p50.unwrap();
    assert!(
        median > 0.0 && (median / 1e3 - microseconds).abs() < 1e-4,
        "{median} ns, printed {microseconds} µs"
    );
}

#[test]
fn a_link_with_the_old_name_is_the_old_program() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("lat_ctx");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_latscope"), &link).unwrap();
    let output = executed(&link, &[]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(
        stderr.starts_with("Usage: lat_ctx [-P <parallelism>]") && stderr.ends_with("...]\n"),
        "{stderr}"
    );
    assert_eq!(executed(&link, &["--strict-exit"]).status.code(), Some(1));
}

/// Calls of the programs that are not LMbench's.
const OTHERS: &[&[&str]] = &[
    &["cyclicdeadline", "-D", "60"],
    &["cyclictest", "-t2", "-l", "1000", "operand"],
    &["hackbench", "-g", "2"],
    &["oslat", "-D", "60"],
    &["pmqtest", "-t2", "-p", "80"],
    &["ptsematest"],
    &["signaltest", "-t3"],
    &["sigwaittest", "-S"],
    &["svsematest"],
    &["binderThroughputTest", "-t", "-p"],
    &["libbinder_benchmark"],
    &["libhwbinder_benchmark", "--benchmark_repetitions=2"],
    &["libhwbinder_latency", "-pair", "2"],
    &["schd-dbg"],
    &["mica_main", "--ping"],
    &["pty_test", "/dev/pts/no-such", "--bandwidth"],
    &["schbench", "-t", "2", "-r", "1"],
];

#[test]
fn a_dry_run_of_every_program_prints_its_plan_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("XXX");
    std::fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
    for name in latscope_compat::all_programs().map(|program| program.name()) {
        let cases = CASES.iter().map(|(_, words)| words).chain(OTHERS);
        let words = cases.into_iter().find(|words| words[0] == name).unwrap_or_else(|| panic!("{name}"));
        let named = |word: &&str| word.replace("/var/tmp/XXX", file.to_str().unwrap());
        let words: Vec<String> = words.iter().map(named).collect();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_latscope"));
        command
            .arg("as")
            .args(&words)
            .arg("--dry-run")
            .current_dir(&directory)
            .env("TMPDIR", directory.path());
        let output = command.env_remove("LMBENCH_SCHED").output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{words:?}");
        let head = stdout.lines().next().unwrap();
        assert!(head.starts_with(&format!("{name}: ")) && head.contains(", CPUs "), "{head}");
        let points = stdout.lines().filter(|line| line.starts_with("    ")).count();
        assert!(head.contains(&format!(", {points} point")) && points > 0, "{stdout}");
        let left: Vec<_> = directory.path().read_dir().unwrap().collect();
        assert_eq!(left.len(), 1, "{words:?}: {left:?}");
    }
}
