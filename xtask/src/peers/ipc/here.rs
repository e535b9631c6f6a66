//! Contests that run on this machine.

use super::contest::ContestSide::{Personality, Point, Served, Tool as Peer};
use super::contest::{IpcContest, SummaryFigureFn};
use super::{ContestLimit, ContestOutcome};
use crate::peers::parse::ToolFigureLocator::{self, After, Before};
use crate::peers::parse::ToolFigureUnit::Time;
use crate::peers::tools::{LatscopeBinary, PeerTool, PlaceholderValues};

static PERF: PeerTool = PeerTool::Debian("perf", "linux-perf");
static SOCKPERF: PeerTool = PeerTool::Debian("sockperf", "sockperf");
static PMQTEST: PeerTool = PeerTool::Debian("pmqtest", "rt-tests");
static PTSEMATEST: PeerTool = PeerTool::Debian("ptsematest", "rt-tests");
static SVSEMATEST: PeerTool = PeerTool::Debian("svsematest", "rt-tests");

const MEAN: SummaryFigureFn = |summary| summary.mean;
const P50: SummaryFigureFn = |summary| summary.p50;

const MIDDLE: &[ContestLimit] =
    &[ContestLimit { name: "p50 / mean", most: 1.0 }, ContestLimit { name: "mean", most: f64::INFINITY }];
const MEDIAN: &[ContestLimit] = &[ContestLimit { name: "p50", most: 1.0 }];
const PACED: &[ContestLimit] =
    &[ContestLimit { name: "min", most: 1.0 }, ContestLimit { name: "avg", most: 1.0 }];

const OPERATION: ToolFigureLocator = Before("usecs/op", Time(1e3));
/// Figure of sockperf, which prints halves of round trips.
const HALF: &[ToolFigureLocator] = &[After("percentile 50.000 =", Time(2e3))];
const MICROSECONDS: &[ToolFigureLocator] = &[After("Min ", Time(1e3)), After("Avg ", Time(1e3))];
const WHOLE: &str = "nothing known; both print whole microseconds";

/// All contests that run on this machine.
pub static CONTESTS: &[IpcContest] = &[
    IpcContest {
        name: "pipe-same-core",
        what: "round trip of 4 bytes between two processes on one CPU, through two pipes",
        ours: Point(
            "ipc -t pipe --throughput --caller other --placement same-core --cpus {cpu} --payload 4 --count 50000",
            &[P50, MEAN],
        ),
        tool: Some(&PERF),
        theirs: Peer("taskset -c {cpu} perf bench sched pipe -l 50000", &[OPERATION, OPERATION]),
        rows: MIDDLE,
        differs: "ours is judged by its median, theirs is a mean; ours sends a length before the bytes and has a stamp in the time, \
                  theirs its loop",
    },
    IpcContest {
        name: "pipe-free",
        what: "the same, where the scheduler puts them",
        ours: Point(
            "ipc -t pipe --throughput --caller other --placement free --payload 4 --count 50000",
            &[P50, MEAN],
        ),
        tool: Some(&PERF),
        theirs: Peer("perf bench sched pipe -l 50000", &[OPERATION, OPERATION]),
        rows: MIDDLE,
        differs: "in each run the scheduler decides how often the two share a CPU, which is nine times as fast: only means are \
                  alike, and their intervals are wide",
    },
    IpcContest {
        name: "posix-queue",
        what: "from mq_send to the end of mq_receive in another thread on the CPU, SCHED_FIFO 80, every 0.5 ms",
        ours: Personality("as pmqtest -q -a {cpu} -t 1 -p 80 -i 500 -l 2000", MICROSECONDS),
        tool: Some(&PMQTEST),
        theirs: Peer("pmqtest -q -a {cpu} -t 1 -p 80 -i 500 -l 2000", MICROSECONDS),
        rows: PACED,
        differs: WHOLE,
    },
    IpcContest {
        name: "posix-semaphore",
        what: "the same over a lock of the C library",
        ours: Personality("as ptsematest -q -a {cpu} -t 1 -p 80 -i 500 -l 2000", MICROSECONDS),
        tool: Some(&PTSEMATEST),
        theirs: Peer("ptsematest -q -a {cpu} -t 1 -p 80 -i 500 -l 2000", MICROSECONDS),
        rows: PACED,
        differs: WHOLE,
    },
    IpcContest {
        name: "system-v-semaphore",
        what: "the same over System V semaphores",
        ours: Personality("as svsematest -q -a {cpu} -t 1 -p 80 -i 500 -l 2000", MICROSECONDS),
        tool: Some(&SVSEMATEST),
        theirs: Peer("svsematest -q -a {cpu} -t 1 -p 80 -i 500 -l 2000", MICROSECONDS),
        rows: PACED,
        differs: WHOLE,
    },
    IpcContest {
        name: "spin",
        what: "round trip between two CPUs through shared memory, beside that of the survey",
        ours: Point(
            "ipc -t spin --throughput --caller other --placement two-cores --cpus {pair} --payload 32 --count 100000",
            &[P50],
        ),
        tool: None,
        theirs: Point("sync core-to-core --mode two-lines --cpus {pair}", &[P50]),
        rows: &[ContestLimit { name: "p50", most: 1.2 }],
        differs: "each call of ours is timed, the survey times many at once; both leave out what the stamps cost. Ours carries 32 \
                  bytes each way, the survey one word",
    },
    IpcContest {
        name: "tcp-same-core",
        what: "round trip of 32 bytes over a TCP connection on the loopback interface, on one CPU",
        ours: Point(
            "ipc -t tcp --throughput --caller other --placement same-core --cpus {cpu} --payload 32 --count 30000",
            &[P50],
        ),
        tool: Some(&SOCKPERF),
        theirs: Served(
            "taskset -c {cpu} sockperf server --tcp -i 127.0.0.1 -p 17171",
            "taskset -c {cpu} sockperf ping-pong --tcp -i 127.0.0.1 -p 17171 -m 32 -t 1",
            HALF,
        ),
        rows: MEDIAN,
        differs: "ours sends a length before the bytes",
    },
    IpcContest {
        name: "tcp-two-cores",
        what: "the same on two CPUs",
        ours: Point(
            "ipc -t tcp --throughput --caller other --placement two-cores --cpus {pair} --payload 32 --count 30000",
            &[P50],
        ),
        tool: Some(&SOCKPERF),
        theirs: Served(
            "taskset -c {cpu} sockperf server --tcp -i 127.0.0.1 -p 17171",
            "taskset -c {first} sockperf ping-pong --tcp -i 127.0.0.1 -p 17171 -m 32 -t 1",
            HALF,
        ),
        rows: MEDIAN,
        differs: "as above",
    },
];

