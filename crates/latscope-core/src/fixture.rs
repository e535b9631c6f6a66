//! A report as a survey of a small virtual machine makes it, for tests. All of
//! it is computed: the same at each call.

mod drawn;
pub mod ipc;
pub mod machines;
mod wake;

pub use drawn::{remote, server};
pub use wake::wake;

use crate::histogram::Histogram;
use crate::machine::{Cache, Check, CheckState, ClockInfo, Cpu, Machine};
use crate::plan::{Conditions, ParamValue, Params, Plan, Point, Policy, Step, Stop, params};
use crate::quality::{Level, Reason};
use crate::report::{
    Better, Block, Measurement, Report, SCHEMA, Sampling, Semantics, Summary, Tool, Value, Warning, Work,
};
use crate::units::{CpuList, format_size};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A finished survey of a virtual machine with two CPUs: every family, every
/// kind of row, points that are degraded and points that are not there.
pub fn report() -> Report {
    let mut measurements = Vec::new();
    measurements.extend(processor());
    measurements.extend(memory());
    measurements.extend(synchronisation());
    measurements.extend(threads_and_processes());
    measurements.extend(system_calls());
    measurements.extend(files());
    measurements.extend(wakeups());
    Report {
        schema: SCHEMA.to_owned(),
        tool: Tool { name: "latscope".to_owned(), version: "0.1.0".to_owned(), commit: String::new() },
        started: "2026-11-21T10:00:00Z".to_owned(),
        finished: Some("2026-11-21T10:00:52.3Z".to_owned()),
        interrupted: None,
        imported: None,
        merged: None,
        plan: plan(&measurements),
        machine: machine(),
        warnings: vec![Warning {
            id: "load".to_owned(),
            text: "other programs ran beside the measurement: load average 1.32 on 2 CPUs".to_owned(),
            remedy: Some("stop them, or give the survey CPUs of its own: latscope --cpus 1".to_owned()),
        }],
        run_id: String::new(),
        labels: Default::default(),
        activity: None,
        findings: Vec::new(),
        measurements,
    }
}

/// A report of another machine with most of the same points, about twice as
/// fast, to stand beside [`report`].
pub fn other() -> Report {
    let mut other = report();
    other.machine.name = "thinker".to_owned();
    other.machine.cpu_model = "AMD Ryzen 9 7950X".to_owned();
    other.machine.hypervisor = None;
    other.measurements.retain(|m| m.quality.level == Level::Ok && m.probe != "process.shell");
    for m in &mut other.measurements {
        let halved = m.summary.p50.unwrap_or_default() / 2.0;
        *m = Measurement { histogram: batches(halved), ..m.clone() };
        m.summary = Summary::of(&m.histogram, &m.summary);
    }
    other
}

/// A measurement of a short operation in batches, `ns` each.
pub fn batch<const N: usize>(
    probe: &str,
    title: &str,
    pairs: [(&str, ParamValue); N],
    ns: f64,
) -> Measurement {
    let histogram = batches(ns);
    let cycles = Some((ns * 2.6 * 20.0).round() / 20.0);
    let summary = Summary::of(&histogram, &Summary { rejected: 3, cycles, ..Summary::default() });
    let point = Point {
        probe: probe.to_owned(),
        revision: 1,
        params: params(pairs),
        title: title.to_owned(),
        row: true,
    };
    Measurement {
        summary,
        ..Measurement::of(point, Sampling::Batch { ops: 1000 }, Semantics::Operation, histogram)
    }
}

/// A measurement of single events with a tail, `ns` most of them.
pub fn event<const N: usize>(
    probe: &str,
    title: &str,
    pairs: [(&str, ParamValue); N],
    ns: f64,
) -> Measurement {
    let mut histogram = Histogram::new(1000);
    for at in 0..2000_u32 {
        let share = f64::from(at * 7 % 2000) / 2000.0;
        // Most lie close together; of a hundred, two take up to five times as long.
        let factor = if share < 0.98 { 0.9 + 0.2 * share } else { 1.0 + 200.0 * (share - 0.98) };
        histogram.record((ns * factor) as u64);
    }
    let m = batch(probe, title, pairs, ns);
    let summary = Summary::of(&histogram, &Summary::default());
    Measurement { sampling: Sampling::Event, summary, histogram, ..m }
}

