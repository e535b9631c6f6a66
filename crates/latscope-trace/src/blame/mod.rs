//! Causes of a late wake-up: a pure function of the traced events.
//!
//! [`causes`] goes through the events of the CPU from the programmed instant to the stamp. Every stretch
//! between two events has one owner, the innermost activity, so shares are net (an interrupt within a thread's
//! stretch does not count for the thread) and add up to the whole. Time that the events cannot explain is
//! `unknown`, with the facts that are known.

mod sweep;
#[cfg(test)]
mod tests;
mod throttling;

pub use throttling::{RealTimeUse, real_time_use};

use crate::events::{self, Event, Kind, Name, names};
use latscope_core::ordered::entry;
use latscope_core::report::{Cause, Outlier, TraceEvent};
use std::collections::BTreeMap;
use sweep::Sweep;

/// Window of a late wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The CPU that the thread is bound to, or was on last.
    pub cpu: u32,
    /// Id of the thread.
    pub thread: u32,
    /// The programmed instant, ns of the trace clock.
    pub from: u64,
    /// The stamp, ns of the trace clock.
    pub until: u64,
    /// True if the thread waits for nothing but its timer. Otherwise another thread may wake it.
    pub by_timer: bool,
}

/// Facts on the machine that the events do not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Setting {
    /// True if a hypervisor may take the CPU away, which leaves no event.
    pub virtual_machine: bool,
    /// Longest time between two ticks of a CPU that runs a thread, ns; `None` if the ticks may be stopped.
    pub tick: Option<u64>,
    /// Time that the hypervisor recently took from this CPU by its own count, ns.
    pub stolen: u64,
    /// Time for which the quota of a control group recently held the measuring process back, ns.
    pub throttled: u64,
}

/// Kinds of causes that other crates also look for.
pub mod kind {
    /// Real-time throttling, or the deadline server in its place.
    pub const THROTTLING: &str = "throttling";
    /// The CPU quota of a control group.
    pub const QUOTA: &str = "quota";
    /// A signal stopped the thread.
    pub const STOPPED: &str = "stopped";
    /// Time without a trace; the name gives the reason.
    pub const NOT_TRACED: &str = latscope_core::report::Cause::NOT_TRACED;
    /// Time whose cause the trace does not show; the name says what it shows.
    pub const UNKNOWN: &str = "unknown";
}

/// Returns the events of a window on its CPUs that were asked for in addition, by their names in the kernel's
/// trace, and the stack of the thread that had the CPU before the late thread.
pub fn details(events: &[Event], window: &Window, wanted: &[String]) -> (Vec<TraceEvent>, Vec<u64>) {
    let mut found = Vec::new();
    let mut stack = Vec::new();
    for (cpu, from, until) in places(events, window) {
        for event in events.iter().filter(|event| event.cpu == cpu && (from..=until).contains(&event.at)) {
            if let Kind::Stack { addresses } = &event.kind {
                stack = addresses.to_vec();
            }
            let (name, text) = events::described(&event.kind);
            if found.len() < Outlier::EVENTS && wanted.iter().any(|wanted| wanted == &*name) {
                let at = event.at - window.from;
                found.push(TraceEvent { at, name: name.into_owned(), text });
            }
        }
    }
    (found, stack)
}

/// Returns the owners of a window, largest share first. The shares add up to its length. `events` are those of
/// all CPUs in order of time, beginning somewhat before the window.
pub fn causes(events: &[Event], window: &Window, setting: &Setting) -> Vec<Cause> {
    let mut shares = Shares::default();
    let known = (names(events), priorities(events));
    for (cpu, from, until) in places(events, window) {
        Sweep::new(cpu, (from, until), window, setting, &known).run(events, &mut shares);
    }
    shares.causes()
}

/// Returns the CPUs of the thread with the begin and the end of its time there: until its wake-up the CPU whose
/// timer expired, from then on the CPU where it came to run.
fn places(events: &[Event], window: &Window) -> Vec<(u32, u64, u64)> {
    let (from, until) = (window.from, window.until.max(window.from));
    let is_woken =
        |event: &&Event| matches!(&event.kind, Kind::Waking { task, .. } if task.tid == window.thread);
    let woken = events.iter().rfind(|event| event.at <= until && is_woken(event));
    // The switch to the thread may be missing, so each event while it ran tells, also the first behind the stamp. An
    // earlier one tells nothing: since then the thread may have been moved.
    let ran = |event: &&Event| match &event.kind {
        Kind::Switch { to, .. } if event.at <= until => {
            to.tid == window.thread || event.thread == window.thread
        }
        _ => event.thread == window.thread,
    };
    let there =
        events.iter().rfind(|event| event.at >= from && ran(event)).map_or(window.cpu, |event| event.cpu);
    match woken.filter(|event| event.at > from && event.cpu != there) {
        None => vec![(there, from, until)],
        Some(woken) => vec![(woken.cpu, from, woken.at), (there, woken.at, until)],
    }
}

/// The owner of a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    kind: &'static str,
    name: String,
    pid: u32,
}

impl Owner {
    fn new(kind: &'static str, name: impl Into<String>) -> Owner {
        Owner { kind, name: name.into(), pid: 0 }
    }
}

/// Time by owner, ns.
#[derive(Debug, Default)]
struct Shares(Vec<(Owner, u64)>);

impl Shares {
    fn add(&mut self, owner: Owner, ns: u64) {
        *entry(&mut self.0, owner) += ns;
    }

    fn causes(self) -> Vec<Cause> {
        let cause = |(owner, ns): (Owner, u64)| Cause {
            kind: owner.kind.to_owned(),
            name: owner.name,
            pid: owner.pid,
            ns,
        };
        let mut causes: Vec<Cause> = self.0.into_iter().filter(|(_, ns)| *ns > 0).map(cause).collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        causes
    }
}

/// Names and priorities of threads by id.
type Known = (BTreeMap<u32, Name>, BTreeMap<u32, i32>);

/// Returns the last priority of each thread that switches and wake-ups name, by id.
fn priorities(events: &[Event]) -> BTreeMap<u32, i32> {
    let tasks = events.iter().flat_map(|event| match &event.kind {
        Kind::Switch { from, to, .. } => vec![from, to],
        Kind::Wakeup { task, .. } | Kind::WakeupNew { task, .. } => vec![task],
        _ => Vec::new(),
    });
    tasks.map(|task| (task.tid, task.priority)).collect()
}
