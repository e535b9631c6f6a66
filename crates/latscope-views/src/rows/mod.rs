//! The rows of the survey, fastest to slowest, with what reference devices and
//! other reports have for the same operation.

use super::head::{measured_part, report_name, with_remedy};
use super::headline::{HeadlineSource, headline};
use super::{DisplayOptions, Sort, machine_state};
use crate::devices::DEVICES;
pub use latscope_core::catalogue::families::of_probe as family;
use latscope_core::catalogue::ids::MEMORY_LATENCY as CHASE;
use latscope_core::catalogue::{ProbeCatalogue, families};
use latscope_core::merged::is_merged;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::quality::{Quality, QualityLevel};
use latscope_core::report::{MeasuredQuantity, Measurement, Report, Semantics};
use latscope_core::units::{format_size, format_time};
use latscope_judge::findings::{LevelRow, level_rows};
use latscope_judge::levels::Agreement;
use latscope_judge::references::Reference;
use std::collections::{BTreeSet, HashMap};

/// Row of a table: an operation and its cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SurveyRow {
    /// Probe family: `memory`, `sync`.
    pub family: String,
    /// Name of the operation for a reader.
    pub label: String,
    /// Meaning of the duration: one way, round trip or operation.
    pub times: Semantics,
    /// The typical duration on this machine, ns: the median; the last bin if the median is beyond that.
    pub ns: f64,
    /// True if the median is beyond the last bin, and so longer than the duration says.
    pub longer: bool,
    /// Interval in which the median of the next run is expected with 95 % confidence, ns; `None` if too few
    /// rounds were measured for it.
    pub next: Option<(f64, f64)>,
    /// Core cycles of the typical duration.
    pub cycles: Option<f64>,
    /// Degree to which the row can be trusted.
    pub level: QualityLevel,
    /// Reason for which the row is not fully trusted.
    pub reason: Option<String>,
    /// Remedy for that reason.
    pub remedy: Option<String>,
    /// True if the run ended before the row was measured in full.
    pub incomplete: bool,
    /// Numbers of the references, one for each of `reference_names`.
    pub references: Vec<Option<ReferenceCell>>,
    /// Bytes touched per second.
    pub rate: Option<f64>,
    /// Share of the time the endpoints were blocked, %.
    pub blocked: Option<f64>,
    /// Share of the samples that were rejected, 0 to 1.
    pub rejected: f64,
    /// True if the row is one operation, of which a count fits into a stretch of time; false for a transfer.
    pub operation: bool,
}

/// Number of a reference for a row.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceCell {
    /// Duration of the reference, ns.
    pub ns: f64,
    /// Factor on this machine's duration before the comparison: 0.5 for one way against a round trip.
    pub part: f64,
    /// Duration of the reference, divided by that part of this machine's duration.
    pub ratio: f64,
    /// True if both are the same operation and can be compared; otherwise the ratio means nothing.
    pub same: bool,
    /// Mark of a number that cannot be compared, or cannot be trusted in full: `≠`, `!` or `~`; otherwise
    /// empty.
    pub sign: &'static str,
    /// Difference from this machine's row, or the way of measurement.
    pub note: Option<String>,
}

/// Returns the headings of the reference columns: short and full name of each device, then of each report
/// beside, with a sign and the reason if that report is not a complete run of a quiet machine.
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
        let (sign, why) = report_doubts(other);
        let known =
            [Some(name), Some(&*other.started), program.as_deref().filter(|program| *program != name)];
        let known: Vec<&str> = known.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        names.push((short + sign, known.join(", ") + &why));
    }
    names
}

/// Returns the sign and the reason for doubt about another report as a whole; both are empty without doubt.
fn report_doubts(other: &Report) -> (&'static str, String) {
    let early = measured_part(other).map(|text| format!("; INCOMPLETE: {text}"));
    let busy = other.activity.as_ref().and_then(|account| match account.throttled() {
        Some(quota) => Some(format!("; {}", quota.format_throttling())),
        None => account.is_disturbed().then(|| format!("; {}", machine_state::describe_state(account))),
    });
    let sign = match (&early, &busy) {
        (Some(_), _) => "~",
        (None, Some(_)) => "!",
        (None, None) => "",
    };
    (sign, early.into_iter().chain(busy).collect())
}

