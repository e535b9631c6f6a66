//! Processes and their CPU time: other processes, and the load.

use crate::SystemRoot;
use latscope_core::report::{Consumer, RealTime};
use latscope_core::units::first_words;
use latscope_os::usage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::TICK_NS;

/// Largest number of processes that are named.
const NAMED: usize = 5;

/// Share of a CPU below which a process is not named.
const WORTH_NAMING: f64 = 0.005;

/// Share of the time that real-time threads may use from which on a process counts as stopped.
const USED_UP: f64 = 0.9;

/// `PF_KTHREAD` of the kernel, in the flags that proc(5) shows.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Names of the kernel's threads that serve files and terminals, at the start: its general workers and those of file
/// systems and block devices.
const WORKERS: [&str; 7] = ["kworker/", "jbd2/", "xfs", "btrfs", "f2fs", "loop", "md"];

/// Other processes seen so far, with their CPU time at the first and at the last look.
#[derive(Default)]
pub(super) struct Processes {
    seen: BTreeMap<(u32, u64), ProcessCpuTime>,
    /// Processes with which the run exchanges messages.
    pub peers: BTreeSet<u32>,
}

struct ProcessCpuTime {
    name: String,
    first_ns: u64,
    last_ns: u64,
    /// Largest number of its threads at a look.
    threads: u64,
    /// Command line of another latscope; its times include those of all its descendants.
    latscope: Option<String>,
}

impl ProcessCpuTime {
    fn used_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Share of one CPU that the process used: its threads use no more than one each. The kernel counts in ticks, of
    /// which a short run may see one more than was used.
    fn share(&self, wall_ns: u64) -> f64 {
        let share = self.used_ns() as f64 / wall_ns.max(1) as f64;
        if self.latscope.is_some() { share } else { share.min(self.threads as f64) }
    }
}

impl Processes {
    /// Notes the existing processes and the CPU time that they used so far.
    pub fn record_times(&mut self, root: &SystemRoot) {
        let all: BTreeMap<u32, Stat> = stats(root).collect();
        let own = std::process::id();
        let latscopes = latscopes(root, &all, own);
        for (pid, stat) in &all {
            if self.peers.contains(pid) || is_of(*pid, own, &all) {
                continue;
            }
            let leader = latscopes.keys().find(|leader| is_of(*pid, **leader, &all));
            if leader.is_some_and(|leader| leader != pid) {
                continue;
            }
            let used_ns = leader.map_or(stat.used_ns, |leader| tree_ns(*leader, &all));
            let seen = self.seen.entry((*pid, stat.started)).or_insert_with(|| ProcessCpuTime {
                name: stat.name.clone(),
                first_ns: used_ns,
                last_ns: used_ns,
                threads: 1,
                latscope: None,
            });
            // It may have renamed itself, or run another program since.
            seen.name.clone_from(&stat.name);
            seen.threads = seen.threads.max(stat.threads);
            seen.last_ns = seen.last_ns.max(used_ns);
            seen.latscope = latscopes.get(pid).cloned().or(seen.latscope.take());
        }
    }

    /// CPU time that all noted processes except the peers used, ns.
    pub fn used_ns(&self) -> u64 {
        let others = self.seen.iter().filter(|((pid, _), _)| !self.peers.contains(pid));
        others.map(|(_, seen)| seen.used_ns()).sum()
    }

    /// Processes that used most CPU time, the largest first, without peers and without those that used hardly any.
    /// Every other latscope is among them, however many processes used more: it measures beside this one.
    pub fn top(&self, root: &SystemRoot, wall_ns: u64) -> Vec<Consumer> {
        let others = self.seen.iter().filter(|((pid, _), _)| !self.peers.contains(pid));
        let consumers = others.map(|((pid, _), seen)| Consumer {
            name: seen.name.clone(),
            pid: *pid,
            share: seen.share(wall_ns),
            latscope: seen.latscope.clone(),
            ..Consumer::default()
        });
        let mut top: Vec<Consumer> = consumers.filter(|consumer| consumer.share >= WORTH_NAMING).collect();
        top.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut place = 0..;
        top.retain(|process| process.latscope.is_some() || place.next().is_some_and(|place| place < NAMED));
        for consumer in &mut top {
            with_policy(root, consumer);
        }
        top
    }
}

/// Adds the policy of the real-time thread of a process that used most, if it has one.
fn with_policy(root: &SystemRoot, process: &mut Consumer) {
    let tasks = format!("/proc/{}/task", process.pid);
    let threads = root.list_names(&tasks).into_iter();
    let threads =
        threads.filter_map(|thread| parse_stat(&root.read_text(&format!("{tasks}/{thread}/stat"))?));
    let busiest = threads.filter(|thread| thread.policy().is_some()).max_by_key(|thread| thread.used_ns);
    if let Some(thread) = busiest {
        (process.policy, process.cpu) = (thread.policy(), Some(thread.cpu));
    }
}

