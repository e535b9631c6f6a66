//! Responder in C for other operating systems, `responders/c`: compiled as a program of this system, with latscope's
//! host over a real window of shared memory.
#![forbid(unsafe_code)]

mod command;
mod hostile;
#[path = "../skipped/mod.rs"]
mod skipped;
mod support;

use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::header::NAME_SERVICE;
use latscope_rpmsg::messages::block::{self, Receipt};
use latscope_rpmsg::messages::{
    LongPing, LongPingAssembler, LongPingDivision, PingWordSize, RpmsgStatus, ShortPing,
};
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::table::BufferSizes;
use latscope_rpmsg::{RpmsgLink, RpmsgMemory, RpmsgWindow};
use support::{OURS, Responder, Way, compile, eventually, faults, made};

const WAYS: [Way; 3] = [Way::Poll, Way::Events, Way::Socket];

const NAMES: [&str; 6] = [
    "rpc-ping 0x400",
    "rpc-long-ping 0x401",
    "pty-ping 0x402",
    "bandwidth 0x403",
    "bandwidth-sink 0x404",
    "latscope-status 0x405",
];

/// Names that an object file needs from elsewhere.
fn needed(object: &str, extra: &[&str]) -> String {
    let object = made(object);
    let fixed = ["-ffreestanding", "-nostdlib", "-c", "latscope_responder.c", "-o", object.to_str().unwrap()];
    compile(fixed.iter().chain(extra)).unwrap();
    let output = std::process::Command::new("nm").arg("-u").arg(&object).output();
    let output = output.unwrap_or_else(|error| panic!("nm: {error}: install the package binutils"));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_needs_no_library() {
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        assert_eq!(needed(&format!("responder{level}.o"), &[level]), "", "{level}");
    }
    // A machine of 32 bits: no helper for words of 64.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(needed("responder-32.o", &["-m32", "-fno-pic"]), "");
    }
}

#[test]
fn every_endpoint_is_announced_and_replies() {
    for way in WAYS {
        let responder = Responder::start(RpmsgWindow::OPENAMP, way);
        let mut host = responder.host();
        assert_eq!(responder.announced(&mut host), NAMES, "{way:?}");
        for word in PingWordSize::ALL {
            let ping = ShortPing { number: 9 }.write_ping(word, &mut [0; ShortPing::SIZE]).to_vec();
            assert_eq!(responder.ask(&mut host, RpmsgService::Ping, &ping), ping);
        }
        for service in [RpmsgService::Pty, RpmsgService::Bandwidth] {
            for payload in [&b"Hello,world\r"[..], &[], &[0xFF; 496], &[1, 2, 3]] {
                assert_eq!(responder.ask(&mut host, service, payload), payload);
            }
        }
        let counts = responder.end();
        assert_eq!((counts["replied"], counts["started"], faults(&counts)), (10, 1, 0), "{way:?}");
    }
}

#[test]
fn long_pings_come_back_in_order() {
    let (responder, mut host) = Responder::ready(RpmsgWindow::OPENAMP, Way::Events);
    for (form, word, packets) in [
        (LongPingDivision::Exact, PingWordSize::Eight, 9),
        (LongPingDivision::Legacy, PingWordSize::Eight, 8),
        (LongPingDivision::Exact, PingWordSize::Four, 9),
        (LongPingDivision::Legacy, PingWordSize::Four, 8),
    ] {
        let ping = LongPing { form, word };
        for index in 0..ping.packets() {
            let mut room = [0; LongPing::PACKET];
            assert!(responder.send(&mut host, RpmsgService::LongPing, ping.write_packet(index, &mut room)));
        }
        let mut assembler = LongPingAssembler::new(ping);
        let whole: Vec<bool> =
            (0..packets).map(|_| assembler.receive_packet(&responder.receive(&mut host).1)).collect();
        assert_eq!(whole.iter().position(|whole| *whole), Some(packets - 1), "{ping:?}");
        let tally = assembler.tally();
        assert_eq!((tally.received as usize, tally.reordered, tally.mismatched), (packets, 0, 0), "{ping:?}");
    }
}

