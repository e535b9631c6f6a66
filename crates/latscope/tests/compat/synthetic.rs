//! Results of an imaginary machine, in which every figure follows from the query.

use latscope_compat::PersonalityContext;
use latscope_compat::lmbench::find_program;
use latscope_compat::lmbench::job::{LmbenchJob, PointQuery};
use latscope_compat::lmbench::page::{LmbenchOutput, LmbenchPage};
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{MeasurementPoint, ParamValue, PlanStep};
use latscope_core::report::{
    Better, MeasuredQuantity, Measurement, OperationWork, Report, Sampling, Semantics, Summary, ToolVersion,
};
use latscope_engine::planner::{self, RunRequest};
use latscope_probes::{PlanInput, SurveyProfile};
use std::collections::BTreeMap;

fn number(query: &PointQuery, name: &str) -> Option<f64> {
    query.params.get(name)?.as_number().map(|number| number as f64)
}

/// Time on an imaginary machine, in ns. A load takes 1 up to 48 KiB, and 4.125 beyond. The TLB has 80 pages. Up to 8
/// chains of loads run in parallel.
fn ns(query: &PointQuery) -> f64 {
    let size = number(query, "size").unwrap_or(0.0);
    let is = |name: &str, value: &str| query.params.get(name) == Some(&ParamValue::from(value));
    match query.probe {
        "memory.latency" if size <= 48.0 * 1024.0 => 1.0,
        "memory.latency" => 4.125,
        "memory.tlb" if size <= 80.0 * 4096.0 => 1.0,
        "memory.tlb" => 8.25,
        "memory.parallelism" => 100.0 / number(query, "chains").unwrap_or(1.0).min(8.0),
        // A tenth of a nanosecond for each byte of a buffer; a copy has two.
        "memory.bandwidth" if is("operation", "copy") => size / 20.0,
        "memory.bandwidth" | "file.read" | "file.read-mmap" => size / 10.0,
        "memory.stream" => 1000.0,
        "cpu.cycle" => 0.3846,
        "cpu.div" if is("mode", "latency") => 6.25,
        _ if query.probe.starts_with("cpu.") && is("mode", "throughput") => 0.125,
        _ if query.probe.starts_with("cpu.") => 0.3125,
        "file.write" => size,
        _ if query.probe.starts_with("file.") => 10_000.0,
        "sync.ring" => 3_370.0,
        "process.fork" => 178_218.8,
        "syscall.page-fault" if is("mode", "file-mapped") => 3_000.0,
        "syscall.page-fault" => 250.0,
        _ => 2_135.0,
    }
}

fn work(query: &PointQuery) -> Option<OperationWork> {
    let size = number(query, "size")?;
    let is = |name: &str, value: &str| query.params.get(name) == Some(&ParamValue::from(value));
    let threads = number(query, "threads").unwrap_or(1.0);
    let touched = match query.probe {
        "memory.bandwidth" => {
            // As the probe: of a copy half of the memory is read, the other half written.
            let buffers = if is("operation", "copy") { 2.0 } else { 1.0 };
            let share = if is("step", "fourth") { 0.25 } else { 1.0 };
            size / buffers * threads * share
        }
        "memory.stream" => {
            threads * if is("operation", "copy") || is("operation", "scale") { 16e3 } else { 24e3 }
        }
        _ if query.probe.ends_with("-bandwidth") => 8e3,
        _ => return None,
    };
    Some(OperationWork { ops: 1, bytes_touched: touched as u64, bytes_moved: touched as u64 })
}

pub fn measured(query: &PointQuery) -> Measurement {
    let value = |name: &str, ns: f64| {
        BTreeMap::from([(
            name.to_owned(),
            MeasuredQuantity { value: ns, unit: "ns".to_owned(), better: Better::Less },
        )])
    };
    let point = MeasurementPoint {
        probe: query.probe.to_owned(),
        revision: 1,
        params: query.params.clone(),
        title: String::new(),
        row: false,
    };
    let round_trip = ["sync.", "ipc."].iter().any(|family| query.probe.starts_with(family));
    let times = if round_trip { Semantics::RoundTrip } else { Semantics::Operation };
    let sampling = Sampling::Batch { ops: 1000 };
    Measurement {
        summary: Summary { count: 469, p50: Some(ns(query)), ..Summary::default() },
        values: match query.probe {
            "sync.ring" => value("self", 670.0),
            "syscall.signal-deliver" => value("nothing-sent", 491.0),
            _ => BTreeMap::new(),
        },
        work: work(query),
        ..Measurement::from_samples(point, sampling, times, Histogram::new(1))
    }
}

/// Page that a job prints if each of its queries is a planned point, and these are the measurements.
pub fn printed(job: LmbenchJob, measurements: Vec<Measurement>) -> LmbenchPage {
    let planned: Vec<_> = (0..job.queries.len()).map(|point| Some((0, point))).collect();
    let point = |query: &PointQuery| MeasurementPoint {
        probe: query.probe.to_owned(),
        revision: 1,
        params: query.params.clone(),
        title: String::new(),
        row: false,
    };
    let points = job.queries.iter().map(point).collect();
    let step = PlanStep::new("", points, Vec::new(), SurveyProfile::Normal.stop_conditions());
    let request = RunRequest::new("", PlanInput::default());
    let plan = planner::of_steps(vec![step], &request, &Machine::default());
    let report = Report::new(ToolVersion::default(), String::new(), plan, Machine::default());
    job.print(&planned, &Report { measurements, ..report })
}

pub fn job(words: &[&str]) -> LmbenchJob {
    let program = find_program(words[0]).unwrap_or_else(|| panic!("{} is a personality", words[0]));
    program
        .read_call(&PersonalityContext::new(words[1..].iter().copied()))
        .unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

pub fn output(words: &[&str]) -> LmbenchOutput {
    let job = job(words);
    let measurements = job.queries.iter().map(measured).collect();
    printed(job, measurements).output(words[0])
}
