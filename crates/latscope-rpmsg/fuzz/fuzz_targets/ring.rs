//! Both sides of a link, and a peer that writes where the input says.
#![no_main]

use latscope_rpmsg::echo::Echo;
use latscope_rpmsg::link::Event;
use latscope_rpmsg::memory::Cells;
use latscope_rpmsg::{Host, Link, Memory, Remote, Window};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicU16;

type Room = Cells<Vec<AtomicU16>>;

/// Does what four bytes say, with one side or behind its back.
fn step(memory: &Room, host: &mut Host<&Room, 4>, echo: &mut Echo<Remote<&Room>, 48>, bytes: [u8; 4]) {
    let [what, first, second, third] = bytes;
    let at = usize::from(u16::from_le_bytes([first, second]));
    match what % 9 {
        0 => drop(host.send(0x400, 0x400 + u32::from(first % 6), &vec![third; second.into()])),
        1 => drop(host.receive(&mut [0; 48])),
        2 => drop(host.listen(if first & 1 == 0 { Event::Message } else { Event::Buffer })),
        3 => drop(host.mute(if first & 1 == 0 { Event::Message } else { Event::Buffer })),
        4 => drop(echo.poll()),
        5 => drop(echo.listen()),
        6 => echo.announce(),
        // The upper half of a word is as good a place as the lower.
        7 => drop(memory.store_u8(at % memory.size(), third)),
        _ => drop(memory.store_u16(at % memory.size() & !1, u16::from(third))),
    }
}

fuzz_target!(|data: &[u8]| {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = Cells((0..window.size / 2).map(|_| AtomicU16::new(0)).collect());
    window.reset(&memory).unwrap();
    let mut host = window.host(&memory).unwrap();
    let mut echo = Echo::new(window.remote(&memory).unwrap().unwrap());
    for bytes in data.as_chunks().0 {
        step(&memory, &mut host, &mut echo, *bytes);
    }
});
