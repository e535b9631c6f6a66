//! Ends of runs: a table of endings over the commands.
//!
//! Whatever ends a run, the figures on stdout, in the JSON and in the CSV are the same and those of the samples taken,
//! the exit code follows one rule, a requested verdict is printed, and nothing is left behind. No test here judges a
//! time.
#![forbid(unsafe_code)]

mod figures;
mod halts;
mod others;
mod stalls;
mod starts;
mod subjects;
mod terminals;

// The tests of the command use more of it.
#[path = "../cli/process.rs"]
mod process;
#[path = "../programs/mod.rs"]
mod programs;
#[path = "../schema/mod.rs"]
mod schema;
#[path = "../skipped/mod.rs"]
mod skipped;
#[allow(dead_code, unused_imports)]
#[path = "../cli/support.rs"]
mod support;

use process::{Mark, send};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::{fs, thread};
use subjects::Subject;
use support::{Place, Ran, eventually, names, start, wait};

/// Cause that ends a run before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Signal to the process.
    Once(Signal),
    /// Two signals to the process, at once.
    Twice(Signal),
    /// Signal to the process and then to its group, as `timeout` sends them.
    Group(Signal),
    /// Kill of the worker.
    Worker,
    /// Kill of the coordinator.
    Kill,
}

const SIGNALS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

impl Ending {
    /// All endings that are tested.
    fn all() -> Vec<Ending> {
        let signals = SIGNALS
            .into_iter()
            .flat_map(|signal| [Ending::Once(signal), Ending::Twice(signal), Ending::Group(signal)]);
        signals.chain([Ending::Worker, Ending::Kill]).collect()
    }

    /// Name of the signal in the result; `None` for a kill.
    fn name(self) -> Option<&'static str> {
        let (Ending::Once(signal) | Ending::Twice(signal) | Ending::Group(signal)) = self else {
            return None;
        };
        SIGNALS
            .iter()
            .position(|other| *other == signal)
            .map(|at| ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"][at])
    }
}

/// Run that is under way.
struct Running {
    place: Place,
    child: Child,
    mark: Mark,
}

impl Running {
    /// Starts a command in a place, as the leader of a group.
    fn start(mut command: Command, place: Place) -> Running {
        command.current_dir(place.path()).env("TMPDIR", place.path()).process_group(0);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        Running { place, child, mark }
    }

    /// Waits until the run has measured: a thread was on a CPU for so many turns, or long enough to have figures. The
    /// main thread counts only if it measures `itself`.
    fn has_measured(&self, turns: u64, itself: bool) {
        let main = self.child.id();
        eventually("it measures", || {
            let threads = self.mark.processes().into_iter().flat_map(|process| {
                let tasks =
                    fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten().flatten();
                tasks.map(|task| task.path()).collect::<Vec<_>>()
            });
            let mut others = threads.filter(|path| itself || !path.ends_with(main.to_string()));
            others
                .any(|path| has_run(&fs::read_to_string(path.join("schedstat")).unwrap_or_default(), turns))
                .then_some(())
        });
    }

    fn end(&self, ending: Ending) {
        let pid = self.child.id().cast_signed();
        let group = Pid::from_raw(pid).unwrap();
        match ending {
            Ending::Once(signal) => send(signal, pid),
            Ending::Twice(signal) => {
                send(signal, pid);
                send(signal, pid);
            }
            Ending::Group(signal) => {
                send(signal, pid);
                kill_process_group(group, signal).unwrap();
            }
            Ending::Worker => send(Signal::KILL, self.mark.wait_for("__worker").pid),
            Ending::Kill => process::signal(&self.child, Signal::KILL),
        }
    }

    /// Waits for the end. Asserts that nothing is left but these files.
    #[track_caller]
    fn ended(self, files: &[&str]) -> (Ran, Place) {
        let pid = self.child.id().to_string();
        let ran = wait(self.child);
        ran.no_panic();
        self.mark.wait_for_none();
        let left = |name: &String| !files.contains(&name.as_str());
        assert_eq!(
            names(self.place.path()).into_iter().filter(left).collect::<Vec<_>>(),
            [""; 0],
            "{ran:#?}"
        );
        for directory in ["/dev/shm", "/sys/kernel/tracing/instances", "/dev/mqueue"] {
            let left = fs::read_dir(directory).into_iter().flatten().flatten();
            let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
            assert_eq!(left.find(|name| name.contains(&pid)), None, "in {directory}");
        }
        (ran, self.place)
    }
}

