//! Account of the CPU time of all processes while a run measured.

pub(crate) mod cpus;
mod peers;
pub(crate) mod processes;

use crate::SystemRoot;
use crate::control_group::{self, Throttling};
use crate::kernel_log::KernelLog;
use cpus::CpuTime;
use latscope_core::report::{Account, Consumer, QuotaThrottling};
use latscope_os::clock::monotonic_ns;
use latscope_os::usage;
use processes::Processes;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use peers::Peers;
pub use processes::group_ns;

/// Unit of the kernel's counts of CPU time: 100 ticks a second (`USER_HZ`, which is part of its interface).
const TICK_NS: u64 = 10_000_000;

/// Keeps the account of the CPUs of a run.
pub struct Accountant {
    root: SystemRoot,
    cpus: Vec<u32>,
    /// CPUs of the measuring threads.
    measuring: Vec<u32>,
    began: Option<CpuTimeReading>,
    /// Time since boot at the begin, µs.
    began_us: u64,
    last: Option<CpuTimeReading>,
    processes: Processes,
    /// Time of the last look at the processes.
    looked: Instant,
    /// Processes of the load, each of which leads a group.
    load: Vec<u32>,
    /// CPU time of the peers, ns; `None` without peers.
    peer_ns: Option<u64>,
    /// CPU time of the kernel's workers when they began to serve the run, ns.
    served_from_ns: Option<u64>,
    /// CPU time of the kernel's workers while they served the run, ns.
    served_ns: u64,
}

/// Counts of CPU time at one moment.
#[derive(Debug, Clone)]
struct CpuTimeReading {
    at: Instant,
    cpus: BTreeMap<u32, CpuTime>,
    /// CPU time of this process, of its children that have ended, and of the workers that served them, ns.
    own_ns: u64,
    load_ns: Option<u64>,
    peer_ns: Option<u64>,
    quotas: Vec<(control_group::CgroupCpuQuota, Throttling)>,
}

impl Accountant {
    /// Watches these CPUs from now on.
    pub fn watch_cpus(cpus: &[u32]) -> Accountant {
        Accountant::at(SystemRoot::real(), cpus)
    }

    fn at(root: SystemRoot, cpus: &[u32]) -> Accountant {
        let mut accountant = Accountant {
            root,
            cpus: cpus.to_vec(),
            measuring: cpus.to_vec(),
            began: None,
            began_us: monotonic_ns() / 1_000,
            last: None,
            processes: Processes::default(),
            looked: Instant::now(),
            load: Vec::new(),
            peer_ns: None,
            served_from_ns: None,
            served_ns: 0,
        };
        accountant.record_processes();
        accountant.began = accountant.read_times();
        accountant.last.clone_from(&accountant.began);
        accountant
    }

    /// Names the CPUs of the measuring threads, where these are not all.
    pub fn measuring_on(self, cpus: Vec<u32>) -> Accountant {
        Accountant { measuring: cpus, ..self }
    }

    /// Counts the CPU time of these processes, their groups and their descendants as that of the load, from now on.
    pub fn add_load(&mut self, workers: &[u32]) {
        self.load = workers.to_vec();
    }

    /// Counts processes as peers of the run, with the CPU time that they used since they became peers, ns.
    pub fn add_peers(&mut self, processes: &[u32], used_ns: u64) {
        self.processes.peers.extend(processes);
        *self.peer_ns.get_or_insert(0) += used_ns;
    }

    /// Counts the kernel's workers as part of the run until the next [`since_last`](Accountant::since_last): they write
    /// the files of the run, or pass on its messages.
    pub fn are_served(&mut self) {
        self.served_from_ns = Some(processes::workers_ns(&self.root));
    }

    /// Notes the existing processes: those that end before the next look are not named.
    pub fn record_processes(&mut self) {
        self.processes.record_times(&self.root);
        self.looked = Instant::now();
    }

    /// Returns the account since the last call, with the CPU time that others used on the CPUs `beside` the measuring
    /// ones; `None` if the kernel does not provide it. A child of this program counts among the others until it has
    /// ended.
    pub fn since_last(&mut self, beside: &[u32]) -> Option<Account> {
        if let Some(from) = self.served_from_ns.take() {
            self.served_ns += processes::workers_ns(&self.root).saturating_sub(from);
        }
        self.record_processes();
        let now = self.read_times()?;
        let last = self.last.replace(now.clone())?;
        let mut account = account_between(&last, &now, &self.cpus);
        account.beside = used_of(&last, &now, beside).map(round_share);
        Some(account)
    }

    /// Returns the account since the begin.
    pub fn total(&mut self) -> Option<Account> {
        // The kernel counts the time of processes in ticks: what the last step saw is true as long as one.
        if self.looked.elapsed() >= Duration::from_nanos(TICK_NS) {
            self.record_processes();
        }
        let now = self.read_times()?;
        let began = self.began.as_ref()?;
        let mut account = account_between(began, &now, &self.cpus);
        let most = account.others + account.unseen;
        account.others = round_share(account.others.max(self.recorded_share(&now, account.wall_ns)).min(1.0));
        account.unseen = round_share((most - account.others).max(0.0));
        account.top = self.top(account.wall_ns);
        account.real_time = processes::real_time(&self.root, &account.top, &self.measuring);
        if let Some(real_time) = &mut account.real_time {
            let log = KernelLog::read_kmsg(&self.root);
            let message = log.as_ref().and_then(|log| log.find_message("RT throttling activated"));
            real_time.logged = message.is_some_and(|message| message.at >= self.began_us);
        }
        Some(account)
    }

