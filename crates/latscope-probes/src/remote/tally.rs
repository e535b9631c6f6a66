//! What is no sample, counted.

use latscope_bench::bench::Bench;
use latscope_core::report::Better;
use latscope_exchange::remote::Channel;

/// What became of messages that are no sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages that did not come back in time.
    pub lost: u64,
    /// Messages that came when they had been given up.
    pub late: u64,
    /// Messages with another content or length than was sent.
    pub mismatched: u64,
    /// Messages that came again.
    pub duplicated: u64,
    /// Messages that came after one that was sent later.
    pub reordered: u64,
}

impl Tally {
    /// States it of a point, with what the channel counted.
    pub fn tell(&self, channel: &dyn Channel, bench: &mut Bench, index: usize) {
        let Tally { lost, late, mismatched, duplicated, reordered } = *self;
        let all = [
            ("losses", lost),
            ("late", late),
            ("mismatches", mismatched),
            ("duplicates", duplicated),
            ("reorderings", reordered),
            ("faults", channel.faults()),
            ("recovered", channel.recovered()),
        ];
        for (name, count) in all {
            bench.value(index, name, count as f64, "count", Better::Less);
        }
        if channel.foreign() > 0 {
            bench.value(index, "foreign-bytes", channel.foreign() as f64, "count", Better::Less);
        }
        if let Some(translation) = channel.translation() {
            bench.degrade(
                index,
                "bytes-translated",
                translation,
                "make the other side's terminal raw: stty raw -echo",
            );
        }
    }
}
