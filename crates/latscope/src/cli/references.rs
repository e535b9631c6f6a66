//! `latscope references`: published figures of other machines.

use super::options::{JsonArgument, ReferencesArgument};
use super::output::{show_text, write_json};
use super::{CommandExit, beside};
use anyhow::{Result, ensure};
use clap::Args;
use latscope_core::units::count_with_noun;
use latscope_judge::references::Reference;
use latscope_views::references as views;
use std::collections::BTreeSet;

#[derive(Debug, Args)]
pub struct ListedArguments {
    /// Only figures with all these words in machine, figure, tool or source
    words: Vec<String>,
    #[command(flatten)]
    references: ReferencesArgument,
    #[command(flatten)]
    to: JsonArgument,
}

/// Lists the figures.
///
/// # Errors
/// A file of references cannot be read, no figure has the words, or the list cannot be written.
pub fn list_references(asked: &ListedArguments) -> Result<CommandExit> {
    let all = beside::load_references(&asked.references)?;
    let wanted: Vec<&Reference> = all.iter().filter(|one| one.matches_words(&asked.words)).collect();
    ensure!(!wanted.is_empty(), "no figure has the words {}: give fewer", asked.words.join(" "));
    write_json(&asked.to, &wanted)?;
    let machines: BTreeSet<&str> = wanted.iter().map(|one| one.machine.as_str()).collect();
    let sum =
        [count_with_noun(wanted.len() as u64, "figure"), count_with_noun(machines.len() as u64, "machine")];
    show_text(asked.to.takes_stdout(), |options| {
        format!("{}\n{}\n", views::listing(&wanted, options), sum.join(" of "))
    })?;
    Ok(CommandExit::Done)
}
