//! Programs for inter-process communication, and hackbench: their refusals, their counts, and their clean-up.

use crate::{done, dropin, root, run, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const PAIRS: [&str; 4] = ["pmqtest", "ptsematest", "sigwaittest", "svsematest"];

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let cases = [
        ("pmqtest", "-p 100", "-p 100: a priority is 0 to 99"),
        ("pmqtest", "-f 1", "-f needs -T: without it the receiver waits without end"),
        ("pmqtest", "-i x", "-i x is no number from 0 on"),
        ("pmqtest", "-i -5", "-i -5 is no number from 0 on"),
        ("pmqtest", "-t 5000", "-t 5000: 4096 are the most"),
        ("ptsematest", "-f", "invalid option -- 'f'"),
        ("ptsematest", "-T 3", "invalid option -- 'T'"),
        ("ptsematest", "-l", "option requires an argument -- 'l'"),
        ("svsematest", "-fr0", "-f r0: which end a process is cannot be given from outside"),
        ("sigwaittest", "--nope", "unrecognized option '--nope'"),
        ("signaltest", "-t 1", "-t 1: a circle has 2 threads at least"),
        ("signaltest", "-i 100", "invalid option -- 'i'"),
        ("hackbench", "-g 0", "-g 0 is no number from 1 to 100000"),
        ("hackbench", "-s 10x", "-s 10x is no number from 1 to 1073741824"),
        ("hackbench", "-p -i", "-p and -i exclude each other"),
    ];
    for (name, words, said) in cases {
        let output = run(name, words);
        assert_eq!(output.status.code(), Some(1), "{name} {words}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{name}: {said}\n"));
        assert!(output.stdout.starts_with(format!("{name} V 2.40\nUsage:\n").as_bytes()));
    }
    for (name, words, said) in [
        ("pmqtest", "-a 8000", "cpu argument 8000"),
        ("svsematest", "-D 1x", "no time"),
        ("hackbench", "-g 100000 -f 100000", "20,000,000,000 processes are too many here: "),
    ] {
        let output = run(name, words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1) && text.contains(said) && text.lines().count() == 1,
            "{text}"
        );
    }
}

