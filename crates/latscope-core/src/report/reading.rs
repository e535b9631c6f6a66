//! Reading of the text of a result file: in full, or without its samples in order of time.

use super::{
    Account, Contention, Finding, Imported, Interrupted, MeasuredQuantity, Measurement, Merged,
    OperationWork, Outlier, Recordings, RemoteIdentity, Report, SCHEMA, SampleBlock, Sampling, Semantics,
    Summary, Tested, ToolVersion, TransactionHop, Verdict, Warning,
};
use crate::histogram::Histogram;
use crate::json;
use crate::machine::Machine;
use crate::plan::{Params, Plan};
use crate::quality::Quality;
use crate::rounds::{Prediction, RoundSummary};
use serde::{Deserialize, Deserializer};
use serde_json::de::SliceRead;
use std::collections::BTreeMap;

/// Reason why a file is not a result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No JSON, or not the fields of a result.
    #[error("it is not a latscope result, or a damaged one (choose a file that --json wrote)")]
    Damaged(#[from] serde_json::Error),
    /// The file has JSON of another program.
    #[error("it is not a latscope result, for it has no \"schema\" field (choose a file that --json wrote)")]
    Foreign,
    /// A schema this version does not know.
    #[error(
        "its schema is {0:?}, and this latscope reads {SCHEMA:?}: use the latscope that wrote it, or a newer one"
    )]
    Schema(String),
    /// A list is longer than any that latscope writes.
    #[error("it has {found} {what}, more than the {most} that a result may have (split it)")]
    TooMany {
        /// Items of the list.
        what: &'static str,
        /// Length of the list.
        found: usize,
        /// The most that is read.
        most: usize,
    },
    /// A text is longer than any that latscope writes.
    #[error("it has a text of more than {TEXT} bytes (give the file that the program wrote itself)")]
    TooLong,
}

/// The most points of a result. A small packed file may have a million, with which each view takes minutes.
pub const POINTS: usize = 1 << 16;

/// The most rounds of a point.
const ROUNDS: usize = 1 << 14;

/// The most items of any other list of a point, and of lists of the result.
const ITEMS: usize = 1 << 10;

/// The most single events of a point, and the most warnings and findings of a result.
const EVENTS: usize = 1 << 14;

/// The most bytes of a text: a small packed file may have one of a gigabyte, which each view breaks into lines.
const TEXT: usize = 1 << 16;

impl Report {
    /// Reads a result file's text. Summaries are computed anew from the
    /// histograms; nothing in the file is trusted.
    ///
    /// # Errors
    /// The text is damaged, foreign, or of another schema.
    pub fn from_json(text: &[u8]) -> Result<Report, LoadError> {
        read_whole(text, |json| Report::deserialize(json))
    }

    /// Reads a result file's text like [`from_json`](Report::from_json), but skips the samples in order of time, which
    /// are most of the text of a full survey: they are neither built nor checked.
    ///
    /// # Errors
    /// The text is damaged elsewhere than in these samples, foreign, or of another schema.
    pub fn from_json_without_blocks(text: &[u8]) -> Result<Report, LoadError> {
        read_whole(text, |json| ReportWithoutBlocks::deserialize(json))
    }

    /// Checks by the `schema` of a text that it is a result file of this schema.
    ///
    /// # Errors
    /// The text is damaged, foreign, or of another schema.
    pub fn check_schema(text: &[u8]) -> Result<(), LoadError> {
        #[derive(Deserialize)]
        struct ReportSchemaHead {
            schema: Option<String>,
        }
        match serde_json::from_slice::<ReportSchemaHead>(text)?.schema {
            None => Err(LoadError::Foreign),
            Some(schema) if schema != SCHEMA => Err(LoadError::Schema(schema)),
            Some(_) => Ok(()),
        }
    }
}

type Json<'a> = serde_json::Deserializer<SliceRead<'a>>;

