//! The relay, over a remote that does as it is asked.

use super::*;
use latscope_os::clock::monotonic_ns;
use latscope_process::modes::OPEN;
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const SIGUSR1: i32 = 10;

/// A remote in this process: echoes, with as many buffers as it is given.
struct Near {
    messages: VecDeque<Vec<u8>>,
    buffers: usize,
    limit: usize,
    longest: Sender<usize>,
    end: Receiver<()>,
}

impl RemoteChannel for Near {
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        if self.messages.len() == self.buffers {
            return Err(ChannelFailure::Unsent(Unsent::NoBuffer));
        }
        assert!(message.len() <= self.limit && !message.is_empty());
        self.longest.send(message.len()).unwrap();
        self.messages.push_back(message.to_vec());
        Ok(())
    }

    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        assert_eq!(until, 0, "the relay never waits for the remote alone");
        let message = self.messages.pop_front().ok_or(ChannelFailure::Timeout)?;
        into[..message.len()].copy_from_slice(&message);
        Ok(message.len())
    }

    fn limit(&self) -> usize {
        self.limit
    }

    fn end_description(&mut self) -> Option<String> {
        self.end.try_recv().ok().map(|()| "it was time".to_owned())
    }
}

/// Relays over such a remote while `client` has the terminal, and returns the outcome.
fn relayed(
    buffers: usize,
    limit: usize,
    client: impl FnOnce(&OwnedFd) + Send,
) -> (PtyRelayTotals, PtyRelayEnd, usize) {
    let terminal = PseudoTerminal::open().unwrap();
    let (longest, lengths) = channel();
    let (done, end) = channel();
    let mut near = Near { messages: VecDeque::new(), buffers, limit, longest, end };
    let (tally, end) = thread::scope(|scope| {
        let path = &terminal.path;
        scope.spawn(move || {
            let slave = rustix::fs::open(path, OPEN, Mode::empty()).unwrap();
            client(&slave);
            done.send(()).unwrap();
        });
        // None is sent in this test: they would be another test's.
        let signals = SignalFd::block(&[SIGUSR1]).unwrap();
        relay(&terminal, &mut near, &signals).unwrap()
    });
    drop(near);
    (tally, end, lengths.iter().max().unwrap_or(0))
}

fn read_all(slave: &OwnedFd, length: usize) -> Vec<u8> {
    let end = monotonic_ns() + 60_000_000_000;
    let mut bytes = Vec::new();
    let mut room = [0; ROOM];
    while bytes.len() < length {
        assert!(monotonic_ns() < end, "{} of {length} bytes came", bytes.len());
        poll(&mut [PollFd::new(slave, PollFlags::IN)], WATCHDOG).unwrap();
        let length = no_wait(read(slave, &mut room)).unwrap();
        bytes.extend(&room[..length]);
    }
    bytes
}

#[test]
fn what_is_written_comes_back_in_messages_that_the_remote_can_take() {
    let text: Vec<u8> = (0..=255).cycle().take(3000).collect();
    let sent = text.clone();
    let (tally, end, longest) = relayed(2, 128, move |slave| {
        assert_eq!(write(slave, &sent).unwrap(), sent.len());
        assert_eq!(read_all(slave, sent.len()), sent);
    });
    assert_eq!(end, PtyRelayEnd::Remote("it was time".to_owned()));
    assert_eq!((tally.there.bytes, tally.back.bytes), (3000, 3000));
    assert_eq!((tally.unsent, tally.unread, longest), (0, 0, 128));
    assert!(tally.there.messages >= 24 && tally.there == tally.back, "{tally:?}");
}

#[test]
fn one_who_writes_and_does_not_read_is_held_up_and_loses_nothing() {
    let (tally, _, _) = relayed(1, 496, |slave| {
        let mut sent: Vec<u8> = Vec::new();
        // Until it is full all the way, and for a while.
        let mut full = 0;
        while full < 20 {
            let piece = [sent.len() as u8; 100];
            match write(slave, &piece) {
                Ok(length) => sent.extend(&piece[..length]),
                Err(Errno::AGAIN) => {
                    full += 1;
                    thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(sent.len() > 4096, "{}", sent.len());
        assert_eq!(read_all(slave, sent.len()), sent);
    });
    assert_eq!((tally.there.bytes, tally.unsent, tally.unread), (tally.back.bytes, 0, 0));
}

#[test]
fn the_relay_outlives_those_who_open_and_close_the_terminal() {
    let (tally, _, _) = relayed(4, 496, |slave| {
        let path = rustix::termios::ttyname(slave, []).unwrap();
        for text in [&b"first"[..], b"second\x04", b"third"] {
            let again = rustix::fs::open(&path, OPEN, Mode::empty()).unwrap();
            write(&again, text).unwrap();
            assert_eq!(read_all(&again, text.len()), text);
        }
    });
    assert_eq!(tally.back, Flow { bytes: 17, messages: 3 });
}

#[test]
fn what_is_left_is_reported() {
    let (tally, _, longest) = relayed(0, 2, |slave| {
        assert_eq!(write(slave, b"never sent").unwrap(), 10);
    });
    assert_eq!((tally.there, tally.unsent, longest), (Flow::default(), 10, 0));
}
