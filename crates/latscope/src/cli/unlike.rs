//! Values of parameters that were asked for and that a plan does not have: what it has instead, or from where on a probe
//! takes them. No value is rounded without a note.

use latscope_core::machine::Machine;
use latscope_core::plan::{ParamValue, Plan};
use latscope_core::units::{format_size, parse_size};
use latscope_engine::planner::Request;
use latscope_probes::{Kind, Param, PlanInput, Probe};
use std::collections::BTreeSet;

/// Returns notes on each probe and parameter whose values are not all in the plan as they were asked for.
pub(super) fn notes(probes: &[&Probe], request: &Request, machine: &Machine, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for probe in probes {
        // A node can be `all`.
        let params = probe.params.iter().filter(|param| !matches!(param.kind, Kind::Nodes | Kind::Stated));
        let mut params: Vec<&Param> = params.collect();
        params.sort_by_key(|param| param.kind != Kind::Size);
        let is_measured =
            plan.steps.iter().flat_map(|step| &step.points).any(|point| point.probe == probe.id);
        let before = notes.len();
        for param in params {
            // Where nothing is left to measure, a size explains it.
            if !is_measured && notes.len() > before {
                break;
            }
            let Some(asked) = request.input.values.get(param.name) else { continue };
            let asked: Vec<&ParamValue> = asked.iter().filter(|value| takes(param, value)).collect();
            let planned = planned(probe, param, plan);
            notes.extend(rounded(probe, param, &asked, &planned));
            notes.extend(left_out(probe, param, &asked, &planned, &request.input, machine));
        }
    }
    notes
}

/// Returns true unless the value is a word of other probes.
fn takes(param: &Param, value: &ParamValue) -> bool {
    match (param.kind, value) {
        (Kind::Choice(words), ParamValue::Text(word)) => words.iter().any(|(known, _)| known == word),
        _ => true,
    }
}

/// Values of a parameter in the points of a probe.
fn planned<'a>(probe: &Probe, param: &Param, plan: &'a Plan) -> BTreeSet<&'a ParamValue> {
    let points = plan.steps.iter().flat_map(|step| &step.points).filter(|point| point.probe == probe.id);
    points.filter_map(|point| point.params.get(param.name)).collect()
}

/// Returns a note on values in whose place smaller ones are measured. Only sizes and numbers have such.
fn rounded(
    probe: &Probe,
    param: &Param,
    asked: &[&ParamValue],
    planned: &BTreeSet<&ParamValue>,
) -> Option<String> {
    let rounds = asked.iter().any(|value| !planned.contains(value) && has_less(planned, value));
    let unasked = planned.iter().any(|value| !asked.contains(value));
    let measured: Vec<&ParamValue> = planned.iter().copied().collect();
    let (id, name, measured) = (probe.id, param.name, listed(param, &measured));
    match param.kind {
        Kind::Size if rounds || unasked => {
            Some(format!("--{name}: {id} rounds it down and measures {measured}"))
        }
        Kind::Number if rounds => Some(format!("--{name}: {id} measures no more than {measured}")),
        _ => None,
    }
}

/// Returns true if a smaller value is planned.
fn has_less(planned: &BTreeSet<&ParamValue>, value: &ParamValue) -> bool {
    planned.iter().any(|other| *other < value)
}

/// Returns a note on values for which there is no point, nor one of a smaller value in their place.
fn left_out(
    probe: &Probe,
    param: &Param,
    asked: &[&ParamValue],
    planned: &BTreeSet<&ParamValue>,
    input: &PlanInput,
    machine: &Machine,
) -> Option<String> {
    let has_place = matches!(param.kind, Kind::Size | Kind::Number);
    let missing = asked.iter().copied().filter(|value| !planned.contains(value));
    let missing: Vec<&ParamValue> =
        missing.filter(|value| !(has_place && has_less(planned, value))).collect();
    let largest = missing.iter().copied().max()?;
    let least = if param.kind == Kind::Size { smallest(probe, param, largest, input, machine) } else { None };
    let least =
        least.map_or(String::new(), |least| format!(": it takes {} or more", text(param, &least.into())));
    Some(format!("--{} {}: {} has no row of that{least}", param.name, listed(param, &missing), probe.id))
}

