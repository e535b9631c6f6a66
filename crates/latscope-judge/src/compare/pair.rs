//! Which measurements of two sides are the same work.

use crate::runs::{Run, point_id};
use latscope_core::plan::Params;
use latscope_core::report::{Measurement, Sampling, Semantics, Support};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The same point of both sides.
pub(crate) struct Pair<'a> {
    /// That of each run of A that measured it.
    pub a: Vec<&'a Measurement>,
    /// That of each run of B.
    pub b: Vec<&'a Measurement>,
}

/// A point that both sides have and that is not compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refused {
    /// Stable name of the point.
    pub id: String,
    /// What a reader calls it.
    pub title: String,
    /// In what the work differs.
    pub why: String,
}

/// What becomes of all points.
pub(crate) struct Paired<'a> {
    pub pairs: Vec<Pair<'a>>,
    pub refused: Vec<Refused>,
    /// Stable names of points that only A measured, and only B.
    pub lacking: [Vec<String>; 2],
}

type Key<'a> = (&'a str, &'a Params);
type Points<'a> = BTreeMap<Key<'a>, Vec<(&'a Measurement, Option<u64>)>>;

/// Whether a point was asked for: by its family, or its probe; all are if none is named.
pub fn is_wanted(probe: &str, only: &[String]) -> bool {
    let named = |name: &String| probe == name || probe.split('.').next() == Some(name);
    only.is_empty() || only.iter().any(named)
}

/// Pairs the points of two sides by probe and parameters.
pub(crate) fn pair<'a>(a: &[&'a Run], b: &[&'a Run], only: &[String]) -> Paired<'a> {
    let (of_a, mut of_b) = (points(a, only), points(b, only));
    let mut paired = Paired { pairs: Vec::new(), refused: Vec::new(), lacking: [Vec::new(), Vec::new()] };
    for (key, a) in of_a {
        let Some(b) = of_b.remove(&key) else {
            paired.lacking[0].push(point_id(key.0, key.1));
            continue;
        };
        match differs(&a, &b) {
            Some(why) => {
                let title = a[0].0.title.clone();
                paired.refused.push(Refused { id: point_id(key.0, key.1), title, why });
            }
            None => {
                let of =
                    |side: Vec<(&'a Measurement, Option<u64>)>| side.into_iter().map(|(m, _)| m).collect();
                paired.pairs.push(Pair { a: of(a), b: of(b) });
            }
        }
    }
    paired.lacking[1].extend(of_b.keys().map(|key| point_id(key.0, key.1)));
    paired
}

/// The points that the runs of a side measured, of each run once.
fn points<'a>(runs: &[&'a Run], only: &[String]) -> Points<'a> {
    let mut points = Points::new();
    for run in runs {
        let mut seen = BTreeSet::new();
        for (m, batch) in run.points() {
            let key = (m.probe.as_str(), &m.params);
            let measured = m.support != Support::Unsupported && m.typical().is_some();
            if measured && is_wanted(&m.probe, only) && seen.insert(key) {
                points.entry(key).or_default().push((m, batch));
            }
        }
    }
    points
}

/// In what the work of a point differs between the runs; `None` where it is the same.
fn differs(a: &[(&Measurement, Option<u64>)], b: &[(&Measurement, Option<u64>)]) -> Option<String> {
    let facts: [(&str, Fact); 4] = [
        ("revision of the probe", |m, _| Some(m.revision.to_string())),
        ("what is timed", |m, _| Some(timed(m.times).to_owned())),
        ("sampling", |m, _| Some(sampling(m.sampling).to_owned())),
        ("length of a batch", |_, batch| batch.map(|ns| format!("{ns} ns"))),
    ];
    facts.iter().find_map(|(what, fact)| {
        let values = |side: &[(&Measurement, Option<u64>)]| -> BTreeSet<String> {
            side.iter().filter_map(|(m, batch)| fact(m, *batch)).collect()
        };
        let (of_a, of_b) = (values(a), values(b));
        let alike = of_a.union(&of_b).count() <= 1;
        let joined = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(" and ");
        (!alike).then(|| format!("{what}: {} in A, {} in B", joined(of_a), joined(of_b)))
    })
}

type Fact = fn(&Measurement, Option<u64>) -> Option<String>;

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
