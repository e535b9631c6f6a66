//! Plan of a run: a pure function of the request and the machine, saved in the result and shown by `--dry-run`.

use crate::json;
pub use crate::param::{KIND, ParamValue, Params, USER_PARAMETER, params};
use crate::statistics::SplitMix;
use crate::units::{self, CpuList};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Point to measure: a probe with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementPoint {
    /// Id of the probe, `family.name`.
    pub probe: String,
    /// Revision of the probe, raised when what it times changes.
    pub revision: u32,
    /// Parameters of the point, all of them: nothing about the point is implied.
    pub params: Params,
    /// Title for readers: `read, kept open, 4 KiB`.
    pub title: String,
    /// True if the survey's table has a row for the point. Points of a curve that only a plot shows have none.
    pub row: bool,
}

impl MeasurementPoint {
    /// Returns the point as its probe planned it.
    pub fn without_kind(&self) -> MeasurementPoint {
        let mut point = self.clone();
        point.params.remove(KIND);
        point
    }
}

/// For tests: a probe reads all parameters of a point as one type.
#[cfg(any(test, feature = "fixture"))]
impl MeasurementPoint {
    /// Returns the value of a numeric parameter.
    ///
    /// # Panics
    /// If the point lacks it: the probe that planned the point put it there.
    pub fn numeric_param(&self, name: &str) -> u64 {
        let value = self.params.get(name);
        value.and_then(ParamValue::as_number).unwrap_or_else(|| panic!("{}: {name} is {value:?}", self.probe))
    }

    /// Returns the value of a textual parameter.
    ///
    /// # Panics
    /// If the point lacks it: the probe that planned the point put it there.
    pub fn text_param(&self, name: &str) -> &str {
        let value = self.params.get(name);
        value.and_then(ParamValue::as_text).unwrap_or_else(|| panic!("{}: {name} is {value:?}", self.probe))
    }
}

/// Conditions under which a point has been measured enough: `samples` (or `events`) clean ones were taken, or they took
/// `budget_ns`, or `limit_ns` passed. A field without a limit is `u64::MAX`, in JSON `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Number of clean batches wanted.
    #[serde(with = "json::limit")]
    #[schemars(with = "Option<u64>")]
    pub samples: u64,
    /// Clean single events wanted.
    #[serde(with = "json::limit")]
    #[schemars(with = "Option<u64>")]
    pub events: u64,
    /// Length of a batch of a short operation, ns. Shorter than a scheduler
    /// slice, so that most batches on a busy machine are undisturbed.
    #[serde(with = "json::limit")]
    #[schemars(with = "Option<u64>")]
    pub batch_ns: u64,
    /// Undisturbed measuring time that is enough whatever the count, ns.
    #[serde(with = "json::limit")]
    #[schemars(with = "Option<u64>")]
    pub budget_ns: u64,
    /// Time after which the point ends with what it has, ns.
    #[serde(with = "json::limit")]
    #[schemars(with = "Option<u64>")]
    pub limit_ns: u64,
}

impl Stop {
    /// After so many single events, or when `limit_ns` have passed.
    pub const fn after_events(events: u64, limit_ns: u64) -> Stop {
        Stop { samples: u64::MAX, events, batch_ns: 0, budget_ns: u64::MAX, limit_ns }
    }

    /// Returns true if a periodic step ends by itself, and not only on request.
    pub fn is_limited(&self) -> bool {
        self.events != u64::MAX || self.limit_ns != u64::MAX
    }
}

/// The scheduling policy asked for measuring threads; what was granted is read
/// back and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeasuringThreadPolicy {
    /// The normal time-sharing policy.
    Other,
    /// SCHED_FIFO with this priority, 1-99.
    Fifo(u32),
}

/// Conditions that the machine has to meet while a step runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Lock the worker's memory (`mlockall`).
    pub lock_memory: bool,
    /// Hold `/dev/cpu_dma_latency` at this many µs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_dma_latency: Option<i32>,
    /// A directory for files, made before the step and removed after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch_in: Option<PathBuf>,
}

/// Settings of periodic threads, which older tools have as habits of their loops. Each point of such a step is a
/// thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Periodic {
    /// Intervals at the begin of each thread whose activations are not recorded.
    pub warm_up: u64,
    /// Condition that ends the step: `stop.events` activations of each or of any thread, or `stop.limit_ns`,
    /// whichever comes first. Without both limits the step runs until it is asked to end.
    pub end: PeriodicEndCondition,
    /// Relative position of the threads' first instants.
    pub phase: Phase,
    /// Wait for the next full second of the clock before the first instant.
    pub align_second: bool,
    /// A latency above this many ns is an exceedance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// True if the first exceedance ends the step.
    pub stop_at_threshold: bool,
    /// Record also what would have been felt by activations that a stall
    /// swallowed (no coordinated omission).
    pub corrected: bool,
    /// An exact linear histogram beside the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear: Option<Linear>,
    /// Hand every sample to the observers.
    pub stream: bool,
}

