//! The events that are traced, and what a kernel without some of them cannot show.

use super::super::tracefs::{TraceInstanceError, TracefsInstance};
use crate::events::TraceFormatCatalogue;
use latscope_core::plan::Traced;
use std::{fs, io};

/// Events without which nothing can be explained.
const NEEDED: [&str; 4] =
    ["sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup", "sched/sched_wakeup_new"];

/// Events to enable, each group with the consequence if the kernel lacks it.
const WANTED: [(&str, &[&str]); 5] = [
    ("interrupts of devices are not seen", &["irq/irq_handler_entry", "irq/irq_handler_exit"]),
    ("soft interrupts are not seen", &["irq/softirq_entry", "irq/softirq_exit"]),
    ("expiries of timers are not seen", &["timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit"]),
    ("sleep states of the CPU are not seen", &["power/cpu_idle"]),
    ("non-maskable interrupts are not seen", &["nmi/nmi_handler"]),
];

/// Events that are rare and tell much, and those of binder. Nothing is said of a kernel without them.
const RARE: [&str; 11] = [
    "printk/console",
    "cpuhp/cpuhp_enter",
    "cpuhp/cpuhp_multi_enter",
    "cpuhp/cpuhp_exit",
    "workqueue/workqueue_execute_start",
    "csd/csd_function_entry",
    "cgroup/cgroup_notify_frozen",
    "binder/binder_transaction",
    "binder/binder_transaction_received",
    "binder/binder_wait_for_work",
    "binder/binder_return",
];

/// System of the CPU's own interrupts. Its events are in pairs, which depend on the kernel.
const VECTORS: &str = "irq_vectors";

/// Trigger for the stack of a thread that could go on and is no idle thread.
const STACKS: (&str, &str) =
    ("events/sched/sched_switch/trigger", "stacktrace if prev_state == 0 && prev_pid != 0");

/// Enables the events of this file that the kernel has; returns them, and a description of the missing ones.
pub(super) fn enable(
    instance: &TracefsInstance,
    traced: &Traced,
) -> Result<(Vec<String>, Vec<String>), TraceInstanceError> {
    let (mut enabled, mut shortfalls) = (vec!["ftrace/print".to_owned()], Vec::new());
    for event in NEEDED {
        instance.enable(event).map_err(|error| instance.setting_refusal(&error))?;
        enabled.push(event.to_owned());
    }
    let usual = WANTED.iter().map(|(what, events)| {
        ((*what).to_owned(), events.iter().map(|event| (*event).to_owned()).collect::<Vec<_>>())
    });
    let vectors = ("the CPU's own interrupts are not seen".to_owned(), vectors(instance));
    let requested = traced.events.iter();
    let requested = requested
        .map(|event| (format!("this kernel has no event {event}"), vec![event.replacen(':', "/", 1)]));
    for (shortfall, events) in usual.chain([vectors]).chain(requested) {
        let before = enabled.len();
        enabled.extend(events.iter().filter(|event| instance.enable(event).is_ok()).cloned());
        if events.is_empty() || enabled.len() - before < events.len() {
            shortfalls.push(shortfall);
        }
    }
    if traced.stacks {
        match instance.write_file(STACKS.0, STACKS.1) {
            Ok(()) => enabled.push("ftrace/kernel_stack".to_owned()),
            Err(error) => shortfalls.push(format!("stacks are not seen: {error}")),
        }
    }
    let there = RARE.into_iter().filter(|event| instance.enable(event).is_ok());
    enabled.extend(there.map(str::to_owned));
    enabled.sort();
    enabled.dedup();
    Ok((enabled, shortfalls))
}

fn vectors(instance: &TracefsInstance) -> Vec<String> {
    let directory = instance.directory().join("events").join(VECTORS);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let edges = names.filter(|name| name.ends_with("_entry") || name.ends_with("_exit"));
    edges.map(|name| format!("{VECTORS}/{name}")).collect()
}

/// Returns the kernel's description of the layout of the events.
pub(super) fn catalogue(instance: &TracefsInstance, events: &[String]) -> io::Result<TraceFormatCatalogue> {
    let formats = events.iter().map(|event| {
        let system = event.split('/').next().unwrap_or_default().to_owned();
        Ok((system, instance.read_file(&format!("events/{event}/format"))?))
    });
    Ok(TraceFormatCatalogue {
        header_page: instance.read_file("events/header_page")?,
        header_event: instance.read_file("events/header_event")?,
        events: formats.collect::<io::Result<_>>()?,
    })
}
