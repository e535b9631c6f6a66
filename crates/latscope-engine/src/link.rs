//! The coordinator's side of a running worker.

use anyhow::{Context, Result, anyhow, bail};
use latscope_bench::hold::Shortfall;
use latscope_bench::protocol::{Assignment, WorkerMessage};
use latscope_bench::recorder::{HistogramSlotLayout, Slots};
use latscope_bench::worker;
use latscope_core::plan::PlanStep;
use latscope_machine::Freezer;
use latscope_machine::starvation::{descendants, move_threads};
use latscope_os::signal::{self, SignalFd};
use latscope_os::worker::{Lifetime, was_halted};
use latscope_process::halted::{is_halted, resume};
use latscope_process::role::{self, MessageRead, MessageSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, getrlimit};
use std::process::Child;
use std::time::{Duration, Instant};

/// A running worker: its process, its socket, its counters, and the bell with
/// which its measuring threads call for attention.
pub struct WorkerLink {
    child: Child,
    messages: MessageSocket,
    bell: OwnedFd,
    /// Kept, so that the bell does not hang up with the worker.
    _rope: OwnedFd,
    /// Freezers of its control groups, where the kernel lets them be watched.
    freezer: Option<Freezer>,
    /// Slots that the worker's threads record into.
    pub slots: Slots,
    /// True once the worker was to go on.
    resumed: bool,
}

/// Event that woke the coordinator.
pub enum CoordinatorEvent {
    /// The worker says something.
    Message(WorkerMessage),
    /// A measuring thread saw something.
    Bell,
    /// The coordinator received a signal.
    Signal(i32),
    /// This one of the other descriptors can be read.
    Input(usize),
    /// The time is over.
    Silence,
    /// The worker's process is gone.
    Gone,
}

/// The fewest files that a run needs to open at once.
const FILES: u64 = 64;

/// Adds to what failed that few files may be open, if that is so.
fn few_files(failed: &str) -> String {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let few = (limit < FILES).then(|| format!(" with {limit} open files at most (ulimit -n {FILES})"));
    failed.to_owned() + &few.unwrap_or_default()
}

impl WorkerLink {
    /// Starts a worker process for a step.
    ///
    /// # Errors
    /// There is no memory, or no process.
    pub fn start_worker(step: &PlanStep) -> Result<WorkerLink> {
        let layout = HistogramSlotLayout::of_step(step);
        let memory =
            Slots::create_memfd(&layout).with_context(|| few_files("no memory for the histograms"))?;
        let slots = Slots::map_memfd(&memory, layout)?;
        // Not an eventfd, which some sandboxes refuse.
        let (bell, rope) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .with_context(|| few_files("no pipe from a worker process"))?;
        let (child, messages) = role::start_process(&[worker::NAME], &[&memory, &rope], Lifetime::WithParent)
            .with_context(|| few_files("a worker process does not start"))?;
        let freezer = Freezer::watch_process(child.id());
        Ok(WorkerLink { child, messages, bell, _rope: rope, freezer, slots, resumed: false })
    }

    /// Id of the worker process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns the reason if the worker [was stopped](was_halted) since the last call, or was frozen.
    pub fn was_halted(&mut self) -> Option<Shortfall> {
        let was_frozen = self.freezer.as_mut().is_some_and(Freezer::was_frozen);
        was_frozen.then(Shortfall::frozen).or_else(|| was_halted(&self.child).then(Shortfall::run_stopped))
    }

    /// Returns true if the worker may have been frozen before the last call of [`WorkerLink::was_halted`].
    pub(crate) fn may_have_halted(&self) -> bool {
        self.freezer.as_ref().is_some_and(Freezer::was_written)
    }

    /// Returns true if the worker stands still: stopped by a signal, or frozen.
    pub(crate) fn is_halted(&self) -> bool {
        is_halted(self.process())
    }

