//! Account of CPU time: whose it was while something was measured.

use crate::quality::{QualityLevel, Reason, THROTTLED};
use crate::units::{CpuList, count_with_noun, format_count, format_share, format_time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of the CPUs of a run over a stretch of time. Shares are of all these CPUs, 0 to 1.
///
/// What measuring threads waited for a CPU is in [`Contention`](crate::report::Contention).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Length of the stretch, ns.
    pub wall_ns: u64,
    /// Number of CPUs of the account.
    pub cpus: u32,
    /// CPU time of the run's own processes, ns, without its load and its peers.
    pub ran_ns: u64,
    /// Least share that other processes used: neither the run's own, nor its load, nor its peers.
    pub others: f64,
    /// Share that others may have used beyond `others`: the kernel counts CPU time in ticks of 10 ms. 0 where that is
    /// not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: f64,
    /// Share that the load used which was asked for; `None` without a load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Share that the processes used with which the run exchanged messages; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<f64>,
    /// Share that the hypervisor gave to others (steal, `/proc/stat`); `None` where the kernel does not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen: Option<f64>,
    /// Share that others used of the CPUs which share a cache with the measuring ones, or of these if they are all of
    /// that cache; `None` where no CPUs share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<f64>,
    /// Limit of CPU time that the control groups of the run set; `None` without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaThrottling>,
    /// Real-time threads that may have been stopped by the kernel; `None` where none used up its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_time: Option<RealTime>,
    /// Other processes that used most, most first; empty for parts of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top: Vec<Consumer>,
}

/// Limit of CPU time set by a control group, and how often it stopped the group's threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaThrottling {
    /// CPUs' worth of time that the group may use.
    pub cpus: f64,
    /// Period in which the time is granted, ns.
    pub period_ns: u64,
    /// Directory of the group: that of the run's processes, or one above it.
    pub group: String,
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Periods in which it was stopped.
    pub throttled: u64,
    /// Time for which it was stopped, ns, summed over CPUs.
    pub throttled_ns: u64,
}

/// Real-time threads that used up what the kernel grants them in each period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RealTime {
    /// Time granted in each period, ns.
    pub runtime_ns: u64,
    /// Length of the period, ns.
    pub period_ns: u64,
    /// True where the kernel's log says for this stretch that it stopped them.
    pub logged: bool,
    /// Processes that used as much as is granted, most first.
    pub loops: Vec<Consumer>,
}

/// A process that used CPU time beside a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consumer {
    /// Name of the process (`comm`).
    pub name: String,
    /// Id of the process.
    pub pid: u32,
    /// Share of one CPU that it used, 0 to 1 and above for several threads.
    pub share: f64,
    /// Command line of another latscope, with the time of all processes that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latscope: Option<String>,
    /// Real-time policy and priority, as `SCHED_FIFO 10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// CPU that it ran on last, of a real-time process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// Adds a part to a sum; one that only one of them has is as it is there.
pub fn add_known<T: Clone>(sum: &mut Option<T>, part: Option<&T>, add: impl Fn(&mut T, &T)) {
    match (sum.as_mut(), part) {
        (Some(sum), Some(part)) => add(sum, part),
        (None, part) => *sum = part.cloned(),
        (Some(_), None) => {}
    }
}

/// Share of the CPUs of which others use less on a quiet machine.
pub const QUIET: f64 = 0.05;

/// Share that others may have used unseen from which on an account cannot call a machine quiet.
const TOO_UNSURE: f64 = 0.25;

/// Width of the interval of the others' share from which on both of its ends are shown.
const WIDE: f64 = 0.01;

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Share of the time for which a quota may stop a run without a figure being distorted.
const THROTTLING_MATTERS: f64 = 0.01;

/// Remedy for a quota.
pub const MORE_TIME: &str = "lift the limit or raise it to the CPUs measured (docker --cpus, systemd CPUQuota=, Kubernetes \
                             limits.cpu; latscope doctor names the file)";

impl Account {
    /// Returns true where others used so little that they explain nothing.
    pub fn is_quiet(&self) -> bool {
        self.others < QUIET
    }

    /// Returns true where others used so little even if they had all that the kernel's ticks leave open.
    pub fn is_surely_quiet(&self) -> bool {
        self.others + self.unseen < QUIET
    }

    /// Returns the least share that others used; `None` where the stretch is too short for the kernel's ticks to say
    /// that they used little.
    pub fn known_others(&self) -> Option<f64> {
        (!self.is_quiet() || self.unseen < TOO_UNSURE).then_some(self.others)
    }

    /// Returns the share that others used in words, with both ends where the ticks leave an interval: `3 %`, `0 % to 7
    /// %`; `None` as for [`Account::known_others`].
    pub fn others_words(&self) -> Option<String> {
        let least = format_share(self.known_others()?);
        let most = format_share((self.others + self.unseen).min(1.0));
        Some(if self.unseen < WIDE { least } else { format!("{least} to {most}") })
    }

