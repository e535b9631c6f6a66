use super::*;
use crate::plan::{BackgroundLoad, ParamValue};
use crate::report::{Account, Consumer};
use crate::schema;
use std::collections::BTreeSet;

fn clean(text: &str) -> String {
    let mut redactor = Redactor::default();
    redactor.know_host("thor");
    redactor.sentence(text)
}

#[test]
fn paths_and_the_host_are_taken_out_of_sentences() {
    let text = "thor: cannot make files in /home/ann/x: Read-only; see /home/ann/x, /srv/b. (/tmp is used)";
    assert_eq!(
        clean(text),
        "(redacted): cannot make files in path-1: Read-only; see path-1, path-2. (/tmp is used)"
    );
    for same in ["12 GB/s, and/or 1/2", "/dev/cpu_dma_latency: no", "/proc/self/smaps", "thorn, anthor", "/ "]
    {
        assert_eq!(clean(same), same);
    }
    for path in [
        "/dev/serial/by-id/usb-FTDI_A1",
        "/dev/mapper/thor-root",
        "/sys/fs/cgroup/user.slice/x",
        "/dev/vda",
        "/dev/nvme0n1p2",
        "/dev/ttyRPMSG0",
    ] {
        assert_eq!(clean(path), "path-1", "{path}");
    }
    assert_eq!(clean("in ./a/b or ../c or ~/d"), "in path-1 or path-2 or path-3");
}

#[test]
fn processes_are_taken_out_of_the_sentences_that_name_them() {
    for (text, expected) in [
        ("busy: stress-ng (pid 77) 98 % of one", "busy: process-1 (pid 77) 98 % of one"),
        ("while my app ran; 10 ms stolen", "while process-1 ran; 10 ms stolen"),
        ("interrupts off in my app, or firmware", "interrupts off in process-1, or firmware"),
        ("while ksoftirqd/0 ran", "while ksoftirqd/0 ran"),
        ("used by Web Content (pid 7), then Web Content", "used by process-1 (pid 7), then process-1"),
        ("another latscope (pid 5) runs", "another latscope (pid 5) runs"),
    ] {
        assert_eq!(clean(text), expected);
    }
}

#[test]
fn threads_of_the_kernel_keep_their_names_without_their_devices() {
    for (name, expected) in [
        ("kworker/u8:0-btrfs-endio", Some("kworker/u8:0")),
        ("irq/24-nvme0q1", Some("irq/24")),
        ("jbd2/vda1-8", Some("jbd2")),
        ("kswapd0", Some("kswapd0")),
        ("ksoftirqd/1", Some("ksoftirqd/1")),
        ("latscope", Some("latscope")),
        ("ksmd-of-ann", None),
        ("irqbalance", None),
        ("python3", None),
    ] {
        assert_eq!(text::common_thread(name), expected, "{name}");
    }
}

#[test]
fn events_keep_their_numbers_and_no_names() {
    let mut redactor = Redactor::default();
    let text =
        "prev_comm=Web Content prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0";
    assert_eq!(
        redactor.redact_event(text),
        "prev_comm=process-1 prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0"
    );
    assert_eq!(
        redactor.redact_event("filename=/home/ann/x flags=0x8000 hello"),
        "filename=(redacted) flags=0x8000 (redacted)"
    );
}

#[test]
fn a_result_keeps_its_figures_and_nothing_of_its_owner() {
    let mut report = crate::fixture::report();
    report.machine = Machine {
        id: Some("f00dfeed".to_owned()),
        name: "thorhost".to_owned(),
        command_line: Some("serial=s3cr3t hushed".to_owned()),
        ..report.machine
    };
    report.labels.insert("ownedby".to_owned(), "annalisa".to_owned());
    report.plan.load = Some(BackgroundLoad::Command("/home/annalisa/run --token s3cr3t".to_owned()));
    report.plan.timeline = Some("/home/annalisa/of thorhost/line.json".into());
    report.plan.notes.push("thorhost: /home/annalisa/of thorhost/line.json is on a disk".to_owned());
    let place = ParamValue::Text("/home/annalisa".to_owned());
    report.measurements[0].params.insert("directory".to_owned(), place);
    let device = ParamValue::Text("/dev/vda".to_owned());
    report.measurements[0].params.insert("device".to_owned(), device);
    let latscope = Some("latscope file --dir /home/annalisa".to_owned());
    let top =
        ["hushed", "thorhost-agent"].map(|name| Consumer { name: name.to_owned(), ..Consumer::default() });
    let other = Consumer { name: "latscope".to_owned(), latscope, ..Consumer::default() };
    report.activity = Some(Account {
        top: top.into_iter().chain([other]).collect(),
        ..report.activity.unwrap_or_default()
    });
    let redacted = Redactor::default().redact_report(&report).unwrap();
    let text = redacted.to_json();
    for secret in ["thorhost", "f00dfeed", "s3cr3t", "annalisa", "ownedby", "hushed", "/dev/vda"] {
        assert!(!text.contains(secret), "{secret} is left");
    }
    assert_eq!(redacted.machine.name, "machine-1");
    let figures = |report: &Report| report.measurements.iter().map(|m| m.summary.clone()).collect::<Vec<_>>();
    assert_eq!(figures(&redacted), figures(&report));
    assert_eq!(Report::from_json(text.as_bytes()).unwrap().to_json(), text);
    assert_eq!(Redactor::default().redact_report(&redacted).unwrap().to_json(), text, "twice is as once");
}

