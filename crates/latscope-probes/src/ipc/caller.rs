//! A single call: the request is filled before the first stamp, and the reply is verified after the second.

use super::hog::fifo;
use super::message::{self, IpcReplyHeader, IpcRequestHeader, ONE_WAY, STATE, VERBOSE, carried};
use super::orders::{CallerOrder, ClientOrder, IpcCallTally};
use super::point::{Caller, IpcMeasureMode};
use crate::prelude::*;
use latscope_bench::alarm::ExceedanceAlarm;
use latscope_core::report::TransactionHop;
use latscope_exchange::transaction::{TransactionClient, TransactionFailure};
use latscope_os::sched::ThreadSchedState;
use rustix::thread::sched_getcpu;
use rustix::time::{ClockId, Timespec};

/// Rules that all calls of a client have in common.
pub struct IpcCallRules {
    /// Mode of the measurement.
    pub mode: IpcMeasureMode,
    /// Duration above which a call misses, ns.
    pub deadline: u64,
    /// `CLOCK_MONOTONIC` at the epoch of the run.
    pub epoch: u64,
    /// The clock that calls are timed with.
    pub clock: AnyClock,
    /// Timebase that converts the ticks of that clock.
    pub timebase: Timebase,
    /// First calls of each caller that are reported in full.
    pub hops: u64,
    /// True if the server looks up its scheduling in each call.
    pub watched: bool,
    /// Process id of the server; 0 if there is none.
    pub server: u32,
    /// True if the first exceedance ends the step.
    pub stops: bool,
    /// Alarm at a call above the threshold.
    pub alarm: ExceedanceAlarm,
}

/// A client end of the transport with its buffers.
pub struct IpcClientChannel {
    /// Client end of the transport.
    pub client: Box<dyn TransactionClient>,
    request: Vec<u8>,
    reply: Vec<u8>,
}

/// Buffers of a request that was sent and of its reply.
struct IpcMessageBuffers<'a> {
    request: &'a [u8],
    reply: &'a [u8],
}

/// A caller with its counts and its recorded durations.
pub(crate) struct CallLoop {
    /// Orders of this caller.
    pub order: CallerOrder,
    /// Counts of this caller's calls.
    pub tally: IpcCallTally,
    /// Writer of the durations of calls.
    pub writer: Option<HistogramSlotWriter>,
    /// Writer of the durations from the due instant.
    pub due: Option<HistogramSlotWriter>,
    state: ThreadSchedState,
    settled: bool,
}

/// A turn of a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpcCallTurn {
    /// Sequence number of the turn's request.
    pub sequence: u64,
    /// Due instant of a paced call, ns of `CLOCK_MONOTONIC`.
    pub due: Option<u64>,
    /// True if the turn is recorded.
    pub recorded: bool,
}

/// Outcome of a caller's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IpcTurnOutcome {
    /// The caller continues, whatever the result was.
    On,
    /// The step is to end.
    Stop,
    /// No further call can succeed.
    Over(TransactionFailure),
}

const PAGE: usize = 4096;

impl IpcClientChannel {
    /// A line for requests of `payload` bytes.
    pub fn new(client: Box<dyn TransactionClient>, payload: usize) -> IpcClientChannel {
        let request = (0..payload).map(|at| (at % 251) as u8).collect();
        IpcClientChannel { client, request, reply: vec![0; payload] }
    }

    /// Returns a separate line for one more thread, where the transport needs that.
    pub fn another(&self) -> Option<Result<IpcClientChannel, TransactionFailure>> {
        let client = self.client.clone_for_thread()?;
        Some(client.map(|client| IpcClientChannel::new(client, self.request.len())))
    }

    /// Takes requests of another length from here on.
    pub fn resize(&mut self, payload: usize) {
        self.request.resize(payload, 0);
        self.reply.resize(payload, 0);
    }

    /// Writes the request and clears the reply. In throughput mode every page differs from call to call, so
    /// that no stale page passes.
    fn fill_request(&mut self, mode: IpcMeasureMode, request: IpcRequestHeader) {
        IpcRequestHeader { length: self.request.len() as u32, ..request }.write_to(&mut self.request);
        if mode == IpcMeasureMode::Throughput {
            let nonce = request.sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
            let pages = self.request.chunks_exact_mut(PAGE).skip(1);
            pages.for_each(|page| page[..8].copy_from_slice(&nonce));
        }
        // What an echo left would look like a reply.
        let length = self.reply.len().min(message::LENGTH);
        self.reply[..length].fill(0);
    }

