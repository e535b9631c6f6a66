//! `latscope cpu|memory|…`: one family with its own parameters.

use super::measure::{self, Measures};
use super::nodes;
use super::options::{
    DirectoryArgument, Dynamic, Registered, RunArguments, TimelineArgument, parse_time_ns, word_parser,
};
use super::unlike;
use anyhow::{Result, bail, ensure};
use clap::builder::{TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command};
use latscope_core::machine::Machine;
use latscope_core::ordered::unique_items;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Plan};
use latscope_core::units::parse_size;
use latscope_core::word::Meaning;
use latscope_engine::planner::{self, RunRequest};
use latscope_probes::file::directory::{self, Defaults};
use latscope_probes::{
    self as probe, FAMILIES, Family, Param, ParamValueKind, PlanInput, Probe, REGISTRY, SurveyProfile,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

// The options of every family.
#[derive(Debug, Args)]
pub struct FamilyArguments {
    #[command(flatten)]
    profile: ProfileArguments,
    #[command(flatten)]
    pub run: RunArguments,
    #[command(flatten)]
    asked: Dynamic<FamilyOptions>,
}

// How much time there is.
#[derive(Debug, Args)]
pub struct ProfileArguments {
    /// Fewer points and samples
    #[arg(long)]
    quick: bool,
    /// More points and samples
    #[arg(long, conflicts_with = "quick")]
    full: bool,
}

impl ProfileArguments {
    pub fn profile(&self) -> SurveyProfile {
        match (self.quick, self.full) {
            (true, _) => SurveyProfile::Quick,
            (_, true) => SurveyProfile::Full,
            _ => SurveyProfile::Normal,
        }
    }
}

/// Options that depend on the family of the command: the requested probes, the values of their parameters, and options
/// of some families only.
#[derive(Debug, Clone)]
struct FamilyOptions {
    /// Ids of the requested probes.
    probes: Vec<&'static str>,
    values: BTreeMap<String, Vec<ParamValue>>,
    directory: DirectoryArgument,
    timeline: Option<PathBuf>,
}

fn family_of(command: &Command) -> &'static Family {
    let named = FAMILIES.iter().find(|family| family.name == command.get_name());
    named.expect("the command of a family has its name")
}

impl Registered for FamilyOptions {
    fn add_options(command: Command) -> Command {
        let family = family_of(&command);
        let short = |probe: &Probe| probe.id.split_once('.').map_or(probe.id, |(_, name)| name);
        let names = word_parser(family.probes.iter().map(|probe| (short(probe), probe.title)));
        let id = move |name: String| {
            family.probes.iter().find(|probe| short(probe) == name).expect("it is a possible value").id
        };
        let command = command
            .about(family.about)
            .arg(
                Arg::new("probe")
                    .value_name("PROBE")
                    .num_args(0..)
                    .value_parser(names.map(id))
                    .help("Only these probes of the family"),
            )
            .args(parameters(family).into_iter().map(parameter_argument));
        let command = if family.in_directories { DirectoryArgument::augment_args(command) } else { command };
        if family.on_time_line { TimelineArgument::augment_args(command) } else { command }
    }

    fn read_options(matches: &ArgMatches) -> FamilyOptions {
        let mut values: BTreeMap<String, Vec<ParamValue>> = BTreeMap::new();
        for name in matches.ids() {
            // No other option has such values.
            // A point is measured once, however often it was asked for.
            if let Ok(Some(of_option)) = matches.try_get_many::<ParamValue>(name.as_str()) {
                values.insert(name.to_string(), unique_items(of_option.cloned()));
            }
        }
        let paths = |name| matches.try_get_many(name).ok().flatten().into_iter().flatten().cloned();
        FamilyOptions {
            probes: matches.get_many("probe").into_iter().flatten().copied().collect(),
            values,
            directory: DirectoryArgument { dir: paths("dir").collect() },
            timeline: paths("timeline").next(),
        }
    }
}

/// A parameter that can be asked for, of all probes of a family.
struct Offered {
    param: &'static Param,
    help: &'static str,
    /// Words of all probes, where the parameter has words.
    choices: Vec<Meaning>,
}

/// Help of a mode that means something else in each probe.
const SEVERAL: &str = "Kind of what is measured; a probe has some of these";

