//! The processes of a run: pairs of a server and a client. They are started, begin together after a barrier,
//! send their results, and are ended in any case.

use super::orders::{
    CallerOrder, ClientOrder, IpcClientResult, IpcPairOrder, IpcProcessOrder, IpcProcessResult,
    IpcServerResult, OWN_DESCRIPTORS, ServerOrder,
};
use super::passthrough;
use super::ping::BinderPingClient;
use super::point::{Caller, DurationStart, IpcCallerPoint, IpcMeasureMode, IpcPairPlacement};
use crate::prelude::*;
use anyhow::anyhow;
use latscope_exchange::binder;
use latscope_exchange::notify::poll;
use latscope_exchange::transaction::{EndpointPair, IpcTransport};
use latscope_os::worker::{self, Lifetime, MOST_DESCRIPTORS};
use latscope_process::guardian::Guardian;
use latscope_process::halted::{Standstill, is_halted, resume};
use latscope_process::role::{self, KilledOnDrop, MessageSocket};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::process::Child;

/// Rows that are measured together, each with its point.
pub type IpcPointGroup = Vec<(usize, IpcCallerPoint)>;

/// Outcome of a pair.
pub struct IpcPairOutcome {
    /// The number of the pair.
    pub pair: u64,
    /// Results of the client, or the reason why there are none.
    pub called: Result<IpcClientResult, String>,
    /// Results of the server, if it sent them.
    pub served: Option<IpcServerResult>,
    /// The device that stood in for that of the transport's name.
    pub other_device: Option<String>,
    /// True if client or server was stopped by a signal, and went on.
    pub halted: bool,
}

/// Time for a process to be set up, and for one whose partner is gone to end.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(3);

/// Time after its end in which a client may still wait for a reply.
const OVERTIME: Duration = Duration::from_secs(2);

/// Time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(500);

/// Calls by which inheritance is tried out, of each kind.
const TRIALS: u64 = 50;

/// First calls that are not recorded, if the plan does not state a number.
const WARM_UP: u64 = 100;

/// A process of a pair and the socket to it; ended when dropped.
struct IpcEndpointProcess {
    child: KilledOnDrop,
    messages: MessageSocket,
    /// True if the process has sent its last message, or is gone.
    done: bool,
    /// True if the process was stopped by a signal, and went on.
    halted: bool,
    standstill: Standstill,
}

impl IpcEndpointProcess {
    fn start(name: &str, own: &[&OwnedFd], endpoints: &[OwnedFd]) -> Result<IpcEndpointProcess> {
        let all: Vec<&OwnedFd> = own.iter().copied().chain(endpoints).collect();
        if all.len() >= MOST_DESCRIPTORS {
            bail!("the transport has {} descriptors, more than a process can inherit", endpoints.len());
        }
        let (child, messages) = role::start_process(&[super::ROLE.name, name], &all, Lifetime::WithParent)
            .with_context(|| format!("the {name}'s process does not start"))?;
        let (child, standstill) = (KilledOnDrop(child), Standstill::default());
        Ok(IpcEndpointProcess { child, messages, done: false, halted: false, standstill })
    }

    fn is_halted(&self) -> bool {
        is_halted(self.child.0.id())
    }

    fn send_order(&mut self, order: &IpcProcessOrder) -> Result<()> {
        self.messages.send_message(order).map_err(|_| self.how_it_ended())
    }

    /// Receives the next message of the process.
    fn receive_result(&mut self) -> Result<IpcProcessResult> {
        self.messages.receive_message()?.ok_or_else(|| self.how_it_ended())
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        self.messages.receive_answer(Some(READY_TIMEOUT))?.ok_or_else(|| self.how_it_ended())
    }

