//! Checks of the image: in one machine, from its boot to its end. Times are printed for information, and not asserted.

use super::driver::{ImageDriver, LONGEST};
use super::machine::ImageMachine;
use anyhow::{Context, Result, ensure};
use latscope_rpmsg::control::{self, ControlOpcode};
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::header::RpmsgHeader;
use latscope_rpmsg::image::{LAYOUT, PANICKED, STOPPED};
use latscope_rpmsg::messages::block::{self, Receipt};
use latscope_rpmsg::messages::{LongPing, LongPingDivision, PingWordSize, ShortPing};
use latscope_rpmsg::table::status;
use latscope_rpmsg::{RpmsgMemory, RpmsgWindow};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of a check, and the function that performs it.
type ImageCheck = (&'static str, fn(&mut ImageMachine) -> Result<()>);

/// Checks for a link on which both sides poll, in their order. The last check ends the machine.
const CHECKS: [ImageCheck; 9] = [
    ("image: pings come back until all indices wrapped", pings),
    ("image: nine packets of a long ping come back in order", long_ping),
    ("image: every byte comes back at full rate", bandwidth),
    ("image: blocks are verified by the image", sink),
    ("image: it uses the layout of the table, with the longest buffers", long_buffers),
    ("image: a single word comes back", check_words),
    ("image: it answers a second host without a reboot", second_host),
    ("image: it survives garbage all over the window", garbage),
    ("image: it ends when told to, with its status", check_stop),
];

/// Checks for a link on which both sides sleep until they are kicked.
const ASLEEP: [ImageCheck; 7] = [
    ("image, by kicks: pings come back, and no kick is lost", pings_by_kicks),
    ("image, by kicks: nine packets of a long ping come back in order", long_ping),
    ("image, by kicks: every byte comes back", bandwidth),
    ("image, by kicks: it answers a second host without a reboot", second_host),
    ("image, by kicks: it uses the layout of the table, with the longest buffers", long_buffers),
    ("image, by kicks: it survives garbage all over the window", garbage),
    ("image, by kicks: it ends when told to, with its status", check_stop),
];

/// Runs every check of the image.
pub fn run_all(image: &Path, mut report: impl FnMut(&str, Result<()>)) {
    report("image: it says why it panics, with a status of its own", panic(image));
    all_of(ImageMachine::boot(image), &CHECKS, &mut report);
    all_of(ImageMachine::boot_with_doorbell(image), &ASLEEP, &mut report);
}

/// Runs these checks in one machine.
fn all_of(machine: Result<ImageMachine>, checks: &[ImageCheck], report: &mut impl FnMut(&str, Result<()>)) {
    match machine {
        Ok(mut machine) => checks.iter().for_each(|(name, check)| report(name, check(&mut machine))),
        Err(error) => report("image: it boots", Err(error)),
    }
}

fn panic(image: &Path) -> Result<()> {
    let (status, said) = ImageMachine::boot_without_window(image)?.wait_for_end()?;
    ensure!(status.code() == Some(PANICKED), "QEMU ended with {status}: {said}");
    ensure!(said.contains("an ivshmem device"), "it says {said:?}");
    Ok(())
}

fn pings(machine: &mut ImageMachine) -> Result<()> {
    let times = ping(&mut ImageDriver::begin_link(machine)?, 70_000)?;
    print_round_trips("rpc-ping", times)
}

fn pings_by_kicks(machine: &mut ImageMachine) -> Result<()> {
    let times = ping(&mut ImageDriver::begin_link(machine)?, 5_000)?;
    print_round_trips("rpc-ping by kicks", times)
}

/// Sends pings one after the other, and verifies each. Returns the times of the round trips.
fn ping(driver: &mut ImageDriver, count: u64) -> Result<Vec<Duration>> {
    let mut room = [0; ShortPing::SIZE];
    let mut one = |number| {
        let sent = ShortPing { number };
        let payload = sent.write_ping(PingWordSize::Eight, &mut room);
        let start = Instant::now();
        driver.send_payload(RpmsgService::Ping, payload)?;
        let reply = driver.receive_reply()?;
        let time = start.elapsed();
        ensure!(
            ShortPing::parse(PingWordSize::Eight, &reply)? == sent,
            "another reply than to ping {number}"
        );
        Ok(time)
    };
    (0..count).map(&mut one).collect()
}

fn long_ping(machine: &mut ImageMachine) -> Result<()> {
    let mut driver = ImageDriver::begin_link(machine)?;
    let long = LongPing { form: LongPingDivision::Exact, word: PingWordSize::Eight };
    for _ in 0..100 {
        let mut room = [0; LongPing::PACKET];
        for index in 0..long.packets() {
            driver.send_payload(RpmsgService::LongPing, long.write_packet(index, &mut room))?;
        }
        for index in 0..9 {
            let found = long.parse_packet(&driver.receive_reply()?)?;
            ensure!(found == index, "packet {found} where {index} was expected");
        }
    }
    Ok(())
}

fn bandwidth(machine: &mut ImageMachine) -> Result<()> {
    /// Number of blocks under way: fewer than the buffers of either direction.
    const WINDOW: usize = 64;
    let mut driver = ImageDriver::begin_link(machine)?;
    let mut pending = VecDeque::new();
    let mut room = [0; LONGEST];
    for sequence in 0..20_000 {
        // Of any length, the longest included.
        let length = LONGEST - sequence as usize % (LONGEST - block::SHORTEST + 1);
        block::write_block(sequence, &mut room[..length]);
        driver.send_payload(RpmsgService::Bandwidth, &room[..length])?;
        pending.push_back((sequence, length));
        if pending.len() == WINDOW {
            verify_reply(&mut driver, &mut pending)?;
        }
    }
    while !pending.is_empty() {
        verify_reply(&mut driver, &mut pending)?;
    }
    Ok(())
}

/// Verifies the reply to the oldest block.
fn verify_reply(driver: &mut ImageDriver, pending: &mut VecDeque<(u64, usize)>) -> Result<()> {
    let expected = pending.pop_front().context("nothing is pending")?;
    let reply = driver.receive_reply()?;
    let found = (block::verify_block(&reply)?, reply.len());
    ensure!(found == expected, "block {found:?} where {expected:?} was expected");
    Ok(())
}

fn sink(machine: &mut ImageMachine) -> Result<()> {
    let mut driver = ImageDriver::begin_link(machine)?;
    let mut room = [0; LONGEST];
    for sequence in 0..10_000 {
        block::write_block(sequence, &mut room);
        driver.send_payload(RpmsgService::Sink, &room)?;
    }
    driver.send_payload(RpmsgService::Sink, &[])?;
    let receipt = Receipt::parse(&driver.receive_reply()?)?;
    let expected = Receipt { blocks: 10_000, bytes: 10_000 * LONGEST as u64, mismatched: 0 };
    ensure!(receipt == expected, "{receipt:?}");
    Ok(())
}

fn long_buffers(machine: &mut ImageMachine) -> Result<()> {
    let buffer = RpmsgHeader::SIZE as u32 + u32::from(u16::MAX);
    let mut driver = ImageDriver::begin_with(machine, RpmsgWindow::new(4, buffer, buffer)?)?;
    let mut room = [0; u16::MAX as usize];
    for sequence in 0..100 {
        block::write_block(sequence, &mut room);
        driver.send_payload(RpmsgService::Bandwidth, &room)?;
        let reply = driver.receive_reply()?;
        ensure!(block::verify_block(&reply)? == sequence && reply.len() == room.len(), "another block");
    }
    Ok(())
}

fn check_words(machine: &mut ImageMachine) -> Result<()> {
    machine.order(ControlOpcode::Word)?;
    let control = machine.control()?;
    let mut one = |word: u64| {
        // Both halves differ from word to word.
        let word = word << 32 | word;
        let start = Instant::now();
        control.send_word(word)?;
        let echoed = || Ok(control.is_echoed(word)?.then_some(()));
        machine.poll_until("the word does not come back", echoed)?;
        Ok(start.elapsed())
    };
    let times = (1..=100_000).map(&mut one).collect::<Result<_>>()?;
    print_round_trips("a single word", times)
}

/// Checks that new hosts find the rings and the status of a host that has just ended.
fn second_host(machine: &mut ImageMachine) -> Result<()> {
    for _ in 0..20 {
        ping(&mut ImageDriver::begin_link(machine)?, 100)?;
    }
    Ok(())
}

fn garbage(machine: &mut ImageMachine) -> Result<()> {
    let window = machine.window();
    let mut random = XorshiftGenerator(1);
    let mut noise = vec![0; window.size()];
    for round in 0..50 {
        noise.fill_with(|| random.next() as u8);
        if round % 2 == 0 {
            window.write_bytes(0, &noise)?;
        } else {
            // Behind a good table, of a driver that is ready, and without a word of order.
            machine.order(machine.serving())?;
            LAYOUT.reset(&window)?;
            LAYOUT.table.set_status(&window, status::DRIVER_OK)?;
            window.write_bytes(0x100, &noise[0x100..window.size() - control::SIZE])?;
            scramble_rings(machine, &mut random)?;
        }
        // It has seen the garbage when it takes another order.
        machine.order(ControlOpcode::Word)?;
        ping(&mut ImageDriver::begin_link(machine)?, 10)?;
    }
    Ok(())
}

/// Changes words of the rings while the image reads them.
fn scramble_rings(machine: &ImageMachine, random: &mut XorshiftGenerator) -> Result<()> {
    let window = machine.window();
    for _ in 0..20_000 {
        let at = 0x4000 + random.next() as usize % 0x8000;
        window.store_u16(at & !1, random.next() as u16 % 512)?;
        // Indices that are in order now and then, or there would be nothing to read.
        let ring = LAYOUT.ring_layouts()?[random.next() as usize % 2];
        let used = window.load_u16(ring.used() + 2)?;
        window.store_index(ring.available() + 2, used.wrapping_add(random.next() as u16 % 4))?;
        machine.kick()?;
    }
    Ok(())
}

/// Generator of pseudo-random numbers (xorshift).
struct XorshiftGenerator(u64);

impl XorshiftGenerator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}

fn check_stop(machine: &mut ImageMachine) -> Result<()> {
    machine.issue(ControlOpcode::Stop)?;
    let (status, said) = machine.wait_for_end()?;
    ensure!(status.code() == Some(STOPPED), "QEMU ended with {status}: {said}");
    Ok(())
}

/// Prints the times of round trips.
fn print_round_trips(what: &str, mut times: Vec<Duration>) -> Result<()> {
    times.sort_unstable();
    let (shortest, middle) = times.first().zip(times.get(times.len() / 2)).context("no round trip")?;
    eprintln!("{what}: {} round trips, min {shortest:?}, p50 {middle:?} (emulated)", times.len());
    Ok(())
}
