//! Memory of one NUMA node, used from the CPUs of another: the pairs, and the memory, which is verified page by page.

use super::regions;
use super::sizes::{self, MIB};
use crate::prelude::*;
use latscope_core::machine::NumaNode;
use latscope_core::units::CpuList;

settings! {
    /// CPUs and memory of chosen nodes.
    #[derive(Default)]
    pub(super) struct NodePairSettings {
        /// Nodes whose memory is used, also those without CPUs: their numbers, or `all`. The memory is bound to the
        /// node, and its place verified page by page.
        nodes: Option<u64> as Nodes;
        /// Nodes whose CPUs use the memory, if `--nodes` is given: their numbers, or `all`, which is the default.
        cpu_nodes("cpu-nodes"): Option<u64> as Nodes;
        /// CPUs of that node which use the memory.
        node_cpus("node-cpus"): Option<String>;
        /// Policy of the memory, as mbind(2) has it.
        bound: Option<String>;
    }
}

/// Parameters of nodes, whose numbers begin at 0.
pub(super) const MAY_BE_ZERO: &[&str] = &["nodes", "cpu-nodes"];

/// Nodes of a machine, each with those of its CPUs that the run may use. A kernel without nodes has one.
pub fn nodes(machine: &Machine) -> Vec<NumaNode> {
    if machine.nodes.is_empty() {
        let memory = if machine.memory > 0 { machine.memory } else { u64::MAX };
        return vec![NumaNode { cpus: machine.allowed.clone(), memory, ..NumaNode::default() }];
    }
    let usable = |node: &NumaNode| {
        let mut node = node.clone();
        node.cpus.0.retain(|cpu| machine.allowed.0.contains(cpu));
        node
    };
    machine.nodes.iter().map(usable).collect()
}

/// Returns true if memory of chosen nodes is asked for.
pub(super) fn are_asked(input: &PlanInput) -> bool {
    ["nodes", "cpu-nodes"].iter().any(|name| input.values.contains_key(*name))
}

/// The nodes that a parameter asks for; without it all.
fn is_chosen(input: &PlanInput, name: &str, node: &NumaNode) -> bool {
    let Some(values) = input.values.get(name) else { return true };
    values.iter().any(|value| match value {
        ParamValue::Number(number) => *number == u64::from(node.id),
        ParamValue::Text(word) => word == "all",
    })
}

/// The pairs of nodes that are asked for; `threads` CPUs of a node take part, all without a number.
pub(super) fn requested_pairs(
    input: &PlanInput,
    machine: &Machine,
    threads: Option<usize>,
) -> Vec<NodePairSettings> {
    let nodes = nodes(machine);
    let with_cpus =
        nodes.iter().filter(|node| !node.cpus.0.is_empty() && is_chosen(input, "cpu-nodes", node));
    let pairs = with_cpus.flat_map(|from| {
        let with_memory = nodes.iter().filter(|node| node.memory > 0 && is_chosen(input, "nodes", node));
        with_memory.map(move |to| NodePairSettings::new(from, to, threads))
    });
    pairs.collect()
}

/// Memory of a node, seen from the CPUs that a survey prefers.
const OWN: &str = "own node";
const OTHER: &str = "other node";
const WITHOUT_CPUS: &str = "node without CPUs";

/// The pairs that a survey has rows of, with what their memory is: from the last CPU, which a survey prefers, its own
/// node, the farthest node with CPUs, and the farthest without. None where there is one node.
pub(super) fn surveyed(machine: &Machine) -> Vec<(&'static str, NodePairSettings)> {
    let nodes = nodes(machine);
    let last = machine.allowed.0.last();
    let Some(from) = nodes.iter().find(|node| last.is_some_and(|last| node.cpus.0.contains(last))) else {
        return Vec::new();
    };
    let all_cpus =
        |id: u32| machine.nodes.iter().find(|node| node.id == id).is_some_and(|node| !node.cpus.0.is_empty());
    let farthest = |with_cpus: bool| {
        let others = nodes.iter().filter(|node| node.id != from.id && node.memory > 0);
        let kind = others.filter(|node| all_cpus(node.id) == with_cpus);
        kind.max_by_key(|node| (machine.distance(from.id, node.id), std::cmp::Reverse(node.id)))
    };
    let others = [(OTHER, farthest(true)), (WITHOUT_CPUS, farthest(false))].into_iter();
    let others: Vec<(&str, &NumaNode)> = others.filter_map(|(what, node)| Some((what, node?))).collect();
    let own = (!others.is_empty() && from.memory > 0).then_some((OWN, from));
    own.into_iter().chain(others).map(|(what, to)| (what, NodePairSettings::new(from, to, Some(1)))).collect()
}