#[test]
fn sentences_beside_many_names_are_hidden_whole() {
    let hidden = |names: usize| {
        let mut redactor = Redactor::default();
        (0..names).for_each(|at| redactor.know_command(&format!("command {at}")));
        let mut document =
            serde_json::json!({ "warnings": [{ "id": "busy", "text": "busy: hog (pid 7)", "remedy": "" }] });
        redactor.redact_value(&mut document);
        document["warnings"][0].clone()
    };
    let of = |text: &str| serde_json::json!({ "id": "busy", "text": text, "remedy": "" });
    assert_eq!(hidden(7), of("busy: process-1 (pid 7)"));
    assert_eq!(hidden(MOST_NAMES), of(REDACTED));
}

/// Only words that redacting gave are kept as they are.
#[test]
fn a_name_that_begins_like_a_redacted_one_is_redacted() {
    let mut redactor = Redactor::default();
    for (begin, hidden) in [
        (PROCESS, redactor.process("process-ann")),
        (PATH, redactor.path("path-of-ann")),
        (NAME, redactor.redact_name("name-ann")),
        (COMMAND, redactor.redact_command("command-ann")),
    ] {
        assert_eq!(hidden, format!("{begin}1"));
    }
    assert_eq!(redactor.process("process-1"), "process-1");
    assert_eq!(redactor.redact_name("name-7"), "name-7");
}

#[test]
fn machines_and_paths_stay_different() {
    let mut redactor = Redactor::default();
    let mut name = |host: &str| {
        let mut report = crate::fixture::report();
        (report.machine.name, report.machine.id) = (host.to_owned(), None);
        redactor.redact_report(&report).unwrap().machine.name
    };
    assert_eq!([name("thor"), name("odin"), name("thor")], ["machine-1", "machine-2", "machine-1"]);
}

/// A document made after its schema: every field, every variant, and a text in each that may be any text.
struct SchemaSampleBuilder<'a> {
    definitions: &'a Value,
    /// The definitions around the current one, so that none contains itself without end.
    around: Vec<&'a str>,
    /// Fields with a free text: names of the object around them and of the field.
    texts: BTreeSet<(String, String)>,
    /// Fields with one of several words.
    words: BTreeSet<(String, String)>,
}

const SECRET: &str = "s3cr3t";

impl<'a> SchemaSampleBuilder<'a> {
    /// Samples of a part of a schema: one for each variant.
    fn variants(&mut self, schema: &'a Value, at: (&str, &str)) -> Vec<Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            if self.around.contains(&name) {
                return Vec::new();
            }
            self.around.push(name);
            let made = self.variants(&self.definitions[name], at);
            self.around.pop();
            return made;
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(all) = schema[choice].as_array() {
                return all
                    .iter()
                    .flat_map(|one| self.variants(one, at))
                    .filter(|one| !one.is_null())
                    .collect();
            }
        }
        if let Some(word) = schema.get("const") {
            self.words.insert((at.0.to_owned(), at.1.to_owned()));
            return vec![word.clone()];
        }
        if let Some(words) = schema["enum"].as_array() {
            self.words.insert((at.0.to_owned(), at.1.to_owned()));
            return words.clone();
        }
        match kind(schema) {
            "string" => {
                self.texts.insert((at.0.to_owned(), at.1.to_owned()));
                vec![SECRET.into()]
            }
            "array" => {
                let parts = schema
                    .get("items")
                    .into_iter()
                    .chain(schema["prefixItems"].as_array().into_iter().flatten());
                vec![parts.flat_map(|part| self.variants(part, at)).collect()]
            }
            "object" => vec![self.object(schema, at)],
            "boolean" => vec![true.into()],
            "integer" | "number" => vec![1.into()],
            _ => Vec::new(),
        }
    }

    fn object(&mut self, schema: &'a Value, at: (&str, &str)) -> Value {
        let mut made = Map::new();
        for (field, part) in schema["properties"].as_object().into_iter().flatten() {
            let variants = self.variants(part, (at.1, field));
            made.extend(variants.into_iter().next_back().map(|value| (field.clone(), value)));
        }
        if let Some(part) = schema.get("additionalProperties").filter(|part| part.is_object()) {
            for value in self.variants(part, (at.1, "entry")) {
                made.insert("entry".to_owned(), value);
            }
        }
        made.into()
    }
}

