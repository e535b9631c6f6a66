//! Time in which a thread could run and the scheduler did not let it: real-time
//! throttling, the deadline server that replaces it, a quota of the control group.
//!
//! The proof is in the switches: a CPU that goes to idle, or that a thread of lower class takes over, while a
//! thread waits in its run queue, may not run that thread.

use crate::events::{KernelTraceEvent, KernelTraceEventKind, TraceEventTask};
use std::collections::BTreeSet;

/// Priorities below this are real-time.
pub(super) const REAL_TIME: i32 = 100;

/// A time in which a thread was runnable on a CPU and was not allowed to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Denial {
    pub from: u64,
    pub until: u64,
    /// The thread's priority as the kernel counts: below 0 is SCHED_DEADLINE.
    pub priority: i32,
    /// True if the CPU did what it cannot do while a thread that may run waits; otherwise an ordinary thread
    /// may just have waited for its turn.
    pub proven: bool,
}

/// Longest time that a thread of lower class may run within the kernel, where it does not give way, ns. If it
/// has the CPU for longer, and another real-time thread is known to be held back, this thread is held back,
/// too.
const KERNEL: u64 = 2_000_000;

/// Returns the times in which a thread waited on a CPU, and the CPU did what it cannot do while a thread that
/// may run waits. Long waits in which the thread may have been held back are included. `events` are those of
/// all CPUs, in order.
pub(super) fn denials(events: &[KernelTraceEvent], cpu: u32, thread: u32, end: u64) -> Vec<Denial> {
    let mut wait = RunQueueWait::default();
    let mut others = Others::default();
    let mut found = Vec::new();
    for event in events {
        if let KernelTraceEventKind::Waking { task, .. } = &event.kind {
            // It slept. If it seems to wait, then since a switch is missing.
            if task.tid == thread {
                wait = RunQueueWait::default();
            } else {
                others.remove_ready(task.tid);
            }
        }
        if let KernelTraceEventKind::Wakeup { task, target }
        | KernelTraceEventKind::WakeupNew { task, target } = &event.kind
            && *target == cpu
        {
            if task.tid == thread {
                wait.begin_wait(event.at, task.priority, others.held_back);
            } else {
                others.ready(task);
            }
        }
        if event.cpu != cpu {
            if let KernelTraceEventKind::Switch { to, .. } = &event.kind {
                others.remove_ready(to.tid);
            }
            continue;
        }
        match &event.kind {
            KernelTraceEventKind::Lost { .. } => {
                (wait, others) = (RunQueueWait::default(), Others::default())
            }
            KernelTraceEventKind::Stack { .. } => {}
            KernelTraceEventKind::Switch { from, state, to } => {
                let runnable = state & 0xff == 0;
                others.apply_switch(from, runnable && from.tid != thread, to);
                if from.tid == thread && runnable {
                    wait.begin_wait(event.at, from.priority, others.held_back);
                } else if from.tid == thread {
                    wait = RunQueueWait::default();
                }
                if to.tid == thread {
                    found.extend(wait.end_wait(event.at));
                } else {
                    wait.note_other_thread(to, others.held_back);
                }
            }
            // The CPU goes to sleep.
            KernelTraceEventKind::Idle { state: Some(_) } => wait.proven |= wait.since.is_some(),
            // It runs: the switch to it is missing.
            _ if event.thread == thread => found.extend(wait.end_wait(event.at)),
            _ => others.remove_ready(event.thread),
        }
    }
    found.extend(wait.end_wait(end));
    found.retain(|denial| denial.from < denial.until);
    found
}

/// Other real-time threads in the run queue of the CPU.
#[derive(Debug, Default)]
struct Others {
    ready: BTreeSet<u32>,
    /// True if a thread of lower class, or none, has the CPU although a real-time thread waits.
    held_back: bool,
}

impl Others {
    fn ready(&mut self, task: &TraceEventTask) {
        if task.priority < REAL_TIME {
            self.ready.insert(task.tid);
        }
    }

    /// Notes that a thread runs, sleeps or is elsewhere.
    fn remove_ready(&mut self, thread: u32) {
        self.ready.remove(&thread);
        self.held_back &= !self.ready.is_empty();
    }

    fn apply_switch(&mut self, from: &TraceEventTask, runnable: bool, to: &TraceEventTask) {
        self.ready.remove(&from.tid);
        if runnable && from.tid != 0 {
            self.ready(from);
        }
        self.ready.remove(&to.tid);
        self.held_back = is_lower(to) && !self.ready.is_empty();
    }
}

/// Returns true if any real-time thread goes before `task`.
fn is_lower(task: &TraceEventTask) -> bool {
    task.tid == 0 || task.priority >= REAL_TIME
}

/// A thread in the run queue.
#[derive(Debug, Default)]
struct RunQueueWait {
    since: Option<u64>,
    priority: i32,
    proven: bool,
    /// True if other threads of its class were held back.
    likely: bool,
}

impl RunQueueWait {
    fn begin_wait(&mut self, at: u64, priority: i32, likely: bool) {
        if self.since.is_none() {
            *self = RunQueueWait { since: Some(at), priority, proven: false, likely };
        }
    }

    /// Notes that another thread gets the CPU.
    fn note_other_thread(&mut self, to: &TraceEventTask, likely: bool) {
        let lower = to.tid == 0 || self.priority < REAL_TIME && is_lower(to);
        self.proven |= self.since.is_some() && lower;
        self.likely |= likely;
    }

    fn end_wait(&mut self, at: u64) -> Option<Denial> {
        let RunQueueWait { since, priority, proven, likely } = std::mem::take(self);
        let from = since?;
        let likely = (likely || priority >= REAL_TIME) && at > from + KERNEL;
        (proven || likely).then_some(Denial { from, until: at, priority, proven })
    }
}

/// Real-time threads of a CPU over some time: what throttling is against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealTimeUse {
    /// Thread that had the CPU for most of the time, and how long, ns; `None` if none but the measured thread had it.
    pub busiest: Option<(TraceEventTask, u64)>,
    /// Time for which any real-time thread had it, ns.
    pub all_ns: u64,
    /// Time of which the trace has events, ns.
    pub traced_ns: u64,
}

/// Returns the use of a CPU by real-time threads from an instant to another; `None` if nothing was traced. Thread `but`
/// counts in the sum only.
pub fn real_time_use(
    events: &[KernelTraceEvent],
    cpu: u32,
    (from, until): (u64, u64),
    but: u32,
) -> Option<RealTimeUse> {
    let mut times: Vec<(TraceEventTask, u64)> = Vec::new();
    let first =
        events.iter().find(|event| event.cpu == cpu).map_or(until, |event| event.at.clamp(from, until));
    let traced_ns = until - first;
    let (mut at, mut all_ns) = (first, 0);
    for event in events.iter().filter(|event| event.cpu == cpu) {
        let KernelTraceEventKind::Switch { from: task, .. } = &event.kind else { continue };
        let ran = event.at.clamp(at, until.max(at)) - at;
        at += ran;
        if task.tid == 0 || task.priority >= REAL_TIME {
            continue;
        }
        all_ns += ran;
        if task.tid == but {
            continue;
        }
        match times.iter_mut().find(|(known, _)| known.tid == task.tid) {
            // It has the name and the priority that it had last.
            Some((known, ns)) => (*known, *ns) = (task.clone(), *ns + ran),
            None => times.push((task.clone(), ran)),
        }
    }
    let busiest = times.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns);
    (traced_ns > 0).then_some(RealTimeUse { busiest, all_ns, traced_ns })
}
