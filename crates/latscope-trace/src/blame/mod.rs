//! Causes of a late wake-up: a pure function of the traced events.
//!
//! [`causes`] goes through the events of the CPU from the programmed instant to the stamp. Every stretch
//! between two events has one owner, the innermost activity, so shares are net (an interrupt within a thread's
//! stretch does not count for the thread) and add up to the whole. Time that the events cannot explain is
//! `unknown`, with the facts that are known.

mod frames;
mod rules;
mod sweep;
#[cfg(test)]
mod tests;
mod throttling;
mod wakeups;

pub use throttling::{RealTimeUse, real_time_use};

use crate::events::{
    self, KernelTraceEvent, KernelTraceEventKind, TraceEventTask, TraceName, last_thread_names,
};
use latscope_core::ordered::entry;
use latscope_core::report::{Cause, Outlier, TraceEvent};
use std::collections::BTreeMap;
use sweep::Sweep;

/// Window of a late wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWakeWindow {
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
pub struct LateWakeContext {
    /// True if a hypervisor may take the CPU away, which leaves no event.
    pub virtual_machine: bool,
    /// Longest time between two ticks of a CPU that runs a thread, ns; `None` if the ticks may be stopped.
    pub tick: Option<u64>,
    /// Time that the hypervisor recently took from the CPU of the window by the kernel's count, and that explains no
    /// other event, ns.
    pub stolen: u64,
    /// Time for which the quota of a control group recently held the measuring process back, and that explains no
    /// other event of this CPU, ns.
    pub throttled: u64,
    /// True if a quota of a control group held the measuring process back at any time of the run.
    pub quota: bool,
    /// Main thread of the coordinator, which is frozen and thawed with the late thread, if it is known.
    pub coordinator: Option<u32>,
    /// True if the run was, or may have been, frozen or stopped: then only a thread that was woken, or gave way to a
    /// more urgent thread, is known to have waited for a CPU.
    pub halted: bool,
}

/// Kinds of causes that other crates also look for.
pub mod kind {
    /// Real-time throttling, or the deadline server in its place.
    pub const THROTTLING: &str = "throttling";
    /// The CPU quota of a control group.
    pub const QUOTA: &str = "quota";
    /// A signal stopped the thread.
    pub const STOPPED: &str = "stopped";
    /// The freezer of a control group kept the thread from waking up.
    pub const FROZEN: &str = "frozen";
    /// The hypervisor, by its count of stolen time.
    pub const HYPERVISOR: &str = "hypervisor";
    /// The hypervisor, or the kernel with its interrupts off.
    pub const NO_INTERRUPTS: &str = "hypervisor-or-interrupts-off";
    /// Time without a trace; the name gives the reason.
    pub const NOT_TRACED: &str = latscope_core::report::Cause::NOT_TRACED;
    /// Time whose cause the trace does not show; the name says what it shows.
    pub const UNKNOWN: &str = "unknown";
}

/// Events that are rare and tell much: they are given also where they were not asked for, of every CPU.
const NOTABLE: [&str; 4] = ["console", "cpuhp_enter", "cpuhp_multi_enter", "cgroup_notify_frozen"];

/// Longest text of an event that is kept, in characters.
const TEXT: usize = 100;

/// Events and state of a window that its causes do not show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Events that were asked for on its CPUs, and notable ones.
    pub events: Vec<TraceEvent>,
    /// Stack of the thread that had the CPU before the late thread, as addresses.
    pub stack: Vec<u64>,
    /// Number of the system call that this thread made last, if the trace has calls.
    pub call: Option<u32>,
}

/// Returns the details of a window. `wanted` are the names of the events that were asked for, as the kernel's trace has
/// them.
pub fn collect_details(events: &[KernelTraceEvent], window: &LateWakeWindow, wanted: &[String]) -> Details {
    let mut details = Details::default();
    let places = cpu_residencies(events, window, !window.by_timer, &last_thread_names(events));
    for event in events.iter().filter(|event| (window.from..=window.until).contains(&event.at)) {
        let here =
            places.iter().any(|(cpu, from, until)| event.cpu == *cpu && (*from..=*until).contains(&event.at));
        if let (KernelTraceEventKind::Stack { addresses }, true) = (&event.kind, here) {
            (details.stack, details.call) = (addresses.to_vec(), call(events, event));
        }
        let (name, text) = events::name_and_fields(&event.kind);
        let is_asked_for = here && wanted.iter().any(|wanted| wanted == &*name);
        if details.events.len() < Outlier::EVENTS && (is_asked_for || NOTABLE.contains(&&*name)) {
            let (at, text) = (event.at - window.from, text.chars().take(TEXT).collect());
            details.events.push(TraceEvent { at, name: name.into_owned(), text });
        }
    }
    details
}

