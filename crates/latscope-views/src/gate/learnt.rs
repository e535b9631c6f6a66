//! A budget that was learnt, as its file, with what each limit rests on.

use crate::comparison::runs;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::units::{counted, format_time, three_digits};
use latscope_judge::gate::{ENOUGH, Learnt, LearntLimit, LearntPoint, NoLimit, Spread};
use std::collections::BTreeMap;

/// Maximum number of points without limits that are named for one reason.
const NAMED: usize = 3;

/// The file, in TOML.
pub fn budget(learnt: &Learnt, version: &str) -> String {
    let mut out = head(learnt, version);
    learnt.points.iter().for_each(|one| out += &point(one));
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (title, why) in &learnt.left_out {
        by_reason.entry(why).or_default().push(title);
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
    out += "# Each limit is followed by the figures of these runs and the factor from the largest figure to the limit. The factor\n\
            # covers what a single run cannot tell, and the scatter of runs: 1 % of further figures exceed the limit. It is at\n\
            # least 1.25, for a maximum 1.5; no limit with a factor above 2 is written.\n\
            # runs = \"most\": exceeded if most results exceed it.\n";
    if let Some(fewest) = learnt.points.iter().map(|point| point.runs).min().filter(|runs| *runs < ENOUGH) {
        out += &comment(&few_runs(fewest));
    }
    for (name, values) in [("machine", &basis.names), ("cpu_model", &basis.cpu_models)] {
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        if !values.is_empty() {
            out += &format!("{name} = [{}]\n", values.join(", "));
        }
    }
    out
}

/// The warning of a budget from few runs of a measurement.
pub fn few_runs(fewest: usize) -> String {
    format!(
        "Warning: learnt from {} of a measurement: further runs will exceed some limits. Learn from {ENOUGH} or more.",
        counted(fewest as u64, "run")
    )
}

fn point(point: &LearntPoint) -> String {
    let mut out = format!(
        "\n{}[[limit]]\n",
        comment(&format!("{}: {}", point.title, counted(point.samples, "sample")))
    );
    out += &format!("probe = {}\n", quoted(&point.probe));
    out += &format!("revision = {}\n", point.revision);
    if !point.params.is_empty() {
        out += &format!("where = {}\n", params(&point.params));
    }
    if point.limits.iter().any(|limit| limit.spread != Spread::Exact) {
        out += "runs = \"most\"\n";
    }
    point.limits.iter().for_each(|one| out += &limit(one));
    for (metric, why) in &point.without {
        out += &comment(&format!("no limit of {metric}: {}", reason(*why)));
    }
    out
}

/// Returns why a figure has no limit.
fn reason(why: NoLimit) -> String {
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
        ParamValue::Text(text) => quoted(text),
    };
    let each: Vec<String> =
        params.iter().map(|(name, its)| format!("{} = {}", key(name), value(its))).collect();
    format!("{{ {} }}", each.join(", "))
}

fn limit(limit: &LearntLimit) -> String {
    let margin = three_digits(limit.margin);
    let [low, high] = limit.seen.map(format_time);
    let seen = if low == high { high } else { format!("{low} to {high}") };
    let from = match limit.spread {
        Spread::Exact => return format!("{} = {}\n", limit.metric, limit.limit),
        Spread::Runs(n) => format!("from {n} runs"),
        Spread::Rounds(n) => format!("from {n} rounds of one run"),
        Spread::Assumed => "assumed: how far it scatters is not known".to_owned(),
    };
    format!("{} = {} # {seen}, × {margin} {from}\n", limit.metric, quoted(&duration(limit.limit)))
}

/// Returns a duration as a limit, exactly; it has three significant digits.
fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let text = format!("{value:.6}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
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
