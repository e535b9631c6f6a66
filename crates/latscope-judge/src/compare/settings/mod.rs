//! Settings of a run as its plan records them: every field of its steps, and what else of the plan acts on figures.

use latscope_core::plan::{
    Conditions, Linear, MeasuringThreadPolicy, OnThreshold, Periodic, PeriodicEndCondition, Phase, Plan,
    PlanStep, Stop, Traced,
};
use latscope_core::report::Report;
use latscope_core::units::CpuList;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Beginning of the name of a fact that is a setting; the path of its field in the plan follows.
const SETTING: &str = "setting ";

/// Fields that are no settings, or facts of their own: names, points, which are compared each, and what is judged.
const OTHERWISE: [&str; 8] = ["job", "name", "points", "steps", "rounds", "load", "criteria", "notes"];

/// Names of files, which do not act on figures; that they are written does.
const FILES: [&str; 2] = ["timeline", "on_threshold.trace_file"];

/// Fact that a trace was recorded to explain late events.
const BLAME: &str = "on_threshold.blame";

/// Settings of a run by name, with their values in words; those of steps are of these steps alone, or of all. Other
/// programs record none.
pub(crate) fn settings(report: &Report, steps: Option<&BTreeSet<&str>>) -> Vec<(String, String)> {
    if report.imported.is_some() {
        return Vec::new();
    }
    let (like_step, like_plan) = templates();
    let mut of_steps: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for step in report.plan.steps.iter().filter(|step| steps.is_none_or(|known| known.contains(&*step.name)))
    {
        for (path, value) in fields(&like_step, &object(step)) {
            of_steps.entry(path).or_default().push(format_value(&value));
        }
    }
    let mut settings: BTreeMap<String, String> =
        of_steps.into_iter().map(|(path, values)| (path, combine_values(&values))).collect();
    for (path, value) in fields(&like_plan, &object(&report.plan)) {
        let value = if FILES.contains(&&*path) { Value::Bool(!value.is_null()) } else { value };
        settings.insert(path, format_value(&value));
    }
    if report.warnings.iter().any(|warning| warning.id == "no-blame") {
        settings.insert(BLAME.to_owned(), "not possible".to_owned());
    }
    settings.into_iter().map(|(path, value)| (format!("{SETTING}{path}"), value)).collect()
}

/// Names of the steps that some run of both sides has.
pub(super) fn shared_steps<'a>(a: &[&'a Report], b: &[&'a Report]) -> BTreeSet<&'a str> {
    let [a, b] = [a, b].map(|side| {
        let steps = side.iter().flat_map(|report| &report.plan.steps);
        steps.map(|step| &*step.name).collect::<BTreeSet<&str>>()
    });
    &a & &b
}

/// A step and a plan with a value in every field, from which the names of the fields are read. Each field is named, so
/// that a new one has to be added here.
fn templates() -> (Map<String, Value>, Map<String, Value>) {
    let end = u64::MAX;
    let step = PlanStep {
        name: String::new(),
        points: Vec::new(),
        cpus: Vec::new(),
        policy: MeasuringThreadPolicy::Other,
        stop: Stop { samples: end, events: end, batch_ns: end, budget_ns: end, limit_ns: end },
        conditions: Conditions { lock_memory: true, cpu_dma_latency: Some(0), scratch_in: Some("/".into()) },
        periodic: Some(Periodic {
            warm_up: 0,
            end: PeriodicEndCondition::All,
            phase: Phase::Free,
            align_second: true,
            threshold: Some(0),
            stop_at_threshold: true,
            corrected: true,
            linear: Some(Linear { buckets: 0, tick_ns: 0 }),
            stream: true,
        }),
        seed: 1,
        rounds: 1,
    };
    let traced = Traced { events: vec![String::new()], stacks: true, buffer: Some(0) };
    let plan = Plan {
        job: String::new(),
        steps: Vec::new(),
        rounds: 1,
        // Each row states what was left out.
        budget_ns: None,
        load: None,
        timeline: Some("/".into()),
        on_threshold: Some(OnThreshold {
            blame: true,
            worst: Some(0),
            actions: Vec::new(),
            trace_file: Some("/".into()),
            traced,
        }),
        criteria: Vec::new(),
        stop_when_exceeded: true,
        cpus: CpuList(Vec::new()),
        notes: Vec::new(),
    };
    let (step, mut plan) = (object(&step), object(&plan));
    // The CPUs of the run are a fact of their own.
    plan.remove("cpus");
    (step, plan)
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The values of the fields that a template has, by path: those of its objects each, `null` where there is none.
fn fields(like: &Map<String, Value>, of: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut fields = Vec::new();
    for (name, like) in like.iter().filter(|(name, _)| !OTHERWISE.contains(&name.as_str())) {
        let value = of.get(name).cloned().unwrap_or_default();
        match like {
            Value::Object(inner) => {
                let inner = inner.keys().map(|field| (format!("{name}.{field}"), value[field].clone()));
                fields.extend(inner);
            }
            _ => fields.push((name.clone(), value)),
        }
    }
    fields
}

/// A value as text; what is not set is `no`.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => "no".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(all) if all.is_empty() => "no".to_owned(),
        Value::Array(all) => all.iter().map(format_value).collect::<Vec<String>>().join(", "),
        Value::Object(all) => {
            let fields = all.iter().map(|(name, value)| format!("{name} {}", format_value(value)));
            fields.collect::<Vec<String>>().join(", ")
        }
    }
}

/// The values of several steps: one if they are alike, else each with the number of its steps.
fn combine_values(values: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    if let (1, Some(value)) = (counts.len(), values.first()) {
        return value.clone();
    }
    let each = counts.iter().map(|(value, steps)| format!("{value} ({steps} of {} steps)", values.len()));
    each.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests;