/// A block of these samples from this moment on.
fn block(from: u64, samples: &[u64]) -> Block {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    Block {
        from,
        count: samples.len() as u64,
        sum: samples.iter().sum(),
        max: sorted.last().copied().unwrap_or_default(),
        median: sorted.get(sorted.len() / 2).copied().unwrap_or_default(),
    }
}

/// 200 batch means within a few percent of `ns`.
fn batches(ns: f64) -> Histogram {
    let mut histogram = Histogram::new(1);
    for at in 0..200_u32 {
        let factor = 0.97 + 0.06 * f64::from(at * 37 % 200) / 200.0;
        histogram.record((ns * 1e3 * factor) as u64);
    }
    histogram
}

impl Measurement {
    /// Returns the measurement as one of round trips.
    fn round_trip(self) -> Measurement {
        Measurement { times: Semantics::RoundTrip, ..self }
    }

    /// Returns the measurement without a row in the survey's table.
    fn curve(self) -> Measurement {
        Measurement { row: false, ..self }
    }

    /// Returns the measurement with the bytes that an operation touches and moves.
    fn working(self, bytes_touched: u64, bytes_moved: u64) -> Measurement {
        Measurement { work: Some(Work { ops: 1, bytes_touched, bytes_moved }), ..self }
    }

    /// Returns the measurement with the named value `value`, in percent.
    fn percent(mut self, name: &str, value: f64) -> Measurement {
        self.values.insert(name.to_owned(), Value { value, unit: "%".to_owned(), better: Better::Less });
        self
    }

    /// Returns the measurement with the level `degraded`.
    fn degraded(mut self, reason: &str, remedy: &str) -> Measurement {
        self.lower(Reason::new(Level::Degraded, "not-as-asked", reason, remedy));
        self
    }

    /// Returns the measurement with the level `unsupported` and without numbers.
    fn unsupported(mut self, reason: &str, remedy: &str) -> Measurement {
        self.lower(Reason::new(Level::Unsupported, "not-possible-here", reason, remedy));
        let histogram = Histogram::new(1);
        let summary = Summary::of(&histogram, &Summary::default());
        Measurement { histogram, summary, ..self }
    }
}

fn processor() -> Vec<Measurement> {
    let latency = |kind: &'static str| [("type", kind.into()), ("mode", "latency".into())];
    let mut all = vec![
        batch("cpu.cycle", "one core cycle", [], 0.385),
        batch("cpu.add", "add i64", latency("i64"), 0.385),
        batch("cpu.mul", "multiply i64", latency("i64"), 1.155),
        batch("cpu.div", "divide i64", latency("i64"), 6.9),
        batch("cpu.add", "add f64", latency("f64"), 1.54),
        batch("cpu.fma", "fused multiply-add f64", latency("f64"), 1.54),
        batch("cpu.branch", "branch, predicted", [("mode", "predicted".into())], 0.41),
        batch("cpu.branch", "branch, mispredicted", [("mode", "mispredicted".into())], 6.3),
        batch("cpu.call", "function call, indirect", [("mode", "indirect".into())], 1.2),
        batch("cpu.rdtsc", "read the time stamp counter", [], 16.8),
        batch("cpu.clock-vdso", "clock_gettime by vDSO", [], 28.7),
    ];
    all.push(
        batch(
            "cpu.add",
            "add f64, throughput",
            [("type", "f64".into()), ("mode", "throughput".into())],
            0.19,
        )
        .curve(),
    );
    all
}

/// Latency of a chase through `size` bytes: steps at the capacities, soft as
/// caches make them.
fn chase(size: u64, page_walk: f64) -> f64 {
    let kib = size as f64 / KIB as f64;
    let steps = [(48.0, 1.93, 4.2), (2048.0, 6.15, 38.0), (6144.0, 44.0, 92.0)];
    let above = |(capacity, _, rise): (f64, f64, f64)| rise / (1.0 + (capacity * 1.12 / kib).powi(24));
    let caches = 1.93 + steps.into_iter().map(above).sum::<f64>();
    caches + if kib > 4096.0 { page_walk } else { 0.0 }
}

