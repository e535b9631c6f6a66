//! Round trips of all pairs of CPUs, many pairs at the same time: each CPU is in one pair of a round, and after all
//! rounds each has been with each. Some pairs of each class are then measured alone and at once in turn; a class in
//! which that differs is measured alone.

use super::lines::{PingPongLines, PingPongLoop, PingPongLoopPair};
use crate::prelude::*;
use latscope_core::statistics::ratio_of_medians;

/// Rounds in which each of `count` players meets each other once, in pairs (the circle method): `count` - 1 rounds of
/// `count` / 2 pairs; with an odd count one more round, and in each one player rests.
pub(super) fn tournament(count: usize) -> Vec<Vec<(usize, usize)>> {
    let places = count + count % 2;
    if places < 2 {
        return Vec::new();
    }
    let turning = places - 1;
    let mut rounds = Vec::new();
    for round in 0..turning {
        let at = |place: usize| (round + place) % turning;
        let last = (at(0), turning);
        let others = (1..places / 2).map(|place| (at(place), at(turning - place)));
        let pairs = std::iter::once(last).chain(others).filter(|(a, b)| *a < count && *b < count);
        rounds.push(pairs.map(|(a, b)| (a.min(b), a.max(b))).collect());
    }
    rounds
}

/// A pair to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CpuPairPoint {
    /// Index of its point.
    pub point: usize,
    pub cpus: (u32, u32),
    /// Class of the pair, in words.
    pub class: String,
}

/// Difference of the times at once and alone that is accepted.
const MOST_DIFFERENCE: f64 = 0.05;

/// Pairs of a class that are measured again, alone and at once.
const CHECKED: usize = 3;

/// Comparisons of each of these pairs, one right after the other: what drifts in between is in a single one of them.
const COMPARED: usize = 4;

/// Difference between pairs that are measured alone and at once with others.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PairConcurrencyEffect {
    /// No pair was measured with others.
    Alone,
    /// The interval of the ratio is within what is accepted.
    Same,
    /// All of the interval is beyond what is accepted.
    Differs,
    /// The interval has values of both, from one ratio to another; `None` where the run ended before.
    Unknown(Option<(f64, f64)>),
}

impl PairConcurrencyEffect {
    /// Compares times at once and alone, in pairs that were taken one right after the other: the median of their
    /// ratios, and its interval of 95 %.
    fn from_comparison(compared: &[(f64, f64)], seed: u64) -> PairConcurrencyEffect {
        let Some((_, ratio)) = ratio_of_medians(compared, seed) else {
            return PairConcurrencyEffect::Unknown(None);
        };
        let (least, most) = (1.0 - MOST_DIFFERENCE, 1.0 + MOST_DIFFERENCE);
        if ratio.low >= least && ratio.high <= most {
            PairConcurrencyEffect::Same
        } else if ratio.high < least || ratio.low > most {
            PairConcurrencyEffect::Differs
        } else {
            PairConcurrencyEffect::Unknown(Some((ratio.low, ratio.high)))
        }
    }

    /// Way in which the pairs of a class were measured, as it stands in the result.
    fn mode_name(self) -> &'static str {
        match self {
            PairConcurrencyEffect::Alone | PairConcurrencyEffect::Differs => "alone",
            PairConcurrencyEffect::Same | PairConcurrencyEffect::Unknown(_) => "at-once",
        }
    }

    /// Reason why figures at once may not be those alone.
    fn doubt_reason(self) -> Option<String> {
        let PairConcurrencyEffect::Unknown(ratio) = self else { return None };
        Some(match ratio {
            Some((low, high)) => format!(
                "pairs of its class took {low:.2} to {high:.2} times as long at once as alone: whether they disturb each \
                 other is not known"
            ),
            None => {
                "the run ended before it was known whether pairs of its class disturb each other".to_owned()
            }
        })
    }
}

/// Pairs from one message to the next: a worker that is silent for long is ended.
const TOLD: usize = 16;

/// Round trips of the first batch, and the fewest of a batch.
const FIRST: u64 = 16;

/// Most round trips in a batch.
const MOST: u64 = 5_000;

/// Measured times of a pair.
#[derive(Debug, Clone, Default)]
struct CpuPairTimes {
    /// Time of a round trip in each batch, ns, and the stamp at its begin.
    batches: Vec<(f64, u64)>,
    /// Round trips in a batch.
    trips: u64,
    /// True if something else ran during each of them.
    disturbed: bool,
}

