//! Import of the results of other programs: the text of a file becomes a [`Report`]. Each format has a file here and a
//! line in [`FORMATS`]. A format is recognised by its content, never by the file name; facts that it lacks stay
//! unknown.

mod bins;
mod checks;
mod command_line;
mod cyclictest;
mod cyclictest_json;
mod cyclictest_lines;
mod encoding;
mod fio;
mod google_benchmark;
mod hyperfine;
mod jitterdebugger;
mod lat_mem_rd;
mod others;
mod report;
mod rtla;
#[cfg(test)]
mod tests;
mod time;

use crate::runs::RunResult;
use crate::verdict::tested;
use latscope_core::report::{LoadError, Measurement, Report, Warning, check_texts};
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::time::SystemTime;

/// A way in which another program writes its results.
#[derive(Debug, Clone, Copy)]
pub struct ImportFormat {
    /// The program, and the option that requests this output.
    pub name: &'static str,
    /// Returns true if a text is of this format, complete or not.
    recognises: fn(&str) -> bool,
    /// Reads the text as a result; an error describes its fault in words.
    read: fn(&str) -> Result<Report, String>,
}

/// Every format that is read.
pub const FORMATS: &[ImportFormat] = &[
    ImportFormat {
        name: "cyclictest --json",
        recognises: cyclictest_json::recognises,
        read: cyclictest_json::read_output,
    },
    ImportFormat { name: "cyclictest -h", recognises: cyclictest::recognises, read: cyclictest::read_output },
    ImportFormat {
        name: "jitterdebugger -o",
        recognises: jitterdebugger::recognises,
        read: jitterdebugger::read_output,
    },
    ImportFormat { name: "fio --output-format=json+", recognises: fio::recognises, read: fio::read },
    ImportFormat { name: "rtla timerlat hist", recognises: rtla::is_timerlat, read: rtla::timerlat },
    ImportFormat { name: "rtla osnoise hist", recognises: rtla::is_osnoise, read: rtla::osnoise },
    ImportFormat {
        name: "Google Benchmark --benchmark_format=json",
        recognises: google_benchmark::recognises,
        read: google_benchmark::read_output,
    },
    ImportFormat {
        name: "hyperfine --export-json",
        recognises: hyperfine::recognises,
        read: hyperfine::read_output,
    },
    ImportFormat { name: "lat_mem_rd", recognises: lat_mem_rd::recognises, read: lat_mem_rd::read_output },
];

/// Reason why a file is no readable result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is no result of latscope, and none of a known program.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The file is a result of latscope, but not whole: a run that crashed leaves such files.
    #[error("it is a result of latscope that is damaged or cut off (measure it again)")]
    Damaged,
    /// The file is of latscope, but no result.
    #[error("it is {0}, no result (choose a file that --json of a measurement wrote)")]
    Other(&'static str),
    /// The file is of another program, and cannot be understood.
    #[error("it is of {format}: {why}")]
    Format {
        /// The format that was recognised.
        format: &'static str,
        /// Description of the fault and of a remedy.
        why: String,
    },
    /// The file is empty, or an output that is recognised and not read.
    #[error("{0}")]
    Unread(String),
    /// The file has outputs of several programs.
    #[error("it has the outputs of {0}: choose a file for each")]
    Several(String),
}

impl ReadError {
    /// Returns true if the file is a result of which a part is lost or not understood.
    pub fn is_of_result(&self) -> bool {
        match self {
            ReadError::Damaged | ReadError::Format { .. } | ReadError::Several(_) => true,
            ReadError::Load(error) => {
                matches!(error, LoadError::Schema(schema) if schema.starts_with("latscope/"))
            }
            ReadError::Other(_) | ReadError::Unread(_) => false,
        }
    }
}

/// A text of a file in UTF-8, without a byte-order mark: what reads characters of it must not see UTF-16.
pub fn decode_text(text: Vec<u8>) -> Vec<u8> {
    match encoding::utf8(&text) {
        Cow::Borrowed(same) if same.len() == text.len() => text,
        other => other.into_owned(),
    }
}

/// Reads a result of latscope, or the output of another program.
///
/// # Errors
/// The file is neither, or damaged.
pub fn read_report(text: &[u8]) -> Result<Report, ReadError> {
    let text = &*encoding::utf8(text);
    let mut report = Report::from_json(text).or_else(|error| otherwise(text, error))?;
    tested::record_evidence(&mut report);
    Ok(report)
}