/// Real-time processes among `top` that used all the time that the kernel grants them, on one of the measured CPUs;
/// `None` if the kernel does not stop them, or none did.
pub(super) fn real_time(root: &SystemRoot, top: &[Consumer], cpus: &[u32]) -> Option<RealTime> {
    let runtime =
        root.read_number::<u64>("/proc/sys/kernel/sched_rt_runtime_us").filter(|runtime| *runtime > 0)?;
    let period =
        root.read_number::<u64>("/proc/sys/kernel/sched_rt_period_us").filter(|period| *period > runtime)?;
    let most = USED_UP * runtime as f64 / period as f64;
    let here = top.iter().filter(|consumer| consumer.cpu.is_some_and(|cpu| cpus.contains(&cpu)));
    let loops = here.filter(|consumer| consumer.policy.is_some() && consumer.share >= most);
    let loops: Vec<Consumer> = loops.cloned().collect();
    let (runtime_ns, period_ns) = (runtime.saturating_mul(1_000), period.saturating_mul(1_000));
    (!loops.is_empty()).then_some(RealTime { runtime_ns, period_ns, logged: false, loops })
}

/// Command lines of other latscopes, by the process from which others of them descend.
fn latscopes(root: &SystemRoot, all: &BTreeMap<u32, Stat>, own: u32) -> BTreeMap<u32, String> {
    let commands = all.iter().filter(|(pid, stat)| {
        // The name, at hand already, spares the command line of every other process.
        stat.name.starts_with(PROGRAM) && !is_of(**pid, own, all) && !is_of(own, **pid, all)
    });
    let commands: BTreeMap<u32, String> =
        commands.filter_map(|(pid, _)| Some((*pid, latscope_command(root, *pid)?))).collect();
    let first = commands.iter().filter(|(pid, _)| {
        let parent = all.get(pid).map_or(0, |stat| stat.parent);
        !commands.keys().any(|other| is_of(parent, *other, all))
    });
    first.map(|(pid, command)| (*pid, command.clone())).collect()
}

/// Beginning of the program's name: a file of a release has the architecture behind it.
const PROGRAM: &str = "latscope";

/// Command line of a process, as typed, if it is a latscope.
fn latscope_command(root: &SystemRoot, pid: u32) -> Option<String> {
    let text = root.read_text(&format!("/proc/{pid}/cmdline"))?;
    let mut words = text.split('\0');
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    program.starts_with(PROGRAM).then(|| first_words(std::iter::once(program).chain(words)))
}

/// CPU time of the kernel's threads that serve files and terminals, ns.
pub(super) fn workers_ns(root: &SystemRoot) -> u64 {
    let workers =
        stats(root).filter(|(_, stat)| stat.kernel && WORKERS.iter().any(|name| stat.name.starts_with(name)));
    workers.map(|(_, stat)| stat.used_ns).sum()
}

/// CPU time of the processes of a load, ns: of the groups of its workers, of all descendants of these, and of children
/// for which they waited. It lacks processes that ended without being waited for.
pub(super) fn load_ns(root: &SystemRoot, workers: &[u32]) -> u64 {
    if workers.is_empty() {
        return 0;
    }
    let all: BTreeMap<u32, Stat> = stats(root).collect();
    let members = all.iter().filter(|(pid, stat)| {
        workers.iter().any(|worker| stat.group == *worker || is_of(**pid, *worker, &all))
    });
    members.map(|(pid, stat)| exact_ns(root, *pid).unwrap_or(stat.used_ns) + stat.children_ns).sum()
}

/// CPU time of a process so far, ns; `None` if the process has ended, or is on another machine.
pub(super) fn exact_ns(root: &SystemRoot, pid: u32) -> Option<u64> {
    root.is_real().then(|| usage::cpu_ns_of(pid).ok()).flatten()
}

/// CPU time of a process, of all its descendants, and of children for which they waited, ns.
fn tree_ns(leader: u32, all: &BTreeMap<u32, Stat>) -> u64 {
    let members = all.iter().filter(|(pid, _)| is_of(**pid, leader, all));
    members.map(|(_, stat)| stat.used_ns + stat.children_ns).sum()
}

/// Returns true if a process is `ancestor` or was started by it, directly or not.
fn is_of(mut pid: u32, ancestor: u32, all: &BTreeMap<u32, Stat>) -> bool {
    while pid != ancestor {
        match all.get(&pid) {
            Some(stat) if stat.parent != 0 && stat.parent != pid => pid = stat.parent,
            _ => return false,
        }
    }
    true
}

/// Ids of all processes.
pub(crate) fn list_pids(root: &SystemRoot) -> impl Iterator<Item = u32> {
    root.list_names("/proc").into_iter().filter_map(|name| name.parse().ok())
}

