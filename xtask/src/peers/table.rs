//! Table of the comparisons with other tools.

use super::parse::ToolFigureLocator::{self, After, Before, Json};
use super::parse::ToolFigureUnit::{Rate, Time};
use super::tools::PeerTool;

/// Quantity that latscope and another tool measure in the same pattern. In command lines, `{cpu}`, `{pair}` and `{dir}`
/// are
/// filled in.
pub struct PeerComparison {
    /// Name on the command line.
    pub name: &'static str,
    /// Meaning of both figures: what is timed, one way or round trip, and where.
    pub what: &'static str,
    /// Arguments of latscope: family, probe, and parameters that leave one point.
    pub ours: &'static str,
    /// Other tool of the comparison.
    pub tool: &'static PeerTool,
    /// Command line of the other tool.
    pub theirs: &'static str,
    /// Place of the other tool's figure in its output.
    pub figure: ToolFigureLocator,
    /// Remaining differences between the two patterns.
    pub differs: &'static str,
}

static PERF: PeerTool = PeerTool::Debian("perf", "linux-perf");
static SYSBENCH: PeerTool = PeerTool::Debian("sysbench", "sysbench");
/// stress-ng, which is also the load of `peers stress`.
pub static STRESS_NG: PeerTool = PeerTool::Debian("stress-ng", "stress-ng");
static FIO: PeerTool = PeerTool::Debian("fio", "fio");
static MBW: PeerTool = PeerTool::Debian("mbw", "mbw");
static LIKWID: PeerTool = PeerTool::Debian("likwid-bench", "likwid");
static C2C: PeerTool = PeerTool::Registry("core-to-core-latency", "1.2.0");

const LINE: f64 = 64.0;
const MIB: f64 = (1 << 20) as f64;
/// Number of locks that sysbench is asked for.
const LOCKS: f64 = 5e6;
/// Number of bytes that STREAM's triad counts for an element.
const ELEMENT: f64 = 24.0;

