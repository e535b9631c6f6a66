//! Peers that are late, missing, restarted, or in a hurry; and the kicks that they get.

use super::*;

#[test]
fn either_side_can_have_all_buffers_in_flight() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    for _ in 0..3 {
        let sent = [0; 5].map(|_| host.send_message(1, 2, b"x").map(|_| ()));
        assert_eq!(sent, [Ok(()), Ok(()), Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
        let sent = [0; 5].map(|_| remote.send_message(1, 2, b"x").map(|_| ()));
        assert_eq!(sent, [Ok(()), Ok(()), Ok(()), Ok(()), Err(Unsent::NoBuffer)]);
        for _ in 0..4 {
            assert!(remote.receive_message(&mut buffer).unwrap().is_some());
            assert!(host.receive_message(&mut buffer).unwrap().is_some());
        }
    }
}

#[test]
fn the_remote_waits_for_the_driver_and_notices_an_earlier_run() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    assert!(window.remote(&memory).unwrap().is_none());
    window.reset(&memory).unwrap();
    assert_eq!(window.is_fresh(&memory), Ok(true));
    window.table.set_status(&memory, status::DRIVER).unwrap();
    assert_eq!(window.is_fresh(&memory), Ok(false), "a driver is about to begin");
    let (_, mut remote) = sides(&memory, &window);
    assert_eq!(window.is_fresh(&memory), Ok(false));
    remote.send_message(1, 2, b"x").unwrap();
    // A remote that starts again meets the rings that its predecessor used.
    assert_eq!(window.remote(&memory).map(|_| ()), Err(Fault::Stale));
    assert!(RpmsgRemote::resume(&memory, window.ring_layouts().unwrap(), remote.positions()).is_ok());
    // So it is until the driver starts again, which the first remote notices.
    window.host::<_, 4>(&memory).unwrap();
    assert!(window.remote(&memory).unwrap().is_some());
    window.reset(&memory).unwrap();
    assert_eq!(window.is_fresh(&memory), Ok(true));
    assert_eq!(remote.send_message(1, 2, b"x"), Err(Unsent::Fault(Fault::Reset)));
}

#[test]
fn each_side_is_kicked_for_what_it_listens_to() {
    let window = RpmsgWindow::new(2, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    remote.suppress_kicks(RpmsgLinkEvent::Message).unwrap();
    remote.suppress_kicks(RpmsgLinkEvent::Buffer).unwrap();
    assert_eq!(host.send_message(1, 2, b"x"), Ok(false));
    assert_eq!(remote.request_kick(RpmsgLinkEvent::Message), Ok(true));
    assert_eq!(host.send_message(1, 2, b"x"), Ok(true));
    assert_eq!(host.request_kick(RpmsgLinkEvent::Buffer), Ok(false));
    assert!(remote.receive_message(&mut buffer).unwrap().unwrap().kick);
    assert_eq!(host.request_kick(RpmsgLinkEvent::Buffer), Ok(true));
    host.suppress_kicks(RpmsgLinkEvent::Buffer).unwrap();
    assert!(!remote.receive_message(&mut buffer).unwrap().unwrap().kick);
    host.suppress_kicks(RpmsgLinkEvent::Message).unwrap();
    assert_eq!([0; 2].map(|_| remote.send_message(1, 2, b"x")), [Ok(false); 2]);
    assert_eq!(host.request_kick(RpmsgLinkEvent::Message), Ok(true));
    assert!(!host.receive_message(&mut buffer).unwrap().unwrap().kick);
    assert_eq!(remote.request_kick(RpmsgLinkEvent::Buffer), Ok(true));
    assert!(host.receive_message(&mut buffer).unwrap().unwrap().kick);
}

/// A remote that never comes costs no more than its buffers; one that comes late finds them all, in order.
#[test]
fn a_remote_that_comes_late_finds_all_messages() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    window.reset(&memory).unwrap();
    let mut host: RpmsgHost<_, 4> = window.host(&memory).unwrap();
    let mut buffer = [0; 64];
    for number in 0..100_u8 {
        let sent = host.send_message(1, 2, &[number]);
        assert_eq!(sent.is_ok(), number < 4);
        assert_eq!(
            (host.receive_message(&mut buffer), host.request_kick(RpmsgLinkEvent::Message)),
            (Ok(None), Ok(false))
        );
    }
    let mut remote = window.remote(&memory).unwrap().unwrap();
    for number in 0..4 {
        assert_eq!(remote.receive_message(&mut buffer).unwrap().map(|_| buffer[0]), Some(number));
    }
    assert_eq!(remote.receive_message(&mut buffer), Ok(None));
    assert!(host.send_message(1, 2, b"on").is_ok(), "and the host goes on");
}