/// Returns a note on each report beside that has nothing in common with these rows.
pub(crate) fn nothing_in_common(rows: &[SurveyRow], beside: &[&Report]) -> Vec<String> {
    let empty = |at: usize| rows.iter().all(|row| row.references[DEVICES.len() + at].is_none());
    let others = beside.iter().enumerate().filter(|(at, _)| empty(*at));
    let said = |(_, other): (usize, &&Report)| {
        format!("no point is both here and in {}: nothing to compare", report_name(other))
    };
    others.map(said).collect()
}

/// The rows of a report: its memory levels, and each measurement that wants a
/// row and has a number; fastest first.
pub fn survey_rows(report: &Report, beside: &[&Report], catalogue: &ProbeCatalogue) -> Vec<SurveyRow> {
    let others: Vec<ReportPointIndex> = beside.iter().map(|other| ReportPointIndex::new(other)).collect();
    let levels = level_rows(report);
    let chase = revision(report, CHASE);
    let mut rows: Vec<SurveyRow> = levels.iter().map(|level| level_row(level, chase, &others)).collect();
    // Where none wants a row the sums over pairs or CPUs stand for all.
    let wanted = report.measurements.iter().any(|m| m.row);
    let chosen = report.measurements.iter().filter(|m| if wanted { m.row } else { is_merged(m) });
    rows.extend(chosen.filter_map(|m| measured_row(report, m, &others, catalogue)));
    rows.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    rows
}

/// The rows in this order.
pub(crate) fn sorted_rows(report: &Report, beside: &[&Report], options: &DisplayOptions) -> Vec<SurveyRow> {
    let mut rows = survey_rows(report, beside, options.catalogue);
    if options.sort == Sort::Family {
        let place = |row: &SurveyRow| report.measurements.iter().position(|m| family(&m.probe) == row.family);
        rows.sort_by_cached_key(place);
    }
    rows
}

/// The rows of the ten numbers, in their order, and the titles of those without a number with the reason.
pub(crate) fn headline_rows(
    report: &Report,
    catalogue: &ProbeCatalogue,
) -> (Vec<SurveyRow>, Vec<(String, String)>) {
    let chase = revision(report, CHASE);
    let (mut rows, mut missing) = (Vec::new(), unseen_levels(report));
    for one in headline(report, catalogue) {
        match &one.source {
            HeadlineSource::Level(level) => rows.push(level_row(level, chase, &[])),
            HeadlineSource::Point(m) => match measured_row(report, m, &[], catalogue) {
                Some(row) => rows.push(row),
                None => missing.push((
                    m.title.clone(),
                    with_remedy(
                        m.joined_reasons().as_deref().unwrap_or("no sample was taken"),
                        m.joined_remedies().as_deref(),
                    ),
                )),
            },
        }
    }
    (rows, missing)
}

/// Returns the caches that the measured curve of memory latency does not show, each with that reason.
fn unseen_levels(report: &Report) -> Vec<(String, String)> {
    let levels = level_rows(report);
    let measured = report.of_probe(CHASE).any(|m| m.summary.count > 0);
    let caches = report.machine.caches.iter().filter(|cache| measured && cache.kind != "Instruction");
    let names: BTreeSet<String> = caches.map(|cache| format!("L{}", cache.level)).collect();
    let unseen = names.into_iter().filter(|name| !levels.iter().any(|level| level.name == *name));
    unseen
        .map(|name| (format!("{name} hit"), "the curve of memory latency has no such level".to_owned()))
        .collect()
}

fn level_row(level: &LevelRow, chase: u32, others: &[ReportPointIndex]) -> SurveyRow {
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
    SurveyRow {
        family: families::MEMORY.to_owned(),
        label: level_label(level),
        ns: level.ns,
        next: level.next,
        cycles: level.cycles,
        level: level.quality.level,
        reason: level.quality.text(),
        remedy: level.quality.remedy(),
        references: devices.chain(beside).collect(),
        operation: true,
        ..SurveyRow::default()
    }
}

