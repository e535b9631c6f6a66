//! Goes through the events of one CPU and gives every stretch its owner.

use super::frames::{Frame, ended_frame, same};
use super::throttling::{Denial, REAL_TIME, denials};
use super::{Known, LateWakeContext, LateWakeWindow, Owner, Shares, kind, wakeups};
use crate::events::{KernelTraceEvent, KernelTraceEventKind, Loss, TraceEventTask, softirq_name};
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

/// State `TASK_INTERRUPTIBLE` of the kernel.
const INTERRUPTIBLE: u64 = 1;

/// State `TASK_IDLE` of the kernel, in which its threads wait for work.
const IDLE: u64 = 0x80;

/// States `TASK_STOPPED` and `TASK_TRACED` of the kernel.
const STOPPED: u64 = 4 | 8;

/// Activity of the late thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LateThreadState {
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

/// Way in which the thread left the CPU last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// It was preempted, stopped, or its way is of no account any more.
    Other,
    /// It went to sleep, so that what it waits for or a signal wakes it.
    Slept,
    /// It went to sleep within the kernel, so that only what it waits for wakes it.
    SleptDeeply,
    /// It could go on, and gave way on its own. A frozen thread does so, and unlike others it has to be woken.
    Runnable,
    /// The trace lacks the switch, if the thread left at all.
    Unseen,
}

