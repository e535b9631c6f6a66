//! Remote that is latscope's own image in QEMU.

use crate::process::{Mark, send};
use crate::support::{
    Place, end, has_program, has_reason, json, latscope, measurements, needs, of_probe, run, start, wait,
};
use crate::terminal::Terminal;
use rustix::process::Signal;
use serde_json::Value;

const QEMU: &str = "qemu-system-x86_64";
const LOSSES: [&str; 6] = ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"];

/// Returns true if QEMU is installed and the image can be built here.
fn possible(test: &str) -> bool {
    let built = cfg!(target_arch = "x86_64");
    needs(test, built, "the image is built on x86-64 only") && has_program(test, QEMU)
}

fn measured(words: &str) -> Value {
    let place = Place::new();
    let result = place.at("result.json");
    let words =
        ["remote"].into_iter().chain(words.split(' ')).chain(["--transport", "ivshmem", "--json", &result]);
    end(&mut latscope(words)).done();
    json(&result)
}

#[test]
fn every_ping_comes_back_whole_from_the_image_which_is_marked_as_emulated() {
    if !possible("every_ping_comes_back_whole_from_the_image") {
        return;
    }
    let found = measured("ping long-ping --count 300");
    assert!(measurements(&found).len() >= 4, "{found:#}");
    for m in measurements(&found) {
        assert_eq!(
            (m["summary"]["count"].as_u64(), m["params"]["accel"].as_str()),
            (Some(300), Some("tcg")),
            "{m:#}"
        );
        has_reason(&[m], "degraded", "emulated");
        for name in LOSSES {
            assert_eq!(m["values"][name]["value"].as_f64(), Some(0.0), "{name}: {m:#}");
        }
    }
}

#[test]
fn a_bare_word_comes_back_from_the_image() {
    if !possible("a_bare_word_comes_back_from_the_image") {
        return;
    }
    let found = measured("mailbox --wait spin --count 1000");
    let [m] = measurements(&found) else { panic!("not one point: {found:#}") };
    assert_eq!(
        (m["probe"].as_str(), m["summary"]["count"].as_u64()),
        (Some("remote.mailbox"), Some(1000)),
        "{m:#}"
    );
}

#[test]
fn a_qemu_that_is_killed_is_told_and_costs_no_sample() {
    if !possible("a_qemu_that_is_killed_is_told_and_costs_no_sample") {
        return;
    }
    for wait_for in ["spin", "doorbell"] {
        let place = Place::new();
        let result = place.at("result.json");
        let words = [
            "remote", "ping", "--transport", "ivshmem", "--wait", wait_for, "--duration", "600s",
            "--no-live", "--json", &result,
        ];
        let mut terminal = Terminal::run(&words);
        terminal.wait_for_samples();
        send(Signal::KILL, terminal.process("debug-threads=on").pid);
        terminal.ends(1);
        has_reason(&of_probe(&json(&result), "remote.ping"), "degraded", "QEMU ended: signal: 9");
    }
}

#[test]
fn qemu_ends_with_a_run_that_is_killed() {
    if !possible("qemu_ends_with_a_run_that_is_killed") {
        return;
    }
    let mut command = latscope(["remote", "ping", "--transport", "ivshmem", "--duration", "60s", "--quiet"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    mark.wait_for("debug-threads=on");
    send(Signal::KILL, child.id().cast_signed());
    wait(child);
    mark.wait_for_none();
}

#[test]
fn what_is_missing_is_said_in_a_line() {
    let line = |words: &[&str]| {
        let words =
            ["remote", "ping", "--wait", "spin", "--transport", "ivshmem", "--count", "10", "--quiet"]
                .iter()
                .chain(words);
        run(&words.copied().collect::<Vec<_>>()).refused()
    };
    let no_qemu = line(&["--qemu", "/nonexistent/qemu"]);
    assert!(no_qemu.contains("qemu-system-x86") && no_qemu.contains("--qemu"), "{no_qemu}");
    assert!(line(&["--image", "/nonexistent/image"]).contains("cannot be opened"));
    assert!(line(&["--accel", "hope"]).contains("tcg or kvm"));
    // A program that is no QEMU.
    assert!(line(&["--qemu", "false"]).contains("QEMU ended"));
    let one = run(&["remote", "ping", "--transport", "ivshmem", "--cpus", "0", "--count", "10", "--quiet"])
        .refused();
    assert!(one.contains("two CPUs"), "{one}");
}
