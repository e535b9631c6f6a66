//! Record of the sent messages: which of them came back, and in what order.

use super::tally::RemoteFaultTally;
use std::collections::VecDeque;

/// Number of lost blocks that are remembered, so that they count as late if they come.
const REMEMBERED: usize = 4096;

/// Messages on their way, and counts of the others.
#[derive(Debug, Default)]
pub(crate) struct RemoteMessageLedger {
    first: u64,
    next: u64,
    /// Messages on their way, in the order sent.
    outstanding: VecDeque<u64>,
    /// Last messages that were given up.
    given_up: VecDeque<u64>,
    /// Largest number of the messages that came.
    latest: Option<u64>,
    /// Blocks that came as they were sent, once each, in time.
    pub received: u64,
    /// Counts of messages that are no sample.
    pub tally: RemoteFaultTally,
}

impl RemoteMessageLedger {
    /// Returns a ledger whose numbers begin with `first`; another run's blocks have others.
    pub fn starting_at(first: u64) -> RemoteMessageLedger {
        RemoteMessageLedger { first, next: first, ..RemoteMessageLedger::default() }
    }

    /// The number of the block to send next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Blocks sent so far.
    pub fn sent(&self) -> u64 {
        self.next - self.first
    }

    /// Blocks on their way.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Counts the next message as sent.
    #[inline]
    pub fn record_sent(&mut self) {
        self.outstanding.push_back(self.next);
        self.next += 1;
    }

    /// Skips the number of a sent message that another ledger counts.
    #[inline]
    pub fn skip_number(&mut self) {
        self.next += 1;
    }

    /// Records a sound message; returns true if it counts.
    #[inline]
    pub fn record_received(&mut self, number: u64) -> bool {
        let Some(place) = self.outstanding.iter().position(|sent| *sent == number) else {
            self.surplus(number);
            return false;
        };
        self.outstanding.remove(place);
        self.tally.reordered += u64::from(self.latest > Some(number));
        self.latest = self.latest.max(Some(number));
        self.received += 1;
        true
    }

    /// Counts an unexpected block: late, duplicated, or never sent.
    #[cold]
    fn surplus(&mut self, number: u64) {
        let was_sent = (self.first..self.next).contains(&number);
        match self.given_up.iter().position(|lost| *lost == number) {
            Some(place) => {
                self.given_up.remove(place);
                self.tally.late += 1;
            }
            None if was_sent => self.tally.duplicated += 1,
            None => self.tally.mismatched += 1,
        }
    }

    /// Counts the messages on their way as lost.
    pub fn give_up(&mut self) {
        self.tally.lost += self.outstanding.len() as u64;
        self.given_up.extend(self.outstanding.drain(..));
        let surplus = self.given_up.len().saturating_sub(REMEMBERED);
        self.given_up.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(sent: u64) -> RemoteMessageLedger {
        let mut ledger = RemoteMessageLedger::starting_at(1000);
        (0..sent).for_each(|_| ledger.record_sent());
        ledger
    }

    #[test]
    fn blocks_in_order_are_all_there_is() {
        let mut ledger = ledger(5);
        assert!((1000..1005).all(|number| ledger.record_received(number)));
        assert_eq!((ledger.received, ledger.sent(), ledger.outstanding()), (5, 5, 0));
        assert_eq!(ledger.tally, RemoteFaultTally::default());
    }

    #[test]
    fn each_way_to_go_wrong_is_counted_apart() {
        let mut ledger = ledger(6);
        for number in [1001, 1000, 1000, 1003, 7, 1006] {
            ledger.record_received(number);
        }
        assert_eq!((ledger.received, ledger.outstanding()), (3, 3));
        ledger.give_up();
        assert!(!ledger.record_received(1002), "what comes late does not count");
        assert!(!ledger.record_received(1002));
        let expected = RemoteFaultTally { lost: 3, late: 1, mismatched: 2, duplicated: 2, reordered: 1 };
        assert_eq!(ledger.tally, expected);
    }
}
