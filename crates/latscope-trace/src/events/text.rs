//! Events as ftrace text, in the form of the time lines' files.

use super::{KernelTraceEvent, KernelTraceEventKind, TraceEventTask, TraceName, softirq_name};
use crate::timeline::{FTRACE_HEAD, ftrace_row};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Writes events, in order of time, as ftrace text, which ui.perfetto.dev
/// opens. `names` are those of threads.
pub fn format_events(events: &[KernelTraceEvent], names: &BTreeMap<u32, TraceName>) -> String {
    let mut out = FTRACE_HEAD.to_owned();
    for event in events {
        let task = match event.thread {
            0 => "<idle>",
            thread => names.get(&thread).map_or("<...>", |name| name),
        };
        if let KernelTraceEventKind::Lost { events, .. } = event.kind {
            let events = events.map_or(String::new(), |events| format!("{events} "));
            out += &format!("# CPU {}: {events}events lost\n", event.cpu);
            continue;
        }
        let (name, mut fields) = name_and_fields(&event.kind);
        if let KernelTraceEventKind::Mark { text } = &event.kind
            && text.chars().nth(1) != Some('|')
        {
            // Plain words in the form of Android's atrace: an instant of the thread.
            fields = format!("I|{}|{text}", event.thread);
        }
        // Names and remarks can hold anything; an event is a line.
        let (task, fields) = (task.replace('\n', " "), fields.replace('\n', " "));
        out += &ftrace_row((event.thread, None, &task), event.cpu, event.at, &name, &fields);
    }
    out
}

/// Name and fields as the kernel writes them.
pub(crate) fn name_and_fields(kind: &KernelTraceEventKind) -> (Cow<'_, str>, String) {
    let (name, fields) = match kind {
        KernelTraceEventKind::VectorEntry { name, vector } => {
            return (format!("{name}_entry").into(), format!("vector={vector}"));
        }
        KernelTraceEventKind::VectorExit { name, vector } => {
            return (format!("{name}_exit").into(), format!("vector={vector}"));
        }
        KernelTraceEventKind::Switch { from, state, to } => ("sched_switch", format_switch(from, *state, to)),
        KernelTraceEventKind::Waking { task, target } => ("sched_waking", format_wakeup(task, *target)),
        KernelTraceEventKind::Wakeup { task, target } => ("sched_wakeup", format_wakeup(task, *target)),
        KernelTraceEventKind::WakeupNew { task, target } => {
            ("sched_wakeup_new", format_wakeup(task, *target))
        }
        KernelTraceEventKind::IrqEntry { irq, name } => {
            ("irq_handler_entry", format!("irq={irq} name={name}"))
        }
        KernelTraceEventKind::IrqExit { irq } => ("irq_handler_exit", format!("irq={irq} ret=handled")),
        KernelTraceEventKind::SoftirqRaise { vector } => ("softirq_raise", softirq(*vector)),
        KernelTraceEventKind::SoftirqEntry { vector } => ("softirq_entry", softirq(*vector)),
        KernelTraceEventKind::SoftirqExit { vector } => ("softirq_exit", softirq(*vector)),
        KernelTraceEventKind::TimerEntry { timer, now } => {
            ("hrtimer_expire_entry", format!("hrtimer={timer:016x} now={now}"))
        }
        KernelTraceEventKind::TimerExit { timer } => ("hrtimer_expire_exit", format!("hrtimer={timer:016x}")),
        KernelTraceEventKind::Idle { state } => ("cpu_idle", format!("state={}", state.unwrap_or(u32::MAX))),
        KernelTraceEventKind::Nmi { ns } => ("nmi_handler", format!("delta_ns: {ns}")),
        KernelTraceEventKind::Work { function } => {
            ("workqueue_execute_start", format!("function={function:#018x}"))
        }
        KernelTraceEventKind::Call { function } => ("csd_function_entry", format!("func={function:#018x}")),
        KernelTraceEventKind::Timerlat { turn, context, ns } => {
            ("timerlat", format!("#{turn} context {context} timer_latency {ns} ns"))
        }
        KernelTraceEventKind::Mark { text } => ("tracing_mark_write", text.to_string()),
        KernelTraceEventKind::Other { name, fields } => return (name.to_string().into(), fields.to_string()),
        KernelTraceEventKind::Stack { addresses } => ("kernel_stack", stack(addresses)),
        KernelTraceEventKind::Lost { .. } => ("lost", String::new()),
    };
    (name.into(), fields)
}

fn format_wakeup(task: &TraceEventTask, target: u32) -> String {
    format!("comm={} pid={} prio={} target_cpu={target:03}", task.name, task.tid, task.priority)
}

fn stack(addresses: &[u64]) -> String {
    let addresses: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    addresses.join(" ")
}

fn softirq(vector: u32) -> String {
    format!("vec={vector} [action={}]", softirq_name(vector).to_uppercase())
}

fn format_switch(from: &TraceEventTask, state: u64, to: &TraceEventTask) -> String {
    format!(
        "prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> next_comm={} next_pid={} next_prio={}",
        from.name,
        from.tid,
        from.priority,
        letters(state),
        to.name,
        to.tid,
        to.priority
    )
}

/// The state of a thread that leaves a CPU (linux `include/linux/sched.h`,
/// `include/trace/events/sched.h`).
fn letters(state: u64) -> String {
    let set = "SDTtXZPI".chars().enumerate().filter(|(bit, _)| state >> bit & 1 != 0);
    let letters: Vec<String> = set.map(|(_, letter)| letter.to_string()).collect();
    let letters = if letters.is_empty() { "R".to_owned() } else { letters.join("|") };
    if state & 0x100 == 0 { letters } else { letters + "+" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_kernels_letters() {
        let all = [0, 1, 2, 0x100, 0x80, 0x82].map(letters);
        assert_eq!(all, ["R", "S", "D", "R+", "I", "D|I"]);
    }
}
