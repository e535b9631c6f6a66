//! Limits of the control groups this process is in: cgroups(7),
//! Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.

use crate::root::SystemRoot;
use latscope_core::units::CpuList;
use std::collections::BTreeMap;

/// Name of this process in `/proc`.
const SELF: &str = "self";

/// A share of CPU time granted in each period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CgroupCpuQuota {
    /// CPU time in a period, µs.
    pub runtime: u64,
    /// Length of the period, µs.
    pub period: u64,
    /// File that has the limit; writing `lift` into it removes the limit.
    pub file: String,
    pub lift: &'static str,
    /// Directory of the group.
    pub group: String,
}

impl CgroupCpuQuota {
    /// CPU time of the quota in CPUs.
    pub fn cpus(&self) -> f64 {
        self.runtime as f64 / self.period as f64
    }
}

/// The tightest quota of this process's groups and of those above them.
pub(crate) fn quota(root: &SystemRoot) -> Option<CgroupCpuQuota> {
    quotas(root).into_iter().min_by(|a, b| a.cpus().total_cmp(&b.cpus()))
}

/// Every quota of this process's groups and of those above them, innermost first.
pub(crate) fn quotas(root: &SystemRoot) -> Vec<CgroupCpuQuota> {
    let second = unified(root).into_iter().filter_map(|group| quota_v2(root, &group));
    let first = hierarchy(root, "cpu").into_iter().filter_map(|group| quota_v1(root, &group));
    second.chain(first).collect()
}

/// Counts of how often a group was stopped so far, from its `cpu.stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Throttling {
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Periods in which it was stopped.
    pub throttled: u64,
    /// Time for which it was stopped, ns, summed over CPUs.
    pub throttled_ns: u64,
}

/// Reads how often a group was stopped so far; `None` if its controller does not count it.
pub(crate) fn throttling(root: &SystemRoot, group: &str) -> Option<Throttling> {
    let text = root.read_text(&format!("{group}/cpu.stat"))?;
    let fields = text.lines().filter_map(|line| line.split_once(' '));
    let numbers: BTreeMap<&str, u64> =
        fields.filter_map(|(name, value)| Some((name, value.trim().parse().ok()?))).collect();
    // The first version counts ns, the second µs.
    let throttled_ns = numbers.get("throttled_time").copied();
    Some(Throttling {
        periods: *numbers.get("nr_periods")?,
        throttled: *numbers.get("nr_throttled")?,
        throttled_ns: throttled_ns.or_else(|| Some(numbers.get("throttled_usec")?.saturating_mul(1_000)))?,
    })
}

fn quota_v2(root: &SystemRoot, group: &str) -> Option<CgroupCpuQuota> {
    let file = format!("{group}/cpu.max");
    let text = root.read_text(&file)?;
    let (runtime, period) = text.split_once(' ')?;
    let (runtime, period) = (runtime.parse().ok()?, period.trim().parse().ok()?);
    (period > 0).then_some(CgroupCpuQuota { runtime, period, file, lift: "max", group: group.to_owned() })
}

fn quota_v1(root: &SystemRoot, group: &str) -> Option<CgroupCpuQuota> {
    let file = format!("{group}/cpu.cfs_quota_us");
    // No limit is -1, which is no u64.
    let runtime = root.read_number(&file)?;
    let period = root.read_number(&format!("{group}/cpu.cfs_period_us"))?;
    (period > 0).then_some(CgroupCpuQuota { runtime, period, file, lift: "-1", group: group.to_owned() })
}

/// The file that denies this process real-time policies, if its group has no
/// real-time budget (kernels with CONFIG_RT_GROUP_SCHED).
pub(crate) fn no_real_time_budget(root: &SystemRoot) -> Option<String> {
    real_time_budget(root).filter(|budget| budget.runtime == 0).map(|budget| budget.file)
}

/// Time that the real-time threads of a control group may take of a CPU (CONFIG_RT_GROUP_SCHED).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealTimeBudget {
    /// Time in each period, µs: with 0 the kernel refuses real-time policies; negative without a limit.
    pub runtime: i64,
    /// Period in which that time counts, µs.
    pub period: i64,
    /// The file with the time.
    pub file: String,
}

/// Returns the real-time budget of this process's group; `None` where groups have none.
pub fn real_time_budget(root: &SystemRoot) -> Option<RealTimeBudget> {
    let own = hierarchy(root, "cpu").into_iter().find(|group| root.exists(group))?;
    let file = format!("{own}/cpu.rt_runtime_us");
    let runtime = root.read_number(&file)?;
    let period = root.read_number(&format!("{own}/cpu.rt_period_us")).unwrap_or(1_000_000);
    Some(RealTimeBudget { runtime, period, file })
}

