//! The JSON of fio with its bins.

use super::bins::{BinCounts, ImportHistogram};
use super::checks::StatedNumber;
use super::report::{ImportSource, check_length, finish_report, note_watched, sampled_point};
use super::{from_json, has_names, time};
use latscope_core::histogram::{Histogram, HistogramBinning};
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params, params};
use latscope_core::quality::{NOTHING_MEASURED, QualityLevel, Reason};
use latscope_core::report::{Measurement, Report, Semantics};
use latscope_core::units::count_with_noun;
use serde::Deserialize;
use serde::de::IgnoredAny;
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
    jobs: Option<Vec<FioJsonJob>>,
    /// Present instead of the jobs where others measured for this one.
    client_stats: Option<IgnoredAny>,
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
    /// All directions in one: `unified_rw_reporting`.
    #[serde(default)]
    mixed: FioDirectionStats,
}

#[derive(Default, Deserialize)]
struct FioDirectionStats {
    /// Time from the first to the last operation of the direction, ms.
    #[serde(default)]
    runtime: u64,
    /// Operations that were begun.
    total_ios: Option<u64>,
    /// Operations in a second.
    iops: Option<f64>,
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
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
}

/// Options that make a job another one; other differences are ignored.
const IDENTIFYING: [&str; 8] =
    ["rw", "readwrite", "bs", "blocksize", "ioengine", "iodepth", "direct", "numjobs"];

/// Option by which the jobs of a group are reported as one.
const GROUPED: &str = "group_reporting";

/// Options by which operations begin before what is measured. Of a group only the options of its last job are stated.
const RAMPED: [&str; 3] = ["ramp_time", "ramp_size", GROUPED];