/// The parameters of a family that can be asked for, each once.
fn parameters(family: &'static Family) -> Vec<Offered> {
    let mut found: Vec<Offered> = Vec::new();
    for probe in family.probes {
        for param in probe.params.iter().filter(|param| param.kind != ParamValueKind::Stated) {
            let choices = if let ParamValueKind::Choice(choices) = param.kind { choices } else { &[] };
            match found.iter_mut().find(|known| known.param.name == param.name) {
                None => found.push(Offered { param, help: param.help, choices: choices.to_vec() }),
                Some(known) => {
                    add_unknown(&mut known.choices, choices);
                    if param.name == param::MODE && param.help != known.help {
                        known.help = SEVERAL;
                    }
                }
            }
        }
    }
    found
}

/// Adds the words that another probe of the family has, too. A word has the meaning of the first probe.
fn add_unknown(known: &mut Vec<Meaning>, choices: &[Meaning]) {
    for choice in choices {
        if known.iter().all(|(word, _)| *word != choice.0) {
            known.push(*choice);
        }
    }
}

fn parameter_argument(Offered { param, help, choices }: Offered) -> Arg {
    let (value_name, parser): (_, ValueParser) = match param.kind {
        ParamValueKind::Size => {
            ("SIZE,…", ValueParser::new(|text: &str| parse_size(text).map(ParamValue::Number)))
        }
        ParamValueKind::Time => {
            ("TIME,…", ValueParser::new(|text: &str| parse_time_ns(text).map(ParamValue::Number)))
        }
        ParamValueKind::Number => {
            ("N,…", ValueParser::new(|text: &str| text.parse().map(ParamValue::Number)))
        }
        ParamValueKind::Nodes => ("NODE,…", ValueParser::new(nodes::parse_node)),
        ParamValueKind::Choice(_) | ParamValueKind::Stated => {
            ("WORD,…", word_parser(choices).map(ParamValue::Text).into())
        }
    };
    let units = if matches!(param.kind, ParamValueKind::Size) {
        "\n4K and 4KiB are 4096 bytes, 4kB is 4000"
    } else {
        ""
    };
    let arg = Arg::new(param.name).long(param.name);
    let arg = match param.kind {
        // An option that is given or not.
        ParamValueKind::Choice([("yes", _)]) => {
            arg.num_args(0..=1).require_equals(true).hide_possible_values(true).default_missing_value("yes")
        }
        _ => arg.value_name(value_name).value_delimiter(','),
    };
    arg.value_parser(parser).help(format!("{help}{units}")).help_heading("Parameters")
}

impl FamilyArguments {
    /// The probes that are to be measured, and what is asked of them.
    ///
    /// # Errors
    /// A parameter that none of them has, or a value that it cannot have.
    pub fn probe_request(&self, family: &str, rounds: u32) -> Result<(Vec<&'static Probe>, RunRequest)> {
        let usual = |probe: &&Probe| probe.family() == family && !probe.by_name_only;
        let named = |probe: &&Probe| self.asked.probes.contains(&probe.id);
        let wanted = |probe: &&Probe| if self.asked.probes.is_empty() { usual(probe) } else { named(probe) };
        let probes: Vec<&'static Probe> = probe::all_probes().filter(wanted).collect();
        for (parameter, values) in &self.asked.values {
            check_used(family, &probes, parameter, values)?;
            check_values(&probes, parameter, values)?;
        }
        let Defaults { directories, notes } = self.asked.directory.chosen_directories(&probes)?;
        let input = PlanInput {
            profile: self.profile.profile(),
            survey: false,
            values: self.asked.values.clone(),
            directories,
        };
        let timeline = self.asked.timeline.clone();
        Ok((probes, RunRequest { notes, timeline, ..self.run.build_request(family, input, rounds) }))
    }
}

