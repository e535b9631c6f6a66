//! Goes through the events of one CPU and gives every stretch its owner.

use super::throttling::{Denial, REAL_TIME, denials};
use super::{Known, Owner, Setting, Shares, Window, kind};
use crate::events::{Event, Kind, Loss, Name, Task, softirq_name};
use latscope_core::units::format_time;
use std::collections::HashMap;

/// Longest duration of activities that are short by their nature (the handlers of the CPU's own interrupts, the
/// way out of the kernel or of idle), ns. A longer activity without an event was interrupted by something that
/// leaves no event.
const SHORT: u64 = 100_000;

/// Longest time that the timer's interrupt takes to arrive, ns.
const DELIVERY: u64 = 5_000;

/// Longest time that the timer's interrupt takes to arrive in a virtual machine, where the host has a part in
/// it, ns.
const GUEST_DELIVERY: u64 = 20_000;

/// Shortest stretch, ns, that counts as stolen if the kernel's count of stolen time, in steps of 10 ms, has
/// grown by as much; for a shorter stretch the count says nothing.
const COUNTED: u64 = 1_000_000;

/// State `TASK_UNINTERRUPTIBLE` of the kernel.
const UNINTERRUPTIBLE: u64 = 2;

/// States `TASK_STOPPED` and `TASK_TRACED` of the kernel.
const STOPPED: u64 = 4 | 8;

/// An interrupt that is being handled.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Frame {
    Irq(u32, Name),
    Vector(Name),
    Softirq(u32),
}

/// Activity of the late thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// The thread waits for its timer.
    Asleep,
    /// The thread waits for a CPU.
    Waiting,
    Running,
    /// The thread waits for something within the kernel.
    Blocked,
    /// A signal or a debugger stopped the thread.
    Stopped,
}

pub(crate) struct Sweep<'a> {
    cpu: u32,
    /// Part of the window that is judged.
    span: (u64, u64),
    window: &'a Window,
    setting: &'a Setting,
    known: &'a Known,
    /// Instant up to which the time has an owner, ns of the trace clock.
    at: u64,
    /// True if an event of this CPU was seen.
    seen: bool,
    /// The thread on the CPU; `None` when not known.
    current: Option<u32>,
    /// Priority of the thread on the CPU, if known; smaller is more urgent.
    priority: Option<i32>,
    /// Threads that wait for this CPU, with the time of their wake-up and their priority.
    ready: HashMap<u32, (u64, i32)>,
    /// Interrupts in progress, the innermost last.
    stack: Vec<Frame>,
    /// Soft interrupts of threads that lost the CPU meanwhile (PREEMPT_RT).
    parked: HashMap<u32, Vec<Frame>>,
    /// Sleep state of the CPU, if the kernel records it.
    idle_state: Option<u32>,
    thread: Thread,
    /// True if the trace has the switch with which the thread went to sleep.
    slept: bool,
    /// True if the thread left the CPU on its own and runnable, as the trace has it, or in a way that the trace lacks. A
    /// frozen thread does so, too, and unlike others it has to be woken.
    left: bool,
    /// True if a timer's interrupt came since the programmed instant.
    delivered: bool,
    /// True if the thread was woken since the programmed instant.
    woken: bool,
    /// Time blocked since the thread last ran, ns. Its owner is known at the wake-up.
    blocked: u64,
    /// Owners of a time in which the thread may not have been runnable: its wake-up decides.
    unwoken: Vec<(Owner, u64)>,
    /// Times in which the thread was runnable and not allowed to run.
    denials: Vec<Denial>,
    /// Instants of switches to a thread that became more urgent while it had the CPU, with its later priority.
    raised: HashMap<u64, i32>,
}

/// Returns the switches of a CPU to threads that leave it with a more urgent priority than they came with: they changed
/// their policy meanwhile, or have a waiter's priority.
fn raised(events: &[Event], cpu: u32) -> HashMap<u64, i32> {
    let mut raised = HashMap::new();
    let mut came: Option<(u64, &Task)> = None;
    for event in events.iter().filter(|event| event.cpu == cpu) {
        let Kind::Switch { from, to, .. } = &event.kind else { continue };
        if let Some((at, _)) = came.filter(|(_, task)| task.tid == from.tid && from.priority < task.priority)
        {
            raised.insert(at, from.priority);
        }
        came = Some((event.at, to));
    }
    raised
}

