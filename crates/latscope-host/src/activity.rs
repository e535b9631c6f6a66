//! What other processes use of the CPUs while a run measures, and which.

use latscope_core::report::{Activity, Consumer};
use latscope_os::usage;
use std::collections::BTreeMap;
use std::time::Instant;

/// CPU time used so far, of everything and of this program.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    /// Time that the CPUs did nothing or did not have, ns.
    idle_ns: u64,
    /// CPU time of this process and of those it started that have ended, ns.
    own_ns: u64,
}

/// Watches what others use of the CPUs of a run.
pub struct Others {
    cpus: Vec<u32>,
    began: Option<Sample>,
    last: Option<Sample>,
    processes: Processes,
    /// CPU time of the kernel's writers when they began to serve the run, ns.
    served_from_ns: Option<u64>,
    /// CPU time of the kernel's writers while they served the run, ns.
    served_ns: u64,
}

/// CPU time of each process seen, ns: at first sight and at last.
#[derive(Default)]
struct Processes(BTreeMap<(u32, u64), Seen>);

struct Seen {
    name: String,
    first_ns: u64,
    last_ns: u64,
}

impl Seen {
    fn used_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

/// Processes named at most.
const NAMED: usize = 5;

/// A process that used less than this share of a CPU is not named.
const WORTH_NAMING: f64 = 0.005;

/// What the kernel counts CPU time in: 100 ticks a second (`USER_HZ`, which is
/// part of its interface).
const TICK_NS: u64 = 10_000_000;

impl Others {
    /// Watches these CPUs from now on.
    pub fn watch(cpus: &[u32]) -> Others {
        let began = sample(cpus);
        let mut others = Others {
            cpus: cpus.to_vec(),
            began,
            last: began,
            processes: Processes::default(),
            served_from_ns: None,
            served_ns: 0,
        };
        others.look();
        others
    }

    /// The kernel's writers serve the run until [`Others::since_last`] is asked next: they write
    /// its files. Their time is then the run's own.
    pub fn are_served(&mut self) {
        self.served_from_ns = Some(writers_ns());
    }

    /// Looks who there is: those that end before the next look are not named.
    pub fn look(&mut self) {
        self.processes.look();
    }

    /// Share of the CPUs that others used since this was asked last, 0 to 1;
    /// `None` where the kernel does not tell. What this program started counts
    /// as others until it has ended.
    pub fn since_last(&mut self) -> Option<f64> {
        if let Some(from) = self.served_from_ns.take() {
            self.served_ns += writers_ns().saturating_sub(from);
        }
        let now = self.sample()?;
        let last = self.last.replace(now)?;
        Some(share(&last, &now, self.cpus.len()))
    }

    /// All since the begin.
    pub fn activity(&mut self) -> Option<Activity> {
        self.look();
        let (began, now) = (self.began?, self.sample()?);
        let wall_ns = (now.at - began.at).as_nanos() as u64;
        Some(Activity {
            wall_ns,
            cpus: self.cpus.len() as u32,
            others: share(&began, &now, self.cpus.len()).max(self.seen(wall_ns)),
            top: self.processes.top(wall_ns),
        })
    }

    /// What the processes that were seen used, as a share of the CPUs; 0 where the run has not
    /// all CPUs, since they may have run on another one. It is a second lower bound: the kernel
    /// counts short interruptions as idle time, and a quiet machine has little else.
    fn seen(&self, wall_ns: u64) -> f64 {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        if online(&stat) > self.cpus.len() {
            return 0.0;
        }
        let used_ns = self.processes.used_ns().saturating_sub(self.served_ns);
        used_ns as f64 / (wall_ns as f64 * self.cpus.len() as f64).max(1.0)
    }

    fn sample(&self) -> Option<Sample> {
        let sample = sample(&self.cpus)?;
        Some(Sample { own_ns: sample.own_ns + self.served_ns, ..sample })
    }
}

/// What others used at least between two samples, as a share of `cpus` CPUs.
fn share(from: &Sample, to: &Sample, cpus: usize) -> f64 {
    let available = (to.at - from.at).as_nanos() as f64 * cpus as f64;
    let idle = to.idle_ns.saturating_sub(from.idle_ns) as f64;
    let own = to.own_ns.saturating_sub(from.own_ns) as f64;
    // Idle time is cut off to ticks, so up to one of each CPU may be missing.
    let missing = (TICK_NS * cpus as u64) as f64;
    ((available - idle - own - missing) / available.max(1.0)).clamp(0.0, 1.0)
}

fn sample(cpus: &[u32]) -> Option<Sample> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let idle_ns = idle_ns(&text, cpus)?;
    Some(Sample { at: Instant::now(), idle_ns, own_ns: usage::process_and_ended_children_cpu_ns() })
}

