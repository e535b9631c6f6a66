//! CPUs and caches: sysfs, as Documentation/admin-guide/cputopology.rst and
//! Documentation/ABI/testing/sysfs-devices-system-cpu describe it.

use super::root::{SystemRoot, fields};
use latscope_core::machine::{Claim, CoreKind, CpuCache, CpuTopology, NumaNode};
use latscope_core::units::CpuList;

const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs that are online: from sysfs, else the processors of `/proc/cpuinfo`; empty if neither has them.
pub(super) fn online(root: &SystemRoot) -> CpuList {
    root.cpu_list(&format!("{CPUS}/online"))
        .filter(|list| !list.0.is_empty())
        .unwrap_or_else(|| processors(&root.read_text("/proc/cpuinfo").unwrap_or_default()))
}

fn processors(cpuinfo: &str) -> CpuList {
    let lines = fields(cpuinfo).filter(|(name, _)| *name == "processor");
    let mut cpus: Vec<u32> = lines.filter_map(|(_, number)| number.parse().ok()).collect();
    cpus.sort_unstable();
    CpuList(cpus)
}

/// Core, package, node and siblings of each CPU. Without entries in sysfs, each CPU is a core of its own on package and
/// node 0.
pub(super) fn read_cpus(root: &SystemRoot, online: &CpuList) -> Vec<CpuTopology> {
    let nodes = nodes(root);
    let cpus = online.0.iter().map(|&id| {
        let node = nodes.iter().find(|(_, cpus)| cpus.0.contains(&id));
        cpu(root, id, node.map_or(0, |(node, _)| *node))
    });
    cpus.collect()
}

/// The NUMA nodes with their CPUs.
pub(super) fn nodes(root: &SystemRoot) -> Vec<(u32, CpuList)> {
    let directories = root.numbered("/sys/devices/system/node", "node");
    directories
        .into_iter()
        .map(|(node, path)| (node, root.cpu_list(&format!("{path}/cpulist")).unwrap_or_default()))
        .collect()
}

/// The NUMA nodes with what firmware says of them (Documentation/admin-guide/mm/numaperf.rst).
pub(super) fn described_nodes(root: &SystemRoot) -> Vec<NumaNode> {
    nodes(root).into_iter().map(|(id, cpus)| read_node(root, id, cpus)).collect()
}

fn read_node(root: &SystemRoot, id: u32, cpus: CpuList) -> NumaNode {
    let directory = format!("/sys/devices/system/node/node{id}");
    let distances = root.read_text(&format!("{directory}/distance")).unwrap_or_default();
    let total = root.field(&format!("{directory}/meminfo"), &format!("Node {id} MemTotal"));
    let memory = total.and_then(|size| size.trim_end_matches("kB").trim_end().parse::<u64>().ok());
    NumaNode {
        id,
        cpus,
        memory: memory.unwrap_or(0).saturating_mul(1024),
        distances: distances.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        claims: [0, 1].into_iter().filter_map(|class| claim(root, &directory, class)).collect(),
    }
}

/// Figures that firmware states for the initiators of a class; `None` if there are none.
fn claim(root: &SystemRoot, node: &str, class: u32) -> Option<Claim> {
    let directory = format!("{node}/access{class}/initiators");
    let initiators = root.numbered(&directory, "node").into_iter().map(|(node, _)| node).collect::<Vec<_>>();
    let figure =
        |name: &str| root.read_number::<u64>(&format!("{directory}/{name}")).filter(|figure| *figure > 0);
    (!initiators.is_empty()).then(|| Claim {
        class,
        initiators,
        read_latency: figure("read_latency"),
        write_latency: figure("write_latency"),
        read_bandwidth: figure("read_bandwidth"),
        write_bandwidth: figure("write_bandwidth"),
    })
}

