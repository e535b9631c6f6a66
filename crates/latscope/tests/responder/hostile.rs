//! Host that writes anything anywhere.

use crate::NAMES;
use crate::support::{Responder, Way, faults, scribble};
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::{RpmsgMemory, RpmsgWindow};

/// Random numbers by Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        [(); N].map(|()| self.next() as u8)
    }
}

/// Changes the words that do the most harm: those of rings, of the table, and of messages.
fn attack(responder: &Responder, random: &mut Random) {
    let [receive, transmit] = responder.layout.ring_layouts().unwrap();
    let ring = if random.below(2) == 0 { receive } else { transmit };
    let entry = random.below(ring.num().into());
    let word = random.next() as u32;
    let half = |value: u32| (value as u16).to_le_bytes().to_vec();
    let buffer = responder.layout.pools[1].at + 512 * entry;
    // What ends all of it until the window is made ready is rare, so that there is more to see.
    let kind = if random.below(300) == 0 { 9 + random.below(3) } else { random.below(9) };
    let (at, bytes) = match kind {
        0 => {
            let index = responder.memory.load_u16(ring.available() + 2).unwrap();
            (ring.available() + 2, half(u32::from(index) + word % 4))
        }
        1 => (ring.available() + 4 + 2 * entry, half(word % 300)),
        // A descriptor: its address near the window's end or anywhere, its length, its flags.
        2 => (ring.descriptors() + 16 * entry, (word % 0x9_0000).to_le_bytes().to_vec()),
        3 => (ring.descriptors() + 16 * entry, random.bytes::<8>().to_vec()),
        4 => (ring.descriptors() + 16 * entry + 8, (word % 1100).to_le_bytes().to_vec()),
        5 => (ring.descriptors() + 16 * entry + 8, word.to_le_bytes().to_vec()),
        6 => (ring.descriptors() + 16 * entry + 12, half(word % 8)),
        // A message: to an endpoint, of some length.
        7 => (buffer + 4, (0x400 + word % 6).to_le_bytes().to_vec()),
        8 => (buffer + 12, half(word % 1100)),
        9 => (ring.available() + 2, half(word)),
        10 => (ring.used() + 2, half(word)),
        _ => (random.below(0x60), random.bytes::<4>().to_vec()),
    };
    scribble(&responder.memory, at, &bytes);
}

/// Fills a piece of the window, or the rest of it, with garbage.
fn flood(responder: &Responder, random: &mut Random) {
    let begin = if random.below(4) == 0 { 0 } else { random.below(responder.memory.size()) };
    let end = begin + random.below(responder.memory.size() - begin);
    for at in (begin..end).step_by(64) {
        scribble(&responder.memory, at, &random.bytes::<64>());
    }
}

/// Makes the window ready, and asserts that the responder works as if nothing had happened.
fn works_again(responder: &mut Responder) {
    responder.set_status(0);
    assert!(!responder.step(), "no host is there");
    responder.layout.reset(&responder.memory).unwrap();
    let mut host = responder.host();
    assert!(responder.step());
    assert_eq!(responder.announced(&mut host), NAMES);
    assert!(responder.send(&mut host, RpmsgService::Pty, b"still there"));
    responder.step();
    assert_eq!(responder.receive(&mut host), (RpmsgService::Pty.address(), b"still there".to_vec()));
}

#[test]
fn garbage_harms_nothing() {
    let mut responder = Responder::stepwise(RpmsgWindow::OPENAMP);
    let mut random = Random(0x5EED);
    for round in 0..5000 {
        if round % 20 == 0 {
            works_again(&mut responder);
        }
        for _ in 0..random.below(32) {
            attack(&responder, &mut random);
        }
        if round % 20 == 19 {
            flood(&responder, &mut random);
        }
        responder.step();
    }
    works_again(&mut responder);
    let counts = responder.end();
    for fault in ["out-of-window", "index", "descriptor", "chained", "direction", "length", "ring", "table"] {
        assert!(counts[&format!("fault-{fault}")] > 0, "{fault} did not occur: {counts:?}");
    }
}

#[test]
fn garbage_that_is_written_meanwhile_harms_nothing() {
    let responder = Responder::start(RpmsgWindow::OPENAMP, Way::Poll);
    let mut random = Random(0xBAD_5EED);
    for _ in 0..200 {
        responder.layout.reset(&responder.memory).unwrap();
        responder.host();
        for _ in 0..1000 {
            attack(&responder, &mut random);
        }
        flood(&responder, &mut random);
    }
    let counts = responder.end();
    assert!(faults(&counts) > 0, "{counts:?}");
}