/// Time in which CPUs were idle, waited for devices or were taken by the
/// hypervisor, of `/proc/stat` (proc(5)). Idle time is exact to a tick; time in
/// use is only sampled at ticks by many kernels, so it is not what is read.
fn idle_ns(stat: &str, cpus: &[u32]) -> Option<u64> {
    let ticks = |cpu: &u32| -> Option<u64> {
        let name = format!("cpu{cpu}");
        let mut words = stat
            .lines()
            .map(str::split_whitespace)
            .find_map(|mut words| (words.next() == Some(name.as_str())).then_some(words))?;
        let (idle, iowait) = (words.nth(3)?, words.next()?);
        let steal = words.nth(2).unwrap_or("0");
        [idle, iowait, steal].iter().map(|word| word.parse::<u64>().ok()).sum()
    };
    let ticks: Option<u64> = cpus.iter().map(ticks).sum();
    Some(ticks? * TICK_NS)
}

/// CPUs of the machine that are on, of `/proc/stat`: a line each, after that of all.
fn online(stat: &str) -> usize {
    stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1)
}

/// What the kernel's threads that write files are called, at the start: its general workers and
/// those of file systems and block devices.
const WRITERS: [&str; 7] = ["kworker/", "jbd2/", "xfs", "btrfs", "f2fs", "loop", "md"];

fn writers_ns() -> u64 {
    let writes = |stat: &Stat| stat.kernel && WRITERS.iter().any(|name| stat.name.starts_with(name));
    stats().filter(|(_, stat)| writes(stat)).map(|(_, stat)| stat.used_ns).sum()
}

/// What `/proc` says of each process.
fn stats() -> impl Iterator<Item = (u32, Stat)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|pid| Some((pid, stat(pid)?)))
}

impl Processes {
    fn look(&mut self) {
        let own = std::process::id();
        let mut all: BTreeMap<u32, Stat> = stats().collect();
        let parents: BTreeMap<u32, u32> = all.iter().map(|(pid, stat)| (*pid, stat.parent)).collect();
        all.retain(|pid, _| !descends(*pid, own, &parents));
        for (pid, Stat { name, started, used_ns, .. }) in all {
            let seen =
                self.0.entry((pid, started)).or_insert(Seen { name, first_ns: used_ns, last_ns: used_ns });
            seen.last_ns = used_ns;
        }
    }

    /// What all of them used, ns.
    fn used_ns(&self) -> u64 {
        self.0.values().map(Seen::used_ns).sum()
    }

    /// Those that used most, most first.
    fn top(&self, wall_ns: u64) -> Vec<Consumer> {
        let share = |seen: &Seen| seen.used_ns() as f64 / wall_ns.max(1) as f64;
        let mut all: Vec<Consumer> = self
            .0
            .iter()
            .map(|((pid, _), seen)| Consumer { name: seen.name.clone(), pid: *pid, share: share(seen) })
            .filter(|consumer| consumer.share >= WORTH_NAMING)
            .collect();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all.truncate(NAMED);
        all
    }
}

/// Whether a process is `ancestor` or was started by it, directly or not.
fn descends(mut pid: u32, ancestor: u32, parents: &BTreeMap<u32, u32>) -> bool {
    while pid != ancestor {
        match parents.get(&pid) {
            Some(parent) if *parent != 0 && *parent != pid => pid = *parent,
            _ => return false,
        }
    }
    true
}

