//! The result of one point: what was measured, how far it can be trusted, and the numbers.

use super::lost::MESSAGES_LOST;
use super::unsteady::{starved_reason, unsteady_reason};
use super::{
    Account, Contention, Outlier, Recordings, RemoteIdentity, SampleBlock, Tested, TransactionHop, Verdict,
};
use crate::account::add_known;
use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::modes::{Mixture, TWO_MODES};
use crate::param;
use crate::plan::{MeasurementPoint, ParamValue, Params};
use crate::quality::{
    IMPORTED, NOTHING_MEASURED, Quality, QualityLevel, Reason, SHARED_CACHE, THROTTLED, WAITED_FOR_A_CPU,
};
use crate::rounds::{self, Prediction, ReplicationUnit, RoundSummary};
use crate::value::MeasuredQuantity;
use crate::{bounds, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kind of a sample: a single operation, or many operations timed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Each event was timed: quantiles speak of tails.
    Event,
    /// Too short to time alone: quantiles are the spread of batch means.
    Batch {
        /// Operations in a batch; 0 where an imported result does not say.
        ops: u64,
    },
}

/// Meaning of the time between the two stamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Semantics {
    /// From one endpoint to the other.
    OneWay,
    /// From one endpoint to the other and back.
    RoundTrip,
    /// An operation of one endpoint.
    #[default]
    Operation,
}

impl Semantics {
    /// In words: `one way`, `round trip`, `operation`.
    pub fn display_name(self) -> &'static str {
        match self {
            Semantics::OneWay => "one way",
            Semantics::RoundTrip => "round trip",
            Semantics::Operation => "operation",
        }
    }
}

/// Bytes behind one operation, from which rates are derived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationWork {
    /// Elementary operations in what one duration stands for.
    pub ops: u64,
    /// Bytes the program asked for.
    pub bytes_touched: u64,
    /// Bytes the memory system has to move for it, if no cache holds them.
    pub bytes_moved: u64,
}

/// The usual figures of a distribution, in ns. From p90 up a quantile with
/// fewer than ten samples above it is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of samples. They are clean unless the quality has a reason against them.
    pub count: u64,
    /// Samples during which something else ran. They were thrown away unless a round had no others.
    #[serde(deserialize_with = "json::count")]
    #[schemars(with = "Option<u64>")]
    pub rejected: u64,
    /// Activations that should have taken place and did not.
    #[serde(deserialize_with = "json::count")]
    #[schemars(with = "Option<u64>")]
    pub missed: u64,
    /// Smallest sample of the point, ns.
    pub min: Option<f64>,
    /// 10th percentile of the samples, ns.
    pub p10: Option<f64>,
    /// Median of the samples, ns.
    pub p50: Option<f64>,
    /// 90th percentile of the samples, ns.
    pub p90: Option<f64>,
    /// 95th percentile of the samples, ns.
    pub p95: Option<f64>,
    /// 99th percentile of the samples, ns.
    pub p99: Option<f64>,
    /// 99.9th percentile of the samples, ns.
    pub p99_9: Option<f64>,
    /// 99.99th percentile of the samples, ns.
    pub p99_99: Option<f64>,
    /// 99.999th percentile of the samples, ns.
    pub p99_999: Option<f64>,
    /// 99.9999th percentile of the samples, ns.
    pub p99_9999: Option<f64>,
    /// Largest sample of the point, ns.
    pub max: Option<f64>,
    /// Mean of the samples, ns.
    pub mean: Option<f64>,
    /// Core cycles of the median, from an add chain timed beside each batch.
    pub cycles: Option<f64>,
}