/// All comparisons with other tools.
pub static TABLE: &[PeerComparison] = &[
    PeerComparison {
        name: "getppid",
        what: "one getppid system call, in a loop, on one CPU",
        ours: "syscall getppid --cpus {cpu}",
        tool: &PERF,
        theirs: "taskset -c {cpu} perf bench syscall basic -l 2000000",
        figure: Before("usecs/op", Time(1e3)),
        differs: "theirs is the mean of all calls, ours the median of undisturbed batches",
    },
    PeerComparison {
        name: "clock",
        what: "one clock_gettime through the vDSO, in a loop, on one CPU",
        ours: "cpu clock-vdso --cpus {cpu}",
        tool: &STRESS_NG,
        theirs: "stress-ng --vdso 1 --vdso-func clock_gettime --taskset {cpu} --timeout 1 --metrics-brief",
        figure: Before("nanosecs per call", Time(1.0)),
        differs: "theirs takes off the cost of an empty call, and is a mean",
    },
    PeerComparison {
        name: "mutex",
        what: "lock and unlock of a pthread mutex that no other thread wants, in a process with two threads",
        ours: "sync mutex --cpus {cpu}",
        tool: &SYSBENCH,
        theirs: "taskset -c {cpu} sysbench mutex --threads=1 --mutex-num=1 --mutex-locks=5000000 --mutex-loops=0 run",
        figure: After("total time:", Time(1e9 / LOCKS)),
        differs: "theirs contains for each lock a rand(), which takes a lock of its own, and an increment; a mean",
    },
    PeerComparison {
        name: "pipe",
        what: "round trip between two threads on one CPU through two pipes: two writes, two reads, two switches",
        ours: "sync pipe --placement same-core --cpus {cpu}",
        tool: &PERF,
        theirs: "taskset -c {cpu} perf bench sched pipe -T -l 100000",
        figure: Before("usecs/op", Time(1e3)),
        differs: "theirs is a mean",
    },
    PeerComparison {
        name: "context-switch",
        what: "one switch between two processes on one CPU",
        ours: "sync context-switch --mode processes --cpus {cpu}",
        tool: &STRESS_NG,
        theirs: "stress-ng --switch 1 --switch-ops 200000 --taskset {cpu} --metrics-brief",
        figure: Before("nanosecs per context switch", Time(0.5)),
        differs: "theirs is the mean time of a message through a full pipe; the writer is switched off and on for it, so it is \
                  halved here, and half a write and half a read stay in it. Ours has its pipe taken off",
    },
    PeerComparison {
        name: "core-to-core-cas",
        what: "round trip of one cache line that two CPUs change in turn by compare-and-exchange",
        ours: "sync core-to-core --mode cas --cpus {pair}",
        tool: &C2C,
        theirs: "core-to-core-latency 1000 300 --bench 1 --csv --cores {pair}",
        figure: Before(",\n", Time(2.0)),
        differs: "theirs is the mean of all samples, doubled here (it prints half a round trip)",
    },
    PeerComparison {
        name: "core-to-core-two-lines",
        what: "round trip between two CPUs, each writing a line of its own that the other reads",
        ours: "sync core-to-core --mode two-lines --cpus {pair}",
        tool: &C2C,
        theirs: "core-to-core-latency 1000 300 --bench 2 --csv --cores {pair}",
        figure: Before(",\n", Time(2.0)),
        differs: "theirs is the mean of all samples, doubled here (it prints half a round trip)",
    },
    PeerComparison {
        name: "thread-start",
        what: "from before pthread_create until the new thread runs, on any CPU, one way",
        ours: "thread start --mode warm",
        tool: &STRESS_NG,
        theirs: "stress-ng --pthread 1 --pthread-max 1 --pthread-ops 3000 --metrics-brief",
        figure: Before("nanosecs to start a pthread", Time(1.0)),
        differs: "theirs does much between two threads, and is a mean",
    },
    PeerComparison {
        name: "read-l1",
        what: "reading 64 bytes out of 16 KiB, over and over, by vectors",
        ours: "memory bandwidth --size 16KiB --operation read --step every --threads 1 --cpus {cpu}",
        tool: &LIKWID,
        theirs: "taskset -c {cpu} likwid-bench -t load_avx -w N:16kB:1 -i 5000000",
        figure: After("MByte/s:", Rate(1e6, LINE)),
        differs: "theirs loads 32 bytes at a time of 16 kB and drops them; ours loads the widest vectors and sums them",
    },
    PeerComparison {
        name: "read-memory",
        what: "reading 64 bytes out of 256 MiB, one after the other, by vectors",
        ours: "memory bandwidth --size 256MiB --operation read --step every --threads 1 --cpus {cpu}",
        tool: &LIKWID,
        theirs: "taskset -c {cpu} likwid-bench -t load_avx -w N:256MB:1 -i 8",
        figure: After("MByte/s:", Rate(1e6, LINE)),
        differs: "theirs has 256 MB in pages of 4 KiB, ours pages of 2 MiB where they can be had",
    },
    PeerComparison {
        name: "read-1mib",
        what: "reading 64 bytes out of a block of 1 MiB, over and over",
        ours: "memory bandwidth --size 1MiB --operation read --step every --threads 1 --cpus {cpu}",
        tool: &SYSBENCH,
        theirs: "taskset -c {cpu} sysbench memory --memory-block-size=1M --memory-total-size=10T \
                 --memory-oper=read --time=1 run",
        figure: Before("MiB/sec)", Rate(MIB, LINE)),
        differs: "theirs loads 8 bytes at a time, and its work between two blocks is counted",
    },
    PeerComparison {
        name: "copy-l2",
        what: "copying 64 bytes, 256 KiB to 256 KiB over and over",
        ours: "memory bandwidth --size 512KiB --operation copy --step every --threads 1 --cpus {cpu}",
        tool: &PERF,
        theirs: "taskset -c {cpu} perf bench -f simple mem memcpy -f default -s 256KB -l 50000",
        figure: After("provided by glibc)", Rate(1.0, LINE)),
        differs: "theirs is memcpy of the C library; a mean",
    },
    PeerComparison {
        name: "copy-memory",
        what: "copying 64 bytes, 64 MiB to 64 MiB",
        ours: "memory bandwidth --size 128MiB --operation copy --step every --threads 1 --cpus {cpu}",
        tool: &MBW,
        theirs: "taskset -c {cpu} mbw -q -t0 -n 20 64",
        figure: Before("MiB/s", Rate(MIB, LINE)),
        differs: "theirs is memcpy of the C library, which may write large blocks past the caches, on pages of 4 KiB",
    },
    PeerComparison {
        name: "triad",
        what: "one element of a[i] = b[i] * s + c[i], arrays of 64 MiB, ordinary stores",
        ours: "memory stream --operation triad --size 64MiB --threads 1 --cpus {cpu}",
        tool: &LIKWID,
        theirs: "taskset -c {cpu} likwid-bench -t stream_avx -w N:192MB:1 -i 10",
        figure: After("MByte/s:", Rate(1e6, ELEMENT)),
        differs: "theirs has 64 MB in pages of 4 KiB, ours pages of 2 MiB where they can be had",
    },
    PeerComparison {
        name: "direct-read",
        what: "random reads of 4 KiB of a file of 16 MiB past the page cache (O_DIRECT), one at a time, the median",
        ours: "file read-direct --dir {dir} --cpus {cpu}",
        tool: &FIO,
        theirs: "taskset -c {cpu} fio --name=read --filename={dir}/fio --size=16M --rw=randread --bs=4k \
                 --ioengine=psync --direct=1 --runtime=1 --time_based --output-format=json",
        figure: Json("/jobs/0/read/clat_ns/percentile/50.000000"),
        differs: "nothing known",
    },
    PeerComparison {
        name: "fsync",
        what: "fsync after 4 KiB of a file of 1 MiB were overwritten, the median",
        ours: "file fsync --mode overwrite --dir {dir} --cpus {cpu}",
        tool: &FIO,
        theirs: "taskset -c {cpu} fio --name=sync --filename={dir}/fio --size=1M --rw=write --overwrite=1 --bs=4k \
                 --ioengine=psync --fsync=1 --runtime=1 --time_based --output-format=json",
        figure: Json("/jobs/0/sync/lat_ns/percentile/50.000000"),
        differs: "nothing known",
    },
    PeerComparison {
        name: "fdatasync",
        what: "fdatasync after 4 KiB of a file of 1 MiB were overwritten, the median",
        ours: "file fdatasync --mode overwrite --dir {dir} --cpus {cpu}",
        tool: &FIO,
        theirs: "taskset -c {cpu} fio --name=sync --filename={dir}/fio --size=1M --rw=write --overwrite=1 --bs=4k \
                 --ioengine=psync --fdatasync=1 --runtime=1 --time_based --output-format=json",
        figure: Json("/jobs/0/sync/lat_ns/percentile/50.000000"),
        differs: "nothing known",
    },
];

/// Tools that a reader might miss in the table, with the reasons for their absence.
pub static LEFT_OUT: &[(&str, &str)] = &[
    ("lmbench", "Debian does not have it"),
    ("the latency of a load", "no tool known in Debian or the Cargo registry follows a chain of pointers"),
    ("perf bench sched pipe on two CPUs", "nothing puts its two sides on different CPUs"),
    ("sysbench threads", "an event of it is many locks and yields, no operation that latscope has"),
    (
        "stress-ng futex, sem, eventfd",
        "they count rounds of several calls, time-outs among them, and time no hand-off",
    ),
    ("stress-ng tsc", "that of Debian 12 runs on Intel's processors only"),
];