#[test]
fn what_is_not_sound_gets_no_reply_and_is_counted() {
    let (responder, mut host) = Responder::ready(RpmsgWindow::OPENAMP, Way::Events);
    let mut ping =
        ShortPing { number: 1 }.write_ping(PingWordSize::Eight, &mut [0; ShortPing::SIZE]).to_vec();
    ping[47] = 1;
    let mut packet = LongPing { form: LongPingDivision::Exact, word: PingWordSize::Eight }
        .write_packet(0, &mut [0; 480])
        .to_vec();
    packet[479] = 1;
    for (service, payload) in [
        (RpmsgService::Ping, &ping[..]),
        (RpmsgService::Ping, &ping[..40]),
        (RpmsgService::Ping, &[]),
        (RpmsgService::LongPing, &packet[..]),
        (RpmsgService::LongPing, &packet[..8]),
        (RpmsgService::LongPing, &ping[..]),
    ] {
        assert!(responder.send(&mut host, service, payload));
    }
    for address in [0, 53, 0x3FF, 0x406, u32::MAX] {
        host.send_message(OURS, address, b"x").unwrap();
    }
    // Messages are taken in order: when the last is replied to, all were.
    assert_eq!(responder.ask(&mut host, RpmsgService::Pty, b"last"), b"last");
    let counts = responder.end();
    assert_eq!((counts["mismatched"], counts["unknown"], counts["replied"]), (6, 5, 1));
}

#[test]
fn a_message_that_is_longer_than_its_buffer_gets_no_reply() {
    let mut responder = Responder::stepwise(RpmsgWindow::OPENAMP);
    let mut host = responder.host();
    assert!(responder.step());
    responder.announced(&mut host);
    assert!(responder.send(&mut host, RpmsgService::Pty, b"abcd"));
    // The first message is in the first buffer. Its descriptor says 20 bytes, now its header says more.
    responder.memory.store_u16(responder.layout.pools[1].at + 12, 5).unwrap();
    assert!(responder.step());
    assert_eq!(host.receive_message(&mut [0; 496]), Ok(None));
    assert!(responder.send(&mut host, RpmsgService::Pty, b"next"));
    assert!(responder.step());
    assert_eq!(responder.receive(&mut host).1, b"next");
    assert_eq!(responder.end()["fault-length"], 1);
}

#[test]
fn indices_wrap() {
    let window = RpmsgWindow::new(16, 128, 128).unwrap();
    for way in [Way::Poll, Way::Events] {
        let (responder, mut host) = Responder::ready(window, way);
        let (mut sent, mut received) = (0_u64, 0);
        // More than an index has values, as many at once as there are buffers.
        while received < 70_000 {
            let mut room = [0; 64];
            block::write_block(sent, &mut room);
            if sent < 70_000 && responder.send(&mut host, RpmsgService::Bandwidth, &room) {
                sent += 1;
                continue;
            }
            let (_, payload) = responder.receive(&mut host);
            assert_eq!(block::verify_block(&payload), Ok(received), "{way:?}");
            received += 1;
        }
        let counts = responder.end();
        assert_eq!((counts["replied"], counts["started"], faults(&counts)), (70_000, 1, 0), "{way:?}");
    }
}

#[test]
fn a_sink_gives_a_receipt_when_asked() {
    let (responder, mut host) = Responder::ready(RpmsgWindow::OPENAMP, Way::Poll);
    let mut data = [0; 496];
    let mut send = |payload: &[u8]| {
        eventually("a buffer", || responder.send(&mut host, RpmsgService::Sink, payload).then_some(()));
    };
    for sequence in 0..1000 {
        block::write_block(sequence << 40, &mut data);
        send(&data);
    }
    send(&data[..9]);
    data[495] ^= 1;
    send(&data);
    send(&[0; 7]);
    for expected in [Receipt { blocks: 1001, bytes: 496_009, mismatched: 2 }, Receipt::default()] {
        assert_eq!(Receipt::parse(&responder.ask(&mut host, RpmsgService::Sink, &[])), Ok(expected));
    }
    assert_eq!(responder.end()["sunk"], 1003);
}

