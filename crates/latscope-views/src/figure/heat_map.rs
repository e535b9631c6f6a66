//! Times between pairs of CPUs, in the order of the topology, and between nodes of memory, as maps.

use super::about::of_map;
use super::{Drawing, FigureAxisUnit, HeatMap, HeatMapCell, NamedDrawing, is_doubtful};
use crate::matrix::show_all;
use latscope_core::catalogue::{families, ids};
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::report::{Measurement, Report};
use latscope_core::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

const PROBE: &str = ids::CORE_TO_CORE;

/// A measurement and its two CPUs.
type CpuPairMeasurement<'a> = (&'a Measurement, (u32, u32));

/// Returns the maps of a family.
pub(super) fn heat_maps(report: &Report, family: &str) -> Vec<NamedDrawing> {
    of_cores(report, family).into_iter().chain(of_nodes(report, family)).collect()
}

/// Returns a map for each way in which cores hand over a cache line; fewer than two pairs have no map.
fn of_cores(report: &Report, family: &str) -> Vec<NamedDrawing> {
    let mut modes: BTreeMap<String, Vec<CpuPairMeasurement>> = BTreeMap::new();
    for m in report.of_probe(PROBE).filter(|m| family == families::of_probe(PROBE) && m.typical().is_some()) {
        let mode = m.params.get(param::MODE).map(ToString::to_string).unwrap_or_default();
        modes.entry(mode).or_default().extend(m.cpu_pair().map(|pair| (m, pair)));
    }
    modes.retain(|_, points| points.len() > 1);
    let named = |(mode, points): (String, Vec<_>)| {
        let id = format!("sync-core-to-core-{mode}");
        NamedDrawing::new(family, &id, Drawing::Cells(cores(report, &mode, &points)))
    };
    modes.into_iter().map(named).collect()
}

fn cores(report: &Report, mode: &str, points: &[CpuPairMeasurement]) -> HeatMap {
    let numbers: BTreeSet<u32> = points.iter().flat_map(|(_, (a, b))| [*a, *b]).collect();
    let mut cpus: Vec<(CpuTopologyKey, u32)> =
        numbers.into_iter().map(|cpu| (topology_key(&report.machine, cpu), cpu)).collect();
    cpus.sort();
    let index: BTreeMap<u32, usize> = cpus.iter().enumerate().map(|(at, (_, cpu))| (*cpu, at)).collect();
    let group = |at: usize| (cpus[at].0.0, cpus[at].0.1, cpus[at].0.2);
    let cell = |(m, (a, b)): &CpuPairMeasurement| {
        let (a, b) = (index[a], index[b]);
        Some(HeatMapCell { row: a.max(b), column: a.min(b), value: m.typical()?, doubtful: is_doubtful(m) })
    };
    let measured: Vec<&Measurement> = points.iter().map(|(m, _)| *m).collect();
    let mut notes = of_map(report, &measured, "CPUs");
    let borders: Vec<usize> = (1..cpus.len()).filter(|at| group(*at) != group(at - 1)).collect();
    let cache = if report.machine.last_caches.is_empty() { "" } else { ", last cache" };
    let mut order = format!("CPUs by package, node{cache} and core; each pair once");
    if cache.is_empty() {
        order += "; which share a last cache is not known";
    }
    if !borders.is_empty() {
        order += &format!(
            "; lines: another package{} node{}",
            if cache.is_empty() { " or" } else { "," },
            cache.replace(',', " or")
        );
    }
    notes.push(order);
    let times = measured.first().map_or("", |m| m.times.display_name());
    merge_cells(HeatMap {
        title: format!("Core to core, {mode}"),
        notes,
        side: "CPU".to_owned(),
        names: cpus.iter().map(|(_, cpu)| cpu.to_string()).collect(),
        borders,
        label: format!("{times}, median"),
        unit: FigureAxisUnit::Nanoseconds,
        cells: points.iter().filter_map(cell).collect(),
    })
}

/// Maximum number of rows, for a cell of a picture is no smaller than a dot of a screen.
const MOST_ROWS: usize = 256;

