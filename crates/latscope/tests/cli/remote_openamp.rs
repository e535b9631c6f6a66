//! Both roles of `--transport openamp`, each in a process of its own.

use crate::process::signal;
use crate::support::{
    Place, Ran, end, eventually, has_reason, json, latscope, measurements, names, of_probe, run, start, wait,
};
use crate::terminal::Terminal;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Child;

const LOSSES: [&str; 6] = ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"];

/// Server that does not outlive a failed test.
struct Server(Option<Child>);

impl Server {
    fn id(&self) -> u32 {
        self.0.as_ref().expect("it has not ended").id()
    }

    fn end(mut self, how: Signal) -> Ran {
        let child = self.0.take().expect("it ends once");
        signal(&child, how);
        wait(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Paths over which driver and server connect, and the words for them.
struct Setup {
    place: Place,
    words: [String; 4],
}

impl Setup {
    fn new() -> Setup {
        let place = Place::new();
        let (memory, socket) = (place.at("shm"), place.at("socket"));
        Setup { place, words: ["--openamp-shm".into(), memory, "--openamp-socket".into(), socket] }
    }

    fn start(&self) -> Server {
        let words = ["remote", "serve", "--openamp"].map(String::from);
        Server(Some(start(&mut latscope(words.into_iter().chain(self.words.clone())))))
    }

    fn serve(&self) -> Server {
        let server = self.start();
        eventually("it listens", || {
            names(self.place.path()).iter().any(|name| name == "socket").then_some(())
        });
        server
    }

    fn driver(&self, words: &str, result: &str) -> Vec<String> {
        let words = format!("remote {words} --transport openamp --json {result}");
        words.split(' ').map(String::from).chain(self.words.clone()).collect()
    }

    fn drive(&self, words: &str) -> Value {
        let result = self.place.at("result.json");
        end(&mut latscope(self.driver(words, &result))).done();
        json(&result)
    }

    /// Starts a driver that would go on for long, and waits until it has samples.
    fn driving(&self, result: &str) -> Terminal {
        let words = self.driver("ping --wait socket --no-live --duration 600s", result);
        let terminal = Terminal::run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        terminal.wait_for_samples();
        terminal
    }
}

/// Asserts that all messages that were asked for came back, and that none was lost, late or wrong.
#[track_caller]
fn sound(found: &Value, count: u64) {
    assert!(!measurements(found).is_empty());
    for m in measurements(found) {
        assert_eq!(m["summary"]["count"].as_u64(), Some(count), "{m:#}");
        for name in LOSSES {
            assert_eq!(m["values"][name]["value"].as_f64(), Some(0.0), "{name}: {m:#}");
        }
    }
}

#[test]
fn every_ping_comes_back_whole_from_another_process_whichever_is_restarted() {
    let setup = Setup::new();
    let mut server = setup.serve();
    for _ in 0..2 {
        sound(&setup.drive("ping long-ping bandwidth --wait socket --count 300"), 300);
    }
    sound(&setup.drive("ping --wait socket --count 100 --endpoint rpmsg-openamp-demo-channel"), 100);
    // Killed, it leaves both names behind; the next takes them over.
    server.end(Signal::KILL);
    assert_eq!(names(setup.place.path()), ["result.json", "shm", "socket"]);
    server = setup.start();
    sound(&setup.drive("ping --count 300"), 300);
    server.end(Signal::TERM).done();
    assert_eq!(names(setup.place.path()), ["result.json"]);
}

#[test]
fn the_rows_of_a_run_are_one_driver_to_the_server() {
    let setup = Setup::new();
    let server = setup.serve();
    let found = setup.drive("ping --wait socket,spin-then-park --count 100 --payload 1,8,48,496 --warm-up 3");
    sound(&found, 100);
    assert_eq!(measurements(&found).len(), 8);
    for m in measurements(&found) {
        let value = |name: &str| m["values"][name]["value"].as_f64();
        // All that it answered, warm-up and what settles the row included.
        let known = ["remote-replied", "remote-refused", "remote-stalls", "remote-faults"].map(value);
        assert_eq!(known, [103.0, 0.0, 0.0, 0.0].map(Some), "{m:#}");
        assert_eq!(value("remote-longest"), None, "it has no clock: {m:#}");
        let firmware = concat!("latscope ", env!("CARGO_PKG_VERSION"));
        assert_eq!(m["remote"], serde_json::json!({"core": "", "clock_hz": null, "firmware": firmware}));
    }
    let ran = server.end(Signal::TERM);
    assert!(ran.err.contains("served 1 driver: ") && ran.err.ends_with("no fault\n"), "{ran:?}");
    // A hundred pings and three of warm-up of each row.
    assert!(ran.err.contains(": 824 messages answered, 0 not as"), "{ran:?}");
    ran.done();
}

#[test]
fn rows_of_a_remote_that_is_not_there_are_an_error_beside_others() {
    let setup = Setup::new();
    let result = setup.place.at("result.json");
    let words =
        format!("remote ping --transport shm,openamp --wait futex,socket --count 100 --json {result}");
    let ran = end(&mut latscope(words.split(' ').map(String::from).chain(setup.words.clone())));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found = json(&result);
    let [there, absent] = measurements(&found) else { panic!("{found:#}") };
    assert_eq!(there["summary"]["count"].as_u64(), Some(100));
    let reason = &absent["quality"]["reasons"][0];
    assert!(
        reason["id"] == "no-peer" && reason["text"].as_str().unwrap().contains("no process listens"),
        "{reason}"
    );
}

#[test]
fn the_remote_is_the_peer_and_disturbs_nothing() {
    let setup = Setup::new();
    let server = setup.serve();
    let found = setup.drive("ping --wait spin-then-park --duration 1s");
    let account = &found["activity"];
    assert!(account["peer"].as_f64() > Some(0.0), "{account:#}");
    let pid = u64::from(server.id());
    let others = account["top"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(others.iter().all(|one| one["pid"].as_u64() != Some(pid)), "{account:#}");
    for m in measurements(&found) {
        assert!(m["account"]["peer"].as_f64() > Some(0.0), "{m:#}");
    }
    server.end(Signal::TERM).done();
}

#[test]
fn a_server_that_is_killed_is_told_and_costs_no_sample() {
    let setup = Setup::new();
    let server = setup.serve();
    let result = setup.place.at("result.json");
    let mut driver = setup.driving(&result);
    server.end(Signal::KILL);
    driver.ends(1);
    let found = json(&result);
    has_reason(&of_probe(&found, "remote.ping"), "degraded", "the other side closed the socket");
}

#[test]
fn a_driver_that_is_killed_makes_room_for_the_next() {
    let setup = Setup::new();
    let server = setup.serve();
    let mut driver = setup.driving(&setup.place.at("unused.json"));
    driver.signal(Signal::KILL);
    driver.ends(137);
    sound(&setup.drive("ping --wait socket --count 100"), 100);
    server.end(Signal::INT).done();
}

#[test]
fn there_is_one_server_a_socket() {
    let setup = Setup::new();
    let server = setup.serve();
    let words = ["remote", "serve", "--openamp"].into_iter().chain(setup.words.iter().map(String::as_str));
    let line = run(&words.collect::<Vec<_>>()).refused();
    assert!(line.contains("another process uses"), "{line}");
    server.end(Signal::HUP).done();
    assert_eq!(names(setup.place.path()), [""; 0]);
}

#[test]
fn a_driver_without_a_server_tells_what_it_waits_for_and_takes_one_that_comes() {
    let setup = Setup::new();
    let result = setup.place.at("result.json");
    let mut driver = start(&mut latscope(setup.driver("ping --wait socket --count 100", &result)));
    let lines = BufReader::new(driver.stderr.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find(|line| line.contains("waiting for")).expect("it tells");
    assert!(line.contains(&setup.words[3]) && line.contains("latscope remote serve --openamp"), "{line}");
    let server = setup.start();
    wait(driver).done();
    sound(&json(&result), 100);
    server.end(Signal::TERM).done();
}

#[test]
fn options_of_other_transports_are_refused() {
    let served = |words: &str| run(&words.split(' ').collect::<Vec<_>>()).refused();
    for (words, users) in [
        ("remote ping --path /x", "rptun or tty or tty-line"),
        ("remote ping --transport openamp --qemu x", "ivshmem"),
        ("remote serve --openamp --path /x", "rptun or tty or tty-line"),
        ("remote serve --pty --openamp-shm /x", "openamp"),
        ("remote serve --pty --echo --qemu x", "ivshmem"),
        ("remote serve --vhost-user /x --dst 5", "char"),
    ] {
        let line = served(words);
        assert!(line.contains(&format!("is for --transport {users}")), "{line}");
    }
}
