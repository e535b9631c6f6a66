//! Latencies from the CPUs of each NUMA node to the memory of each as a map.

use super::about::of_map;
use super::{Cell, Cells, Drawing, Named, Unit, is_doubtful};
use crate::matrix::show_all;
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::report::{Measurement, Report};
use std::collections::{BTreeMap, BTreeSet};

/// Returns a map for each kind of loads between nodes; fewer than two pairs have no map.
pub(super) fn figures(report: &Report, family: &str) -> Vec<Named> {
    let mut kinds: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
    let ours = |m: &&Measurement| family == "memory" && m.nodes().is_some() && m.typical().is_some();
    for m in report.of_probe(ids::MEMORY_LATENCY).filter(ours) {
        kinds.entry(show_all(&m.params, &[param::ORDER, param::PAGES, param::SIZE])).or_default().push(m);
    }
    kinds.retain(|_, points| points.len() > 1);
    let named = |(kind, points): (String, Vec<&Measurement>)| {
        let id = format!("memory-nodes-{}", kind.replace(' ', "-").to_lowercase());
        Named::new(family, &id, Drawing::Cells(map(report, &kind, &points)))
    };
    kinds.into_iter().map(named).collect()
}

fn map(report: &Report, kind: &str, points: &[&Measurement]) -> Cells {
    let placed: Vec<(&Measurement, (u32, u32))> =
        points.iter().filter_map(|m| Some((*m, m.nodes()?))).collect();
    let names: Vec<u32> =
        placed.iter().flat_map(|(_, (a, b))| [*a, *b]).collect::<BTreeSet<u32>>().into_iter().collect();
    let index = |node: u32| names.binary_search(&node).ok();
    let cell = |(m, (from, to)): &(&Measurement, (u32, u32))| {
        Some(Cell { row: index(*from)?, column: index(*to)?, value: m.typical()?, doubtful: is_doubtful(m) })
    };
    let mut notes = of_map(report, points, "nodes");
    notes.push("rows: the node of the CPUs; columns: the node of the memory".to_owned());
    Cells {
        title: format!("Load from memory between nodes, {kind}"),
        notes,
        side: "node".to_owned(),
        names: names.iter().map(u32::to_string).collect(),
        borders: Vec::new(),
        label: "one load, median".to_owned(),
        unit: Unit::Nanoseconds,
        cells: placed.iter().filter_map(cell).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::{self, batch};

    #[test]
    fn every_pair_has_its_cell_and_a_node_of_memory_only_a_column() {
        let mut report = fixture::report();
        report.measurements = [(0_u64, 0_u64), (0, 1), (0, 3), (1, 0), (1, 1), (1, 3)]
            .map(|(from, to)| {
                let params = [("cpu-nodes", from.into()), ("nodes", to.into()), ("pages", "2MiB".into())];
                batch("memory.latency", "", params, 80.0 + (20 * (from + 1) * to) as f64)
            })
            .to_vec();
        let figures = figures(&report, "memory");
        assert_eq!(figures.len(), 1);
        let Drawing::Cells(cells) = &figures[0].drawing else { panic!("no map") };
        assert_eq!((cells.names.join(" "), cells.cells.len()), ("0 1 3".to_owned(), 6));
        assert_eq!(cells.cells.iter().filter(|cell| cell.column == 2).count(), 2);
        let svg = super::super::document_of(&figures[0].drawing);
        assert!(svg.contains("node ↓ →") && svg.contains(">140<"), "{svg}");
    }
}
