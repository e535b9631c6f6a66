//! Both sides over one memory.

mod lengths;
mod peers;

use super::*;
use crate::header::NAME_SERVICE;
use crate::memory::AtomicCellMemory;
use crate::memory::watched::StoreHookMemory;
use crate::name_service::{Announcement, RpmsgEndpointName};
use crate::ring::VirtqueueLayout;
use crate::table::status;
use crate::{RpmsgHost, RpmsgRemote, RpmsgWindow};
use std::cell::RefCell;
use std::sync::atomic::AtomicU16;

type Room = AtomicCellMemory<Vec<AtomicU16>>;

fn room(window: &RpmsgWindow) -> Room {
    AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect())
}

fn sides<'a>(memory: &'a Room, window: &RpmsgWindow) -> (RpmsgHost<&'a Room, 256>, RpmsgRemote<&'a Room>) {
    window.reset(memory).unwrap();
    let host = window.host(memory).unwrap();
    (host, window.remote(memory).unwrap().unwrap())
}

fn bytes<const N: usize>(memory: &Room, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    memory.read_bytes(at, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_window_is_divided_as_openamp_does() {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (_, mut remote) = sides(&memory, &window);
    assert_eq!(memory.size(), 0x80000);
    assert_eq!(memory.load_u8(0x2C).unwrap() & status::DRIVER_OK, 4);
    // The first and the last buffer that the host offers.
    assert_eq!(bytes(&memory, 0x4000), [0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x4FF0), [0, 0xFE, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x5000), [0, 0, 0, 1, 0, 0, 1, 0], "256 are offered, interrupts wanted");
    assert_eq!(bytes(&memory, 0x9000), [1, 0, 0, 0], "none is sent, interrupts not wanted");

    let name = RpmsgEndpointName::new("rpmsg-openamp-demo-channel").unwrap();
    let announcement = Announcement { name, address: 0x400, destroyed: false };
    assert_eq!(remote.send_message(0x400, NAME_SERVICE, &announcement.encode_bytes()), Ok(true));
    let expected = *b"\x00\x04\0\0\x35\0\0\0\0\0\0\0\x28\0\0\0rpmsg-openamp-demo-channel\0\0\0\0\0\0\x00\x04\0\0\0\0\0\0";
    assert_eq!(bytes(&memory, 0x10000), expected);
    // The used length is that of the buffer.
    assert_eq!(bytes(&memory, 0x6000), [0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
}

#[test]
fn the_hosts_first_message_is_where_openamp_has_it() {
    let window = RpmsgWindow::OPENAMP;
    let memory = room(&window);
    let (mut host, _) = sides(&memory, &window);
    assert_eq!(host.send_message(0x400, 0x401, b"abc"), Ok(true));
    assert_eq!(bytes(&memory, 0x8000), [0, 0, 3, 0, 0, 0, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x9000), [1, 0, 1, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x30000), *b"\x00\x04\0\0\x01\x04\0\0\0\0\0\0\x03\0\0\0abc");
}

#[test]
fn messages_go_both_ways_until_all_indices_wrapped() {
    for num in [2, 4, 16, 256] {
        let window = RpmsgWindow::new(num, 64, 128).unwrap();
        let memory = room(&window);
        let (mut host, mut remote) = sides(&memory, &window);
        let mut buffer = [0; 128];
        for number in 0..66_000_u32 {
            let payload = number.to_le_bytes();
            host.send_message(number, !number, &payload).unwrap();
            let received = remote.receive_message(&mut buffer).unwrap().unwrap();
            assert_eq!((received.header.source, received.header.destination), (number, !number));
            remote.send_message(1, 2, &buffer[..received.length]).unwrap();
            let received = host.receive_message(&mut buffer).unwrap().unwrap();
            assert_eq!(buffer[..received.length], payload);
        }
        assert_eq!(host.receive_message(&mut buffer), Ok(None));
        assert_eq!(remote.receive_message(&mut buffer), Ok(None));
    }
}

#[test]
fn buffers_beyond_the_descriptors_are_left_alone() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    window.reset(&memory).unwrap();
    let rings = [
        VirtqueueLayout::contiguous(0x100, 2, 4).unwrap(),
        VirtqueueLayout::contiguous(0x180, 2, 4).unwrap(),
    ];
    let mut host = RpmsgHost::<_, 2>::new(&memory, rings, window.pools).unwrap();
    let mut remote = RpmsgRemote::new(&memory, rings).unwrap();
    let mut buffer = [0; 64];
    let sent = [0; 3].map(|_| host.send_message(1, 2, b"x").map(|_| ()));
    assert_eq!(sent, [Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
    assert_eq!([0; 3].map(|_| remote.receive_message(&mut buffer).unwrap().is_some()), [true, true, false]);
    let sent = [0; 3].map(|_| remote.send_message(1, 2, b"x").map(|_| ()));
    assert_eq!(sent, [Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
}

#[test]
fn a_buffer_that_was_never_used_is_there_to_send_in() {
    let window = RpmsgWindow::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, _) = sides(&memory, &window);
    for expected in [true, true, false] {
        assert_eq!(host.request_kick(RpmsgLinkEvent::Buffer), Ok(expected));
        let _ = host.send_message(1, 2, b"x");
    }
}

#[test]
fn a_buffer_that_was_not_used_counts_as_not_taken() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (_, mut remote) = sides(&memory, &window);
    assert_eq!(remote.send_message(1, 2, &[0; 60]), Err(Unsent::TooLong));
    assert_eq!(remote.positions(), [0, 0]);
    assert_eq!([0; 5].map(|_| remote.send_message(1, 2, b"x").is_ok()), [true, true, true, true, false]);
}
