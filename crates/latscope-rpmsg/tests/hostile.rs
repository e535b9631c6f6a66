//! A peer that writes anything anywhere, between two loads if it likes.
//!
//! Nothing panics, nothing outside of the window is asked for, and no call does more
//! than a message's work. The memory itself watches the last two.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use latscope_rpmsg::echo::{EchoStepOutcome, RpmsgEcho};
use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::link::{RpmsgLinkEvent, Unsent};
use latscope_rpmsg::memory::AtomicCellMemory;
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{Fault, Faults, RpmsgHost, RpmsgLink, RpmsgMemory, RpmsgRemote, RpmsgWindow};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::atomic::AtomicU16;

/// The most accesses that a call may make; a copy is one.
const WORK: u32 = 50;

/// Memory whose peer changes words while it is read.
struct Hostile {
    cells: AtomicCellMemory<Vec<AtomicU16>>,
    random: Cell<u64>,
    /// One load in so many finds something else than was stored; none if 0.
    lies: Cell<u64>,
    /// Accesses that the present call may still make.
    left: Cell<u32>,
}

impl Hostile {
    fn new(window: &RpmsgWindow, seed: u64) -> Hostile {
        let cells = AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect());
        Hostile { cells, random: Cell::new(seed | 1), lies: Cell::new(0), left: Cell::new(u32::MAX) }
    }

    /// A number after Marsaglia's xorshift.
    fn random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state >> 16
    }

    /// Before each access of the protocol: it lies in the window, and there are not too many.
    fn watch(&self, at: usize, length: usize) {
        assert!(at + length <= self.cells.size(), "{length} bytes at {at:#x}");
        self.left.set(self.left.get().checked_sub(1).expect("a call ends"));
    }

    /// Now and then, the bytes at `at` change just before they are loaded.
    fn lie(&self, at: usize, length: usize) {
        if self.lies.get() > 0 && length > 0 && self.random().is_multiple_of(self.lies.get()) {
            let place = at + self.random() as usize % length;
            self.cells.store_u8(place, self.random() as u8).unwrap();
        }
    }

    /// Changes a word: anywhere, or one of a ring's, which does more harm.
    fn scribble(&self, window: &RpmsgWindow) {
        let [receive, transmit] = window.ring_layouts().unwrap();
        let ring = if self.random().is_multiple_of(2) { receive } else { transmit };
        let entry = self.random() as usize % usize::from(ring.num());
        let small = self.random() as u16 % 8;
        let (at, value) = match self.random() % 10 {
            0 => (self.random() as usize % (window.size / 2) * 2, self.random() as u16),
            1 => (ring.available() + 2, self.random() as u16),
            2 => (ring.used() + 2, self.random() as u16),
            3 => (ring.available() + 4 + 2 * entry, self.random() as u16 % (2 * ring.num())),
            4 => (ring.used() + 4 + 8 * entry, small),
            5 => (ring.used() + 8 + 8 * entry, self.random() as u16 % 80),
            6 => (ring.descriptors() + 16 * entry + 12, small),
            7 => (ring.descriptors() + 16 * entry + 8, self.random() as u16 % 80),
            8 => (ring.descriptors() + 16 * entry + 2 * (self.random() as usize % 4), self.random() as u16),
            _ => (window.pools[self.random() as usize % 2].at + 64 * entry + 12, self.random() as u16 % 80),
        };
        self.cells.store_u16(at, value).unwrap();
    }
}

impl RpmsgMemory for Hostile {
    fn size(&self) -> usize {
        self.cells.size()
    }
    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        self.watch(at, 1);
        self.lie(at, 1);
        self.cells.load_u8(at)
    }
    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        self.watch(at, 1);
        self.cells.store_u8(at, value)
    }
    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        self.watch(at, 2);
        self.lie(at, 2);
        self.cells.load_u16(at)
    }
    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.watch(at, 2);
        self.cells.store_u16(at, value)
    }
    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        self.watch(at, 2);
        self.lie(at, 2);
        self.cells.load_index(at)
    }
    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.watch(at, 2);
        self.cells.store_index(at, value)
    }
    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        self.watch(at, 4);
        self.lie(at, 4);
        self.cells.load_u32(at)
    }
    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        self.watch(at, 4);
        self.cells.store_u32(at, value)
    }
    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        self.watch(at, into.len());
        self.lie(at, into.len());
        self.cells.read_bytes(at, into)
    }
    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        self.watch(at, from.len());
        self.cells.write_bytes(at, from)
    }
    fn fence(&self) {
        self.cells.fence();
    }
}

/// What a side does next, or its peer.
#[derive(Debug, Clone, Copy)]
enum Move {
    HostSends(usize),
    HostReceives,
    HostListens,
    EchoSteps,
    EchoAnnounces,
    EchoListens,
    Scribble,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => (0_usize..80).prop_map(Move::HostSends),
        3 => Just(Move::HostReceives),
        1 => Just(Move::HostListens),
        4 => Just(Move::EchoSteps),
        1 => Just(Move::EchoAnnounces),
        1 => Just(Move::EchoListens),
        3 => Just(Move::Scribble),
    ];
    prop::collection::vec(one, 0..200)
}

/// Both sides over a hostile memory, and what they noticed.
struct Game<'a> {
    memory: &'a Hostile,
    window: RpmsgWindow,
    host: RpmsgHost<&'a Hostile, 16>,
    echo: RpmsgEcho<RpmsgRemote<&'a Hostile>, 48>,
    endpoints: Endpoints<4>,
    faults: Faults,
}

