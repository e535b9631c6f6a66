//! The server's process: answers the client's requests, and reports its results.

use super::hog::Hog;
use super::message::{self, IpcReplyHeader, IpcRequestHeader, ONE_WAY, STATE, VERBOSE, carried};
use super::orders::{IpcPairOrder, IpcProcessOrder, IpcProcessResult, IpcServerResult, ServerOrder, handle};
use super::point::IpcMeasureMode;
use crate::prelude::*;
use latscope_core::report::{Sampling, TransactionHop};
use latscope_exchange::transaction::{HandlerReply, RequestHandler};
use latscope_os::sched::{ThreadSchedPolicy, ThreadSchedState};
use latscope_os::worker;
use latscope_process::role::MessageSocket;

/// Service that answers the requests of one client.
pub(crate) struct Attendant {
    mode: IpcMeasureMode,
    reply: Vec<u8>,
    last: u64,
    thread: u32,
    receiver: Option<Receiver>,
    hog: Option<Hog>,
    served: IpcServerResult,
}

/// Recorder of arriving requests, where the way of a request is measured.
pub struct Receiver {
    /// Writer of the durations.
    pub writer: HistogramSlotWriter,
    /// `CLOCK_MONOTONIC` at the epoch of the run.
    pub epoch: u64,
    /// First requests that are not recorded.
    pub warm_up: u64,
    /// Duration above which a request misses, ns.
    pub deadline: u64,
}

impl Receiver {
    /// Returns the recorder of requests, if the order states a point for them.
    ///
    /// # Errors
    /// The histograms were not inherited.
    fn from_order(order: &ServerOrder) -> Result<Option<Receiver>> {
        let Some(point) = order.point else { return Ok(None) };
        let writer = order.common.slots()?.writer(point, Sampling::Event);
        writer.adopt();
        let IpcPairOrder { epoch, warm_up, deadline, .. } = order.common;
        Ok(Some(Receiver { writer, epoch, warm_up, deadline }))
    }
}

impl Attendant {
    /// Returns an attendant that answers payloads of up to `payload` bytes.
    pub fn new(mode: IpcMeasureMode, payload: usize, receiver: Option<Receiver>) -> Attendant {
        let reply = vec![0; payload.max(message::STAMPED)];
        Attendant { mode, reply, last: 0, thread: 0, receiver, hog: None, served: IpcServerResult::default() }
    }

    /// Forgets the thread's id, since another thread may serve the next request.
    pub(crate) fn change_thread(&mut self) {
        self.thread = 0;
    }

    /// Records how long a request was on its way.
    // Out of the way of an echo, which is measured in nanoseconds.
    #[inline(never)]
    fn record_request(&mut self, request: &[u8], now: u64) {
        let (Some(receiver), Some(sent)) = (&mut self.receiver, message::read_stamp(request)) else { return };
        if receiver.warm_up > 0 {
            receiver.warm_up -= 1;
            return;
        }
        let value = now.saturating_sub(sent);
        let sample = Exceedance { turn: self.served.requests, at: now, value };
        let missed = u64::from(value > receiver.deadline);
        receiver.writer.record_event(sample, receiver.epoch, missed, 1);
        self.served.recorded += 1;
        self.served.misses += missed;
    }

    /// Returns the reply to a request of `length` bytes that is not echoed.
    // As above.
    #[inline(never)]
    fn reply(&mut self, sequence: u64, flags: u32, length: usize, verified: bool) -> &[u8] {
        let reply = IpcReplyHeader {
            sequence: carried(sequence, length),
            cpu: rustix::thread::sched_getcpu() as u32,
            server: self.state_if_requested(flags),
            thread: self.thread,
            verified,
        };
        let length = length.min(self.reply.len());
        reply.write_to(&mut self.reply[..length]);
        &self.reply[..length]
    }

    fn state_if_requested(&mut self, flags: u32) -> Option<ThreadSchedState> {
        if flags & (STATE | VERBOSE) == 0 {
            return None;
        }
        if self.thread == 0 {
            self.thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        }
        sched::sched_state(0).ok()
    }
}

impl RequestHandler for Attendant {
    fn handle_request(&mut self, request: &[u8]) -> HandlerReply<'_> {
        let now = if self.receiver.is_some() { monotonic_ns() } else { 0 };
        let asked = IpcRequestHeader::read_from(request);
        let verified = asked.is_next(self.last, request.len());
        self.last = asked.sequence;
        self.served.requests += 1;
        self.served.unexpected += u64::from(!verified);
        if self.receiver.is_some() {
            self.record_request(request, now);
        }
        if asked.flags & ONE_WAY != 0 {
            return HandlerReply::None;
        }
        if let Some(hog) = self.hog.as_ref().filter(|_| asked.flags & STATE == 0) {
            hog.disturb();
        }
        if self.mode == IpcMeasureMode::Throughput && asked.flags & STATE == 0 && verified {
            return HandlerReply::Echo;
        }
        HandlerReply::Bytes(self.reply(asked.sequence, asked.flags, request.len(), verified))
    }
}

