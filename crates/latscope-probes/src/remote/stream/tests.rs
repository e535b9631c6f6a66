use super::super::testing::Fate::{Damage, Echo, Garbage, Lose, Overtaken, Twice};
use super::super::testing::{Fate, Scripted};
use super::*;
use latscope_os::clock::MonotonicRaw;

/// Streams `blocks` blocks or a few more; returns how the stream ended, its result, and the stretches.
fn streamed(
    channel: Scripted,
    blocks: u64,
    sunk: bool,
) -> (Result<(), ChannelFailure>, RemoteStreamOutcome, u64) {
    let mut stream = RemoteBlockStream::new(Box::new(channel), 100, 1_000_000_000, MonotonicRaw);
    let (mut turns, mut stretches) = (0, 0);
    let mut more = || {
        turns += 1;
        turns <= blocks
    };
    let mut record = |_| stretches += 1;
    let ended = match sunk {
        false => stream.echoed(&mut more, &mut record),
        true => stream.send_to_sink(&mut more, &mut record),
    };
    (ended, stream.outcome(), stretches)
}

fn echoed(fates: &[Fate]) -> (Result<(), ChannelFailure>, RemoteStreamOutcome, u64) {
    streamed(Scripted::new(fates.iter().copied()), 40, false)
}

#[test]
fn every_block_is_verified_and_drained() {
    let (ended, outcome, stretches) = echoed(&[]);
    ended.unwrap();
    assert!(outcome.sent >= 40 && outcome.received == outcome.sent, "{outcome:?}");
    // Two windows of four blocks warm up, and a stretch is four windows.
    assert_eq!((outcome.timed.0, stretches), (outcome.sent - 8, (outcome.sent - 8) / 16));
    assert_eq!(outcome.tally, RemoteFaultTally::default());
}

#[test]
fn what_goes_wrong_on_the_way_back_is_counted_and_not_received() {
    for (fate, expected, received) in [
        (Lose, RemoteFaultTally { lost: 1, ..RemoteFaultTally::default() }, 1),
        (Twice, RemoteFaultTally { duplicated: 1, ..RemoteFaultTally::default() }, 0),
        (Garbage, RemoteFaultTally { mismatched: 1, ..RemoteFaultTally::default() }, 0),
        (Damage, RemoteFaultTally { mismatched: 1, lost: 1, ..RemoteFaultTally::default() }, 1),
        (Overtaken, RemoteFaultTally { reordered: 1, ..RemoteFaultTally::default() }, 0),
    ] {
        let (ended, outcome, _) = echoed(&[Echo, Echo, fate]);
        ended.unwrap();
        assert_eq!(outcome.tally, expected, "{fate:?}");
        assert_eq!(outcome.received, outcome.sent - received, "{fate:?}");
    }
}

#[test]
fn a_remote_that_never_answers_ends_it() {
    let (ended, outcome, stretches) = echoed(&[Lose; 100]);
    assert!(matches!(ended, Err(ChannelFailure::Timeout)));
    assert_eq!((outcome.received, outcome.tally.lost, stretches), (0, outcome.sent, 0));
}

#[test]
fn a_sink_tells_what_it_verified() {
    let (ended, outcome, stretches) = streamed(Scripted::new([]).sinking(), 40, true);
    ended.unwrap();
    assert!(outcome.sent > 16 && outcome.received == outcome.sent, "{outcome:?}");
    assert_eq!((outcome.tally, stretches), (RemoteFaultTally::default(), (outcome.sent - 8) / 16));
    for (fate, expected) in [
        (Lose, RemoteFaultTally { lost: 1, ..RemoteFaultTally::default() }),
        (Damage, RemoteFaultTally { mismatched: 1, ..RemoteFaultTally::default() }),
        (Twice, RemoteFaultTally { duplicated: 1, ..RemoteFaultTally::default() }),
    ] {
        let (ended, outcome, _) = streamed(Scripted::new([fate]).sinking(), 40, true);
        ended.unwrap();
        assert_eq!(outcome.tally, expected, "{fate:?}");
        assert!(outcome.received < outcome.sent, "{fate:?}");
    }
}

#[test]
fn receipts_that_do_not_come_end_it() {
    // It echoes blocks, and what asks for receipts is no receipt when it comes back.
    let (ended, outcome, stretches) = streamed(Scripted::new([Lose; 100]), 40, true);
    assert!(matches!(ended, Err(ChannelFailure::Timeout)));
    assert_eq!((outcome.received, stretches), (0, 0));
}
