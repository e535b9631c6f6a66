//! Explains outliers of a step by a trace of its own.

use crate::{saver, stack};
use anyhow::Result;
use latscope_core::machine::Machine;
use latscope_core::plan::Traced;
use latscope_core::report::{Cause, TraceEvent};
use latscope_core::units::{CpuList, format_share, format_time};
use latscope_machine::{HeldBack, RealTimeBudget, Steal, SystemRoot, real_time_budget};
use latscope_os::clock::monotonic_ns;
use latscope_process::guardian::{Guardian, Ticket, UndoAction};
use latscope_trace::blame::{
    Details, LateWakeContext, LateWakeWindow, RealTimeUse, causes, collect_details, kind, real_time_use,
};
use latscope_trace::timeline::syscall_name;
use latscope_trace::tracefs::TraceInstanceError;
use latscope_trace::tracer::LateWakeTracer;
use std::io;
use std::path::{Path, PathBuf};

/// Longest time between two ticks of a busy CPU, ns: no kernel is built with
/// fewer than 100 in a second.
const TICK: u64 = 10_000_000;

/// Share of the time granted to real-time threads that they have used at least where the kernel stops them; the rest is
/// what a trace may lack.
const USED_UP: f64 = 0.8;

/// Begin of the name of throttling by the limit of the run's own control group (CONFIG_RT_GROUP_SCHED).
pub(crate) const OWN_BUDGET: &str = "real-time budget of the run's control group";

/// Returns the share of the time that the kernel grants to real-time threads (sched(7)): 0.95 where it does not say.
fn realtime_share() -> f64 {
    let number = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<f64>().ok().filter(|number| *number > 0.0)
    };
    let granted = number("sched_rt_runtime_us").zip(number("sched_rt_period_us"));
    granted.map_or(0.95, |(runtime, period)| (runtime / period).min(1.0))
}

/// Returns the longest time for which throttling may keep real-time threads from a CPU in a window, ns: what is not
/// theirs of each second, also of the one that the window begins in.
fn most_throttled(window: u64, realtime_share: f64) -> u64 {
    ((window + SECOND) as f64 * (1.0 - realtime_share)) as u64
}

/// A trace, and what is known of the machine beside it.
pub struct Blame {
    tracer: LateWakeTracer,
    ticket: Ticket,
    virtual_machine: bool,
    /// CPUs whose ticks may stop while a thread runs.
    tickless: CpuList,
    steal: Steal,
    held_back: HeldBack,
    /// Stamp of `CLOCK_MONOTONIC` at which the run was last seen to have been, or may have been, frozen or stopped, ns.
    halted: Option<u64>,
    /// Names of the further events that are traced.
    wanted: Vec<String>,
}

/// Causes of the time of a window, and details.
#[derive(Debug, Default)]
pub struct Explanation {
    /// Causes, the largest share first.
    pub cause: Vec<Cause>,
    /// Kernel functions in which the thread before was, innermost first, and its system call behind them.
    pub stack: Vec<String>,
    /// Further events that were asked for.
    pub events: Vec<TraceEvent>,
}

/// Length of the stretch before a throttling in which its cause is searched, ns: the kernel's own period.
const SECOND: u64 = 1_000_000_000;

impl Blame {
    /// Begins to record a trace.
    ///
    /// # Errors
    /// There is no tracing here; the text contains the remedy.
    pub fn start_trace(
        machine: &Machine,
        traced: &Traced,
        guardian: &Guardian,
    ) -> Result<Blame, TraceInstanceError> {
        let mut ticket = None;
        let tracer = LateWakeTracer::start_tracing(traced, &mut |directory| {
            ticket = Some(guardian.journal(UndoAction::RemoveInstance(directory.to_owned()))?);
            Ok(())
        })?;
        let ticket = ticket.expect("an instance is journalled before it is made");
        let tickless = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
        let wanted = traced.events.iter().filter_map(|event| Some(event.split_once(':')?.1.to_owned()));
        Ok(Blame {
            tracer,
            ticket,
            virtual_machine: machine.hypervisor.is_some(),
            // "(null)" where there are none.
            tickless: tickless.trim().parse().unwrap_or_default(),
            steal: Steal::watch_cpus(),
            held_back: HeldBack::watch_quotas(),
            halted: None,
            wanted: wanted.collect(),
        })
    }

    /// Looks at what changes slowly; call it about once a second.
    pub fn refresh_state(&mut self) {
        self.tracer.adapt_buffers();
        self.held_back.refresh_readings();
        if self.virtual_machine {
            self.steal.refresh_readings();
        }
    }

    /// Notes that the run was, or may have been, frozen or stopped until now. Events that begin later are explained as
    /// those of other runs: a halted thread notes neither its own halt nor the time before its end.
    pub(crate) fn note_halt(&mut self) {
        self.halted = Some(monotonic_ns());
    }

    /// Size of each CPU's buffer, bytes.
    pub fn buffer(&self) -> u64 {
        self.tracer.buffer()
    }

    /// The file for a worker to write remarks to.
    pub fn marker_path(&self) -> PathBuf {
        self.tracer.marker_path()
    }

    /// The file for a worker to stop the recording with.
    pub fn switch_path(&self) -> PathBuf {
        self.tracer.switch_path()
    }

    /// Returns what this kernel cannot trace, in words.
    pub fn shortfalls(&self) -> &[String] {
        self.tracer.shortfalls()
    }

