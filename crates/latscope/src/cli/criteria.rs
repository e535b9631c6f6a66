//! Criteria: what is asked of a result, and the exit code that comes of it.

use super::Exit;
use anyhow::Result;
use clap::{Arg, ArgMatches};
use latscope_core::report::{Report, Status};
use latscope_core::units::format_share;
use latscope_core::verdict::{self, Criterion, QUANTILES};

/// Options that ask something of the result.
pub fn arguments() -> Vec<Arg> {
    let limit = |name: &'static str, value: &'static str, help: String| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Criteria (exit code 2 or 3)")
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

/// The criteria that were asked for, the threshold among them.
///
/// # Errors
/// A limit that is none.
pub fn given(matches: &ArgMatches, threshold: Option<u64>) -> Result<Vec<Criterion>> {
    let names = ["max", "missed"].into_iter().chain(QUANTILES.iter().map(|quantile| quantile.name));
    let mut criteria = Vec::new();
    for name in names {
        if let Some(limit) = matches.try_get_one::<String>(name).ok().flatten() {
            criteria.push(Criterion::parse(name, limit)?);
        }
    }
    if let Some(threshold) = threshold {
        criteria.push(Criterion::new("threshold", threshold as f64)?);
    }
    Ok(criteria)
}

/// The exit code of a report that was judged.
pub fn exit(report: &Report) -> Exit {
    match verdict::report_status(report) {
        Some(Status::Exceeded) => Exit::Exceeded,
        Some(Status::Inconclusive) => Exit::Inconclusive,
        Some(Status::Pass) | None => Exit::Done,
    }
}
