//! Begin, end and restart of both sides.

use super::*;
use crate::echo::{RpmsgEcho, RpmsgService};
use crate::header::NAME_SERVICE;
use crate::memory::AtomicCellMemory;
use crate::memory::watched::StoreHookMemory;
use crate::name_service::Announcement;
use crate::{RpmsgLink, link::Unsent};
use std::cell::Cell;
use std::sync::atomic::AtomicU16;

type WindowCellMemory = AtomicCellMemory<Vec<AtomicU16>>;

fn room(window: &RpmsgWindow) -> WindowCellMemory {
    let memory = AtomicCellMemory((0..window.size / 2).map(|_| AtomicU16::new(0)).collect());
    window.reset(&memory).unwrap();
    memory
}

fn small() -> RpmsgWindow {
    RpmsgWindow::new(4, 64, 64).unwrap()
}

/// Gives a buffer back like a foreign remote that makes no checks: the entry, then the index.
fn give_back_blindly(window: &RpmsgWindow, memory: &WindowCellMemory, ring: usize, index: u16) {
    let used = window.ring_layouts().unwrap()[ring].used();
    memory.store_u32(used + 4 + 8 * usize::from(index % 4), 1).unwrap();
    memory.store_u32(used + 8 + 8 * usize::from(index % 4), 20).unwrap();
    memory.store_index(used + 2, index.wrapping_add(1)).unwrap();
}

fn exchange(host: &mut RpmsgHost<&WindowCellMemory, 4>, remote: &mut RpmsgRemote<&WindowCellMemory>) {
    let mut buffer = [0; 48];
    host.send_message(1, 2, b"there").unwrap();
    assert_eq!(remote.receive_message(&mut buffer).unwrap().unwrap().length, 5);
    remote.send_message(2, 1, b"back").unwrap();
    assert_eq!(host.receive_message(&mut buffer).unwrap().unwrap().length, 4);
    assert_eq!(
        (host.receive_message(&mut buffer), remote.receive_message(&mut buffer)),
        (Ok(None), Ok(None))
    );
}

#[test]
fn a_message_that_is_answered_within_the_grace_does_not_reach_the_new_rings() {
    let (window, memory) = (small(), room(&small()));
    for index in [0, 7, 0xFFFF] {
        window.host::<_, 4>(&memory).unwrap();
        let late = || [0, 1].iter().for_each(|ring| give_back_blindly(&window, &memory, *ring, index));
        let mut host = window.host_after(&memory, late).unwrap();
        exchange(&mut host, &mut window.remote(&memory).unwrap().unwrap());
    }
}

#[test]
fn during_the_grace_no_driver_is_ready() {
    let (window, memory) = (small(), room(&small()));
    let mut old: RpmsgHost<_, 4> = window.host(&memory).unwrap();
    let mut remote = window.remote(&memory).unwrap().unwrap();
    exchange(&mut old, &mut remote);
    let mut host = window
        .host_after(&memory, || {
            assert_eq!(window.table.status(&memory), Ok(0));
            assert_eq!(remote.receive_message(&mut [0; 48]), Err(Fault::Reset), "it has looked, and goes");
            assert!(window.remote(&memory).unwrap().is_none());
        })
        .unwrap();
    exchange(&mut host, &mut window.remote(&memory).unwrap().unwrap());
}

#[test]
fn who_stores_into_cleared_rings_is_noticed_before_the_driver_is_ready() {
    let (window, memory) = (small(), room(&small()));
    // The whole of it; and only an entry, the index being about to follow.
    let whole = || give_back_blindly(&window, &memory, 0, 0);
    let second = || give_back_blindly(&window, &memory, 1, 2);
    let entry = || memory.store_u32(window.ring_layouts().unwrap()[1].used() + 4 + 8 * 3 + 4, 1).unwrap();
    let ghosts: [&dyn Fn(); 3] = [&whole, &second, &entry];
    for ghost in ghosts {
        // The buffers are offered one after the other, each with a store of the index.
        for offer in 1..=4 {
            let (index, offers) = (window.ring_layouts().unwrap()[0].available() + 2, Cell::new(0));
            let storing = |at| {
                // The first store to the index clears it.
                offers.set(offers.get() + u32::from(at == index));
                if at == index && offers.get() == 1 + offer {
                    ghost();
                }
            };
            let haunted = StoreHookMemory { memory: &memory, storing: &storing };
            assert_eq!(window.host::<_, 4>(haunted).map(|_| ()), Err(Fault::Stale));
            assert!(window.remote(&memory).unwrap().is_none(), "no driver is ready");
            let mut host = window.host(&memory).unwrap();
            exchange(&mut host, &mut window.remote(&memory).unwrap().unwrap());
        }
    }
}

