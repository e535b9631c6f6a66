//! `binderThroughputTest`, which measures how many transactions a second its workers get.

pub mod options;
pub mod text;

use super::measure::{self, Environment, lost, of_pairs, value};
use super::words::{self, AOSP};
use crate::context::Context;
use crate::personality::Program;
use anyhow::Result;
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::histogram::Histogram;
use latscope_core::plan::Periodic;
use latscope_core::report::Report;
use latscope_host::stdout::print;
use latscope_probes::ipc::point::Caller;
use latscope_probes::ipc::setup::{Setup, usual_rules};
use options::{SPECS, ThroughputOptions, settle};
use text::Figures;

/// Program `binderThroughputTest`.
pub static THROUGHPUT: Program<ThroughputOptions> = Program {
    name: "binderThroughputTest",
    summary: "binder transactions a second, by processes that call each other",
    suite: &AOSP,
    form: "",
    options: SPECS,
    usual: |context| words::usual(ThroughputOptions::default(), context),
    settle,
    carry_out,
};

fn carry_out(options: &ThroughputOptions, context: &Context) -> Result<u8> {
    let transport = measure::transport(&options.common, "binder")?;
    let environment = Environment::survey(context);
    let plan = |most: u64| {
        let setup = setup(options, most, Setup::usual(transport, &environment.machine));
        environment.plan(vec![setup.step()], None)
    };
    let round = |most: u64| environment.carry_out(plan(most), None, &options.common);
    let mut most = options.most_us * 1000;
    if context.shows(&plan(most)) {
        return Ok(0);
    }
    if options.training {
        print("Start training round\n");
        let figures = figures(&round(most)?);
        print(&(text::round(options.workers, &figures) + &text::trained(&figures)));
        most = 2 * figures.worst as u64;
    }
    let report = round(most)?;
    let figures = figures(&report);
    print(&(text::round(options.workers, &figures) + &text::figures(&figures)));
    if !options.pairs {
        context.note("each worker calls a server process of its own, not another worker at random");
    }
    let short = of_pairs(&report).any(|m| m.summary.count < options.iterations);
    if short {
        context.note("it ended before all iterations were done");
    }
    Ok(u8::from(short || of_pairs(&report).map(lost).sum::<u64>() > 0))
}

/// Setup with a pair of processes for each worker that calls.
fn setup(options: &ThroughputOptions, most: u64, usual: Setup) -> Setup {
    Setup {
        callers: vec![Caller::Other],
        pairs: options.callers(),
        payloads: vec![options.payload.max(LEAST)],
        deadline: most,
        rules: Periodic { warm_up: 0, ..usual_rules() },
        count: options.iterations,
        ..usual
    }
}

/// Least number of bytes in a request, which lets a stale reply be noticed.
const LEAST: u64 = 4;

fn figures(report: &Report) -> Figures {
    let mut histogram = Histogram::new(of_pairs(report).next().map_or(1000, |m| m.histogram.tick_ps()));
    of_pairs(report).for_each(|m| histogram.merge(&m.histogram));
    let longest = |name| of_pairs(report).map(|m| value(m, name)).fold(0.0, f64::max);
    let elapsed = longest(RUN_ELAPSED).max(longest("elapsed"));
    let quantile = |q| histogram.quantile(q).unwrap_or(f64::NAN);
    Figures {
        calls: histogram.count(),
        misses: of_pairs(report).map(|m| m.summary.missed).sum(),
        elapsed,
        mean: histogram.mean().unwrap_or(f64::NAN),
        worst: histogram.max().unwrap_or(f64::NAN),
        best: histogram.min().unwrap_or(f64::NAN),
        quantiles: [0.5, 0.9, 0.95, 0.99].map(quantile),
    }
}
