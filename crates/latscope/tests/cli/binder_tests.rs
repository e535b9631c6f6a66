//! Personalities of AOSP's tests of binder, over a transport that every Linux has.

use crate::process::{Mark, send};
use crate::support::{
    BINARY, NOBODY, Place, Ran, end, eventually, latscope, program, public_binary, root, run, skipped, start,
    wait, with_mounts,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Child;

const NAMES: [&str; 5] = [
    "binderThroughputTest",
    "libbinder_benchmark",
    "libhwbinder_benchmark",
    "libhwbinder_latency",
    "schd-dbg",
];

/// Runs a personality, over Unix sockets unless the words name another transport.
fn called(line: &str) -> Ran {
    let own = line.contains("--transport") || line.contains("PASSTHROUGH");
    let usual = if own { None } else { Some("--transport=unix-stream") };
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = ["as", name].into_iter().chain(usual).chain(rest.split_whitespace()).collect();
    let ran = run(&words);
    ran.no_panic();
    ran
}

#[track_caller]
fn page(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("no JSON: {error}: {ran:#?}"))
}

#[test]
fn a_page_of_latency_has_every_pair_and_their_sum() {
    let ran = called("libhwbinder_latency -i 20 -pair 2 -deadline_us 1 -raw_data");
    let page = page(&ran);
    assert_eq!(page["cfg"].to_string(), r#"{"deadline_us":1,"iterations":20,"pair":2,"passthrough":0}"#);
    for (name, calls) in [("P0", 20), ("P1", 20), ("ALL", 40)] {
        let pair = &page[name];
        assert_eq!(pair["I"], 2 * calls, "{pair:#}");
        for caller in ["other_ms", "fifo_ms"] {
            assert_eq!(
                (&pair[caller]["miss"], &pair[caller]["meetR"]),
                (&calls.into(), &0.into()),
                "{pair:#}"
            );
            let [best, mean, worst] = ["bst", "avg", "wst"].map(|key| pair[caller][key].as_f64().unwrap());
            assert!(best <= mean && mean <= worst, "{pair:#}");
        }
        let [p50, p99] = ["p50", "p99"].map(|key| pair["fifodis"][key].as_f64().unwrap());
        assert!(p50 <= p99 && p99 <= pair["fifo_ms"]["wst"].as_f64().unwrap() + 1e-6, "{pair:#}");
    }
    for pair in ["fifo_0_data", "fifo_1_data"] {
        assert_eq!(page[pair].as_array().unwrap().len(), 20);
    }
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_verdict_of_failure_is_seen_whatever_its_number() {
    if !root("a_verdict_of_failure_is_seen_whatever_its_number") {
        return;
    }
    // An exit code has eight bits: as many failures would be none.
    let ran = called("schd-dbg -i 256");
    assert_eq!((ran.code, &page(&ran)["inheritance"]), (Some(1), &"FAIL".into()), "{ran:?}");
    assert!(ran.err.contains("in 256 of 512 calls the server had another real-time priority"), "{ran:?}");
    let ran = called("libhwbinder_latency -i 5 -m PASSTHROUGH");
    assert_eq!((ran.code, &page(&ran)["inheritance"]), (Some(0), &"PASS".into()), "{ran:?}");
    assert_eq!(page(&ran)["cfg"]["passthrough"], 1);
}

#[test]
fn without_a_real_time_thread_there_is_no_verdict() {
    if !root("without_a_real_time_thread_there_is_no_verdict") {
        return;
    }
    let (_copy, binary) = public_binary();
    let words = [binary.to_str().unwrap(), "as", "libhwbinder_latency", "-i", "5", "-m", "PASSTHROUGH"];
    let ran = end(program(words).uid(NOBODY).gid(NOBODY).current_dir("/"));
    assert_eq!((ran.code, &page(&ran)["inheritance"]), (Some(1), &"SKIPPED".into()), "{ran:?}");
    assert!(ran.err.contains("degraded: ran as SCHED_OTHER, not SCHED_FIFO 99"), "{ran:?}");
}

#[test]
fn verbose_lines_do_not_break_the_page() {
    let ran = called("schd-dbg -i 2 -v --compat=8.0");
    assert_eq!(page(&ran)["P0"]["I"], 4);
    assert_eq!(ran.err.matches("\nfifo-caller  pid: ").count(), 2, "{ran:?}");
    assert_eq!(ran.err.matches("\nbinder       pid: ").count(), 4, "{ran:?}");
    let roles =
        ["\nmain         pid: ", "\nserver       pid: ", "\nclient       pid: ", "\nother-caller pid: "];
    assert!(roles.iter().all(|role| ran.err.contains(role)), "{ran:?}");
}

/// Starts a run that takes long, and waits until it has made calls.
fn begun() -> (Child, Mark) {
    let words = "as libhwbinder_latency -i 1000000 -deadline_us 1 --transport unix-stream";
    let mut command = latscope(words.split_whitespace());
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let server = mark.wait_for("__ipc server").pid;
    mark.wait_for("__ipc client");
    // It serves when it has used some time.
    eventually("calls are made", || {
        let schedule = fs::read_to_string(format!("/proc/{server}/schedstat")).ok()?;
        (schedule.split_whitespace().next()?.parse::<u64>().ok()? > 50_000_000).then_some(())
    });
    (child, mark)
}

#[test]
fn a_server_that_is_killed_spoils_no_page_and_no_exit_code() {
    let (child, mark) = begun();
    send(Signal::KILL, mark.wait_for("__ipc server").pid);
    let ran = wait(child);
    ran.no_panic();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("signal: 9") && ran.err.contains("before all iterations were done"), "{ran:?}");
    assert!(page(&ran)["P0"]["I"].as_u64().unwrap() < 2_000_000);
    mark.wait_for_none();
}

#[test]
fn an_interrupted_run_passes_no_verdict_on_what_it_does_not_know() {
    let (child, mark) = begun();
    send(Signal::INT, child.id() as i32);
    let ran = wait(child);
    ran.no_panic();
    let page = page(&ran);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_ne!(page["inheritance"], "PASS", "{ran:?}");
    // No call over a socket is done within a microsecond.
    assert_eq!(page["P0"]["other_ms"]["meetR"], 0, "{ran:?}");
    mark.wait_for_none();
}

#[test]
fn benchmarks_are_listed_filtered_and_repeated() {
    let names = called("libbinder_benchmark --benchmark_list_tests --compat=8.0").done();
    assert_eq!((names.lines().count(), names.lines().last()), (15, Some("BM_sendVec_binder/64k")));
    let place = Place::new();
    let file = place.at("out.csv");
    let ran = called(&format!(
        "libhwbinder_benchmark --benchmark_filter=/(4|65536)$ --benchmark_min_time=10x --benchmark_repetitions=2 \
         --benchmark_report_aggregates_only --benchmark_format=json --benchmark_out={file} --benchmark_out_format=csv"
    ));
    let page = page(&ran);
    let rows: Vec<String> = page["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect();
    let statistics = |size: &str| {
        ["mean", "median", "stddev", "cv"].map(|name| format!("BM_sendVec_binderize/{size}_{name}"))
    };
    assert_eq!(rows, [statistics("4"), statistics("65536")].concat());
    assert_eq!(page["context"]["executable"], "libhwbinder_benchmark");
    let csv = fs::read_to_string(&file).unwrap();
    assert!(csv.lines().nth(1).unwrap().starts_with("\"BM_sendVec_binderize/4_mean\",2,"), "{csv}");
    assert_eq!((ran.code, csv.lines().count()), (Some(0), 9));
    assert!(ran.err.contains("measured over unix-stream"), "{ran:?}");
}

#[test]
fn a_size_that_is_not_carried_is_an_error_of_its_own_row() {
    let ran =
        called("libbinder_benchmark --transport=signal --benchmark_min_time=2x --benchmark_format=json");
    let all = called("libbinder_benchmark --benchmark_min_time=2x --benchmark_format=json");
    assert_eq!((page(&ran)["benchmarks"].as_array().unwrap().len(), all.code), (15, Some(0)));
    let failed =
        |page: &Value| page["benchmarks"].as_array().unwrap().iter().any(|row| row["error_occurred"] == true);
    assert_eq!(ran.code == Some(1), failed(&page(&ran)), "{ran:?}");
    assert!(!failed(&page(&all)));
}

#[test]
fn the_table_is_on_stdout_and_the_machine_on_stderr() {
    let ran = called("libhwbinder_benchmark -m PASSTHROUGH --benchmark_min_time=2x --compat=8.0");
    // On a busy machine notes on the rows come first.
    let about_the_machine = ran.err.lines().find(|line| !line.starts_with("latscope: "));
    assert!(about_the_machine.is_some_and(|line| line.starts_with("Run on (")), "{ran:?}");
    assert!(ran.out.starts_with("Benchmark  "), "{ran:?}");
    assert_eq!((ran.out.lines().count(), ran.code), (17, Some(0)), "{ran:?}");
    assert!(ran.out.contains("\nBM_sendVec_passthrough/64k "), "{ran:?}");
}

#[test]
fn throughput_is_that_of_the_workers_that_call() {
    for line in ["binderThroughputTest -w 2 -i 50 -p -t", "binderThroughputTest -i 50 -s 1024 -m 1"] {
        let ran = called(line);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let rate = ran.out.lines().find_map(|line| line.strip_prefix("iterations per sec: "));
        assert!(rate.unwrap().parse::<f64>().unwrap() > 0.0, "{ran:?}");
        assert!(ran.out.contains("\naverage:") && ran.out.contains("ms best:"), "{ran:?}");
        assert_eq!(ran.out.contains("Completed training round\n\n"), line.ends_with("-t"));
        assert!(!line.ends_with("-m 1") || ran.out.contains("% of transactions took longer"), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    for (line, said) in [
        ("schd-dbg -i 0", "schd-dbg: -i takes a number from 1 to"),
        ("schd-dbg -pair", "-pair needs a value"),
        ("schd-dbg -m PASSTHROUGH --transport pipe", "there is no option \"-m\""),
        ("libhwbinder_latency --transport carrier-pigeon", "--transport carrier-pigeon is not known"),
        ("libhwbinder_latency --compat=9", "--compat 9 is not known"),
        ("libbinder_benchmark --benchmark_filter=[", "is no regular expression"),
        ("libbinder_benchmark --benchmark_filter=nothing", "no benchmark's name"),
        ("libbinder_benchmark --benchmark_out=/nonexistent/x", "/nonexistent/x"),
        ("binderThroughputTest -w 3 -p", "-w 3 cannot be split into pairs"),
        ("binderThroughputTest -s 67108865", "-s takes a number"),
    ] {
        let refused = called(line).refused();
        assert!(refused.contains(said), "{line}: {refused}");
    }
}

#[test]
fn a_trace_that_is_not_recorded_cannot_be_stopped() {
    if !root("a_trace_that_is_not_recorded_cannot_be_stopped") {
        return;
    }
    let ran = end(&mut with_mounts("mount -t tmpfs none /sys; exec \"$@\"", &["as", "schd-dbg", "-trace"]));
    assert!(ran.refused().contains("no trace is running"), "{ran:?}");
}

#[test]
fn without_binder_a_line_says_why_and_what_else_there_is() {
    if fs::read_dir("/dev")
        .unwrap()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().ends_with("binder"))
    {
        return skipped("without_binder_a_line_says_why_and_what_else_there_is", "this machine has binder");
    }
    for name in NAMES {
        let refused = run(&["as", name]).refused();
        assert!(refused.contains("binder") && refused.contains("--transport unix-stream"), "{refused}");
    }
}

#[test]
fn they_are_known_by_their_names() {
    assert!(run(&["as", "schd"]).refused().contains("did you mean schd-dbg?"));
    let listed = run(&["as"]).done();
    for name in NAMES {
        assert!(listed.contains(name), "{listed}");
        let place = Place::new();
        let tool = place.at(name);
        symlink(BINARY, &tool).unwrap();
        let usage = end(&mut program([&tool, "--help"])).done();
        assert!(usage.starts_with(&format!("Usage: {name} [OPTIONS]\n")), "{usage}");
        assert!(usage.contains("--transport=NAME"), "{usage}");
    }
}
