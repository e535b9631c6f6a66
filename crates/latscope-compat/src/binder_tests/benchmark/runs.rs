//! Rows of a benchmark: its measurements, and the statistics of repetitions. All functions are pure.

use super::filter::BenchmarkFilter;
use crate::binder_tests::words::AndroidOutputVersion;
use latscope_core::statistics::median;

/// Result of one measurement of a payload.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BinderBenchmarkSample {
    /// Number of calls in the measurement.
    pub iterations: u64,
    /// Mean time of a call, in ns.
    pub real: f64,
    /// Mean CPU time of the caller in a call, in ns.
    pub cpu: f64,
    /// Reason for the lack of a measurement; `None` if there is one.
    pub error: Option<String>,
}

/// Kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinderBenchmarkRowKind {
    /// Measurement, with the number of its repetition.
    Repetition(u64),
    /// Statistic of all repetitions.
    Aggregate(RepetitionStatistic),
}

/// Kind of a statistic of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepetitionStatistic {
    /// Mean of the repetitions.
    Mean,
    /// Median of the repetitions.
    Median,
    /// Standard deviation of a sample.
    Deviation,
    /// Coefficient of variation: the standard deviation divided by the mean.
    Variation,
}

/// Row of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct BinderBenchmarkRow {
    /// Name of the benchmark.
    pub name: String,
    /// Index of the benchmark among the chosen benchmarks.
    pub index: usize,
    /// Kind of the row.
    pub kind: BinderBenchmarkRowKind,
    /// Number of repetitions of the benchmark.
    pub repetitions: u64,
    /// Number of calls; for a statistic, the number of repetitions.
    pub iterations: u64,
    /// Time in ns; for [`RepetitionStatistic::Variation`], a ratio.
    pub real: f64,
    /// CPU time in ns; for [`RepetitionStatistic::Variation`], a ratio.
    pub cpu: f64,
    /// Reason for the lack of figures; `None` if there are figures.
    pub error: Option<String>,
}

impl RepetitionStatistic {
    const ALL: [RepetitionStatistic; 4] = [
        RepetitionStatistic::Mean,
        RepetitionStatistic::Median,
        RepetitionStatistic::Deviation,
        RepetitionStatistic::Variation,
    ];

    /// Name of the statistic, as printed.
    pub fn name(self) -> &'static str {
        match self {
            RepetitionStatistic::Mean => "mean",
            RepetitionStatistic::Median => "median",
            RepetitionStatistic::Deviation => "stddev",
            RepetitionStatistic::Variation => "cv",
        }
    }

    fn compute_statistic(self, values: &[f64]) -> f64 {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        match self {
            RepetitionStatistic::Mean => mean,
            RepetitionStatistic::Median => median(values).unwrap_or(0.0),
            RepetitionStatistic::Deviation => {
                (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()
            }
            RepetitionStatistic::Variation if mean == 0.0 => 0.0,
            RepetitionStatistic::Variation => RepetitionStatistic::Deviation.compute_statistic(values) / mean,
        }
    }
}

impl BinderBenchmarkRow {
    /// Name of the benchmark, with the name of the statistic if the row is one.
    pub(crate) fn full_name(&self) -> String {
        match self.kind {
            BinderBenchmarkRowKind::Repetition(_) => self.name.clone(),
            BinderBenchmarkRowKind::Aggregate(statistic) => format!("{}_{}", self.name, statistic.name()),
        }
    }

    /// Returns true if the figures are ratios.
    pub(crate) fn is_ratio(&self) -> bool {
        self.kind == BinderBenchmarkRowKind::Aggregate(RepetitionStatistic::Variation)
    }
}

/// Benchmarks to run: name and payload, from 4 bytes to 64 KiB by doubling.
pub fn benchmarks(
    family: &str,
    layout: AndroidOutputVersion,
    filter: Option<&BenchmarkFilter>,
) -> Vec<(String, u64)> {
    let size = |payload: u64| match layout {
        AndroidOutputVersion::Oreo if payload > 1024 => format!("{}k", payload >> 10),
        _ => payload.to_string(),
    };
    let all =
        (2..=16).map(|power| 1 << power).map(|payload| (format!("{family}/{}", size(payload)), payload));
    all.filter(|(name, _)| filter.is_none_or(|filter| filter.selects_name(name))).collect()
}

