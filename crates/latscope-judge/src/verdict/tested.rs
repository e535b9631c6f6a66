//! Evidence of a measurement about events that it did not see: the time it watched, and the share of its events that
//! are independent.

use crate::extremes::independent_share;
use latscope_core::merged::{is_merged, is_part_of};
use latscope_core::param;
use latscope_core::plan::ParamValue;
use latscope_core::report::{Measurement, Report, Sampling, Tested, WATCHED};
use std::collections::BTreeMap;

/// Computes the evidence of all measurements of a report. What is recorded of it stays where there are no blocks, which
/// say what is independent: in merged runs, and in results that were read without them.
pub fn record_evidence(report: &mut Report) {
    let has_blocks = report.measurements.iter().any(|m| !m.blocks.is_empty());
    let is_known_better = report.merged.is_none() && has_blocks;
    note_where(report, |m| is_known_better || m.tested.is_none());
}

/// Computes the evidence of those measurements that lack it: of runs that were killed, and of other programs.
pub(crate) fn note_missing(report: &mut Report) {
    note_where(report, |m| m.tested.is_none());
}

/// Returns true if a measurement lacks the evidence that it can have.
pub(crate) fn is_missing(report: &Report) -> bool {
    report.measurements.iter().any(|m| m.tested.is_none() && compute_evidence(report, m).is_some())
}

fn note_where(report: &mut Report, wanted: impl Fn(&Measurement) -> bool) {
    for at in 0..report.measurements.len() {
        if wanted(&report.measurements[at]) {
            report.measurements[at].tested = compute_evidence(report, &report.measurements[at]);
        }
    }
}

pub(super) fn compute_evidence(report: &Report, m: &Measurement) -> Option<Tested> {
    if m.sampling != Sampling::Event {
        return None;
    }
    let parts: Vec<&Measurement> = if is_merged(m) {
        report.measurements.iter().filter(|part| is_part_of(part, m)).collect()
    } else {
        vec![m]
    };
    // They run at the same time: together they watch no longer than one of them.
    let time_ns = parts.iter().filter_map(|part| watched(part)).max().filter(|time| *time > 0)?;
    let independent = independent_share(&parts).min(1.0 / sharing(report, &parts) as f64);
    Some(Tested { time_ns, independent })
}

/// Time in which a thread or pair would have seen an event, ns.
fn watched(m: &Measurement) -> Option<u64> {
    if let Some(seconds) = m.values.get(WATCHED) {
        return Some((seconds.value * 1e9) as u64);
    }
    if let Some(interval) = m.numeric_param(param::INTERVAL).or_else(|| m.numeric_param(param::PACE)) {
        return Some((m.summary.count + m.summary.missed).saturating_mul(interval));
    }
    // How long another program watched is known only if its output states it.
    if m.is_imported() {
        return None;
    }
    // Durations of calls may overlap, and events come between them: only a clock tells the time.
    let wall = m.contention.as_ref().map(|contention| contention.wall_ns).filter(|wall| *wall > 0);
    wall.or_else(|| between_blocks(m))
}

/// Time from the first block to the begin of the last one, ns. `None` over several rounds: the time between them was
/// not watched.
fn between_blocks(m: &Measurement) -> Option<u64> {
    let begins = || m.blocks.iter().map(|block| block.from);
    begins().max().zip(begins().min()).map(|(last, first)| last - first).filter(|_| m.rounds.len() <= 1)
}

