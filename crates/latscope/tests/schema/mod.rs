//! Every document that a test reads is compared with the schema that docs/schema has of it.

use jsonschema::Validator;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Names of the schemas, without the ending of their files.
pub const NAMES: [&str; 7] = ["result", "plan", "machine", "compare", "trial", "gate", "history"];

static VALIDATORS: LazyLock<Vec<(&str, Validator)>> = LazyLock::new(|| {
    let read = |name| {
        let file = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(Path::new(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let schema: Value = serde_json::from_str(&text).unwrap();
        (name, jsonschema::draft202012::new(&schema).unwrap())
    };
    NAMES.map(read).into()
});

/// Asserts that a document has the form of this name.
#[track_caller]
pub fn assert_is(name: &str, document: &Value) {
    let (_, validator) = VALIDATORS.iter().find(|(known, _)| *known == name).expect("a schema has this name");
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error:.200}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "not as docs/schema/{name}.schema.json says:\n{}", errors.join("\n"));
}

/// Asserts that a document has the form that its own `schema` names. JSON of other programs has none.
#[track_caller]
pub fn assert_as_named(document: &Value) {
    let name = match document["schema"].as_str() {
        Some("latscope/1") => "result",
        Some(schema) => match schema.strip_prefix("latscope-").and_then(|rest| rest.strip_suffix("/1")) {
            Some(name) => name,
            None => return,
        },
        None => return,
    };
    assert_is(name, document);
}
