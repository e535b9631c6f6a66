//! Arguments of the command line: the command with all subcommands.

use super::bisect::BisectArguments;
use super::compare::CompareArguments;
use super::doctor::DoctorArguments;
use super::family::FamilyArguments;
use super::gate::GateArguments;
use super::generate::GenerateArguments;
use super::history::HistoryArguments;
use super::import::ImportArguments;
use super::ipc::IpcArguments;
use super::list::ListArguments;
use super::merge::MergeArguments;
use super::noise::NoiseArguments;
use super::references::ListedArguments;
use super::remote::RemoteArguments;
use super::selftest::SelftestArguments;
use super::show::ShowArguments;
use super::survey::SurveyArguments;
use super::trial::{PlanArguments, TrialArguments};
use super::wake::WakeArguments;
use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// Measures what basic operations cost on this machine, from an add to a file read, and shows them beside other
/// devices. Without a command it runs the survey: no options and no root needed.
///
/// Exit codes: 0 done, 1 error, nothing could be measured, or interrupted; with criteria 2 exceeded, 3 inconclusive.
#[derive(Debug, Parser)]
#[command(
    name = "latscope",
    version,
    about = "The latency numbers of this machine",
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct LatscopeArguments {
    #[command(subcommand)]
    pub command: Option<LatscopeCommand>,
    #[command(flatten)]
    pub survey: SurveyArguments,
}

#[derive(Debug, Subcommand)]
pub enum LatscopeCommand {
    /// The numbers of this machine (the default)
    Survey(SurveyArguments),
    Cpu(FamilyArguments),
    #[command(alias = "mem")]
    Memory(FamilyArguments),
    Sync(FamilyArguments),
    Thread(FamilyArguments),
    Syscall(FamilyArguments),
    Process(FamilyArguments),
    File(FamilyArguments),
    Wake(WakeArguments),
    Noise(NoiseArguments),
    Ipc(IpcArguments),
    Remote(RemoteArguments),
    /// What on this machine distorts latency, and how to fix it
    Doctor(DoctorArguments),
    /// Every probe and what exactly it times
    List(ListArguments),
    /// Published figures of other machines
    References(ListedArguments),
    /// Any view of a saved result
    Show(ShowArguments),
    Compare(CompareArguments),
    Trial(TrialArguments),
    Run(PlanArguments),
    Gate(GateArguments),
    BisectCheck(BisectArguments),
    Import(ImportArguments),
    Merge(MergeArguments),
    History(HistoryArguments),
    /// Checks on known truths that the instrument finds what is there
    Selftest(SelftestArguments),
    /// The man page, shell completions, the table of probes or a JSON Schema, on stdout
    Generate(GenerateArguments),
    /// Behave as an older tool: its arguments, its output, our numbers
    #[command(disable_help_flag = true)]
    As {
        #[arg(value_names = ["NAME", "ARGS"], num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
        call: Vec<OsString>,
    },
}

impl LatscopeCommand {
    /// Returns true if a signal ends the command at once. A command that makes runs ends as the run allows.
    pub fn is_without_run(&self) -> bool {
        use LatscopeCommand::*;
        matches!(
            self,
            Doctor(_)
                | Show(_)
                | Compare(_)
                | Gate(_)
                | Import(_)
                | Merge(_)
                | History(_)
                | Remote(_)
                | List(_)
                | References(_)
                | Selftest(_)
                | Generate(_)
                | As { .. }
        )
    }

    /// Returns true if the command may record a trace of the kernel.
    pub fn is_tracing(&self) -> bool {
        use LatscopeCommand::*;
        matches!(self, Wake(_) | Noise(_) | Ipc(_) | Thread(_) | Sync(_) | Selftest(_) | List(_))
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::NameArguments;
    use super::LatscopeArguments;
    use clap::{CommandFactory, FromArgMatches};

    #[test]
    fn the_command_line_is_consistent() {
        LatscopeArguments::command().debug_assert();
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
        helps(&mut LatscopeArguments::command(), &mut texts);
        for probe in latscope_probes::all_probes() {
            texts.extend([probe.title, probe.timed].map(str::to_owned));
            texts.extend(probe.params.iter().map(|param| param.help.to_owned()));
        }
        let lines = texts.iter().flat_map(|text| text.lines());
        let wrong: Vec<&str> =
            lines.filter(|line| NOT_PLAIN.iter().any(|word| line.contains(word))).collect();
        assert_eq!(wrong, [""; 0]);
    }

    /// Adds the options of a command and those below it whose possible values lack a help.
    fn unexplained(command: &clap::Command, checked: &mut usize, into: &mut Vec<String>) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_possible_values_set()) {
            for value in argument.get_possible_values() {
                *checked += 1;
                let help = value.get_help().map(|help| help.to_string()).unwrap_or_default();
                // `true` and `false` of a flag are not shown.
                if argument.get_action().takes_values() && (help.is_empty() || help.contains("[`")) {
                    into.push(format!(
                        "{} --{}: {}",
                        command.get_name(),
                        argument.get_id(),
                        value.get_name()
                    ));
                }
            }
        }
        command.get_subcommands().for_each(|command| unexplained(command, checked, into));
    }

    #[test]
    fn each_possible_value_has_a_line_of_help() {
        let (mut checked, mut missing) = (0, Vec::new());
        let mut command = LatscopeArguments::command();
        command.build();
        unexplained(&command, &mut checked, &mut missing);
        assert_eq!(missing, [""; 0]);
        assert!(checked > 300, "{checked}: the modes of all families are among them");
    }

    #[test]
    fn everything_that_measures_takes_names() {
        let families = latscope_probes::FAMILIES.iter().map(|family| family.name);
        for command in families.chain(["survey"]) {
            let words = ["latscope", command, "--label", "board=a7", "--machine-id", "none"];
            let matches = LatscopeArguments::command().try_get_matches_from(words).unwrap();
            let names = NameArguments::from_arg_matches(matches.subcommand().unwrap().1).unwrap();
            assert_eq!(names.run_labels().unwrap()["board"], "a7", "{command}");
            assert_eq!(names.machine_id(), Some(None), "{command}");
        }
    }
}
