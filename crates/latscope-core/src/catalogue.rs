//! Facts on probes: what is timed, with which parameters, and what a planner and a writer of files have to know.
//!
//! Each probe fills its own [`Facts`], so that no other crate keeps a table of probe names. A probe of an imported result,
//! or of another version, has none.

use crate::report::Semantics;

/// Facts on one probe.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
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
    /// Kind of a sample.
    pub samples: Samples,
    /// True if the probe is measured only when it is asked for by its name: it changes settings of the kernel for a
    /// while, or is one of many alike.
    pub by_name_only: bool,
    /// CPUs that a point takes for itself.
    pub exclusive_cpus: ExclusiveCpus,
    /// True if what is timed is a loop of instructions, which is assembly only on some architectures.
    pub is_loop: bool,
    /// Names of the parameters for which 0 is something to measure.
    pub may_be_zero: &'static [&'static str],
}

/// Kind of a sample of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
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

impl Facts {
    /// Facts of a probe of single events, measured with the others of its family; the texts are empty.
    pub const DEFAULT: Facts = Facts {
        id: "",
        title: "",
        timed: "",
        times: Semantics::Operation,
        source: "",
        revision: 1,
        params: &[],
        samples: Samples::Events,
        by_name_only: false,
        exclusive_cpus: ExclusiveCpus::None,
        is_loop: false,
        may_be_zero: &[],
    };

    /// Facts of a probe of batches; all else is as in [`Facts::DEFAULT`].
    pub const BATCHES: Facts = Facts { samples: Samples::Batches, ..Facts::DEFAULT };

    /// Facts of a probe of batches of a loop of instructions; all else is as in [`Facts::DEFAULT`].
    pub const LOOPS: Facts = Facts { is_loop: true, ..Facts::BATCHES };

    /// Returns the part of the id before the dot.
    pub fn family(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }
}

/// Name of the value with the time of all pairs of a run, from the first call of any to the end of the last, if there
/// are several.
pub const RUN_ELAPSED: &str = "run-elapsed";

/// A parameter of a probe.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Name in results and, as `--name`, on the command line.
    pub name: &'static str,
    /// Sentence on its meaning.
    pub help: &'static str,
    /// Values that it takes.
    pub kind: Kind,
    /// True if points that differ only in it make up a curve or a matrix.
    pub axis: bool,
}

impl Param {
    /// Returns a parameter that is stated in the result, not asked for.
    pub const fn stated(name: &'static str, help: &'static str, axis: bool) -> Param {
        Param { name, help, kind: Kind::Stated, axis }
    }
}

/// Values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes: `64`, `4KiB`, `2MiB`.
    Size,
    /// A plain number: `8`.
    Number,
    /// A duration, in ns: `1ms`.
    Time,
    /// A word out of this list.
    Choice(&'static [&'static str]),
    /// Stated in the result, not asked for.
    Stated,
}
