//! What the command line understands; families and their parameters come from
//! the registry of probes.

use super::{ipc, noise, remote, wake};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use latscope_compat::identity;
use latscope_core::json;
use latscope_core::plan::ParamValue;
use latscope_core::units::{CpuList, ParseError, parse_duration, parse_size};
use latscope_probes::{FAMILIES, Family, Kind, Param};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The whole command.
pub fn command() -> Command {
    let command = Command::new("latscope")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The latency numbers of this machine")
        .long_about(
            "Measures what basic operations cost on this machine, from an add to a file read, and shows them \
             beside other devices. Without a command it runs the survey: no options and no root needed.\n\n\
             Exit codes: 0 done, 1 error, nothing could be measured, or interrupted.",
        )
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .args(survey_arguments())
        .subcommand(
            Command::new("survey")
                .about("The numbers of this machine (the default)")
                .args(survey_arguments()),
        );
    let command = FAMILIES.iter().fold(command, |command, family| {
        command.subcommand(match family.name {
            "wake" => wake::command(),
            "ipc" => ipc::command(),
            "noise" => noise::command(family_command(family)),
            "remote" => remote::command(family),
            _ => family_command(family),
        })
    });
    command
        .subcommand(
            Command::new("doctor")
                .about("What on this machine distorts latency, and how to fix it")
                .arg(json()),
        )
        .subcommand(
            Command::new("list")
                .about("Every probe and what exactly it times")
                .arg(flag("check", "Also say whether this machine can run each, by trying"))
                .arg(Arg::new("family").value_name("FAMILY").help("Only this family")),
        )
        .subcommand(
            Command::new("show")
                .about("Any view of a saved result")
                .arg(
                    Arg::new("result")
                        .value_name("RESULT")
                        .required(true)
                        .value_parser(value_parser!(PathBuf))
                        .help("The file of a result; - for stdin"),
                )
                .arg(flag("all", "Every point in full, not only the table"))
                .args(view_arguments()),
        )
        .subcommand(
            Command::new("selftest")
                .about("Checks on known truths that the instrument finds what is there")
                .arg(
                    Arg::new("what")
                        .value_name("WHAT")
                        .value_parser(["survey", "wake"])
                        .default_value("survey"),
                ),
        )
        .subcommand(
            Command::new("generate")
                .about("The man page, shell completions or the table of probes, on stdout")
                .arg(
                    Arg::new("what")
                        .value_name("WHAT")
                        .required(true)
                        .value_parser(["man", "completions", "probes"])
                        .help("The man page, shell completions, or the table of probes as Markdown"),
                )
                .arg(
                    Arg::new("shell")
                        .value_name("SHELL")
                        .help("For completions: bash, zsh, fish, elvish or powershell"),
                ),
        )
        .subcommand(
            Command::new("as")
                .about("Behave as an older tool: its arguments, its output, our numbers")
                .disable_help_flag(true)
                .arg(
                    Arg::new("call")
                        .value_names(["NAME", "ARGS"])
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .value_parser(value_parser!(OsString)),
                ),
        )
}

fn survey_arguments() -> Vec<Arg> {
    let mut arguments = vec![
        flag("quick", "Fewer points and samples: within 10 s"),
        flag("full", "More points and samples, however long it takes").conflicts_with("quick"),
        Arg::new("only")
            .long("only")
            .value_name("FAMILY,…")
            .value_delimiter(',')
            .help("Only these families or probes"),
        directory(),
    ];
    arguments.extend(run_arguments());
    arguments.extend(view_arguments());
    arguments
}

/// The command of a family, with its parameters from the registry.
pub(super) fn family_command(family: &'static Family) -> Command {
    let short = |id: &'static str| id.split_once('.').map_or(id, |(_, name)| name);
    let mut command = Command::new(family.name)
        .about(family.about)
        .arg(
            Arg::new("probe")
                .value_name("PROBE")
                .num_args(0..)
                .value_parser(PossibleValuesParser::new(family.probes.iter().map(|probe| short(probe.id))))
                .help("Only these probes of the family"),
        )
        .arg(flag("quick", "Fewer points and samples"))
        .arg(flag("full", "More points and samples").conflicts_with("quick"))
        .args(parameters(family).into_iter().map(parameter_argument))
        .args(run_arguments())
        .args(view_arguments());
    if family.name == "memory" {
        command = command.alias("mem");
    }
    if family.probes.iter().any(|probe| probe.experiment.scratch) {
        command = command.arg(directory());
    }
    if matches!(family.name, "thread" | "sync") {
        command = command.arg(file("timeline", "Record what each thread did and write it for Perfetto"));
    }
    command
}

