//! The client's process: its callers take turns, at their own pace or at a
//! given one.

use super::caller::{CallLoop, IpcCallRules, IpcCallTurn, IpcClientChannel, IpcTurnOutcome};
use super::message::STAMPED;
use super::orders::{CallerOrder, ClientOrder, IpcClientResult, IpcProcessOrder, IpcProcessResult, handle};
use super::passthrough::{self, InProcess};
use super::ping::BinderPingClient;
use super::point::{Caller, IpcMeasureMode};
use super::server::{myself, place_thread};
use super::trial;
use crate::prelude::*;
use latscope_bench::recorder::Slots;
use latscope_bench::waits::{self, Measuring};
use latscope_core::report::Sampling;
use latscope_exchange::transaction::{TransactionClient, TransactionFailure};
use latscope_os::usage;
use latscope_os::worker::{self, take_descriptor};
use latscope_process::role::MessageSocket;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Runs the client's process: takes its order, waits for the start signal, calls, and sends its results.
///
/// # Errors
/// The process was not started by latscope itself.
pub fn main(worker: &mut MessageSocket) -> Result<()> {
    let Some(IpcProcessOrder::Call(order)) = worker.receive_message()? else {
        bail!("a client takes another order")
    };
    worker::die_with(order.common.parent)?;
    let prepared = match Prepared::from_order(&order) {
        Ok(prepared) => prepared,
        Err(error) => return Ok(worker.send_answer::<()>(&Err(error))?),
    };
    worker.send_answer(&Ok(()))?;
    let Some(IpcProcessOrder::Go) = worker.receive_message()? else { bail!("a client waits for the go") };
    let began = Some(myself("client"));
    Ok(worker.send_message(&IpcProcessResult::Called(Box::new(IpcClientResult {
        began,
        ..prepared.run_order(&order)?
    })))?)
}

/// A client that is set up.
struct Prepared {
    rules: IpcCallRules,
    slots: Slots,
    line: IpcClientChannel,
    call_loops: Vec<CallLoop>,
}

impl Prepared {
    fn from_order(order: &ClientOrder) -> Result<Prepared> {
        let shortfall = place_thread(&order.common.cpus)?;
        let slots = order.common.slots()?;
        let rules = IpcCallRules::from_order(order, take_descriptor(2).ok());
        let common = &order.common;
        let client: Box<dyn TransactionClient> = match (common.mode, common.words.first()) {
            (IpcMeasureMode::Ping, Some(service)) => {
                let device = common.words.get(1).map(String::as_str);
                Box::new(BinderPingClient::for_service(service, &common.transport, device)?)
            }
            _ if common.transport == passthrough::NAME => {
                Box::new(InProcess::new(common.mode, common.payload))
            }
            _ => (common.transport()?.client)(handle(common)?)?,
        };
        let writer = |point: Option<usize>| -> Option<HistogramSlotWriter> {
            point.map(|point| slots.writer(point, Sampling::Event))
        };
        let call_loop = |order: &CallerOrder| {
            let mut call_loop = CallLoop::new(order.clone(), writer(order.point), writer(order.due));
            if order.caller == Caller::Other {
                call_loop.tally.shortfall.clone_from(&shortfall);
            }
            call_loop
        };
        let call_loops = order.callers.iter().map(call_loop).collect();
        let payload = order.payload.min(order.common.payload);
        Ok(Prepared { rules, slots, line: IpcClientChannel::new(client, payload), call_loops })
    }

    fn run_order(self, order: &ClientOrder) -> Result<IpcClientResult> {
        let Prepared { rules, slots, line, call_loops } = self;
        let rules = &rules;
        std::thread::scope(|scope| {
            let callers = call_loops
                .into_iter()
                .map(|call_loop| -> Result<CallerPlace> {
                    // Each end stays with its thread, where the transport wants that.
                    let own = line.another().transpose()?.filter(|_| call_loop.order.caller != Caller::Other);
                    let kept = call_loop.order.caller != Caller::Other && !call_loop.order.fresh;
                    let thread = kept.then(|| {
                        let (give, jobs) = sync_channel::<IpcTurnTask>(1);
                        let (back, take) = sync_channel(1);
                        let work = move || {
                            let _measuring = Measuring::register_thread();
                            jobs.iter().for_each(|job| back.send(job.run_turn(rules)).unwrap_or(()));
                        };
                        let builder = std::thread::Builder::new().name("fifo-caller".to_owned());
                        builder.spawn_scoped(scope, work).context("no thread for the caller")?;
                        anyhow::Ok((give, take))
                    });
                    Ok(CallerPlace { call_loop: Some(call_loop), own, thread: thread.transpose()? })
                })
                .collect::<Result<Vec<_>>>()?;
            let mut endpoint =
                ClientEndpoint { rules, slots, callers, line: Some(line), sequence: 0, ended: None };
            endpoint.measure_rounds(order)
        })
    }
}