/// Options whose syncs fio counts in a place of other figures.
const SYNCED: [&str; 3] = ["fdatasync", "sync_file_range", "syncfs"];

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
    let file: FioJsonFile = from_json(text).map_err(|why| {
        let hint = match () {
            () if why.contains("several outputs") => " (--status-interval writes several)",
            () if why.contains("missing field `N`") => " (fio counts its latencies from 3.18 on)",
            () => "",
        };
        why + hint
    })?;
    let version = file.version.strip_prefix("fio-").unwrap_or(&file.version).to_owned();
    let Some(jobs) = &file.jobs else {
        return Err(match file.client_stats {
            Some(_) => "it is of `fio --client`: run fio on the machine that it measures".to_owned(),
            None => "it has no jobs".to_owned(),
        });
    };
    if ["1.", "2."].iter().any(|old| version.starts_with(old)) {
        return Err(format!("it is of version {version}, whose latencies are in µs: measure with fio 3"));
    }
    let mut report =
        ImportSource { program: "fio", version: Some(version), text, unknown: UNKNOWN }.empty_report();
    report.finished = file.timestamp_ms.and_then(time::of_epoch);
    let mut measurements = Vec::new();
    check_length(jobs.len(), "jobs")?;
    let mut alike: BTreeMap<&str, u64> = BTreeMap::new();
    jobs.iter().for_each(|job| *alike.entry(&job.jobname).or_insert(0) += 1);
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    for job in jobs {
        let number = numbers.entry(&job.jobname).or_insert(0);
        let several = alike[job.jobname.as_str()] > 1;
        let params = job.params(&file.options, several.then_some(*number));
        *number += 1;
        let has = |name| [&job.options, &file.options].iter().any(|options| options.contains_key(name));
        let job_ms = if has(GROUPED) { 0 } else { job.job_runtime };
        let is_ramped = RAMPED.into_iter().any(has);
        let of_job = job.measurements(&params, job_ms, (is_ramped, SYNCED.into_iter().any(has)));
        measurements.extend(of_job.map_err(|why| format!("job {}: {why}", job.jobname))?);
    }
    if measurements.iter().all(|m| m.histogram.count() == 0) {
        return Err("it has no latency with bins: run fio with --output-format=json+".to_owned());
    }
    finish_report(report, measurements)
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
    fn failures(&self, of: &FioDirectionStats, is_synced: bool) -> Option<String> {
        let ended = (self.error != 0).then(|| format!("the job ended with error {}", self.error));
        let failed = (self.total_err > 0).then(|| {
            format!(
                "{} of the job failed, first with error {}",
                count_with_noun(self.total_err, "operation"),
                self.first_error
            )
        });
        let partial = (of.short_ios > 0 && !is_synced)
            .then(|| format!("{} transferred less than asked", count_with_noun(of.short_ios, "operation")));
        let dropped =
            (of.drop_ios > 0).then(|| format!("{} dropped", count_with_noun(of.drop_ios, "operation")));
        let all: Vec<String> = [ended, failed, partial, dropped].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The points of the job, which took `job_ms` in all if that is known. If it is ramped, operations that were
    /// begun before the measured time are counted as latencies only.
    fn measurements(
        &self,
        params: &Params,
        job_ms: u64,
        (is_ramped, is_synced): (bool, bool),
    ) -> Result<Vec<Measurement>, String> {
        let directions = [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
            ("sync", &self.sync),
            ("mixed", &self.mixed),
        ];
        let mut measurements = Vec::new();
        let longest = directions.iter().map(|(_, of)| of.runtime).max().unwrap_or(0);
        for (direction, of) in directions {
            // Before 3.43 syncs of data are not among the operations of sync.
            of.check_direction(is_ramped || is_synced && direction == "sync")
                .map_err(|why| format!("{direction}: {why}"))?;
            // Of syncs no time is stated: they are between the other operations.
            let known = [of.runtime, longest, job_ms].into_iter().find(|ms| *ms > 0);
            let before = measurements.len();
            for (name, latency) in of.latencies() {
                let Some(bins) = latency.filled_bins() else { continue };
                let histogram =
                    latency.to_histogram(bins).map_err(|why| format!("{direction}, {name}: {why}"))?;
                let mut m = self.job_point(params, Some((direction, name)), histogram);
                note_watched(&mut m, known.unwrap_or(0) as f64 / 1e3)?;
                if let Some(why) = self.failures(of, is_synced) {
                    m.lower(Reason::new(QualityLevel::Degraded, "calls-failed", why, ""));
                }
                if let Some(why) = of.lacks_parts() {
                    m.lower(Reason::new(QualityLevel::Degraded, "contradictory", why, ""));
                }
                measurements.push(m);
            }
            if let Some(number) = of.operation_count().filter(|_| measurements.len() == before) {
                let mut m = self.job_point(params, Some((direction, "clat")), Histogram::new(1_000));
                let why = format!(
                    "it has {}, and no bins of their latencies",
                    count_with_noun(number, "operation")
                );
                m.lower(Reason::new(QualityLevel::Unsupported, NOTHING_MEASURED, why, ""));
                measurements.push(m);
            }
        }
        if measurements.is_empty() {
            let mut m = self.job_point(params, None, Histogram::new(1_000));
            let why =
                self.failures(&self.read, is_synced).unwrap_or_else(|| "it has no operation".to_owned());
            m.lower(Reason::new(QualityLevel::Unsupported, NOTHING_MEASURED, why, ""));
            measurements.push(m);
        }
        Ok(measurements)
    }

    /// A point of the job: a direction and a latency of it, or the whole job.
    fn job_point(&self, params: &Params, of: Option<(&str, &str)>, histogram: Histogram) -> Measurement {
        let mut params = params.clone();
        let number = params.get("number").map(|number| format!(" {number}")).unwrap_or_default();
        let mut title = format!("{}{number}", self.jobname);
        if let Some((direction, latency)) = of {
            params.insert(param::DIRECTION.to_owned(), direction.into());
            params.insert("latency".to_owned(), latency.into());
            title = format!("{title}: {direction}, {latency}");
        }
        sampled_point("imported.fio", params, title, Semantics::Operation, histogram)
    }
}

impl FioDirectionStats {
    /// The latencies that are there, by name.
    fn latencies(&self) -> impl Iterator<Item = (&'static str, &FioLatencyStats)> {
        let all = [("slat", &self.slat_ns), ("clat", &self.clat_ns), ("lat", &self.lat_ns)];
        all.into_iter().filter_map(|(name, latency)| Some((name, latency.as_ref()?)))
    }

    /// Number of the operations; `None` if there was none.
    fn operation_count(&self) -> Option<u64> {
        let counts = self.latencies().map(|(_, latency)| latency.count);
        counts.chain(self.total_ios).max().filter(|number| *number > 0)
    }

    /// Checks that the figures of the direction can be of the same operations.
    fn check_direction(&self, is_ramped: bool) -> Result<(), String> {
        for (name, latency) in self.latencies() {
            latency.check_latency().map_err(|why| format!("{name}: {why}"))?;
            if let Some(all) = self.total_ios.filter(|all| !is_ramped && latency.count > *all) {
                return Err(format!(
                    "its N of {name}, {}, is above {all} operations: it is damaged",
                    latency.count
                ));
            }
        }
        self.check_rate()
    }

