//! The personalities against golden files, and against the parsers that
//! scripts use on LMbench's output.
//!
//! The reports are synthetic: every figure follows from the query by a rule
//! below. `LATSCOPE_RECORD=write cargo test -p latscope --test compat` writes
//! the golden files anew.
#![forbid(unsafe_code)]

use latscope_compat::{
    Call, CallError, Job, Output, PERSONALITIES, Page, PointQuery, REFUSED, by_name, find,
};
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{Conditions, ParamValue, Point, Policy, Step};
use latscope_core::report::{
    Better, Measurement, Report, SCHEMA, Sampling, Semantics, Summary, Support, Tool, Value, Work,
};
use latscope_engine::planner::{self, Request};
use latscope_probes::{PlanInput, Profile};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// Every form of every program that scripts are known to use.
const CASES: &[(&str, &[&str])] = &[
    ("bw_file_rd-io_only", &["bw_file_rd", "-P", "1", "512k", "io_only", "/var/tmp/XXX"]),
    ("bw_file_rd-open2close", &["bw_file_rd", "8m", "open2close", "/var/tmp/XXX"]),
    ("bw_mem-bcopy", &["bw_mem", "2m", "bcopy"]),
    ("bw_mem-cp-two", &["bw_mem", "-P", "2", "2m", "cp"]),
    ("bw_mem-frd", &["bw_mem", "8m", "frd"]),
    ("bw_mem-rd", &["bw_mem", "-N", "11", "512", "rd"]),
    ("bw_mmap_rd", &["bw_mmap_rd", "-P", "1", "512k", "open2close", "/var/tmp/XXX"]),
    ("bw_pipe", &["bw_pipe", "-P", "1"]),
    ("bw_tcp", &["bw_tcp", "-m", "64", "localhost"]),
    ("bw_tcp-total", &["bw_tcp", "-M", "1024m", "localhost"]),
    ("bw_unix", &["bw_unix"]),
    ("lat_ctx", &["lat_ctx", "-P", "1", "-s", "32", "2", "4", "8", "16"]),
    ("lat_fifo", &["lat_fifo", "-P", "1"]),
    ("lat_fs", &["lat_fs", "/var/tmp"]),
    ("lat_fs-1m", &["lat_fs", "-s", "1m"]),
    ("lat_mem_rd-random", &["lat_mem_rd", "-P", "1", "-t", "1", "128"]),
    ("lat_mem_rd-strides", &["lat_mem_rd", "1", "64", "1k"]),
    ("lat_mmap", &["lat_mmap", "-P", "1", "512k", "/var/tmp/XXX"]),
    ("lat_mmap-1g", &["lat_mmap", "1g", "/var/tmp/XXX"]),
    ("lat_ops", &["lat_ops"]),
    ("lat_pagefault", &["lat_pagefault", "-P", "1", "/var/tmp/XXX"]),
    ("lat_pipe", &["lat_pipe", "-P", "1"]),
    ("lat_proc-exec", &["lat_proc", "-P", "1", "exec"]),
    ("lat_proc-fork", &["lat_proc", "-P", "1", "fork"]),
    ("lat_proc-procedure", &["lat_proc", "procedure"]),
    ("lat_proc-shell", &["lat_proc", "-P", "1", "shell"]),
    ("lat_select", &["lat_select", "-n", "100", "-P", "1", "file"]),
    ("lat_sem", &["lat_sem"]),
    ("lat_sig-catch", &["lat_sig", "-P", "1", "catch"]),
    ("lat_sig-install", &["lat_sig", "-P", "1", "install"]),
    ("lat_sig-prot", &["lat_sig", "-P", "1", "prot", "lat_sig"]),
    ("lat_syscall-fstat", &["lat_syscall", "-P", "1", "fstat"]),
    ("lat_syscall-null", &["lat_syscall", "-P", "1", "null"]),
    ("lat_syscall-open", &["lat_syscall", "-P", "1", "open", "/var/tmp/lmbench"]),
    ("lat_syscall-read", &["lat_syscall", "-P", "1", "read"]),
    ("lat_syscall-stat", &["lat_syscall", "-P", "1", "stat"]),
    ("lat_syscall-write", &["lat_syscall", "-P", "1", "write"]),
    ("lat_tcp", &["lat_tcp", "-m", "1", "localhost"]),
    ("lat_tcp-start", &["lat_tcp", "-s"]),
    ("lat_udp", &["lat_udp", "-P", "1", "-m", "64", "127.0.0.1"]),
    ("lat_udp-stop", &["lat_udp", "-S", "localhost"]),
    ("lat_unix", &["lat_unix", "-P", "1"]),
    ("mhz", &["mhz"]),
    ("mhz-c", &["mhz", "-c"]),
    ("par_mem", &["par_mem", "-M", "64k"]),
    ("par_ops", &["par_ops", "-N", "11"]),
    ("stream", &["stream", "-v", "1", "-M", "200M"]),
    ("stream-two", &["stream", "-P", "2"]),
    ("tlb", &["tlb", "-M", "4m"]),
    ("tlb-c", &["tlb", "-c", "-M", "4m"]),
];

