//! The JSON of fio with its bins.

use super::bins::{Counted, Counts};
use super::report::{Source, finish, measurement};
use super::{from_json, has_names, time};
use latscope_core::histogram::Bins;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params, params};
use latscope_core::quality::{Level, Reason};
use latscope_core::report::{Measurement, Report, Semantics};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns true if a text has names that no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["fio version"])
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "fio version")]
    version: String,
    timestamp_ms: Option<u64>,
    #[serde(rename = "global options", default)]
    options: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
    #[serde(default)]
    sync: Direction,
}

#[derive(Default, Deserialize)]
struct Direction {
    slat_ns: Option<Latency>,
    clat_ns: Option<Latency>,
    lat_ns: Option<Latency>,
}

#[derive(Deserialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    bins: Option<Counts>,
}

/// Options that make a job another one; other differences are ignored.
const IDENTIFYING: [&str; 8] =
    ["rw", "readwrite", "bs", "blocksize", "ioengine", "iodepth", "direct", "numjobs"];

/// The bins of fio: each is named by its middle, and each power of two has 64.
const BINS: Bins = Bins { width: 1, per_octave: Some(64) };

/// Name of the last bin, ns, which also has all longer times.
const LAST_BIN: u64 = 17_112_760_320;

const UNKNOWN: &[&str] = &["options that are not in the name of a point"];

/// Reads the jobs of a run.
///
/// # Errors
/// The text has no bins, or is damaged.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let file: File = from_json(text)?;
    let version = file.version.strip_prefix("fio-").unwrap_or(&file.version).to_owned();
    let mut report = Source { program: "fio", version: Some(version), text, unknown: UNKNOWN }.report();
    report.finished = file.timestamp_ms.and_then(time::of_epoch);
    let mut measurements = Vec::new();
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    for job in &file.jobs {
        let number = numbers.entry(&job.jobname).or_insert(0);
        let several = file.jobs.iter().filter(|other| other.jobname == job.jobname).count() > 1;
        let params = job.params(&file.options, several.then_some(*number));
        *number += 1;
        measurements.extend(job.measurements(&params).map_err(|why| format!("job {}: {why}", job.jobname))?);
    }
    if measurements.is_empty() {
        return Err("it has no latency with bins: run fio with --output-format=json+".to_owned());
    }
    finish(report, measurements)
}

impl Job {
    /// Parameters that identify the job; for several jobs of one name also its number.
    fn params(&self, global: &BTreeMap<String, String>, number: Option<u64>) -> Params {
        let mut all = params([("job", self.jobname.as_str().into())]);
        for name in IDENTIFYING {
            if let Some(value) = self.options.get(name).or_else(|| global.get(name)) {
                all.insert(name.to_owned(), value.as_str().into());
            }
        }
        all.extend(number.map(|number| ("number".to_owned(), ParamValue::from(number))));
        all
    }

    fn measurements(&self, params: &Params) -> Result<Vec<Measurement>, String> {
        let directions =
            [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("sync", &self.sync)];
        let mut measurements = Vec::new();
        for (direction, of) in directions {
            for (name, latency) in [("slat", &of.slat_ns), ("clat", &of.clat_ns), ("lat", &of.lat_ns)] {
                let Some((latency, bins)) = latency
                    .as_ref()
                    .and_then(|latency| Some((latency, latency.bins.as_ref()?)))
                    .filter(|(latency, _)| latency.count > 0)
                else {
                    continue;
                };
                let histogram = latency.counted(bins).map_err(|why| format!("{direction}, {name}: {why}"))?;
                let mut params = params.clone();
                params.insert(param::DIRECTION.to_owned(), direction.into());
                params.insert("latency".to_owned(), name.into());
                let number = params.get("number").map(|number| format!(" {number}")).unwrap_or_default();
                let title = format!("{}{number}: {direction}, {name}", self.jobname);
                let mut m = measurement("imported.fio", params, title, Semantics::Operation, histogram);
                if self.error != 0 {
                    m.lower(Reason::new(
                        Level::Degraded,
                        "calls-failed",
                        format!("the job ended with error {}", self.error),
                        "",
                    ));
                }
                measurements.push(m);
            }
        }
        Ok(measurements)
    }
}

impl Latency {
    fn counted(&self, Counts(counts): &Counts) -> Result<latscope_core::histogram::Histogram, String> {
        let sum = counts.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        if sum != Some(self.count) {
            return Err(format!("its bins do not add up to N, {}: it is damaged", self.count));
        }
        let known = counts.partition_point(|(value, _)| *value < LAST_BIN);
        let overflow = counts[known..].iter().map(|(_, n)| n).sum();
        let counted = Counted {
            tick_ps: 1_000,
            bins: Some(BINS),
            counts: &counts[..known],
            overflow,
            min: self.min,
            max: self.max,
            mean: Some(self.mean),
        };
        counted.histogram()
    }
}
