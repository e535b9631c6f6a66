//! Titles of points for a reader, told apart by their parameters.

use crate::runs::point_id;
use latscope_core::events::format_param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::report::Measurement;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the title of a point, or its id if it has none.
pub(crate) fn title_or_id(m: &Measurement) -> String {
    if m.title.is_empty() { point_id(&m.probe, &m.params) } else { m.title.clone() }
}

/// A point by its probe, title and parameters.
pub(crate) type Titled<'a> = (&'a str, &'a str, &'a Params);

/// Returns the title of each point. Those of one probe that share a title have the parameters added in which they
/// differ.
pub(crate) fn titles_apart(points: &[Titled]) -> Vec<String> {
    let mut found: BTreeMap<(&str, &str), BTreeSet<&Params>> = BTreeMap::new();
    for (probe, title, params) in points {
        found.entry((probe, title)).or_default().insert(params);
    }
    let apart = |(probe, title, params): &Titled| {
        let alike = &found[&(*probe, *title)];
        let differs = |(name, value): &(&String, &ParamValue)| {
            !alike.iter().all(|other| other.get(*name) == Some(*value))
        };
        let added = params.iter().filter(differs).map(|(name, value)| format_param(name, value, params));
        [(*title).to_owned()].into_iter().chain(added).collect::<Vec<_>>().join(", ")
    };
    points.iter().map(apart).collect()
}