#[test]
fn what_is_ignored_is_noted() {
    let output = run("hackbench", "-g 1 -l 1 10 process");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && text.lines().count() == 2 && text.contains("\"10\" is no option"),
        "{text}"
    );
    let output = run("ptsematest", "-q -S -t 7 -l 3x");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("-l 3x is taken as 3") && text.contains("-t is ignored: -S has one on each CPU"),
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_measurement() {
    let end = |name: &str| if ["oslat", "cyclicdeadline"].contains(&name) { "-D 1" } else { "-l 3" };
    let all = PAIRS.into_iter().chain(["cyclictest", "cyclicdeadline", "oslat"]);
    for (name, (strict, code)) in all.flat_map(|name| [("--strict-exit", 1), ("", 2)].map(|how| (name, how)))
    {
        let output = run(name, &format!("-q {} {strict} --json=/nonexistent/file", end(name)));
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        // Only oslat states its version.
        assert!(output.stdout.is_empty() || output.stdout.starts_with(b"oslat V "), "{output:?}");
        assert!(output.stdout.split(|byte| *byte == b'\n').count() <= 2, "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("Failed to open '/nonexistent/file'"), "{text}");
    }
}

#[test]
fn the_figures_hold_together_and_are_those_of_the_json() {
    for (name, words) in PAIRS
        .map(|name| (name, "-q -t2 -l 30 -i 500 --json=-"))
        .into_iter()
        .chain([("svsematest", "-f -q -l 30 --json=-"), ("sigwaittest", "-f -q -l 30 --json=-")])
    {
        let text = done(name, words);
        let (lines, json) = text.split_at(text.find("{\n").unwrap());
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let pairs = json["num_threads"].as_u64().unwrap() as usize;
        assert_eq!(lines.lines().count(), 2 * pairs);
        let samples = |pair: usize| json["thread"][pair.to_string()]["sender"]["samples"].as_u64().unwrap();
        assert_eq!(
            (0..pairs).map(samples).max(),
            Some(30),
            "{name}: the run ends with the first that is through"
        );
        for pair in 0..pairs {
            let receiver = &json["thread"][pair.to_string()]["receiver"];
            let [min, max] = ["min", "max"].map(|key| receiver[key].as_u64().unwrap());
            let average = receiver["avg"].as_f64().unwrap();
            assert!(min as f64 <= average && average <= (max + 1) as f64, "{name}: {receiver}");
            let end = format!("#{} -> #{}, Min {min:4}, Cur ", 2 * pair + 1, 2 * pair);
            assert!(lines.contains(&end) && lines.contains(&format!(", Max {max:4}\n")), "{name}: {lines}");
        }
    }
}

#[test]
fn a_circle_counts_its_turns_and_not_its_rests() {
    let text = done("signaltest", "-q -t3 -l 40 --json=-");
    let json: serde_json::Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
    for thread in ["0", "1", "2"] {
        let thread = &json["thread"][thread];
        assert_eq!(thread["cycles"], 40);
        // A rest in them would be 3 of 40 turns of 10 ms.
        assert!(thread["min"].as_u64().unwrap() > 0 && thread["avg"].as_f64() >= thread["min"].as_f64());
    }
    let verbose = done("signaltest", "-v -l 40");
    let told: Vec<&str> = verbose.lines().filter(|line| line.starts_with("       0:")).collect();
    assert_eq!(told.len(), 40);
    assert!(told.iter().zip(0..).all(|(line, cycle)| line[9..17].trim() == cycle.to_string()), "{verbose}");
}

#[test]
fn a_receiver_that_gives_up_counts_that_and_waits_again() {
    let text = done("pmqtest", "-q -T 1 -f 2 -l 1");
    let count = text.split("TO ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert!(count.parse::<u64>().unwrap() >= 1 && text.contains("Cycles 1\n"), "{text}");
    assert!(done("pmqtest", "-q -T 5 -l 20").contains("TO 0, Cycles 20\n"));
}

#[test]
fn a_limit_ends_the_run_and_touches_no_trace() {
    let code = |words: &str| run("pmqtest", words).status.code();
    assert_eq!(code("-q -b 1 -l 5000 -i 100"), Some(0));
    assert_eq!(code("-q -b 900000 -l 5 --strict-exit"), Some(0));
    let _tracing = crate::Tracing::kept();
    let on = || fs::read_to_string(crate::TRACING_ON).ok();
    let before = on();
    // The first ones are cold.
    assert_eq!(run("svsematest", "-f -q -b 1 -l 5000 -i 100 --strict-exit").status.code(), Some(2));
    assert_eq!(on(), before);
}

fn start(directory: &std::path::Path, name: &str, words: &str) -> Child {
    let mut command = dropin(directory, name);
    command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn a_signal_ends_the_run_with_its_figures() {
    let directory = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut child = start(directory.path(), "ptsematest", "-i 1000");
        let out = child.stdout.take().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
        // It runs once it has drawn.
        let first = lines.next().unwrap().unwrap();
        assert!(first.starts_with("#0: ID"), "{first}");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let last = lines.last().unwrap().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(last, "\x1b[2A\x1b[4B");
    }
}

/// Child processes whose command line contains this word.
fn children(of: u32, word: &str) -> Vec<(u32, Vec<String>)> {
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let process = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
        (parent == of && words.iter().any(|each| each == word)).then_some((id, words))
    };
    entries.filter_map(process).collect()
}

fn has_semaphores(id: &str) -> bool {
    let sets = fs::read_to_string("/proc/sysvipc/sem").unwrap();
    sets.lines().any(|line| line.split_whitespace().nth(1) == Some(id))
}

/// Ends a run of svsematest's processes. Asserts that its semaphores and processes go.
fn ends_without_leftovers(signal: Signal) {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), "svsematest", "-f -q");
    let endpoints = wait_for("two processes", || {
        Some(children(child.id(), "__paced")).filter(|endpoints| endpoints.len() == 2)
    });
    let set = endpoints[0].1[5].clone();
    assert!(has_semaphores(&set), "{endpoints:?}");
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
    wait_for("end of the semaphores", || (!has_semaphores(&set)).then_some(()));
    for (process, _) in endpoints {
        let gone = || !PathBuf::from(format!("/proc/{process}/cmdline")).exists();
        wait_for("end of the processes", || gone().then_some(()));
    }
}

