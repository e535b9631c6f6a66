//! Blame on a trace of a real kernel, and on damaged ones.
#![forbid(unsafe_code)]

mod dat;

use dat::{Dat, THEFT};
use latscope_core::report::Cause;
use latscope_trace::blame::{LateWakeContext, LateWakeWindow, causes, real_time_use};
use latscope_trace::events::{
    Decoder, KernelTraceEvent, KernelTraceEventKind, TraceEventTask, dat as write, format_events,
    last_thread_names,
};
use proptest::prelude::*;

/// As [`THEFT`], with a thread `endless` of SCHED_FIFO 10, which the kernel held back after a while, and with it the
/// victim.
const THROTTLING: &[u8] = include_bytes!("traces/throttling.dat");

/// As [`THEFT`] without a thief: a control group froze the victim, a thread on CPU 0 thawed it, and ordinary threads
/// kept both CPUs busy.
const FROZEN: &[u8] = include_bytes!("traces/frozen.dat");

/// The late wake-ups that the victim noted: `late: cpu 1 thread 5 from 1 until 2`.
fn windows(events: &[KernelTraceEvent]) -> Vec<LateWakeWindow> {
    let noted = |event: &KernelTraceEvent| {
        let KernelTraceEventKind::Mark { text } = &event.kind else { return None };
        let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [cpu, thread, from, until] = numbers[..] else { return None };
        Some(LateWakeWindow { cpu: cpu as u32, thread: thread as u32, from, until, by_timer: true })
    };
    events.iter().filter_map(noted).collect()
}

#[test]
fn the_thief_is_named_with_what_it_took() {
    let events = Dat::read(THEFT).events();
    let windows = windows(&events);
    let window = windows.iter().max_by_key(|window| window.until - window.from).unwrap();
    assert!(window.until - window.from > 2_000_000);
    for virtual_machine in [false, true] {
        let setting =
            LateWakeContext { virtual_machine, tick: Some(10_000_000), ..LateWakeContext::default() };
        let found = causes(&events, window, &setting);
        assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
        assert_eq!((found[0].kind.as_str(), found[0].name.as_str()), ("thread", "thief"));
        assert!(found[0].ns > 1_900_000, "{found:#?}");
        let kinds: Vec<&str> = found.iter().map(|cause| cause.kind.as_str()).collect();
        assert!(kinds.contains(&"irq"), "{kinds:?}");
        // The timer's interrupt was some microseconds on its way.
        assert!(virtual_machine || kinds.contains(&"unknown"), "{kinds:?}");
    }
}

#[test]
fn throttling_is_proven_by_the_switches_of_a_real_kernel() {
    let events = Dat::read(THROTTLING).events();
    let windows = windows(&events);
    let window = windows.iter().max_by_key(|window| window.until - window.from).unwrap();
    assert!(window.until - window.from > 20_000_000, "{window:?}");
    for virtual_machine in [false, true] {
        let setting =
            LateWakeContext { virtual_machine, tick: Some(10_000_000), ..LateWakeContext::default() };
        let found = causes(&events, window, &setting);
        assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
        assert_eq!(found[0].kind, "throttling", "{found:#?}");
        assert!(found[0].ns > (window.until - window.from) / 2, "{found:#?}");
        assert!(found.iter().all(|cause| !cause.kind.starts_with("hypervisor")), "{found:#?}");
    }
    let before = (window.from - 20_000_000, window.from);
    let found = real_time_use(&events, window.cpu, before, window.thread).unwrap();
    let (busiest, _) = found.busiest.as_ref().unwrap();
    assert_eq!((&*busiest.name, busiest.priority), ("endless", 89));
    assert!(found.all_ns as f64 > 0.8 * found.traced_ns as f64, "{found:?}");
}