/// Number of turns on a CPU after which a thread that sleeps in between has figures.
const TURNS: u64 = 400;

/// Returns true if a thread was on a CPU for so many turns, or long enough, according to its schedstat.
fn has_run(schedstat: &str, turns: u64) -> bool {
    let numbers: Vec<u64> = schedstat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    matches!(numbers[..], [ns, _, slices] if slices > turns || ns > 1_000_000_000)
}

/// Ends a subject in the middle of its run.
fn cut(subject: &Subject, ending: Ending) {
    let place = Place::new();
    let running = Running::start(subject.command(&place, subject.long), place);
    running.has_measured(TURNS, false);
    running.end(ending);
    let (ran, place) = running.ended(subject.files);
    let context = format!("{} {ending:?}: {ran:#?}", subject.name);
    if ending == Ending::Kill {
        assert_eq!(ran.code, None, "{context}");
        return;
    }
    assert_eq!(ran.code, Some(subject.code_of(ending)), "{context}");
    subject.figures(&ran, &place, Some(ending)).unwrap_or_else(|wrong| panic!("{wrong}\n{context}"));
}

/// Runs a subject until it ends by itself.
fn done(subject: &Subject) {
    let place = Place::new();
    let (ran, place) = Running::start(subject.command(&place, subject.short), place).ended(subject.files);
    assert_eq!(ran.code, Some(0), "{}: {ran:#?}", subject.name);
    subject.figures(&ran, &place, None).unwrap_or_else(|wrong| panic!("{}: {wrong}\n{ran:#?}", subject.name));
}

/// Runs a subject with a full, a closed and an unread stdout. If the subject needs its files, it also runs without room
/// for them.
fn unwritable(subject: &Subject) {
    for (redirected, code) in [("> /dev/full", 1), (">&-", 1), ("| :", 0)] {
        let place = Place::new();
        let script = format!("\"$0\" \"$@\" {redirected}; exit ${{PIPESTATUS[0]}}");
        let mut command = support::program(["bash", "-c", &script, support::BINARY]);
        command.args(subject.words(&place, subject.short));
        let (ran, _) = Running::start(command, place).ended(subject.files);
        assert_eq!(ran.code, Some(code), "{} {redirected}: {ran:#?}", subject.name);
        let told = ["No space left", "Bad file descriptor"].iter().any(|why| ran.err.contains(why));
        assert_eq!(told, code == 1, "{} {redirected}: {ran:#?}", subject.name);
    }
    if subject.saves {
        let place = Place::new();
        let mut command = support::program(["prlimit", "--fsize=100", support::BINARY]);
        command.args(subject.words(&place, subject.short));
        let (ran, _) = Running::start(command, place).ended(&[]);
        assert!(ran.code == Some(1) && ran.err.contains("File too large"), "{}: {ran:#?}", subject.name);
        assert!(!ran.out.is_empty(), "{}: the figures are shown: {ran:#?}", subject.name);
    }
}

/// Tests all endings of a subject.
fn all(name: &str) {
    let subject = subjects::named(name);
    done(subject);
    unwritable(subject);
    let endings = Ending::all().into_iter();
    let endings = Mutex::new(endings.filter(|ending| subject.has_worker || *ending != Ending::Worker).fuse());
    let next = || endings.lock().ok()?.next();
    thread::scope(|scope| {
        for _ in 0..if subject.sleeps { 4 } else { 1 } {
            scope.spawn(|| std::iter::from_fn(next).for_each(|ending| cut(subject, ending)));
        }
    });
}

#[test]
fn of_periodic_threads() {
    all("wake");
}

#[test]
fn of_transactions() {
    all("ipc");
}

#[test]
fn of_busy_loops() {
    all("noise");
}

#[test]
fn of_points_one_after_the_other() {
    all("cpu");
}

#[test]
fn of_messages_to_a_remote() {
    all("remote");
}

#[test]
fn of_cyclictest() {
    all("cyclictest");
}

#[test]
fn of_a_program_that_measures_in_its_own_threads() {
    all("pmqtest");
}
