mod halts;
mod throttling;

use super::*;
use crate::events::{Loss, TraceEventTask};
use proptest::prelude::*;

const US: u64 = 1000;
const WINDOW: LateWakeWindow =
    LateWakeWindow { cpu: 1, thread: 50, from: 1000 * US, until: 1400 * US, by_timer: true };
const METAL: LateWakeContext = LateWakeContext {
    virtual_machine: false,
    tick: Some(10_000 * US),
    stolen: 0,
    throttled: 0,
    quota: false,
    coordinator: Some(COORDINATOR),
    halted: false,
};
/// Main thread of the coordinator.
const COORDINATOR: u32 = 90;
const GUEST: LateWakeContext = LateWakeContext { virtual_machine: true, ..METAL };

fn task(tid: u32) -> TraceEventTask {
    let name = match tid {
        0 => "swapper/1",
        50 => "timer-1",
        7 => "hog",
        _ => "other",
    };
    TraceEventTask { tid, name: name.into(), priority: 120 }
}

/// Returns an event on CPU 1 by the thread on it, at a time in µs.
fn at(us: u64, thread: u32, kind: KernelTraceEventKind) -> KernelTraceEvent {
    KernelTraceEvent { at: us * US, cpu: 1, thread, kind }
}

fn switch(us: u64, from: u32, state: u64, to: u32) -> KernelTraceEvent {
    at(us, from, KernelTraceEventKind::Switch { from: task(from), state, to: task(to) })
}

fn waking(us: u64, thread: u32) -> KernelTraceEvent {
    at(us, thread, KernelTraceEventKind::Waking { task: task(50), target: 1 })
}

fn timer(us: u64, thread: u32) -> KernelTraceEvent {
    at(us, thread, KernelTraceEventKind::VectorEntry { name: "local_timer".into(), vector: 236 })
}

fn timer_end(us: u64, thread: u32) -> KernelTraceEvent {
    at(us, thread, KernelTraceEventKind::VectorExit { name: "local_timer".into(), vector: 236 })
}

fn softirq(us: u64, thread: u32, vector: u32) -> KernelTraceEvent {
    at(us, thread, KernelTraceEventKind::SoftirqEntry { vector })
}

fn softirq_end(us: u64, thread: u32, vector: u32) -> KernelTraceEvent {
    at(us, thread, KernelTraceEventKind::SoftirqExit { vector })
}

/// Returns causes as text: kind, name, pid, µs.
fn told(events: &[KernelTraceEvent], setting: &LateWakeContext) -> Vec<String> {
    let causes = causes(events, &WINDOW, setting);
    assert_eq!(causes.iter().map(|cause| cause.ns).sum::<u64>(), WINDOW.until - WINDOW.from);
    let text = |cause: &Cause| format!("{} {:?} {} {}", cause.kind, cause.name, cause.pid, cause.ns / US);
    causes.iter().map(text).collect()
}

/// Returns the events of a hog that runs since 900 µs; the timer comes at 1001 µs and wakes the thread.
fn hog() -> Vec<KernelTraceEvent> {
    vec![switch(900, 50, 1, 7), timer(1001, 7), waking(1003, 7), timer_end(1005, 7)]
}