fn number(query: &PointQuery, name: &str) -> Option<f64> {
    match query.params.get(name) {
        Some(ParamValue::Number(number)) => Some(*number as f64),
        _ => None,
    }
}

/// A machine of the imagination: 1 ns up to 48 KiB, 4 ns up to 2 MiB, 100 ns
/// beyond; 80 pages in its TLB; two loads under way for each chain up to 8.
fn ns(query: &PointQuery) -> f64 {
    let size = number(query, "size").unwrap_or(0.0);
    let is = |name: &str, value: &str| query.params.get(name) == Some(&ParamValue::from(value));
    match query.probe {
        "memory.latency" if size <= 48.0 * 1024.0 => 1.0,
        "memory.latency" => 4.125,
        "memory.tlb" if size <= 80.0 * 4096.0 => 1.0,
        "memory.tlb" => 8.25,
        "memory.parallelism" => 100.0 / number(query, "chains").unwrap_or(1.0).min(8.0),
        // A tenth of a nanosecond for each byte of a buffer; a copy has two.
        "memory.bandwidth" if is("operation", "copy") => size / 20.0,
        "memory.bandwidth" | "file.read" | "file.read-mmap" => size / 10.0,
        "memory.stream" => 1000.0,
        "cpu.cycle" => 0.3846,
        "cpu.div" if is("mode", "latency") => 6.25,
        _ if query.probe.starts_with("cpu.") && is("mode", "throughput") => 0.125,
        _ if query.probe.starts_with("cpu.") => 0.3125,
        "file.write" => size,
        _ if query.probe.starts_with("file.") => 10_000.0,
        "sync.ring" => 3_370.0,
        "process.fork" => 178_218.8,
        "syscall.mmap" | "syscall.munmap" => 1_000.0,
        "syscall.page-fault" => 250.0,
        _ => 2_135.0,
    }
}

fn work(query: &PointQuery) -> Option<Work> {
    let size = number(query, "size")?;
    let is = |name: &str, value: &str| query.params.get(name) == Some(&ParamValue::from(value));
    let threads = number(query, "threads").unwrap_or(1.0);
    let touched = match query.probe {
        "memory.bandwidth" => {
            // As the probe: of a copy half of the memory is read, the other half written.
            let buffers = if is("operation", "copy") { 2.0 } else { 1.0 };
            let share = if is("step", "fourth") { 0.25 } else { 1.0 };
            size / buffers * threads * share
        }
        "memory.stream" => {
            threads * if is("operation", "copy") || is("operation", "scale") { 16e3 } else { 24e3 }
        }
        _ if query.probe.ends_with("-bandwidth") => 8e3,
        _ => return None,
    };
    Some(Work { ops: 1, bytes_touched: touched as u64, bytes_moved: touched as u64 })
}

fn measured(query: &PointQuery) -> Measurement {
    let value = |name: &str, ns: f64| {
        BTreeMap::from([(name.to_owned(), Value { value: ns, unit: "ns".to_owned(), better: Better::Less })])
    };
    Measurement {
        probe: query.probe.to_owned(),
        revision: 1,
        params: query.params.clone(),
        title: String::new(),
        row: false,
        sampling: Sampling::Batch { ops: 1000 },
        times: if ["sync.", "ipc."].iter().any(|family| query.probe.starts_with(family)) {
            Semantics::RoundTrip
        } else {
            Semantics::Operation
        },
        support: Support::Ok,
        reason: None,
        remedy: None,
        incomplete: false,
        summary: Summary { count: 469, p50: Some(ns(query)), ..Summary::default() },
        values: match query.probe {
            "sync.ring" => value("self", 670.0),
            "syscall.signal-deliver" => value("nothing-sent", 491.0),
            _ => BTreeMap::new(),
        },
        work: work(query),
        histogram: Histogram::new(1),
        blocks: Vec::new(),
        outliers: Vec::new(),
        corrected: None,
        recordings: None,
        verdict: None,
        quality: Default::default(),
        interval: None,
        rounds: Vec::new(),
        contention: None,
        hops: Vec::new(),
    }
}