#[test]
fn a_remote_of_ours_stores_nothing_for_a_driver_that_it_did_not_begin_with() {
    let (window, memory) = (small(), room(&small()));
    for messages in [0, 1, 3, 4] {
        let mut old: RpmsgHost<_, 4> = window.host(&memory).unwrap();
        let mut remote = window.remote(&memory).unwrap().unwrap();
        // As each does at first, it announces something.
        remote.send_message(1, 53, b"name").unwrap();
        old.receive_message(&mut [0; 48]).unwrap().unwrap();
        for _ in 0..messages {
            exchange(&mut old, &mut remote);
        }
        // It is at work on a message, and has a buffer for the reply, when another driver begins.
        old.send_message(1, 2, b"there").unwrap();
        remote.take_message(&mut [0; 48]).unwrap().unwrap();
        assert_eq!(remote.send_message(2, 1, &[0; 60]), Err(Unsent::TooLong));
        let mut host = window.host(&memory).unwrap();
        assert_eq!(remote.send_message(2, 1, b"back"), Err(Unsent::Fault(Fault::Reset)));
        assert_eq!(remote.release_buffer(), Err(Fault::Reset));
        exchange(&mut host, &mut window.remote(&memory).unwrap().unwrap());
    }
}

/// Checks all positions, including those at which the driver's index alone shows nothing.
#[test]
fn a_remote_notices_that_the_driver_ended_or_began_again() {
    let (window, memory) = (small(), room(&small()));
    for messages in 1..20 {
        let mut old: RpmsgHost<_, 4> = window.host(&memory).unwrap();
        let mut remote = window.remote(&memory).unwrap().unwrap();
        for _ in 0..messages {
            exchange(&mut old, &mut remote);
        }
        let mut host: RpmsgHost<_, 4> = window.host(&memory).unwrap();
        for sent in 0..=4 {
            assert_eq!(remote.receive_message(&mut [0; 48]), Err(Fault::Reset), "{messages} then {sent}");
            assert_eq!(remote.request_kick(crate::link::RpmsgLinkEvent::Message), Err(Fault::Reset));
            let _ = host.send_message(1, 2, b"new");
        }
        window.table.set_status(&memory, 0).unwrap();
        assert!(window.remote(&memory).unwrap().is_none());
    }
    let _host: RpmsgHost<_, 4> = window.host(&memory).unwrap();
    let mut remote = window.remote(&memory).unwrap().unwrap();
    window.table.set_status(&memory, status::DRIVER_OK | status::NEEDS_RESET).unwrap();
    assert_eq!(remote.receive_message(&mut [0; 48]), Err(Fault::Reset), "the status is enough");
}

/// A driver that died leaves its status behind; one that comes after it is served.
#[test]
fn a_remote_that_lost_its_driver_serves_the_next() {
    use crate::echo::{EchoStepOutcome, RpmsgEcho, RpmsgService};
    let (window, memory) =
        (RpmsgWindow::new(16, 64, 64).unwrap(), room(&RpmsgWindow::new(16, 64, 64).unwrap()));
    let mut echo = None;
    for run in 0..3 {
        let mut host: RpmsgHost<_, 16> = window.host(&memory).unwrap();
        let mut buffer = [0; 48];
        let mut answered = 0;
        while answered < 40 {
            let _ = host.send_message(9, RpmsgService::Pty.address(), &[run; 40]);
            let serving = echo.get_or_insert_with(|| {
                RpmsgEcho::<_, 48>::new(window.remote(&memory).unwrap().expect("a driver is ready"))
            });
            if serving.poll().step == EchoStepOutcome::Fault(Fault::Reset) {
                echo = None;
            }
            while let Some(received) = host.receive_message(&mut buffer).unwrap() {
                if received.header.destination == 9 {
                    assert_eq!(buffer[..received.length], [run; 40]);
                    answered += 1;
                }
            }
        }
    }
}