/// The CPUs that this process's group may use, and the file to change them.
pub(crate) fn cpuset(root: &SystemRoot) -> Option<(CpuList, String)> {
    let second = unified(root).into_iter().map(|group| (group, "cpuset.cpus.effective"));
    let first = hierarchy(root, "cpuset").into_iter().map(|group| (group, "cpuset.effective_cpus"));
    second.chain(first).find_map(|(group, file)| {
        let cpus = root.cpu_list(&format!("{group}/{file}"))?;
        Some((cpus, format!("{group}/cpuset.cpus")))
    })
}

/// The groups that may limit the number of threads, innermost first, as directories.
pub(crate) fn task_groups(root: &SystemRoot) -> Vec<String> {
    unified(root).into_iter().chain(hierarchy(root, "pids")).collect()
}

/// Returns the files that freeze a process: of its groups and of those above them.
pub(crate) fn freezers(root: &SystemRoot, process: &str) -> Vec<String> {
    let first =
        hierarchy_of(root, process, "freezer").into_iter().map(|group| format!("{group}/freezer.state"));
    let second = unified_of(root, process).into_iter().map(|group| format!("{group}/cgroup.freeze"));
    first.chain(second).filter(|file| root.exists(file)).collect()
}

/// This process's group of the second version and all above it, innermost
/// first, as directories.
fn unified(root: &SystemRoot) -> Vec<String> {
    unified_of(root, SELF)
}

fn unified_of(root: &SystemRoot, process: &str) -> Vec<String> {
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let mount = mounts.into_iter().find(|mount| root.exists(&format!("{mount}/cgroup.controllers")));
    match (mount, group_path(root, process, |controllers| controllers.is_empty())) {
        (Some(mount), Some(path)) => upwards(mount, &path),
        _ => Vec::new(),
    }
}

/// This process's group of a controller of the first version and all above it, innermost first, as directories.
fn hierarchy(root: &SystemRoot, controller: &str) -> Vec<String> {
    hierarchy_of(root, SELF, controller)
}

fn hierarchy_of(root: &SystemRoot, process: &str, controller: &str) -> Vec<String> {
    let Some(path) = group_path(root, process, |names| names.split(',').any(|name| name == controller))
    else {
        return Vec::new();
    };
    let candidates = [controller, "cpu,cpuacct", "cpuacct,cpu"];
    let mounts = candidates.map(|name| format!("/sys/fs/cgroup/{name}"));
    mounts.iter().find(|mount| root.exists(mount)).map_or(Vec::new(), |mount| upwards(mount, &path))
}

/// The path in the line `number:controllers:path` of a process's `cgroup` whose
/// controllers suit.
fn group_path(root: &SystemRoot, process: &str, suits: impl Fn(&str) -> bool) -> Option<String> {
    let text = root.read_text(&format!("/proc/{process}/cgroup"))?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        suits(controllers).then(|| path.to_owned())
    })
}

/// Directories from `path` up to the mount. In a container the path may be that of the host, of which only the mount
/// itself is visible: the way up ends there.
fn upwards(mount: &str, path: &str) -> Vec<String> {
    let mut rest = path.trim_matches('/');
    let mut groups = Vec::new();
    while !rest.is_empty() {
        groups.push(format!("{mount}/{rest}"));
        rest = rest.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    groups.push(mount.to_owned());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree;

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let (_directory, root) = tree(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpu cpuset"),
            ("/sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-1\n"),
        ]);
        let quota = quota(&root).unwrap();
        assert_eq!((quota.cpus(), quota.file.as_str()), (0.5, "/sys/fs/cgroup/a/cpu.max"));
        let (cpus, file) = cpuset(&root).unwrap();
        assert_eq!((cpus.0.as_slice(), file.as_str()), (&[0, 1][..], "/sys/fs/cgroup/a/b/cpuset.cpus"));
    }

    #[test]
    fn first_version_limits_are_found() {
        let (_directory, root) = tree(&[
            ("/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n3:cpuset:/\n0::/\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "0"),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "2"),
        ]);
        assert_eq!(quota(&root).unwrap().cpus(), 1.5);
        assert_eq!(no_real_time_budget(&root).unwrap(), "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us");
        assert_eq!(cpuset(&root).unwrap().0.0, [2]);
    }

    #[test]
    fn no_limit_is_none() {
        let (_directory, root) = tree(&[
            ("/proc/self/cgroup", "1:cpu:/\n0::/\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!((quota(&root), cpuset(&root), no_real_time_budget(&root)), (None, None, None));
        let (_directory, empty) = tree(&[]);
        assert_eq!((quota(&empty), cpuset(&empty), no_real_time_budget(&empty)), (None, None, None));
    }
}
