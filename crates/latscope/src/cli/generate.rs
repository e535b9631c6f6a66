//! `latscope generate`: the man page and completions, made from the same
//! description of the command line that parses it, and the table of probes,
//! made from their registry.

use super::Exit;
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use latscope_core::report::Semantics;
use latscope_probes::FAMILIES;

/// Writes the man page or the completions of the command to stdout.
///
/// # Errors
/// The shell is unknown, or stdout is closed.
pub fn run(matches: &ArgMatches, mut command: Command) -> Result<Exit> {
    let mut out = Vec::new();
    match matches.get_one::<String>("what").map(String::as_str) {
        Some("man") => man(command, &mut out)?,
        Some("probes") => out = probes().into_bytes(),
        _ => {
            let shell: Option<&String> = matches.get_one("shell");
            let shell = shell.and_then(|name| name.parse::<Shell>().ok());
            let shell = shell.context("completions are for bash, zsh, fish, elvish or powershell: `latscope generate completions bash`")?;
            clap_complete::generate(shell, &mut command, "latscope", &mut out);
        }
    }
    latscope_host::stdout::write(&String::from_utf8_lossy(&out))?;
    Ok(Exit::Done)
}

/// The registry as a page of the documentation.
fn probes() -> String {
    let mut page = String::from(
        "# Every probe\n\nMade by `latscope generate probes`; do not edit. Parameters with a star are axes: points that \
         differ only in them make up a curve or a matrix.\n",
    );
    for family in FAMILIES {
        page += &format!("\n## {0}\n\n{1}. More in [{0}.md]({0}.md).\n", family.name, family.about);
        page += "\n| probe | what is timed | times | parameters | after |\n|---|---|---|---|---|\n";
        for probe in family.probes {
            let times = match probe.times {
                Semantics::OneWay => "one way",
                Semantics::RoundTrip => "round trip",
                Semantics::Operation => "operation",
            };
            let params =
                probe.params.iter().map(|p| format!("{}{}", p.name, if p.axis { "\\*" } else { "" }));
            let params = params.collect::<Vec<_>>().join(", ");
            page +=
                &format!("| `{}` | {} | {times} | {params} | {} |\n", probe.id, probe.timed, probe.source);
        }
    }
    page
}

/// One page for all: the commands follow the main part as sections.
fn man(mut command: Command, out: &mut Vec<u8>) -> Result<()> {
    command.build();
    clap_mangen::Man::new(command.clone()).render(out)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("latscope {}", sub.get_name());
        let page = clap_mangen::Man::new(sub.clone());
        out.extend(format!(".SH \"{}\"\n", name.to_uppercase()).bytes());
        page.render_description_section(out)?;
        page.render_options_section(out)?;
    }
    Ok(())
}