/// What a job prints if each of its queries is a planned point, and these have been measured.
fn printed(mut job: Job, measurements: Vec<Measurement>) -> Page {
    job.planned = (0..job.queries.len()).map(|point| Some((0, point))).collect();
    let point = |query: &PointQuery| Point {
        probe: query.probe.to_owned(),
        revision: 1,
        params: query.params.clone(),
        title: String::new(),
        row: false,
    };
    let step = Step {
        name: String::new(),
        points: job.queries.iter().map(point).collect(),
        cpus: Vec::new(),
        policy: Policy::Other,
        stop: Profile::Normal.stop(),
        conditions: Conditions::default(),
        periodic: None,
        seed: 1,
        rounds: 1,
    };
    let request = Request::new("", PlanInput::default());
    let plan = planner::of_steps(vec![step], &request, &Machine::default());
    job.print(&Report {
        schema: SCHEMA.to_owned(),
        tool: Tool::default(),
        started: String::new(),
        finished: None,
        plan,
        machine: Machine::default(),
        warnings: Vec::new(),
        run_id: String::new(),
        labels: Default::default(),
        activity: None,
        findings: Vec::new(),
        interrupted: None,
        imported: None,
        measurements,
    })
}

fn job(words: &[&str]) -> Job {
    let personality = find(words[0]).unwrap_or_else(|| panic!("{} is a personality", words[0]));
    (personality.parse)(&Call::new(words[1..].iter().copied()))
        .unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn output(words: &[&str]) -> Output {
    let job = job(words);
    let measurements = job.queries.iter().map(measured).collect();
    printed(job, measurements).output(words[0])
}

/// The file of a case: the command, then each stream under its name.
fn golden(words: &[&str]) -> String {
    let output = output(words);
    let mut text = format!("$ {}\n", words.join(" "));
    for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !stream.is_empty() {
            text += &format!("--- {name}\n{stream}");
        }
    }
    text + &format!("--- exit {}\n", output.exit_code)
}

#[test]
fn texts_are_those_of_the_golden_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/compat");
    for (name, words) in CASES {
        let path = directory.join(format!("{name}.txt"));
        let text = golden(words);
        if std::env::var_os("LATSCOPE_RECORD").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let expected =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(text, expected, "{name}");
    }
}

#[test]
fn every_personality_has_a_golden_file() {
    for personality in PERSONALITIES {
        assert!(CASES.iter().any(|(_, words)| words[0] == personality.name), "{}", personality.name);
    }
}

/// The numbers in a line of the form `LABEL: NUMBER UNIT`, as scripts take
/// them: everything before the last colon is the label.
fn labelled(text: &str) -> Vec<(String, f64, String)> {
    let line = |line: &str| {
        let (label, rest) = line.rsplit_once(": ")?;
        let mut words = rest.split_whitespace();
        Some((label.to_owned(), words.next()?.parse().ok()?, words.collect::<Vec<_>>().join(" ")))
    };
    text.lines().filter_map(line).collect()
}

/// The columns of all lines that consist of numbers, as awk would see them.
fn columns(text: &str) -> Vec<Vec<f64>> {
    let row =
        |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>();
    text.lines().filter_map(row).filter(|row| !row.is_empty()).collect()
}

