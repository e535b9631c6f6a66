//! Limits on the number of threads and processes: getrlimit(2), proc(5), Documentation/admin-guide/cgroup-v2.rst.

use crate::control_group::task_groups;
use crate::root::{SystemRoot, fields};
use latscope_core::units::format_count;

/// A limit on the number of threads, those of processes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLimit {
    /// Name of the limit: `kernel.pid_max`, or the file of a control group.
    pub name: String,
    /// Number of threads that it allows.
    pub limit: u64,
    /// Number of further threads that it allows.
    pub left: u64,
    /// Command that raises it.
    pub raise: String,
}

/// Capabilities to which the limit of a user does not apply: CAP_SYS_ADMIN and CAP_SYS_RESOURCE.
const PRIVILEGED: u64 = 1 << 21 | 1 << 24;

/// Mappings of a thread: its stack and the guard page in front of it.
const MAPPINGS: u64 = 2;

impl TaskLimit {
    /// Returns the limit of this machine that allows the fewest further processes, or threads of this process; `None`
    /// if the kernel states none.
    pub fn smallest(threads: bool) -> Option<TaskLimit> {
        tightest_limit(&SystemRoot::real(), threads)
    }

    /// Returns the limit in words: `kernel.pid_max allows 32,768, of which 12 are left`.
    pub fn format_summary(&self) -> String {
        format!(
            "{} allows {}, of which {} are left",
            self.name,
            format_count(self.limit),
            format_count(self.left)
        )
    }

    fn new(name: &str, limit: u64, used: u64, raise: String) -> TaskLimit {
        TaskLimit { name: name.to_owned(), limit, left: limit.saturating_sub(used), raise }
    }
}

/// Returns the remedy where a process or thread could not be made: the limit that allows the fewest, and how to raise
/// it.
pub fn more_tasks() -> String {
    match TaskLimit::smallest(false) {
        Some(limit) => format!("allow more threads: {} ({})", limit.format_summary(), limit.raise),
        None => "allow more threads (ulimit -u, pids.max)".to_owned(),
    }
}

fn tightest_limit(root: &SystemRoot, threads: bool) -> Option<TaskLimit> {
    let all = system_wide(root).into_iter().chain(of_user(root)).chain(of_groups(root));
    all.chain(of_mappings(root).filter(|_| threads)).min_by_key(|limit| limit.left)
}

fn system_wide(root: &SystemRoot) -> Vec<TaskLimit> {
    let Some(used) = threads_of_all(root) else { return Vec::new() };
    let limit = |name: &&str| {
        let limit = root.read_number(&format!("/proc/sys/kernel/{name}"))?;
        let name = format!("kernel.{name}");
        Some(TaskLimit::new(&name, limit, used, format!("sysctl {name}=N")))
    };
    ["pid_max", "threads-max"].iter().filter_map(limit).collect()
}

