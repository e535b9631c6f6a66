//! Reads the files of budgets.

use super::input;
use super::usage::did_you_mean;
use anyhow::{Result, anyhow};
use latscope_judge::gate::{BudgetError, BudgetFileTable, BudgetNameSet, BudgetParamKind, GateBudget};
use latscope_judge::runs::RunResult;
use latscope_probes::{self as probes, ParamValueKind as Takes};
use std::path::Path;

/// Reads a budget, `-` from standard input. What it names must be a probe of latscope, or in one of these runs.
///
/// # Errors
/// The file cannot be read, or is no budget; the text says what to write instead.
pub fn load_budget<'a>(path: &Path, runs: impl IntoIterator<Item = &'a RunResult>) -> Result<GateBudget> {
    let name = input::input_name(path);
    let text = input::read_text(path)?;
    let table: BudgetFileTable = toml::from_str(&text).map_err(|error| syntax(&name, &text, &error))?;
    let mut known = measured_names();
    runs.into_iter().for_each(|run| known.add_run(run));
    GateBudget::read_entries(&table, &known).map_err(|error| budget_error(&name, &error))
}

/// Error for a text that is no TOML, in one line.
fn syntax(name: &str, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!(", line {}", before.matches('\n').count() + 1));
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    anyhow!(
        "{name}{}: {message} (a budget is TOML; `latscope gate --learn` writes one)",
        line.unwrap_or_default()
    )
}

fn budget_error(name: &str, error: &BudgetError) -> anyhow::Error {
    let near = error.misspelt().map(|(word, known)| did_you_mean(word, known.iter().map(String::as_str)));
    anyhow!("{name}: {error}{}", near.unwrap_or_default())
}

/// All that latscope measures.
fn measured_names() -> BudgetNameSet {
    let mut names = BudgetNameSet::default();
    for probe in probes::all_probes() {
        let kind = |takes: Takes| match takes {
            Takes::Size => BudgetParamKind::Size,
            Takes::Number | Takes::Nodes => BudgetParamKind::Number,
            Takes::Time => BudgetParamKind::Time,
            Takes::Choice(words) => {
                BudgetParamKind::Choice(words.iter().map(|(word, _)| (*word).to_owned()).collect())
            }
            Takes::Stated => BudgetParamKind::Stated,
        };
        names.add_probe(probe.id, probe.params.iter().map(|param| (param.name, kind(param.kind))));
    }
    names.add_values(probes::VALUES.iter().copied());
    names
}
