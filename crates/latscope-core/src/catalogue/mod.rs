//! Facts on probes: what is timed, with which parameters, and what a planner and a writer of files have to know.
//!
//! Each probe fills its own [`ProbeFacts`], so that no other crate keeps a table of probe names. A probe of an imported
//! result, or of another version, has none.
//!
//! A [`ProbeCatalogue`] has the facts of all probes. The command makes it of its registry, and passes it to the crates
//! that cannot see the probes.

pub mod families;
pub mod figures;
pub mod ids;

pub use crate::footprint::Footprint;
use crate::param;
use crate::plan::Params;
use crate::report::{Measurement, Semantics};
use crate::word::Meaning;
use figures::{Bars, Curves};

crate::words! {
    /// Way in which a program makes a call of the kernel.
    pub enum SyscallInvocation {
        /// The bare instruction, without code of a library before or after it.
        Instruction = "instruction",
        /// A function of the C library.
        Libc = "libc",
    }
}

/// Facts on one probe.
#[derive(Debug, Clone, Copy)]
pub struct ProbeFacts {
    /// Id of the probe: `family.name`.
    pub id: &'static str,
    /// Title for readers, a few words.
    pub title: &'static str,
    /// Sentence on what exactly lies between the two stamps.
    pub timed: &'static str,
    /// Meaning of the times: one way, round trip or operation.
    pub times: Semantics,
    /// Source of the semantics: a man page, the processor's manual.
    pub source: &'static str,
    /// Number that is raised when what is timed, or what a parameter means, changes: results of two revisions are not
    /// compared.
    pub revision: u32,
    /// Parameters, in the order in which they are documented.
    pub params: &'static [Param],
    /// Way in which the timed calls are made, unless the parameter `by` of a point states another; `None` if nothing is
    /// called, or calls of both kinds.
    pub by: Option<SyscallInvocation>,
    /// True if the loop around the calls lies at several addresses in turns.
    pub at_addresses: bool,
    /// Kind of a sample.
    pub samples: ProbeSampleKind,
    /// True if the probe is measured only when it is asked for by its name: it changes settings of the kernel for a
    /// while, or is one of many alike.
    pub by_name_only: bool,
    /// CPUs that a point takes for itself.
    pub exclusive_cpus: ExclusiveCpus,
    /// True if what is timed is a loop of instructions, which is assembly only on some architectures.
    pub is_loop: bool,
    /// Names of the parameters for which 0 is something to measure.
    pub may_be_zero: &'static [&'static str],
    /// Largest values of parameters, where the probe has a limit on every machine.
    pub most: &'static [(&'static str, u64)],
    /// Returns the memory whose place in the caches decides the figure of a point; `None` for a probe of other things.
    pub footprint: fn(&Params) -> Option<Footprint>,
    /// Kind of the activity that a row has the time of.
    pub subject: Subject,
    /// Place among the numbers that say most about a machine, if it has one.
    pub headline: Option<ProbeHeadline>,
    /// Conditions that distort its figures, beside those of its family.
    pub sensitive_to: &'static [Condition],
}

/// Kind of the activity that a row has the time of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// One operation, so that the number of times that it fits into a stretch of time has a meaning.
    Operation,
    /// Many operations at once: bytes moved, tasks done.
    Many,
    /// A delay or a loss of time: a late wake-up, an interruption.
    Delay,
}

/// Place of a probe among the numbers that say most about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeHeadline {
    /// Name of the number in two words: `hand-off`.
    pub name: &'static str,
    /// Parameters of the point that has the number, in the order of preference.
    pub preferred: &'static [(&'static str, &'static str)],
}

/// Condition of a machine that distorts figures, or that probes need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Speed of the machine as a whole: its load, time taken by a host, a kernel with checks.
    Speed,
    /// Clock rate of the cores.
    ClockRate,
    /// Core that is shared by two CPUs.
    SharedCore,
    /// Events that go through a hypervisor.
    Virtualisation,
    /// Number of CPUs that can run at a time.
    TwoCpus,
    /// Filter that looks at system calls.
    CallFilter,
    /// Defences of the kernel against speculative execution, on its entry or on a switch.
    Mitigations,
    /// Way in which the clock is read.
    ClockCall,
    /// Clock that is slow or wrong.
    ClockSource,
    /// Size of the pages of memory.
    PageSize,
    /// Huge pages for memory that did not ask for them.
    UnaskedHugePages,
    /// Memory that can be swapped out.
    Swap,
    /// Pages that the kernel scans, moves or unmaps.
    MovedPages,
    /// Time that a waking thread takes to run: states of idle CPUs, the scheduler, CPUs apart.
    WakeUp,
    /// Preemption of ordinary threads.
    Fairness,
    /// Other threads and interrupts on a measured CPU.
    Isolation,
    /// Limits of real-time threads.
    RealTime,
    /// Memory that cannot be locked.
    LockedMemory,
    /// Interrupts on the measured CPUs.
    Interrupts,
    /// Rate of the timer interrupt.
    Tick,
    /// Lateness of the sleeps of ordinary threads.
    TimerSlack,
    /// Transports that a kernel has.
    Transports,
}

