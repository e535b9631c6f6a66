//! The processes of the tests: this test binary again, as a server or as a
//! client.

use crate::transaction::{EndpointHandle, EndpointPair, HandlerReply, RequestHandler, TransactionClient};
use crate::transports::find_transport;
use latscope_os::interruptions::{self, Interruptions};
use latscope_os::worker::{self, Lifetime, take_descriptor};
use latscope_process::leftover::{Leftover, Leftovers};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// Time in which every awaited event happens, even on a busy machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Operation that a request asks for: its first byte.
pub(super) const ECHO: u8 = 0;
pub(super) const REVERSED: u8 = 1;
pub(super) const ONE_WAY: u8 = 2;
pub(super) const HOW_MANY: u8 = 3;
pub(super) const DIE: u8 = 4;
pub(super) const HANG: u8 = 5;
pub(super) const TOO_LONG: u8 = 6;

/// Nanoseconds between interruptions of a process in a storm.
const STORM: Duration = Duration::from_millis(1);

/// Role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TransportProcessRole {
    /// Answers until the client ends.
    Server,
    /// Answers like [`Role::Server`], interrupted all the time.
    StormyServer,
    /// Calls until it is killed.
    Client,
    /// Calls, interrupted all the time, often enough.
    StormyClient,
    /// Starts a server and is its client until it is killed.
    Starter,
}

#[derive(Debug, Serialize, Deserialize)]
struct TransportProcessSpec {
    role: TransportProcessRole,
    transport: String,
    payload: usize,
    words: Vec<String>,
    descriptors: u32,
}

/// A process of the tests; killed when dropped.
pub(super) struct TransportProcess {
    child: Child,
    control: BufReader<UnixStream>,
}

impl Drop for TransportProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

impl TransportProcess {
    /// Starts a process and hands it its share of an endpoint pair.
    pub(super) fn start_role(
        role: TransportProcessRole,
        transport: &str,
        handle: EndpointHandle,
    ) -> TransportProcess {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(TIMEOUT)).unwrap();
        let theirs = OwnedFd::from(theirs);
        let descriptors: Vec<&OwnedFd> = std::iter::once(&theirs).chain(&handle.descriptors).collect();
        let test = concat!(module_path!(), "::endpoint_process");
        let test = test.split_once("::").unwrap().1;
        let arguments = [test, "--exact", "--nocapture", "--test-threads=1", "--skip", MARK];
        let child = worker::spawn(&arguments, &descriptors, Lifetime::WithParent).unwrap();
        let orders = TransportProcessSpec {
            role,
            transport: transport.to_string(),
            payload: handle.payload,
            words: handle.words,
            descriptors: handle.descriptors.len() as u32,
        };
        let mut control = BufReader::new(ours);
        writeln!(control.get_mut(), "{}", serde_json::to_string(&orders).unwrap()).unwrap();
        TransportProcess { child, control }
    }

    /// Returns the next line from the process.
    pub(super) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.control.read_line(&mut line).unwrap();
        line.trim().to_string()
    }

    /// Kills the process at once.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until the process has ended by itself, successfully, and returns the rest of its output.
    pub(super) fn wait_for_end(&mut self) -> String {
        let mut said = String::new();
        self.control.read_to_string(&mut said).expect("it goes on and on");
        assert!(self.child.wait().unwrap().success());
        said.trim().to_string()
    }
}

/// Returns the shares of both processes, and the values that have to be kept.
pub(super) fn split_pair(
    endpoint_pair: EndpointPair,
    payload: usize,
) -> (EndpointHandle, EndpointHandle, Leftovers) {
    let EndpointPair { server, client, words, leftovers, kept: _kept } = endpoint_pair;
    let server = EndpointHandle { descriptors: server, words: words.clone(), payload };
    (server, EndpointHandle { descriptors: client, words, payload }, leftovers)
}

/// Service that does what its requests ask for.
#[derive(Default)]
struct Obedient {
    one_way: u32,
    bytes: Vec<u8>,
}

impl RequestHandler for Obedient {
    fn handle_request(&mut self, request: &[u8]) -> HandlerReply<'_> {
        self.bytes = match request[0] {
            ECHO => return HandlerReply::Echo,
            REVERSED => request.iter().rev().skip(1).copied().collect(),
            ONE_WAY => {
                self.one_way += 1;
                return HandlerReply::None;
            }
            HOW_MANY => self.one_way.to_ne_bytes().to_vec(),
            DIE => {
                kill_process(getpid(), Signal::KILL).unwrap();
                unreachable!("killed");
            }
            HANG => {
                thread::sleep(TIMEOUT);
                return HandlerReply::None;
            }
            TOO_LONG => vec![0; request.len() * 2],
            other => panic!("a request for {other}"),
        };
        HandlerReply::Bytes(&self.bytes)
    }
}