    /// Reason why what others used is not known: `14.0 ms are too short for the kernel's ticks of 10 ms`.
    pub fn too_short(&self) -> String {
        format!("{} are too short for the kernel's ticks of 10 ms", format_time(self.wall_ns as f64))
    }

    /// Returns true where the hypervisor gave more to other guests than others may use on a quiet machine.
    pub fn is_slowed_by_host(&self) -> bool {
        self.stolen.is_some_and(|share| share >= QUIET)
    }

    /// Returns true where others or the host used so much that figures are those of a machine as busy as that.
    pub fn is_disturbed(&self) -> bool {
        !self.is_quiet() || self.is_slowed_by_host()
    }

    /// Returns the quota, if it stopped the run at all.
    pub fn throttled(&self) -> Option<&QuotaThrottling> {
        self.quota.as_ref().filter(|quota| quota.throttled > 0)
    }

    /// Returns the quota, if it stopped the run for a share of the time that matters.
    pub fn throttled_much(&self) -> Option<&QuotaThrottling> {
        let limit = THROTTLING_MATTERS * self.wall_ns as f64;
        self.throttled().filter(|quota| quota.throttled_ns as f64 >= limit)
    }

    /// Adds the account of a later stretch.
    pub fn add_account(&mut self, other: &Account) {
        let (mine, its) = (self.wall_ns as f64, other.wall_ns as f64);
        let mean = |a: f64, b: f64| (a * mine + b * its) / (mine + its).max(1.0);
        let either = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(mean(a.unwrap_or(0.0), b.unwrap_or(0.0))),
        };
        self.others = mean(self.others, other.others);
        self.unseen = mean(self.unseen, other.unseen);
        self.load = either(self.load, other.load);
        self.peer = either(self.peer, other.peer);
        self.stolen = either(self.stolen, other.stolen);
        self.beside = either(self.beside, other.beside);
        self.ran_ns = self.ran_ns.saturating_add(other.ran_ns);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpus = self.cpus.max(other.cpus);
        add_known(&mut self.quota, other.quota.as_ref(), QuotaThrottling::add_throttling);
        add_known(&mut self.real_time, other.real_time.as_ref(), RealTime::add_stretch);
    }
}

impl QuotaThrottling {
    /// `limited to 0.50 CPU by its control group; throttled in 225 of 230 periods`.
    pub fn format_throttling(&self) -> String {
        let cpus = if self.cpus > 1.0 { "CPUs" } else { "CPU" };
        let limit = format!("limited to {:.2} {cpus} by its control group", self.cpus);
        match (self.throttled, self.periods) {
            (_, 0) => limit,
            (0, periods) => format!("{limit}; never throttled in {}", count_with_noun(periods, "period")),
            (times, periods) => {
                format!(
                    "{limit}; throttled in {} of {}",
                    format_count(times),
                    count_with_noun(periods, "period")
                )
            }
        }
    }

    /// Reason against figures whose threads it stopped.
    pub fn to_reason(&self) -> Reason {
        let reason = Reason::new(QualityLevel::Degraded, THROTTLED, self.format_throttling(), MORE_TIME);
        reason
            .with_number("cpus", self.cpus)
            .with_number("periods", self.periods as f64)
            .with_number("throttled", self.throttled as f64)
    }

    fn add_throttling(&mut self, later: &QuotaThrottling) {
        self.periods = self.periods.saturating_add(later.periods);
        self.throttled = self.throttled.saturating_add(later.throttled);
        self.throttled_ns = self.throttled_ns.saturating_add(later.throttled_ns);
        self.group.clone_from(&later.group);
        (self.cpus, self.period_ns) = (later.cpus, later.period_ns);
    }
}

impl RealTime {
    /// Explanation for a reader: which real-time threads used up their time, and what follows for the measuring ones.
    pub fn format_explanation(&self) -> String {
        let loops: Vec<String> = self.loops.iter().map(Consumer::format_consumer).collect();
        let cpus: Vec<u32> = self.loops.iter().filter_map(|one| one.cpu).collect();
        let [runtime, period] = [self.runtime_ns, self.period_ns].map(|ns| format_time(ns as f64));
        let logged = if self.logged { "; the kernel's log says that it did so now" } else { "" };
        format!(
            "real-time threads used all that the kernel grants them on CPU {}: {}. After {runtime} in {period} it stops \
             all real-time threads of that CPU, also the measuring ones, until the period is over \
             (sched_rt_runtime_us, since 6.12 its deadline server){logged}",
            CpuList(cpus),
            loops.join(", ")
        )
    }

    fn add_stretch(&mut self, later: &RealTime) {
        (self.runtime_ns, self.period_ns) = (later.runtime_ns, later.period_ns);
        self.logged |= later.logged;
        for one in &later.loops {
            match self.loops.iter_mut().find(|known| known.pid == one.pid) {
                Some(known) => known.share = known.share.max(one.share),
                None => self.loops.push(one.clone()),
            }
        }
    }
}

