//! Runs beside a SCHED_FIFO loop, most of whose threads get no CPU.
//!
//! The loop is a thread of the test, and ends by its own clock. Each command has to end while it still runs: no test
//! here judges a time. A binary of its own: tests that run at once would be starved as well.
#![forbid(unsafe_code)]

mod beside;
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

use latscope_os::sched::{self, ThreadSchedPolicy};
use process::Mark;
use rustix::process::Signal;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use support::{Place, Ran, eventually, json, latscope, measurements, needs, program, root, start, wait};

/// Longest time of a loop: a command that is ended by itself ends well before.
const LONGEST: Duration = Duration::from_secs(8);

/// A loop under SCHED_FIFO on one CPU. Ends when it is dropped, and in any case by its own clock.
struct Hog {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    /// Starts a loop of the highest priority.
    fn on(cpu: u32) -> Hog {
        Hog::of(99, cpu)
    }

    /// Starts a loop of a priority that has the CPU when this returns.
    fn of(priority: u32, cpu: u32) -> Hog {
        let (over, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (end, begin) = (over.clone(), begun.clone());
        let body = move || {
            sched::pin(&[cpu]).unwrap();
            sched::set_policy(ThreadSchedPolicy::Fifo(priority)).unwrap();
            begin.store(true, Ordering::Relaxed);
            let began = Instant::now();
            while began.elapsed() < LONGEST && !end.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let thread = thread::Builder::new().name("hog".to_owned()).spawn(body).unwrap();
        eventually("the loop runs", || begun.load(Ordering::Relaxed).then_some(()));
        Hog { over, thread: Some(thread) }
    }

    /// Asserts that the loop still runs: what ended did not wait for it.
    #[track_caller]
    fn runs_on(&self, ran: &Ran) {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        assert!(!ended, "the command waited for the loop: {ran:#?}");
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the CPU of the loop, and the lock by which only one test has a loop. `None` if this machine does not let
/// the test run.
fn prepared(test: &str) -> Option<(u32, MutexGuard<'static, ()>)> {
    static ONE: Mutex<()> = Mutex::new(());
    let cpus = sched::allowed_cpus().unwrap();
    let ready = root(test) && needs(test, cpus.len() > 1, "it needs a second CPU");
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    ready.then(|| (*cpus.last().unwrap(), one))
}

/// Runs a command beside a loop that has its CPU from before its start.
#[track_caller]
fn beside(cpu: u32, call: &str, place: &Place) -> Ran {
    let hog = Hog::on(cpu);
    let words = call.replace("CPU", &cpu.to_string()).replace("PLACE", place.path().to_str().unwrap());
    let ran = wait(start(&mut latscope(words.split_whitespace())));
    hog.runs_on(&ran);
    ran.no_panic();
    ran
}

/// The row of a CPU.
fn row(result: &Value, cpu: u32) -> &Value {
    let mut rows = measurements(result).iter();
    rows.find(|m| m["params"]["cpu"] == cpu).unwrap_or_else(|| panic!("no row of CPU {cpu}: {result:#}"))
}

/// Asserts that a row states that its thread had not run at the end, with who had the CPU, and returns how late it was.
#[track_caller]
fn late(m: &Value, cpu: u32) -> f64 {
    let reasons = m["quality"]["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|reason| reason["id"] == "not-run");
    let reason = reason.unwrap_or_else(|| panic!("no reason: {m:#}"));
    let text = reason["text"].as_str().unwrap();
    let who = format!("(hog (pid {}, SCHED_FIFO 99) had CPU {cpu})", std::process::id());
    assert!(text.contains("had not run when the run ended") && text.ends_with(&who), "{text}");
    assert!(reasons.iter().all(|reason| reason["id"] != "other-cpu"), "{m:#}");
    let late = reason["values"]["lower_bound"].as_f64().unwrap();
    assert!(late >= 1e9 && m["summary"]["max"].as_f64() >= Some(late), "{m:#}");
    late
}

/// Asserts that it was said while it lasted who had the CPU.
#[track_caller]
fn is_said(ran: &Ran, cpu: u32) {
    let text = format!("CPU {cpu}: the thread has not run for ");
    let who = format!(": hog (pid {}, SCHED_FIFO 99) has it", std::process::id());
    assert!(ran.err.lines().any(|line| line.contains(&text) && line.contains(&who)), "{ran:#?}");
}

#[test]
fn periodic_threads_that_never_run() {
    let Some((cpu, _one)) = prepared("periodic_threads_that_never_run") else { return };
    let place = Place::new();
    let call = "wake --cpus CPU --duration 1s --max 10ms --no-live --json PLACE/result.json";
    let ran = beside(cpu, call, &place);
    let result = json(place.at("result.json"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    is_said(&ran, cpu);
    let m = row(&result, cpu);
    late(m, cpu);
    assert_eq!((&m["summary"]["count"], &m["summary"]["missed"]), (&1.into(), &999.into()), "{m:#}");
    assert_eq!(m["corrected"]["count"].as_u64().unwrap_or(1000), 1000, "{m:#}");
    assert!(result["finished"].is_string() && result["interrupted"].is_null(), "{result:#}");
    let warned = result["warnings"].as_array().unwrap().iter().any(|warning| warning["id"] == "not-run");
    assert!(warned && ran.out.contains("Verdict: exceeded"), "{ran:#?}");
}

/// A count takes as long as its intervals do. A thread that never runs would make it endless.
#[test]
fn a_count_that_cannot_be_reached() {
    let Some((cpu, _one)) = prepared("a_count_that_cannot_be_reached") else { return };
    let place = Place::new();
    let call = "wake --cpus CPU --count 1000 --max 10ms --no-live --json PLACE/result.json";
    let ran = beside(cpu, call, &place);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    late(row(&json(place.at("result.json")), cpu), cpu);
    let ran = beside(cpu, "as cyclictest -l 1000 -q -p 95 -a CPU -t 1", &Place::new());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.err.contains("had not run when the run ended"), "{ran:#?}");
}

#[test]
fn a_limit_above_what_was_seen_is_not_passed() {
    let Some((cpu, _one)) = prepared("a_limit_above_what_was_seen_is_not_passed") else { return };
    let place = Place::new();
    let call = "wake --cpus CPU --duration 1s --max 1h --no-live --json PLACE/result.json";
    let ran = beside(cpu, call, &place);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    late(row(&json(place.at("result.json")), cpu), cpu);
}

/// The kernel gives ordinary threads some time, so that they are late and not starved. How late is up to its deadline
/// server.
#[test]
fn ordinary_threads_and_one_on_a_free_cpu() {
    let Some((cpu, _one)) = prepared("ordinary_threads_and_one_on_a_free_cpu") else { return };
    let place = Place::new();
    let call = "wake --policy other --duration 2s --max 10ms --no-live --json PLACE/result.json";
    let ran = beside(cpu, call, &place);
    let result = json(place.at("result.json"));
    let rows = [sched::allowed_cpus().unwrap()[0], cpu].map(|cpu| row(&result, cpu));
    for m in rows {
        let number = |name: &str| m["summary"][name].as_u64().unwrap();
        assert_eq!(number("count") + number("missed"), 2000, "{m:#}");
    }
    let exceeded = rows.iter().any(|m| m["summary"]["max"].as_f64() > Some(1e7));
    assert_eq!(ran.code == Some(2), exceeded, "{ran:#?}");
}

#[test]
fn loops_that_watch_time() {
    let Some((cpu, _one)) = prepared("loops_that_watch_time") else { return };
    let place = Place::new();
    let call = "noise --cpus CPU --policy fifo --duration 2s --max 10ms --no-live --json PLACE/result.json";
    let ran = beside(cpu, call, &place);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    is_said(&ran, cpu);
    let result = json(place.at("result.json"));
    let m = row(&result, cpu);
    let late = late(m, cpu);
    let value = |name: &str| m["values"][name]["value"].as_f64().unwrap();
    assert!(value("watched") >= late / 1e9 && value("lost") > 50.0, "{m:#}");
    let gaps: f64 =
        ["preemption", "steal", "unattributed"].iter().map(|class| value(&format!("gaps-{class}"))).sum();
    assert_eq!(Some(gaps), m["summary"]["count"].as_f64(), "{m:#}");
}

#[test]
fn cyclictest() {
    let Some((cpu, _one)) = prepared("cyclictest") else { return };
    for call in [
        "as cyclictest -D 2 -m -p 95 -a CPU -t 1 --default-system",
        "as cyclictest -D 2 -q -p 95 -a CPU -t 1",
    ] {
        let ran = beside(cpu, call, &Place::new());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let line = ran.out.lines().rev().find(|line| line.contains("Max:")).unwrap();
        let max: u64 = line.rsplit_once("Max:").unwrap().1.trim().parse().unwrap();
        assert!(max >= 1_000_000, "{ran:#?}");
        assert!(ran.err.contains("had not run when the run ended"), "{ran:#?}");
    }
}

#[test]
fn callers_and_servers() {
    let Some((cpu, _one)) = prepared("callers_and_servers") else { return };
    let place = Place::new();
    let call = "ipc -t pipe --caller fifo --placement same-core --cpus CPU --duration 2s --max 10ms --no-live --json PLACE/result.json";
    let ran = beside(cpu, call, &place);
    assert!([Some(1), Some(2), Some(3)].contains(&ran.code), "{ran:#?}");
    is_said(&ran, cpu);
}

/// Starts a run, and a loop when it has measured; returns when the loop has run for as long as counts as starved.
fn interrupted(cpu: u32, place: &Place, signals: &[Signal]) -> Ran {
    let words =
        format!("wake --cpus {cpu} --duration 600s --max 10ms --no-live --json {}", place.at("result.json"));
    let mut command = latscope(words.split_whitespace());
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let worker = mark.wait_for("__worker").pid;
    eventually("it measures", || {
        let tasks = std::fs::read_dir(format!("/proc/{worker}/task")).ok()?.flatten();
        let turns = |path: std::path::PathBuf| {
            let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            text.split_whitespace().nth(2).and_then(|turns| turns.parse::<u64>().ok())
        };
        tasks.filter_map(|task| turns(task.path())).any(|turns| turns > 400).then_some(())
    });
    let hog = Hog::on(cpu);
    thread::sleep(Duration::from_millis(1500));
    for (number, signal) in signals.iter().enumerate() {
        if number > 0 {
            // Two signals within a second count as one.
            thread::sleep(Duration::from_millis(1100));
        }
        if mark.processes().iter().any(|process| process.pid == child.id().cast_signed()) {
            process::signal(&child, *signal);
        }
    }
    let ran = wait(child);
    hog.runs_on(&ran);
    mark.wait_for_none();
    hog.runs_on(&ran);
    ran
}

#[test]
fn a_run_that_is_asked_to_end() {
    let Some((cpu, _one)) = prepared("a_run_that_is_asked_to_end") else { return };
    for signals in [&[Signal::INT][..], &[Signal::TERM], &[Signal::INT, Signal::INT]] {
        let place = Place::new();
        let ran = interrupted(cpu, &place, signals);
        assert_eq!(ran.code, Some(2), "{signals:?}: {ran:#?}");
        let result = json(place.at("result.json"));
        let m = row(&result, cpu);
        late(m, cpu);
        assert!(
            m["summary"]["count"].as_u64() > Some(100) && m["summary"]["missed"].as_u64() >= Some(999),
            "{m:#}"
        );
        assert!(result["interrupted"]["by"].is_string(), "{result:#}");
    }
}

/// The coordinator has no CPU of its own: what lets it run lets the threads end.
#[test]
fn a_run_that_has_only_the_cpu_of_the_loop() {
    let Some((cpu, _one)) = prepared("a_run_that_has_only_the_cpu_of_the_loop") else { return };
    let place = Place::new();
    let hog = Hog::on(cpu);
    let words = "wake --duration 1s --max 10ms --no-live --json";
    let taskset = ["taskset", "-c", &cpu.to_string(), support::BINARY].map(str::to_owned);
    let words = taskset
        .into_iter()
        .chain(words.split_whitespace().map(str::to_owned))
        .chain([place.at("result.json")]);
    let ran = wait(start(&mut program(words)));
    hog.runs_on(&ran);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    late(row(&json(place.at("result.json")), cpu), cpu);
}