/// Smallest size that a probe measures above `value`, with the other values as they were asked for.
fn smallest(
    probe: &Probe,
    param: &Param,
    value: &ParamValue,
    input: &PlanInput,
    machine: &Machine,
) -> Option<u64> {
    let mut input = input.clone();
    let mut size = value.number()?.checked_next_power_of_two()?;
    while size < 1 << 40 {
        input.values.insert(param.name.to_owned(), vec![size.into()]);
        let points = (probe.plan)(probe, &input, machine);
        if let Some(least) = points.iter().filter_map(|point| point.params.get(param.name)?.number()).min() {
            return Some(least);
        }
        size *= 2;
    }
    None
}

/// Returns a value as it is given on the command line.
fn text(param: &Param, value: &ParamValue) -> String {
    match value {
        ParamValue::Number(bytes) if param.kind == Kind::Size => {
            let whole = parse_size(&format_size(*bytes)).is_ok_and(|size| size == *bytes);
            if whole { format_size(*bytes) } else { format!("{bytes} B") }
        }
        value => value.to_string(),
    }
}

/// Texts with commas, and `and` before the last.
fn listed(param: &Param, values: &[&ParamValue]) -> String {
    let texts: Vec<String> = values.iter().map(|value| text(param, value)).collect();
    match texts.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => texts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::family;
    use super::*;
    use latscope_probes::find;

    /// The notes on a request to a probe, or the error that nothing is left to measure.
    fn said(probe: &str, values: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut input = PlanInput::default();
        for (name, text) in values {
            let values = text.split(',').map(|value| value.parse().map_or(value.into(), ParamValue::Number));
            input.values.insert((*name).to_owned(), values.collect());
        }
        let machine = Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() };
        let plan = family::plan(&[find(probe).unwrap()], &Request::new("memory", input), &machine);
        plan.map(|plan| plan.notes).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_measured_as_it_was_asked_for_has_no_note() {
        for (probe, values) in [
            ("memory.latency", [("size", "5120,16384"), ("pages", "2MiB")]),
            ("memory.latency", [("order", "stride"), ("stride", "128,256")]),
            ("memory.loaded", [("threads", "0,1"), ("delay", "5")]),
            ("memory.bandwidth", [("size", "4096"), ("threads", "1,2")]),
        ] {
            assert_eq!(said(probe, &values), Ok(Vec::new()), "{probe} {values:?}");
        }
    }

    #[test]
    fn a_size_below_the_smallest_is_refused_with_that() {
        for (probe, values, least) in [
            ("memory.latency", vec![("size", "7")], "64 B"),
            ("memory.latency", vec![("size", "5120"), ("order", "page"), ("pages", "2MiB")], "2 MiB"),
            ("memory.single-load", vec![("size", "63")], "64 B"),
            ("memory.parallelism", vec![("size", "1")], "64 B"),
            ("memory.loaded", vec![("size", "1")], "64 B"),
            ("memory.tlb", vec![("size", "100")], "4 KiB"),
            ("memory.bandwidth", vec![("size", "100")], "1 KiB"),
            ("memory.stream", vec![("size", "100"), ("threads", "1")], "64 KiB"),
            ("memory.sequential-sum", vec![("size", "100")], "512 B"),
        ] {
            let error = said(probe, &values).unwrap_err();
            let expected = format!("{probe} has no row of that: it takes {least} or more");
            assert!(error.ends_with(&expected), "{error}");
        }
    }

    #[test]
    fn what_is_rounded_or_left_out_is_said() {
        let notes = said("memory.latency", &[("size", "7,100"), ("order", "random")]).unwrap();
        let expected = [
            "--size: memory.latency rounds it down and measures 64 B",
            "--size 7 B: memory.latency has no row of that: it takes 64 B or more",
        ];
        assert_eq!(notes, expected);
        let notes = said("memory.latency", &[("size", "4160"), ("order", "random,page")]).unwrap();
        assert_eq!(notes, ["--size: memory.latency rounds it down and measures 4 KiB and 4160 B"]);
        let notes = said("memory.latency", &[("size", "64,100"), ("order", "random")]).unwrap();
        assert_eq!(notes, ["--size: memory.latency rounds it down and measures 64 B"]);
        let notes = said("memory.latency", &[("size", "64"), ("order", "random,page")]).unwrap();
        assert_eq!(notes, ["--order page: memory.latency has no row of that"]);
        let notes = said("thread.pool", &[("threads", "5000")]).unwrap();
        assert_eq!(notes, ["--threads: thread.pool measures no more than 1024"]);
    }
}
