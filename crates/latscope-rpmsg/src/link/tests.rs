//! Both sides over one memory.

use super::*;
use crate::header::NAME_SERVICE;
use crate::memory::Cells;
use crate::memory::watched::Watched;
use crate::name_service::{Announcement, Name};
use crate::ring::Layout;
use crate::table::status;
use crate::{Host, Remote, Window};
use std::cell::RefCell;
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

/// What a window of long messages is made of: every payload that a header can name, both ways.
#[test]
fn buffers_of_64_kib_carry_65520_bytes_both_ways() {
    const PAYLOAD: usize = 65_520;
    for (num, to_host, to_remote) in [(32, 65536, 65536), (4, 65536, 512), (4, 512, 65536)] {
        let window = Window::new(num, to_host, to_remote).unwrap();
        let memory = room(&window);
        let (mut host, mut remote) = sides(&memory, &window);
        let rooms = [to_remote, to_host].map(|buffer| (buffer as usize - Header::SIZE).min(PAYLOAD));
        let (mut message, mut buffer) = (vec![0; PAYLOAD + 1], vec![0; PAYLOAD]);
        for turn in 0..2 * u64::from(num) + 1 {
            crate::messages::block::write(turn, &mut message);
            let [there, back] = rooms.map(|room| &message[..room]);
            assert_eq!(host.send(1, 2, &message[..rooms[0] + 1]), Err(Unsent::TooLong));
            host.send(1, 2, there).unwrap();
            let received = remote.receive(&mut buffer).unwrap().unwrap();
            assert_eq!(
                (usize::from(received.header.length), &buffer[..received.length]),
                (there.len(), there)
            );
            assert_eq!(remote.send(2, 1, &message[..rooms[1] + 1]), Err(Unsent::TooLong));
            remote.send(2, 1, back).unwrap();
            let received = host.receive(&mut buffer).unwrap().unwrap();
            assert_eq!((usize::from(received.header.length), &buffer[..received.length]), (back.len(), back));
        }
    }
}

#[test]
fn long_buffers_take_the_room_they_need_and_no_more() {
    for num in [1, 32, 64, 256] {
        let window = Window::new(num, 65536, 65536).unwrap();
        let buffers = 2 * usize::from(num) * 65536;
        let rings = 2 * (26 * usize::from(num) + 3 * 64);
        assert!((buffers..buffers + rings + 128).contains(&window.size), "{num}: {}", window.size);
    }
}

/// A remote that never comes costs no more than its buffers; one that comes late finds them all, in order.
#[test]
fn a_remote_that_comes_late_finds_all_messages() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    window.reset(&memory).unwrap();
    let mut host: Host<_, 4> = window.host(&memory).unwrap();
    let mut buffer = [0; 64];
    for number in 0..100_u8 {
        let sent = host.send(1, 2, &[number]);
        assert_eq!(sent.is_ok(), number < 4);
        assert_eq!((host.receive(&mut buffer), host.listen(Event::Message)), (Ok(None), Ok(false)));
    }
    let mut remote = window.remote(&memory).unwrap().unwrap();
    for number in 0..4 {
        assert_eq!(remote.receive(&mut buffer).unwrap().map(|_| buffer[0]), Some(number));
    }
    assert_eq!(remote.receive(&mut buffer), Ok(None));
    assert!(host.send(1, 2, b"on").is_ok(), "and the host goes on");
}

/// A peer that sends without end is one message a call, and no more than the ring has at a time.
#[test]
fn a_flood_is_one_message_a_call_and_ends_at_the_ring() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    let (mut sent, mut seen) = (0_u32, 0_u32);
    for _ in 0..1000 {
        while remote.send(1, 2, &sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        assert!(sent - seen <= 4);
        assert_eq!(host.receive(&mut buffer).unwrap().unwrap().length, 4);
        assert_eq!(buffer[..4], seen.to_le_bytes());
        seen += 1;
    }
}

