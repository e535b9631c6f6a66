//! What a probe is, and what is asked of it.

use crate::bench::Bench;
pub use crate::param::{Directory, Kind, Param, PlanInput, Profile};
use crate::settings::{Parameters, Settings};
use latscope_core::machine::Machine;
use latscope_core::plan::{Point, Policy, Step};
use latscope_core::report::Semantics;

/// One kind of event that can be measured.
pub struct Probe {
    /// `family.name`.
    pub id: &'static str,
    /// What a reader calls it, in a few words.
    pub title: &'static str,
    /// Exactly what lies between the two stamps, a sentence.
    pub timed: &'static str,
    /// One way, round trip or operation.
    pub times: Semantics,
    /// Where the semantics come from: a man page, the processor's manual.
    pub source: &'static str,
    /// Its parameters.
    pub params: Parameters,
    /// The code that measures it. Probes that share an experiment are
    /// measured together, in one worker.
    pub experiment: &'static Experiment,
    /// Raised when what is timed, or what a parameter means, changes: results of two revisions are not compared.
    pub revision: u32,
    /// The points for a request on a machine. Pure.
    pub plan: fn(&PlanInput, &Machine) -> Vec<Point>,
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

impl Probe {
    /// The part of the id before the dot.
    pub fn family(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }

    /// A point of this probe.
    pub fn point(&self, settings: impl Settings, title: impl Into<String>, row: bool) -> Point {
        let (revision, params) = (self.revision, settings.params());
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

/// All that can be measured.
pub struct Registry {
    /// The families, in the order in which a survey measures them.
    pub families: &'static [Family],
    /// Probes that only the self test has.
    pub hidden: &'static [&'static Probe],
    /// Adapts a planned step to what holds for its family alone.
    pub adapt: fn(&mut Step, &PlanInput),
    /// The rounds of a step that has fewer than the others of a survey, and why.
    pub fewer_rounds: fn(&str, Profile) -> Option<(u32, &'static str)>,
}

impl Registry {
    /// The probes of all families.
    pub fn all(&self) -> impl Iterator<Item = &'static Probe> {
        self.families.iter().flat_map(|family| family.probes.iter().copied())
    }

    /// All probes and those of the self test.
    pub fn known(&self) -> impl Iterator<Item = &'static Probe> {
        self.all().chain(self.hidden.iter().copied())
    }

    /// The probe with this id.
    pub fn find(&self, id: &str) -> Option<&'static Probe> {
        self.known().find(|probe| probe.id == id)
    }

    /// The experiment with this name.
    pub fn experiment(&self, name: &str) -> Option<&'static Experiment> {
        self.known().map(|probe| probe.experiment).find(|experiment| experiment.name == name)
    }
}
