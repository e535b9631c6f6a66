use super::*;
use crate::events::Task;
use proptest::prelude::*;

const US: u64 = 1000;
const WINDOW: Window = Window { cpu: 1, thread: 50, from: 1000 * US, until: 1400 * US };
const METAL: Setting = Setting { virtual_machine: false, tick: Some(10_000 * US), stolen: 0 };
const GUEST: Setting = Setting { virtual_machine: true, ..METAL };

fn task(tid: u32) -> Task {
    let name = match tid {
        0 => "swapper/1",
        50 => "timer-1",
        7 => "hog",
        _ => "other",
    };
    Task { tid, name: name.into(), priority: 120 }
}

/// An event on CPU 1 by the thread on it, at a time in µs.
fn at(us: u64, thread: u32, kind: Kind) -> Event {
    Event { at: us * US, cpu: 1, thread, kind }
}

fn switch(us: u64, from: u32, state: u64, to: u32) -> Event {
    at(us, from, Kind::Switch { from: task(from), state, to: task(to) })
}

fn waking(us: u64, thread: u32) -> Event {
    at(us, thread, Kind::Waking { task: task(50), target: 1 })
}

fn timer(us: u64, thread: u32) -> Event {
    at(us, thread, Kind::VectorEntry { name: "local_timer".into(), vector: 236 })
}

fn timer_end(us: u64, thread: u32) -> Event {
    at(us, thread, Kind::VectorExit { name: "local_timer".into(), vector: 236 })
}

fn softirq(us: u64, thread: u32, vector: u32) -> Event {
    at(us, thread, Kind::SoftirqEntry { vector })
}

fn softirq_end(us: u64, thread: u32, vector: u32) -> Event {
    at(us, thread, Kind::SoftirqExit { vector })
}

/// Causes as text: kind, name, pid, µs.
fn told(events: &[Event], setting: &Setting) -> Vec<String> {
    let causes = causes(events, &WINDOW, setting);
    assert_eq!(causes.iter().map(|cause| cause.ns).sum::<u64>(), WINDOW.until - WINDOW.from);
    let text = |cause: &Cause| format!("{} {:?} {} {}", cause.kind, cause.name, cause.pid, cause.ns / US);
    causes.iter().map(text).collect()
}

/// The hog runs since 900 µs; the timer comes at 1001 µs and wakes the thread.
fn hog() -> Vec<Event> {
    vec![switch(900, 50, 1, 7), timer(1001, 7), waking(1003, 7), timer_end(1005, 7)]
}

#[test]
fn a_thread_that_keeps_the_cpu_is_named_and_interruptions_are_not_its_own() {
    let mut events = hog();
    events.extend([
        at(1100, 7, Kind::IrqEntry { irq: 24, name: "disk".into() }),
        at(1110, 7, Kind::IrqExit { irq: 24 }),
        softirq(1111, 7, 3),
        timer(1150, 7),
        timer_end(1152, 7),
        softirq_end(1161, 7, 3),
        switch(1390, 7, 0, 50),
    ]);
    let expected = [
        "thread \"hog\" 7 325",
        "softirq \"net_rx\" 0 48",
        "irq \"disk\" 0 10",
        "thread \"itself\" 50 10",
        "irq \"local_timer\" 0 6",
        "irq \"timer, on its way\" 0 1",
    ];
    assert_eq!(told(&events, &METAL), expected);
}

#[test]
fn an_interrupt_already_in_progress_counts_from_the_programmed_instant() {
    let irq = |us| at(us, 7, Kind::IrqEntry { irq: 9, name: "net".into() });
    let events = [
        switch(900, 50, 1, 7),
        irq(950),
        at(1300, 7, Kind::IrqExit { irq: 9 }),
        timer(1300, 7),
        waking(1300, 7),
        timer_end(1305, 7),
        switch(1306, 7, 0, 50),
    ];
    assert_eq!(told(&events, &METAL)[..2], ["irq \"net\" 0 300", "thread \"itself\" 50 94"]);
    // Also when its begin is not in the trace.
    assert_eq!(told(&events[2..], &METAL)[0], "irq \"number 9\" 0 300");
}

#[test]
fn a_late_timer_has_no_owner_on_metal_and_the_hypervisor_in_a_guest() {
    let events =
        [switch(900, 50, 1, 7), timer(1380, 7), waking(1381, 7), timer_end(1382, 7), switch(1390, 7, 0, 50)];
    assert_eq!(told(&events, &METAL)[0], "unknown \"interrupts off in hog, or firmware\" 0 380");
    assert_eq!(told(&events, &GUEST)[0], "hypervisor \"while hog ran\" 0 380");
    let stolen = Setting { stolen: 30_000 * US, ..GUEST };
    assert_eq!(told(&events, &stolen)[0], "hypervisor \"while hog ran; 30.0 ms stolen lately\" 0 380");
}

