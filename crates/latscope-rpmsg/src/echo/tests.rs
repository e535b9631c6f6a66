//! The replies, seen from the host.

use super::*;
use crate::endpoints::Endpoints;
use crate::memory::AtomicCellMemory;
use crate::messages::{LongPingDivision, block};
use crate::{RpmsgHost, RpmsgRemote, RpmsgWindow};
use std::sync::atomic::AtomicU16;

type EchoCellMemory = AtomicCellMemory<Vec<AtomicU16>>;

const OURS: RpmsgAddress = 0x500;

fn room(window: &RpmsgWindow) -> EchoCellMemory {
    let memory = AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect());
    window.reset(&memory).unwrap();
    memory
}

fn sides<'a>(
    memory: &'a EchoCellMemory,
    window: &RpmsgWindow,
) -> (RpmsgHost<&'a EchoCellMemory, 256>, RpmsgEcho<RpmsgRemote<&'a EchoCellMemory>, 496>) {
    let host = window.host(memory).unwrap();
    (host, RpmsgEcho::new(window.remote(memory).unwrap().unwrap()))
}

/// Polls until nothing more can be done.
fn run(echo: &mut RpmsgEcho<RpmsgRemote<&EchoCellMemory>, 496>) -> EchoStepOutcome {
    loop {
        let step = echo.poll().step;
        if step.is_waiting() {
            return step;
        }
    }
}

/// All that the host finds: where from, and what.
fn receive(host: &mut RpmsgHost<&EchoCellMemory, 256>) -> Vec<(RpmsgAddress, Vec<u8>)> {
    let mut buffer = [0; 496];
    let mut messages = Vec::new();
    while let Some(received) = host.receive_message(&mut buffer).unwrap() {
        messages.push((received.header.source, buffer[..received.length].to_vec()));
    }
    messages
}

/// Returns the replies to a message after the services were announced, and the counts of the echo.
fn replies(service: RpmsgService, payload: &[u8]) -> (Vec<(RpmsgAddress, Vec<u8>)>, RpmsgServiceCounts) {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    run(&mut echo);
    receive(&mut host);
    host.send_message(OURS, service.address(), payload).unwrap();
    run(&mut echo);
    (receive(&mut host), echo.counts())
}

#[test]
fn services_are_announced_before_all_else() {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    run(&mut echo);
    let mut endpoints = Endpoints::<8>::default();
    let mut buffer = [0; 496];
    while let Some(received) = host.receive_message(&mut buffer).unwrap() {
        endpoints.handle_message(&received.header, &buffer[..received.length]).unwrap().unwrap();
    }
    let found: Vec<String> = endpoints.theirs().map(|(name, at)| format!("{name} {at:#x}")).collect();
    assert_eq!(
        found,
        [
            "rpc-ping 0x400",
            "rpc-long-ping 0x401",
            "pty-ping 0x402",
            "bandwidth 0x403",
            "bandwidth-sink 0x404",
            "latscope-status 0x405"
        ]
    );
    echo.announce();
    run(&mut echo);
    assert_eq!(receive(&mut host).len(), 6);
}

#[test]
fn a_remote_says_what_it_is_and_what_it_counted() {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    echo.set_description("a core", "a firmware 1.0");
    run(&mut echo);
    receive(&mut host);
    host.send_message(OURS, RpmsgService::Pty.address(), b"hello").unwrap();
    host.send_message(OURS, RpmsgService::Ping.address(), b"no ping").unwrap();
    host.send_message(OURS, RpmsgService::Status.address(), &[]).unwrap();
    run(&mut echo);
    let replies = receive(&mut host);
    let status = RpmsgStatus::parse(&replies[1].1).unwrap();
    assert_eq!((status.counts.replied, status.counts.mismatched, status.busy_ns), (1, 1, 0));
    assert_eq!((status.core(), status.firmware()), ("a core", "a firmware 1.0"));
}

#[test]
fn sound_pings_come_back_whole() {
    let mut room = [0; ShortPing::SIZE];
    for word in PingWordSize::ALL {
        let ping = ShortPing { number: 9 }.write_ping(word, &mut room).to_vec();
        let (replies, _) = replies(RpmsgService::Ping, &ping);
        assert_eq!(replies, [(RpmsgService::Ping.address(), ping)]);
    }
}

#[test]
fn other_pings_get_no_reply_and_are_counted() {
    let mut room = [0; ShortPing::SIZE];
    let mut ping = ShortPing { number: 9 }.write_ping(PingWordSize::Eight, &mut room).to_vec();
    ping[47] = 1;
    for (service, payload) in
        [(RpmsgService::Ping, &ping[..]), (RpmsgService::Ping, &[]), (RpmsgService::LongPing, &ping[..])]
    {
        let (replies, counts) = replies(service, payload);
        assert_eq!((replies.len(), counts.mismatched, counts.replied), (0, 1, 0));
    }
}

#[test]
fn long_pings_come_back_packet_by_packet() {
    let mut room = [0; LongPing::PACKET];
    let ping = LongPing { form: LongPingDivision::Exact, word: PingWordSize::Eight };
    for index in 0..ping.packets() {
        let packet = ping.write_packet(index, &mut room).to_vec();
        let (replies, _) = replies(RpmsgService::LongPing, &packet);
        assert_eq!(replies, [(RpmsgService::LongPing.address(), packet)]);
    }
}

