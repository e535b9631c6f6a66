//! Both sides over one memory.

use super::*;
use crate::header::NAME_SERVICE;
use crate::memory::Cells;
use crate::name_service::{Announcement, Name};
use crate::ring::Layout;
use crate::table::status;
use crate::{Host, Remote, Window};
use std::sync::atomic::AtomicU16;

type Room = Cells<Vec<AtomicU16>>;

fn room(window: &Window) -> Room {
    Cells((0..window.size / 2).map(|_| AtomicU16::new(0)).collect())
}

fn sides<'a>(memory: &'a Room, window: &Window) -> (Host<&'a Room, 256>, Remote<&'a Room>) {
    window.reset(memory).unwrap();
    let host = window.host(memory).unwrap();
    (host, window.remote(memory).unwrap().unwrap())
}

fn bytes<const N: usize>(memory: &Room, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_window_is_divided_as_openamp_does() {
    let window = Window::OPENAMP;
    let memory = room(&window);
    let (_, mut remote) = sides(&memory, &window);
    assert_eq!(memory.size(), 0x80000);
    assert_eq!(memory.load_u8(0x2C).unwrap() & status::DRIVER_OK, 4);
    // The first and the last buffer that the host offers.
    assert_eq!(bytes(&memory, 0x4000), [0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x4FF0), [0, 0xFE, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x5000), [0, 0, 0, 1, 0, 0, 1, 0], "256 are offered, interrupts wanted");
    assert_eq!(bytes(&memory, 0x9000), [1, 0, 0, 0], "none is sent, interrupts not wanted");

    let name = Name::new("rpmsg-openamp-demo-channel").unwrap();
    let announcement = Announcement { name, address: 0x400, destroyed: false };
    assert_eq!(remote.send(0x400, NAME_SERVICE, &announcement.bytes()), Ok(true));
    let expected = *b"\x00\x04\0\0\x35\0\0\0\0\0\0\0\x28\0\0\0rpmsg-openamp-demo-channel\0\0\0\0\0\0\x00\x04\0\0\0\0\0\0";
    assert_eq!(bytes(&memory, 0x10000), expected);
    assert_eq!(bytes(&memory, 0x6000), [0, 0, 1, 0, 0, 0, 0, 0, 56, 0, 0, 0]);
}

#[test]
fn the_hosts_first_message_is_where_openamp_has_it() {
    let window = Window::OPENAMP;
    let memory = room(&window);
    let (mut host, _) = sides(&memory, &window);
    assert_eq!(host.send(0x400, 0x401, b"abc"), Ok(true));
    assert_eq!(bytes(&memory, 0x8000), [0, 0, 3, 0, 0, 0, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x9000), [1, 0, 1, 0, 0, 0]);
    assert_eq!(bytes(&memory, 0x30000), *b"\x00\x04\0\0\x01\x04\0\0\0\0\0\0\x03\0\0\0abc");
}

#[test]
fn messages_go_both_ways_until_all_indices_wrapped() {
    for num in [2, 4, 16, 256] {
        let window = Window::new(num, 64, 128).unwrap();
        let memory = room(&window);
        let (mut host, mut remote) = sides(&memory, &window);
        let mut buffer = [0; 128];
        for number in 0..66_000_u32 {
            let payload = number.to_le_bytes();
            host.send(number, !number, &payload).unwrap();
            let received = remote.receive(&mut buffer).unwrap().unwrap();
            assert_eq!((received.header.source, received.header.destination), (number, !number));
            remote.send(1, 2, &buffer[..received.length]).unwrap();
            let received = host.receive(&mut buffer).unwrap().unwrap();
            assert_eq!(buffer[..received.length], payload);
        }
        assert_eq!(host.receive(&mut buffer), Ok(None));
        assert_eq!(remote.receive(&mut buffer), Ok(None));
    }
}

#[test]
fn either_side_can_have_all_buffers_in_flight() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    for _ in 0..3 {
        let sent = [0; 5].map(|_| host.send(1, 2, b"x").map(|_| ()));
        assert_eq!(sent, [Ok(()), Ok(()), Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
        let sent = [0; 5].map(|_| remote.send(1, 2, b"x").map(|_| ()));
        assert_eq!(sent, [Ok(()), Ok(()), Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
        for _ in 0..4 {
            assert!(remote.receive(&mut buffer).unwrap().is_some());
            assert!(host.receive(&mut buffer).unwrap().is_some());
        }
    }
}

#[test]
fn buffers_beyond_the_descriptors_are_left_alone() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    window.reset(&memory).unwrap();
    let rings = [Layout::contiguous(0x100, 2, 4).unwrap(), Layout::contiguous(0x180, 2, 4).unwrap()];
    let mut host = Host::<_, 2>::new(&memory, rings, window.pools).unwrap();
    let mut remote = Remote::new(&memory, rings).unwrap();
    let mut buffer = [0; 64];
    let sent = [0; 3].map(|_| host.send(1, 2, b"x").map(|_| ()));
    assert_eq!(sent, [Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
    assert_eq!([0; 3].map(|_| remote.receive(&mut buffer).unwrap().is_some()), [true, true, false]);
    let sent = [0; 3].map(|_| remote.send(1, 2, b"x").map(|_| ()));
    assert_eq!(sent, [Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
}

#[test]
fn a_buffer_that_was_never_used_is_there_to_send_in() {
    let window = Window::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, _) = sides(&memory, &window);
    for expected in [true, true, false] {
        assert_eq!(host.listen(Event::Buffer), Ok(expected));
        let _ = host.send(1, 2, b"x");
    }
}

#[test]
fn a_message_is_as_long_as_a_buffer_allows() {
    let window = Window::new(2, 64, 0x20000).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    assert_eq!(remote.send(1, 2, &[7; 49]), Err(Unsent::TooLong));
    assert!(remote.send(1, 2, &[7; 48]).is_ok());
    assert_eq!(host.send(1, 2, &[7; 65536]), Err(Unsent::TooLong), "the header's length has 16 bits");
    assert!(host.send(1, 2, &[7; 65535]).is_ok());
    let mut buffer = vec![0; 65535];
    assert_eq!(host.receive(&mut buffer).unwrap().unwrap().length, 48);
    assert_eq!(remote.receive(&mut buffer).unwrap().unwrap().length, 65535);
    assert!(buffer.iter().all(|byte| *byte == 7));
    assert!(host.send(1, 2, &[]).is_ok());
    assert_eq!(remote.receive(&mut buffer).unwrap().unwrap().length, 0);
}

#[test]
fn the_excess_of_a_message_is_lost_and_told() {
    let window = Window::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    host.send(1, 2, b"abcdef").unwrap();
    let mut buffer = [0; 4];
    let received = remote.receive(&mut buffer).unwrap().unwrap();
    assert_eq!((received.header.length, received.length, &buffer), (6, 4, b"abcd"));
    assert_eq!(remote.receive(&mut buffer), Ok(None));
}

#[test]
fn a_message_that_lies_about_its_length_is_dropped_and_its_buffer_kept() {
    let window = Window::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    let used = window.rings().unwrap()[0].used();
    // What the device says it wrote, and the payload's length in the header.
    for (turn, (written, length)) in
        [(15, 0), (0, 0), (65, 4), (20, 5), (u32::MAX, 0)].into_iter().enumerate()
    {
        remote.send(1, 2, b"abcd").unwrap();
        memory.store_u32(used + 4 + 8 * (turn % 2) + 4, written).unwrap();
        memory.store_u16(window.pools[0].at + 64 * (turn % 2) + 12, length).unwrap();
        assert_eq!(host.receive(&mut buffer), Err(Fault::Length), "{written} {length}");
    }
    assert!(remote.send(1, 2, b"abcd").is_ok());
    assert!(host.receive(&mut buffer).unwrap().is_some());

    let descriptors = window.rings().unwrap()[1].descriptors();
    host.send(1, 2, b"abcd").unwrap();
    memory.store_u32(descriptors + 8, 15).unwrap();
    assert_eq!(remote.receive(&mut buffer), Err(Fault::Length));
    host.send(1, 2, b"abcd").unwrap();
    memory.store_u16(window.pools[1].at + 12, 5).unwrap();
    assert_eq!(remote.receive(&mut buffer), Err(Fault::Length));
    host.send(1, 2, b"abcd").unwrap();
    assert!(remote.receive(&mut buffer).unwrap().is_some());
}

#[test]
fn the_remote_waits_for_the_driver_and_notices_an_earlier_run() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    assert!(window.remote(&memory).unwrap().is_none());
    window.reset(&memory).unwrap();
    assert_eq!(window.is_fresh(&memory), Ok(true));
    window.table.set_status(&memory, status::DRIVER).unwrap();
    assert_eq!(window.is_fresh(&memory), Ok(false), "a driver is about to begin");
    let (_, mut remote) = sides(&memory, &window);
    assert_eq!(window.is_fresh(&memory), Ok(false));
    remote.send(1, 2, b"x").unwrap();
    // A remote that starts again meets the rings that its predecessor used.
    assert_eq!(window.remote(&memory).map(|_| ()), Err(Fault::Stale));
    assert!(Remote::resume(&memory, window.rings().unwrap(), remote.positions()).is_ok());
    // So it is until the driver starts again, which the first remote notices.
    window.host::<_, 4>(&memory).unwrap();
    assert!(window.remote(&memory).unwrap().is_some());
    window.reset(&memory).unwrap();
    assert_eq!(window.is_fresh(&memory), Ok(true));
    assert_eq!(remote.send(1, 2, b"x"), Err(Unsent::Fault(Fault::Reset)));
}

#[test]
fn a_buffer_that_was_not_used_counts_as_not_taken() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (_, mut remote) = sides(&memory, &window);
    assert_eq!(remote.send(1, 2, &[0; 60]), Err(Unsent::TooLong));
    assert_eq!(remote.positions(), [0, 0]);
    assert_eq!([0; 5].map(|_| remote.send(1, 2, b"x").is_ok()), [true, true, true, true, false]);
}

#[test]
fn each_side_is_kicked_for_what_it_listens_to() {
    let window = Window::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    remote.mute(Event::Message).unwrap();
    remote.mute(Event::Buffer).unwrap();
    assert_eq!(host.send(1, 2, b"x"), Ok(false));
    assert_eq!(remote.listen(Event::Message), Ok(true));
    assert_eq!(host.send(1, 2, b"x"), Ok(true));
    assert_eq!(host.listen(Event::Buffer), Ok(false));
    assert!(remote.receive(&mut buffer).unwrap().unwrap().kick);
    assert_eq!(host.listen(Event::Buffer), Ok(true));
    host.mute(Event::Buffer).unwrap();
    assert!(!remote.receive(&mut buffer).unwrap().unwrap().kick);
    host.mute(Event::Message).unwrap();
    assert_eq!([0; 2].map(|_| remote.send(1, 2, b"x")), [Ok(false); 2]);
    assert_eq!(host.listen(Event::Message), Ok(true));
    assert!(!host.receive(&mut buffer).unwrap().unwrap().kick);
    assert_eq!(remote.listen(Event::Buffer), Ok(true));
    assert!(host.receive(&mut buffer).unwrap().unwrap().kick);
}

#[test]
fn a_window_of_ones_own_has_no_overlaps() {
    for (num, to_host, to_remote) in [(1, 64, 64), (2, 20, 4096), (256, 512, 512), (16, 65551, 16)] {
        let window = Window::new(num, to_host, to_remote).unwrap();
        let [receive, transmit] = window.rings().unwrap();
        assert!(crate::table::Table::SIZE <= receive.descriptors());
        assert!(receive.end() <= transmit.descriptors());
        assert!(transmit.end() <= window.pools[0].at);
        assert!(window.pools[0].end() <= window.pools[1].at);
        assert_eq!(window.pools[1].end(), window.size);
        assert!(window.pools[0].buffer >= to_host && window.pools[1].buffer >= to_remote);
    }
    assert_eq!(Window::new(3, 64, 64), Err(Fault::Ring));
    assert_eq!(Window::new(0, 64, 64), Err(Fault::Ring));
    assert_eq!(Window::new(2, u32::MAX, 64), Err(Fault::Ring));
}
