//! Requirements on every transport, between real processes.

mod processes;

use super::{TRANSPORTS, find_transport};
use crate::skipped::{skipped, skipped_in_part};
use crate::transaction::{EndpointHandle, IpcTransport, TransactionClient, TransactionFailure};
use latscope_process::leftover::{Leftover, Leftovers};
use processes::*;
use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// A server in a process of its own, and its client here.
struct ClientServerPair {
    client: Option<Box<dyn TransactionClient>>,
    server: TransportProcess,
    payload: usize,
    leftovers: Leftovers,
}

impl ClientServerPair {
    /// `None` where this machine cannot: then the reason and the remedy are given.
    fn start_pair(transport: &IpcTransport, payload: usize) -> Option<ClientServerPair> {
        let endpoint_pair = match transport.endpoint_pair(payload) {
            Ok(endpoint_pair) => endpoint_pair,
            Err(unavailable) => {
                assert!(!unavailable.reason.is_empty() && !unavailable.remedy.is_empty());
                eprintln!("{} at {payload} bytes: {unavailable}: {}", transport.name, unavailable.remedy);
                return None;
            }
        };
        let (server, client, leftovers) = split_pair(endpoint_pair, payload);
        let server = TransportProcess::start_role(TransportProcessRole::Server, transport.name, server);
        let client = Some((transport.client)(client).unwrap());
        Some(ClientServerPair { client, server, payload, leftovers })
    }

    fn client(&mut self) -> &mut dyn TransactionClient {
        &mut **self.client.as_mut().unwrap()
    }

    fn call(&mut self, kind: u8, length: usize) -> Result<Vec<u8>, TransactionFailure> {
        let mut reply = vec![0; self.payload];
        let answer = self.client().call(&make_request(kind, 1, length), &mut reply)?;
        reply.truncate(answer);
        Ok(reply)
    }

    /// Ends the client, waits for the server to end, and returns the last report of the server.
    fn end_client(mut self) -> String {
        self.client = None;
        self.server.wait_for_end()
    }
}

/// Runs a function that must end within the timeout, in a thread.
fn run_with_timeout<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(what()));
    told.recv_timeout(TIMEOUT).expect("it hangs")
}

fn bytes_come_back_as_they_were(transport: &IpcTransport) {
    for size in [4, 31, 4096, 65_507, 65_536] {
        let Some(mut pair) = ClientServerPair::start_pair(transport, size) else {
            assert!(size > 4096 || transport.name == "vsock", "{} is missing", transport.name);
            skipped_in_part(transport.name, &format!("it carries no {size} bytes here"));
            continue;
        };
        for turn in 0..50 {
            let bytes = make_request(ECHO, turn, size);
            let mut reply = vec![0; size];
            assert_eq!(pair.client().call(&bytes, &mut reply), Ok(size));
            assert_eq!(reply, bytes, "{size} bytes, turn {turn}");
        }
        pair.end_client();
    }
}

fn a_thousand_different_ones_are_answered(mut pair: ClientServerPair) {
    let payload = pair.payload;
    assert_eq!(call_on(pair.client(), payload, |turn| turn < 1_000), 1_000);
    assert_eq!(pair.end_client(), "0");
}

fn other_bytes_can_be_answered(mut pair: ClientServerPair) {
    for length in [4, 5, 1000, pair.payload] {
        let mut expected = make_request(REVERSED, 1, length);
        expected.reverse();
        assert_eq!(pair.call(REVERSED, length).unwrap(), expected[1..]);
    }
    pair.end_client();
}

fn what_is_too_long_is_refused_and_the_next_succeeds(mut pair: ClientServerPair) {
    let refused = |result| assert!(matches!(result, Err(TransactionFailure::Refused(_))), "{result:?}");
    let (over, mut reply) = (vec![ECHO; pair.payload + 1], [0; 16]);
    refused(pair.client().call(&over, &mut reply));
    refused(pair.client().call(&[], &mut reply));
    refused(pair.client().call(&make_request(ECHO, 1, 17), &mut reply));
    let longest = make_request(ECHO, 1, pair.payload);
    refused(pair.client().call(&longest, &mut reply));
    let bytes = make_request(ECHO, 2, 16);
    assert_eq!(pair.client().call(&bytes, &mut reply), Ok(16));
    assert_eq!(reply[..], bytes);
    pair.end_client();
}