#[test]
fn microsecond_lines_give_their_number_back() {
    let cases: &[(&[&str], &str, f64)] = &[
        (&["lat_syscall", "null"], "Simple syscall", 2.135),
        (&["lat_syscall", "read"], "Simple read", 2.135),
        (&["lat_syscall", "write"], "Simple write", 2.135),
        (&["lat_syscall", "stat"], "Simple stat", 2.135),
        (&["lat_syscall", "fstat"], "Simple fstat", 2.135),
        (&["lat_syscall", "open"], "Simple open/close", 2.135),
        (&["lat_select", "-n", "100", "file"], "Select on 100 fd's", 2.135),
        (&["lat_select", "file"], "Select on 200 fd's", 2.135),
        (&["lat_sig", "install"], "Signal handler installation", 2.135),
        (&["lat_sig", "catch"], "Signal handler overhead", 1.644),
        // 2.135 µs, of which 1.644 µs are the signal's.
        (&["lat_sig", "prot"], "Protection fault", 0.491),
        (&["lat_pipe"], "Pipe latency", 2.135),
        (&["lat_unix"], "AF_UNIX sock stream latency", 2.135),
        (&["lat_fifo"], "Fifo latency", 2.135),
        (&["lat_tcp", "localhost"], "TCP latency using localhost", 2.135),
        (&["lat_udp", "127.0.0.1"], "UDP latency using 127.0.0.1", 2.135),
        (&["lat_proc", "fork"], "Process fork+exit", 178.2188),
        (&["lat_proc", "exec"], "Process fork+execve", 2.135),
        (&["lat_proc", "shell"], "Process fork+/bin/sh -c", 2.135),
        (&["lat_pagefault", "/var/tmp/XXX"], "Pagefaults on /var/tmp/XXX", 0.25),
        // One way: half of the round trip that was measured.
        (&["lat_sem"], "Semaphore latency", 1.0675),
    ];
    for (words, label, microseconds) in cases {
        let expected = vec![((*label).to_owned(), *microseconds, "microseconds".to_owned())];
        assert_eq!(labelled(&output(words).stderr), expected, "{words:?}");
    }
}

#[test]
fn a_one_way_measurement_is_not_halved_again() {
    let job = job(&["lat_sem"]);
    let mut one_way = measured(&job.queries[0]);
    one_way.times = Semantics::OneWay;
    let text = printed(job, vec![one_way]).stderr;
    assert_eq!(labelled(&text)[0].1, 2.135);
}

#[test]
fn latency_curves_give_their_points_back() {
    let text = output(&["lat_mem_rd", "-t", "4", "128"]).stderr;
    assert_eq!(text.lines().next(), Some("\"stride=128"));
    let rows = columns(&text);
    assert_eq!(rows.first().map(Vec::as_slice), Some(&[0.00049, 1.0][..]));
    assert_eq!(rows.last().map(Vec::as_slice), Some(&[4.0, 4.125][..]));
    assert!(rows.iter().all(|row| row.len() == 2) && rows.is_sorted_by(|a, b| a[0] < b[0]));
    // What scripts look up by its text.
    assert!(text.contains("\n0.04688 1.000\n") && text.contains("\n0.12500 4.125\n"));
}

#[test]
fn strides_are_told_apart_by_their_headings() {
    let text = output(&["lat_mem_rd", "1", "64", "1k"]).stderr;
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('"')).collect();
    assert_eq!(headings, ["\"stride=64", "\"stride=1024"]);
    assert!(text.contains("\n\n\"stride=1024\n"));
}

#[test]
fn bandwidth_columns_give_size_and_rate_back() {
    let rate = |words: &[&str]| columns(&output(words).stderr).concat();
    assert_eq!(rate(&["bw_mem", "512", "rd"]), [0.000512, 10_000.0]);
    assert_eq!(rate(&["bw_mem", "8m", "frd"]), [8.39, 10_000.0]);
    assert_eq!(rate(&["bw_mem", "8m", "cp"]), [8.39, 10_000.0]);
    assert_eq!(rate(&["bw_mem", "8m", "rdwr"]), [8.39, 10_000.0]);
    assert_eq!(rate(&["bw_mem", "-P", "2", "8m", "fwr"]), [8.39, 20_000.0]);
    assert_eq!(rate(&["bw_file_rd", "512k", "io_only", "F"]), [0.524288, 10_000.0]);
    assert_eq!(rate(&["bw_mmap_rd", "1m", "open2close", "F"]), [1.05, 10_000.0]);
}

