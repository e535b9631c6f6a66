use super::pareto::uniform;
use super::*;
use latscope_core::plan::params;
use latscope_core::quality::Reason;
use latscope_core::report::{SampleBlock, Semantics, Summary};
use latscope_core::testing::{point, report};

const N: u64 = 64_000;

/// A measurement of these values in 128 blocks in order of time.
fn measured(values: impl Iterator<Item = f64>) -> Measurement {
    let values: Vec<u64> = values.map(|value| value.round() as u64).collect();
    let mut histogram = Histogram::new(1000);
    values.iter().for_each(|value| histogram.record(*value));
    let block = |(at, part): (usize, &[u64])| SampleBlock {
        from: at as u64 * 1_000_000_000,
        count: part.len() as u64,
        sum: part.iter().sum(),
        max: part.iter().copied().max().unwrap_or(0),
        median: 0,
    };
    let blocks = values.chunks(values.len().div_ceil(128)).enumerate().map(block).collect();
    let m = point("wake.timer", params([("cpu", 0u64.into())]), Semantics::OneWay, 1.0);
    let summary = Summary::from_histogram(&histogram, &Summary::default());
    Measurement { title: "CPU 0".to_owned(), sampling: Sampling::Event, histogram, summary, blocks, ..m }
}

/// `N` values of a distribution given by the value that one of so many exceeds.
fn drawn(seed: u64, exceeded_once_in: impl Fn(f64) -> f64) -> Measurement {
    let mut random = SplitMix::new(seed);
    measured((0..N).map(|_| exceeded_once_in(1.0 / uniform(&mut random))))
}

fn tail(shape: f64) -> Pareto {
    Pareto { shape, scale: 4_000.0 }
}

fn refused(m: &Measurement, activations: u64, words: &str) {
    let refusal = return_level(m, activations, 1).expect_err(words);
    assert!(refusal.reason.contains(words), "{words:?} is not in {:?}", refusal.reason);
    assert!(refusal.to_string().starts_with("no extrapolation: "));
}

/// The level of a known tail is in the interval, and the shape in its own.
#[test]
fn a_known_tail_is_extrapolated() {
    let mut inside = 0;
    for (seed, shape) in [(1, 0.0), (2, 0.1), (3, -0.2), (4, 0.2), (5, 0.0), (6, -0.4)] {
        let known = tail(shape);
        let m = drawn(seed, |count| 3_000.0 + known.exceeded_once_in(count));
        let activations = 100 * N;
        let level = return_level(&m, activations, 1).unwrap_or_else(|e| panic!("{shape}: {e}"));
        let truth = 3_000.0 + known.exceeded_once_in(activations as f64);
        inside += u32::from(level.interval.contains(truth));
        let first = level.diagnostics.tails[0];
        assert!((first.pareto.shape - shape).abs() < 0.12, "{shape}: {first:?}");
        assert!((level.level / truth - 1.0).abs() < 0.5, "{shape}: {} for {truth}", level.level);
        assert!(level.diagnostics.independent.unwrap() > 0.7);
    }
    assert!(inside >= 5, "{inside} of 6 intervals hold the level they are for");
}

#[test]
fn a_uniform_distribution_has_an_end() {
    let m = drawn(5, |count| 100_000.0 * (1.0 - 1.0 / count));
    let level = return_level(&m, 100 * N, 1).unwrap();
    assert!((level.level - 100_000.0).abs() < 300.0, "{level:?}");
    assert!((level.diagnostics.tails[0].pareto.shape + 1.0).abs() < 0.25, "{level:?}");
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    let m = drawn(1, |count| tail(0.0).exceeded_once_in(count));
    assert_eq!(return_level(&m, 10 * N, 3), return_level(&m, 10 * N, 3));
    let (one, other) = (return_level(&m, 10 * N, 3).unwrap(), return_level(&m, 10 * N, 4).unwrap());
    assert_eq!(one.level, other.level);
    assert_ne!(one.interval, other.interval);
}

