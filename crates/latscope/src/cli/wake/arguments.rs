//! The options of `latscope wake`.

use super::profile::PROFILES;
use crate::cli::options::{file, flag, run_arguments, some_time, view_arguments};
use crate::cli::{criteria, live, outliers};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, value_parser};
use latscope_core::units::{parse_duration, parse_size};
use latscope_probes::Word;
use latscope_probes::wake::thread::{ClockName, Method, Policy, Via};

/// The command.
pub fn command() -> Command {
    Command::new("wake")
        .about("Periodic wake-up: how late a sleeping thread runs, and why")
        .long_about(
            "Periodic wake-up latency: how much later than programmed a sleeping thread runs.\n\nA SCHED_FIFO thread \
             on each allowed CPU wakes up every millisecond for a minute, with memory locked and CPUs kept from \
             deep sleep. Activations missed because an earlier one was late are counted; a second distribution includes them. \
             Ends early with q on the live screen, or with Ctrl-C.\n\nExit codes: 0 done and every criterion holds, \
             1 error, 2 a criterion was exceeded, 3 a criterion is inconclusive.",
        )
        .arg(
            Arg::new("probe")
                .value_name("PROBE")
                .value_parser(PossibleValuesParser::new(["timer", "timerlat"]))
                .default_value("timer")
                .help("timer: latscope's threads; timerlat: the kernel's tracer, where it has one"),
        )
        .args(threads())
        .args(conditions())
        .args(outliers::arguments("An activation later than this is an outlier: traced, explained, acted upon"))
        .args(criteria::arguments())
        .args(run_arguments())
        .args(views())
        .args(view_arguments())
        .mut_arg("count", |arg| arg.help("Activations of each thread"))
        .mut_arg("duration", |arg| arg.help("Time of the run [default: 1m, without --count]"))
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn time(name: &'static str, help: &'static str) -> Arg {
    option(name, "T", help).value_parser(parse_duration)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    option(name, "N", help).value_parser(value_parser!(u64))
}

fn threads() -> Vec<Arg> {
    let words = |words: &'static [&'static str]| PossibleValuesParser::new(words);
    let heading = |arg: Arg| arg.help_heading("Threads");
    [
        time("interval", "Time from one activation to the next [default: 1ms]").short('i'),
        number("threads", "Measuring threads [default: one on each CPU]").short('t'),
        time("distance", "Each further thread's interval is longer by this").default_value("0s"),
        option("policy", "P", "Scheduling policy: other, fifo, rr or deadline [default: fifo]")
            .value_parser(words(Policy::WORDS)),
        option("priority", "N", "Real-time priority, 1 to 99 [default: 95]")
            .short('p')
            .value_parser(value_parser!(u32)),
        flag("spread", "Each further thread's priority is lower by one"),
        time("runtime", "CPU time in each period for --policy deadline [default: a tenth of the interval]")
            .value_parser(some_time),
        option("method", "M", "How threads wait; system is nanosleep(2), yield is for --policy deadline")
            .value_parser(words(Method::WORDS))
            .default_value("nanosleep"),
        option("clock", "C", "Clock of the timer and the stamps")
            .value_parser(words(ClockName::WORDS))
            .default_value("monotonic"),
        option("phase", "P", "First instants: at once, spread over the interval, or at random")
            .value_parser(["aligned", "staggered", "random"])
            .default_value("staggered"),
        flag("align-second", "Begin on a full second of the clock"),
        option("via", "HOW", "One more hop from the woken thread to the one that is measured")
            .value_parser(words(Via::WORDS))
            .default_value("direct"),
        time("work", "Computing time of each activation; its end is measured too").default_value("0s"),
        option("touch", "SIZE", "Memory that each activation reads and writes")
            .value_parser(parse_size)
            .default_value("0"),
        number("warm-up", "Intervals at the begin that are not recorded").default_value("100"),
    ]
    .map(heading)
    .into()
}

fn conditions() -> Vec<Arg> {
    vec![
        flag("as-is", "Do not lock memory or restrict idle states").help_heading("Threads"),
        flag("endless", "Run until q or Ctrl-C").conflicts_with_all(["count", "duration"]),
        option("profile", "NAME", "Settings of a known practice; options given beside it win")
            .value_parser(PossibleValuesParser::new(PROFILES.iter().map(|profile| profile.name))),
    ]
}

fn views() -> Vec<Arg> {
    let mut views = live::arguments();
    views.extend([
        file("timeline", "Record what each thread did and write it for Perfetto"),
        Arg::new("extrapolate")
            .long("extrapolate")
            .value_name("N")
            .num_args(0..=1)
            .default_missing_value("100000000")
            .value_parser(value_parser!(u64).range(1..))
            .help("Estimate the latency reached once in N activations, if the tail allows it"),
    ]);
    views
}
