use super::*;
use crate::blame::{LateWakeContext, LateWakeWindow, causes};
use crate::events::KernelTraceEventKind;
use crate::skipped::{has_program, skipped_in_part, traceable};
use crate::tracefs::testing::shared_settings;
use latscope_core::plan::Traced;
use latscope_os::clock::monotonic_ns;
use latscope_os::sched::{self, ThreadSchedPolicy};
use latscope_os::trace_marker::Marker;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use std::process::Command;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const MILLISECOND: u64 = 1_000_000;

fn sleep_until(ns: u64) {
    let due = Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    while clock_nanosleep_absolute(ClockId::Monotonic, &due) == Err(Errno::INTR) {}
}

/// Starts a thread with a name and priority on a CPU.
fn spawn<T: Send + 'static>(
    name: &str,
    cpu: u32,
    priority: u32,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let prepared = move || {
        sched::pin(&[cpu]).unwrap();
        sched::set_policy(ThreadSchedPolicy::Fifo(priority)).unwrap();
        body()
    };
    Builder::new().name(name.to_owned()).spawn(prepared).unwrap()
}

/// Runs a periodic thread that is robbed at every third activation. Returns the windows of these activations,
/// and of the others. The trace is read meanwhile, since the kernel's buffer keeps events for a limited time.
fn robbery(cpu: u32, tracer: &mut LateWakeTracer) -> (Vec<LateWakeWindow>, Vec<LateWakeWindow>) {
    let marker = Marker::open(&tracer.marker_path()).unwrap();
    // Turns begin when both threads run, however long they took to start.
    let (ready, epoch) = (Arc::new(Barrier::new(2)), Arc::new(OnceLock::new()));
    let due = move || {
        ready.wait();
        let epoch = *epoch.get_or_init(|| monotonic_ns() + 20 * MILLISECOND);
        move |turn: u64| epoch + turn * 10 * MILLISECOND
    };
    let begin = due.clone();
    let victim = spawn("victim", cpu, 40, move || {
        let due = begin();
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let activation = |turn| {
            sleep_until(due(turn));
            let until = monotonic_ns();
            marker.write_note(format_args!("turn {turn}"));
            LateWakeWindow { cpu, thread, from: due(turn), until: until.max(due(turn)), by_timer: true }
        };
        (0..12).map(activation).collect::<Vec<_>>()
    });
    let hog = spawn("cpu_hog", cpu, 60, move || {
        let due = due();
        for turn in (0..12).step_by(3) {
            sleep_until(due(turn) - MILLISECOND / 2);
            // If it comes late, so does the victim, which has to wait for it even so.
            let until = (due(turn) + 2 * MILLISECOND).max(monotonic_ns() + MILLISECOND);
            while monotonic_ns() < until {}
        }
    });
    while !victim.is_finished() {
        tracer.read_recorded().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let windows = victim.join().unwrap();
    hog.join().unwrap();
    let numbered = windows.into_iter().enumerate();
    let (robbed, free): (Vec<_>, Vec<_>) = numbered.partition(|(turn, _)| turn % 3 == 0);
    let plain =
        |windows: Vec<(usize, LateWakeWindow)>| windows.into_iter().map(|(_, window)| window).collect();
    (plain(robbed), plain(free))
}

#[test]
fn a_cpu_hog_is_named_and_the_file_opens_in_trace_cmd() {
    if !traceable("a_cpu_hog_is_named_and_the_file_opens_in_trace_cmd")
        || !has_program("a_cpu_hog_is_named_and_the_file_opens_in_trace_cmd", "trace-cmd")
    {
        return;
    }
    let before = shared_settings();
    let mut journalled = Vec::new();
    let mut tracer = LateWakeTracer::start_tracing(&Traced::default(), &mut |path| {
        journalled.push(path.to_owned());
        Ok(())
    })
    .unwrap();
    assert_eq!(journalled, [tracer.directory()]);
    let cpu = sched::allowed_cpus().unwrap()[0];
    let (robbed, free) = robbery(cpu, &mut tracer);
    tracer.read_recorded().unwrap();
    for window in &robbed {
        let events = tracer.events_between(window.from, window.until, Some(window.thread));
        let found = causes(&events, window, &LateWakeContext::default());
        assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
        if is_cut(&events) {
            continue;
        }
        // Named also where the kernel left out the switch to it.
        assert!(found.iter().any(|cause| cause.name.contains("cpu_hog")), "{found:#?}");
        assert!(found.iter().all(|cause| cause.kind != "not-traced"), "{found:#?}");
    }
    for window in &free {
        let found = causes(
            &tracer.events_between(window.from, window.until, Some(window.thread)),
            window,
            &LateWakeContext::default(),
        );
        assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
    }
    check_files(&mut tracer);
    let directory = tracer.directory().to_owned();
    drop(tracer);
    assert!(!directory.exists());
    assert_eq!(shared_settings(), before);
}

/// Returns true if events are missing, because too many switches on the machine left no room for them.
fn is_cut(events: &[KernelTraceEvent]) -> bool {
    events.iter().any(|event| matches!(event.kind, KernelTraceEventKind::Lost { .. }))
}

/// Checks that the files saved have all events, for latscope and for trace-cmd.
fn check_files(tracer: &mut LateWakeTracer) {
    let directory = tempfile::tempdir().unwrap();
    let (dat, text) = (directory.path().join("trace.dat"), directory.path().join("trace.txt"));
    for path in [&dat, &text] {
        fs::write(path, tracer.content(path).unwrap()).unwrap();
    }
    let events = tracer.events_between(0, u64::MAX, None);
    let switches =
        events.iter().filter(|event| matches!(event.kind, KernelTraceEventKind::Switch { .. })).count();
    // One to each preemption at the least: a victim that is late does not sleep in between.
    assert!(switches >= 4, "{switches}");
    if is_cut(&events) {
        let test = "a_cpu_hog_is_named_and_the_file_opens_in_trace_cmd";
        return skipped_in_part(test, "so much was switched beside it that no file has all events");
    }
    let text = fs::read_to_string(text).unwrap();
    let report = Command::new("trace-cmd").arg("report").arg(&dat).output();
    let report = report.unwrap();
    let errors = String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success(), "{errors}");
    let report = String::from_utf8(report.stdout).unwrap();
    for all in [&text, &report] {
        let count = |word: &str| all.lines().filter(|line| line.contains(word)).count();
        assert_eq!(count(" sched_switch: "), switches, "{errors}");
        assert_eq!(count("turn 11"), 1, "{report}");
        assert!(count("cpu_hog") > 0 && count("local_timer_entry") > 0 || cfg!(not(target_arch = "x86_64")));
    }
    // The same instants, to the microsecond that trace-cmd shows.
    let mark = events
        .iter()
        .find(|event| matches!(&event.kind, KernelTraceEventKind::Mark { text } if text.contains("turn 11")));
    let at = mark.unwrap().at / 1000;
    let stamp = format!("{}.{:06}:", at / 1_000_000, at % 1_000_000);
    let next = format!("{}.{:06}:", (at + 1) / 1_000_000, (at + 1) % 1_000_000);
    let line = report.lines().find(|line| line.contains("turn 11")).unwrap();
    assert!(line.contains(&stamp) || line.contains(&next), "{line} {stamp}");
}

