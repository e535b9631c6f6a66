//! A snapshot of a machine: what is there and what is permitted. Only the
//! description; reading it is the business of the command.

use crate::json;
use crate::units::CpuList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine a result was measured on. In an imported result a fact that is not known is `null`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = crate::schema::permit_null)]
pub struct Machine {
    /// Identity of the machine: the user's name for it, or a value derived from its machine-id, from which the
    /// machine-id cannot be found; `None` where the machine has no id.
    pub id: Option<String>,
    /// Host name, as `uname -n`.
    #[serde(deserialize_with = "json::or_default")]
    pub name: String,
    /// Kernel release, as `uname -r`.
    #[serde(deserialize_with = "json::or_default")]
    pub kernel: String,
    /// Kernel version, as `uname -v`: names the preemption model.
    #[serde(deserialize_with = "json::or_default")]
    pub kernel_version: String,
    /// The kernel's command line without what only says where its files are (`root=`, `BOOT_IMAGE=`,
    /// `initrd=`, `resume=`); `None` where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Architecture, as `uname -m`.
    #[serde(deserialize_with = "json::or_default")]
    pub architecture: String,
    /// The processor's own name.
    #[serde(deserialize_with = "json::or_default")]
    pub cpu_model: String,
    /// Version of the processor's microcode; `None` where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// CPUs that are online.
    #[serde(deserialize_with = "json::or_default")]
    pub online: CpuList,
    /// CPUs this process may run on: affinity and cpuset.
    #[serde(deserialize_with = "json::or_default")]
    pub allowed: CpuList,
    /// Allowed CPUs, each with its core, package and NUMA node.
    #[serde(deserialize_with = "json::or_default")]
    pub cpus: Vec<CpuTopology>,
    /// NUMA nodes, those without CPUs or without memory included; empty where sysfs has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NumaNode>,
    /// Kinds of cores, where the CPUs are not all alike; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<CoreKind>,
    /// Caches of the first allowed CPU, as declared by sysfs or CPUID.
    #[serde(deserialize_with = "json::or_default")]
    pub caches: Vec<CpuCache>,
    /// The CPUs that share a last-level cache, a list for each such cache; empty where sysfs does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_caches: Vec<CpuList>,
    /// Source of `caches`: `sysfs`, `cpuid` or `unknown`.
    #[serde(deserialize_with = "json::or_default")]
    pub caches_from: String,
    /// Size of the installed memory, bytes.
    #[serde(deserialize_with = "json::or_default")]
    pub memory: u64,
    /// Bytes of memory that can be had without swapping.
    #[serde(deserialize_with = "json::or_default")]
    pub memory_available: u64,
    /// Hypervisor, if the machine is virtual.
    pub hypervisor: Option<String>,
    /// True if the command ran as root.
    #[serde(deserialize_with = "json::or_default")]
    pub root: bool,
    /// Load average over one minute, at the start.
    #[serde(deserialize_with = "json::or_default")]
    pub load_average: f64,
    /// The scheduler of ordinary threads: `kernel`, or the name of a sched_ext scheduler; `None` where it is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The clock used for time stamps.
    #[serde(deserialize_with = "json::or_default")]
    pub clock: ClockInfo,
    /// Results of the checks for things that distort latency here, as `latscope doctor` prints them.
    #[serde(deserialize_with = "json::or_default")]
    pub checks: Vec<DoctorCheck>,
}

/// Number of a CPU and its place in the topology.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTopology {
    /// Number of the CPU.
    pub id: u32,
    /// Core id within the package.
    pub core: u32,
    /// Number of the physical package.
    pub package: u32,
    /// Number of the NUMA node.
    pub node: u32,
    /// CPUs of the same core, itself included.
    pub siblings: CpuList,
}

/// Kind of core, and the CPUs of this kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreKind {
    /// Name of the kind: `performance cores`, `efficient cores`, or `cores of capacity 250` as the scheduler has it.
    pub name: String,
    /// CPUs of this kind.
    pub cpus: CpuList,
}

/// A NUMA node, and what firmware says of its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// Number of the node.
    pub id: u32,
    /// CPUs of the node; empty for a node of memory only.
    pub cpus: CpuList,
    /// Size of its memory, bytes.
    pub memory: u64,
    /// Distances from this node to each of the nodes, in their order (SLIT of ACPI: 10 is its own memory).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u32>,
    /// Figures that firmware states for its memory, as used from the nearest nodes (HMAT of ACPI, by sysfs
    /// `access0` and `access1`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// Figures that firmware states for a node's memory. A figure that it does not state is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// Class of initiators: 0 for the nearest of any kind, 1 for the nearest with CPUs.
    pub class: u32,
    /// Nodes from which the memory is used.
    pub initiators: Vec<u32>,
    /// Latency of a read, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency: Option<u64>,
    /// Latency of a write, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency: Option<u64>,
    /// Bandwidth of reads, MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bandwidth: Option<u64>,
    /// Bandwidth of writes, MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bandwidth: Option<u64>,
}