#[test]
fn messages_give_their_rate_back() {
    let rate = |words: &[&str]| labelled(&output(words).stderr);
    let expected = |label: &str| vec![(label.to_owned(), 3747.07, "MB/sec".to_owned())];
    assert_eq!(rate(&["bw_pipe"]), expected("Pipe bandwidth"));
    assert_eq!(rate(&["bw_unix"]), expected("AF_UNIX sock stream bandwidth"));
    assert_eq!(output(&["bw_tcp", "-m", "64", "localhost"]).stderr, "0.000064 3747.07 MB/sec\n");
}

#[test]
fn context_switches_give_size_overhead_and_times_back() {
    let text = output(&["lat_ctx", "-s", "32", "2", "96"]).stderr;
    let heading = text.lines().find(|line| line.starts_with("\"size=")).unwrap();
    assert_eq!(heading, "\"size=32k ovr=0.67");
    assert_eq!(columns(&text), [[2.0, 3.37], [96.0, 3.37]]);
}

#[test]
fn file_rates_are_separated_by_tabs() {
    let text = output(&["lat_fs", "/var/tmp"]).stderr;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 4);
    // Create 10 µs, write 1 ns a byte, close 10 µs; unlink 10 µs.
    assert_eq!(rows[0], ["0k", "469", "50000", "100000"]);
    assert_eq!(rows[3], ["10k", "469", "33069", "100000"]);
}

#[test]
fn arithmetic_has_the_labels_that_parsers_know() {
    let lines = labelled(&output(&["lat_ops"]).stderr);
    let labels: Vec<&str> = lines.iter().map(|(label, ..)| label.as_str()).collect();
    let whole = ["bit", "add", "mul", "div", "mod"];
    let mut expected: Vec<String> = Vec::new();
    expected.extend(whole.iter().map(|operation| format!("integer {operation}")));
    expected.extend(whole.iter().map(|operation| format!("int64 {operation}")));
    for kind in ["float", "double"] {
        expected.extend(["add", "mul", "div"].map(|operation| format!("{kind} {operation}")));
    }
    assert_eq!(labels, expected);
    assert!(lines.iter().all(|(_, ns, unit)| *ns > 0.0 && unit == "nanoseconds"));
}

#[test]
fn parallelism_is_latency_over_throughput() {
    let lines = labelled(&output(&["par_ops"]).stderr);
    assert_eq!(lines[1], ("integer add parallelism".to_owned(), 2.5, String::new()));
    assert_eq!(lines[3].1, 50.0);
    assert_eq!(columns(&output(&["par_mem", "-M", "2k"]).stderr), [[0.001024, 8.0], [0.002048, 8.0]]);
}

#[test]
fn the_clock_goes_to_standard_output_for_command_substitution() {
    let text = output(&["mhz"]);
    assert_eq!((text.stdout.as_str(), text.stderr.as_str()), ("2600 MHz, 0.3846 nanosec clock\n", ""));
    assert_eq!(output(&["mhz", "-c"]).stdout, "0.3846\n");
}

#[test]
fn stream_states_both_figures_of_each_kernel() {
    let lines = labelled(&output(&["stream", "-M", "24m"]).stderr);
    let labels: Vec<&str> = lines.iter().map(|(label, ..)| label.as_str()).collect();
    assert_eq!(labels[..2], ["STREAM copy latency", "STREAM copy bandwidth"]);
    assert_eq!(labels[6..], ["STREAM triad latency", "STREAM triad bandwidth"]);
    for (label, value, unit) in &lines {
        // A thousand elements in a microsecond.
        match label.rsplit(' ').next() {
            Some("latency") => assert_eq!((*value, unit.as_str()), (1.0, "nanoseconds"), "{label}"),
            _ => assert!(*value >= 16_000.0 && unit == "MB/sec", "{label}"),
        }
    }
}

#[test]
fn the_tlb_of_the_synthetic_machine_is_found() {
    assert_eq!(output(&["tlb", "-M", "4m"]).stderr, "tlb: 80 pages\n");
    assert_eq!(output(&["tlb", "-c", "-M", "4m"]).stderr, "tlb: 80 pages 7.25000 nanoseconds\n");
}

#[test]
fn mappings_give_size_and_microseconds_back() {
    // Map and unmap 1 µs each, 4 faults of 0.25 µs.
    assert_eq!(columns(&output(&["lat_mmap", "512k", "F"]).stderr), [[0.524288, 3.0]]);
}