impl Summary {
    /// The figures of a histogram; what no histogram holds (rejected, missed,
    /// cycles) is taken from `other`.
    pub fn from_histogram(histogram: &Histogram, other: &Summary) -> Summary {
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

/// Reasons that follow from the figures of all rounds, and are found anew with each.
const OF_ALL_ROUNDS: [&str; 9] = [
    TWO_MODES,
    "rounds-in-two-groups",
    "rounds-starved",
    "rounds-drift",
    "rounds-scatter",
    WAITED_FOR_A_CPU,
    THROTTLED,
    bounds::IMPOSSIBLE,
    MESSAGES_LOST,
];

/// Measured point: its identity, its quality, and its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Id of the probe, `family.name`.
    pub probe: String,
    /// Revision of the probe, raised when what it times changes.
    pub revision: u32,
    /// All parameters of the point.
    pub params: Params,
    /// Title of the point for readers.
    pub title: String,
    /// True if the survey's table has a row for the point.
    pub row: bool,
    /// Kind of the samples: event or batch.
    pub sampling: Sampling,
    /// Meaning of the times: one way, round trip or operation.
    pub times: Semantics,
    /// Quality: a level, and each reason against a better one.
    pub quality: Quality,
    /// The run ended before this point did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The usual figures, derived from the histogram; the median is that over the rounds.
    pub summary: Summary,
    /// Interval in which the median of the next run is expected, from the rounds; `None` with one round.
    /// [`next_run`](Measurement::next_run) is the interval to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Prediction>,
    /// The figures of each round, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<RoundSummary>,
    /// Time that the measuring threads waited for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
    /// Account of the CPU time while it was measured: of its steps, in all rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Named quantities that are no durations.
    pub values: BTreeMap<String, MeasuredQuantity>,
    /// Bytes behind one operation.
    pub work: Option<OperationWork>,
    /// Histogram of all samples.
    pub histogram: Histogram,
    /// Samples in order of time, as blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<SampleBlock>,
    /// Outliers: events worth naming.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<Outlier>,
    /// Threads that took part in the first transactions, if they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<TransactionHop>,
    /// Identity that the remote operating system states; `None` where there is none, or where it states nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteIdentity>,
    /// Histogram that also has the activations which never took place because an earlier activation was late; `None`
    /// where such activations cannot occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Histogram>,
    /// Conclusions that the events can prove; `None` for batches, and where it is not known how long the point was
    /// watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tested: Option<Tested>,
    /// Exact records that the plan asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recordings: Option<Recordings>,
    /// Verdict on the criteria for the point, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Returns true if values of this unit are amounts, which add up over rounds and CPUs: events, and the time that others
/// took, by the kernel's counts.
pub fn adds_up(unit: &str) -> bool {
    matches!(unit, "count" | "ms")
}

/// The value that says how long a CPU was watched, in seconds: its shares and rates are of this time.
pub const WATCHED: &str = "watched";

/// The value that counts the samples beyond the last bin of another program.
pub const BEYOND: &str = "beyond";

/// The mean of values with their weights; 0 of none.
pub fn weighted_mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, weights) =
        values.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + weight * value, all + weight));
    if weights > 0.0 { sum / weights } else { 0.0 }
}

impl Measurement {
    /// A point with these samples, and nothing that speaks against them.
    pub fn from_samples(
        point: MeasurementPoint,
        sampling: Sampling,
        times: Semantics,
        histogram: Histogram,
    ) -> Measurement {
        let MeasurementPoint { probe, revision, params, title, row } = point;
        Measurement {
            probe,
            revision,
            params,
            title,
            row,
            sampling,
            times,
            quality: Quality::default(),
            incomplete: false,
            summary: Summary::from_histogram(&histogram, &Summary::default()),
            interval: None,
            rounds: Vec::new(),
            contention: None,
            account: None,
            values: BTreeMap::new(),
            work: None,
            histogram,
            blocks: Vec::new(),
            outliers: Vec::new(),
            hops: Vec::new(),
            remote: None,
            corrected: None,
            tested: None,
            recordings: None,
            verdict: None,
        }
    }

    /// Lowers how far the point can be trusted, for a reason that is kept beside those already known.
    pub fn lower(&mut self, reason: Reason) {
        self.quality.add_reason(reason);
    }

    /// Takes in what speaks against a part of the point: the worst level, with all reasons.
    pub fn merge_quality(&mut self, part: &Quality) {
        self.quality.merge(part);
    }

    /// Returns the texts of all reasons against the point as one; `None` without any.
    pub fn joined_reasons(&self) -> Option<String> {
        self.quality.text()
    }

    /// Returns the remedies of all reasons as one text; `None` without any.
    pub fn joined_remedies(&self) -> Option<String> {
        self.quality.remedy()
    }

    /// The figures of a point that was measured in one round.
    pub(crate) fn as_round(&self) -> RoundSummary {
        let s = &self.summary;
        RoundSummary {
            count: s.count,
            min: s.min,
            p50: s.p50,
            p90: s.p90,
            p99: s.p99,
            p99_9: s.p99_9,
            max: s.max,
            cycles: s.cycles,
            account: self.account.clone(),
            values: self.values.iter().map(|(name, value)| (name.clone(), value.value)).collect(),
            run: None,
        }
    }

    /// Returns the point as a part of merged runs: with the run at this place as its only round, and without what is
    /// in order of time or judged.
    pub fn as_run(mut self, run: u32) -> Measurement {
        self.rounds = vec![RoundSummary { run: Some(run), ..self.as_round() }];
        (self.blocks, self.outliers, self.hops) = (Vec::new(), Vec::new(), Vec::new());
        (self.recordings, self.verdict, self.interval) = (None, None, None);
        self.derive_results();
        self
    }

