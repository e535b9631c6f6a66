//! Messages to a remote that is a process of latscope.

use crate::process::{Mark, send};
use crate::support::{
    Place, end, has_reason, is_ok, json, latscope, measurements, of_probe, reason, run, start, wait,
};
use crate::terminal::Terminal;
use rustix::process::Signal;
use serde_json::Value;

const LOSSES: [&str; 6] = ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"];

const WAITS: [&str; 4] = ["spin", "spin-then-park", "futex", "eventfd"];

fn measured(words: &str) -> Value {
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["remote"].into_iter().chain(words.split_whitespace()).chain(["--json", &result]);
    end(&mut latscope(words)).done();
    json(&result)
}

#[test]
fn every_ping_comes_back_whole() {
    let found = measured("ping long-ping mailbox --count 300");
    let waits: Vec<&str> =
        of_probe(&found, "remote.ping").iter().map(|m| m["params"]["wait"].as_str().unwrap()).collect();
    assert_eq!(waits, WAITS);
    assert_eq!(of_probe(&found, "remote.long-ping").len(), 4);
    assert_eq!(of_probe(&found, "remote.mailbox").len(), 3);
    for m in measurements(&found) {
        assert_eq!(
            (m["summary"]["count"].as_u64(), m["times"].as_str()),
            (Some(300), Some("round-trip")),
            "{m:#}"
        );
        // On a busy machine the wait for a CPU would be in the figure.
        assert_eq!(m["contention"]["distorts"].as_bool(), Some(true), "{m:#}");
        for name in LOSSES {
            assert_eq!(m["values"][name]["value"].as_f64(), Some(0.0), "{name}: {m:#}");
        }
    }
}

#[test]
fn every_block_is_verified_in_both_directions() {
    let found = measured("bandwidth --wait futex --payload 8,496,65520 --count 20");
    assert_eq!(measurements(&found).len(), 6);
    for m in measurements(&found) {
        let value = |name: &str| m["values"][name]["value"].as_f64().unwrap();
        assert!(m["summary"]["count"] == 20 && is_ok(m), "{m:#}");
        assert!(value("sent") >= 20.0 && value("sent") == value("received"), "{m:#}");
        assert!(value("throughput") > 0.0 && value("drain") >= 0.0, "{m:#}");
        LOSSES.iter().for_each(|name| assert_eq!(value(name), 0.0, "{name}: {m:#}"));
    }
    let directions: Vec<_> = measurements(&found).iter().map(|m| m["params"]["direction"].as_str()).collect();
    assert_eq!(directions[2..4], [Some("echoed"), Some("to-remote")]);
}

#[test]
fn pings_have_any_length_that_the_transport_carries() {
    let found = measured("ping --wait futex --payload 8,13,496,497,65520 --count 30");
    let payloads: Vec<_> = measurements(&found)
        .iter()
        .map(|m| (m["params"]["payload"].as_u64(), m["summary"]["count"].as_u64()))
        .collect();
    assert_eq!(payloads, [8, 13, 496, 497, 65_520].map(|payload| (Some(payload), Some(30))));
    let found = measured("ping --wait futex --sweep --count 5");
    assert_eq!(measurements(&found).len(), 14);
    assert!(run(&["remote", "ping", "--payload", "0"]).refused().contains("choose 1 or more"));
    assert!(run(&["remote", "ping", "--payload", "65521", "--wait", "futex"]).refused().contains("65520"));
    assert!(run(&["remote", "long-ping", "--payload", "8"]).refused().contains("--payload"));
}

#[test]
fn long_pings_are_in_packets_of_one_form_or_the_other() {
    let found = measured("long-ping --wait futex --legacy --count 20");
    let [pipelined, lock_step] = measurements(&found) else { panic!("{found:#}") };
    for m in [pipelined, lock_step] {
        let params = &m["params"];
        assert_eq!((params["form"].as_str(), params["payload"].as_u64()), (Some("legacy"), Some(3776)));
    }
    assert!(pipelined["values"]["per-packet"]["value"].as_f64() > Some(0.0));
    let packet = |name: &str| lock_step["values"][name]["value"].as_f64();
    assert!(
        packet("packet-min") > Some(0.0) && packet("packet-p50") <= packet("packet-max"),
        "{lock_step:#}"
    );
    assert!(run(&["remote", "ping", "--legacy"]).refused().contains("long-ping"));
}

