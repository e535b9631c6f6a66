//! Commands that are ended in every way, with one command of each kind.

use crate::support::{Place, Ran, latscope};
use crate::{Ending, figures};
use std::process::Command;

/// Form of a command's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Table of events by latscope, `--json` and `--csv`.
    Events,
    /// List of points by latscope, `--json` and `--csv`.
    Points,
    /// Lines and JSON of rt-tests, and latscope's result if there is one.
    Lines,
}

/// Command that is ended in every way.
pub struct Subject {
    pub name: &'static str,
    /// Call that lasts longer than a test.
    pub long: &'static str,
    /// Call that ends by itself.
    pub short: &'static str,
    pub form: Form,
    /// Names of the files that the command leaves in its place.
    pub files: &'static [&'static str],
    /// True if the command succeeds only if its files can be written.
    pub saves: bool,
    /// True if there is a worker whose end costs the figures of its present point.
    pub has_worker: bool,
    /// True if the command sleeps most of the time, so that several can run at once.
    pub sleeps: bool,
    /// Exit codes after a request to end, and after a kill of the worker.
    pub codes: [i32; 2],
}

const OURS: &[&str] = &["result.json", "result.csv"];

const USUAL: Subject = Subject {
    name: "",
    long: "",
    short: "",
    form: Form::Events,
    files: OURS,
    saves: true,
    has_worker: true,
    sleeps: true,
    codes: [1, 1],
};

/// All commands that are ended in every way.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "wake",
        long: "wake --duration 600s --max 1h --no-live",
        short: "wake --duration 300ms --max 1h --no-live",
        codes: [3, 3],
        ..USUAL
    },
    // A call takes longer than a nanosecond: exceeded before the end.
    Subject {
        name: "ipc",
        long: "ipc -t pipe --count 1000000000 --duration 600s --max 1ns",
        short: "ipc -t pipe --count 300",
        codes: [2, 2],
        ..USUAL
    },
    Subject {
        name: "noise",
        long: "noise --duration 600s",
        short: "noise --duration 300ms",
        sleeps: false,
        ..USUAL
    },
    Subject {
        name: "remote",
        long: "remote ping --wait futex --duration 600s",
        short: "remote ping --wait futex --count 300",
        ..USUAL
    },
    // A worker that crashes costs its own points, and the run goes on.
    Subject {
        name: "cpu",
        long: "cpu add cycle --type i64 --mode latency --duration 60s --count 1000000000",
        short: "cpu add cycle --quick",
        form: Form::Points,
        sleeps: false,
        codes: [1, 0],
        ..USUAL
    },
    Subject {
        name: "cyclictest",
        long: "as cyclictest -t2 -D 600 --default-system",
        short: "as cyclictest -t2 -l 200 --default-system",
        form: Form::Lines,
        files: &["lines.json", "result.json"],
        saves: false,
        codes: [0, 0],
        ..USUAL
    },
    Subject {
        name: "pmqtest",
        long: "as pmqtest -D 600 -i 1000",
        short: "as pmqtest -l 200 -i 1000",
        form: Form::Lines,
        files: &["lines.json"],
        saves: false,
        has_worker: false,
        codes: [0, 0],
        ..USUAL
    },
];

/// Returns the subject with this name.
pub fn named(name: &str) -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.name == name).unwrap()
}

impl Subject {
    /// Arguments of a call that writes all files of the subject.
    pub fn words(&self, place: &Place, call: &str) -> Vec<String> {
        let mut words: Vec<String> = call.split_whitespace().map(str::to_owned).collect();
        let option = |name: &str, file: &str| format!("--{name}={}", place.at(file));
        match self.form {
            Form::Events | Form::Points => {
                words.extend([option("json", "result.json"), option("csv", "result.csv")]);
            }
            Form::Lines => {
                words.push(option("json", "lines.json"));
                words.extend(self.has_worker.then(|| option("result", "result.json")));
            }
        }
        words
    }

    /// Command for a call of the subject.
    pub fn command(&self, place: &Place, call: &str) -> Command {
        latscope(self.words(place, call))
    }

    /// Exit code after an ending.
    pub fn code_of(&self, ending: Ending) -> i32 {
        self.codes[usize::from(ending == Ending::Worker)]
    }

    /// Checks that all figures are the same, and that the end is reported completely.
    pub fn figures(&self, ran: &Ran, place: &Place, ending: Option<Ending>) -> Result<(), String> {
        match self.form {
            Form::Events | Form::Points => figures::ours(self, ran, place, ending),
            Form::Lines => figures::lines(self, ran, place, ending),
        }
    }
}
