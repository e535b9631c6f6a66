//! The options of `latscope ipc`.

use crate::cli::criteria;
use crate::cli::options::{file, flag, run_arguments, some_time, view_arguments};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, value_parser};
use latscope_core::units::parse_size;
use latscope_probes::ipc::point::{Caller, Placement};
use latscope_probes::ipc::transports;

/// The command.
pub fn command() -> Command {
    Command::new("ipc")
        .about("Transactions between processes: latency, deadlines, inheritance, throughput")
        .long_about(
            "Transactions between processes: what a request and its reply take.\n\nEach pair is a server process and a client \
             process. The client calls in turns: once from a SCHED_FIFO thread, once from a normal one; that is one \
             count. Given are the whole distribution of each, calls over the deadline, how often both sides ran on \
             one CPU, and whether the server inherited the caller's priority.\n\nExit codes: 0 done and every \
             criterion holds, 1 error, 2 a criterion was exceeded, 3 a criterion is inconclusive.",
        )
        .args(what())
        .args(pairs())
        .args(calls())
        .args(looks())
        .args(criteria::arguments())
        .args(criteria::of_calls())
        .args(run_arguments())
        .args(view_arguments())
        .mut_arg("count", |arg| arg.help("Calls of each caller [default: 10000 within 10 s]"))
        .mut_arg("duration", |arg| arg.help("Time of each run, such as 5s"))
        .mut_arg("missed", |arg| arg.help("No more calls may miss the deadline"))
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn what() -> Vec<Arg> {
    let names = transports().map(|transport| transport.name).chain(["all"]);
    vec![
        option("transport", "NAME,…", "What carries them; all compares [default: binder, else unix-stream]")
            .short('t')
            .value_delimiter(',')
            .value_parser(PossibleValuesParser::new(names)),
        flag("throughput", "Payloads from 4 B to 64 KiB, echoed and verified")
            .conflicts_with_all(["rate", "each-call"]),
        // The server records it: it can neither stop the run nor say which call its answer was for.
        flag("one-way", "Only the way of the request, by stamps of both sides").conflicts_with_all([
            "throughput",
            "trace",
            "each-call",
        ]),
        flag("inversion", "How long a lock's owner of low priority blocks one of high priority")
            .conflicts_with_all([
                "throughput",
                "one-way",
                "pairs",
                "caller",
                "priority",
                "fresh-thread",
                "placement",
                "deadline",
                "payload",
                "rate",
                "warm-up",
                "each-call",
                "verbose",
                "trace",
            ]),
        option("service", "NAME", "Ping an existing binder service (0: the context manager)")
            .conflicts_with_all(["transport", "throughput", "one-way", "inversion", "payload", "each-call"]),
    ]
}

fn pairs() -> Vec<Arg> {
    let words = |words: &'static [&'static str]| PossibleValuesParser::new(words);
    let heading = |arg: Arg| arg.help_heading("Processes and callers");
    [
        option("pairs", "N", "Pairs of processes; under pressure: the number of CPUs less one")
            .value_parser(value_parser!(u64))
            .default_value("1"),
        option("caller", "WHO,…", "Who calls [default: fifo,other; with --throughput: other]")
            .value_delimiter(',')
            .value_parser(words(Caller::WORDS)),
        option("priority", "N", "Real-time priority of the SCHED_FIFO caller, 1 to 99 [default: 95]")
            .value_parser(value_parser!(u32)),
        flag("fresh-thread", "A new thread for each SCHED_FIFO call, as AOSP's tests have it"),
        option("placement", "WHERE", "Client and server: same-core, two-cores, or free [default: free]")
            .value_parser(words(Placement::WORDS)),
    ]
    .map(heading)
    .into()
}

fn calls() -> Vec<Arg> {
    let heading = |arg: Arg| arg.help_heading("Calls");
    [
        option("deadline", "T", "A call that takes longer is a miss")
            .value_parser(some_time)
            .default_value("2500us"),
        option("payload", "SIZE,…", "Bytes of a request and of its reply [default: 32]")
            .value_delimiter(',')
            .value_parser(parse_size),
        option(
            "rate",
            "N",
            "Open loop: calls of each caller in a second; also measured from when they were due",
        )
        .value_parser(value_parser!(u64).range(1..=1_000_000)),
        option("warm-up", "N", "First calls of each caller that are not recorded")
            .value_parser(value_parser!(u64))
            .default_value("100"),
        flag("each-call", "Look for inheritance in every call: one more system call in the server"),
    ]
    .map(heading)
    .into()
}

fn looks() -> Vec<Arg> {
    vec![
        flag("verbose", "Who had a part in the first calls: pid, tid, CPU, policy and priority").short('v'),
        file(
            "trace",
            "End at the first miss, say what took its time, and save the trace (.dat for trace-cmd)",
        ),
    ]
}
