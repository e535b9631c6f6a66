use super::super::testing::Fate::{Damage, Echo, Flood, Garbage, Late, Lose, Overtaken, Twice};
use super::super::testing::{Fate, Scripted};
use super::*;
use latscope_os::clock::MonotonicRaw;

const EXACT: LongPing = LongPing { form: LongPingDivision::Exact, word: PingWordSize::Eight };

fn ping_loop(fates: &[Fate]) -> PingLoop {
    with_timeout(fates, 60_000_000_000)
}

fn with_timeout(fates: &[Fate], timeout: u64) -> PingLoop {
    PingLoop::new(Box::new(Scripted::new(fates.iter().copied())), timeout)
}

fn ping(ping_loop: &mut PingLoop) -> bool {
    match ping_loop.ping(PingContentKind::Ping, ShortPing::SIZE, MonotonicRaw) {
        Ok(_) => true,
        Err(ChannelFailure::Timeout) => false,
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn pings_of_every_kind_come_back() {
    for (kind, length) in [
        (PingContentKind::Ping, 48),
        (PingContentKind::Block, 8),
        (PingContentKind::Block, 13),
        (PingContentKind::Block, 496),
        (PingContentKind::Word, 4),
    ] {
        let mut ping_loop = ping_loop(&[]);
        for _ in 0..3 {
            ping_loop.ping(kind, length, MonotonicRaw).unwrap();
        }
        assert_eq!(ping_loop.tally(), RemoteFaultTally::default());
    }
}

#[test]
fn a_late_echo_is_not_that_of_the_next_ping() {
    let mut ping_loop = ping_loop(&[Late]);
    assert!(!ping(&mut ping_loop), "it is lost");
    assert!(ping(&mut ping_loop));
    assert_eq!(ping_loop.tally(), RemoteFaultTally { lost: 1, late: 1, ..RemoteFaultTally::default() });
}

#[test]
fn an_echo_that_is_there_after_the_timeout_is_a_sample_and_late() {
    let mut ping_loop = with_timeout(&[], 0);
    assert!(ping(&mut ping_loop), "it came, and took as long as it took");
    assert_eq!(ping_loop.tally(), RemoteFaultTally { late: 1, ..RemoteFaultTally::default() });
}

#[test]
fn a_long_timeout_is_not_waited_for_once_the_time_is_over() {
    for (timeout, left) in [(60_000_000_000, LAST_TIMEOUT), (20_000_000, 20_000_000)] {
        let mut ping_loop = with_timeout(&[], timeout);
        ping_loop.shorten_timeout();
        assert_eq!(ping_loop.timeout, left);
    }
}

#[test]
fn where_no_reply_is_valid_it_says_what_came() {
    let mut ping_loop = ping_loop(&[Damage, Damage, Lose]);
    (0..3).for_each(|_| assert!(!ping(&mut ping_loop)));
    let words =
        |ping_loop: &PingLoop| ping_loop.tally().without_a_reply(&*ping_loop.channel, ping_loop.sent());
    assert_eq!(words(&ping_loop), "no reply was valid: 3 sent, 2 with another payload");
    let mut silent = with_timeout(&[Lose, Lose], 60_000_000_000);
    (0..2).for_each(|_| assert!(!ping(&mut silent)));
    assert_eq!(words(&silent), "no reply was valid: 2 sent, 2 lost");
}

#[test]
fn messages_that_were_answered_before_the_losses_are_counted() {
    let mut ping_loop = ping_loop(&[Echo, Echo, Lose]);
    assert_eq!([(); 2].map(|()| ping(&mut ping_loop)), [true; 2]);
    assert_eq!(ping_loop.answered(), None, "all were");
    assert!(ping_loop.all_answered() && !ping_loop.none_answered());
    assert!(!ping(&mut ping_loop));
    assert!(!ping_loop.all_answered() && !ping_loop.none_answered());
    assert_eq!(ping_loop.answered(), Some((2, 3)));
}

#[test]
fn what_is_no_echo_is_counted_and_the_echo_still_awaited() {
    let mut ping_loop = ping_loop(&[Garbage, Twice, Echo, Damage, Echo]);
    assert_eq!([(); 5].map(|()| ping(&mut ping_loop)), [true, true, true, false, true]);
    assert_eq!(
        ping_loop.tally(),
        RemoteFaultTally { lost: 1, mismatched: 2, duplicated: 1, ..RemoteFaultTally::default() }
    );
}

#[test]
fn a_flood_of_old_echoes_has_an_end() {
    let mut ping_loop = with_timeout(&[Flood, Lose], 20_000_000);
    assert!(ping(&mut ping_loop));
    assert!(!ping(&mut ping_loop), "the flood is of the first, and the second never comes");
    let tally = ping_loop.tally();
    assert_eq!(tally.lost, 1);
    assert!(tally.duplicated > 0);
}

#[test]
fn packets_are_timed_together_and_one_by_one() {
    for form in [LongPingDivision::Exact, LongPingDivision::Legacy] {
        let sent = LongPing { form, word: PingWordSize::Eight };
        let mut ping_loop = ping_loop(&[]);
        assert!(ping_loop.long_ping(sent, MonotonicRaw).unwrap().is_some());
        let mut packets = 0;
        assert!(ping_loop.lock_step(sent, MonotonicRaw, |_| packets += 1).unwrap().is_some());
        assert_eq!((packets, ping_loop.tally()), (sent.packets(), RemoteFaultTally::default()));
    }
}

#[test]
fn a_long_ping_with_a_doubtful_packet_is_no_sample() {
    for (fate, expected) in [
        (Overtaken, RemoteFaultTally { reordered: 1, ..RemoteFaultTally::default() }),
        (Garbage, RemoteFaultTally { mismatched: 1, ..RemoteFaultTally::default() }),
        (Twice, RemoteFaultTally { duplicated: 1, ..RemoteFaultTally::default() }),
    ] {
        let mut ping_loop = ping_loop(&[Echo, fate]);
        assert!(ping_loop.long_ping(EXACT, MonotonicRaw).unwrap().is_none(), "{fate:?}");
        assert_eq!(ping_loop.tally(), expected, "{fate:?}");
    }
}

#[test]
fn late_packets_are_drained_before_the_next_long_ping() {
    let mut ping_loop = ping_loop(&[Late, Late, Lose, Echo, Echo, Echo, Echo, Echo, Lose]);
    // The sixth echo brings the late ones: nine packets less two that are lost.
    assert!(matches!(ping_loop.long_ping(EXACT, MonotonicRaw), Err(ChannelFailure::Timeout)));
    ping_loop.fence().unwrap();
    assert!(ping_loop.long_ping(EXACT, MonotonicRaw).unwrap().is_some());
    assert_eq!(ping_loop.tally().lost, 1);
    // Copies of the fence itself are late, too.
    let mut ping_loop = self::ping_loop(&[Twice]);
    ping_loop.fence().unwrap();
    assert!(ping_loop.long_ping(EXACT, MonotonicRaw).unwrap().is_some());
    assert_eq!(ping_loop.tally(), RemoteFaultTally { late: 1, ..RemoteFaultTally::default() });
}

#[test]
fn packets_that_come_while_others_wait_for_room_are_of_the_long_ping() {
    let channel = Scripted::new([]).with_room(2);
    let mut ping_loop = PingLoop::new(Box::new(channel), 60_000_000_000);
    assert!(ping_loop.long_ping(EXACT, MonotonicRaw).unwrap().is_some());
    assert_eq!(ping_loop.tally(), RemoteFaultTally::default());
}
