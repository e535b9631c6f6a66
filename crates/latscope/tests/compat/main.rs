//! Comparison of the personalities with golden files, and with the parsers that scripts use on LMbench's output.
//!
//! The reports are synthetic: every figure follows from the query by a rule below. `LATSCOPE_RECORD=1 cargo test -p
//! latscope
//! --test compat` writes the golden files anew.
#![forbid(unsafe_code)]

mod calls;
mod synthetic;

use synthetic::{job, measured, output, printed};

use latscope_compat::lmbench::PROGRAMS;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Measurement, Semantics};
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
    ("lat_select-tcp", &["lat_select", "-n", "100", "tcp"]),
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

/// Content of the golden file of a case: the command, then each stream under its name.
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
    for personality in PROGRAMS {
        assert!(CASES.iter().any(|(_, words)| words[0] == personality.name), "{}", personality.name);
    }
}

/// Numbers in lines of the form `LABEL: NUMBER UNIT`, as scripts take them: everything before the last colon is the
/// label.
fn labelled(text: &str) -> Vec<(String, f64, String)> {
    let line = |line: &str| {
        let (label, rest) = line.rsplit_once(": ")?;
        let mut words = rest.split_whitespace();
        Some((label.to_owned(), words.next()?.parse().ok()?, words.collect::<Vec<_>>().join(" ")))
    };
    text.lines().filter_map(line).collect()
}

/// Columns of all lines that consist of numbers, as awk would see them.
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
        (&["lat_select", "tcp"], "Select on 200 tcp fd's", 2.135),
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
    assert_eq!(columns(&output(&["lat_mmap", "512k", "F"]).stderr), [[0.524288, 3.0]]);
}

#[test]
fn a_point_without_a_number_is_named_and_fails_the_call() {
    let job = job(&["lat_mem_rd", "-t", "1"]);
    let mut measurements: Vec<Measurement> = job.queries.iter().map(measured).collect();
    measurements[3].lower(Reason::new(
        QualityLevel::Unsupported,
        "not-possible-here",
        "no memory",
        "raise the limit",
    ));
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
        measurement.lower(Reason::new(QualityLevel::Degraded, "coarse-clock", "the clock drifted", ""));
    }
    let output = printed(job, measurements).output("lat_ops");
    assert_eq!(output.exit_code, 0);
    assert_eq!(output.notes, ["degraded: the clock drifted"]);
    assert!(!output.stderr.contains("latscope"), "{output:?}");
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
