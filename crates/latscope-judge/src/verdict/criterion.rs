//! Criteria that can be required of a measurement.

use latscope_core::plan::{self, Plan};
use latscope_core::units::{ParseError, format_apart, format_count, format_share, parse_duration};

/// A quantile that a criterion can be about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CriterionQuantile {
    /// Name in results and on the command line: `p99_9`.
    pub name: &'static str,
    /// The share of all values that may be above it: 0.001.
    pub above: f64,
}

/// All quantiles, from the median to one in a million.
pub const QUANTILES: [CriterionQuantile; 8] = [
    CriterionQuantile { name: "p50", above: 0.5 },
    CriterionQuantile { name: "p90", above: 0.1 },
    CriterionQuantile { name: "p95", above: 0.05 },
    CriterionQuantile { name: "p99", above: 0.01 },
    CriterionQuantile { name: "p99_9", above: 1e-3 },
    CriterionQuantile { name: "p99_99", above: 1e-4 },
    CriterionQuantile { name: "p99_999", above: 1e-5 },
    CriterionQuantile { name: "p99_9999", above: 1e-6 },
];

/// A quantity of a measurement that can be limited.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// The largest value, ns.
    Max,
    /// A quantile of the values, ns.
    Quantile(CriterionQuantile),
    /// Activations that did not take place.
    Missed,
    /// The threshold of the run, ns: no event above it.
    Threshold,
    /// A share of calls that must be reached, %.
    Share(CallShareKind),
    /// A named value of the measurement: `faults`, `early`.
    Value(String),
}

/// A share of calls between processes that must be high enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallShareKind {
    /// Share of calls served on the CPU of the caller, among those that can be judged.
    Sync,
    /// Share of calls served with the real-time priority of a SCHED_FIFO caller, which the server gave back after each.
    InheritsFifo,
    /// Share of calls served with the nice value of the caller, which the server gave back after each.
    InheritsNice,
}

impl CallShareKind {
    /// All shares, with their names in results.
    pub const ALL: [(&'static str, CallShareKind); 3] = [
        ("sync", CallShareKind::Sync),
        ("inherits-fifo", CallShareKind::InheritsFifo),
        ("inherits-nice", CallShareKind::InheritsNice),
    ];

    fn name(self) -> &'static str {
        CallShareKind::ALL.iter().find(|(_, share)| *share == self).map_or("", |(name, _)| name)
    }
}

/// A limit on a quantity of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricCriterion {
    /// Quantity that is limited.
    pub metric: Metric,
    /// Largest permitted value: ns, or a number. For a [`CallShareKind`], and for a value of which more is better, the
    /// smallest permitted value.
    pub limit: f64,
}

/// Returns a criterion in words, from the name of its metric and its limit: `p99.9 ≤ 50.0 µs`. It has as many
/// digits as it takes to differ from `figure`, the one that it is for, if that is known.
pub fn in_words(name: &str, limit: f64, figure: Option<f64>) -> String {
    let metric = Metric::from_name(name).ok();
    let is_duration = metric.as_ref().is_some_and(Metric::is_duration);
    let name = name.replace('_', ".");
    match metric {
        Some(Metric::Share(_)) => format!("{name} ≥ {}", format_share(limit / 100.0)),
        _ if is_duration => {
            let [limit, _] = format_apart([limit, figure.unwrap_or(limit)], "ns");
            format!("{name} ≤ {limit}")
        }
        _ if limit.fract() == 0.0 => format!("{name} ≤ {}", format_count(limit as u64)),
        _ => format!("{name} ≤ {limit}"),
    }
}

/// Returns a limit in ns with the digits that tell it apart from its value in three digits: `530.2 µs`.
pub fn limit_in_words(limit: f64) -> String {
    let digit = 10f64.powi(limit.max(1.0).log10().floor() as i32 - 2).max(1.0);
    let [text, _] = format_apart([limit, (limit / digit).round() * digit], "ns");
    text
}

