//! Patterns in the instants of late events: do they recur with a period, do they come on several CPUs at once? Each
//! pattern has the chance that instants without any order look like it. The chance is an upper bound: every examined
//! period, size of set and width counts as one more trial.

mod turns;

use crate::binomial::at_least;
use latscope_core::report::{Account, Outlier};
use latscope_core::units::count_with_noun;
use std::collections::BTreeMap;

/// Largest chance of a pattern that is reported.
pub const CHANCE: f64 = 1e-3;

/// Fewest events that can show a pattern.
const FEWEST: usize = 5;

/// Distance within which two events of a CPU count as one, ns.
const BOUT: u64 = 5_000_000;

/// Events on two CPUs that end this close are simultaneous, ns.
const TOGETHER: u64 = 1_000_000;

/// Periods that timers, quotas and schedulers have, ns; the shortest is ten times the resolution.
const ROUND: [u64; 20] = [
    10_000_000, 20_000_000, 25_000_000, 30_000_000, 40_000_000, 50_000_000, 60_000_000, 100_000_000,
    200_000_000, 250_000_000, 300_000_000, 400_000_000, 500_000_000, 1_000_000_000, 2_000_000_000,
    3_000_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000, 60_000_000_000,
];

/// Parts of a period in which the events may lie.
const WIDTHS: [f64; 6] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2];

/// Numbers of the longest events in which a period is searched, beside all events.
const LONGEST: [usize; 5] = [8, 16, 32, 64, 128];

/// An order that instants have.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Instants that recur with a period.
    Periodic {
        /// Number of events that fit, and number of the longest events examined.
        fitting: (usize, usize),
        /// Length of the shortest of the examined events, ns.
        above: u64,
        /// Length of the period, ns.
        period: u64,
        /// Part of the period in which the events lie, ns from its multiples since the begin of the run; the second
        /// value may be beyond the period.
        phase: (u64, u64),
        /// True for the begins of the events, false for their ends.
        begins: bool,
        /// Upper bound on the chance that the pattern is an accident.
        chance: f64,
    },
    /// Ends on several CPUs at once.
    Simultaneous {
        /// Number of events of a CPU that coincide with an event on another CPU, and number of all events of that CPU.
        fitting: (usize, usize),
        /// Largest distance between coinciding events, ns.
        within: u64,
        /// Upper bound on the chance that the pattern is an accident.
        chance: f64,
    },
}

/// Largest difference of two periods that are the same, as a share: that of clocks and of a guessed period.
const ALIKE: f64 = 1e-3;

/// Returns what the account of a run says of a source with this period, in words. `None` if the account has no limit of
/// CPU time with this period that stopped threads: many other sources can have the same period.
pub fn known_source(period: u64, account: &Account) -> Option<String> {
    let is_alike = |other: u64| period.abs_diff(other) as f64 <= ALIKE * other as f64;
    if let Some(quota) = account.throttled_much().filter(|quota| is_alike(quota.period_ns)) {
        let times = count_with_noun(quota.throttled, "period");
        return Some(format!(
            "the CPU quota of the run's control group, which stopped it in {times}, has this period"
        ));
    }
    let real_time = account.real_time.as_ref().filter(|limit| is_alike(limit.period_ns))?;
    let stopped = if real_time.logged { "stopped" } else { "may have stopped" };
    Some(format!("the kernel's limit of real-time threads, which {stopped} some, has this period"))
}

/// Late event on one CPU, ns.
#[derive(Debug, Clone, Copy)]
struct LateEvent {
    cpu: u32,
    begin: u64,
    end: u64,
}

impl LateEvent {
    fn duration_ns(&self) -> u64 {
        self.end - self.begin
    }
}

/// The patterns of late events. `resolution` is the interval at which they could be seen, ns: the
/// instants of a periodic thread are in order by themselves.
pub fn patterns<'a>(outliers: impl IntoIterator<Item = &'a Outlier>, resolution: u64) -> Vec<Pattern> {
    let apart = BOUT.max(2 * resolution);
    let events = outliers.into_iter().map(|outlier| LateEvent {
        cpu: outlier.cpu,
        begin: outlier.at.saturating_sub(outlier.value),
        end: outlier.at,
    });
    let events = bouts(events.collect(), apart);
    let together = TOGETHER.max(resolution);
    let found = [periodic(&instants(&events, apart), resolution), simultaneous(&events, together)];
    found.into_iter().flatten().collect()
}

