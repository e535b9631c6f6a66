//! Output of `binderThroughputTest`, made by pure functions.

use crate::binder_tests::number::general;

/// Figures of a round. Times are in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct ThroughputStatistics {
    /// Number of recorded calls.
    pub calls: u64,
    /// Number of calls longer than `-m`.
    pub misses: u64,
    /// Time from the first call to the end of the last.
    pub elapsed: f64,
    /// Mean time of a call.
    pub mean: f64,
    /// Longest time of a call.
    pub worst: f64,
    /// Shortest time of a call.
    pub best: f64,
    /// Percentiles p50, p90, p95 and p99.
    pub quantiles: [f64; 4],
}

/// Text about any round, printed before its figures. Only workers that call have made calls.
pub fn round(workers: u64, figures: &ThroughputStatistics) -> String {
    let created: String = (0..workers).map(|worker| format!("Created BinderWorker{worker}\n")).collect();
    let rate = figures.calls as f64 * 1e9 / figures.elapsed;
    format!(
        "{created}waiting for workers to complete\niterations per sec: {}\ncollecting results\nkilling workers\n",
        general(rate, 6)
    )
}

fn ms(ns: f64) -> String {
    general(ns / 1e6, 6)
}

/// Text printed after the training round.
pub(crate) fn format_training(figures: &ThroughputStatistics) -> String {
    format!("Max latency during training: {}ms\nCompleted training round\n\n", ms(figures.worst))
}

/// Text with the figures of a round.
pub fn format_figures(figures: &ThroughputStatistics) -> String {
    let mut text = String::new();
    if figures.misses > 0 {
        let share = 100.0 * figures.misses as f64 / figures.calls as f64;
        text = format!(
            "{}% of transactions took longer than estimated max latency. Consider setting -m to be higher than {} \
             microseconds\n",
            general(share, 6),
            (figures.worst / 1000.0) as u64
        );
    }
    let [p50, p90, p95, p99] = figures.quantiles.map(ms);
    text + &format!(
        "average:{}ms worst:{}ms best:{}ms\n50%: {p50} 90%: {p90} 95%: {p95} 99%: {p99} \n",
        ms(figures.mean),
        ms(figures.worst),
        ms(figures.best)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ThroughputStatistics {
        ThroughputStatistics {
            calls: 20_000,
            misses: 0,
            elapsed: 2.5e9,
            mean: 53_100.0,
            worst: 2_800_000.0,
            best: 31_250.0,
            quantiles: [50_000.0, 61_000.0, 70_500.0, 120_000.0],
        }
    }

    #[test]
    fn a_round_counts_the_calls_that_were_made() {
        assert_eq!(
            round(2, &sample()),
            "Created BinderWorker0\nCreated BinderWorker1\nwaiting for workers to complete\niterations per sec: 8000\n\
             collecting results\nkilling workers\n"
        );
        assert_eq!(
            format_training(&sample()),
            "Max latency during training: 2.8ms\nCompleted training round\n\n"
        );
    }

    #[test]
    fn times_are_ms_and_a_share_is_a_percentage() {
        let text =
            "average:0.0531ms worst:2.8ms best:0.03125ms\n50%: 0.05 90%: 0.061 95%: 0.0705 99%: 0.12 \n";
        assert_eq!(format_figures(&sample()), text);
        let warned = format_figures(&ThroughputStatistics { misses: 100, ..sample() });
        let warning = "0.5% of transactions took longer than estimated max latency. Consider setting -m to be higher \
                       than 2800 microseconds\n";
        assert_eq!(warned, format!("{warning}{text}"));
    }
}
