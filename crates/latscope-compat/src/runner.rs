//! Execution of a job: the only part that touches the machine.

use super::arguments::{CallError, USUAL_REPETITIONS};
use super::names::Measured;
use super::{Call, Job, Output, Personality, PointQuery, REFUSED, Source, find, find_tool, names};
use crate::usage::did_you_mean;
use anyhow::{Context, Result, anyhow, bail};
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::{Plan, Point, Step, Stop};
use latscope_engine::observers::{Observer, Progress};
use latscope_engine::planner::{self, Request};
use latscope_host::machine::{self, Root};
use latscope_host::stdout;
use latscope_host::terminal::status_width;
use latscope_probes::REGISTRY;
use latscope_probes::file::directory;
use latscope_probes::{Directory, PlanInput};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Preconditions of a measurement, as for latscope's own subcommands.
struct Environment {
    machine: Machine,
    timebase: Timebase,
    directories: Vec<Directory>,
}

impl Environment {
    /// Returns this machine, with the directory in which file probes work.
    fn prepare(directory: Option<&Path>) -> Result<Environment> {
        let (timebase, clock) = Timebase::calibrate();
        let mut machine = machine::snapshot(&Root::real());
        machine.clock = clock;
        let directories = directory.map(directory::resolve).transpose()?.into_iter().collect();
        Ok(Environment { machine, timebase, directories })
    }
}

/// Warm-up that every point gets anyway, in µs. A whole batch is run to find the length of batches.
const OWN_WARMUP: u64 = 250;

/// Options that latscope adds to the original program, which has no long options.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ours {
    /// Value of `--strict-exit`: exit codes of latscope instead of LMbench's.
    strict_exit: bool,
    /// Value of `--json`: the file for the result.
    json: Option<PathBuf>,
}

/// Runs the program `name` with these arguments. For those of LMbench, `--strict-exit` asks for latscope's exit codes,
/// and `--json FILE` also saves the result. All programs take the options in `names.rs`.
///
/// Returns the exit code, after the text has been written.
///
/// # Errors
/// There is no such program, nothing could be started, or the result could not be saved.
pub fn run(name: &str, arguments: &[OsString]) -> Result<u8> {
    let arguments = names::keep(arguments)?;
    if let Some(tool) = find_tool(name) {
        return (tool.run)(&arguments);
    }
    run_on(name, &arguments, Environment::prepare)
}

/// Variant of [`run`] with a function that prepares the environment when something is to be measured.
fn run_on(
    name: &str,
    arguments: &[OsString],
    environment: impl FnOnce(Option<&Path>) -> Result<Environment>,
) -> Result<u8> {
    let personality = find(name).ok_or_else(|| unknown(name))?;
    let (ours, arguments) = split(arguments)?;
    let call = Call { arguments, scheduling: std::env::var("LMBENCH_SCHED").ok() };
    let (output, failure) = match carry_out(personality, &call, ours.json.as_deref(), environment) {
        Ok(outcome) => outcome,
        Err(error) => match error.downcast::<CallError>() {
            Ok(refusal) => (personality.answer(&refusal), None),
            Err(error) => return Err(error),
        },
    };
    stdout::print(&output.stdout);
    // Results go there: who loses them has failed.
    std::io::stderr().write_all(output.stderr.as_bytes())?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(if ours.strict_exit { output.exit_code.min(1) } else { output.exit_code }),
    }
}

fn unknown(name: &str) -> anyhow::Error {
    if let Some(refused) = REFUSED.iter().find(|refused| refused.name == name) {
        return anyhow!("{name} has no stand-in: {}", refused.instead);
    }
    let near = did_you_mean(name, super::all().map(|(name, _)| name));
    anyhow!("{name} is none of the programs latscope stands in for{near} (see `latscope as --help`)")
}

fn split(arguments: &[OsString]) -> Result<(Ours, Vec<OsString>)> {
    let mut ours = Ours::default();
    let mut theirs = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == OsStr::new("--strict-exit") {
            ours.strict_exit = true;
        } else if argument == OsStr::new("--json") {
            ours.json = Some(rest.next().context("--json needs a file")?.into());
        } else {
            theirs.push(argument.clone());
        }
    }
    Ok((ours, theirs))
}

fn carry_out(
    personality: &Personality,
    call: &Call,
    json: Option<&Path>,
    environment: impl FnOnce(Option<&Path>) -> Result<Environment>,
) -> Result<(Output, Option<anyhow::Error>)> {
    let mut job = (personality.parse)(call)?;
    job.source.as_ref().map_or(Ok(()), check)?;
    let notes = notes(&job);
    if job.queries.is_empty() && !names::is_dry_run() {
        let page = super::Page { notes, ..Default::default() };
        return Ok((page.output(personality.name), None));
    }
    let environment = environment(job.directory.as_deref())?;
    let plan = plan(personality.name, &mut job, &environment);
    if names::shows(&plan) {
        return Ok((Output::default(), None));
    }
    let Measured { report, saved } = measure(plan, environment, json)?;
    let mut page = job.print(&report);
    page.notes.splice(0..0, notes);
    let mut output = page.output(personality.name);
    // The old program would have been ended by the signal.
    output.exit_code = output.exit_code.max(u8::from(report.interrupted.is_some()));
    Ok((output, saved.err()))
}

/// Measures a plan. On a terminal, a line shows progress until the results come. Elsewhere, nothing is written that the
/// original program would not write.
fn measure(plan: Plan, environment: Environment, json: Option<&Path>) -> Result<Measured> {
    let mut progress = Progress::new(latscope_probes::setup_s);
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    if status_width().is_some() {
        observers.push(&mut progress);
    }
    names::measure(plan, environment.machine, environment.timebase, observers, json)
}

