//! Work of an endpoint, in a thread or a process of its own.

use super::board::{PacedEndpointWord, PacedRunMemory};
use super::means::{PacedWakeChannel, TIMED_OUT, publish_wake_target, wake_target};
use super::{MEMORY, PacedEndpointRules, PacedWakeMechanism, PacedWakeOrder};
use anyhow::{Context, Result, ensure};
use latscope_bench::hold::hold;
use latscope_exchange::notify::counter::Lanes;
use latscope_os::clock::monotonic_ns;
use latscope_os::sched;
use latscope_os::trace_marker::Marker;
use latscope_os::worker::{die_with, take_descriptor};
use latscope_probes::wake::waiter::{Monotonic, sleep_until};
use latscope_process::role::ProcessRole;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// A single endpoint of a run.
pub(super) struct PacedEndpoint<'a> {
    pub(super) board: &'a PacedRunMemory,
    pub(super) index: usize,
    pub(super) rules: &'a PacedEndpointRules,
    pub(super) channel: &'a PacedWakeChannel,
    /// Descriptor that signals the end of the run to the starter.
    pub(super) bell: BorrowedFd<'a>,
}

/// Turns of the circle from one rest of its first thread to the next, and the length of a rest.
const TURNS: u64 = 16;
const REST_NS: u64 = 10_000_000;

const SECOND: u64 = 1_000_000_000;