/// Bytes that all pairs use: beyond the caches, and at most a quarter of the smallest node's memory.
pub(super) fn pair_size(machine: &Machine, cap: u64) -> u64 {
    let smallest = nodes(machine).iter().map(|node| node.memory).filter(|memory| *memory > 0).min();
    let most = (smallest.unwrap_or(u64::MAX) / 4 / (2 * MIB) * (2 * MIB)).max(2 * MIB);
    sizes::beyond_caches(machine).min(cap).min(most)
}

impl NodePairSettings {
    /// Returns a pair. The last CPUs of a node come first, because the first ones get most interrupts.
    pub fn new(from: &NumaNode, to: &NumaNode, threads: Option<usize>) -> NodePairSettings {
        let cpus = from.cpus.0.iter().rev().take(threads.unwrap_or(usize::MAX)).copied();
        let mut cpus: Vec<u32> = cpus.collect();
        cpus.sort_unstable();
        NodePairSettings {
            nodes: Some(to.id.into()),
            cpu_nodes: Some(from.id.into()),
            node_cpus: Some(CpuList(cpus).to_string()),
            bound: Some(format!("bind {}", to.id)),
        }
    }

    /// Node of the memory, if one was chosen.
    pub fn node(&self) -> Option<u32> {
        u32::try_from(self.nodes?).ok()
    }

    /// CPUs that use the memory, in the order in which they take part.
    pub fn cpus(&self) -> Vec<u32> {
        let list: Option<CpuList> = self.node_cpus.as_ref().and_then(|list| list.parse().ok());
        list.unwrap_or_default().0.into_iter().rev().collect()
    }

    /// Words for titles, from the node of the CPUs to that of the memory: `, node 0 → 2`; empty without nodes.
    pub fn title_suffix(&self) -> String {
        match (self.cpu_nodes, self.nodes) {
            (Some(from), Some(to)) => format!(", node {from} → {to}"),
            _ => String::new(),
        }
    }
}

/// Returns memory on the node of a pair for each of so many bytes, and the points that are measured in it. The others
/// are closed.
pub(super) fn regions(
    bench: &mut Bench,
    points: Vec<usize>,
    between: &NodePairSettings,
    pages: RegionPageSize,
    bytes: &[usize],
) -> Option<(Vec<MemoryRegion>, Vec<usize>)> {
    let node = between.node()?;
    let made = bytes.iter().map(|bytes| MemoryRegion::on_node(*bytes, pages, node)).collect();
    let made: Result<Vec<MemoryRegion>, _> = made;
    match made {
        Ok(made) => {
            let points = points.into_iter().filter(|point| verify(bench, *point, between, pages, &made));
            let points = points.collect();
            Some((made, points))
        }
        Err(error) => {
            let reason = format!("on node {node}: {error}");
            let remedy =
                "choose a smaller --size, free memory of the node, or allow mbind(2) in the seccomp filter";
            points.iter().for_each(|point| bench.unsupported(*point, reason.as_str(), remedy));
            None
        }
    }
}

/// Puts the measuring thread on the first CPU of a pair. A point for which that fails is closed.
pub(super) fn go_to(bench: &mut Bench, point: usize, between: &NodePairSettings) -> bool {
    let Some(cpu) = between.cpus().first().copied() else { return false };
    let gone = threads::pin(cpu);
    if let Err(error) = &gone {
        bench.unsupported(point, format!("{error:#}"), "allow the CPUs of the node (cpuset, taskset)");
    }
    gone.is_ok()
}

/// States where the memory of a point is, page by page, and lowers its quality if that is elsewhere. Returns false for
/// a point that is closed, since most of its memory is.
fn verify(
    bench: &mut Bench,
    point: usize,
    between: &NodePairSettings,
    pages: RegionPageSize,
    regions: &[MemoryRegion],
) -> bool {
    let Some(node) = between.node() else { return true };
    regions.iter().find_map(|region| regions::page_size_doubt(region, pages)).iter().for_each(|doubt| {
        doubt.degrade_points(bench, &[point]);
    });
    if let Some(policy) = regions.first().and_then(|region| region.policy().ok()) {
        bench.set_param(point, "bound", policy.as_str().into());
    }
    let mut found = BTreeMap::new();
    for region in regions {
        match region.pages_by_node() {
            Ok(pages) => pages.into_iter().for_each(|(node, count)| *found.entry(node).or_default() += count),
            Err(error) => {
                let reason = format!("move_pages(2) does not say where its pages are: {error}");
                bench.degrade(point, "other-node", reason, "allow move_pages(2) in the seccomp filter");
                return true;
            }
        }
    }
    let total: u64 = found.values().sum();
    let there = found.get(&Some(node)).copied().unwrap_or(0);
    bench.add_value(point, "pages-on-node", there as f64, "count", Better::Neither);
    bench.add_value(point, "pages-elsewhere", (total - there) as f64, "count", Better::Less);
    let Some(reason) = misplaced(node, &found) else { return true };
    let remedy = "free memory of the node (/sys/devices/system/node/node*/meminfo)";
    if 2 * there < total {
        bench.unsupported(point, reason, remedy);
        return false;
    }
    bench.degrade(point, "other-node", reason, remedy);
    true
}

