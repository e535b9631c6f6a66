//! Points of one probe laid out by their parameters: which of them vary, and a
//! matrix of one parameter against the others.

use latscope_core::ordered::group_by_key;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::report::Measurement;
use latscope_core::units::{format_size, format_time};
use std::collections::BTreeSet;

/// Points of one probe as a matrix.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    /// Properties that all points have in common: `step every, threads 1`.
    pub title: String,
    /// The parameter down the side.
    pub axis: &'a str,
    /// Values of the parameter down the side.
    pub rows: Vec<String>,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// The points, by row and column.
    pub cells: Vec<Vec<Option<&'a Measurement>>>,
}

/// Parameters that may follow from another.
const PLACES: [&str; 5] = [param::DIRECTORY, param::DEVICE, param::NODE_CPUS, param::BOUND, param::CLASS];

/// Returns the parameters in which points differ. A parameter that follows from another, as a directory does
/// from its file system, is left out.
pub(super) fn varying<'a>(points: &[&'a Measurement]) -> Vec<&'a str> {
    let names: BTreeSet<&str> = points.iter().flat_map(|m| m.params.keys()).map(String::as_str).collect();
    let mut differing: Vec<&str> = names.into_iter().filter(|name| values(points, name).len() > 1).collect();
    differing.sort_by_key(|name| (PLACES.contains(name), *name));
    let mut kept: Vec<&str> = Vec::new();
    for name in differing {
        let places = PLACES.contains(&name);
        if !(places && kept.iter().any(|other| follows(points, name, other))) {
            kept.push(name);
        }
    }
    kept
}

/// Returns true if `name` has one value for each value of `other`.
fn follows(points: &[&Measurement], name: &str, other: &str) -> bool {
    let pairs: BTreeSet<_> = points.iter().map(|m| (m.params.get(other), m.params.get(name))).collect();
    pairs.len() == values(points, other).len()
}

/// The values of a parameter, ascending.
fn values<'a>(points: &[&'a Measurement], name: &str) -> BTreeSet<Option<&'a ParamValue>> {
    points.iter().map(|m| m.params.get(name)).collect()
}

/// A parameter's value as people write it.
pub(super) fn format_param(name: &str, value: &ParamValue) -> String {
    match (name, value) {
        (param::SIZE | param::STRIDE, ParamValue::Number(bytes)) => format_size(*bytes),
        (param::INTERVAL | param::PAUSE | param::HOLD, ParamValue::Number(ns)) => format_time(*ns as f64),
        _ => value.to_string(),
    }
}

/// Returns the values of some parameters of a point: `random 2MiB`; numbers that are no sizes have their names:
/// `threads 2`.
pub(super) fn show_all(params: &Params, names: &[&str]) -> String {
    let mut parts = Vec::new();
    for (name, value) in names.iter().filter_map(|name| Some((*name, params.get(*name)?))) {
        let text = format_param(name, value);
        let is_plain = value.as_text().is_some() || name == param::SIZE;
        parts.push(if is_plain { text } else { format!("{name} {text}") });
    }
    parts.join(" ")
}

/// Lays points out: the size down the side, otherwise the parameter with the most values. The other parameters
/// stand together over the columns if `fits` allows these headings. If not, one of them stands there, and there
/// is a matrix for each combination of the rest.
pub(super) fn matrices<'a>(points: &[&'a Measurement], fits: &dyn Fn(&[String]) -> bool) -> Vec<Matrix<'a>> {
    let mut names = varying(points);
    if let Some(at) = names.iter().position(|name| *name == param::PAIR) {
        names.remove(at);
        return split(points, &names).into_iter().map(|(title, group)| pair_matrix(title, &group)).collect();
    }
    if points.iter().all(|m| m.nodes().is_some()) && names.iter().any(|name| NODES.contains(name)) {
        names.retain(|name| !NODES.contains(name));
        return between_nodes(points, &names);
    }
    names.sort_by_key(|name| (*name != param::SIZE, std::cmp::Reverse(values(points, name).len())));
    let Some((axis, others)) = names.split_first() else { return Vec::new() };
    let headings: Vec<String> = split(points, others).into_iter().map(|(heading, _)| heading).collect();
    if fits(&headings) {
        return vec![Matrix::new(String::new(), axis, others, points)];
    }
    let (columns, rest) = others.split_at(1);
    let groups = split(points, rest);
    groups.into_iter().map(|(title, group)| Matrix::new(title, axis, columns, &group)).collect()
}

