//! Transactions between processes, over transports that every Linux has.

use crate::process::{Mark, send};
use crate::support::{
    NOBODY, Place, Ran, end, eventually, has_reason, is_ok, json, latscope, measurements, of_probe,
    on_a_full_disk, program, public_binary, reason, remedy, root, run, start, traceable, wait,
};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;

/// Runs `latscope ipc` with these words, which must succeed. Returns the result.
fn measured(words: &str) -> (Value, String) {
    let (ran, found) = tried(words);
    (found, ran.done())
}

fn tried(words: &str) -> (Ran, Value) {
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["ipc"].into_iter().chain(words.split_whitespace()).chain(["--json", &result]);
    let ran = end(&mut latscope(words));
    ran.no_panic();
    let found = json(&result);
    (ran, found)
}

/// Measurement with these parameters.
fn point<'a>(found: &'a Value, wanted: &[(&str, &str)]) -> &'a Value {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let is = |m: &&Value| wanted.iter().all(|(name, value)| text(&m["params"][*name]) == *value);
    measurements(found).iter().find(is).unwrap_or_else(|| panic!("no {wanted:?} in {found:#}"))
}

fn value(m: &Value, name: &str) -> f64 {
    m["values"][name]["value"].as_f64().unwrap_or_else(|| panic!("no {name} in {m:#}"))
}

fn count(m: &Value) -> u64 {
    m["summary"]["count"].as_u64().expect("a count")
}

#[test]
fn a_count_is_one_call_by_each_caller_of_each_pair() {
    let (found, shown) = measured("--transport pipe --placement same-core --count 200 --pairs 2");
    assert_eq!(of_probe(&found, "ipc.pipe").len(), 6);
    for caller in ["fifo", "other"] {
        for (pair, calls) in [("0", 200), ("1", 200), ("all", 400)] {
            let m = point(&found, &[("caller", caller), ("pair", pair)]);
            assert_eq!(count(m), calls, "{m:#}");
            assert_eq!(m["params"]["placement"], "same-core");
            assert_eq!((value(m, "failures"), value(m, "mismatches")), (0.0, 0.0));
            // On one CPU no process can be elsewhere.
            assert_eq!((value(m, "sync"), value(m, "migrated")), (100.0, 0.0), "{m:#}");
            assert!(value(m, "cpu-time") > 0.0);
            let contention = &m["contention"];
            assert!(contention["run_delay_ns"].as_u64() <= contention["wall_ns"].as_u64(), "{m:#}");
            assert!(contention["run_delay_ns"].is_u64() && value(m, "waited") <= 100.0, "{m:#}");
            assert_eq!(contention["distorts"], caller == "other", "{m:#}");
        }
    }
    for word in ["fifo, all pairs", "other, pair 1", "sync", "meet"] {
        assert!(shown.contains(word), "{word} in\n{shown}");
    }
}

#[test]
fn sockets_pass_no_priority_on_and_the_report_says_so() {
    let (found, shown) = measured("-t unix-stream --count 50");
    let m = point(&found, &[("caller", "fifo"), ("pair", "all")]);
    assert_eq!(m["params"]["inheritance"], "none");
    if let Some(calls) = m["values"]["rt-calls"]["value"].as_f64() {
        assert_eq!((value(m, "rt-inherited"), value(m, "rt-restored")), (0.0, calls));
    }
    assert!(
        !root("sockets_pass_no_priority_on_and_the_report_says_so") || shown.contains("UNSUPPORTED"),
        "{shown}"
    );
}

#[test]
fn every_transport_is_measured_or_its_reason_is_said() {
    let (found, shown) = measured("--transport all --count 20");
    let names: BTreeSet<&str> =
        measurements(&found).iter().map(|m| m["params"]["transport"].as_str().unwrap()).collect();
    assert!(names.contains("unix-stream") && names.contains("pipe") && names.contains("passthrough"));
    for name in names {
        let m = point(&found, &[("transport", name), ("caller", "other"), ("pair", "all")]);
        match m["quality"]["level"].as_str() {
            // What a kernel may be without; spinning takes two CPUs.
            Some("unsupported") => {
                assert!(
                    ["binder", "hwbinder", "vsock", "spin"].contains(&name) && !reason(m).is_empty(),
                    "{m:#}"
                );
            }
            _ => assert_eq!(count(m), 20, "{m:#}"),
        }
        assert!(shown.contains(name), "{name} in\n{shown}");
    }
    assert!(shown.contains("Transports beside each other"), "{shown}");
}

