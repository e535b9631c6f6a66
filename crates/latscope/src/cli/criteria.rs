//! Criteria: what is asked of a result, and the exit code that comes of it.

use super::exit::{self, CommandExit};
use super::options::{Registered, word_parser};
use clap::builder::TypedValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use latscope_core::quality::{NO_PEER, NO_VALID_REPLY};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::format_share;
use latscope_core::word::Meaning;
use latscope_engine::outliers::FAILED_ACTIONS;
use latscope_judge::verdict::{self, CallShareKind, CriterionError, Metric, MetricCriterion, QUANTILES};
use latscope_views::{measured_part, unmet};

pub const HEADING: &str = "Criteria (exit code 2 or 3)";

/// Criteria of the result: an option for each quantile, for the maximum, for missed events if there can be such, and
/// for what can happen to messages; and the option that ends the run when a criterion does not hold.
#[derive(Debug, Clone)]
pub struct Criteria<const MISSED: bool, const MESSAGES: bool = false> {
    criteria: Vec<MetricCriterion>,
    /// True if the run ends when a criterion is exceeded.
    pub stop: bool,
}

/// The option that ends a run when a criterion is exceeded.
const STOP: &str = "stop_when_exceeded";

/// Criteria of messages to another operating system.
const OF_MESSAGES: [Meaning; 6] = [
    ("losses", "No more messages may be lost: without a reply within the timeout"),
    ("mismatches", "No more replies may have another content or length than was sent"),
    ("duplicates", "No more replies may come again"),
    ("reorderings", "No more replies may come after one to a later message"),
    ("faults", "No more faults of the protocol may be seen"),
    ("late", "No more replies may come after their timeout"),
];

impl<const MISSED: bool, const MESSAGES: bool> Criteria<MISSED, MESSAGES> {
    fn of_time() -> impl Iterator<Item = &'static str> {
        let missed = MISSED.then_some("missed");
        std::iter::once("max").chain(missed).chain(QUANTILES.iter().map(|quantile| quantile.name))
    }

    fn of_messages() -> impl Iterator<Item = Meaning> {
        OF_MESSAGES.into_iter().filter(|_| MESSAGES)
    }

    /// Returns the criteria, with the further criterion that no event is above the threshold.
    pub fn with_threshold(&self, threshold: Option<u64>) -> Vec<MetricCriterion> {
        let threshold =
            threshold.map(|threshold| MetricCriterion { metric: Metric::Threshold, limit: threshold as f64 });
        self.criteria.iter().cloned().chain(threshold).collect()
    }
}

impl<const MISSED: bool, const MESSAGES: bool> Criteria<MISSED, MESSAGES> {
    /// Names of all criteria.
    fn criterion_names() -> impl Iterator<Item = &'static str> {
        Self::of_time().chain(Self::of_messages().map(|(name, _)| name))
    }

    /// Adds an option for each criterion.
    fn limits(command: Command) -> Command {
        let help = |name: &str| match QUANTILES.iter().find(|quantile| quantile.name == name) {
            Some(quantile) => {
                format!("At most {} of the events may take longer", format_share(quantile.above))
            }
            None if name == "max" => "No event may take longer".to_owned(),
            None => "No more activations may be missed".to_owned(),
        };
        command
            .args(Self::of_time().map(|name| criterion(name, help(name))))
            .args(Self::of_messages().map(|(name, help)| criterion(name, help.to_owned())))
    }
}

impl<const MISSED: bool, const MESSAGES: bool> Registered for Criteria<MISSED, MESSAGES> {
    fn add_options(command: Command) -> Command {
        Self::limits(command).arg(
            Arg::new(STOP)
                .long("stop-when-exceeded")
                .action(ArgAction::SetTrue)
                .help("End the run when a criterion is exceeded")
                .help_heading(HEADING),
        )
    }

    fn read_options(matches: &ArgMatches) -> Self {
        let criteria = Self::criterion_names().filter_map(|name| matches.get_one(name).cloned()).collect();
        Criteria { criteria, stop: matches.get_flag(STOP) }
    }
}

/// The option of a criterion: a time, or the most that a number may be.
fn criterion(name: &'static str, help: String) -> Arg {
    let counts = name == "missed" || OF_MESSAGES.iter().any(|(known, _)| *known == name);
    let arg = Arg::new(name).long(name).value_name(if counts { "N" } else { "T" });
    arg.value_parser(move |text: &str| MetricCriterion::parse(name, text)).help(help).help_heading(HEADING)
}

/// Criteria by which a saved result is judged: all that the commands that measure have.
#[derive(Debug, Clone)]
pub struct Judging(Vec<MetricCriterion>);

impl Judging {
    /// Ids of the options.
    pub fn option_ids() -> impl Iterator<Item = &'static str> {
        AllCriteria::criterion_names().chain([SYNC, INHERITS])
    }

    /// Judges a result by the criteria, if there are any: its own no longer count.
    pub fn apply_criteria(&self, report: &mut Report) {
        if self.0.is_empty() {
            return;
        }
        report.plan.criteria = self.0.iter().map(MetricCriterion::to_plan_criterion).collect();
        report.measurements.iter_mut().for_each(|m| m.verdict = None);
        verdict::judge_report(report, &self.0);
    }
}