/// Returns the name of a level: `L2 hit, 2 MiB`; if the rounds agree that less than the declared capacity
/// serves, `L3 hit, to 6 MiB of 105 MiB` with the measured size. Memory has no capacity.
pub(super) fn level_label(level: &LevelRow) -> String {
    let name = &level.name;
    if level.agreement == Agreement::Memory || level.within.is_some() {
        return level.read_title();
    }
    let Some(size) = level.capacity().map(format_size) else { return format!("{name} hit") };
    match (level.agreement, level.declared) {
        (Agreement::Agrees, _) => format!("{name} hit, {size}"),
        (Agreement::Smaller, Some(declared)) => format!("{name} hit, to {size} of {}", format_size(declared)),
        _ => format!("{name} hit, to {size}"),
    }
}

fn measured_row(
    report: &Report,
    m: &Measurement,
    others: &[ReportPointIndex],
    catalogue: &ProbeCatalogue,
) -> Option<SurveyRow> {
    let ns =
        m.typical().or_else(|| m.median_beyond()).filter(|_| m.quality.level != QualityLevel::Unsupported)?;
    let longer = m.typical().is_none();
    let devices = DEVICES.iter().map(|device| {
        let reference = device.for_probe(&m.probe, &m.params).filter(|_| !longer)?;
        Some(published(reference, ns, m.work.map(|work| work.bytes_touched)))
    });
    let beside = others.iter().map(|other| other.reference_cell(report, m, ns));
    Some(SurveyRow {
        family: family(&m.probe).to_owned(),
        label: if m.title.is_empty() { m.probe.clone() } else { m.title.clone() },
        times: m.times,
        ns,
        longer,
        next: m.next_run().map(|next| (next.low, next.high)),
        cycles: m.summary.cycles,
        level: m.quality.level,
        reason: m.joined_reasons().clone(),
        remedy: m.joined_remedies().clone(),
        incomplete: m.incomplete,
        references: devices.chain(beside).collect(),
        rate: m.rate_touched(),
        blocked: m.values.get("blocked").filter(|v| v.unit == "%").map(|v: &MeasuredQuantity| v.value),
        rejected: m.rejected_share(),
        operation: catalogue.is_operation(&m.probe),
    })
}

/// Returns a device's number beside this machine's number.
fn published(reference: &Reference, ours: f64, bytes: Option<u64>) -> ReferenceCell {
    let definition = &reference.definition;
    let touched = bytes.filter(|bytes| *bytes > 0);
    let share = definition.bytes.zip(touched).map(|(wanted, touched)| wanted as f64 / touched as f64);
    let part = share.unwrap_or(1.0) / definition.factor;
    let same = definition.differs.is_empty() && (definition.bytes.is_none() || touched.is_some());
    let note = [&definition.differs, &definition.note].into_iter().find(|note| !note.is_empty());
    ReferenceCell {
        ns: reference.ns,
        part,
        ratio: ratio(reference.ns, ours * part),
        same,
        sign: if same { "" } else { "≠" },
        note: note.cloned(),
    }
}

/// Returns another report's number for a point, with the differences of that point from this machine's point.
/// In case of doubt there is no ratio either.
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

/// Returns the revision of a probe in a report; 1 if the report has no point of it.
fn revision(report: &Report, probe: &str) -> u32 {
    report.of_probe(probe).next().map_or(1, |m| m.revision)
}

/// Returns a note if the revisions of a probe differ: then the code that is timed differs.
fn differs_by_revision(ours: u32, theirs: u32) -> Option<String> {
    let text = || format!("revision {theirs} of the probe there, {ours} here: what is timed differs");
    (ours != theirs).then(text)
}

/// Returns `theirs / ours`: 1 if both are 0, infinite if only `ours` is 0.
fn ratio(theirs: f64, ours: f64) -> f64 {
    if theirs == ours { 1.0 } else { theirs / ours }
}

/// Another report, with its points by probe and key.
struct ReportPointIndex<'a> {
    report: &'a Report,
    points: HashMap<(&'a str, String), &'a Measurement>,
    levels: Vec<LevelRow>,
    /// Revision of the probe of `levels`.
    chase: u32,
}