impl Periodic {
    /// Threads that begin like this and stop all together, without a threshold or records beyond the histogram.
    pub const fn new(phase: Phase, warm_up: u64) -> Periodic {
        Periodic {
            warm_up,
            end: PeriodicEndCondition::All,
            phase,
            align_second: false,
            threshold: None,
            stop_at_threshold: false,
            corrected: false,
            linear: None,
            stream: false,
        }
    }
}

/// Treatment of events above the threshold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnThreshold {
    /// Trace the kernel's scheduler and interrupts, and say of each outlier
    /// what took its time.
    pub blame: bool,
    /// Without a threshold: the worst so many events are taken for outliers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<u32>,
    /// Actions at each exceedance, in this order.
    pub actions: Vec<Action>,
    /// File for the trace around an exceedance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_file: Option<PathBuf>,
    /// Contents of the trace beside the scheduler and interrupts.
    #[serde(default, skip_serializing_if = "Traced::is_usual")]
    pub traced: Traced,
}

/// Contents of a trace of outliers beside the usual events, and its size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traced {
    /// Further events, as `sched:sched_migrate_task`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The kernel's stack of each running thread that is displaced.
    pub stacks: bool,
    /// Size of each CPU's buffer, bytes; `None` lets the rate of events decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<u64>,
}

impl Traced {
    /// Returns whether only the usual events are traced, in buffers of the usual size.
    pub fn is_usual(&self) -> bool {
        *self == Traced::default()
    }
}

/// Something to do at an exceedance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Ends the run early.
    Stop,
    /// Go on; what the others do not say.
    Continue,
    /// Save the trace of the first exceedance.
    SaveTrace,
    /// Run a shell command, with `LATSCOPE_CPU`, `LATSCOPE_NS` and
    /// `LATSCOPE_CAUSE` in its environment.
    Exec(String),
    /// Send SIGUSR1 to this process.
    Signal(u32),
    /// Mark the trace that another process records in this directory of tracefs,
    /// and, if the run ends, switch it off.
    MarkTrace(PathBuf),
}

/// Thread whose count ends a periodic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PeriodicEndCondition {
    /// All threads have had their activations.
    All,
    /// The first thread has had its activations (cyclictest).
    Any,
}

/// Relative position of the first instants of periodic threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// All at the same instant, thread `i` later by `i` times this many ns.
    Aligned(u64),
    /// All at the same instant, this many ns later than they would without.
    Later(u64),
    /// Spread evenly over the interval.
    Staggered,
    /// At random within the interval, by the seed of the step.
    Random,
    /// Each when it is ready (cyclictest without `-A`).
    Free,
}

/// Buckets of equal width from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Linear {
    /// Number of buckets in the histogram.
    pub buckets: u64,
    /// Width of a bucket, ns; a value is cut off to a whole number of these.
    pub tick_ns: u64,
}

/// The work of one worker process: points measured in one go, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// Name of the code that measures the points: the `experiment` of their probes.
    pub name: String,
    /// Points that the step measures.
    pub points: Vec<MeasurementPoint>,
    /// CPUs for the measuring threads; the first one is the main thread's.
    pub cpus: Vec<u32>,
    /// Policy of the measuring threads.
    pub policy: MeasuringThreadPolicy,
    /// Conditions under which each point has been measured enough.
    pub stop: Stop,
    /// Conditions that the machine has to meet during the step.
    pub conditions: Conditions,
    /// Settings of the periodic threads, if the points are such threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodic: Option<Periodic>,
    /// Seed of permutations and random data.
    pub seed: u64,
    /// Number of times that the step is measured, seconds apart. The limits in `stop` are for all rounds together.
    pub rounds: u32,
}

/// A worker that runs beside the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundLoad {
    /// A busy loop on each allowed CPU.
    Cpu,
    /// A copy loop through 4 MiB on each allowed CPU: more than its own caches hold, and less than the memory load.
    Cache,
    /// A copy loop through memory larger than the caches, on each allowed CPU.
    Memory,
    /// A process on each allowed CPU that forks children which exit.
    Fork,
    /// Groups of processes that send messages to each other, one for each allowed CPU.
    Hackbench,
    /// A process on each allowed CPU that writes to a file and waits until the disk has it.
    Disk,
    /// Groups of processes that send messages over TCP and the loopback device, one for each allowed CPU.
    Network,
    /// Threads on each allowed CPU that sleep 50 us again and again.
    Timer,
    /// Threads of different SCHED_FIFO priorities on each allowed CPU that contend for a lock with priority
    /// inheritance.
    PiStorm,
    /// Runs a shell command.
    Command(String),
}

