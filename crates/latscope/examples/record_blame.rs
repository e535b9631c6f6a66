//! Wakes up periodically beside a thief of the CPU, as root, says who took the
//! time of each late wake-up, and saves the trace around the worst: how a tracer
//! is used, and how `theft.dat` in `crates/latscope-trace/tests/traces` was made. With `throttling`
//! behind the file the thief never sleeps, so that the kernel holds both back for a while:
//! that made `throttling.dat`. With `frozen` there is no thief: a control group (version 1) freezes the victim, and a
//! thread on another CPU thaws it, while ordinary threads keep both CPUs busy. That made `frozen.dat`.
//!
//! ```text
//! cargo run --example record_blame [FILE.dat [throttling|frozen]]
//! ```
#![forbid(unsafe_code)]

use anyhow::Context;
use latscope_core::plan::Traced;
use latscope_core::report::Outlier;
use latscope_os::clock::monotonic_ns;
use latscope_os::sched::{self, ThreadSchedPolicy};
use latscope_os::trace_marker::Marker;
use latscope_trace::blame::{LateWakeContext, LateWakeWindow, causes};
use latscope_trace::events::{self, Decoder};
use latscope_trace::tracer::LateWakeTracer;
use latscope_views::blame::format_outlier;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute, gettid};
use std::thread::{Builder, JoinHandle};

const MILLISECOND: u64 = 1_000_000;

/// Names that may stand in a file for everybody.
const KNOWN: [&str; 10] = [
    "victim", "thief", "endless", "busy", "swapper/", "kworker/", "ksoftirqd/", "rcu", "migration/",
    "record_blame",
];

fn main() -> anyhow::Result<()> {
    let mut tracer = LateWakeTracer::start_tracing(&Traced::default(), &mut |_| Ok(()))?;
    for shortfall in tracer.shortfalls() {
        eprintln!("on this kernel {shortfall}");
    }
    let cpu = *sched::allowed_cpus()?.last().context("no CPU may be used")?;
    let (epoch, marker) = (monotonic_ns() + 100 * MILLISECOND, Marker::open(&tracer.marker_path())?);
    let word = std::env::args().nth(2).unwrap_or_default();
    let turns = if word == "throttling" { 250 } else { 10 };
    let victim = spawn("victim", cpu, 40, move || victim(cpu, epoch, turns, &marker))?;
    match word.as_str() {
        "throttling" => {
            let until = epoch + turns * 10 * MILLISECOND;
            let endless = spawn("endless", cpu, 10, move || compute(epoch, until))?;
            endless.join().expect("it does not panic");
        }
        "frozen" => freeze(epoch)?,
        _ => spawn("thief", cpu, 60, move || thief(epoch))?.join().expect("the thief does not panic"),
    }
    let windows = victim.join().expect("the victim does not panic");
    tracer.read_recorded()?;
    for window in &windows {
        let events = tracer.events_between(window.from, window.until, Some(window.thread));
        let cause = causes(&events, window, &LateWakeContext::default());
        let value = window.until - window.from;
        println!(
            "{}",
            format_outlier(&Outlier { at: window.from - epoch, cpu, value, cause, ..Outlier::default() })
        );
    }
    let worst = windows.iter().max_by_key(|window| window.until - window.from);
    if let (Some(file), Some(worst)) = (std::env::args().nth(1), worst) {
        std::fs::write(file, excerpt(&mut tracer, worst).context("a layout that is not understood")?)?;
    }
    Ok(())
}

fn spawn<T: Send + 'static>(
    name: &str,
    cpu: u32,
    priority: u32,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        sched::pin(&[cpu]).expect("an allowed CPU");
        sched::set_policy(ThreadSchedPolicy::Fifo(priority)).expect("root may be a real-time thread");
        body()
    })
}

fn sleep_until(ns: u64) {
    let due = Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
}