    /// Checks the rate against the number of operations and their time.
    fn check_rate(&self) -> Result<(), String> {
        let (Some(all), Some(iops)) = (self.total_ios, self.iops) else { return Ok(()) };
        let ms = self.runtime;
        let own = if ms > 0 { 1e3 * all as f64 / ms as f64 } else { 0.0 };
        match (iops - own).abs() <= 1e-3 + 1e-6 * own {
            true => Ok(()),
            false => Err(format!("its iops, {iops}, are not {all} operations in {ms} ms: it is damaged")),
        }
    }

    /// Returns what is wrong with the whole latency, which begins earlier than the completion latency that is a part of
    /// it. Some releases state this of sound runs: io_uring with `sqthread_poll`, groups whose jobs differ in options.
    fn lacks_parts(&self) -> Option<String> {
        let (part, whole) = (self.clat_ns.as_ref()?, self.lat_ns.as_ref()?);
        if part.count == 0 || whole.count == 0 {
            return None;
        }
        if part.count != whole.count {
            return Some(format!("its N of clat is {}, and of lat {}", part.count, whole.count));
        }
        let is_below = whole.min < part.min || whole.max < part.max;
        let is_wrong = is_below || whole.mean < part.mean - 1e-3 - 1e-6 * part.mean;
        is_wrong.then(|| "its lat is below its clat, which is a part of it".to_owned())
    }
}

impl FioLatencyStats {
    /// The bins, if there is a value in them, or there should be.
    fn filled_bins(&self) -> Option<&BinCounts> {
        let bins = self.bins.as_ref()?;
        (self.count > 0 || bins.0.iter().any(|(_, n)| *n > 0)).then_some(bins)
    }

    /// Checks the figures against each other, also where there are no bins.
    fn check_latency(&self) -> Result<(), String> {
        let FioLatencyStats { min, max, mean, .. } = self;
        let is_nothing = (*min, *max, *mean) == (0, 0, 0.0);
        if self.count == 0 && !is_nothing {
            return Err(format!("it counted nothing, and states {min}, {mean} and {max}: it is damaged"));
        }
        let slack = 1e-3 + 1e-6 * mean.abs();
        if *mean < *min as f64 - slack || *mean > *max as f64 + slack {
            return Err(format!("its mean, {mean}, is not between {min} and {max}: it is damaged"));
        }
        Ok(())
    }

    /// Checks that each bin has one name, and that each percentile is the bin in which the counts reach it.
    fn check_names(&self, BinCounts(counts): &BinCounts) -> Result<(), String> {
        let is_same = |pair: &&[(u64, u64)]| BINS.tick_range(pair[0].0, pair[0].0).1 >= pair[1].0;
        if let Some(pair) = counts.windows(2).find(is_same) {
            return Err(format!("{} and {} are names of one bin: it is damaged", pair[0].0, pair[1].0));
        }
        for (name, value) in &self.percentile {
            let percent: f64 = name.parse().map_err(|_| format!("its percentile {name:?} is no number"))?;
            let rank = percent / 100.0 * self.count as f64;
            let up_to = |end: u64| {
                let below = counts.iter().take_while(|(bin, _)| *bin <= end);
                below.fold(0u64, |sum, (_, n)| sum.saturating_add(*n)) as f64
            };
            let slack = 1e-6 * rank + 1e-6;
            if up_to(*value) < rank - slack || *value > 0 && up_to(*value - 1) > rank + slack {
                return Err(format!(
                    "its percentile {name}, {value}, is not that of its bins: it is damaged"
                ));
            }
        }
        Ok(())
    }

    fn to_histogram(&self, bins: &BinCounts) -> Result<Histogram, String> {
        self.check_names(bins)?;
        let BinCounts(counts) = bins;
        let known = counts.partition_point(|(value, _)| *value < LAST_BIN);
        let overflow = counts[known..].iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let counted = ImportHistogram {
            tick_ps: 1_000,
            bins: Some(BINS),
            counts: &counts[..known],
            overflow: overflow.ok_or("its counts are larger than any can be")?,
            overflow_from: Some(BINS.tick_range(LAST_BIN, LAST_BIN).0),
            count: Some(self.count),
            min: self.min,
            max: self.max,
            // fio adds the mean up as it goes, with the error of its sums.
            mean: Some(StatedNumber::to_step(self.mean, 1e-3 + 1e-6 * self.mean.abs())),
        };
        counted.histogram()
    }
}
