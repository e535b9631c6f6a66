//! What every mechanism must hold, under every way of waiting.

use super::wait::{Block, Spin, SpinThenPark};
use super::{
    Call, Closed, Link, SharedEnd, condvar, echo, eventfd, futex, pipe, semaphore, spin, unix_stream,
};
use latscope_os::shared_cell::{Lane, Scope, SharedCell};
use latscope_os::usage::thread_counts;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// How many tokens must fit between the endpoints: a Unix socket pair holds
/// about 278 single bytes by default.
const AHEAD: u64 = 100;

/// Tokens sent ahead all arrive, none twice, none lost, also after the sender
/// is gone; then every call reports the end.
fn tokens_arrive_once_and_then_the_end<L: Link>((mut sender, mut receiver): (L, L)) {
    for _ in 0..AHEAD {
        sender.send().unwrap();
    }
    drop(sender);
    for _ in 0..AHEAD {
        receiver.recv().unwrap();
    }
    assert_eq!(receiver.recv(), Err(Closed));
    assert_eq!(receiver.recv(), Err(Closed));
    assert_eq!(receiver.send(), Err(Closed));
}

/// What was written before a send is seen after the receive, in both directions.
fn what_was_written_before_is_seen<L: Link + 'static>((mut near, mut far): (L, L)) {
    let mailbox = AtomicU64::new(0);
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            for turn in 0..1_000 {
                far.recv().unwrap();
                assert_eq!(mailbox.load(Relaxed), 2 * turn + 1);
                mailbox.store(2 * turn + 2, Relaxed);
                far.send().unwrap();
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
fn a_burst_is_counted<L: Link + 'static>((mut sender, mut receiver): (L, L)) {
    let counting = thread::spawn(move || {
        let mut count = 0;
        while receiver.recv().is_ok() {
            count += 1;
        }
        count
    });
    for _ in 0..5_000 {
        sender.send().unwrap();
    }
    drop(sender);
    assert_eq!(counting.join().unwrap(), 5_000);
}

/// The end of one endpoint ends the waiting of the other.
fn a_waiting_endpoint_learns_of_the_end<L: Link + 'static>((near, mut far): (L, L)) {
    let waiting = thread::spawn(move || far.recv());
    thread::sleep(Duration::from_millis(5));
    drop(near);
    assert_eq!(waiting.join().unwrap(), Err(Closed));
}

/// An echo answers until the caller is gone, then ends.
fn an_echo_ends_with_its_caller<L: Link + 'static>((mut near, far): (L, L)) {
    let answering = thread::spawn(move || echo(far));
    for _ in 0..100 {
        near.call().unwrap();
    }
    drop(near);
    answering.join().unwrap();
}

/// The receiver gives up its CPU: it is in no hurry to see a token that only
/// comes once the kernel has it asleep.
fn waiting_means_sleeping<L: Link + 'static>((mut near, mut far): (L, L)) {
    let ready = AtomicBool::new(false);
    let thread_id = AtomicU64::new(0);
    thread::scope(|scope| {
        let sleeping = scope.spawn(|| {
            thread_id.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
            let before = thread_counts().voluntary;
            ready.store(true, Relaxed);
            far.recv().unwrap();
            thread_counts().voluntary - before
        });
        while !ready.load(Relaxed) {
            thread::yield_now();
        }
        while !asleep(thread_id.load(Relaxed)) {
            thread::yield_now();
        }
        near.send().unwrap();
        assert!(sleeping.join().unwrap() >= 1, "recv returned without having slept");
    });
}

/// Whether the kernel says that a thread of this process sleeps.
fn asleep(thread: u64) -> bool {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // "tid (name) state ...": the name may hold anything, so look after the last parenthesis.
    text.rsplit_once(") ").unwrap().1.starts_with('S')
}

fn conforms<L: Link + 'static>(open: impl Fn() -> std::io::Result<(L, L)>) {
    tokens_arrive_once_and_then_the_end(open().unwrap());
    what_was_written_before_is_seen(open().unwrap());
    a_burst_is_counted(open().unwrap());
    a_waiting_endpoint_learns_of_the_end(open().unwrap());
    an_echo_ends_with_its_caller(open().unwrap());
}

fn conforms_and_blocks<L: Link + 'static>(open: impl Fn() -> std::io::Result<(L, L)>) {
    conforms(&open);
    waiting_means_sleeping(open().unwrap());
}

#[test]
fn semaphore() {
    for scope in [Scope::Threads, Scope::Processes] {
        conforms_and_blocks(|| semaphore::pair::<Block>(scope));
        conforms_and_blocks(|| semaphore::pair::<SpinThenPark>(scope));
        conforms(|| semaphore::pair::<Spin>(scope));
    }
}

#[test]
fn futex() {
    for scope in [Scope::Threads, Scope::Processes] {
        conforms_and_blocks(|| futex::pair::<Block>(scope));
        conforms_and_blocks(|| futex::pair::<SpinThenPark>(scope));
        conforms(|| futex::pair::<Spin>(scope));
    }
}

#[test]
fn condvar() {
    for scope in [Scope::Threads, Scope::Processes] {
        conforms_and_blocks(|| condvar::pair::<Block>(scope));
        conforms_and_blocks(|| condvar::pair::<SpinThenPark>(scope));
        conforms(|| condvar::pair::<Spin>(scope));
    }
}

#[test]
fn eventfd() {
    conforms_and_blocks(eventfd::pair::<Block>);
    conforms_and_blocks(eventfd::pair::<SpinThenPark>);
    conforms(eventfd::pair::<Spin>);
}

#[test]
fn pipe() {
    conforms_and_blocks(pipe::pair::<Block>);
    conforms_and_blocks(pipe::pair::<SpinThenPark>);
    conforms(pipe::pair::<Spin>);
}

#[test]
fn unix_stream() {
    conforms_and_blocks(unix_stream::pair::<Block>);
    conforms_and_blocks(unix_stream::pair::<SpinThenPark>);
    conforms(unix_stream::pair::<Spin>);
}

#[test]
fn spin() {
    conforms(|| spin::pair(Scope::Threads));
}

/// Two processes meet the same way: over the descriptor of the memory.
#[test]
fn ends_can_be_made_from_a_descriptor() {
    conforms(|| {
        let lanes = SharedCell::<[Lane<AtomicU64>; 2]>::create(Scope::Processes)?;
        let again = SharedCell::open(lanes.descriptor().try_clone_to_owned()?)?;
        Ok((SharedEnd::<_, Spin>::new(lanes, 0), SharedEnd::new(again, 1)))
    });
}
