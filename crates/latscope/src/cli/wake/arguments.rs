//! The options of `latscope wake`.

use super::profile::{self, WakeProfile};
use crate::cli::criteria::Criteria;
use crate::cli::live::LiveArguments;
use crate::cli::options::{
    Dynamic, ExplicitOptions, RunArguments, TimelineArgument, keyword_parser, one_of, parse_time_ns,
    some_time,
};
use crate::cli::outliers::OutlierArguments;
use clap::{Args, ValueEnum, value_parser};
use latscope_core::plan::Phase;
use latscope_core::units::parse_size;
use latscope_core::word::Meaning;
use latscope_probes::wake::thread::{ClockName, WakeHopKind, WakeMethod};

/// Periodic wake-up latency: how much later than programmed a sleeping thread runs.
///
/// A SCHED_FIFO thread on each allowed CPU wakes up every millisecond for a minute, with memory locked and CPUs kept
/// from deep sleep. Activations missed because an earlier one was late are counted; a second distribution includes
/// them. Ends early with q on the live screen, or with Ctrl-C.
///
/// Exit codes: 0 done and every criterion holds, 1 error, 2 a criterion was exceeded, 3 a criterion is inconclusive.
#[derive(Debug, Args)]
#[command(
    about = "Periodic wake-up: how late a sleeping thread runs, and why",
    mut_arg("count", |arg| arg.help("Activations of each thread")),
    mut_arg("duration", |arg| arg.help("Time in which activations are recorded, after the warm-up [default: 1m, without --count]"))
)]
pub struct WakeArguments {
    #[command(flatten)]
    pub given: Dynamic<ExplicitOptions>,
    /// Whose threads are measured
    #[arg(value_name = "PROBE", value_enum, default_value_t = WakeProbe::Timer)]
    pub probe: WakeProbe,
    /// Run until q or Ctrl-C
    #[arg(long, conflicts_with_all = ["count", "duration", "rounds"])]
    pub endless: bool,
    /// Settings of a known practice; options given beside it win
    #[arg(long, value_name = "NAME", value_parser = one_of(profile::PROFILES))]
    pub profile: Option<&'static WakeProfile>,
    #[command(flatten)]
    pub run: RunArguments,
    #[command(flatten)]
    pub live: LiveArguments,
    #[command(flatten)]
    pub timeline: TimelineArgument,
    /// Estimate the latency reached once in N activations, if the tail allows it
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100000000", value_parser = value_parser!(u64).range(1..))]
    pub extrapolate: Option<u64>,
    // Headings hold for all that follows.
    #[command(flatten, next_help_heading = "Threads")]
    pub threads: ThreadArguments,
    #[command(flatten, next_help_heading = "Outliers")]
    pub outliers: OutlierArguments,
    #[command(flatten)]
    pub criteria: Dynamic<Criteria<true>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WakeProbe {
    /// latscope's own threads
    Timer,
    /// The kernel's tracer, where it has one
    Timerlat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// The normal policy, SCHED_OTHER
    Other,
    /// Real-time policy SCHED_FIFO
    Fifo,
    /// Real-time policy SCHED_RR: threads of one priority in turn
    #[value(name = "rr")]
    RoundRobin,
    /// SCHED_DEADLINE, with --runtime in each interval
    Deadline,
}

const PHASES: [(Meaning, Phase); 3] = [
    (("aligned", "all at once"), Phase::Aligned(0)),
    (("staggered", "spread over the interval"), Phase::Staggered),
    (("random", "at random within the interval"), Phase::Random),
];

// What each thread does.
#[derive(Debug, Args)]
pub struct ThreadArguments {
    /// Time from one activation to the next [default: 1ms]
    #[arg(long, short, value_name = "T", value_parser = parse_time_ns)]
    pub interval: Option<u64>,
    /// Measuring threads [default: one on each CPU]
    #[arg(long, short, value_name = "N")]
    pub threads: Option<u64>,
    /// Each further thread's interval is longer by this
    #[arg(long, value_name = "T", value_parser = parse_time_ns, default_value = "0s")]
    pub distance: u64,
    /// Scheduling policy [default: fifo]
    #[arg(long, value_name = "P", value_enum, ignore_case = true)]
    pub policy: Option<PolicyName>,
    /// Real-time priority, 1 to 99 [default: 95]
    #[arg(long, short, value_name = "N")]
    pub priority: Option<u32>,
    /// Each further thread's priority is lower by one
    #[arg(long)]
    pub spread: bool,
    /// CPU time in each period for --policy deadline [default: a tenth of the interval]
    #[arg(long, value_name = "T", value_parser = some_time)]
    pub runtime: Option<u64>,
    /// How threads wait
    #[arg(long, value_name = "M", value_parser = keyword_parser::<WakeMethod>(), default_value = "nanosleep")]
    pub method: WakeMethod,
    /// Clock of the timer and the stamps
    #[arg(long, value_name = "C", value_parser = keyword_parser::<ClockName>(), default_value = "monotonic")]
    pub clock: ClockName,
    /// First instants of the threads
    #[arg(long, value_name = "P", value_parser = one_of(&PHASES), default_value = "staggered")]
    pub phase: Phase,
    /// Begin on a full second of the clock
    #[arg(long)]
    pub align_second: bool,
    /// One more hop from the woken thread to the one that is measured
    #[arg(long, value_name = "HOW", value_parser = keyword_parser::<WakeHopKind>(), default_value = "direct")]
    pub via: WakeHopKind,
    /// Computing time of each activation; its end is measured too
    #[arg(long, value_name = "T", value_parser = parse_time_ns, default_value = "0s")]
    pub work: u64,
    /// Memory that each activation reads and writes
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    pub touch: u64,
    /// Time slice for --policy other, 100us to 100ms (Linux 6.12) [default: the kernel's]
    #[arg(long, value_name = "T", value_parser = some_time)]
    pub slice: Option<u64>,
    /// Intervals at the begin that are not recorded [default: those of 100 ms, 1 to 100]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u64>,
    /// Do not lock memory or restrict idle states
    #[arg(long)]
    pub as_is: bool,
}