    /// Takes in the same point of other runs, as [`as_run`](Measurement::as_run) returns it.
    pub fn add_runs(&mut self, mut next: Measurement) {
        let [mine, its] = [self.summary.count as f64, next.summary.count as f64];
        self.tested = match (self.tested, next.tested) {
            (Some(a), Some(b)) => Some(Tested {
                time_ns: a.time_ns.saturating_add(b.time_ns),
                independent: weighted_mean([(a.independent, mine), (b.independent, its)].into_iter()),
            }),
            (a, None) if its == 0.0 => a,
            (None, b) if mine == 0.0 => b,
            _ => None,
        };
        self.rounds.append(&mut next.rounds);
        self.rounds.sort_by_key(|round| round.run);
        self.add_samples(next, mine > 0.0);
    }

    /// Takes in the same point of a later round: samples and counts add up; what
    /// speaks against one of the rounds speaks against all.
    ///
    /// A round without a figure does not take it from the others.
    pub fn add_round(&mut self, next: Measurement) {
        if self.rounds.is_empty() {
            self.rounds.push(self.as_round());
        }
        let measured = self.rounds.iter().any(|round| round.count > 0);
        self.rounds.push(next.as_round());
        self.add_samples(next, measured);
    }

    /// Adds what was measured in further rounds, which are in the list already. `measured` says whether there were
    /// samples before.
    fn add_samples(&mut self, mut next: Measurement, measured: bool) {
        if self.summary.count == 0 && next.summary.count > 0 {
            (self.sampling, self.work, self.times) = (next.sampling, next.work, next.times);
            self.histogram = std::mem::replace(&mut next.histogram, Histogram::new(1000));
        } else if next.summary.count > 0 {
            self.histogram.merge(&next.histogram);
        }
        self.summary.rejected += next.summary.rejected;
        self.summary.missed += next.summary.missed;
        self.add_values(next.values);
        self.incomplete |= next.incomplete;
        self.add_quality(&next.quality, measured, next.summary.count > 0);
        add_known(&mut self.contention, next.contention.as_ref(), Contention::add_later);
        add_known(&mut self.account, next.account.as_ref(), Account::add_account);
        self.blocks.append(&mut next.blocks);
        SampleBlock::thin(&mut self.blocks);
        self.outliers.append(&mut next.outliers);
        self.hops.append(&mut next.hops);
        self.remote = match (self.remote.take(), next.remote) {
            // What is true of a part only is not known of the whole.
            (Some(ours), Some(others)) if ours != others => None,
            (ours, others) => ours.or(others),
        };
        add_known(&mut self.corrected, next.corrected.as_ref(), Histogram::merge);
        self.derive_results();
    }

    /// Adds the quality of a further round. A point that failed in some rounds only was measured, though not as
    /// planned.
    fn add_quality(&mut self, next: &Quality, measured: bool, next_measured: bool) {
        let mut next = next.clone();
        if measured || next_measured {
            // An empty round says nothing about all rounds. A fact that one round does not record is unknown for all.
            let holds = |reason: &Reason| reason.level != QualityLevel::Ok || reason.id == IMPORTED;
            self.quality.retain(holds);
            next.retain(holds);
            let reasons = self.quality.reasons.iter_mut().chain(&mut next.reasons);
            for reason in reasons.filter(|reason| reason.level > QualityLevel::Degraded) {
                reason.level = QualityLevel::Degraded;
                if !reason.text.is_empty() {
                    reason.text.insert_str(0, "in a round: ");
                }
            }
            self.quality.retain(|_| true);
        }
        self.quality.merge(&next);
    }

    /// Adds the values of a further round. Counts and the time watched add up. A share or a rate is the mean over the
    /// time watched, so that shares still add up to the whole. Any other figure is the median over the rounds.
    fn add_values(&mut self, next: BTreeMap<String, MeasuredQuantity>) {
        for (name, value) in next {
            let over = || self.rounds.iter().filter_map(|round| Some((round, *round.values.get(&name)?)));
            let figure = match value.unit.as_str() {
                _ if name == WATCHED => over().map(|(_, value)| value).sum(),
                unit if adds_up(unit) => over().map(|(_, value)| value).sum(),
                "%" | "1/s" => weighted_mean(
                    over().map(|(round, value)| (value, round.values.get(WATCHED).copied().unwrap_or(1.0))),
                ),
                _ => {
                    let over: Vec<f64> = over().map(|(_, value)| value).collect();
                    crate::statistics::median(&over).unwrap_or(value.value)
                }
            };
            self.values.insert(name, MeasuredQuantity { value: figure, ..value });
        }
    }

