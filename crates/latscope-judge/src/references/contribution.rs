//! This machine's figures as a file of references.

use super::{ALL_PAIRS, NO_LOAD};
use crate::findings::{LevelRow, level_rows};
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::report::{Measurement, Report, Semantics};
use latscope_core::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

/// Parameters that name a place on this machine, which says nothing about the operation.
const PLACES: [&str; 4] = [param::DIRECTORY, param::DEVICE, param::FILESYSTEM, param::SERVICE];

/// Checks of the machine whose findings decide how long operations take. Others may name what is private.
const DECISIVE: [&str; 10] = [
    "governor",
    "boost",
    "smt",
    "idle-states",
    "mitigations",
    "preemption",
    "transparent-huge-pages",
    "timer-tick",
    "numa-balancing",
    "virtualised",
];

/// Returns the figures of a result as a file of references: levels of memory, rows of the survey's table, and the
/// median over all pairs of CPUs. It has facts on the machine, not its name. Degraded and unstable figures are left
/// out.
pub fn contribution(report: &Report) -> String {
    let processor = match report.machine.cpu_model.trim() {
        "" => "unknown processor",
        model => model,
    };
    let virtual_on = report.machine.hypervisor.as_ref().map(|name| format!(", virtual ({name})"));
    let machine = format!("{processor}{}", virtual_on.unwrap_or_default());
    let mut out = format!("title = {}\n", quote_toml(&format!("latscope on {machine}")));
    out += "at = \"contributed; write here where the file can be found\"\n\n[facts]\n";
    for (name, fact) in facts(report) {
        out += &format!("{} = {}\n", quote_toml(&name), quote_toml(&fact));
    }
    // The text of a command may name what is private.
    let load = report
        .plan
        .load
        .as_ref()
        .map(|load| load.name_and_description().map_or("a command", |(name, _)| name));
    out += "\n[defaults]\nunit = \"ns\"\nstatistic = \"median\"\n";
    out += &format!(
        "load = {}\ntool = \"latscope\"\nversion = {}\n",
        quote_toml(load.unwrap_or(NO_LOAD)),
        quote_toml(&report.tool.version)
    );
    let date: String = report.started.chars().take(10).collect();
    out += &format!("date = {}\n", quote_toml(if date.is_empty() { "not stated" } else { &date }));
    for figure in level_figures(report).into_iter().chain(row_figures(report)).chain(pair_figures(report)) {
        out += &figure.format_entry(&machine);
    }
    out
}

/// Figure of a row.
struct ContributionFigure {
    name: String,
    ns: f64,
    times: Semantics,
    row: String,
    /// True if it is the median over all pairs of CPUs of the mean of each, half the round trip.
    of_all_pairs: bool,
}

impl ContributionFigure {
    fn format_entry(&self, machine: &str) -> String {
        let times = if self.of_all_pairs { "half the round trip" } else { self.times.display_name() };
        let mut out = format!("\n[[figure]]\nname = {}\ntimes = \"{times}\"\n", quote_toml(&self.name));
        if self.of_all_pairs {
            out += &format!("factor = 2\nstatistic = \"mean\"\nover = \"{ALL_PAIRS}\"\n");
        }
        out + &format!(
            "row = {}\nmachines = {{ {} = {} }}\n",
            self.row,
            quote_toml(machine),
            round_digits(self.ns)
        )
    }
}

/// Four significant digits: more are of no use.
fn round_digits(ns: f64) -> f64 {
    let digits = 10f64.powi(3 - ns.log10().floor() as i32);
    (ns * digits).round() / digits
}