/// A caller's place: in this thread, in one of its own, or in a new one for each call.
struct CallerPlace {
    call_loop: Option<CallLoop>,
    own: Option<IpcClientChannel>,
    thread: Option<(SyncSender<IpcTurnTask>, Receiver<IpcTurnTask>)>,
}

/// A turn that is handed to a thread and back.
struct IpcTurnTask {
    call_loop: CallLoop,
    line: IpcClientChannel,
    turn: IpcCallTurn,
    outcome: IpcTurnOutcome,
}

impl IpcTurnTask {
    fn run_turn(mut self, rules: &IpcCallRules) -> IpcTurnTask {
        self.outcome = self.call_loop.take_turn(rules, &mut self.line, self.turn);
        self
    }
}

/// All callers of a client.
struct ClientEndpoint<'a> {
    rules: &'a IpcCallRules,
    slots: Slots,
    callers: Vec<CallerPlace>,
    /// Line that callers without one of their own use in turn.
    line: Option<IpcClientChannel>,
    sequence: u64,
    ended: Option<TransactionFailure>,
}

impl ClientEndpoint<'_> {
    fn measure_rounds(&mut self, order: &ClientOrder) -> Result<IpcClientResult> {
        let warm_up = order.common.warm_up;
        let going = (0..warm_up).all(|_| !self.slots.stopping() && self.round(None, false));
        let server = || order.server.and_then(|process| usage::cpu_ns_of(process).ok()).unwrap_or(0);
        let (servers, first) = (server(), self.sequence);
        let faults = usage::process_counts();
        let (waited, cpu) = (IpcRunDelays::so_far(order), usage::process_cpu_ns());
        let begin = monotonic_ns();
        if going {
            self.run_rounds(order);
        }
        let until = monotonic_ns();
        let server_cpu = server().saturating_sub(servers);
        let client_cpu = usage::process_cpu_ns().saturating_sub(cpu);
        let waited = IpcRunDelays::so_far(order).since(&waited);
        let transactions = (self.sequence - first) / 2;
        let after = usage::process_counts();
        let faults = after.minor_faults + after.major_faults - faults.minor_faults - faults.major_faults;
        let mut called = IpcClientResult {
            server_cpu,
            server_delay: waited.server,
            client_cpu,
            transactions,
            faults,
            from: begin,
            until,
            ..IpcClientResult::default()
        };
        if self.ended.is_none() && !self.slots.stopping() && order.trials > 0 {
            self.try_inheritance(order, &mut called);
        }
        called.ended = self.ended.as_ref().map(TransactionFailure::to_string);
        let call_loops = self.callers.iter_mut().filter_map(|caller| caller.call_loop.take());
        called.tallies = call_loops.map(|call_loop| final_tally(call_loop, &waited)).collect();
        Ok(called)
    }

    fn run_rounds(&mut self, order: &ClientOrder) {
        let begin = monotonic_ns() + LEAD_NS;
        let until = begin.saturating_add(order.duration);
        let interval = order.rate.map(|rate| 1_000_000_000 / rate.max(1));
        let mut round = 0;
        while round < order.count && !self.slots.stopping() {
            let due = interval.map(|interval| (begin + round * interval, interval));
            let late = due.map_or_else(monotonic_ns, |(due, _)| due) >= until;
            if late || !self.round(due, true) {
                return;
            }
            round += 1;
        }
    }

    /// Makes a call from each caller; returns true if another round is to follow.
    fn round(&mut self, due: Option<(u64, u64)>, recorded: bool) -> bool {
        let callers = self.callers.len() as u64;
        for index in 0..self.callers.len() {
            let due = due.map(|(due, interval)| due + index as u64 * interval / callers);
            // The number after it is for the call that follows a request without a reply.
            self.sequence += 2;
            match self.make_call(index, IpcCallTurn { sequence: self.sequence, due, recorded }) {
                IpcTurnOutcome::On => {}
                IpcTurnOutcome::Stop => {
                    self.slots.ask_to_stop();
                    return false;
                }
                IpcTurnOutcome::Over(failure) => {
                    self.ended = Some(failure);
                    return false;
                }
            }
        }
        true
    }

    fn make_call(&mut self, index: usize, turn: IpcCallTurn) -> IpcTurnOutcome {
        let caller = &mut self.callers[index];
        let shared = caller.own.is_none();
        let call_loop = caller.call_loop.take().expect("it was put back after its turn");
        let line = caller.own.take().or_else(|| self.line.take()).expect("it was put back after the turn");
        let job = IpcTurnTask { call_loop, line, turn, outcome: IpcTurnOutcome::On };
        let job = match &caller.thread {
            Some((give, take)) => {
                give.send(job).ok().and_then(|()| take.recv().ok()).expect("a caller's thread does not panic")
            }
            None if job.call_loop.order.fresh => call_in_new_thread(job, self.rules),
            None => job.run_turn(self.rules),
        };
        caller.call_loop = Some(job.call_loop);
        if shared {
            self.line = Some(job.line)
        } else {
            caller.own = Some(job.line)
        }
        job.outcome
    }

    fn try_inheritance(&mut self, order: &ClientOrder, called: &mut IpcClientResult) {
        let Some(mut line) = self.line.take() else { return };
        line.resize(STAMPED);
        let priority = order.callers.iter().find_map(|caller| caller.caller.priority());
        (called.real_time, called.nice) = trial::run_trials(line, order.trials, priority, &mut self.sequence);
    }
}

