//! Budgets: limits on the figures of probes, as written in a file.

use super::Accepted;
use super::names::{BudgetNameSet, NoValue};
use crate::compare::is_wanted;
use crate::verdict::{CallShareKind, Metric, MetricCriterion, QUANTILES};
use latscope_core::plan::ParamValue;
use latscope_core::report::Measurement;
use latscope_core::units::parse_duration;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Value that a budget file can contain, in any format.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum BudgetFileValue {
    /// Truth value: `true` or `false`.
    Truth(bool),
    /// Whole number from 0 up.
    Whole(u64),
    /// Any other number, negative or with a fraction.
    Number(f64),
    /// Text, quoted in the file.
    Text(String),
    /// List of further entries.
    List(Vec<BudgetFileValue>),
    /// Table of named entries.
    Table(BudgetFileTable),
}

/// Entries by their names.
pub type BudgetFileTable = BTreeMap<String, BudgetFileValue>;

/// Limits that are to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct GateBudget {
    /// Limits in the order of the file.
    pub limits: Vec<BudgetLimit>,
    /// CPU models on which the limits were learnt; empty if the limits apply to any.
    pub cpu_models: Vec<String>,
    /// Names of the machines on which the limits were learnt.
    pub machines: Vec<String>,
    /// What limits relative to a baseline accept of it.
    pub accepted: Accepted,
}

/// Limits on the points of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetLimit {
    /// Place of the limit in the file, from 1.
    pub number: usize,
    /// Name of a probe or a family.
    pub probe: String,
    /// Revision of the probe on which the limits were learnt; `None` if they apply to any.
    pub revision: Option<u32>,
    /// Required values of the points' parameters.
    matching: BTreeMap<String, Matching>,
    /// Limited figures of the points.
    pub bounds: Vec<Bound>,
    /// True if the limit is for most results: of several results, it is exceeded if more than half exceed it.
    pub is_of_most: bool,
}

/// Required value of a parameter.
#[derive(Debug, Clone, PartialEq)]
enum Matching {
    /// Any value but `all`, the sum.
    Each,
    /// The value as written, and its readings in results.
    Value(String, Vec<String>),
}

/// A figure and its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Figure that is limited.
    pub metric: Metric,
    /// Limit of the figure.
    pub allowed: Allowed,
    /// Largest figure that the limit was learnt from, in its unit; `None` if it was not learnt.
    pub learnt: Option<f64>,
}

/// The limit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// Absolute limit as in a [`MetricCriterion`], and the unit in which the file states it, if any.
    Value(f64, Option<&'static str>),
    /// Relative to the baseline: 1.05 for `+5%`.
    Ratio(f64),
}

/// Reason why a file is no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// A name that does not exist.
    #[error("{at}: there is no {what} {word:?}")]
    Unknown {
        /// Place of the limit in the file, in words.
        at: String,
        /// Kind of the named thing.
        what: &'static str,
        /// Name as the file has it.
        word: String,
        /// Names that exist for such a thing.
        known: Vec<String>,
    },
    /// Any other error in the file.
    #[error("{at}: {why}")]
    Invalid {
        /// Place of the limit in the file, in words.
        at: String,
        /// Description of the error and of a correct entry.
        why: String,
    },
}

impl BudgetError {
    /// The word that may be misspelt, and the words that exist.
    pub fn misspelt(&self) -> Option<(&str, &[String])> {
        match self {
            BudgetError::Unknown { word, known, .. } => Some((word, known)),
            BudgetError::Invalid { .. } => None,
        }
    }
}

impl GateBudget {
    /// Reads the entries of a file.
    ///
    /// # Errors
    /// The file has a name or a limit that is not possible, or no limit.
    pub fn read_entries(file: &BudgetFileTable, names: &BudgetNameSet) -> Result<GateBudget, BudgetError> {
        const KEYS: [&str; 3] = ["limit", "machine", "cpu_model"];
        if let Some(word) = file.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let known = KEYS.map(str::to_owned).to_vec();
            let at = "the budget".to_owned();
            return Err(BudgetError::Unknown { at, what: "entry", word: word.clone(), known });
        }
        let limits = match file.get("limit") {
            Some(BudgetFileValue::List(limits)) if !limits.is_empty() => limits,
            Some(BudgetFileValue::Table(_)) => return Err(file_error("write [[limit]], with two brackets")),
            _ => return Err(file_error("it has no [[limit]]")),
        };
        let limits = (1..).zip(limits).map(|(number, entry)| match entry {
            BudgetFileValue::Table(table) => BudgetLimitReader { number, table, names }.read_limit(),
            _ => Err(file_error("each limit is a table: write [[limit]]")),
        });
        Ok(GateBudget {
            limits: limits.collect::<Result<_, _>>()?,
            machines: texts(file.get("machine"))
                .ok_or_else(|| file_error("machine takes a name or a list of names"))?,
            cpu_models: texts(file.get("cpu_model"))
                .ok_or_else(|| file_error("cpu_model takes a model or a list of models"))?,
            accepted: Accepted::default(),
        })
    }

    /// The first limit that is relative to a baseline.
    pub fn relative(&self) -> Option<&BudgetLimit> {
        self.limits.iter().find(|limit| limit.is_relative())
    }
}