#[test]
fn a_pace_and_a_timeout_are_kept_and_stated() {
    let begun = std::time::Instant::now();
    let found = measured("ping --wait eventfd --pace 20ms --timeout 30s --count 10");
    assert!(begun.elapsed() >= std::time::Duration::from_millis(200), "11 pings have 10 paces between");
    let [m] = measurements(&found) else { panic!("not one point: {found:#}") };
    let params = &m["params"];
    assert_eq!(
        (params["pace"].as_u64(), params["timeout"].as_u64()),
        (Some(20_000_000), Some(30_000_000_000))
    );
    assert_eq!(m["summary"]["count"].as_u64(), Some(10));
}

#[test]
fn an_endless_run_ends_with_what_it_has() {
    let place = Place::new();
    let result = place.at("result.json");
    let mut terminal =
        Terminal::run(&["remote", "ping", "--wait", "futex", "--endless", "--no-live", "--json", &result]);
    terminal.wait_for_samples();
    terminal.signal(Signal::INT);
    terminal.ends(0);
    let written = terminal.written();
    assert!(written.contains("measuring remote.ping: ping to a remote, 48 B (futex)"), "{written}");
    let found = json(&result);
    assert!(measurements(&found)[0]["summary"]["count"].as_u64() > Some(0), "{found:#}");
    assert!(run(&["remote", "ping", "--endless"]).refused().contains("one row"));
}

#[test]
fn a_probe_and_a_way_to_wait_can_be_chosen() {
    let found = measured("long-ping --mode pipelined --wait eventfd --count 50");
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
    assert_eq!(spin["quality"]["level"], "unsupported");
    assert!(reason(spin).contains("two CPUs"), "{spin:#}");
}

#[test]
fn a_remote_that_dies_is_told_and_costs_no_sample() {
    let place = Place::new();
    let result = place.at("result.json");
    let mut terminal = Terminal::run(&[
        "remote", "ping", "--wait", "eventfd", "--duration", "600s", "--no-live", "--json", &result,
    ]);
    terminal.wait_for_samples();
    send(Signal::KILL, terminal.process("__remote eventfd").pid);
    terminal.ends(1);
    let found = json(&result);
    has_reason(&of_probe(&found, "remote.ping"), "degraded", "the process that answers ended: signal: 9");
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
    // The first loss and two more messages that were to show whether it is still there.
    for (probe, option, losses) in [
        ("ping", "--pace=1ms", 3.0),
        ("long-ping", "--mode=pipelined", 3.0),
        ("bandwidth", "--direction=echoed", 0.0),
    ] {
        let (place, id) = (Place::new(), format!("remote.{probe}"));
        let result = place.at("result.json");
        let words = ["remote", probe, "--wait", "eventfd", "--duration", "600s", "--json", &result];
        let words = words.into_iter().chain([option, "--timeout", "300ms", "--no-live"]);
        let words = words.chain((probe == "bandwidth").then_some("--payload=496"));
        let mut terminal = Terminal::run(&words.collect::<Vec<_>>());
        terminal.wait_for_samples();
        send(Signal::STOP, terminal.process("__remote eventfd").pid);
        terminal.ends(1);
        let found = json(&result);
        let points = of_probe(&found, &id);
        has_reason(&points, "degraded", "no message came in time");
        has_reason(&points, "degraded", "which no time has: ");
        let lost = points[0]["values"]["losses"]["value"].as_f64().unwrap();
        // Of a stream all that was on its way.
        assert!(if losses > 0.0 { lost == losses } else { lost > 0.0 }, "{found:#}");
    }
}
