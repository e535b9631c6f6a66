//! Endings of runs whose other side stands still: a process of the run, the reader of its output, or what it waits for.

use crate::support::{Place, Ran, eventually, latscope, program, wait};
use crate::{Ending, Running, skipped};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

const TOLD: Ending = Ending::Group(Signal::TERM);

/// Calls that last N seconds, and the word of the process that stands still.
const SIDES: &[(&str, &str)] = &[
    ("wake -q --duration Ns", "__worker"),
    ("wake -q --load cpu --duration Ns", "__load"),
    ("noise -q --duration Ns", "__worker"),
    ("cpu add cycle -q --type i64 --mode latency --count 1000000000 --duration Ns", "__worker"),
    ("file stat -q --dir . --count 1000000000 --duration Ns", "__guardian"),
    ("ipc -q -t pipe --count 1000000000 --duration Ns", "__worker"),
    ("ipc -q -t pipe --count 1000000000 --duration Ns", "__ipc client"),
    ("ipc -q -t pipe --count 1000000000 --duration Ns", "__ipc server"),
    ("ipc -q -t futex --count 1000000000 --duration Ns", "__ipc server"),
    ("ipc -q -t unix-stream --count 1000000000 --duration Ns", "__ipc server"),
    ("ipc -q -t sysv-mq --count 1000000000 --duration Ns", "__guardian"),
    ("remote ping -q --wait futex --duration Ns", "__remote"),
    ("remote ping -q --wait futex --duration Ns", "__worker"),
    ("remote mailbox -q --wait futex --duration Ns", "__remote"),
    ("remote bandwidth -q --wait futex --direction to-remote --duration Ns", "__remote"),
    ("remote long-ping -q --wait futex --mode lock-step --duration Ns", "__remote"),
    ("as cyclictest -q --default-system -D N", "__worker"),
    ("as svsematest -q -f -D N", "__paced"),
    ("as sigwaittest -q -f -D N", "__paced"),
];

/// Call with its duration in seconds.
fn lasting(call: &str, seconds: u32) -> String {
    call.replace("Ns", &format!("{seconds}s")).replace("-D N", &format!("-D {seconds}"))
}

fn started(call: &str) -> Running {
    let place = Place::new();
    let call = call.replace("PLACE", place.path().to_str().unwrap());
    Running::start(latscope(shlex::split(&call).unwrap()), place)
}

impl Running {
    /// Stops all processes of the run with a word, once there are any.
    fn stop(&self, word: &str) {
        self.mark.wait_for(word);
        for process in self.mark.processes().into_iter().filter(|process| process.command.contains(word)) {
            let _ = kill_process(Pid::from_raw(process.pid).unwrap(), Signal::STOP);
        }
    }

    /// Asserts that the run ends with one of latscope's codes, and that nothing is left.
    #[track_caller]
    fn ends(self) -> Ran {
        let (ran, _) = self.ended(&["pipe", "trial", "trial.log"]);
        assert!(ran.code.is_some_and(|code| code <= 3), "{ran:#?}");
        ran
    }
}

/// Runs a test for each of these, several at once.
fn each<T: Copy + Sync>(all: &[T], test: impl Fn(T) + Sync) {
    for some in all.chunks(4) {
        thread::scope(|scope| some.iter().for_each(|one| _ = scope.spawn(|| test(*one))));
    }
}

#[test]
fn of_runs_with_a_stopped_process_that_end_by_themselves() {
    each(SIDES, |(call, word)| {
        let running = started(&lasting(call, 1));
        running.stop(word);
        running.ends();
    });
}

#[test]
fn of_runs_with_a_stopped_process_that_are_ended() {
    each(SIDES, |(call, word)| {
        let running = started(&lasting(call, 600));
        running.stop(word);
        running.end(TOLD);
        running.ends();
    });
}

/// Control group whose processes can be frozen.
struct Freezer(String);

