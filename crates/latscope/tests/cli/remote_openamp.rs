//! Both roles of `--transport openamp`, each a process of its own.

use crate::process::signal;
use crate::support::{
    Place, end, eventually, has_reason, json, latscope, measurements, names, of_probe, run, start, wait,
};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Child;

const LOSSES: [&str; 6] = ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"];

/// Where the two meet, and the words for it.
struct Meeting {
    place: Place,
    words: [String; 4],
}

impl Meeting {
    fn new() -> Meeting {
        let place = Place::new();
        let (memory, socket) = (place.at("shm"), place.at("socket"));
        Meeting { place, words: ["--openamp-shm".into(), memory, "--openamp-socket".into(), socket] }
    }

    fn serve(&self, wait: &str) -> Child {
        let words = ["remote", "serve", "--openamp", "--wait", wait].map(String::from);
        let child = start(&mut latscope(words.into_iter().chain(self.words.clone())));
        eventually("it listens", || {
            names(self.place.path()).iter().any(|name| name == "socket").then_some(())
        });
        child
    }

    fn driver(&self, words: &str, result: &str) -> std::process::Command {
        let words = format!("remote {words} --transport openamp --quiet --json {result}");
        latscope(words.split(' ').map(String::from).chain(self.words.clone()))
    }

    fn drive(&self, words: &str) -> Value {
        let result = self.place.at("result.json");
        end(&mut self.driver(words, &result)).done();
        json(&result)
    }
}

/// All that were asked for, and nothing that is no sample.
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
fn every_ping_comes_back_whole_from_another_process_whoever_is_restarted() {
    let meeting = Meeting::new();
    let mut server = meeting.serve("socket");
    for _ in 0..2 {
        sound(&meeting.drive("ping long-ping bandwidth --wait socket --count 300"), 300);
    }
    sound(&meeting.drive("ping --wait socket --count 100 --endpoint rpmsg-openamp-demo-channel"), 100);
    // Killed, it leaves both names behind; the next takes them over.
    server.kill().unwrap();
    wait(server);
    assert_eq!(names(meeting.place.path()), ["result.json", "shm", "socket"]);
    server = start(&mut latscope(
        ["remote", "serve", "--openamp"].map(String::from).into_iter().chain(meeting.words.clone()),
    ));
    sound(&meeting.drive("ping --count 300"), 300);
    signal(&server, Signal::TERM);
    wait(server).done();
    assert_eq!(names(meeting.place.path()), ["result.json"]);
}

#[test]
fn a_server_that_is_killed_is_told_and_costs_no_sample() {
    let meeting = Meeting::new();
    let server = meeting.serve("socket");
    let result = meeting.place.at("result.json");
    let driver = start(&mut meeting.driver("ping --wait socket --duration 60s", &result));
    std::thread::sleep(std::time::Duration::from_millis(700));
    signal(&server, Signal::KILL);
    wait(server);
    wait(driver).no_panic();
    let found = json(&result);
    has_reason(&of_probe(&found, "remote.ping"), "degraded", "the other side closed the socket");
}

#[test]
fn a_driver_that_is_killed_makes_room_for_the_next() {
    let meeting = Meeting::new();
    let server = meeting.serve("socket");
    let driver =
        start(&mut meeting.driver("ping --wait socket --duration 60s", &meeting.place.at("unused.json")));
    std::thread::sleep(std::time::Duration::from_millis(700));
    signal(&driver, Signal::KILL);
    wait(driver);
    sound(&meeting.drive("ping --wait socket --count 100"), 100);
    signal(&server, Signal::INT);
    wait(server).done();
}

#[test]
fn there_is_one_server_a_socket() {
    let meeting = Meeting::new();
    let server = meeting.serve("socket");
    let words = ["remote", "serve", "--openamp"].into_iter().chain(meeting.words.iter().map(String::as_str));
    let line = run(&words.collect::<Vec<_>>()).refused();
    assert!(line.contains("already"), "{line}");
    signal(&server, Signal::HUP);
    wait(server).done();
    assert_eq!(names(meeting.place.path()), [""; 0]);
}
