//! Results in the form in which they are judged beside others, without the data that grow with time. Most of the file
//! of a full survey is samples in order of time. They are skipped unread, so that forty surveys fit into memory.

use crate::verdict::tested;
use latscope_core::machine::Machine;
use latscope_core::plan::Params;
use latscope_core::report::{LoadError, Measurement, Report, Sampling};
use std::collections::BTreeMap;

/// A result without its time series.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The result; its measurements have neither blocks, outliers, hops nor exact recordings, and it has no
    /// findings.
    pub report: Report,
    /// Requested length of a batch of each measurement, ns.
    batch_ns: Vec<Option<u64>>,
}

impl RunResult {
    /// Reads a result file's text in one pass, without its blocks, as by [`Report::from_json_without_blocks`].
    ///
    /// # Errors
    /// The text is damaged, foreign, or of another schema.
    pub fn from_json(text: &[u8]) -> Result<RunResult, LoadError> {
        Report::from_json_without_blocks(text).map(RunResult::from_report)
    }

    /// The run of a result that was read or measured otherwise.
    pub fn from_report(mut report: Report) -> RunResult {
        report.findings = Vec::new();
        for m in &mut report.measurements {
            (m.blocks, m.outliers, m.hops, m.recordings) = (Vec::new(), Vec::new(), Vec::new(), None);
        }
        RunResult::with_evidence(report)
    }

    /// Returns true if two results are of one run.
    pub fn is_same(&self, other: &RunResult) -> bool {
        let id = &self.report.run_id;
        if id.is_empty() { self == other } else { *id == other.report.run_id }
    }

    fn with_evidence(mut report: Report) -> RunResult {
        tested::note_missing(&mut report);
        let batch_ns = batch_targets(&report);
        RunResult { report, batch_ns }
    }

    /// The measurements in order, each with the requested length of a batch, ns, which is part of the identity of the
    /// point. `None` for single events, and if the plan has no such point.
    pub fn points(&self) -> impl Iterator<Item = (&Measurement, Option<u64>)> {
        self.report.measurements.iter().zip(self.batch_ns.iter().copied())
    }
}

/// The stable name of a point: its probe and all parameters, `wake.timer[cpu=0,interval=1000000]`.
pub fn point_id(probe: &str, params: &Params) -> String {
    let params: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if params.is_empty() { probe.to_owned() } else { format!("{probe}[{}]", params.join(",")) }
}

/// Name and processor of a machine, as far as known.
pub(crate) fn machine_name(machine: &Machine) -> String {
    let parts = [machine.name.as_str(), &machine.cpu_model];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Least and greatest of some values; twice the default of their type if there are none.
pub(crate) fn extremes<T: Ord + Clone + Default>(values: impl Iterator<Item = T>) -> [T; 2] {
    let values: Vec<T> = values.collect();
    [values.iter().min(), values.iter().max()].map(|value| value.cloned().unwrap_or_default())
}

/// The runs without duplicates, and a sentence for each duplicate. Runs without a name, as imported ones, are
/// duplicates if they are equal.
pub fn remove_duplicates(runs: Vec<(String, RunResult)>) -> (Vec<(String, RunResult)>, Vec<String>) {
    let mut kept: Vec<(String, RunResult)> = Vec::new();
    let mut twice = Vec::new();
    for (name, run) in runs {
        match kept.iter().find(|(_, other)| other.is_same(&run)) {
            Some((other, _)) => twice.push(format!("{name} is the same run as {other}: it is counted once")),
            None => kept.push((name, run)),
        }
    }
    (kept, twice)
}

/// [`Report::batch_target`] of all measurements at once.
fn batch_targets(report: &Report) -> Vec<Option<u64>> {
    // The first step that plans a point counts.
    let steps = report.plan.steps.iter().rev();
    let planned: BTreeMap<(&str, &Params), u64> = steps
        .flat_map(|step| step.points.iter().map(|point| ((&*point.probe, &point.params), step.stop.batch_ns)))
        .collect();
    let targets = report.measurements.iter().map(|m| match m.sampling {
        Sampling::Batch { .. } => planned.get(&(&*m.probe, &m.params)).copied(),
        _ => None,
    });
    targets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    fn text(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
        let mut value: serde_json::Value = serde_json::from_str(&fixture::report().to_json()).unwrap();
        change(&mut value);
        serde_json::to_vec(&value).unwrap()
    }

    #[test]
    fn a_run_is_its_report_without_what_grows_with_time() {
        for report in [fixture::report(), fixture::wake(), fixture::ipc::latency()] {
            let read = Report::from_json(report.to_json().as_bytes()).unwrap();
            let run = RunResult::from_json(report.to_json().as_bytes()).unwrap();
            assert_eq!(run, RunResult::from_report(read.clone()));
            let targets: Vec<Option<u64>> = run.points().map(|(_, target)| target).collect();
            let expected: Vec<Option<u64>> = read.measurements.iter().map(|m| read.batch_target(m)).collect();
            assert_eq!(targets, expected);
        }
        let batched = RunResult::from_report(fixture::report());
        assert!(batched.points().any(|(_, target)| target.is_some()));
    }

    #[test]
    fn what_is_no_result_of_ours_is_refused_as_by_the_report() {
        let deep = [r#"{"schema": "latscope/1", "blocks": "#, &"[".repeat(10_000), &"]".repeat(10_000), "}"];
        let changed =
            |pointer: &str, to: serde_json::Value| text(|value| *value.pointer_mut(pointer).unwrap() = to);
        let whole = text(|_| {});
        let cases = [
            Vec::new(),
            b"[]".to_vec(),
            b"12".to_vec(),
            br#"{"results": []}"#.to_vec(),
            br#"{"schema": "fio/3"}"#.to_vec(),
            br#"{"schema": "latscope/1"}"#.to_vec(),
            br#"{"schema": NaN}"#.to_vec(),
            deep.concat().into_bytes(),
            changed("/schema", "latscope/2".into()),
            changed("/measurements/0/histogram/overflow", (-1).into()),
            changed("/measurements/0/summary/cycles", "NaN".into()),
            whole[..whole.len() / 2].to_vec(),
            [&whole[..], b"}"].concat(),
        ];
        for case in cases {
            let name = String::from_utf8_lossy(&case[..case.len().min(60)]).into_owned();
            let (run, report) = (RunResult::from_json(&case), Report::from_json(&case));
            let (run, report) = (run.unwrap_err(), report.unwrap_err());
            assert_eq!(run.to_string(), report.to_string(), "{name}");
        }
    }

    #[test]
    fn depth_and_counts_beyond_all_bounds_end_nothing() {
        let mut deep = fixture::report().to_json().trim_end().to_owned();
        assert_eq!(deep.pop(), Some('}'));
        deep += &format!(r#", "foreign": {}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert!(RunResult::from_json(deep.as_bytes()).is_ok());
        let typed = format!(r#"{{"schema": "latscope/1", "tool": {}"#, r#"{"name": "#.repeat(10_000));
        assert!(matches!(RunResult::from_json(typed.as_bytes()), Err(LoadError::Damaged(_))));
        let many = text(|value| {
            let histogram = &mut value["measurements"][0]["histogram"];
            histogram["buckets"][0][2] = 4_000_000_000_000_000u64.into();
        });
        let run = RunResult::from_json(&many).unwrap();
        assert!(run.report.measurements[0].summary.count >= 4_000_000_000_000_000);
    }
}