/// Facts on a family of probes.
#[derive(Debug, Clone, Copy)]
pub struct FamilyFacts {
    /// Name of the family, the part of an id before the dot.
    pub name: &'static str,
    /// Subject of the family, in a line.
    pub about: &'static str,
    /// Conditions that distort the figures of all its probes.
    pub sensitive_to: &'static [Condition],
    /// True if workers of the kernel do a part of its work: they write its files, or pass on its messages.
    pub served: bool,
    /// True if every sample is a single event, so that the family has views of its own.
    pub single_events: bool,
    /// True if its probes work in directories of the user's choice.
    pub in_directories: bool,
    /// True if a time line can be recorded of its threads.
    pub on_time_line: bool,
    /// Figures with curves, in their order.
    pub curves: &'static [Curves],
    /// Figures with bars, in their order.
    pub bars: &'static [Bars],
}

impl FamilyFacts {
    /// Facts of a family without figures; the texts are empty.
    pub const DEFAULT: FamilyFacts = FamilyFacts {
        name: "",
        about: "",
        sensitive_to: &[],
        served: false,
        single_events: false,
        in_directories: false,
        on_time_line: false,
        curves: &[],
        bars: &[],
    };
}

/// Facts on all probes, in the order in which a survey measures them.
#[derive(Debug, Clone, Default)]
pub struct ProbeCatalogue {
    /// Families, in the order in which a survey measures them.
    pub families: Vec<&'static FamilyFacts>,
    /// Probes of all families, and those of the self test.
    pub probes: Vec<&'static ProbeFacts>,
}

impl ProbeCatalogue {
    /// Returns the facts on the probe with this id; `None` for one of another version or of an import.
    pub fn find_probe(&self, id: &str) -> Option<&'static ProbeFacts> {
        self.probes.iter().copied().find(|facts| facts.id == id)
    }

    /// Returns the facts on the family with this name.
    pub fn family(&self, name: &str) -> Option<&'static FamilyFacts> {
        self.families.iter().copied().find(|family| family.name == name)
    }

    /// Returns true if every sample of the family with this name is a single event; false for an unknown family.
    pub fn has_single_events(&self, family: &str) -> bool {
        self.family(family).is_some_and(|facts| facts.single_events)
    }

    /// Returns the probes that a condition affects: ids, or families such as `memory.*`.
    pub fn affected_by(&self, condition: Condition) -> Vec<String> {
        let mut affected = Vec::new();
        for family in &self.families {
            let probes = self.probes.iter().filter(|facts| facts.family() == family.name);
            if family.sensitive_to.contains(&condition) {
                affected.push(format!("{}.*", family.name));
            } else {
                let sensitive = probes.filter(|facts| facts.sensitive_to.contains(&condition));
                affected.extend(sensitive.map(|facts| facts.id.to_owned()));
            }
        }
        affected
    }

    /// Returns true if a row of this probe is one operation; an unknown probe is taken for that.
    pub fn is_operation(&self, id: &str) -> bool {
        self.find_probe(id).is_none_or(|facts| facts.subject == Subject::Operation)
    }

    /// Returns the sentence on what exactly was timed for a point; `None` if it is not known, as for another revision.
    pub fn timed(&self, m: &Measurement) -> Option<&'static str> {
        let same = |facts: &&ProbeFacts| facts.revision == m.revision && !m.is_imported();
        self.find_probe(&m.probe).filter(same).map(|facts| facts.timed)
    }
}

/// Kind of a sample of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeSampleKind {
    /// The mean of a batch of operations: there are no single events.
    Batches,
    /// The time of a single event.
    Events,
    /// Batches or events, depending on the parameters and on the time of an operation.
    Either,
}