fn memory() -> Vec<Measurement> {
    let sizes = |per_octave: u32| {
        let steps = 17 * per_octave; // octaves from 2 KiB to 256 MiB
        (0..=steps).map(move |at| {
            let size = 2048.0 * 2f64.powf(f64::from(at) / f64::from(per_octave));
            (size / 64.0).round() as u64 * 64
        })
    };
    let chased = |size: u64, order: &'static str, pages: &'static str, walk: f64| {
        let title = format!("random read in {}", format_size(size));
        let params = [("size", size.into()), ("order", order.into()), ("pages", pages.into())];
        batch("memory.latency", &title, params, chase(size, walk)).curve()
    };
    let mut all: Vec<_> = sizes(8).map(|size| chased(size, "random", "2MiB", 0.0)).collect();
    all.extend(sizes(2).map(|size| chased(size, "random", "4KiB", 78.0)));
    all.extend(sizes(2).map(|size| chased(size, "window", "4KiB", 4.0)));
    all.extend(sequential_sums());
    all.extend(bandwidths());
    let untouched = |at: u64| {
        let params = [("size", (MIB << at).into()), ("pages", "2MiB".into())];
        batch("memory.tlb", &format!("page walk, {} MiB", 1 << at), params, 1.0)
            .curve()
            .unsupported("no huge page could be had", "echo 64 > /proc/sys/vm/nr_hugepages")
    };
    all.extend((0..4).map(untouched));
    all
}

fn sequential_sums() -> Vec<Measurement> {
    let sum = |size: u64, ns: f64| {
        let title = format!("sum in sequence, {} KB", size / 1000);
        batch("memory.sequential-sum", &title, [("size", size.into()), ("mode", "sum".into())], ns)
    };
    vec![sum(50_000, 0.062), sum(500_000, 0.088), sum(5_000_000, 0.21)]
}

fn bandwidths() -> Vec<Measurement> {
    let mut all = Vec::new();
    for (operation, moved, slower) in [("read", 1, 1.0), ("write", 2, 1.2), ("copy", 2, 1.7)] {
        for (threads, speed) in [(1_u64, 1.0), (2, 1.6)] {
            for (size, rate) in [(32 * KIB, 60.0), (MIB, 40.0), (256 * MIB, 7.8)] {
                let ns = size as f64 * slower / (rate * speed);
                let params = [
                    ("size", size.into()),
                    ("operation", operation.into()),
                    ("step", "every".into()),
                    ("threads", threads.into()),
                ];
                let title = format!("{operation} {}", format_size(size));
                let moved = if size > 2 * MIB { moved } else { 1 };
                let m = batch("memory.bandwidth", &title, params, ns).working(size, size * moved);
                all.push(if threads == 1 { m } else { m.curve() });
            }
        }
    }
    all
}

fn synchronisation() -> Vec<Measurement> {
    let mut all = vec![
        batch("sync.mutex", "mutex, lock and unlock, uncontended", [], 7.1),
        batch(
            "sync.atomic",
            "atomic fetch-add",
            [("operation", "fetch-add".into()), ("threads", 1.into())],
            6.5,
        ),
        batch("sync.context-switch", "context switch", [("mode", "pipe".into())], 840.0),
    ];
    let idle = "this row contains the exit from idle, which depends on the hypervisor";
    for (name, base) in [("semaphore", 2.2e3), ("futex", 2.1e3), ("pipe", 2.6e3), ("unix-stream", 4.4e3)] {
        let hand_off = |placement: &'static str, title: &str, ns: f64, blocked: f64| {
            let id = format!("sync.{name}");
            let title = format!("{name}, {title}");
            event(&id, &title, [("placement", placement.into())], ns).round_trip().percent("blocked", blocked)
        };
        all.push(hand_off("same-core", "same core", base, 49.0));
        all.push(
            hand_off("two-cores", "two cores", base + 8.3e3, 96.0)
                .degraded(idle, "latscope doctor explains the idle states"),
        );
        all.push(hand_off("two-cores-awake", "two cores, awake", base + 0.6e3, 31.0));
    }
    for (pair, ns) in
        [("0-1", 152.0), ("0-2", 148.0), ("0-3", 155.0), ("1-2", 149.0), ("1-3", 161.0), ("2-3", 150.0)]
    {
        let m = batch(
            "sync.core-to-core",
            &format!("cache line, CPU {pair}"),
            [("pair", pair.into()), ("mode", "cas".into())],
            ns,
        );
        all.push(if pair == "0-1" { m.round_trip() } else { m.round_trip().curve() });
    }
    all
}