    /// Returns how the process ended; a process that hangs is killed first.
    fn how_it_ended(&mut self) -> anyhow::Error {
        self.done = true;
        let deadline = Instant::now() + Duration::from_millis(200);
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.0.try_wait() {
                return anyhow!("{status}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.0.kill();
        anyhow!("it does not answer")
    }
}

/// A pair: its processes, their orders and their results.
struct IpcProcessPair {
    number: u64,
    /// Endpoints, kept because dropping them removes their objects.
    _endpoints: EndpointPair,
    other_device: Option<String>,
    server: Option<IpcEndpointProcess>,
    client: IpcEndpointProcess,
    called: Option<Result<IpcClientResult, String>>,
    served: Option<IpcServerResult>,
    /// Time at which a client that did not notice the end of its server is killed.
    given_up: Option<Instant>,
}

/// The rules of a run that come from the step.
struct IpcSessionContext<'a, 'b> {
    bench: &'a Bench<'b>,
    step: PlanStep,
    memory: OwnedFd,
    bell: OwnedFd,
}

impl IpcSessionContext<'_, '_> {
    fn periodic(&self) -> Option<&Periodic> {
        self.step.periodic.as_ref()
    }

    fn warm_up(&self) -> u64 {
        self.periodic().map_or(WARM_UP, |periodic| periodic.warm_up)
    }
}

/// Runs a group to its end. `start` is called when all processes are ready.
///
/// # Errors
/// A process could not be started or set up; the text states the reason.
pub fn run_group(
    bench: &Bench,
    transport: &'static IpcTransport,
    group: &IpcPointGroup,
    start: impl FnOnce(),
) -> Result<Vec<IpcPairOutcome>> {
    let bell = bench.bell().map_or_else(|| eventfd(0, EventfdFlags::CLOEXEC), Ok)?;
    let memory = bench.memory().context("no histograms to hand on")?;
    let setting = IpcSessionContext { bench, step: bench.step().clone(), memory, bell };
    // Leftovers stay in the journal until the guardian ends with this run.
    let guardian = Guardian::default();
    let mut pairs = Vec::new();
    for number in pair_numbers(group) {
        pairs.push(start_pair(&setting, transport, group, number, &guardian)?);
    }
    start();
    for pair in &mut pairs {
        pair.client.send_order(&IpcProcessOrder::Go)?;
    }
    receive_results(&mut pairs, Duration::from_nanos(setting.bench.stop().limit_ns))?;
    Ok(pairs.into_iter().map(end_pair).collect())
}

/// The numbers of the pairs of a group.
fn pair_numbers(group: &IpcPointGroup) -> Vec<u64> {
    let mut numbers: Vec<u64> = group.iter().map(|(_, row)| row.pair).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Starts the processes of a pair, up to the barrier.
fn start_pair(
    setting: &IpcSessionContext,
    transport: &'static IpcTransport,
    group: &IpcPointGroup,
    number: u64,
    guardian: &Guardian,
) -> Result<IpcProcessPair> {
    let row = &group[0].1;
    let payload = (row.payload as usize).max(super::message::STAMPED).min(transport.max_payload);
    let endpoints = match &row.service {
        // Whom it meets is there without us.
        Some(service) => {
            BinderPingClient::for_service(service, transport.name, row.device.as_deref())?;
            EndpointPair::of_words([service.clone()].into_iter().chain(row.device.clone()).collect())
        }
        None => match &row.device {
            Some(device) => binder::endpoint_pair_on(device, payload),
            None => transport.endpoint_pair(payload),
        }?,
    };
    for leftover in endpoints.leftovers.iter() {
        guardian.journal_leftover(leftover)?;
    }
    let (near, far) = pair_cpus(row.placement, &setting.step.cpus, number);
    let common = |cpus: Vec<u32>, descriptors: usize| IpcPairOrder {
        transport: transport.name.to_owned(),
        mode: row.mode,
        words: endpoints.words.clone(),
        descriptors,
        payload,
        cpus,
        step: setting.step.clone(),
        epoch: setting.bench.epoch_ns(),
        timebase: setting.bench.timebase(),
        parent: std::process::id(),
        deadline: row.deadline,
        warm_up: setting.warm_up(),
    };
    let own = [&setting.memory, &setting.bell];
    debug_assert_eq!(own.len() as u32 + 1, OWN_DESCRIPTORS);
    let serves = transport.name != passthrough::NAME && row.service.is_none();
    let server = serves.then(|| -> Result<IpcEndpointProcess> {
        let mut server = IpcEndpointProcess::start("server", &own, &endpoints.server)?;
        let point = (row.mode == IpcMeasureMode::OneWay).then(|| point_of(group, number, |_| true)).flatten();
        let common = common(far.clone(), endpoints.server.len());
        server.send_order(&IpcProcessOrder::Serve(Box::new(ServerOrder { common, point })))?;
        Ok(server)
    });
    let mut server = server.transpose()?;
    let mut client = IpcEndpointProcess::start("client", &own, &endpoints.client)?;
    let process = server.as_ref().map(|server| server.child.0.id());
    let order = client_order(setting, group, number, common(near, endpoints.client.len()), process);
    client.send_order(&IpcProcessOrder::Call(Box::new(order)))?;
    // Some transports are made by both ends together: neither is ready alone.
    server.as_mut().map_or(Ok(()), IpcEndpointProcess::wait_until_ready).context("the server")?;
    client.wait_until_ready().context("the client")?;
    let stand_in = || binder::other_device(transport.name, &endpoints.words).map(str::to_owned);
    let other_device = if row.device.is_none() { stand_in() } else { None };
    let endpoints = EndpointPair { server: Vec::new(), client: Vec::new(), ..endpoints };
    let (called, served, given_up) = (None, None, None);
    Ok(IpcProcessPair {
        number,
        _endpoints: endpoints,
        other_device,
        server,
        client,
        called,
        served,
        given_up,
    })
}

fn client_order(
    setting: &IpcSessionContext,
    group: &IpcPointGroup,
    number: u64,
    common: IpcPairOrder,
    server: Option<u32>,
) -> ClientOrder {
    let row = &group[0].1;
    let stop = setting.bench.stop();
    let planned = setting.periodic().is_some();
    // In a survey time is short: what a point may take is enough.
    let (count, duration) =
        if planned { (stop.events, stop.limit_ns) } else { (stop.events, stop.limit_ns.min(stop.budget_ns)) };
    let of_pair = || group.iter().filter(|(_, row)| row.pair == number);
    let priority = of_pair().find_map(|(_, row)| row.caller.priority());
    // SCHED_FIFO first, as AOSP's tests have it.
    let wanted = [priority.map(Caller::Fifo), Some(Caller::Other)].into_iter().flatten();
    let callers = wanted.filter(|caller| of_pair().any(|(_, row)| row.caller == *caller)).map(|caller| {
        let at = |since| point_of(group, number, |row| row.caller == caller && row.since == since);
        let fresh = of_pair().any(|(_, row)| row.caller == caller && row.fresh);
        let point = at(DurationStart::Call).filter(|_| row.mode != IpcMeasureMode::OneWay);
        CallerOrder { caller, fresh, point, due: at(DurationStart::Due) }
    });
    ClientOrder {
        callers: callers.collect(),
        payload: row.payload as usize,
        count,
        duration,
        rate: row.rate,
        hops: row.hops,
        watched: row.watched,
        trials: if server.is_some() && planned && row.mode != IpcMeasureMode::Inversion { TRIALS } else { 0 },
        server,
        stops: setting.periodic().is_some_and(|periodic| periodic.stop_at_threshold),
        trace_marker: setting.bench.trace_marker().map(std::path::Path::to_owned),
        trace_switch: setting.bench.trace_switch().map(std::path::Path::to_owned),
        common,
    }
}

fn point_of(group: &IpcPointGroup, pair: u64, is: impl Fn(&IpcCallerPoint) -> bool) -> Option<usize> {
    group.iter().find(|(_, row)| row.pair == pair && is(row)).map(|(point, _)| *point)
}

/// The CPUs of a pair's client and of its server.
pub fn pair_cpus(placement: IpcPairPlacement, cpus: &[u32], pair: u64) -> (Vec<u32>, Vec<u32>) {
    let cpu = |index: u64| vec![cpus[index as usize % cpus.len()]];
    match placement {
        IpcPairPlacement::SameCore => (cpu(pair), cpu(pair)),
        IpcPairPlacement::TwoCores => (cpu(2 * pair), cpu(2 * pair + 1)),
        IpcPairPlacement::Free => (cpus.to_vec(), cpus.to_vec()),
    }
}

/// Receives messages until every client is done or gone. A process that stands still when its `time` is over goes on;
/// a client that does not end then is killed.
fn receive_results(pairs: &mut [IpcProcessPair], time: Duration) -> Result<()> {
    let began = Instant::now();
    while pairs.iter().any(|pair| !pair.client.done) {
        let ready = wait_for_messages(pairs)?;
        // It is known as long as they live.
        for process in pairs.iter_mut().flat_map(|pair| pair.server.iter_mut().chain([&mut pair.client])) {
            process.halted |= worker::was_halted(&process.child.0);
        }
        for (index, of_server) in ready {
            pairs[index].handle_message(of_server);
        }
        let now = Instant::now();
        let over = began.elapsed().saturating_sub(time);
        for pair in pairs.iter_mut().filter(|pair| !pair.client.done) {
            if over > Duration::ZERO {
                pair.hasten(over);
            }
            if pair.given_up.is_some_and(|given_up| now >= given_up) {
                let _ = pair.client.child.0.kill();
                pair.client.done = true;
                pair.called = Some(Err(pair.why_given_up()));
            }
        }
    }
    Ok(())
}

/// Waits for messages. Returns the index of each pair with a message, and true if it is the server's.
fn wait_for_messages(pairs: &[IpcProcessPair]) -> Result<Vec<(usize, bool)>> {
    let mut whose = Vec::new();
    let mut fds = Vec::new();
    for (index, pair) in pairs.iter().enumerate() {
        let server = pair.server.as_ref().map(|server| (server, true));
        for (process, of_server) in server.into_iter().chain([(&pair.client, false)]) {
            if !process.done {
                whose.push((index, of_server));
                fds.push(PollFd::new(&process.messages, PollFlags::IN));
            }
        }
    }
    poll(&mut fds, LOOK)?;
    Ok(whose.into_iter().zip(fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(who, _)| who).collect())
}

impl IpcProcessPair {
    fn handle_message(&mut self, of_server: bool) {
        let process = match &mut self.server {
            Some(server) if of_server => server,
            _ => &mut self.client,
        };
        let word = process.receive_result();
        process.done = true;
        match (of_server, word) {
            (true, Ok(IpcProcessResult::Served(served))) => self.served = Some(served),
            (false, Ok(IpcProcessResult::Called(called))) => self.called = Some(Ok(*called)),
            (false, Ok(_)) => self.called = Some(Err("the client speaks out of turn".to_owned())),
            (false, Err(error)) => self.called = Some(Err(format!("the client ended: {error}"))),
            (true, outcome) => {
                let how = outcome.map_or_else(|error| error.to_string(), |_| "it failed".to_owned());
                self.served = Some(IpcServerResult { ended: Some(how), ..IpcServerResult::default() });
            }
        }
        if of_server && !self.client.done {
            self.given_up = Some(Instant::now() + GRACE);
        }
    }

    /// Lets processes of the pair go on that stand still, and gives the client up some time after its own.
    fn hasten(&mut self, over: Duration) {
        for process in self.server.iter_mut().chain([&mut self.client]) {
            if process.standstill.note_look(process.is_halted()) {
                resume(process.child.0.id());
            }
        }
        if over > OVERTIME {
            self.given_up.get_or_insert_with(Instant::now);
        }
    }

    /// Reason why the client was given up.
    fn why_given_up(&self) -> String {
        match (&self.served, &self.server) {
            (Some(_), _) => format!("{}, and the client did not notice", self.servers_end()),
            (None, Some(server)) if server.is_halted() => {
                "the server stands still (stopped, or frozen), and the last call had no reply".to_owned()
            }
            _ => "the last call had no reply when the time was over".to_owned(),
        }
    }

    /// Description of the server's end.
    fn servers_end(&self) -> String {
        match self.served.as_ref().and_then(|served| served.ended.as_ref()) {
            Some(how) => format!("the server ended in mid-call: {how}"),
            None => "the server ended before the client did".to_owned(),
        }
    }
}

/// Ends a pair. A server whose client is gone sends its last message.
fn end_pair(mut pair: IpcProcessPair) -> IpcPairOutcome {
    // It exits by itself after its last word; its end of the transport goes with it.
    if !pair.client.is_halted() {
        let _ = wait_for(&mut pair.client.child.0);
    }
    if let Some(server) = pair.server.as_mut().filter(|server| !server.done) {
        let grace = if server.is_halted() { LOOK } else { GRACE };
        let _ = server.messages.set_timeout(Some(grace));
        pair.served = match server.receive_result() {
            Ok(IpcProcessResult::Served(served)) => Some(served),
            Ok(_) => None,
            // The client has noticed and told before its end was seen here.
            Err(error) => {
                pair.given_up = Some(Instant::now());
                Some(IpcServerResult { ended: Some(error.to_string()), ..IpcServerResult::default() })
            }
        };
    }
    let end = pair.servers_end();
    let called = pair.called.take().unwrap_or_else(|| Err("the client reported nothing".to_owned()));
    let called = called.map(|mut called| {
        // A client only sees that the other endpoint is gone: how it went is known here.
        if let Some(ended) = called.ended.as_mut().filter(|_| pair.given_up.is_some()) {
            *ended = format!("{end} ({ended})");
        }
        called
    });
    let halted = pair.client.halted || pair.server.as_ref().is_some_and(|server| server.halted);
    let (served, other_device) = (pair.served.take(), pair.other_device.take());
    IpcPairOutcome { pair: pair.number, called, served, other_device, halted }
}

fn wait_for(child: &mut Child) -> std::io::Result<()> {
    let deadline = Instant::now() + GRACE;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            return child.kill();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_share_no_cpu_as_long_as_there_are_enough() {
        let cpus = [3, 2, 1, 0];
        assert_eq!(pair_cpus(IpcPairPlacement::SameCore, &cpus, 1), (vec![2], vec![2]));
        assert_eq!(pair_cpus(IpcPairPlacement::TwoCores, &cpus, 1), (vec![1], vec![0]));
        assert_eq!(pair_cpus(IpcPairPlacement::TwoCores, &cpus, 2), (vec![3], vec![2]));
        assert_eq!(pair_cpus(IpcPairPlacement::Free, &cpus, 7).1, cpus);
    }
}