/// The most threads or pairs that share a CPU.
fn sharing(report: &Report, parts: &[&Measurement]) -> usize {
    let mut on: BTreeMap<&ParamValue, usize> = BTreeMap::new();
    for cpu in parts.iter().filter_map(|part| part.params.get(param::CPU)) {
        *on.entry(cpu).or_default() += 1;
    }
    let anywhere = parts.len().div_ceil(report.plan.cpus.0.len().max(1));
    on.into_values().max().unwrap_or(anywhere).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::{read_report, read_report_without_blocks};
    use latscope_core::histogram::Histogram;
    use latscope_core::plan::params;
    use latscope_core::quality::{IMPORTED, QualityLevel, Reason};
    use latscope_core::report::{Contention, SampleBlock, Semantics, Summary};
    use latscope_core::statistics::SplitMix;
    use latscope_core::testing::{point, report};

    const SECOND: u64 = 1_000_000_000;

    /// A thread that woke up every millisecond, and how late each time, in ns.
    fn thread(number: u64, cpu: u64, values: &[u64]) -> Measurement {
        let params =
            params([("cpu", cpu.into()), ("thread", number.into()), ("interval", 1_000_000u64.into())]);
        let m = point("wake.timer", params, Semantics::OneWay, 1.0);
        let mut histogram = Histogram::new(1000);
        values.iter().for_each(|value| histogram.record(*value));
        let length = values.len().div_ceil(256);
        let block = |(at, part): (usize, &[u64])| SampleBlock {
            from: (at * length) as u64 * 1_000_000,
            count: part.len() as u64,
            sum: part.iter().sum(),
            max: part.iter().copied().max().unwrap_or(0),
            median: 0,
        };
        let blocks = values.chunks(length).enumerate().map(block).collect();
        let summary = Summary::from_histogram(&histogram, &Summary::default());
        Measurement { sampling: Sampling::Event, histogram, summary, blocks, ..m }
    }

    /// The sum of these threads, with its evidence noted.
    fn together(threads: Vec<Measurement>) -> Measurement {
        let params = params([("cpu", "all".into()), ("interval", 1_000_000u64.into())]);
        let mut all = Measurement { params, blocks: Vec::new(), ..threads[0].clone() };
        threads[1..].iter().for_each(|one| all.histogram.merge(&one.histogram));
        all.summary = Summary::from_histogram(&all.histogram, &Summary::default());
        let mut report = report(threads.into_iter().chain([all]).collect());
        record_evidence(&mut report);
        report.measurements.pop().unwrap()
    }

    fn lateness(seed: u64, seconds: u64) -> Vec<u64> {
        let mut random = SplitMix::new(seed);
        (0..seconds * 1000).map(|_| 5_000 + random.below(5_000)).collect()
    }

    #[test]
    fn twenty_threads_watch_no_longer_than_one() {
        let threads = (0..20).map(|number| thread(number, 0, &lateness(number, 3))).collect();
        let tested = together(threads).tested.unwrap();
        assert_eq!(tested.time_ns, 3 * SECOND);
        assert!(tested.independent <= 1.0 / 20.0, "{tested:?}");
        let a_cpu_each = (0..2).map(|number| thread(number, number, &lateness(number, 60))).collect();
        let tested = together(a_cpu_each).tested.unwrap();
        assert_eq!(tested.time_ns, 60 * SECOND);
        assert!(tested.independent > 0.7, "{tested:?}");
    }

    /// Lateness of which ten activations after each other are late every two seconds or so, the same for each seed.
    fn bouts(seed: u64) -> Vec<u64> {
        let mut random = SplitMix::new(7);
        let begins: Vec<u64> = (0..60).map(|at| at * 2000 + random.below(1900)).collect();
        let in_bout = |at: u64| begins.iter().any(|begin| (*begin..begin + 10).contains(&at));
        let late = |(at, usual): (usize, u64)| if in_bout(at as u64) { usual + 90_000 } else { usual };
        lateness(seed, 120).into_iter().enumerate().map(late).collect()
    }

    #[test]
    fn activations_of_one_bout_are_one() {
        let one = together(vec![thread(0, 0, &bouts(1))]).tested.unwrap();
        let both = together(vec![thread(0, 0, &bouts(1)), thread(1, 1, &bouts(2))]).tested.unwrap();
        assert!(both.independent < one.independent * 0.75, "{both:?} of both, {one:?} of one");
    }

    #[test]
    fn a_result_that_is_read_without_blocks_has_the_evidence_of_its_blocks() {
        let lacking = report(vec![thread(0, 0, &bouts(1))]).to_json();
        let whole = read_report(lacking.as_bytes()).unwrap();
        assert!(whole.measurements[0].tested.unwrap().independent < 0.5);
        // Without evidence the blocks are read, with it they are not.
        assert_eq!(read_report_without_blocks(lacking.as_bytes()).unwrap(), whole);
        let noted = read_report_without_blocks(whole.to_json().as_bytes()).unwrap();
        assert_eq!(noted, whole.without_blocks());
        // Judging does not take the evidence away.
        let mut judged = noted.clone();
        record_evidence(&mut judged);
        assert_eq!(judged, noted);
    }

    /// A round of calls that took 995 ms. Each call took `duration`, and began 10 ms after the one before.
    fn calls(from: u64, duration: u64) -> Measurement {
        let m = point("ipc.pipe", params([]), Semantics::RoundTrip, 1.0);
        let mut histogram = Histogram::new(1000);
        (0..100).for_each(|_| histogram.record(duration));
        let block =
            |at: u64| SampleBlock { from: from + at * 10_000_000, count: 10, ..SampleBlock::default() };
        let blocks = (0..100).step_by(10).map(block).collect();
        let summary = Summary::from_histogram(&histogram, &Summary::default());
        let contention = Some(Contention { wall_ns: 995_000_000, ..Contention::default() });
        let rounds = Vec::new();
        Measurement { sampling: Sampling::Event, contention, histogram, summary, blocks, rounds, ..m }
    }

    #[test]
    fn the_time_watched_is_no_sum_of_latencies() {
        // Paced calls with pauses between them, calls back to back, and times since due, which overlap.
        for duration in [63_000, 9_950_000, 400_000_000] {
            assert_eq!(watched(&calls(0, duration)), Some(995_000_000), "{duration}");
        }
        // The run took 8.4 s, and waited for 8 s of them without a reply: it was under watch meanwhile.
        let contention = Some(Contention { wall_ns: 8_400_000_000, ..Contention::default() });
        assert_eq!(watched(&Measurement { contention, ..calls(0, 63_000) }), Some(8_400_000_000));
    }

    #[test]
    fn the_time_between_rounds_is_not_watched() {
        let mut rounds = calls(0, 63_000);
        rounds.add_round(calls(60 * SECOND, 63_000));
        assert_eq!(watched(&rounds), Some(1_990_000_000));
        assert_eq!(watched(&Measurement { contention: None, ..rounds }), None);
    }

    #[test]
    fn without_a_clock_the_blocks_tell_the_time_or_it_is_not_known() {
        let killed = Measurement { contention: None, ..calls(SECOND, 400_000_000) };
        assert_eq!(watched(&killed), Some(900_000_000), "from the first block to the last");
        let of = |m: Measurement| compute_evidence(&report(vec![m.clone()]), &m);
        assert_eq!(of(Measurement { blocks: killed.blocks[..1].to_vec(), ..killed.clone() }), None);
        assert_eq!(of(Measurement { blocks: Vec::new(), ..killed }), None);
        let mut imported = calls(0, 50_000_000);
        imported.contention = None;
        imported.lower(Reason::new(QualityLevel::Ok, IMPORTED, "measured by fio", ""));
        assert_eq!(of(imported), None);
    }
}
