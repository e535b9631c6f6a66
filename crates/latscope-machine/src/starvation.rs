//! Threads of a run that wait for a CPU without getting it, and who has that CPU.

use crate::SystemRoot;
use crate::account::processes::{self, Stat};
use latscope_os::sched;
use std::collections::BTreeMap;

/// Thread that wants a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runnable {
    /// Id of the thread.
    pub thread: u32,
    /// CPU that the thread waits for.
    pub cpu: u32,
    /// True if the thread has not run since the look before.
    pub stands: bool,
    /// Precedence of the thread over others on its CPU.
    precedence: u64,
}

/// Looks at the threads of a process and of all that it started.
#[derive(Debug, Default)]
pub struct Starvation {
    /// CPU time of each thread at the last look, ns.
    ran: BTreeMap<u32, u64>,
}

impl Starvation {
    /// Returns the threads that want a CPU.
    pub fn find_runnable(&mut self, root: &SystemRoot, process: u32) -> Vec<Runnable> {
        let mut ran = BTreeMap::new();
        let mut found = Vec::new();
        for thread in list_threads(root, &processes::descendants(root, process)) {
            let used_ns = thread.used_ns(root);
            ran.insert(thread.id, used_ns);
            if thread.stat.state == 'R' {
                let stands = self.ran.get(&thread.id) == Some(&used_ns);
                let (cpu, precedence) = (thread.stat.cpu, thread.precedence());
                found.push(Runnable { thread: thread.id, cpu, stands, precedence });
            }
        }
        self.ran = ran;
        found
    }
}

/// A process and all that it started, directly or not.
pub fn descendants(process: u32) -> Vec<u32> {
    processes::descendants(&SystemRoot::real(), process)
}

/// Moves all threads of these processes except some to a CPU, as ordinary threads: what lets the calling thread run
/// there lets them run. Threads that have ended are no error.
pub fn move_threads(processes: &[u32], cpu: u32, except: &[u32]) {
    for thread in list_threads(&SystemRoot::real(), processes) {
        if !except.contains(&thread.id) {
            let _ = sched::make_normal(thread.id);
            let _ = sched::pin_thread(thread.id, &[cpu]);
        }
    }
}

/// Returns who keeps a thread from its CPU, as `sh (pid 12418, SCHED_FIFO 99)`: the one runnable thread there that goes
/// before all others. `None` if no thread does, or several do equally.
pub fn occupant(root: &SystemRoot, waiting: &Runnable, own: u32) -> Option<String> {
    let own = processes::descendants(root, own);
    let all: Vec<u32> = processes::list_pids(root).filter(|process| !own.contains(process)).collect();
    let mut there: Vec<ProcfsThread> = list_threads(root, &all)
        .filter(|thread| thread.stat.state == 'R' && thread.stat.cpu == waiting.cpu)
        // The kernel's own, which moves threads: it has the CPU for microseconds.
        .filter(|thread| !thread.stat.name.starts_with("migration/"))
        .filter(|thread| thread.precedence() >= waiting.precedence)
        .collect();
    there.sort_by_key(|thread| std::cmp::Reverse(thread.precedence()));
    match &there[..] {
        [] => None,
        [first, second, ..] if first.precedence() == second.precedence() => None,
        [first, ..] => Some(first.format_thread()),
    }
}

/// Returns why a run that has only these CPUs may not end, if a real-time thread can keep all ordinary threads from
/// running: on a single CPU, without throttling, before the deadline server of Linux 6.12.
pub fn cannot_end(root: &SystemRoot, cpus: &[u32]) -> Option<String> {
    let [cpu] = cpus else { return None };
    let unlimited = root.read_number::<i64>("/proc/sys/kernel/sched_rt_runtime_us")? < 0;
    let release = root.read_text("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (unlimited && version < (6, 12)).then(|| {
        format!(
            "a real-time thread on CPU {cpu} that never sleeps would keep this run from ending: the kernel grants no time to \
             ordinary threads (sched_rt_runtime_us is below 0)"
        )
    })
}

/// A thread, as the kernel's files show it.
struct ProcfsThread {
    process: u32,
    id: u32,
    stat: Stat,
}

impl ProcfsThread {
    /// CPU time so far, ns: exact where the kernel counts it so.
    fn used_ns(&self, root: &SystemRoot) -> u64 {
        let text = root.read_text(&format!("/proc/{}/task/{}/schedstat", self.process, self.id));
        let exact = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
        exact.unwrap_or(self.stat.used_ns)
    }

    /// Precedence over other threads of a CPU (sched(7)).
    fn precedence(&self) -> u64 {
        match self.stat.policy {
            6 => u64::MAX,
            1 | 2 => self.stat.priority,
            _ => 0,
        }
    }

    fn format_thread(&self) -> String {
        let policy = self.stat.policy().unwrap_or_else(|| "SCHED_OTHER".to_owned());
        format!("{} (pid {}, {policy})", self.stat.name, self.process)
    }
}