/// Returns the map with the cells of some CPUs each as one, their median, if there are too many to be seen.
fn merge_cells(cells: HeatMap) -> HeatMap {
    let each = cells.names.len().div_ceil(MOST_ROWS);
    if each <= 1 {
        return cells;
    }
    let mut groups: BTreeMap<(usize, usize), Vec<&HeatMapCell>> = BTreeMap::new();
    for cell in &cells.cells {
        groups.entry((cell.row / each, cell.column / each)).or_default().push(cell);
    }
    let one = |((row, column), of): ((usize, usize), Vec<&HeatMapCell>)| {
        let value = median(&of.iter().map(|cell| cell.value).collect::<Vec<_>>())?;
        let doubtful = of.iter().filter(|cell| cell.doubtful).count();
        Some(HeatMapCell { row, column, value, doubtful: 2 * doubtful > of.len() })
    };
    let mut notes = cells.notes;
    notes.push(format!(
        "each cell is the median of the pairs of {each} and {each} CPUs, named after the first"
    ));
    let mut borders: Vec<usize> = cells.borders.iter().map(|at| at.div_ceil(each)).collect();
    borders.dedup();
    HeatMap {
        names: cells.names.into_iter().step_by(each).collect(),
        cells: groups.into_iter().filter_map(one).collect(),
        borders,
        notes,
        ..cells
    }
}

/// Place of a CPU among the others: package, node, index of its last cache (after all others if it is not known), core.
type CpuTopologyKey = (u32, u32, usize, u32);

fn topology_key(machine: &Machine, cpu: u32) -> CpuTopologyKey {
    let known = machine.cpus.iter().find(|known| known.id == cpu);
    let (package, node, core) =
        known.map_or((u32::MAX, 0, cpu), |known| (known.package, known.node, known.core));
    let cache = machine.last_caches.iter().position(|shared| shared.0.contains(&cpu)).unwrap_or(usize::MAX);
    (package, node, cache, core)
}

/// Returns a map for each kind of loads between nodes; fewer than two pairs have no map.
fn of_nodes(report: &Report, family: &str) -> Vec<NamedDrawing> {
    let mut kinds: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
    let ours = |m: &&Measurement| family == families::MEMORY && m.nodes().is_some() && m.typical().is_some();
    for m in report.of_probe(ids::MEMORY_LATENCY).filter(ours) {
        kinds.entry(show_all(&m.params, &[param::ORDER, param::PAGES, param::SIZE])).or_default().push(m);
    }
    kinds.retain(|_, points| points.len() > 1);
    let named = |(kind, points): (String, Vec<&Measurement>)| {
        let id = format!("memory-nodes-{}", kind.replace(' ', "-").to_lowercase());
        NamedDrawing::new(family, &id, Drawing::Cells(node_map(report, &kind, &points)))
    };
    kinds.into_iter().map(named).collect()
}

