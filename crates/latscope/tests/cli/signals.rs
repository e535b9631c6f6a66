//! Signals and crashes in the middle of a run: measured values are kept, and nothing stays behind.

use crate::process::{Mark, send, signal};
use crate::programs::write_script;
use crate::support::{
    Place, end, eventually, has_reason, json, latscope, measured, names, of_probe, reason, run, start,
    traceable, wait,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// Survey of two quick probes and a long probe that makes files, in the middle of the long probe.
struct InMidRun {
    place: Place,
    child: Child,
    mark: Mark,
    scratch: String,
    result: String,
}

impl InMidRun {
    fn new() -> InMidRun {
        let place = Place::new();
        let (scratch, result) = (place.directory("scratch"), place.at("result.json"));
        let only = "cpu.cycle,sync.mutex,file.write,file.stat,wake";
        // Two short steps are over before the long one, which no test waits out.
        let words = ["survey", "--quick", "--rounds", "1", "--only", only, "--duration", "1500ms"];
        let mut command = latscope(words);
        command.args(["--dir", &scratch, "--json", &result]).current_dir(place.path());
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        let made = || fs::read_dir(&scratch).ok()?.flatten().find(|entry| !is_empty(&entry.path()));
        eventually("files are made", made);
        InMidRun { place, child, mark, scratch, result }
    }

    fn nothing_left(&self) {
        self.mark.wait_for_none();
        assert!(names(&self.scratch).is_empty(), "{:?}", names(&self.scratch));
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}

fn ends_with_what_there_is(which: Signal) {
    let run = InMidRun::new();
    signal(&run.child, which);
    let InMidRun { place, child, mark, scratch, result } = run;
    let ran = wait(child);
    ran.no_panic();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.out.contains("INCOMPLETE"), "{}", ran.out);
    for row in ["core cycle", "mutex lock"] {
        assert!(ran.out.contains(row), "{}", ran.out);
    }
    let found = json(&result);
    assert!(found["finished"].is_null());
    for probe in ["cpu.cycle", "sync.mutex"] {
        measured(&found, probe);
        assert!(of_probe(&found, probe).iter().all(|m| m["incomplete"].is_null()), "{probe}");
    }
    let begun = of_probe(&found, "file.write");
    assert!(!begun.is_empty());
    for m in begun {
        assert!(m["incomplete"] == true && reason(m).contains("interrupted"), "{m:#}");
    }
    assert!(of_probe(&found, "wake.timer").is_empty());
    mark.wait_for_none();
    assert!(names(&scratch).is_empty());
    assert_eq!(names(place.path()), ["result.json", "scratch"]);
    // The file says so too, later and elsewhere.
    let shown = crate::support::run(&["show", &result]).done();
    assert_eq!(shown, ran.out);
}

#[test]
fn an_interrupt_ends_with_what_there_is() {
    ends_with_what_there_is(Signal::INT);
}

#[test]
fn a_request_to_terminate_ends_with_what_there_is() {
    ends_with_what_there_is(Signal::TERM);
}

#[test]
fn after_a_kill_nothing_stays_and_the_file_is_whole() {
    let run = InMidRun::new();
    run.mark.wait_for("__worker");
    run.mark.wait_for("__guardian");
    // What is saved is saved at most a second later than measured.
    eventually("a first result is saved", || Path::new(&run.result).exists().then_some(()));
    signal(&run.child, Signal::KILL);
    run.nothing_left();
    let ran = wait(run.child);
    assert_eq!(ran.code, None);
    let found = json(&run.result);
    assert!(found["finished"].is_null());
    measured(&found, "cpu.cycle");
    assert!(crate::support::run(&["show", &run.result]).done().contains("INCOMPLETE"));
    drop(run.place);
}

#[test]
fn after_a_kill_the_file_has_what_was_saved_of_a_long_row() {
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["wake", "--duration", "600s", "--interval", "2ms", "-b", "1ns", "--quiet"];
    let mut command = latscope(words);
    command.args(["--save-every", "1s", "--json", &result]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let saved = || Path::new(&result).exists().then(|| json(&result));
    let first = eventually("a first state is saved", saved);
    let count = |found: &Value| of_probe(found, "wake.timer")[0]["summary"]["count"].as_u64();
    eventually("a later state is saved", || (count(&json(&result)) > count(&first)).then_some(()));
    signal(&child, Signal::KILL);
    assert_eq!(wait(child).code, None);
    mark.wait_for_none();
    let found = json(&result);
    assert!(found["finished"].is_null());
    for m in of_probe(&found, "wake.timer") {
        assert!(m["summary"]["count"].as_u64() > Some(0), "{m:#}");
        assert!(m["incomplete"] == true && reason(m).contains("saved while"), "{m:#}");
        assert!(!m["outliers"].as_array().unwrap().is_empty(), "{m:#}");
    }
    // The threshold was exceeded until then.
    let shown = crate::support::run(&["show", &result]);
    assert!(shown.code == Some(2) && shown.out.contains("INCOMPLETE"), "{shown:#?}");
    assert_eq!(names(place.path()), ["result.json"]);
}

#[test]
fn a_terminal_that_is_gone_ends_the_run() {
    let run = InMidRun::new();
    signal(&run.child, Signal::HUP);
    run.nothing_left();
    let ran = wait(run.child);
    assert_eq!(ran.code, Some(1));
    assert!(json(&run.result)["finished"].is_null());
}

#[test]
fn a_second_interrupt_changes_nothing() {
    let run = InMidRun::new();
    signal(&run.child, Signal::INT);
    signal(&run.child, Signal::INT);
    signal(&run.child, Signal::TERM);
    run.nothing_left();
    let ran = wait(run.child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("INCOMPLETE"));
}

#[test]
fn a_worker_that_crashes_costs_its_points_only() {
    let place = Place::new();
    let result = place.at("result.json");
    let words =
        ["survey", "--quick", "--only", "cpu.cycle,sync.mutex", "--duration", "2s", "--json", &result];
    // Rust lets a first SIGSEGV pass that no access caused.
    for fatal in [Signal::ILL, Signal::KILL] {
        let mut command = latscope(words);
        command.current_dir(place.path());
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        let worker = mark.wait_for("__worker");
        send(fatal, worker.pid);
        let ran = wait(child);
        ran.no_panic();
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let found = json(&result);
        assert!(found["finished"].is_string());
        let crashed = of_probe(&found, "cpu.cycle");
        assert!(crashed.iter().all(|m| m["incomplete"] == true), "{crashed:#?}");
        for m in &crashed {
            let reason = reason(m);
            assert!(reason.contains("the worker process ended early (signal"), "{reason}");
        }
        measured(&found, "sync.mutex");
        assert!(ran.out.contains("ended early"), "{}", ran.out);
        mark.wait_for_none();
    }
}

/// Stops a process of a run for 0.7 s, and asserts that no limit is judged by that.
fn is_not_judged_by_a_stop(words: &[&str], stopped: &str, probe: &str) {
    let place = Place::new();
    let result = place.at("result.json");
    let mut command = latscope(words);
    command.args(["--duration", "3s", "--max", "500ms", "--json", &result]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let process = mark.wait_for(stopped);
    std::thread::sleep(Duration::from_secs(1));
    send(Signal::STOP, process.pid);
    std::thread::sleep(Duration::from_millis(700));
    send(Signal::CONT, process.pid);
    let ran = wait(child);
    ran.no_panic();
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.out.contains("max ≤ 500 ms inconclusive"), "{}", ran.out);
    has_reason(&of_probe(&json(&result), probe), "degraded", "stopped by a signal");
    mark.wait_for_none();
}

#[test]
fn a_limit_is_not_judged_by_a_run_that_a_signal_stopped() {
    is_not_judged_by_a_stop(&["wake"], "__worker", "wake.timer");
}

#[test]
fn a_limit_is_not_judged_by_a_server_that_a_signal_stopped() {
    is_not_judged_by_a_stop(&["ipc", "--caller", "other"], "__ipc server", "ipc.unix-stream");
}

#[test]
fn a_worker_that_hangs_does_not_hold_up_an_interrupt() {
    let mut command = latscope(["cpu", "cycle", "--duration", "60s", "--json", "-"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let worker = mark.wait_for("__worker");
    send(Signal::STOP, worker.pid);
    signal(&child, Signal::INT);
    let ran = wait(child);
    ran.no_panic();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    mark.wait_for_none();
}

#[test]
fn the_guardian_survives_the_terminal_and_its_death_is_told() {
    let place = Place::new();
    let (scratch, result) = (place.directory("scratch"), place.at("result.json"));
    let only = "cpu.cycle,sync.mutex,file.read,file.stat";
    let words = ["survey", "--quick", "--rounds", "1", "--only", only, "--duration", "2s"];
    let mut command = latscope(words);
    command.args(["--dir", &scratch, "--json", &result]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let guardian = mark.wait_for("__guardian");
    mark.wait_for("__worker");
    eventually("it ignores an interrupt", || ignores(guardian.pid, Signal::INT).then_some(()));
    // What a terminal would send to all of the group.
    send(Signal::INT, guardian.pid);
    assert!(mark.processes().contains(&guardian));
    send(Signal::KILL, guardian.pid);
    let ran = wait(child);
    ran.no_panic();
    // Without a guardian nothing is made that it would have to remove.
    let found = json(&result);
    has_reason(&of_probe(&found, "file.stat"), "unsupported", "guardian");
    measured(&found, "cpu.cycle");
    measured(&found, "sync.mutex");
    assert!(names(&scratch).is_empty());
    mark.wait_for_none();
}

#[test]
fn load_ends_with_the_run_however_that_ends() {
    let mut command = latscope(["cpu", "cycle", "--duration", "20s", "--load", "cpu", "--quiet"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    mark.wait_for("__load");
    mark.wait_for("__worker");
    signal(&child, Signal::KILL);
    mark.wait_for_none();
    wait(child);

    let mut command = latscope(["cpu", "cycle", "--duration", "20s", "--load", "exec sleep 1000", "--quiet"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    mark.wait_for("sleep 1000");
    mark.wait_for("__worker");
    signal(&child, Signal::INT);
    let ran = wait(child);
    assert_eq!(ran.code, Some(1));
    // An error is no error without a line.
    assert!(ran.err.contains("SIGINT") && ran.err.lines().count() == 1, "{ran:?}");
    mark.wait_for_none();

    // The shell's own children do not die with it, however the run ends.
    for how in [Signal::KILL, Signal::INT] {
        let mut command = latscope(["wake", "--duration", "60s", "--load", "sleep 1000; :", "--quiet"]);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        mark.wait_for("sleep 1000");
        mark.wait_for("__worker");
        signal(&child, how);
        wait(child);
        mark.wait_for_none();
    }
}

#[test]
fn a_signal_before_the_run_listens_is_heard() {
    let place = Place::new();
    // The shell is asked whether there is such a load: long before the run.
    write_script(place.at("sh"), "#!/bin/sh\nkill -INT $PPID\nexec /bin/sh \"$@\"\n");
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let cpu = ["cpu", "cycle", "--duration", "20s", "--load", "sleep 1000"];
    let ran = end(latscope(cpu).env("PATH", &path));
    ran.no_panic();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("interrupted by SIGINT before anything was measured"), "{ran:?}");
    let wake = ["wake", "--duration", "60s", "--load", "sleep 1000", "--max", "1h"];
    let ran = end(latscope(wake).env("PATH", &path));
    ran.no_panic();
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn under_a_load_that_ended_nothing_passes_and_what_exceeds_does() {
    let place = Place::new();
    let result = place.at("result.json");
    let wake = ["wake", "--duration", "300ms", "--load", "false"];
    let noise = ["noise", "--duration", "300ms", "--load", "exit 3"];
    let ipc = ["ipc", "--count", "20", "--load", "exit 3", "--transport", "pipe"];
    let cases = [(&wake[..], "wake.timer"), (&noise, "noise.busy"), (&ipc, "ipc.pipe")];
    for (words, probe) in cases {
        for (limit, code) in [("1h", 3), ("1ns", 2)] {
            let ran = end(latscope(words).args(["--max", limit, "--json", &result]));
            ran.no_panic();
            assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
            assert!(ran.err.contains("the load ended before the measurement did"), "{ran:?}");
            let found = json(&result);
            has_reason(&of_probe(&found, probe), "degraded", "the load ended");
        }
    }
    let ran = end(&mut latscope(["cpu", "cycle", "--duration", "300ms", "--load", "exit 3"]));
    assert!(ran.err.contains("the load ended before the measurement did"), "{ran:?}");
    ran.done();
}

#[test]
fn every_load_of_latscope_runs_on_and_what_does_nothing_is_reported() {
    let place = Place::new();
    let result = place.at("result.json");
    let loaded = |load: &str, duration: &str| {
        let words = ["cpu", "cycle", "--duration", duration, "--load", load, "--json", &result, "--quiet"];
        end(latscope(words).current_dir(place.path())).done();
        let found = json(&result);
        let warnings = found["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["id"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    for (name, ..) in latscope_core::plan::BackgroundLoad::BUILT_IN {
        if name == "pi-storm" && !crate::support::root("every_load_of_latscope_runs_on (pi-storm)") {
            continue;
        }
        let warnings = loaded(name, "100ms");
        assert!(!warnings.iter().any(|id| id.starts_with("load-")), "{name}: {warnings:?}");
        assert_eq!(json(&result)["plan"]["load"], name);
    }
    assert!(loaded("sleep 1000", "1300ms").contains(&"load-idle".to_owned()));
    assert!(!loaded("while :; do :; done", "1300ms").contains(&"load-idle".to_owned()));
    assert_eq!(names(place.path()), ["result.json"]);
}

#[test]
fn a_trace_instance_goes_with_the_run() {
    if !traceable("a_trace_instance_goes_with_the_run") {
        return;
    }
    let tracefs = "/sys/kernel/tracing";
    let instances =
        || names(format!("{tracefs}/instances")).into_iter().filter(|name| name.starts_with("latscope"));
    let place = Place::new();
    let file = place.at("timeline.json");
    let timeline = ["sync", "mutex", "--duration", "60s", "--timeline", &file, "--quiet"];
    let blame = ["wake", "--duration", "60s", "--interval", "10ms", "--threshold", "10s", "--quiet"];
    let runs = [Signal::INT, Signal::KILL].map(|which| [(&timeline[..], which), (&blame[..], which)]);
    for (words, which) in runs.into_iter().flatten() {
        let mut command = latscope(words);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        let id = child.id().to_string();
        let ours = || instances().find(|name| name.contains(&id));
        eventually("a trace instance is made", ours);
        mark.wait_for("__worker");
        signal(&child, which);
        wait(child);
        mark.wait_for_none();
        eventually("the trace instance is gone", || ours().is_none().then_some(()));
    }
}

#[test]
fn a_run_without_a_figure_keeps_the_earlier_result() {
    let place = Place::new();
    let result = place.at("result.json.gz");
    run(&["cpu", "cycle", "--quick", "--quiet", "--json", &result]).done();
    let earlier = fs::read(&result).unwrap();
    // No point is done at this time: the first one lasts longer.
    let child = start(&mut latscope([
        "cpu", "cycle", "--duration", "60s", "--rounds", "1", "--quiet", "--json", &result,
    ]));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    has_a_child(child.id());
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = wait(child);
    if ran.err.contains("before anything was measured") {
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.err.contains("keeps its earlier result"), "{ran:#?}");
        assert_eq!(fs::read(&result).unwrap(), earlier);
    } else {
        // It had measured a part by then, which replaces the file.
        assert_ne!(fs::read(&result).unwrap(), earlier, "{ran:#?}");
    }
}

#[test]
fn an_interrupted_check_of_the_list_is_no_success() {
    let child = start(&mut latscope(["list", "--check"]));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    has_a_child(child.id());
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = wait(child);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("the check is incomplete"), "{ran:#?}");
}

/// Waits until a run has started a process.
fn has_a_child(id: u32) {
    eventually("a process was started", || {
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        (!children.trim().is_empty()).then_some(())
    });
}

/// Returns true if a process ignores a signal by now.
fn ignores(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}