    /// Makes a call. If only the way there is measured and the transport can do that, it sends the request
    /// without waiting for a reply. A second call, which is not measured, then shows that the server has the
    /// request.
    fn carry(
        &mut self,
        mode: IpcMeasureMode,
        sequence: u64,
    ) -> Result<IpcMessageBuffers<'_>, TransactionFailure> {
        if mode == IpcMeasureMode::OneWay {
            let flags = IpcRequestHeader::read_from(&self.request).flags;
            message::set_flags(&mut self.request, flags | ONE_WAY);
            if let Some(sent) = self.client.send_one_way(&self.request) {
                sent?;
                self.request[..8].copy_from_slice(&(sequence + 1).to_le_bytes());
                message::stamp(&mut self.request, 0);
            }
            message::set_flags(&mut self.request, flags);
        }
        self.call_server()
    }

    #[inline]
    fn call_server(&mut self) -> Result<IpcMessageBuffers<'_>, TransactionFailure> {
        let reply = self.client.call_in_place(&self.request, &mut self.reply)?;
        Ok(IpcMessageBuffers { request: &self.request, reply })
    }

    /// Makes a separate call that is not timed, and returns the reply with the server's scheduling.
    ///
    /// # Errors
    /// The call failed, or the reply is not the one to the request.
    pub fn query_server(
        &mut self,
        sequence: u64,
        state: ThreadSchedState,
    ) -> Result<IpcReplyHeader, TransactionFailure> {
        let cpu = sched_getcpu() as u32;
        self.fill_request(
            IpcMeasureMode::Latency,
            IpcRequestHeader { sequence, cpu, caller: state, flags: STATE, length: 0 },
        );
        if self.request.len() >= message::STAMPED {
            message::stamp(&mut self.request, 0);
        }
        let wrong = || TransactionFailure::Refused("the reply is not the one to the request".to_owned());
        self.call_server()?.verify(IpcMeasureMode::Latency).ok_or_else(wrong)
    }
}

impl IpcMessageBuffers<'_> {
    /// Returns the reply, if it is the one to the request.
    fn verify(&self, mode: IpcMeasureMode) -> Option<IpcReplyHeader> {
        let reply = IpcReplyHeader::read_from(self.reply);
        let sequence = IpcRequestHeader::read_from(self.request).sequence;
        let length = self.reply.len();
        let whole = length == self.request.len() && reply.sequence == carried(sequence, length);
        match mode {
            // An echo says nothing of the server.
            IpcMeasureMode::Throughput => {
                (whole && self.reply == self.request).then_some(IpcReplyHeader { server: None, ..reply })
            }
            IpcMeasureMode::Latency | IpcMeasureMode::OneWay | IpcMeasureMode::Inversion => {
                (whole && reply.verified).then_some(reply)
            }
            IpcMeasureMode::Ping => self.reply.is_empty().then_some(reply),
        }
    }
}

impl CallLoop {
    /// A caller that has done nothing yet.
    pub fn new(
        order: CallerOrder,
        writer: Option<HistogramSlotWriter>,
        due: Option<HistogramSlotWriter>,
    ) -> CallLoop {
        let (tally, state) = (IpcCallTally::default(), ThreadSchedState::default());
        CallLoop { order, tally, writer, due, state, settled: false }
    }

    /// Gives the calling thread the policy of this caller, and reads it back.
    fn apply_policy(&mut self) {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        if let Caller::Fifo(priority) = self.order.caller
            && let Some(shortfall) = fifo(priority)
        {
            self.tally.shortfall.get_or_insert(shortfall);
        }
        self.state = sched::sched_state(0).unwrap_or_default();
        self.writers().for_each(HistogramSlotWriter::adopt);
        self.settled = true;
    }

    fn writers(&self) -> impl Iterator<Item = &HistogramSlotWriter> {
        self.writer.iter().chain(&self.due)
    }

    /// Waits until the turn is due, calls, and records.
    pub fn take_turn(
        &mut self,
        rules: &IpcCallRules,
        line: &mut IpcClientChannel,
        turn: IpcCallTurn,
    ) -> IpcTurnOutcome {
        if !self.settled || self.order.fresh {
            self.apply_policy();
        }
        let verbose = turn.recorded && (self.tally.calls) < rules.hops;
        let flags = u32::from(verbose) * VERBOSE + u32::from(rules.watched) * STATE;
        let due = turn.due.unwrap_or_else(monotonic_ns);
        self.writers().for_each(|writer| writer.set_due(due));
        turn.due.inspect(|due| sleep_until(*due));
        let before = sched_getcpu();
        line.fill_request(
            rules.mode,
            IpcRequestHeader {
                sequence: turn.sequence,
                cpu: before as u32,
                caller: self.state,
                flags,
                length: 0,
            },
        );
        if rules.mode == IpcMeasureMode::OneWay {
            message::stamp(&mut line.request, monotonic_ns());
        }
        let begun = rules.clock.stamp_start();
        let answered = line.carry(rules.mode, turn.sequence);
        let took = rules.timebase.interval_ns(rules.clock.stamp_end().saturating_sub(begun)) as u64;
        let ended = monotonic_ns();
        let after = sched_getcpu();
        if self.writers().any(|writer| writer.let_go_at().is_some()) {
            return IpcTurnOutcome::Stop;
        }
        self.writers().for_each(HistogramSlotWriter::clear_due);
        let carried = match answered {
            Ok(carried) => carried,
            Err(failure) => return self.count_failure(failure),
        };
        let Some(reply) = carried.verify(rules.mode) else {
            self.tally.mismatches += 1;
            self.tally
                .first_failure
                .get_or_insert_with(|| "a reply is not the one to its request".to_owned());
            return IpcTurnOutcome::On;
        };
        if !turn.recorded {
            return IpcTurnOutcome::On;
        }
        if verbose {
            self.record_hops(rules, before as u32, &reply);
        }
        // An echo tells the caller's own CPU; behind a request without a reply there is another call.
        if !matches!(rules.mode, IpcMeasureMode::Throughput | IpcMeasureMode::OneWay) {
            self.count_placement(before, after, &reply, carried.reply.len());
        }
        self.count_inheritance(&reply);
        self.record_call(rules, took, ended, turn)
    }

