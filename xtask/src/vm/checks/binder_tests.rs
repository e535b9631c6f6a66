//! Checks of the personalities of AOSP's tests of binder, over the real driver.

use super::{ALL, Ran, VmCheck};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("AOSP's schd-dbg finds no inheritance in binder", ALL, SCHD_DBG, |ran| {
        latency(ran, "binder", 2)
    })
    .exits(1),
    VmCheck::new("AOSP's libhwbinder_latency finds none in hwbinder", ALL, LATENCY, hwbinder_latency)
        .exits(1),
    VmCheck::new("AOSP's libhwbinder_latency inherits within a process", ALL, PASSTHROUGH, |ran| {
        ensure!(parse_json(ran)?["inheritance"] == "PASS", "{}", ran.output_text());
        Ok(())
    }),
    VmCheck::new("AOSP's libhwbinder_latency stops a trace at the first miss", ALL, TRACE, check_trace),
    // Fifteen pairs of processes, on an emulator whose clock may run fast.
    VmCheck::new("AOSP's libbinder_benchmark measures all sizes", ALL, BENCHMARK, |ran| {
        let found = benchmarks(ran, "BM_sendVec_binder/")?;
        ensure!(found == 15, "{found} sizes instead of 15");
        Ok(())
    })
    .with_time_limit(300),
    VmCheck::new("AOSP's libhwbinder_benchmark repeats what its filter takes", ALL, REPEATED, |ran| {
        let found = benchmarks(ran, "BM_sendVec_binderize/")?;
        ensure!(
            found == 12,
            "{found} rows instead of two sizes, each with two repetitions and four statistics"
        );
        Ok(())
    }),
    VmCheck::new("AOSP's libhwbinder_benchmark speaks as Android 8.0", ALL, OREO, |ran| {
        ran.check_stdout("BM_sendVec_binderize/64k  ")?;
        ran.check_stdout("\n---------------------------------------------------------------------\nBM_sendVec_binderize/1024  ")
    }),
    VmCheck::new(
        "AOSP's binderThroughputTest counts calls of its clients",
        ALL,
        THROUGHPUT,
        check_throughput,
    ),
];

const SCHD_DBG: &str = "latscope as schd-dbg -i 50 -pair 2 -v";
const LATENCY: &str = "latscope as libhwbinder_latency -i 50 -raw_data";
const PASSTHROUGH: &str = "latscope as libhwbinder_latency -i 20 -m PASSTHROUGH";
const TRACE: &str = "echo 1 > /sys/kernel/tracing/tracing_on
    latscope as libhwbinder_latency -deadline_us 1 -trace -i 100 > page.json 2> said.txt
    echo \"exit $?, on $(cat /sys/kernel/tracing/tracing_on)\"
    cat said.txt >&2; echo 1 > /sys/kernel/tracing/tracing_on";
const BENCHMARK: &str = "latscope as libbinder_benchmark --benchmark_min_time=20x --benchmark_format=json";
const REPEATED: &str = "latscope as libhwbinder_benchmark --benchmark_filter='/(4|4096)$' --benchmark_min_time=0.05 \
    --benchmark_repetitions=2 --benchmark_format=json";
const OREO: &str = "latscope as libhwbinder_benchmark --benchmark_filter='/(1024|64k)$' --benchmark_min_time=5x --compat=8.0";
const THROUGHPUT: &str = "latscope as binderThroughputTest -p -w 4 -i 200";

fn parse_json(ran: &Ran) -> Result<Value> {
    serde_json::from_str(&ran.stdout).with_context(|| ran.output_text())
}

/// Checks the figures of a latency test in which a normal thread serves each SCHED_FIFO call: one mismatch in each
/// iteration.
fn latency(ran: &Ran, server: &str, pairs: usize) -> Result<()> {
    let page = parse_json(ran)?;
    ensure!(page["inheritance"] == "FAIL", "{}", ran.output_text());
    for pair in 0..pairs {
        let block = &page[format!("P{pair}")];
        ensure!(block["I"] == 100 && block["fifo_ms"]["avg"].as_f64() > Some(0.0), "P{pair}: {block}");
    }
    ran.complains(&format!("in {} of {} calls", 50 * pairs, 100 * pairs))?;
    if server == "binder" {
        ran.complains("\nSCHED_FIFO  99\n")?;
        ran.complains("\nbinder       pid: ")?;
        ran.complains("err priority_caller:99, priority:0")?;
    }
    Ok(())
}

fn hwbinder_latency(ran: &Ran) -> Result<()> {
    latency(ran, "hwbinder", 1)?;
    let page = parse_json(ran)?;
    let raw = page["fifo_0_data"].as_array().context("no raw data")?;
    ensure!(raw.len() == 50, "{} raw durations", raw.len());
    ensure!(page["ALL"]["fifodis"]["p99"].as_f64() > Some(0.0), "{}", ran.output_text());
    Ok(())
}

fn check_trace(ran: &Ran) -> Result<()> {
    ran.prints("exit 1, on 0")?;
    ran.complains("deadline triggered: halt & stop trace\nlog:/sys/kernel/")?;
    ran.complains("tracing/trace\n")?;
    let text = std::fs::read_to_string(ran.files.join("page.json"))?;
    let page: Value = serde_json::from_str(&text).context(text.clone())?;
    ensure!(page["P0"]["I"].as_u64() < Some(200), "it went on: {page}");
    Ok(())
}

/// Checks that all rows of a benchmark were measured. Returns the number of rows.
fn benchmarks(ran: &Ran, family: &str) -> Result<usize> {
    let page = parse_json(ran)?;
    let rows = page["benchmarks"].as_array().context("no rows")?;
    for row in rows {
        ensure!(row["name"].as_str().is_some_and(|name| name.starts_with(family)), "{row}");
        ensure!(row["error_occurred"].is_null() && row["real_time"].as_f64() > Some(0.0), "{row}");
    }
    Ok(rows.len())
}

fn check_throughput(ran: &Ran) -> Result<()> {
    ran.check_stdout("Created BinderWorker3\n")?;
    ran.check_stdout("\n50%: ")?;
    let rate = ran.stdout.split("iterations per sec: ").nth(1).and_then(|rest| rest.lines().next());
    let rate: f64 = rate.context("no rate")?.parse()?;
    ensure!(rate > 0.0, "{rate} a second");
    Ok(())
}