#[test]
fn semaphores_and_processes_go_after_a_normal_end_and_after_sigkill() {
    ends_without_leftovers(Signal::TERM);
    ends_without_leftovers(Signal::KILL);
}

#[test]
fn queues_have_no_name_while_they_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), "pmqtest", "-q -t2");
    let queues = || {
        let entries = fs::read_dir(format!("/proc/{}/fd", child.id())).ok()?;
        let links = entries.map_while(Result::ok).filter_map(|entry| fs::read_link(entry.path()).ok());
        let names: Vec<String> = links.map(|link| link.display().to_string()).collect();
        let queues = names.into_iter().filter(|name| name.starts_with("/latscope-"));
        Some(queues.collect::<Vec<_>>()).filter(|queues| queues.len() == 4)
    };
    let queues = wait_for("queues", queues);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(queues.iter().all(|name| name.ends_with(" (deleted)")), "{queues:?}");
}

#[test]
fn an_endpoint_that_is_killed_ends_the_run_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = dropin(directory.path(), "sigwaittest");
    let child = command.args(["-f", "-q"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let endpoints = wait_for("two processes", || {
        Some(children(child.id(), "__paced")).filter(|endpoints| endpoints.len() == 2)
    });
    kill_process(Pid::from_raw(endpoints[1].0 as i32).unwrap(), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("an endpoint"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn hackbench_ends_with_its_processes_and_they_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let processes = |of: u32| Some(children(of, "-g")).filter(|processes| processes.len() == 40);
    let child = start(directory.path(), "hackbench", "-g 1 -l 1000000000");
    let killed = wait_for("40 processes", || processes(child.id()));
    kill_process(Pid::from_raw(killed[7].0 as i32).unwrap(), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.windows(5).any(|word| word == b"Time:"), "{output:?}");
    let mut child = start(directory.path(), "hackbench", "-g 1 -l 1000000000");
    let left = wait_for("40 processes", || processes(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    for (process, _) in killed.into_iter().chain(left) {
        let state = || fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        wait_for("end of the processes", || state().is_empty().then_some(()));
    }
}

#[test]
fn a_measurement_runs_beside_hackbench() {
    let directory = tempfile::tempdir().unwrap();
    let result = directory.path().join("result.json");
    for words in ["wake --count 50", "ipc --transport pipe --count 20"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latscope"));
        command.args(words.split(' ')).args(["--load", "hackbench", "--json"]).arg(&result);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&result).unwrap()).unwrap();
        assert_eq!(json["plan"]["load"], "hackbench");
        let warnings = json["warnings"].as_array().unwrap();
        assert!(warnings.iter().all(|warning| warning["id"] != "load-ended"), "{warnings:?}");
        assert!(json["measurements"][0]["summary"]["max"].as_f64() > Some(0.0));
    }
}

#[test]
fn priorities_go_down_and_stay_real_time() {
    if !root("priorities_go_down_and_stay_real_time") {
        return;
    }
    let text = done("svsematest", "-q -t3 -p 2 -l 3");
    let told: Vec<&str> = text.lines().filter_map(|line| line.split(", ").nth(1)).take(3).collect();
    assert_eq!(told, ["P2", "P1", "P1"]);
    assert_eq!(done("ptsematest", "-q -S -p 7 -l 3").matches("P7").count(), 4);
}