fn an_answer_over_the_limit_ends_the_server(mut pair: ClientServerPair) {
    let payload = pair.payload;
    let (result, server) =
        run_with_timeout(move || (pair.call(TOO_LONG, payload), pair.server.wait_for_end()));
    assert_eq!(result, Err(TransactionFailure::Gone));
    assert!(server.contains("this endpoint pair is for"), "{server}");
}

fn a_server_killed_in_a_call_is_gone(mut pair: ClientServerPair) {
    let results = run_with_timeout(move || [pair.call(DIE, 4), pair.call(ECHO, 4), pair.call(ECHO, 4)]);
    assert!(results.iter().all(|result| *result == Err(TransactionFailure::Gone)), "{results:?}");
}

fn a_server_killed_between_calls_is_gone(mut pair: ClientServerPair) {
    pair.call(ECHO, 4).unwrap();
    pair.server.kill();
    assert_eq!(run_with_timeout(move || pair.call(ECHO, 4)), Err(TransactionFailure::Gone));
}

fn a_server_ends_with_its_killed_client(transport: &IpcTransport) {
    let (server, client, _leftovers) = split_pair(transport.endpoint_pair(64).unwrap(), 64);
    let mut server = TransportProcess::start_role(TransportProcessRole::Server, transport.name, server);
    let mut client = TransportProcess::start_role(TransportProcessRole::Client, transport.name, client);
    assert_eq!(client.next_line(), "calling");
    client.kill();
    assert_eq!(server.wait_for_end(), "0");
}

fn interruptions_do_no_harm(transport: &IpcTransport) {
    let (server, client, _leftovers) = split_pair(transport.endpoint_pair(4096).unwrap(), 4096);
    let mut server = TransportProcess::start_role(TransportProcessRole::StormyServer, transport.name, server);
    let mut client = TransportProcess::start_role(TransportProcessRole::StormyClient, transport.name, client);
    assert_eq!(client.wait_for_end(), "weathered");
    assert_eq!(server.wait_for_end(), "0");
}

/// Sends one-way requests and returns how many were sent: 0 where there are none.
fn send_ahead(pair: &mut ClientServerPair, count: usize) -> usize {
    let sent =
        (0..count).map_while(|turn| pair.client().send_one_way(&make_request(ONE_WAY, turn, 4 + turn % 600)));
    sent.map(Result::unwrap).count()
}

fn what_is_sent_ahead_arrives(mut pair: ClientServerPair) {
    if send_ahead(&mut pair, 300) == 0 {
        return;
    }
    assert_eq!(pair.call(HOW_MANY, 4), Ok(300u32.to_ne_bytes().to_vec()));
    let over = vec![ONE_WAY; pair.payload + 1];
    assert!(matches!(pair.client().send_one_way(&over), Some(Err(TransactionFailure::Refused(_)))));
    // These the client does not wait for: they arrive nevertheless.
    send_ahead(&mut pair, 300);
    assert_eq!(pair.end_client(), "600");
}

fn a_sender_learns_of_the_end(mut pair: ClientServerPair) {
    if pair.client().send_one_way(&make_request(HANG, 0, 4)).is_none() {
        return;
    }
    let (tell, told) = channel();
    let mut client = pair.client.take().unwrap();
    thread::spawn(move || {
        let full = (0..).find_map(|turn| client.send_one_way(&make_request(ONE_WAY, turn, 512))?.err());
        tell.send(full)
    });
    // Most likely the queue is full by now; the end is reported in any case.
    thread::sleep(std::time::Duration::from_millis(50));
    pair.server.kill();
    assert_eq!(told.recv_timeout(TIMEOUT).expect("it hangs"), Some(TransactionFailure::Gone));
}

