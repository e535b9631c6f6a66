//! Lengths of messages and of buffers.

use super::*;

#[test]
fn a_message_is_as_long_as_a_buffer_allows() {
    let window = RpmsgWindow::new(2, 64, 0x20000).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    assert_eq!(remote.send_message(1, 2, &[7; 49]), Err(Unsent::TooLong));
    assert!(remote.send_message(1, 2, &[7; 48]).is_ok());
    assert_eq!(host.send_message(1, 2, &[7; 65536]), Err(Unsent::TooLong), "the header's length has 16 bits");
    assert!(host.send_message(1, 2, &[7; 65535]).is_ok());
    let mut buffer = vec![0; 65535];
    assert_eq!(host.receive_message(&mut buffer).unwrap().unwrap().length, 48);
    assert_eq!(remote.receive_message(&mut buffer).unwrap().unwrap().length, 65535);
    assert!(buffer.iter().all(|byte| *byte == 7));
    assert!(host.send_message(1, 2, &[]).is_ok());
    assert_eq!(remote.receive_message(&mut buffer).unwrap().unwrap().length, 0);
}

#[test]
fn the_excess_of_a_message_is_lost_and_told() {
    let window = RpmsgWindow::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    host.send_message(1, 2, b"abcdef").unwrap();
    let mut buffer = [0; 4];
    let received = remote.receive_message(&mut buffer).unwrap().unwrap();
    assert_eq!((received.header.length, received.length, &buffer), (6, 4, b"abcd"));
    assert_eq!(remote.receive_message(&mut buffer), Ok(None));
}

#[test]
fn a_message_that_lies_about_its_length_is_dropped_and_its_buffer_kept() {
    let window = RpmsgWindow::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    let used = window.ring_layouts().unwrap()[0].used();
    // What the device says it wrote, and the payload's length in the header.
    for (turn, (written, length)) in
        [(15, 0), (0, 0), (65, 4), (20, 5), (u32::MAX, 0)].into_iter().enumerate()
    {
        remote.send_message(1, 2, b"abcd").unwrap();
        memory.store_u32(used + 4 + 8 * (turn % 2) + 4, written).unwrap();
        memory.store_u16(window.pools[0].at + 64 * (turn % 2) + 12, length).unwrap();
        assert_eq!(host.receive_message(&mut buffer), Err(Fault::Length), "{written} {length}");
    }
    assert!(remote.send_message(1, 2, b"abcd").is_ok());
    assert!(host.receive_message(&mut buffer).unwrap().is_some());

    let descriptors = window.ring_layouts().unwrap()[1].descriptors();
    host.send_message(1, 2, b"abcd").unwrap();
    memory.store_u32(descriptors + 8, 15).unwrap();
    assert_eq!(remote.receive_message(&mut buffer), Err(Fault::Length));
    host.send_message(1, 2, b"abcd").unwrap();
    memory.store_u16(window.pools[1].at + 12, 5).unwrap();
    assert_eq!(remote.receive_message(&mut buffer), Err(Fault::Length));
    host.send_message(1, 2, b"abcd").unwrap();
    assert!(remote.receive_message(&mut buffer).unwrap().is_some());
}

#[test]
fn a_window_of_ones_own_has_no_overlaps() {
    for (num, to_host, to_remote) in [(1, 64, 64), (2, 20, 4096), (256, 512, 512), (16, 65551, 16)] {
        let window = RpmsgWindow::new(num, to_host, to_remote).unwrap();
        let [receive, transmit] = window.ring_layouts().unwrap();
        assert!(crate::table::ResourceTable::SIZE <= receive.descriptors());
        assert!(receive.end_offset() <= transmit.descriptors());
        assert!(transmit.end_offset() <= window.pools[0].at);
        assert!(window.pools[0].end_offset() <= window.pools[1].at);
        assert_eq!(window.pools[1].end_offset(), window.size);
        assert!(window.pools[0].buffer >= to_host && window.pools[1].buffer >= to_remote);
    }
    assert_eq!(RpmsgWindow::new(3, 64, 64), Err(Fault::Ring));
    assert_eq!(RpmsgWindow::new(0, 64, 64), Err(Fault::Ring));
    assert_eq!(RpmsgWindow::new(2, u32::MAX, 64), Err(Fault::Ring));
}

/// Messages of every payload that a header can state pass through a window of long buffers, both ways.
#[test]
fn buffers_of_64_kib_carry_65520_bytes_both_ways() {
    const PAYLOAD: usize = 65_520;
    for (num, to_host, to_remote) in [(32, 65536, 65536), (4, 65536, 512), (4, 512, 65536)] {
        let window = RpmsgWindow::new(num, to_host, to_remote).unwrap();
        let memory = room(&window);
        let (mut host, mut remote) = sides(&memory, &window);
        let rooms = [to_remote, to_host].map(|buffer| (buffer as usize - RpmsgHeader::SIZE).min(PAYLOAD));
        let (mut message, mut buffer) = (vec![0; PAYLOAD + 1], vec![0; PAYLOAD]);
        for turn in 0..2 * u64::from(num) + 1 {
            crate::messages::block::write_block(turn, &mut message);
            let [there, back] = rooms.map(|room| &message[..room]);
            assert_eq!(host.send_message(1, 2, &message[..rooms[0] + 1]), Err(Unsent::TooLong));
            host.send_message(1, 2, there).unwrap();
            let received = remote.receive_message(&mut buffer).unwrap().unwrap();
            assert_eq!(
                (usize::from(received.header.length), &buffer[..received.length]),
                (there.len(), there)
            );
            assert_eq!(remote.send_message(2, 1, &message[..rooms[1] + 1]), Err(Unsent::TooLong));
            remote.send_message(2, 1, back).unwrap();
            let received = host.receive_message(&mut buffer).unwrap().unwrap();
            assert_eq!((usize::from(received.header.length), &buffer[..received.length]), (back.len(), back));
        }
    }
}

#[test]
fn long_buffers_take_the_room_they_need_and_no_more() {
    for num in [1, 32, 64, 256] {
        let window = RpmsgWindow::new(num, 65536, 65536).unwrap();
        let buffers = 2 * usize::from(num) * 65536;
        let rings = 2 * (26 * usize::from(num) + 3 * 64);
        assert!((buffers..buffers + rings + 128).contains(&window.size), "{num}: {}", window.size);
    }
}
