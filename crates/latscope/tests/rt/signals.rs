//! Signals, and places where the status can be read during a run.

use crate::{dropin, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

fn start(directory: &Path, words: &str) -> Child {
    let mut command = dropin(directory, "cyclictest");
    command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Returns true if a signal is in a mask of a process.
fn in_mask(child: &Child, mask: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let found = status.lines().find_map(|line| line.strip_prefix(mask)?.strip_prefix(':'));
    u64::from_str_radix(found.unwrap().trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

/// Returns true if a process catches a signal, or keeps it for a descriptor.
fn expects(child: &Child, signal: Signal) -> bool {
    in_mask(child, "SigCgt", signal) || in_mask(child, "SigBlk", signal)
}

/// Returns true if a signal is still pending for a process.
fn is_pending(child: &Child, signal: Signal) -> bool {
    in_mask(child, "ShdPnd", signal) || in_mask(child, "SigPnd", signal)
}

const RULER: &str = "#---------------------------";

#[test]
fn usr1_and_usr2_show_the_status_and_term_ends_with_the_summary() {
    let directory = tempfile::tempdir().unwrap();
    let child = start(directory.path(), "-q -t2");
    let board = format!("/dev/shm/cyclictest{}", child.id());
    // At first there is no handler yet, and USR2 would end the process.
    wait_for("listener", || expects(&child, Signal::USR2).then_some(()));
    // Asked again and again: at first nothing is counted yet.
    let text = wait_for("status in shared memory", || {
        send(&child, Signal::USR2);
        Some(fs::read_to_string(&board).ok()?)
            .filter(|text| text.contains("T: 1 (") && !text.contains("C:      0"))
    });
    assert!(text.starts_with(RULER) && text.trim_end().ends_with(RULER), "{text}");
    send(&child, Signal::USR1);
    wait_for("listener who has taken it", || (!is_pending(&child, Signal::USR1)).then_some(()));
    send(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    let (out, err) = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains(&format!("{RULER}\n# cyclictest current status:\nT: 0 (")), "{err}");
    assert_eq!(out.lines().filter(|line| line.starts_with("T:")).count(), 2, "{out}");
    assert!(!Path::new(&board).exists());
}

#[test]
fn a_reader_of_the_fifo_gets_status_lines() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let child = start(directory.path(), &format!("-q -t2 -F {}", fifo.display()));
    wait_for("fifo", || fs::metadata(&fifo).ok());
    let text = wait_for("lines", || fs::read_to_string(&fifo).ok().filter(|text| !text.is_empty()));
    send(&child, Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(text.starts_with("T: 0 (") && text.contains("\nT: 1 ("), "{text}");
    assert!(!fifo.exists());
}

#[test]
fn a_trace_of_the_user_is_marked_and_stopped_only_when_asked() {
    let tracing = Path::new("/sys/kernel/tracing");
    if !crate::traceable("a_trace_of_the_user_is_marked_and_stopped_only_when_asked") {
        return;
    }
    let on = || fs::read_to_string(tracing.join("tracing_on")).unwrap().trim().to_owned();
    let _tracing = crate::Tracing::kept();
    fs::write(tracing.join("tracing_on"), "1").unwrap();
    crate::done("cyclictest", "-q -l 500 -b 1 -p 80");
    let without = on();
    crate::done("cyclictest", "-q -l 500 -b 1 -p 80 --tracemark");
    let with = on();
    let trace = fs::read_to_string(tracing.join("trace")).unwrap();
    assert_eq!((without.as_str(), with.as_str()), ("1", "0"));
    assert!(trace.contains("late by"), "{trace}");
}