fn nothing_is_left_after_a_kill(transport: &IpcTransport) {
    let nothing = EndpointHandle { descriptors: Vec::new(), words: Vec::new(), payload: 64 };
    let mut starter = TransportProcess::start_role(TransportProcessRole::Starter, transport.name, nothing);
    let left: Vec<Leftover> = serde_json::from_str(&starter.next_line()).unwrap();
    assert_eq!(starter.next_line(), "calling");
    starter.kill();
    for leftover in &left {
        assert!(is_there(leftover), "{leftover:?} was not removed");
        leftover.remove().unwrap();
    }
    assert!(!left.iter().any(is_there));
    eventually("no FIFOs are left", || fifos().is_empty());
}

/// Returns true if an object of the kinds that transports leave exists.
fn is_there(leftover: &Leftover) -> bool {
    let (kind, id) = match leftover {
        Leftover::SystemVQueue(id) => ("msg", id),
        Leftover::SystemVSemaphores(id) => ("sem", id),
        Leftover::Directory(path) => return path.exists(),
        Leftover::SharedMemory(prefix) => return begins_in_shm(prefix),
        other => panic!("{other:?} would have to be looked for"),
    };
    let table = std::fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap();
    table.lines().any(|line| line.split_whitespace().nth(1) == Some(&id.to_string()))
}

fn begins_in_shm(prefix: &str) -> bool {
    let mut entries = std::fs::read_dir("/dev/shm").unwrap();
    entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(prefix))
}

/// Returns the directories of FIFOs.
fn fifos() -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.join("there").exists()).collect()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        thread::yield_now();
    }
}

/// Two processes that wait for each other, busily at first, take turns of milliseconds beside
/// others of their kind: one pair at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn conforms(name: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let transport = find_transport(name).unwrap();
    if let Err(unavailable) = transport.endpoint_pair(1) {
        assert!(!unavailable.reason.is_empty() && !unavailable.remedy.is_empty());
        return skipped(name, &format!("{unavailable}: {}", unavailable.remedy));
    }
    bytes_come_back_as_they_were(transport);
    let checks: [fn(ClientServerPair); 8] = [
        a_thousand_different_ones_are_answered,
        other_bytes_can_be_answered,
        what_is_too_long_is_refused_and_the_next_succeeds,
        an_answer_over_the_limit_ends_the_server,
        a_server_killed_in_a_call_is_gone,
        a_server_killed_between_calls_is_gone,
        what_is_sent_ahead_arrives,
        a_sender_learns_of_the_end,
    ];
    for check in checks {
        let pair = ClientServerPair::start_pair(transport, 4096)
            .expect("a endpoint pair that was possible a moment ago");
        let left: Vec<Leftover> = pair.leftovers.iter().cloned().collect();
        assert!(left.iter().all(is_there));
        check(pair);
        assert!(!left.iter().any(is_there));
    }
    a_server_ends_with_its_killed_client(transport);
    interruptions_do_no_harm(transport);
    nothing_is_left_after_a_kill(transport);
}

macro_rules! conform {
    ($($(#[$only:meta])? $test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        $(#[$only])?
        fn $test() {
            conforms($name);
        })*

        #[test]
        fn all_are_tested_and_described() {
            // Those of the binder driver are tried where it is, by `binder_trials` in the VM.
            let here = || TRANSPORTS.iter().filter(|transport| !transport.name.ends_with("binder"));
            let names: HashSet<&str> = here().map(|transport| transport.name).collect();
            assert_eq!(names, HashSet::from([$($(#[$only])? $name),*]));
            assert_eq!(names.len(), here().count());
            for transport in here() {
                assert!(!transport.title.is_empty() && !transport.source.is_empty());
                assert!(transport.copies >= 1 && transport.max_payload >= 65_507);
                assert!(transport.endpoint_pair(0).is_err());
                assert!(transport.endpoint_pair(transport.max_payload + 1).is_err());
            }
        }
    };
}

conform! {
    spin: "spin",
    futex: "futex",
    posix_semaphore: "posix-semaphore",
    system_v_semaphore: "sysv-semaphore",
    eventfd: "eventfd",
    signal: "signal",
    io_uring: "io-uring",
    pipe: "pipe",
    fifo: "fifo",
    posix_queue: "posix-mq",
    system_v_queue: "sysv-mq",
    unix_datagram: "unix-datagram",
    unix_seqpacket: "unix-seqpacket",
    unix_stream: "unix-stream",
    udp: "udp",
    tcp: "tcp",
    vsock: "vsock",
}