fn cpu(root: &SystemRoot, id: u32, node: u32) -> CpuTopology {
    let topology = |name: &str| format!("{CPUS}/cpu{id}/topology/{name}");
    // A package of -1 means that firmware does not tell.
    let [core, package] = ["core_id", "physical_package_id"]
        .map(|name| root.read_number::<i64>(&topology(name)).and_then(|number| u32::try_from(number).ok()));
    let siblings = root
        .cpu_list(&topology("core_cpus_list"))
        .or_else(|| root.cpu_list(&topology("thread_siblings_list")))
        .filter(|list| list.0.contains(&id))
        .unwrap_or_else(|| CpuList(vec![id]));
    let core = if root.exists(&topology("core_id")) { core.unwrap_or(0) } else { id };
    CpuTopology { id, core, package: package.unwrap_or(0), node, siblings }
}

/// The caches of a CPU as sysfs declares them; caches without a size are left out.
pub(super) fn caches(root: &SystemRoot, cpu: u32) -> Vec<CpuCache> {
    let directories = root.numbered(&format!("{CPUS}/cpu{cpu}/cache"), "index");
    directories.iter().filter_map(|(_, path)| cache(root, path)).collect()
}

/// Counters of hybrid x86 processors that sysfs has for each kind of core, and the name of the kind.
const HYBRID: [(&str, &str); 3] =
    [("cpu_core", "performance cores"), ("cpu_atom", "efficient cores"), ("cpu_lowpower", "low-power cores")];

/// The kinds of cores: by the capacity that the scheduler assigns (`cpu_capacity`, arm64), else by their performance
/// counters (hybrid x86). Empty where all are alike.
pub(super) fn kinds(root: &SystemRoot) -> Vec<CoreKind> {
    let mut by_capacity: Vec<CoreKind> = Vec::new();
    for (cpu, path) in root.numbered(CPUS, "cpu") {
        let Some(capacity) = root.read_text(&format!("{path}/cpu_capacity")) else { continue };
        let name = format!("cores of capacity {capacity}");
        match by_capacity.iter_mut().find(|kind| kind.name == name) {
            Some(kind) => kind.cpus.0.push(cpu),
            None => by_capacity.push(CoreKind { name, cpus: CpuList(vec![cpu]) }),
        }
    }
    let mut by_counters = Vec::new();
    for (directory, name) in HYBRID {
        let cpus = root.cpu_list(&format!("/sys/devices/{directory}/cpus")).filter(|cpus| !cpus.0.is_empty());
        by_counters.extend(cpus.map(|cpus| CoreKind { name: name.to_owned(), cpus }));
    }
    [by_capacity, by_counters].into_iter().find(|kinds| kinds.len() > 1).unwrap_or_default()
}

/// CPUs that share the last data or unified cache, a list for each such cache, as far as sysfs has them.
pub(super) fn last_caches(root: &SystemRoot, online: &CpuList) -> Vec<CpuList> {
    let mut lists: Vec<CpuList> = Vec::new();
    for &cpu in &online.0 {
        if !lists.iter().any(|list| list.0.binary_search(&cpu).is_ok()) {
            lists.extend(last_cache(root, cpu));
        }
    }
    lists
}

/// CPUs that share the last data or unified cache of a CPU.
fn last_cache(root: &SystemRoot, cpu: u32) -> Option<CpuList> {
    let all = root.numbered(&format!("{CPUS}/cpu{cpu}/cache"), "index").into_iter();
    let data = all
        .filter(|(_, path)| root.read_text(&format!("{path}/type")).is_none_or(|kind| kind != "Instruction"));
    let last = data.max_by_key(|(_, path)| root.read_number::<u32>(&format!("{path}/level")))?;
    root.cpu_list(&format!("{}/shared_cpu_list", last.1)).filter(|list| list.0.contains(&cpu))
}

fn cache(root: &SystemRoot, path: &str) -> Option<CpuCache> {
    let file = |name: &str| format!("{path}/{name}");
    let size = root.read_text(&file("size")).as_deref().and_then(cache_size)?;
    Some(CpuCache {
        level: root.read_number(&file("level"))?,
        kind: root.read_text(&file("type")).unwrap_or_else(|| "Unified".to_owned()),
        size,
        line: root.read_number(&file("coherency_line_size")).unwrap_or(0),
        ways: root.read_number(&file("ways_of_associativity")).unwrap_or(0),
        shared: root.cpu_list(&file("shared_cpu_list")).unwrap_or_default(),
    })
}

