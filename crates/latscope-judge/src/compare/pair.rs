//! Pairing of the measurements of two sides that are the same work.

use crate::runs::{RunResult, point_id};
use latscope_core::merged::{is_all_of, is_merged, pairs_in};
use latscope_core::param;
use latscope_core::plan::Params;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Sampling, Semantics};
use latscope_core::units::count_with_noun;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A point that both sides measured.
pub(crate) struct ComparisonPair<'a> {
    /// Measurement of each run of A that has the point.
    pub a: Vec<&'a Measurement>,
    /// Measurement of each run of B that has the point.
    pub b: Vec<&'a Measurement>,
    /// True if the point is the sum of a single pair of endpoints in each run; the pair is then not compared beside it.
    pub of_one: bool,
}

/// A point that both sides have and that is not compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IncomparablePoint {
    /// Stable name of the point.
    pub id: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Difference of the work.
    pub why: String,
}

/// Result of the pairing for all points.
pub(crate) struct Paired<'a> {
    pub pairs: Vec<ComparisonPair<'a>>,
    pub refused: Vec<IncomparablePoint>,
    /// Stable names of points that only A measured, and only B.
    pub lacking: [Vec<String>; 2],
    /// Assumptions about points that another program measured, a sentence for each side.
    pub assumed: Vec<String>,
}

type ComparisonPointKey<'a> = (&'a str, &'a Params);
type Points<'a> = BTreeMap<ComparisonPointKey<'a>, Vec<RunPointMeasurement<'a>>>;

/// A point as a run measured it.
struct RunPointMeasurement<'a> {
    m: &'a Measurement,
    /// Requested length of a batch, ns.
    batch: Option<u64>,
    /// Number of pairs of endpoints, if the point is a sum over these.
    pairs: Option<u64>,
}

/// Returns true if a point was requested by its family or its probe, or if `only` is empty.
pub fn is_wanted(probe: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|name| probe == name || probe.split('.').next() == Some(name))
}

/// Pairs the points of two sides by probe and parameters.
pub(crate) fn pair_points<'a>(a: &[&'a RunResult], b: &[&'a RunResult], only: &[String]) -> Paired<'a> {
    let (of_a, mut of_b) = (collect_points(a, only), collect_points(b, only));
    let alike = alike_as_far_as_known(&of_a, &of_b);
    let mut paired = Paired {
        pairs: Vec::new(),
        refused: Vec::new(),
        lacking: [Vec::new(), Vec::new()],
        assumed: assumed(&alike),
    };
    for (key, a) in of_a {
        let other = alike.get(&key).copied().unwrap_or(key);
        let Some(b) = of_b.remove(&other) else {
            paired.lacking[0].push(point_id(key.0, key.1));
            continue;
        };
        match work_difference(&a, &b) {
            Some(why) => {
                let title = a[0].m.title.clone();
                paired.refused.push(IncomparablePoint { id: point_id(key.0, key.1), title, why });
            }
            None => {
                let [a, b] = [a, b].map(|side| side.into_iter().map(|found| found.m).collect());
                paired.pairs.push(ComparisonPair { a, b, of_one: false });
            }
        }
    }
    paired.lacking[1].extend(of_b.keys().map(|key| point_id(key.0, key.1)));
    paired.pairs = remove_duplicates(paired.pairs);
    paired
}

/// Removes the pairs of endpoints that are all of a sum: both have the same figures.
fn remove_duplicates(mut pairs: Vec<ComparisonPair>) -> Vec<ComparisonPair> {
    let mut parts = BTreeSet::new();
    for sum in (0..pairs.len()).filter(|at| is_merged(pairs[*at].a[0])).collect::<Vec<_>>() {
        if let Some(part) = pairs.iter().position(|part| pairs[sum].is_all(part)) {
            pairs[sum].of_one = true;
            parts.insert(part);
        }
    }
    let mut at = 0..;
    pairs.retain(|_| at.next().is_some_and(|at| !parts.contains(&at)));
    pairs
}

impl ComparisonPair<'_> {
    /// Returns true if a pair of endpoints is all of this sum in each run.
    fn is_all(&self, part: &ComparisonPair) -> bool {
        [(&self.a, &part.a), (&self.b, &part.b)].into_iter().all(|(sums, parts)| {
            sums.len() == parts.len() && sums.iter().zip(parts).all(|(sum, part)| is_all_of(part, sum))
        })
    }
}

/// Names of the parameters that only `other` has.
fn lacking<'a>(params: &Params, other: &'a Params) -> impl Iterator<Item = &'a String> {
    other.keys().filter(|name| !params.contains_key(*name))
}

/// Parameters that an output of another program may lack though the point had them. If any other parameter is missing,
/// the point was measured without it.
const MAY_BE_UNKNOWN: [&str; 7] =
    [param::CLOCK, param::CPU, param::INTERVAL, param::METHOD, param::POLICY, param::PRIORITY, param::THREAD];

/// Returns true if all that is known of a point holds for another point, too.
fn params_agree(known: &Params, other: &Params) -> bool {
    known.iter().all(|(name, value)| other.get(name) == Some(value))
        && lacking(known, other).all(|name| MAY_BE_UNKNOWN.contains(&name.as_str()))
}

/// A point that only one side has, and true if another program measured all runs of it.
type UnpairedPoint<'a> = (ComparisonPointKey<'a>, bool);

