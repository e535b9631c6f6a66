//! Threads that a signal stopped, or a control group froze.

use super::*;

#[test]
fn a_stopped_thread_is_kept_from_nothing_by_who_runs_meanwhile() {
    // SIGSTOP wakes it from its sleep; SIGCONT ends the stop.
    let events = [
        switch(900, 50, 1, 7),
        waking(950, 7),
        switch(951, 7, 0, 50),
        switch(955, 50, 4, 7),
        timer(1001, 7),
        timer_end(1005, 7),
        waking(1380, 7),
        switch(1385, 7, 0, 50),
    ];
    assert_eq!(told(&events, &METAL)[0], "stopped \"\" 0 376");
}

#[test]
fn a_thread_that_was_not_woken_is_kept_from_nothing_by_who_runs_meanwhile() {
    // Frozen in its sleep, the thread is not woken by its timer.
    let mut events = vec![switch(900, 50, 1, 7), timer(1001, 7), timer_end(1003, 7)];
    events.extend([timer(1200, 7), timer_end(1202, 7), waking(1380, 7), switch(1385, 7, 0, 50)]);
    assert_eq!(told(&events, &METAL)[0], "frozen \"\" 0 375");
    // Frozen on its way out of the kernel, it leaves the CPU as if it could run on.
    let left =
        [switch(900, 0, 0, 50), switch(950, 50, 0, 7), timer(1001, 7), timer_end(1003, 7), waking(1380, 7)];
    let left = [&left[..], &[switch(1385, 7, 0, 50)]].concat();
    assert_eq!(told(&left, &METAL)[0], "frozen \"\" 0 378");
    let runnable = [&left[..4], &left[5..]].concat();
    assert_eq!(told(&runnable, &METAL)[0], "thread \"hog\" 7 383");
    // Another thread wakes it: when, says nothing of timers.
    let window = LateWakeWindow { by_timer: false, ..WINDOW };
    assert_eq!(causes(&events, &window, &METAL)[0].kind, "thread");
    // The thread that serves timers waits for the CPU.
    let served = TraceEventTask { name: "ktimers/1".into(), ..task(20) };
    events.insert(2, at(1002, 7, KernelTraceEventKind::Wakeup { task: served, target: 1 }));
    assert_eq!(told(&events, &METAL)[0], "thread \"hog\" 7 380");
}

#[test]
fn a_thread_that_another_cpu_thaws_is_kept_from_nothing_by_the_threads_there() {
    let waker = |us, event: KernelTraceEvent| KernelTraceEvent { cpu: 0, at: us * US, ..event };
    let events = [
        waker(800, switch(0, 9, 0, 8)),
        switch(900, 50, 1, 7),
        timer(1001, 7),
        timer_end(1003, 7),
        waker(1380, waking(0, 8)),
        switch(1385, 7, 0, 50),
    ];
    assert_eq!(told(&events, &METAL)[0], "frozen \"\" 0 377");
    // An interrupt there may be that of its timer: until then that CPU counts.
    let interrupts = |us, kind| KernelTraceEvent { cpu: 0, ..at(us, 8, kind) };
    let [entry, exit] =
        [timer(1370, 8), timer_end(1381, 8)].map(|event| interrupts(event.at / US, event.kind));
    let moved = [&events[..4], &[entry, events[4].clone(), exit, events[5].clone()]].concat();
    assert_eq!(told(&moved, &METAL)[0], "unknown \"interrupts off in other, or firmware\" 0 370");
}

/// The other CPU wakes the thread within a stretch of which the events are lost.
#[test]
fn a_wake_up_from_elsewhere_does_not_divide_a_stretch_that_was_not_traced() {
    let waker = |us, event: KernelTraceEvent| KernelTraceEvent { cpu: 0, at: us * US, ..event };
    let events = [
        waker(800, switch(0, 9, 0, 8)),
        switch(900, 50, 1, 7),
        waker(1380, waking(0, 8)),
        at(1390, 0, KernelTraceEventKind::Lost { events: None, why: Loss::Overwritten }),
        switch(1395, 7, 0, 50),
    ];
    for setting in [METAL, GUEST, LateWakeContext { halted: true, ..GUEST }] {
        let lost = "not-traced \"the buffer of CPU 1 was full before it was read\" 0 390";
        assert_eq!(told(&events, &setting)[0], lost);
    }
}

#[test]
fn a_second_wake_up_shows_that_the_thread_left_the_cpu_meanwhile() {
    // The trace lacks the switches to it and from it: a signal woke it, and stopped it.
    let mut events = hog();
    events.extend([waking(1380, 7), switch(1385, 7, 0, 50)]);
    let expected =
        "unknown \"the thread was not runnable: it was stopped or frozen, or its timer came late\" 0 375";
    assert_eq!(told(&events, &METAL)[0], expected);
}

