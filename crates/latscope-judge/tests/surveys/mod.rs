//! The noise of eight real surveys, from which tests make others.

use latscope_core::statistics::{SplitMix, median};
use std::collections::BTreeMap;
use std::path::Path;

/// A row of the survey: of each real run its median, and the rounds by it.
pub struct Row {
    pub medians: Vec<f64>,
    pub rounds: Vec<Vec<f64>>,
}

impl Row {
    /// The standard deviation on the log scale of the runs that are made of it.
    pub fn spread(&self) -> f64 {
        let mut random = SplitMix::new(7);
        let run = |place| median(&self.run(place, &mut random)).map_or(0.0, f64::ln);
        let logs: Vec<f64> = (0..200).map(run).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64).sqrt()
    }

    /// Rounds of a run whose median is that of the real run `place`, and whose rounds scatter as those of another.
    pub fn run(&self, place: usize, random: &mut SplitMix) -> Vec<f64> {
        let rounds = &self.rounds[random.below(self.rounds.len() as u64) as usize];
        let draw =
            |_| rounds[random.below(rounds.len() as u64) as usize] * self.medians[place % self.medians.len()];
        (0..rounds.len()).map(draw).collect()
    }
}

/// The rows of the eight surveys.
pub fn recorded() -> Vec<Row> {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rounds/idle.tsv")).unwrap();
    let mut rows: BTreeMap<(&str, &str), Row> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split('\t').collect();
        let [_survey, probe, params, rounds @ ..] = &words[..] else { panic!("{line:?}") };
        let rounds: Vec<f64> = rounds.iter().map(|ns| ns.parse().unwrap()).collect();
        let middle = median(&rounds).unwrap();
        let row = rows.entry((probe, params)).or_insert(Row { medians: Vec::new(), rounds: Vec::new() });
        row.medians.push(middle);
        row.rounds.push(rounds.iter().map(|ns| ns / middle).collect());
    }
    rows.into_values().collect()
}