impl<'a> Game<'a> {
    fn new(memory: &'a Hostile, window: RpmsgWindow) -> Game<'a> {
        let host = window.host(memory).unwrap();
        let echo = RpmsgEcho::new(window.remote(memory).unwrap().unwrap());
        Game { memory, window, host, echo, endpoints: Endpoints::default(), faults: Faults::default() }
    }

    fn play(&mut self, next: Move) {
        self.memory.left.set(WORK);
        let found = match next {
            Move::HostSends(length) => match self.host.send_message(0x400, 0x402, &vec![7; length]) {
                Err(Unsent::Fault(fault)) => Err(fault),
                _ => Ok(()),
            },
            Move::HostReceives => self.receive(),
            Move::HostListens => self
                .host
                .request_kick(RpmsgLinkEvent::Message)
                .and(self.host.request_kick(RpmsgLinkEvent::Buffer))
                .map(|_| ()),
            Move::EchoSteps => match self.echo.poll().step {
                EchoStepOutcome::Fault(fault) => Err(fault),
                _ => Ok(()),
            },
            Move::EchoAnnounces => {
                self.echo.announce();
                Ok(())
            }
            Move::EchoListens => self.echo.request_kick().map(|_| ()),
            Move::Scribble => {
                self.memory.scribble(&self.window);
                Ok(())
            }
        };
        if let Err(fault) = found {
            self.faults.count(fault);
        }
    }

    fn receive(&mut self) -> Result<(), Fault> {
        let mut payload = [0; 48];
        let Some(received) = self.host.receive_message(&mut payload)? else { return Ok(()) };
        assert!(received.length <= payload.len());
        self.endpoints.handle_message(&received.header, &payload[..received.length]).transpose().map(|_| ())
    }
}

/// Plays on a window of `num` entries and tells what both sides found.
fn play(moves: &[Move], num: u16, seed: u64, lies: u64) -> Faults {
    let window = RpmsgWindow::new(num, 64, 64).unwrap();
    let memory = Hostile::new(&window, seed);
    window.reset(&memory).unwrap();
    let mut game = Game::new(&memory, window);
    memory.lies.set(lies);
    for next in moves {
        game.play(*next);
    }
    // Whatever happened, both sides can begin again.
    memory.lies.set(0);
    memory.left.set(u32::MAX);
    window.reset(&memory).unwrap();
    let mut game = Game { faults: game.faults, ..Game::new(&memory, window) };
    game.host.send_message(0x500, 0x402, b"again").unwrap();
    let mut payload = [0; 48];
    for _ in 0..16 {
        game.echo.poll();
        if let Some(received) = game.host.receive_message(&mut payload).unwrap()
            && received.header.destination == 0x500
        {
            assert_eq!(&payload[..received.length], b"again");
            return game.faults;
        }
    }
    panic!("no reply after a reset");
}

proptest! {
    #[test]
    fn honest_peers_find_no_fault(moves in moves(), exponent in 0_u32..5, seed: u64) {
        let honest: Vec<Move> = moves.into_iter().filter(|next| !matches!(next, Move::Scribble)).collect();
        prop_assert_eq!(play(&honest, 1 << exponent, seed, 0), Faults::default());
    }

    #[test]
    fn scribbling_between_calls_does_no_harm(moves in moves(), exponent in 0_u32..5, seed: u64) {
        play(&moves, 1 << exponent, seed, 0);
    }

    #[test]
    fn scribbling_between_loads_does_no_harm(moves in moves(), exponent in 0_u32..5, seed: u64, lies in 1_u64..40) {
        play(&moves, 1 << exponent, seed, lies);
    }

    #[test]
    fn any_bytes_are_a_table_or_are_not(words in prop::collection::vec(prop_oneof![0_u32..64, any::<u32>()], 64)) {
        let memory = AtomicCellMemory((0..128).map(|_| AtomicU16::new(0)).collect::<Vec<_>>());
        let head = [1, 1 + words[0] % 8, 0, 0].into_iter();
        for (at, word) in head.chain(words).take(64).enumerate() {
            memory.store_u32(4 * at, word).unwrap();
        }
        if let Ok(table) = ResourceTable::parse(&memory) {
            let _ = (table.is_ready(&memory).unwrap(), table.rings.map(|ring| ring.layout()));
            prop_assert_eq!(table.accepted(&memory).unwrap() & !table.features, 0);
            if let Ok(window) = RpmsgWindow::of_table(table, 100, 256) {
                prop_assert!(window.pools[1].end_offset() <= 256);
            }
        }
    }
}

/// The games above are hostile enough: each fault that a window can show was found.
#[test]
fn every_fault_is_met() {
    let moves: Vec<Move> = (0..200)
        .map(|turn| match turn % 7 {
            0 => Move::HostSends(turn % 48),
            1 | 4 => Move::EchoSteps,
            2 => Move::HostReceives,
            3 if turn % 5 == 0 => Move::EchoAnnounces,
            _ => Move::Scribble,
        })
        .collect();
    let mut met = [0; Fault::ALL.len()];
    for seed in 1..400_u64 {
        let faults = play(&moves, 16, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 50);
        met.iter_mut().zip(Fault::ALL).for_each(|(met, fault)| *met += faults.of(fault));
    }
    // These are of windows and tables that are wrong from the start.
    let elsewhere = [Fault::Stale, Fault::Ring, Fault::Table];
    for (met, fault) in met.into_iter().zip(Fault::ALL) {
        assert_eq!(met > 0, !elsewhere.contains(&fault), "{fault:?}: {met}");
    }
}