impl<'a> ReportPointIndex<'a> {
    fn new(report: &'a Report) -> Self {
        let measured = report.measurements.iter().filter(|m| m.is_timed());
        let mut points = HashMap::new();
        for m in measured {
            let place = file_location(&m.params);
            // A file point answers for its own file system, and for any other
            // of its kind where that one is not there.
            for key in [point_key(&m.params, place.name), point_key(&m.params, place.kind)] {
                points.entry((m.probe.as_str(), key)).or_insert(m);
            }
        }
        ReportPointIndex { report, points, levels: level_rows(report), chase: revision(report, CHASE) }
    }

    fn reference_cell(&self, report: &Report, ours: &Measurement, ns: f64) -> Option<ReferenceCell> {
        let here = file_location(&ours.params);
        let exact = self.points.get(&(ours.probe.as_str(), point_key(&ours.params, here.name)));
        let theirs =
            exact.or_else(|| self.points.get(&(ours.probe.as_str(), point_key(&ours.params, here.kind))))?;
        let elsewhere =
            || format!("measured on {}, not on {}", file_location(&theirs.params).name, here.name);
        let differs = [
            differs_by_revision(ours.revision, theirs.revision),
            differs_by_batch(report.batch_target(ours), self.report.batch_target(theirs)),
            exact.is_none().then(elsewhere),
            beyond_last_bin(ours, theirs),
        ];
        let doubt = doubt(&theirs.quality, theirs.incomplete);
        let of_theirs = theirs.typical().or_else(|| theirs.median_beyond())?;
        Some(compared(of_theirs, ns, differs.into_iter().flatten().collect(), doubt))
    }
}

/// Returns a note if one of the medians is beyond the last bin.
fn beyond_last_bin(ours: &Measurement, theirs: &Measurement) -> Option<String> {
    let whose = match [ours, theirs].map(|m| m.median_beyond().is_some()) {
        [false, false] => return None,
        [true, false] => "the median here is",
        [false, true] => "its median is",
        [true, true] => "both medians are",
    };
    Some(format!("{whose} beyond the last bin, and longer than that"))
}

/// Returns a note if the lengths of the batches differ, since means over batches of another length scatter in
/// another way. The number of operations in a batch follows from the speed of the machine, and is no
/// difference.
fn differs_by_batch(ours: Option<u64>, theirs: Option<u64>) -> Option<String> {
    let (ours, theirs) = ours.zip(theirs).filter(|(ours, theirs)| ours != theirs)?;
    let [ours, theirs] = [ours, theirs].map(|ns| format_time(ns as f64));
    Some(format!("batches of {theirs} there, of {ours} here"))
}

/// Returns the sign and the reason for doubt about a figure of another report; `None` without doubt.
fn doubt(theirs: &Quality, incomplete: bool) -> Option<(&'static str, String)> {
    let reason = || theirs.text().unwrap_or_else(|| "no reason is given".to_owned());
    match theirs.level {
        level if level.is_doubtful() => Some(("!", format!("{} there: {}", level.level_name(), reason()))),
        _ => incomplete.then(|| ("~", "the run ended before it was measured in full there".to_owned())),
    }
}

/// Place where a file point was measured.
struct FilePointLocation<'a> {
    name: &'a str,
    kind: &'static str,
}

fn file_location(params: &Params) -> FilePointLocation<'_> {
    match params.get(param::FILESYSTEM).and_then(ParamValue::as_text) {
        Some(name @ "tmpfs") => FilePointLocation { name, kind: "in memory" },
        Some(name) => FilePointLocation { name, kind: "on a device" },
        _ => FilePointLocation { name: "", kind: "" },
    }
}

/// Returns the key of a point. Directories and device names are left out: they differ from machine to machine
/// and say nothing about the operation.
fn point_key(params: &Params, place: &str) -> String {
    let mut key = String::from(place);
    for (name, value) in params {
        if ![param::DIRECTORY, param::DEVICE, param::FILESYSTEM].contains(&name.as_str()) {
            key.push_str(&format!("\0{name}={value}"));
        }
    }
    key
}

#[cfg(test)]
mod tests;