/// Returns the points by their values of some parameters, in the order of their first occurrence.
fn split<'a>(points: &[&'a Measurement], names: &[&str]) -> Vec<(String, Vec<&'a Measurement>)> {
    group_by_key(points.iter().map(|m| (show_all(&m.params, names), *m)))
}

/// Returns the most cells that the [`matrices`] of points can have together.
pub(super) fn max_cell_count(points: &[&Measurement]) -> usize {
    let mut names = varying(points);
    let product = |sides: (BTreeSet<u32>, BTreeSet<u32>)| sides.0.len() * sides.1.len();
    if let Some(at) = names.iter().position(|name| *name == param::PAIR) {
        names.remove(at);
        return split(points, &names).len() * product(points.iter().filter_map(|m| m.cpu_pair()).unzip());
    }
    if points.iter().all(|m| m.nodes().is_some()) && names.iter().any(|name| NODES.contains(name)) {
        names.retain(|name| !NODES.contains(name));
        return split(points, &names).len() * product(points.iter().filter_map(|m| m.nodes()).unzip());
    }
    names.sort_by_key(|name| (*name != param::SIZE, std::cmp::Reverse(values(points, name).len())));
    names.split_first().map_or(0, |(axis, rest)| values(points, axis).len() * split(points, rest).len())
}

impl<'a> Matrix<'a> {
    fn new(title: String, axis: &'a str, others: &[&str], points: &[&'a Measurement]) -> Matrix<'a> {
        let sides = values(points, axis);
        let columns = split(points, others);
        let placed = columns
            .iter()
            .enumerate()
            .flat_map(|(column, (_, group))| group.iter().map(move |m| (m.params.get(axis), column, *m)));
        let cells = cells(&sides, &(0..columns.len()).collect(), placed);
        let side =
            |value: &Option<&ParamValue>| value.map_or("-".to_owned(), |value| format_param(axis, value));
        let rows = sides.iter().map(side).collect();
        let columns = columns.into_iter().map(|(heading, _)| heading).collect();
        Matrix { title, axis, rows, columns, cells }
    }
}

/// The measurements at their places: each comes with the keys of its row and its column.
fn cells<'a, R: Ord, C: Ord>(
    rows: &BTreeSet<R>,
    columns: &BTreeSet<C>,
    placed: impl IntoIterator<Item = (R, C, &'a Measurement)>,
) -> Vec<Vec<Option<&'a Measurement>>> {
    let (rows, columns): (Vec<&R>, Vec<&C>) = (rows.iter().collect(), columns.iter().collect());
    let mut cells = vec![vec![None; columns.len()]; rows.len()];
    for (row, column, m) in placed {
        if let (Ok(row), Ok(column)) = (rows.binary_search(&&row), columns.binary_search(&&column)) {
            cells[row][column] = Some(m);
        }
    }
    cells
}

/// Parameters that name the nodes of CPUs and memory.
const NODES: [&str; 2] = [param::CPU_NODES, param::NODES];

/// Largest number of combinations of other parameters that have a matrix of nodes each.
const MOST_NODE_MATRICES: usize = 2;

/// Returns matrices of CPU node against memory node; of many combinations of the other parameters, one matrix of pairs
/// of nodes against these.
fn between_nodes<'a>(points: &[&'a Measurement], others: &[&str]) -> Vec<Matrix<'a>> {
    let groups = split(points, others);
    let pairs: BTreeSet<(u32, u32)> = points.iter().filter_map(|m| m.nodes()).collect();
    if groups.len() > MOST_NODE_MATRICES {
        let placed = groups.iter().enumerate().flat_map(|(column, (_, group))| {
            group.iter().filter_map(move |m| Some((m.nodes()?, column, *m)))
        });
        let cells = cells(&pairs, &(0..groups.len()).collect(), placed);
        let rows = pairs.iter().map(|(from, to)| format!("{from} → {to}")).collect();
        let columns = groups.into_iter().map(|(heading, _)| heading).collect();
        return vec![Matrix { title: String::new(), axis: "CPU → memory node", rows, columns, cells }];
    }
    let (from, to): (BTreeSet<u32>, BTreeSet<u32>) = pairs.into_iter().unzip();
    let mut matrices = Vec::new();
    for (title, group) in groups {
        let placed = group.into_iter().filter_map(|m| m.nodes().map(|(from, to)| (from, to, m)));
        let cells = cells(&from, &to, placed);
        let rows = from.iter().map(u32::to_string).collect();
        let columns = to.iter().map(|node| format!("memory {node}")).collect();
        matrices.push(Matrix { title, axis: "CPUs of node", rows, columns, cells });
    }
    matrices
}