#[test]
fn a_frozen_thread_is_kept_from_nothing_by_the_threads_of_the_cpu_that_thaws_it() {
    let events = Dat::read(FROZEN).events();
    let windows = windows(&events);
    let window = windows.iter().max_by_key(|window| window.until - window.from).unwrap();
    assert!(window.until - window.from > 10_000_000, "{window:?}");
    let is_of_victim = |event: &&KernelTraceEvent| matches!(&event.kind, KernelTraceEventKind::Waking { task, .. } if task.tid == window.thread);
    let thawed = events.iter().filter(is_of_victim).rfind(|event| event.at <= window.until).unwrap();
    assert_ne!(thawed.cpu, window.cpu);
    for virtual_machine in [false, true] {
        let setting =
            LateWakeContext { virtual_machine, tick: Some(10_000_000), ..LateWakeContext::default() };
        let found = causes(&events, window, &setting);
        assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
        assert_eq!(found[0].kind, "frozen", "{found:#?}");
        let of_others =
            found.iter().filter(|cause| cause.kind == "thread").map(|cause| cause.ns).sum::<u64>();
        assert!(of_others < 100_000, "{found:#?}");
    }
}

/// Returns the rule that an explanation breaks, judged by the events alone.
fn broken_rule(
    events: &[KernelTraceEvent],
    window: &LateWakeWindow,
    setting: &LateWakeContext,
    found: &[Cause],
) -> Option<String> {
    let sum = |kind: &str| found.iter().filter(|cause| cause.kind == kind).map(|cause| cause.ns).sum::<u64>();
    if sum("hypervisor") > setting.stolen || sum("quota") > setting.throttled {
        return Some(format!("more than was counted: {found:?}"));
    }
    let is_real_time = |tid: u32| {
        let named = |task: &TraceEventTask| task.tid == tid && task.priority < 100;
        events.iter().any(|event| match &event.kind {
            KernelTraceEventKind::Switch { from, to, .. } => named(from) || named(to),
            KernelTraceEventKind::Wakeup { task, .. } | KernelTraceEventKind::WakeupNew { task, .. } => {
                named(task)
            }
            _ => false,
        })
    };
    let others = found.iter().filter(|cause| cause.kind == "thread" && cause.pid != window.thread);
    others.into_iter().find_map(|cause| {
        let ran = events.iter().any(|event| match &event.kind {
            KernelTraceEventKind::Switch { from, to, .. } => from.tid == cause.pid || to.tid == cause.pid,
            _ => event.thread == cause.pid,
        });
        let too_long = cause.ns > 10_000_000 && is_real_time(window.thread) && !is_real_time(cause.pid);
        (!ran || too_long && window.by_timer).then(|| format!("{cause:?}"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Takes any window of the recorded traces, for any of the threads, with any counts of the kernel, and with events
    /// that are missing.
    #[test]
    fn every_explanation_of_a_recorded_trace_obeys_the_rules(
        file in 0usize..3,
        (from, length) in (0.0f64..1.0, 0u64..400_000_000),
        (thread, cpu) in (any::<prop::sample::Index>(), 0u32..2),
        (stolen, throttled) in (0u64..60_000_000, 0u64..60_000_000),
        (virtual_machine, by_timer) in (any::<bool>(), any::<bool>()),
        missing in 1usize..40,
    ) {
        let mut events = Dat::read([THEFT, THROTTLING, FROZEN][file]).events();
        let (begin, end) = (events[0].at, events.last().unwrap().at);
        if missing > 1 {
            let mut at = 0;
            events.retain(|_| { at += 1; at % missing != 0 });
        }
        let threads: Vec<u32> = last_thread_names(&events).into_keys().filter(|tid| *tid != 0).collect();
        let from = begin + (from * (end - begin) as f64) as u64;
        let window = LateWakeWindow { cpu, thread: *thread.get(&threads), from, until: from + length, by_timer };
        let setting = LateWakeContext { virtual_machine, tick: Some(10_000_000), stolen, throttled, ..LateWakeContext::default() };
        let found = causes(&events, &window, &setting);
        prop_assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), length);
        prop_assert_eq!(broken_rule(&events, &window, &setting, &found), None);
    }
}

#[test]
fn events_are_whole_and_in_order_on_each_cpu() {
    let dat = Dat::read(THEFT);
    let events = dat.events();
    assert_eq!(dat.catalogue.page_size(), Some(4096));
    for cpu in 0..2 {
        let of_cpu: Vec<&KernelTraceEvent> = events.iter().filter(|event| event.cpu == cpu).collect();
        let mut on_cpu = None;
        for event in of_cpu {
            assert!(on_cpu.is_none_or(|thread| thread == event.thread), "{event:?}");
            on_cpu = Some(event.thread);
            if let KernelTraceEventKind::Switch { from, to, .. } = &event.kind {
                assert_eq!(from.tid, event.thread);
                on_cpu = Some(to.tid);
            }
        }
    }
    let names = last_thread_names(&events);
    assert!(names.values().any(|name| &**name == "victim"));
    let lines = format_events(&events, &names);
    assert_eq!(lines.lines().filter(|line| !line.starts_with('#')).count(), events.len());
}

#[test]
fn events_of_which_nothing_is_known_are_in_the_text_too() {
    // What the kernel calls a waking, it might call a transaction: as many lines, another name.
    let mut dat = Dat::read(THEFT);
    let lines = |dat: &Dat, name: &str| {
        let events = dat.events();
        let text = format_events(&events, &last_thread_names(&events));
        let line = format!(": {name}: ");
        text.lines().filter(|of| of.contains(&line)).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = lines(&dat, "sched_waking");
    for (_, format) in &mut dat.catalogue.events {
        *format = format.replace("name: sched_waking", "name: binder_transaction");
    }
    let after = lines(&dat, "binder_transaction");
    assert!(before.len() > 10);
    assert_eq!(after.len(), before.len());
    // Fields as the kernel prints them, which is what we print of those that we know.
    let fields = |line: &String| line.split("comm=").nth(1).unwrap().to_owned();
    assert!(
        after.iter().map(fields).all(|fields| fields.contains(" pid=") && fields.contains(" prio=")),
        "{after:#?}"
    );
}

#[test]
fn a_file_written_and_read_back_is_the_same() {
    let dat = Dat::read(THEFT);
    let pages: Vec<Vec<&[u8]>> =
        dat.pages.iter().map(|pages| pages.iter().map(Vec::as_slice).collect()).collect();
    let again = Dat::read(&write(&dat.catalogue, "mono", &last_thread_names(&dat.events()), &pages).unwrap());
    assert_eq!((&again.catalogue, &again.pages), (&dat.catalogue, &dat.pages));
    assert_eq!(again.events(), dat.events());
}

#[test]
fn a_catalogue_without_formats_yields_nothing() {
    let mut dat = Dat::read(THEFT);
    dat.catalogue.events.retain(|(system, _)| system == "ftrace");
    assert!(dat.events().iter().all(|event| matches!(
        event.kind,
        KernelTraceEventKind::Mark { .. } | KernelTraceEventKind::Lost { .. }
    )));
    dat.catalogue.header_page.clear();
    assert_eq!(dat.events(), []);
    assert_eq!(write(&dat.catalogue, "mono", &Default::default(), &[]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_damaged_trace_is_read_as_far_as_it_goes(
        damage in proptest::collection::vec((0usize..4096, any::<u8>()), 1..40),
        cut in 0usize..4097,
    ) {
        let mut dat = Dat::read(THEFT);
        let windows = windows(&dat.events());
        for page in dat.pages.iter_mut().flatten() {
            damage.iter().for_each(|(at, byte)| page[*at] = *byte);
            page.truncate(cut);
        }
        let events = dat.events();
        for window in windows {
            let found = causes(&events, &window, &LateWakeContext::default());
            prop_assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), window.until - window.from);
        }
        let _ = format_events(&events, &last_thread_names(&events));
    }

    #[test]
    fn damaged_formats_do_no_harm(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60)) {
        let mut dat = Dat::read(THEFT);
        for (at, byte) in damage {
            let index = at.index(dat.catalogue.events.len());
            let text = &mut dat.catalogue.events[index].1;
            let mut bytes = std::mem::take(text).into_bytes();
            let place = at.index(bytes.len().clamp(1, 700));
            bytes[place] = byte;
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        let mut decoder = Decoder::new(&dat.catalogue);
        let mut count = 0;
        dat.pages.iter().flatten().for_each(|page| decoder.decode_page(0, page, |_| count += 1));
        prop_assert!(count < 10_000);
    }
}