/// An error of the file as a whole.
fn file_error(why: &str) -> BudgetError {
    BudgetError::Invalid { at: "the budget".to_owned(), why: why.to_owned() }
}

/// The texts of an entry that may be one text or a list of them; none if the entry is missing. `None` if the entry is
/// neither.
fn texts(entry: Option<&BudgetFileValue>) -> Option<Vec<String>> {
    let entries = match entry {
        None => &[],
        Some(BudgetFileValue::List(all)) => all.as_slice(),
        Some(single) => std::slice::from_ref(single),
    };
    let texts = entries
        .iter()
        .map(|entry| if let BudgetFileValue::Text(text) = entry { Some(text.clone()) } else { None });
    texts.collect()
}

impl BudgetLimit {
    /// Returns true if the limit is relative to a baseline.
    pub(super) fn is_relative(&self) -> bool {
        self.bounds.iter().any(|bound| matches!(bound.allowed, Allowed::Ratio(_)))
    }

    /// Returns true if the limit applies to a measurement.
    pub fn is_about(&self, m: &Measurement) -> bool {
        let mut params = self.matching.iter().map(|(name, matching)| (m.params.get(name), matching));
        is_wanted(&m.probe, std::slice::from_ref(&self.probe))
            && params.all(|(value, matching)| match (value.map(ParamValue::to_string), matching) {
                (None, _) => false,
                (Some(value), Matching::Each) => value != "all",
                (Some(value), Matching::Value(_, readings)) => readings.contains(&value),
            })
    }

    /// Name of the limited points: `wake.timer[cpu=all]`.
    pub fn name(&self) -> String {
        let params = self.matching.iter().map(|(name, matching)| match matching {
            Matching::Each => format!("{name}=each"),
            Matching::Value(text, _) => format!("{name}={text}"),
        });
        let params: Vec<String> = params.collect();
        if params.is_empty() { self.probe.clone() } else { format!("{}[{}]", self.probe, params.join(",")) }
    }

    /// Names of the parameters that the limit requires.
    pub(super) fn params(&self) -> impl Iterator<Item = &String> {
        self.matching.keys()
    }
}

/// A limit that is being read.
struct BudgetLimitReader<'a> {
    number: usize,
    table: &'a BudgetFileTable,
    names: &'a BudgetNameSet,
}

