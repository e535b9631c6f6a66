//! Processing of the stream of samples: lines for `-v`, a list for `--spike`.

use super::options::CyclictestOptions;
use super::page::Spikes;
use super::setup::threshold_ns;
use crate::rt::row::RtFigureUnit;
use latscope_core::report::Exceedance;
use std::fmt::Write;

/// Collector of the samples of all threads.
#[derive(Debug)]
pub struct CyclictestSamples {
    verbose: bool,
    unit: RtFigureUnit,
    groups: u64,
    scopes: Vec<Scope>,
    spike: Option<u64>,
    most: usize,
    spikes: Spikes,
    /// Number of samples that came faster than they could be taken.
    pub lost: u64,
}

/// Samples of a thread since its last printed line.
#[derive(Debug, Clone, Default)]
struct Scope {
    taken: u64,
    largest: Option<Exceedance>,
    kept: usize,
}

impl CyclictestSamples {
    /// Returns a collector for so many threads.
    pub fn new(options: &CyclictestOptions, threads: usize) -> CyclictestSamples {
        CyclictestSamples {
            verbose: options.verbose,
            unit: options.unit,
            groups: options.oscilloscope,
            scopes: vec![Scope::default(); threads],
            spike: options.spike.map(|limit| threshold_ns(limit, options.unit)),
            most: options.spike_nodes,
            spikes: Spikes::default(),
            lost: 0,
        }
    }

    /// Takes samples of a thread, and returns the lines to print for them.
    pub fn process_samples(&mut self, thread: usize, samples: &[Exceedance], lost: u64) -> String {
        let mut lines = String::new();
        self.lost += lost;
        for sample in samples {
            if self.spike.is_some_and(|limit| sample.value > limit) {
                self.spike(thread, *sample);
            }
            if let Some(shown) = self.verbose.then(|| self.add_to_group(thread, *sample)).flatten() {
                let value = self.unit.whole_units(shown.value);
                let _ = writeln!(lines, "{thread:8}:{:8}:{value:8}", shown.turn);
            }
        }
        lines
    }

    fn spike(&mut self, thread: usize, sample: Exceedance) {
        self.spikes.count += 1;
        // As many of each thread: which are the first of all is known in the end.
        if self.scopes[thread].kept < self.most {
            self.scopes[thread].kept += 1;
            self.spikes.first.push((sample.at, thread, sample.value));
        }
    }

    /// Returns the largest sample of a group once the group is complete.
    fn add_to_group(&mut self, thread: usize, sample: Exceedance) -> Option<Exceedance> {
        let scope = &mut self.scopes[thread];
        if scope.largest.is_none_or(|largest| sample.value > largest.value) {
            scope.largest = Some(sample);
        }
        scope.taken += 1;
        if scope.taken < self.groups {
            return None;
        }
        scope.taken = 0;
        scope.largest.take()
    }

    /// Returns all spikes in order of time, with instants of a clock that is `ahead` ns ahead of CLOCK_MONOTONIC.
    pub fn spikes(mut self, ahead: u64) -> Spikes {
        self.spikes.first.sort_unstable();
        self.spikes.first.truncate(self.most);
        self.spikes.first.iter_mut().for_each(|(at, ..)| *at += ahead);
        self.spikes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[u64]) -> Vec<Exceedance> {
        let sample = |(turn, value): (u64, &u64)| Exceedance { turn, at: turn * 10, value: *value };
        (0..).zip(values).map(sample).collect()
    }

    fn options(change: impl FnOnce(&mut CyclictestOptions)) -> CyclictestOptions {
        let mut options =
            CyclictestOptions { oscilloscope: 1, spike_nodes: 2, ..CyclictestOptions::default() };
        change(&mut options);
        options
    }

    #[test]
    fn every_sample_is_a_line_of_thread_cycle_and_value() {
        let mut all = CyclictestSamples::new(&options(|o| o.verbose = true), 2);
        assert_eq!(
            all.process_samples(1, &samples(&[14_900, 3_000]), 0),
            "       1:       0:      14\n       1:       1:       3\n"
        );
    }

    #[test]
    fn an_oscilloscope_shows_the_largest_of_a_group_and_its_cycle() {
        let mut all = CyclictestSamples::new(&options(|o| (o.verbose, o.oscilloscope) = (true, 3)), 1);
        assert_eq!(
            all.process_samples(0, &samples(&[1000, 5000, 2000, 9000]), 0),
            "       0:       1:       5\n"
        );
        assert_eq!(all.process_samples(0, &[Exceedance { turn: 4, at: 0, value: 0 }], 0), "");
        assert_eq!(
            all.process_samples(0, &[Exceedance { turn: 5, at: 0, value: 0 }], 0),
            "       0:       3:       9\n"
        );
    }

    #[test]
    fn spikes_are_above_the_limit_in_whole_units_and_the_first_are_kept() {
        let mut all = CyclictestSamples::new(&options(|o| o.spike = Some(5)), 2);
        assert_eq!(all.process_samples(1, &samples(&[5_999, 6_000, 1, 7_000, 8_000]), 3), "");
        all.process_samples(0, &samples(&[9_000]), 0);
        assert_eq!(all.lost, 3);
        assert_eq!(all.spikes(100), Spikes { count: 4, first: vec![(100, 0, 9_000), (110, 1, 6_000)] });
    }
}
