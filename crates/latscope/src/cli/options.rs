//! Options that several commands share.

use clap::{Arg, ArgAction, value_parser};
use latscope_compat::identity;
use latscope_core::json;
use latscope_core::units::{CpuList, ParseError, parse_duration};
use std::path::PathBuf;
use std::time::Duration;

/// Options of everything that measures.
pub fn run_arguments() -> Vec<Arg> {
    vec![
        Arg::new("cpus")
            .long("cpus")
            .value_name("LIST")
            .value_parser(cpu_list)
            .help("CPUs to measure on, such as 0-3,6"),
        Arg::new("count")
            .long("count")
            .aliases(["iterations", "loop"])
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..))
            .help("Clean samples for each point"),
        Arg::new("duration")
            .long("duration")
            .value_name("T")
            .value_parser(some_time)
            .help("Time for each point, such as 100ms"),
        Arg::new("rounds")
            .long("rounds")
            .value_name("N")
            .value_parser(value_parser!(u32).range(1..=1000))
            .help("Go through all points N times; --count and --duration are for all rounds together"),
        Arg::new("load")
            .long("load")
            .value_name("cpu|memory|hackbench|CMD")
            .help("Load beside the measurement: busy loops, memory copies, messages, or a shell command"),
        Arg::new("seed")
            .long("seed")
            .value_name("N")
            .value_parser(value_parser!(u64).range(..=json::LARGEST))
            .default_value("1")
            .help("Seed of permutations and random data"),
        identity::label_option(),
        identity::machine_option(),
        flag("dry-run", "Show the plan and measure nothing"),
        Arg::new("save-every")
            .long("save-every")
            .value_name("T")
            .value_parser(some_time)
            .help("Interval between saves of --json while a row lasts (default: 10m)"),
    ]
}

/// Options of everything that shows a result.
pub fn view_arguments() -> Vec<Arg> {
    vec![
        json(),
        file("csv", "Write all points as CSV"),
        file("csv-buckets", "Write every bucket of the histograms of single events as CSV"),
        file("markdown", "Write the table as Markdown"),
        file("svg", "Draw it: the histograms, or where there is a curve over sizes, that"),
        file("svg-percentiles", "Draw the latency at each percentile"),
        Arg::new("beside")
            .long("beside")
            .value_name("RESULT")
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf))
            .help("A saved result to show beside this one"),
        Arg::new("scale")
            .long("scale")
            .value_parser(["time", "human"])
            .default_value("time")
            .help("human: as if an L1 hit took a second"),
        flag("quiet", "No table and no progress").short('q'),
    ]
}

pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
}

pub fn json() -> Arg {
    file("json", "Write the result as JSON; - for stdout")
}

pub fn directory() -> Arg {
    Arg::new("dir")
        .long("dir")
        .value_name("DIR")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .help("Where file probes work (default: the current directory, and a tmpfs)")
}

/// A list of at least one CPU.
///
/// # Errors
/// It is none.
pub fn cpu_list(text: &str) -> Result<CpuList, String> {
    let list: CpuList = text.parse().map_err(|error: ParseError| error.to_string())?;
    if list.0.is_empty() { Err("it names no CPU: such as 0-3,6".to_owned()) } else { Ok(list) }
}

/// A duration in which something can be done.
///
/// # Errors
/// It is none.
pub fn some_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be longer than 0".to_owned()) } else { Ok(time) }
}