#[test]
fn a_point_without_a_number_is_named_and_fails_the_call() {
    let job = job(&["lat_mem_rd", "-t", "1"]);
    let mut measurements: Vec<Measurement> = job.queries.iter().map(measured).collect();
    measurements[3].support = Support::Unsupported;
    measurements[3].reason = Some("no memory".to_owned());
    measurements[3].remedy = Some("raise the limit".to_owned());
    let points = measurements.len();
    let output = printed(job, measurements).output("lat_mem_rd");
    assert_eq!(output.exit_code, 1);
    assert_eq!(columns(&output.stderr).len(), points - 1);
    let last = output.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("latscope: lat_mem_rd: memory.latency")
            && last.ends_with("no memory; raise the limit")
    );
}

#[test]
fn doubtful_numbers_are_printed_and_noted() {
    let job = job(&["lat_ops"]);
    let mut measurements: Vec<Measurement> = job.queries.iter().map(measured).collect();
    for measurement in &mut measurements {
        measurement.support = Support::Degraded;
        measurement.reason = Some("the clock drifted".to_owned());
    }
    let output = printed(job, measurements).output("lat_ops");
    assert_eq!(output.exit_code, 0);
    assert_eq!(output.stderr.matches("latscope: note: degraded: the clock drifted").count(), 1);
    assert_eq!(labelled(&output.stderr).iter().filter(|(_, _, unit)| unit == "nanoseconds").count(), 16);
}

#[test]
fn an_empty_report_gives_no_numbers_and_no_panic() {
    for (name, words) in CASES {
        let job = job(words);
        let nothing = job.queries.is_empty();
        let page = printed(job, Vec::new());
        // What starts or stops a server measures nothing, and misses nothing.
        assert_eq!(page.missing.is_empty(), nothing, "{name}");
        assert!(page.stdout.is_empty(), "{name}");
        assert!(labelled(&page.stderr).is_empty() && columns(&page.stderr).is_empty(), "{name}");
    }
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
        let personality = find(wrong[0]).unwrap();
        let error = (personality.parse)(&Call::new(wrong[1..].iter().copied())).unwrap_err();
        assert_eq!(error, CallError::Usage, "{wrong:?}");
        let answer = personality.answer(&error);
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
        &["lat_select", "tcp"],
        &["lat_unix", "-m", "1k"],
        &["bw_tcp", "other.host"],
        &["bw_mem", "1m", "cp", "conflict"],
        &["bw_mmap_rd", "1m", "mmap_only", "F"],
        &["stream", "-v", "2"],
        &["tlb", "-L", "128"],
    ] {
        let personality = find(words[0]).unwrap();
        let error = (personality.parse)(&Call::new(words[1..].iter().copied())).unwrap_err();
        let answer = personality.answer(&error);
        assert!(matches!(error, CallError::Refused(_)), "{words:?}");
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
    let placed = |scheduling: Option<&str>| {
        let call = Call { scheduling: scheduling.map(str::to_owned), ..Call::default() };
        (find("lat_pipe").unwrap().parse)(&call).map(|job| job.queries[0].params["placement"].clone())
    };
    assert_eq!(placed(None), Ok("same-core".into()));
    assert_eq!(placed(Some("BALANCED")), Ok("same-core".into()));
    assert_eq!(placed(Some("UNIQUE")), Ok("two-cores".into()));
    assert!(placed(Some("CUSTOM 0 1")).is_err());
}

#[test]
fn arguments_without_effect_are_noted() {
    let notes = |words: &[&str]| job(words).notes;
    assert_eq!(notes(&["bw_pipe", "-M", "10m"]).len(), 1);
    assert_eq!(notes(&["lat_fs", "-n", "50"]).len(), 1);
    assert_eq!(notes(&["lat_syscall", "stat", "/tmp/x"]).len(), 1);
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
    let names: Vec<&str> = PERSONALITIES.iter().map(|personality| personality.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    let refused: Vec<&str> = REFUSED.iter().map(|refused| refused.name).collect();
    assert!(refused.is_sorted_by(|a, b| a < b) && refused.iter().all(|name| !names.contains(name)));
    let page = include_str!("../../../docs/lmbench.md");
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
];

#[test]
fn a_dry_run_of_every_program_prints_its_plan_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("XXX");
    std::fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
    for (name, _) in latscope_compat::all() {
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