#[test]
fn throughput_is_bytes_by_the_time_of_the_calls() {
    let place = Place::new();
    let svg = place.at("figure.svg");
    let words = format!("-t unix-stream,passthrough --throughput --payload 4,64KiB --count 50 --svg {svg}");
    let (found, shown) = measured(&words);
    for (transport, payload) in [("unix-stream", 4.0), ("unix-stream", 65_536.0), ("passthrough", 65_536.0)] {
        let size = format!("{payload}");
        let m = point(&found, &[("transport", transport), ("payload", &size), ("pair", "all")]);
        assert_eq!((count(m), value(m, "mismatches")), (50, 0.0));
        // An echo tells nothing of the server.
        assert!(m["values"]["sync"].is_null() && m["values"]["uninherited"].is_null(), "{m:#}");
        let expected = payload * 50.0 * 1e9 / value(m, "wall-time");
        assert!((value(m, "throughput") / expected - 1.0).abs() < 1e-6, "{m:#}");
    }
    assert!(shown.contains("payload × iterations"), "{shown}");
    assert!(fs::read_to_string(&svg).unwrap().contains("<svg"));
}

#[test]
fn an_open_loop_counts_from_the_call_and_from_when_it_was_due() {
    let (found, _) = measured("-t pipe --count 100 --rate 2000");
    for caller in ["fifo", "other"] {
        let [call, due] = ["call", "due"]
            .map(|since| point(&found, &[("caller", caller), ("since", since), ("pair", "all")]));
        assert_eq!((count(call), count(due)), (100, 100));
        // No call begins before it is due.
        for figure in ["min", "p50", "max", "mean"] {
            let [call, due] = [call, due].map(|m| m["summary"][figure].as_f64().unwrap());
            assert!(due >= call, "{figure}: {due} since due, {call} since the call");
        }
    }
}

#[test]
fn one_way_is_recorded_by_the_server() {
    for transport in ["unix-stream", "futex"] {
        let (found, _) = measured(&format!("-t {transport} --one-way --count 100"));
        let m = point(&found, &[("caller", "other"), ("pair", "0")]);
        assert_eq!((count(m), m["times"].as_str()), (100, Some("one-way")), "{m:#}");
        assert!(is_ok(m), "{m:#}");
        assert!(m["values"]["sync"].is_null(), "{m:#}");
    }
}

#[test]
fn a_fresh_thread_for_each_call_changes_nothing_else() {
    let (found, _) = measured("-t pipe --fresh-thread --count 50 --each-call");
    let m = point(&found, &[("caller", "fifo"), ("pair", "0")]);
    assert_eq!((count(m), m["params"]["caller-thread"].as_str()), (50, Some("fresh")));
    let other = point(&found, &[("caller", "other"), ("pair", "0")]);
    assert_eq!(value(other, "uninherited"), 0.0, "{other:#}");
}

#[test]
fn each_call_over_the_deadline_is_a_miss_and_criteria_judge_them() {
    let (ran, found) = tried("-t pipe --count 50 --deadline 1ns --missed 0");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let m = point(&found, &[("caller", "other"), ("pair", "all")]);
    assert_eq!((value(m, "misses"), value(m, "meet")), (50.0, 0.0));
    assert_eq!(m["summary"]["missed"], 50);
    let (ran, found) = tried("-t pipe --count 50 --deadline 1000s --missed 0 --caller other");
    // Beside others that take its CPU a pass proves nothing.
    let is_ok = measurements(&found).iter().all(|m| m["quality"]["level"] == "ok");
    assert_eq!(ran.code, Some(if is_ok { 0 } else { 3 }), "{ran:#?}");
}