/// Puts the calling thread on its CPUs and under SCHED_OTHER. Returns the scheduling that it did not get, in
/// words.
pub fn place_thread(cpus: &[u32]) -> Result<Option<String>> {
    sched::pin(cpus).with_context(|| format!("CPUs {cpus:?} cannot be used"))?;
    // What a run is started under (chrt, nice) is not what it measures.
    let set = sched::set_policy(ThreadSchedPolicy::Other);
    let state = sched::sched_state(0)?;
    let wanted = ThreadSchedState::default();
    let why = || set.err().map(|error| format!(": {error}")).unwrap_or_default();
    Ok((state != wanted).then(|| {
        format!(
            "ran with policy {}, nice {} instead of SCHED_OTHER, nice 0{}",
            state.policy,
            state.nice,
            why()
        )
    }))
}

/// Returns the current state of the calling thread.
pub(crate) fn myself(role: &str) -> TransactionHop {
    let ThreadSchedState { policy, priority, nice } = sched::sched_state(0).unwrap_or_default();
    TransactionHop {
        role: role.to_owned(),
        pid: std::process::id(),
        tid: rustix::thread::gettid().as_raw_nonzero().get() as u32,
        cpu: rustix::thread::sched_getcpu() as u32,
        policy,
        priority,
        nice,
    }
}

/// Runs the server's process: takes its order, and answers until the client is gone.
///
/// # Errors
/// The process was not started by latscope itself.
pub fn main(worker: &mut MessageSocket) -> Result<()> {
    let Some(IpcProcessOrder::Serve(order)) = worker.receive_message()? else {
        bail!("a server takes another order")
    };
    worker::die_with(order.common.parent)?;
    match serve_requests(&order, worker) {
        Ok(served) => worker.send_message(&IpcProcessResult::Served(served))?,
        Err(error) => worker.send_answer::<()>(&Err(error))?,
    }
    Ok(())
}

fn serve_requests(order: &ServerOrder, worker: &mut MessageSocket) -> Result<IpcServerResult> {
    let shortfall = place_thread(&order.common.cpus)?;
    let receiver = Receiver::from_order(order)?;
    let transport = order.common.transport()?;
    let mut server = (transport.server)(handle(&order.common)?)?;
    let mut attendant = Attendant::new(order.common.mode, order.common.payload, receiver);
    attendant.served.shortfall = shortfall;
    attendant.hog = (order.common.mode == IpcMeasureMode::Inversion).then(Hog::start_thread).transpose()?;
    attendant.served.began = Some(myself("service"));
    worker.send_answer(&Ok(()))?;
    let outcome = server.serve_requests(&mut attendant);
    let blocks = attendant.receiver.take().map(|receiver| receiver.writer.into_blocks());
    let ended = outcome.err().map(|failure| failure.to_string());
    Ok(IpcServerResult { blocks: blocks.unwrap_or_default(), ended, ..attendant.served })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(attendant: &mut Attendant, sequence: u64, flags: u32, length: usize) -> Option<IpcReplyHeader> {
        let mut request = vec![0; length];
        IpcRequestHeader { sequence, flags, ..IpcRequestHeader::default() }.write_to(&mut request);
        match attendant.handle_request(&request) {
            HandlerReply::Bytes(bytes) => {
                assert_eq!(bytes.len(), length);
                Some(IpcReplyHeader::read_from(bytes))
            }
            HandlerReply::Echo | HandlerReply::None => None,
        }
    }

    #[test]
    fn a_repeated_request_is_not_what_is_expected() {
        let mut attendant = Attendant::new(IpcMeasureMode::Latency, 64, None);
        let first = ask(&mut attendant, 1, STATE, 64).unwrap();
        assert!(first.verified && first.sequence == 1);
        assert_eq!(first.server, sched::sched_state(0).ok());
        assert_ne!(first.thread, 0);
        assert!(!ask(&mut attendant, 1, 0, 64).unwrap().verified);
        assert_eq!((attendant.served.requests, attendant.served.unexpected), (2, 1));
    }

    #[test]
    fn throughput_is_echoed_and_what_is_unexpected_is_not() {
        let mut attendant = Attendant::new(IpcMeasureMode::Throughput, 64, None);
        assert_eq!(ask(&mut attendant, 1, 0, 64), None);
        assert!(!ask(&mut attendant, 1, 0, 64).unwrap().verified);
    }
}