/// Returns a matrix of CPU against CPU; a pair stands in the row of its larger and the column of its smaller
/// number.
fn pair_matrix<'a>(title: String, points: &[&'a Measurement]) -> Matrix<'a> {
    let placed: Vec<(u32, u32, &Measurement)> =
        points.iter().filter_map(|m| m.cpu_pair().map(|(a, b)| (a.max(b), a.min(b), *m))).collect();
    let (sides, tops): (BTreeSet<u32>, BTreeSet<u32>) = placed.iter().map(|(a, b, _)| (*a, *b)).unzip();
    Matrix {
        title,
        axis: "CPU",
        rows: sides.iter().map(u32::to_string).collect(),
        columns: tops.iter().map(u32::to_string).collect(),
        cells: cells(&sides, &tops, placed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn what_follows_from_the_file_system_does_not_vary_by_itself() {
        let report = fixture::report();
        let points: Vec<_> = report.of_probe("file.read").collect();
        assert_eq!(varying(&points), ["filesystem", "mode", "size"]);
    }

    #[test]
    fn a_sweep_has_sizes_down_the_side_and_orders_across() {
        let report = fixture::report();
        let points: Vec<_> = report.of_probe("memory.latency").collect();
        let matrices = matrices(&points, &|_| true);
        assert_eq!(matrices.len(), 1);
        assert_eq!(matrices[0].axis, "size");
        assert_eq!(matrices[0].columns, ["random 2MiB", "random 4KiB", "window 4KiB"]);
        let filled = matrices[0].cells.iter().flatten().flatten().count();
        assert_eq!(filled, points.len());
    }

    #[test]
    fn what_does_not_fit_across_is_split_without_losing_a_point() {
        let report = fixture::report();
        let points: Vec<_> = report.of_probe("memory.bandwidth").collect();
        let matrices = matrices(&points, &|_| false);
        assert!(matrices.len() > 1);
        let filled: usize = matrices.iter().map(|m| m.cells.iter().flatten().flatten().count()).sum();
        assert_eq!(filled, points.len());
    }

    /// Points between two nodes with CPUs and one more with memory only.
    fn of_nodes(others: &[(&str, &str)]) -> Vec<Measurement> {
        let mut points = Vec::new();
        for (pages, order) in others {
            for (from, to) in [(0_u64, 0_u64), (0, 2), (1, 0), (1, 2)] {
                let cpus = if from == 0 { "3" } else { "7" };
                let params = [("pages", (*pages).into()), ("order", (*order).into()), ("nodes", to.into())];
                let mut m = fixture::batch("memory.latency", "", params, 80.0);
                m.params.insert("cpu-nodes".to_owned(), from.into());
                m.params.insert("node-cpus".to_owned(), cpus.into());
                points.push(m);
            }
        }
        points
    }

    #[test]
    fn nodes_have_a_matrix_each_or_a_row_for_each_pair() {
        let measured = of_nodes(&[("2MiB", "random"), ("4KiB", "random")]);
        let points: Vec<&Measurement> = measured.iter().collect();
        let square = matrices(&points, &|_| true);
        assert_eq!(
            (square.len(), square[0].title.as_str(), square[0].rows.join(" ")),
            (2, "2MiB", "0 1".to_owned())
        );
        assert_eq!(square[0].columns, ["memory 0", "memory 2"]);
        assert!(square.iter().flat_map(|m| &m.cells).flatten().all(Option::is_some));
        let measured = of_nodes(&[("2MiB", "random"), ("4KiB", "random"), ("4KiB", "page")]);
        let many = matrices(&measured.iter().collect::<Vec<_>>(), &|_| true);
        assert_eq!((many.len(), many[0].rows.join(", ").as_str()), (1, "0 → 0, 0 → 2, 1 → 0, 1 → 2"));
        assert_eq!(many[0].columns.len(), 3);
    }

    #[test]
    fn pairs_fill_a_triangle() {
        let report = fixture::report();
        let points: Vec<_> = report.of_probe("sync.core-to-core").collect();
        let matrices = matrices(&points, &|_| true);
        assert_eq!(matrices[0].rows, ["1", "2", "3"]);
        assert_eq!(matrices[0].columns, ["0", "1", "2"]);
        assert!(matrices[0].cells[0][0].is_some() && matrices[0].cells[0][1].is_none());
    }
}