fn kind(schema: &Value) -> &str {
    let kinds = schema["type"].as_array().into_iter().flatten().chain([&schema["type"]]);
    kinds.filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default()
}

/// A sample of a result, and what its schema says of its texts.
fn sample(schema: &Value) -> (Value, SchemaSampleBuilder<'_>) {
    let definitions = &schema["$defs"];
    let mut sample = SchemaSampleBuilder {
        definitions,
        around: Vec::new(),
        texts: BTreeSet::new(),
        words: BTreeSet::new(),
    };
    let document = sample.object(schema, ("", ""));
    (document, sample)
}

/// Fields whose text is of the kind of machine, of latscope or of the program that measured: `docs/privacy.md` names
/// those by which a company could be known, such as `kernel_version`.
fn stays((parent, field): &(String, String)) -> bool {
    // An entry of `values` has no text but its unit.
    fields::field_kind(parent, field) == RedactionFieldKind::Word
}

/// Returns the paths of the texts in a document that contain the secret.
fn left(at: (&str, &str), value: &Value, found: &mut BTreeSet<(String, String)>) {
    match value {
        Value::String(text) if text.contains(SECRET) => {
            found.insert((at.0.to_owned(), at.1.to_owned()));
        }
        Value::Array(all) => {
            for value in all {
                left(at, value, found);
            }
        }
        Value::Object(all) => {
            for (field, value) in all {
                left((at.1, field), value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_secret_in_any_text_of_a_result_is_left_in_no_text_that_is_not_named_to_stay() {
    let schema = schema::for_type::<Report>("a result").to_value();
    let (mut document, sample) = sample(&schema);
    assert!(sample.texts.len() > 60, "few texts: {:?}", sample.texts);
    // The labels are cleared from the typed report.
    Redactor::default().redact_value(&mut document);
    let mut found = BTreeSet::new();
    left(("", ""), &document, &mut found);
    let unexpected: Vec<_> = found.iter().filter(|field| !stays(field)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?} keep the secret");
    let planted: BTreeSet<_> = sample.texts.iter().filter(|field| stays(field)).cloned().collect();
    assert_eq!(found, planted, "what stays is a text of a field that is named to stay");
}

#[test]
fn every_text_of_a_result_is_in_the_table() {
    let schema = schema::for_type::<Report>("a result").to_value();
    let (_, sample) = sample(&schema);
    let of_maps = |parent: &str| ["params", "facts", "labels"].contains(&parent);
    let unknown: Vec<_> = sample
        .texts
        .iter()
        .filter(|(parent, field)| !of_maps(parent) && fields::known_kind(parent, field).is_none())
        .collect();
    assert!(unknown.is_empty(), "say in redact/fields.rs what these hold: {unknown:?}");
    let changed: Vec<_> = sample.words.iter().filter(|field| !stays(field)).collect();
    assert!(changed.is_empty(), "these decide how a result is read: {changed:?}");
}

#[test]
fn a_secret_in_any_text_of_a_report_is_gone_from_the_redacted_one() {
    let planted = planted::planted_report(SECRET);
    let before = planted.to_json().matches(SECRET).count();
    assert!(before > 100, "{before}");
    let redacted = Redactor::default().redact_report(&planted).unwrap();
    let text = redacted.to_json();
    let at = text.find(SECRET).map(|at| &text[at.saturating_sub(200)..(at + 80).min(text.len())]);
    assert_eq!(at, None);
    assert_eq!(Redactor::default().redact_report(&redacted).unwrap().to_json(), text, "twice is as once");
}