/// Says how many pages are not on the node; `None` if all are.
fn misplaced(node: u32, found: &BTreeMap<Option<u32>, u64>) -> Option<String> {
    let total: u64 = found.values().sum();
    let elsewhere = total - found.get(&Some(node)).copied().unwrap_or(0);
    let others = found.iter().filter(|(at, _)| **at != Some(node)).map(|(at, count)| match at {
        Some(at) => format!("{count} on node {at}"),
        None => format!("{count} nowhere"),
    });
    let others = others.collect::<Vec<_>>().join(", ");
    (elsewhere > 0).then(|| {
        format!("{elsewhere} of {} are not on node {node}: {others}", count_with_noun(total, "page"))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A machine of two nodes with two CPUs each, and one of memory only.
    pub fn machine() -> Machine {
        let node = |id, cpus: &str| NumaNode {
            id,
            cpus: cpus.parse().unwrap(),
            memory: 256 << 20,
            ..NumaNode::default()
        };
        Machine { nodes: vec![node(0, "0-1"), node(1, "2-3"), node(2, "")], ..sizes::tests::machine() }
    }

    pub fn asked(values: &[(&str, &str)]) -> PlanInput {
        let mut input = latscope_engine::harness::input();
        input.survey = false;
        for (name, value) in values {
            let value = value.parse().map_or(ParamValue::from(*value), ParamValue::Number);
            input.values.insert((*name).to_owned(), vec![value]);
        }
        input
    }

    #[test]
    fn each_node_with_cpus_uses_each_with_memory() {
        let of = |values: &[(&str, &str)], threads| {
            let pairs = requested_pairs(&asked(values), &machine(), threads);
            pairs.iter().map(|pair| (pair.cpu_nodes.unwrap(), pair.nodes.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(of(&[("nodes", "all")], None), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(of(&[("nodes", "2"), ("cpu-nodes", "1")], None), [(1, 2)]);
        let pair = &requested_pairs(&asked(&[("nodes", "2")]), &machine(), Some(1))[1];
        assert_eq!((pair.cpus(), pair.node()), (vec![3], Some(2)));
        assert_eq!(pair.title_suffix(), ", node 1 → 2");
        assert_eq!(requested_pairs(&asked(&[]), &sizes::tests::machine(), None).len(), 1);
        assert_eq!((pair_size(&machine(), u64::MAX), pair_size(&machine(), 4 * MIB)), (64 * MIB, 4 * MIB));
    }

    #[test]
    fn a_survey_sees_the_farthest_node_of_each_kind() {
        let seen = |machine: &Machine| {
            let pairs = surveyed(machine).into_iter();
            pairs.map(|(what, pair)| (what, pair.cpu_nodes.unwrap(), pair.nodes.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(seen(&machine()), [(OWN, 1, 1), (OTHER, 1, 0), (WITHOUT_CPUS, 1, 2)]);
        assert_eq!(seen(&sizes::tests::machine()), []);
        let mut farther = latscope_core::fixture::machines::eight_nodes();
        farther.nodes[5].distances[3] = 40;
        assert_eq!(seen(&farther), [(OWN, 5, 5), (OTHER, 5, 3), (WITHOUT_CPUS, 5, 6)]);
    }

    #[test]
    fn pages_elsewhere_are_counted_by_their_node() {
        let found = |pages: &[(Option<u32>, u64)]| misplaced(2, &pages.iter().copied().collect());
        assert_eq!(found(&[(Some(2), 9)]), None);
        let some = found(&[(Some(2), 9), (Some(0), 2), (None, 1)]).unwrap();
        assert_eq!(some, "3 of 12 pages are not on node 2: 1 nowhere, 2 on node 0");
    }
}