impl PacedEndpoint<'_> {
    /// Runs the endpoint until the run is over.
    pub(super) fn run_endpoint(&self) {
        if let Err(error) = self.prepare_thread().and_then(|()| self.run_role()) {
            // A means that is taken away ends the run as well as its last sample does.
            let code = error.raw_os_error().filter(|_| !self.board.over());
            self.board
                .endpoint_word(self.index, PacedEndpointWord::Failed)
                .store(code.unwrap_or(0) as u64, Relaxed);
        }
        self.board.end_run();
        let _ = rustix::io::write(self.bell, &1u64.to_ne_bytes());
    }

    fn prepare_thread(&self) -> io::Result<()> {
        if let Some(cpu) = self.rules.cpu {
            sched::pin(&[cpu])?;
        }
        match self.rules.priority {
            // Without it a sleep of the normal class may last 50 µs longer (prctl(2)).
            0 => drop(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))),
            priority => {
                sched::set_policy(sched::ThreadSchedPolicy::Fifo(priority))?;
                if sched::policy()? != sched::ThreadSchedPolicy::Fifo(priority) {
                    return Err(Errno::PERM.into());
                }
            }
        }
        Ok(publish_wake_target(self.board, self.index, self.rules.means)?)
    }

    fn run_role(&self) -> io::Result<()> {
        match (self.rules.form, self.index % 2) {
            (PacedWakeOrder::Circle, _) => self.circle(),
            (PacedWakeOrder::Pairs, 0) => self.run_receiver(),
            (PacedWakeOrder::Pairs, _) => self.run_sender(),
        }
    }

    /// Waits until all are ready.
    fn await_go(&self) {
        while !self.board.has_started() && !self.board.over() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a sender. It goes straight from its sleep to the stamp, and from the message to its next sleep: on
    /// one CPU the receiver waits for that.
    fn run_sender(&self) -> io::Result<()> {
        self.await_go();
        let receiver = wake_target(self.board, self.index - 1);
        let stamp = self.board.endpoint_word(self.index, PacedEndpointWord::Stamp);
        while !self.board.over() {
            self.note_cpu();
            if self.rules.delay > 0 {
                sleep_until::<Monotonic>(
                    monotonic_ns().saturating_add(self.rules.delay.saturating_mul(SECOND)),
                );
            }
            stamp.store(monotonic_ns(), Release);
            self.channel.wake_lane(0, receiver)?;
            self.channel.wait_on_lane(1)?;
        }
        Ok(())
    }

    fn run_receiver(&self) -> io::Result<()> {
        let (mut tally, mut due) = (PacedEndpointTally::for_rules(self.rules)?, 0);
        let stamp = self.board.endpoint_word(self.index + 1, PacedEndpointWord::Stamp);
        let mut sender = None;
        loop {
            self.await_message()?;
            let now = monotonic_ns();
            if self.board.over() {
                return Ok(());
            }
            let latency = now.saturating_sub(stamp.load(Acquire));
            tally.record_sample(self, latency);
            self.note_cpu();
            if self.check_limits(&tally, latency) {
                return Ok(());
            }
            // From the first message on; a late one swallows what was due meanwhile.
            due = if due == 0 { now } else { due }.saturating_add(self.rules.interval).max(now);
            if self.rules.interval > 0 {
                sleep_until::<Monotonic>(due);
            }
            let sender = *sender.get_or_insert_with(|| wake_target(self.board, self.index + 1));
            self.channel.wake_lane(1, sender)?;
        }
    }

    /// The receiver's wait, which may time out.
    #[inline]
    fn await_message(&self) -> io::Result<()> {
        if self.rules.timeout == 0 {
            return Ok(self.channel.wait_on_lane(0)?);
        }
        loop {
            match self.channel.wait_for(0, self.rules.timeout) {
                Err(TIMED_OUT) if !self.board.over() => {
                    self.board.endpoint_word(self.index, PacedEndpointWord::Timeouts).fetch_add(1, Relaxed);
                }
                Err(TIMED_OUT) | Ok(()) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Runs an endpoint of a circle. Each turn begins with the first endpoint, which may rest before it: a turn
    /// with a rest is no sample of the others.
    fn circle(&self) -> io::Result<()> {
        let mut tally = PacedEndpointTally::for_rules(self.rules)?;
        if self.index == 0 {
            self.await_go();
        } else {
            self.channel.wait_on_lane(0)?;
            tally.count_cycle(self);
        }
        let next = wake_target(self.board, (self.index + 1) % self.board.endpoints());
        for turn in 1.. {
            self.note_cpu();
            if self.index == 0 && turn % TURNS == 1 {
                sleep_until::<Monotonic>(monotonic_ns() + REST_NS);
            }
            let sent = monotonic_ns();
            self.channel.wake_lane(0, next)?;
            self.channel.wait_on_lane(0)?;
            let latency = monotonic_ns() - sent;
            if self.board.over() {
                break;
            }
            if self.index > 0 && turn % TURNS == 0 {
                tally.count_cycle(self);
                continue;
            }
            if self.index == 0 {
                self.board.sample_word(tally.cycles).store(latency, Relaxed);
            }
            tally.record_sample(self, latency);
            // When the first one has had its turns the others have had as many.
            if self.check_limits(&tally, latency) && self.index == 0 {
                break;
            }
        }
        Ok(())
    }

    fn note_cpu(&self) {
        let cpu = rustix::thread::sched_getcpu() as u64;
        self.board.endpoint_word(self.index, PacedEndpointWord::Cpu).store(cpu + 1, Relaxed);
    }

    /// Returns true if the run ends with this sample.
    #[inline]
    fn check_limits(&self, tally: &PacedEndpointTally, latency: u64) -> bool {
        let exceeded = latency > self.rules.threshold;
        if exceeded {
            self.exceed(tally, latency);
        }
        exceeded || tally.cycles >= self.rules.loops
    }

    #[cold]
    fn exceed(&self, tally: &PacedEndpointTally, latency: u64) {
        if let Some((marker, switch)) = &tally.trace {
            let cpu = rustix::thread::sched_getcpu();
            marker.write_note(format_args!("latscope: late by {latency} ns on CPU {cpu}"));
            let _ = rustix::io::write(switch, b"0");
        }
        self.board.exceed(self.index);
    }
}

/// An endpoint's own copy of its figures, and the trace to stop at the threshold.
struct PacedEndpointTally {
    trace: Option<(Marker, File)>,
    cycles: u64,
    samples: u64,
    min: u64,
    max: u64,
    sum: u64,
}

impl PacedEndpointTally {
    fn for_rules(rules: &PacedEndpointRules) -> io::Result<PacedEndpointTally> {
        let open = |directory: &PathBuf| {
            let switch = OpenOptions::new().write(true).open(directory.join("tracing_on"))?;
            Ok((Marker::open(&directory.join("trace_marker"))?, switch))
        };
        let trace = rules.trace.as_ref().map(open).transpose();
        trace.map(|trace| PacedEndpointTally { trace, cycles: 0, samples: 0, min: 0, max: 0, sum: 0 })
    }

    #[inline]
    fn record_sample(&mut self, endpoint: &PacedEndpoint, ns: u64) {
        self.samples += 1;
        self.sum += ns;
        self.max = self.max.max(ns);
        self.min = if self.samples == 1 { ns } else { self.min.min(ns) };
        let put = |word, value| endpoint.board.endpoint_word(endpoint.index, word).store(value, Relaxed);
        put(PacedEndpointWord::Samples, self.samples);
        put(PacedEndpointWord::Last, ns);
        put(PacedEndpointWord::Min, self.min);
        put(PacedEndpointWord::Max, self.max);
        put(PacedEndpointWord::Sum, self.sum);
        self.count_cycle(endpoint);
    }

    /// Counts a message that is no sample.
    fn count_cycle(&mut self, endpoint: &PacedEndpoint) {
        self.cycles += 1;
        endpoint.board.endpoint_word(endpoint.index, PacedEndpointWord::Cycles).store(self.cycles, Release);
    }
}

/// An endpoint that is a process: `__paced RULES ENDPOINT ENDPOINTS SET PARENT`, with
/// the bell, the board and, for futexes, their memory.
pub(crate) const ROLE: ProcessRole = ProcessRole { name: "__paced", terminates: false, main };

fn main(arguments: &[String]) -> Result<()> {
    let [rules, index, endpoints, set, parent] = arguments else {
        anyhow::bail!("an endpoint is started by latscope itself: run `latscope as svsematest -f`");
    };
    die_with(parent.parse()?)?;
    let _ = rustix::thread::set_name(c"paced");
    let rules: PacedEndpointRules = serde_json::from_str(rules)?;
    let (bell, board) =
        (take_descriptor(0)?, PacedRunMemory::from_descriptor(take_descriptor(1)?, endpoints.parse()?)?);
    let index: usize = index.parse()?;
    ensure!(index < board.endpoints(), "there is no endpoint {index}");
    let channel = match rules.means {
        PacedWakeMechanism::Semaphores => PacedWakeChannel::Semaphores(set.parse()?),
        PacedWakeMechanism::Futexes => PacedWakeChannel::Futexes(Lanes::map_existing(take_descriptor(2)?)?),
        PacedWakeMechanism::Signals => PacedWakeChannel::Signals,
        PacedWakeMechanism::Queues => anyhow::bail!("queues are for threads"),
    };
    // That it cannot be locked was reported by the process that started this.
    let _held = hold(&MEMORY);
    PacedEndpoint { board: &board, index, rules: &rules, channel: &channel, bell: bell.as_fd() }
        .run_endpoint();
    board.first_error().map_or(Ok(()), |error| Err(error).context("an endpoint failed"))
}