    /// Derives from histogram and rounds what follows from them: the summary,
    /// the interval, whether the row is unstable, whether others explain it.
    pub fn derive_results(&mut self) {
        self.summary = Summary::from_histogram(&self.histogram, &self.summary);
        self.settle_disturbed();
        // This reason needs the machine to be found anew. It stays the last, as in the run.
        let shared_cache = self.quality.reasons.iter().find(|reason| reason.id == SHARED_CACHE).cloned();
        let is_derived = |id: &str| id == SHARED_CACHE || OF_ALL_ROUNDS.contains(&id);
        self.quality.retain(|reason| !is_derived(&reason.id));
        if self.rounds.len() > 1 {
            self.settle_rounds();
        }
        self.settle_account();
        self.settle_losses();
        if let Some(modes) =
            Mixture::from_histogram(&self.histogram).filter(|_| self.sampling == Sampling::Event)
        {
            self.quality.add_reason(modes.remark());
        }
        let impossible = bounds::impossible(&self.params, &self.values);
        for reason in impossible.into_iter().chain(shared_cache) {
            self.quality.add_reason(reason);
        }
    }

    fn settle_rounds(&mut self) {
        let figures = rounds::round_figures(&self.rounds);
        let cycles: Vec<f64> = self.rounds.iter().filter_map(|round| round.cycles).collect();
        self.interval = None;
        let Some(median) = rounds::point_figure(&figures) else { return };
        // To a tenth of a picosecond: half of a sum has digits that no clock has.
        let median = (median * 1e4).round() / 1e4;
        self.summary.p50 = Some(median);
        self.summary.cycles = rounds::point_figure(&cycles);
        let resolution = self.histogram.resolution(median);
        let smallest = self.histogram.smallest().map_or(0.0, |smallest| smallest.low);
        let largest = self.histogram.largest().map_or(f64::MAX, |largest| largest.high);
        let unit = if self.rounds.iter().any(|round| round.run.is_some()) {
            ReplicationUnit::Run
        } else {
            ReplicationUnit::Round
        };
        let next = rounds::prediction(&figures, unit, resolution);
        self.interval = next.map(|next| next.clamp_range(smallest, largest));
        if let Some(unsteady) = rounds::unsteady(&figures, unit) {
            self.quality.add_reason(unsteady_reason(unsteady, &figures));
        }
        if let Some(starved) = rounds::sparse_rounds(&self.rounds) {
            self.quality.add_reason(starved_reason(starved, self.rounds.len()));
        }
    }

    /// Adds what the account of CPU time says against the figures: first that a quota stopped the threads, which else
    /// looks as if others had taken their time.
    fn settle_account(&mut self) {
        let Some(account) = &self.account else { return };
        // What is not possible here would not be with all of the CPUs.
        let impossible =
            |reason: &Reason| reason.level == QualityLevel::Unsupported && reason.id != NOTHING_MEASURED;
        if self.quality.reasons.iter().any(impossible) {
            return;
        }
        let gated = self.contention.as_ref().is_some_and(|contention| contention.gated);
        if let Some(quota) = account.throttled_much().filter(|_| !gated) {
            let reason = quota.to_reason();
            let quiet = account.is_quiet();
            self.quality.retain(|known| !quiet || !known.is_disturbed());
            self.quality.lower_first(reason);
            return;
        }
        let Some(contention) = self.contention.as_ref().filter(|contention| contention.explains(account))
        else {
            return;
        };
        let (waited, others) = (contention.waited().unwrap_or(0.0), account.others);
        let text = format!(
            "its threads waited for a CPU for {}, while other processes used {} of the CPUs",
            contention.format_waiting(),
            account.others_words().unwrap_or_default()
        );
        let reason =
            Reason::new(QualityLevel::Degraded, WAITED_FOR_A_CPU, text, "measure on a quieter machine");
        self.quality.add_reason(reason.with_number("waited", waited).with_number("others", others));
    }

    /// Returns true if another program measured the point. Missed and rejected activations are then not known.
    pub fn is_imported(&self) -> bool {
        self.quality.reasons.iter().any(|reason| reason.id == IMPORTED)
    }

    /// Activations that did not take place; `None` where that is not known. An import has them with its reason.
    pub fn missed(&self) -> Option<u64> {
        let imported = self.quality.reasons.iter().find(|reason| reason.id == IMPORTED);
        let stated = |reason: &Reason| reason.values.get("missed").map(|missed| *missed as u64);
        imported.map_or(Some(self.summary.missed), stated)
    }