/// CPUs that a point takes for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusiveCpus {
    /// No CPUs that depend on the probe's parameter `threads`.
    None,
    /// A CPU for each of the probe's `threads`.
    Threads,
    /// A CPU for each of the probe's `threads`, beside that of the measuring thread.
    ThreadsAndOne,
}

impl ProbeFacts {
    /// Facts of a probe of single events, measured with the others of its family; the texts are empty.
    pub const DEFAULT: ProbeFacts = ProbeFacts {
        id: "",
        title: "",
        timed: "",
        times: Semantics::Operation,
        source: "",
        revision: 1,
        params: &[],
        by: None,
        at_addresses: false,
        samples: ProbeSampleKind::Events,
        by_name_only: false,
        exclusive_cpus: ExclusiveCpus::None,
        is_loop: false,
        may_be_zero: &[],
        most: &[],
        footprint: |_| None,
        subject: Subject::Operation,
        headline: None,
        sensitive_to: &[],
    };

    /// ProbeFacts of a probe of batches; all else is as in [`ProbeFacts::DEFAULT`].
    pub const BATCHES: ProbeFacts = ProbeFacts { samples: ProbeSampleKind::Batches, ..ProbeFacts::DEFAULT };

    /// ProbeFacts of a probe of delays, each a single event; all else is as in [`ProbeFacts::DEFAULT`].
    pub const DELAYS: ProbeFacts = ProbeFacts { subject: Subject::Delay, ..ProbeFacts::DEFAULT };

    /// ProbeFacts of a probe of batches of a loop of instructions; all else is as in [`ProbeFacts::DEFAULT`].
    pub const LOOPS: ProbeFacts = ProbeFacts { is_loop: true, ..ProbeFacts::BATCHES };

    /// Returns the part of the id before the dot.
    pub fn family(&self) -> &'static str {
        families::of_probe(self.id)
    }
}

/// Name of the value with the time of all pairs of a run, from the first call of any to the end of the last, if there
/// are several.
pub const RUN_ELAPSED: &str = "run-elapsed";

/// Name of the value with the median time at the fastest of the addresses of a timed loop, if it lies at several.
pub const FASTEST_ADDRESS: &str = "fastest-address";

/// Name of the value with the median time at the slowest of these addresses.
pub const SLOWEST_ADDRESS: &str = "slowest-address";

/// Name of the value with the share of addresses in the slower of two modes; 0 if there is one mode.
pub const SLOW_ADDRESSES: &str = "slow-addresses";

/// A parameter of a probe.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Name in results and, as `--name`, on the command line.
    pub name: &'static str,
    /// Sentence on its meaning.
    pub help: &'static str,
    /// Values that it takes.
    pub kind: ParamValueKind,
    /// True if points that differ only in it make up a curve or a matrix.
    pub axis: bool,
}

/// Returns the kind of a parameter by its name, if its numbers have a unit: [`ParamValueKind::Time`] or
/// [`ParamValueKind::Size`]. A name means the same in all probes, also in those of other versions and of imports.
pub fn kind_of(name: &str) -> Option<ParamValueKind> {
    match name {
        param::INTERVAL
        | param::WORK
        | param::RUNTIME
        | param::DEADLINE
        | param::HOLD
        | param::HOG
        | param::TIMEOUT => Some(ParamValueKind::Time),
        param::PACE | param::GAP | param::DELAY | param::PAUSE | param::SLICE | param::SLACK => {
            Some(ParamValueKind::Time)
        }
        param::SIZE
        | param::BUFFER
        | param::SOURCE
        | param::PAYLOAD
        | param::TOUCH
        | param::TOUCHED
        | param::STRIDE => Some(ParamValueKind::Size),
        _ => None,
    }
}

impl Param {
    /// Returns a parameter that is stated in the result, not asked for.
    pub const fn stated(name: &'static str, help: &'static str, axis: bool) -> Param {
        Param { name, help, kind: ParamValueKind::Stated, axis }
    }
}

/// Values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamValueKind {
    /// Bytes: `64`, `4KiB`, `2MiB`.
    Size,
    /// A plain number: `8`.
    Number,
    /// Numbers of NUMA nodes, `0,2`, or `all`.
    Nodes,
    /// A duration, in ns: `1ms`.
    Time,
    /// One of these words.
    Choice(&'static [Meaning]),
    /// Stated in the result, not asked for.
    Stated,
}
