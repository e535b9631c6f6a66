//! Both sides of a link, and a peer that writes where the input says.
#![no_main]

use latscope_rpmsg::echo::RpmsgEcho;
use latscope_rpmsg::link::RpmsgLinkEvent;
use latscope_rpmsg::memory::AtomicCellMemory;
use latscope_rpmsg::{RpmsgHost, RpmsgLink, RpmsgMemory, RpmsgRemote, RpmsgWindow};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicU16;

type Room = AtomicCellMemory<Vec<AtomicU16>>;

/// Both sides, over memory that somebody else writes, too.
struct Game<'a> {
    window: RpmsgWindow,
    memory: &'a Room,
    host: RpmsgHost<&'a Room, 4>,
    echo: RpmsgEcho<RpmsgRemote<&'a Room>, 48>,
}

impl Game<'_> {
    /// Does what four bytes say, with one side or behind its back.
    fn step(&mut self, bytes: [u8; 4]) {
        let [what, first, second, third] = bytes;
        let Game { window, memory, host, echo } = self;
        let at = usize::from(u16::from_le_bytes([first, second]));
        let event = if first & 1 == 0 { RpmsgLinkEvent::Message } else { RpmsgLinkEvent::Buffer };
        match what % 13 {
            0 => drop(host.send_message(0x400, 0x400 + u32::from(first % 6), &vec![third; second.into()])),
            1 => drop(host.receive_message(&mut [0; 48])),
            2 => drop(host.take_message(&mut [0; 48])),
            3 => drop(host.release_buffer()),
            4 => drop(host.request_kick(event)),
            5 => drop(host.suppress_kicks(event)),
            6 => drop(echo.poll()),
            7 => drop(echo.request_kick()),
            8 => echo.announce(),
            // Either side begins again.
            9 => *host = window.host(*memory).unwrap(),
            10 => {
                if let Ok(Some(remote)) = window.remote(*memory) {
                    *echo = RpmsgEcho::new(remote);
                }
            }
            // The upper half of a word is as good a place as the lower.
            11 => drop(memory.store_u8(at % memory.size(), third)),
            _ => drop(memory.store_u16(at % memory.size() & !1, u16::from(third))),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect());
    window.reset(&memory).unwrap();
    let host = window.host(&memory).unwrap();
    let echo = RpmsgEcho::new(window.remote(&memory).unwrap().unwrap());
    let mut game = Game { window, memory: &memory, host, echo };
    for bytes in data.as_chunks().0 {
        game.step(*bytes);
    }
});