fn list_threads(root: &SystemRoot, processes: &[u32]) -> impl Iterator<Item = ProcfsThread> {
    processes.iter().flat_map(move |process| {
        let tasks = format!("/proc/{process}/task");
        let ids = root.list_names(&tasks).into_iter().filter_map(|name| name.parse::<u32>().ok());
        ids.filter_map(move |id| {
            let stat = processes::parse_stat(&root.read_text(&format!("{tasks}/{id}/stat"))?)?;
            Some(ProcfsThread { process: *process, id, stat })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree;

    /// Files of a thread: process, thread, name, state, parent, CPU, priority, policy, CPU time.
    fn files(
        process: u32,
        id: u32,
        name: &str,
        state: char,
        parent: u32,
        last: &str,
        ran: u64,
    ) -> Vec<(String, String)> {
        let zeros = "0 ".repeat(16);
        let stat =
            format!("{id} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 62 {zeros}{last}");
        let mut files = vec![
            (format!("/proc/{process}/task/{id}/stat"), stat.clone()),
            (format!("/proc/{process}/task/{id}/schedstat"), format!("{ran} 5 5")),
        ];
        files.extend((process == id).then(|| (format!("/proc/{process}/stat"), stat)));
        files
    }

    fn machine(all: &[Vec<(String, String)>]) -> (tempfile::TempDir, SystemRoot) {
        let files: Vec<(&str, &str)> =
            all.iter().flatten().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        tree(&files)
    }

    #[test]
    fn a_thread_that_is_runnable_and_does_not_run_stands() {
        let worker = |ran| {
            let main = files(10, 10, "latscope", 'S', 1, "0 0 0", 7);
            let thread = files(10, 11, "wake/0", 'R', 1, "1 95 1", 40);
            let client = files(20, 20, "client", 'R', 10, "0 0 0", ran);
            machine(&[main, thread, client, files(30, 30, "other", 'R', 1, "1 0 0", 0)])
        };
        let mut starvation = Starvation::default();
        let (_directory, root) = worker(1);
        assert!(
            starvation.find_runnable(&root, 10).iter().all(|thread| !thread.stands),
            "nothing is known yet"
        );
        let (_directory, root) = worker(2);
        let mut found = starvation.find_runnable(&root, 10);
        found.sort_by_key(|thread| thread.thread);
        let seen: Vec<_> = found.iter().map(|thread| (thread.thread, thread.cpu, thread.stands)).collect();
        assert_eq!(seen, [(11, 1, true), (20, 0, false)]);
    }

    #[test]
    fn a_run_on_one_cpu_that_nothing_guards_may_not_end() {
        let said = |runtime: &str, release: &str, cpus: &[u32]| {
            let (_directory, root) = tree(&[
                ("/proc/sys/kernel/sched_rt_runtime_us", runtime),
                ("/proc/sys/kernel/osrelease", release),
            ]);
            cannot_end(&root, cpus)
        };
        let text = said("-1", "6.6.12-rt5", &[3]).unwrap();
        assert!(text.contains("on CPU 3 that never sleeps"), "{text}");
        assert!(said("-1", "5.19", &[3]).is_some());
        for (runtime, release, cpus) in [
            ("950000", "6.6.1", &[3][..]),
            ("-1", "6.12.0", &[3]),
            ("-1", "6.6.1", &[0, 1]),
            ("-1", "unknown", &[3]),
        ] {
            assert_eq!(said(runtime, release, cpus), None, "{runtime} {release} {cpus:?}");
        }
    }

    #[test]
    fn who_has_the_cpu_goes_before_all_others_there() {
        let named = |others: &[(&str, char, &str)]| {
            let mut all = vec![files(10, 10, "latscope", 'R', 1, "1 95 1", 7)];
            let threads = others.iter().zip(40..);
            all.extend(threads.map(|((name, state, last), id)| files(id, id, name, *state, 1, last, 0)));
            let (_directory, root) = machine(&all);
            let waiting = &Starvation::default().find_runnable(&root, 10)[0];
            occupant(&root, waiting, 10)
        };
        let hog = ("sh", 'R', "1 99 1");
        assert_eq!(named(&[("cc1", 'R', "1 0 0"), hog]).as_deref(), Some("sh (pid 41, SCHED_FIFO 99)"));
        assert_eq!(named(&[hog, ("dl", 'R', "1 0 6")]).as_deref(), Some("dl (pid 41, SCHED_DEADLINE)"));
        // An ordinary thread, one on another CPU, one that sleeps, or one of two.
        assert_eq!(named(&[("cc1", 'R', "1 0 0")]), None);
        assert_eq!(named(&[("sh", 'R', "0 99 1"), ("sh", 'S', "1 99 1")]), None);
        assert_eq!(named(&[hog, hog]), None);
        assert!(named(&[("migration/1", 'R', "1 99 1"), hog]).is_some());
    }
}
