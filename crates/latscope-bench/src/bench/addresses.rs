//! Loops that lie at several addresses: a batch at each in turns.

use super::{Batch, Bench};
use latscope_core::catalogue::{FASTEST_ADDRESS, SLOW_ADDRESSES, SLOWEST_ADDRESS};
use latscope_core::report::Better;
use latscope_core::statistics::{higher_mode, median, quantile};
use std::cell::RefCell;

/// Single events that follow each other at one address: the first one is slower, since the jump there is new.
const EVENTS_IN_TURN: u64 = 8;

/// Most times that are kept of each address.
const KEPT: u64 = 100_000;

/// Addresses in turns, with the times seen at each.
#[derive(Debug)]
pub struct Addresses {
    /// Time of each operation at each address, ns.
    seen: Vec<Vec<f64>>,
    now: usize,
    events: u64,
}

impl Addresses {
    /// Starts at the first of so many addresses, at least one. No memory is allocated after that for as many samples.
    pub fn new(count: usize, samples: u64) -> Addresses {
        let capacity = samples.min(KEPT) as usize / count + 1;
        Addresses { seen: (0..count).map(|_| Vec::with_capacity(capacity)).collect(), now: 0, events: 0 }
    }

    /// Returns the number of the address of the next batch.
    fn next_batch(&mut self) -> usize {
        self.now = (self.now + 1) % self.seen.len();
        self.now
    }

    /// Returns the number of the address of the next single event.
    #[inline]
    pub fn next_event(&mut self) -> usize {
        self.events += 1;
        if self.events.is_multiple_of(EVENTS_IN_TURN) { self.next_batch() } else { self.now }
    }

    /// Keeps the time of an operation at the present address, ns.
    #[inline]
    pub fn record_time(&mut self, ns: f64) {
        let of_address = &mut self.seen[self.now];
        if of_address.len() < of_address.capacity() {
            of_address.push(ns);
        }
    }

    /// Returns the median of each address that has times, ns.
    fn address_medians(&self) -> Vec<f64> {
        self.seen.iter().filter_map(|of_address| median(of_address)).collect()
    }
}

impl Bench<'_> {
    /// Times a short operation in batches: `event(address, n)` runs `n` iterations at the address with this number.
    /// Each batch is at the next address, so that whatever disturbs the machine for a while disturbs all addresses. The
    /// figure is the median over all batches; the range over addresses is stated as values.
    pub fn batch_at_addresses(
        &mut self,
        point: usize,
        batch: Batch,
        addresses: usize,
        mut event: impl FnMut(usize, u64),
    ) {
        let turns = RefCell::new(Addresses::new(addresses, self.stop().samples));
        self.batch_observed(
            point,
            batch,
            &mut || {
                turns.borrow_mut().next_batch();
            },
            &mut |n| {
                let address = turns.borrow().now;
                event(address, n);
            },
            &mut |ps| turns.borrow_mut().record_time(ps as f64 / 1e3),
        );
        self.state_addresses(point, &turns.into_inner());
    }

    /// States the range of the medians of several addresses, and how many of them are in the slower of two modes.
    pub fn state_addresses(&mut self, point: usize, addresses: &Addresses) {
        let medians = addresses.address_medians();
        if medians.len() < 2 {
            return;
        }
        let ends = [(FASTEST_ADDRESS, quantile(&medians, 0.0)), (SLOWEST_ADDRESS, quantile(&medians, 1.0))];
        for (name, ns) in ends {
            self.add_value(point, name, ns.unwrap_or_default(), "ns", Better::Less);
        }
        let slow = higher_mode(&medians).unwrap_or(0);
        let share = 100.0 * slow as f64 / medians.len() as f64;
        self.add_value(point, SLOW_ADDRESSES, share, "%", Better::Neither);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stay_at_an_address_for_a_turn_and_visit_all() {
        let mut addresses = Addresses::new(3, 24);
        let visited: Vec<usize> = (0..24).map(|_| addresses.next_event()).collect();
        assert_eq!(visited[..9], [0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((visited[15], visited[23]), (2, 0));
        assert_eq!([0, 1, 2].map(|one| visited.iter().filter(|at| **at == one).count()), [8, 8, 8]);
    }

    #[test]
    fn each_address_has_the_median_of_its_own_times() {
        let mut addresses = Addresses::new(2, 10);
        for _ in 0..3 {
            addresses.next_batch();
            addresses.record_time([7.0, 9.0][addresses.now]);
        }
        assert_eq!(addresses.address_medians(), [7.0, 9.0]);
        (0..20).for_each(|_| addresses.record_time(1.0));
        assert!(addresses.seen.iter().all(|seen| seen.len() <= 6), "no memory is allocated");
        assert!(Addresses::new(4, 0).address_medians().is_empty());
    }
}
