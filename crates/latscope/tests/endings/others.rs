//! All other commands and personalities, each in two ways: to their end, and ended by two signals, as `timeout` sends
//! them. Commands that only print get a full stdout instead.

use crate::support::{BINARY, Place, eventually, json, latscope, measurements, program, run};
use crate::{Ending, Running, TURNS};
use latscope_compat as compat;
use rustix::process::Signal;

const TOLD: Ending = Ending::Group(Signal::TERM);

/// Runs a call to its end, or ends it in the middle. Returns the exit code and the printed text.
#[track_caller]
fn ran(call: &str, files: &[&str], ending: Option<Ending>) -> (Option<i32>, String, Place) {
    let place = Place::new();
    let words: Vec<String> =
        call.split_whitespace().map(|word| word.replace("PLACE", place.path().to_str().unwrap())).collect();
    std::fs::write(place.at("file"), [0; 1 << 20]).unwrap();
    let running = Running::start(latscope(words), place);
    if let Some(ending) = ending {
        // Programs of LMbench that hand over warm up for thousands of turns.
        let turns = if call.contains(" -N ") { 10_000 } else { TURNS };
        running.has_measured(turns, call.contains("pty_test"));
        running.end(ending);
    }
    let (ran, place) = running.ended(&[files, &["file"]].concat());
    (ran.code, ran.out + &ran.err, place)
}

/// Families, and the parts of them that are measured.
const FAMILIES: [&str; 7] = [
    "memory latency --size 32KiB",
    "sync mutex",
    "thread create",
    "process fork",
    "syscall getppid",
    "file stat --dir PLACE",
    "survey --only syscall.getppid,sync.mutex",
];

#[test]
fn of_families() {
    for family in FAMILIES {
        let save = "--json PLACE/result.json";
        let files = ["result.json"];
        let (code, out, _) = ran(&format!("{family} --quick --duration 30ms {save}"), &files, None);
        assert_eq!(code, Some(0), "{family}: {out}");
        let long = format!("{family} --duration 60s --count 1000000000 {save}");
        let (code, out, place) = ran(&long, &files, Some(TOLD));
        assert_eq!(code, Some(1), "{family}: {out}");
        let found = json(place.at("result.json"));
        assert_eq!(found["interrupted"]["by"], "SIGTERM", "{family}: {found:#}");
        assert!(out.contains("INCOMPLETE  interrupted by SIGTERM"), "{family}: {out}");
        let some = |m: &serde_json::Value| m["summary"]["max"].as_f64() > Some(0.0);
        assert!(measurements(&found).iter().any(some), "{family}: {found:#}");
    }
}

/// Calls of LMbench's programs, which are run with `-N`.
const LMBENCH: &[(&str, &str)] = &[
    ("bw_file_rd", "1m io_only PLACE/file"),
    ("bw_mem", "1m rd"),
    ("bw_mmap_rd", "1m open2close PLACE/file"),
    ("bw_pipe", ""),
    ("bw_tcp", "localhost"),
    ("bw_unix", ""),
    ("lat_ctx", "-s 0 2"),
    ("lat_fifo", ""),
    ("lat_fs", "PLACE"),
    ("lat_mem_rd", "1 512"),
    ("lat_mmap", "1m PLACE/file"),
    ("lat_ops", ""),
    ("lat_pagefault", "PLACE/file"),
    ("lat_pipe", ""),
    ("lat_proc", "fork"),
    ("lat_select", "file"),
    ("lat_sem", ""),
    ("lat_sig", "install"),
    ("lat_syscall", "null"),
    ("lat_tcp", "localhost"),
    ("lat_udp", "localhost"),
    ("lat_unix", ""),
    ("par_mem", ""),
    ("par_ops", ""),
    ("stream", ""),
    ("tlb", ""),
];

/// Programs whose figures each come from several points.
const OF_SEVERAL: [&str; 4] = ["lat_mmap", "par_mem", "par_ops", "tlb"];

/// Programs that take no repetitions, and are over too soon to be asked.
const TOO_SHORT: [&str; 1] = ["mhz"];

