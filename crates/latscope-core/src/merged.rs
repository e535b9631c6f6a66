//! Rows that are sums of others: over all CPUs, or over all pairs.

use crate::plan::ParamValue;
use crate::report::Measurement;

/// The parameters over which there are sums, `all` being their value there.
pub const MERGED: [&str; 2] = ["cpu", "pair"];

/// Whether a measurement is the sum over all CPUs, or over all pairs.
pub fn is_merged(m: &Measurement) -> bool {
    let all = |name: &&str| matches!(m.params.get(*name), Some(ParamValue::Text(text)) if text == "all");
    MERGED.iter().any(all)
}

/// Whether a measurement is in a sum.
pub fn is_part_of(one: &Measurement, all: &Measurement) -> bool {
    let same = |(name, value): (&String, &ParamValue)| {
        name == "thread" || MERGED.contains(&name.as_str()) || one.params.get(name) == Some(value)
    };
    !is_merged(one) && all.probe == one.probe && all.params.iter().all(same)
}