/// A process and all that it started, directly or not.
pub(crate) fn descendants(root: &SystemRoot, process: u32) -> Vec<u32> {
    let all: BTreeMap<u32, Stat> = stats(root).collect();
    all.keys().copied().filter(|pid| is_of(*pid, process, &all)).collect()
}

/// Returns true if a process is `leader` or was started by it, directly or not.
pub(super) fn is_part_of(root: &SystemRoot, mut pid: u32, leader: u32) -> bool {
    while pid != leader {
        let stat = root.read_text(&format!("/proc/{pid}/stat")).and_then(|text| parse_stat(&text));
        match stat {
            Some(stat) if stat.parent != 0 && stat.parent != pid => pid = stat.parent,
            _ => return false,
        }
    }
    true
}

/// CPU time of the processes of a group and of children for which they waited, ns. It lacks processes that ended
/// without being waited for.
pub fn group_ns(group: u32) -> u64 {
    load_ns(&SystemRoot::real(), &[group])
}

/// Entries of `/proc/PID/stat` for all processes.
fn stats(root: &SystemRoot) -> impl Iterator<Item = (u32, Stat)> {
    list_pids(root).filter_map(|pid| Some((pid, parse_stat(&root.read_text(&format!("/proc/{pid}/stat"))?)?)))
}

/// Fields of `/proc/PID/stat` of a process, or of a thread.
#[derive(Debug, PartialEq)]
pub(crate) struct Stat {
    pub name: String,
    /// State of the thread: `R` if it runs or wants to.
    pub state: char,
    parent: u32,
    group: u32,
    /// True for a thread of the kernel.
    kernel: bool,
    /// Start, in ticks since boot; it distinguishes processes that have the same number one after the other.
    started: u64,
    threads: u64,
    pub used_ns: u64,
    /// CPU time of its children that have ended, ns.
    children_ns: u64,
    /// CPU on which it ran last.
    pub cpu: u32,
    pub priority: u64,
    pub policy: u64,
}

impl Stat {
    /// Real-time policy and priority, as `SCHED_FIFO 10`.
    pub fn policy(&self) -> Option<String> {
        match self.policy {
            1 => Some(format!("SCHED_FIFO {}", self.priority)),
            2 => Some(format!("SCHED_RR {}", self.priority)),
            6 => Some("SCHED_DEADLINE".to_owned()),
            _ => None,
        }
    }
}

