//! Messages to a remote, which so far is a process of our own.

use crate::process::{Mark, send};
use crate::support::{Place, end, has_reason, json, latscope, measurements, of_probe, run, start, wait};
use rustix::process::Signal;
use serde_json::Value;

const LOSSES: [&str; 6] = ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"];

fn measured(words: &str) -> Value {
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["remote"].into_iter().chain(words.split_whitespace()).chain(["--json", &result]);
    end(&mut latscope(words)).done();
    json(&result)
}

#[test]
fn every_ping_comes_back_whole() {
    let found = measured("--count 300");
    assert_eq!(measurements(&found).len(), 4);
    for m in measurements(&found) {
        assert_eq!(
            (m["summary"]["count"].as_u64(), m["times"].as_str()),
            (Some(300), Some("round-trip")),
            "{m:#}"
        );
        for name in LOSSES {
            assert_eq!(m["values"][name]["value"].as_f64(), Some(0.0), "{name}: {m:#}");
        }
    }
}

#[test]
fn a_probe_and_a_way_to_wait_can_be_chosen() {
    let found = measured("long-ping --wait eventfd --count 50");
    let [m] = measurements(&found) else { panic!("not one point: {found:#}") };
    assert_eq!(
        (m["probe"].as_str(), m["params"]["wait"].as_str()),
        (Some("remote.long-ping"), Some("eventfd"))
    );
    let line = run(&["remote", "--wait", "hope"]).refused();
    assert!(line.contains("hope") && line.contains("eventfd"), "{line}");
}

#[test]
fn those_that_spin_need_two_cpus() {
    let found = measured("ping --count 10 --cpus 0");
    let spin = measurements(&found).iter().find(|m| m["params"]["wait"] == "spin").unwrap();
    assert_eq!(spin["support"], "unsupported");
    assert!(spin["reason"].as_str().unwrap().contains("two CPUs"), "{spin:#}");
}

#[test]
fn a_remote_that_dies_is_told_and_costs_no_sample() {
    let place = Place::new();
    let result = place.at("result.json");
    let mut command =
        latscope(["remote", "ping", "--wait", "eventfd", "--duration", "60s", "--json", &result, "--quiet"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let echo = mark.wait_for("__remote eventfd");
    std::thread::sleep(std::time::Duration::from_millis(500));
    send(Signal::KILL, echo.pid);
    wait(child).no_panic();
    let found = json(&result);
    has_reason(&of_probe(&found, "remote.ping"), "degraded", "the process that answers ended: signal: 9");
    mark.wait_for_none();
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    let mut command = latscope(["remote", "ping", "--wait", "spin", "--duration", "60s", "--quiet"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    mark.wait_for("__remote spin");
    send(Signal::KILL, child.id() as i32);
    wait(child);
    mark.wait_for_none();
    assert_eq!(run(&["__remote"]).code, Some(1));
}

#[test]
fn a_remote_that_stands_still_costs_losses_and_ends_the_row() {
    // What is late of a long ping would pass for packets of the next: there is no next.
    for (probe, id, losses) in [("ping", "remote.ping", 3.0), ("long-ping", "remote.long-ping", 1.0)] {
        let place = Place::new();
        let result = place.at("result.json");
        let words = ["remote", probe, "--wait", "eventfd", "--duration", "60s", "--json", &result, "--quiet"];
        let mut command = latscope(words);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        let echo = mark.wait_for("__remote eventfd");
        std::thread::sleep(std::time::Duration::from_millis(500));
        send(Signal::STOP, echo.pid);
        wait(child).no_panic();
        let found = json(&result);
        let points = of_probe(&found, id);
        has_reason(&points, "degraded", "no message came in time");
        assert_eq!(points[0]["values"]["losses"]["value"].as_f64(), Some(losses), "{found:#}");
        mark.wait_for_none();
    }
}
