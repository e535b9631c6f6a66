//! The kernel's trace, as raw pages of its ring buffers.
//!
//! [`Catalogue`] holds what the kernel says of its own layout: `header_page`
//! and the `format` file of each event. With it a [`Decoder`] makes typed
//! [`Event`]s of the pages read from `per_cpu/cpuN/trace_pipe_raw`; [`dat`]
//! writes the same pages as a file that trace-cmd opens, [`text`] writes events
//! as ftrace text, which Perfetto opens.
//!
//! The layout of pages is that of a little-endian machine. Nothing that is read
//! is trusted: what does not fit its format is left out.

mod catalogue;
mod dat;
mod decode;
mod page;
mod print;
mod text;

pub use catalogue::{Catalogue, Field, Format};
pub use dat::dat;
pub use decode::Decoder;
pub use page::{page_begin, page_length};
pub(crate) use text::described;
pub use text::text;

use std::collections::BTreeMap;
use std::sync::Arc;

/// A name in the trace. The same name is there only once.
pub type Name = Arc<str>;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// ns of the trace clock.
    pub at: u64,
    /// The CPU it was recorded on.
    pub cpu: u32,
    /// The thread that was on this CPU; 0 when idle.
    pub thread: u32,
    /// What happened.
    pub kind: Kind,
}

/// A thread as an event names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Thread id.
    pub tid: u32,
    /// Its name.
    pub name: Name,
    /// The kernel's priority: below 100 real-time, 120 is nice 0.
    pub priority: i32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The CPU went from one thread to another (`sched_switch`).
    Switch {
        /// Who left.
        from: Task,
        /// In which state, as in the event: 0 could go on, bit 8 was preempted.
        state: u64,
        /// Who came.
        to: Task,
    },
    /// A thread is about to be woken (`sched_waking`).
    Waking {
        /// Which.
        task: Task,
        /// CPU it shall run on.
        target: u32,
    },
    /// A thread was put into a run queue (`sched_wakeup`).
    Wakeup {
        /// Which.
        task: Task,
        /// CPU it shall run on.
        target: u32,
    },
    /// A new thread was put into a run queue (`sched_wakeup_new`).
    WakeupNew {
        /// Which.
        task: Task,
        /// CPU it shall run on.
        target: u32,
    },
    /// The handler of a device's interrupt begins (`irq_handler_entry`).
    IrqEntry {
        /// Its number.
        irq: u32,
        /// Its name.
        name: Name,
    },
    /// It ended.
    IrqExit {
        /// Its number.
        irq: u32,
    },
    /// A soft interrupt was asked for (`softirq_raise`).
    SoftirqRaise {
        /// Its number; `softirq_name` names it.
        vector: u32,
    },
    /// A soft interrupt begins (`softirq_entry`).
    SoftirqEntry {
        /// Its number; `softirq_name` names it.
        vector: u32,
    },
    /// It ended.
    SoftirqExit {
        /// Its number.
        vector: u32,
    },
    /// An interrupt of the CPU's own begins (`irq_vectors:NAME_entry`).
    VectorEntry {
        /// Its name: `local_timer`, `reschedule`, …
        name: Name,
        /// Its number.
        vector: u32,
    },
    /// It ended.
    VectorExit {
        /// Its name.
        name: Name,
        /// Its number.
        vector: u32,
    },
    /// The function of an expired timer begins (`hrtimer_expire_entry`).
    TimerEntry {
        /// Which timer.
        timer: u64,
        /// The clock's time at its expiry, ns.
        now: u64,
    },
    /// It ended.
    TimerExit {
        /// Which timer.
        timer: u64,
    },
    /// The CPU goes to sleep, or wakes up (`cpu_idle`).
    Idle {
        /// The sleep state; `None` when it woke up.
        state: Option<u32>,
    },
    /// A non-maskable interrupt has ended (`nmi_handler`, `nmi_noise`).
    Nmi {
        /// How long it took, ns.
        ns: u64,
    },
    /// The kernel's timerlat tracer has measured (`timerlat`).
    Timerlat {
        /// Number of the activation.
        turn: u64,
        /// 0 in the interrupt, 1 in the thread, 2 back in user space.
        context: u32,
        /// The latency, ns.
        ns: u64,
    },
    /// A process wrote to `trace_marker`.
    Mark {
        /// What.
        text: Name,
    },
    /// Anything else that was recorded (`binder_transaction`): nothing is concluded from it.
    Other {
        /// The name of the event.
        name: Name,
        /// What the kernel would print of it.
        fields: Name,
    },
    /// The kernel's stack of a thread that gave way (`kernel_stack`).
    Stack {
        /// Addresses, innermost first.
        addresses: Arc<[u64]>,
    },
    /// Between the event before it on this CPU and here, events are missing.
    Lost {
        /// How many, where that is known.
        events: Option<u64>,
        /// Reason for it.
        why: Loss,
    },
}

/// Reason for missing events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The kernel's buffer was full before it was read.
    Overwritten,
    /// After they were read there was no room to keep them.
    Forgotten,
}

/// The name of a soft interrupt (`linux/interrupt.h`).
pub(crate) fn softirq_name(vector: u32) -> &'static str {
    const NAMES: [&str; 10] =
        ["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];
    NAMES.get(vector as usize).copied().unwrap_or("unknown")
}

/// The last name of each thread that events name, by id.
pub fn names<'a>(events: impl IntoIterator<Item = &'a Event>) -> BTreeMap<u32, Name> {
    let mut names = BTreeMap::new();
    let mut put = |task: &Task| names.insert(task.tid, task.name.clone());
    for event in events {
        match &event.kind {
            Kind::Switch { from, to, .. } => {
                put(from);
                put(to);
            }
            Kind::Waking { task, .. } | Kind::Wakeup { task, .. } | Kind::WakeupNew { task, .. } => {
                put(task);
            }
            _ => {}
        }
    }
    names
}