/// The plan of a request to probes, with a note of each value that is not measured as it was asked for.
///
/// # Errors
/// There is nothing to measure, or not with so many threads.
pub fn plan_request(probes: &[&'static Probe], request: &RunRequest, machine: &Machine) -> Result<Plan> {
    let machine = nodes::machine_for_request(request, machine)?;
    let mut plan = planner::plan_probes(&REGISTRY, probes, request, &machine);
    let notes = unlike::notes(probes, request, &machine, &plan);
    if plan.steps.is_empty() && notes.is_empty() {
        bail!("nothing to measure: the probes asked for have no points with these parameters");
    }
    ensure!(!plan.steps.is_empty(), "nothing to measure: {}", notes.join("; "));
    plan.notes.extend(notes);
    if request.input.values.contains_key(param::THREADS) {
        measure::check_threads(&plan)?;
    }
    Ok(plan)
}

/// A family that has no more options than its probes have parameters.
pub struct PlainFamily<'a>(pub &'static str, pub &'a FamilyArguments);

impl Measures for PlainFamily<'_> {
    const IN_FULL: bool = true;

    fn run_arguments(&self) -> &RunArguments {
        &self.1.run
    }

    fn plan(&self, machine: &Machine) -> Result<Plan> {
        // Eyes read a time line; they need every event once.
        let (probes, request) =
            self.1.probe_request(self.0, if self.1.asked.timeline.is_some() { 1 } else { 3 })?;
        plan_request(&probes, &request, machine)
    }
}

/// Checks that a probe to be measured has the parameter and each of its words.
fn check_used(family: &str, probes: &[&Probe], parameter: &str, values: &[ParamValue]) -> Result<()> {
    let takes = |probe: &Probe, value: &ParamValue| {
        probe.params.iter().filter(|param| param.name == parameter).any(|param| match (param.kind, value) {
            (ParamValueKind::Choice(words), ParamValue::Text(word)) => {
                words.iter().any(|(known, _)| known == word)
            }
            (kind, _) => kind != ParamValueKind::Stated,
        })
    };
    let Some(value) = values.iter().find(|value| !probes.iter().any(|probe| takes(probe, value))) else {
        return Ok(());
    };
    let users = probe::all_probes().filter(|probe| probe.family() == family && takes(probe, value));
    let users: Vec<&str> = users.map(|probe| probe.id).collect();
    let knows = probes.iter().any(|probe| probe.params.iter().any(|param| param.name == parameter));
    let word = if knows { format!(" {value}") } else { String::new() };
    bail!("--{parameter}{word} is for {}, which is not measured", users.join(", "));
}

/// Largest value of a parameter that any of the probes with it takes.
fn largest_accepted(probes: &[&Probe], parameter: &str) -> u64 {
    let takes = |probe: &&&Probe| probe.params.iter().any(|param| param.name == parameter);
    let limit =
        |probe: &&Probe| probe.most.iter().find(|(name, _)| *name == parameter).map(|(_, most)| *most);
    let limits = probes.iter().filter(takes).map(|probe| limit(probe).unwrap_or(u64::MAX));
    limits.max().unwrap_or(u64::MAX)
}

/// Refuses values that no machine, or not this one, can measure.
fn check_values(probes: &[&Probe], parameter: &str, values: &[ParamValue]) -> Result<()> {
    let may_be_zero = probes.iter().any(|probe| probe.may_be_zero.contains(&parameter));
    let memory = rustix::system::sysinfo();
    let most = match parameter {
        param::SIZE => memory.totalram as u64 * u64::from(memory.mem_unit),
        _ => largest_accepted(probes, parameter),
    };
    for value in values {
        match value {
            ParamValue::Number(0) if !may_be_zero => {
                bail!("--{parameter} 0 leaves nothing to measure: choose 1 or more")
            }
            ParamValue::Number(size) if *size > most && parameter == param::SIZE => bail!(
                "--size {size} is more than the {most} bytes of memory that this machine has: choose a smaller one"
            ),
            ParamValue::Number(number) if *number > most => {
                bail!("--{parameter} {number}: it must be 1 to {most}")
            }
            _ => {}
        }
    }
    Ok(())
}

