//! What woke a thread: an interrupt, or another thread.

use crate::events::{KernelTraceEvent, KernelTraceEventKind, TraceName};
use std::collections::BTreeMap;

/// State `TASK_UNINTERRUPTIBLE` of the kernel.
pub(super) const UNINTERRUPTIBLE: u64 = 2;

/// Returns true if a thread woke another by what it did itself: `waking` came neither within an interrupt nor from a
/// thread that serves timers (PREEMPT_RT), nor behind lost events.
pub(super) fn is_by_thread(
    events: &[KernelTraceEvent],
    waking: &KernelTraceEvent,
    names: &BTreeMap<u32, TraceName>,
) -> bool {
    if waking.thread == 0 || serves_timers(waking.thread, names) {
        return false;
    }
    let before = events
        .iter()
        .filter(|event| event.cpu == waking.cpu)
        .take_while(|event| !std::ptr::eq(*event, waking));
    let mut within = 0u32;
    for event in before {
        match &event.kind {
            // Behind a gap an interrupt may be in progress, until the next switch.
            KernelTraceEventKind::Lost { .. } => within = 1,
            KernelTraceEventKind::Switch { .. } => within = 0,
            kind if enters(kind) => within += 1,
            kind if leaves(kind) => within = within.saturating_sub(1),
            _ => {}
        }
    }
    within == 0
}

/// Longest time in which a thread that thaws a control group wakes all threads of it, ns.
const THAW: u64 = 10_000_000;

/// Returns true if the thread of a `waking` thawed the control group of another thread at that time: it also woke that
/// one, which had left its CPU as frozen threads do. The kernel reports some of them as waiting within the kernel, as
/// those that wait for a lock.
pub(super) fn is_thaw(
    events: &[KernelTraceEvent],
    waking: &KernelTraceEvent,
    other: u32,
    names: &BTreeMap<u32, TraceName>,
) -> bool {
    let mut seemed_frozen = false;
    for event in events.iter().take_while(|event| event.at <= waking.at + THAW) {
        match &event.kind {
            KernelTraceEventKind::Switch { from, state, .. } if from.tid == other => {
                seemed_frozen = *state == 0 || state & UNINTERRUPTIBLE != 0;
            }
            KernelTraceEventKind::Switch { to, .. } if to.tid == other => seemed_frozen = false,
            KernelTraceEventKind::Waking { task, .. }
                if task.tid == other && event.thread == waking.thread =>
            {
                let near = event.at + THAW >= waking.at;
                if near && seemed_frozen && is_by_thread(events, event, names) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns true for the threads that run the timers' soft interrupts of a kernel with PREEMPT_RT.
pub(super) fn serves_timers(thread: u32, names: &BTreeMap<u32, TraceName>) -> bool {
    names.get(&thread).is_some_and(|name| name.starts_with("ktimers/"))
}

fn enters(kind: &KernelTraceEventKind) -> bool {
    matches!(
        kind,
        KernelTraceEventKind::IrqEntry { .. }
            | KernelTraceEventKind::VectorEntry { .. }
            | KernelTraceEventKind::SoftirqEntry { .. }
            | KernelTraceEventKind::TimerEntry { .. }
    )
}

fn leaves(kind: &KernelTraceEventKind) -> bool {
    matches!(
        kind,
        KernelTraceEventKind::IrqExit { .. }
            | KernelTraceEventKind::VectorExit { .. }
            | KernelTraceEventKind::SoftirqExit { .. }
            | KernelTraceEventKind::TimerExit { .. }
    )
}
