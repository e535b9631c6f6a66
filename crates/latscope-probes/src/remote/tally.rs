//! Counts of messages that are no sample.

use crate::prelude::*;
use latscope_exchange::remote::RemoteChannel;

/// Counts of messages that are no sample, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoteFaultTally {
    /// Messages that did not come back in time.
    pub lost: u64,
    /// Messages that came after their timeout: those that were still waited for are samples, those that had been given
    /// up are not.
    pub late: u64,
    /// Messages with another content or length than was sent.
    pub mismatched: u64,
    /// Messages that came again.
    pub duplicated: u64,
    /// Messages that came after one that was sent later.
    pub reordered: u64,
}

impl RemoteFaultTally {
    /// Returns the reason why nothing was measured, if nothing came back as it was sent: `4 sent, 4 with
    /// another payload`.
    pub fn without_a_reply(&self, channel: &dyn RemoteChannel, sent: u64) -> String {
        let counts = [
            (self.mismatched, "with another payload"),
            (channel.misaddressed(), "to another address"),
            (channel.faults(), "against the protocol"),
            (self.late, "after their timeout"),
        ];
        let known = counts.into_iter().filter(|(count, _)| *count > 0);
        let mut words: Vec<String> = known.map(|(count, what)| format!("{count} {what}")).collect();
        if words.is_empty() {
            words.push(format!("{} lost", self.lost));
        }
        let interference = channel.interference(true).map(|text| format!("; {text}")).unwrap_or_default();
        format!("no reply was valid: {sent} sent, {}{interference}", words.join(", "))
    }

    /// Reports the counts of a point of which so many messages were sent, with those of the channel.
    pub fn report_counts(&self, channel: &dyn RemoteChannel, sent: u64, bench: &mut Bench, index: usize) {
        let RemoteFaultTally { lost, late, mismatched, duplicated, reordered } = *self;
        let all = [
            ("losses", lost),
            ("late", late),
            ("mismatches", mismatched),
            ("duplicates", duplicated + channel.duplicates()),
            ("reorderings", reordered),
            ("faults", channel.faults()),
            ("misaddressed", channel.misaddressed()),
            ("recovered", channel.recovered()),
        ];
        for (name, count) in all {
            bench.add_value(index, name, count as f64, "count", Better::Less);
        }
        if channel.foreign() > 0 {
            bench.add_value(index, "foreign-bytes", channel.foreign() as f64, "count", Better::Less);
        }
        let failed = channel.foreign() > 0 || all.iter().any(|(_, count)| *count > 0);
        let translation = channel.translation();
        if let Some(interference) = channel.interference(failed || translation.is_some()) {
            let remedy = "end that program, or choose another terminal";
            bench.degrade(index, "terminal-shared", interference, remedy);
        } else if let Some(translation) = translation {
            let remedy = "make the other side's terminal raw: stty raw -echo";
            bench.degrade(index, "bytes-translated", translation, remedy);
        } else if channel.foreign() > sent {
            let reason = format!("{} bytes came that belong to no message", channel.foreign());
            bench.degrade(
                index,
                "bytes-foreign",
                reason,
                "end what else writes to that line: a shell, a console",
            );
        }
    }
}
