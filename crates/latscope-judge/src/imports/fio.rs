//! The JSON of fio with its bins.

use super::bins::{BinCounts, ImportHistogram};
use super::checks::StatedNumber;
use super::report::{ImportSource, check_length, finish, measurement, note_watched};
use super::{from_json, has_names, time};
use latscope_core::histogram::HistogramBinning;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params, params};
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Measurement, Report, Semantics};
use latscope_core::units::counted;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns true if a text has names that no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["fio version"])
}

#[derive(Deserialize)]
struct FioJsonFile {
    #[serde(rename = "fio version")]
    version: String,
    timestamp_ms: Option<u64>,
    #[serde(rename = "global options", default)]
    options: BTreeMap<String, String>,
    jobs: Vec<FioJsonJob>,
}

#[derive(Deserialize)]
struct FioJsonJob {
    jobname: String,
    #[serde(default)]
    error: i64,
    /// Operations that failed, where the job goes on after an error.
    #[serde(default)]
    total_err: u64,
    #[serde(default)]
    first_error: i64,
    /// Time of the job, ms; of grouped jobs the sum of their times.
    #[serde(default)]
    job_runtime: u64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: FioDirectionStats,
    #[serde(default)]
    write: FioDirectionStats,
    #[serde(default)]
    trim: FioDirectionStats,
    #[serde(default)]
    sync: FioDirectionStats,
}

#[derive(Default, Deserialize)]
struct FioDirectionStats {
    /// Time from the first to the last operation of the direction, ms.
    #[serde(default)]
    runtime: u64,
    /// Operations that were transferred in part only.
    #[serde(default)]
    short_ios: u64,
    /// Operations that were given up.
    #[serde(default)]
    drop_ios: u64,
    slat_ns: Option<FioLatencyStats>,
    clat_ns: Option<FioLatencyStats>,
    lat_ns: Option<FioLatencyStats>,
}

#[derive(Deserialize)]
struct FioLatencyStats {
    min: u64,
    max: u64,
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    bins: Option<BinCounts>,
}

/// Options that make a job another one; other differences are ignored.
const IDENTIFYING: [&str; 8] =
    ["rw", "readwrite", "bs", "blocksize", "ioengine", "iodepth", "direct", "numjobs"];

/// Option by which the jobs of a group are reported as one.
const GROUPED: &str = "group_reporting";

/// The bins of fio: each is named by its middle, and each power of two has 64.
const BINS: HistogramBinning = HistogramBinning { per_octave: Some(64), ..HistogramBinning::of_width(1) };

/// Name of the last bin, ns, which also has all longer times.
const LAST_BIN: u64 = 17_112_760_320;

const UNKNOWN: &[&str] = &["options that are not in the name of a point"];

/// Reads the jobs of a run.
///
/// # Errors
/// The text has no bins, or is damaged.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let file: FioJsonFile = from_json(text).map_err(|why| match why.contains("several outputs") {
        true => format!("{why} (--status-interval writes several)"),
        false => why,
    })?;
    let version = file.version.strip_prefix("fio-").unwrap_or(&file.version).to_owned();
    let mut report = ImportSource { program: "fio", version: Some(version), text, unknown: UNKNOWN }.report();
    report.finished = file.timestamp_ms.and_then(time::of_epoch);
    let mut measurements = Vec::new();
    check_length(file.jobs.len(), "jobs")?;
    let mut alike: BTreeMap<&str, u64> = BTreeMap::new();
    file.jobs.iter().for_each(|job| *alike.entry(&job.jobname).or_insert(0) += 1);
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    for job in &file.jobs {
        let number = numbers.entry(&job.jobname).or_insert(0);
        let several = alike[job.jobname.as_str()] > 1;
        let params = job.params(&file.options, several.then_some(*number));
        *number += 1;
        let grouped = [&job.options, &file.options].iter().any(|options| options.contains_key(GROUPED));
        let of_job = job.measurements(&params, if grouped { 0 } else { job.job_runtime });
        measurements.extend(of_job.map_err(|why| format!("job {}: {why}", job.jobname))?);
    }
    if measurements.is_empty() {
        return Err("it has no latency with bins: run fio with --output-format=json+".to_owned());
    }
    finish(report, measurements)
}

impl FioJsonJob {
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

    /// Returns what failed in a direction of the job, in words.
    fn failures(&self, of: &FioDirectionStats) -> Option<String> {
        let ended = (self.error != 0).then(|| format!("the job ended with error {}", self.error));
        let failed = (self.total_err > 0).then(|| {
            format!(
                "{} of the job failed, first with error {}",
                counted(self.total_err, "operation"),
                self.first_error
            )
        });
        let partial = (of.short_ios > 0)
            .then(|| format!("{} transferred less than asked", counted(of.short_ios, "operation")));
        let dropped = (of.drop_ios > 0).then(|| format!("{} dropped", counted(of.drop_ios, "operation")));
        let all: Vec<String> = [ended, failed, partial, dropped].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The points of the job, which took `job_ms` in all if that is known.
    fn measurements(&self, params: &Params, job_ms: u64) -> Result<Vec<Measurement>, String> {
        let directions =
            [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("sync", &self.sync)];
        let mut measurements = Vec::new();
        let longest = directions.iter().map(|(_, of)| of.runtime).max().unwrap_or(0);
        for (direction, of) in directions {
            // Of syncs no time is stated: they are between the other operations.
            let known = [of.runtime, longest, job_ms].into_iter().find(|ms| *ms > 0);
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
                note_watched(&mut m, known.unwrap_or(0) as f64 / 1e3)?;
                if let Some(why) = self.failures(of) {
                    m.lower(Reason::new(QualityLevel::Degraded, "calls-failed", why, ""));
                }
                measurements.push(m);
            }
        }
        Ok(measurements)
    }
}

impl FioLatencyStats {
    fn counted(&self, BinCounts(counts): &BinCounts) -> Result<latscope_core::histogram::Histogram, String> {
        let known = counts.partition_point(|(value, _)| *value < LAST_BIN);
        let overflow = counts[known..].iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let counted = ImportHistogram {
            tick_ps: 1_000,
            bins: Some(BINS),
            counts: &counts[..known],
            overflow: overflow.ok_or("its counts are larger than any can be")?,
            overflow_from: Some(BINS.around(LAST_BIN, LAST_BIN).0),
            count: Some(self.count),
            min: self.min,
            max: self.max,
            // fio adds the mean up as it goes, with the error of its sums.
            mean: Some(StatedNumber::to_step(self.mean, 1e-3 + 1e-6 * self.mean.abs())),
        };
        counted.histogram()
    }
}