#[test]
fn a_thread_that_keeps_the_cpu_is_named_and_interruptions_are_not_its_own() {
    let mut events = hog();
    events.extend([
        at(1100, 7, KernelTraceEventKind::IrqEntry { irq: 24, name: "disk".into() }),
        at(1110, 7, KernelTraceEventKind::IrqExit { irq: 24 }),
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
    let irq = |us| at(us, 7, KernelTraceEventKind::IrqEntry { irq: 9, name: "net".into() });
    let events = [
        switch(900, 50, 1, 7),
        irq(950),
        at(1300, 7, KernelTraceEventKind::IrqExit { irq: 9 }),
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
    assert_eq!(told(&events, &GUEST)[0], "hypervisor-or-interrupts-off \"while hog ran\" 0 380");
    // A count in steps of 10 ms says nothing of 380 µs.
    let stolen = LateWakeContext { stolen: 30_000 * US, ..GUEST };
    let expected = "hypervisor-or-interrupts-off \"while hog ran; 30.0 ms stolen lately\" 0 380";
    assert_eq!(told(&events, &stolen)[0], expected);
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
    events.insert(1, at(901, 0, KernelTraceEventKind::Idle { state: Some(3) }));
    events.insert(3, at(1383, 0, KernelTraceEventKind::Idle { state: None }));
    assert_eq!(told(&events, &METAL)[0], "idle-exit \"from state 3\" 0 380");
}

#[test]
fn what_is_short_by_nature_and_was_long_is_the_hypervisors() {
    let within =
        [switch(900, 50, 1, 0), timer(1001, 0), waking(1002, 0), timer_end(1390, 0), switch(1391, 0, 0, 50)];
    assert_eq!(
        told(&within, &GUEST)[0],
        "hypervisor-or-interrupts-off \"within interrupt local_timer\" 0 388"
    );
    assert_eq!(told(&within, &METAL)[0], "irq \"local_timer\" 0 389");
    let itself =
        [switch(900, 50, 1, 0), timer(1001, 0), waking(1002, 0), timer_end(1003, 0), switch(1010, 0, 0, 50)];
    assert_eq!(
        told(&itself, &GUEST)[0],
        "hypervisor-or-interrupts-off \"while the thread itself ran\" 0 390"
    );
    let idle =
        [switch(900, 50, 1, 0), timer(1001, 0), waking(1002, 0), timer_end(1003, 0), switch(1395, 0, 0, 50)];
    assert_eq!(told(&idle, &GUEST)[0], "hypervisor-or-interrupts-off \"on the way out of idle\" 0 392");
    assert_eq!(told(&idle, &METAL)[0], "run-queue \"the CPU stayed idle: throttled?\" 0 392");
}

#[test]
fn a_thread_cannot_run_longer_than_a_tick_without_one() {
    let mut events = hog();
    events.push(switch(1390, 7, 0, 50));
    let tick = LateWakeContext { tick: Some(300 * US), ..GUEST };
    assert_eq!(
        told(&events, &tick)[0],
        "hypervisor-or-interrupts-off \"while hog ran: ticks are missing\" 0 385"
    );
    assert_eq!(told(&events, &LateWakeContext { tick: None, ..GUEST })[0], "thread \"hog\" 7 385");
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
    let late = [
        events[0].clone(),
        waking(1001, 0),
        at(1380, 7, KernelTraceEventKind::IrqExit { irq: 1 }),
        events[6].clone(),
    ];
    assert_eq!(told(&late, &GUEST)[0], "unknown \"the trace lacks a switch from idle to hog\" 0 379");
    // Also that of the thread itself.
    let left = [switch(900, 0, 0, 50), timer(1001, 7), timer_end(1005, 7), switch(1390, 7, 0, 50)];
    assert_eq!(told(&left, &METAL)[0], "thread \"hog\" 7 385");
}

/// A thread was woken for CPU 1 with this priority.
fn wakeup(us: u64, tid: u32, priority: i32) -> KernelTraceEvent {
    at(us, 0, KernelTraceEventKind::Wakeup { task: TraceEventTask { priority, ..task(tid) }, target: 1 })
}

#[test]
fn a_switch_that_the_kernel_left_out_is_known_by_the_wake_up_before_it() {
    let tick = timer(1380, 7);
    let end = switch(1381, 7, 0, 50);
    let idle = [switch(900, 50, 1, 0), wakeup(990, 7, 120), waking(1001, 0), tick.clone(), end.clone()];
    assert_eq!(told(&idle, &GUEST)[0], "thread \"hog\" 7 379");
    // From elsewhere, in the midst of the gap: until then the CPU was idle.
    let remote = KernelTraceEvent { cpu: 0, ..wakeup(1100, 7, 120) };
    let remote = [switch(900, 50, 1, 0), waking(1001, 0), remote, tick.clone(), end.clone()];
    assert_eq!(told(&remote, &METAL)[..2], ["thread \"hog\" 7 280", "idle-exit \"\" 0 100"]);
    // Another thread gives way to one that is more urgent, and only to that.
    let busy = |priority| {
        let woken = KernelTraceEvent { thread: 8, ..wakeup(990, 7, priority) };
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
fn a_share_that_breaks_a_rule_is_unknown_with_the_rule() {
    let shares = |owners: &[(&str, &str, u32, u64)]| {
        let owner = |name: &str, kind: &str, pid| Owner {
            kind: ["thread", kind::HYPERVISOR, kind::QUOTA].into_iter().find(|known| *known == kind).unwrap(),
            name: name.to_owned(),
            pid,
        };
        Shares(owners.iter().map(|(kind, name, pid, ns)| (owner(name, kind, *pid), ns * US)).collect())
    };
    // It runs on CPU 1; thread 9 never does.
    let events =
        [switch_of(900, (50, 4), 1, (7, 120)), waking(1001, 7), switch_of(30_000, (7, 120), 0, (50, 4))];
    let window = LateWakeWindow { until: 30_000 * US, ..WINDOW };
    let setting = LateWakeContext { stolen: 1500 * US, throttled: 0, ..GUEST };
    let places = [(1, window.from, window.until)];
    let told = |events: &[KernelTraceEvent], owners| {
        let facts = rules::CauseRuleContext { events, window: &window, setting: &setting, places: &places };
        let causes = rules::apply_rules(shares(owners), &facts).causes();
        causes
            .iter()
            .map(|cause| format!("{} {:?} {}", cause.kind, cause.name, cause.ns / US))
            .collect::<Vec<_>>()
    };
    let rule =
        "an ordinary thread, hog, keeps a real-time thread from a CPU for a tick at most, not for 14.0 ms";
    assert_eq!(told(&events, &[("thread", "hog", 7, 14_000)]), [format!("unknown {rule:?} 14000")]);
    assert_eq!(told(&events, &[("thread", "hog", 7, 9_000)]), ["thread \"hog\" 9000"]);
    let urgent = [&events[..], &[switch_of(30_001, (50, 4), 1, (7, 80))]].concat();
    assert_eq!(told(&urgent, &[("thread", "hog", 7, 14_000)]), ["thread \"hog\" 14000"]);
    let elsewhere = "other did not run on the CPU of the late thread";
    assert_eq!(told(&events, &[("thread", "other", 9, 5)]), [format!("unknown {elsewhere:?} 5")]);
    let stolen = [("hypervisor", "while hog ran", 0, 1_000), ("hypervisor", "on the way", 0, 2_000)];
    let expected = [
        "hypervisor-or-interrupts-off \"on the way\" 1500",
        "hypervisor \"while hog ran\" 1000",
        "hypervisor \"on the way\" 500",
    ];
    assert_eq!(told(&events, &stolen), expected);
    let quota = "longer than a quota held the run back by the kernel's count";
    assert_eq!(told(&events, &[("quota", "", 0, 7)]), [format!("unknown {quota:?} 7")]);
}

/// Checks a time of milliseconds, since the kernel counts stolen time in steps of ten.
#[test]
fn a_long_time_that_the_host_counts_as_stolen_is_the_hypervisors() {
    let window = LateWakeWindow { until: 6000 * US, ..WINDOW };
    let events =
        [switch(900, 50, 1, 7), timer(5980, 7), waking(5981, 7), timer_end(5982, 7), switch(5990, 7, 0, 50)];
    let kind = |setting: LateWakeContext| causes(&events, &window, &setting)[0].kind.clone();
    assert_eq!(kind(LateWakeContext { stolen: 10_000 * US, ..GUEST }), "hypervisor");
    assert_eq!(kind(LateWakeContext { stolen: 0, ..GUEST }), "hypervisor-or-interrupts-off");
    let idle = [switch(900, 50, 1, 0), timer(5980, 0), waking(5981, 0), switch(5990, 0, 0, 50)];
    let named = |setting: LateWakeContext| causes(&idle, &window, &setting)[0].name.clone();
    assert_eq!(
        named(LateWakeContext { stolen: 10_000 * US, ..GUEST }),
        "woke the idle CPU late; 10.0 ms stolen lately"
    );
}

/// A switch between threads of given priorities.
fn switch_of(us: u64, from: (u32, i32), state: u64, to: (u32, i32)) -> KernelTraceEvent {
    let task = |(tid, priority): (u32, i32)| TraceEventTask { priority, ..task(tid) };
    at(us, from.0, KernelTraceEventKind::Switch { from: task(from), state, to: task(to) })
}

#[test]
fn events_that_were_asked_for_and_the_stack_come_with_an_event() {
    let other =
        |us, name: &str| at(us, 7, KernelTraceEventKind::Other { name: name.into(), fields: "cpu=1".into() });
    let stack = at(1391, 7, KernelTraceEventKind::Stack { addresses: [1, 2].into() });
    let mut events = hog();
    events.extend([other(1100, "mark"), other(1101, "else"), switch(1390, 7, 0, 50), stack]);
    // A notable one of another CPU, and the thread's last system call.
    events.insert(
        0,
        at(1000, 7, KernelTraceEventKind::Other { name: "sys_enter".into(), fields: "id=1 args=?".into() }),
    );
    events.insert(4, KernelTraceEvent { cpu: 0, ..other(1050, "console") });
    let Details { events: found, stack, call } = collect_details(&events, &WINDOW, &["mark".to_owned()]);
    let found: Vec<_> =
        found.iter().map(|event| (event.at, event.name.as_str(), event.text.as_str())).collect();
    assert_eq!(found, [(50 * US, "console", "cpu=1"), (100 * US, "mark", "cpu=1")]);
    assert_eq!((stack, call), (vec![1, 2], Some(1)));
    assert_eq!(told(&events, &METAL)[0], "thread \"hog\" 7 385");
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
    events.extend([at(1200, 7, KernelTraceEventKind::Nmi { ns: 50 * US }), switch(1390, 7, 0, 50)]);
    assert_eq!(told(&events, &METAL)[..2], ["thread \"hog\" 7 335", "nmi \"\" 0 50"]);
}

#[test]
fn a_thread_that_is_still_at_work_is_late_by_itself() {
    let events = [switch(900, 0, 0, 50), at(1399, 50, KernelTraceEventKind::SoftirqRaise { vector: 1 })];
    assert_eq!(told(&events, &GUEST), ["thread \"itself\" 50 400"]);
}

#[test]
fn a_thread_that_may_move_is_followed_from_cpu_to_cpu() {
    let mut events = hog();
    events.truncate(3);
    events.extend([
        KernelTraceEvent { cpu: 0, ..switch(980, 9, 1, 8) },
        KernelTraceEvent { cpu: 0, ..switch(1390, 8, 0, 50) },
        switch(1395, 7, 0, 9),
    ]);
    events.sort_by_key(|event| event.at);
    assert_eq!(told(&events, &METAL)[..2], ["thread \"other\" 8 387", "thread \"itself\" 50 10"]);
}

#[test]
fn a_switch_of_long_ago_does_not_say_where_the_thread_is() {
    // It was started on CPU 0 and bound to CPU 1; the switches of CPU 1 are missing.
    let elsewhere = |us, from, to| KernelTraceEvent { cpu: 0, ..switch(us, from, 1, to) };
    let mut events = vec![
        elsewhere(10, 0, 50),
        elsewhere(20, 50, 8),
        at(900, 50, KernelTraceEventKind::SoftirqRaise { vector: 1 }),
    ];
    events.extend([timer(1001, 7), timer_end(1003, 7), timer(1350, 7), timer_end(1352, 7)]);
    events.push(at(1398, 50, KernelTraceEventKind::SoftirqRaise { vector: 1 }));
    assert_eq!(told(&events, &METAL)[0], "thread \"a thread\" 7 347");
}

#[test]
fn functions_of_works_and_of_calls_stand_beside_those_that_run_them() {
    let function = 0xffff_ffff_8100_0000_u64;
    let call = |us, exit| {
        let (name, vector) = ("call_function".into(), 252);
        at(
            us,
            7,
            if exit {
                KernelTraceEventKind::VectorExit { name, vector }
            } else {
                KernelTraceEventKind::VectorEntry { name, vector }
            },
        )
    };
    let mut events = hog();
    events.insert(1, at(950, 7, KernelTraceEventKind::Work { function }));
    events.extend([
        call(1100, false),
        at(1101, 7, KernelTraceEventKind::Call { function: function + 16 }),
        call(1150, true),
    ]);
    events.push(switch(1390, 7, 0, 50));
    let expected =
        ["thread \"hog (0xffffffff81000000)\" 7 335", "irq \"call_function (0xffffffff81000010)\" 0 49"];
    assert_eq!(told(&events, &METAL)[..2], expected);
    // The next work is not known.
    events.extend([switch(1391, 50, 0x80, 7)]);
    events.insert(2, switch(960, 7, 0x80, 0));
    events.insert(3, switch(970, 0, 0, 7));
    assert_eq!(told(&events, &METAL)[0], "thread \"hog\" 7 335");
}

#[test]
fn a_stretch_right_after_a_message_of_the_kernel_is_not_the_hypervisors() {
    let window = LateWakeWindow { until: 6000 * US, ..WINDOW };
    let console = at(990, 7, KernelTraceEventKind::Other { name: "console".into(), fields: "flood".into() });
    let mut events = vec![switch(900, 50, 1, 7), console, timer(5980, 7), waking(5981, 7)];
    events.extend([timer_end(5982, 7), switch(5990, 7, 0, 50)]);
    let first = |setting: &LateWakeContext| {
        let cause = &causes(&events, &window, setting)[0];
        format!("{}: {}", cause.kind, cause.name)
    };
    let stolen = LateWakeContext { stolen: 10_000 * US, ..GUEST };
    let after = "right after a message of the kernel (printk)";
    let expected = format!("hypervisor-or-interrupts-off: while hog ran, {after}; 10.0 ms stolen lately");
    assert_eq!(first(&stolen), expected);
    assert_eq!(first(&METAL), format!("unknown: interrupts off in hog, or firmware, {after}"));
}

/// A thread whose switch is missing is as urgent as other events say.
#[test]
fn a_more_urgent_thread_is_named_also_if_its_switch_is_missing() {
    let events = [
        switch_of(800, (8, 120), 1, (7, 49)),
        switch_of(850, (7, 49), 1, (50, 89)),
        switch_of(900, (50, 89), 0x100, (8, 120)),
        timer(1010, 7),
        timer_end(1012, 7),
        switch_of(1390, (7, 49), 1, (50, 89)),
    ];
    assert_eq!(told(&events, &METAL)[0], "thread \"hog\" 7 388");
}

#[test]
fn what_was_not_traced_is_not_guessed() {
    assert_eq!(told(&[], &METAL), ["not-traced \"nothing was traced on CPU 1\" 0 400"]);
    let mut events = hog();
    assert_eq!(told(&events, &METAL)[0], "not-traced \"the trace ends before\" 0 395");
    events.extend([
        at(1200, 0, KernelTraceEventKind::Lost { events: Some(5), why: Loss::Overwritten }),
        switch(1390, 8, 0, 50),
    ]);
    let expected =
        ["not-traced \"the buffer of CPU 1 was full before it was read\" 0 195", "thread \"other\" 8 190"];
    assert_eq!(told(&events, &METAL)[..2], expected);
}

fn anything() -> impl Strategy<Value = KernelTraceEventKind> {
    let tid = prop_oneof![Just(0u32), Just(50), Just(7), Just(8)];
    let state = prop_oneof![Just(0u64), Just(1), Just(2), Just(4), Just(0x100)];
    prop_oneof![
        (tid.clone(), state, tid).prop_map(|(from, state, to)| KernelTraceEventKind::Switch {
            from: task(from),
            state,
            to: task(to)
        }),
        Just(KernelTraceEventKind::Waking { task: task(50), target: 1 }),
        Just(KernelTraceEventKind::VectorEntry { name: "local_timer".into(), vector: 1 }),
        Just(KernelTraceEventKind::VectorExit { name: "local_timer".into(), vector: 1 }),
        (0u32..3).prop_map(|vector| KernelTraceEventKind::SoftirqEntry { vector }),
        (0u32..3).prop_map(|vector| KernelTraceEventKind::SoftirqExit { vector }),
        (0u32..2).prop_map(|irq| KernelTraceEventKind::IrqEntry { irq, name: "irq".into() }),
        (0u32..2).prop_map(|irq| KernelTraceEventKind::IrqExit { irq }),
        any::<u64>().prop_map(|ns| KernelTraceEventKind::Nmi { ns: ns % 1_000_000 }),
        Just(KernelTraceEventKind::Lost { events: None, why: Loss::Forgotten }),
    ]
}

proptest! {
    #[test]
    fn shares_add_up_to_the_window(
        raw in proptest::collection::vec((0u64..3_000_000, 0u32..3, anything()), 0..60),
        (from, until) in (0u64..3_000_000, 0u64..3_000_000),
        (stolen, throttled) in (0u64..3_000_000, 0u64..3_000_000),
        virtual_machine: bool,
        halted: bool,
        by_timer: bool,
    ) {
        let mut events: Vec<KernelTraceEvent> =
            raw.into_iter().map(|(at, cpu, kind)| KernelTraceEvent { at, cpu, thread: 7, kind }).collect();
        events.sort_by_key(|event| event.at);
        let window = LateWakeWindow { from, until, by_timer, ..WINDOW };
        let setting = LateWakeContext { virtual_machine, stolen, throttled, halted, ..METAL };
        let found = causes(&events, &window, &setting);
        let sum = |kind: &str| found.iter().filter(|cause| cause.kind == kind).map(|cause| cause.ns).sum::<u64>();
        prop_assert!(sum(kind::HYPERVISOR) <= stolen && sum(kind::QUOTA) <= throttled, "{:?}", found);
        prop_assert_eq!(found.iter().map(|cause| cause.ns).sum::<u64>(), until.saturating_sub(from));
        prop_assert!(found.is_sorted_by_key(|cause| std::cmp::Reverse(cause.ns)));
        prop_assert!(found.iter().all(|cause| cause.ns > 0));
    }
}