impl BackgroundLoad {
    /// The loads of latscope itself: the name by which each is asked for, and what it is, in words.
    pub const BUILT_IN: [(&str, BackgroundLoad, &str); 9] = [
        ("cpu", BackgroundLoad::Cpu, "busy loops"),
        ("cache", BackgroundLoad::Cache, "copies through the caches"),
        ("memory", BackgroundLoad::Memory, "memory copies"),
        ("fork", BackgroundLoad::Fork, "processes that fork"),
        ("hackbench", BackgroundLoad::Hackbench, "messages"),
        ("disk", BackgroundLoad::Disk, "synchronous writes"),
        ("network", BackgroundLoad::Network, "messages over loopback"),
        ("timer", BackgroundLoad::Timer, "short sleeps"),
        ("pi-storm", BackgroundLoad::PiStorm, "contention with priority inheritance"),
    ];

    /// The load of this name, if it is one of latscope itself.
    pub fn built_in(name: &str) -> Option<BackgroundLoad> {
        BackgroundLoad::BUILT_IN.into_iter().find(|(known, ..)| *known == name).map(|(_, load, _)| load)
    }

    /// Returns the load's name and a description of it in words; `None` for a command.
    pub fn name_and_description(&self) -> Option<(&'static str, &'static str)> {
        let known = BackgroundLoad::BUILT_IN.into_iter().find(|(_, load, _)| load == self);
        known.map(|(name, _, words)| (name, words))
    }
}

/// A limit that the result of a run is judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanCriterion {
    /// Quantity that is limited: `max`, `p99_9`, `missed`, or the name of a value such as `losses`.
    pub metric: String,
    /// The most it may be: ns, or a number; of what is to be reached the least.
    pub limit: f64,
}

/// Everything a run will do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Request in a word or two: `survey`, `memory`.
    pub job: String,
    /// The steps. Each round goes through them in a random order, by their seed.
    pub steps: Vec<PlanStep>,
    /// Rounds of the run: those of the step with most.
    pub rounds: u32,
    /// Time for the run, ns: where it takes longer, later rounds are left out; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Load beside all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<BackgroundLoad>,
    /// File for the time line of the threads, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<PathBuf>,
    /// Treatment of events above the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_threshold: Option<OnThreshold>,
    /// Criteria of the result: judged with each save, and in the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<PlanCriterion>,
    /// Ends the run when a criterion is exceeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_when_exceeded: bool,
    /// CPUs this run may use.
    pub cpus: CpuList,
    /// Omissions: what the plan leaves out of the request or of what is usual, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Plan {
    /// Returns a plan of one round, without a load, files, criteria and notes.
    pub fn new(job: &str, steps: Vec<PlanStep>, cpus: CpuList) -> Plan {
        Plan { job: job.to_owned(), steps, rounds: 1, cpus, ..Plan::default() }
    }
}

impl PlanStep {
    /// Returns a step of one round with the seed 1 and without periodic threads, on a machine as it is.
    pub fn new(name: &str, points: Vec<MeasurementPoint>, cpus: Vec<u32>, stop: Stop) -> PlanStep {
        let (policy, conditions) = (MeasuringThreadPolicy::Other, Conditions::default());
        PlanStep {
            name: name.to_owned(),
            points,
            cpus,
            policy,
            stop,
            conditions,
            periodic: None,
            seed: 1,
            rounds: 1,
        }
    }

    /// The step as it is measured in one of its rounds: with its share of the
    /// samples and of the time.
    pub fn in_round(&self, round: u32) -> PlanStep {
        PlanStep { stop: self.stop_in_round(round), ..self.clone() }
    }

    /// Share of a round of the samples and of the time.
    pub fn stop_in_round(&self, round: u32) -> Stop {
        let rounds = u64::from(self.rounds.max(1));
        // The first rounds take what does not divide.
        let share = |whole: u64| match whole {
            u64::MAX => u64::MAX,
            _ => (whole / rounds + u64::from(u64::from(round) < whole % rounds)).max(1),
        };
        let Stop { samples, events, batch_ns, budget_ns, limit_ns } = self.stop;
        Stop {
            samples: share(samples),
            events: share(events),
            batch_ns,
            budget_ns: share(budget_ns),
            limit_ns: share(limit_ns),
        }
    }
}