/// Returns the longest of each group of events of a CPU that follow one another closely: such events have one cause.
fn bouts(mut events: Vec<LateEvent>, apart: u64) -> Vec<LateEvent> {
    events.sort_by_key(|event| (event.cpu, event.end));
    let mut bouts: Vec<LateEvent> = Vec::new();
    let mut last: Option<LateEvent> = None;
    for event in events {
        let follows = last.is_some_and(|last| last.cpu == event.cpu && event.begin < last.end + apart);
        match bouts.last_mut().filter(|_| follows) {
            Some(bout) if event.duration_ns() > bout.duration_ns() => *bout = event,
            Some(_) => {}
            None => bouts.push(event),
        }
        last = Some(event);
    }
    bouts
}

/// Returns the [`bouts`] of all CPUs together: events on two CPUs at once are one instant.
fn instants(events: &[LateEvent], apart: u64) -> Vec<LateEvent> {
    bouts(events.iter().map(|event| LateEvent { cpu: 0, ..*event }).collect(), apart)
}

fn periodic(instants: &[LateEvent], resolution: u64) -> Option<Pattern> {
    let mut longest = instants.to_vec();
    longest.sort_by_key(|event| std::cmp::Reverse(event.duration_ns()));
    let sizes = LONGEST.iter().copied().filter(|size| *size < longest.len()).chain([longest.len()]);
    let sizes: Vec<usize> = sizes.filter(|size| *size >= FEWEST).collect();
    let trials = (sizes.len() * 2 * WIDTHS.len()) as f64;
    let mut best: Option<(Search, Folded)> = None;
    for size in sizes {
        for begins in [true, false] {
            let instant = |event: &LateEvent| if begins { event.begin } else { event.end };
            let mut times: Vec<u64> = longest[..size].iter().map(instant).collect();
            times.sort_unstable();
            let Some(mut found) = likeliest(&times, resolution) else { continue };
            found.chance *= trials;
            if found.chance < best.as_ref().map_or(CHANCE, |(_, best)| best.chance) {
                best = Some((Search { times, above: longest[size - 1].duration_ns(), begins }, found));
            }
        }
    }
    let (Search { times, above, begins }, part) = best?;
    let Folded { fitting, period, phase, chance } = lengthen_period(&times, part)?;
    Some(Pattern::Periodic { fitting, above, period, phase, begins, chance })
}

/// Instants of a number of the longest events, in order.
struct Search {
    times: Vec<u64>,
    /// Length of the shortest of these events, ns.
    above: u64,
    /// True for the begins of the events, false for their ends.
    begins: bool,
}

/// The period that is least likely for instants without order, with this chance.
fn likeliest(times: &[u64], resolution: u64) -> Option<Folded> {
    let mut best: Option<Folded> = None;
    for (period, tried) in periods(times, resolution) {
        let Some(mut folded) = fold_by_period(times, period, resolution) else { continue };
        folded.chance *= tried;
        if best.as_ref().is_none_or(|best| folded.chance < best.chance) {
            best = Some(folded);
        }
    }
    best
}

/// The same events in the largest multiple of their period that they have in common; `None` if that is not sure.
fn lengthen_period(times: &[u64], part: Folded) -> Option<Folded> {
    let Folded { period, phase: (from, to), chance, .. } = part;
    // Since one period before the first part, so that no number is below 0.
    let since = |time: &u64| time + period - from;
    let within: Vec<u64> = times.iter().map(since).filter(|since| since % period <= to - from).collect();
    let mut turns: Vec<u64> = within.iter().map(|since| since / period).collect();
    turns.dedup();
    let elsewhere = times.len() - within.len();
    let (multiple, remainder) = turns::multiple(&turns, turns.len() + elsewhere)?;
    let fits = within.iter().filter(|since| *since / period % multiple == remainder);
    let offsets: Vec<u64> = fits.map(|since| since % period).collect();
    let (first, last) = (offsets.iter().min()?, offsets.iter().max()?);
    let whole = period * multiple;
    let begin = (remainder * period + whole - period + from) % whole;
    let phase = (begin + first, begin + last);
    Some(Folded { fitting: (offsets.len(), times.len()), period: whole, phase, chance })
}

/// Candidate periods, each with its number of trials: round periods, and those that the distances between the events
/// suggest, which can be any.
fn periods(times: &[u64], resolution: u64) -> Vec<(u64, f64)> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let (span, shortest) = (last - first, (10 * resolution).max(ROUND[0]));
    let is_seen = |period: &u64| (shortest..=span / 4).contains(period);
    let round = ROUND.into_iter().filter(is_seen).map(|period| (period, ROUND.len() as f64));
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let middle = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    let guesses = [gaps.first().copied().unwrap_or(0), middle, middle / 2, middle / 3];
    let free = guesses.into_iter().filter(is_seen).map(|guess| {
        let period = refine_period(times, guess);
        // As many periods can be told apart as shift the last event by the least width.
        (period, span as f64 / shortest as f64 / WIDTHS[0])
    });
    round.chain(free).collect()
}

