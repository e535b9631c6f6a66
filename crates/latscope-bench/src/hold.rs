//! Conditions that a worker holds while it measures, and that end with it.

use latscope_core::plan::Conditions;
use latscope_core::quality::{HALTED, IDLE_NOT_HELD, MEMORY_NOT_LOCKED, OTHER_CPU, POLICY_REFUSED};
use latscope_os::sched;
use rustix::mm::{MlockAllFlags, mlockall};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

/// A condition that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortfall {
    /// The id of the reason, for programs and for what the header says.
    pub id: &'static str,
    /// Reason why the condition could not be met.
    pub reason: String,
    /// Remedy for the shortfall, in words.
    pub remedy: &'static str,
}

impl Shortfall {
    /// A scheduling policy that was not to be had.
    pub fn policy(reason: String) -> Shortfall {
        Shortfall { id: POLICY_REFUSED, reason, remedy: real_time_remedy() }
    }

    /// A stop of a process of the run by a signal.
    pub fn run_stopped() -> Shortfall {
        let reason = "the run was stopped by a signal meanwhile (SIGSTOP)".to_owned();
        Shortfall { id: HALTED, reason, remedy: "let it run to its end" }
    }

    /// A stop of the run by the freezer of a control group.
    pub fn frozen() -> Shortfall {
        let reason =
            "a control group froze the run meanwhile (its freezer, as `docker pause` uses it)".to_owned();
        Shortfall { id: HALTED, reason, remedy: "let it run to its end" }
    }

    /// A CPU on which a measuring thread did not stay.
    pub fn other_cpu(reason: String) -> Shortfall {
        let remedy =
            "leave measuring threads on their CPUs: move none (taskset, cpusets), and keep the CPUs online";
        Shortfall { id: OTHER_CPU, reason, remedy }
    }
}

/// Remedy that gives this process real-time priorities. A control group without a real-time budget denies them even to
/// root.
pub fn real_time_remedy() -> &'static str {
    static REMEDY: OnceLock<String> = OnceLock::new();
    REMEDY.get_or_init(|| match empty_budget(Path::new("/")) {
        Some(file) => format!("give this control group a real-time budget: `echo 950000 > {file}` as root"),
        None => "run as root, or raise the limit of priorities (`ulimit -r 99`; systemd: LimitRTPRIO=99; docker: --ulimit \
                 rtprio=99)"
            .to_owned(),
    })
}

/// The file of this process's control group (version 1, CONFIG_RT_GROUP_SCHED)
/// that grants no real-time budget.
fn empty_budget(root: &Path) -> Option<String> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let has_cpu =
        |line: &&str| line.split(':').nth(1).is_some_and(|names| names.split(',').any(|n| n == "cpu"));
    let group = groups.lines().find(has_cpu)?.splitn(3, ':').nth(2)?;
    let file = |mount: &str| {
        format!("sys/fs/cgroup/{mount}/{}/cpu.rt_runtime_us", group.trim_matches('/')).replace("//", "/")
    };
    let mut files = ["cpu", "cpu,cpuacct", "cpuacct,cpu"].map(file).into_iter();
    let is_empty =
        |file: &String| std::fs::read_to_string(root.join(file)).is_ok_and(|text| text.trim() == "0");
    files.find(is_empty).map(|file| format!("/{file}"))
}

/// Gives the calling thread a policy and reads it back; the answer is why it has another.
pub fn apply_policy(wanted: sched::ThreadSchedPolicy) -> Option<Shortfall> {
    if let Err(error) = sched::set_policy(wanted) {
        return Some(Shortfall::policy(format!("ran as SCHED_OTHER, not {wanted}: {error}")));
    }
    match sched::policy() {
        Ok(policy) if policy == wanted => None,
        Ok(other) => Some(Shortfall::policy(format!("ran as {other}, not {wanted}"))),
        Err(error) => {
            Some(Shortfall::policy(format!("asked for {wanted}, and what was granted is unknown: {error}")))
        }
    }
}

/// Conditions that are held until the value is dropped.
#[derive(Debug, Default)]
pub struct WorkerConditionGuard {
    /// The kernel keeps to the latency written to it as long as it is open.
    _cpu_dma_latency: Option<File>,
}

/// Locks memory and holds `/dev/cpu_dma_latency`, as asked.
pub fn hold(conditions: &Conditions) -> (WorkerConditionGuard, Vec<Shortfall>) {
    let mut shortfalls = Vec::new();
    if conditions.lock_memory
        && let Err(error) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
    {
        let reason = format!("memory is not locked: {error}");
        shortfalls.push(Shortfall {
            id: MEMORY_NOT_LOCKED,
            reason,
            remedy: "run as root, or raise `ulimit -l` (docker: --ulimit memlock=-1)",
        });
    }
    let latency = conditions.cpu_dma_latency.map(|us| dma_latency("/dev/cpu_dma_latency", us));
    let held = match latency.transpose() {
        Ok(file) => file,
        Err(error) => {
            let reason = format!("CPUs may sleep deeply: /dev/cpu_dma_latency: {error}");
            let remedy = "run as root, or give write access to /dev/cpu_dma_latency (udev; docker: --device /dev/cpu_dma_latency)";
            shortfalls.push(Shortfall { id: IDLE_NOT_HELD, reason, remedy });
            None
        }
    };
    (WorkerConditionGuard { _cpu_dma_latency: held }, shortfalls)
}

/// The interface takes a binary 32-bit number of µs; as text it would mean
/// something else (Documentation/power/pm_qos_interface.rst).
fn dma_latency(path: &str, us: i32) -> std::io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(&us.to_ne_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_a_budget_is_named() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/self/cgroup", "5:cpuset:/b\n4:cpu,cpuacct:/a\n0::/\n");
        put("sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us", "0\n");
        let file = "/sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us";
        assert_eq!(empty_budget(root.path()).as_deref(), Some(file));
        put("sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us", "950000\n");
        assert_eq!(empty_budget(root.path()), None);
    }

    #[test]
    fn the_latency_is_written_in_binary() {
        let file = tempfile::NamedTempFile::new().unwrap();
        drop(dma_latency(file.path().to_str().unwrap(), 258).unwrap());
        assert_eq!(std::fs::read(file.path()).unwrap(), 258i32.to_ne_bytes());
        assert!(dma_latency("/nonexistent/file", 0).is_err());
    }

    #[test]
    fn nothing_asked_is_nothing_held() {
        let (held, shortfalls) = hold(&Conditions::default());
        assert!(held._cpu_dma_latency.is_none() && shortfalls.is_empty());
    }
}