impl Plan {
    /// Returns the plan with `rounds` rounds. No step has more rounds than samples to take.
    pub fn in_rounds(mut self, rounds: u32) -> Plan {
        for step in &mut self.steps {
            let samples = step.stop.samples.min(step.stop.events).max(1);
            step.rounds = rounds.max(1).min(samples.try_into().unwrap_or(u32::MAX));
        }
        self.rounds = self.steps.iter().map(|step| step.rounds).max().unwrap_or(1);
        self
    }

    /// Order of all rounds of all steps: for each the round and the index of the step. A single round goes in the order
    /// of the plan. Of several rounds each has an order of its own that follows from the seed, so that no point is
    /// always measured behind the same other point. A step with fewer rounds is spread over the run.
    pub fn schedule(&self) -> Vec<(u32, usize)> {
        let mut seed = SplitMix::new(self.steps.first().map_or(1, |step| step.seed));
        let mut taken = vec![0; self.steps.len()];
        let mut schedule = Vec::new();
        for round in 0..self.rounds.max(1) {
            let due = |index: &usize| {
                let own = self.steps[*index].rounds.clamp(1, self.rounds.max(1));
                round * own % self.rounds.max(1) < own
            };
            let mut order: Vec<usize> = (0..self.steps.len()).filter(due).collect();
            if self.rounds > 1 {
                (1..order.len()).rev().for_each(|i| order.swap(i, seed.below(i as u64 + 1) as usize));
            }
            for index in order {
                schedule.push((taken[index], index));
                taken[index] += 1;
            }
        }
        schedule
    }

    /// Returns the steps as a list for people: a line for each step and point.
    pub fn describe_steps(&self) -> String {
        let points: usize = self.steps.iter().map(|step| step.points.len()).sum();
        let count = |number: usize, thing: &str| units::count_with_noun(number as u64, thing);
        let rounds = if self.rounds > 1 { format!(", {} rounds", self.rounds) } else { String::new() };
        let mut out = format!(
            "{}: {}{rounds}, {}, CPUs {}\n",
            self.job,
            count(self.steps.len(), "step"),
            count(points, "point"),
            self.cpus
        );
        for step in &self.steps {
            let limit = match step.stop.limit_ns {
                u64::MAX => String::new(),
                ns => format!(", at most {} a point", units::format_time(ns as f64)),
            };
            out += &format!("{}  (CPUs {:?}{limit})\n", step.name, step.cpus);
            for point in &step.points {
                out += &format!("    {}  {}\n", point.probe, point.title);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rounds: u32, of_steps: &[u32]) -> Plan {
        let mut plan = crate::fixture::report().plan;
        plan.steps.truncate(of_steps.len());
        plan.steps.iter_mut().zip(of_steps).for_each(|(step, rounds)| step.rounds = *rounds);
        Plan { rounds, ..plan }
    }

    #[test]
    fn one_round_keeps_the_order_of_the_plan() {
        assert_eq!(plan(1, &[1, 1, 1]).schedule(), [(0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn each_step_has_its_rounds_in_order_and_spread_over_the_run() {
        let plan = plan(8, &[8, 3, 8, 1, 8]);
        let schedule = plan.schedule();
        for (index, rounds) in [8, 3, 8, 1, 8].into_iter().enumerate() {
            let own: Vec<u32> =
                schedule.iter().filter(|(_, i)| *i == index).map(|(round, _)| *round).collect();
            assert_eq!(own, (0..rounds).collect::<Vec<u32>>(), "step {index}");
        }
        assert_eq!(schedule, plan.schedule());
        // Three rounds of eight are not next to each other.
        let places: Vec<usize> = (0..schedule.len()).filter(|at| schedule[*at].1 == 1).collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 3), "{places:?}");
        // Not every round goes in the same order.
        let first: Vec<usize> = schedule[..5].iter().map(|(_, index)| *index).collect();
        assert!(
            schedule
                .chunks(4)
                .any(|round| !first.windows(4).any(|w| round.iter().map(|r| r.1).eq(w.iter().copied())))
        );
    }

    #[test]
    fn rounds_share_what_was_asked_for_all_of_them() {
        let mut step = plan(1, &[3]).steps.remove(0);
        step.stop = Stop { samples: 100, events: u64::MAX, batch_ns: 7, budget_ns: 2, limit_ns: 90 };
        let stops: Vec<Stop> = (0..3).map(|round| step.in_round(round).stop).collect();
        assert_eq!(stops.iter().map(|stop| stop.samples).sum::<u64>(), 100);
        assert_eq!((stops[0].samples, stops[2].samples), (34, 33));
        assert!(stops.iter().all(|stop| (stop.events, stop.batch_ns, stop.limit_ns) == (u64::MAX, 7, 30)));
        // No round is planned for no time at all.
        assert_eq!(stops[2].budget_ns, 1);
    }
}