/// Returns the first cause of a thread that waits for no timer, in a run that was halted.
fn told_of_loop(events: &[KernelTraceEvent]) -> String {
    let window = LateWakeWindow { by_timer: false, ..WINDOW };
    let first = causes(events, &window, &LateWakeContext { halted: true, ..GUEST }).remove(0);
    format!("{} {:?} {} {}", first.kind, first.name, first.pid, first.ns / US)
}

const NOT_KNOWN: &str =
    "unknown \"the run was frozen or stopped meanwhile: the thread was not runnable, or waited for a CPU\" 0";

#[test]
fn a_loop_that_was_frozen_is_kept_from_nothing_by_the_threads_of_any_cpu() {
    let there = |us, event: KernelTraceEvent| KernelTraceEvent { cpu: 0, at: us * US, ..event };
    let left = [there(800, switch(0, 9, 0, 8)), switch(900, 0, 0, 50), switch(1005, 50, 0, 7)];
    let back = [there(1380, waking(0, 8)), switch(1385, 7, 0, 50)];
    assert_eq!(told_of_loop(&[&left[..], &back].concat()), "frozen \"\" 0 375");
    // The trace lacks the switch from it, or all that it did before.
    let unseen = [&left[..2], &[timer(1010, 7), timer_end(1012, 7)], &back].concat();
    assert_eq!(told_of_loop(&unseen), format!("{NOT_KNOWN} 378"));
    let before = [there(800, switch(0, 9, 0, 8)), switch(900, 8, 0, 7)];
    assert_eq!(told_of_loop(&[&before[..], &back].concat()), format!("{NOT_KNOWN} 380"));
    // The trace lacks the wake-up.
    assert_eq!(told_of_loop(&[&left[..], &back[1..]].concat()), format!("{NOT_KNOWN} 380"));
    // Within an interruptible sleep its wake-up may be what it waits for.
    let slept = [&left[..2], &[switch(1005, 50, 1, 7)], &back].concat();
    assert_eq!(told_of_loop(&slept), format!("{NOT_KNOWN} 375"));
}

#[test]
fn in_a_halted_run_a_thread_is_named_that_kept_a_runnable_thread_from_the_cpu() {
    // The kernel preempted it, or it gave way to a more urgent thread.
    let preempted = [switch(900, 0, 0, 50), switch(1005, 50, 0x100, 7), switch(1385, 7, 1, 50)];
    assert_eq!(told_of_loop(&preempted), "thread \"hog\" 7 380");
    let mut urgent = [switch(900, 0, 0, 50), switch(1005, 50, 0, 7), switch(1385, 7, 1, 50)];
    assert_eq!(told_of_loop(&urgent), format!("{NOT_KNOWN} 380"));
    let KernelTraceEventKind::Switch { to, .. } = &mut urgent[1].kind else { panic!("it is a switch") };
    to.priority = 49;
    assert_eq!(told_of_loop(&urgent), "thread \"hog\" 7 380");
    // A thread wakes it: it was not runnable.
    let thawed = [&urgent[..2], &[waking(1380, 7)], &urgent[2..]].concat();
    assert_eq!(told_of_loop(&thawed), "frozen \"\" 0 375");
    // The timer of the thread woke it.
    let halted = LateWakeContext { halted: true, ..METAL };
    let woken = [&hog()[..], &[switch(1390, 7, 0, 50)]].concat();
    assert_eq!(told(&woken, &halted)[0], "thread \"hog\" 7 385");
}

#[test]
fn in_a_halted_run_a_thread_that_thaws_is_not_one_that_held_a_lock() {
    let mut events = hog();
    events.extend([switch(1010, 7, 0, 50), switch(1020, 50, 2, 7), waking(1380, 7), switch(1385, 7, 0, 50)]);
    assert_eq!(told(&events, &METAL)[0], "lock \"hog\" 7 360");
    assert_eq!(told(&events, &LateWakeContext { halted: true, ..METAL })[0], format!("{NOT_KNOWN} 360"));
}

#[test]
fn a_thread_that_thaws_the_coordinator_too_did_not_hold_a_lock() {
    let there = |us, event: KernelTraceEvent| KernelTraceEvent { cpu: 0, at: us * US, ..event };
    let thaw = |state, us, by| {
        let wakes = KernelTraceEventKind::Waking { task: task(COORDINATOR), target: 0 };
        let mut events = vec![there(900, switch(0, COORDINATOR, state, 7))];
        events.extend(hog());
        events.extend([switch(1010, 7, 0, 50), switch(1020, 50, 2, 7), waking(1380, 7)]);
        events.extend([there(us, at(0, by, wakes)), switch(1385, 7, 0, 50)]);
        events.sort_by_key(|event| event.at);
        told(&events, &METAL)[0].clone()
    };
    assert_eq!(thaw(2, 1379, 7), "frozen \"\" 0 360");
    assert_eq!(thaw(0, 1381, 7), "frozen \"\" 0 360");
    // A message wakes the coordinator from an interruptible sleep; another thread thaws it, or at another time.
    let lock = "lock \"hog\" 7 360";
    assert_eq!([thaw(1, 1379, 7), thaw(2, 1379, 8), thaw(2, 950, 8)], [lock; 3]);
}