fn threads_and_processes() -> Vec<Measurement> {
    let warm = || [("mode", "warm".into())];
    vec![
        event("thread.create", "pthread_create, the call", warm(), 3.1e3),
        event("thread.start", "create to first instruction", warm(), 4.5e3),
        event("thread.end", "end to joined", warm(), 3.8e3),
        event("thread.join", "join of an ended thread", warm(), 0.31e3),
        event("thread.total", "create to joined", warm(), 8.6e3),
        event("thread.overhead", "1 MiB sum in a new thread, overhead", [("size", MIB.into())], 11.4e3),
        event("process.fork", "fork, exit, wait, 16 MiB resident", [("size", (16 * MIB).into())], 74e3),
        event("process.vfork", "vfork, exit, wait", [], 10.8e3),
        event("process.spawn", "posix_spawn, static program", [], 40e3),
        event("process.shell", "sh -c true", [], 427e3),
    ]
}

fn system_calls() -> Vec<Measurement> {
    let polled = |descriptors: u64| {
        let title = format!("poll {descriptors} descriptors");
        batch(
            "syscall.poll",
            &title,
            [("descriptors", descriptors.into())],
            150.0 + 14.0 * descriptors as f64,
        )
    };
    let fault = |pages: &'static str, title: &str, ns: f64| {
        event("syscall.page-fault", title, [("pages", pages.into()), ("mode", "anonymous".into())], ns)
    };
    let mut huge = fault("2MiB", "page fault, anonymous, 2 MiB", 64e3);
    huge.summary.rejected = 400;
    vec![
        batch("syscall.getppid", "getppid", [], 124.0),
        batch("syscall.read", "read 0 bytes", [], 171.0),
        batch("syscall.stat", "stat", [], 640.0),
        batch("syscall.open-close", "open and close", [], 1.04e3),
        polled(10),
        polled(1000).curve(),
        fault("4KiB", "page fault, anonymous, 4 KiB", 1.16e3),
        huge,
        batch("syscall.signal-deliver", "signal to oneself", [], 1.31e3),
    ]
}

fn files() -> Vec<Measurement> {
    let mut all = Vec::new();
    for (filesystem, directory, slower) in [("ext4", "/root", 1.0), ("tmpfs", "/dev/shm", 0.9)] {
        let place = |more: &[(&str, ParamValue)]| -> Params {
            let mut place = params([("filesystem", filesystem.into()), ("directory", directory.into())]);
            place.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            place
        };
        let placed = |m: Measurement, more: &[(&str, ParamValue)]| Measurement { params: place(more), ..m };
        for (mode, words, extra) in
            [("kept-open", "kept open", 0.0), ("open-close", "open, read, close", 840.0)]
        {
            for (size, ns) in
                [(1, 210.0), (4 * KIB, 230.0), (64 * KIB, 2.1e3), (MIB, 84e3), (64 * MIB, 8.4e6)]
            {
                let title = format!("read, {words}, {}, {filesystem}", format_size(size));
                let m = batch("file.read", &title, [], (ns + extra) * slower).working(size, size);
                let m = placed(m, &[("size", size.into()), ("mode", mode.into())]);
                all.push(if size == 1 { m.curve() } else { m });
            }
        }
        let timed = |id: &str, title: &str, ns: f64| {
            placed(event(id, &format!("{title}, {filesystem}"), [], ns * slower), &[("size", 0.into())])
        };
        all.push(timed("file.create", "create an empty file", 2.6e3));
        all.push(timed("file.unlink", "unlink an empty file", 2.1e3));
        all.push(placed(
            batch("file.open-close", &format!("open and close, {filesystem}"), [], 1.03e3 * slower),
            &[],
        ));
        let sync = timed("file.fsync", "fsync after 4 KiB", 1.1e6);
        all.push(if filesystem == "ext4" {
            sync
        } else {
            sync.unsupported(
                "tmpfs has no device to flush to",
                "name a directory on a disk: latscope file --dir DIR",
            )
        });
        let direct =
            event("file.read-direct", &format!("read past the page cache, 4 KiB, {filesystem}"), [], 27e3);
        let direct = placed(direct, &[("size", (4 * KIB).into())]);
        all.extend((filesystem == "ext4").then_some(direct));
    }
    all
}