#[test]
fn verbose_tells_who_had_a_part() {
    let (found, shown) = measured("-t unix-stream --count 2 -v");
    let hops = point(&found, &[("caller", "fifo"), ("pair", "0")])["hops"].as_array().unwrap();
    let roles: Vec<&str> = hops.iter().map(|hop| hop["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["service", "client", "fifo-caller", "server", "fifo-caller", "server"]);
    assert_ne!(hops[0]["pid"], hops[1]["pid"]);
    assert_eq!((&hops[2]["pid"], &hops[3]["pid"]), (&hops[1]["pid"], &hops[0]["pid"]));
    assert!(shown.contains("server pid ") && shown.contains("First calls, hop by hop"), "{shown}");
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    for (words, said) in [
        ("-t pipe --pairs 0", "--pairs 0: it must be 1 to 1024"),
        ("-t pipe --payload 3", "--payload 3 has no room"),
        ("-t pipe --payload 1GiB", "choose at most"),
        ("-t pipe --priority 100", "--priority 100: it must be 1 to 99"),
        ("-t telepathy", "telepathy"),
        ("-t pipe --rate 0", "--rate"),
        ("--inversion --throughput", "--throughput"),
        ("--inversion --pairs 2", "--pairs"),
        ("-t pipe --one-way --trace x.dat", "--trace"),
        ("-t pipe --one-way --caller fifo,other", "--one-way measures one caller"),
        ("-t pipe --caller other --fresh-thread", "--fresh-thread is about the SCHED_FIFO caller"),
        ("-t pipe --each-call --payload 16", "--payload 16 has no room"),
    ] {
        let words: Vec<&str> = ["ipc"].into_iter().chain(words.split_whitespace()).collect();
        let line = run(&words).refused();
        assert!(line.contains(said), "{line}");
    }
    for role in ["server", "client", "other"] {
        assert_eq!(run(&["__ipc", role]).code, Some(1));
    }
}

#[test]
fn more_pairs_than_cpus_are_warned_of() {
    let pairs = rustix::thread::sched_getaffinity(None).unwrap().count() + 1;
    let (found, _) = measured(&format!("-t pipe --count 5 --pairs {pairs}"));
    let ids: Vec<&str> =
        found["warnings"].as_array().unwrap().iter().map(|w| w["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"pairs") && ids.contains(&"real-time-threads"), "{ids:?}");
}

#[test]
fn a_spinning_pair_on_one_cpu_is_refused_with_the_remedy() {
    for placement in ["same-core", "free"] {
        let line = run(&["ipc", "-t", "spin", "--placement", placement, "--count", "5", "-q"]).refused();
        assert!(line.contains("both processes spin"), "{line}");
    }
}

/// Run of some seconds over a transport, which has begun.
struct Begun {
    _place: Place,
    result: String,
    child: std::process::Child,
    mark: Mark,
}

fn begun(transport: &str) -> Begun {
    let place = Place::new();
    let result = place.at("result.json");
    let mut command = latscope(["ipc", "-t", transport, "--duration", "100s", "--json", &result]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    mark.wait_for("__ipc client");
    // It has made calls when it has used some time.
    eventually("calls are made", || {
        let client = mark.processes().into_iter().find(|process| process.command.contains("__ipc client"))?;
        let schedule = fs::read_to_string(format!("/proc/{}/schedstat", client.pid)).ok()?;
        let used: u64 = schedule.split_whitespace().next()?.parse().ok()?;
        (used > 50_000_000).then_some(())
    });
    Begun { _place: place, result, child, mark }
}

#[test]
fn a_server_killed_in_mid_call_is_reported_and_nothing_hangs() {
    for transport in ["unix-stream", "futex"] {
        let Begun { _place, result, child, mark } = begun(transport);
        send(Signal::KILL, mark.wait_for("__ipc server").pid);
        let ran = wait(child);
        ran.no_panic();
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        let found = json(&result);
        let probe = format!("ipc.{transport}");
        let rows = of_probe(&found, &probe);
        has_reason(&rows, "degraded", "signal: 9");
        // What was measured until then is kept.
        assert!(rows.iter().all(|m| count(m) > 0), "{found:#}");
        mark.wait_for_none();
    }
}

#[test]
fn a_client_that_is_killed_is_reported_too() {
    let Begun { _place, result, child, mark } = begun("pipe");
    send(Signal::KILL, mark.wait_for("__ipc client").pid);
    wait(child).no_panic();
    has_reason(&of_probe(&json(&result), "ipc.pipe"), "degraded", "the client ended: signal: 9");
    mark.wait_for_none();
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    let Begun { _place, child, mark, .. } = begun("sysv-mq");
    let pids: Vec<String> = mark.processes().iter().map(|process| process.pid.to_string()).collect();
    // Queues whose last sender is of this run, by their numbers.
    let queues = || -> Vec<String> {
        let table = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
        let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours =
            words.filter(|words| words.get(5).is_some_and(|sender| pids.contains(&(*sender).to_owned())));
        ours.map(|words| words[1].to_owned()).collect()
    };
    assert!(!queues().is_empty());
    send(Signal::KILL, child.id() as i32);
    wait(child);
    mark.wait_for_none();
    eventually("the queues are gone", || queues().is_empty().then_some(()));
}

#[test]
fn an_interrupted_run_ends_with_what_there_is() {
    let Begun { _place, result, child, mark } = begun("pipe");
    send(Signal::INT, child.id() as i32);
    let ran = wait(child);
    ran.no_panic();
    let found = json(&result);
    let m = point(&found, &[("caller", "other"), ("pair", "all")]);
    assert!(count(m) > 0 && m["quality"]["level"] != "unsupported", "{m:#}");
    mark.wait_for_none();
}

#[test]
fn without_permission_the_fifo_row_is_degraded_and_says_why() {
    if !root("without_permission_the_fifo_row_is_degraded_and_says_why") {
        return;
    }
    let (_copy, binary) = public_binary();
    let words = [binary.to_str().unwrap(), "ipc", "-t", "pipe", "--count", "20", "--json", "-", "-q"];
    let out = end(program(words).uid(NOBODY).gid(NOBODY).current_dir("/")).done();
    let found = crate::support::parsed(&out);
    let fifo = point(&found, &[("caller", "fifo"), ("pair", "0")]);
    has_reason(&[fifo], "degraded", "SCHED_FIFO");
    assert!(remedy(fifo).contains("ulimit -r"), "{fifo:#}");
    assert!(is_ok(point(&found, &[("caller", "other"), ("pair", "0")])));
    assert!(fifo["values"]["rt-calls"].is_null(), "{fifo:#}");
}

#[test]
fn a_lock_with_inheritance_does_not_wait_for_the_hog() {
    if !root("a_lock_with_inheritance_does_not_wait_for_the_hog") {
        return;
    }
    let (found, shown) = measured("--inversion --count 5");
    let [plain, pi] = ["plain", "pi"].map(|lock| point(&found, &[("lock", lock)]));
    assert_eq!((count(plain), count(pi)), (5, 5));
    let hog = plain["params"]["hog"].as_f64().unwrap();
    assert!(plain["summary"]["min"].as_f64().unwrap() >= hog, "{plain:#}");
    assert!(shown.contains("Priority inversion:"), "{shown}");
}

#[test]
fn without_permission_there_is_no_inversion_and_the_reason_is_said() {
    if !root("without_permission_there_is_no_inversion_and_the_reason_is_said") {
        return;
    }
    let (_copy, binary) = public_binary();
    let words = [binary.to_str().unwrap(), "ipc", "--inversion", "--count", "2", "-q"];
    let ran = end(program(words).uid(NOBODY).gid(NOBODY).current_dir("/"));
    assert!(ran.refused().contains("SCHED_FIFO"));
}

#[test]
fn the_first_miss_ends_a_traced_run_and_the_trace_is_saved() {
    let name = "the_first_miss_ends_a_traced_run_and_the_trace_is_saved";
    if !traceable(name) {
        return;
    }
    let place = Place::new();
    let trace = place.at("trace.dat");
    let (ran, found) = tried(&format!("-t pipe --count 100000 --deadline 1ns --trace {trace}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let rows = of_probe(&found, "ipc.pipe");
    assert!(rows.iter().all(|m| count(m) <= 1), "{found:#}");
    let outliers: Vec<&Value> =
        rows.iter().flat_map(|m| m["outliers"].as_array().into_iter().flatten()).collect();
    assert!(!outliers.is_empty(), "{found:#}");
    assert!(fs::metadata(&trace).unwrap().len() > 0);
    assert!(ran.out.contains("Longest events") && ran.out.contains("Verdict: exceeded"), "{}", ran.out);
    // Without a miss that is said, and there is no file.
    let none = place.at("none.dat");
    let (_, shown) = measured(&format!("-t pipe --caller fifo --count 100 --deadline 100s --trace {none}"));
    assert!(shown.contains("there is no trace in"), "{shown}");
    assert!(!fs::exists(none).unwrap());
    // Where it cannot be saved, that is an error, and no part of it is left.
    let result = place.at("result.json");
    let words = "ipc -t pipe --count 100000 --deadline 1ns --json".split(' ').chain([&*result, "--trace"]);
    let ran = end(&mut on_a_full_disk(&words.collect::<Vec<_>>(), &place));
    ran.no_panic();
    let found = json(&result);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("the trace is not saved"), "{ran:#?}");
    assert!(of_probe(&found, "ipc.pipe").iter().any(|m| count(m) > 0), "{found:#}");
}

#[test]
fn of_all_transports_those_that_are_not_here_are_listed_and_not_judged() {
    // A busy machine may make others inconclusive.
    let judged = |words: &str| {
        let (ran, found) = tried(words);
        for m in measurements(&found).iter().filter(|m| m["quality"]["level"] == "unsupported") {
            assert!(ran.out.contains(m["params"]["transport"].as_str().unwrap()), "{}", ran.out);
        }
        let is = |m: &Value| m["quality"]["level"] == "unsupported" && !m["verdict"].is_null();
        let lacking = measurements(&found).iter().filter(|m| m["quality"]["level"] == "unsupported").count();
        (measurements(&found).iter().any(is), lacking > 0)
    };
    let (of_all, _) = judged("-t all --count 20 --caller other --missed 1000000");
    assert!(!of_all);
    let (by_name, lacking) = judged("-t binder,pipe --count 20 --caller other --missed 1000000");
    assert_eq!(by_name, lacking);
}
