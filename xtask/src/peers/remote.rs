//! `cargo xtask peers remote`, which compares messages of `latscope remote` with the fastest possible operations on
//! this
//! machine.

use super::ipc::contest::ContestSide::Point;
use super::ipc::contest::{IpcContest, SummaryFigureFn};
use super::ipc::{ContestLimit, here};
use super::pty;
use super::tools::{self, LatscopeBinary, PlaceholderValues};
use anyhow::{Result, bail};

const P50: SummaryFigureFn = |summary| summary.p50;

/// Size of a stretch of the longest blocks, in bytes: 16 blocks of 65,520.
const STRETCH: f64 = 16.0 * 65_520.0;

/// Time of a stretch at the required rate of 5 GB/s, in ns. Memory that is faster does not count.
const ENOUGH: f64 = STRETCH / 5.0;

const MEAN: SummaryFigureFn = |summary| summary.mean;

/// Time in ns that memory takes for a stretch, by lines of 64 bytes, but at least [`ENOUGH`].
const MEMORY: SummaryFigureFn = |summary| summary.p50.map(|line| (line * STRETCH / 64.0).max(ENOUGH));

/// Time of a single word, in ns, and the 1 µs that a ping may take more.
const MICROSECOND_MORE: SummaryFigureFn = |summary| summary.p50.map(|ns| ns + 1000.0);

const fn limit(name: &'static str, most: f64) -> ContestLimit {
    ContestLimit { name, most }
}

/// All contests with a remote.
static CONTESTS: &[IpcContest] = &[
    IpcContest {
        name: "spin",
        what: "a ping of 48 bytes over RPMsg, every check in place, beside a bare cache line there and back",
        ours: Point("remote ping --wait spin --cpus {pair} --count 200000 --duration 1s", &[P50]),
        tool: None,
        theirs: Point("sync core-to-core --mode two-lines --cpus {pair}", &[P50]),
        rows: &[limit("p50", 3.0)],
        differs: "each ping of ours is timed, the survey times many round trips at once",
    },
    IpcContest {
        name: "mailbox",
        what: "a single word between the endpoints of that ping: what RPMsg costs is the difference",
        ours: Point("remote ping --wait spin --cpus {pair} --count 200000 --duration 1s", &[P50]),
        tool: None,
        theirs: Point("remote mailbox --wait spin --cpus {pair} --count 200000 --duration 1s", &[P50]),
        rows: &[limit("p50", f64::INFINITY)],
        differs: "4 bytes in a line, and 48 with header, descriptors and two rings",
    },
    IpcContest {
        name: "futex",
        what: "the same ping where both sides sleep on a futex, beside a bare futex hand-off",
        ours: Point("remote ping --wait futex --cpus {pair} --count 5000 --duration 1s", &[P50]),
        tool: None,
        theirs: Point("sync futex --placement two-cores --cpus {pair}", &[P50]),
        rows: &[limit("p50", 1.2)],
        differs: "two processes, and two threads",
    },
    IpcContest {
        name: "bandwidth",
        what: "blocks of 65,520 bytes to the remote, every byte verified there, at 5 GB/s or the memory's limit",
        ours: Point(
            "remote bandwidth --direction to-remote --payload 65520 --wait spin --cpus {pair} --count 20000 --duration 1s",
            &[P50, MEAN],
        ),
        tool: None,
        theirs: Point(
            "memory bandwidth --operation copy --step every --threads 1 --size 256MiB --cpus {cpu}",
            &[MEMORY, MEMORY],
        ),
        rows: &[limit("p50", 1.0), limit("mean", f64::INFINITY)],
        differs: "times of 1 MiB less its headers; theirs is that of 5 GB/s, unless one CPU copies memory more slowly",
    },
    IpcContest {
        name: "bandwidth-echoed",
        what: "the same blocks there and back, verified by the host",
        ours: Point(
            "remote bandwidth --direction echoed --payload 65520 --wait spin --cpus {pair} --count 20000 --duration 1s",
            &[P50, MEAN],
        ),
        tool: None,
        theirs: Point(
            "memory bandwidth --operation copy --step every --threads 1 --size 256MiB --cpus {cpu}",
            &[MEMORY, MEMORY],
        ),
        rows: &[limit("p50", f64::INFINITY), limit("mean", f64::INFINITY)],
        differs: "as above; each byte is copied four times, and counted once",
    },
    IpcContest {
        name: "ivshmem",
        what: "a ping of 48 bytes to the image in QEMU, both sides polling, beside the same image echoing a single word",
        ours: Point(
            "remote ping --transport ivshmem --wait spin --cpus {pair} --count 100000 --duration 1s",
            &[P50],
        ),
        tool: None,
        theirs: Point(
            "remote mailbox --transport ivshmem --wait spin --cpus {pair} --count 100000 --duration 1s",
            &[MICROSECOND_MORE],
        ),
        rows: &[limit("p50", 1.0)],
        differs: "theirs is the single word and 1 µs more",
    },
];

/// Name of the row that is no contest of two points: [`pty`].
const PTY: &str = "pty";

/// Runs both sides in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope cannot be built, or a name is unknown.
pub fn compare_contests(only: &[String], pairs: usize) -> Result<bool> {
    let names: Vec<&str> = CONTESTS.iter().map(|contest| contest.name).chain([PTY]).collect();
    if let Some(name) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("nothing is named {name:?}: there are {}", names.join(", "));
    }
    let chosen = |contest: &&IpcContest| only.is_empty() || only.iter().any(|name| name == contest.name);
    let contests: Vec<&IpcContest> = CONTESTS.iter().filter(chosen).collect();
    let lacking = tools::install_missing(contests.iter().filter_map(|contest| contest.tool))?;
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    println!(
        "latscope / other [95 % interval of the median ratio] of {pairs} pairs in turn, latscope first.\n"
    );
    let lacks = |contest: &IpcContest| {
        let program = contest.tool?.program();
        let (_, why) = lacking.iter().find(|(lacking, _)| *lacking == program)?;
        Some(format!("{program} cannot be had: {why}"))
    };
    let mut holds = true;
    for (contest, outcome) in here::take_turns(&contests, &latscope, &here, pairs, lacks) {
        println!("{}: {}", contest.name, contest.what);
        holds &= outcome.print_results(contest.rows);
        println!("  latscope {}\n  {}\n  differs: {}", contest.ours, contest.theirs, contest.differs);
    }
    if only.is_empty() || only.iter().any(|name| name == PTY) {
        holds &= pty::compare_sides(&latscope, pairs)?;
    }
    Ok(holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::report::Summary;

    #[test]
    fn both_sides_have_a_figure_for_each_limit() {
        for contest in CONTESTS {
            let (Point(_, ours), Point(_, theirs)) = (&contest.ours, &contest.theirs) else { continue };
            assert_eq!(
                (ours.len(), theirs.len()),
                (contest.rows.len(), contest.rows.len()),
                "{}",
                contest.name
            );
        }
    }

    #[test]
    fn a_stretch_is_compared_with_what_is_enough_or_what_memory_takes() {
        let line = |ns| Summary { p50: Some(ns), ..Summary::default() };
        assert_eq!(MEMORY(&line(1.0)), Some(ENOUGH), "64 GB/s are more than enough");
        assert_eq!(MEMORY(&line(64.0)), Some(STRETCH), "1 GB/s is the limit");
    }
}
