//! Endings at the start of a run, before each writer has begun.

use crate::subjects::{SUBJECTS, Subject};
use crate::support::{Place, json, latscope, measurements};
use crate::{Ending, Running};
use rustix::process::Signal;
use std::process::Command;
use std::thread;
use std::time::Duration;

const ENDINGS: [Ending; 5] = [
    Ending::Once(Signal::INT),
    Ending::Twice(Signal::INT),
    Ending::Group(Signal::TERM),
    Ending::Worker,
    Ending::Kill,
];

impl Running {
    /// Waits for so many processes of the run with this word. Returns false if the run ended before.
    fn has_started(&mut self, word: &str, number: usize) -> bool {
        let is_there = |running: &Running| {
            let processes = running.mark.processes();
            processes.iter().filter(|process| process.command.contains(word)).count() >= number
        };
        loop {
            if is_there(self) {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Ends a run as soon as so many of its processes exist.
#[track_caller]
fn ends_well(command: impl Fn(&Place) -> Command, files: &[&str], ending: Ending, word: &str, number: usize) {
    let place = Place::new();
    let mut running = Running::start(command(&place), place);
    assert!(running.has_started(word, number), "{word}: {number}");
    running.end(ending);
    let (ran, place) = running.ended(files);
    let context = format!("{ending:?} at {number} × {word}: {ran:#?}");
    if ending == Ending::Kill {
        return assert_eq!(ran.code, None, "{context}");
    }
    assert!(ran.code.is_some_and(|code| code <= 3), "{context}");
    let Some(file) = files.iter().find(|file| file.ends_with("result.json")) else { return };
    if std::path::Path::new(&place.at(file)).exists() {
        let result = json(place.at(file));
        assert_eq!(result["interrupted"]["by"].as_str(), ending.name(), "{context}");
        assert!(!measurements(&result).is_empty(), "{context}");
    } else {
        assert!(ran.err.contains("before anything was measured"), "{context}");
    }
}

fn all(name: &str) {
    let subject: &Subject = SUBJECTS.iter().find(|subject| subject.name == name).unwrap();
    for ending in ENDINGS {
        ends_well(|place| subject.command(place, subject.long), subject.files, ending, "__worker", 1);
    }
}

#[test]
fn of_commands_whose_worker_starts() {
    ["wake", "noise", "remote", "cpu"].into_iter().for_each(all);
}

#[test]
fn of_cyclictest_whose_threads_start() {
    all("cyclictest");
}

/// The pairs start one after the other: some have counted, and the others have no writer yet.
#[test]
fn of_pairs_some_of_which_have_begun() {
    let files = ["result.json"];
    let command = |place: &Place| {
        let words = "ipc -t futex --pairs 6 --count 1000000000 --duration 600s --json";
        latscope(words.split_whitespace().map(str::to_owned).chain([place.at(files[0])]))
    };
    for number in 1..=6 {
        for ending in ENDINGS {
            ends_well(command, &files, ending, "__ipc client", number);
        }
    }
}
