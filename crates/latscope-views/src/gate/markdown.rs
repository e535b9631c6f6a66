//! A judged budget as Markdown, for the summary of a step.

use super::{file, has_failed, notes, verdict, worst_first};
use crate::markdown::escape;
use crate::verdicts::word;
use latscope_judge::gate::{Check, Gate};

/// Maximum number of passing checks that are shown.
const PASSED: usize = 30;

/// Returns the verdict and a table of the checks; of the passing checks only the first are shown.
pub fn markdown(gate: &Gate) -> String {
    let mut out = format!("## latscope gate: {}\n\n- {}\n", word(gate.status), escape(&verdict(gate)));
    for note in notes(gate) {
        out += &format!("- {}\n", escape(&note));
    }
    out += "\n| point | limit | seen | verdict | why |\n|---|---|--:|---|---|\n";
    let checks = worst_first(gate);
    let failed = checks.iter().filter(|check| has_failed(check)).count();
    let shown = checks.len().min(failed + PASSED);
    for check in &checks[..shown] {
        out += &row(gate, check);
    }
    if shown < checks.len() {
        out += &format!("\n{} more pass.\n", checks.len() - shown);
    }
    out
}

fn row(gate: &Gate, check: &Check) -> String {
    let run = file(gate, check).map(|file| format!(", {file}")).unwrap_or_default();
    format!(
        "| {} | {} | {} | {} | {} |\n",
        escape(&format!("{}{run}", check.title)),
        escape(&check.wanted()),
        escape(&check.seen()),
        word(check.status),
        escape(&check.text)
    )
}
