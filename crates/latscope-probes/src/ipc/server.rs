//! The server's process: answers the client's requests, and reports its results.

use super::hog::Hog;
use super::message::{self, ONE_WAY, Reply, Request, STATE, VERBOSE, carried};
use super::orders::{Common, Order, Served, ServerOrder, Word, handle};
use super::point::Mode;
use crate::prelude::*;
use latscope_core::report::{Hop, Sampling};
use latscope_exchange::transaction::{Answer, Service};
use latscope_os::sched::{Policy, State};
use latscope_os::worker;
use latscope_process::role::Messages;

/// Service that answers the requests of one client.
pub(crate) struct Attendant {
    mode: Mode,
    reply: Vec<u8>,
    last: u64,
    thread: u32,
    receiver: Option<Receiver>,
    hog: Option<Hog>,
    served: Served,
}

/// Recorder of arriving requests, where the way of a request is measured.
pub struct Receiver {
    /// Writer of the durations.
    pub writer: Writer,
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
    fn of(order: &ServerOrder) -> Result<Option<Receiver>> {
        let Some(point) = order.point else { return Ok(None) };
        let writer = order.common.slots()?.writer(point, Sampling::Event);
        writer.adopt();
        let Common { epoch, warm_up, deadline, .. } = order.common;
        Ok(Some(Receiver { writer, epoch, warm_up, deadline }))
    }
}

impl Attendant {
    /// Returns an attendant that answers payloads of up to `payload` bytes.
    pub fn new(mode: Mode, payload: usize, receiver: Option<Receiver>) -> Attendant {
        let reply = vec![0; payload.max(message::STAMPED)];
        Attendant { mode, reply, last: 0, thread: 0, receiver, hog: None, served: Served::default() }
    }

    /// Forgets the thread's id, since another thread may serve the next request.
    pub(crate) fn change_thread(&mut self) {
        self.thread = 0;
    }

    /// Records how long a request was on its way.
    // Out of the way of an echo, which is measured in nanoseconds.
    #[inline(never)]
    fn receive(&mut self, request: &[u8], now: u64) {
        let (Some(receiver), Some(sent)) = (&mut self.receiver, message::stamped(request)) else { return };
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
        let reply = Reply {
            sequence: carried(sequence, length),
            cpu: rustix::thread::sched_getcpu() as u32,
            server: self.state(flags),
            thread: self.thread,
            verified,
        };
        let length = length.min(self.reply.len());
        reply.write(&mut self.reply[..length]);
        &self.reply[..length]
    }

    fn state(&mut self, flags: u32) -> Option<State> {
        if flags & (STATE | VERBOSE) == 0 {
            return None;
        }
        if self.thread == 0 {
            self.thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        }
        sched::state(0).ok()
    }
}

impl Service for Attendant {
    fn answer(&mut self, request: &[u8]) -> Answer<'_> {
        let now = if self.receiver.is_some() { monotonic_ns() } else { 0 };
        let asked = Request::read(request);
        let verified = asked.is_next(self.last, request.len());
        self.last = asked.sequence;
        self.served.requests += 1;
        self.served.unexpected += u64::from(!verified);
        if self.receiver.is_some() {
            self.receive(request, now);
        }
        if asked.flags & ONE_WAY != 0 {
            return Answer::None;
        }
        if let Some(hog) = self.hog.as_ref().filter(|_| asked.flags & STATE == 0) {
            hog.disturb();
        }
        if self.mode == Mode::Throughput && asked.flags & STATE == 0 && verified {
            return Answer::Echo;
        }
        Answer::Bytes(self.reply(asked.sequence, asked.flags, request.len(), verified))
    }
}

/// Puts the calling thread on its CPUs and under SCHED_OTHER. Returns the scheduling that it did not get, in
/// words.
pub fn settle(cpus: &[u32]) -> Result<Option<String>> {
    sched::pin(cpus).with_context(|| format!("CPUs {cpus:?} cannot be used"))?;
    // What a run is started under (chrt, nice) is not what it measures.
    let set = sched::set_policy(Policy::Other);
    let state = sched::state(0)?;
    let wanted = State::default();
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
pub(crate) fn myself(role: &str) -> Hop {
    let State { policy, priority, nice } = sched::state(0).unwrap_or_default();
    Hop {
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
pub fn main(worker: &mut Messages) -> Result<()> {
    let Some(Order::Serve(order)) = worker.receive()? else { bail!("a server takes another order") };
    worker::die_with(order.common.parent)?;
    match serve(&order, worker) {
        Ok(served) => worker.send(&Word::Served(served))?,
        Err(error) => worker.answer::<()>(&Err(error))?,
    }
    Ok(())
}

fn serve(order: &ServerOrder, worker: &mut Messages) -> Result<Served> {
    let shortfall = settle(&order.common.cpus)?;
    let receiver = Receiver::of(order)?;
    let transport = order.common.transport()?;
    let mut server = (transport.server)(handle(&order.common)?)?;
    let mut attendant = Attendant::new(order.common.mode, order.common.payload, receiver);
    attendant.served.shortfall = shortfall;
    attendant.hog = (order.common.mode == Mode::Inversion).then(Hog::start).transpose()?;
    attendant.served.began = Some(myself("service"));
    worker.answer(&Ok(()))?;
    let outcome = server.serve(&mut attendant);
    let blocks = attendant.receiver.take().map(|receiver| receiver.writer.into_blocks());
    let ended = outcome.err().map(|failure| failure.to_string());
    Ok(Served { blocks: blocks.unwrap_or_default(), ended, ..attendant.served })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(attendant: &mut Attendant, sequence: u64, flags: u32, length: usize) -> Option<Reply> {
        let mut request = vec![0; length];
        Request { sequence, flags, ..Request::default() }.write(&mut request);
        match attendant.answer(&request) {
            Answer::Bytes(bytes) => {
                assert_eq!(bytes.len(), length);
                Some(Reply::read(bytes))
            }
            Answer::Echo | Answer::None => None,
        }
    }

    #[test]
    fn a_repeated_request_is_not_what_is_expected() {
        let mut attendant = Attendant::new(Mode::Latency, 64, None);
        let first = ask(&mut attendant, 1, STATE, 64).unwrap();
        assert!(first.verified && first.sequence == 1);
        assert_eq!(first.server, sched::state(0).ok());
        assert_ne!(first.thread, 0);
        assert!(!ask(&mut attendant, 1, 0, 64).unwrap().verified);
        assert_eq!((attendant.served.requests, attendant.served.unexpected), (2, 1));
    }

    #[test]
    fn throughput_is_echoed_and_what_is_unexpected_is_not() {
        let mut attendant = Attendant::new(Mode::Throughput, 64, None);
        assert_eq!(ask(&mut attendant, 1, 0, 64), None);
        assert!(!ask(&mut attendant, 1, 0, 64).unwrap().verified);
    }
}
