//! A judged budget as workflow commands of GitHub: annotations of the run.

use super::{file, has_failed, outcome, worst_first};
use latscope_core::report::Status;
use latscope_judge::gate::{Check, Gate};

/// Returns an error for each exceeded limit and a warning for each inconclusive limit, the worst first, since
/// GitHub shows ten of each kind for a step.
pub fn annotations(gate: &Gate) -> String {
    let line = |check: &&Check| {
        let kind = if check.status == Status::Exceeded { "error" } else { "warning" };
        let run = file(gate, check).map(|file| format!("{file}: ")).unwrap_or_default();
        let title = format!("{}, {}", check.title, check.wanted());
        format!("::{kind} title={}::{}\n", property(&title), message(&format!("{run}{}", outcome(check))))
    };
    let warning = |text: &String| format!("::warning title=latscope gate::{}\n", message(text));
    let failed = worst_first(gate).into_iter().filter(|check| has_failed(check));
    failed.map(|check| line(&check)).chain(gate.warnings.iter().map(warning)).collect()
}

fn message(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    text.replace(char::is_control, " ")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
