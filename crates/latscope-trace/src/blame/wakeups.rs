//! What woke a thread: an interrupt, or another thread.

use crate::events::{Event, Kind, Name};
use std::collections::BTreeMap;

/// Returns true if a thread woke another by what it did itself: `waking` came neither within an interrupt nor from a
/// thread that serves timers (PREEMPT_RT), nor behind lost events.
pub(super) fn is_by_thread(events: &[Event], waking: &Event, names: &BTreeMap<u32, Name>) -> bool {
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
            Kind::Lost { .. } => within = 1,
            Kind::Switch { .. } => within = 0,
            kind if enters(kind) => within += 1,
            kind if leaves(kind) => within = within.saturating_sub(1),
            _ => {}
        }
    }
    within == 0
}

/// Returns true for the threads that run the timers' soft interrupts of a kernel with PREEMPT_RT.
pub(super) fn serves_timers(thread: u32, names: &BTreeMap<u32, Name>) -> bool {
    names.get(&thread).is_some_and(|name| name.starts_with("ktimers/"))
}

fn enters(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::IrqEntry { .. }
            | Kind::VectorEntry { .. }
            | Kind::SoftirqEntry { .. }
            | Kind::TimerEntry { .. }
    )
}

fn leaves(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::IrqExit { .. } | Kind::VectorExit { .. } | Kind::SoftirqExit { .. } | Kind::TimerExit { .. }
    )
}