/// Returns all rows: for each benchmark its repetitions, then their statistics.
pub fn all_rows(chosen: &[(String, u64)], samples: &[Vec<BinderBenchmarkSample>]) -> Vec<BinderBenchmarkRow> {
    let mut all = Vec::new();
    for (index, ((name, _), samples)) in chosen.iter().zip(samples).enumerate() {
        all.extend(benchmark_rows(name, index, samples));
    }
    all
}

/// Returns the rows of a benchmark.
fn benchmark_rows(name: &str, index: usize, samples: &[BinderBenchmarkSample]) -> Vec<BinderBenchmarkRow> {
    let count = samples.len() as u64;
    let run = |kind, sample: &BinderBenchmarkSample| BinderBenchmarkRow {
        name: name.to_owned(),
        index,
        kind,
        repetitions: count,
        iterations: sample.iterations,
        real: sample.real,
        cpu: sample.cpu,
        error: sample.error.clone(),
    };
    let mut runs: Vec<BinderBenchmarkRow> = samples
        .iter()
        .enumerate()
        .map(|(at, sample)| run(BinderBenchmarkRowKind::Repetition(at as u64), sample))
        .collect();
    let good: Vec<&BinderBenchmarkSample> = samples.iter().filter(|sample| sample.error.is_none()).collect();
    if good.len() > 1 {
        let [real, cpu]: [Vec<f64>; 2] =
            [good.iter().map(|sample| sample.real).collect(), good.iter().map(|sample| sample.cpu).collect()];
        runs.extend(RepetitionStatistic::ALL.map(|statistic| {
            let (real, cpu) = (statistic.compute_statistic(&real), statistic.compute_statistic(&cpu));
            let sample = BinderBenchmarkSample { iterations: good.len() as u64, real, cpu, error: None };
            run(BinderBenchmarkRowKind::Aggregate(statistic), &sample)
        }));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double_and_android_8_counted_in_k() {
        let names = |layout| -> Vec<String> {
            benchmarks("BM", layout, None).into_iter().map(|(name, _)| name).collect()
        };
        let oreo = names(AndroidOutputVersion::Oreo);
        assert_eq!(
            (oreo.len(), oreo[8].as_str(), oreo[9].as_str(), oreo[14].as_str()),
            (15, "BM/1024", "BM/2k", "BM/64k")
        );
        assert_eq!(names(AndroidOutputVersion::Current)[14], "BM/65536");
    }

    #[test]
    fn repetitions_have_statistics() {
        let sample = |real| BinderBenchmarkSample { iterations: 10, real, cpu: real / 2.0, error: None };
        let chosen = [("BM/4".to_owned(), 4)];
        let runs = all_rows(&chosen, &[vec![sample(10.0), sample(40.0), sample(16.0)]]);
        let found: Vec<(String, f64, u64)> =
            runs[3..].iter().map(|run| (run.full_name(), run.real, run.iterations)).collect();
        let deviation = (144.0f64 + 324.0 + 36.0).sqrt() / 2f64.sqrt();
        assert_eq!(found[0], ("BM/4_mean".to_owned(), 22.0, 3));
        assert_eq!(found[1], ("BM/4_median".to_owned(), 16.0, 3));
        assert!((found[2].1 - deviation).abs() < 1e-9 && (found[3].1 - deviation / 22.0).abs() < 1e-9);
        assert!(runs[6].is_ratio());
        assert_eq!(all_rows(&chosen, &[vec![sample(10.0)]]).len(), 1);
    }

    #[test]
    fn what_was_not_measured_is_in_no_statistic() {
        let failed =
            BinderBenchmarkSample { error: Some("no room".to_owned()), ..BinderBenchmarkSample::default() };
        let runs = all_rows(
            &[("BM/4".to_owned(), 4)],
            &[vec![failed, BinderBenchmarkSample { real: 5.0, ..BinderBenchmarkSample::default() }]],
        );
        assert_eq!((runs.len(), runs[0].error.as_deref()), (2, Some("no room")));
    }
}