impl DirectoryArgument {
    /// Returns the directories in which file probes work, if `probes` has any.
    ///
    /// # Errors
    /// A requested directory does not exist or cannot be written to, or no probe works in it.
    pub fn chosen_directories(&self, probes: &[&Probe]) -> Result<Defaults> {
        let of: Vec<_> =
            FAMILIES.iter().filter(|family| family.in_directories).map(|family| family.name).collect();
        if !probes.iter().any(|probe| of.contains(&probe.family())) {
            ensure!(self.dir.is_empty(), "--dir is for probes of {}, and none is measured", of.join(", "));
            return Ok(Defaults::default());
        }
        if self.dir.is_empty() {
            return Ok(directory::defaults());
        }
        let mut chosen = Defaults::default();
        for path in &self.dir {
            let found = directory::resolve(path)?;
            if chosen.directories.iter().all(|known| known.path != found.path) {
                chosen.directories.push(found);
            }
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::LatscopeArguments;
    use clap::CommandFactory;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_value_above_a_limit_is_refused_with_the_limit() {
        let mut limits = 0;
        for probe in probe::all_probes() {
            for (parameter, most) in probe.most {
                check_values(&[probe], parameter, &[ParamValue::Number(*most)]).unwrap();
                let error = check_values(&[probe], parameter, &[ParamValue::Number(most + 1)])
                    .unwrap_err()
                    .to_string();
                assert!(
                    error.contains(&format!("--{parameter}")) && error.contains(&most.to_string()),
                    "{error}"
                );
                limits += 1;
            }
        }
        assert!(limits >= 5, "{limits}");
    }

    /// Options that a source names in its texts, such as `--size` in a remedy.
    fn named_options(source: &str) -> BTreeSet<String> {
        let mut options = BTreeSet::new();
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        // Docker has options of its own.
        let own = |line: &&str| !line.trim_start().starts_with("//") && !line.contains("docker: --");
        for line in code.lines().filter(own) {
            for text in line.split('"').skip(1).step_by(2) {
                for part in text.split("--").skip(1) {
                    let is_of_name = |c: &char| c.is_ascii_lowercase() || *c == '-';
                    options.insert(part.chars().take_while(is_of_name).collect());
                }
            }
        }
        options.remove("");
        options
    }

    /// The probes that a source file defines.
    fn probes_of<'a>(source: &str, family: &'a Family) -> Vec<&'a Probe> {
        let defined = |probe: &&&Probe| source.contains(&format!("\"{}\",", probe.id));
        family.probes.iter().filter(defined).copied().collect()
    }

    /// Returns true if one of the probes of each file with probes has a parameter.
    fn is_parameter(files: &[&str], family: &Family, name: &str) -> bool {
        let probes: Vec<Vec<&Probe>> = files.iter().map(|source| probes_of(source, family)).collect();
        let has = |probe: &&Probe| probe.params.iter().any(|param| param.name == name);
        probes.iter().filter(|of| !of.is_empty()).all(|of| of.iter().any(has))
    }

    /// A remedy may name an option that the command of its row has. What is a parameter of some probes only may stand
    /// in the files of these, and in a shared file if all files that use it have such probes.
    #[test]
    fn remedies_name_only_options_that_their_probes_have() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../latscope-probes/src");
        let whole = LatscopeArguments::command();
        let (mut wrong, mut seen) = (Vec::new(), 0);
        for family in FAMILIES {
            let command = whole.find_subcommand(family.name).expect("each family is a command");
            let Ok(folder) = fs::read_dir(root.join(family.name)) else { continue };
            let paths: Vec<PathBuf> =
                folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
            let sources: Vec<(String, String)> = paths
                .iter()
                .map(|path| {
                    (
                        path.file_stem().unwrap().to_string_lossy().into_owned(),
                        fs::read_to_string(path).unwrap(),
                    )
                })
                .collect();
            for (stem, source) in &sources {
                let users: Vec<&str> = match probes_of(source, family).is_empty() {
                    true => sources
                        .iter()
                        .map(|(_, text)| text.as_str())
                        .filter(|text| text.contains(&format!("{stem}::")))
                        .collect(),
                    false => vec![source],
                };
                for option in named_options(source) {
                    seen += 1;
                    let known = command.get_arguments().any(|argument| argument.get_long() == Some(&option));
                    let of_some = parameters(family).iter().any(|known| known.param.name == option);
                    if !known || of_some && !is_parameter(&users, family, &option) {
                        wrong.push(format!("{}/{stem}.rs: --{option}", family.name));
                    }
                }
            }
        }
        assert_eq!(wrong, [""; 0]);
        assert!(seen > 20, "{seen}: the texts of all families name many");
    }
}
