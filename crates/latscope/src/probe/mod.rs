//! The probes: what latscope can measure. All stand in one constant registry,
//! from which `list`, help, man page, completions and documentation are made.

pub mod activity;
pub mod available;
pub mod cpu;
pub mod failure;
pub mod file;
pub mod ipc;
pub mod memory;
pub mod noise;
pub mod paced;
pub mod process;
pub mod remote;
pub mod selftest;
pub mod sync;
pub mod syscall;
pub mod thread;
pub mod wake;

use crate::engine::bench::Bench;
use latscope_core::machine::Machine;
use latscope_core::plan::{ParamValue, Params, Point, Policy, Step, Stop};
use latscope_core::report::Times;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One kind of event that can be measured.
pub struct Probe {
    /// `family.name`.
    pub id: &'static str,
    /// What a reader calls it, in a few words.
    pub title: &'static str,
    /// Exactly what lies between the two stamps, a sentence.
    pub timed: &'static str,
    /// One way, round trip or operation.
    pub times: Times,
    /// Where the semantics come from: a man page, the processor's manual.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The code that measures it. Probes that share an experiment are
    /// measured together, in one worker.
    pub experiment: &'static Experiment,
    /// Raised when what is timed, or what a parameter means, changes: results of two revisions are not compared.
    pub revision: u32,
    /// The points for a request on a machine. Pure.
    pub plan: fn(&Ask, &Machine) -> Vec<Point>,
}

/// A parameter of a probe.
pub struct Param {
    /// Its name in results and, as `--name`, on the command line.
    pub name: &'static str,
    /// What it means, a sentence.
    pub help: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Whether points that differ only in it make up a curve or a matrix.
    pub axis: bool,
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes: `64`, `4KiB`, `2MiB`.
    Size,
    /// A number.
    Number,
    /// A duration, in ns: `1ms`.
    Time,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Stated in the result, not asked for.
    Stated,
}

/// Code that measures points, in a worker of its own.
pub struct Experiment {
    /// Unique; the name of the step in a plan.
    pub name: &'static str,
    /// CPUs its measuring threads want.
    pub cpus: Cpus,
    /// Whether it needs a directory for files.
    pub scratch: bool,
    /// Policy its measuring threads want.
    pub policy: Policy,
    /// Measures the points of the bench.
    pub run: fn(&mut Bench) -> anyhow::Result<()>,
}

/// How many CPUs an experiment wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpus {
    /// One.
    One,
    /// Two, if there are two.
    Two,
    /// All the run may use.
    All,
}

/// How much time a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The whole survey within 10 s.
    Quick,
    /// The whole survey within 60 s.
    Normal,
    /// As long as it takes: more points, more samples.
    Full,
}

/// A directory in which file probes work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Its absolute path.
    pub path: PathBuf,
    /// The type of its file system: `ext4`, `tmpfs`.
    pub filesystem: String,
    /// What the file system is mounted from: `/dev/vda`.
    pub device: String,
    /// Free bytes that this user may fill.
    pub free: u64,
}

/// What was asked, for the planning of probes.
#[derive(Debug, Clone)]
pub struct Ask {
    /// How much time there is.
    pub profile: Profile,
    /// Part of a survey, whose time is limited; else a family of its own.
    pub survey: bool,
    /// Parameter values given by the user.
    pub values: BTreeMap<String, Vec<ParamValue>>,
    /// Where file probes work.
    pub directories: Vec<Directory>,
}

impl Ask {
    /// The user's values of a numeric parameter, or the default ones.
    pub fn numbers(&self, name: &str, default: &[u64]) -> Vec<u64> {
        match self.values.get(name) {
            None => default.to_vec(),
            Some(values) => values
                .iter()
                .filter_map(|v| if let ParamValue::Number(n) = v { Some(*n) } else { None })
                .collect(),
        }
    }

    /// The user's values of a parameter of words, or the default ones.
    pub fn texts(&self, name: &str, default: &[&str]) -> Vec<String> {
        match self.values.get(name) {
            None => default.iter().map(|text| (*text).to_owned()).collect(),
            Some(values) => values.iter().map(ParamValue::to_string).collect(),
        }
    }

