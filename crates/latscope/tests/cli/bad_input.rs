//! Invalid arguments and files, which cause one clear line and exit code 1, and leave nothing behind.

use crate::support::{NOBODY, Place, end, json, latscope, names, program, public_binary, root, run};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;

/// Asserts that these words are refused before anything is measured, in a line that contains all of `parts`.
#[track_caller]
fn refused(words: &[&str], parts: &[&str]) {
    let ran = run(words);
    let line = ran.refused();
    assert_eq!(ran.out, "", "{words:?}");
    assert!(!ran.err.contains("measuring"), "{words:?}: {}", ran.err);
    // The system's own numbers and Rust's own words say nothing to a user.
    assert!(!["os error", "entity", "Error"].iter().any(|word| line.contains(word)), "{words:?}: {line}");
    for part in parts {
        assert!(line.contains(part), "{words:?} is refused without {part:?}: {line}");
    }
}

#[test]
fn unknown_words_are_named_and_others_offered() {
    refused(&["nosuch"], &["'nosuch'", "latscope --help"]);
    refused(&["survvey"], &["'survvey'", "survey"]);
    refused(&["--nosuch"], &["'--nosuch'"]);
    refused(&["doctor", "--jsno", "x"], &["--jsno", "--json", "latscope doctor --help"]);
    refused(&["survey", "--only", "nosuch"], &["nosuch", "memory", "latscope list"]);
    refused(&["survey", "--only", "sync,memory.nosuch"], &["memory.nosuch"]);
    refused(&["memory", "nosuch"], &["nosuch", "latency", "bandwidth"]);
    refused(&["sync", "--placement", "nowhere"], &["nowhere", "same-core"]);
    refused(&["survey", "--sort", "weird"], &["weird", "family"]);
    refused(&["list", "nosuch"], &["nosuch", "cpu"]);
    refused(&["selftest", "nosuch"], &["nosuch", "survey"]);
    refused(&["generate", "nosuch"], &["nosuch", "man"]);
    refused(&["generate", "completions", "nosuch"], &["bash"]);
    refused(&["as", "lat_nosuch"], &["lat_nosuch"]);
    for tool in ["cyclictest", "hackbench", "lat_mem_rd", "mica_main"] {
        refused(&[tool, "-q"], &[&format!("did you mean `latscope as {tool}`?")]);
    }
    refused(&["show"], &["RESULT", "latscope show --help"]);
    refused(&["survey", "--quick", "--full"], &["--quick", "--full"]);
}

#[test]
fn every_error_of_usage_points_to_the_help_of_its_subcommand() {
    let measuring = [
        "survey", "cpu", "memory", "sync", "thread", "syscall", "process", "file", "wake", "noise", "ipc",
        "remote",
    ];
    let wrong = [
        ["--cpus", ""],
        ["--duration", "0s"],
        ["--save-every", "0s"],
        ["--load", "banana"],
        ["--count", "0"],
        ["--sed", "1"],
    ];
    for subcommand in measuring {
        for [option, value] in wrong {
            refused(
                &[subcommand, option, value],
                &[&option[..4], &format!("(see `latscope {subcommand} --help`)")],
            );
        }
    }
    refused(&["wake", "--threads", "0"], &["latscope wake --help"]);
    refused(&["wake", "--trace", "x"], &["latscope wake --help"]);
    refused(&["ipc", "--pairs", "0"], &["latscope ipc --help"]);
    refused(&["memory", "latency", "--size", "0"], &["latscope memory --help"]);
    refused(&["survey", "--only", "memroy"], &["did you mean memory?", "latscope survey --help"]);
    refused(&["list", "memroy"], &["did you mean memory?", "latscope list --help"]);
    refused(&["as", "cyclictset"], &["did you mean cyclictest?", "latscope as --help"]);
    refused(&["cpu", "--load", "memroy"], &["did you mean memory?"]);
    refused(&["remote", "serve", "--pty", "--wait", "x"], &["latscope remote serve --help"]);
}

#[test]
fn what_the_plan_cannot_give_is_refused_before_it_is_measured() {
    let place = Place::new();
    let (svg, more) = (place.at("m.svg"), place.at("p.svg"));
    let latency = ["memory", "latency", "--quick", "--svg", &svg, "--svg-percentiles", &more];
    refused(&latency, &["nothing to write to", "p.svg"]);
    refused(&["cpu", "add", "--csv-histogram", &more], &["nothing to write to", "p.svg"]);
    refused(&["memory", "parallelism", "--chains", "1,99"], &["--chains 99", "1 to 32"]);
    refused(&["sync", "atomic", "--threads", "70000"], &["--threads 70000", "choose at most"]);
    refused(&["memory", "loaded", "--threads", "70000"], &["--threads 70000"]);
    assert!(names(place.path()).is_empty());
}

