//! The coordinator's side of a running worker.

use anyhow::{Context, Result, anyhow};
use latscope_bench::protocol::{Assignment, Message};
use latscope_bench::recorder::{Layout, Slots};
use latscope_bench::worker;
use latscope_core::plan::Step;
use latscope_os::signal::Signals;
use latscope_os::worker::{Lifetime, was_halted};
use latscope_process::role::{self, Messages};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::process::Child;
use std::time::{Duration, Instant};

/// A running worker: its process, its socket, its counters, and the bell with
/// which its measuring threads call for attention.
pub struct Link {
    child: Child,
    messages: Messages,
    bell: OwnedFd,
    /// Kept, so that the bell does not hang up with the worker.
    _rope: OwnedFd,
    /// Slots that the worker's threads record into.
    pub slots: Slots,
}

/// Event that woke the coordinator.
pub enum Heard {
    /// The worker says something.
    Message(Message),
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

impl Link {
    /// Starts a worker process for a step.
    ///
    /// # Errors
    /// There is no memory, or no process.
    pub fn start(step: &Step) -> Result<Link> {
        let layout = Layout::of(step);
        let memory = Slots::create(&layout).context("no memory for the histograms")?;
        let slots = Slots::map(&memory, layout)?;
        // Not an eventfd, which some sandboxes refuse.
        let (bell, rope) =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).context("no pipe from a worker process")?;
        let (child, messages) = role::start(&[worker::NAME], &[&memory, &rope], Lifetime::WithParent)
            .context("a worker process does not start")?;
        Ok(Link { child, messages, bell, _rope: rope, slots })
    }

    /// Id of the worker process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the worker was [stopped and went on](was_halted) since the last call.
    pub fn was_halted(&self) -> bool {
        was_halted(&self.child)
    }

    /// Sends the worker its assignment.
    ///
    /// # Errors
    /// The worker has ended; the text names the way it ended.
    pub(crate) fn assign(&mut self, assignment: &Assignment) -> Result<()> {
        self.messages.send(assignment).map_err(|_| self.how_it_ended())
    }

    /// Waits for at most `timeout`, for the worker, a signal, or one of `inputs`.
    ///
    /// # Errors
    /// The kernel refuses to wait, or the worker does not speak our language.
    pub fn wait(&mut self, signals: &Signals, inputs: &[BorrowedFd], timeout: Duration) -> Result<Heard> {
        if !self.messages.is_buffered() {
            match self.ready(signals, inputs, timeout)? {
                None => return Ok(Heard::Silence),
                Some(0) => {
                    if let Some(signal) = signals.next()? {
                        return Ok(Heard::Signal(signal));
                    }
                    return Ok(Heard::Silence);
                }
                Some(1) => {}
                Some(2) => {
                    let _ = rustix::io::read(&self.bell, &mut [0u8; 4096]);
                    return Ok(Heard::Bell);
                }
                Some(input) => return Ok(Heard::Input(input - 3)),
            }
        }
        let message = self.messages.receive().context("invalid worker message")?;
        Ok(message.map_or(Heard::Gone, Heard::Message))
    }

    /// The first descriptor that can be read: signals, worker, bell, inputs.
    fn ready(&self, signals: &Signals, inputs: &[BorrowedFd], timeout: Duration) -> Result<Option<usize>> {
        let deadline = Instant::now() + timeout;
        let mut fds = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(&self.messages, PollFlags::IN),
            PollFd::new(&self.bell, PollFlags::IN),
        ];
        fds.extend(inputs.iter().map(|input| PollFd::new(input, PollFlags::IN)));
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

    /// Waits for the end of a worker, and returns its exit status or the loss of the process as an error.
    pub fn how_it_ended(&mut self) -> anyhow::Error {
        match self.child.wait() {
            Ok(status) => anyhow!("the worker process ended early ({status})"),
            Err(error) => anyhow!("the worker process is lost: {error}"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A worker that finished has ended or is about to; any other is ended
        // with everything it started.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