impl BudgetLimitReader<'_> {
    fn at(&self) -> String {
        match self.table.get("probe") {
            Some(BudgetFileValue::Text(probe)) => format!("limit {} ({probe})", self.number),
            _ => format!("limit {}", self.number),
        }
    }

    fn entry_error(&self, why: impl Into<String>) -> BudgetError {
        BudgetError::Invalid { at: self.at(), why: why.into() }
    }

    fn unknown_word_error(&self, what: &'static str, word: &str, known: Vec<String>) -> BudgetError {
        BudgetError::Unknown { at: self.at(), what, word: word.to_owned(), known }
    }

    fn read_limit(&self) -> Result<BudgetLimit, BudgetError> {
        let probe = match self.table.get("probe") {
            Some(BudgetFileValue::Text(probe)) => probe.clone(),
            _ => return Err(self.entry_error("it needs a probe: probe = \"wake.timer\"")),
        };
        let checked = self.names.check_probe(&probe);
        checked.map_err(|known| self.unknown_word_error("probe or family", &probe, known))?;
        let matching = match self.table.get("where") {
            None => BTreeMap::new(),
            Some(BudgetFileValue::Table(params)) => {
                let each = params.iter().map(|(name, value)| self.matching(&probe, name, value));
                each.collect::<Result<_, _>>()?
            }
            Some(_) => return Err(self.entry_error("where takes parameters: where = { cpu = \"all\" }")),
        };
        let revision = match self.table.get("revision") {
            None => None,
            Some(BudgetFileValue::Whole(number)) if u32::try_from(*number).is_ok() => Some(*number as u32),
            Some(_) => return Err(self.entry_error("revision takes the number of a revision: revision = 1")),
        };
        let mut bounds = Vec::new();
        for (name, entry) in self
            .table
            .iter()
            .filter(|(name, _)| !["probe", "revision", "where", "runs", "learnt"].contains(&name.as_str()))
        {
            bounds.extend(self.bounds(name, entry)?);
        }
        self.add_learnt(&mut bounds)?;
        if bounds.is_empty() {
            return Err(self.entry_error("it limits nothing: name a figure, such as max = \"50us\""));
        }
        let is_of_most = match self.table.get("runs") {
            None => false,
            Some(BudgetFileValue::Text(text)) if ["all", "most"].contains(&text.as_str()) => text == "most",
            Some(_) => {
                return Err(self.entry_error("runs is \"all\" (each result) or \"most\" (more than half)"));
            }
        };
        Ok(BudgetLimit { number: self.number, probe, revision, matching, bounds, is_of_most })
    }

    /// Adds the figures that limits were learnt from: `learnt = { p50 = "1.2us" }`.
    fn add_learnt(&self, bounds: &mut [Bound]) -> Result<(), BudgetError> {
        let figures = match self.table.get("learnt") {
            None => return Ok(()),
            Some(BudgetFileValue::Table(figures)) => figures,
            Some(_) => return Err(self.entry_error("learnt takes figures: learnt = { p50 = \"1.2us\" }")),
        };
        for (name, entry) in figures {
            let learnt = self.bound(name, entry)?.allowed;
            let of_figure = bounds.iter_mut().filter(|bound| bound.metric.name() == name);
            if let Allowed::Value(figure, _) = learnt {
                of_figure.for_each(|bound| bound.learnt = Some(figure));
            }
        }
        Ok(())
    }

    fn matching(
        &self,
        probe: &str,
        name: &str,
        value: &BudgetFileValue,
    ) -> Result<(String, Matching), BudgetError> {
        let kinds = self.names.kinds(probe, name);
        let kinds = kinds.map_err(|known| self.unknown_word_error("parameter", name, known))?;
        let text = match value {
            BudgetFileValue::Whole(number) => {
                let text = number.to_string();
                return Ok((name.to_owned(), Matching::Value(text.clone(), vec![text])));
            }
            BudgetFileValue::Text(text) if text == "each" => return Ok((name.to_owned(), Matching::Each)),
            BudgetFileValue::Text(text) => text,
            _ => return Err(self.entry_error(format!("{name} takes a number or a text"))),
        };
        let (mut readings, mut refused) = (vec![], None);
        if text == "all" {
            readings.push(text.clone());
        }
        for kind in kinds {
            match kind.readings(text) {
                Ok(more) => readings.extend(more),
                Err(why) => refused = Some(why),
            }
        }
        match refused.filter(|_| readings.is_empty()) {
            Some(NoValue::Word(known)) => {
                Err(self.unknown_word_error("such value of a parameter:", text, known))
            }
            Some(NoValue::Quantity(why)) => Err(self.entry_error(format!("{name}: {why}"))),
            None => Ok((name.to_owned(), Matching::Value(text.clone(), readings))),
        }
    }

    /// The limits that an entry stands for: `inherits` is one for each word.
    fn bounds(&self, name: &str, entry: &BudgetFileValue) -> Result<Vec<Bound>, BudgetError> {
        if name != "inherits" {
            return Ok(vec![self.bound(name, entry)?]);
        }
        let words = match entry {
            BudgetFileValue::Text(text) => Some(text.split(',').map(|word| word.trim().to_owned()).collect()),
            other => texts(Some(other)),
        };
        let bounds = words.unwrap_or(vec![String::new()]).into_iter().map(|word| {
            let share = match word.as_str() {
                "fifo" => CallShareKind::InheritsFifo,
                "nice" => CallShareKind::InheritsNice,
                _ => return Err(self.entry_error("inherits is \"fifo\", \"nice\" or \"fifo,nice\"")),
            };
            let allowed = Allowed::Value(100.0, Some("%"));
            Ok(Bound { metric: Metric::Share(share), allowed, learnt: None })
        });
        bounds.collect()
    }

    fn bound(&self, name: &str, entry: &BudgetFileValue) -> Result<Bound, BudgetError> {
        let metric = Metric::from_name(name)
            .map_err(|_| self.unknown_word_error("figure", name, limit_keys(self.names)))?;
        if let Metric::Value(value) = &metric {
            self.names
                .check_value(value)
                .map_err(|_| self.unknown_word_error("figure", name, limit_keys(self.names)))?;
        }
        let allowed = match entry {
            BudgetFileValue::Text(text) => match parse_change_factor(text) {
                Some(ratio) => self.allow_ratio(&metric, ratio)?,
                None => self.value(&metric, text)?,
            },
            BudgetFileValue::Whole(number) => self.value(&metric, &number.to_string())?,
            BudgetFileValue::Number(number) => self.value(&metric, &number.to_string())?,
            _ => {
                return Err(self.entry_error(format!("{name} takes a limit, such as \"50us\", 0 or \"+5%\"")));
            }
        };
        Ok(Bound { metric, allowed, learnt: None })
    }

    fn allow_ratio(&self, metric: &Metric, ratio: f64) -> Result<Allowed, BudgetError> {
        let name = metric.name();
        let why = match metric {
            Metric::Max | Metric::Threshold => "two maxima are never compared: each is one event",
            Metric::Missed => "counts of what is rare have no ratio: write missed = 0",
            Metric::Quantile(quantile) if !["p50", "p99", "p99_9"].contains(&quantile.name) => {
                "of quantiles p50, p99 and p99_9 are compared"
            }
            Metric::Share(CallShareKind::InheritsFifo | CallShareKind::InheritsNice) => {
                "write inherits = \"fifo\""
            }
            _ if !(ratio > 0.0 && ratio.is_finite()) => {
                "100 % less is nothing (choose a percentage above -100%)"
            }
            _ => return Ok(Allowed::Ratio(ratio)),
        };
        Err(self.entry_error(format!("{name} cannot be relative to a baseline: {why}")))
    }

    fn value(&self, metric: &Metric, text: &str) -> Result<Allowed, BudgetError> {
        let name = metric.name();
        // Fractions of ns, which operations of the processor take, are no duration elsewhere.
        let ns = text.strip_suffix("ns").and_then(|number| number.trim_end().parse::<f64>().ok());
        if let Some(ns) = ns.filter(|ns| metric.is_duration() && *ns > 0.0 && ns.is_finite()) {
            return Ok(Allowed::Value(ns, Some("ns")));
        }
        let named = matches!(metric, Metric::Value(_));
        if named
            && text.parse::<f64>().is_err()
            && let Ok(time) = parse_duration(text)
        {
            return Ok(Allowed::Value(time.as_nanos() as f64, Some("ns")));
        }
        if text.ends_with('%') && metric.is_duration() {
            let near = "write \"+5%\" for 5 % above the baseline, or a duration such as \"50us\"";
            return Err(self.entry_error(format!("{name} = {text:?} has no sign: {near}")));
        }
        let percent = text.strip_suffix('%').filter(|_| named || matches!(metric, Metric::Share(_)));
        let unit = if metric.is_duration() { Some("ns") } else { percent.map(|_| "%") };
        let criterion = MetricCriterion::parse(name, percent.unwrap_or(text).trim_end());
        let limit = criterion.map_err(|error| self.entry_error(error.to_string()))?.limit;
        if matches!(metric, Metric::Share(_)) && limit > 100.0 {
            return Err(self.entry_error(format!("{name} is a percentage from 0 to 100")));
        }
        Ok(Allowed::Value(limit, unit))
    }
}

