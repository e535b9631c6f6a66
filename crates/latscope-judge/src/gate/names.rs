//! Names that a budget can use: probes with their parameters, and named values.

use crate::compare::is_wanted;
use crate::runs::RunResult;
use latscope_core::report::BEYOND;
use latscope_core::units::{parse_duration, parse_size};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of values of a parameter, as the command line reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetParamKind {
    /// Size in bytes: `64`, `4KiB`.
    Size,
    /// Whole number from 0 up.
    Number,
    /// Duration: `1ms`; results have ns.
    Time,
    /// Fixed set of words.
    Choice(Vec<String>),
    /// Any text, size or duration: the probe does not declare the kind.
    Stated,
}

/// Reason why a text is no value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoValue {
    /// The text is none of these words.
    Word(Vec<String>),
    /// The text is no such quantity; the reason is in words.
    Quantity(String),
}

impl BudgetParamKind {
    /// The values in results that a text may stand for, as they are written there.
    pub(super) fn readings(&self, text: &str) -> Result<Vec<String>, NoValue> {
        let time = parse_duration(text).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let quantity = match self {
            BudgetParamKind::Size => parse_size(text).map_err(|error| error.to_string()),
            BudgetParamKind::Time => time.map_err(|error| error.to_string()),
            BudgetParamKind::Number => text.parse().map_err(|_| format!("{text:?} is no number")),
            BudgetParamKind::Choice(words) if words.iter().any(|word| word == text) => {
                return Ok(vec![text.to_owned()]);
            }
            BudgetParamKind::Choice(words) => return Err(NoValue::Word(words.clone())),
            BudgetParamKind::Stated => {
                let quantities = time.ok().into_iter().chain(parse_size(text).ok());
                return Ok([text.to_owned()]
                    .into_iter()
                    .chain(quantities.map(|value| value.to_string()))
                    .collect());
            }
        };
        quantity.map(|value: u64| vec![value.to_string()]).map_err(NoValue::Quantity)
    }
}

/// The names that budgets may have: those of the existing probes, and of the results at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetNameSet {
    probes: BTreeMap<String, BTreeMap<String, BudgetParamKind>>,
    values: BTreeSet<String>,
}

impl BudgetNameSet {
    /// Adds a probe with its parameters.
    pub fn add_probe<'a>(&mut self, id: &str, params: impl IntoIterator<Item = (&'a str, BudgetParamKind)>) {
        let known = self.probes.entry(id.to_owned()).or_default();
        known.extend(params.into_iter().map(|(name, kind)| (name.to_owned(), kind)));
    }

    /// Adds the names of values beside the duration: `meet`, `losses`.
    pub fn add_values<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.values.extend(names.into_iter().map(str::to_owned));
    }

    /// Adds the names in a result, which may be of another version, or of another tool.
    pub fn add_run(&mut self, run: &RunResult) {
        for m in &run.report.measurements {
            let known = self.probes.entry(m.probe.clone()).or_default();
            for name in m.params.keys() {
                known.entry(name.clone()).or_insert(BudgetParamKind::Stated);
            }
            self.values.extend(m.values.keys().cloned());
        }
    }

    /// Returns an error with all probes and families if no probe or family has this name.
    pub(super) fn check_probe(&self, name: &str) -> Result<(), Vec<String>> {
        if self.probes.keys().any(|probe| is_wanted(probe, &[name.to_owned()])) {
            return Ok(());
        }
        let families: BTreeSet<&str> =
            self.probes.keys().filter_map(|probe| probe.split('.').next()).collect();
        Err(self.probes.keys().cloned().chain(families.into_iter().map(str::to_owned)).collect())
    }

    /// The kinds of values that a parameter of these probes takes, or all names of their parameters if no parameter has
    /// this name.
    pub(super) fn kinds(&self, probe: &str, param: &str) -> Result<Vec<&BudgetParamKind>, Vec<String>> {
        let only = [probe.to_owned()];
        let selected = self.probes.iter().filter(|(id, _)| is_wanted(id, &only)).map(|(_, params)| params);
        let kinds: Vec<&BudgetParamKind> = selected.clone().filter_map(|params| params.get(param)).collect();
        if kinds.is_empty() {
            let all: BTreeSet<String> = selected.flat_map(|params| params.keys().cloned()).collect();
            return Err(all.into_iter().collect());
        }
        Ok(kinds)
    }

    /// Returns an error with all names of values if no value has this name.
    pub(super) fn check_value(&self, name: &str) -> Result<(), Vec<String>> {
        if name == BEYOND || self.values.contains(name) {
            Ok(())
        } else {
            Err(self.values.iter().cloned().collect())
        }
    }
}
