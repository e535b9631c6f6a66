//! Criteria: what is asked of a result, and the exit code that comes of it.

use super::Exit;
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches};
use latscope_core::report::Report;
use latscope_core::units::format_share;
use latscope_engine::outliers::FAILED_ACTIONS;
use latscope_judge::verdict::{self, Criterion, QUANTILES};

const HEADING: &str = "Criteria (exit code 2 or 3)";

/// Options that ask something of the result.
pub fn arguments() -> Vec<Arg> {
    let limit = |name: &'static str, value: &'static str, help: String| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading(HEADING)
    };
    let mut arguments = vec![
        limit("max", "T", "No event may take longer".to_owned()),
        limit("missed", "N", "No more activations may be missed".to_owned()),
    ];
    arguments.extend(QUANTILES.iter().map(|quantile| {
        let help = format!("At most {} of the events may take longer", format_share(quantile.above));
        limit(quantile.name, "T", help)
    }));
    arguments
}

/// Options that ask for shares of calls between processes.
pub fn of_calls() -> Vec<Arg> {
    let heading =
        |arg: Arg| arg.help_heading(HEADING).conflicts_with_all(["throughput", "one-way", "inversion"]);
    [
        Arg::new("sync")
            .long("sync")
            .value_name("PERCENT")
            .value_parser(percent)
            .help("At least so many % of the calls are served on the caller's CPU"),
        Arg::new("inherits")
            .long("inherits")
            .value_name("WHAT,…")
            .value_delimiter(',')
            .value_parser(["fifo", "nice"])
            .help(
                "Each call is served at the caller's SCHED_FIFO priority, or nice value, which is given back",
            ),
    ]
    .map(heading)
    .into()
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|share| (0.0..=100.0).contains(share))
        .ok_or_else(|| "it must be a percentage from 0 to 100".to_owned())
}

/// The criteria of [`of_calls`] that were asked for.
///
/// # Errors
/// A limit that is none.
pub fn given_of_calls(matches: &ArgMatches) -> Result<Vec<Criterion>> {
    let inherits = matches.get_many::<String>("inherits").into_iter().flatten();
    let inherits = inherits.map(|what| (format!("inherits-{what}"), 100.0));
    let sync = matches.get_one::<f64>("sync").map(|share| ("sync".to_owned(), *share));
    let criteria = sync.into_iter().chain(inherits).map(|(name, share)| Criterion::new(&name, share));
    Ok(criteria.collect::<Result<_, _>>()?)
}

/// The criteria that were asked for, the threshold among them.
///
/// # Errors
/// A limit that is none.
pub fn given(matches: &ArgMatches, threshold: Option<u64>) -> Result<Vec<Criterion>> {
    let names = ["max", "missed"].into_iter().chain(QUANTILES.iter().map(|quantile| quantile.name));
    let mut criteria = Vec::new();
    for name in names {
        if let Some(limit) = matches.try_get_one::<String>(name).ok().flatten() {
            criteria.push(Criterion::parse(name, limit).with_context(|| format!("--{name} {limit}"))?);
        }
    }
    if let Some(threshold) = threshold {
        criteria.push(Criterion::new("threshold", threshold as f64)?);
    }
    Ok(criteria)
}

/// The exit code of a run, judged or not.
pub fn exit(report: &Report) -> Exit {
    let code = verdict::exit_code(verdict::report_status(report), verdict::is_cut_short(report));
    let failed = report.warnings.iter().any(|warning| FAILED_ACTIONS.contains(&warning.id.as_str()));
    let code = if failed && code == 0 { Exit::Error as u8 } else { code };
    let exits = [Exit::Done, Exit::Error, Exit::Exceeded, Exit::Inconclusive];
    exits.into_iter().find(|exit| *exit as u8 == code).expect("there are four codes")
}
