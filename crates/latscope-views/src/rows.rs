//! The rows of the survey, fastest to slowest, with what reference devices and
//! other reports have for the same operation.

use super::head::{named, unfinished};
use super::machine_state;
use crate::devices::{DEVICES, Part, Reference};
use latscope_core::merged::is_merged;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::quality::{Level, Quality};
use latscope_core::report::{Measurement, Report, Sampling, Semantics, Support, Value};
use latscope_core::units::{format_size, format_time};
use latscope_judge::findings::{LevelRow, is_operation, level_rows};
use latscope_judge::levels::Agreement;
use std::collections::HashMap;

/// One row of a table: an operation and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Probe family: `memory`, `sync`.
    pub family: String,
    /// What a reader calls the operation.
    pub label: String,
    /// One way, round trip or operation.
    pub times: Semantics,
    /// The typical duration on this machine, ns: the median.
    pub ns: f64,
    /// How far durations scatter.
    pub spread: Option<Spread>,
    /// Core cycles of the typical duration.
    pub cycles: Option<f64>,
    /// How far the row can be trusted.
    pub support: Support,
    /// Why not fully.
    pub reason: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The run ended before the row was measured in full.
    pub incomplete: bool,
    /// What the references have, one for each of `reference_names`.
    pub references: Vec<Option<ReferenceCell>>,
    /// Bytes touched per second.
    pub rate: Option<f64>,
    /// Share of the time the endpoints were blocked, %.
    pub blocked: Option<f64>,
    /// Share of the samples that were rejected, 0 to 1.
    pub rejected: f64,
    /// Whether it is one operation, of which a count fits into a stretch of time; a
    /// transfer is none.
    pub operation: bool,
}

/// How far the durations of a row scatter, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Where the median of the next run is expected, from rounds of this one.
    NextRun(f64, f64),
    /// From the 10th to the 90th percentile of batch means.
    Between(f64, f64),
    /// A high quantile of single events, and its name.
    Tail(&'static str, f64),
}

/// What a reference has for a row.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceCell {
    /// Its duration, ns.
    pub ns: f64,
    /// Which part of this machine's duration it is compared with.
    pub part: f64,
    /// How many times as long it takes as this machine.
    pub ratio: f64,
    /// Whether both are the same thing; if not, the ratio means nothing.
    pub same: bool,
    /// What marks a number that is not to be compared, or not to be trusted in full: `≠`, `!` or `~`.
    pub sign: &'static str,
    /// In what it differs, or how it was measured.
    pub note: Option<String>,
}

/// The headings of the reference columns: short and full name of each device,
/// then of each report beside, with a sign and the reason where that is not a complete
/// run of a quiet machine.
pub(crate) fn reference_names(report: &Report, beside: &[&Report]) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> =
        DEVICES.iter().map(|d| (d.short.to_owned(), d.name.to_owned())).collect();
    for other in beside {
        let program = other.imported.as_ref().map(|imported| imported.name());
        let name = match other.machine.name.as_str() {
            "" => program.as_deref().unwrap_or("beside"),
            name => name,
        };
        let dated = !other.started.is_empty();
        let taken = dated && name == report.machine.name || names.iter().any(|(short, _)| short == name);
        // A result of the same machine is told apart by the time it was made.
        let short =
            if taken { other.started.replace('T', " ").chars().take(16).collect() } else { name.to_owned() };
        let (sign, why) = doubts(other);
        let known =
            [Some(name), Some(&*other.started), program.as_deref().filter(|program| *program != name)];
        let known: Vec<&str> = known.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        names.push((short + sign, known.join(", ") + &why));
    }
    names
}

/// Why a report beside is to be doubted as a whole, and the sign for it.
fn doubts(other: &Report) -> (&'static str, String) {
    let early = unfinished(other).map(|text| format!("; INCOMPLETE: {text}"));
    let busy = other.activity.as_ref().filter(|activity| !activity.is_quiet());
    let busy = busy.map(|activity| format!("; {}", machine_state::state(activity)));
    let sign = match (&early, &busy) {
        (Some(_), _) => "~",
        (None, Some(_)) => "!",
        (None, None) => "",
    };
    (sign, early.into_iter().chain(busy).collect())
}

/// What is said of each report beside that has nothing in common with these rows.
pub(crate) fn nothing_in_common(rows: &[Row], beside: &[&Report]) -> Vec<String> {
    let empty = |at: usize| rows.iter().all(|row| row.references[DEVICES.len() + at].is_none());
    let others = beside.iter().enumerate().filter(|(at, _)| empty(*at));
    let said = |(_, other): (usize, &&Report)| {
        format!("no point is both here and in {}: nothing to compare", named(other))
    };
    others.map(said).collect()
}

