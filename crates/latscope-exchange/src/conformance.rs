//! Requirements on every link.

use super::links::{self, counter_end};
use super::notify::counter::Lanes;
use super::{Closed, RoundTripCall, TokenLink, echo};
use latscope_os::futex::Tokens;
use latscope_os::monitor::CondvarCounter;
use latscope_os::semaphore::Semaphore;
use latscope_os::shared_cell::SharingScope;
use latscope_os::usage::thread_counts;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Number of tokens that must fit between the endpoints: a Unix socket pair holds about 278 single bytes by default.
const AHEAD: u64 = 100;

/// Tokens sent ahead all arrive, none twice, none lost, even after the end of the sender; then every call reports the
/// end.
fn tokens_arrive_once_and_then_the_end<L: TokenLink>((mut sender, mut receiver): (L, L)) {
    for _ in 0..AHEAD {
        sender.send_token().unwrap();
    }
    drop(sender);
    for _ in 0..AHEAD {
        receiver.receive_token().unwrap();
    }
    assert_eq!(receiver.receive_token(), Err(Closed));
    assert_eq!(receiver.receive_token(), Err(Closed));
    assert_eq!(receiver.send_token(), Err(Closed));
}

/// Data written before a send is seen after the receive, in both directions.
fn what_was_written_before_is_seen<L: TokenLink + 'static>((mut near, mut far): (L, L)) {
    let mailbox = AtomicU64::new(0);
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            for turn in 0..1_000 {
                far.receive_token().unwrap();
                assert_eq!(mailbox.load(Relaxed), 2 * turn + 1);
                mailbox.store(2 * turn + 2, Relaxed);
                far.send_token().unwrap();
            }
        });
        for turn in 0..1_000 {
            mailbox.store(2 * turn + 1, Relaxed);
            near.call().unwrap();
            assert_eq!(mailbox.load(Relaxed), 2 * turn + 2);
        }
        answering.join().unwrap();
    });
}

/// A sender that does not wait for answers loses nothing.
fn a_burst_is_counted<L: TokenLink + 'static>((mut sender, mut receiver): (L, L)) {
    let counting = thread::spawn(move || {
        let mut count = 0;
        while receiver.receive_token().is_ok() {
            count += 1;
        }
        count
    });
    for _ in 0..5_000 {
        sender.send_token().unwrap();
    }
    drop(sender);
    assert_eq!(counting.join().unwrap(), 5_000);
}

/// The end of one endpoint ends the waiting of the other.
fn a_waiting_endpoint_learns_of_the_end<L: TokenLink + 'static>((near, mut far): (L, L)) {
    let waiting = thread::spawn(move || far.receive_token());
    thread::sleep(Duration::from_millis(5));
    drop(near);
    assert_eq!(waiting.join().unwrap(), Err(Closed));
}

/// An echo answers until its caller ends, and then ends too.
fn an_echo_ends_with_its_caller<L: TokenLink + 'static>((mut near, far): (L, L)) {
    let answering = thread::spawn(move || echo(far));
    for _ in 0..100 {
        near.call().unwrap();
    }
    drop(near);
    answering.join().unwrap();
}

/// The receiver gives up its CPU: it is in no hurry to see a token that only
/// comes once the kernel has it asleep.
fn waiting_means_sleeping<L: TokenLink + 'static>((mut near, mut far): (L, L)) {
    let ready = AtomicBool::new(false);
    let thread_id = AtomicU64::new(0);
    thread::scope(|scope| {
        let sleeping = scope.spawn(|| {
            thread_id.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
            let before = thread_counts().voluntary;
            ready.store(true, Relaxed);
            far.receive_token().unwrap();
            thread_counts().voluntary - before
        });
        while !ready.load(Relaxed) {
            thread::yield_now();
        }
        while !asleep(thread_id.load(Relaxed)) {
            thread::yield_now();
        }
        near.send_token().unwrap();
        assert!(sleeping.join().unwrap() >= 1, "recv returned without having slept");
    });
}

/// Returns true if the kernel reports that a thread of this process sleeps.
fn asleep(thread: u64) -> bool {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // "tid (name) state ...": the name may hold anything, so look after the last parenthesis.
    text.rsplit_once(") ").unwrap().1.starts_with('S')
}

fn conforms<L: TokenLink + 'static>(open: impl Fn() -> std::io::Result<(L, L)>) {
    tokens_arrive_once_and_then_the_end(open().unwrap());
    what_was_written_before_is_seen(open().unwrap());
    a_burst_is_counted(open().unwrap());
    a_waiting_endpoint_learns_of_the_end(open().unwrap());
    an_echo_ends_with_its_caller(open().unwrap());
    waiting_means_sleeping(open().unwrap());
}

#[test]
fn semaphore() {
    conforms(|| links::counter_pair::<Semaphore>(SharingScope::Threads));
    conforms(|| links::counter_pair::<Semaphore>(SharingScope::Processes));
}

#[test]
fn futex() {
    conforms(|| links::counter_pair::<Tokens>(SharingScope::Threads));
    conforms(|| links::counter_pair::<Tokens>(SharingScope::Processes));
}

#[test]
fn condvar() {
    conforms(|| links::counter_pair::<CondvarCounter>(SharingScope::Threads));
    conforms(|| links::counter_pair::<CondvarCounter>(SharingScope::Processes));
}

#[test]
fn eventfd() {
    conforms(links::eventfd);
    conforms(links::eventfd_by_libc);
}

#[test]
fn pipe() {
    conforms(links::pipe);
}

#[test]
fn unix_stream() {
    conforms(links::unix_stream);
}

/// Two processes meet the same way: over the descriptor of the memory.
#[test]
fn ends_can_be_made_from_a_descriptor() {
    conforms(|| {
        let lanes = Lanes::<Tokens>::create_zeroed(SharingScope::Processes)?;
        let again = Lanes::map_existing(lanes.descriptor().try_clone_to_owned()?)?;
        Ok((counter_end(lanes, 0), counter_end(again, 1)))
    });
}
