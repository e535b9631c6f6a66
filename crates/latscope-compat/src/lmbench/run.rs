//! Execution of a job: the part that touches the machine.

use super::job::{LmbenchJob, LmbenchSourceFile, PointQuery};
use super::options::{USUAL_REPETITIONS, refuse};
use super::page::LmbenchPage;
use super::write_output;
use crate::context::{PersonalityContext, ReportSaveOutcome};
use crate::environment;
use crate::getopt::CommandLineRefusal;
use anyhow::Result;
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::{MeasurementPoint, Plan, PlanStep, Stop};
use latscope_engine::observers::{Observer, ProgressDisplay};
use latscope_engine::planner::{self, RunRequest};
use latscope_probes::file::directory;
use latscope_probes::{PlanInput, REGISTRY, ScratchDirectory};
use latscope_process::terminal::status_width;
use std::path::Path;

/// Preconditions of a measurement, as for latscope's own subcommands.
struct LmbenchEnvironment {
    machine: Machine,
    timebase: Timebase,
    directories: Vec<ScratchDirectory>,
}

impl LmbenchEnvironment {
    /// Returns this machine, with the directory in which file probes work.
    fn for_directory(directory: Option<&Path>) -> Result<LmbenchEnvironment> {
        let (machine, timebase) = environment::snapshot_machine();
        let directories = directory.map(directory::resolve).transpose()?.into_iter().collect();
        Ok(LmbenchEnvironment { machine, timebase, directories })
    }
}

/// Warm-up that every point gets anyway, in µs. A whole batch is run to find the length of batches.
const OWN_WARMUP: u64 = 250;

/// Carries out a job, prints its figures, and returns the exit code.
///
/// # Errors
/// Nothing could be measured, or the result could not be saved.
pub(super) fn carry_out(job: &LmbenchJob, context: &PersonalityContext) -> Result<u8> {
    job.source.as_ref().map_or(Ok(()), check_source_file)?;
    let notes = notes(job);
    if job.queries.is_empty() && !context.dry_run {
        let page = LmbenchPage { notes, ..job.page_without_figures() };
        return write_output(&page.output(context.name), context);
    }
    let environment = LmbenchEnvironment::for_directory(job.directory.as_deref())?;
    let (plan, planned) = plan(context.name, job, &environment);
    if context.show_dry_run(&plan) {
        return Ok(0);
    }
    let ReportSaveOutcome { report, saved } = measure_with_progress(plan, environment, context)?;
    let mut page = job.print(&planned, &report);
    page.notes.splice(0..0, notes);
    let code = write_output(&page.output(context.name), context)?;
    saved?;
    // The old program would have been ended by the signal.
    Ok(code.max(u8::from(report.interrupted.is_some())))
}

/// Measures a plan. On a terminal, a line shows progress until the results come. Elsewhere, nothing is written that the
/// original program would not write.
fn measure_with_progress(
    plan: Plan,
    environment: LmbenchEnvironment,
    context: &PersonalityContext,
) -> Result<ReportSaveOutcome> {
    let mut progress = ProgressDisplay::new(latscope_probes::setup_s);
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    if status_width().is_some() {
        observers.push(&mut progress);
    }
    let LmbenchEnvironment { machine, timebase, .. } = environment;
    context.measure_plan(plan, machine, timebase, observers, context.result.as_deref())
}

/// Checks that the file that the original program would have read exists and is long enough. The probe does not read
/// it, but makes a file of its own beside it.
fn check_source_file(source: &LmbenchSourceFile) -> Result<(), CommandLineRefusal> {
    let path = source.path.display();
    match std::fs::metadata(&source.path).map(|found| found.len()) {
        Err(error) => refuse(format!("{path}: {error}")),
        Ok(found) if found < source.at_least => {
            refuse(format!("{path}: it has {found} bytes, {} are asked for", source.at_least))
        }
        Ok(_) => Ok(()),
    }
}

fn notes(job: &LmbenchJob) -> Vec<String> {
    let mut notes = job.notes.clone();
    if job.warmup > OWN_WARMUP {
        notes.push(format!("-W {} has no effect: every point warms up for as long as it needs", job.warmup));
    }
    notes
}

