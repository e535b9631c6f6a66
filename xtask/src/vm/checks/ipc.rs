//! Transactions over the real binder driver.

use super::{ALL, Check, Ran};
use anyhow::{Context, Result, ensure};

pub const CHECKS: &[Check] = &[
    Check::new("latscope ipc measures binder", ALL, LATENCY, |ran| ran.measured("ipc.binder")),
    Check::new("latscope ipc measures hwbinder", ALL, SCATTER_GATHER, |ran| ran.measured("ipc.hwbinder")),
    Check::new("mainline binder passes on nice values and no policy", ALL, LATENCY, inheritance),
    Check::new("pairs have contexts of their own or share one", ALL, PAIRS, |ran| ran.measured("ipc.binder")),
    Check::new("every payload comes back over binder", ALL, THROUGHPUT, |ran| {
        let points = ran.result()?.of_probe("ipc.hwbinder").count();
        ensure!(points == 8, "{points} points instead of four payloads, each alone and summed up");
        ran.measured("ipc.hwbinder")
    }),
    Check::new("binder's way of a request is measured", ALL, ONE_WAY, |ran| ran.measured("ipc.binder")),
    Check::new("a missed deadline over binder is traced", ALL, TRACE, traced),
    Check::new("a lock with inheritance does not wait for the hog", ALL, INVERSION, inversion),
];

const LATENCY: &str = "latscope ipc --transport binder --placement same-core --count 100 --json -";
const SCATTER_GATHER: &str = "latscope ipc --transport hwbinder --fresh-thread --count 50 --json -";
const PAIRS: &str = "latscope ipc --transport binder --pairs 2 --count 50 --json -";
const THROUGHPUT: &str =
    "latscope ipc --transport hwbinder --throughput --payload 4,1KiB,4KiB,64KiB --count 50 --json -";
const ONE_WAY: &str = "latscope ipc --transport binder --one-way --count 50 --json -";
const TRACE: &str = "latscope ipc --transport binder --deadline 1ns --trace miss.txt --json - --quiet";
const INVERSION: &str = "latscope ipc --inversion --count 5 --json -";

fn value(ran: &Ran, caller: &str, name: &str) -> Result<f64> {
    let report = ran.result()?;
    let of_caller = |m: &&latscope_core::report::Measurement| {
        m.params.get("caller").is_some_and(|word| word.to_string() == caller)
    };
    let m = report.of_probe("ipc.binder").find(of_caller).context("no such row")?;
    let value = m.values.get(name).with_context(|| format!("no {name}: {:?}", m.reason))?;
    Ok(value.value)
}

fn inheritance(ran: &Ran) -> Result<()> {
    for (what, inherited) in [("rt", 0.0), ("nice", 50.0)] {
        let of = |name: &str| value(ran, "fifo", &format!("{what}-{name}"));
        let found = (of("calls")?, of("inherited")?, of("restored")?);
        ensure!(found == (50.0, inherited, 50.0), "{what}: calls, inherited, restored: {found:?}");
    }
    Ok(())
}

fn traced(ran: &Ran) -> Result<()> {
    let trace = std::fs::read_to_string(ran.files.join("miss.txt")).with_context(|| ran.said())?;
    ensure!(trace.contains("sched_switch"), "the trace has no switches");
    let outliers: usize = ran.result()?.measurements.iter().map(|m| m.outliers.len()).sum();
    ensure!(outliers > 0, "no outlier: {}", ran.said());
    Ok(())
}

fn inversion(ran: &Ran) -> Result<()> {
    ran.measured("ipc.inversion")?;
    let report = ran.result()?;
    let medians: Vec<Option<f64>> = report.of_probe("ipc.inversion").map(|m| m.summary.p50).collect();
    let [Some(plain), Some(pi)] = medians[..] else { anyhow::bail!("not two locks: {medians:?}") };
    // The hog alone takes 10 ms, which only the plain lock's waiter waits for.
    ensure!(plain >= 10e6 && pi < plain, "plain {plain}, pi {pi}");
    Ok(())
}
