//! Pairing of the measurements of two sides that are the same work.

use crate::runs::{Run, point_id};
use latscope_core::merged::{is_all_of, is_merged, pairs_in};
use latscope_core::plan::Params;
use latscope_core::quality::Level;
use latscope_core::report::{Measurement, Sampling, Semantics};
use latscope_core::units::counted;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A point that both sides measured.
pub(crate) struct Pair<'a> {
    /// Measurement of each run of A that has the point.
    pub a: Vec<&'a Measurement>,
    /// Measurement of each run of B that has the point.
    pub b: Vec<&'a Measurement>,
    /// True if the point is the sum of a single pair of endpoints in each run; the pair is then not compared beside it.
    pub of_one: bool,
}

/// A point that both sides have and that is not compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Refused {
    /// Stable name of the point.
    pub id: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Difference of the work.
    pub why: String,
}

/// Result of the pairing for all points.
pub(crate) struct Paired<'a> {
    pub pairs: Vec<Pair<'a>>,
    pub refused: Vec<Refused>,
    /// Stable names of points that only A measured, and only B.
    pub lacking: [Vec<String>; 2],
    /// Assumptions about points that another program measured, a sentence for each side.
    pub assumed: Vec<String>,
}

type Key<'a> = (&'a str, &'a Params);
type Points<'a> = BTreeMap<Key<'a>, Vec<Found<'a>>>;

/// A point as a run measured it.
struct Found<'a> {
    m: &'a Measurement,
    /// Requested length of a batch, ns.
    batch: Option<u64>,
    /// Number of pairs of endpoints, if the point is a sum over these.
    pairs: Option<u64>,
}

/// Returns true if a point was requested by its family or its probe, or if `only` is empty.
pub fn is_wanted(probe: &str, only: &[String]) -> bool {
    let named = |name: &String| probe == name || probe.split('.').next() == Some(name);
    only.is_empty() || only.iter().any(named)
}

/// Pairs the points of two sides by probe and parameters.
pub(crate) fn pair<'a>(a: &[&'a Run], b: &[&'a Run], only: &[String]) -> Paired<'a> {
    let (of_a, mut of_b) = (points(a, only), points(b, only));
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
        match differs(&a, &b) {
            Some(why) => {
                let title = a[0].m.title.clone();
                paired.refused.push(Refused { id: point_id(key.0, key.1), title, why });
            }
            None => {
                let of = |side: Vec<Found<'a>>| side.into_iter().map(|found| found.m).collect();
                paired.pairs.push(Pair { a: of(a), b: of(b), of_one: false });
            }
        }
    }
    paired.lacking[1].extend(of_b.keys().map(|key| point_id(key.0, key.1)));
    paired.pairs = once(paired.pairs);
    paired
}

/// Removes the pairs of endpoints that are all of a sum: both have the same figures.
fn once(mut pairs: Vec<Pair>) -> Vec<Pair> {
    let all_of = |sum: &[&Measurement], part: &[&Measurement]| {
        sum.len() == part.len() && sum.iter().zip(part).all(|(sum, part)| is_all_of(part, sum))
    };
    let is_all = |sum: &Pair, part: &Pair| all_of(&sum.a, &part.a) && all_of(&sum.b, &part.b);
    let sums: Vec<usize> = (0..pairs.len()).filter(|at| is_merged(pairs[*at].a[0])).collect();
    let found =
        sums.iter().filter_map(|sum| Some((*sum, pairs.iter().position(|part| is_all(&pairs[*sum], part))?)));
    let found: Vec<(usize, usize)> = found.collect();
    found.iter().for_each(|(sum, _)| pairs[*sum].of_one = true);
    let mut at = 0..;
    pairs.retain(|_| at.next().is_some_and(|at| !found.iter().any(|(_, part)| *part == at)));
    pairs
}

/// Parameters that an output of another program may lack though the point had them. If any other parameter is missing,
/// the point was measured without it.
const MAY_BE_UNKNOWN: [&str; 7] = ["clock", "cpu", "interval", "method", "policy", "priority", "thread"];

/// Returns true if all that is known of a point holds for another point, too.
fn agrees(known: &Params, other: &Params) -> bool {
    let lacking = || other.keys().filter(|name| !known.contains_key(*name));
    known.iter().all(|(name, value)| other.get(name) == Some(value))
        && lacking().all(|name| MAY_BE_UNKNOWN.contains(&name.as_str()))
}