/// A peer that sends without end is one message a call, and no more than the ring has at a time.
#[test]
fn a_flood_is_one_message_a_call_and_ends_at_the_ring() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    let (mut sent, mut seen) = (0_u32, 0_u32);
    for _ in 0..1000 {
        while remote.send_message(1, 2, &sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        assert!(sent - seen <= 4);
        assert_eq!(host.receive_message(&mut buffer).unwrap().unwrap().length, 4);
        assert_eq!(buffer[..4], seen.to_le_bytes());
        seen += 1;
    }
}

/// All bytes of the window.
fn contents(memory: &Room) -> Vec<u8> {
    let mut bytes = vec![0; memory.size()];
    memory.read_bytes(0, &mut bytes).unwrap();
    bytes
}

/// A side that is kicked without cause finds nothing and changes nothing; a message whose kick was lost is there for a
/// side that looks without a kick.
#[test]
fn kicks_are_hints() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    for turn in 0..10 {
        let before = contents(&memory);
        for _ in 0..10 {
            assert_eq!(
                (host.receive_message(&mut buffer), remote.receive_message(&mut buffer)),
                (Ok(None), Ok(None))
            );
            assert_eq!(
                [RpmsgLinkEvent::Message, RpmsgLinkEvent::Buffer].map(|event| remote.request_kick(event)),
                [Ok(false), Ok(true)]
            );
        }
        assert_eq!(contents(&memory), before, "turn {turn}");
        // True: a kick is wanted. It does not come.
        assert_eq!(host.send_message(1, 2, b"x"), Ok(true));
        assert_eq!(remote.receive_message(&mut buffer).unwrap().unwrap().length, 1);
        assert_eq!(remote.send_message(1, 2, b"yy"), Ok(true));
        assert_eq!(host.receive_message(&mut buffer).unwrap().unwrap().length, 2);
    }
}

/// The steps that a message is made of: its buffer is with the receiver until it is released.
#[test]
fn a_buffer_that_is_not_released_goes_back_with_the_next_message() {
    let window = RpmsgWindow::new(1, 64, 64).unwrap();
    let memory = room(&window);
    let (mut host, mut remote) = sides(&memory, &window);
    let mut buffer = [0; 64];
    for _ in 0..3 {
        host.post(1, 2, b"x").unwrap();
        assert!(remote.take_message(&mut buffer).unwrap().is_some());
        assert_eq!(
            remote.positions()[1],
            memory.load_u16(window.ring_layouts().unwrap()[1].used() + 2).unwrap()
        );
        assert_eq!(host.post(1, 2, b"x"), Err(Unsent::NoBuffer));
        assert_eq!(remote.take_message(&mut buffer), Ok(None));
        host.post(1, 2, b"x").unwrap();
        assert!(remote.take_message(&mut buffer).unwrap().is_some());
        assert_eq!([remote.release_buffer(), remote.release_buffer()], [Ok(()); 2]);

        remote.post(1, 2, b"y").unwrap();
        assert!(host.take_message(&mut buffer).unwrap().is_some());
        assert_eq!(remote.post(1, 2, b"y"), Err(Unsent::NoBuffer));
        assert_eq!([host.release_buffer(), host.release_buffer()], [Ok(()); 2]);
        remote.post(1, 2, b"y").unwrap();
        assert!(host.take_message(&mut buffer).unwrap().is_some());
        assert_eq!(host.take_message(&mut buffer), Ok(None));
    }
}

/// In rings whose buffers come back in order, all stores of a round are to indices and to buffers: the rest
/// was stored in the first round, and stays in the caches of both sides.
#[test]
fn only_indices_and_messages_are_stored() {
    let window = RpmsgWindow::new(4, 64, 64).unwrap();
    let memory = room(&window);
    window.reset(&memory).unwrap();
    let stored = RefCell::new(Vec::new());
    let watched = StoreHookMemory { memory: &memory, storing: &|at| stored.borrow_mut().push(at) };
    let mut host: RpmsgHost<_, 4> = window.host(watched).unwrap();
    let mut remote = window.remote(watched).unwrap().unwrap();
    for _ in 0..3 {
        stored.borrow_mut().clear();
        for _ in 0..4 {
            let mut buffer = [0; 64];
            host.send_message(1, 2, b"there").unwrap();
            remote.receive_message(&mut buffer).unwrap().unwrap();
            remote.send_message(2, 1, b"back").unwrap();
            host.receive_message(&mut buffer).unwrap().unwrap();
        }
    }
    let rings = window.ring_layouts().unwrap();
    let indices = rings.map(|ring| [ring.available() + 2, ring.used() + 2]).concat();
    let stored = stored.take();
    for index in &indices {
        assert_eq!(stored.iter().filter(|at| *at == index).count(), 4, "{index:#x}");
    }
    for at in stored {
        assert!(at >= window.pools[0].at || indices.contains(&at), "{at:#x}");
    }
}