/// Reads all of a text as a report by this function.
fn read_whole<'a>(
    text: &'a [u8],
    of: fn(&mut Json<'a>) -> serde_json::Result<Report>,
) -> Result<Report, LoadError> {
    check_texts(text)?;
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut report = match of(&mut json).and_then(|report| json.end().map(|()| report)) {
        Ok(report) => report,
        // What another program or version wrote has other fields, too: then that is the error.
        Err(error) => return Err(Report::check_schema(text).err().unwrap_or_else(|| error.into())),
    };
    if report.schema != SCHEMA {
        return Err(LoadError::Schema(report.schema));
    }
    check_lengths(&report)?;
    report.measurements.iter_mut().for_each(Measurement::derive_results);
    Ok(report)
}

/// Checks that no text of a JSON document is longer than 64 KiB. What is not JSON is not checked.
///
/// # Errors
/// [`LoadError::TooLong`].
pub fn check_texts(json: &[u8]) -> Result<(), LoadError> {
    let mut rest = json.trim_ascii_start();
    if !rest.starts_with(b"{") && !rest.starts_with(b"[") {
        return Ok(());
    }
    while let Some(begin) = memchr::memchr(b'"', rest) {
        rest = &rest[begin + 1..];
        let mut at = 0;
        while let Some(next) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
            at += next;
            if rest[at] == b'"' {
                break;
            }
            // An escaped character.
            at = (at + 2).min(rest.len());
        }
        if at > TEXT {
            return Err(LoadError::TooLong);
        }
        rest = &rest[at.saturating_add(1).min(rest.len())..];
    }
    Ok(())
}

/// Checks that no list is so long that working on it would take minutes.
fn check_lengths(report: &Report) -> Result<(), LoadError> {
    let of_report = [
        ("points", report.measurements.len(), POINTS),
        ("warnings", report.warnings.len(), EVENTS),
        ("findings", report.findings.len(), EVENTS),
        ("labels", report.labels.len(), ITEMS),
        ("steps", report.plan.steps.len(), POINTS),
        ("notes", report.plan.notes.len(), EVENTS),
    ];
    let of_point = |m: &Measurement| {
        [
            ("rounds of a point", m.rounds.len(), ROUNDS),
            ("values of a point", m.values.len(), ITEMS),
            ("parameters of a point", m.params.len(), ITEMS),
            ("reasons of a point", m.quality.reasons.len(), ITEMS),
            ("events of a point", m.outliers.len(), EVENTS),
            ("hops of a point", m.hops.len(), EVENTS),
        ]
    };
    let all = of_report.into_iter().chain(report.measurements.iter().flat_map(of_point));
    match all.into_iter().find(|(_, found, most)| found > most) {
        Some((what, found, most)) => Err(LoadError::TooMany { what, found, most }),
        None => Ok(()),
    }
}

/// The fields of a [`Report`], whose measurements are read without blocks.
#[derive(Deserialize)]
#[serde(remote = "Report")]
struct ReportWithoutBlocks {
    schema: String,
    tool: ToolVersion,
    #[serde(deserialize_with = "json::or_default")]
    started: String,
    finished: Option<String>,
    interrupted: Option<Interrupted>,
    imported: Option<Imported>,
    merged: Option<Merged>,
    plan: Plan,
    machine: Machine,
    run_id: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    activity: Option<Account>,
    warnings: Vec<Warning>,
    findings: Vec<Finding>,
    #[serde(deserialize_with = "without_blocks")]
    measurements: Vec<Measurement>,
}