impl Consumer {
    /// `stress-ng (pid 77) 98 % of one`, `another latscope (pid 5, `latscope survey`) 80 % of one`.
    pub fn format_consumer(&self) -> String {
        let share = format_share(self.share);
        let policy = self.policy.as_ref().map_or(String::new(), |policy| format!(", {policy}"));
        match &self.latscope {
            Some(command) => format!("another latscope (pid {}, `{command}`) {share} of one", self.pid),
            None => format!("{} (pid {}{policy}) {share} of one", self.name, self.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::*;

    fn quota(periods: u64, throttled: u64) -> QuotaThrottling {
        let throttled_ns = throttled * 50_000_000;
        QuotaThrottling {
            cpus: 0.5,
            period_ns: 100_000_000,
            group: "/g".to_owned(),
            periods,
            throttled,
            throttled_ns,
        }
    }

    #[test]
    fn a_quota_says_how_often_it_stopped_the_run() {
        assert_eq!(
            quota(230, 225).format_throttling(),
            "limited to 0.50 CPU by its control group; throttled in 225 of 230 periods"
        );
        assert_eq!(
            quota(9, 0).format_throttling(),
            "limited to 0.50 CPU by its control group; never throttled in 9 periods"
        );
        assert_eq!(
            QuotaThrottling { cpus: 2.0, periods: 0, ..quota(0, 0) }.format_throttling(),
            "limited to 2.00 CPUs by its control group"
        );
    }

    #[test]
    fn accounts_of_stretches_add_up_by_their_length() {
        let mut all = Account { wall_ns: 1, cpus: 2, others: 0.1, ran_ns: 5, ..Account::default() };
        let quota = Some(quota(10, 2));
        all.add_account(&Account {
            wall_ns: 3,
            others: 0.5,
            peer: Some(0.4),
            quota,
            ran_ns: 1,
            cpus: 2,
            ..all.clone()
        });
        assert_eq!((all.wall_ns, all.cpus, all.ran_ns), (4, 2, 6));
        assert!((all.others - 0.4).abs() < 1e-12 && all.peer.is_some_and(|peer| (peer - 0.3).abs() < 1e-12));
        all.add_account(&all.clone());
        assert_eq!(all.quota.as_ref().map(|quota| (quota.periods, quota.throttled)), Some((20, 4)));
    }

    #[test]
    fn a_stretch_too_short_for_the_ticks_says_nothing_of_a_quiet_machine() {
        let account =
            |others: f64, unseen: f64| Account { wall_ns: 14_000_000, others, unseen, ..Account::default() };
        let words = |others, unseen| account(others, unseen).others_words();
        assert_eq!((words(0.0, 1.0), words(0.0, 0.25)), (None, None));
        assert_eq!(account(0.0, 1.0).too_short(), "14.0 ms are too short for the kernel's ticks of 10 ms");
        for (others, unseen, expected) in [
            (0.0, 0.2, "0 % to 20 %"),
            (0.01, 0.009, "1 %"),
            // What was seen of others is certain.
            (0.6, 0.7, "60 % to 100 %"),
        ] {
            assert_eq!(words(others, unseen).as_deref(), Some(expected));
        }
        let mut all = account(0.0, 0.5);
        all.add_account(&account(0.0, 0.7));
        assert!((all.unseen - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_real_time_loop_is_named_with_what_follows_from_it() {
        let name = "spin".to_owned();
        let policy = Some("SCHED_FIFO 10".to_owned());
        let spin = Consumer { name, pid: 7, share: 0.94, policy, cpu: Some(1), latscope: None };
        let mut found =
            RealTime { runtime_ns: 950_000_000, period_ns: 1_000_000_000, logged: false, loops: vec![spin] };
        let text = found.format_explanation();
        assert!(
            text.contains("on CPU 1: spin (pid 7, SCHED_FIFO 10) 94 % of one. After 950 ms in 1.00 s"),
            "{text}"
        );
        assert!(!text.contains("log"), "{text}");
        found.add_stretch(&RealTime { logged: true, ..found.clone() });
        assert!(
            found.format_explanation().ends_with("the kernel's log says that it did so now")
                && found.loops.len() == 1
        );
    }

    #[test]
    fn throttling_matters_from_a_hundredth_of_the_time() {
        let account = |wall_ns| Account { wall_ns, quota: Some(quota(100, 1)), ..Account::default() };
        assert!(account(5_000_000_000).throttled_much().is_some());
        assert!(account(5_100_000_000).throttled_much().is_none() && account(1 << 40).throttled().is_some());
    }

    #[test]
    fn shares_that_are_not_known_are_not_written() {
        let text =
            r#"{"wall_ns":9,"cpus":2,"ran_ns":3,"others":0.25,"top":[{"name":"sh","pid":7,"share":0.5}]}"#;
        let account: Account = serde_json::from_str(text).unwrap();
        assert_eq!((account.others, account.load, account.top[0].pid), (0.25, None, 7));
        assert_eq!(serde_json::to_string(&account).unwrap(), text);
    }
}
