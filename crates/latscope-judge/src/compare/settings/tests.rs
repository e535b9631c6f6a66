use super::*;
use crate::compare::environment::differences;
use crate::runs::RunResult;
use latscope_core::fixture;
use latscope_core::report::Warning;

/// The paths of all leaves of a value, and the value with each leaf changed to another of its kind.
fn changed(value: &Value, at: &str, changes: &mut Vec<(String, Value)>, whole: &dyn Fn(Value) -> Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let inside = |new: Value| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), new);
                    whole(Value::Object(fields))
                };
                changed(field, &format!("{at}.{name}"), changes, &inside);
            }
        }
        Value::Bool(is) => changes.push((at.to_owned(), whole((!is).into()))),
        Value::Number(number) => {
            changes.push((at.to_owned(), whole((number.as_u64().unwrap_or(0) + 1).into())));
        }
        Value::Null => changes.push((at.to_owned(), whole(7.into()))),
        Value::Array(_) => changes.push((at.to_owned(), whole(serde_json::json!([])))),
        Value::String(_) => {}
    }
}

fn names(a: &Report, b: &Report) -> Vec<String> {
    let [a, b] = [a, b].map(|report| RunResult::from_report(report.clone()));
    differences(&[&a], &[&b]).into_iter().map(|one| one.what).collect()
}

#[test]
fn every_recorded_setting_of_a_step_is_a_difference() {
    let mut report = fixture::wake();
    let step = &mut report.plan.steps[0];
    step.conditions.scratch_in = Some("/tmp".into());
    step.periodic.as_mut().unwrap().linear = Some(Linear { buckets: 10, tick_ns: 1000 });
    let mut changes = Vec::new();
    changed(&serde_json::to_value(&*step).unwrap(), "step", &mut changes, &|value| value);
    let own = ["step.rounds", "step.points"];
    let mut compared = 0;
    for (path, step) in changes.into_iter().filter(|(path, _)| !own.contains(&path.as_str())) {
        let mut other = report.clone();
        other.plan.steps[0] = serde_json::from_value(step).unwrap_or_else(|error| panic!("{path}: {error}"));
        let names = names(&report, &other);
        assert_eq!(names.len(), 1, "{path}: {names:?}");
        let field = names[0].strip_prefix("setting ").unwrap();
        assert!(path.starts_with(&format!("step.{field}")), "{path}: {field}");
        compared += 1;
    }
    assert!(compared >= 15, "{compared}");
}

#[test]
fn conditions_and_a_trace_that_differ_are_named() {
    let plain = fixture::wake();
    let mut as_is = plain.clone();
    as_is.plan.steps[0].conditions = Conditions::default();
    assert_eq!(
        names(&plain, &as_is),
        ["setting conditions.cpu_dma_latency", "setting conditions.lock_memory"]
    );
    let mut untraced = plain.clone();
    untraced.plan.on_threshold = None;
    let blame = |worst| Some(OnThreshold { blame: true, worst: Some(worst), ..OnThreshold::default() });
    let mut traced = untraced.clone();
    traced.plan.on_threshold = blame(10);
    assert_eq!(names(&untraced, &traced), ["setting on_threshold.blame", "setting on_threshold.worst"]);
    // A trace that could not be recorded is none.
    let mut failed = traced.clone();
    failed.warnings.push(Warning { id: "no-blame".to_owned(), text: String::new(), remedy: None });
    assert_eq!(names(&traced, &failed), ["setting on_threshold.blame"]);
    // The name of a file is no setting.
    let [mut one, mut other] = [traced.clone(), traced.clone()];
    (one.plan.timeline, other.plan.timeline) = (Some("a".into()), Some("b".into()));
    assert_eq!(names(&one, &other), [""; 0]);
    assert_eq!(names(&one, &traced), ["setting timeline"]);
}

#[test]
fn steps_of_one_side_alone_are_no_difference() {
    let plain = fixture::wake();
    let mut more = plain.clone();
    let mut step = more.plan.steps[0].clone();
    (step.name, step.conditions) = ("timer.signal".to_owned(), Conditions::default());
    more.plan.steps.push(step);
    assert_eq!(names(&plain, &more), [""; 0]);
    let all: BTreeMap<String, String> = settings(&more, None).into_iter().collect();
    assert_eq!(all["setting conditions.lock_memory"], "no (1 of 2 steps); yes (1 of 2 steps)");
}
