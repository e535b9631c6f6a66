//! `latscope generate`: the man page and completions, made from the same description of the command line that parses
//! it, the table of probes, made from their registry, and the recorded JSON Schemas.

use super::CommandExit;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use flate2::read::GzDecoder;
use latscope_core::word::KeywordEnum;
use latscope_probes::{FAMILIES, Probe};

#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// What is written to stdout
    #[arg(value_name = "WHAT", value_enum)]
    what: Generated,
    /// For completions the shell: bash, zsh, fish, elvish or powershell. For schema the document: result, plan,
    /// machine, compare, trial, gate or history; without it, their list
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Generated {
    /// The man page
    Man,
    /// Completions of a shell
    Completions,
    /// The table of probes as Markdown
    Probes,
    /// A JSON Schema, or the list of them
    Schema,
}

/// The name of a JSON document, what writes it, and its schema, compressed.
type SchemaDocument = (&'static str, &'static str, &'static [u8]);

/// Includes a recorded schema. Code that makes it from the types would be larger than its text.
macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".schema.json.gz"))
    };
}

/// Every JSON document that latscope writes.
const DOCUMENTS: [SchemaDocument; 7] = [
    ("result", "--json of all that measures, import", recorded!("result")),
    ("plan", "--dry-run --json -", recorded!("plan")),
    ("machine", "doctor --json", recorded!("machine")),
    ("compare", "compare --json", recorded!("compare")),
    ("trial", "trial.json, trial and run --json", recorded!("trial")),
    ("gate", "gate --json", recorded!("gate")),
    ("history", "history --json", recorded!("history")),
];

/// Writes what was asked for to stdout.
///
/// # Errors
/// The name is unknown or not used, or stdout is closed.
pub fn write_generated(asked: &GenerateArguments, mut command: Command) -> Result<CommandExit> {
    let mut out = Vec::new();
    let named = [Generated::Completions, Generated::Schema].contains(&asked.what);
    ensure!(named || asked.name.is_none(), "NAME is for `completions` and `schema`");
    match asked.what {
        Generated::Man => man(command, &mut out)?,
        Generated::Probes => out = probes().into_bytes(),
        Generated::Schema => out = schema_of(asked.name.as_deref())?.into_bytes(),
        Generated::Completions => {
            let shell = asked.name.as_ref().and_then(|name| name.parse::<Shell>().ok());
            let shell = shell.context("completions are for bash, zsh, fish, elvish or powershell: `latscope generate completions bash`")?;
            clap_complete::generate(shell, &mut command, "latscope", &mut out);
        }
    }
    latscope_process::stdout::write_data(&out)?;
    Ok(CommandExit::Done)
}

/// The schema of a document; without a name, the list of documents.
fn schema_of(name: Option<&str>) -> Result<String> {
    let Some(name) = name else {
        return Ok(DOCUMENTS.iter().map(|(name, of, _)| format!("{name:8} {of}\n")).collect());
    };
    match DOCUMENTS.iter().find(|(known, ..)| *known == name) {
        Some((.., schema)) => Ok(std::io::read_to_string(GzDecoder::new(*schema))?),
        None => bail!("{name} is no document of latscope: `latscope generate schema` lists them"),
    }
}

/// Cell of a table that repeats the cell above it.
const DITTO: &str = "″";

/// The registry as a page of the documentation.
fn probes() -> String {
    let mut page = String::from(
        "# Every probe\n\nMade by `latscope generate probes`; do not edit. Parameters with a star are axes: points that \
         differ only in them make up a curve or a matrix. A cell with ″ repeats the one above it. \
         Calls are by the bare `instruction`, or by the C library (`libc`); empty: none, or both. The loop around \
         calls marked ×16 lies at 16 random addresses in turns; other loops have one address \
         ([what is known of it](syscall.md#system-calls)).\n",
    );
    for family in FAMILIES {
        page += &format!("\n## {0}\n\n{1}. More in [{0}.md]({0}.md).\n", family.name, family.about);
        page += "\n| probe | what is timed | times | calls by | parameters | after |\n|---|---|---|---|---|---|\n";
        let mut above = <[String; 5]>::default();
        for probe in family.probes {
            let cells = cells(probe);
            page += &format!("| `{}` |", probe.id);
            for (cell, above) in cells.iter().zip(&above) {
                let repeats = !cell.is_empty() && cell == above;
                page += &format!(" {} |", if repeats { DITTO } else { cell });
            }
            page += "\n";
            above = cells;
        }
    }
    page
}

/// Returns what a row of the table says of a probe, behind its id.
fn cells(probe: &Probe) -> [String; 5] {
    let params = probe.params.iter().map(|p| format!("{}{}", p.name, if p.axis { "\\*" } else { "" }));
    let params = params.collect::<Vec<_>>().join(", ");
    let turns = if probe.at_addresses { " ×16" } else { "" };
    let by = probe.by.map_or(String::new(), |by| format!("{}{turns}", by.word()));
    [probe.timed.to_owned(), probe.times.display_name().to_owned(), by, params, probe.source.to_owned()]
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

#[cfg(test)]
mod tests {
    use super::super::trial::{self, TrialOutcome};
    use super::{DOCUMENTS, schema_of};
    use latscope_core::machine::Machine;
    use latscope_core::plan::Plan;
    use latscope_core::report::{self, Report};
    use latscope_core::{json, schema};
    use latscope_judge::compare::{self, ComparisonResult};
    use latscope_judge::gate::{self, GateResult};
    use latscope_judge::history::{self, History};
    use std::path::Path;

    #[test]
    fn the_schemas_are_those_of_the_types() {
        let made = [
            schema::for_type::<Report>(report::SCHEMA),
            schema::for_type::<Plan>("plan of a run"),
            schema::for_type::<Machine>("machine"),
            schema::for_type::<ComparisonResult>(compare::SCHEMA),
            schema::for_type::<TrialOutcome>(trial::SCHEMA),
            schema::for_type::<GateResult>(gate::SCHEMA),
            schema::for_type::<History>(history::SCHEMA),
        ];
        for ((name, ..), made) in DOCUMENTS.iter().zip(made) {
            let made = json::pretty(&made);
            if std::env::var_os("LATSCOPE_RECORD").is_some() {
                let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
                std::fs::write(docs.join(format!("{name}.schema.json")), made).unwrap();
            } else {
                assert!(
                    made == schema_of(Some(name)).unwrap(),
                    "docs/schema/{name}.schema.json is not what the types say: `LATSCOPE_RECORD=1 cargo test -p \
                     latscope --lib schemas` records it again"
                );
            }
        }
    }
}