/// CPU time of the processes of a group and of those they waited for, ns. What ended without having been waited for is
/// not in it.
pub(crate) fn group_ns(group: u32) -> u64 {
    let members = stats().filter(|(_, stat)| stat.group == group);
    members.map(|(_, stat)| stat.used_ns + stat.children_ns).sum()
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, PartialEq)]
struct Stat {
    name: String,
    parent: u32,
    group: u32,
    /// Whether it is a thread of the kernel.
    kernel: bool,
    /// Start, in ticks since boot: a number that is used again is another process.
    started: u64,
    used_ns: u64,
    /// CPU time of its children that have ended, ns.
    children_ns: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name is in parentheses and may contain any of them.
fn parse(text: &str) -> Option<Stat> {
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let words: Vec<&str> = tail.split_whitespace().collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    let used_ns = (number(11)? + number(12)?) * TICK_NS;
    let children_ns = (number(13)? + number(14)?) * TICK_NS;
    let kernel = number(6)? & KERNEL_THREAD != 0;
    let (parent, group, started) = (number(1)? as u32, number(2)? as u32, number(19)?);
    Some(Stat { name, parent, group, kernel, started, used_ns, children_ns })
}

/// `PF_KTHREAD` of the kernel, in the flags that proc(5) shows.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 0 30 700 10 0 0 5 0 0\ncpu0 10 0 20 300 4 1 2 3 0 0\ncpu10 1 1 1 1 1 1 1 1 0 0\ncpu1 20 0 10 400 6 0 0 2 0 0\nintr 5\n";

    #[test]
    fn idle_time_is_that_of_the_cpus_asked_for() {
        assert_eq!(idle_ns(STAT, &[0]), Some(307 * TICK_NS));
        assert_eq!(idle_ns(STAT, &[0, 1]), Some((307 + 408) * TICK_NS));
        assert_eq!(idle_ns(STAT, &[2]), None);
        assert_eq!(online(STAT), 3);
    }

    #[test]
    fn a_process_may_be_named_as_it_likes() {
        let text = "77 (a) b (c)) S 5 77 77 0 -1 4 1 2 3 4 150 50 0 0 20 0 1 0 9876 1 2 3";
        let stat = parse(text).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.started), ("a) b (c)", 5, 9876));
        assert_eq!((stat.used_ns, stat.children_ns, stat.group), (200 * TICK_NS, 0, 77));
        assert!(
            !stat.kernel
                && parse("9 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 7 0 0 20 0 1 0 62 0 0")
                    .unwrap()
                    .kernel
        );
        assert_eq!(parse("77 cut"), None);
    }

    #[test]
    fn what_others_use_is_what_is_neither_idle_nor_ours() {
        let at = Instant::now();
        let from = Sample { at, idle_ns: 0, own_ns: 0 };
        let second = std::time::Duration::from_secs(1);
        let to = Sample { at: at + second, idle_ns: 500_000_000, own_ns: 500_000_000 };
        // Two ticks may be missing of the idle time.
        assert!((share(&from, &to, 2) - 0.49).abs() < 1e-9);
        let short = Sample { at: at + second / 100, idle_ns: 10_000_000, own_ns: 0 };
        assert_eq!(share(&from, &short, 2), 0.0, "half of 10 ms may be one tick");
        let idle = Sample { at: at + second, idle_ns: 2_010_000_000, own_ns: 0 };
        assert_eq!(share(&from, &idle, 2), 0.0);
    }

    #[test]
    fn a_busy_process_of_another_parent_is_named_and_our_own_are_not() {
        let parents = BTreeMap::from([(9, 8), (8, 7), (7, 1), (1, 0)]);
        assert!(descends(9, 7, &parents) && descends(7, 7, &parents) && !descends(7, 9, &parents));
        let mut others = Others::watch(&latscope_os::sched::allowed_cpus().unwrap());
        let activity = others.activity().expect("/proc/stat can be read");
        assert!(activity.top.iter().all(|consumer| consumer.pid != std::process::id()));
        assert!((0.0..=1.0).contains(&activity.others));
        assert!(others.since_last().is_some());
    }
    #[test]
    fn what_was_seen_of_others_counts_where_the_run_has_all_cpus() {
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let all: Vec<u32> = (0..online(&stat) as u32).collect();
        let seen = Seen { name: "other".to_owned(), first_ns: 1_000, last_ns: 1_000_001_000 };
        let processes = Processes(BTreeMap::from([((1, 1), seen)]));
        let others = Others { processes, ..Others::watch(&all) };
        let share = others.seen(1_000_000_000);
        assert!((share - 1.0 / all.len() as f64).abs() < 1e-9, "a second of one CPU: {share}");
        assert_eq!(Others { cpus: Vec::new(), ..others }.seen(1_000_000_000), 0.0);
    }
}