#[test]
fn of_lmbenchs_programs() {
    let called = LMBENCH.iter().map(|(name, _)| *name).chain(TOO_SHORT);
    let all: Vec<&str> = compat::lmbench::PROGRAMS.iter().map(|program| program.name).collect();
    let mut called: Vec<&str> = called.collect();
    called.sort_unstable_by_key(|name| all.iter().position(|other| other == name));
    assert_eq!(called, all, "every program has its endings");
    for (name, operands) in LMBENCH {
        let (code, out, _) = ran(&format!("as {name} -N 1 {operands}"), &[], None);
        assert!(code == Some(0) && out.contains(|char: char| char.is_ascii_digit()), "{name}: {out}");
        // Neither our own lines nor headings.
        let figures = |line: &str| {
            !line.starts_with("latscope:")
                && !line.starts_with('"')
                && line.contains(|char: char| ('1'..='9').contains(&char))
        };
        let ended = || {
            let (code, out, _) = ran(&format!("as {name} -N 1000000 {operands}"), &[], Some(TOLD));
            assert_eq!(code, Some(1), "{name}: {out}");
            assert!(out.contains("interrupted by SIGTERM"), "{name}: {out}");
            (out.lines().any(figures), out)
        };
        // On a busy machine the signal may come before the first sample.
        let mut tries = (0..5).map(|_| ended());
        let first = tries.next().expect("there are five");
        let (told, out) = match first {
            (false, _) if !OF_SEVERAL.contains(name) => tries.find(|(told, _)| *told).unwrap_or(first),
            found => found,
        };
        // What comes of several points has no figure before they are done, and is named.
        assert!(told || OF_SEVERAL.contains(name), "{name}: what was measured is printed: {out}");
        assert!(told || out.contains("not measured"), "{name}: {out}");
    }
}

/// Calls of rt-tests' programs without an end, the options that end them, and the text that they print at the end.
const RT_TESTS: &[(&str, &str, &str, &str)] = &[
    ("cyclicdeadline", "-q", "-q -D 1", "T: 0 ("),
    ("hackbench", "-g 1 -f 2 -l 100000000", "-g 1 -f 2 -l 10", "Running in process mode"),
    ("oslat", "-D 600", "-D 1", "Maximum:"),
    ("ptsematest", "-q", "-q -l 50", "#1 -> #0, Min"),
    ("signaltest", "-q", "-q -l 50", "T: 0 ("),
    ("sigwaittest", "-q -f", "-q -f -l 50", "#1 -> #0, Min"),
    ("svsematest", "-q -f", "-q -f -l 50", "#1 -> #0, Min"),
];

#[test]
fn of_rt_tests_programs() {
    // The others are subjects of all endings.
    let all = compat::rt::PROGRAMS.iter().map(|program| program.name());
    let others: Vec<&str> = all.filter(|name| !["cyclictest", "pmqtest"].contains(name)).collect();
    assert_eq!(RT_TESTS.iter().map(|call| call.0).collect::<Vec<_>>(), others);
    for (name, long, short, last) in RT_TESTS {
        let (code, out, _) = ran(&format!("as {name} {short}"), &[], None);
        assert!(code == Some(0) && out.contains(last), "{name}: {out}");
        let (code, out, _) = ran(&format!("as {name} {long}"), &[], Some(TOLD));
        // hackbench has no figure before it is done, and is ended as the real one is.
        let ended = if *name == "hackbench" { None } else { Some(0) };
        assert!(code == ended && out.contains(last), "{name}: {code:?} {out}");
        for line in out.lines().filter(|line| line.contains("Max:") && line.starts_with("T:")) {
            assert!(!line.contains("Max:       0"), "{name}: {out}");
        }
    }
}

#[test]
fn of_the_programs_of_mcs_and_binder() {
    let (code, out, _) = ran("as mica_main --ping --pace 1ms --loop 30", &[], None);
    assert!(code == Some(0) && out.contains("30"), "{out}");
    let (code, out, _) = ran("as mica_main --ping --pace 1ms", &[], Some(TOLD));
    assert!(code == Some(0) && out.contains("found matched endpoint"), "{out}");
    for name in compat::binder_tests::PROGRAMS.iter().map(|program| program.name()) {
        let benchmark = name.ends_with("benchmark");
        let filter = "--benchmark_filter=/4$ --benchmark_min_time";
        let call = |long: bool| match (benchmark, long) {
            (true, _) => format!("{filter}={}", if long { "600" } else { "0.01" }),
            (false, true) => "-i 1000000000".to_owned(),
            (false, false) => "-i 100".to_owned(),
        };
        let as_tool = |call: String| format!("as {name} --transport unix-stream {call}");
        let (code, out, _) = ran(&as_tool(call(false)), &[], None);
        // Over a socket no priority is inherited, which those that judge that fail for.
        let judges = out.contains("inheritance");
        assert_eq!(code, Some(i32::from(judges)), "{}: {out}", name);
        let (code, out, _) = ran(&as_tool(call(true)), &[], Some(TOLD));
        assert_eq!(code, Some(1), "{}: {out}", name);
        assert!(out.contains(|char: char| ('1'..='9').contains(&char)), "{}: {out}", name);
    }
}