/// Reads a result like [`read_report`], but skips its samples in order of time, which only some views show. What the
/// file says of its evidence (`tested`) counts: without these samples it is not computed again.
///
/// # Errors
/// The errors of [`read_report`].
pub fn read_report_without_blocks(text: &[u8]) -> Result<Report, ReadError> {
    match Report::from_json_without_blocks(&encoding::utf8(text)) {
        Ok(report) if !tested::is_missing(&report) => Ok(report),
        _ => read_report(text),
    }
}

/// Reads a result like [`read_report`], but without the data that grow with time, to judge it beside others.
///
/// # Errors
/// The errors of [`read_report`].
pub fn read_run(text: &[u8]) -> Result<RunResult, ReadError> {
    let run = read_runs(text)?;
    // The run is the unit of judging.
    let merged = run.report.merged.is_some();
    if merged { Err(ReadError::Other("several runs merged into one")) } else { Ok(run) }
}

/// Returns true if each round of a measurement is a run: a process of its own, as hyperfine starts them.
pub(crate) fn has_runs(m: &Measurement) -> bool {
    m.probe == hyperfine::PROBE
}

/// Number of runs of a result: one, except of programs whose [rounds are runs](has_runs).
pub(crate) fn runs_in(report: &Report) -> usize {
    let runs = report.measurements.iter().filter(|m| has_runs(m)).map(|m| m.rounds.len());
    runs.min().unwrap_or(1).max(1)
}

/// Reads a result like [`read_run`], also one that several runs were merged into: to judge it by itself.
///
/// # Errors
/// The errors of [`read_report`].
pub fn read_runs(text: &[u8]) -> Result<RunResult, ReadError> {
    let text = &*encoding::utf8(text);
    RunResult::from_json(text).or_else(|error| otherwise(text, error).map(RunResult::from_report))
}

/// Reads a text that is no result of latscope as the output of another program.
fn otherwise(text: &[u8], error: LoadError) -> Result<Report, ReadError> {
    // Of this version's own schema, or of another one: no other program's in any case.
    if let LoadError::Schema(schema) = &error {
        return Err(OTHERS
            .iter()
            .find(|(begin, _)| schema.starts_with(begin))
            .map_or_else(|| error.into(), |(_, what)| ReadError::Other(what)));
    }
    if matches!(error, LoadError::TooLong) {
        return Err(error.into());
    }
    if is_cut_off(text) {
        return Err(ReadError::Damaged);
    }
    let text = encoding::normalise_lines(text);
    let found: Vec<&ImportFormat> = FORMATS.iter().filter(|format| (format.recognises)(&text)).collect();
    match found.as_slice() {
        [] => Err(others::recognise_unread(&text).map_or_else(|| error.into(), ReadError::Unread)),
        [format] => (format.read)(&text).map_err(|why| ReadError::Format { format: format.name, why }),
        several => {
            let names: Vec<&str> = several.iter().map(|format| format.name).collect();
            Err(ReadError::Several(names.join(" and ")))
        }
    }
}

/// Id of the warning that the time of a run is hardly right.
pub const IMPLAUSIBLE_TIME: &str = "implausible-time";
/// Id of the warning that a share of the CPUs is none.
pub const IMPLAUSIBLE_SHARE: &str = "implausible-share";

/// Adds a warning to a result whose time is hardly right (a date that does not exist or lies in the future, a clock
/// that was never set, an end before the begin), and one if it states more than all of the CPUs.
pub fn warn_if_doubtful(report: &mut Report, now: SystemTime) {
    let time =
        time::find_doubt((&report.started, report.finished.as_deref()), &report.machine.kernel_version, now);
    add_warning(report, IMPLAUSIBLE_TIME, time, Some("set the clock of the machine"));
    let activity = report.activity.as_ref();
    let shares = activity.map(|account| [account.others, account.unseen, account.stolen.unwrap_or(0.0)]);
    let share = shares.into_iter().flatten().find(|share| !(0.0..=1.0).contains(share));
    let text = share.map(|share| {
        format!("it states a share of the CPUs of {share}: the file was changed, or is damaged")
    });
    add_warning(report, IMPLAUSIBLE_SHARE, text, None);
}

fn add_warning(report: &mut Report, id: &str, text: Option<String>, remedy: Option<&str>) {
    let Some(text) = text else { return };
    report.warnings.retain(|known| known.id != id);
    report.warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.map(str::to_owned) });
}

