//! What the command line understands: the command with all subcommands.

use super::options::{directory, flag, json, run_arguments, view_arguments};
use super::{family, ipc, noise, remote, wake};
use clap::{Arg, Command, value_parser};
use latscope_probes::FAMILIES;
use std::ffi::OsString;
use std::path::PathBuf;

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
            "noise" => noise::command(family),
            "remote" => remote::command(family),
            _ => family::command(family),
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
            assert_eq!(latscope_compat::identity::labels(matches).unwrap()["board"], "a7", "{command}");
            assert_eq!(latscope_compat::identity::machine_id(matches), Some(None), "{command}");
        }
    }
}