impl Registered for Judging {
    fn add_options(command: Command) -> Command {
        let sync = Arg::new(SYNC).long(SYNC).value_name("PERCENT").value_parser(percent);
        let inherits = Arg::new(INHERITS).long(INHERITS).value_name("WHAT,…").value_delimiter(',');
        let inherits =
            inherits.value_parser(word_parser(INHERITED).try_map(inheritance)).action(ArgAction::Append);
        AllCriteria::limits(command).args([
            sync.help(HELP_SYNC).help_heading(HEADING),
            inherits.help(HELP_INHERITS).help_heading(HEADING),
        ])
    }

    fn read_options(matches: &ArgMatches) -> Self {
        let limits = AllCriteria::criterion_names().chain([SYNC]);
        let limits = limits.filter_map(|name| matches.get_one::<MetricCriterion>(name).cloned());
        let inherits = matches.get_many::<MetricCriterion>(INHERITS).into_iter().flatten().cloned();
        Judging(limits.chain(inherits).collect())
    }
}

type AllCriteria = Criteria<true, true>;

const SYNC: &str = "sync";
const INHERITS: &str = "inherits";
const HELP_SYNC: &str = "At least so many % of the calls are served on the caller's CPU";
const HELP_INHERITS: &str =
    "Each call is served at the caller's SCHED_FIFO priority, or nice value, which is given back";

/// What a server may inherit from its caller.
const INHERITED: [Meaning; 2] =
    [("fifo", "the SCHED_FIFO priority of the caller"), ("nice", "the nice value of the caller")];

// What is asked of calls between processes.
#[derive(Debug, Args)]
pub struct CallCriteria {
    #[arg(help = HELP_SYNC, long, value_name = "PERCENT", value_parser = percent, conflicts_with_all = ["throughput", "one_way", "inversion"])]
    sync: Option<MetricCriterion>,
    #[arg(
        help = HELP_INHERITS,
        long,
        value_name = "WHAT,…",
        value_delimiter = ',',
        value_parser = word_parser(INHERITED).try_map(inheritance),
        conflicts_with_all = ["throughput", "one_way", "inversion"]
    )]
    inherits: Vec<MetricCriterion>,
}

impl CallCriteria {
    pub fn all_criteria(&self) -> impl Iterator<Item = MetricCriterion> {
        self.sync.iter().chain(&self.inherits).cloned()
    }
}

fn percent(text: &str) -> Result<MetricCriterion, String> {
    let number = text.trim_end_matches('%').trim_end().parse().ok();
    let share = number.filter(|share| (0.0..=100.0).contains(share));
    let limit = share.ok_or_else(|| "it must be a percentage from 0 to 100".to_owned())?;
    Ok(MetricCriterion { metric: Metric::Share(CallShareKind::Sync), limit })
}

fn inheritance(what: String) -> Result<MetricCriterion, CriterionError> {
    MetricCriterion::new(&format!("inherits-{what}"), 100.0)
}

/// The end of a run, judged or not.
pub fn exit_for_report(report: &Report) -> CommandExit {
    let code = verdict::exit_code(verdict::report_status(report), verdict::is_cut_short(report));
    let failed = report.warnings.iter().find(|warning| FAILED_ACTIONS.contains(&warning.id.as_str()));
    let failed = failed.map(|warning| warning.text.clone()).or_else(|| unanswered(report));
    match failed.filter(|_| code == 0) {
        Some(reason) => CommandExit::Error(reason),
        None => CommandExit::of_code(code, || failure_reason(report)),
    }
}

/// Reason of the first row without a figure since its other side was not there or gave no valid reply.
fn unanswered(report: &Report) -> Option<String> {
    let silent = |m: &&Measurement| {
        let mut reasons = m.quality.reasons.iter();
        // A survey has its own other side, and a round of a row that it may miss on a busy machine.
        let is_wanted = report.plan.job != "survey" || m.summary.count == 0;
        is_wanted && reasons.any(|reason| [NO_PEER, NO_VALID_REPLY].contains(&reason.id.as_str()))
    };
    let m = report.measurements.iter().find(silent)?;
    Some(format!("{}: {}", m.title, m.joined_reasons().unwrap_or_default()))
}

/// The end of showing a result: by its verdict, if it has one.
pub fn of_verdict(report: &Report) -> CommandExit {
    match verdict::report_status(report) {
        Some(status) => {
            let code = verdict::exit_code(Some(status), verdict::is_cut_short(report));
            CommandExit::of_code(code, || failure_reason(report))
        }
        None if report.plan.criteria.is_empty() => CommandExit::Done,
        // What was asked for and has no answer has not passed.
        None => CommandExit::Inconclusive("the criteria of the run were not judged".to_owned()),
    }
}

/// Reason why a report has not passed: the checks with its status, and the early end.
fn failure_reason(report: &Report) -> String {
    let checks = exit::first_of(&unmet(report));
    let early = measured_part(report).map(|text| format!("incomplete: {text}"));
    let parts = Some(checks).filter(|text| !text.is_empty()).into_iter().chain(early);
    let text = parts.collect::<Vec<_>>().join("; ");
    if text.is_empty() { "the run was cut short".to_owned() } else { text }
}