impl CpuPairTimes {
    fn median(&self) -> Option<f64> {
        median(&self.batches.iter().map(|(ns, _)| *ns).collect::<Vec<_>>())
    }
}

/// Measures all pairs with these ways to ask and to answer.
///
/// # Errors
/// A thread cannot be started.
pub(super) fn measure_pairs(
    bench: &mut Bench,
    pairs: &[CpuPairPoint],
    sides: PingPongLoopPair,
) -> Result<()> {
    let mut taken: BTreeMap<usize, CpuPairTimes> = BTreeMap::new();
    let rounds = rounds(pairs);
    for (number, round) in rounds.iter().enumerate() {
        if bench.is_stopping() {
            break;
        }
        if rounds.len() > 1 {
            bench.announce_wait(&format!("round {} of {}", number + 1, rounds.len()));
        }
        taken.extend(at_once(bench, round, sides)?);
    }
    let mut classes: BTreeMap<&str, Vec<&CpuPairPoint>> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| taken.contains_key(&pair.point)) {
        classes.entry(&pair.class).or_default().push(pair);
    }
    for members in classes.into_values() {
        let difference = compare_pairs(bench, &members, &rounds, sides)?;
        let differs = difference == PairConcurrencyEffect::Differs;
        let again = if differs { measure_in_turn(bench, &members, sides)? } else { BTreeMap::new() };
        for pair in members {
            let ended = differs && !again.contains_key(&pair.point);
            let difference = if ended { PairConcurrencyEffect::Unknown(None) } else { difference };
            bench.set_param(pair.point, "taken", difference.mode_name().into());
            if let Some(doubt) = difference.doubt_reason() {
                let remedy = "run it on a quieter machine, or without --all-pairs";
                bench.degrade(pair.point, "at-once", doubt, remedy);
            }
        }
        taken.extend(again);
    }
    taken.into_iter().for_each(|(point, taken)| report_pair(bench, point, &taken));
    Ok(())
}

/// Compares some of the pairs of a class alone and with all others of their round.
fn compare_pairs(
    bench: &mut Bench,
    members: &[&CpuPairPoint],
    rounds: &[Vec<&CpuPairPoint>],
    sides: PingPongLoopPair,
) -> Result<PairConcurrencyEffect> {
    let with_others =
        |pair: &CpuPairPoint| rounds.iter().find(|round| round.len() > 1 && round.contains(&pair));
    let (mut any, mut compared) = (false, Vec::new());
    for pair in crate::classes::take_evenly(members, CHECKED) {
        let Some(round) = with_others(pair) else { continue };
        any = true;
        bench.announce_wait(&format!("pair {}-{} alone and at once", pair.cpus.0, pair.cpus.1));
        for _ in 0..COMPARED {
            if bench.is_stopping() {
                break;
            }
            let median_in = |all: &[&CpuPairPoint]| -> Result<Option<f64>> {
                Ok(at_once(bench, all, sides)?.remove(&pair.point).and_then(|taken| taken.median()))
            };
            let together = median_in(round)?;
            compared.extend(together.zip(median_in(&[pair])?));
        }
    }
    Ok(if any {
        PairConcurrencyEffect::from_comparison(&compared, bench.seed())
    } else {
        PairConcurrencyEffect::Alone
    })
}

/// Measures pairs one after the other.
fn measure_in_turn(
    bench: &mut Bench,
    pairs: &[&CpuPairPoint],
    sides: PingPongLoopPair,
) -> Result<BTreeMap<usize, CpuPairTimes>> {
    let mut taken = BTreeMap::new();
    for (number, pair) in pairs.iter().enumerate() {
        if bench.is_stopping() {
            break;
        }
        if number % TOLD == 0 {
            bench.announce_wait(&format!("pair {} of {} alone", number + 1, pairs.len()));
        }
        taken.extend(at_once(bench, &[pair], sides)?);
    }
    Ok(taken)
}