    /// The user's words among `known`, or the default ones: a parameter that
    /// several probes of a family have may take words that others know.
    pub fn choices(&self, name: &str, default: &[&str], known: &[&str]) -> Vec<String> {
        let mut words = self.texts(name, default);
        words.retain(|word| known.contains(&word.as_str()));
        words
    }

    /// Whether the user gave values for a parameter.
    pub fn gave(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }
}

/// What a batch lasts in every profile, ns, so that their results can be compared: less than a
/// scheduler slice, and long beside a stamp.
const BATCH_NS: u64 = 250_000;

impl Profile {
    /// When a point has been measured enough.
    pub fn stop(self) -> Stop {
        const MS: u64 = 1_000_000;
        match self {
            Profile::Quick => {
                Stop { samples: 25, events: 500, batch_ns: BATCH_NS, budget_ns: 25 * MS, limit_ns: 80 * MS }
            }
            Profile::Normal => Stop {
                samples: 100,
                events: 2_000,
                batch_ns: BATCH_NS,
                budget_ns: 100 * MS,
                limit_ns: 400 * MS,
            },
            Profile::Full => Stop {
                samples: 400,
                events: 20_000,
                batch_ns: BATCH_NS,
                budget_ns: 500 * MS,
                limit_ns: 2_000 * MS,
            },
        }
    }
}

impl Probe {
    /// The part of the id before the dot.
    pub fn family(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }

    /// A point of this probe.
    pub fn point(&self, params: Params, title: impl Into<String>, row: bool) -> Point {
        let revision = self.revision;
        Point { probe: self.id.to_owned(), revision, params, title: title.into(), row }
    }
}

/// A family of probes: a subcommand, a folder, a page of documentation.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// Its probes.
    pub probes: &'static [&'static Probe],
}

/// All families, in the order in which a survey measures them.
pub static FAMILIES: &[Family] = &[
    Family {
        name: "cpu",
        about: "The core: cycle, arithmetic, branches, calls, reading a clock",
        probes: cpu::PROBES,
    },
    Family {
        name: "memory",
        about: "Caches and memory: latency by size, bandwidth, parallelism, latency under load",
        probes: memory::PROBES,
    },
    Family {
        name: "sync",
        about: "Locks, atomics, cache lines and hand-offs between threads",
        probes: sync::PROBES,
    },
    Family {
        name: "thread",
        about: "Threads: create, start, end, join; pools larger than the machine",
        probes: thread::PROBES,
    },
    Family {
        name: "syscall",
        about: "The kernel's own cost: system calls, signals, page faults, mappings",
        probes: syscall::PROBES,
    },
    Family { name: "process", about: "Processes: fork, spawn, exec, the shell", probes: process::PROBES },
    Family {
        name: "file",
        about: "Files: read, create, write, remove, make durable; in a given directory",
        probes: file::PROBES,
    },
    Family { name: "wake", about: "Periodic wake-up: how late a sleeping thread runs", probes: wake::PROBES },
    Family {
        name: "noise",
        about: "Time stolen from a busy loop on each CPU, and by whom",
        probes: noise::PROBES,
    },
    Family {
        name: "ipc",
        about: "Transactions between processes: latency, deadlines, inheritance, throughput",
        probes: ipc::PROBES,
    },
    Family {
        name: "remote",
        about: "Messages to another operating system on another core: ping, long ping, bandwidth",
        probes: remote::PROBES,
    },
];

/// Adapts a planned step to what holds for its family alone.
pub fn adapt(step: &mut Step, ask: &Ask) {
    match step.name.as_str() {
        "wake.timer" => step.conditions = wake::timer::usual_conditions(),
        "wake.timerlat" => wake::timerlat::adapt(step, ask),
        "remote" => remote::adapt(step, ask),
        name if name.starts_with("noise.") => noise::adapt(step, ask),
        _ => {}
    }
}

/// Experiments that take longer to set up than to measure, with the rounds that a
/// survey has time for, usual and quick, and why.
const DEAR: [(&str, [u32; 2], &str); 10] = [
    ("memory.latency", [3, 1], LARGE),
    ("memory.stream", [3, 1], LARGE),
    ("memory.parallelism", [3, 1], LARGE),
    ("memory.bandwidth", [3, 1], LARGE),
    ("memory.loaded", [3, 1], LARGE),
    ("memory.tlb", [3, 1], LARGE),
    ("sync.hand-off", [4, 1], AWAKE),
    ("sync.core-to-core", [4, 1], AWAKE),
    ("sync.atomic", [4, 1], AWAKE),
    ("sync.ring", [4, 1], AWAKE),
];
const LARGE: &str = "memory larger than the caches is filled first";
const AWAKE: &str = "all CPUs are kept busy first";