#[test]
fn an_option_that_nothing_uses_is_refused() {
    for (words, option, what_for) in [
        ("memory bandwidth --order random", "--order", "memory.latency"),
        ("sync mutex --mode processes", "--mode", "sync.context-switch"),
        ("cpu add --mode predicted", "--mode predicted", "cpu.branch"),
        ("process --dir .", "--dir", "latscope process --help"),
        ("survey --only cpu --dir .", "--dir", "probes of file"),
        ("--only cpu --dir .", "--dir", "probes of file"),
        ("wake timerlat --method timerfd", "--method", "own threads"),
        ("wake timerlat --method nanosleep", "--method", "own threads"),
        ("wake timerlat --warm-up 3", "--warm-up", "own threads"),
        ("wake --runtime 1ms", "--runtime", "--policy deadline"),
        ("wake --policy other --spread", "--spread", "fifo or rr"),
        ("wake --on-threshold stop", "--on-threshold", "--threshold"),
        ("wake --no-blame", "--no-blame", "--threshold"),
        ("wake --trace x", "--trace", "--blame"),
        ("wake --blame --buffer 0", "--buffer", "at least 64 KiB"),
        ("noise --threshold 1ms --buffer 100000GiB", "--buffer", "at most"),
        ("wake --endless --rounds 3", "--rounds", "--endless"),
        ("wake --live --quiet", "--live", "--quiet"),
        ("noise --on-threshold stop", "--on-threshold", "--threshold"),
        ("noise --trace x", "--trace", "--blame"),
        ("noise hwlat --policy fifo", "--policy", "noise.busy"),
        ("ipc -t pipe --caller other --priority 3", "--priority", "SCHED_FIFO caller"),
        ("ipc --one-way --fresh-thread", "--fresh-thread", "SCHED_FIFO caller"),
        ("ipc --throughput --sync 50", "--sync", "--throughput"),
        ("remote ping --openamp-shm x", "--openamp-shm", "--transport openamp"),
        ("remote ping --mode lock-step", "--mode", "remote.long-ping"),
        ("remote ping --legacy", "--legacy", "long-ping"),
        ("remote long-ping --sweep", "--sweep", "length of its own"),
        ("remote ping --endless --rounds 3", "--rounds", "--endless"),
        ("remote serve --openamp --link x", "--link", "--openamp"),
        ("remote serve --pty --echo --cpus 0", "--cpus", "--echo"),
        ("cpu --quiet --sort family", "--sort", "the table"),
        ("cpu --json - --sort family", "--sort", "the table"),
        ("cpu --save-every 1m", "--save-every", "--json FILE"),
        ("cpu --save-every 1m --json -", "--save-every", "--json FILE"),
        ("show x --quiet --all", "--all", "the table"),
        ("generate man bash", "NAME", "completions"),
    ] {
        refused(&words.split(' ').collect::<Vec<_>>(), &[option, what_for]);
    }
}

