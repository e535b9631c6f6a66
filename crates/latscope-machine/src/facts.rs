//! Facts that are in no file: answers of system calls and of the processor.

use super::root::SystemRoot;
use latscope_core::machine::CpuCache;
use latscope_core::units::CpuList;
use latscope_os::cpuid::{self, CacheKind};
use rustix::thread::CpuSet;

/// Answers of system calls and of the processor about this machine. For a machine kept as files they are taken from
/// `/proc`, if they are there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineFacts {
    /// Name of the host, `uname -n`.
    pub name: String,
    /// Release of the kernel, `uname -r`.
    pub kernel: String,
    /// Version of the kernel, `uname -v`.
    pub kernel_version: String,
    /// Architecture of the machine, `uname -m`.
    pub architecture: String,
    /// CPUs this process may run on.
    pub allowed: CpuList,
    /// True if the effective user is root.
    pub root: bool,
    /// The hypervisor, as the processor names it.
    pub hypervisor: Option<String>,
    /// The caches, as the processor declares them.
    pub caches: Vec<CpuCache>,
}

impl MachineFacts {
    /// Queries the kernel and the processor if the machine is this one, else the files with the same facts.
    pub fn of_root(root: &SystemRoot) -> MachineFacts {
        if root.is_real() { MachineFacts::of_this_machine(root) } else { MachineFacts::from_files(root) }
    }

    fn of_this_machine(root: &SystemRoot) -> MachineFacts {
        let names = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        MachineFacts {
            name: text(names.nodename()),
            kernel: text(names.release()),
            kernel_version: text(names.version()),
            architecture: text(names.machine()),
            allowed: affinity().unwrap_or_else(|| allowed_in_status(root)),
            root: rustix::process::geteuid().is_root(),
            hypervisor: cpuid::hypervisor_vendor(),
            caches: cpuid::caches().into_iter().map(convert_cache).collect(),
        }
    }

    fn from_files(root: &SystemRoot) -> MachineFacts {
        let text = |name: &str| root.read_text(&format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        // Uid: real, effective, saved, file system.
        let user = root.field("/proc/self/status", "Uid");
        MachineFacts {
            name: text("hostname"),
            kernel: text("osrelease"),
            kernel_version: text("version"),
            architecture: text("arch"),
            allowed: allowed_in_status(root),
            root: user.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")),
            hypervisor: None,
            caches: Vec::new(),
        }
    }
}

/// The affinity mask of this thread; `None` if it is refused, or the machine has more CPUs than the mask of the library
/// holds.
fn affinity() -> Option<CpuList> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Some(CpuList(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect()))
}

fn allowed_in_status(root: &SystemRoot) -> CpuList {
    let text = root.field("/proc/self/status", "Cpus_allowed_list");
    text.and_then(|list| list.parse().ok()).unwrap_or_default()
}

/// Cache as CPUID declares it. CPUID has the number of identifiers that share a cache but not the CPUs: `shared` stays
/// empty.
fn convert_cache(cache: cpuid::CpuidCache) -> CpuCache {
    let kind = match cache.kind {
        CacheKind::Data => "Data",
        CacheKind::Instruction => "Instruction",
        CacheKind::Unified => "Unified",
    };
    CpuCache {
        level: cache.level,
        kind: kind.to_owned(),
        size: cache.size,
        line: cache.line,
        ways: cache.ways,
        shared: CpuList::default(),
    }
}