impl Freezer {
    /// Freezes a process; `None` if there are no such groups.
    fn of(pid: i32) -> Option<Freezer> {
        let directory = format!("/sys/fs/cgroup/freezer/latscope-test-{pid}");
        fs::create_dir(&directory).ok()?;
        let freezer = Freezer(directory);
        freezer.write("cgroup.procs", &pid.to_string())?;
        freezer.write("freezer.state", "FROZEN")?;
        eventually("it is frozen", || {
            (fs::read_to_string(freezer.file("freezer.state")).ok()?.trim() == "FROZEN").then_some(())
        });
        Some(freezer)
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }

    fn write(&self, name: &str, text: &str) -> Option<()> {
        fs::write(self.file(name), text).ok()
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.write("freezer.state", "THAWED");
        let _ = eventually("it is empty", || Some(fs::remove_dir(&self.0)).filter(Result::is_ok));
    }
}

/// Runs a call for so many seconds, with a frozen process. Returns false if no process can be frozen.
fn frozen(call: &str, word: &str, seconds: u32, ending: Option<Ending>) -> bool {
    let running = started(&lasting(call, seconds));
    let Some(frozen) = Freezer::of(running.mark.wait_for(word).pid) else {
        running.end(Ending::Kill);
        running.ended(&[]);
        return false;
    };
    if let Some(ending) = ending {
        running.end(ending);
    }
    let mut running = running;
    eventually("it ends", || running.child.try_wait().unwrap());
    // A frozen process dies when it goes on, and has its stderr until then.
    drop(frozen);
    running.ends();
    true
}

#[test]
fn of_runs_with_a_frozen_process() {
    let sides = [
        ("ipc -q -t pipe --count 1000000000 --duration Ns", "__ipc client"),
        ("ipc -q -t pipe --count 1000000000 --duration Ns", "__ipc server"),
        ("remote ping -q --wait futex --duration Ns", "__remote"),
        ("as svsematest -q -f -D N", "__paced"),
    ];
    each(&sides, |(call, word)| {
        for (seconds, ending) in [(1, None), (600, Some(TOLD))] {
            if !frozen(call, word, seconds, ending) {
                let name = "stalls::of_runs_with_a_frozen_process";
                return skipped::skipped_in_part(name, "it needs the freezer of control groups, version 1");
            }
        }
    });
}

/// Command whose stdout is read by a process that stops itself before.
fn read_by_stopped(call: &str) -> Running {
    let script = "exec 3> >(kill -STOP $BASHPID; cat >/dev/null); sleep 0.2; exec \"$0\" \"$@\" >&3 3>&-";
    let words = ["bash", "-c", script, crate::support::BINARY].into_iter().chain(call.split_whitespace());
    Running::start(program(words), Place::new())
}

/// Calls that print more than a pipe takes.
const VERBOSE: &str = "as cyclictest --default-system -v -i 100 -D N";

#[test]
fn of_output_that_a_stopped_process_reads() {
    for (duration, ending) in [(2, None), (600, Some(TOLD))] {
        let running = read_by_stopped(&lasting(VERBOSE, duration));
        if let Some(ending) = ending {
            running.has_measured(2000, false);
            running.end(ending);
        }
        let Running { child, mark, .. } = running;
        let ran = wait(child);
        let readers = mark.processes();
        readers.iter().for_each(|reader| crate::process::send(Signal::KILL, reader.pid));
        mark.wait_for_none();
        assert!(ran.code.is_some_and(|code| code <= 3), "{ran:#?}");
        let told = ran.err.contains("which stands still") || ran.err.contains("takes nothing");
        assert!(ran.code == Some(0) || told, "{ran:#?}");
        assert!(ending.is_some() || ran.err.contains("which stands still"), "{ran:#?}");
    }
}

#[test]
fn of_output_that_is_not_read() {
    // Nothing reads before the end.
    let running = started(&lasting(VERBOSE, 600));
    let waiting = || rustix::io::ioctl_fionread(running.child.stdout.as_ref()?).ok();
    eventually("its pipe is full", || {
        let before = waiting().filter(|bytes| *bytes > 10_000)?;
        thread::sleep(Duration::from_millis(500));
        (waiting() == Some(before)).then_some(())
    });
    running.end(TOLD);
    let mut running = running;
    let unread = running.child.stdout.take();
    eventually("it ends", || running.child.try_wait().unwrap());
    drop(unread);
    let ran = running.ends();
    assert!(ran.err.contains("its reader takes nothing"), "{:?}", ran.err);
}