/// Checks that each personality has a call: in a table, or in the text of a test.
#[test]
fn of_every_personality() {
    let text = [include_str!("others.rs"), include_str!("subjects.rs")].concat();
    let in_tables = LMBENCH.iter().map(|call| call.0).chain(RT_TESTS.iter().map(|call| call.0));
    let in_tables: Vec<&str> = in_tables
        .chain(TOO_SHORT)
        .chain(compat::binder_tests::PROGRAMS.iter().map(|program| program.name()))
        .collect();
    let is_called = |name: &str| in_tables.contains(&name) || text.contains(&format!("\"as {name} "));
    let missing = compat::all_programs().map(|program| program.name()).filter(|name| !is_called(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn of_schbench() {
    let call = "as schbench -t 1 -F 1 -n 1 -r";
    let (code, out, _) = ran(&format!("{call} 1"), &[], None);
    assert!(code == Some(0) && out.contains("average rps: "), "{out}");
    // It is ended as the real one is.
    let (code, _, _) = ran(&format!("{call} 600"), &[], Some(TOLD));
    assert_eq!(code, None);
}

/// Endings of `serve` with an echo, and of `pty_test` over its terminal.
#[test]
fn of_what_serves_and_of_pty_test() {
    let serve = |ending: Ending, meanwhile: &dyn Fn(&str)| {
        let place = Place::new();
        let link = place.at("tty");
        let served = Running::start(latscope(["remote", "serve", "--pty", "--echo", "--link", &link]), place);
        eventually("a terminal", || std::fs::metadata(&link).ok());
        meanwhile(&link);
        served.end(ending);
        let (ran, _) = served.ended(&[]);
        assert!(ran.code == Some(0) && ran.err.contains("echoed"), "{ending:?}: {ran:#?}");
    };
    serve(TOLD, &|link| {
        for (words, over) in [("", "was interrupted"), ("-l 30", "test over"), ("-b", "was interrupted")] {
            let told = over.contains("interrupted").then_some(TOLD);
            let (code, out, _) = ran(&format!("as pty_test --pace 1ms -P {link} {words}"), &[], told);
            assert!(code == Some(0) && out.contains(over), "{words}: {out}");
            assert!(out.contains("Count:") && !out.contains("Count:     0"), "{words}: {out}");
        }
    });
    serve(Ending::Twice(Signal::INT), &|_| ());
    let script = "exec \"$0\" remote serve --pty --echo > /dev/full";
    let (ran, _) = Running::start(program(["bash", "-c", script, BINARY]), Place::new()).ended(&[]);
    assert!(ran.code == Some(1) && ran.err.contains("No space left"), "{ran:#?}");
}

#[test]
fn of_selftests() {
    let (code, out, _) = ran("selftest", &[], None);
    assert_eq!(code, Some(i32::from(out.contains("FAIL"))), "{out}");
    assert_eq!(out.lines().filter(|line| line.starts_with(['p', 'F'])).count(), 3, "{out}");
    let (code, out, _) = ran("selftest wake", &[], Some(TOLD));
    assert!(code == Some(1) && out.contains("interrupted by SIGTERM"), "{out}");
    assert!(!out.contains("FAIL") && !out.contains("pass"), "what was cut short is not judged: {out}");
}

#[test]
fn of_what_only_prints() {
    let place = Place::new();
    let saved = place.at("result.json");
    run(&["cpu", "cycle", "--quick", "--json", &saved]).done();
    let show = format!("show {saved}");
    let calls = ["list", "doctor", "generate man", "as --help", "--help", "as cyclictest --help"];
    for call in calls.into_iter().chain([show.as_str()]) {
        let (code, out, _) = ran(call, &[], None);
        assert!(code == Some(0) && !out.is_empty(), "{call}: {out}");
        let script = "exec \"$0\" \"$@\" > /dev/full";
        let words = ["bash", "-c", script, BINARY].into_iter().chain(call.split_whitespace());
        let (ran, _) = Running::start(program(words), Place::new()).ended(&[]);
        assert!(ran.code == Some(1) && ran.err.contains("No space left"), "{call}: {ran:#?}");
    }
}

#[test]
fn of_what_runs_until_it_is_told_to_end() {
    let save = "--json PLACE/result.json";
    for call in ["wake --endless --max 1h --no-live", "remote ping --wait futex --endless"] {
        let (code, out, place) = ran(&format!("{call} {save}"), &["result.json"], Some(TOLD));
        assert_eq!(code, Some(0), "{call}: {out}");
        let found = json(place.at("result.json"));
        assert!(found["finished"].is_string() && found["interrupted"].is_null(), "{call}: {found:#}");
        assert_eq!(out.contains("Verdict: pass"), call.contains("--max"), "{call}: {out}");
    }
}
