//! Runs that stood still for a while, or until their end: what they say must be true.

use crate::support::{BINARY, Place, eventually, json, latscope, measurements, needs, program};
use crate::{Running, skipped};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;
use std::{fs, thread};

/// Runs of two seconds.
const CALLS: [&str; 3] = [
    "noise --policy other --duration 2s --no-live -q --json result.json",
    "noise --policy fifo --duration 2s --no-live -q --json result.json",
    "wake --work 50us --duration 2s --no-live -q --json result.json",
];

const CYCLICTEST: &str = "as cyclictest -q --default-system -D 2 --strict-exit";

/// Waits until there is a measuring thread, and a moment, of which the run has two seconds.
fn measures(running: &Running) {
    eventually("a thread measures", || {
        let worker = running.mark.processes().into_iter().find(|one| one.command.contains("__worker"))?;
        let tasks = fs::read_dir(format!("/proc/{}/task", worker.pid)).ok()?.flatten();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let measures = |name: String| name.starts_with("wake/") || name.starts_with("noise/");
        tasks.map(name).any(measures).then_some(())
    });
    thread::sleep(Duration::from_millis(300));
}

fn started(call: &str) -> Running {
    let place = Place::new();
    let mut command = latscope(call.split_whitespace());
    command.current_dir(place.path());
    let running = Running::start(command, place);
    measures(&running);
    running
}

/// Asserts that each row says that the run stood still, and names no thread that had the CPU.
#[track_caller]
fn is_told(running: Running) {
    let (ran, place) = running.ended(&["result.json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let result: Value = json(place.at("result.json"));
    assert!(!result["warnings"].to_string().contains("not-run"), "{result:#}");
    for m in measurements(&result) {
        let reasons = m["quality"]["reasons"].as_array().unwrap();
        let has = |id: &str| reasons.iter().any(|reason| reason["id"] == id);
        assert!(has("halted") && !has("not-run") && m["quality"]["level"] == "degraded", "{m:#}");
        let [count, missed] = ["count", "missed"].map(|name| m["summary"][name].as_u64().unwrap());
        let (of_wake, of_one) =
            (m["probe"].as_str().unwrap().starts_with("wake."), m["params"]["cpu"] != "all");
        assert!(!of_wake || !of_one || count + missed == 2000, "{count} and {missed} of 2000: {m:#}");
    }
}

/// Asserts that a cyclictest that stood still is not judged.
#[track_caller]
fn is_not_judged(running: Running) {
    let (ran, _) = running.ended(&[]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
}

#[test]
fn runs_whose_worker_was_stopped_until_their_end() {
    for call in CALLS.into_iter().chain([CYCLICTEST]) {
        let running = started(call);
        crate::process::send(Signal::STOP, running.mark.wait_for("__worker").pid);
        if call == CYCLICTEST { is_not_judged(running) } else { is_told(running) }
    }
}

#[test]
fn runs_that_were_stopped_in_between() {
    for call in CALLS.into_iter().chain([CYCLICTEST]) {
        let running = started(call);
        let worker = running.mark.wait_for("__worker").pid;
        crate::process::send(Signal::STOP, worker);
        thread::sleep(Duration::from_millis(700));
        crate::process::send(Signal::CONT, worker);
        if call == CYCLICTEST { is_not_judged(running) } else { is_told(running) }
    }
}

/// Control group of the first version, removed when dropped.
struct Group(String);

impl Group {
    fn new(name: &str) -> Group {
        let group = Group(format!("/sys/fs/cgroup/freezer/latscope-halts-{}-{name}", std::process::id()));
        fs::create_dir(&group.0).unwrap();
        group
    }

    fn set(&self, state: &str) {
        fs::write(format!("{}/freezer.state", self.0), state).unwrap();
    }

    /// Starts a run in the group.
    fn start(&self, call: &str) -> Running {
        let (place, script) = (Place::new(), "echo $$ >\"$0\"/cgroup.procs; exec \"$@\"");
        let words = ["sh", "-c", script, &self.0, BINARY].into_iter().chain(call.split_whitespace());
        let mut command = program(words);
        command.current_dir(place.path());
        let running = Running::start(command, place);
        measures(&running);
        running
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.set("THAWED");
        eventually("it is empty", || fs::remove_dir(&self.0).ok());
    }
}

#[test]
fn runs_that_were_frozen() {
    let name = "halts::runs_that_were_frozen";
    let there = fs::metadata("/sys/fs/cgroup/freezer/cgroup.procs").is_ok();
    if !skipped::root(name) || !needs(name, there, "it needs the freezer of control groups, version 1") {
        return;
    }
    // In between, and until after the end.
    for time in [900, 2500] {
        for (number, call) in CALLS.into_iter().chain([CYCLICTEST]).enumerate() {
            let group = Group::new(&format!("{time}-{number}"));
            let running = group.start(call);
            group.set("FROZEN");
            thread::sleep(Duration::from_millis(time));
            group.set("THAWED");
            if call == CYCLICTEST { is_not_judged(running) } else { is_told(running) }
        }
    }
}
