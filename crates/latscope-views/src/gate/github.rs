//! A judged budget as workflow commands of GitHub: annotations of the run.

use super::{file_of_check, has_failed, outcome, worst_first};
use latscope_core::log_commands;
use latscope_core::report::VerdictStatus;
use latscope_judge::gate::GateResult;

/// Returns an error for each exceeded limit and a warning for each inconclusive limit, the worst first, since
/// GitHub shows ten of each kind for a step.
pub fn annotations(gate: &GateResult) -> String {
    let mut lines = String::new();
    for check in worst_first(gate).into_iter().filter(|check| has_failed(check)) {
        let kind = if check.status == VerdictStatus::Exceeded { "error" } else { "warning" };
        let run = file_of_check(gate, check).map(|file| format!("{file}: ")).unwrap_or_default();
        let title = property(&format!("{}, {}", check.title, check.format_requirement()));
        lines += &format!("::{kind} title={title}::{}\n", message(&format!("{run}{}", outcome(check))));
    }
    for text in &gate.warnings {
        lines += &format!("::warning title=latscope gate::{}\n", message(text));
    }
    lines
}

/// Returns a text as the value of an annotation, without commands to the services that may keep the log.
fn message(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    log_commands::break_commands(text.replace(char::is_control, " "))
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