/// A declared data or unified cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCache {
    /// 1, 2, 3, …
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size of the cache, bytes.
    pub size: u64,
    /// Bytes in a line.
    pub line: u64,
    /// Associativity; 0 when unknown.
    pub ways: u32,
    /// CPUs that share it.
    pub shared: CpuList,
}

/// The clock behind all time stamps, and why it was chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockInfo {
    /// `tsc`, `cntvct` or `monotonic-raw`.
    pub source: String,
    /// Reason for choosing this clock, in words.
    pub reason: String,
    /// Frequency of the clock, ticks per second.
    pub frequency_hz: f64,
    /// Smallest step seen between two readings, ns.
    pub resolution_ns: f64,
    /// Time from one stamp to the next with nothing between, ns; it is
    /// subtracted from every duration, but not from events.
    pub overhead_ns: f64,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// The check found nothing to fix.
    Good,
    /// A fact that readers of the numbers must know.
    Note,
    /// Distorts the probes it names.
    Bad,
    /// Could not be found out.
    Unknown,
}

impl CheckState {
    /// Name of the state in results.
    pub fn state_name(self) -> &'static str {
        match self {
            CheckState::Good => "good",
            CheckState::Note => "note",
            CheckState::Bad => "bad",
            CheckState::Unknown => "unknown",
        }
    }
}

/// Row of `latscope doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCheck {
    /// Stable name: `governor`, `smt`, …
    pub id: String,
    /// Result of the check.
    pub state: CheckState,
    /// Facts that the check found, in words.
    pub found: String,
    /// Probes that the check affects: ids, or families such as `memory.*`; empty for none.
    pub affects: Vec<String>,
    /// The exact remedy, as a command where there is one.
    pub remedy: Option<String>,
}

impl Machine {
    /// The distance between two nodes as firmware states it; `None` where it does not.
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        let at = self.nodes.iter().position(|node| node.id == to)?;
        self.nodes.iter().find(|node| node.id == from)?.distances.get(at).copied()
    }

    /// The latency of a read that firmware states for the memory of `to`, used from `from`, ns.
    pub fn claimed_latency(&self, from: u32, to: u32) -> Option<u64> {
        let claims = &self.nodes.iter().find(|node| node.id == to)?.claims;
        claims.iter().filter(|claim| claim.initiators.contains(&from)).find_map(|claim| claim.read_latency)
    }

    /// Preemption model, as far as the kernel's version names it: `PREEMPT_RT`. Of `PREEMPT_DYNAMIC`, which names
    /// none, with the model in use if the check found it: `PREEMPT_DYNAMIC (none)`.
    pub fn preemption(&self) -> String {
        let built = self.kernel_version.split_whitespace().find(|word| word.starts_with("PREEMPT"));
        let built = built.unwrap_or_default();
        let check = self.checks.iter().find(|check| check.id == "preemption" && built == "PREEMPT_DYNAMIC");
        match check.and_then(|check| check.found.split_once(", says ")) {
            Some((model, _)) => format!("{built} ({model})"),
            None => built.to_owned(),
        }
    }

    /// Declared size of the data or unified cache of a level, in bytes.
    pub fn cache_size(&self, level: u32) -> Option<u64> {
        self.caches.iter().find(|c| c.level == level && c.kind != "Instruction").map(|c| c.size)
    }

    /// Declared size of the last-level cache, in bytes.
    pub fn last_level_cache(&self) -> Option<u64> {
        self.caches.iter().filter(|c| c.kind != "Instruction").max_by_key(|c| c.level).map(|c| c.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preemption_model_in_use_is_named_where_the_version_names_none() {
        let check = |found: &str| DoctorCheck {
            id: "preemption".to_owned(),
            state: CheckState::Bad,
            found: found.to_owned(),
            affects: Vec::new(),
            remedy: None,
        };
        let of = |version: &str, checks: Vec<DoctorCheck>| {
            Machine { kernel_version: version.to_owned(), checks, ..Machine::default() }.preemption()
        };
        let none = "none, says /boot/config: a thread inside the kernel is not preempted";
        assert_eq!(of("#1 SMP PREEMPT_DYNAMIC @0", vec![check(none)]), "PREEMPT_DYNAMIC (none)");
        let unknown = "chosen at boot (PREEMPT_DYNAMIC): debugfs, command line and log do not say which";
        assert_eq!(of("#1 SMP PREEMPT_DYNAMIC @0", vec![check(unknown)]), "PREEMPT_DYNAMIC");
        assert_eq!(of("#1 SMP PREEMPT_RT", vec![check(none)]), "PREEMPT_RT");
        assert_eq!(of("#1 SMP", Vec::new()), "");
    }
}