    /// Reads what was recorded up to now.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read_trace(&mut self) -> io::Result<()> {
        self.tracer.read_recorded()
    }

    /// Ends the recording and reads the rest of it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read_last(&mut self) -> io::Result<()> {
        self.tracer.read_last()
    }

    /// Returns the causes of the time of a window, from the part of the trace that was read.
    pub fn explain(&mut self, window: &LateWakeWindow) -> Explanation {
        let setting = LateWakeContext {
            virtual_machine: self.virtual_machine,
            tick: (!self.tickless.0.contains(&window.cpu)).then_some(TICK),
            stolen: if self.virtual_machine { self.steal.recent(window.cpu) } else { 0 },
            throttled: self.held_back.recent(),
            quota: self.held_back.was_throttled(),
            coordinator: Some(std::process::id()),
            halted: self.halted.is_some_and(|noted| window.from <= noted),
        };
        let traced = self.tracer.events_between(window.from, window.until, Some(window.thread));
        let mut cause = causes(&traced, window, &setting);
        let share = |kind: &str| cause.iter().filter(|cause| cause.kind == kind).map(|cause| cause.ns).sum();
        self.steal.mark_explained(window.cpu, share(kind::HYPERVISOR));
        self.held_back.mark_explained(share(kind::QUOTA));
        if let Some(cause) = cause.iter_mut().find(|cause| cause.kind == kind::THROTTLING) {
            self.name_culprit(cause, window);
        }
        if let Some(cause) = cause.iter_mut().find(|cause| cause.kind == kind::QUOTA) {
            cause.name = self.held_back.quota().unwrap_or_default();
        }
        let Details { mut events, stack, call } = collect_details(&traced, window, &self.wanted);
        for cause in &mut cause {
            cause.name = self.tracer.resolve(&cause.name);
            // A thread that reads the trace takes its share of an ordinary thread's time.
            if cause.kind == "thread" && is_own(cause.pid) {
                cause.name += " (this run's own)";
            }
        }
        for event in &mut events {
            event.text = self.tracer.resolve(&event.text);
        }
        let call = call.map(|number| syscall_name(std::env::consts::ARCH, number).into_owned());
        let stack = stack::summarize_stack(self.tracer.functions(&stack), call);
        Explanation { cause, stack, events }
    }

    /// Names the thread that the throttling is against, by what it ran in the second before, or in the window if that
    /// is longer. The trace lacks some switches: where real-time threads did not use up their time, there is no
    /// throttling, and a cause that cannot be named.
    fn name_culprit(&mut self, cause: &mut Cause, window: &LateWakeWindow) {
        let own = real_time_budget(&SystemRoot::real())
            .filter(|own| (1..own.period).contains(&own.runtime))
            .map_or(1.0, |own| own.runtime as f64 / own.period as f64);
        let most = most_throttled(window.until - window.from, realtime_share().min(own));
        if cause.name.is_empty() && cause.ns > most {
            cause.kind = kind::UNKNOWN.to_owned();
            cause.name = format!(
                "the thread was not run; throttling takes {} of this time at most",
                format_time(most as f64)
            );
            return;
        }
        let before = self.real_time_use((window.from.saturating_sub(SECOND), window.from), window);
        let within = (window.until - window.from >= SECOND)
            .then(|| self.real_time_use((window.from, window.until), window));
        let share = |found: &RealTimeUse| found.all_ns as f64 / found.traced_ns.max(1) as f64;
        let found = [before, within.flatten()].into_iter().flatten();
        match found.max_by(|a, b| share(a).total_cmp(&share(b))) {
            Some(found) if share(&found) >= USED_UP * realtime_share() => {
                let Some((busiest, _)) = found.busiest else { return };
                cause.name = format!("{} (real-time priority {})", busiest.name, 99 - busiest.priority);
                cause.pid = busiest.tid;
            }
            found => {
                let used = found.as_ref().map(share);
                let own = real_time_budget(&SystemRoot::real())
                    .filter(|own| (1..own.period).contains(&own.runtime));
                let is_used_up = |own: &RealTimeBudget| {
                    used.is_some_and(|used| used >= USED_UP * own.runtime as f64 / own.period as f64)
                };
                if let Some(own) = own.filter(is_used_up) {
                    let [runtime, period] = [own.runtime, own.period].map(|us| format_time(us as f64 * 1e3));
                    cause.name = format!("{OWN_BUDGET}, {runtime} in each {period}");
                    return;
                }
                cause.kind = kind::UNKNOWN.to_owned();
                cause.name = match used {
                    Some(used) => format!(
                        "the thread was not run; real-time threads had the CPU for {} of the time before, too little for throttling",
                        format_share(used)
                    ),
                    None => "the thread was not run; nothing was traced in the time before".to_owned(),
                };
            }
        }
    }

    fn real_time_use(&mut self, span: (u64, u64), window: &LateWakeWindow) -> Option<RealTimeUse> {
        let events = self.tracer.events_between(span.0, span.1, None);
        real_time_use(&events, window.cpu, span, window.thread)
    }

    /// Saves what was read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_trace(&mut self, path: &Path) -> Result<()> {
        saver::replace(path, &self.tracer.content(path)?)
    }

    /// Ends the recording and removes the instance.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn finish_trace(self, guardian: &Guardian) -> Result<()> {
        drop(self.tracer);
        guardian.undo(self.ticket)
    }
}

/// Returns true if a thread is one of this process, which measures nothing.
fn is_own(thread: u32) -> bool {
    Path::new("/proc/self/task").join(thread.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_takes_no_more_than_what_is_not_granted_to_real_time_threads() {
        let ms = |ns: u64| (ns as f64 / 1e6).round();
        assert_eq!(ms(most_throttled(0, 0.95)), 50.0);
        // Two slots of 50 ms, and one at the start: 1.04 s, as a trace without a switch says, are not throttling.
        assert_eq!(ms(most_throttled(2_000_000_000, 0.95)), 150.0);
        assert_eq!(ms(most_throttled(1_000_000_000, 0.5)), 1000.0);
    }
}