fn facts(report: &Report) -> BTreeMap<String, String> {
    let machine = &report.machine;
    let texts = [
        ("processor", machine.cpu_model.clone()),
        ("architecture", machine.architecture.clone()),
        ("kernel", format!("{} {}", machine.kernel, machine.kernel_version)),
        ("microcode", machine.microcode.clone().unwrap_or_default()),
        ("hypervisor", machine.hypervisor.clone().unwrap_or_default()),
        ("scheduler", machine.scheduler.clone().unwrap_or_default()),
        ("cpus", machine.online.0.len().to_string()),
        ("memory-bytes", machine.memory.to_string()),
    ];
    let decisive = machine.checks.iter().filter(|check| DECISIVE.contains(&check.id.as_str()));
    let checks = decisive.map(|check| (format!("check-{}", check.id), check.found.clone()));
    let named = texts.map(|(name, fact)| (name.to_owned(), fact)).into_iter().chain(checks);
    let is_of_machine = |fact: &String| machine.name.is_empty() || !fact.contains(&machine.name);
    named.filter(|(_, fact)| !fact.trim().is_empty() && is_of_machine(fact)).collect()
}

fn level_figures(report: &Report) -> Vec<ContributionFigure> {
    let is_sure = |level: &LevelRow| !level.quality.level.is_doubtful() && level.within.is_none();
    let trusted = level_rows(report).into_iter().filter(is_sure);
    let figure = |level: LevelRow| ContributionFigure {
        name: level.read_title(),
        ns: level.ns,
        times: Semantics::Operation,
        row: format!("{{ level = {} }}", quote_toml(&level.name)),
        of_all_pairs: false,
    };
    trusted.map(figure).collect()
}

/// The rows of the table; of those that differ in their place only, the first.
fn row_figures(report: &Report) -> Vec<ContributionFigure> {
    let mut seen = BTreeSet::new();
    let mut figures = Vec::new();
    for m in report.measurements.iter().filter(|m| m.row && is_trusted(m)) {
        let mut params = m.params.clone();
        params.retain(|name, _| !PLACES.contains(&name.as_str()));
        let Some(ns) = m.typical().filter(|ns| *ns > 0.0) else { continue };
        let row = format_point(&m.probe, &params);
        if seen.insert(row.clone()) {
            let name = if m.title.is_empty() { m.probe.clone() } else { m.title.clone() };
            figures.push(ContributionFigure { name, ns, times: m.times, row, of_all_pairs: false });
        }
    }
    figures
}

/// For each probe of pairs and its other parameters, the median over the pairs, if all could be measured.
fn pair_figures(report: &Report) -> Vec<ContributionFigure> {
    let cpus = report.machine.allowed.0.len();
    let mut found: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
    for m in report.measurements.iter().filter(|m| m.times == Semantics::RoundTrip && m.cpu_pair().is_some())
    {
        let mut params = m.params.clone();
        params.remove(param::PAIR);
        found.entry(format_point(&m.probe, &params)).or_default().push(m);
    }
    let whole = found.into_iter().filter(|(_, all)| {
        all.len() == cpus * cpus.saturating_sub(1) / 2 && all.iter().all(|m| is_trusted(m))
    });
    let figure = |(row, all): (String, Vec<&Measurement>)| {
        let means: Vec<f64> = all.iter().filter_map(|m| m.summary.mean).collect();
        let name = all.first()?.probe.split_once('.')?.1.replace('-', " ");
        Some(ContributionFigure {
            name,
            ns: median(&means)? / 2.0,
            times: Semantics::RoundTrip,
            row,
            of_all_pairs: true,
        })
    };
    whole.filter_map(figure).collect()
}

fn is_trusted(m: &Measurement) -> bool {
    m.typical().is_some() && !m.quality.level.is_doubtful() && !m.incomplete
}

fn format_point(probe: &str, params: &Params) -> String {
    let value = |value: &ParamValue| match value {
        ParamValue::Number(number) => number.to_string(),
        ParamValue::Text(text) => quote_toml(text),
    };
    let params: Vec<String> =
        params.iter().map(|(name, v)| format!("{} = {}", quote_toml(name), value(v))).collect();
    let params =
        if params.is_empty() { String::new() } else { format!(", params = {{ {} }}", params.join(", ")) };
    format!("{{ probe = {}{params} }}", quote_toml(probe))
}

/// A text as a string of TOML, which has the escapes of JSON.
fn quote_toml(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    serde_json::Value::from(text).to_string()
}