#[test]
fn an_idle_cpu_is_slow_to_wake() {
    let mut events = vec![
        switch(900, 50, 1, 0),
        timer(1380, 0),
        waking(1381, 0),
        timer_end(1382, 0),
        switch(1390, 0, 0, 50),
    ];
    let expected = ["idle-exit \"\" 0 388", "thread \"itself\" 50 10", "irq \"local_timer\" 0 2"];
    assert_eq!(told(&events, &METAL), expected);
    let wake_up = "idle-exit \"with the hypervisor's wake-up of the CPU\" 0 380";
    assert_eq!(told(&events, &GUEST)[0], wake_up);
    let stolen = Setting { stolen: 10_000 * US, ..GUEST };
    assert_eq!(
        told(&events, &stolen)[0],
        "hypervisor \"woke the idle CPU late; 10.0 ms stolen lately\" 0 380"
    );
    events.insert(1, at(901, 0, Kind::Idle { state: Some(3) }));
    events.insert(3, at(1383, 0, Kind::Idle { state: None }));
    assert_eq!(told(&events, &METAL)[0], "idle-exit \"from state 3\" 0 380");
}

#[test]
fn what_is_short_by_nature_and_was_long_is_the_hypervisors() {
    let within =
        [switch(900, 50, 1, 0), timer(1001, 0), waking(1002, 0), timer_end(1390, 0), switch(1391, 0, 0, 50)];
    assert_eq!(told(&within, &GUEST)[0], "hypervisor \"within interrupt local_timer\" 0 388");
    assert_eq!(told(&within, &METAL)[0], "irq \"local_timer\" 0 389");
    let itself =
        [switch(900, 50, 1, 0), timer(1001, 0), waking(1002, 0), timer_end(1003, 0), switch(1010, 0, 0, 50)];
    assert_eq!(told(&itself, &GUEST)[0], "hypervisor \"while the thread itself ran\" 0 390");
    let idle =
        [switch(900, 50, 1, 0), timer(1001, 0), waking(1002, 0), timer_end(1003, 0), switch(1395, 0, 0, 50)];
    assert_eq!(told(&idle, &GUEST)[0], "hypervisor \"on the way out of idle\" 0 392");
    assert_eq!(told(&idle, &METAL)[0], "run-queue \"the CPU stayed idle: throttled?\" 0 392");
}

#[test]
fn a_thread_cannot_run_longer_than_a_tick_without_one() {
    let mut events = hog();
    events.push(switch(1390, 7, 0, 50));
    let tick = Setting { tick: Some(300 * US), ..GUEST };
    assert_eq!(told(&events, &tick)[0], "hypervisor \"while hog ran: ticks are missing\" 0 385");
    assert_eq!(told(&events, &Setting { tick: None, ..GUEST })[0], "thread \"hog\" 7 385");
}

#[test]
fn a_switch_that_the_kernel_left_out_is_told_by_who_is_there_next() {
    let events = [
        switch(900, 50, 1, 0),
        timer(980, 0),
        timer_end(990, 0),
        timer(1001, 7),
        waking(1002, 7),
        timer_end(1005, 7),
        switch(1390, 7, 0, 50),
    ];
    assert_eq!(told(&events, &GUEST)[..2], ["thread \"hog\" 7 385", "thread \"itself\" 50 10"]);
    let late = [events[0].clone(), waking(1001, 0), at(1380, 7, Kind::IrqExit { irq: 1 }), events[6].clone()];
    assert_eq!(told(&late, &GUEST)[0], "unknown \"the trace lacks a switch from idle to hog\" 0 379");
    // Also that of the thread itself.
    let left = [switch(900, 0, 0, 50), timer(1001, 7), timer_end(1005, 7), switch(1390, 7, 0, 50)];
    assert_eq!(told(&left, &METAL)[0], "thread \"hog\" 7 385");
}

/// A thread was woken for CPU 1 with this priority.
fn wakeup(us: u64, tid: u32, priority: i32) -> Event {
    at(us, 0, Kind::Wakeup { task: Task { priority, ..task(tid) }, target: 1 })
}

#[test]
fn a_switch_that_the_kernel_left_out_is_known_by_the_wake_up_before_it() {
    let tick = timer(1380, 7);
    let end = switch(1381, 7, 0, 50);
    let idle = [switch(900, 50, 1, 0), wakeup(990, 7, 120), waking(1001, 0), tick.clone(), end.clone()];
    assert_eq!(told(&idle, &GUEST)[0], "thread \"hog\" 7 379");
    // From elsewhere, in the midst of the gap: until then the CPU was idle.
    let remote = Event { cpu: 0, ..wakeup(1100, 7, 120) };
    let remote = [switch(900, 50, 1, 0), waking(1001, 0), remote, tick.clone(), end.clone()];
    assert_eq!(told(&remote, &METAL)[..2], ["thread \"hog\" 7 280", "idle-exit \"\" 0 100"]);
    // Another thread gives way to one that is more urgent, and only to that.
    let busy = |priority| {
        let woken = Event { thread: 8, ..wakeup(990, 7, priority) };
        let events = [switch(900, 50, 1, 8), woken, waking(1001, 8), tick.clone(), end.clone()];
        told(&events, &GUEST)[0].clone()
    };
    assert_eq!(busy(0), "thread \"hog\" 7 379");
    assert_eq!(busy(110), "unknown \"the trace lacks a switch from other to hog\" 0 379");
}