/// Runs both sides of each contest in turns. Contests whose tool is missing are left out.
pub fn take_turns<'a>(
    contests: &[&'a IpcContest],
    latscope: &LatscopeBinary,
    here: &PlaceholderValues,
    pairs: usize,
    lacks: impl Fn(&IpcContest) -> Option<String>,
) -> Vec<(&'a IpcContest, ContestOutcome)> {
    let mut all: Vec<(&IpcContest, ContestOutcome)> =
        contests.iter().map(|c| (*c, ContestOutcome::default())).collect();
    for turn in 1..=pairs {
        for (contest, outcome) in &mut all {
            eprint!("\r{:40}\r{} {turn}/{pairs} ", "", contest.name);
            let hopeless = outcome.turns.is_empty().then(|| outcome.failures.first()).flatten();
            let once = || {
                let ours = contest.ours.run_side(latscope, here)?;
                anyhow::Ok(ours.into_iter().zip(contest.theirs.run_side(latscope, here)?).collect())
            };
            // More of the same will not mend what failed at first.
            match hopeless
                .cloned()
                .or_else(|| lacks(contest))
                .map_or_else(once, |why| Err(anyhow::anyhow!(why)))
            {
                Ok(turn) => outcome.turns.push(turn),
                Err(error) => outcome.failures.push(format!("{error:#}")),
            }
        }
    }
    eprint!("\r{:40}\r", "");
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::ipc::contest::ContestSide;

    const QUEUE: &str = "#0: ID9638, P80, CPU0, I200; #1: ID9639, P80, CPU0, TO 0, Cycles 100\n\
        #1 -> #0, Min    3, Cur    4, Avg    5, Max   18\n";
    const SOCKET: &str = "sockperf: Summary: Latency is 8.685 usec\n\
        sockperf: ---> percentile 75.000 =    7.175\nsockperf: ---> percentile 50.000 =    6.810\n";

    fn read(figures: &[ToolFigureLocator], output: &str) -> Vec<Option<f64>> {
        figures.iter().map(|figure| figure.parse_figure(output)).collect()
    }

    #[test]
    fn recorded_outputs_give_their_figures() {
        assert_eq!(read(MICROSECONDS, QUEUE), [Some(3e3), Some(5e3)]);
        assert_eq!(read(HALF, SOCKET), [Some(13_620.0)]);
        assert_eq!(read(HALF, QUEUE), [None]);
    }

    #[test]
    fn both_sides_have_a_figure_for_each_limit() {
        let figures = |side: &ContestSide| match side {
            Point(_, figures) => figures.len(),
            Personality(_, figures) | Peer(_, figures) | Served(_, _, figures) => figures.len(),
        };
        for contest in CONTESTS {
            let counts = (figures(&contest.ours), figures(&contest.theirs));
            assert_eq!(counts, (contest.rows.len(), contest.rows.len()), "{}", contest.name);
        }
    }
}
