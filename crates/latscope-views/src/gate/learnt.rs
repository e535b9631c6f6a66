//! A budget that was learnt, as its file, with what each limit rests on.

use crate::comparison::runs;
use crate::headline::{HeadlineSource, headline};
use latscope_core::catalogue::{ProbeCatalogue, ids};
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::report::Report;
use latscope_core::units::{count_with_noun, format_count, format_time, three_digits};
use latscope_judge::gate::{ENOUGH, Learnt, LearntLimit, LearntPoint, NoLimit, Spread};
use std::collections::BTreeMap;

/// Maximum number of points without limits that are named for one reason.
const NAMED: usize = 3;

/// The file, in TOML.
pub fn budget(learnt: &Learnt, version: &str) -> String {
    let mut out = head(learnt, version);
    learnt.points.iter().for_each(|one| out += &format_point(one));
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for point in &learnt.left_out {
        by_reason.entry(&point.why).or_default().push(&point.title);
    }
    if !by_reason.is_empty() {
        out += "\n# Without a limit:\n";
    }
    for (why, titles) in by_reason {
        let more = titles.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        out += &comment(&format!("{}{more}: {why}", titles[..titles.len().min(NAMED)].join("; ")));
    }
    out
}

fn head(learnt: &Learnt, version: &str) -> String {
    let basis = &learnt.basis;
    let runs = runs(basis.runs, basis.rounds, basis.started.each_ref().map(String::as_str));
    let mut out = comment(&format!("A budget for latscope gate, learnt by latscope {version}."));
    out += &comment(&format!("From {runs}."));
    out += &comment(&format!("Machine: {}.", basis.machines.join("; ")));
    out += &format!(
        "# Each limit is followed by the figures of these runs and the factor from the largest figure to the limit. The factor\n\
         # covers what a single run cannot tell, and the scatter of runs: 1 % of further figures exceed the limit. It is at\n\
         # least {}, for a maximum 1.5; no limit with a factor above 2 is written.\n\
         # runs = \"most\": exceeded if most results exceed it.\n",
        1.0 + learnt.least
    );
    if let Some(fewest) = learnt.points.iter().map(|point| point.runs).min().filter(|runs| *runs < ENOUGH) {
        out += &comment(&few_runs(fewest));
    }
    for (name, values) in [("machine", &basis.names), ("cpu_model", &basis.cpu_models)] {
        let values: Vec<String> = values.iter().map(|value| quote_string(value)).collect();
        if !values.is_empty() {
            out += &format!("{name} = [{}]\n", values.join(", "));
        }
    }
    out
}

/// Returns what a learnt budget limits: how many points, how many numbers of the headline, and the reasons against the
/// rest: `177 of 318 points have a limit; of the 10 headline rows 3; without: L1 (unstable)`.
pub fn learnt_summary(learnt: &Learnt, report: &Report, catalogue: &ProbeCatalogue) -> String {
    let (with, without) = (learnt.points.len() as u64, learnt.left_out.len() as u64);
    let headline = headline(report, catalogue);
    let lacking: Vec<String> = headline
        .iter()
        .filter_map(|one| Some(format!("{} ({})", one.name, lacks(learnt, &one.source)?)))
        .collect();
    let mut text =
        format!("{} of {} have a limit", format_count(with), count_with_noun(with + without, "point"));
    if !headline.is_empty() {
        text += &format!("; of the {} headline rows {}", headline.len(), headline.len() - lacking.len());
    }
    if !lacking.is_empty() {
        text += &format!("; without: {}", lacking.join(", "));
    }
    text
}

/// The reason why a number of the headline has no limit; `None` if it has one.
fn lacks<'a>(learnt: &'a Learnt, source: &HeadlineSource) -> Option<&'a str> {
    let is_of = |probe: &str, params: &Params| match source {
        HeadlineSource::Point(m) => m.probe == probe && m.params == *params,
        HeadlineSource::Level(level) => {
            let sizes = level.sizes.0..=level.sizes.1;
            let is_in = |size: &ParamValue| matches!(size, ParamValue::Number(size) if sizes.contains(size));
            probe == ids::MEMORY_LATENCY && params.get(param::SIZE).is_some_and(is_in)
        }
    };
    let is_limited = learnt.points.iter().any(|point| is_of(&point.probe, &point.params));
    let left = learnt.left_out.iter().find(|point| is_of(&point.probe, &point.params));
    (!is_limited).then(|| left.map_or("not measured", |point| point.why.as_str()))
}