/// The points that `other` does not have.
fn unpaired_points<'a>(side: &Points<'a>, other: &Points<'a>) -> Vec<UnpairedPoint<'a>> {
    let rest = side.iter().filter(|(key, _)| !other.contains_key(*key));
    rest.map(|(key, runs)| (*key, runs.iter().all(|found| found.m.is_imported()))).collect()
}

/// The only point that may be the same as `point`.
fn partner<'a>(point: &UnpairedPoint, others: &[UnpairedPoint<'a>]) -> Option<UnpairedPoint<'a>> {
    let ((probe, params), imported) = point;
    let mut matches = others.iter().filter(|((other_probe, other), other_imported)| {
        probe == other_probe
            && (*imported && params_agree(params, other) || *other_imported && params_agree(other, params))
    });
    let first = matches.next()?;
    matches.next().is_none().then_some(*first)
}

/// Points of A with those of B that differ only in parameters that one side lacks, because another program measured it.
/// A point that could match several points of the other side matches none.
fn alike_as_far_as_known<'a>(
    a: &Points<'a>,
    b: &Points<'a>,
) -> BTreeMap<ComparisonPointKey<'a>, ComparisonPointKey<'a>> {
    let (a, b) = (unpaired_points(a, b), unpaired_points(b, a));
    if !a.iter().chain(&b).any(|(_, imported)| *imported) {
        return BTreeMap::new();
    }
    let pairs = a.iter().filter_map(|point| {
        let other = partner(point, &b)?;
        partner(&other, &a)?;
        Some((point.0, other.0))
    });
    pairs.collect()
}

/// Facts that are not known of points that are compared all the same, a sentence for each side.
fn assumed(alike: &BTreeMap<ComparisonPointKey, ComparisonPointKey>) -> Vec<String> {
    let of_a = assumed_of("A", alike.iter().map(|(a, b)| (a.1, b.1)));
    let of_b = assumed_of("B", alike.iter().map(|(a, b)| (b.1, a.1)));
    of_a.into_iter().chain(of_b).collect()
}

/// The sentence for a side, from the parameters of its points and of their partners.
fn assumed_of<'a>(side: &str, pairs: impl Iterator<Item = (&'a Params, &'a Params)>) -> Option<String> {
    let unknown: Vec<Vec<&String>> = pairs.map(|(params, other)| lacking(params, other).collect()).collect();
    let points = unknown.iter().filter(|names| !names.is_empty()).count();
    let names: BTreeSet<&str> = unknown.iter().flatten().map(|name| name.as_str()).collect();
    (points > 0).then(|| {
        format!(
            "{side} does not say {} of {}: compared as if they were alike",
            names.into_iter().collect::<Vec<_>>().join(", "),
            count_with_noun(points as u64, "point")
        )
    })
}

/// The points that the runs of a side measured, each once a run.
fn collect_points<'a>(runs: &[&'a RunResult], only: &[String]) -> Points<'a> {
    let mut points = Points::new();
    for run in runs {
        let mut seen = BTreeSet::new();
        for (m, batch) in run.points() {
            let key = (m.probe.as_str(), &m.params);
            let measured = m.quality.level != QualityLevel::Unsupported && m.is_timed();
            if measured && is_wanted(&m.probe, only) && seen.insert(key) {
                let pairs = pairs_in(&run.report, m);
                points.entry(key).or_default().push(RunPointMeasurement { m, batch, pairs });
            }
        }
    }
    points
}

/// Difference of the work of a point between the runs; `None` if the work is the same.
fn work_difference(a: &[RunPointMeasurement], b: &[RunPointMeasurement]) -> Option<String> {
    let facts: [(&str, Fact); 5] = [
        ("revision of the probe", |point| Some(point.m.revision.to_string())),
        ("what is timed", |point| Some(times_phrase(point.m.times).to_owned())),
        ("sampling", |point| Some(sampling(point.m.sampling).to_owned())),
        ("length of a batch", |point| point.batch.map(|ns| format!("{ns} ns"))),
        ("pairs of endpoints", |point| point.pairs.map(|pairs| pairs.to_string())),
    ];
    facts.iter().find_map(|(what, fact)| {
        let [a, b] = [a, b].map(|side| side.iter().filter_map(fact).collect::<BTreeSet<String>>());
        let differ = a.union(&b).count() > 1;
        let [a, b] = [a, b].map(|values| values.into_iter().collect::<Vec<_>>().join(" and "));
        differ.then(|| format!("{what}: {a} in A, {b} in B"))
    })
}

type Fact = fn(&RunPointMeasurement) -> Option<String>;

fn times_phrase(semantics: Semantics) -> &'static str {
    match semantics {
        Semantics::OneWay => "one way",
        Semantics::RoundTrip => "a round trip",
        Semantics::Operation => "an operation",
    }
}

fn sampling(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Event => "each event",
        Sampling::Batch { .. } => "batches",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn sums_over_other_numbers_of_pairs_are_not_compared() {
        let two = fixture::ipc::latency();
        let mut one = two.clone();
        one.measurements.retain(|m| m.numeric_param("pair") != Some(1));
        let [two, one] = [two, one].map(RunResult::from_report);
        let refused =
            |b| pair_points(&[&two], &[b], &[]).refused.into_iter().map(|one| one.why).collect::<Vec<_>>();
        assert_eq!(refused(&one), ["pairs of endpoints: 2 in A, 1 in B"; 2]);
        assert_eq!(refused(&two), [""; 0]);
    }
}