pub(crate) struct Sweep<'a> {
    cpu: u32,
    /// Part of the window that is judged.
    span: (u64, u64),
    window: &'a LateWakeWindow,
    setting: &'a LateWakeContext,
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
    /// Functions that threads of the kernel's work queues run, by thread.
    works: HashMap<u32, u64>,
    /// Function that an interrupt runs for another CPU.
    called: Option<u64>,
    /// True if the last event of this CPU was a message of the kernel, which consoles get with interrupts off.
    logged: bool,
    /// Sleep state of the CPU, if the kernel records it.
    idle_state: Option<u32>,
    thread: LateThreadState,
    leaving: Leaving,
    /// True if the thread waits for a CPU for certain: it was woken, or gave way to a more urgent thread.
    wants: bool,
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
fn raised(events: &[KernelTraceEvent], cpu: u32) -> HashMap<u64, i32> {
    let mut raised = HashMap::new();
    let mut came: Option<(u64, &TraceEventTask)> = None;
    for event in events.iter().filter(|event| event.cpu == cpu) {
        let KernelTraceEventKind::Switch { from, to, .. } = &event.kind else { continue };
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
        window: &'a LateWakeWindow,
        setting: &'a LateWakeContext,
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
            works: HashMap::new(),
            called: None,
            logged: false,
            idle_state: None,
            thread: LateThreadState::Asleep,
            leaving: Leaving::Other,
            wants: false,
            delivered: false,
            woken: false,
            blocked: 0,
            unwoken: Vec::new(),
            denials: Vec::new(),
            raised: HashMap::new(),
        }
    }

    pub fn process_events(mut self, events: &[KernelTraceEvent], shares: &mut Shares) {
        self.denials = denials(events, self.cpu, self.window.thread, self.window.until);
        self.raised = raised(events, self.cpu);
        for (index, event) in events.iter().enumerate() {
            let here = event.cpu == self.cpu;
            if here {
                self.process_cpu_event(event, shares);
            }
            if let KernelTraceEventKind::Wakeup { task, target }
            | KernelTraceEventKind::WakeupNew { task, target } = &event.kind
                && *target == self.cpu
            {
                self.ready.insert(task.tid, (event.at, task.priority));
            }
            if let KernelTraceEventKind::Waking { task, .. } = &event.kind
                && task.tid == self.window.thread
            {
                match lost_before_next(&events[index + 1..], self.cpu).filter(|_| !here) {
                    Some(why) => self.assign_to_owner(
                        event.at,
                        Owner::new(kind::NOT_TRACED, describe_loss(why, self.cpu)),
                        shares,
                    ),
                    None => self.advance(event.at, shares),
                }
                self.process_wakeup(event, events, shares);
            }
        }
        self.finish_window(shares);
    }

    fn process_cpu_event(&mut self, event: &KernelTraceEvent, shares: &mut Shares) {
        if let KernelTraceEventKind::Stack { .. } = event.kind {
            // Recorded within a switch, in the name of the thread that leaves.
            return;
        }
        self.seen = true;
        if let KernelTraceEventKind::Lost { why, .. } = event.kind {
            self.assign_to_owner(
                event.at,
                Owner::new(kind::NOT_TRACED, describe_loss(why, self.cpu)),
                shares,
            );
            (self.current, self.wants) = (None, false);
            self.stack.clear();
            self.parked.clear();
            self.ready.clear();
            return;
        }
        if self.current != Some(event.thread) {
            self.unseen_switch(event, shares);
        }
        if let KernelTraceEventKind::Nmi { ns } = event.kind {
            self.advance(event.at.saturating_sub(ns).max(self.at), shares);
            self.assign_to_owner(event.at, Owner::new("nmi", ""), shares);
        }
        if let Some(frame) = ended_frame(&event.kind)
            && self.stack.is_empty()
        {
            // It began before the first event that is known.
            self.stack.push(frame);
        }
        self.advance(event.at, shares);
        if let KernelTraceEventKind::Switch { to, .. } = &event.kind
            && to.tid == self.window.thread
        {
            self.assign_waiting_time(shares);
        }
        self.apply_event(event);
    }

    /// Handles a thread on the CPU that is not the known one: at the first event, or after a switch that is not
    /// in the trace (Linux 6.18 leaves out one of ten). A short time can go to either of the two. A long time
    /// has no owner, unless the wake-up is known with which the other thread got the CPU.
    fn unseen_switch(&mut self, event: &KernelTraceEvent, shares: &mut Shares) {
        let takeover = self.takeover(event.thread);
        if let Some((at, _)) = takeover {
            self.advance(at, shares);
        }
        self.ready.remove(&event.thread);
        let known = || self.known.1.get(&event.thread).copied();
        self.priority = takeover.map(|(_, priority)| priority).or_else(known);
        let before = self.current.replace(event.thread);
        if event.thread == self.window.thread {
            self.thread = LateThreadState::Running;
            self.assign_waiting_time(shares);
        } else if before == Some(self.window.thread) {
            (self.leaving, self.wants) = (Leaving::Unseen, takeover.is_some());
            let preempted = self.woken || self.window.from <= self.at;
            self.thread = if preempted { LateThreadState::Waiting } else { LateThreadState::Asleep };
        }
        let Some(before) = before else { return };
        self.stack.clear();
        let gap = event.at.min(self.span.1).saturating_sub(self.at.max(self.span.0));
        if takeover.is_none() && gap > SHORT {
            let (before, after) = (self.describe_thread(before), self.describe_thread(event.thread));
            let name = format!("the trace lacks a switch from {before} to {after}");
            self.assign_to_owner(event.at, Owner::new("unknown", name), shares);
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
    fn apply_event(&mut self, event: &KernelTraceEvent) {
        let due = event.at >= self.window.from;
        self.logged = matches!(&event.kind, KernelTraceEventKind::Other { name, .. } if &**name == "console");
        match &event.kind {
            KernelTraceEventKind::Switch { from, state, to } => {
                self.idle_state = None;
                if state & IDLE != 0 {
                    self.works.remove(&from.tid);
                }
                let frames = std::mem::take(&mut self.stack);
                if !frames.is_empty() {
                    self.parked.insert(from.tid, frames);
                }
                self.stack = self.parked.remove(&to.tid).unwrap_or_default();
                self.current = Some(to.tid);
                self.priority = Some(self.raised.get(&event.at).copied().unwrap_or(to.priority));
                self.ready.remove(&to.tid);
                if from.tid == self.window.thread {
                    self.wants = is_preempted(from, *state, to);
                    self.thread = match state {
                        state if state & 0xff == 0 => LateThreadState::Waiting,
                        state if state & wakeups::UNINTERRUPTIBLE != 0 && self.woken => {
                            LateThreadState::Blocked
                        }
                        state if state & STOPPED != 0 => LateThreadState::Stopped,
                        _ => LateThreadState::Asleep,
                    };
                    self.leaving = match (self.thread, *state) {
                        (LateThreadState::Asleep, INTERRUPTIBLE) => Leaving::Slept,
                        (LateThreadState::Asleep, _) => Leaving::SleptDeeply,
                        (_, 0) => Leaving::Runnable,
                        _ => Leaving::Other,
                    };
                }
                if to.tid == self.window.thread {
                    self.thread = LateThreadState::Running;
                }
            }
            KernelTraceEventKind::IrqEntry { irq, name } => {
                self.delivered |= due && name.contains("timer");
                self.stack.push(Frame::Irq(*irq, name.clone()));
            }
            KernelTraceEventKind::VectorEntry { name, .. } => {
                self.delivered |= due && &**name == "local_timer";
                self.called = None;
                self.stack.push(Frame::Vector(name.clone()));
            }
            KernelTraceEventKind::SoftirqEntry { vector } => self.stack.push(Frame::Softirq(*vector)),
            KernelTraceEventKind::TimerEntry { .. } => self.delivered |= due,
            KernelTraceEventKind::Work { function } => _ = self.works.insert(event.thread, *function),
            KernelTraceEventKind::Call { function } => self.called = Some(*function),
            KernelTraceEventKind::Idle { state } => self.idle_state = *state,
            kind => {
                if let Some(frame) = ended_frame(kind)
                    && let Some(at) = self.stack.iter().rposition(|known| same(known, &frame))
                {
                    self.stack.truncate(at);
                }
            }
        }
    }

    fn process_wakeup(&mut self, event: &KernelTraceEvent, events: &[KernelTraceEvent], shares: &mut Shares) {
        let waker =
            if event.thread == 0 { "an interrupt".to_owned() } else { self.describe_thread(event.thread) };
        let blocked = std::mem::take(&mut self.blocked);
        let by_thread = wakeups::is_by_thread(events, event, &self.known.0);
        let lock = Owner { kind: "lock", name: waker, pid: event.thread };
        let owner = match by_thread {
            true if self.is_thaw(events, event) => Owner::new(kind::FROZEN, ""),
            true => self.if_runnable(lock),
            false => lock,
        };
        shares.add_time(owner, blocked);
        self.assign_before_wakeup(by_thread, shares);
        if self.thread != LateThreadState::Running {
            // A thread that waits for a CPU is not woken again, unless it ran and left meanwhile without a trace.
            (self.thread, self.leaving) = (LateThreadState::Waiting, Leaving::Unseen);
        }
        let due = event.at >= self.window.from;
        self.delivered |= due;
        self.woken |= due;
    }

    /// Returns true if the thread that woke the late one thawed the run.
    fn is_thaw(&self, events: &[KernelTraceEvent], waking: &KernelTraceEvent) -> bool {
        let coordinator = self.setting.coordinator;
        coordinator.is_some_and(|thread| wakeups::is_thaw(events, waking, thread, &self.known.0))
    }

    /// Gives the rest of the window its owner.
    fn finish_window(mut self, shares: &mut Shares) {
        let end = self.span.1;
        if !self.seen {
            let nothing = format!("nothing was traced on CPU {}", self.cpu);
            self.assign_to_owner(end, Owner::new(kind::NOT_TRACED, nothing), shares);
        } else if self.thread != LateThreadState::Running && end == self.window.until {
            self.assign_to_owner(end, Owner::new(kind::NOT_TRACED, "the trace ends before"), shares);
        }
        self.advance(end, shares);
        // Without a wake-up in the trace, it may have had one.
        self.assign_waiting_time(shares);
        self.wants = false;
        shares.add_time(self.if_runnable(Owner::new("lock", "")), self.blocked);
    }

    /// Gives the time before a wake-up its owners. Handlers take less than [`SHORT`]: in a longer time other threads
    /// did not keep the thread from the CPU, since it was not runnable. A thread that sleeps until its timer expires,
    /// and sleeps on until another thread wakes it, was frozen; so was one that gave way as if it could run on.
    fn assign_before_wakeup(&mut self, by_thread: bool, shares: &mut Shares) {
        let sum = self.unwoken.iter().map(|(_, ns)| ns).sum();
        // An interrupt does not wake a frozen thread.
        let is_its_sleep = self.thread == LateThreadState::Asleep && !self.window.by_timer;
        if sum > SHORT && (by_thread || !is_its_sleep) {
            self.unwoken.clear();
            let slept = self.leaving == Leaving::Slept && self.window.by_timer;
            let frozen = by_thread && (slept || self.leaving == Leaving::Runnable);
            let unknown = || Owner::new(kind::UNKNOWN, if self.setting.halted { HALTED } else { UNWOKEN });
            shares.add_time(if frozen { Owner::new(kind::FROZEN, "") } else { unknown() }, sum);
        }
        self.wants = true;
        self.assign_waiting_time(shares);
    }

    /// Gives the time its owners in which the thread waited for the CPU after all.
    fn assign_waiting_time(&mut self, shares: &mut Shares) {
        if matches!(self.leaving, Leaving::Runnable | Leaving::Unseen) {
            self.leaving = Leaving::Other;
        }
        for (owner, ns) in std::mem::take(&mut self.unwoken) {
            shares.add_time(if self.wants { owner } else { self.if_runnable(owner) }, ns);
        }
    }

    /// Returns the owner of a time in which the thread wanted a CPU, if it did: not known where the run was halted.
    fn if_runnable(&self, owner: Owner) -> Owner {
        if self.setting.halted { Owner::new(kind::UNKNOWN, HALTED) } else { owner }
    }

    /// Returns true if the thread left the CPU runnable, or sleeps on although its timer's interrupt has come and no
    /// thread that serves timers (PREEMPT_RT) waits for the CPU. Where the run was halted any wait may be none for a
    /// CPU.
    fn may_be_unwoken(&self) -> bool {
        if self.setting.halted {
            return match self.thread {
                LateThreadState::Waiting => true,
                LateThreadState::Asleep => self.delivered || !self.window.by_timer,
                LateThreadState::Running | LateThreadState::Blocked | LateThreadState::Stopped => false,
            };
        }
        if matches!(self.leaving, Leaving::Runnable | Leaving::Unseen)
            && self.thread == LateThreadState::Waiting
        {
            return true;
        }
        let serves = |thread: &u32| wakeups::serves_timers(*thread, &self.known.0);
        self.window.by_timer
            && matches!(self.leaving, Leaving::Slept | Leaving::SleptDeeply)
            && self.thread == LateThreadState::Asleep
            && self.delivered
            && !self.current.iter().chain(self.ready.keys()).any(serves)
    }

    /// Moves on to an instant and returns the time up to it that lies in the window, ns.
    fn advance_clock(&mut self, until: u64) -> u64 {
        let (from, to) = (self.at.max(self.span.0), until.min(self.span.1));
        self.at = self.at.max(until);
        to.saturating_sub(from)
    }

    fn assign_to_owner(&mut self, until: u64, owner: Owner, shares: &mut Shares) {
        let ns = self.advance_clock(until);
        shares.add_time(owner, ns);
    }

    fn advance(&mut self, until: u64, shares: &mut Shares) {
        let ns = self.advance_clock(until);
        if ns == 0 {
            return;
        }
        match self.stack.last() {
            None if self.thread == LateThreadState::Blocked => self.blocked += ns,
            None if self.may_be_unwoken() => self.unwoken.push((self.owner(until.min(self.span.1), ns), ns)),
            None => shares.add_time(self.owner(until.min(self.span.1), ns), ns),
            Some(frame) => shares.add_time(self.interrupt(frame, ns), ns),
        }
    }

    fn interrupt(&self, frame: &Frame, ns: u64) -> Owner {
        match frame {
            Frame::Vector(name) if self.setting.virtual_machine && ns > SHORT => {
                self.hypervisor(ns, &format!("within interrupt {name}"))
            }
            Frame::Vector(name) if name.starts_with("call_function") => {
                let function = self.called.map(|function| format!(" ({function:#018x})"));
                Owner::new("irq", format!("{name}{}", function.unwrap_or_default()))
            }
            Frame::Irq(_, name) | Frame::Vector(name) => Owner::new("irq", &**name),
            Frame::Softirq(vector) => Owner::new("softirq", softirq_name(*vector)),
        }
    }

    /// Returns the owner of a stretch without interrupts.
    fn owner(&self, until: u64, ns: u64) -> Owner {
        let current = self.current.unwrap_or(0);
        if let Some(owner) = self.denial_owner(until, current) {
            return owner;
        }
        match self.thread {
            LateThreadState::Running => self.late_thread_owner(ns),
            LateThreadState::Stopped => Owner::new(kind::STOPPED, ""),
            LateThreadState::Asleep if !self.delivered => self.late_timer_owner(current, ns),
            _ if current == 0 => self.idle(ns),
            _ => self.other_thread_owner(current, ns),
        }
    }

    /// Returns the owner if the scheduler did not let the thread run, though it could.
    fn denial_owner(&self, until: u64, current: u32) -> Option<Owner> {
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
            // What the kernel counted is spent, or older than what is kept: it may have been this event all the same.
            _ if self.setting.quota && denial.until - denial.from > TURN => {
                Some(Owner::new(kind::UNKNOWN, QUOTA_OR_THREAD))
            }
            _ => None,
        }
    }

    /// Returns the owner of a stretch in which the thread itself ran: on its way to the stamp, or not asleep yet.
    fn late_thread_owner(&self, ns: u64) -> Owner {
        // Before its wake-up it may have been at work still.
        let taken = self.woken || self.is_stolen(ns);
        if self.setting.virtual_machine && taken && ns > SHORT {
            return self.hypervisor(ns, "while the thread itself ran");
        }
        Owner { kind: "thread", name: "itself".to_owned(), pid: self.window.thread }
    }

    /// Returns the owner of a stretch in which the timer was due and its interrupt did not come.
    fn late_timer_owner(&self, current: u32, ns: u64) -> Owner {
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
            (thread, true) => self.hypervisor(ns, &format!("while {} ran", self.describe_thread(thread))),
            (thread, false) => {
                let name = self.describe_thread(thread);
                Owner::new("unknown", format!("interrupts off in {name}, or firmware{}", self.printk_note()))
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
    fn other_thread_owner(&self, thread: u32, ns: u64) -> Owner {
        let ticking = self.setting.tick.is_some_and(|tick| ns > tick);
        if ticking && self.setting.virtual_machine {
            return self
                .hypervisor(ns, &format!("while {} ran: ticks are missing", self.describe_thread(thread)));
        }
        Owner { kind: "thread", name: self.describe_thread(thread), pid: thread }
    }

    /// Returns true if the time that the hypervisor recently took can explain a stretch of `ns`, and nothing else does.
    fn is_stolen(&self, ns: u64) -> bool {
        ns >= COUNTED && self.setting.stolen >= ns / 2 && !self.logged
    }

    /// Returns the owner of a stretch in which nothing happened although something had to: either the host had
    /// the CPU, or the kernel had its interrupts off. The count of stolen time may decide between them.
    fn hypervisor(&self, ns: u64, when: &str) -> Owner {
        let stolen = match self.setting.stolen {
            0 => String::new(),
            ns => format!("; {} stolen lately", format_time(ns as f64)),
        };
        let kind = if self.is_stolen(ns) { kind::HYPERVISOR } else { kind::NO_INTERRUPTS };
        Owner::new(kind, format!("{when}{}{stolen}", self.printk_note()))
    }

    /// Returns what came right before a stretch without events, if that makes one: then the hypervisor is not its
    /// likely cause.
    fn printk_note(&self) -> &'static str {
        if self.logged { ", right after a message of the kernel (printk)" } else { "" }
    }

    fn describe_thread(&self, thread: u32) -> String {
        let name = match thread {
            0 => "idle",
            _ => self.known.0.get(&thread).map_or("a thread", |name| name),
        };
        let work = self.works.get(&thread).map(|function| format!(" ({function:#018x})"));
        name.to_owned() + &work.unwrap_or_default()
    }
}

/// Time for which an ordinary thread may wait for its turn, ns.
const TURN: u64 = 10_000_000;

const QUOTA_OR_THREAD: &str =
    "a quota held the run back at times, perhaps then; or other threads had the CPU";

const UNWOKEN: &str = "the thread was not runnable: it was stopped or frozen, or its timer came late";

const HALTED: &str =
    "the run was frozen or stopped meanwhile: the thread was not runnable, or waited for a CPU";

/// Returns true if a thread wants its CPU that leaves it: the kernel preempted it (`TASK_REPORT_MAX`), or it gave way
/// to a more urgent thread. A frozen thread leaves as if it were runnable, to any thread.
fn is_preempted(from: &TraceEventTask, state: u64, to: &TraceEventTask) -> bool {
    state & 0x100 != 0 || (state & 0xff == 0 && to.tid != 0 && to.priority < from.priority)
}

/// Returns the reason if events of a CPU are lost before the next that is known.
fn lost_before_next(events: &[KernelTraceEvent], cpu: u32) -> Option<Loss> {
    match events.iter().find(|event| event.cpu == cpu)?.kind {
        KernelTraceEventKind::Lost { why, .. } => Some(why),
        _ => None,
    }
}

fn describe_loss(why: Loss, cpu: u32) -> String {
    match why {
        Loss::Overwritten => format!("the buffer of CPU {cpu} was full before it was read"),
        Loss::Forgotten => "there were too many events to keep them".to_owned(),
    }
}
