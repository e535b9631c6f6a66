//! Checks of transactions over the real binder driver.

use super::{ALL, Ran, VmCheck};
use anyhow::{Context, Result, ensure};
use latscope_core::param;

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("latscope ipc measures binder", ALL, LATENCY, |ran| ran.check_measured("ipc.binder")),
    VmCheck::new("latscope ipc measures hwbinder", ALL, SCATTER_GATHER, |ran| {
        ran.check_measured("ipc.hwbinder")
    }),
    VmCheck::new("mainline binder passes on nice values and no policy", ALL, LATENCY, inheritance),
    VmCheck::new("pairs have contexts of their own or share one", ALL, PAIRS, |ran| {
        ran.check_measured("ipc.binder")
    }),
    VmCheck::new("every payload comes back over binder", ALL, THROUGHPUT, |ran| {
        let points = ran.parse_report()?.of_probe("ipc.hwbinder").count();
        ensure!(points == 8, "{points} points instead of four payloads, each alone and summed up");
        ran.check_measured("ipc.hwbinder")
    }),
    VmCheck::new("binder's way of a request is measured", ALL, ONE_WAY, |ran| {
        ran.check_measured("ipc.binder")
    }),
    // The miss is the emulator's, which proves nothing: exit code 3.
    VmCheck::new("a missed deadline over binder is traced", ALL, TRACE, check_trace).exits(3),
    VmCheck::new("every transport is measured beside binder", ALL, EVERY, every),
    VmCheck::new("the context manager is pinged", ALL, PING, |ran| ran.check_measured("ipc.binder")),
    VmCheck::new("without a context manager there is none to ping", ALL, NOBODY, |ran| {
        ran.check_stdout("/dev/binder has no context manager, so nothing is registered")
    })
    .exits(1),
    VmCheck::new("a service that is not there is named", ALL, NO_SERVICE, |ran| {
        ran.check_stdout("no service no.such.service on /dev/binder")
    })
    .exits(1),
    VmCheck::new("who holds the context manager is named", ALL, TAKEN, |ran| {
        ran.check_stdout("/dev/binder has a context manager: latscope (process ")
    }),
    VmCheck::new("without permission binder is not measured", ALL, UNPERMITTED, |ran| {
        ran.check_stdout("no permission to open /dev/binder")
    })
    .exits(1),
    VmCheck::new("a server killed over binder is reported, and nothing is left", ALL, KILLED, |ran| {
        ran.check_stdout("signal: 9 (SIGKILL)")?;
        ran.check_stdout("left: 0")
    }),
    VmCheck::new("a run over binder that is killed leaves nothing", ALL, ENDED, |ran| {
        ran.check_stdout("there: 2")?;
        ran.check_stdout("left: 0")
    }),
    VmCheck::new("a lock with inheritance does not wait for the hog", ALL, INVERSION, inversion),
];

const LATENCY: &str = "latscope ipc --transport binder --placement same-core --count 100 --json -";
const SCATTER_GATHER: &str = "latscope ipc --transport hwbinder --fresh-thread --count 50 --json -";
const PAIRS: &str = "latscope ipc --transport binder --pairs 2 --count 50 --json -";
const THROUGHPUT: &str =
    "latscope ipc --transport hwbinder --throughput --payload 4,1KiB,4KiB,64KiB --count 50 --json -";
const ONE_WAY: &str = "latscope ipc --transport binder --one-way --count 50 --json -";
const TRACE: &str = "latscope ipc --transport binder --deadline 1ns --trace miss.txt --json - --quiet";
const EVERY: &str = "latscope ipc --transport all --count 20 --json -";
const PING: &str = "latscope ipc -t binder --caller other --duration 30s -q & run=$!; sleep 2; \
                    latscope ipc --service 0 --count 50 --json -; status=$?; kill -INT $run; wait $run; exit $status";
const NOBODY: &str = "latscope ipc --service 0";
const NO_SERVICE: &str = "latscope ipc -t binder --caller other --duration 30s -q & run=$!; sleep 2; \
                          latscope ipc --service no.such.service; status=$?; kill -INT $run; wait $run; exit $status";
