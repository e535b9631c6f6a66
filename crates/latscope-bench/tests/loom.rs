//! The ring of samples in every interleaving, and with every stale value that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p latscope-bench --test loom --release`
#![cfg(loom)]
#![forbid(unsafe_code)]

use latscope_bench::recorder::ring::{SampleRingWord, drain, write_sample};
use latscope_core::report::Exceedance;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use std::sync::atomic::Ordering;

/// Samples that the ring holds.
const CAPACITY: usize = 2;

/// A word whose stores of samples may lack their order, so that the test shows what that is for.
struct Cell {
    word: AtomicU64,
    stores: Ordering,
    /// Value as the only writer knows it. Loom sees a conflict of a store with the last access alone, which would
    /// be the writer's own load.
    own: std::sync::atomic::AtomicU64,
}

impl SampleRingWord for Cell {
    fn load(&self, order: Ordering) -> u64 {
        if order == Ordering::Relaxed { self.own.load(order) } else { self.word.load(order) }
    }

    fn store(&self, value: u64, order: Ordering) {
        self.own.store(value, Ordering::Relaxed);
        self.word.store(value, if order == Ordering::Release { self.stores } else { order });
    }
}

/// A writer that goes round the ring, and a reader beside it: no sample is torn, and none is taken twice.
fn write_and_read(of_samples: Ordering) {
    loom::model(move || {
        let cell = |stores| Cell { word: AtomicU64::new(0), stores, own: Default::default() };
        let samples: [Cell; 3 * CAPACITY] = std::array::from_fn(|_| cell(of_samples));
        let ring = Arc::new((cell(Ordering::Release), samples));
        let written = ring.clone();
        let writer = thread::spawn(move || {
            for turn in 1..=3 {
                write_sample(&written.0, &written.1, Exceedance { turn, at: turn, value: turn });
            }
        });
        let (mut cursor, mut last) = (0, 0);
        let mut read = |cursor: &mut u64| {
            drain(&ring.0, &ring.1, cursor, &mut |sample| {
                assert!(sample.turn == sample.at && sample.at == sample.value, "torn: {sample:?}");
                assert!(sample.turn > last, "{sample:?} after {last}");
                last = sample.turn;
            })
        };
        let lost = read(&mut cursor);
        writer.join().unwrap();
        let lost = lost + read(&mut cursor);
        assert!(cursor == 3 && lost < 3);
    });
}

#[test]
fn no_sample_is_torn() {
    write_and_read(Ordering::Release);
}

#[test]
#[should_panic(expected = "torn")]
fn without_the_order_of_its_words_a_sample_is_torn() {
    write_and_read(Ordering::Relaxed);
}