/// Files of latscope that are no results, by the prefixes of their schemas.
const OTHERS: [(&str, &str); 5] = [
    ("latscope-trial/", "what came of a trial"),
    ("latscope-gate/", "a budget judged"),
    ("latscope-compare/", "a comparison"),
    ("latscope-history/", "a history"),
    ("latscope-", "another file of latscope"),
];

/// Returns true if a text that cannot be read begins as a result of latscope does, or is a prefix of that. A crash of
/// the machine may leave bytes of zero.
fn is_cut_off(text: &[u8]) -> bool {
    const BEGIN: &[u8] = b"{\"schema\":\"latscope/";
    let dense: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != 0)
        .take(BEGIN.len())
        .collect();
    !dense.is_empty() && BEGIN.starts_with(&dense)
}

/// The whole lines of a text with their numbers: a last line without its end may have lost digits.
fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole.lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// The JSON in a text: programs and shells may print lines before it.
fn json_of(text: &str) -> Option<&str> {
    let at = if text.starts_with('{') { 0 } else { text.find("\n{")? + 1 };
    Some(&text[at..])
}

/// How programs print what is no number: the mean of nothing, a rate of no time.
const NO_NUMBERS: [&str; 8] = ["-nan", "nan", "-NaN", "NaN", "-inf", "-Infinity", "inf", "Infinity"];

/// A JSON text in which what is no number, and is none in JSON, is null. Lines stay as they are.
fn without_nan(text: &str) -> Cow<'_, str> {
    if !NO_NUMBERS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let (mut json, mut rest) = (String::with_capacity(text.len()), text);
    let (mut in_string, mut is_escaped) = (false, false);
    while let Some(c) = rest.chars().next() {
        let word = NO_NUMBERS.iter().find(|word| !in_string && rest.starts_with(**word));
        let (length, kept) = word.map_or((c.len_utf8(), &rest[..c.len_utf8()]), |word| (word.len(), "null"));
        in_string ^= c == '"' && !is_escaped;
        is_escaped = in_string && c == '\\' && !is_escaped;
        json.push_str(kept);
        rest = &rest[length..];
    }
    Cow::Owned(json)
}

/// Returns true if the JSON of a text has all of these names, even if it ends early. A program or a text that only
/// mentions them is no JSON, or does not use them as names.
fn has_names(text: &str, names: &[&str]) -> bool {
    let Some(json) = json_of(text).map(without_nan) else { return false };
    if !names.iter().all(|name| json.contains(&format!("\"{name}\""))) {
        return false;
    }
    let mut missing: BTreeSet<&str> = names.iter().copied().collect();
    let mut reader = serde_json::Deserializer::from_str(&json);
    // Where it ends early, or goes on with something else, the names before that count; several outputs may follow
    // each other.
    while NamesOf(&mut missing).deserialize(&mut reader).is_ok() {}
    missing.is_empty()
}

/// Removes the names that occur from those that are missing.
struct NamesOf<'a, 'b>(&'a mut BTreeSet<&'b str>);

impl<'de> DeserializeSeed<'de> for NamesOf<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NamesOf<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<str>>()? {
            self.0.remove(&*name);
            map.next_value_seed(NamesOf(self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(NamesOf(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads the JSON of a text, which nothing may follow; what is no number is null. An error has the line of the text.
fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let text = &*without_nan(text);
    let json = json_of(text).unwrap_or_default();
    check_texts(json.as_bytes()).map_err(|error| error.to_string())?;
    let lines_to = |end: usize| text[..end].matches('\n').count();
    let start = text.len() - json.len();
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<T>();
    let value = values.next().ok_or("it ends early")?.map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => "it ends early".to_owned(),
        _ => {
            let text = error.to_string();
            let why = text.rsplit_once(" at line ").map_or(&*text, |(why, _)| why);
            format!("line {}: {why}", lines_to(start) + error.line())
        }
    })?;
    let end = start + values.byte_offset();
    let rest = text[end..].trim_start();
    let line = lines_to(text.len() - rest.len()) + 1;
    match rest.chars().next() {
        None => Ok(value),
        Some('{' | '[') => Err(format!(
            "it has several outputs, of which the second begins in line {line}: choose a file for each"
        )),
        Some(_) => {
            let first = rest.lines().next().unwrap_or_default();
            let first: String = first.chars().take(40).collect();
            Err(format!(
                "line {line}, {first:?}, follows the end of its JSON: keep only the JSON in the file"
            ))
        }
    }
}
