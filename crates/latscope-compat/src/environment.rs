//! Preconditions of a run: the machine, its clock, and the rights of this process.

use crate::context::PersonalityContext;
use crate::getopt::CommandLineRefusal;
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::{Action, MeasurementPoint, OnThreshold, Params, Plan, PlanStep, Stop};
use latscope_core::quality::{HALTED, NOT_RUN, QualityLevel};
use latscope_core::report::{LinearRecord, Measurement, Report, VerdictStatus};
use latscope_core::units::fold_cpus;
use latscope_engine::planner::{self, RunRequest};
use latscope_judge::verdict;
use latscope_machine::SystemRoot;
use latscope_os::sched;
use latscope_probes::{PlanInput, SurveyProfile};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};

/// This machine, with a calibrated clock.
pub fn snapshot_machine() -> (Machine, Timebase) {
    let (timebase, clock) = Timebase::calibrate();
    let mut machine = latscope_machine::snapshot(&SystemRoot::real());
    machine.clock = clock;
    (machine, timebase)
}

/// Checks that threads of this process may have this real-time priority. Raises the limit of the process as far as that
/// is allowed.
///
/// # Errors
/// Threads of this process may not have this priority.
pub(crate) fn may_be_real_time(priority: u32) -> Result<(), CommandLineRefusal> {
    let limit = getrlimit(Resource::Rtprio);
    if limit.current.is_some_and(|current| current < u64::from(priority)) {
        // Refused or not, the trial below tells.
        let _ = setrlimit(Resource::Rtprio, Rlimit { current: limit.maximum, ..limit });
    }
    let tried = sched::set_policy(sched::ThreadSchedPolicy::Fifo(priority));
    let back = sched::set_policy(sched::ThreadSchedPolicy::Other);
    tried.and(back).map_err(|error| {
        CommandLineRefusal::Fatal(format!(
            "Unable to change scheduling policy! ({error})\nProbably missing capabilities, either run as root or \
             increase RLIMIT_RTPRIO limits."
        ))
    })
}

/// The directory of the trace that the user records.
///
/// # Errors
/// No trace can be written to.
pub(crate) fn trace_directory() -> Result<PathBuf, CommandLineRefusal> {
    let usual = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    let writable =
        |path: &&&Path| std::fs::OpenOptions::new().write(true).open(path.join("trace_marker")).is_ok();
    usual.iter().find(writable).map(|path| path.to_path_buf()).ok_or_else(|| {
        let remedy = "as root, run `mount -t tracefs nodev /sys/kernel/tracing`";
        CommandLineRefusal::Fatal(format!(
            "FATAL: the trace cannot be marked, for there is none to be written: {remedy}"
        ))
    })
}

/// Plan of one step under the name of the program. With a limit, the first event above the limit ends the run and marks
/// the user's trace.
pub(crate) fn plan_single_step(
    step: PlanStep,
    name: &str,
    limited: bool,
    trace: Option<&Path>,
    machine: &Machine,
) -> Plan {
    let mark = trace.map(|path| Action::MarkTrace(path.to_owned()));
    let actions = mark.into_iter().chain([Action::Stop]).collect();
    let on_threshold = limited.then(|| OnThreshold { actions, ..OnThreshold::default() });
    let request = RunRequest { on_threshold, ..RunRequest::new(name, PlanInput::default()) };
    planner::of_steps(vec![step], &request, machine)
}

/// Prints the [`outline`] of one point if a plan is to be shown. Returns true if it did.
pub(crate) fn show_outline(
    context: &PersonalityContext,
    probe: &str,
    title: String,
    duration: Option<u64>,
) -> bool {
    context.dry_run
        && context.show_dry_run(&outline(context.name, probe, vec![title], duration, &snapshot_machine().0))
}

/// Plan to show for a program that has threads and processes of its own: a point for each title.
pub(crate) fn outline(
    name: &str,
    probe: &str,
    titles: Vec<String>,
    duration: Option<u64>,
    machine: &Machine,
) -> Plan {
    let (revision, params, row) = (1, Params::new(), false);
    let point =
        |title| MeasurementPoint { probe: probe.to_owned(), revision, params: params.clone(), title, row };
    let points = titles.into_iter().map(point).collect();
    let stop = Stop { limit_ns: duration.unwrap_or(u64::MAX), ..SurveyProfile::Normal.stop_conditions() };
    plan_single_step(PlanStep::new(name, points, machine.allowed.0.clone(), stop), name, false, None, machine)
}

/// Checks that this process can keep the machine from deep sleep, which needs a right.
pub(crate) fn may_hold_latency() -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").map(drop)
}

