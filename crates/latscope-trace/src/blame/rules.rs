//! Rules that every explanation obeys. A share that breaks one is unknown, and its name has the rule.

use super::throttling::REAL_TIME;
use super::{CpuResidency, LateWakeContext, LateWakeWindow, Owner, Shares, kind, tasks};
use crate::events::{KernelTraceEvent, KernelTraceEventKind};
use latscope_core::units::format_time;

/// Longest time between two ticks, ns: no kernel is built with fewer than 100 in a second. An ordinary thread gives way
/// to a real-time thread at the next tick at the latest.
const TICK: u64 = 10_000_000;

/// What the rules are checked against.
pub(super) struct CauseRuleContext<'a> {
    pub events: &'a [KernelTraceEvent],
    pub window: &'a LateWakeWindow,
    pub setting: &'a LateWakeContext,
    pub places: &'a [CpuResidency],
}

/// Returns the shares that obey the rules as they are, and the others as unknown.
pub(super) fn apply_rules(shares: Shares, facts: &CauseRuleContext) -> Shares {
    let mut checked = Shares::default();
    let mut counted = [(kind::HYPERVISOR, facts.setting.stolen), (kind::QUOTA, facts.setting.throttled)];
    for (owner, ns) in shares.0 {
        if let Some((_, left)) = counted.iter_mut().find(|(kind, _)| *kind == owner.kind) {
            let covered = ns.min(*left);
            *left -= covered;
            checked.add_time(excess_owner(&owner), ns - covered);
            checked.add_time(owner, covered);
            continue;
        }
        match violated_rule(&owner, ns, facts) {
            Some(rule) => checked.add_time(Owner::new(kind::UNKNOWN, rule), ns),
            None => checked.add_time(owner, ns),
        }
    }
    checked
}

/// Returns the owner of the time beyond what the kernel counted for `owner`: each counted ns explains one ns of one
/// event.
fn excess_owner(owner: &Owner) -> Owner {
    match owner.kind {
        kind::HYPERVISOR => Owner { kind: kind::NO_INTERRUPTS, ..owner.clone() },
        _ => Owner::new(kind::UNKNOWN, "longer than a quota held the run back by the kernel's count"),
    }
}

/// Returns the rule that a thread's share breaks, in words.
fn violated_rule(owner: &Owner, ns: u64, facts: &CauseRuleContext) -> Option<String> {
    let window = facts.window;
    if owner.kind != "thread" || owner.pid == window.thread {
        return None;
    }
    let name = &owner.name;
    if !has_run_on_cpu(owner.pid, facts) {
        return Some(format!("{name} did not run on the CPU of the late thread"));
    }
    // Before it is woken by another thread, the late thread keeps that one from nothing.
    let woken = facts.events.iter().rfind(|event| {
        event.at <= window.until
            && matches!(&event.kind, KernelTraceEventKind::Waking { task, .. } if task.tid == window.thread)
    });
    let before = woken.filter(|_| !window.by_timer).map_or(0, |event| event.at.saturating_sub(window.from));
    // Also for a while, as one that holds a lock that a real-time thread waits for.
    let is_real_time =
        |thread: u32| tasks(facts.events).any(|task| task.tid == thread && task.priority < REAL_TIME);
    let too_long = ns.saturating_sub(before) > TICK;
    (too_long && is_real_time(window.thread) && !is_real_time(owner.pid)).then(|| {
        format!(
            "an ordinary thread, {name}, keeps a real-time thread from a CPU for a tick at most, not for {}",
            format_time(ns as f64)
        )
    })
}

/// Returns true if a thread ran on one of the late thread's CPUs while that was there.
fn has_run_on_cpu(thread: u32, facts: &CauseRuleContext) -> bool {
    let CauseRuleContext { events, places, .. } = facts;
    places.iter().any(|(cpu, from, until)| {
        let here = || {
            events
                .iter()
                .filter(|event| event.cpu == *cpu && !matches!(event.kind, KernelTraceEventKind::Lost { .. }))
        };
        let on_cpu = |event: &KernelTraceEvent| match &event.kind {
            KernelTraceEventKind::Switch { from, to, .. } => from.tid == thread || to.tid == thread,
            _ => event.thread == thread,
        };
        let within = || here().filter(|event| (*from..=*until).contains(&event.at));
        let before = || here().rfind(|event| event.at < *from);
        let behind = || here().find(|event| event.at > *until);
        within().chain(before()).chain(behind()).any(on_cpu)
    })
}