#[test]
fn a_responder_says_what_it_is_and_what_it_counted() {
    let (responder, mut host) = Responder::ready(RpmsgWindow::OPENAMP, Way::Poll);
    let mut ask = |service, payload: &[u8]| responder.ask(&mut host, service, payload);
    let first = RpmsgStatus::parse(&ask(RpmsgService::Status, &[])).unwrap();
    assert_eq!((first.counts.replied, first.busy_ns, first.longest_ns), (0, 0, 0));
    assert_eq!((first.core(), first.firmware(), first.clock_hz), ("", "latscope's responder for Linux", 0));
    for _ in 0..10 {
        ask(RpmsgService::Pty, b"hello");
    }
    let second = RpmsgStatus::parse(&ask(RpmsgService::Status, b"anything")).unwrap();
    assert_eq!((second.counts.replied, second.faults), (10, 0));
    assert!(second.longest_ns > 0 && second.busy_ns >= second.longest_ns, "{second:?}");
    // The longest is since the last answer.
    let third = RpmsgStatus::parse(&ask(RpmsgService::Status, &[])).unwrap();
    assert_eq!((third.busy_ns, third.longest_ns), (second.busy_ns, 0));
    assert_eq!(responder.end()["replied"], 10);
}

#[test]
fn replies_without_buffer_are_held_and_none_is_lost() {
    let window = RpmsgWindow::new(4, 512, 512).unwrap();
    for way in WAYS {
        let responder = Responder::start(window, way);
        let mut host = responder.host();
        // The host looks at nothing until all buffers of both directions are full: four
        // announcements, one that is held, and four messages behind it.
        let mut sent = 0_u32;
        while responder.send(&mut host, RpmsgService::Pty, &sent.to_le_bytes()) {
            sent += 1;
        }
        assert_eq!(sent, 4, "{way:?}: announcements come first");
        assert_eq!(responder.announced(&mut host), NAMES, "{way:?}");
        let mut seen = 0_u32;
        while seen < 2000 {
            while sent < 2000 && responder.send(&mut host, RpmsgService::Pty, &sent.to_le_bytes()) {
                sent += 1;
            }
            assert_eq!(
                responder.receive(&mut host),
                (RpmsgService::Pty.address(), seen.to_le_bytes().to_vec())
            );
            seen += 1;
        }
        let counts = responder.end();
        assert_eq!((counts["replied"], faults(&counts)), (2000, 0), "{way:?}");
    }
}

#[test]
fn a_full_ring_is_waited_for_and_no_fault() {
    let mut responder = Responder::stepwise(RpmsgWindow::new(4, 512, 512).unwrap());
    let mut host = responder.host();
    while responder.send(&mut host, RpmsgService::Pty, b"x") {}
    for _ in 0..3 {
        assert!(responder.step(), "four announcements fill the ring");
    }
    let mut received = Vec::new();
    while received.len() < 10 {
        received.push(responder.receive(&mut host).0);
        responder.step();
    }
    assert_eq!(received, [0x400, 0x401, 0x402, 0x403, 0x404, 0x405, 0x402, 0x402, 0x402, 0x402]);
    let counts = responder.end();
    assert_eq!((counts["replied"], faults(&counts)), (4, 0));
    assert!(counts["stalls"] > 0);
}

#[test]
fn longer_messages_than_there_is_room_for_are_not_echoed_in_part() {
    let (responder, mut host) = Responder::ready(RpmsgWindow::new(16, 64, 4096).unwrap(), Way::Poll);
    assert!(responder.send(&mut host, RpmsgService::Pty, &[0; 497]));
    assert!(responder.send(&mut host, RpmsgService::Pty, &[0; 49]));
    assert_eq!(responder.ask(&mut host, RpmsgService::Pty, &[7; 48]), [7; 48]);
    let counts = responder.end();
    assert_eq!((counts["mismatched"], counts["too-long"], counts["replied"]), (1, 1, 1));
}

#[test]
fn a_host_may_end_and_begin_again() {
    for way in WAYS {
        let mut responder = Responder::start(RpmsgWindow::OPENAMP, way);
        for round in 0..5_u32 {
            let mut host = responder.host();
            assert_eq!(responder.announced(&mut host), NAMES);
            for number in 0..round * 100 {
                let payload = number.to_le_bytes();
                assert_eq!(responder.ask(&mut host, RpmsgService::Pty, &payload), payload);
            }
            // It sees the rings of one host only: this one has to say that it goes.
            responder.expect_line("online");
            responder.set_status(0);
            responder.expect_line("offline");
        }
        let counts = responder.end();
        assert_eq!((counts["started"], faults(&counts)), (5, 0), "{way:?}");
    }
}

