//! `cargo xtask peers nodes`, which compares `latscope memory latency --nodes` with a plain chain of loads in memory of
//! the same node, size and pages, on the same CPU.

use super::tools::{LatscopeBinary, PlaceholderValues};
use super::{SEED, limit_verdict, side};
use anyhow::{Context, Result, anyhow, ensure};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::statistics::{ConfidenceInterval, SplitMix, median, ratio_of_medians};
use latscope_core::units::CpuList;
use latscope_os::memory::{MemoryRegion, RegionPageSize};
use latscope_os::sched;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Limits of the ratio of latscope's median to that of the plain chain.
const ALLOWED: ConfidenceInterval = ConfidenceInterval { low: 0.97, high: 1.03 };

/// Bytes from one element of the chain to the next.
const LINE: usize = 64;

/// Loads in a batch, and those before the first.
const BATCH: usize = 2_000;
const WARM: usize = 128 << 10;

/// Time for which a plain chain is walked.
const DURATION: Duration = Duration::from_millis(400);

/// Two nodes: of the CPU, and of the memory.
struct PeerNodePair {
    from: u32,
    to: u32,
    cpu: u32,
}

/// Compares each pair of nodes in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope cannot be built, or a side measures nothing.
pub fn compare_nodes(turns: usize, mib: usize) -> Result<bool> {
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    println!(
        "latscope / a plain chain of loads of {mib} MiB in 2 MiB pages, medians, in turn, [95 % interval]; 0.97 to 1.03."
    );
    let mut all = true;
    for pair in find_node_pairs(&latscope, &here)? {
        let words = here.fill_words(&format!(
            "memory latency --nodes {} --cpu-nodes {} --size {mib}MiB --pages 2MiB --order random --quick",
            pair.to, pair.from
        ))?;
        let mut both = Vec::new();
        for turn in 1..=turns {
            eprint!("\rnode {} to {}: {turn}/{turns} ", pair.from, pair.to);
            let plain = std::thread::scope(|scope| {
                scope.spawn(|| measure_plain_chain(&pair, mib << 20, turn as u64)).join()
            });
            let plain = plain.map_err(|_| anyhow!("the plain chain failed"))??;
            both.push((chain(&latscope, &words)?, plain));
        }
        let (ratio, interval) = ratio_of_medians(&both, SEED).context("no pair has two figures")?;
        let (ours, theirs): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        eprint!("\r{:40}\r", "");
        println!(
            "CPU {} of node {}, memory of node {}: {ratio:.3} [{:.3}, {:.3}]  latscope {}  plain {}  {}",
            pair.cpu,
            pair.from,
            pair.to,
            interval.low,
            interval.high,
            side(&ours),
            side(&theirs),
            limit_verdict(ratio, interval, ALLOWED)
        );
        all &= !interval.is_apart_from(&ALLOWED);
    }
    Ok(all)
}

/// The pairs of nodes that latscope measures, with the CPU of each.
fn find_node_pairs(latscope: &LatscopeBinary, here: &PlaceholderValues) -> Result<Vec<PeerNodePair>> {
    let words =
        here.fill_words("memory latency --nodes all --size 2MiB --pages 2MiB --order random --quick")?;
    let report = latscope.measure_report(&words)?;
    let mut pairs = Vec::new();
    for m in report.measurements.iter().filter(|m| m.probe == ids::MEMORY_LATENCY) {
        let cpus: Option<CpuList> =
            m.params.get(param::NODE_CPUS).and_then(|list| list.to_string().parse().ok());
        let cpu = cpus.and_then(|cpus| cpus.0.last().copied());
        let nodes = m.nodes();
        let ((from, to), cpu) = nodes.zip(cpu).context("latscope does not say which node it measured")?;
        pairs.push(PeerNodePair { from, to, cpu });
    }
    ensure!(!pairs.is_empty(), "latscope measured no node");
    Ok(pairs)
}

/// Median of a load as latscope has it.
fn chain(latscope: &LatscopeBinary, words: &[String]) -> Result<f64> {
    let report = latscope.measure_report(words)?;
    let point = report.measurements.iter().find(|m| m.probe == ids::MEMORY_LATENCY);
    let point = point.context("latscope: no point of memory.latency")?;
    super::undistorted(point)?;
    point.typical().context("latscope: no figure of memory.latency")
}

/// Walks a plain chain: a loop over indices, as it stands in every text book. Returns the median time of a load in
/// batches, ns.
fn measure_plain_chain(pair: &PeerNodePair, bytes: usize, seed: u64) -> Result<f64> {
    sched::pin(&[pair.cpu]).with_context(|| format!("CPU {}", pair.cpu))?;
    let mut region = MemoryRegion::on_node(bytes, RegionPageSize::Huge, pair.to)?;
    let links = region.links();
    write_random_cycle(links, seed);
    let mut place = walk_chain(links, 0, WARM);
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < DURATION {
        let start = Instant::now();
        place = walk_chain(links, place, BATCH);
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    black_box(place);
    median(&times).context("nothing was timed")
}

/// Writes a single random cycle of indices, one a line (Sattolo's algorithm).
fn write_random_cycle(links: &mut [usize], seed: u64) {
    let step = LINE / size_of::<usize>();
    let mut random = SplitMix::new(seed);
    let lines = links.len() / step;
    (0..lines).for_each(|line| links[line * step] = line * step);
    for line in (1..lines).rev() {
        links.swap(line * step, random.below(line as u64) as usize * step);
    }
}

fn walk_chain(links: &[usize], from: usize, loads: usize) -> usize {
    let mut place = from;
    for _ in 0..loads {
        place = links[place];
    }
    black_box(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_chain_visits_each_line_once() {
        let mut links = vec![0_usize; 1024];
        write_random_cycle(&mut links, 3);
        let lines = links.len() / 8;
        let mut visited: Vec<usize> = (0..lines).map(|loads| walk_chain(&links, 0, loads)).collect();
        visited.sort_unstable();
        visited.dedup();
        assert_eq!((visited.len(), walk_chain(&links, 0, lines)), (lines, 0));
    }

    #[test]
    fn a_plain_chain_has_a_time() {
        let cpu = *sched::allowed_cpus().unwrap().last().unwrap();
        let found = std::thread::scope(|scope| {
            scope
                .spawn(|| measure_plain_chain(&PeerNodePair { from: 0, to: 0, cpu }, 2 << 20, 1))
                .join()
                .unwrap()
        });
        match found {
            Ok(ns) => assert!(ns > 0.0),
            // A kernel without nodes binds no memory.
            Err(error) => assert!(format!("{error:#}").contains("refused"), "{error:#}"),
        }
    }
}