fn node_map(report: &Report, kind: &str, points: &[&Measurement]) -> HeatMap {
    let placed: Vec<(&Measurement, (u32, u32))> =
        points.iter().filter_map(|m| Some((*m, m.nodes()?))).collect();
    let names: Vec<u32> =
        placed.iter().flat_map(|(_, (a, b))| [*a, *b]).collect::<BTreeSet<u32>>().into_iter().collect();
    let index = |node: u32| names.binary_search(&node).ok();
    let cell = |(m, (from, to)): &(&Measurement, (u32, u32))| {
        Some(HeatMapCell {
            row: index(*from)?,
            column: index(*to)?,
            value: m.typical()?,
            doubtful: is_doubtful(m),
        })
    };
    let mut notes = of_map(report, points, "nodes");
    notes.push("rows: the node of the CPUs; columns: the node of the memory".to_owned());
    HeatMap {
        title: format!("Load from memory between nodes, {kind}"),
        notes,
        side: "node".to_owned(),
        names: names.iter().map(u32::to_string).collect(),
        borders: Vec::new(),
        label: "one load, median".to_owned(),
        unit: FigureAxisUnit::Nanoseconds,
        cells: placed.iter().filter_map(cell).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::{self, batch};
    use latscope_core::machine::CpuTopology;
    use latscope_core::units::CpuList;

    fn of(report: &Report) -> HeatMap {
        match heat_maps(report, "sync").remove(0).drawing {
            Drawing::Cells(cells) => cells,
            _ => panic!("no map"),
        }
    }

    #[test]
    fn cpus_stand_by_package_and_core_and_every_pair_below_the_diagonal() {
        let mut report = fixture::report();
        // The threads of a core are CPUs 0 and 2; CPUs 1 and 3 are another package.
        report.machine.cpus = [(0, 0, 0), (1, 0, 1), (2, 0, 0), (3, 1, 1)]
            .map(|(id, core, package)| CpuTopology { id, core, package, ..CpuTopology::default() })
            .to_vec();
        let cells = of(&report);
        assert_eq!(cells.names, ["0", "2", "1", "3"]);
        assert_eq!(cells.borders, [2]);
        assert_eq!(cells.cells.len(), 6);
        assert!(cells.cells.iter().all(|cell| cell.row > cell.column));
        assert_eq!(cells.label, "round trip, median");
        assert!(cells.notes.iter().any(|note| note.contains("which share a last cache is not known")));
    }

    #[test]
    fn cpus_of_one_last_cache_stand_together() {
        let mut report = fixture::report();
        report.machine.cpus =
            (0..4).map(|id| CpuTopology { id, core: id, ..CpuTopology::default() }).collect();
        report.machine.last_caches = [[0, 2], [1, 3]].map(|cpus| CpuList(cpus.to_vec())).to_vec();
        let cells = of(&report);
        assert_eq!((cells.names.join(" "), cells.borders), ("0 2 1 3".to_owned(), vec![2]));
        let order = "CPUs by package, node, last cache and core; each pair once; lines: another package, node or last cache";
        assert_eq!(cells.notes.last().unwrap(), order);
    }

    #[test]
    fn a_map_of_very_many_cpus_stays_small() {
        let cpus = 1_024;
        // Hardly two neighbours have the same colour.
        let value = |a: usize, b: usize| 40.0 + ((a * 7919 + b * 104_729) % 400) as f64;
        let cell = |row, column| HeatMapCell { row, column, value: value(row, column), doubtful: false };
        let all = HeatMap {
            names: (0..cpus).map(|cpu| cpu.to_string()).collect(),
            borders: vec![256, 512, 768],
            cells: (0..cpus).flat_map(|a| (0..a).map(move |b| cell(a, b))).collect(),
            ..of(&fixture::report())
        };
        let cells = merge_cells(all);
        assert_eq!(
            (cells.names.len(), &cells.names[1], &cells.borders[..]),
            (256, &"4".to_owned(), &[64, 128, 192][..])
        );
        let text = super::super::document_of(&Drawing::Cells(cells));
        assert!(text.len() < 500_000, "{} bytes", text.len());
        assert!(text.contains("each cell is the median of the pairs of 4 and 4 CPUs"));
        assert!(text.matches("<path").count() < 12);
        assert!(text.matches("<text").count() < 80);
    }

    #[test]
    fn every_pair_has_its_cell_and_a_node_of_memory_only_a_column() {
        let mut report = fixture::report();
        report.measurements = [(0_u64, 0_u64), (0, 1), (0, 3), (1, 0), (1, 1), (1, 3)]
            .map(|(from, to)| {
                let params = [("cpu-nodes", from.into()), ("nodes", to.into()), ("pages", "2MiB".into())];
                batch("memory.latency", "", params, 80.0 + (20 * (from + 1) * to) as f64)
            })
            .to_vec();
        let figures = of_nodes(&report, "memory");
        assert_eq!(figures.len(), 1);
        let Drawing::Cells(cells) = &figures[0].drawing else { panic!("no map") };
        assert_eq!((cells.names.join(" "), cells.cells.len()), ("0 1 3".to_owned(), 6));
        assert_eq!(cells.cells.iter().filter(|cell| cell.column == 2).count(), 2);
        let svg = super::super::document_of(&figures[0].drawing);
        assert!(svg.contains("node ↓ →") && svg.contains(">140<"), "{svg}");
    }
}