/// Points of A with those of B that differ only in parameters that one side lacks, because another program measured it.
/// A point that could match several points of the other side matches none.
fn alike_as_far_as_known<'a>(a: &Points<'a>, b: &Points<'a>) -> BTreeMap<Key<'a>, Key<'a>> {
    let alone = |side: &Points<'a>, other: &Points<'a>| -> Vec<(Key<'a>, bool)> {
        let rest = side.iter().filter(|(key, _)| !other.contains_key(*key));
        rest.map(|(key, points)| (*key, points.iter().all(|found| found.m.is_imported()))).collect()
    };
    let (a, b) = (alone(a, b), alone(b, a));
    let alike = |(a, imported_a): &(Key<'a>, bool), (b, imported_b): &(Key<'a>, bool)| {
        a.0 == b.0 && (*imported_a && agrees(a.1, b.1) || *imported_b && agrees(b.1, a.1))
    };
    let only = |found: Vec<Key<'a>>| if found.len() == 1 { Some(found[0]) } else { None };
    let partner = |one: &(Key<'a>, bool)| {
        let found = only(b.iter().filter(|other| alike(one, other)).map(|other| other.0).collect())?;
        let back = b.iter().find(|other| other.0 == found)?;
        only(a.iter().filter(|other| alike(other, back)).map(|other| other.0).collect())?;
        Some((one.0, found))
    };
    a.iter().filter_map(partner).collect()
}

/// Facts that are not known of points that are compared all the same, a sentence for each side.
fn assumed(alike: &BTreeMap<Key, Key>) -> Vec<String> {
    let lacking = |name: &str, pairs: Vec<(&Params, &Params)>| {
        let unknown = |(mine, other): &(&Params, &Params)| -> Vec<String> {
            other.keys().filter(|name| !mine.contains_key(*name)).cloned().collect()
        };
        let names: BTreeSet<String> = pairs.iter().flat_map(unknown).collect();
        let points = pairs.iter().filter(|pair| !unknown(pair).is_empty()).count();
        (points > 0).then(|| {
            format!(
                "{name} does not say {} of {}: compared as if they were alike",
                names.into_iter().collect::<Vec<String>>().join(", "),
                counted(points as u64, "point")
            )
        })
    };
    let a = lacking("A", alike.iter().map(|(a, b)| (a.1, b.1)).collect());
    let b = lacking("B", alike.iter().map(|(a, b)| (b.1, a.1)).collect());
    a.into_iter().chain(b).collect()
}

/// The points that the runs of a side measured, each once a run.
fn points<'a>(runs: &[&'a Run], only: &[String]) -> Points<'a> {
    let mut points = Points::new();
    for run in runs {
        let mut seen = BTreeSet::new();
        for (m, batch) in run.points() {
            let key = (m.probe.as_str(), &m.params);
            let measured = m.quality.level != Level::Unsupported && m.typical().is_some();
            if measured && is_wanted(&m.probe, only) && seen.insert(key) {
                let pairs = pairs_in(&run.report, m);
                points.entry(key).or_default().push(Found { m, batch, pairs });
            }
        }
    }
    points
}

/// Difference of the work of a point between the runs; `None` if the work is the same.
fn differs(a: &[Found], b: &[Found]) -> Option<String> {
    let facts: [(&str, Fact); 5] = [
        ("revision of the probe", |one| Some(one.m.revision.to_string())),
        ("what is timed", |one| Some(timed(one.m.times).to_owned())),
        ("sampling", |one| Some(sampling(one.m.sampling).to_owned())),
        ("length of a batch", |one| one.batch.map(|ns| format!("{ns} ns"))),
        ("pairs of endpoints", |one| one.pairs.map(|pairs| pairs.to_string())),
    ];
    facts.iter().find_map(|(what, fact)| {
        let values = |side: &[Found]| -> BTreeSet<String> { side.iter().filter_map(fact).collect() };
        let (of_a, of_b) = (values(a), values(b));
        let alike = of_a.union(&of_b).count() <= 1;
        let joined = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(" and ");
        (!alike).then(|| format!("{what}: {} in A, {} in B", joined(of_a), joined(of_b)))
    })
}

type Fact = fn(&Found) -> Option<String>;

fn timed(semantics: Semantics) -> &'static str {
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
    use latscope_core::plan::ParamValue;

    #[test]
    fn sums_over_other_numbers_of_pairs_are_not_compared() {
        let two = fixture::ipc::latency();
        let mut one = two.clone();
        one.measurements.retain(|m| m.params["pair"] != ParamValue::Number(1));
        let [two, one] = [two, one].map(Run::of);
        let refused = |b| pair(&[&two], &[b], &[]).refused.into_iter().map(|one| one.why).collect::<Vec<_>>();
        assert_eq!(refused(&one), ["pairs of endpoints: 2 in A, 1 in B"; 2]);
        assert_eq!(refused(&two), [""; 0]);
    }
}