/// The pairs in rounds of a tournament of their CPUs.
fn rounds(pairs: &[CpuPairPoint]) -> Vec<Vec<&CpuPairPoint>> {
    let by_cpus: BTreeMap<(u32, u32), &CpuPairPoint> = pairs.iter().map(|pair| (pair.cpus, pair)).collect();
    let mut cpus: Vec<u32> = pairs.iter().flat_map(|pair| [pair.cpus.0, pair.cpus.1]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let wanted = |(a, b): (usize, usize)| by_cpus.get(&(cpus[a], cpus[b])).copied();
    let rounds =
        tournament(cpus.len()).into_iter().map(|round| round.into_iter().filter_map(wanted).collect());
    rounds.filter(|round: &Vec<&CpuPairPoint>| !round.is_empty()).collect()
}

fn report_pair(bench: &mut Bench, point: usize, taken: &CpuPairTimes) {
    bench.batch_means(point, taken.trips, &taken.batches, taken.disturbed);
    if let Some(median) = bench.median(point) {
        bench.add_value(point, "one-way", median / 2.0, "ns", latscope_core::report::Better::Less);
    }
}

/// Longest time of a round, whatever it has by then.
const LONGEST: Duration = Duration::from_millis(400);

/// Number of a batch after which none comes.
const OVER: u64 = u64::MAX;

/// Orders to the answering thread of a pair.
#[repr(align(128))]
#[derive(Default)]
struct CpuPairOrder {
    /// Number of the batch to answer.
    batch: AtomicU64,
    /// Round trips of the batch, and those of all before it.
    trips: AtomicU64,
    before: AtomicU64,
    /// True if something else ran on the CPU of the answering thread.
    disturbed: AtomicBool,
}

/// Measures disjoint pairs at the same time.
fn at_once(
    bench: &Bench,
    pairs: &[&CpuPairPoint],
    (ask, answer): PingPongLoopPair,
) -> Result<BTreeMap<usize, CpuPairTimes>> {
    let timebase = bench.timebase();
    let stop = bench.stop();
    let limits = (stop.samples.clamp(1, 100) as usize, stop.batch_ns as f64);
    let orders: Vec<CpuPairOrder> = pairs.iter().map(|_| CpuPairOrder::default()).collect();
    let mut taken: Vec<CpuPairTimes> = vec![CpuPairTimes::default(); pairs.len()];
    let begin = AtomicU64::new(0);
    let threads = 2 * pairs.len() as u64;
    std::thread::scope(|scope| {
        for ((pair, order), taken) in pairs.iter().zip(&orders).zip(&mut taken) {
            let begin = &begin;
            let lines = SharedCell::<PingPongLines>::create_zeroed(SharingScope::Threads)
                .context("no memory for the lines")?;
            let theirs = lines.clone();
            threads::start_in(scope, pair.cpus.1, move || {
                begin.fetch_add(1, Ordering::AcqRel);
                answer_batches(&theirs, order, timebase, answer);
            })?;
            let led = threads::start_in(scope, pair.cpus.0, move || {
                wait_for(begin, threads);
                *taken = lead(&lines, order, timebase, ask, limits);
                order.batch.store(OVER, Ordering::Release);
            });
            if led.is_err() {
                // Nobody else ends the answering thread.
                order.batch.store(OVER, Ordering::Release);
            }
            led?;
        }
        anyhow::Ok(())
    })?;
    Ok(pairs.iter().zip(taken).map(|(pair, taken)| (pair.point, taken)).collect())
}

/// Enters the calling thread into a count, and waits until all threads are in it.
fn wait_for(begin: &AtomicU64, threads: u64) {
    begin.fetch_add(1, Ordering::AcqRel);
    let waiting = Instant::now();
    while begin.load(Ordering::Acquire) < threads && waiting.elapsed() < LONGEST {
        std::thread::yield_now();
    }
}

/// Measures batches until there are enough, or the time is over. The first one shows how long a trip takes, and brings
/// the lines and the code into the caches.
fn lead(
    lines: &PingPongLines,
    order: &CpuPairOrder,
    timebase: Timebase,
    ask: PingPongLoop,
    limits: (usize, f64),
) -> CpuPairTimes {
    let (clock, begun) = (timebase.clock(), Instant::now());
    let (samples, batch_ns) = limits;
    let (mut clean, mut disturbed) = (Vec::new(), Vec::new());
    let (mut trips, mut before) = (FIRST, 0);
    for batch in 0..=samples as u64 {
        order.trips.store(trips, Ordering::Relaxed);
        order.before.store(before, Ordering::Relaxed);
        let watch = DisturbanceWatch::watch_thread();
        order.batch.store(batch + 1, Ordering::Release);
        let start = clock.stamp_start();
        ask(lines, before, trips);
        let ns = timebase.interval_ns(clock.stamp_end() - start);
        before += trips;
        // The other side may notice only after its answer: then the next batch counts as disturbed, too.
        let bad = order.disturbed.swap(false, Ordering::AcqRel) || watch.disturbed(ns);
        if batch == 0 {
            trips = ((batch_ns * trips as f64 / ns.max(1.0)) as u64).clamp(FIRST, MOST);
        } else {
            if bad { &mut disturbed } else { &mut clean }.push((ns / trips as f64, start));
            if begun.elapsed() > LONGEST {
                break;
            }
        }
    }
    match clean.is_empty() {
        true => CpuPairTimes { batches: disturbed, trips, disturbed: true },
        false => CpuPairTimes { batches: clean, trips, disturbed: false },
    }
}

/// Answers batch after batch.
fn answer_batches(lines: &PingPongLines, order: &CpuPairOrder, timebase: Timebase, answer: PingPongLoop) {
    let clock = timebase.clock();
    let mut done = 0;
    loop {
        let mut looks = 0_u32;
        let watch = DisturbanceWatch::watch_thread();
        let opened = clock.stamp_start();
        let batch = loop {
            match order.batch.load(Ordering::Acquire) {
                batch if batch != done => break batch,
                _ if looks > 20_000 => {
                    looks = 0;
                    std::thread::yield_now();
                }
                _ => looks += 1,
            }
        };
        if batch == OVER {
            return;
        }
        answer(lines, order.before.load(Ordering::Relaxed), order.trips.load(Ordering::Relaxed));
        if watch.disturbed(timebase.interval_ns(clock.stamp_end() - opened)) {
            order.disturbed.store(true, Ordering::Release);
        }
        done = batch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn in_a_tournament_each_meets_each_once_and_is_in_one_pair_of_a_round() {
        for count in [0, 1, 2, 3, 8, 9, 96, 1024] {
            let rounds = tournament(count);
            let all: BTreeSet<(usize, usize)> = rounds.iter().flatten().copied().collect();
            assert_eq!(all.len(), count * count.saturating_sub(1) / 2, "{count}");
            assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), all.len());
            for round in &rounds {
                let players: BTreeSet<usize> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assert_eq!(players.len(), 2 * round.len());
            }
            if count % 2 == 0 && count > 0 {
                assert_eq!((rounds.len(), rounds[0].len()), (count - 1, count / 2));
            }
        }
    }

    /// The difference of ratios of the time at once to that alone.
    fn difference(ratios: &[f64]) -> PairConcurrencyEffect {
        PairConcurrencyEffect::from_comparison(
            &ratios.iter().map(|ratio| (100.0 * ratio, 100.0)).collect::<Vec<_>>(),
            1,
        )
    }

    #[test]
    fn pairs_that_disturb_each_other_are_told_from_noise() {
        let steady = [1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 1.0, 0.99, 1.0, 1.0, 1.02];
        assert_eq!(difference(&steady), PairConcurrencyEffect::Same);
        assert_eq!(difference(&steady.map(|ratio| ratio * 1.2)), PairConcurrencyEffect::Differs);
        assert_eq!(difference(&steady.map(|ratio| ratio / 1.2)), PairConcurrencyEffect::Differs);
        // A single pair that the host moved meanwhile decides nothing.
        let mut moved = steady;
        moved[3] = 4.7;
        assert_eq!(difference(&moved), PairConcurrencyEffect::Same);
        let noisy = [0.7, 1.4, 0.8, 1.3, 0.9, 1.2, 1.0, 1.1, 0.75, 1.35, 0.85, 1.25];
        assert!(
            matches!(difference(&noisy), PairConcurrencyEffect::Unknown(Some((low, high))) if low < 0.95 && high > 1.05)
        );
        assert!(matches!(difference(&steady.map(|ratio| ratio * 1.05)), PairConcurrencyEffect::Unknown(..)));
    }

    #[test]
    fn what_was_not_compared_is_doubted_and_what_was_alone_is_not() {
        assert_eq!(difference(&[]), PairConcurrencyEffect::Unknown(None));
        assert_eq!(
            (difference(&[]).mode_name(), PairConcurrencyEffect::Alone.mode_name()),
            ("at-once", "alone")
        );
        assert!(
            difference(&[]).doubt_reason().is_some() && difference(&[0.9, 1.1, 1.0]).doubt_reason().is_some()
        );
        assert!(
            [PairConcurrencyEffect::Alone, PairConcurrencyEffect::Same, PairConcurrencyEffect::Differs]
                .iter()
                .all(|d| d.doubt_reason().is_none())
        );
    }

    #[test]
    fn only_wanted_pairs_are_in_the_rounds() {
        let pair = |point, cpus| CpuPairPoint { point, cpus, class: String::new() };
        let pairs = [pair(0, (0, 700)), pair(1, (0, 2000)), pair(2, (5, 700))];
        let rounds = rounds(&pairs);
        assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 3);
        assert!(rounds.iter().all(|round| round.len() <= 2));
    }
}