// Three devices for four runs: the last one finds none.
const TAKEN: &str = "runs=; for run in 1 2 3; do latscope ipc -t binder --caller other --duration 40s -q & runs=\"$runs $!\"; sleep 2; done; \
                     latscope ipc -t binder --count 10; kill -INT $runs; wait";
const UNPERMITTED: &str = "chmod 600 /dev/*binder; echo other:x:1000:1000::/:/bin/sh >/etc/passwd; start-stop-daemon -S -c other -x $(which latscope) -- ipc -t binder --count 10; \
                           status=$?; chmod 666 /dev/*binder; exit $status";
const KILLED: &str = "latscope ipc -t binder --caller other --duration 30s & run=$!; sleep 5; \
                      kill -9 $(grep -lx ipc/server /proc/[0-9]*/comm | cut -d/ -f3); \
                      wait $run; echo left: $(grep -l ^ipc/ /proc/[0-9]*/comm | wc -l)";
const ENDED: &str = "latscope ipc -t binder --caller other --duration 30s -q & run=$!; sleep 5; \
                     echo there: $(grep -l ^ipc/ /proc/[0-9]*/comm | wc -l); kill -9 $run; \
                     wait $run; sleep 2; echo left: $(grep -l ^ipc/ /proc/[0-9]*/comm | wc -l)";
const INVERSION: &str = "latscope ipc --inversion --count 5 --json -";

fn row_value(ran: &Ran, caller: &str, name: &str) -> Result<f64> {
    let report = ran.parse_report()?;
    let m = report
        .of_probe("ipc.binder")
        .find(|m| m.has_param_value(param::CALLER, caller))
        .context("no such row")?;
    let value = m.values.get(name).with_context(|| format!("no {name}: {:?}", m.joined_reasons()))?;
    Ok(value.value)
}

fn inheritance(ran: &Ran) -> Result<()> {
    for (what, inherited) in [("rt", 0.0), ("nice", 50.0)] {
        let of = |name: &str| row_value(ran, "fifo", &format!("{what}-{name}"));
        let found = (of("calls")?, of("inherited")?, of("restored")?);
        ensure!(found == (50.0, inherited, 50.0), "{what}: calls, inherited, restored: {found:?}");
    }
    Ok(())
}

fn check_trace(ran: &Ran) -> Result<()> {
    let trace = std::fs::read_to_string(ran.files.join("miss.txt")).with_context(|| ran.output_text())?;
    ensure!(trace.contains("sched_switch"), "the trace has no switches");
    let outliers: usize = ran.parse_report()?.measurements.iter().map(|m| m.outliers.len()).sum();
    ensure!(outliers > 0, "no outlier: {}", ran.output_text());
    Ok(())
}

fn inversion(ran: &Ran) -> Result<()> {
    ran.check_measured("ipc.inversion")?;
    let report = ran.parse_report()?;
    let shortest: Vec<Option<f64>> = report.of_probe("ipc.inversion").map(|m| m.summary.min).collect();
    let [Some(plain), Some(pi), Some(binder), Some(hwbinder)] = shortest[..] else {
        anyhow::bail!("not two locks and two transports: {shortest:?}")
    };
    // The hog alone takes 10 ms, for which only the waiter for a lock with inheritance does not wait.
    let waits = [plain, binder, hwbinder].iter().all(|ns| *ns >= 10e6);
    ensure!(waits && pi < plain, "plain {plain}, pi {pi}, binder {binder}, hwbinder {hwbinder}");
    Ok(())
}

fn every(ran: &Ran) -> Result<()> {
    let report = ran.parse_report()?;
    let mut transports = 0;
    for m in report.measurements.iter().filter(|m| m.probe.starts_with("ipc.")) {
        transports += 1;
        ensure!(m.summary.count > 0, "{}: {:?}", m.probe, m.joined_reasons());
    }
    ensure!(transports >= 20, "only {transports} rows");
    Ok(())
}