    #[cold]
    fn count_failure(&mut self, failure: TransactionFailure) -> IpcTurnOutcome {
        self.tally.failures += 1;
        self.tally.first_failure.get_or_insert_with(|| failure.to_string());
        match failure {
            TransactionFailure::Refused(_) => IpcTurnOutcome::On,
            TransactionFailure::Gone | TransactionFailure::Broken(_) => IpcTurnOutcome::Over(failure),
        }
    }

    /// Counts if the caller stayed on its CPU during the call and if the server was on that CPU, where the
    /// reply states it.
    fn count_placement(&mut self, before: usize, after: usize, reply: &IpcReplyHeader, length: usize) {
        if !message::tells_cpu(length) {
            return;
        }
        if before == after {
            self.tally.stayed += 1;
            self.tally.synced += u64::from(reply.cpu as usize == before);
        } else {
            self.tally.migrated += 1;
        }
    }

    /// Counts if the server had no other real-time priority than the caller, where the reply states it.
    fn count_inheritance(&mut self, reply: &IpcReplyHeader) {
        if let Some(server) = reply.server {
            self.tally.told += 1;
            self.tally.uninherited += u64::from(server.priority != self.state.priority);
        }
    }

    /// Records the duration of a call, and the time from its due instant to `ended`.
    fn record_call(
        &mut self,
        rules: &IpcCallRules,
        took: u64,
        ended: u64,
        turn: IpcCallTurn,
    ) -> IpcTurnOutcome {
        let number = self.tally.calls;
        self.tally.calls += 1;
        let mut outcome = IpcTurnOutcome::On;
        let spans = [
            (&mut self.writer, &mut self.tally.misses, Some(took)),
            (&mut self.due, &mut self.tally.due_misses, turn.due.map(|due| ended.saturating_sub(due))),
        ];
        for (writer, misses, value) in spans {
            let (Some(writer), Some(value)) = (writer, value) else { continue };
            let sample = Exceedance { turn: number, at: ended, value };
            let missed = u64::from(sample.value > rules.deadline);
            writer.record_event(sample, rules.epoch, missed, 1);
            *misses += missed;
            if sample.value > writer.threshold() {
                let cpu = sched_getcpu();
                let remark = format_args!("latscope: a call of {} ns on CPU {cpu}", sample.value);
                rules.alarm.raise(writer, sample, rules.stops, remark);
                outcome = if rules.stops { IpcTurnOutcome::Stop } else { outcome };
            }
        }
        outcome
    }

    /// Adds both ends of a call to those that are reported in full.
    fn record_hops(&mut self, rules: &IpcCallRules, cpu: u32, reply: &IpcReplyHeader) {
        let hop = |role: &str, pid, tid, cpu, state: ThreadSchedState| TransactionHop {
            role: role.to_owned(),
            pid,
            tid,
            cpu,
            policy: state.policy,
            priority: state.priority,
            nice: state.nice,
        };
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let caller = format!("{}-caller", self.order.caller.policy_name());
        self.tally.hops.push(hop(&caller, std::process::id(), thread, cpu, self.state));
        if let Some(state) = reply.server {
            let process = if rules.server == 0 { std::process::id() } else { rules.server };
            self.tally.hops.push(hop("server", process, reply.thread, reply.cpu, state));
        }
    }
}

fn sleep_until(ns: u64) {
    let time = Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &time) == Err(rustix::io::Errno::INTR)
    {
    }
}