/// Returns a warning if all runs are of one day: limits from them do not cover what differs between days.
pub fn one_day(learnt: &Learnt) -> Option<&'static str> {
    let days = learnt.basis.started.each_ref().map(|time| time.get(..10));
    let is_one = learnt.basis.runs > 1 && days[0].is_some() && days[0] == days[1];
    is_one.then_some("Warning: all runs are of one day. Learn from runs of several days.")
}

/// The warning of a budget from few runs of a measurement.
pub fn few_runs(fewest: usize) -> String {
    format!(
        "Warning: learnt from {} of a measurement: further runs will exceed some limits. Learn from {ENOUGH} or more.",
        count_with_noun(fewest as u64, "run")
    )
}

fn format_point(point: &LearntPoint) -> String {
    let mut out = format!(
        "\n{}[[limit]]\n",
        comment(&format!("{}: {}", point.title, count_with_noun(point.samples, "sample")))
    );
    out += &format!("probe = {}\n", quote_string(&point.probe));
    out += &format!("revision = {}\n", point.revision);
    if !point.params.is_empty() {
        out += &format!("where = {}\n", params(&point.params));
    }
    if point.limits.iter().any(|limit| limit.spread != Spread::Exact) {
        out += "runs = \"most\"\n";
    }
    point.limits.iter().for_each(|one| out += &format_limit(one));
    let learnt = point.limits.iter().filter(|limit| limit.spread != Spread::Exact);
    // Only what is below 1 µs may have a fraction of ns.
    let figure = |ns: f64| format_duration(if ns < 1e3 { ns } else { ns.round() });
    let learnt: Vec<String> =
        learnt.map(|one| format!("{} = {}", one.metric, quote_string(&figure(one.seen[1])))).collect();
    if !learnt.is_empty() {
        out += &format!("learnt = {{ {} }}\n", learnt.join(", "));
    }
    for (metric, why) in &point.without {
        out += &comment(&format!("no limit of {metric}: {}", no_limit_reason(*why)));
    }
    out
}

/// Returns why a figure has no limit.
fn no_limit_reason(why: NoLimit) -> String {
    let range = |seen: [f64; 2]| seen.map(format_time).join(" to ");
    match why {
        NoLimit::NotStated => "a run has too few samples to state it, or did not record it".to_owned(),
        NoLimit::FewRuns(runs, seen) => {
            format!("{runs} runs ({}) are too few to tell how much they scatter", range(seen))
        }
        NoLimit::Scatter([low, high]) if low == high => {
            format!("a single figure ({}) does not tell how much they scatter", format_time(low))
        }
        NoLimit::Scatter(seen) => format!("the figures scatter too much ({})", range(seen)),
    }
}

fn params(params: &Params) -> String {
    let value = |value: &ParamValue| match value {
        ParamValue::Number(number) => number.to_string(),
        ParamValue::Text(text) => quote_string(text),
    };
    let each: Vec<String> =
        params.iter().map(|(name, its)| format!("{} = {}", format_key(name), value(its))).collect();
    format!("{{ {} }}", each.join(", "))
}

fn format_limit(limit: &LearntLimit) -> String {
    let margin = three_digits(limit.margin);
    let [low, high] = limit.seen.map(format_time);
    let seen = if low == high { high } else { format!("{low} to {high}") };
    let from = match limit.spread {
        Spread::Exact => return format!("{} = {}\n", limit.metric, limit.limit),
        Spread::Runs(n) => format!("from {n} runs"),
        Spread::Rounds(n) => format!("from {n} rounds of one run"),
        Spread::Assumed => "assumed: how far it scatters is not known".to_owned(),
    };
    format!(
        "{} = {} # {seen}, × {margin} {from}\n",
        limit.metric,
        quote_string(&format_duration(limit.limit))
    )
}

/// Returns a duration as a limit, exactly; it has three significant digits.
fn format_duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let text = format!("{value:.6}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn format_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quote_string(name) }
}

/// A text as TOML has it.
fn quote_string(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\u{1f}' | '\u{7f}' => out += &format!("\\u{:04X}", u32::from(c)),
            _ => out.push(c),
        }
    }
    out + "\""
}

/// A line of comment, whatever is in the text.
fn comment(text: &str) -> String {
    format!("# {}\n", text.replace(|c: char| c.is_control(), " "))
}
