//! Rows that are sums of others: over all CPUs, or over all pairs.

use crate::param;
use crate::plan::ParamValue;
use crate::report::{Measurement, Report};

/// The parameters over which there are sums, `all` being their value there.
pub const MERGED: [&str; 2] = [param::CPU, param::PAIR];

/// Returns true if a measurement is the sum over all CPUs, or over all pairs.
pub fn is_merged(m: &Measurement) -> bool {
    MERGED.iter().any(|name| m.has_param_value(name, "all"))
}

/// Returns true if the measurement `one` is part of the sum `all`.
pub fn is_part_of(one: &Measurement, all: &Measurement) -> bool {
    let same = |(name, value): (&String, &ParamValue)| {
        name == param::THREAD || MERGED.contains(&name.as_str()) || one.params.get(name) == Some(value)
    };
    !is_merged(one) && all.probe == one.probe && all.params.iter().all(same)
}

/// Returns true if a measurement is of the only pair of endpoints in a sum: both have the same figures.
pub fn is_all_of(part: &Measurement, sum: &Measurement) -> bool {
    part.params.contains_key(param::PAIR)
        && part.summary.count == sum.summary.count
        && is_merged(sum)
        && is_part_of(part, sum)
}

/// Number of pairs of endpoints in a sum. `None` if the measurement is no sum over pairs, or if the report has no rows
/// for its pairs.
pub fn pairs_in(report: &Report, sum: &Measurement) -> Option<u64> {
    if !is_merged(sum) || !sum.params.contains_key(param::PAIR) {
        return None;
    }
    let parts = report.measurements.iter().filter(|one| one.probe == sum.probe && is_part_of(one, sum));
    Some(parts.count() as u64).filter(|pairs| *pairs > 0)
}

/// Title of the sum over a single pair of endpoints, as a reader sees it.
pub fn without_pairs(title: &str) -> &str {
    title.strip_suffix(", all pairs").unwrap_or(title)
}

impl Report {
    /// The measurement of a point of the plan, by the index of its step and its own in the step. `None` where the run
    /// ended before that step: measurements are in the order of the plan, and a step has those of all of its points
    /// or none.
    pub fn of_point(&self, step: usize, point: usize) -> Option<&Measurement> {
        let mut measured = self.measurements.iter().filter(|m| !is_merged(m)).peekable();
        for (index, planned) in self.plan.steps.iter().enumerate().take(step + 1) {
            let first = planned.points.first()?;
            let entered = measured.peek().is_some_and(|m| m.probe == first.probe && m.params == first.params);
            match entered {
                _ if index == step => {
                    return measured.nth(point).filter(|_| entered && point < planned.points.len());
                }
                true => drop(measured.nth(planned.points.len() - 1)),
                false => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture;

    #[test]
    fn a_point_has_its_measurement_also_behind_sums_and_steps_that_were_not_reached() {
        let mut report = fixture::report();
        let steps = report.plan.steps.clone();
        let behind = |step: usize| steps[..=step].iter().map(|step| step.points.len()).sum::<usize>();
        let mut sum = report.measurements[0].clone();
        sum.params.insert("cpu".to_owned(), "all".into());
        report.measurements.truncate(behind(2));
        report.measurements.splice(behind(0)..behind(1), [sum]);
        for (index, step) in steps.iter().enumerate() {
            for (place, point) in step.points.iter().enumerate() {
                let expected = [0, 2].contains(&index).then_some(&point.params);
                assert_eq!(report.of_point(index, place).map(|m| &m.params), expected, "{}", point.title);
            }
            assert!(report.of_point(index, step.points.len()).is_none());
        }
        assert!(report.of_point(steps.len(), 0).is_none());
    }
}
