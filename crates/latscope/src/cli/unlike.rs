//! Values of parameters that were asked for and that a plan does not have: what it has instead, or from where on a
//! probe takes them. No value is rounded without a note.

use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{MeasurementPoint, ParamValue, Plan};
use latscope_core::units::{format_size, parse_size};
use latscope_engine::planner::RunRequest;
use latscope_probes::{Param, ParamValueKind, PlanInput, Probe};
use std::collections::BTreeSet;

/// Returns notes on each probe and parameter whose values are not all in the plan as they were asked for.
pub(super) fn notes(probes: &[&Probe], request: &RunRequest, machine: &Machine, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for probe in probes {
        // A node can be `all`.
        let params = probe
            .params
            .iter()
            .filter(|param| !matches!(param.kind, ParamValueKind::Nodes | ParamValueKind::Stated));
        let mut params: Vec<&Param> = params.collect();
        params.sort_by_key(|param| param.kind != ParamValueKind::Size);
        let points = plan.steps.iter().flat_map(|step| &step.points).filter(|point| point.probe == probe.id);
        let points: Vec<&MeasurementPoint> = points.collect();
        let before = notes.len();
        for param in params {
            // Where nothing is left to measure, a size explains it.
            if points.is_empty() && notes.len() > before {
                break;
            }
            let Some(asked) = request.input.values.get(param.name) else { continue };
            let planned: BTreeSet<&ParamValue> =
                points.iter().filter_map(|point| point.params.get(param.name)).collect();
            // The usual value is measured, though no point states it.
            let unstated = UNSTATED.contains(&param.name)
                && points.iter().any(|point| !point.params.contains_key(param.name));
            let noted =
                |value: &&ParamValue| accepts_value(param, value) && (planned.contains(value) || !unstated);
            let asked: Vec<&ParamValue> = asked.iter().filter(noted).collect();
            let values = ProbeParamValues { probe, param, asked, planned };
            notes.extend(values.rounding_note());
            notes.extend(values.left_out(&request.input, machine));
        }
    }
    notes
}

/// Parameters whose usual value some points leave out, so that they are those of earlier versions.
const UNSTATED: [&str; 3] = [param::BUFFER, param::BY, param::PAGES];

/// Returns true unless the value is a word of other probes.
fn accepts_value(param: &Param, value: &ParamValue) -> bool {
    match (param.kind, value) {
        (ParamValueKind::Choice(words), ParamValue::Text(word)) => {
            words.iter().any(|(known, _)| known == word)
        }
        _ => true,
    }
}

/// Values of a parameter of a probe.
struct ProbeParamValues<'a> {
    probe: &'a Probe,
    param: &'a Param,
    asked: Vec<&'a ParamValue>,
    /// Values in the points of the plan.
    planned: BTreeSet<&'a ParamValue>,
}

impl ProbeParamValues<'_> {
    /// Returns a note on values in whose place smaller ones are measured. Only sizes and numbers have such.
    fn rounding_note(&self) -> Option<String> {
        let rounds = self.asked.iter().any(|value| !self.planned.contains(value) && self.has_less(value));
        let unasked = self.planned.iter().any(|value| !self.asked.contains(value));
        let measured: Vec<&ParamValue> = self.planned.iter().copied().collect();
        let (id, name, measured) = (self.probe.id, self.param.name, join_values(self.param, &measured));
        match self.param.kind {
            ParamValueKind::Size if rounds || unasked => {
                Some(format!("--{name}: {id} rounds it down and measures {measured}"))
            }
            ParamValueKind::Number if rounds => {
                Some(format!("--{name}: {id} measures no more than {measured}"))
            }
            _ => None,
        }
    }

    /// Returns true if a smaller value is planned.
    fn has_less(&self, value: &ParamValue) -> bool {
        self.planned.iter().any(|other| *other < value)
    }

    /// Returns a note on values for which there is no point, nor one of a smaller value in their place.
    fn left_out(&self, input: &PlanInput, machine: &Machine) -> Option<String> {
        let has_place = matches!(self.param.kind, ParamValueKind::Size | ParamValueKind::Number);
        let mut missing = self.asked.clone();
        missing.retain(|value| !(self.planned.contains(value) || has_place && self.has_less(value)));
        let least = self.smallest(missing.iter().max()?, input, machine);
        let least =
            least.map(|least| format!(": it takes {} or more", format_argument(self.param, &least.into())));
        let (least, name, id) = (least.unwrap_or_default(), self.param.name, self.probe.id);
        Some(format!("--{name} {}: {id} has no row of that{least}", join_values(self.param, &missing)))
    }

    /// Smallest size that the probe measures above `value`, with the other values as they were asked for.
    fn smallest(&self, value: &ParamValue, input: &PlanInput, machine: &Machine) -> Option<u64> {
        let name = self.param.name;
        let mut input = input.clone();
        let mut size = value
            .as_number()
            .filter(|_| self.param.kind == ParamValueKind::Size)?
            .checked_next_power_of_two()?;
        while size < 1 << 40 {
            input.values.insert(name.to_owned(), vec![size.into()]);
            let points = (self.probe.plan)(self.probe, &input, machine);
            if let Some(least) = points.iter().filter_map(|point| point.params.get(name)?.as_number()).min() {
                return Some(least);
            }
            size *= 2;
        }
        None
    }
}

/// Returns a value as it is given on the command line.
fn format_argument(param: &Param, value: &ParamValue) -> String {
    match value {
        ParamValue::Number(bytes) if param.kind == ParamValueKind::Size => {
            let whole = parse_size(&format_size(*bytes)).is_ok_and(|size| size == *bytes);
            if whole { format_size(*bytes) } else { format!("{bytes} B") }
        }
        value => value.to_string(),
    }
}

/// Texts with commas, and `and` before the last.
fn join_values(param: &Param, values: &[&ParamValue]) -> String {
    let texts: Vec<String> = values.iter().map(|value| format_argument(param, value)).collect();
    match texts.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => texts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::family;
    use super::*;
    use latscope_probes::find_probe;

    /// The notes on a request to a probe, or the error that nothing is left to measure.
    fn said(probe: &str, values: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut input = PlanInput::default();
        for (name, text) in values {
            let values = text.split(',').map(|value| value.parse().map_or(value.into(), ParamValue::Number));
            input.values.insert((*name).to_owned(), values.collect());
        }
        let machine = Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() };
        let plan =
            family::plan_request(&[find_probe(probe).unwrap()], &RunRequest::new("memory", input), &machine);
        plan.map(|plan| plan.notes).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_measured_as_it_was_asked_for_has_no_note() {
        for (probe, values) in [
            ("memory.latency", [("size", "5120,16384"), ("pages", "2MiB")]),
            ("memory.latency", [("order", "stride"), ("stride", "128,256")]),
            ("memory.loaded", [("threads", "0,1"), ("delay", "5")]),
            ("memory.bandwidth", [("size", "4096"), ("threads", "1,2")]),
            // Usual values, which no point states.
            ("memory.stream", [("threads", "1"), ("pages", "2MiB,4KiB")]),
            ("sync.pipe-bandwidth", [("size", "4096"), ("buffer", "0,16")]),
            ("sync.eventfd", [("placement", "same-core"), ("by", "instruction")]),
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