#[test]
fn anything_comes_back_where_anything_is_echoed() {
    for service in [RpmsgService::Pty, RpmsgService::Bandwidth] {
        for payload in [&b"Hello,world\r"[..], &[], &[0xFF; 496]] {
            assert_eq!(replies(service, payload).0, [(service.address(), payload.to_vec())]);
        }
    }
}

#[test]
fn a_sink_gives_a_receipt_when_asked() {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    run(&mut echo);
    receive(&mut host);
    let mut data = [0; 496];
    for sequence in 0..100 {
        block::write_block(sequence, &mut data);
        host.send_message(OURS, RpmsgService::Sink.address(), &data).unwrap();
    }
    data[495] ^= 1;
    host.send_message(OURS, RpmsgService::Sink.address(), &data).unwrap();
    run(&mut echo);
    assert_eq!(receive(&mut host), []);
    for expected in [Receipt { blocks: 100, bytes: 49600, mismatched: 1 }, Receipt::default()] {
        host.send_message(OURS, RpmsgService::Sink.address(), &[]).unwrap();
        run(&mut echo);
        assert_eq!(receive(&mut host), [(RpmsgService::Sink.address(), expected.bytes().to_vec())]);
    }
}

#[test]
fn messages_to_no_endpoint_are_counted() {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    for address in [0, 53, 0x3FF, 0x406, u32::MAX] {
        host.send_message(OURS, address, b"x").unwrap();
    }
    assert_eq!((run(&mut echo), echo.counts().unknown, echo.counts().replied), (EchoStepOutcome::Idle, 5, 0));
}

#[test]
fn a_reply_without_buffer_is_held_and_nothing_is_lost() {
    let window = RpmsgWindow::new(2, 512, 512).unwrap();
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    // The host sends all it can and does not look at what comes back.
    let mut sent = 0_u32;
    for _ in 0..100 {
        while host.send_message(OURS, RpmsgService::Pty.address(), &sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        assert_eq!(run(&mut echo), EchoStepOutcome::Stalled);
    }
    assert_eq!(sent, 2, "announcements wait, too");
    assert_eq!(
        echo.poll(),
        EchoProgress { step: EchoStepOutcome::Stalled, kick_transmit: false, kick_receive: false }
    );
    // Then it looks, and goes on sending.
    let mut seen = Vec::new();
    while seen.len() < 1000 {
        seen.extend(receive(&mut host).into_iter().filter(|(from, _)| *from == RpmsgService::Pty.address()));
        seen.retain(|(_, payload)| payload.len() == 4);
        while host.send_message(OURS, RpmsgService::Pty.address(), &sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        run(&mut echo);
    }
    for (number, (_, payload)) in (0_u32..).zip(&seen) {
        assert_eq!(payload, &number.to_le_bytes());
    }
    assert!(echo.counts().stalls > 0);
    assert_eq!(echo.faults().total(), 0);
}

#[test]
fn what_is_waited_for_is_what_is_needed() {
    let window = RpmsgWindow::new(8, 512, 512).unwrap();
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    assert_eq!(run(&mut echo), EchoStepOutcome::Idle);
    assert_eq!(echo.request_kick(), Ok(false));
    for _ in 0..4 {
        host.send_message(OURS, RpmsgService::Pty.address(), b"x").unwrap();
    }
    assert_eq!(echo.request_kick(), Ok(true), "there are messages");
    assert_eq!(
        run(&mut echo),
        EchoStepOutcome::Stalled,
        "five announcements and three replies fill the ring"
    );
    assert_eq!(echo.request_kick(), Ok(false), "there is no buffer");
    assert!(!receive(&mut host).is_empty());
    assert_eq!(echo.request_kick(), Ok(true));
    assert_eq!(run(&mut echo), EchoStepOutcome::Idle);
    echo.suppress_kicks().unwrap();
    assert_eq!(host.send_message(OURS, RpmsgService::Pty.address(), b"x"), Ok(false));
}

#[test]
fn a_reply_too_long_for_the_way_back_is_dropped() {
    let window = RpmsgWindow::new(16, 64, 512).unwrap();
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    host.send_message(OURS, RpmsgService::Pty.address(), &[0; 49]).unwrap();
    host.send_message(OURS, RpmsgService::Pty.address(), &[0; 48]).unwrap();
    assert_eq!(run(&mut echo), EchoStepOutcome::Idle);
    assert_eq!((echo.counts().too_long, echo.counts().replied), (1, 1));
}

#[test]
fn a_message_longer_than_our_buffer_is_not_echoed_in_part() {
    let window = RpmsgWindow::new(16, 4096, 4096).unwrap();
    let memory = room(&window);
    let (mut host, mut echo) = sides(&memory, &window);
    host.send_message(OURS, RpmsgService::Pty.address(), &[0; 497]).unwrap();
    assert_eq!(run(&mut echo), EchoStepOutcome::Idle);
    assert_eq!((echo.counts().mismatched, echo.counts().replied), (1, 0));
}

#[test]
fn a_broken_ring_is_a_fault_a_step() {
    let window = RpmsgWindow::new(16, 512, 512).unwrap();
    let memory = room(&window);
    let (_host, mut echo) = sides(&memory, &window);
    run(&mut echo);
    use crate::RpmsgMemory;
    memory.store_u16(window.ring_layouts().unwrap()[1].available() + 2, 1000).unwrap();
    for _ in 0..3 {
        assert_eq!(echo.poll().step, EchoStepOutcome::Fault(Fault::Index));
    }
    assert_eq!(echo.faults().of(Fault::Index), 3);
}
