//! The result of a run, and its file.
//!
//! A [`Measurement`] is one point: a probe with its parameters. A curve or a
//! matrix is the set of points that differ only in the parameters the probe
//! declares as axes; there is no other container.

use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::plan::{Params, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The schema of result files that this version writes and reads.
pub const SCHEMA: &str = "latscope/1";

/// A whole run: what was asked, where, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// RFC 3339 time of the start.
    pub started: String,
    /// RFC 3339 time of the end; `None` while incomplete.
    pub finished: Option<String>,
    /// What was to be measured.
    pub plan: Plan,
    /// Where.
    pub machine: Machine,
    /// What went wrong or needs to be known, each with a remedy.
    pub warnings: Vec<Warning>,
    /// Conclusions over several measurements.
    pub findings: Vec<Finding>,
    /// The points, in the order measured.
    pub measurements: Vec<Measurement>,
}

/// The program that wrote a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `latscope`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from; empty when unknown.
    #[serde(default)]
    pub commit: String,
}

/// Something a reader of the numbers must know, as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name.
    pub id: String,
    /// What happened.
    pub text: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// A conclusion over several points, in plain words and as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name: `cache-levels`, `effective-cache`, …
    pub id: String,
    /// The sentence.
    pub text: String,
    /// The numbers in it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
}

/// Whether a single operation was timed, or many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Each event was timed: quantiles speak of tails.
    Event,
    /// Too short to time alone: quantiles are the spread of batch means.
    Batch {
        /// Operations in a batch.
        ops: u64,
    },
}

/// What lies between the two stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// From one party to the other.
    OneWay,
    /// There and back.
    RoundTrip,
    /// One operation of one party.
    Operation,
}

/// How far a number can be trusted on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// Measured as it should be.
    #[default]
    Ok,
    /// Measured under conditions that distort it.
    Degraded,
    /// Could not be measured.
    Unsupported,
}

/// Bytes behind one operation, from which rates are derived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Elementary operations in what one duration stands for.
    pub ops: u64,
    /// Bytes the program asked for.
    pub bytes_touched: u64,
    /// Bytes the memory system had to move for it.
    pub bytes_moved: u64,
}

/// A named quantity that is no duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its unit: `%`, `GB/s`, `count`, `cycles`, `ns`, `ratio`, …
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
}

/// Which direction of a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less.
    Less,
    /// More.
    More,
    /// Neither.
    Neither,
}

/// The usual figures of a distribution, in ns. From p90 up a quantile with
/// fewer than ten samples above it is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names say it
pub struct Summary {
    pub count: u64,
    /// Samples thrown away because something else ran meanwhile.
    pub rejected: u64,
    /// Activations that should have taken place and did not.
    pub missed: u64,
    pub min: Option<f64>,
    pub p10: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    pub p99_99: Option<f64>,
    pub p99_999: Option<f64>,
    pub p99_9999: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// Core cycles of the median, from an add chain timed beside each batch.
    pub cycles: Option<f64>,
}

impl Summary {
    /// The figures of a histogram; what no histogram holds (rejected, missed,
    /// cycles) is taken from `other`.
    pub fn of(histogram: &Histogram, other: &Summary) -> Summary {
        Summary {
            count: histogram.count(),
            rejected: other.rejected,
            missed: other.missed,
            min: histogram.min(),
            p10: histogram.quantile(0.10),
            p50: histogram.quantile(0.50),
            p90: histogram.tail_quantile(0.90),
            p95: histogram.tail_quantile(0.95),
            p99: histogram.tail_quantile(0.99),
            p99_9: histogram.tail_quantile(0.999),
            p99_99: histogram.tail_quantile(0.9999),
            p99_999: histogram.tail_quantile(0.99999),
            p99_9999: histogram.tail_quantile(0.999999),
            max: histogram.max(),
            mean: histogram.mean(),
            cycles: other.cycles,
        }
    }
}

/// A stretch of a measurement in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Nanoseconds since the epoch of the run at its first sample.
    pub from: u64,
    /// Samples in it.
    pub count: u64,
    /// Their sum, in ticks of the histogram.
    pub sum: u64,
    /// The largest, in ticks of the histogram.
    pub max: u64,
}

/// One event worth naming, with what took its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlier {
    /// Nanoseconds since the epoch of the run.
    pub at: u64,
    /// CPU it happened on.
    pub cpu: u32,
    /// Its duration, ns.
    pub value: u64,
    /// Who took the time, largest share first.
    #[serde(default)]
    pub cause: Vec<Cause>,
}

/// A share of an outlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// `irq`, `softirq`, `nmi`, `thread`, `run-queue`, `lock`, `idle-exit`,
    /// `hypervisor`, `smi` or `unknown`.
    pub kind: String,
    /// Its name, where it has one.
    pub name: String,
    /// Process id; 0 where there is none.
    pub pid: u32,
    /// Its share, ns.
    pub ns: u64,
}