    /// Activations that certainly did not take place, also where another program does not count them.
    pub fn missed_at_least(&self) -> u64 {
        let proven = self.with_missed().count().saturating_sub(self.histogram.count());
        self.missed().unwrap_or(0).max(proven)
    }

    /// Returns true if events of the point can be missed: they are due at times, or must end in time.
    pub fn can_miss(&self) -> bool {
        [param::DEADLINE, param::INTERVAL, param::PACE].iter().any(|name| self.params.contains_key(*name))
    }

    /// Returns the value of a parameter that is a number.
    pub fn numeric_param(&self, parameter: &str) -> Option<u64> {
        self.params.get(parameter).and_then(ParamValue::as_number)
    }

    /// Returns the value of a parameter that is a text.
    pub fn text_param(&self, parameter: &str) -> Option<&str> {
        self.params.get(parameter).and_then(ParamValue::as_text)
    }

    /// Returns true if a parameter has this text.
    pub fn has_param_value(&self, parameter: &str, text: &str) -> bool {
        self.text_param(parameter) == Some(text)
    }

    /// Returns the two CPUs of a point that is measured between CPUs.
    pub fn cpu_pair(&self) -> Option<(u32, u32)> {
        let (a, b) = self.text_param(param::PAIR)?.split_once('-')?;
        Some((a.parse().ok()?, b.parse().ok()?))
    }

    /// Returns the node of the CPUs and that of the memory, if they were chosen.
    pub fn nodes(&self) -> Option<(u32, u32)> {
        let [from, to] =
            [param::CPU_NODES, param::NODES].map(|name| u32::try_from(self.numeric_param(name)?).ok());
        from.zip(to)
    }

    /// Distribution that verdicts are about: of all activations that were due, where the run records those that were
    /// missed; otherwise of the events that were timed.
    pub fn with_missed(&self) -> &Histogram {
        self.corrected.as_ref().unwrap_or(&self.histogram)
    }

    /// Figures of [`with_missed`](Measurement::with_missed); where nothing was missed, those of the point.
    pub fn summary_with_missed(&self) -> Summary {
        let all = self.corrected.as_ref().filter(|all| all.count() > self.histogram.count());
        all.map_or_else(|| self.summary.clone(), |all| Summary::from_histogram(all, &self.summary))
    }

    /// The figure shown for the point, in ns: the median.
    pub fn typical(&self) -> Option<f64> {
        self.summary.p50
    }

    /// Interval in which the median of the next run is expected; `None` for a degraded point, whose rounds show the
    /// disturbance, and where other processes used 5 % of the CPUs or more.
    pub fn next_run(&self) -> Option<Prediction> {
        self.interval.filter(|_| self.quality.level < QualityLevel::Degraded && self.shows_next_run())
    }

    /// Returns true if the differences between rounds, or merged runs, are those of the next run. The rounds of one run
    /// on a busy machine are not: the next run has another load next to it. The spread of merged runs has that in it.
    pub fn shows_next_run(&self) -> bool {
        let is_merged = self.rounds.iter().any(|round| round.run.is_some());
        is_merged || self.account.as_ref().is_none_or(Account::is_quiet)
    }

    /// Bytes touched per second: over all of the time, where that was measured
    /// (`throughput`), so that each view shows the same; else at the median. `None`
    /// without work or time.
    pub fn rate_touched(&self) -> Option<f64> {
        let work = self.work?;
        let measured = self.values.get("throughput").filter(|value| value.unit == "B/s");
        measured.map(|value| value.value).or_else(|| self.bytes_per_second(work.bytes_touched))
    }

    /// Bytes moved by the memory of this machine per second at the median, computed: not of data that the caches hold.
    pub fn rate_moved(&self, machine: &Machine) -> Option<f64> {
        let threads = self.numeric_param(param::THREADS).unwrap_or(1).max(1);
        let caches = match machine.last_caches.len() as u64 {
            0 => threads,
            known => known.min(threads),
        };
        let held = machine.last_level_cache()?.saturating_mul(caches);
        // Of little more than the caches hold, they still serve a part.
        let is_beyond = self.numeric_param(param::SIZE)? >= held.saturating_mul(2);
        self.bytes_per_second(self.work?.bytes_moved).filter(|_| is_beyond)
    }

    fn bytes_per_second(&self, bytes: u64) -> Option<f64> {
        let ns = self.typical().filter(|ns| *ns > 0.0)?;
        (bytes > 0).then(|| bytes as f64 * 1e9 / ns)
    }
}
