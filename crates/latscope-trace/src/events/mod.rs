//! The kernel's trace, as raw pages of its ring buffers.
//!
//! [`TraceFormatCatalogue`] holds the kernel's description of its own layout: `header_page` and the `format` file of
//! each event. With it a [`Decoder`] makes typed [`KernelTraceEvent`]s of the pages read from
//! `per_cpu/cpuN/trace_pipe_raw`. [`dat`] writes the same pages as a file that trace-cmd opens, and [`format_events`]
//! writes events as ftrace text, which Perfetto opens.
//!
//! The layout of pages is that of a little-endian machine. Nothing that is read
//! is trusted: what does not fit its format is left out.

mod catalogue;
mod dat;
mod decode;
mod page;
mod print;
mod text;

pub use catalogue::{Field, TraceEventFormat, TraceFormatCatalogue};
pub use dat::dat;
pub use decode::Decoder;
pub use page::{page_begin, page_length};
pub use text::format_events;
pub(crate) use text::name_and_fields;

use std::collections::BTreeMap;
use std::sync::Arc;

/// A name in the trace. The same name is there only once.
pub type TraceName = Arc<str>;

/// Event of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelTraceEvent {
    /// Time of the event, ns of the trace clock.
    pub at: u64,
    /// CPU on which the event was recorded.
    pub cpu: u32,
    /// Thread that was on this CPU; 0 when idle.
    pub thread: u32,
    /// Kind of the event, with its data.
    pub kind: KernelTraceEventKind,
}

/// Thread as an event names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEventTask {
    /// Id of the thread.
    pub tid: u32,
    /// Name of the thread.
    pub name: TraceName,
    /// The kernel's priority: below 100 real-time, 120 is nice 0.
    pub priority: i32,
}

/// Kind of an event, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelTraceEventKind {
    /// The CPU went from one thread to another (`sched_switch`).
    Switch {
        /// Thread that left the CPU.
        from: TraceEventTask,
        /// State of the thread that left, as in the event: 0 could go on, bit 8 was preempted.
        state: u64,
        /// Thread that got the CPU.
        to: TraceEventTask,
    },
    /// A thread is about to be woken (`sched_waking`).
    Waking {
        /// Thread that is about to be woken.
        task: TraceEventTask,
        /// CPU on which the thread shall run.
        target: u32,
    },
    /// A thread was put into a run queue (`sched_wakeup`).
    Wakeup {
        /// Thread that was put into the run queue.
        task: TraceEventTask,
        /// CPU on which the thread shall run.
        target: u32,
    },
    /// A new thread was put into a run queue (`sched_wakeup_new`).
    WakeupNew {
        /// New thread in the run queue.
        task: TraceEventTask,
        /// CPU on which the thread shall run.
        target: u32,
    },
    /// The handler of a device's interrupt begins (`irq_handler_entry`).
    IrqEntry {
        /// Number of the interrupt.
        irq: u32,
        /// Name of the handler.
        name: TraceName,
    },
    /// The handler of a device's interrupt ended (`irq_handler_exit`).
    IrqExit {
        /// Number of the interrupt.
        irq: u32,
    },
    /// A soft interrupt was asked for (`softirq_raise`).
    SoftirqRaise {
        /// Number of the soft interrupt; `softirq_name` names it.
        vector: u32,
    },
    /// A soft interrupt begins (`softirq_entry`).
    SoftirqEntry {
        /// Number of the soft interrupt; `softirq_name` names it.
        vector: u32,
    },
    /// A soft interrupt ended (`softirq_exit`).
    SoftirqExit {
        /// Number of the soft interrupt; `softirq_name` names it.
        vector: u32,
    },
    /// An interrupt of the CPU's own begins (`irq_vectors:NAME_entry`).
    VectorEntry {
        /// Name of the interrupt: `local_timer`, `reschedule`, …
        name: TraceName,
        /// Number of the interrupt.
        vector: u32,
    },
    /// An interrupt of the CPU's own ended (`irq_vectors:NAME_exit`).
    VectorExit {
        /// Name of the interrupt, as at its entry.
        name: TraceName,
        /// Number of the interrupt.
        vector: u32,
    },
    /// The function of an expired timer begins (`hrtimer_expire_entry`).
    TimerEntry {
        /// Address of the timer in the kernel.
        timer: u64,
        /// Time of the timer's clock at the expiry, ns.
        now: u64,
    },
    /// The function of an expired timer ended (`hrtimer_expire_exit`).
    TimerExit {
        /// Address of the timer in the kernel.
        timer: u64,
    },
    /// The CPU goes to sleep, or wakes up (`cpu_idle`).
    Idle {
        /// Sleep state; `None` if the CPU woke up.
        state: Option<u32>,
    },
    /// A non-maskable interrupt has ended (`nmi_handler`, `nmi_noise`).
    Nmi {
        /// Duration of the interrupt, ns.
        ns: u64,
    },
    /// The kernel's timerlat tracer has measured (`timerlat`).
    Timerlat {
        /// Number of the activation.
        turn: u64,
        /// Place of the measurement: 0 in the interrupt, 1 in the thread, 2 back in user space.
        context: u32,
        /// Latency that was measured, ns.
        ns: u64,
    },
    /// A thread of the kernel's work queues begins a work (`workqueue_execute_start`).
    Work {
        /// Address of the function.
        function: u64,
    },
    /// The CPU runs a function for another CPU (`csd_function_entry`).
    Call {
        /// Address of the function.
        function: u64,
    },
    /// A process wrote to `trace_marker`.
    Mark {
        /// Text that was written.
        text: TraceName,
    },
    /// Anything else that was recorded (`binder_transaction`); no conclusion is drawn from it.
    Other {
        /// The name of the event.
        name: TraceName,
        /// Fields as the kernel would print them.
        fields: TraceName,
    },
    /// The kernel's stack of a thread that gave way (`kernel_stack`).
    Stack {
        /// Addresses of the stack, innermost first.
        addresses: Arc<[u64]>,
    },
    /// Events are missing between the previous event on this CPU and this place.
    Lost {
        /// Number of missing events, if it is known.
        events: Option<u64>,
        /// Reason for the missing events.
        why: Loss,
    },
}

/// Reason for missing events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The kernel's buffer was full before latscope read it.
    Overwritten,
    /// There was no room to keep the events after they were read.
    Forgotten,
}

/// The name of a soft interrupt (`linux/interrupt.h`).
pub(crate) fn softirq_name(vector: u32) -> &'static str {
    const NAMES: [&str; 10] =
        ["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];
    NAMES.get(vector as usize).copied().unwrap_or("unknown")
}

/// The last name of each thread that events name, by id.
pub fn last_thread_names<'a>(
    events: impl IntoIterator<Item = &'a KernelTraceEvent>,
) -> BTreeMap<u32, TraceName> {
    let mut names = BTreeMap::new();
    let mut put = |task: &TraceEventTask| names.insert(task.tid, task.name.clone());
    for event in events {
        match &event.kind {
            KernelTraceEventKind::Switch { from, to, .. } => {
                put(from);
                put(to);
            }
            KernelTraceEventKind::Waking { task, .. }
            | KernelTraceEventKind::Wakeup { task, .. }
            | KernelTraceEventKind::WakeupNew { task, .. } => {
                put(task);
            }
            _ => {}
        }
    }
    names
}