#[test]
fn a_remote_announces_only_to_a_driver_that_accepted_it() {
    let window = small();
    for (accepts, announces) in [(0, 0), (table::NAME_SERVICE, 6)] {
        let memory = room(&window);
        let mut host: RpmsgHost<_, 4> = window.host(&memory).unwrap();
        assert_eq!(window.table.accepted(&memory), Ok(table::NAME_SERVICE));
        // As a driver that has not negotiated, or accepted less.
        memory.store_u32(0x24, accepts).unwrap();
        let mut echo = RpmsgEcho::<_, 48>::new(window.remote(&memory).unwrap().unwrap());
        let mut heard = 0;
        let mut payload = [0; 48];
        for _ in 0..20 {
            echo.poll();
            heard += u32::from(host.receive_message(&mut payload).unwrap().is_some());
        }
        echo.announce();
        (0..20).for_each(|_| _ = echo.poll());
        assert_eq!(heard, announces);
        // The services are there all the same.
        while host.receive_message(&mut payload).unwrap().is_some() {
            echo.poll();
        }
        host.send_message(1, RpmsgService::Pty.address(), b"knock").unwrap();
        while echo.counts().replied == 0 {
            echo.poll();
            host.receive_message(&mut payload).unwrap();
        }
    }
}

#[test]
fn buffers_are_as_long_as_the_table_says_and_as_many_as_fit() {
    let of = |to_host, to_remote, size| {
        let table = RpmsgWindow::OPENAMP.table.with_buffers(BufferSizes { to_host, to_remote });
        let window = RpmsgWindow::of_table(table, 0x1_0000, size)?;
        assert!(window.pools[0].end_offset() <= window.pools[1].at && window.pools[1].end_offset() <= size);
        Ok(window.pools.map(|pool| (pool.buffer, pool.count)))
    };
    assert_eq!(of(4096, 512, 0x8_0000), Ok([(4096, 99), (512, 99)]));
    assert_eq!(of(16, 17, 0x8_0000), Ok([(16, 256), (17, 256)]));
    assert_eq!(of(0x2_0000, 0x5_0000, 0x8_0000), Ok([(0x2_0000, 1), (0x5_0000, 1)]));
    let far =
        [(0x2_0000, 0x5_0001, 0x8_0000), (u32::MAX, u32::MAX, 0x8_0000), (512, 512, 0x1_0000), (16, 16, 0)];
    for (to_host, to_remote, size) in far {
        assert_eq!(of(to_host, to_remote, size), Err(Fault::OutOfWindow));
    }
    let usual = RpmsgWindow::of_table(RpmsgWindow::OPENAMP.table, 0x1_0000, 0x8_0000);
    assert_eq!(usual, Ok(RpmsgWindow::OPENAMP), "what OpenAMP has");
}

#[test]
fn messages_of_negotiated_buffers_go_there_and_back() {
    let sizes = BufferSizes { to_host: 1024, to_remote: 2048 };
    let table = small().table.with_buffers(sizes);
    let window = RpmsgWindow::of_table(table, 0x200, 0x4000).unwrap();
    let memory = room(&window);
    let mut host: RpmsgHost<_, 4> = window.host(&memory).unwrap();
    assert_eq!(table.accepted(&memory), Ok(table::NAME_SERVICE | table::BUFFER_SIZES));
    let mut echo = RpmsgEcho::<_, 2032>::new(window.remote(&memory).unwrap().unwrap());
    let mut payload = [0; 2048];
    for (length, comes) in [(1008, 1), (1009, 0), (2032, 0)] {
        host.send_message(1, RpmsgService::Pty.address(), &[7; 2032][..length]).unwrap();
        let mut found = 0;
        for _ in 0..20 {
            echo.poll();
            let message = host.receive_message(&mut payload).unwrap();
            found += u32::from(message.is_some_and(|message| message.header.destination == 1));
        }
        assert_eq!(found, comes, "{length}");
    }
    assert_eq!(host.send_message(1, RpmsgService::Pty.address(), &[7; 2033]), Err(Unsent::TooLong));
    assert_eq!(echo.counts().too_long, 2);
}

#[test]
fn names_of_the_host_are_not_unknown_messages() {
    let (window, memory) = (small(), room(&small()));
    let mut host: RpmsgHost<_, 4> = window.host(&memory).unwrap();
    let mut echo = RpmsgEcho::<_, 48>::new(window.remote(&memory).unwrap().unwrap());
    let goodbye = Announcement { name: RpmsgService::Pty.endpoint_name(), address: 0x400, destroyed: true };
    host.send_message(0x400, NAME_SERVICE, &goodbye.encode_bytes()).unwrap();
    host.send_message(0x400, NAME_SERVICE, b"no name").unwrap();
    for _ in 0..20 {
        echo.poll();
        host.receive_message(&mut [0; 48]).unwrap();
    }
    assert_eq!((echo.counts().unknown, echo.counts().mismatched, echo.faults().total()), (1, 0, 0));
}