/// Returns a plan as a list for people: a line for each step and point, then each criterion and note.
pub fn describe_plan(plan: &Plan) -> String {
    let mut text = plan.describe_steps();
    for criterion in &plan.criteria {
        text += &format!("criterion: {}\n", in_words(&criterion.metric, criterion.limit, None));
    }
    for note in &plan.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// Reason why a text is no criterion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriterionError {
    /// No quantity has this name.
    #[error(
        "{0:?} cannot be limited: name max, threshold, missed, p50 to p99_9999, or a value such as faults or early"
    )]
    Unknown(String),
    /// The limit is not a duration.
    #[error("the limit of {0}: {1}")]
    Duration(String, ParseError),
    /// The limit is 0, but every event takes longer.
    #[error("the limit of {0} must be longer than 0")]
    Zero(String),
    /// The limit is not a number from 0 up.
    #[error("the limit of {0}: {1:?} is not a number from 0 up")]
    Number(String, String),
}

impl Metric {
    /// Returns the quantity of this name.
    ///
    /// # Errors
    /// The name cannot be one of a quantity. A name that no measurement has is detected only when a measurement is
    /// judged.
    pub fn from_name(name: &str) -> Result<Metric, CriterionError> {
        let quantile_like =
            name.strip_prefix('p').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c));
        if let Some((_, share)) = CallShareKind::ALL.iter().find(|(known, _)| *known == name) {
            return Ok(Metric::Share(*share));
        }
        match name {
            "max" => Ok(Metric::Max),
            "missed" => Ok(Metric::Missed),
            "threshold" => Ok(Metric::Threshold),
            _ if quantile_like => QUANTILES
                .into_iter()
                .find(|quantile| quantile.name == name.replace('.', "_"))
                .map(Metric::Quantile)
                .ok_or_else(|| CriterionError::Unknown(name.to_owned())),
            _ if is_word => Ok(Metric::Value(name.to_owned())),
            _ => Err(CriterionError::Unknown(name.to_owned())),
        }
    }

    /// Name of the quantity in results.
    pub fn name(&self) -> &str {
        match self {
            Metric::Max => "max",
            Metric::Quantile(quantile) => quantile.name,
            Metric::Missed => "missed",
            Metric::Threshold => "threshold",
            Metric::Share(share) => share.name(),
            Metric::Value(name) => name,
        }
    }

    /// Returns true if the quantity is a duration, with a limit in ns; else it is a number.
    pub fn is_duration(&self) -> bool {
        matches!(self, Metric::Max | Metric::Quantile(_) | Metric::Threshold)
    }
}

impl MetricCriterion {
    /// The criteria of a plan.
    pub fn of_plan(plan: &Plan) -> Vec<MetricCriterion> {
        let criteria = plan.criteria.iter();
        criteria
            .filter_map(|criterion| MetricCriterion::new(&criterion.metric, criterion.limit).ok())
            .collect()
    }

    /// The criterion as a plan has it.
    pub fn to_plan_criterion(&self) -> plan::PlanCriterion {
        plan::PlanCriterion { metric: self.metric.name().to_owned(), limit: self.limit }
    }

    /// A criterion from its name and its limit, in ns or as a number.
    ///
    /// # Errors
    /// The errors of [`Metric::from_name`].
    pub fn new(name: &str, limit: f64) -> Result<MetricCriterion, CriterionError> {
        Ok(MetricCriterion { metric: Metric::from_name(name)?, limit })
    }

    /// A criterion from its name and its limit as written: `50us`, `0`.
    ///
    /// # Errors
    /// The errors of [`Metric::from_name`], or the limit is no duration or number.
    pub fn parse(name: &str, limit: &str) -> Result<MetricCriterion, CriterionError> {
        let metric = Metric::from_name(name)?;
        let limit = if metric.is_duration() {
            let duration = parse_duration(limit).map_err(|e| CriterionError::Duration(name.to_owned(), e))?;
            if duration.is_zero() {
                return Err(CriterionError::Zero(name.to_owned()));
            }
            duration.as_nanos() as f64
        } else {
            let number = limit.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
            number.ok_or_else(|| CriterionError::Number(name.to_owned(), limit.to_owned()))?
        };
        Ok(MetricCriterion { metric, limit })
    }
}
