//! Endings over a terminal whose other side is silent, whatever another program does with that terminal.

use crate::support::{Place, Ran, eventually, latscope, measurements, parsed, reason};
use crate::{Ending, Running};
use latscope_os::terminal::is_exclusive;
use latscope_process::pseudo_terminal::PseudoTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{read, write};
use rustix::process::Signal;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Calls without an end over a terminal.
const CALLS: [&str; 6] = [
    "as pty_test --pace 0ms -P TERMINAL",
    "as pty_test -b -t 600 -P TERMINAL",
    "remote ping --transport tty --path TERMINAL --duration 600s --timeout 600s",
    "remote long-ping --transport tty --path TERMINAL --duration 600s --timeout 600s",
    "remote bandwidth --direction echoed --transport tty --path TERMINAL --duration 600s --timeout 600s",
    "remote ping --transport tty-line --path TERMINAL --duration 600s --timeout 600s",
];

fn started(call: &str, path: &str) -> Running {
    Running::start(latscope(call.replace("TERMINAL", path).split_whitespace()), Place::new())
}

/// Waits for bytes at the other side, and returns what came, if it did.
fn heard(terminal: &PseudoTerminal) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let _ = poll(
        &mut [PollFd::new(&terminal.master, PollFlags::IN)],
        Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }),
    );
    let length = read(&terminal.master, &mut bytes[..]).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

/// Changes the modes of a terminal, as another program could.
fn change(terminal: &PseudoTerminal, change: impl FnOnce(&mut Termios)) {
    let mut modes = tcgetattr(&terminal.slave).unwrap();
    change(&mut modes);
    tcsetattr(&terminal.slave, OptionalActions::Now, &modes).unwrap();
}

/// Runs `meanwhile` while the other side sends back all that it gets.
fn echoing<T>(terminal: &PseudoTerminal, meanwhile: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let bytes = heard(terminal);
                let _ = write(&terminal.master, &bytes);
            }
        });
        let done = meanwhile();
        over.store(true, Ordering::Relaxed);
        done
    })
}

/// Ends a call after another program set the minimum, which its other side never reaches.
fn cut(call: &str, ending: Ending) {
    let terminal = PseudoTerminal::open().unwrap();
    let running = started(call, &terminal.path.display().to_string());
    eventually(call, || (!heard(&terminal).is_empty()).then_some(()));
    change(&terminal, |modes| {
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    });
    running.end(ending);
    let (ran, _) = running.ended(&[]);
    let code = if call.starts_with("as ") { 0 } else { 1 };
    assert_eq!(ran.code, Some(code), "{call} {ending:?}: {ran:#?}");
}

#[test]
fn of_calls_whose_other_side_is_silent_and_whose_minimum_another_program_set() {
    thread::scope(|scope| {
        for call in CALLS {
            for ending in [Ending::Once(Signal::INT), Ending::Group(Signal::TERM)] {
                scope.spawn(move || cut(call, ending));
            }
        }
    });
}

#[test]
fn of_calls_over_a_master() {
    for call in CALLS {
        let (ran, _) = started(call, "/dev/ptmx").ended(&[]);
        let told = ran.err.contains("/dev/ptmx is the master of a pseudo terminal");
        assert!(ran.code == Some(1) && told, "{call}: {ran:#?}");
    }
}

/// Other program that reads from a terminal.
struct Reader(Child);

impl Reader {
    fn of(terminal: &PseudoTerminal) -> Reader {
        let slave = terminal.slave.try_clone().unwrap();
        Reader(Command::new("cat").stdin(slave).stdout(Stdio::null()).spawn().unwrap())
    }

    fn name(&self) -> String {
        format!("cat (pid {})", self.0.id())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SHORT: [&str; 2] = [
    "as pty_test --pace 1ms -l 40 -P TERMINAL",
    "remote ping --transport tty --path TERMINAL --count 40 --duration 2s --json -",
];

/// Text of a run, with the reasons of its row if it saved a result.
fn told(ran: &Ran) -> String {
    if !ran.out.starts_with('{') {
        return ran.err.clone();
    }
    let reasons: String = measurements(&parsed(&ran.out)).iter().map(reason).collect();
    ran.err.clone() + &reasons
}

#[test]
fn of_calls_whose_replies_another_program_takes() {
    for call in SHORT {
        let terminal = PseudoTerminal::open().unwrap();
        let reader = Reader::of(&terminal);
        let path = terminal.path.display().to_string();
        let (ran, _) = echoing(&terminal, || started(call, &path).ended(&[]));
        let told = told(&ran);
        let sentence = format!("{path} is also open in {}", reader.name());
        // Before anything is measured, and with what failed.
        assert!(told.matches(&sentence).count() >= 2, "{call}: {ran:#?}");
        assert!(!told.contains("the other side's terminal"), "{call}: {ran:#?}");
    }
}

#[test]
fn of_calls_whose_modes_another_program_changes() {
    for call in SHORT {
        let terminal = PseudoTerminal::open().unwrap();
        let path = terminal.path.display().to_string();
        let running = started(call, &path);
        eventually(call, || is_exclusive(&terminal.slave).then_some(()));
        eventually(call, || (!heard(&terminal).is_empty()).then_some(()));
        // What comes from the other side goes back there once more.
        change(&terminal, |modes| modes.local_modes |= LocalModes::ECHO);
        let (ran, _) = echoing(&terminal, || running.ended(&[]));
        let told = told(&ran);
        assert!(told.contains(&format!("another program changed the modes of {path}")), "{call}: {ran:#?}");
        assert!(!told.contains("the other side's terminal"), "{call}: {ran:#?}");
    }
}

#[test]
fn of_a_call_that_has_a_terminal_for_itself() {
    let terminal = PseudoTerminal::open().unwrap();
    let path = terminal.path.display().to_string();
    let first = started(CALLS[0], &path);
    eventually("its ping", || (!heard(&terminal).is_empty()).then_some(()));
    assert!(is_exclusive(&terminal.slave));
    for call in SHORT {
        let (ran, _) = started(call, &path).ended(&[]);
        let name = format!("is in exclusive use (TIOCEXCL) by latscope (pid {})", first.child.id());
        assert!(ran.code == Some(1) && ran.err.contains(&name), "{call}: {ran:#?}");
    }
    // Its guardian gives the terminal back.
    first.end(Ending::Kill);
    first.ended(&[]);
    assert!(!is_exclusive(&terminal.slave));
}