#[test]
fn a_thread_that_takes_the_cpu_back_is_named() {
    let mut events = hog();
    events.extend([switch(1010, 7, 0, 50), switch(1012, 50, 0x100, 8), switch(1390, 8, 1, 50)]);
    assert_eq!(told(&events, &METAL)[0], "thread \"other\" 8 378");
}

#[test]
fn a_wait_within_the_kernel_is_put_down_to_who_ended_it() {
    let mut events = hog();
    events.extend([switch(1010, 7, 0, 50), switch(1012, 50, 2, 8), waking(1390, 8), switch(1395, 8, 1, 50)]);
    let expected = ["lock \"other\" 8 378", "thread \"itself\" 50 7"];
    assert_eq!(told(&events, &METAL)[..2], expected);
}

#[test]
fn a_non_maskable_interrupt_is_subtracted_from_where_it_struck() {
    let mut events = hog();
    events.extend([at(1200, 7, Kind::Nmi { ns: 50 * US }), switch(1390, 7, 0, 50)]);
    assert_eq!(told(&events, &METAL)[..2], ["thread \"hog\" 7 335", "nmi \"\" 0 50"]);
}

#[test]
fn a_thread_that_is_still_at_work_is_late_by_itself() {
    let events = [switch(900, 0, 0, 50), at(1399, 50, Kind::SoftirqRaise { vector: 1 })];
    assert_eq!(told(&events, &GUEST), ["thread \"itself\" 50 400"]);
    let stolen = Setting { stolen: 10_000 * US, ..GUEST };
    assert!(told(&events, &stolen)[0].starts_with("hypervisor \"while the thread itself ran"));
}

#[test]
fn a_thread_that_may_move_is_followed_from_cpu_to_cpu() {
    let mut events = hog();
    events.truncate(3);
    events.extend([
        Event { cpu: 0, ..switch(980, 9, 1, 8) },
        Event { cpu: 0, ..switch(1390, 8, 0, 50) },
        switch(1395, 7, 0, 9),
    ]);
    events.sort_by_key(|event| event.at);
    assert_eq!(told(&events, &METAL)[..2], ["thread \"other\" 8 387", "thread \"itself\" 50 10"]);
}

#[test]
fn what_was_not_traced_is_not_guessed() {
    assert_eq!(told(&[], &METAL), ["unknown \"nothing was traced on CPU 1\" 0 400"]);
    let mut events = hog();
    assert_eq!(told(&events, &METAL)[0], "unknown \"the trace ends before\" 0 395");
    events.extend([at(1200, 0, Kind::Lost { events: Some(5) }), switch(1390, 8, 0, 50)]);
    let expected = ["unknown \"events were lost\" 0 195", "thread \"other\" 8 190"];
    assert_eq!(told(&events, &METAL)[..2], expected);
}

fn anything() -> impl Strategy<Value = Kind> {
    let tid = prop_oneof![Just(0u32), Just(50), Just(7), Just(8)];
    let state = prop_oneof![Just(0u64), Just(1), Just(2), Just(0x100)];
    prop_oneof![
        (tid.clone(), state, tid).prop_map(|(from, state, to)| Kind::Switch {
            from: task(from),
            state,
            to: task(to)
        }),
        Just(Kind::Waking { task: task(50), target: 1 }),
        Just(Kind::VectorEntry { name: "local_timer".into(), vector: 1 }),
        Just(Kind::VectorExit { name: "local_timer".into(), vector: 1 }),
        (0u32..3).prop_map(|vector| Kind::SoftirqEntry { vector }),
        (0u32..3).prop_map(|vector| Kind::SoftirqExit { vector }),
        (0u32..2).prop_map(|irq| Kind::IrqEntry { irq, name: "irq".into() }),
        (0u32..2).prop_map(|irq| Kind::IrqExit { irq }),
        any::<u64>().prop_map(|ns| Kind::Nmi { ns: ns % 1_000_000 }),
        Just(Kind::Lost { events: None }),
    ]
}

proptest! {
    #[test]
    fn shares_add_up_to_the_window(
        raw in proptest::collection::vec((0u64..3_000_000, 0u32..3, anything()), 0..60),
        (from, until) in (0u64..3_000_000, 0u64..3_000_000),
        virtual_machine: bool,
    ) {
        let mut events: Vec<Event> =
            raw.into_iter().map(|(at, cpu, kind)| Event { at, cpu, thread: 7, kind }).collect();
        events.sort_by_key(|event| event.at);
        let window = Window { from, until, ..WINDOW };
        let found = causes(&events, &window, &Setting { virtual_machine, ..METAL });
        prop_assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), until.saturating_sub(from));
        prop_assert!(found.is_sorted_by_key(|cause| std::cmp::Reverse(cause.ns)));
        prop_assert!(found.iter().all(|cause| cause.ns > 0));
    }
}