/// An event that took longer than the plan's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceedance {
    /// Its number among the events of its thread, from 0.
    pub turn: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC` at its end.
    pub at: u64,
    /// Its duration, ns.
    pub value: u64,
}

/// Where and how a thread ran that had a part in a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// What it did: `fifo-caller`, `other-caller`, `server`.
    pub role: String,
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// The CPU it was on.
    pub cpu: u32,
    /// The number of its policy: 0 is SCHED_OTHER, 1 SCHED_FIFO.
    pub policy: u32,
    /// Its real-time priority.
    pub priority: u32,
    /// Its nice value.
    pub nice: i32,
}

/// Exact records beside the histogram, kept only when the plan asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recordings {
    /// A linear histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearRecord>,
    /// The first events above the threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceedances: Vec<Exceedance>,
}

/// What an exact linear histogram holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinearRecord {
    /// Width of a bucket, ns.
    pub tick_ns: u64,
    /// Number of buckets; `counts` ends at the last one that is not empty.
    pub buckets: u64,
    /// Values in each bucket, from 0.
    pub counts: Vec<u64>,
    /// Values beyond the last bucket.
    pub overflow: u64,
    /// Turns of the first values beyond the last bucket, at most `buckets`.
    pub overflow_turns: Vec<u64>,
}

/// Whether what was asked of a measurement holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The worst of the checks.
    pub status: Status,
    /// One for each criterion.
    pub checks: Vec<Check>,
}

/// One criterion and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at: `max`, `p99_99`, `missed`, `threshold`.
    pub metric: String,
    /// The most it may be: ns, or a count.
    pub limit: f64,
    /// What it was; `None` where too few samples tell.
    pub value: Option<f64>,
    /// Whether it holds.
    pub status: Status,
    /// Why, in words: how sure that is.
    #[serde(default)]
    pub text: String,
}

/// How a criterion was judged, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It holds.
    Pass,
    /// It cannot be judged: too few samples, or measured under conditions
    /// that distort it.
    Inconclusive,
    /// It does not hold.
    Exceeded,
}

/// One point: what was measured, how far it can be trusted, and the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Probe id, `family.name`.
    pub probe: String,
    /// All its parameters.
    pub params: Params,
    /// What a reader calls it.
    #[serde(default)]
    pub title: String,
    /// Whether the survey's table has a row for it.
    #[serde(default)]
    pub row: bool,
    /// Event or batch.
    pub sampling: Sampling,
    /// One way, round trip or operation.
    pub times: Times,
    /// How far it can be trusted.
    pub support: Support,
    /// Why not fully.
    #[serde(default)]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(default)]
    pub remedy: Option<String>,
    /// The run ended before this point did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The usual figures, derived from the histogram.
    pub summary: Summary,
    /// Named quantities that are no durations.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Bytes behind one operation.
    #[serde(default)]
    pub work: Option<Work>,
    /// All clean samples.
    pub histogram: Histogram,
    /// The same in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Events worth naming.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<Outlier>,
    /// Who had a part in the first transactions, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Hop>,
    /// What would have been felt also by activations that never took place
    /// because one before them was late, where such can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Histogram>,
    /// Exact records that the plan asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recordings: Option<Recordings>,
    /// Whether what was asked of it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

impl Measurement {
    /// The figure shown for the point, in ns: the median.
    pub fn typical(&self) -> Option<f64> {
        self.summary.p50
    }

    /// Bytes touched per second at the median; `None` without work or time.
    pub fn rate_touched(&self) -> Option<f64> {
        self.rate(self.work?.bytes_touched)
    }

    /// Bytes moved by the memory system per second at the median.
    pub fn rate_moved(&self) -> Option<f64> {
        self.rate(self.work?.bytes_moved)
    }

    fn rate(&self, bytes: u64) -> Option<f64> {
        let ns = self.typical().filter(|ns| *ns > 0.0)?;
        (bytes > 0).then(|| bytes as f64 * 1e9 / ns)
    }
}

/// Why a file is not a result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No JSON, or not the fields of a result.
    #[error("it is not a latscope result, or a damaged one (choose a file that --json wrote)")]
    Damaged(#[from] serde_json::Error),
    /// Another program's JSON.
    #[error("it is not a latscope result, for it has no \"schema\" field (choose a file that --json wrote)")]
    Foreign,
    /// A schema this version does not know.
    #[error(
        "its schema is {0:?}, and this latscope reads {SCHEMA:?}: use the latscope that wrote it, or a newer one"
    )]
    Schema(String),
}

impl Report {
    /// Reads a result file's text. Summaries are computed anew from the
    /// histograms; nothing in the file is trusted.
    ///
    /// # Errors
    /// The text is damaged, foreign, or of another schema.
    pub fn from_json(text: &[u8]) -> Result<Report, LoadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        match serde_json::from_slice::<Head>(text)?.schema {
            None => return Err(LoadError::Foreign),
            Some(schema) if schema != SCHEMA => return Err(LoadError::Schema(schema)),
            Some(_) => {}
        }
        let mut report: Report = serde_json::from_slice(text)?;
        for m in &mut report.measurements {
            m.summary = Summary::of(&m.histogram, &m.summary);
        }
        Ok(report)
    }

    /// Writes the text of a result file piece by piece: as a whole it would take
    /// more memory than the report.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *to, self)?;
        to.write_all(b"\n")
    }

    /// The text of a result file.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        self.write_json(&mut text).expect("a report has a JSON form");
        String::from_utf8(text).expect("JSON is UTF-8")
    }

    /// The measurements of a probe, in order.
    pub fn of_probe<'a>(&'a self, probe: &'a str) -> impl Iterator<Item = &'a Measurement> {
        self.measurements.iter().filter(move |m| m.probe == probe)
    }
}