impl IpcCallRules {
    /// The rules of an order, with its files opened.
    pub fn from_order(order: &ClientOrder, bell: Option<OwnedFd>) -> IpcCallRules {
        IpcCallRules {
            mode: order.common.mode,
            deadline: order.common.deadline,
            epoch: order.common.epoch,
            clock: order.common.timebase.clock(),
            timebase: order.common.timebase,
            hops: order.hops,
            watched: order.watched,
            server: order.server.unwrap_or(0),
            stops: order.stops,
            alarm: ExceedanceAlarm::new(bell, order.trace_marker.as_deref(), order.trace_switch.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as a server does, and then spoils the answer.
    struct Spoiled {
        mode: IpcMeasureMode,
        spoil: fn(&mut [u8]) -> Result<usize, TransactionFailure>,
    }

    impl TransactionClient for Spoiled {
        fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, TransactionFailure> {
            let IpcRequestHeader { sequence, cpu, .. } = IpcRequestHeader::read_from(request);
            match self.mode {
                IpcMeasureMode::Throughput => reply.copy_from_slice(request),
                _ => {
                    IpcReplyHeader { sequence, cpu, server: None, thread: 0, verified: true }.write_to(reply)
                }
            }
            (self.spoil)(reply)
        }
    }

    /// Makes one call with a spoiled reply, and returns the caller's tally and the outcome.
    fn called(
        mode: IpcMeasureMode,
        payload: usize,
        spoil: fn(&mut [u8]) -> Result<usize, TransactionFailure>,
    ) -> (IpcCallTally, IpcTurnOutcome) {
        let rules = IpcCallRules {
            mode,
            deadline: u64::MAX,
            epoch: 0,
            clock: Timebase::scripted().clock(),
            timebase: Timebase::scripted(),
            hops: 0,
            watched: false,
            server: 0,
            stops: false,
            alarm: ExceedanceAlarm::default(),
        };
        let order = CallerOrder { caller: Caller::Other, fresh: false, point: None, due: None };
        let mut call_loop = CallLoop::new(order, None, None);
        let mut line = IpcClientChannel::new(Box::new(Spoiled { mode, spoil }), payload);
        let outcome =
            call_loop.take_turn(&rules, &mut line, IpcCallTurn { sequence: 2, due: None, recorded: true });
        (call_loop.tally, outcome)
    }

    #[test]
    fn a_reply_that_is_not_the_one_to_its_request_is_counted_apart() {
        type Spoil = fn(&mut [u8]) -> Result<usize, TransactionFailure>;
        let cases: [(IpcMeasureMode, Spoil, bool); 6] = [
            (IpcMeasureMode::Latency, |reply| Ok(reply.len()), true),
            (IpcMeasureMode::Throughput, |reply| Ok(reply.len()), true),
            // Another number, a short one, a server that saw another request.
            (
                IpcMeasureMode::Latency,
                |reply| {
                    reply[0] ^= 1;
                    Ok(reply.len())
                },
                false,
            ),
            (IpcMeasureMode::Latency, |reply| Ok(reply.len() - 1), false),
            (
                IpcMeasureMode::Latency,
                |reply| {
                    reply[28] = 0;
                    Ok(reply.len())
                },
                false,
            ),
            // One byte of the last page.
            (
                IpcMeasureMode::Throughput,
                |reply| {
                    reply[2 * PAGE - 1] ^= 1;
                    Ok(reply.len())
                },
                false,
            ),
        ];
        for (case, (mode, spoil, good)) in cases.into_iter().enumerate() {
            let (tally, outcome) = called(mode, 2 * PAGE, spoil);
            assert_eq!((tally.calls, tally.mismatches), (u64::from(good), u64::from(!good)), "{case}");
            assert_eq!((tally.failures, outcome), (0, IpcTurnOutcome::On), "{case}");
        }
    }

    #[test]
    fn a_failed_call_is_no_sample_and_ends_what_cannot_go_on() {
        let (tally, outcome) =
            called(IpcMeasureMode::Latency, 32, |_| Err(TransactionFailure::Refused("full".to_owned())));
        assert_eq!((tally.calls, tally.failures, outcome), (0, 1, IpcTurnOutcome::On));
        assert_eq!(tally.first_failure.as_deref(), Some("full"));
        let (tally, outcome) = called(IpcMeasureMode::Latency, 32, |_| Err(TransactionFailure::Gone));
        assert_eq!(
            (tally.calls, tally.failures, outcome),
            (0, 1, IpcTurnOutcome::Over(TransactionFailure::Gone))
        );
    }

    #[test]
    fn an_echo_tells_nothing_of_the_server() {
        let (told, _) = called(IpcMeasureMode::Latency, 32, |reply| Ok(reply.len()));
        assert_eq!((told.stayed + told.migrated, told.told), (1, 0));
        let (echo, _) = called(IpcMeasureMode::Throughput, 32, |reply| Ok(reply.len()));
        assert_eq!((echo.stayed + echo.migrated, echo.told), (0, 0));
    }
}