/// First event above the threshold: the index of its measurement, and its length in ns.
pub(crate) fn first_exceedance(measured: &[Measurement]) -> Option<(usize, u64)> {
    let first = |(index, m): (usize, &Measurement)| {
        let first = m.recordings.as_ref()?.exceedances.first()?;
        Some((first.at, index, first.value))
    };
    measured.iter().enumerate().filter_map(first).min().map(|(_, index, ns)| (index, ns))
}

/// Exit code by latscope's own rules, for `--strict-exit`: a limit counts as a criterion. Without one the call asked
/// for figures of its threads, which a run that stood still, or one without a CPU, does not have.
pub(crate) fn strict_exit(limited: bool, exceeded: bool, report: &Report) -> u8 {
    let doubtful = report.measurements.iter().any(|m| m.quality.level != QualityLevel::Ok);
    let status = match (exceeded, doubtful) {
        (true, _) => VerdictStatus::Exceeded,
        (false, true) => VerdictStatus::Inconclusive,
        (false, false) => VerdictStatus::Pass,
    };
    let stood =
        |m: &Measurement| m.quality.reasons.iter().any(|reason| [HALTED, NOT_RUN].contains(&&*reason.id));
    let unlimited = report.measurements.iter().any(stood).then_some(VerdictStatus::Inconclusive);
    verdict::exit_code(if limited { Some(status) } else { unlimited }, verdict::is_cut_short(report))
}

/// Exact histograms that the call asked for, one for each measurement.
pub fn linear(measured: &[Measurement]) -> Vec<LinearRecord> {
    let record = |m: &Measurement| m.recordings.as_ref().and_then(|recordings| recordings.linear.clone());
    measured.iter().map(|m| record(m).unwrap_or_default()).collect()
}

/// Texts about measurements that are degraded or missing, with remedies; each text once.
pub fn describe_doubts(measurements: &[Measurement]) -> Vec<String> {
    let doubt = |m: &Measurement| {
        let reason = m.joined_reasons().clone().filter(|_| m.quality.level != QualityLevel::Ok)?;
        let remedy = remedy_text(m).map(|remedy| format!(" ({remedy})")).unwrap_or_default();
        let kind = if m.quality.level.is_doubtful() { "degraded" } else { "not measured" };
        Some(format!("{kind}: {reason}{remedy}"))
    };
    fold_cpus(measurements.iter().filter_map(doubt))
}

/// Prints how far the measurements can be trusted. Returns false if one did not take place.
///
/// A run that ends before its first event counts as one that took place. A thread that could not begin does not.
pub(crate) fn print_doubts(context: &PersonalityContext, measured: &[Measurement]) -> bool {
    describe_doubts(measured).iter().for_each(|doubt| context.print_note(doubt));
    !measured.iter().all(|m| m.quality.level == QualityLevel::Unsupported && m.incomplete)
}

/// Remedy of a measurement, without options of latscope, which the older tools lack: `choose a smaller size`.
pub(crate) fn remedy_text(measurement: &Measurement) -> Option<String> {
    Some(without_options(measurement.joined_remedies().as_ref()?))
}

fn without_options(remedy: &str) -> String {
    let (mut text, mut rest) = (String::new(), remedy);
    while let Some((before, (inside, after))) =
        rest.split_once(" (").and_then(|(before, tail)| Some((before, tail.split_once(')')?)))
    {
        let kept: Vec<&str> = inside.split(", ").filter(|part| !part.starts_with("--")).collect();
        text += &before.replace(" --", " ");
        if !kept.is_empty() {
            text += &format!(" ({})", kept.join(", "));
        }
        rest = after;
    }
    text + &rest.replace(" --", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_name_no_option() {
        for (ours, theirs) in [
            ("choose a smaller --size, or free memory", "choose a smaller size, or free memory"),
            ("choose a directory on a disk (--dir)", "choose a directory on a disk"),
            (
                "allow a second CPU (--cpus, taskset, the cpuset), now",
                "allow a second CPU (taskset, the cpuset), now",
            ),
            ("raise RLIMIT_RTPRIO", "raise RLIMIT_RTPRIO"),
            // An option of another program.
            ("raise the --limit (docker --cpus, CPUQuota=)", "raise the limit (docker --cpus, CPUQuota=)"),
        ] {
            assert_eq!(without_options(ours), theirs);
        }
    }

    #[test]
    fn a_priority_that_cannot_be_is_refused_and_the_policy_stays() {
        let before = sched::policy().unwrap();
        let text = may_be_real_time(100).unwrap_err().to_string();
        assert!(text.starts_with("Unable to change scheduling policy!"), "{text}");
        assert_eq!(sched::policy().unwrap(), before);
    }
}