fn without_blocks<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Measurement>, D::Error> {
    #[derive(Deserialize)]
    struct BlocklessMeasurement(#[serde(with = "MeasurementWithoutBlocks")] Measurement);
    Ok(Vec::<BlocklessMeasurement>::deserialize(json)?.into_iter().map(|point| point.0).collect())
}

/// The fields of a [`Measurement`] that are read: all but the blocks.
#[derive(Deserialize)]
#[serde(remote = "Measurement")]
struct MeasurementWithoutBlocks {
    probe: String,
    revision: u32,
    params: Params,
    title: String,
    row: bool,
    sampling: Sampling,
    times: Semantics,
    quality: Quality,
    #[serde(default)]
    incomplete: bool,
    summary: Summary,
    interval: Option<Prediction>,
    #[serde(default)]
    rounds: Vec<RoundSummary>,
    contention: Option<Contention>,
    account: Option<Account>,
    values: BTreeMap<String, MeasuredQuantity>,
    work: Option<OperationWork>,
    histogram: Histogram,
    #[serde(skip)]
    blocks: Vec<SampleBlock>,
    #[serde(default)]
    outliers: Vec<Outlier>,
    #[serde(default)]
    hops: Vec<TransactionHop>,
    remote: Option<RemoteIdentity>,
    corrected: Option<Histogram>,
    tested: Option<Tested>,
    recordings: Option<Recordings>,
    verdict: Option<Verdict>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::quality::{QualityLevel, Reason};

    #[test]
    fn a_text_of_any_length_is_read_in_little_time_or_refused() {
        let of = |begin: &str, length: usize| {
            let mut report = fixture::wake();
            report.machine.kernel = begin.to_owned() + &"x".repeat(length);
            Report::from_json(report.to_json().as_bytes())
        };
        assert_eq!(of("", TEXT).unwrap().machine.kernel.len(), TEXT);
        for begin in ["x", "\"", "\\"] {
            assert!(matches!(of(begin, TEXT), Err(LoadError::TooLong)), "{begin}");
        }
        assert!(matches!(check_texts(b"{\"\\"), Ok(())), "what ends in a text is damaged, and not long");
    }

    #[test]
    fn a_list_of_any_length_is_read_in_little_time_or_refused() {
        let mut whole = fixture::wake();
        let point = whole.measurements[0].clone();
        let value = point.values.values().next().cloned().unwrap_or(MeasuredQuantity {
            value: 1.0,
            unit: "ns".to_owned(),
            better: crate::value::Better::Less,
        });
        type Longer = fn(&mut Report, usize, &MeasuredQuantity);
        let lists: [(&str, usize, Longer); 4] = [
            ("points", POINTS, |report, length, _| {
                let point = report.measurements[0].clone();
                report.measurements = vec![Measurement { blocks: Vec::new(), ..point }; length];
            }),
            ("values of a point", ITEMS, |report, length, value| {
                let values = (0..length).map(|at| (format!("value{at}"), value.clone()));
                report.measurements[0].values = values.collect();
            }),
            ("reasons of a point", ITEMS, |report, length, _| {
                let reasons =
                    (0..length).map(|at| Reason::new(QualityLevel::Degraded, "x", format!("{at}"), ""));
                report.measurements[0].quality.reasons = reasons.collect();
            }),
            ("warnings", EVENTS, |report, length, _| {
                let warning = Warning { id: "x".to_owned(), text: "x".to_owned(), remedy: None };
                report.warnings = vec![warning; length];
            }),
        ];
        for (what, most, longer) in lists {
            longer(&mut whole, most + 1, &value);
            let said = check_lengths(&whole).unwrap_err().to_string();
            assert!(said.contains(&format!("{} {what}, more than the {most}", most + 1)), "{said}");
            longer(&mut whole, most, &value);
            check_lengths(&whole).unwrap();
        }
    }

    #[test]
    fn all_but_the_blocks_is_read_and_blocks_are_neither_built_nor_checked() {
        let imported = Report { imported: Some(Imported::default()), ..fixture::wake() };
        for report in [fixture::wake(), fixture::ipc::payloads(), imported] {
            let text = report.to_json();
            let whole = Report::from_json(text.as_bytes()).unwrap();
            let lean = Report::from_json_without_blocks(text.as_bytes()).unwrap();
            assert!(whole.measurements.iter().any(|m| !m.blocks.is_empty()));
            assert_eq!(lean, whole.without_blocks());
            let damaged = text.replace("\"median\":", "\"median\":-");
            assert!(damaged != text);
            assert!(matches!(Report::from_json(damaged.as_bytes()), Err(LoadError::Damaged(_))));
            assert_eq!(Report::from_json_without_blocks(damaged.as_bytes()).unwrap(), lean);
        }
    }
}
