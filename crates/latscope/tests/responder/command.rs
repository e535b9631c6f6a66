//! Responder with `latscope remote` as its host: the steps of docs/porting.md.

use crate::support::{Lines, eventually, faults, lines, plain, terminate};
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Running responder, and the place of its window.
struct Served {
    place: TempDir,
    responder: Child,
    output: Lines,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.responder.kill();
        let _ = self.responder.wait();
    }
}

fn latscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latscope"));
    command.env("COLUMNS", "100");
    command
}

#[track_caller]
fn done(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Served {
    /// Creates a window of so many bytes, and starts the responder over it.
    fn start(size: &str) -> Served {
        let place = tempfile::tempdir().unwrap();
        let (window, socket) = (place.path().join("window"), place.path().join("kicks"));
        let made = latscope().args(["remote", "window", "--size", size, "--create"]).arg(&window).output();
        done(&made.unwrap());
        let mut command = Command::new(plain());
        command.arg("--file").arg(&window).arg("--socket").arg(&socket);
        let mut responder = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = lines(responder.stdout.take().unwrap());
        Served { place, responder, output }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Command `latscope remote` over this window, with these words.
    fn remote(&self, words: &str) -> Command {
        let mut command = latscope();
        command
            .arg("remote")
            .args(words.split_whitespace())
            .args(["--transport", "openamp", "--openamp-shm"]);
        command.arg(self.at("window")).arg("--openamp-socket").arg(self.at("kicks"));
        command
    }

    /// Measures, asserts that all rows are whole, and returns their number.
    fn measured(&self, words: &str, count: u64) -> u64 {
        let result = self.at("result.json");
        done(
            &self
                .remote(words)
                .arg("--count")
                .arg(count.to_string())
                .arg("--json")
                .arg(&result)
                .output()
                .unwrap(),
        );
        let found: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
        let measurements = found["measurements"].as_array().unwrap();
        for m in measurements {
            assert_eq!(m["summary"]["count"].as_u64(), Some(count), "{m:#}");
            let longest = m["values"]["remote-longest"]["value"].as_f64();
            assert!(longest.is_some_and(|ns| ns > 0.0), "the responder has a clock: {m:#}");
            for name in ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"] {
                assert_eq!(m["values"][name]["value"].as_f64(), Some(0.0), "{name}: {m:#}");
            }
        }
        measurements.len() as u64
    }

    fn expect(&self, line: &str) {
        eventually(line, || (self.output.recv().expect("the responder runs") == line).then_some(()));
    }
}

#[test]
fn a_whole_remote_is_answered_and_so_is_the_next_one() {
    for size in ["512KiB", "96KiB"] {
        let served = Served::start(size);
        for _ in 0..2 {
            assert_eq!(served.measured("", 20), 10, "two pings, four long pings, four bandwidths");
        }
        terminate(&served.responder);
        let counts = served.output.iter().filter_map(|line| {
            line.split_once('=').map(|(name, value)| (name.to_owned(), value.parse::<u64>().unwrap()))
        });
        let counts = counts.collect();
        assert_eq!(faults(&counts), 0, "{counts:?}");
        // All rows of a run are one driver to the remote.
        assert_eq!([counts["unknown"], counts["mismatched"], counts["started"]], [0, 0, 2], "{counts:?}");
    }
}

/// The skeleton of docs/porting.md must compile.
#[test]
fn the_shortest_port_of_the_docs_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/porting.md")).unwrap();
    let skeleton = page.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(skeleton.lines().count() <= 25, "it is called one of 20 lines");
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("port.c"), skeleton).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsyntax-only"]);
    compiler.args(["-DSHARED=(void*)0x1000", "-DSHARED_SIZE=4096", "-DSHARED_AT_THE_HOST=0", "-I"]);
    done(&compiler.arg(root.join("responders/c")).arg(place.path().join("port.c")).output().unwrap());
}

#[test]
fn a_host_that_is_killed_makes_room_for_the_next() {
    let served = Served::start("512KiB");
    let mut endless = served.remote("ping --wait socket --endless -q").stdout(Stdio::null()).spawn().unwrap();
    served.expect("online");
    assert!(UnixStream::connect(served.at("kicks")).is_err(), "one host at a time");
    endless.kill().unwrap();
    endless.wait().unwrap();
    served.expect("offline");
    assert_eq!(served.measured("ping --wait socket", 20), 1);
}
