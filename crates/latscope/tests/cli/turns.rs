//! Runs that wait for each other, and their progress in a log.

use crate::support::{Place, end, eventually, json, latscope, measured, run, start, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::Command;

fn with_lock<'a>(place: &Place, command: &'a mut Command) -> &'a mut Command {
    command.env("LATSCOPE_LOCK_DIR", place.path())
}

#[test]
fn a_run_waits_for_another_one_and_names_it() {
    let place = Place::new();
    let endless =
        ["wake", "--policy", "other", "--interval", "10ms", "--duration", "1h", "--progress", "none"];
    let first = start(with_lock(&place, &mut latscope(endless)));
    let short = ["cpu", "cycle", "--count", "2", "--json", &place.at("r.json"), "--wait"];
    let refused = eventually("the first run has begun", || {
        let ran = end(with_lock(&place, latscope(short).arg("1ms")));
        (ran.code == Some(1)).then_some(ran)
    });
    let line = refused.err.lines().last().unwrap_or_default().to_owned();
    assert!(line.contains(&format!("another latscope (pid {}", first.id())), "{line}");
    assert!(line.contains("still runs") && line.contains("--wait 1ms"), "{line}");
    let mut waiting = start(with_lock(&place, latscope(short).arg("3m")));
    let mut said = String::new();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap());
    lines.read_line(&mut said).unwrap();
    assert!(said.starts_with("latscope: waiting for another latscope (pid "), "{said}");
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    wait(first);
    // The rest of its words is read, so that it can write them.
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    assert!(waiting.wait().unwrap().success());
    measured(&json(place.at("r.json")), "cpu.cycle");
}

#[test]
fn a_planted_link_is_not_followed() {
    let place = Place::new();
    symlink(place.at("target"), place.at("latscope.lock")).unwrap();
    let words = ["cpu", "cycle", "--count", "2", "--quiet"];
    end(with_lock(&place, &mut latscope(words))).done();
    let ran = end(with_lock(&place, latscope(words).args(["--wait", "1s"])));
    assert!(ran.refused().contains("no place for the lock"), "{ran:?}");
    assert!(fs::symlink_metadata(place.at("target")).is_err());
}

#[test]
fn a_log_has_few_lines_of_progress() {
    let words = ["survey", "--quick", "--count", "2", "--only", "cpu,sync,syscall,thread", "--progress"];
    for style in ["auto", "plain"] {
        let ran = end(latscope(words).arg(style));
        let lines: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("measuring ")).collect();
        let families = ["cpu", "sync", "syscall", "thread"];
        assert!(!lines.is_empty() && lines.len() < 3 * families.len(), "{style}: {}", ran.err);
        assert!(!ran.err.contains('\r'), "{}", ran.err);
        assert!(!ran.done().is_empty());
    }
    let ran = end(latscope(words).arg("bar"));
    assert!(ran.err.starts_with("\r\u{1b}[K"), "{}", ran.err);
    let ran = end(latscope(words).arg("none"));
    assert_eq!(ran.err, "");
    assert!(!ran.done().is_empty());
    let line = run(&["wake", "--count", "2", "--progress", "bar"]).refused();
    assert!(line.contains("terminal"), "{line}");
    let lines = run(&["wake", "--count", "2", "--policy", "other", "--progress", "plain"]);
    assert!(lines.err.starts_with("measuring wake"), "{}", lines.err);
}