/// All bytes of the window.
fn contents(memory: &Room) -> Vec<u8> {
    let mut bytes = vec![0; memory.size()];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

/// Who is kicked for nothing looks, finds nothing, and changes nothing; a message whose kick was lost is
/// there for who looks nevertheless.
#[test]
fn kicks_are_hints() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    for turn in 0..10 {
        let before = contents(&memory);
        for _ in 0..10 {
            assert_eq!((host.receive(&mut buffer), remote.receive(&mut buffer)), (Ok(None), Ok(None)));
            assert_eq!(
                [Event::Message, Event::Buffer].map(|event| remote.listen(event)),
                [Ok(false), Ok(true)]
            );
        }
        assert_eq!(contents(&memory), before, "turn {turn}");
        // True: a kick is wanted. It does not come.
        assert_eq!(host.send(1, 2, b"x"), Ok(true));
        assert_eq!(remote.receive(&mut buffer).unwrap().unwrap().length, 1);
        assert_eq!(remote.send(1, 2, b"yy"), Ok(true));
        assert_eq!(host.receive(&mut buffer).unwrap().unwrap().length, 2);
    }
}

/// The steps that a message is made of: its buffer is with the receiver until it is released.
#[test]
fn a_buffer_that_is_not_released_goes_back_with_the_next_message() {
    let window = Window::new(1, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    for _ in 0..3 {
        host.post(1, 2, b"x").unwrap();
        assert!(remote.take(&mut buffer).unwrap().is_some());
        assert_eq!(remote.positions()[1], memory.load_u16(window.rings().unwrap()[1].used() + 2).unwrap());
        assert_eq!(host.post(1, 2, b"x"), Err(Unsent::NoBuffer));
        assert_eq!(remote.take(&mut buffer), Ok(None));
        host.post(1, 2, b"x").unwrap();
        assert!(remote.take(&mut buffer).unwrap().is_some());
        assert_eq!([remote.release(), remote.release()], [Ok(()); 2]);

        remote.post(1, 2, b"y").unwrap();
        assert!(host.take(&mut buffer).unwrap().is_some());
        assert_eq!(remote.post(1, 2, b"y"), Err(Unsent::NoBuffer));
        assert_eq!([host.release(), host.release()], [Ok(()); 2]);
        remote.post(1, 2, b"y").unwrap();
        assert!(host.take(&mut buffer).unwrap().is_some());
        assert_eq!(host.take(&mut buffer), Ok(None));
    }
}

/// In rings whose buffers come back in order, all stores of a round are to indices and to buffers: the rest
/// was stored in the first round, and stays in the caches of both sides.
#[test]
fn only_indices_and_messages_are_stored() {
    let window = Window::new(4, 64, 64).unwrap();
    let memory = room(&window);
    window.reset(&memory).unwrap();
    let stored = RefCell::new(Vec::new());
    let watched = Watched { memory: &memory, storing: &|at| stored.borrow_mut().push(at) };
    let mut host: Host<_, 4> = window.host(watched).unwrap();
    let mut remote = window.remote(watched).unwrap().unwrap();
    for _ in 0..3 {
        stored.borrow_mut().clear();
        for _ in 0..4 {
            let mut buffer = [0; 64];
            host.send(1, 2, b"there").unwrap();
            remote.receive(&mut buffer).unwrap().unwrap();
            remote.send(2, 1, b"back").unwrap();
            host.receive(&mut buffer).unwrap().unwrap();
        }
    }
    let rings = window.rings().unwrap();
    let indices = rings.map(|ring| [ring.available() + 2, ring.used() + 2]).concat();
    let stored = stored.take();
    for index in &indices {
        assert_eq!(stored.iter().filter(|at| *at == index).count(), 4, "{index:#x}");
    }
    for at in stored {
        assert!(at >= window.pools[0].at || indices.contains(&at), "{at:#x}");
    }
}