#[test]
fn the_last_reading_has_all_up_to_the_end_of_the_recording() {
    if !traceable("the_last_reading_has_all_up_to_the_end_of_the_recording") {
        return;
    }
    let mut tracer = LateWakeTracer::start_tracing(&Traced::default(), &mut |_| Ok(())).unwrap();
    let marker = Marker::open(&tracer.marker_path()).unwrap();
    for turn in 0..20_000 {
        marker.write_note(format_args!("turn {turn}"));
    }
    tracer.read_last().unwrap();
    marker.write_note(format_args!("turn 20000"));
    let has = |tracer: &mut LateWakeTracer, wanted: &str| {
        let events = tracer.events_between(0, u64::MAX, None);
        events
            .iter()
            .any(|event| matches!(&event.kind, KernelTraceEventKind::Mark { text } if &**text == wanted))
    };
    assert!(has(&mut tracer, "turn 19999"));
    tracer.read_last().unwrap();
    assert!(!has(&mut tracer, "turn 20000"), "it was recorded after the end");
}

#[test]
fn memory_is_bounded_and_what_was_dropped_is_not_guessed() {
    if !traceable("memory_is_bounded_and_what_was_dropped_is_not_guessed") {
        return;
    }
    let mut tracer = LateWakeTracer::start_tracing(&Traced::default(), &mut |_| Ok(())).unwrap();
    for cpu in &mut tracer.cpus {
        cpu.most_bytes = 4096;
    }
    let cpu = sched::allowed_cpus().unwrap()[0];
    let (robbed, _) = robbery(cpu, &mut tracer);
    tracer.read_recorded().unwrap();
    assert!(tracer.cpus.iter().all(|cpu| cpu.bytes() <= 4096));
    let window = robbed[0];
    let found = causes(
        &tracer.events_between(window.from, window.until, Some(window.thread)),
        &window,
        &LateWakeContext::default(),
    );
    assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
    // On a busy machine the window may last until the few events that are kept.
    let kept = tracer.events_between(0, u64::MAX, None)[0].at;
    let known = found.iter().filter(|cause| cause.kind != "not-traced").map(|cause| cause.ns).sum::<u64>();
    assert!(known <= window.until.saturating_sub(kept), "{found:#?}");
    assert_eq!(found[0].kind, "not-traced", "{found:#?}");
}