/// Plan for a job with exactly the points asked for, and which of them answers which query.
fn plan(
    name: &str,
    job: &LmbenchJob,
    environment: &LmbenchEnvironment,
) -> (Plan, Vec<Option<(usize, usize)>>) {
    let machine = &environment.machine;
    let mut steps = Vec::new();
    let mut planned = |query: &PointQuery| {
        let request = build_request(name, Some(query), environment);
        let offered =
            planner::plan_probes(&REGISTRY, &[REGISTRY.find_probe(query.probe)?], &request, machine).steps;
        let near = offered.into_iter().flat_map(|mut step| {
            step.stop = scale_stop(step.stop, job.repetitions);
            let points = std::mem::take(&mut step.points).into_iter();
            points.filter_map(move |point| Some((query.distance(&point)?, step.clone(), point)))
        });
        let (_, step, point) = near.min_by_key(|(distance, ..)| *distance)?;
        Some(add_point(&mut steps, step, point))
    };
    let planned = job.queries.iter().map(&mut planned).collect();
    (planner::of_steps(steps, &build_request(name, None, environment), machine), planned)
}

fn build_request(name: &str, query: Option<&PointQuery>, environment: &LmbenchEnvironment) -> RunRequest {
    let values = query.map_or_else(Default::default, |query| {
        query.params.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).collect()
    });
    let directories = environment.directories.clone();
    RunRequest::new(name, PlanInput { values, directories, ..PlanInput::default() })
}

/// Adds a point of a step, unless it is there already. One worker measures all points of an experiment. Returns the
/// index of the step, and the index of the point in it.
fn add_point(steps: &mut Vec<PlanStep>, step: PlanStep, point: MeasurementPoint) -> (usize, usize) {
    let same = |other: &PlanStep| other.name == step.name && other.conditions == step.conditions;
    let index = steps.iter().position(same).unwrap_or_else(|| {
        steps.push(step);
        steps.len() - 1
    });
    let points = &mut steps[index].points;
    let known = points.iter().position(|known| *known == point);
    let place = known.unwrap_or_else(|| {
        points.push(point);
        points.len() - 1
    });
    (index, place)
}

/// Scales samples and time of a stop condition by the repetitions asked for, relative to [`USUAL_REPETITIONS`].
fn scale_stop(stop: Stop, repetitions: Option<u64>) -> Stop {
    let Some(repetitions) = repetitions else { return stop };
    let scale = |value: u64| (value.saturating_mul(repetitions) / USUAL_REPETITIONS).max(1);
    Stop {
        samples: scale(stop.samples),
        events: scale(stop.events),
        batch_ns: stop.batch_ns,
        budget_ns: scale(stop.budget_ns),
        limit_ns: scale(stop.limit_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::super::find_program;
    use super::*;
    use latscope_probes::SurveyProfile;

    #[test]
    fn a_file_that_is_missing_or_too_short_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("XXX");
        let arguments = ["8k", "io_only", path.to_str().unwrap()];
        let job = find_program("bw_file_rd").unwrap().read_call(&PersonalityContext::new(arguments)).unwrap();
        let source = job.source.unwrap();
        assert!(check_source_file(&source).is_err());
        std::fs::write(&path, [0; 100]).unwrap();
        assert!(
            check_source_file(&source)
                .unwrap_err()
                .to_string()
                .ends_with("it has 100 bytes, 8192 are asked for")
        );
        std::fs::write(&path, [0; 8192]).unwrap();
        assert_eq!(check_source_file(&source), Ok(()));
    }

    #[test]
    fn repetitions_scale_samples_and_time() {
        let usual = SurveyProfile::Normal.stop_conditions();
        assert_eq!(scale_stop(usual, None), usual);
        assert_eq!(scale_stop(usual, Some(USUAL_REPETITIONS)), usual);
        let many = scale_stop(usual, Some(2 * USUAL_REPETITIONS));
        assert_eq!(
            (many.samples, many.limit_ns, many.batch_ns),
            (2 * usual.samples, 2 * usual.limit_ns, usual.batch_ns)
        );
        assert_eq!(scale_stop(Stop { samples: 2, ..usual }, Some(1)).samples, 1);
    }

    #[test]
    fn a_long_warm_up_is_noted_and_a_short_one_is_not() {
        let notes_of = |warmup: &str| {
            notes(
                &find_program("lat_pipe")
                    .unwrap()
                    .read_call(&PersonalityContext::new(["-W", warmup]))
                    .unwrap(),
            )
        };
        assert_eq!(notes_of("5"), Vec::<String>::new());
        assert_eq!(notes_of("10000").len(), 1);
    }
}