/// The rows of a report: its memory levels, and each measurement that wants a
/// row and has a number; fastest first.
pub fn rows(report: &Report, beside: &[&Report]) -> Vec<Row> {
    let others: Vec<Beside> = beside.iter().map(|other| Beside::new(other)).collect();
    let levels = level_rows(report);
    let chase = revision(report, CHASE);
    let mut rows: Vec<Row> = levels.iter().map(|level| level_row(level, chase, &others)).collect();
    // Where none wants a row the sums over pairs or CPUs stand for all.
    let wanted = report.measurements.iter().any(|m| m.row);
    let chosen = report.measurements.iter().filter(|m| if wanted { m.row } else { is_merged(m) });
    rows.extend(chosen.filter_map(|m| measured_row(report, m, &others)));
    rows.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    rows
}

/// The part of a probe id before the point.
pub fn family(probe: &str) -> &str {
    probe.split_once('.').map_or(probe, |(family, _)| family)
}

fn level_row(level: &LevelRow, chase: u32, others: &[Beside]) -> Row {
    let devices = DEVICES.iter().map(|device| {
        let reference = device.for_level(&level.name)?;
        Some(published(reference, level.ns, None))
    });
    let beside = others.iter().map(|other| {
        let theirs = other.levels.iter().find(|theirs| theirs.name == level.name)?;
        let differs = differs_by_revision(chase, other.chase);
        let doubt = doubt(&theirs.quality, false);
        Some(compared(theirs.ns, level.ns, differs.into_iter().collect(), doubt))
    });
    Row {
        family: "memory".to_owned(),
        label: level_label(level),
        times: Semantics::Operation,
        ns: level.ns,
        spread: level.p10.zip(level.p90).map(|(low, high)| Spread::Between(low, high)),
        cycles: level.cycles,
        support: level.quality.level.support(),
        reason: level.quality.text(),
        remedy: level.quality.remedy(),
        incomplete: false,
        references: devices.chain(beside).collect(),
        rate: None,
        blocked: None,
        rejected: 0.0,
        operation: true,
    }
}

/// `L2 hit, 2 MiB`; where the rounds agree that less than the declared capacity
/// serves, `L3 hit, to 6 MiB of 105 MiB`, a size that was measured; memory has no
/// capacity.
fn level_label(level: &LevelRow) -> String {
    let name = &level.name;
    if level.agreement == Agreement::Memory {
        return format!("{name} read");
    }
    let Some(size) = level.capacity().map(format_size) else { return format!("{name} hit") };
    match (level.agreement, level.declared) {
        (Agreement::Agrees, _) => format!("{name} hit, {size}"),
        (Agreement::Smaller, Some(declared)) => format!("{name} hit, to {size} of {}", format_size(declared)),
        _ => format!("{name} hit, to {size}"),
    }
}

fn measured_row(report: &Report, m: &Measurement, others: &[Beside]) -> Option<Row> {
    let ns = m.typical().filter(|_| m.support != Support::Unsupported)?;
    let devices = DEVICES.iter().map(|device| {
        let reference = device.for_probe(&m.probe, &m.params)?;
        Some(published(reference, ns, m.work.map(|work| work.bytes_touched)))
    });
    let beside = others.iter().map(|other| other.cell(report, m, ns));
    Some(Row {
        family: family(&m.probe).to_owned(),
        label: if m.title.is_empty() { m.probe.clone() } else { m.title.clone() },
        times: m.times,
        ns,
        spread: spread(m),
        cycles: m.summary.cycles,
        support: m.support,
        reason: m.reason.clone(),
        remedy: m.remedy.clone(),
        incomplete: m.incomplete,
        references: devices.chain(beside).collect(),
        rate: m.rate_touched(),
        blocked: m.values.get("blocked").filter(|v| v.unit == "%").map(|v: &Value| v.value),
        rejected: rejected_share(m),
        operation: is_operation(&m.probe),
    })
}

/// Share of the samples that were rejected, 0 to 1.
pub(super) fn rejected_share(m: &Measurement) -> f64 {
    let all = m.summary.count + m.summary.rejected;
    if all == 0 { 0.0 } else { m.summary.rejected as f64 / all as f64 }
}