/// A request of this kind, with contents that differ from turn to turn.
pub(super) fn make_request(kind: u8, turn: usize, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..length).map(|at| (turn.wrapping_mul(31) + at * 7 + (at >> 8)) as u8).collect();
    bytes[0] = kind;
    bytes
}

/// Calls with changing contents, each answer verified; how many.
pub(super) fn call_on(
    client: &mut dyn TransactionClient,
    payload: usize,
    mut go_on: impl FnMut(usize) -> bool,
) -> usize {
    let mut reply = vec![0; payload];
    let mut turn = 0;
    while go_on(turn) {
        let request = make_request(ECHO, turn, 4 + turn % (payload - 3));
        let length = client.call(&request, &mut reply).unwrap();
        assert_eq!(reply[..length], request, "turn {turn}");
        turn += 1;
    }
    turn
}

/// Mark of a process that the tests started. It is the name of a test to be skipped, which no test has.
const MARK: &str = "endpoint-process-of-a-test";

/// Runs the role of one of the processes, or, among the other tests, the test of the service.
#[test]
fn endpoint_process() {
    if !std::env::args().any(|argument| argument == MARK) {
        return the_service_does_what_it_is_asked();
    }
    let control = UnixStream::from(take_descriptor(0).unwrap());
    let mut control = BufReader::new(control);
    let mut line = String::new();
    control.read_line(&mut line).unwrap();
    let orders: TransportProcessSpec = serde_json::from_str(&line).unwrap();
    let descriptors = (1..=orders.descriptors).map(|index| take_descriptor(index).unwrap()).collect();
    let handle = EndpointHandle { descriptors, words: orders.words.clone(), payload: orders.payload };
    let said = match orders.role {
        TransportProcessRole::Server => run_server(&orders, handle),
        TransportProcessRole::StormyServer => {
            let _storm = Interruptions::start_periodic(STORM).unwrap();
            run_server(&orders, handle)
        }
        TransportProcessRole::Client => {
            let mut client = (find_transport(&orders.transport).unwrap().client)(handle).unwrap();
            call_on(&mut *client, orders.payload, |turn| report_calling(&mut control, turn)).to_string()
        }
        TransportProcessRole::StormyClient => stormy_client(&orders, handle),
        TransportProcessRole::Starter => starter(&orders, &mut control),
    };
    // A test that ended this process's peer may have gone itself; one that waits sees the end of the file.
    let _ = control.get_mut().write_all(said.as_bytes());
}

/// Reports the beginning to a waiting test.
fn report_calling(control: &mut BufReader<UnixStream>, turn: usize) -> bool {
    if turn == 10 {
        writeln!(control.get_mut(), "calling").unwrap();
    }
    true
}

fn run_server(orders: &TransportProcessSpec, handle: EndpointHandle) -> String {
    let mut server = (find_transport(&orders.transport).unwrap().server)(handle).unwrap();
    let mut service = Obedient::default();
    match server.serve_requests(&mut service) {
        Ok(()) => service.one_way.to_string(),
        Err(failure) => failure.to_string(),
    }
}

/// Interrupted a hundred times, in a thousand calls at least.
fn stormy_client(orders: &TransportProcessSpec, handle: EndpointHandle) -> String {
    let mut client = (find_transport(&orders.transport).unwrap().client)(handle).unwrap();
    let _storm = Interruptions::start_periodic(STORM).unwrap();
    let begun = Instant::now();
    let stormy =
        |turn| (turn < 1_000 || interruptions::interruption_count() < 100) && begun.elapsed() < TIMEOUT;
    call_on(&mut *client, orders.payload, stormy);
    assert!(interruptions::interruption_count() >= 100);
    String::from("weathered")
}

fn starter(orders: &TransportProcessSpec, control: &mut BufReader<UnixStream>) -> String {
    let transport = find_transport(&orders.transport).unwrap();
    let (server, client, leftovers) =
        split_pair(transport.endpoint_pair(orders.payload).unwrap(), orders.payload);
    let left: Vec<&Leftover> = leftovers.iter().collect();
    writeln!(control.get_mut(), "{}", serde_json::to_string(&left).unwrap()).unwrap();
    let _server = TransportProcess::start_role(TransportProcessRole::Server, &orders.transport, server);
    let mut client = (transport.client)(client).unwrap();
    call_on(&mut *client, orders.payload, |turn| report_calling(control, turn)).to_string()
}

fn the_service_does_what_it_is_asked() {
    let mut service = Obedient::default();
    assert_eq!(service.handle_request(&[ECHO, 7]), HandlerReply::Echo);
    assert_eq!(service.handle_request(&[REVERSED, 7, 8]), HandlerReply::Bytes(&[7, REVERSED]));
    assert_eq!(service.handle_request(&[ONE_WAY]), HandlerReply::None);
    assert_eq!(service.handle_request(&[HOW_MANY]), HandlerReply::Bytes(&1u32.to_ne_bytes()));
    assert_eq!(service.handle_request(&[TOO_LONG, 0]), HandlerReply::Bytes(&[0; 4]));
}
