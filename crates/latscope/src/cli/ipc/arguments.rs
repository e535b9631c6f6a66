//! The options of `latscope ipc`.

use crate::cli::criteria::{CallCriteria, Criteria, HEADING};
use crate::cli::live::LiveArguments;
use crate::cli::options::{
    Dynamic, ExplicitOptions, RunArguments, WordValueParser, keyword_parser, one_of, some_time, word_parser,
};
use clap::{Args, value_parser};
use latscope_core::units::parse_size;
use latscope_core::word::Meaning;
use latscope_probes::ipc::point::{Caller, IpcPairPlacement};
use latscope_probes::ipc::transports;
use latscope_probes::wake::timer::PRIORITY;
use std::path::PathBuf;

/// Transactions between processes: what a request and its reply take.
///
/// Each pair is a server process and a client process. The client calls in turns: once from a SCHED_FIFO thread, once
/// from a normal one; that is one count. Given are the whole distribution of each, calls over the deadline, how often
/// both sides ran on one CPU, and whether the server inherited the caller's priority.
///
/// Exit codes: 0 done and every criterion holds, 1 error, 2 a criterion was exceeded, 3 a criterion is inconclusive.
#[derive(Debug, Args)]
#[command(
    about = "Transactions between processes: latency, deadlines, inheritance, throughput",
    mut_arg("count", |arg| arg.help("Calls of each caller [default: 10000 within 10 s]")),
    mut_arg("duration", |arg| arg.help("Time of each run, such as 5s")),
    mut_arg("missed", |arg| arg.help("No more calls may miss the deadline"))
)]
pub struct IpcArguments {
    #[command(flatten)]
    pub given: Dynamic<ExplicitOptions>,
    #[command(flatten)]
    pub what: WhatArguments,
    /// Who had a part in the first calls: pid, tid, CPU, policy and priority
    #[arg(long, short)]
    pub verbose: bool,
    /// End at the first miss, say what took its time, and save the trace (.dat for trace-cmd)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
    #[command(flatten)]
    pub live: LiveArguments,
    // Headings hold for all that follows.
    #[command(flatten, next_help_heading = "Processes and callers")]
    pub pairs: PairArguments,
    #[command(flatten, next_help_heading = "Calls")]
    pub calls: CallArguments,
    #[command(flatten)]
    pub criteria: Dynamic<Criteria<true>>,
    #[command(flatten, next_help_heading = HEADING)]
    pub call_criteria: CallCriteria,
}

/// Value of `--transport` that stands for each of them.
pub const ALL: &str = "all";

fn transport_parser() -> WordValueParser {
    let names = transports().map(|transport| (transport.name, transport.title));
    word_parser(names.chain([(ALL, "each of them")]))
}

// What is measured.
#[derive(Debug, Args)]
pub struct WhatArguments {
    /// What carries them; all compares [default: binder, else unix-stream]
    #[arg(long, short, value_name = "NAME,…", value_delimiter = ',', value_parser = transport_parser())]
    pub transport: Vec<String>,
    /// Payloads from 4 B to 64 KiB, echoed and verified
    #[arg(long, conflicts_with_all = ["rate", "each_call"])]
    pub throughput: bool,
    /// Only the way of the request, by stamps of both sides
    // The server records it: it can neither stop the run nor say which call its answer was for.
    #[arg(long, conflicts_with_all = ["throughput", "trace", "each_call"])]
    pub one_way: bool,
    /// How long a lock's owner of low priority blocks one of high priority
    #[arg(long, conflicts_with_all = [
        "throughput", "one_way", "pairs", "caller", "priority", "fresh_thread", "placement", "deadline", "payload",
        "rate", "warm_up", "each_call", "verbose", "trace",
    ])]
    pub inversion: bool,
    /// Ping an existing binder service (0: the context manager)
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "throughput", "one_way", "inversion", "payload", "each_call",
    ])]
    pub service: Option<String>,
    /// Binder device to use, such as /dev/hwbinder [default: one of our own, else the first that is free]
    #[arg(long, value_name = "PATH", conflicts_with = "inversion")]
    pub device: Option<String>,
}

const CALLERS: [(Meaning, Caller); 2] = [
    (("other", "a thread of the normal policy, SCHED_OTHER"), Caller::Other),
    (("fifo", "a thread of SCHED_FIFO, by --priority"), Caller::Fifo(PRIORITY)),
];

// Who takes part.
#[derive(Debug, Args)]
pub struct PairArguments {
    /// Pairs of processes; under pressure: the number of CPUs less one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pairs: u64,
    /// Who calls [default: fifo,other; with --throughput: other]
    #[arg(long, value_name = "WHO,…", value_delimiter = ',', value_parser = one_of(&CALLERS))]
    pub caller: Vec<Caller>,
    /// Real-time priority of the SCHED_FIFO caller, 1 to 99 [default: 95]
    #[arg(long, value_name = "N")]
    pub priority: Option<u32>,
    /// A new thread for each SCHED_FIFO call, as AOSP's tests have it
    #[arg(long)]
    pub fresh_thread: bool,
    /// Where client and server run [default: free]
    #[arg(long, value_name = "WHERE", value_parser = keyword_parser::<IpcPairPlacement>())]
    pub placement: Option<IpcPairPlacement>,
}

// How they call.
#[derive(Debug, Args)]
pub struct CallArguments {
    /// A call that takes longer is a miss
    #[arg(long, value_name = "T", value_parser = some_time, default_value = "2500us")]
    pub deadline: u64,
    /// Bytes of a request and of its reply [default: 32]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_size)]
    pub payload: Vec<u64>,
    /// Open loop: calls of each caller in a second; also measured from when they were due
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub rate: Option<u64>,
    /// First calls of each caller that are not recorded
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub warm_up: u64,
    /// Look for inheritance in every call: one more system call in the server
    #[arg(long)]
    pub each_call: bool,
}
