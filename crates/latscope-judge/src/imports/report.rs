//! A report and its measurements, with only the facts that another program provides.

use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{Params, Plan, Point};
use latscope_core::quality::{IMPORTED, Level, Reason};
use latscope_core::report::{Imported, Measurement, Report, Sampling, Semantics, Summary, Tool};
use latscope_core::units::CpuList;
use serde::Deserialize;

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
pub(super) struct Source<'a> {
    pub program: &'static str,
    pub version: Option<String>,
    /// The whole text: the same text gives the same run.
    pub text: &'a str,
    /// Facts that this format never has, beyond those that no format has.
    pub unknown: &'a [&'a str],
}

impl Source<'_> {
    /// A report without measurements, machine and time.
    pub(super) fn report(self) -> Report {
        let imported = Imported {
            program: self.program.to_owned(),
            version: self.version,
            unknown: self.unknown.iter().map(|words| (*words).to_owned()).collect(),
        };
        let tool = Tool {
            name: "latscope".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: String::new(),
        };
        let run_id = format!("{}-{:016x}", self.program.to_lowercase().replace(' ', "-"), hash(self.text));
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

/// Completes a report with its measurements and the facts that follow from them.
pub(super) fn finish(mut report: Report, measurements: Vec<Measurement>) -> Result<Report, String> {
    if measurements.is_empty() {
        return Err("there is no figure in it".to_owned());
    }
    let name = report.imported.as_ref().map(Imported::name).unwrap_or_default();
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
        m.lower(Reason::new(Level::Ok, IMPORTED, format!("measured by {name}"), ""));
        m.settle();
    }
    report.plan.rounds =
        report.measurements.iter().map(|m| m.rounds.len()).max().unwrap_or(1).clamp(1, u32::MAX as usize)
            as u32;
    Ok(report)
}

/// A point with these samples, all of whose quality is known.
pub(super) fn measurement(
    probe: &str,
    params: Params,
    title: String,
    times: Semantics,
    histogram: Histogram,
) -> Measurement {
    let point = Point { probe: probe.to_owned(), revision: 1, params, title, row: true };
    Measurement { summary: Summary::default(), ..Measurement::of(point, Sampling::Event, times, histogram) }
}