/// Several rounds tell where the next run will be. Of one, batches scatter about their median; of single events the tail matters, as
/// far out as there are samples enough.
fn spread(m: &Measurement) -> Option<Spread> {
    let s = &m.summary;
    if let Some(interval) = m.interval {
        return Some(Spread::NextRun(interval.low, interval.high));
    }
    match m.sampling {
        Sampling::Batch { .. } => {
            let batches = s.p10.zip(s.p90).map(|(low, high)| Spread::Between(low, high));
            batches.or(s.max.map(|max| Spread::Tail("max", max)))
        }
        Sampling::Event => {
            let tails = [("p99", s.p99), ("p95", s.p95), ("p90", s.p90), ("max", s.max)];
            tails.into_iter().find_map(|(name, ns)| Some(Spread::Tail(name, ns?)))
        }
    }
}

/// A device's number beside ours.
fn published(reference: &Reference, ours: f64, bytes: Option<u64>) -> ReferenceCell {
    let part = match reference.part {
        Part::Whole => 1.0,
        Part::Half => 0.5,
        Part::Bytes(wanted) => bytes.filter(|b| *b > 0).map_or(1.0, |b| wanted as f64 / b as f64),
    };
    let known = reference.part == Part::Whole || reference.part == Part::Half || bytes.is_some_and(|b| b > 0);
    let same = reference.same && known;
    ReferenceCell {
        ns: reference.ns,
        part,
        ratio: ratio(reference.ns, ours * part),
        same,
        sign: if same { "" } else { "≠" },
        note: Some(reference.note).filter(|note| !note.is_empty()).map(str::to_owned),
    }
}

/// Another report's number for a point, and in what that point differs from ours.
/// Where it is in doubt there is no ratio either.
fn compared(
    theirs: f64,
    ours: f64,
    mut differs: Vec<String>,
    doubt: Option<(&'static str, String)>,
) -> ReferenceCell {
    let sign = match &doubt {
        _ if !differs.is_empty() => "≠",
        Some((sign, _)) => sign,
        None => "",
    };
    differs.extend(doubt.map(|(_, why)| why));
    let note = (!differs.is_empty()).then(|| differs.join("; "));
    ReferenceCell { ns: theirs, part: 1.0, ratio: ratio(theirs, ours), same: sign.is_empty(), sign, note }
}

/// The probe whose points make up the levels of memory.
const CHASE: &str = "memory.latency";

/// The revision of a probe in a report; the first where it has no point of it.
fn revision(report: &Report, probe: &str) -> u32 {
    report.of_probe(probe).next().map_or(1, |m| m.revision)
}

/// What is timed changed between the revisions of a probe.
fn differs_by_revision(ours: u32, theirs: u32) -> Option<String> {
    let text = || format!("revision {theirs} of the probe there, {ours} here: what is timed differs");
    (ours != theirs).then(text)
}

/// 1 where both are nothing, infinite where only ours is.
fn ratio(theirs: f64, ours: f64) -> f64 {
    if theirs == ours { 1.0 } else { theirs / ours }
}

/// Another report, its points at hand by what they are.
struct Beside<'a> {
    report: &'a Report,
    points: HashMap<(&'a str, String), &'a Measurement>,
    levels: Vec<LevelRow>,
    /// Revision of the probe of `levels`.
    chase: u32,
}

impl<'a> Beside<'a> {
    fn new(report: &'a Report) -> Self {
        let measured = report.measurements.iter().filter(|m| m.typical().is_some());
        let mut points = HashMap::new();
        for m in measured {
            let place = place(&m.params);
            // A file point answers for its own file system, and for any other
            // of its kind where that one is not there.
            for key in [key(&m.params, place.name), key(&m.params, place.kind)] {
                points.entry((m.probe.as_str(), key)).or_insert(m);
            }
        }
        Beside { report, points, levels: level_rows(report), chase: revision(report, CHASE) }
    }

    fn cell(&self, report: &Report, ours: &Measurement, ns: f64) -> Option<ReferenceCell> {
        let here = place(&ours.params);
        let exact = self.points.get(&(ours.probe.as_str(), key(&ours.params, here.name)));
        let theirs =
            exact.or_else(|| self.points.get(&(ours.probe.as_str(), key(&ours.params, here.kind))))?;
        let elsewhere = || format!("measured on {}, not on {}", place(&theirs.params).name, here.name);
        let differs = [
            differs_by_revision(ours.revision, theirs.revision),
            differs_by_batch(report.batch_target(ours), self.report.batch_target(theirs)),
            exact.is_none().then(elsewhere),
        ];
        let doubt = doubt(&theirs.quality, theirs.incomplete);
        Some(compared(theirs.typical()?, ns, differs.into_iter().flatten().collect(), doubt))
    }
}

/// Means over batches of another length scatter otherwise. How many operations are in one follows
/// from the speed of the machine, and is no difference.
fn differs_by_batch(ours: Option<u64>, theirs: Option<u64>) -> Option<String> {
    let (ours, theirs) = ours.zip(theirs).filter(|(ours, theirs)| ours != theirs)?;
    let [ours, theirs] = [ours, theirs].map(|ns| format_time(ns as f64));
    Some(format!("batches of {theirs} there, of {ours} here"))
}

/// Why the figure of another report is not to be trusted in full, and the sign for it.
fn doubt(theirs: &Quality, incomplete: bool) -> Option<(&'static str, String)> {
    let reason = || theirs.text().unwrap_or_else(|| "no reason is given".to_owned());
    match theirs.level {
        Level::Unstable => Some(("!", format!("unstable there: {}", reason()))),
        Level::Degraded => Some(("!", format!("degraded there: {}", reason()))),
        _ => incomplete.then(|| ("~", "the run ended before it was measured in full there".to_owned())),
    }
}

/// Where a file point was measured.
struct Place<'a> {
    name: &'a str,
    kind: &'static str,
}

