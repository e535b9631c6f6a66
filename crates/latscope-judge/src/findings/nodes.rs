//! Firmware's statements on NUMA nodes beside what was measured.

use super::evidence::{EvidenceFigure, FindingBuilder};
use super::select::{join_list, measured_points};
use latscope_core::catalogue::ids;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::report::{Finding, Measurement, Report};
use std::collections::BTreeMap;

/// Loads from the memory of a node, with what firmware states for it.
struct Loads {
    node: u32,
    figure: EvidenceFigure,
    claims: Claims,
}

/// Statements of firmware: a smaller number is nearer.
struct Claims {
    distance: Option<u32>,
    latency: Option<u64>,
}

/// Pages, CPU node and size of loads that can be compared.
type Alike<'a> = (&'a str, u32, u64);

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let mut groups: BTreeMap<Alike, Vec<Loads>> = BTreeMap::new();
    for m in
        measured_points(report, ids::MEMORY_LATENCY).filter(|m| m.has_param_value(param::ORDER, "random"))
    {
        if let Some((alike, loads)) = loads(&report.machine, m) {
            groups.entry(alike).or_default().push(loads);
        }
    }
    groups.into_iter().filter_map(|((pages, from, _), loads)| contradiction(pages, from, &loads)).collect()
}

fn loads<'a>(machine: &Machine, m: &'a Measurement) -> Option<(Alike<'a>, Loads)> {
    let (from, to) = m.nodes()?;
    let claims = Claims { distance: machine.distance(from, to), latency: machine.claimed_latency(from, to) };
    let alike = (m.text_param(param::PAGES)?, from, m.numeric_param(param::SIZE)?);
    Some((alike, Loads { node: to, figure: EvidenceFigure::p50(m)?, claims }))
}

/// The finding that firmware states another order of nodes than the measured one; `None` if the intervals allow its
/// order.
fn contradiction(pages: &str, from: u32, loads: &[Loads]) -> Option<Finding> {
    let mut told = FindingBuilder::claim("node-order").value("cpu_node", from.into());
    let mut wrong = Vec::new();
    for near in loads {
        for far in loads.iter().filter(|far| near.figure.low > far.figure.high) {
            let Some(claim) = nearer(&near.claims, &far.claims) else { continue };
            told = told
                .figure(&format!("node{}_ns", near.node), &near.figure)
                .figure(&format!("node{}_ns", far.node), &far.figure);
            wrong.push(format!(
                "node {} before node {} ({claim}), where a load takes {} and {}",
                near.node,
                far.node,
                near.figure.format_duration(),
                far.figure.format_duration()
            ));
        }
    }
    (!wrong.is_empty()).then(|| {
        told.into_finding(format!(
            "Seen from the CPUs of node {from}, firmware states another order of nodes than was measured on pages of {pages}: {}.",
            join_list(&wrong)
        ))
    })
}

/// Says by what firmware has one node nearer than another; `None` if it does not.
fn nearer(one: &Claims, other: &Claims) -> Option<String> {
    let latency = one.latency.zip(other.latency).filter(|(one, other)| one < other);
    let distance = one.distance.zip(other.distance).filter(|(one, other)| one < other);
    latency
        .map(|(one, other)| format!("latency {one} and {other} ns"))
        .or_else(|| distance.map(|(one, other)| format!("distance {one} and {other}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::machine::NumaNode;
    use latscope_core::plan::params;
    use latscope_core::report::{Certainty, Semantics};
    use latscope_core::testing::{self, point};

    fn report(ns: [f64; 3]) -> Report {
        let loads = |(node, ns): (u64, f64)| {
            let mut of =
                params([("order", "random".into()), ("pages", "2MiB".into()), ("size", (1 << 26).into())]);
            of.insert("nodes".to_owned(), node.into());
            of.insert("cpu-nodes".to_owned(), 0.into());
            point(ids::MEMORY_LATENCY, of, Semantics::Operation, ns)
        };
        let mut report = testing::report((0..).zip(ns).map(loads).collect());
        report.machine.nodes = (0..3)
            .map(|id| NumaNode {
                id,
                memory: 1,
                distances: if id == 0 { vec![10, 20, 30] } else { Vec::new() },
                ..NumaNode::default()
            })
            .collect();
        report
    }

    #[test]
    fn an_order_that_the_intervals_exclude_is_a_finding_that_names_both() {
        let found = findings(&report([80.0, 190.0, 120.0]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].text.contains("node 1 before node 2 (distance 20 and 30), where a load takes"),
            "{}",
            found[0].text
        );
        assert_eq!((found[0].certainty, found[0].evidence.len()), (Certainty::Claim, 2));
    }

    #[test]
    fn an_order_that_fits_or_is_within_the_intervals_is_none() {
        assert_eq!(findings(&report([80.0, 120.0, 190.0])), []);
        assert_eq!(findings(&report([80.0, 120.0, 120.0])), []);
    }
}