/// The period near a guess that fits the events best, by the ends of chains of whole periods.
fn refine_period(times: &[u64], guess: u64) -> u64 {
    let mut period = guess as f64;
    let first = times[0] as f64;
    for until in 2..=times.len() {
        let (mut products, mut squares) = (0.0, 0.0);
        for time in &times[..until] {
            let turns = ((*time as f64 - first) / period).round();
            products += turns * (*time as f64 - first);
            squares += turns * turns;
        }
        if squares > 0.0 {
            period = products / squares;
        }
    }
    period.max(1.0) as u64
}

/// Instants by their place in a period.
struct Folded {
    /// Number of instants within the narrowest part of the period that holds most of them, and their total.
    fitting: (usize, usize),
    period: u64,
    /// This part; the second value may be beyond the period.
    phase: (u64, u64),
    /// Upper bound on the chance of this for instants without order.
    chance: f64,
}

/// The instants that count for a chance: others in a period of an instant are hardly new ones.
fn spaced(times: &[u64], period: u64) -> Vec<u64> {
    let mut spaced: Vec<u64> = Vec::new();
    for time in times {
        if spaced.last().is_none_or(|last| time - last > period / 2) {
            spaced.push(*time);
        }
    }
    spaced
}

/// Distribution of the instants, which are in order, in a period.
fn fold_by_period(times: &[u64], period: u64, resolution: u64) -> Option<Folded> {
    let mut phases: Vec<u64> = spaced(times, period).iter().map(|time| time % period).collect();
    phases.sort_unstable();
    let all = phases.len();
    if all < FEWEST {
        return None;
    }
    let around = |at: usize| if at < all { phases[at] } else { phases[at - all] + period };
    let mut best: Option<Folded> = None;
    for width in WIDTHS {
        let length = (width * period as f64) as u64;
        let end =
            |from: usize| (from..from + all).take_while(|at| around(*at) - phases[from] <= length).last();
        let Some((from, to)) =
            (0..all).filter_map(|from| Some((from, end(from)?))).max_by_key(|(from, to)| to - from)
        else {
            continue;
        };
        let phase = (phases[from], around(to));
        let (counted, fitting) = (to - from + 1, count_in_window(times, period, phase));
        // Half the period is no fit: only every second multiple has an event.
        if counted < FEWEST || counted * 5 < all * 4 || fitting * 5 < times.len() * 4 {
            continue;
        }
        // The instants are on a grid of their own: a part of the period is wider by a step of it.
        let width = width + resolution as f64 / period as f64;
        let chance = all as f64 * at_least(counted as u64 - 1, all as u64 - 1, width.min(1.0));
        if best.as_ref().is_none_or(|best| chance < best.chance) {
            best = Some(Folded { fitting: (fitting, times.len()), period, phase, chance });
        }
    }
    best
}

/// Number of instants in a part of a period.
fn count_in_window(times: &[u64], period: u64, (from, to): (u64, u64)) -> usize {
    times.iter().filter(|time| (*time + period - from) % period <= to - from).count()
}

fn simultaneous(events: &[LateEvent], within: u64) -> Option<Pattern> {
    let mut of_cpus: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for event in events {
        of_cpus.entry(event.cpu).or_default().push(event.end);
    }
    let span = events.iter().map(|event| event.end).max()? - events.iter().map(|event| event.begin).min()?;
    let cpus = of_cpus.len() as f64;
    let of_cpus = of_cpus.iter().map(|(cpu, ends)| {
        let others = events.iter().filter(|event| event.cpu != *cpu);
        let fits = ends.iter().filter(|end| others.clone().any(|other| other.end.abs_diff(**end) <= within));
        let fitting = fits.count();
        let expected = others.count() as f64 * (2 * within) as f64 / span.max(1) as f64;
        let chance = cpus * at_least(fitting as u64, ends.len() as u64, 1.0 - (-expected).exp());
        (chance, (fitting, ends.len()))
    });
    // Of few events on a CPU that most fit is shown best by the CPU with the most of them.
    let matches = of_cpus
        .filter(|(chance, (fitting, all))| *chance < CHANCE && *fitting >= FEWEST && fitting * 2 >= *all);
    let (chance, fitting) = matches.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Pattern::Simultaneous { fitting, within, chance })
}

#[cfg(test)]
mod tests;