fn place(params: &Params) -> Place<'_> {
    match params.get("filesystem") {
        Some(ParamValue::Text(name)) if name == "tmpfs" => Place { name, kind: "in memory" },
        Some(ParamValue::Text(name)) => Place { name, kind: "on a device" },
        _ => Place { name: "", kind: "" },
    }
}

/// What a point is, directories and device names aside: they differ from
/// machine to machine and say nothing about the operation.
fn key(params: &Params, place: &str) -> String {
    let mut key = String::from(place);
    for (name, value) in params {
        if !["directory", "device", "filesystem"].contains(&name.as_str()) {
            key.push_str(&format!("\0{name}={value}"));
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use latscope_core::fixture;
    use latscope_core::quality::Reason;
    use latscope_core::report::{Activity, Interrupted, Progress};
    use latscope_judge::levels::Edge;

    #[test]
    fn rows_go_from_fastest_to_slowest_and_have_a_cell_for_each_reference() {
        let (report, other) = (fixture::report(), fixture::other());
        let rows = rows(&report, &[&other]);
        assert!(rows.is_sorted_by(|a, b| a.ns <= b.ns));
        let names = reference_names(&report, &[&other]);
        assert!(rows.iter().all(|row| row.references.len() == names.len()));
        assert_eq!(names[4].0, "thinker");
    }

    #[test]
    fn a_result_of_the_same_machine_is_named_by_its_time() {
        let report = fixture::report();
        let names = reference_names(&report, &[&report]);
        assert_eq!(names[4].0, "2026-11-21 10:00");
    }

    #[test]
    fn a_level_is_named_by_its_declared_size_unless_less_is_effective() {
        let level = |name: &str, capacity: Option<u64>, declared, agreement| {
            let name = name.to_owned();
            let (cycles, p10, p90, quality) = (None, None, None, Default::default());
            let edge = capacity.map(|from| Edge { from, to: from + from / 8 });
            level_label(&LevelRow { name, ns: 1.0, cycles, p10, p90, declared, edge, agreement, quality })
        };
        assert_eq!(level("L1", Some(48 << 10), Some(48 << 10), Agreement::Agrees), "L1 hit, 48 KiB");
        let less = level("L3", Some(6 << 20), Some(105 << 20), Agreement::Smaller);
        assert_eq!(less, "L3 hit, to 6 MiB of 105 MiB");
        assert_eq!(level("L2", Some(1 << 20), None, Agreement::Undeclared), "L2 hit, to 1 MiB");
        assert_eq!(level("memory", None, None, Agreement::Memory), "memory read");
    }

    #[test]
    fn what_has_no_number_has_no_row() {
        let report = fixture::report();
        assert!(rows(&report, &[]).iter().all(|row| row.support != Support::Unsupported));
    }

    #[test]
    fn a_semaphore_round_trip_is_halved_for_the_phones() {
        let report = fixture::report();
        let rows = rows(&report, &[]);
        let row = rows.iter().find(|row| row.label.starts_with("semaphore, same core")).unwrap();
        let phone = row.references[3].as_ref().unwrap();
        assert_eq!((phone.ns, phone.part), (3.2e3, 0.5));
        assert!((phone.ratio - 3.2e3 / (row.ns / 2.0)).abs() < 1e-9);
        assert!(!row.references[0].as_ref().unwrap().same);
    }

    #[test]
    fn a_result_in_doubt_is_marked_in_its_column_and_in_the_legend() {
        let report = fixture::report();
        let shown = |other: &Report| {
            let options = Options { width: 400, ..Options::default() };
            let markdown = super::super::markdown::markdown(&report, &[other], &options);
            let doubted = reference_names(&report, &[other])[4].0 != "thinker";
            assert_eq!(markdown.contains("thinker, 2026"), doubted, "{markdown}");
            super::super::table::table(&report, &[other], &options)
        };
        let mut other = fixture::other();
        assert!(!shown(&other).contains("thinker~"));
        let time = Progress { done: 1_890_000_000, of: Some(10_000_000_000) };
        let points = Progress { done: 0, of: Some(2) };
        other.finished = None;
        other.interrupted =
            Some(Interrupted { by: "SIGINT".to_owned(), points, events: None, time: Some(time) });
        other.measurements.iter_mut().for_each(|m| m.incomplete = true);
        let text = shown(&other);
        for part in ["thinker~ = thinker, ", "; INCOMPLETE: ", "after 1.89 s of 10.0 s", "~ ended early"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let mut other = fixture::other();
        other.activity = Some(Activity { wall_ns: 1, cpus: 2, others: 0.97, top: Vec::new() });
        let text = shown(&other);
        assert!(text.contains("thinker! = ") && text.contains("; busy: other processes used 97 %"), "{text}");
        for (level, word) in [(Level::Unstable, "unstable"), (Level::Degraded, "degraded")] {
            let mut other = fixture::other();
            other.measurements.iter_mut().for_each(|m| m.lower(Reason::new(level, "x", "shaken", "")));
            let rows = rows(&report, &[&other]);
            let row = rows.iter().find(|row| row.label.starts_with("add i64")).unwrap();
            let cell = row.references[4].as_ref().unwrap();
            assert_eq!((cell.sign, cell.note.as_deref()), ("!", Some(&*format!("{word} there: shaken"))));
        }
    }

    #[test]
    fn directories_do_not_matter_but_file_systems_do() {
        let report = fixture::report();
        let mut other = fixture::report();
        for m in &mut other.measurements {
            if m.params.get("filesystem") == Some(&"ext4".into()) {
                m.params.insert("filesystem".to_owned(), "btrfs".into());
            }
            if m.params.contains_key("directory") {
                m.params.insert("directory".to_owned(), "/elsewhere".into());
            }
        }
        let rows = rows(&report, &[&other]);
        let cell = |label: &str| {
            let row = rows.iter().find(|row| row.label == label).unwrap();
            row.references[4].clone().unwrap()
        };
        assert!(cell("read, kept open, 4 KiB, tmpfs").same);
        let on_device = cell("read, kept open, 4 KiB, ext4");
        assert!(!on_device.same);
        assert_eq!(on_device.note.as_deref(), Some("measured on btrfs, not on ext4"));
    }

    #[test]
    fn points_of_two_revisions_are_shown_as_two_things() {
        let report = fixture::report();
        let mut other = fixture::other();
        other.measurements.iter_mut().for_each(|m| m.revision = 2);
        let rows = rows(&report, &[&other]);
        let cells: Vec<_> = rows.iter().filter_map(|row| row.references[4].as_ref()).collect();
        let told = |cell: &&&ReferenceCell| {
            let note = cell.note.as_deref().unwrap_or_default();
            !cell.same && note.contains("revision 2 of the probe there, 1 here")
        };
        assert!(rows.iter().any(|row| row.label.starts_with("L1")), "a level is among the rows");
        assert!(cells.len() > 20, "{}", cells.len());
        assert_eq!(cells.iter().filter(told).count(), cells.len());
    }

    #[test]
    fn the_target_length_of_a_batch_matters_and_its_operations_do_not() {
        let report = fixture::report();
        let cell = |other: &Report| {
            let rows = rows(&report, &[other]);
            rows.iter().find(|row| row.label.starts_with("add i64")).unwrap().references[4].clone().unwrap()
        };
        let mut other = fixture::other();
        for m in &mut other.measurements {
            if let Sampling::Batch { ops } = &mut m.sampling {
                *ops *= 7;
            }
        }
        assert!(cell(&other).same);
        other.plan.steps.iter_mut().for_each(|step| step.stop.batch_ns = 200_000);
        let differs = cell(&other);
        assert!(!differs.same);
        assert_eq!(differs.note.as_deref(), Some("batches of 200 µs there, of 500 µs here"));
    }

    #[test]
    fn events_show_the_farthest_quantile_that_samples_allow() {
        let report = fixture::report();
        let fsync = report.of_probe("file.fsync").next().unwrap();
        assert!(matches!(spread(fsync), Some(Spread::Tail("p99", _))));
        let mut few = fsync.clone();
        (few.summary.p99, few.summary.p95, few.summary.p90) = (None, None, None);
        assert!(matches!(spread(&few), Some(Spread::Tail("max", _))));
    }
}