fn fifo(place: &Place) -> String {
    let path = place.at("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn of_files_that_are_pipes_without_a_reader() {
    let calls = [
        "wake -q --duration Ns --json pipe",
        "wake -q --duration Ns --csv pipe --html pipe",
        "wake -q --duration Ns --threshold 1h --trace pipe",
        "wake -q --duration Ns --timeline pipe",
        "as cyclictest -q --default-system -D N --json=pipe",
        "as cyclictest -q --default-system -D N --histogram=100 --histfile=pipe",
        "as svsematest -q -f -D N --json=pipe",
        "import pipe --json pipe",
        "show pipe",
        "run pipe",
        "gate pipe --budget pipe",
    ];
    each(&calls, |call| {
        for (duration, ending) in [(1, None), (600, Some(TOLD))] {
            let place = Place::new();
            fifo(&place);
            let running = Running::start(latscope(lasting(call, duration).split_whitespace()), place);
            let lasts = (call.contains("Ns") || call.contains("-D N")) && !call.contains("--timeline");
            if let Some(ending) = ending.filter(|_| lasts) {
                running.has_measured(100, false);
                running.end(ending);
            }
            running.ends();
        }
    });
}

#[test]
fn of_a_turn_that_a_stopped_run_has() {
    let locks = Place::new();
    let command = |call: &str| {
        let mut command = latscope(call.split_whitespace());
        command.env("LATSCOPE_LOCK_DIR", locks.path());
        Running::start(command, Place::new())
    };
    let first = command("wake -q --duration 600s");
    first.has_measured(100, false);
    let pid = first.child.id().cast_signed();
    crate::process::send(Signal::STOP, pid);
    let ran = command("wake -q --duration 1s --wait 1s").ends();
    assert!(ran.code == Some(1) && ran.err.contains("still runs"), "{ran:#?}");
    let waiting = command("wake --duration 1s --wait 600s");
    thread::sleep(Duration::from_millis(500));
    waiting.end(TOLD);
    let ran = waiting.ends();
    assert!(ran.code == Some(1) && ran.err.contains("interrupted by SIGTERM while"), "{ran:#?}");
    crate::process::send(Signal::CONT, pid);
    first.end(TOLD);
    first.ends();
}

#[test]
fn of_trials_whose_run_or_command_stands_still() {
    let call = "trial --quiet --runs 1 --dir PLACE/trial --without true --with";
    let running = started(&format!("{call} true -- wake --duration 600s"));
    running.mark.wait_for("__worker");
    running.stop("--quiet --label");
    running.end(TOLD);
    running.ends();
    let running = started(&format!("{call} true -- wake --duration 300ms"));
    running.stop("__worker");
    running.ends();
    let running = started(&format!("{call} 'sleep 600' -- wake --duration 100ms"));
    let is_hook = |process: &crate::process::Process| process.command.starts_with("sleep 600");
    eventually("its command", || running.mark.processes().iter().any(is_hook).then_some(()));
    running.end(Ending::Once(Signal::TERM));
    let ran = running.ends();
    assert!(ran.err.contains("was ended, since SIGTERM came"), "{ran:#?}");
}

#[test]
fn of_what_waits_for_a_remote() {
    let openamp = "--openamp-shm PLACE/memory --openamp-socket PLACE/socket";
    for call in [
        format!("remote serve --pty --transport openamp {openamp}"),
        format!("remote ping --transport openamp {openamp} --duration 600s"),
    ] {
        let running = started(&call);
        eventually("it waits", || {
            let wchan = fs::read_to_string(format!("/proc/{}/wchan", running.child.id())).ok()?;
            (!wchan.is_empty()).then_some(())
        });
        thread::sleep(Duration::from_millis(500));
        running.end(TOLD);
        let (ran, _) = running.ended(&[]);
        assert!(ran.code.is_none_or(|code| code == 1), "{ran:#?}");
    }
    let running = started("as mica_main --ping --pace 1ms");
    running.stop("__remote");
    running.end(TOLD);
    running.ended(&[]);
}
