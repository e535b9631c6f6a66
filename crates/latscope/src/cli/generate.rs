//! `latscope generate`: the man page and completions, made from the same
//! description of the command line that parses it, and the table of probes,
//! made from their registry.

use super::Exit;
use anyhow::{Context, Result, ensure};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use latscope_probes::FAMILIES;

#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// The man page, shell completions, or the table of probes as Markdown
    #[arg(value_name = "WHAT", value_enum)]
    what: Generated,
    /// For completions: bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL")]
    shell: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Generated {
    Man,
    Completions,
    Probes,
}

/// Writes the man page or the completions of the command to stdout.
///
/// # Errors
/// The shell is unknown or not used, or stdout is closed.
pub fn run(asked: &GenerateArguments, mut command: Command) -> Result<Exit> {
    let mut out = Vec::new();
    ensure!(asked.what == Generated::Completions || asked.shell.is_none(), "SHELL is for `completions`");
    match asked.what {
        Generated::Man => man(command, &mut out)?,
        Generated::Probes => out = probes().into_bytes(),
        Generated::Completions => {
            let shell = asked.shell.as_ref().and_then(|name| name.parse::<Shell>().ok());
            let shell = shell.context("completions are for bash, zsh, fish, elvish or powershell: `latscope generate completions bash`")?;
            clap_complete::generate(shell, &mut command, "latscope", &mut out);
        }
    }
    latscope_host::stdout::write_data(&out)?;
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
            let params =
                probe.params.iter().map(|p| format!("{}{}", p.name, if p.axis { "\\*" } else { "" }));
            let params = params.collect::<Vec<_>>().join(", ");
            let (id, timed, source, times) = (probe.id, probe.timed, probe.source, probe.times.words());
            page += &format!("| `{id}` | {timed} | {times} | {params} | {source} |\n");
        }
    }
    page
}

/// Writes a single page for all commands: the subcommands follow the main part as sections.
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
