//! Fields of a result that hold text, and what each may hold. A field that is not here is redacted whole.

use crate::plan::USER_PARAMETER;

/// Content of a field, which decides what is done to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedactionFieldKind {
    /// A word of latscope's own or of the kind of machine, which stays.
    Word,
    /// A sentence of latscope's, in which names and paths may stand.
    Sentence,
    /// The title of a row: a sentence, but the user's words in an imported result.
    Title,
    /// Path of a file or a directory.
    Path,
    /// The name of a process or thread.
    Process,
    /// The cause of an outlier: the name of a process, or a word of the kernel.
    Cause,
    /// The fields of an event of the kernel: `comm=cat pid=7`.
    Event,
    /// The value of a parameter.
    Parameter,
    /// A fact on a run that was merged.
    Fact,
    /// A text of the user.
    Private,
}

use RedactionFieldKind::{Cause, Event, Fact, Parameter, Path, Private, Process, Sentence, Title, Word};

/// Fields by the name of the object around them, or by their name alone where all of that name are alike.
const FIELDS: &[(RedactionFieldKind, &[&str])] = &[
    (
        Word,
        &[
            "schema", "tool.name", "version", "commit", "started", "finished", "run_id", "program", "id",
            "probe", "figure", "what", "unit", "metric", "job", "role", "kind", "stack", "affects",
            "events.name", "kinds.name", "policy", "events", "cpus", "online", "allowed", "siblings",
            "shared", "last_caches", "kernel", "kernel_version", "architecture", "cpu_model", "microcode",
            "caches_from", "hypervisor", "scheduler", "source", "sampling", "times", "level", "status",
            "state", "certainty", "better", "end", "phase", "plan.load", "actions", "remote.core",
        ],
    ),
    (
        Sentence,
        &[
            "text", "remedy", "found", "notes", "unknown", "by", "reason", "doubt", "steps.name", "why",
            "failed", "otherwise",
        ],
    ),
    (Title, &["title"]),
    (Path, &["group", "timeline", "trace_file", "scratch_in", "mark-trace"]),
    (Process, &["top.name", "loops.name"]),
    (Cause, &["cause.name"]),
    (Event, &["events.text"]),
    (Parameter, &["params"]),
    (Fact, &["facts"]),
    (
        Private,
        &[
            "command", "exec", "latscope", "command_line", "labels", "machine.name", "machine.id",
            "remote.firmware",
        ],
    ),
];

/// Parameters that hold the user's words, or those of another program.
const OF_THE_USER: [&str; 9] =
    ["command", "job", "benchmark", "service", "endpoint", "address", "target", "name", "program"];

/// Facts by whose value a machine or a user is known.
const IDENTIFYING: [&str; 6] = [
    "machine",
    "host",
    "command line",
    "load",
    "setting conditions.scratch_in",
    "setting on_threshold.actions",
];

/// Beginning of the name of a fact that is a label.
pub const LABEL: &str = "label ";

/// Returns the content that the table has for a field.
pub fn known_kind(parent: &str, field: &str) -> Option<RedactionFieldKind> {
    let named = format!("{parent}.{field}");
    find_kind(&named).or_else(|| find_kind(field))
}

fn find_kind(name: &str) -> Option<RedactionFieldKind> {
    FIELDS.iter().find(|(_, names)| names.contains(&name)).map(|(content, _)| *content)
}

/// Returns the content of a field.
pub fn field_kind(parent: &str, field: &str) -> RedactionFieldKind {
    match parent {
        "params" if OF_THE_USER.contains(&field) || field.starts_with(USER_PARAMETER) => Private,
        "params" => Parameter,
        "facts" if is_identifying(field) => Fact,
        "facts" => Word,
        _ => known_kind(parent, field).unwrap_or(Private),
    }
}

/// Returns true if a fact tells whose machine it is.
pub fn is_identifying(fact: &str) -> bool {
    IDENTIFYING.contains(&fact)
}
