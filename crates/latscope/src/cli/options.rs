//! Options that several commands share.

use super::input::is_stdout;
use super::names::NameArguments;
use super::usage::did_you_mean;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use latscope_core::json;
use latscope_core::plan::BackgroundLoad;
use latscope_core::units::{CpuList, ParseError, parse_duration};
use latscope_core::word::Meaning;
use latscope_engine::observers::ProgressStyle;
use latscope_probes::KeywordEnum;
use latscope_process::load;
use latscope_views::Sort;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Deref;
use std::path::PathBuf;

// Options of everything that measures.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// CPUs to measure on, such as 0-3,6
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    /// Clean samples for each point
    #[arg(long, value_name = "N", aliases = ["iterations", "loop"], value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Time for each point, such as 100ms
    #[arg(long, value_name = "T", value_parser = some_time)]
    pub duration: Option<u64>,
    /// Go through all points N times; --count and --duration are for all rounds together
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Load beside the measurement: cpu, cache, memory, fork, hackbench, disk, network, timer, pi-storm, a
    /// stressor of stress-ng, or a shell command
    #[arg(long, value_name = "NAME|CMD", value_parser = load)]
    pub load: Option<BackgroundLoad>,
    /// Seed of permutations and random data
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=json::LARGEST), default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub names: NameArguments,
    /// Leave out of all files, the table and stderr what says whose machine it is: host, machine id, command line of
    /// the kernel, labels, paths, commands, processes
    #[arg(long)]
    pub redact: bool,
    /// Wait for the end of other latscopes on this host, at most so long, such as 5m
    #[arg(long = "wait", value_name = "T", value_parser = some_time)]
    pub turn: Option<u64>,
    /// How progress is shown on stderr
    #[arg(long, value_name = "WORD", value_parser = one_of(&STYLES), default_value = "auto")]
    pub progress: ProgressStyle,
    /// Show the plan and measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Interval between saves of --json while a row lasts (default: 10m)
    #[arg(long, value_name = "T", value_parser = some_time)]
    pub save_every: Option<u64>,
    #[command(flatten)]
    pub views: ViewArguments,
}

// Options of everything that shows a result.
#[derive(Debug, Args)]
pub struct ViewArguments {
    #[command(flatten)]
    pub json: JsonArgument,
    /// Leave a part out of --json
    #[arg(long, value_name = "PART", value_parser = word_parser(PARTS), requires = "json")]
    pub without: Option<String>,
    /// Write all points as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write all figures as CSV, one value a line, with a column for each parameter
    #[arg(long, value_name = "FILE")]
    pub csv_long: Option<PathBuf>,
    /// Write the histograms of single events as CSV: a line for each bucket, a column for each CPU or pair
    #[arg(long, value_name = "FILE")]
    pub csv_histogram: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page with everything, readable offline in any browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Draw it: the histograms, or where there is a curve over sizes, that; all pictures, a file each, if it is a
    /// directory or ends with /
    #[arg(long, value_name = "FILE|DIR/")]
    pub svg: Option<PathBuf>,
    /// Write the points for Prometheus, such as into the directory of node_exporter's textfile collector
    #[arg(long, value_name = "FILE.prom")]
    pub openmetrics: Option<PathBuf>,
    /// Print the figures as signals of a test shell of LAVA, or write them to FILE
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "-",
        require_equals = true
    )]
    pub lava: Option<PathBuf>,
    /// Draw the latency at each percentile
    #[arg(long, value_name = "FILE")]
    pub svg_percentiles: Option<PathBuf>,
    /// A saved result to show beside this one, or the published figures of machines (words of the name, as
    /// `latscope references` lists them); published: those next to this machine's
    #[arg(long, value_name = "RESULT|NAME")]
    pub beside: Vec<PathBuf>,
    #[command(flatten)]
    pub references: ReferencesArgument,
    /// Write this machine's figures as a file of references, without its name
    #[arg(long, value_name = "FILE.toml")]
    pub contribute: Option<PathBuf>,
    /// All rows, not only the first screen
    #[arg(long)]
    pub table: bool,
    /// Order of the rows of the table [default: value]
    #[arg(long, value_name = "order", value_parser = one_of(&ORDERS))]
    pub sort: Option<Sort>,
    /// No table and no progress: stderr has what distorts a figure, and errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Words of --progress.
