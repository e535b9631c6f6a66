//! Context of a call of a personality: its arguments, and what latscope adds to them.

use crate::notes::{NotesDestination, StandardStream};
use anyhow::{Result, ensure};
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::Plan;
use latscope_core::redact::Redactor;
use latscope_core::report::Report;
use latscope_engine::observers::Observer;
use latscope_engine::runner::{self, MeasurementRun};
use latscope_engine::saver::{self, Saver};
use latscope_judge::verdict::describe_plan;
use latscope_probes::REGISTRY;
use latscope_process::stdout::print_text;
use smart_default::SmartDefault;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between saves without `--save-every`, in ns.
const SAVE_EVERY: u64 = 600_000_000_000;

/// Arguments of a call, and everything else that it depends on.
#[derive(Debug, Clone, SmartDefault)]
pub struct PersonalityContext {
    /// Name of the program; [`run_program`](crate::Personality::run_program) sets it.
    pub name: &'static str,
    /// Arguments of the original program, without its name.
    pub arguments: Vec<OsString>,
    /// Function that returns the value of a variable of the environment.
    #[default(|_| None)]
    pub variable: fn(&str) -> Option<OsString>,
    /// Labels of the run, for the saved result.
    pub labels: BTreeMap<String, String>,
    /// Identity of the machine for the saved result, if it was given. The inner `None` stands for no identity.
    pub machine_id: Option<Option<String>>,
    /// Interval between saves of the result, in ns, if it was given.
    pub save_every: Option<u64>,
    /// True if the plan is to be shown, and nothing is to be measured.
    pub dry_run: bool,
    /// True if all files leave out what says whose machine it is.
    pub redact: bool,
    /// Path of the saved result, for programs without an option for it.
    pub result: Option<PathBuf>,
    /// True if exit codes are latscope's, for programs without an option for it.
    pub strict_exit: bool,
    /// Destination of notes; [`run_program`](crate::Personality::run_program) reads it from the environment.
    pub notes: NotesDestination,
}

/// Report, and the outcome of saving it. The report is shown even if it was not saved.
pub(crate) struct ReportSaveOutcome {
    pub report: Report,
    pub saved: Result<()>,
}

impl PersonalityContext {
    /// Returns a context with these arguments, no environment, and nothing that latscope adds.
    pub fn new<I: IntoIterator<Item = S>, S: Into<OsString>>(arguments: I) -> PersonalityContext {
        let arguments = arguments.into_iter().map(Into::into).collect();
        PersonalityContext { arguments, ..PersonalityContext::default() }
    }

    /// Shows a plan if `--dry-run` asks for that instead of carrying it out. Returns true if it does.
    pub(crate) fn show_dry_run(&self, plan: &Plan) -> bool {
        if self.dry_run {
            print_text(&describe_plan(plan));
        }
        self.dry_run
    }

    /// Prints a note for each argument without effect, unless only the plan is shown.
    pub(crate) fn print_notes(&self, notes: &[String]) {
        notes.iter().filter(|_| !self.dry_run).for_each(|note| self.print_note(note));
    }

    /// Writes a note about something that the figures, which go to stdout, do not show. A file of notes that is full
    /// ends no measurement.
    pub(crate) fn print_note(&self, text: &str) {
        let line = format!("latscope: {}: note: {text}", self.name);
        if let Err(error) = self.notes.write_line(&line, StandardStream::Stdout) {
            latscope_process::eprintln!("{line} ({}: {error:#})", crate::notes::VARIABLE);
        }
    }

    /// Carries out a plan under the given names, and saves the result on the way and before it is shown.
    ///
    /// # Errors
    /// The errors are those of [`runner::run`], and those that show before the run that the result cannot be saved.
    pub(crate) fn measure_plan(
        &self,
        plan: Plan,
        mut machine: Machine,
        timebase: Timebase,
        observers: Vec<&mut dyn Observer>,
        result: Option<&Path>,
    ) -> Result<ReportSaveOutcome> {
        if let Some(id) = &self.machine_id {
            machine.id.clone_from(id);
        }
        ensure!(self.save_every.is_none() || result.is_some(), "--save-every is for a result that is saved");
        let every = Duration::from_nanos(self.save_every.unwrap_or(SAVE_EVERY));
        let saver = result.map(|path| Saver::new(path, every)).transpose()?;
        let mut saver = saver.map(|saver| saver.redacting(self.redact));
        let mut all: Vec<&mut dyn Observer> =
            observers.into_iter().map(|observer| observer as &mut dyn Observer).collect();
        all.extend(saver.iter_mut().map(|saver| saver as &mut dyn Observer));
        let labels = self.labels.clone();
        let report = runner::run_plan(MeasurementRun {
            registry: &REGISTRY,
            plan,
            machine,
            timebase,
            labels,
            observers: all,
        })?;
        let report = if self.redact { Redactor::default().redact_report(&report)? } else { report };
        let saved = result.map_or(Ok(()), |path| saver::save_report(path, &report));
        Ok(ReportSaveOutcome { report, saved })
    }
}