#[test]
fn a_responder_that_crashed_goes_on_where_it_stopped() {
    let mut first = Responder::stepwise(RpmsgWindow::OPENAMP);
    let mut host = first.host();
    assert!(first.step());
    assert_eq!(first.announced(&mut host), NAMES);
    assert!(first.send(&mut host, RpmsgService::Pty, b"early"));
    let mut second = first.crash_and_start();
    assert!(second.step());
    assert_eq!(second.announced(&mut host), NAMES);
    assert_eq!(second.receive(&mut host), (RpmsgService::Pty.address(), b"early".to_vec()));
}

#[test]
fn what_is_in_the_window_before_a_host_comes_is_no_fault() {
    let mut responder = Responder::stepwise(RpmsgWindow::OPENAMP);
    assert!(!responder.step(), "no driver is ready");
    responder.memory.clear(0, 0x100).unwrap();
    assert!(!responder.step(), "not even a table is there");
    responder.layout.reset(&responder.memory).unwrap();
    let mut host = responder.host();
    assert!(responder.step());
    assert_eq!(responder.announced(&mut host), NAMES);
    assert_eq!(faults(&responder.end()), 0);
}

#[test]
fn a_host_that_did_not_accept_the_name_service_hears_no_names_and_is_answered() {
    let mut responder = Responder::stepwise(RpmsgWindow::OPENAMP);
    let mut host = responder.host();
    assert_eq!(responder.memory.load_u32(0x24), Ok(1), "our host accepts it");
    responder.memory.store_u32(0x24, 0b10).unwrap();
    assert!(responder.step());
    assert_eq!(host.receive_message(&mut [0; 496]), Ok(None));
    assert!(responder.send(&mut host, RpmsgService::Pty, b"knock"));
    assert!(responder.step());
    assert_eq!(responder.receive(&mut host), (RpmsgService::Pty.address(), b"knock".to_vec()));
    assert_eq!(faults(&responder.end()), 0);
}

#[test]
fn buffers_are_as_long_as_the_table_says() {
    let table = RpmsgWindow::OPENAMP.table.with_buffers(BufferSizes { to_host: 80, to_remote: 300 });
    let window = RpmsgWindow::of_table(table, 0x1_0000, 0x8_0000).unwrap();
    let (responder, mut host) = Responder::ready(window, Way::Events);
    assert_eq!(responder.memory.load_u32(0x24), Ok(3));
    assert_eq!(responder.ask(&mut host, RpmsgService::Pty, &[7; 64]), [7; 64]);
    assert!(responder.send(&mut host, RpmsgService::Pty, &[7; 284]));
    assert_eq!(responder.ask(&mut host, RpmsgService::Pty, b"last"), b"last");
    let counts = responder.end();
    assert_eq!((counts["replied"], counts["too-long"], faults(&counts)), (2, 1, 0));
}

#[test]
fn a_configuration_that_ends_behind_the_table_is_a_fault() {
    for (length, sound) in [(0x8_0000 - 0x58, true), (0x8_0000 - 0x57, false), (u32::MAX, false)] {
        let mut responder = Responder::stepwise(RpmsgWindow::OPENAMP);
        let _host = responder.host();
        responder.memory.store_u32(0x28, length).unwrap();
        assert_eq!(responder.step(), sound, "{length:#x}");
        assert_eq!(responder.end()["fault-table"] == 0, sound, "{length:#x}");
    }
}

#[test]
fn names_of_the_host_are_not_unknown_messages() {
    let (responder, mut host) = Responder::ready(RpmsgWindow::OPENAMP, Way::Poll);
    let goodbye = Announcement { name: RpmsgService::Pty.endpoint_name(), address: OURS, destroyed: true };
    host.send_message(OURS, NAME_SERVICE, &goodbye.encode_bytes()).unwrap();
    assert_eq!(responder.ask(&mut host, RpmsgService::Pty, b"last"), b"last");
    let counts = responder.end();
    assert_eq!((counts["unknown"], counts["replied"]), (0, 1));
}
