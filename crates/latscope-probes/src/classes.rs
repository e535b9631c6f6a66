//! Classes of CPUs and of pairs of CPUs, by the topology, and samples of each: pure functions of a machine.

use crate::prelude::*;

words! {
    /// Nearest thing that two CPUs share.
    pub(crate) enum CpuPairClass {
        /// Two threads of a core.
        Siblings = "threads of a core",
        /// Two cores with the same last-level cache.
        SameCache = "same last cache",
        /// Two cores of a node with caches of their own, or of which that is not known.
        SameNode = "same node",
        /// Two nodes of a package.
        OtherNode = "other node",
        /// Two packages.
        OtherPackage = "other package",
    }
}

impl CpuPairClass {
    fn of_entries(a: &CpuTopologyEntry, b: &CpuTopologyEntry) -> CpuPairClass {
        if a.core.is_some() && a.core == b.core {
            CpuPairClass::Siblings
        } else if a.package != b.package {
            CpuPairClass::OtherPackage
        } else if a.node != b.node {
            CpuPairClass::OtherNode
        } else if a.cache.is_some() && a.cache == b.cache {
            CpuPairClass::SameCache
        } else {
            CpuPairClass::SameNode
        }
    }
}

/// Place of a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct CpuTopologyEntry {
    package: u32,
    node: u32,
    /// Index of its last-level cache; `None` if it is not known.
    cache: Option<usize>,
    core: Option<u32>,
}

/// Places of all CPUs of a machine.
pub(crate) struct CpuTopologyMap(BTreeMap<u32, CpuTopologyEntry>);

impl CpuTopologyMap {
    pub fn of_machine(machine: &Machine) -> CpuTopologyMap {
        let mut places: BTreeMap<u32, CpuTopologyEntry> = BTreeMap::new();
        for cpu in &machine.cpus {
            let core = cpu.siblings.0.first().copied();
            places
                .insert(cpu.id, CpuTopologyEntry { package: cpu.package, node: cpu.node, cache: None, core });
        }
        for (index, cpus) in machine.last_caches.iter().enumerate() {
            for cpu in &cpus.0 {
                places.entry(*cpu).or_default().cache = Some(index);
            }
        }
        CpuTopologyMap(places)
    }

    /// The class of a pair of different CPUs.
    pub fn class(&self, a: u32, b: u32) -> CpuPairClass {
        CpuPairClass::of_entries(&self.topology_entry(a), &self.topology_entry(b))
    }

    /// All pairs of these CPUs, with their classes. The place of a CPU is looked up once: 1,024 CPUs have 523,776
    /// pairs.
    pub fn pair_classes(&self, cpus: &[u32]) -> Vec<(u32, u32, CpuPairClass)> {
        let places: Vec<(u32, CpuTopologyEntry)> =
            cpus.iter().map(|cpu| (*cpu, self.topology_entry(*cpu))).collect();
        let mut pairs = Vec::new();
        for (at, (a, place)) in places.iter().enumerate() {
            for (b, other) in &places[at + 1..] {
                pairs.push((*a, *b, CpuPairClass::of_entries(place, other)));
            }
        }
        pairs
    }

    fn topology_entry(&self, cpu: u32) -> CpuTopologyEntry {
        self.0.get(&cpu).copied().unwrap_or_default()
    }

    /// Returns at most `most` of `cpus`, as many of each package and node, spread evenly; in their order.
    pub fn sample_cpus(&self, cpus: &[u32], most: usize) -> Vec<u32> {
        let mut groups: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for cpu in cpus {
            let place = self.topology_entry(*cpu);
            groups.entry((place.package, place.node)).or_default().push(*cpu);
        }
        let mut chosen = sample(groups.into_values().collect(), most);
        chosen.sort_by_key(|cpu| cpus.iter().position(|known| known == cpu));
        chosen
    }
}

/// At most `most` things of several groups: as many of each as of the others, if it has them, evenly spaced.
pub(crate) fn sample<T: Copy>(mut groups: Vec<Vec<T>>, most: usize) -> Vec<T> {
    // Small groups leave room for the others.
    groups.sort_by_key(Vec::len);
    let (mut left, mut chosen) = (most, Vec::new());
    let count = groups.len();
    for (at, group) in groups.into_iter().enumerate() {
        let some = take_evenly(&group, left.div_ceil(count - at).min(left));
        left -= some.len();
        chosen.extend(some);
    }
    chosen
}

/// At most `count` of `all`, evenly spaced, the first and the last among them.
pub(crate) fn take_evenly<T: Copy>(all: &[T], count: usize) -> Vec<T> {
    match count {
        _ if all.len() <= count => all.to_vec(),
        0 => Vec::new(),
        1 => vec![all[0]],
        _ => (0..count).map(|i| all[i * (all.len() - 1) / (count - 1)]).collect(),
    }
}

/// CPUs that a survey measures on, where each has a point of its own.
const SURVEYED: usize = 64;

/// Returns the CPUs that a survey measures on, with a note for titles if they are not all: ` (64 of 1024 CPUs)`.
pub(crate) fn surveyed(machine: &Machine) -> (Vec<u32>, String) {
    let all = &machine.allowed.0;
    let chosen = CpuTopologyMap::of_machine(machine).sample_cpus(all, SURVEYED);
    let note = match chosen.len() == all.len() {
        true => String::new(),
        false => format!(" ({} of {} CPUs)", chosen.len(), all.len()),
    };
    (chosen, note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::machines;

    #[test]
    fn two_cpus_have_the_class_of_what_is_nearest() {
        let machine = machines::two_packages();
        let places = CpuTopologyMap::of_machine(&machine);
        let classes = [(0, 192), (0, 1), (0, 9), (0, 96)].map(|(a, b)| places.class(a, b));
        assert_eq!(
            classes,
            [
                CpuPairClass::Siblings,
                CpuPairClass::SameCache,
                CpuPairClass::SameNode,
                CpuPairClass::OtherPackage
            ]
        );
        let nodes = CpuTopologyMap::of_machine(&machines::eight_nodes());
        assert_eq!(
            (nodes.class(0, 16), nodes.class(0, 60)),
            (CpuPairClass::OtherNode, CpuPairClass::OtherPackage)
        );
        assert_eq!(CpuTopologyMap::of_machine(&Machine::default()).class(0, 1), CpuPairClass::SameNode);
    }

    #[test]
    fn a_survey_takes_as_many_cpus_of_each_node_and_says_so() {
        let (cpus, note) = surveyed(&machines::thousand());
        assert_eq!((cpus.len(), note.as_str()), (64, " (64 of 1024 CPUs)"));
        let of_node = |node: u32| cpus.iter().filter(|cpu| **cpu % 512 / 128 == node).count();
        assert_eq!([0, 1, 2, 3].map(of_node), [16; 4]);
        let (cpus, note) = surveyed(&machines::sparse());
        assert_eq!((cpus.last(), note.as_str()), (Some(&1503), ""));
    }

    #[test]
    fn small_groups_leave_their_room_to_the_others() {
        let sampled = sample(vec![(0..100).collect(), vec![200], (300..400).collect()], 9);
        assert_eq!(sampled, [200, 0, 33, 66, 99, 300, 333, 366, 399]);
        assert_eq!(take_evenly(&[1, 2, 3], 1), [1]);
    }
}