#[test]
fn two_outputs_to_one_file_are_refused() {
    let place = Place::new();
    let (file, again) = (place.at("out"), place.at("./out"));
    for command in [["survey", "--quick"], ["wake", "--as-is"], ["ipc", "--one-way"], ["show", "-"]] {
        let of = |more: [&'static str; 4]| [&command[..], &more[..]].concat();
        refused(&of(["--json", "-", "--csv", "-"]), &["--json and --csv", "standard output"]);
        let words = [&command[..], &["--csv", &file, "--markdown", &again]].concat();
        refused(&words, &["--csv and --markdown both write to"]);
    }
    refused(&["wake", "-b", "1ms", "--trace", &file, "--timeline", &file], &["--trace and --timeline"]);
    assert!(names(place.path()).is_empty());
}

#[test]
fn the_older_tools_are_listed() {
    let listed = run(&["as"]).done();
    for words in [&["as", "--help"][..], &["as", "-h"]] {
        assert_eq!(run(words).done(), listed);
    }
    for name in ["cyclictest", "lat_mem_rd", "libhwbinder_latency", "hackbench", "mica_main"] {
        assert!(listed.lines().any(|line| line.trim_start().starts_with(name)), "{listed}");
    }
}

#[test]
fn values_that_are_none_are_refused() {
    refused(&["memory", "latency", "--size", "big"], &["big", "4KiB"]);
    refused(&["memory", "latency", "--size", "-1"], &["-1"]);
    refused(&["sync", "mutex", "--count", "0"], &["--count"]);
    refused(&["sync", "mutex", "--count", "many"], &["many"]);
    refused(&["sync", "mutex", "--duration", "soon"], &["soon"]);
    refused(&["sync", "mutex", "--seed", "-3"], &["-3"]);
    refused(&["sync", "mutex", "--cpus", "x"], &["x", "0-3,6"]);
    refused(&["sync", "mutex", "--cpus", "3-1"], &["3-1"]);
    refused(&["sync", "mutex", "--cpus", "1023"], &["1023", "not online"]);
    refused(&["wake", "timer", "--interval", "1parsec"], &["1parsec"]);
    for words in [&["--duration", "-1s"][..], &["--duration=-1s"], &["--interval", "-250us"]] {
        refused(&[&["wake"][..], words].concat(), &["-", "it cannot be negative", "latscope wake --help"]);
    }
    refused(&["noise", "--gap", "-1us"], &["--gap -1us: it cannot be negative", "latscope noise --help"]);
    for (subcommand, option) in [
        ("wake", "--max"),
        ("wake", "--p99_9"),
        ("wake", "--threshold"),
        ("wake", "--runtime"),
        ("noise", "--max"),
        ("noise", "--threshold"),
        ("ipc", "--p99"),
        ("ipc", "--deadline"),
    ] {
        let help = format!("latscope {subcommand} --help");
        refused(&[subcommand, option, "0s"], &[option, "must be longer than 0", &help]);
    }
}

#[test]
fn sizes_and_numbers_that_cannot_be_are_refused() {
    refused(&["memory", "latency", "--size", "0"], &["--size 0", "1 or more"]);
    refused(&["memory", "bandwidth", "--size", "4KiB,0"], &["--size 0"]);
    refused(&["memory", "latency", "--size", "4000000GiB"], &["more than", "memory"]);
    refused(&["memory", "latency", "--size", "99999999999999999999"], &["is not a size"]);
    refused(&["memory", "latency", "--order", "stride", "--stride", "0"], &["--stride 0"]);
    refused(&["memory", "parallelism", "--chains", "0"], &["--chains 0"]);
    refused(&["syscall", "poll", "--descriptors", "0"], &["--descriptors 0"]);
    refused(&["syscall", "mmap", "--size", "0"], &["--size 0"]);
    refused(&["thread", "pool", "--threads", "0"], &["--threads 0"]);
    refused(&["wake", "timer", "--interval", "0s"], &["--interval 0"]);
}

#[test]
fn directories_that_cannot_be_used_are_refused() {
    let place = Place::new();
    let file = place.file("file", "");
    for directory in ["/nonexistent/directory", "/proc", &file] {
        refused(&["file", "--dir", directory], &[directory, "choose a directory"]);
        refused(&["survey", "--quick", "--dir", directory], &[directory, "choose a directory"]);
    }
    assert_eq!(names(place.path()), ["file"]);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_measured() {
    let place = Place::new();
    let missing = place.at("missing/result");
    let directory = place.directory("directory");
    for option in ["--json", "--csv", "--markdown"] {
        for path in [&missing, &directory] {
            refused(&["cpu", "cycle", option, path], &[path, "choose a file"]);
        }
        refused(&["cpu", "cycle", option, &missing], &["no such directory"]);
    }
    refused(&["show", &missing], &[&missing, "no such file or directory"]);
    refused(&["cpu", "cycle", "--beside", &missing], &[&missing, "no such file or directory"]);
    refused(&["ipc", "--svg", &missing], &[&missing, "no such directory"]);
    refused(&["wake", "--svg", &missing], &[&missing, "no such directory"]);
    refused(&["wake", "--threshold", "1s", "--trace", &missing], &[&missing, "no such directory"]);
    refused(&["noise", "--threshold", "1s", "--trace", &missing], &[&missing, "no such directory"]);
    refused(&["ipc", "--trace", &missing], &[&missing, "no such directory"]);
    refused(&["file", "--dir", &missing], &[&missing, "no such"]);
    refused(&["sync", "mutex", "--timeline", &missing], &[&missing, "no such directory"]);
    assert_eq!(names(place.path()), ["directory"]);
    assert!(names(&directory).is_empty());
}

#[test]
fn a_directory_of_another_user_is_refused() {
    if !root("a_directory_of_another_user_is_refused") {
        return;
    }
    let place = Place::new();
    let (_copy, binary) = public_binary();
    let (result, path) = (place.at("result.json"), place.at(""));
    for words in [["cpu", "cycle", "--json", result.as_str()], ["file", "stat", "--dir", path.as_str()]] {
        let ran = end(program([&binary]).args(words).uid(NOBODY).gid(NOBODY));
        let line = ran.refused();
        assert!(line.contains("ermission denied") && line.contains("choose a"), "{line}");
        assert_eq!(ran.out, "");
    }
    assert!(names(place.path()).is_empty());
}

#[test]
fn other_files_than_results_are_refused() {
    let place = Place::new();
    let good = place.at("good.json");
    run(&["cpu", "cycle", "--count", "2", "--json", &good, "--quiet"]).done();
    let text = fs::read_to_string(&good).unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut result = json(&good);
        *result.pointer_mut(pointer).expect("a result has that field") = value;
        result.to_string()
    };
    let bad = [
        ("empty", String::new(), "damaged"),
        ("text", "a table of numbers\n".into(), "damaged"),
        ("binary", "\u{0}\u{1}\u{2}".into(), "damaged"),
        ("number", "12".into(), "damaged"),
        ("list", "[]".into(), "damaged"),
        ("foreign", r#"{"results": [1, 2, 3]}"#.into(), "no \"schema\""),
        ("newer", changed("/schema", "latscope/2".into()), "latscope/2"),
        ("other", r#"{"schema": "fio/3"}"#.into(), "fio/3"),
        ("bare", r#"{"schema": "latscope/1"}"#.into(), "damaged"),
        ("wrong", changed("/measurements/0/probe", 7.into()), "damaged"),
        ("counts", changed("/measurements/0/histogram/overflow", u64::MAX.into()), "damaged"),
        ("negative", changed("/measurements/0/histogram/overflow", (-1).into()), "damaged"),
        ("tick", changed("/measurements/0/histogram/tick_ps", 0.into()), "damaged"),
        ("order", changed("/measurements/0/histogram/min", u64::MAX.into()), "damaged"),
        ("cpus", changed("/plan/cpus", "1-0".into()), "damaged"),
    ];
    for (name, text, word) in bad {
        let path = place.file(name, text);
        refused(&["show", &path], &[&path, word]);
        refused(&["cpu", "cycle", "--beside", &path], &[&path, word]);
    }
    refused(&["show", "/nonexistent/result.json"], &["/nonexistent/result.json"]);
    refused(&["show", "/"], &["cannot read /"]);
    // Cut off anywhere, as by a crash of another writer.
    for tenth in 1..20 {
        let path = place.file("cut", &text.as_bytes()[..text.len() * tenth / 20]);
        refused(&["show", &path], &["cut", "damaged"]);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error_of_ours() {
    let script = "set -o pipefail; \"$0\" list | head -n 1";
    let ran = end(&mut program(["bash", "-c", script, crate::support::BINARY]));
    ran.no_panic();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err, "");
}

#[test]
fn a_worker_started_by_hand_says_what_it_is() {
    for name in ["__worker", "__guardian"] {
        // The process that runs the tests may leave descriptors open.
        let script = format!("exec \"$0\" {name} 3>&- 4>&-");
        let ran = end(&mut program(["sh", "-c", &script, crate::support::BINARY]));
        ran.no_panic();
        assert!(ran.refused().contains("started by latscope itself"), "{ran:?}");
    }
    // Descriptors that are open, but are none of a coordinator's.
    let script = "exec \"$0\" __worker 3</dev/null 4</dev/null";
    let ran = end(&mut program(["sh", "-c", script, crate::support::BINARY]));
    ran.no_panic();
    assert!(ran.refused().contains("started by latscope itself"), "{ran:?}");
    let ran = end(&mut latscope(["__load"]));
    ran.no_panic();
    ran.refused();
}

#[test]
fn options_of_other_programs_are_usage_errors_that_name_ours() {
    for (words, named) in [
        (["wake", "-b", "100"], "such as 1000us"),
        (["wake", "-l", "1000"], "is --count N"),
        (["wake", "-h", "400"], "--csv-histogram FILE"),
        (["noise", "-d", "10s"], "is --duration T"),
    ] {
        // Exit code 1, never that of an exceeded criterion.
        let refused = run(&words).refused();
        assert!(refused.contains(named), "{refused}");
    }
}

#[test]
fn a_gate_without_limits_names_all_that_can_be_one() {
    let refused = run(&["gate", "my result.json"]).refused();
    for named in ["--budget FILE", "--baseline DIR", "latscope gate --learn 'my result.json' > budget.toml"] {
        assert!(refused.contains(named), "{refused}");
    }
}
