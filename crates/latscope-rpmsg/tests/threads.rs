//! Both sides at once, in two threads that sleep until they are kicked.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use latscope_rpmsg::echo::{EchoStepOutcome, RpmsgEcho, RpmsgService};
use latscope_rpmsg::link::{RpmsgLinkEvent, Unsent};
use latscope_rpmsg::memory::AtomicCellMemory;
use latscope_rpmsg::messages::block;
use latscope_rpmsg::{RpmsgHost, RpmsgLink, RpmsgRemote, RpmsgWindow};
use std::sync::atomic::AtomicU16;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

type Room = AtomicCellMemory<Vec<AtomicU16>>;

/// More than an index has values.
const BLOCKS: u64 = 70_000;

const OURS: u32 = 0x500;

/// Replies until the other side is gone: sleeps when there is nothing to do.
fn remote(mut echo: RpmsgEcho<RpmsgRemote<&Room>, 64>, kick: Sender<()>, kicked: Receiver<()>) {
    echo.suppress_kicks().unwrap();
    loop {
        let progress = echo.poll();
        assert!(!matches!(progress.step, EchoStepOutcome::Fault(_)), "{progress:?}");
        if (progress.kick_transmit || progress.kick_receive) && kick.send(()).is_err() {
            return;
        }
        if progress.step.is_waiting() && !echo.request_kick().unwrap() && kicked.recv().is_err() {
            return;
        }
    }
}

/// Sends blocks as long as there are buffers, and verifies what comes back.
fn host(mut host: RpmsgHost<&Room, 256>, kick: Sender<()>, kicked: Receiver<()>) {
    let (mut sent, mut seen) = (0, 0);
    let mut payload = [0; 64];
    while seen < BLOCKS {
        let mut full = false;
        while sent < BLOCKS && !full {
            block::write_block(sent, &mut payload[..16]);
            match host.send_message(OURS, RpmsgService::Bandwidth.address(), &payload[..16]) {
                Ok(true) => kick.send(()).unwrap(),
                Ok(false) => {}
                Err(Unsent::NoBuffer) => full = true,
                Err(unsent) => panic!("{unsent}"),
            }
            sent += u64::from(!full);
        }
        while let Some(received) = host.receive_message(&mut payload).unwrap() {
            if received.kick {
                kick.send(()).unwrap();
            }
            if received.header.destination == OURS {
                assert_eq!(block::verify_block(&payload[..received.length]), Ok(seen));
                seen += 1;
            }
        }
        let more = host.request_kick(RpmsgLinkEvent::Message).unwrap();
        let room = sent < BLOCKS && host.request_kick(RpmsgLinkEvent::Buffer).unwrap();
        if seen < BLOCKS && !more && !room {
            kicked.recv().unwrap();
        }
        host.suppress_kicks(RpmsgLinkEvent::Message).unwrap();
        host.suppress_kicks(RpmsgLinkEvent::Buffer).unwrap();
    }
}

/// A lost kick would leave both sides asleep for ever.
#[test]
fn two_sides_that_sleep_and_wake_each_other_lose_nothing() {
    for num in [2, 16, 256] {
        let window = RpmsgWindow::new(num, 64, 64).unwrap();
        let memory: Room = AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect());
        window.reset(&memory).unwrap();
        let ours = window.host(&memory).unwrap();
        let theirs = RpmsgEcho::new(window.remote(&memory).unwrap().unwrap());
        let (to_remote, from_host) = channel();
        let (to_host, from_remote) = channel();
        thread::scope(|scope| {
            scope.spawn(|| remote(theirs, to_host, from_host));
            host(ours, to_remote, from_remote);
        });
    }
}
