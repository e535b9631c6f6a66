//! A report and its measurements, with only the facts that another program provides.

use crate::runs::point_id;
use latscope_core::histogram::Histogram;
use latscope_core::json::LARGEST;
use latscope_core::machine::Machine;
use latscope_core::plan::{MeasurementPoint, ParamValue, Params, Plan};
use latscope_core::quality::{IMPORTED, NOTHING_MEASURED, QualityLevel, Reason};
use latscope_core::report::{
    BEYOND, Better, Imported, MeasuredQuantity, Measurement, Report, Sampling, Semantics, Summary,
    ToolVersion, WATCHED,
};
use latscope_core::units::CpuList;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Description of the machine that most outputs contain: the fields of uname(2).
#[derive(Debug, Default, Deserialize)]
pub(super) struct SysInfo {
    #[serde(default)]
    nodename: String,
    #[serde(default)]
    release: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    machine: String,
}

impl SysInfo {
    pub(super) fn machine(self) -> Machine {
        Machine {
            name: self.nodename,
            kernel: self.release,
            kernel_version: self.version,
            architecture: self.machine,
            ..Machine::default()
        }
    }
}

/// Program that wrote a text, and the text.
pub(super) struct ImportSource<'a> {
    pub program: &'static str,
    pub version: Option<String>,
    /// The whole text: the same text gives the same run.
    pub text: &'a str,
    /// Facts that this format never has, beyond those that no format has.
    pub unknown: &'a [&'a str],
}

impl ImportSource<'_> {
    /// A report without measurements, machine and time.
    pub(super) fn empty_report(self) -> Report {
        let imported = Imported {
            program: self.program.to_owned(),
            version: self.version,
            unknown: self.unknown.iter().map(|words| (*words).to_owned()).collect(),
        };
        let tool = ToolVersion {
            name: "latscope".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: String::new(),
        };
        // A change is named by the first characters of a run's id.
        let run_id = format!("{:016x}-{}", hash(self.text), self.program.to_lowercase().replace(' ', "-"));
        let plan = Plan::new(self.program, Vec::new(), CpuList::default());
        let report = Report::new(tool, String::new(), plan, Machine::default());
        Report { imported: Some(imported), run_id, ..report }
    }
}

/// The FNV-1a hash, which is the same in every build.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A number of a point that is too large to be one, with its name.
fn too_large(m: &Measurement) -> Option<(&str, u64)> {
    let params = m.params.iter().filter_map(|(name, value)| match value {
        ParamValue::Number(number) => Some((name.as_str(), *number)),
        ParamValue::Text(_) => None,
    });
    let ops = match m.sampling {
        Sampling::Batch { ops } => Some(("number of iterations", ops)),
        Sampling::Event => None,
    };
    params.chain(ops).chain([("count", m.histogram.count())]).find(|(_, number)| *number > LARGEST)
}

/// The reason of every point of a report: another program measured it.
pub(super) fn imported(report: &Report) -> Reason {
    let name = report.imported.as_ref().map(Imported::name).unwrap_or_default();
    Reason::new(QualityLevel::Ok, IMPORTED, format!("measured by {name}"), "")
}

/// Id of the reason that nothing happened that would be counted.
pub(super) const UNEVENTFUL: &str = "uneventful";

/// The most figures, jobs or benchmarks of an output.
const MOST: usize = 1 << 14;

/// Checks that a list is not so long that working on it would take minutes.
///
/// # Errors
/// The list is longer than any of a program that measures.
pub(super) fn check_length(found: usize, what: &str) -> Result<(), String> {
    match found <= MOST {
        true => Ok(()),
        false => Err(format!("it has {found} {what}, more than the {MOST} that are read: split it")),
    }
}

/// Completes a report with its measurements and the facts that follow from them.
pub(super) fn finish_report(mut report: Report, measurements: Vec<Measurement>) -> Result<Report, String> {
    if measurements.is_empty() {
        return Err("there is no figure in it".to_owned());
    }
    check_length(measurements.len(), "figures")?;
    let mut once = BTreeSet::new();
    if let Some(m) = measurements.iter().find(|m| !once.insert(point_id(&m.probe, &m.params))) {
        return Err(format!("{} is there twice", m.title));
    }
    if let Some((m, name, number)) =
        measurements.iter().find_map(|m| too_large(m).map(|(name, n)| (m, name, n)))
    {
        return Err(format!("{}: its {name}, {number}, is larger than any: it is damaged", m.title));
    }
    let reason = imported(&report);
    report.measurements = measurements;
    let machine = &report.machine;
    let facts = [
        ("host", machine.name.is_empty()),
        ("kernel", machine.kernel.is_empty()),
        ("when it began", report.started.is_empty()),
        ("CPU model", true),
        ("what other processes used", true),
    ];
    let unknown = facts.into_iter().filter(|(_, unknown)| *unknown).map(|(fact, _)| fact.to_owned());
    if let Some(imported) = &mut report.imported {
        imported.unknown.extend(unknown);
    }
    for m in &mut report.measurements {
        let is_explained =
            |reason: &Reason| reason.id == UNEVENTFUL || reason.level == QualityLevel::Unsupported;
        if m.histogram.count() == 0 && !m.quality.reasons.iter().any(is_explained) {
            m.lower(Reason::new(QualityLevel::Unsupported, NOTHING_MEASURED, "no sample was counted", ""));
        }
        if m.histogram.overflow() > 0 {
            put(m, BEYOND, m.histogram.overflow() as f64, "count", Better::Less);
        }
        if !m.is_imported() {
            m.lower(reason.clone());
        }
        m.derive_results();
    }
    report.plan.rounds =
        report.measurements.iter().map(|m| m.rounds.len()).max().unwrap_or(1).clamp(1, u32::MAX as usize)
            as u32;
    Ok(report)
}

/// Gives points that differ in nothing a number, from 0, in the order of the output.
pub(super) fn number_alike(measurements: &mut [Measurement]) {
    let id = |m: &Measurement| point_id(&m.probe, &m.params);
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, m) in measurements.iter().enumerate() {
        alike.entry(id(m)).or_default().push(at);
    }
    for places in alike.values().filter(|places| places.len() > 1) {
        for (number, at) in places.iter().enumerate() {
            let m = &mut measurements[*at];
            m.params.insert("number".to_owned(), (number as u64).into());
            m.title = format!("{} {number}", m.title);
        }
    }
}

/// Notes the time in which a point was watched, in seconds; 0 is not known.
///
/// # Errors
/// The time is longer than any run.
pub(super) fn note_watched(m: &mut Measurement, seconds: f64) -> Result<(), String> {
    if seconds > LONGEST {
        return Err(format!("its run took {seconds} s, which cannot be: it is damaged"));
    }
    if seconds > 0.0 {
        put(m, WATCHED, seconds, "s", Better::Neither);
    }
    Ok(())
}

/// The longest time of a run, s: thirty years.
const LONGEST: f64 = 1e9;

fn put(m: &mut Measurement, name: &str, value: f64, unit: &str, better: Better) {
    m.values.insert(name.to_owned(), MeasuredQuantity { value, unit: unit.to_owned(), better });
}

/// A point with these samples, all of whose quality is known.
pub(super) fn sampled_point(
    probe: &str,
    params: Params,
    title: String,
    times: Semantics,
    histogram: Histogram,
) -> Measurement {
    let point = MeasurementPoint { probe: probe.to_owned(), revision: 1, params, title, row: true };
    Measurement {
        summary: Summary::default(),
        ..Measurement::from_samples(point, Sampling::Event, times, histogram)
    }
}