/// Reads the text of `/proc/PID/stat`. The name is in parentheses and may itself contain parentheses.
pub(crate) fn parse_stat(text: &str) -> Option<Stat> {
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let words: Vec<&str> = tail.split_whitespace().collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    Some(Stat {
        name,
        state: words.first()?.chars().next()?,
        parent: number(1)? as u32,
        group: number(2)? as u32,
        kernel: number(6)? & KERNEL_THREAD != 0,
        started: number(19)?,
        threads: number(17).unwrap_or(1),
        used_ns: (number(11)? + number(12)?) * TICK_NS,
        children_ns: (number(13)? + number(14)?) * TICK_NS,
        cpu: number(36).unwrap_or(0) as u32,
        priority: number(37).unwrap_or(0),
        policy: number(38).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree;

    /// A line of `/proc/PID/stat`: name, parent, group, ticks used, by children, CPU, priority, policy.
    fn line(name: &str, parent: u32, group: u32, used: u64, children: u64, last: &str) -> String {
        format!(
            "7 ({name}) S {parent} {group} 1 0 -1 4 1 2 3 4 {used} 0 {children} 0 20 0 1 0 62 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             17 {last}"
        )
    }

    #[test]
    fn another_latscope_is_named_though_more_processes_are_busier_than_are_named() {
        let mut processes = Processes::default();
        let stat = |pid: u32, used: u64| {
            let name = if pid == 30 { "latscope" } else { "rustc" };
            (format!("/proc/{pid}/stat"), line(name, 1, pid, used, 0, "0 0 0"))
        };
        for factor in [0, 1] {
            let mut files: Vec<(String, String)> =
                (31..38).map(|pid| stat(pid, factor * u64::from(pid))).collect();
            files.push(stat(30, factor * 10));
            files.push(("/proc/30/cmdline".to_owned(), "latscope\0survey\0".to_owned()));
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let (_directory, root) = tree(&files);
            processes.record_times(&root);
        }
        let (_directory, root) = tree(&[]);
        let top: Vec<u32> = processes.top(&root, 1_000_000_000).iter().map(|process| process.pid).collect();
        assert_eq!(top, [37, 36, 35, 34, 33, 30]);
    }

    #[test]
    fn a_process_that_renames_itself_is_one_and_uses_no_more_cpus_than_it_has_threads() {
        let mut processes = Processes::default();
        for (name, used) in [("sh", 0), ("rustc", 5)] {
            let line = line(name, 1, 31, used, 0, "0 0 0");
            let (_directory, root) = tree(&[("/proc/31/stat", line.as_str())]);
            processes.record_times(&root);
        }
        let (_directory, root) = tree(&[]);
        let top = processes.top(&root, 33_000_000);
        let seen: Vec<_> = top.iter().map(|one| (one.name.as_str(), one.pid, one.share)).collect();
        assert_eq!(seen, [("rustc", 31, 1.0)]);
    }

    #[test]
    fn a_process_may_be_named_as_it_likes() {
        let text = "77 (a) b (c)) S 5 77 77 0 -1 4 1 2 3 4 150 50 0 0 20 0 1 0 9876 1 2 3";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.started), ("a) b (c)", 5, 9876));
        assert_eq!((stat.used_ns, stat.children_ns, stat.group), (200 * TICK_NS, 0, 77));
        let worker =
            parse_stat("9 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 7 0 0 20 0 1 0 62 0 0").unwrap();
        assert!(!stat.kernel && worker.kernel && stat.policy().is_none());
        assert_eq!(parse_stat("77 cut"), None);
        let real_time = parse_stat(&line("loop", 1, 7, 0, 0, "1 10 1")).unwrap();
        assert_eq!((real_time.policy().as_deref(), real_time.cpu), (Some("SCHED_FIFO 10"), 1));
    }

    #[test]
    fn what_a_load_started_is_the_loads_also_in_groups_of_its_own() {
        let (_directory, root) = tree(&[
            ("/proc/10/stat", &line("sh", 1, 10, 1, 5, "0 0 0")),
            ("/proc/11/stat", &line("stress-ng", 10, 11, 20, 0, "0 0 0")),
            ("/proc/12/stat", &line("orphan", 1, 10, 300, 0, "0 0 0")),
            ("/proc/13/stat", &line("other", 1, 13, 4000, 0, "0 0 0")),
        ]);
        assert_eq!(load_ns(&root, &[10]), 326 * TICK_NS);
        assert_eq!(load_ns(&root, &[]), 0);
    }

    #[test]
    fn peers_are_no_others_and_another_latscope_is_named_with_all_that_it_started() {
        let mut processes = Processes { peers: BTreeSet::from([20]), ..Processes::default() };
        let at = |used: u64| {
            tree(&[
                ("/proc/20/stat", &line("responder", 1, 20, used, 0, "0 0 0")),
                ("/proc/30/stat", &line("latscope", 1, 30, used, used, "0 0 0")),
                ("/proc/30/cmdline", "/usr/bin/latscope-x86_64\0survey\0--quick\0"),
                ("/proc/31/stat", &line("exe", 30, 31, 2 * used, 0, "0 0 0")),
                ("/proc/31/cmdline", "/proc/self/exe\0__worker\0"),
                ("/proc/40/stat", &line("idle", 1, 40, 5, 0, "0 0 0")),
            ])
        };
        for used in [0, 10] {
            let (_directory, root) = at(used);
            processes.record_times(&root);
        }
        let (_directory, root) = at(10);
        let top = processes.top(&root, 1_000_000_000);
        assert_eq!(top.len(), 1, "{top:?}");
        assert_eq!(
            top[0].format_consumer(),
            "another latscope (pid 30, `latscope-x86_64 survey --quick`) 40 % of one"
        );
        assert_eq!(processes.used_ns(), 40 * TICK_NS);
        // It has ended since.
        let (_directory, empty) = tree(&[]);
        processes.record_times(&empty);
        assert!(
            processes.top(&empty, 1_000_000_000)[0].format_consumer().contains("another latscope (pid 30")
        );
    }

    #[test]
    fn a_real_time_loop_on_a_measured_cpu_may_have_been_stopped() {
        let files = [
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000"),
        ];
        let (_directory, root) = tree(&files);
        let policy = Some("SCHED_FIFO 10".to_owned());
        let spin =
            Consumer { name: "loop".to_owned(), pid: 7, share: 0.94, policy, cpu: Some(1), latscope: None };
        let found = real_time(&root, std::slice::from_ref(&spin), &[0, 1]).unwrap();
        assert_eq!((found.runtime_ns, found.loops.len()), (950_000_000, 1));
        assert_eq!(real_time(&root, std::slice::from_ref(&spin), &[0]), None, "another CPU");
        assert_eq!(real_time(&root, &[Consumer { policy: None, ..spin.clone() }], &[1]), None);
        let (_directory, off) = tree(&[files[1], ("/proc/sys/kernel/sched_rt_runtime_us", "-1")]);
        assert_eq!(real_time(&off, &[spin], &[1]), None);
    }
}