fn wakeups() -> Vec<Measurement> {
    let params = [("interval", 1_000_000.into()), ("cpu", "all".into()), ("policy", "fifo".into())];
    let m = event("wake.timer", "timer wake-up, 1 ms, FIFO 80", params, 5.9e3);
    vec![Measurement { times: Semantics::OneWay, ..m }]
}

fn machine() -> Machine {
    let cache = |level, kind: &str, size, ways| Cache {
        level,
        kind: kind.to_owned(),
        size,
        line: 64,
        ways,
        shared: CpuList(vec![0, 1]),
    };
    Machine {
        id: None,
        name: "bench".to_owned(),
        kernel: "6.18.0".to_owned(),
        kernel_version: "#1 SMP PREEMPT_DYNAMIC".to_owned(),
        command_line: None,
        architecture: "x86_64".to_owned(),
        cpu_model: "Intel(R) Xeon(R) Processor @ 2.60GHz".to_owned(),
        microcode: None,
        online: CpuList(vec![0, 1]),
        allowed: CpuList(vec![0, 1]),
        cpus: (0..2).map(|id| Cpu { id, core: id, siblings: CpuList(vec![id]), ..Cpu::default() }).collect(),
        caches: vec![
            cache(1, "Data", 48 * KIB, 12),
            cache(1, "Instruction", 32 * KIB, 8),
            cache(2, "Unified", 2 * MIB, 16),
            cache(3, "Unified", 105 * MIB, 15),
        ],
        last_caches: Vec::new(),
        nodes: Vec::new(),
        caches_from: "sysfs".to_owned(),
        memory: 24 << 30,
        memory_available: 20 << 30,
        hypervisor: Some("KVM".to_owned()),
        root: true,
        scheduler: None,
        load_average: 1.32,
        clock: ClockInfo {
            source: "tsc".to_owned(),
            reason: "invariant, and as fast as CPUID says".to_owned(),
            frequency_hz: 2.6e9,
            resolution_ns: 0.77,
            overhead_ns: 16.8,
        },
        checks: vec![Check {
            id: "virtual".to_owned(),
            state: CheckState::Note,
            found: "a KVM guest".to_owned(),
            affects: vec!["sync.*".to_owned()],
            remedy: None,
        }],
    }
}

fn plan(measurements: &[Measurement]) -> Plan {
    let mut steps: Vec<Step> = Vec::new();
    for m in measurements {
        let point = Point {
            probe: m.probe.clone(),
            revision: m.revision,
            params: m.params.clone(),
            title: m.title.clone(),
            row: m.row,
        };
        match steps.last_mut().filter(|step| step.name == m.probe) {
            Some(step) => step.points.push(point),
            None => steps.push(Step {
                rounds: 1,
                name: m.probe.clone(),
                points: vec![point],
                cpus: vec![0],
                policy: Policy::Other,
                stop: Stop {
                    samples: 200,
                    events: 2000,
                    batch_ns: 500_000,
                    budget_ns: 100_000_000,
                    limit_ns: 500_000_000,
                },
                conditions: Conditions::default(),
                periodic: None,
                seed: 1,
            }),
        }
    }
    Plan {
        rounds: 1,
        job: "survey".to_owned(),
        steps,
        load: None,
        timeline: None,
        on_threshold: None,
        criteria: Vec::new(),
        stop_when_exceeded: false,
        cpus: CpuList(vec![0, 1]),
        notes: vec!["memory.latency ends at 256 MiB; latscope memory has no such limit".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixture_survives_its_file() {
        for report in [report(), other(), wake(), server(), remote(), ipc::payloads()] {
            let read = Report::from_json(report.to_json().as_bytes()).unwrap();
            assert_eq!(read, report);
        }
    }
}
