//! JSON Schemas of documents, derived from their types. The comments of the fields are the descriptions.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Returns the schema (draft 2020-12) of documents as this version writes them. `title` names them.
pub fn for_type<T: JsonSchema>(title: &str) -> Schema {
    let settings =
        SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(for_readers));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// Permits `null` for every field of an object.
pub(crate) fn permit_null(schema: &mut Schema) {
    for field in properties(schema) {
        let own = field.take();
        *field = match own {
            Value::Object(mut own) if own.get("type").is_some_and(Value::is_string) => {
                let kind = own["type"].take();
                own.insert("type".to_owned(), json!([kind, "null"]));
                own.into()
            }
            Value::Object(mut own) if own.contains_key("$ref") => {
                let description = own.remove("description");
                json!({ "description": description, "anyOf": [own, { "type": "null" }] })
            }
            own => own,
        };
    }
}

fn properties(schema: &mut Schema) -> impl Iterator<Item = &mut Value> {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(|properties| properties.values_mut())
}

/// Words descriptions for readers of JSON: without links to code, on one line, and with what `None` is in the document.
/// A field that may be absent is never `null`.
fn for_readers(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text =
            without_links(&text.replace("\n\n", "\u{2029}").replace('\n', " ")).replace('\u{2029}', "\n\n");
    }
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, field) in properties {
        let is_required = required.contains(&Value::from(name.as_str()));
        if let Some(Value::String(text)) = field.get_mut("description") {
            *text = text.replace("`None`", if is_required { "null" } else { "absent" });
        }
        if !is_required {
            forbid_null(field);
        }
    }
}

/// Takes back that a field may be `null`.
fn forbid_null(field: &mut Value) {
    let Some(field) = field.as_object_mut() else { return };
    if let Some(kinds) = field.get("type").and_then(Value::as_array) {
        let kind = kinds.iter().find(|kind| *kind != "null").cloned();
        field.extend(kind.map(|kind| ("type".to_owned(), kind)));
    }
    if let Some(any) = field.remove("anyOf") {
        let kind = any.as_array().and_then(|any| any.iter().find(|kind| kind["type"] != "null")?.as_object());
        field.extend(kind.cloned().into_iter().flatten());
    }
}

/// A text without the links of doc comments: of each only its words remain.
fn without_links(text: &str) -> String {
    let mut parts = text.split('[');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((words, rest)) if rest.starts_with('(') => {
                out += words;
                out += rest.split_once(')').map_or(rest, |(_, behind)| behind);
            }
            Some((words, rest)) if words.starts_with('`') && words.ends_with('`') => {
                out += words;
                out += rest;
            }
            _ => {
                out.push('[');
                out += part;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_leave_their_words() {
        for (text, plain) in [
            ("that of [`next_run`](Self::next_run), ns", "that of `next_run`, ns"),
            ("always [`SCHEMA`]; `[low, high]`", "always `SCHEMA`; `[low, high]`"),
            ("a [quota](Quota) and [more", "a quota and [more"),
        ] {
            assert_eq!(without_links(text), plain);
        }
    }
}