/// Time between the last warm-up and the first turn.
const LEAD_NS: u64 = 100_000;

/// Makes a call from a new thread that does nothing else.
fn call_in_new_thread(job: IpcTurnTask, rules: &IpcCallRules) -> IpcTurnTask {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let _measuring = Measuring::register_thread();
            match job.line.another() {
                None => job.run_turn(rules),
                // An end of its own, as long as the thread lives.
                Some(Ok(own)) => {
                    let IpcTurnTask { call_loop, line, turn, outcome } = job;
                    let done = IpcTurnTask { call_loop, line: own, turn, outcome }.run_turn(rules);
                    IpcTurnTask { line, ..done }
                }
                Some(Err(failure)) => IpcTurnTask { outcome: IpcTurnOutcome::Over(failure), ..job },
            }
        });
        thread.join().expect("a caller's thread does not panic")
    })
}

/// Times for which the participants have waited for a CPU, ns.
struct IpcRunDelays {
    /// Wait of the process' first thread, which is that of the SCHED_OTHER caller.
    other: Option<u64>,
    /// Wait of the threads of the SCHED_FIFO caller.
    fifo: Option<u64>,
    server: Option<u64>,
}

impl IpcRunDelays {
    /// Reads the waits so far from files; not to be used between stamps.
    fn so_far(order: &ClientOrder) -> IpcRunDelays {
        let other = waits::own_run_delay();
        let fifo = other.map(|_| waits::of_measuring());
        IpcRunDelays { other, fifo, server: order.server.map_or(Some(0), waits::of_process) }
    }

    fn since(&self, before: &IpcRunDelays) -> IpcRunDelays {
        let more = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        IpcRunDelays {
            other: more(self.other, before.other),
            fifo: more(self.fifo, before.fifo),
            server: more(self.server, before.server),
        }
    }
}

fn final_tally(call_loop: CallLoop, waited: &IpcRunDelays) -> super::orders::IpcCallTally {
    let run_delay = if call_loop.order.caller == Caller::Other { waited.other } else { waited.fifo };
    let blocks = |writer: Option<HistogramSlotWriter>| {
        writer.map(HistogramSlotWriter::into_blocks).unwrap_or_default()
    };
    let mut tally = call_loop.tally;
    tally.run_delay = run_delay;
    (tally.blocks, tally.due_blocks) = (blocks(call_loop.writer), blocks(call_loop.due));
    tally
}
