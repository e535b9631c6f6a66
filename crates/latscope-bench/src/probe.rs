//! Description of probes, experiments and families.

use crate::bench::Bench;
pub use crate::param::{Param, ParamValueKind, PlanInput, ScratchDirectory, SurveyProfile};
use crate::settings::PointSettings;
use anyhow::Result;
pub use latscope_core::catalogue::{FamilyFacts, ProbeCatalogue, ProbeFacts};
use latscope_core::machine::Machine;
use latscope_core::plan::{MeasurementPoint, PlanStep};
use std::ops::Deref;

/// Kind of event that can be measured.
pub struct Probe {
    /// Everything that other crates have to know of it.
    pub facts: ProbeFacts,
    /// Checks that the type of its points can read a point: a worker measures nothing else, so that no word that it
    /// does not know stands for one that it does.
    pub check: fn(&MeasurementPoint) -> Result<()>,
    /// Code that measures it. Probes that share an experiment are measured together, in one worker.
    pub experiment: &'static Experiment,
    /// Returns the points of this probe for a request on a machine. Pure.
    pub plan: fn(&Probe, &PlanInput, &Machine) -> Vec<MeasurementPoint>,
}

impl Deref for Probe {
    type Target = ProbeFacts;

    fn deref(&self) -> &ProbeFacts {
        &self.facts
    }
}

/// Code that measures points, in a worker of its own.
pub struct Experiment {
    /// Unique name: that of the step in a plan.
    pub name: &'static str,
    /// CPUs that its measuring threads want.
    pub cpus: Cpus,
    /// True if it needs a directory for files.
    pub scratch: bool,
    /// Measures the points of the bench.
    pub run: fn(&mut Bench) -> Result<()>,
    /// Time that a point takes beside its budget, s: buffers to fill, processes with memory, CPUs to be kept awake
    /// first.
    pub setup_s: f64,
    /// Time that a step takes once, however many points it has, s: CPUs to be kept busy first, threads to be started.
    pub once_s: f64,
    /// Rounds in a survey, where they are fewer than those of others.
    pub fewer_rounds: Option<FewerRounds>,
    /// Choice of the points that a survey measures on a CPU of each kind, where cores are of several kinds; `None` for
    /// none.
    pub per_kind: Option<fn(&MeasurementPoint) -> bool>,
    /// Changes a planned step into what holds for this experiment alone.
    pub adapt: fn(&mut PlanStep, &PlanInput),
}

/// Rounds of an experiment that takes longer to set up than to measure.
#[derive(Debug, Clone, Copy)]
pub struct FewerRounds {
    /// Rounds in a survey that is not quick; a quick one has a single round.
    pub usual: u32,
    /// Reason, as it stands in the notes of the plan.
    pub reason: &'static str,
}

impl Experiment {
    /// Returns an experiment that needs no files, no time to set up, and as many rounds as all others.
    pub const fn new(name: &'static str, cpus: Cpus, run: fn(&mut Bench) -> Result<()>) -> Experiment {
        Experiment {
            name,
            cpus,
            scratch: false,
            run,
            setup_s: 0.0,
            once_s: 0.0,
            fewer_rounds: None,
            per_kind: None,
            adapt: |_, _| {},
        }
    }

    /// Gives it a directory for files.
    pub const fn in_scratch(mut self) -> Experiment {
        self.scratch = true;
        self
    }

    /// States the time that a point takes beside its budget, s, as measured on a virtual machine with two CPUs.
    pub const fn setup_per_point(mut self, seconds: f64) -> Experiment {
        self.setup_s = seconds;
        self
    }

    /// States the time that a step takes once, s, as measured on the same machine.
    pub const fn setup_once(mut self, seconds: f64) -> Experiment {
        self.once_s = seconds;
        self
    }

    /// Gives it fewer rounds in a survey.
    pub const fn fewer_rounds(mut self, usual: u32, reason: &'static str) -> Experiment {
        self.fewer_rounds = Some(FewerRounds { usual, reason });
        self
    }

    /// Gives it four rounds in a survey, which has no room for more.
    pub const fn first_rounds(self) -> Experiment {
        self.fewer_rounds(4, "a survey has room for its first rounds only")
    }

    /// Lets a survey measure these of its points on a CPU of each kind, where cores are of several kinds.
    pub const fn per_kind(mut self, chosen: fn(&MeasurementPoint) -> bool) -> Experiment {
        self.per_kind = Some(chosen);
        self
    }

    /// Lets `adapt` change its planned steps.
    pub const fn adapted_by(mut self, adapt: fn(&mut PlanStep, &PlanInput)) -> Experiment {
        self.adapt = adapt;
        self
    }
}

/// Number of CPUs that an experiment wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpus {
    /// A single CPU suffices.
    One,
    /// Two, if there are two.
    Two,
    /// All the run may use.
    All,
}

impl Probe {
    /// Returns its points for a request on a machine.
    pub fn plan(&self, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
        (self.plan)(self, input, machine)
    }

    /// A point of this probe.
    pub fn make_point(
        &self,
        settings: impl PointSettings,
        title: impl Into<String>,
        row: bool,
    ) -> MeasurementPoint {
        let (revision, params) = (self.revision, settings.params());
        MeasurementPoint { probe: self.id.to_owned(), revision, params, title: title.into(), row }
    }
}

/// A family of probes: a subcommand, a folder, a page of documentation.
pub struct Family {
    /// Everything that other crates have to know of it, beside its probes.
    pub facts: FamilyFacts,
    /// Probes of the family.
    pub probes: &'static [&'static Probe],
}

impl Deref for Family {
    type Target = FamilyFacts;

    fn deref(&self) -> &FamilyFacts {
        &self.facts
    }
}

/// All that can be measured.
pub struct Registry {
    /// The families, in the order in which a survey measures them.
    pub families: &'static [&'static Family],
    /// Probes that only the self test has.
    pub hidden: &'static [&'static Probe],
}

impl Registry {
    /// The probes of all families.
    pub fn all_probes(&self) -> impl Iterator<Item = &'static Probe> {
        self.families.iter().flat_map(|family| family.probes.iter().copied())
    }

    /// All probes and those of the self test.
    pub fn known_probes(&self) -> impl Iterator<Item = &'static Probe> {
        self.all_probes().chain(self.hidden.iter().copied())
    }

    /// Returns the facts on all families and probes.
    pub fn catalogue(&self) -> ProbeCatalogue {
        ProbeCatalogue {
            families: self.families.iter().map(|family| &family.facts).collect(),
            probes: self.known_probes().map(|probe| &probe.facts).collect(),
        }
    }

    /// The probe with this id.
    pub fn find_probe(&self, id: &str) -> Option<&'static Probe> {
        self.known_probes().find(|probe| probe.id == id)
    }

    /// Returns the family of the probe with this id.
    pub fn family_of(&self, id: &str) -> Option<&'static Family> {
        let of_family = |family: &&&Family| family.probes.iter().any(|probe| probe.id == id);
        self.families.iter().find(of_family).copied()
    }

    /// Returns the time that a step of so many points takes in addition to their budgets, s, by its name; 0 for an
    /// unknown one.
    pub fn setup_s(&self, step: &str, points: usize) -> f64 {
        self.experiment(step).map_or(0.0, |experiment| experiment.once_s + points as f64 * experiment.setup_s)
    }

    /// The experiment with this name.
    pub fn experiment(&self, name: &str) -> Option<&'static Experiment> {
        self.known_probes().map(|probe| probe.experiment).find(|experiment| experiment.name == name)
    }
}
