//! Simulated results of machines of many CPUs: writes one, or the table and the picture of docs/nodes.md.
//!
//! ```text
//! cargo run --release --example many_cpus -- survey 1024 result.json
//! cargo run --release --example many_cpus -- pairs 256 result.json
//! cargo run --release --example many_cpus -- docs
//! ```
#![forbid(unsafe_code)]

mod simulated;

use anyhow::{Context, Result, bail};
use simulated::{CPUS, Command, picture, result, row_of_pairs, row_of_surveys};
use std::fs;
use std::path::Path;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["docs"] => record(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")),
        ["survey", cpus, file] => Ok(fs::write(file, result(Command::Survey, cpus.parse()?).to_json())?),
        ["pairs", cpus, file] => Ok(fs::write(file, result(Command::AllPairs, cpus.parse()?).to_json())?),
        _ => bail!("many_cpus docs, or many_cpus survey|pairs CPUS FILE"),
    }
}

/// Writes the table and the picture.
fn record(docs: &Path) -> Result<()> {
    let rows: Vec<String> =
        CPUS.iter().map(|cpus| row_of_surveys(*cpus).0 + &row_of_pairs(*cpus).0).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    fs::write(docs.join("pictures/many-cpus.svg"), picture(&rows))?;
    let page = docs.join("nodes.md");
    let text = fs::read_to_string(&page)?;
    let (before, rest) =
        text.split_once("\n| 16 |").context("the page has no table of simulated machines")?;
    let after = rest.split_once("\n\n").context("nothing is behind the table")?.1;
    Ok(fs::write(&page, format!("{before}\n{}\n\n{after}", rows.join("\n")))?)
}