/// Returns the number of the last system call of the thread that an event is of.
fn call(events: &[KernelTraceEvent], of: &KernelTraceEvent) -> Option<u32> {
    let is_call = |kind: &KernelTraceEventKind| matches!(kind, KernelTraceEventKind::Other { name, .. } if &**name == "sys_enter");
    let mut before = events.iter().filter(|event| event.at <= of.at && event.thread == of.thread);
    let KernelTraceEventKind::Other { fields, .. } = &before.rfind(|event| is_call(&event.kind))?.kind else {
        return None;
    };
    fields.strip_prefix("id=")?.split(' ').next()?.parse().ok()
}

/// Returns the owners of a window, largest share first. The shares add up to its length. `events` are those of
/// all CPUs in order of time, beginning somewhat before the window.
pub fn causes(events: &[KernelTraceEvent], window: &LateWakeWindow, setting: &LateWakeContext) -> Vec<Cause> {
    let mut shares = Shares::default();
    let known = (last_thread_names(events), priorities(events));
    let places = cpu_residencies(events, window, !window.by_timer && !setting.halted, &known.0);
    for (cpu, from, until) in &places {
        // Stolen time is that of one CPU.
        let stolen = if *cpu == window.cpu { setting.stolen } else { 0 };
        let setting = LateWakeContext { stolen, ..*setting };
        Sweep::new(*cpu, (*from, *until), window, &setting, &known).process_events(events, &mut shares);
    }
    let facts = rules::CauseRuleContext { events, window, setting, places: &places };
    rules::apply_rules(shares, &facts).causes()
}

/// A CPU of the thread, with the begin and the end of its time there, ns of the trace clock.
type CpuResidency = (u32, u64, u64);

/// Returns the CPUs of the thread: until its wake-up the CPU whose timer expired, or that of the thread that woke it
/// where it waits for more than its timer (`by_threads`); from then on the CPU where it came to run. A thread that
/// thaws, continues or interrupts it may do so on any CPU.
fn cpu_residencies(
    events: &[KernelTraceEvent],
    window: &LateWakeWindow,
    by_threads: bool,
    names: &BTreeMap<u32, TraceName>,
) -> Vec<CpuResidency> {
    let (from, until) = (window.from, window.until.max(window.from));
    let is_woken = |event: &&KernelTraceEvent| matches!(&event.kind, KernelTraceEventKind::Waking { task, .. } if task.tid == window.thread);
    let woken = events.iter().rfind(|event| event.at <= until && is_woken(event));
    // The switch to the thread may be missing, so each event while it ran tells, also the first behind the stamp. An
    // earlier one tells nothing: since then the thread may have been moved.
    let ran = |event: &&KernelTraceEvent| match &event.kind {
        KernelTraceEventKind::Switch { to, .. } if event.at <= until => {
            to.tid == window.thread || event.thread == window.thread
        }
        _ => event.thread == window.thread,
    };
    let there =
        events.iter().rfind(|event| event.at >= from && ran(event)).map_or(window.cpu, |event| event.cpu);
    let is_its_own = |event: &&KernelTraceEvent| by_threads || !wakeups::is_by_thread(events, event, names);
    match woken.filter(|event| event.at > from && event.cpu != there).filter(is_its_own) {
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
    fn add_time(&mut self, owner: Owner, ns: u64) {
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
type Known = (BTreeMap<u32, TraceName>, BTreeMap<u32, i32>);

/// Returns the last priority of each thread that switches and wake-ups name, by id.
fn priorities(events: &[KernelTraceEvent]) -> BTreeMap<u32, i32> {
    tasks(events).map(|task| (task.tid, task.priority)).collect()
}

/// Returns the threads that switches and wake-ups name, in order of time.
fn tasks(events: &[KernelTraceEvent]) -> impl Iterator<Item = &TraceEventTask> {
    events.iter().flat_map(|event| match &event.kind {
        KernelTraceEventKind::Switch { from, to, .. } => [Some(from), Some(to)].into_iter().flatten(),
        KernelTraceEventKind::Wakeup { task, .. } | KernelTraceEventKind::WakeupNew { task, .. } => {
            [Some(task), None].into_iter().flatten()
        }
        _ => [None, None].into_iter().flatten(),
    })
}