    fn top(&self, wall_ns: u64) -> Vec<Consumer> {
        let mut top = self.processes.top(&self.root, wall_ns);
        for consumer in &mut top {
            consumer.share = round_share(consumer.share);
        }
        top
    }

    /// CPU time of the noted processes, as a share of the CPUs; 0 if the run does not have all CPUs, since they may
    /// have run on another one. It is a second lower bound: the kernel counts short interruptions as idle time, and a
    /// quiet machine has little else.
    fn recorded_share(&self, now: &CpuTimeReading, wall_ns: u64) -> f64 {
        if now.cpus.len() > self.cpus.len() {
            return 0.0;
        }
        let used_ns = self.processes.used_ns().saturating_sub(self.served_ns);
        used_ns as f64 / (wall_ns as f64 * self.cpus.len() as f64).max(1.0)
    }

    fn read_times(&self) -> Option<CpuTimeReading> {
        let cpus = cpus::parse_cpu_times(&self.root.read_text("/proc/stat")?);
        let quotas = control_group::quotas(&self.root).into_iter();
        let quotas = quotas.filter_map(|quota| {
            let counts = control_group::throttling(&self.root, &quota.group)?;
            Some((quota, counts))
        });
        let quotas = quotas.collect();
        let load_ns = (!self.load.is_empty()).then(|| processes::load_ns(&self.root, &self.load));
        let own_ns = usage::process_and_ended_children_cpu_ns() + self.served_ns;
        Some(CpuTimeReading { at: Instant::now(), cpus, own_ns, load_ns, peer_ns: self.peer_ns, quotas })
    }
}

/// Rounds a share to four digits, which is its accuracy.
fn round_share(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

/// Account of the time between two readings.
fn account_between(from: &CpuTimeReading, to: &CpuTimeReading, cpus: &[u32]) -> Account {
    let wall_ns = (to.at - from.at).as_nanos() as u64;
    let available = wall_ns as f64 * cpus.len() as f64;
    let (mut free, mut stolen) = (0, 0);
    for (from, to) in cpus.iter().filter_map(|cpu| from.cpus.get(cpu).zip(to.cpus.get(cpu))) {
        free += to.free_ns().saturating_sub(from.free_ns());
        stolen += to.stolen_ns.saturating_sub(from.stolen_ns);
    }
    let own = to.own_ns.saturating_sub(from.own_ns);
    // A load that was started meanwhile had used nothing before.
    let [load, peer] = [(to.load_ns, from.load_ns), (to.peer_ns, from.peer_ns)]
        .map(|(now, before)| Some(now?.saturating_sub(before.unwrap_or(0)) as f64));
    // Idle time is cut off to ticks at both ends, so up to one of each CPU may be missing, or too much.
    let tick = (TICK_NS * cpus.len() as u64) as f64;
    let known = free as f64 + own as f64 + load.unwrap_or(0.0) + peer.unwrap_or(0.0);
    let of_all = |ns: f64| round_share((ns / available.max(1.0)).clamp(0.0, 1.0));
    let others = of_all(available - known - tick);
    Account {
        wall_ns,
        cpus: cpus.len() as u32,
        ran_ns: own,
        others,
        unseen: round_share(of_all(available - known + tick) - others),
        load: load.map(of_all),
        peer: peer.map(of_all),
        stolen: Some(of_all(stolen as f64)),
        quota: quota(from, to),
        ..Account::default()
    }
}

/// Share of the CPUs that any process used between two readings; `None` without a CPU.
fn used_of(from: &CpuTimeReading, to: &CpuTimeReading, cpus: &[u32]) -> Option<f64> {
    let wall_ns = (to.at - from.at).as_nanos() as f64;
    let known = cpus.iter().filter_map(|cpu| from.cpus.get(cpu).zip(to.cpus.get(cpu)));
    let free: Vec<u64> = known.map(|(from, to)| to.free_ns().saturating_sub(from.free_ns())).collect();
    let available = wall_ns * free.len() as f64;
    let free_ns = free.iter().map(|ns| ns + TICK_NS).sum::<u64>() as f64;
    (available > 0.0).then(|| ((available - free_ns) / available).clamp(0.0, 1.0))
}

/// The limit that stopped the run for the longest time, else the tightest, with its counts between two readings.
fn quota(from: &CpuTimeReading, to: &CpuTimeReading) -> Option<QuotaThrottling> {
    let quotas = to.quotas.iter().map(|(quota, now)| {
        let known = from.quotas.iter().find(|(before, _)| before.group == quota.group);
        // A limit of before that cannot be found is new.
        let before = known.map_or(*now, |(_, counts)| *counts);
        QuotaThrottling {
            cpus: quota.cpus(),
            period_ns: quota.period.saturating_mul(1_000),
            group: quota.group.clone(),
            periods: now.periods.saturating_sub(before.periods),
            throttled: now.throttled.saturating_sub(before.throttled),
            throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
        }
    });
    quotas.max_by(|a, b| a.throttled_ns.cmp(&b.throttled_ns).then(b.cpus.total_cmp(&a.cpus)))
}

#[cfg(test)]
mod tests;