fn victim(cpu: u32, epoch: u64, turns: u64, marker: &Marker) -> Vec<LateWakeWindow> {
    let thread = gettid().as_raw_nonzero().get() as u32;
    let activation = |turn: u64| {
        let from = epoch + turn * 10 * MILLISECOND;
        sleep_until(from);
        let until = monotonic_ns().max(from);
        marker.write_note(format_args!("late: cpu {cpu} thread {thread} from {from} until {until}"));
        LateWakeWindow { cpu, thread, from, until, by_timer: true }
    };
    (0..turns).map(activation).collect()
}

fn compute(from: u64, until: u64) {
    sleep_until(from);
    while monotonic_ns() < until {}
}

/// Freezes the thread `victim` of this process in the midst of its turns, and thaws it from the first CPU.
fn freeze(epoch: u64) -> anyhow::Result<()> {
    let cpus = sched::allowed_cpus()?;
    let until = epoch + 70 * MILLISECOND;
    for cpu in &cpus {
        let cpu = *cpu;
        Builder::new().name("busy".to_owned()).spawn(move || {
            sched::pin(&[cpu]).expect("an allowed CPU");
            compute(epoch, until);
        })?;
    }
    let group = std::path::Path::new("/sys/fs/cgroup/freezer/record_blame");
    std::fs::create_dir(group)?;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?;
        if std::fs::read_to_string(task.path().join("comm"))?.trim() == "victim" {
            std::fs::write(group.join("tasks"), task.file_name().into_encoded_bytes())?;
        }
    }
    sched::pin(&cpus[..1])?;
    for (at, state) in [(33, "FROZEN"), (51, "THAWED")] {
        sleep_until(epoch + at * MILLISECOND);
        std::fs::write(group.join("freezer.state"), state)?;
    }
    // Busy until the victim has ended.
    while std::fs::remove_dir(group).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

fn thief(epoch: u64) {
    for turn in [3, 7] {
        let due = epoch + turn * 10 * MILLISECOND;
        sleep_until(due - MILLISECOND / 2);
        while monotonic_ns() < due + 2 * MILLISECOND {}
    }
}

/// The pages around a window as a file, without the names of strangers.
fn excerpt(tracer: &mut LateWakeTracer, window: &LateWakeWindow) -> Option<Vec<u8>> {
    let events = tracer.events_between(0, u64::MAX, None);
    let (known, strangers): (Vec<_>, Vec<_>) = events::last_thread_names(&events)
        .into_iter()
        .partition(|(_, name)| KNOWN.iter().any(|known| name.starts_with(known)));
    let mut decoder = Decoder::new(tracer.catalogue());
    let mut wanted = |cpu: u32, page: &[u8]| {
        let mut near = false;
        decoder.decode_page(cpu, page, |event| {
            near |= (window.from - MILLISECOND..window.until + MILLISECOND).contains(&event.at);
        });
        near
    };
    let mut kept: Vec<Vec<Vec<u8>>> = Vec::new();
    for cpu in 0..=window.cpu {
        let mut pages = tracer.pages(cpu);
        pages.retain(|page| wanted(cpu, page));
        kept.push(pages.into_iter().map(<[u8]>::to_vec).collect());
    }
    for (_, name) in strangers {
        kept.iter_mut().flatten().for_each(|page| hide(page, &name));
    }
    let pages: Vec<Vec<&[u8]>> = kept.iter().map(|pages| pages.iter().map(Vec::as_slice).collect()).collect();
    events::dat(tracer.catalogue(), "mono", &known.into_iter().collect(), &pages)
}

/// Replaces a thread's name wherever it stands.
fn hide(page: &mut [u8], name: &str) {
    let (old, mut new) = (format!("{name}\0").into_bytes(), b"other".to_vec());
    new.resize(old.len(), 0);
    *new.last_mut().expect("it ends with NUL") = 0;
    for at in 0..page.len().saturating_sub(old.len()) {
        if page[at..].starts_with(&old) {
            page[at..at + old.len()].copy_from_slice(&new);
        }
    }
}