/// Number of threads on the machine: `0.00 0.01 0.05 2/105 4242` has it behind the slash.
fn threads_of_all(root: &SystemRoot) -> Option<u64> {
    root.read_text("/proc/loadavg")?.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// The limit of this user, which does not apply to root.
fn of_user(root: &SystemRoot) -> Option<TaskLimit> {
    let limits = root.read_text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let limit = line.split_whitespace().next()?.parse().ok()?;
    let status = root.read_text("/proc/self/status")?;
    let user = uid(&status)?;
    let effective = fields(&status).find(|(name, _)| *name == "CapEff")?.1;
    if user == "0" || u64::from_str_radix(effective, 16).ok()? & PRIVILEGED != 0 {
        return None;
    }
    let mut used = 0;
    for (_, process) in root.numbered("/proc", "") {
        // One that has ended meanwhile has none.
        let Some(status) = root.read_text(&format!("{process}/status")) else { continue };
        if uid(&status) == Some(user) {
            let threads = fields(&status).find(|(name, _)| *name == "Threads");
            used += threads.and_then(|(_, count)| count.parse().ok()).unwrap_or(1);
        }
    }
    Some(TaskLimit::new("the limit of the user (ulimit -u)", limit, used, "ulimit -u N".to_owned()))
}

/// The real user in `/proc/PID/status`.
fn uid(status: &str) -> Option<&str> {
    fields(status).find(|(name, _)| *name == "Uid")?.1.split_whitespace().next()
}

fn of_groups(root: &SystemRoot) -> Vec<TaskLimit> {
    let limit = |group: &String| {
        let name = format!("{group}/pids.max");
        // No limit is `max`, which is no number.
        let limit = root.read_number(&name)?;
        let used = root.read_number(&format!("{group}/pids.current"))?;
        Some(TaskLimit::new(&name, limit, used, format!("echo N > {name}")))
    };
    task_groups(root).iter().filter_map(limit).collect()
}

/// The limit on mappings, in threads of this process.
fn of_mappings(root: &SystemRoot) -> Option<TaskLimit> {
    let limit: u64 = root.read_number("/proc/sys/vm/max_map_count")?;
    let used = root.read_text("/proc/self/maps")?.lines().count() as u64;
    let name = "vm.max_map_count (two mappings a thread)";
    Some(TaskLimit::new(
        name,
        limit / MAPPINGS,
        used.div_ceil(MAPPINGS),
        "sysctl vm.max_map_count=N".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree;

    const LOAD: (&str, &str) = ("/proc/loadavg", "0.00 0.01 0.05 2/1000 4242");
    const LIMITS: (&str, &str) =
        ("/proc/self/limits", "Limit   Soft   Hard   Units\nMax processes   96364   96364   processes\n");
    const NOBODY: &str =
        "Name:\tx\nUid:\t65534\t65534\t65534\t65534\nThreads:\t3\nCapEff:\t0000000000000000\n";

    /// The smallest limit of a machine with these files.
    fn smallest(files: &[(&str, &str)], threads: bool) -> Option<(String, u64, u64)> {
        let (_directory, root) = tree(files);
        tightest_limit(&root, threads).map(|limit| (limit.name, limit.limit, limit.left))
    }

    #[test]
    fn the_limit_that_allows_the_fewest_is_named() {
        let pid_max = ("/proc/sys/kernel/pid_max", "32768");
        let threads_max = ("/proc/sys/kernel/threads-max", "192729");
        let found = |name: &str, limit, left| Some((name.to_owned(), limit, left));
        assert_eq!(smallest(&[LOAD, pid_max, threads_max], false), found("kernel.pid_max", 32_768, 31_768));
        let few = ("/proc/sys/kernel/threads-max", "5000");
        assert_eq!(smallest(&[LOAD, pid_max, few], false), found("kernel.threads-max", 5_000, 4_000));
        let mappings = [("/proc/sys/vm/max_map_count", "10001"), ("/proc/self/maps", "a\nb\nc\n")];
        let all = [&[LOAD, pid_max][..], &mappings].concat();
        assert_eq!(smallest(&all, false), found("kernel.pid_max", 32_768, 31_768));
        assert_eq!(smallest(&all, true), found("vm.max_map_count (two mappings a thread)", 5_000, 4_998));
        assert_eq!(smallest(&[], true), None);
    }

    #[test]
    fn a_group_above_may_have_the_smallest() {
        for (groups, mount) in [("0::/a/b\n", ""), ("8:pids:/a/b\n0::/\n", "/pids")] {
            let file = |path: &str| format!("/sys/fs/cgroup{mount}{path}");
            let files = [
                ("/proc/self/cgroup".to_owned(), groups),
                (file("/cgroup.controllers"), "pids"),
                (file("/a/b/pids.max"), "max"),
                (file("/a/b/pids.current"), "7"),
                (file("/a/pids.max"), "100"),
                (file("/a/pids.current"), "40"),
            ];
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
            let found =
                smallest(&[&files[..], &[LOAD, ("/proc/sys/kernel/pid_max", "32768")]].concat(), false);
            assert_eq!(found, Some((file("/a/pids.max"), 100, 60)));
        }
    }

    #[test]
    fn the_limit_of_a_user_is_not_that_of_root() {
        let pid_max = ("/proc/sys/kernel/pid_max", "4194304");
        let processes =
            [("/proc/self/status", NOBODY), ("/proc/7/status", NOBODY), ("/proc/9/status", "Uid:\t0\n")];
        let of_nobody = [&[LOAD, LIMITS, pid_max][..], &processes].concat();
        let name = "the limit of the user (ulimit -u)";
        assert_eq!(smallest(&of_nobody, false), Some((name.to_owned(), 96_364, 96_361)));
        for status in
            ["Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n", "Uid:\t7\t7\t7\t7\nCapEff:\t0000000001000000\n"]
        {
            let found = smallest(&[LOAD, LIMITS, pid_max, ("/proc/self/status", status)], false).unwrap();
            assert_eq!(found.0, "kernel.pid_max", "{status}");
        }
    }

    #[test]
    fn this_machine_has_a_limit() {
        let limit = TaskLimit::smallest(true).unwrap();
        assert!(limit.limit >= limit.left && !limit.raise.is_empty(), "{limit:?}");
    }
}