pub const STYLES: [(Meaning, ProgressStyle); 4] = [
    (("auto", "bar on a terminal, else plain"), ProgressStyle::Auto),
    (("bar", "a line that is rewritten, or the live screen"), ProgressStyle::Bar),
    (("plain", "a line every 10 s"), ProgressStyle::Plain),
    (("none", "nothing is shown"), ProgressStyle::None),
];

const ORDERS: [(Meaning, Sort); 2] = [
    (("value", "by the figure, the shortest first"), Sort::Value),
    (("family", "as the families list their probes"), Sort::Family),
];

/// The parts that --without leaves out.
const PARTS: [Meaning; 1] = [("blocks", "the samples in order of time, most of the file")];

#[derive(Debug, Args)]
pub struct JsonArgument {
    /// Write the result as JSON, packed by gzip if FILE ends with .gz; - for stdout. A link is replaced, not followed
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl JsonArgument {
    /// Returns true if the JSON goes to standard output.
    pub fn takes_stdout(&self) -> bool {
        self.json.as_deref().is_some_and(is_stdout)
    }
}

#[derive(Debug, Args)]
pub struct ReferencesArgument {
    /// Published figures of your own: a directory of files such as --contribute writes
    #[arg(long, value_name = "DIR")]
    pub references: Vec<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct TimelineArgument {
    /// Record what each thread did and write it for Perfetto
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct DirectoryArgument {
    /// Where file probes work (default: the current directory, and a tmpfs)
    #[arg(long, value_name = "DIR")]
    pub dir: Vec<PathBuf>,
}

/// Options that follow from a registry.
pub trait Registered: Sized {
    fn add_options(command: Command) -> Command;

    fn read_options(matches: &ArgMatches) -> Self;
}

/// Registered options, as an argument beside those that clap derives.
#[derive(Debug, Clone)]
pub struct Dynamic<T>(T);

impl<T> Deref for Dynamic<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Registered> Args for Dynamic<T> {
    fn augment_args(command: Command) -> Command {
        T::add_options(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::add_options(command)
    }
}

impl<T: Registered> FromArgMatches for Dynamic<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Dynamic(T::read_options(matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = T::read_options(matches);
        Ok(())
    }
}

/// The ids of what stands on the command line, and not only in a default. The first field of its
/// command: those before it would have taken their values away.
#[derive(Debug, Clone)]
pub struct ExplicitOptions(BTreeSet<String>);

impl ExplicitOptions {
    /// Refuses options that nothing of the request uses.
    ///
    /// # Errors
    /// An option of `options` was given; the text goes on with `why`.
    pub fn refuse(&self, options: &[&str], why: &str) -> anyhow::Result<()> {
        match options.iter().find(|option| self.0.contains(**option)) {
            Some(option) => anyhow::bail!("--{} {why}", option.replace('_', "-")),
            None => Ok(()),
        }
    }
}

impl Registered for ExplicitOptions {
    fn add_options(command: Command) -> Command {
        command
    }

    fn read_options(matches: &ArgMatches) -> ExplicitOptions {
        let given = matches.ids().map(|id| id.as_str());
        let given = given.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
        ExplicitOptions(given.map(str::to_owned).collect())
    }
}

/// Words that are possible for an option, also in capital letters.
#[derive(Debug, Clone)]
pub struct WordValueParser(Vec<Meaning>);

impl TypedValueParser for WordValueParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, given: &OsStr) -> Result<String, clap::Error> {
        let any_case =
            self.0.iter().map(|(word, _)| PossibleValue::new(*word).alias(word.to_ascii_uppercase()));
        let given = PossibleValuesParser::new(any_case).parse_ref(command, arg, given)?;
        let known = self.0.iter().find(|(word, _)| word.eq_ignore_ascii_case(&given));
        Ok(known.map_or(given, |(word, _)| (*word).to_owned()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |(word, help): &Meaning| PossibleValue::new(*word).help(help.trim_end_matches('.'));
        Some(Box::new(self.0.iter().map(value)))
    }
}

/// Reads one of these words, each of which the long help explains in a line.
pub fn word_parser(words: impl IntoIterator<Item = Meaning>) -> WordValueParser {
    WordValueParser(words.into_iter().collect())
}

/// Reads one of these words as what it stands for.
pub fn one_of<T: Copy + Send + Sync>(choices: &'static [(Meaning, T)]) -> impl TypedValueParser<Value = T> {
    let words = word_parser(choices.iter().map(|(meaning, _)| *meaning));
    words.map(|word| choices.iter().find(|((known, _), _)| *known == word).expect("it is a possible value").1)
}

/// Reads one of the words of a parameter.
pub fn keyword_parser<W: KeywordEnum + Send + Sync>() -> impl TypedValueParser<Value = W> {
    word_parser(W::MEANINGS.iter().copied()).map(|word| W::from_word(&word).expect("it is a possible value"))
}

/// Reads a list of at least one CPU.
///
/// # Errors
/// The text is no list of CPUs, or is empty.
pub fn cpu_list(text: &str) -> Result<CpuList, String> {
    let list: CpuList = text.parse().map_err(|error: ParseError| error.to_string())?;
    if list.0.is_empty() { Err("it names no CPU: such as 0-3,6".to_owned()) } else { Ok(list) }
}

/// Reads a duration, ns.
///
/// # Errors
/// The text is no duration.
pub fn parse_time_ns(text: &str) -> Result<u64, ParseError> {
    parse_duration(text).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Reads a duration longer than 0, ns.
///
/// # Errors
/// The text is no duration, or the duration is 0.
pub fn some_time(text: &str) -> Result<u64, String> {
    match parse_time_ns(text).map_err(|error| error.to_string())? {
        0 => Err("it must be longer than 0".to_owned()),
        ns => Ok(ns),
    }
}

/// Prefix that requests a stressor of stress-ng, even if another load has its name.
const STRESS_NG: &str = "stress-ng:";

/// A load of latscope, else a command of the shell, else a stressor of stress-ng.
///
/// # Errors
/// The shell does not know its first word, and stress-ng not the only one.
pub fn load(text: &str) -> Result<BackgroundLoad, String> {
    if let Some(load) = BackgroundLoad::built_in(text) {
        return Ok(load);
    }
    if let Some(name) = text.strip_prefix(STRESS_NG) {
        let known = load::stressors().ok_or("stress-ng is not installed")?;
        let near = did_you_mean(name, known.iter().map(String::as_str));
        let found = known.iter().any(|stressor| stressor == name);
        return found
            .then(|| BackgroundLoad::Command(load::stressor(name)))
            .ok_or_else(|| format!("stress-ng has no such stressor{near}"));
    }
    if load::is_command(text) {
        return Ok(BackgroundLoad::Command(text.to_owned()));
    }
    let stressors = load::stressors();
    if stressors.iter().flatten().any(|stressor| stressor == text) {
        return Ok(BackgroundLoad::Command(load::stressor(text)));
    }
    let near = did_you_mean(text, BackgroundLoad::BUILT_IN.iter().map(|(name, ..)| *name));
    let stressor = match stressors {
        Some(_) => ", nor a stressor of stress-ng",
        None => " (stress-ng, whose stressors are loads, too, is not installed)",
    };
    Err(format!("neither a load of latscope nor a command of the shell{stressor}{near}"))
}