/// The rounds of a step that has fewer than the others of a survey, and why.
pub fn fewer_rounds(step: &str, profile: Profile) -> Option<(u32, &'static str)> {
    let (_, [usual, quick], why) = DEAR.iter().find(|(name, ..)| *name == step)?;
    Some((if profile == Profile::Quick { *quick } else { *usual }, *why))
}

/// Whether a probe is measured only when it is asked for by its name: it
/// changes settings of the kernel for a while, or is one of many alike.
pub fn by_name_only(probe: &Probe) -> bool {
    let alike = probe.family() == "ipc" && !ipc::SURVEYED.contains(&probe.id);
    alike || matches!(probe.id, "noise.osnoise" | "noise.hwlat" | "wake.timerlat")
}

/// All probes.
pub fn all() -> impl Iterator<Item = &'static Probe> {
    FAMILIES.iter().flat_map(|family| family.probes.iter().copied())
}

/// All probes and those of the self test.
fn known() -> impl Iterator<Item = &'static Probe> {
    all().chain(selftest::PROBES.iter().copied())
}

/// The probe with this id.
pub fn find(id: &str) -> Option<&'static Probe> {
    known().find(|probe| probe.id == id)
}

/// The experiment with this name.
pub fn experiment(name: &str) -> Option<&'static Experiment> {
    known().map(|probe| probe.experiment).find(|experiment| experiment.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_of_a_thing_is_in_the_singular() {
        let machine = crate::engine::harness::machine();
        let things = ["threads", "CPUs", "chains", "processes", "descriptors", "pairs", "pages", "calls"];
        let mut wrong = Vec::new();
        for probe in all() {
            let mut ask = crate::engine::harness::ask();
            let numbers = probe.params.iter().filter(|param| param.kind == Kind::Number);
            ask.values.extend(numbers.map(|param| (param.name.to_owned(), vec![ParamValue::Number(1)])));
            for point in (probe.plan)(&ask, &machine) {
                let words: Vec<&str> = point.title.split([' ', ',']).collect();
                if words.windows(2).any(|pair| pair[0] == "1" && things.contains(&pair[1])) {
                    wrong.push(point.title);
                }
            }
        }
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn a_time_and_a_size_stand_with_their_unit_beside_other_parameters() {
        for param in all().flat_map(|probe| probe.params) {
            let written = latscope_core::events::written(param.name, &1000.into(), &Default::default());
            let unit = match param.kind {
                Kind::Time => "µs",
                Kind::Size => "B",
                _ => continue,
            };
            assert!(written.ends_with(unit), "{written}");
        }
    }

    #[test]
    fn every_probe_is_documented_and_unique() {
        let mut ids = BTreeSet::new();
        for probe in all() {
            assert!(ids.insert(probe.id), "{} stands twice in the registry", probe.id);
            assert!(probe.id.contains('.'), "{}", probe.id);
            assert!(FAMILIES.iter().any(|f| f.name == probe.family()), "{}", probe.id);
            assert!(probe.timed.ends_with('.') && probe.timed.len() > 20, "{}: timed", probe.id);
            assert!(!probe.source.is_empty() && !probe.title.is_empty(), "{}", probe.id);
            for param in probe.params {
                assert!(!param.help.is_empty(), "{}: {}", probe.id, param.name);
            }
        }
    }

    #[test]
    fn what_has_fewer_rounds_is_an_experiment_and_has_three_at_least() {
        for (name, rounds, why) in DEAR {
            assert!(experiment(name).is_some(), "no experiment {name}");
            assert!((3..8).contains(&rounds[0]) && rounds[1] < 3 && !why.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_experiment_name_means_one_experiment() {
        for probe in known() {
            let found = experiment(probe.experiment.name).expect(probe.id);
            assert!(std::ptr::eq(found, probe.experiment), "{}: two experiments have its name", probe.id);
        }
    }
}