#[test]
fn a_heavy_tail_is_refused() {
    refused(&drawn(1, |count| tail(0.8).exceeded_once_in(count)), 10 * N, "too heavy");
    refused(&drawn(2, |count| tail(0.5).exceeded_once_in(count)), 10 * N, "too heavy");
}

#[test]
fn a_trend_is_refused() {
    let mut random = SplitMix::new(1);
    let drift = |at: u64| 1.0 + at as f64 / N as f64;
    let rising = (0..N).map(|at| drift(at) * tail(0.0).exceeded_once_in(1.0 / uniform(&mut random)));
    refused(&measured(rising), 10 * N, "the maxima rise over the run");
    let falling = (0..N).rev().map(|at| drift(at) * tail(0.0).exceeded_once_in(1.0 / uniform(&mut random)));
    refused(&measured(falling), 10 * N, "the maxima fall over the run");
}

#[test]
fn a_busy_time_in_the_middle_is_refused() {
    let mut random = SplitMix::new(1);
    let busy = |at: u64| if (N / 4..3 * N / 4).contains(&at) { 3.0 } else { 1.0 };
    let values = (0..N).map(|at| busy(at) * tail(0.0).exceeded_once_in(1.0 / uniform(&mut random)));
    refused(&measured(values), 10 * N, "come in bouts");
}

#[test]
fn two_kinds_of_delay_are_refused() {
    // Now and then, at any time, something quite different takes 200 µs.
    let mut random = SplitMix::new(3);
    let values = (0..N).map(|_| {
        let own = tail(-0.1).exceeded_once_in(1.0 / uniform(&mut random));
        if uniform(&mut random) < 0.004 { own + 200_000.0 } else { own }
    });
    refused(&measured(values), 10 * N, "the tail is");
}

#[test]
fn an_event_of_another_kind_is_refused() {
    let m = drawn(1, |count| tail(-0.2).exceeded_once_in(count));
    let mut histogram = m.histogram.clone();
    histogram.record(120_000);
    refused(
        &Measurement { histogram, ..m },
        10 * N,
        "the longest event, 120 µs, is not of the tail below it",
    );
}

#[test]
fn what_is_too_little_or_doubtful_is_refused() {
    let m = drawn(1, |count| tail(0.0).exceeded_once_in(count));
    refused(&m, N, "this run itself had 64,000 activations");
    refused(&m, 2000 * N, "is too far");
    refused(&measured((0..500).map(f64::from)), 1_000, "500 activations is too few, it takes 10,000");
    let few = Measurement { blocks: m.blocks[..8].to_vec(), ..m.clone() };
    refused(&few, 10 * N, "there are 8 blocks of time, and it takes 32");
    let mut degraded = m.clone();
    degraded.lower(Reason::new(QualityLevel::Degraded, "not-as-asked", "ran as SCHED_OTHER", ""));
    refused(&degraded, 10 * N, "(ran as SCHED_OTHER)");
    refused(&Measurement { sampling: Sampling::Batch { ops: 9 }, ..m.clone() }, 10 * N, "at once");
    refused(&drawn(1, |_| 5_000.0), 10 * N, "independent peaks");
}

#[test]
fn findings_are_sentences_with_their_numbers() {
    let good = drawn(1, |count| 3_000.0 + tail(0.0).exceeded_once_in(count));
    let heavy = drawn(1, |count| tail(0.8).exceeded_once_in(count));
    let merged = Measurement { blocks: Vec::new(), ..good.clone() };
    let found = extrapolation_findings(&report(vec![good, heavy, merged]), 10 * N, 1);
    let ids: Vec<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids, ["return-level", "no-return-level"]);
    assert!(found[0].text.starts_with("CPU 0: one of 640,000 activations is expected to take longer than "));
    assert!(found[1].text.starts_with("CPU 0: no extrapolation: the tail is too heavy"), "{}", found[1].text);
    assert!(found[0].values["low"] <= found[0].values["level"]);
    assert!(found[1].values["shape"] > 0.4 && !found[1].values.contains_key("level"));
    for name in ["trend_p", "halves_p", "bouts_p", "extremal_index", "threshold_highest"] {
        assert!(found[0].values.contains_key(name), "{name}");
    }
}