    /// Lets the worker go on that stands still, with what it started.
    ///
    /// # Errors
    /// The worker stands still again: its control group is frozen.
    pub(crate) fn resume(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.resumed, true) {
            bail!("the worker process (pid {}) stands still, although it was to go on", self.process());
        }
        resume(self.process());
        Ok(())
    }

    /// Sends the worker its assignment.
    ///
    /// # Errors
    /// The worker has ended; the text names the way it ended.
    pub(crate) fn assign(&mut self, assignment: &Assignment) -> Result<()> {
        self.messages.send_message(assignment).map_err(|_| self.how_it_ended())
    }

    /// Waits for at most `timeout`, for the worker, a signal, or one of `inputs`.
    ///
    /// # Errors
    /// The kernel refuses to wait, or the worker does not speak our language.
    pub fn wait_for_event(
        &mut self,
        signals: &SignalFd,
        inputs: &[BorrowedFd],
        timeout: Duration,
    ) -> Result<CoordinatorEvent> {
        if !self.messages.has_message() {
            match self.first_readable(signals, inputs, timeout)? {
                None => return Ok(CoordinatorEvent::Silence),
                Some(0) => {
                    // SIGCHLD only wakes: `was_halted` asks for the state of the child.
                    let signal = signals.next()?.filter(|signal| *signal != signal::CHILD);
                    return Ok(signal.map_or(CoordinatorEvent::Silence, CoordinatorEvent::Signal));
                }
                Some(1) => {}
                Some(2) => {
                    let _ = rustix::io::read(&self.bell, &mut [0u8; 4096]);
                    return Ok(CoordinatorEvent::Bell);
                }
                Some(input) if input - 3 < inputs.len() => return Ok(CoordinatorEvent::Input(input - 3)),
                // The freezer, which `was_halted` reads.
                Some(_) => return Ok(CoordinatorEvent::Silence),
            }
        }
        Ok(match self.messages.read_message().context("invalid worker message")? {
            MessageRead::Message(message) => CoordinatorEvent::Message(message),
            MessageRead::Partial => CoordinatorEvent::Silence,
            MessageRead::Ended => CoordinatorEvent::Gone,
        })
    }

    /// The first descriptor that can be read: signals, worker, bell, inputs, freezer.
    fn first_readable(
        &self,
        signals: &SignalFd,
        inputs: &[BorrowedFd],
        timeout: Duration,
    ) -> Result<Option<usize>> {
        let deadline = Instant::now() + timeout;
        let mut fds = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(&self.messages, PollFlags::IN),
            PollFd::new(&self.bell, PollFlags::IN),
        ];
        fds.extend(inputs.iter().map(|input| PollFd::new(input, PollFlags::IN)));
        fds.extend(self.freezer.iter().map(Freezer::poll));
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: rest.as_secs() as _, tv_nsec: rest.subsec_nanos() as _ };
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(fds.iter().position(|fd| !fd.revents().is_empty())),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Lets all threads of the worker and of what it started run on the CPU of the calling thread, except some.
    pub(crate) fn move_threads_here(&self, except: &[u32]) {
        move_threads(&descendants(self.process()), rustix::thread::sched_getcpu() as u32, except);
    }

    /// Waits for the end of a worker, and returns its exit status or the loss of the process as an error.
    pub fn how_it_ended(&mut self) -> anyhow::Error {
        self.ends_within(GRACE);
        match self.child.try_wait() {
            Ok(Some(status)) => anyhow!("the worker process ended early ({status})"),
            Ok(None) => anyhow!("the worker process does not answer"),
            Err(error) => anyhow!("the worker process is lost: {error}"),
        }
    }

    /// Returns true if the worker ends in this time.
    fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn kill(&self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Time in which a process that was killed ends if it gets a CPU.
const GRACE: Duration = Duration::from_secs(3);

/// Time in which a worker that has finished ends by itself.
const MOMENT: Duration = Duration::from_millis(20);

impl Drop for WorkerLink {
    /// Ends the worker with everything it started. A killed thread ends only when it has a CPU: where it has none, it
    /// is moved to that of the coordinator. A process that does not end even then, in a frozen control group, is left
    /// behind: it ends as soon as it can.
    fn drop(&mut self) {
        if self.ends_within(MOMENT) {
            return self.kill();
        }
        // Those that it started are not to be found any more when it has ended.
        let all = descendants(self.process());
        self.kill();
        for _ in 0..20 {
            let ended = self.ends_within(GRACE / 20);
            move_threads(&all, rustix::thread::sched_getcpu() as u32, &[]);
            if ended {
                return;
            }
        }
    }
}