/// The factor of `+5%`, `-3%`; `None` if the text has no sign or is no percentage.
fn parse_change_factor(text: &str) -> Option<f64> {
    let percent = text.strip_suffix('%')?.trim_end();
    let signed = percent.starts_with(['+', '-']);
    percent.parse().ok().filter(|_| signed).map(|percent: f64| 1.0 + percent / 100.0)
}

/// Every name that a limit can have.
fn limit_keys(names: &BudgetNameSet) -> Vec<String> {
    let fixed = ["max", "missed", "threshold", "inherits", "probe", "revision", "where", "runs", "learnt"]
        .into_iter();
    let fixed = fixed.chain(QUANTILES.iter().map(|quantile| quantile.name));
    let fixed = fixed.chain(CallShareKind::ALL.iter().map(|(name, _)| *name)).map(str::to_owned);
    fixed.chain(names.check_value("").err().unwrap_or_default()).collect()
}

/// A limit as it is read: `≤ 50.0 µs`, `≥ 99 %`, `≤ +5 %`.
pub(super) fn format_limit(allowed: Allowed, at_least: bool, format: impl Fn(f64) -> String) -> String {
    let mut text = if at_least { "≥ ".to_owned() } else { "≤ ".to_owned() };
    let _ = match allowed {
        Allowed::Value(limit, _) => write!(text, "{}", format(limit)),
        Allowed::Ratio(ratio) => write!(text, "{:+} %", ((ratio - 1.0) * 1e4).round() / 1e2),
    };
    text
}