/// Parses the kernel's short form of sizes, `32K`, `1M`, which is not that of the command line.
fn cache_size(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) if text.ends_with('K') => (digits, 1 << 10),
        Some(digits) if text.ends_with('M') => (digits, 1 << 20),
        Some(digits) => (digits, 1 << 30),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(scale).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_are_the_kernels() {
        let cases = [
            ("32K", Some(32 << 10)),
            ("105M", Some(105 << 20)),
            ("1G", Some(1 << 30)),
            ("512", Some(512)),
            ("0K", None),
            ("K", None),
            ("", None),
            ("99999999999999999999K", None),
        ];
        for (text, size) in cases {
            assert_eq!(cache_size(text), size, "{text}");
        }
    }

    #[test]
    fn nodes_have_what_firmware_says_of_them() {
        let (_directory, root) = super::super::root::tree(&[
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("/sys/devices/system/node/node0/distance", "10 28\n"),
            ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:        2048 kB\n"),
            ("/sys/devices/system/node/node2/cpulist", "\n"),
            ("/sys/devices/system/node/node2/distance", "28 10\n"),
            ("/sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:        1024 kB\n"),
            ("/sys/devices/system/node/node2/access0/initiators/node0/x", ""),
            ("/sys/devices/system/node/node2/access0/initiators/read_latency", "140\n"),
            ("/sys/devices/system/node/node2/access0/initiators/write_latency", "0\n"),
        ]);
        let nodes = described_nodes(&root);
        assert_eq!((nodes[0].memory, nodes[0].cpus.0.len(), nodes[0].claims.len()), (2 << 20, 4, 0));
        let claim = Claim { class: 0, initiators: vec![0], read_latency: Some(140), ..Claim::default() };
        assert_eq!((nodes[1].id, nodes[1].cpus.0.len(), &nodes[1].claims[..]), (2, 0, &[claim][..]));
        let machine = latscope_core::machine::Machine { nodes, ..Default::default() };
        assert_eq!(
            (machine.distance(0, 2), machine.distance(2, 0), machine.distance(0, 1)),
            (Some(28), Some(28), None)
        );
        assert_eq!((machine.claimed_latency(0, 2), machine.claimed_latency(2, 0)), (Some(140), None));
    }

    #[test]
    fn cores_are_of_several_kinds_by_capacity_or_by_counters() {
        let of = |files: &[(&str, &str)]| {
            let (_directory, root) = super::super::root::tree(files);
            kinds(&root).into_iter().map(|kind| format!("{}: {}", kind.name, kind.cpus)).collect::<Vec<_>>()
        };
        let capacity = |cpu: u32| format!("{CPUS}/cpu{cpu}/cpu_capacity");
        let [a, b, c] = [0, 1, 2].map(capacity);
        let mixed = of(&[(&a, "250"), (&b, "1024"), (&c, "250")]);
        assert_eq!(mixed, ["cores of capacity 250: 0,2", "cores of capacity 1024: 1"]);
        assert!(of(&[(&a, "1024"), (&b, "1024")]).is_empty());
        let counters = [("/sys/devices/cpu_core/cpus", "0-1"), ("/sys/devices/cpu_atom/cpus", "2-5")];
        assert_eq!(of(&counters), ["performance cores: 0-1", "efficient cores: 2-5"]);
        assert!(of(&counters[..1]).is_empty() && of(&[]).is_empty());
    }

    #[test]
    fn processors_of_cpuinfo_are_counted_when_sysfs_is_missing() {
        let text = "processor\t: 0\nmodel name\t: X\n\nprocessor\t: 3\n\nHardware : BCM2711\n";
        assert_eq!(processors(text).0, [0, 3]);
        assert_eq!(processors("").0, [0u32; 0]);
    }
}