impl<'a> Sweep<'a> {
    pub fn new(
        cpu: u32,
        span: (u64, u64),
        window: &'a Window,
        setting: &'a Setting,
        known: &'a Known,
    ) -> Sweep<'a> {
        Sweep {
            cpu,
            span,
            window,
            setting,
            known,
            at: 0,
            seen: false,
            current: None,
            priority: None,
            ready: HashMap::new(),
            stack: Vec::new(),
            parked: HashMap::new(),
            idle_state: None,
            thread: Thread::Asleep,
            slept: false,
            left: false,
            delivered: false,
            woken: false,
            blocked: 0,
            unwoken: Vec::new(),
            denials: Vec::new(),
            raised: HashMap::new(),
        }
    }

    pub fn run(mut self, events: &[Event], shares: &mut Shares) {
        self.denials = denials(events, self.cpu, self.window.thread, self.window.until);
        self.raised = raised(events, self.cpu);
        for event in events {
            let here = event.cpu == self.cpu;
            if here {
                self.here(event, shares);
            }
            if let Kind::Wakeup { task, target } | Kind::WakeupNew { task, target } = &event.kind
                && *target == self.cpu
            {
                self.ready.insert(task.tid, (event.at, task.priority));
            }
            if let Kind::Waking { task, .. } = &event.kind
                && task.tid == self.window.thread
            {
                self.advance(event.at, shares);
                self.wake(event, shares);
            }
        }
        self.end(shares);
    }

    fn here(&mut self, event: &Event, shares: &mut Shares) {
        if let Kind::Stack { .. } = event.kind {
            // Recorded within a switch, in the name of the thread that leaves.
            return;
        }
        self.seen = true;
        if let Kind::Lost { why, .. } = event.kind {
            self.add(event.at, Owner::new(kind::NOT_TRACED, lost(why, self.cpu)), shares);
            self.current = None;
            self.stack.clear();
            self.parked.clear();
            self.ready.clear();
            return;
        }
        if self.current != Some(event.thread) {
            self.unseen_switch(event, shares);
        }
        if let Kind::Nmi { ns } = event.kind {
            self.advance(event.at.saturating_sub(ns).max(self.at), shares);
            self.add(event.at, Owner::new("nmi", ""), shares);
        }
        if let Some(frame) = left(&event.kind)
            && self.stack.is_empty()
        {
            // It began before the first event that is known.
            self.stack.push(frame);
        }
        self.advance(event.at, shares);
        if let Kind::Switch { to, .. } = &event.kind
            && to.tid == self.window.thread
        {
            self.release(shares);
        }
        self.apply(event);
    }

    /// Handles a thread on the CPU that is not the known one: at the first event, or after a switch that is not
    /// in the trace (Linux 6.18 leaves out one of ten). A short time can go to either of the two. A long time
    /// has no owner, unless the wake-up is known with which the other thread got the CPU.
    fn unseen_switch(&mut self, event: &Event, shares: &mut Shares) {
        let takeover = self.takeover(event.thread);
        if let Some((at, _)) = takeover {
            self.advance(at, shares);
        }
        self.ready.remove(&event.thread);
        let known = || self.known.1.get(&event.thread).copied();
        self.priority = takeover.map(|(_, priority)| priority).or_else(known);
        let before = self.current.replace(event.thread);
        if event.thread == self.window.thread {
            self.thread = Thread::Running;
            self.release(shares);
        } else if before == Some(self.window.thread) {
            (self.slept, self.left) = (false, true);
            let preempted = self.woken || self.window.from <= self.at;
            self.thread = if preempted { Thread::Waiting } else { Thread::Asleep };
        }
        let Some(before) = before else { return };
        self.stack.clear();
        let gap = event.at.min(self.span.1).saturating_sub(self.at.max(self.span.0));
        if takeover.is_none() && gap > SHORT {
            let (before, after) = (self.name(before), self.name(event.thread));
            let name = format!("the trace lacks a switch from {before} to {after}");
            self.add(event.at, Owner::new("unknown", name), shares);
        }
    }

    /// Returns the instant at which a thread got the CPU, and its priority, if they are certain without the
    /// switch: the thread had been woken, and the thread that had the CPU must give way.
    fn takeover(&self, thread: u32) -> Option<(u64, i32)> {
        let (at, priority) = *self.ready.get(&thread)?;
        let urgent = priority < REAL_TIME && self.priority.is_some_and(|other| priority < other);
        (self.current == Some(0) || urgent).then_some((at, priority))
    }

    /// Applies an event of this CPU to the state.
    fn apply(&mut self, event: &Event) {
        let due = event.at >= self.window.from;
        match &event.kind {
            Kind::Switch { from, state, to } => {
                self.idle_state = None;
                let frames = std::mem::take(&mut self.stack);
                if !frames.is_empty() {
                    self.parked.insert(from.tid, frames);
                }
                self.stack = self.parked.remove(&to.tid).unwrap_or_default();
                self.current = Some(to.tid);
                self.priority = Some(self.raised.get(&event.at).copied().unwrap_or(to.priority));
                self.ready.remove(&to.tid);
                if from.tid == self.window.thread {
                    self.thread = match state {
                        state if state & 0xff == 0 => Thread::Waiting,
                        state if state & UNINTERRUPTIBLE != 0 && self.woken => Thread::Blocked,
                        state if state & STOPPED != 0 => Thread::Stopped,
                        _ => Thread::Asleep,
                    };
                    self.slept = self.thread == Thread::Asleep;
                    self.left = *state == 0;
                }
                if to.tid == self.window.thread {
                    self.thread = Thread::Running;
                }
            }
            Kind::IrqEntry { irq, name } => {
                self.delivered |= due && name.contains("timer");
                self.stack.push(Frame::Irq(*irq, name.clone()));
            }
            Kind::VectorEntry { name, .. } => {
                self.delivered |= due && &**name == "local_timer";
                self.stack.push(Frame::Vector(name.clone()));
            }
            Kind::SoftirqEntry { vector } => self.stack.push(Frame::Softirq(*vector)),
            Kind::TimerEntry { .. } => self.delivered |= due,
            Kind::Idle { state } => self.idle_state = *state,
            kind => {
                if let Some(frame) = left(kind)
                    && let Some(at) = self.stack.iter().rposition(|known| same(known, &frame))
                {
                    self.stack.truncate(at);
                }
            }
        }
    }

    fn wake(&mut self, event: &Event, shares: &mut Shares) {
        let waker = if event.thread == 0 { "an interrupt".to_owned() } else { self.name(event.thread) };
        let blocked = std::mem::take(&mut self.blocked);
        shares.add(Owner { kind: "lock", name: waker, pid: event.thread }, blocked);
        self.settle(shares);
        if self.thread != Thread::Running {
            self.thread = Thread::Waiting;
        }
        let due = event.at >= self.window.from;
        self.delivered |= due;
        self.woken |= due;
    }

    /// Gives the rest of the window its owner.
    fn end(mut self, shares: &mut Shares) {
        let end = self.span.1;
        if !self.seen {
            let nothing = format!("nothing was traced on CPU {}", self.cpu);
            self.add(end, Owner::new(kind::NOT_TRACED, nothing), shares);
        } else if self.thread != Thread::Running && end == self.window.until {
            self.add(end, Owner::new(kind::NOT_TRACED, "the trace ends before"), shares);
        }
        self.advance(end, shares);
        // Without a wake-up in the trace, it may have had one.
        self.release(shares);
        shares.add(Owner::new("lock", ""), self.blocked);
    }

    /// Gives the time before a wake-up its owners. Handlers take less than [`SHORT`]: in a longer time other threads did
    /// not keep the thread from the CPU, since it was not runnable.
    fn settle(&mut self, shares: &mut Shares) {
        let sum = self.unwoken.iter().map(|(_, ns)| ns).sum();
        if sum > SHORT {
            self.unwoken.clear();
            shares.add(Owner::new(kind::UNKNOWN, UNWOKEN), sum);
        }
        self.release(shares);
    }

    /// Gives the time its owners in which the thread waited for the CPU after all.
    fn release(&mut self, shares: &mut Shares) {
        self.left = false;
        self.unwoken.drain(..).for_each(|(owner, ns)| shares.add(owner, ns));
    }

    /// Returns true if the thread left the CPU runnable, or sleeps on although its timer's interrupt has come and no
    /// thread that serves timers (PREEMPT_RT) waits for the CPU.
    fn may_be_unwoken(&self) -> bool {
        if self.left && self.thread == Thread::Waiting {
            return true;
        }
        let serves = |thread: &u32| self.known.0.get(thread).is_some_and(|name| name.starts_with("ktimers/"));
        self.window.by_timer
            && self.slept
            && self.thread == Thread::Asleep
            && self.delivered
            && !self.current.iter().chain(self.ready.keys()).any(serves)
    }

    /// Moves on to an instant and returns the time up to it that lies in the window, ns.
    fn stretch(&mut self, until: u64) -> u64 {
        let (from, to) = (self.at.max(self.span.0), until.min(self.span.1));
        self.at = self.at.max(until);
        to.saturating_sub(from)
    }

    fn add(&mut self, until: u64, owner: Owner, shares: &mut Shares) {
        let ns = self.stretch(until);
        shares.add(owner, ns);
    }

    fn advance(&mut self, until: u64, shares: &mut Shares) {
        let ns = self.stretch(until);
        if ns == 0 {
            return;
        }
        match self.stack.last() {
            None if self.thread == Thread::Blocked => self.blocked += ns,
            None if self.may_be_unwoken() => self.unwoken.push((self.owner(until.min(self.span.1), ns), ns)),
            None => shares.add(self.owner(until.min(self.span.1), ns), ns),
            Some(frame) => shares.add(self.interrupt(frame, ns), ns),
        }
    }

    fn interrupt(&self, frame: &Frame, ns: u64) -> Owner {
        match frame {
            Frame::Vector(name) if self.setting.virtual_machine && ns > SHORT => {
                self.hypervisor(ns, &format!("within interrupt {name}"))
            }
            Frame::Irq(_, name) | Frame::Vector(name) => Owner::new("irq", &**name),
            Frame::Softirq(vector) => Owner::new("softirq", softirq_name(*vector)),
        }
    }

    /// Returns the owner of a stretch without interrupts.
    fn owner(&self, until: u64, ns: u64) -> Owner {
        let current = self.current.unwrap_or(0);
        if let Some(owner) = self.denied(until, current) {
            return owner;
        }
        match self.thread {
            Thread::Running => self.itself(ns),
            Thread::Stopped => Owner::new(kind::STOPPED, ""),
            Thread::Asleep if !self.delivered => self.undelivered(current, ns),
            _ if current == 0 => self.idle(ns),
            _ => self.other(current, ns),
        }
    }

    /// Returns the owner if the scheduler did not let the thread run, though it could.
    fn denied(&self, until: u64, current: u32) -> Option<Owner> {
        let denial = self.denials.iter().find(|denial| denial.from < until && until <= denial.until)?;
        match denial.priority {
            i32::MIN..0 => Some(Owner::new(kind::THROTTLING, "its SCHED_DEADLINE runtime was used up")),
            // What is more urgent has the CPU by right.
            0..REAL_TIME if current != 0 && self.priority.is_some_and(|other| other < REAL_TIME) => None,
            0..REAL_TIME => Some(Owner::new(kind::THROTTLING, "")),
            _ if self.setting.throttled >= (denial.until - denial.from) / 2 => {
                Some(Owner::new(kind::QUOTA, ""))
            }
            _ if denial.proven => Some(Owner::new("run-queue", "the CPU idled meanwhile: a quota?")),
            _ => None,
        }
    }

    /// Returns the owner of a stretch in which the thread itself ran: on its way to the stamp, or not asleep yet.
    fn itself(&self, ns: u64) -> Owner {
        // Before its wake-up it may have been at work still.
        let taken = self.woken || self.is_stolen(ns);
        if self.setting.virtual_machine && taken && ns > SHORT {
            return self.hypervisor(ns, "while the thread itself ran");
        }
        Owner { kind: "thread", name: "itself".to_owned(), pid: self.window.thread }
    }

    /// Returns the owner of a stretch in which the timer was due and its interrupt did not come.
    fn undelivered(&self, current: u32, ns: u64) -> Owner {
        let guest = self.setting.virtual_machine;
        let usual = if guest { GUEST_DELIVERY } else { DELIVERY };
        match (current, guest) {
            (0, true) if self.is_stolen(ns) => self.hypervisor(ns, "woke the idle CPU late"),
            (0, true) => Owner::new("idle-exit", "with the hypervisor's wake-up of the CPU"),
            (0, false) => {
                let state = self.idle_state.map(|state| format!("from state {state}"));
                Owner::new("idle-exit", state.unwrap_or_default())
            }
            (_, _) if ns <= usual => Owner::new("irq", "timer, on its way"),
            (thread, true) => self.hypervisor(ns, &format!("while {} ran", self.name(thread))),
            (thread, false) => {
                Owner::new("unknown", format!("interrupts off in {}, or firmware", self.name(thread)))
            }
        }
    }

    /// Returns the owner of a stretch in which the thread could run and the CPU was not out of idle yet.
    fn idle(&self, ns: u64) -> Owner {
        match (ns > SHORT, self.setting.virtual_machine) {
            (false, _) => Owner::new("idle-exit", ""),
            (true, true) => self.hypervisor(ns, "on the way out of idle"),
            (true, false) => Owner::new("run-queue", "the CPU stayed idle: throttled?"),
        }
    }

    /// Returns the owner of a stretch in which another thread had the CPU.
    fn other(&self, thread: u32, ns: u64) -> Owner {
        let ticking = self.setting.tick.is_some_and(|tick| ns > tick);
        if ticking && self.setting.virtual_machine {
            return self.hypervisor(ns, &format!("while {} ran: ticks are missing", self.name(thread)));
        }
        Owner { kind: "thread", name: self.name(thread), pid: thread }
    }

    /// Returns true if the time that the hypervisor recently took can explain a stretch of `ns`.
    fn is_stolen(&self, ns: u64) -> bool {
        ns >= COUNTED && self.setting.stolen >= ns / 2
    }

    /// Returns the owner of a stretch in which nothing happened although something had to: either the host had
    /// the CPU, or the kernel had its interrupts off. The count of stolen time may decide between them.
    fn hypervisor(&self, ns: u64, when: &str) -> Owner {
        let stolen = match self.setting.stolen {
            0 => String::new(),
            ns => format!("; {} stolen lately", format_time(ns as f64)),
        };
        let kind = if self.is_stolen(ns) { "hypervisor" } else { "hypervisor-or-interrupts-off" };
        Owner::new(kind, format!("{when}{stolen}"))
    }

    fn name(&self, thread: u32) -> String {
        match thread {
            0 => "idle".to_owned(),
            _ => self.known.0.get(&thread).map_or("a thread".to_owned(), |name| name.to_string()),
        }
    }
}

const UNWOKEN: &str = "the thread was not runnable: it was frozen, or its timer came late";

fn lost(why: Loss, cpu: u32) -> String {
    match why {
        Loss::Overwritten => format!("the buffer of CPU {cpu} was full before it was read"),
        Loss::Forgotten => "there were too many events to keep them".to_owned(),
    }
}

/// Returns the interrupt that an event ends.
fn left(kind: &Kind) -> Option<Frame> {
    match kind {
        Kind::IrqExit { irq } => Some(Frame::Irq(*irq, format!("number {irq}").into())),
        Kind::VectorExit { name, .. } => Some(Frame::Vector(name.clone())),
        Kind::SoftirqExit { vector } => Some(Frame::Softirq(*vector)),
        _ => None,
    }
}

fn same(one: &Frame, other: &Frame) -> bool {
    match (one, other) {
        (Frame::Irq(one, _), Frame::Irq(other, _)) => one == other,
        _ => one == other,
    }
}
