//! Impossible values: values that no machine can have. Something disturbed a row with such a value, or the row that it
//! is compared with.

use crate::param;
use crate::plan::Params;
use crate::quality::{QualityLevel, Reason};
use crate::value::MeasuredQuantity;
use std::collections::BTreeMap;

/// Noise takes a value so far beyond its bound at most.
const TOLERANCE: f64 = 1.1;

/// The reason that a row with an impossible value has.
pub(crate) const IMPOSSIBLE: &str = "impossible";

/// Returns the reason against a point whose values are impossible for these parameters; `None` if all are possible.
pub(crate) fn impossible(params: &Params, values: &BTreeMap<String, MeasuredQuantity>) -> Option<Reason> {
    speedup(params, values).or_else(|| slowdown(values))
}

/// Reason against a speedup larger than the number of chains that are followed at once.
fn speedup(params: &Params, values: &BTreeMap<String, MeasuredQuantity>) -> Option<Reason> {
    let chains = params.get(param::CHAINS)?.as_number()? as f64;
    let speedup = values.get("speedup")?.value;
    let digits = if speedup < 10.0 { 1 } else { 0 };
    (speedup > chains * TOLERANCE).then(|| {
        let text = format!(
            "{chains} chains at once cannot be {speedup:.digits$} times as fast as one: the single one was disturbed"
        );
        impossible_reason(text).with_number("speedup", speedup).with_number("at_most", chains)
    })
}

/// No pool of threads is faster than its tasks dealt out evenly.
fn slowdown(values: &BTreeMap<String, MeasuredQuantity>) -> Option<Reason> {
    let slowdown = values.get("slowdown").filter(|slowdown| slowdown.unit == "ratio")?.value;
    (slowdown < 1.0 / TOLERANCE).then(|| {
        let text = format!(
            "a pool cannot need {slowdown:.2} times the time of its tasks dealt out evenly: the single task that it is \
             compared with was disturbed"
        );
        impossible_reason(text).with_number("slowdown", slowdown).with_number("at_least", 1.0)
    })
}

fn impossible_reason(text: String) -> Reason {
    Reason::new(QualityLevel::Degraded, IMPOSSIBLE, text, "measure again on a quieter machine")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::params;
    use crate::report::{Better, Measurement, Semantics};
    use crate::testing::point;

    fn valued(name: &str, unit: &str, value: f64) -> Measurement {
        let parameters = params([("chains", 16.into()), ("threads", 2.into())]);
        let mut m = point("memory.parallelism", parameters, Semantics::Operation, 5.0);
        m.values
            .insert(name.to_owned(), MeasuredQuantity { value, unit: unit.to_owned(), better: Better::More });
        m.derive_results();
        m
    }

    #[test]
    fn sixteen_chains_85_times_faster_than_one_are_disturbed() {
        let m = valued("speedup", "x", 85.0);
        assert_eq!(m.quality.level, QualityLevel::Degraded);
        assert_eq!(m.quality.reasons[0].values["at_most"], 16.0);
        assert!(m.joined_reasons().unwrap().contains("cannot be 85 times as fast"));
        assert_eq!(valued("speedup", "x", 16.5).quality.level, QualityLevel::Ok);
    }

    #[test]
    fn a_pool_that_needs_0_74_times_the_ideal_is_disturbed() {
        assert!(
            valued("slowdown", "ratio", 0.74).joined_reasons().unwrap().contains("cannot need 0.74 times")
        );
        assert_eq!(valued("slowdown", "ratio", 0.97).quality.level, QualityLevel::Ok);
        // The slowdown of something else, in another unit.
        assert_eq!(valued("slowdown", "%", 0.74).quality.level, QualityLevel::Ok);
    }

    #[test]
    fn a_value_that_became_possible_is_no_reason_any_more() {
        let mut m = valued("speedup", "x", 85.0);
        m.values.get_mut("speedup").unwrap().value = 7.0;
        m.derive_results();
        assert_eq!((m.quality.level, m.joined_reasons()), (QualityLevel::Ok, None));
    }
}