/// The parameters of a family that can be asked for, each once.
fn parameters(family: &'static Family) -> Vec<(&'static Param, Vec<&'static str>)> {
    let mut found: Vec<(&'static Param, Vec<&'static str>)> = Vec::new();
    for probe in family.probes {
        for param in probe.params.iter().filter(|param| param.kind != Kind::Stated) {
            let choices = if let Kind::Choice(choices) = param.kind { choices } else { &[] };
            match found.iter_mut().find(|(known, _)| known.name == param.name) {
                None => found.push((param, choices.to_vec())),
                Some((_, known)) => {
                    known.extend(choices.iter().filter(|c| !known.contains(c)).copied().collect::<Vec<_>>())
                }
            }
        }
    }
    found
}

fn parameter_argument((param, choices): (&'static Param, Vec<&'static str>)) -> Arg {
    let (value_name, parser): (_, ValueParser) = match param.kind {
        Kind::Size => ("SIZE,…", ValueParser::new(|text: &str| parse_size(text).map(ParamValue::Number))),
        Kind::Time => ("TIME,…", ValueParser::new(time)),
        Kind::Number => ("N,…", ValueParser::new(|text: &str| text.parse().map(ParamValue::Number))),
        Kind::Choice(_) | Kind::Stated => {
            let words =
                clap::builder::TypedValueParser::map(PossibleValuesParser::new(choices), ParamValue::Text);
            ("WORD,…", words.into())
        }
    };
    let units =
        if matches!(param.kind, Kind::Size) { "\n4K and 4KiB are 4096 bytes, 4kB is 4000" } else { "" };
    Arg::new(param.name)
        .long(param.name)
        .value_name(value_name)
        .value_delimiter(',')
        .value_parser(parser)
        .help(format!("{}{units}", param.help))
        .help_heading("Parameters")
}

fn time(text: &str) -> Result<ParamValue, ParseError> {
    parse_duration(text).map(|time| ParamValue::Number(time.as_nanos() as u64))
}

/// A list of at least one CPU.
///
/// # Errors
/// It is none.
pub(super) fn cpu_list(text: &str) -> Result<CpuList, String> {
    let list: CpuList = text.parse().map_err(|error: ParseError| error.to_string())?;
    if list.0.is_empty() { Err("it names no CPU: such as 0-3,6".to_owned()) } else { Ok(list) }
}

/// A duration in which something can be done.
///
/// # Errors
/// It is none.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be longer than 0".to_owned()) } else { Ok(time) }
}

/// The values given for the parameters of a family.
pub fn given(family: &'static Family, matches: &ArgMatches) -> Vec<(String, Vec<ParamValue>)> {
    let names = parameters(family).into_iter().map(|(param, _)| param.name);
    names
        .filter_map(|name| {
            let mut values: Vec<ParamValue> = Vec::new();
            for value in matches.get_many::<ParamValue>(name)? {
                // A point is measured once, however often it was asked for.
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            Some((name.to_owned(), values))
        })
        .collect()
}

/// Options of everything that measures.
pub(super) fn run_arguments() -> Vec<Arg> {
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
pub(super) fn view_arguments() -> Vec<Arg> {
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

pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub(super) fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
}

fn json() -> Arg {
    file("json", "Write the result as JSON; - for stdout")
}

fn directory() -> Arg {
    Arg::new("dir")
        .long("dir")
        .value_name("DIR")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .help("Where file probes work (default: the current directory, and a tmpfs)")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    /// Words of a story, where the manuals of the field have plain ones.
    const NOT_PLAIN: [&str; 9] =
        ["nobody", "somebody", "anybody", "whoever", " told", "tells", "for ever", "mend", "cannot be:"];

    fn helps(command: &mut clap::Command, into: &mut Vec<String>) {
        into.push(command.render_long_help().to_string());
        command.get_subcommands_mut().for_each(|command| helps(command, into));
    }

    #[test]
    fn help_and_the_probes_are_in_plain_words() {
        let mut texts = Vec::new();
        helps(&mut super::command(), &mut texts);
        for probe in latscope_probes::all() {
            texts.extend([probe.title, probe.timed].map(str::to_owned));
            texts.extend(probe.params.iter().map(|param| param.help.to_owned()));
        }
        let lines = texts.iter().flat_map(|text| text.lines());
        let wrong: Vec<&str> =
            lines.filter(|line| NOT_PLAIN.iter().any(|word| line.contains(word))).collect();
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn everything_that_measures_takes_names() {
        let families = latscope_probes::FAMILIES.iter().map(|family| family.name);
        for command in families.chain(["survey"]) {
            let words = ["latscope", command, "--label", "board=a7", "--machine-id", "none"];
            let matches = super::command().try_get_matches_from(words).unwrap();
            let (_, matches) = matches.subcommand().unwrap();
            assert_eq!(super::identity::labels(matches).unwrap()["board"], "a7", "{command}");
            assert_eq!(super::identity::machine_id(matches), Some(None), "{command}");
        }
    }
}