/// Checks that the file that the original program would have read exists and is long enough. The probe does not read
/// it, but
/// makes a file of its own beside it.
fn check(source: &Source) -> Result<()> {
    let path = source.path.display();
    let found = std::fs::metadata(&source.path)
        .map_err(|error| anyhow!(CallError::Refused(format!("{path}: {error}"))))?;
    if found.len() < source.at_least {
        bail!(CallError::Refused(format!(
            "{path}: it has {} bytes, {} are asked for",
            found.len(),
            source.at_least
        )));
    }
    Ok(())
}

fn notes(job: &Job) -> Vec<String> {
    let mut notes = job.notes.clone();
    if job.warmup > OWN_WARMUP {
        notes.push(format!("-W {} has no effect: every point warms up for as long as it needs", job.warmup));
    }
    notes
}

/// Plan for a job with exactly the points asked for. The job records which point answers which query.
fn plan(name: &str, job: &mut Job, environment: &Environment) -> Plan {
    let machine = &environment.machine;
    let mut steps = Vec::new();
    let mut planned = |query: &PointQuery| {
        let request = request(name, Some(query), environment);
        let offered = planner::plan(&REGISTRY, &[REGISTRY.find(query.probe)?], &request, machine).steps;
        let near = offered.into_iter().flat_map(|mut step| {
            step.stop = scaled(step.stop, job.repetitions);
            let points = std::mem::take(&mut step.points).into_iter();
            points.filter_map(move |point| Some((query.distance(&point)?, step.clone(), point)))
        });
        let (_, step, point) = near.min_by_key(|(distance, ..)| *distance)?;
        Some(add(&mut steps, step, point))
    };
    job.planned = job.queries.iter().map(&mut planned).collect();
    planner::of_steps(steps, &request(name, None, environment), machine)
}

fn request(name: &str, query: Option<&PointQuery>, environment: &Environment) -> Request {
    let values = query.map_or_else(Default::default, |query| {
        query.params.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).collect()
    });
    let directories = environment.directories.clone();
    Request::new(name, PlanInput { values, directories, ..PlanInput::default() })
}

/// Adds a point of a step, unless it is there already. One worker measures all points of an experiment. Returns the
/// index of the step, and the index of the point in it.
fn add(steps: &mut Vec<Step>, step: Step, point: Point) -> (usize, usize) {
    let same = |other: &Step| other.name == step.name && other.conditions == step.conditions;
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
fn scaled(stop: Stop, repetitions: Option<u64>) -> Stop {
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
    use super::*;
    use latscope_probes::Profile;
    use std::ffi::OsString;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn no_ground(_: Option<&Path>) -> Result<Environment> {
        bail!("nothing is to be measured")
    }

    #[test]
    fn options_of_ours_are_taken_out_wherever_they_stand() {
        let (ours, theirs) = split(&words(&["-P", "1", "--strict-exit", "null", "--json", "F"])).unwrap();
        assert_eq!(ours, Ours { strict_exit: true, json: Some("F".into()) });
        assert_eq!(theirs, words(&["-P", "1", "null"]));
        assert!(split(&words(&["--json"])).is_err());
    }

    #[test]
    fn exit_codes_are_lmbenchs_unless_ours_are_asked_for() {
        assert_eq!(run_on("lat_syscall", &words(&["nonsense"]), no_ground).unwrap(), 255);
        assert_eq!(run_on("lat_syscall", &words(&["nonsense", "--strict-exit"]), no_ground).unwrap(), 1);
        assert_eq!(run_on("lat_pipe", &words(&["-P", "2"]), no_ground).unwrap(), 1);
        assert_eq!(run_on("bw_tcp", &words(&["-s"]), no_ground).unwrap(), 0);
    }

    #[test]
    fn what_has_no_stand_in_names_what_there_is() {
        let refused = run_on("lat_usleep", &[], no_ground).unwrap_err().to_string();
        assert!(refused.contains("latscope wake"), "{refused}");
        let unknown = run_on("lat_mem", &[], no_ground).unwrap_err().to_string();
        assert!(unknown.contains("did you mean lat_mem_rd?"), "{unknown}");
    }

    #[test]
    fn a_file_that_is_missing_or_too_short_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("XXX");
        let arguments = words(&["8k", "io_only", path.to_str().unwrap()]);
        assert_eq!(run_on("bw_file_rd", &arguments, no_ground).unwrap(), 1);
        std::fs::write(&path, [0; 100]).unwrap();
        assert_eq!(run_on("bw_file_rd", &arguments, no_ground).unwrap(), 1);
        std::fs::write(&path, [0; 8192]).unwrap();
        let environment = run_on("bw_file_rd", &arguments, no_ground).unwrap_err().to_string();
        assert!(environment.contains("nothing is to be measured"), "{environment}");
    }

    #[test]
    fn repetitions_scale_samples_and_time() {
        let usual = Profile::Normal.stop();
        assert_eq!(scaled(usual, None), usual);
        assert_eq!(scaled(usual, Some(USUAL_REPETITIONS)), usual);
        let many = scaled(usual, Some(2 * USUAL_REPETITIONS));
        assert_eq!(
            (many.samples, many.limit_ns, many.batch_ns),
            (2 * usual.samples, 2 * usual.limit_ns, usual.batch_ns)
        );
        assert_eq!(scaled(Stop { samples: 2, ..usual }, Some(1)).samples, 1);
    }

    #[test]
    fn a_long_warm_up_is_noted_and_a_short_one_is_not() {
        let notes_of =
            |warmup: &str| notes(&(find("lat_pipe").unwrap().parse)(&Call::new(["-W", warmup])).unwrap());
        assert_eq!(notes_of("5"), Vec::<String>::new());
        assert_eq!(notes_of("10000").len(), 1);
    }
}
