//! The JSON of cyclictest. Its command line has settings that its text lacks.

use super::bins::{BinCounts, ImportHistogram, Numbered};
use super::checks::{NO_MEAN, StatedNumber};
use super::command_line::CyclictestSettings;
use super::cyclictest;
use super::report::{ImportSource, SysInfo, finish_report, imported, sampled_point};
use super::{IMPLAUSIBLE_TIME, from_json, has_names, time};
use latscope_core::catalogue::ids;
use latscope_core::histogram::Histogram;
use latscope_core::json::LARGEST;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params, params};
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Measurement, Report, Semantics, Warning};
use latscope_core::units::{count_with_noun, format_time};
use serde::Deserialize;
use std::time::Duration;

/// Returns true if a text has the names with which all programs of rt-tests begin.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["file_version"])
        && (has_names(text, &["rt_test_version:"]) || has_names(text, &["rt_test_version"]))
}

// The colons are part of the names.
#[derive(Deserialize)]
struct CyclictestJsonHead {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command_line: String,
}

#[derive(Deserialize)]
struct CyclictestJsonFile {
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: String,
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    sysinfo: SysInfo,
    /// 1 for ns, 0 for µs.
    resolution_in_ns: u64,
    /// Present if latscope measured as cyclictest.
    latscope: Option<CyclictestJsonMarker>,
    num_threads: Option<usize>,
    /// Exit code of the program.
    #[serde(default)]
    return_code: i64,
    thread: Numbered<CyclictestJsonThread>,
}

/// Member by which latscope marks the JSON that it writes as cyclictest.
#[derive(Deserialize)]
struct CyclictestJsonMarker {
    version: String,
    /// Missed activations of each thread.
    missed: Vec<u64>,
}

#[derive(Deserialize)]
struct CyclictestJsonThread {
    #[serde(default)]
    histogram: BinCounts,
    cycles: u64,
    min: u64,
    max: u64,
    /// `None` of a thread that was never woken.
    avg: Option<f64>,
    cpu: Option<i64>,
}

/// Reads the histograms of a run.
///
/// # Errors
/// The text is of another program of rt-tests, has no histogram, or is damaged.
pub(super) fn read_output(text: &str) -> Result<Report, String> {
    let CyclictestJsonHead { command_line } = from_json(text)?;
    if !is_cyclictest(&command_line) {
        return Err(format!("it was written by `{command_line}`: of rt-tests only cyclictest is read"));
    }
    let mut file: CyclictestJsonFile = from_json(text)?;
    let machine = std::mem::take(&mut file.sysinfo).machine();
    let Numbered(threads) = &file.thread;
    if let Some(stated) = file.num_threads.filter(|stated| *stated != threads.len()) {
        return Err(format!(
            "it has {} of its {}: it was cut off",
            threads.len(),
            count_with_noun(stated as u64, "thread")
        ));
    }
    if let Some((number, _)) =
        threads.iter().zip(0..).map(|((number, _), at)| (*number, at)).find(|(a, b)| a != b)
    {
        return Err(format!("it has a thread {number}, and lacks one before it: it is damaged"));
    }
    let tick_ps = match file.resolution_in_ns {
        0 => 1_000_000,
        1 => 1_000,
        other => return Err(format!("its resolution_in_ns is {other}, where 0 is µs and 1 is ns")),
    };
    let options = CyclictestSettings::from_command_line(&command_line);
    check_against(&file, options.as_ref())?;
    let mut unknown = Vec::new();
    if file.latscope.is_none() {
        unknown.push("missed activations");
    }
    if options.is_none() {
        unknown.extend(["interval", "scheduling policy", "priority", "how the threads wait", "clock"]);
    }
    if options.as_ref().is_some_and(|asked| asked.priority_of(0, threads.len()).is_none()) {
        unknown.push("priority");
    }
    let (program, version) = match &file.latscope {
        Some(latscope) => ("latscope as cyclictest", latscope.version.clone()),
        None => ("cyclictest", file.version.clone()),
    };
    let source = ImportSource { program, version: Some(version), text, unknown: &unknown };
    let mut report = source.empty_report();
    report.machine = machine;
    report.started = time::read_date(file.start_time.as_deref())?.unwrap_or_default();
    report.finished = time::read_date(file.end_time.as_deref())?;
    let mut measured = Vec::new();
    for (number, thread) in threads {
        let setup = CyclictestRunSetup { tick_ps, threads: threads.len(), asked: options.as_ref() };
        let m = thread.to_measurement(*number, setup);
        let mut m = m.map_err(|why| format!("thread {number}: {why}"))?;
        if let Some(why) = options.as_ref().and_then(|asked| thread.contradiction(asked)) {
            return Err(format!("thread {number}: {why}"));
        }
        if file.return_code != 0 {
            let text = format!("cyclictest ended with exit code {}", file.return_code);
            m.lower(Reason::new(QualityLevel::Degraded, "calls-failed", text, ""));
        }
        m.corrected = options.as_ref().and_then(|asked| with_missed(&m, tick_ps, asked));
        if let Some(latscope) = &file.latscope {
            let missed = usize::try_from(*number).ok().and_then(|at| latscope.missed.get(at));
            let missed = missed.filter(|missed| **missed <= LARGEST);
            let missed = missed.ok_or_else(|| format!("thread {number}: its missed activations lack"))?;
            m.lower(imported(&report).with_number("missed", *missed as f64));
        }
        measured.push(m);
    }
    warn_of_time(&mut report, &file, options.as_ref());
    for date in [&file.start_time, &file.end_time].into_iter().flatten() {
        let texts = time::weekday_doubt(date).into_iter();
        report.warnings.extend(texts.map(|text| Warning {
            id: IMPLAUSIBLE_TIME.to_owned(),
            text,
            remedy: None,
        }));
    }
    note_limit(&mut report, &measured, options.as_ref(), tick_ps);
    if file.latscope.is_none() {
        warn_of_missed(&mut report, &measured);
    }
    finish_report(report, measured)
}

/// Checks a file against the command line in it.
///
/// # Errors
/// Both contradict each other: one of them was changed.
fn check_against(file: &CyclictestJsonFile, asked: Option<&CyclictestSettings>) -> Result<(), String> {
    let Some(asked) = asked else { return Ok(()) };
    if asked.nanoseconds != (file.resolution_in_ns == 1) {
        let unit = if asked.nanoseconds { "has -N" } else { "has no -N" };
        return Err(format!(
            "its resolution_in_ns is {}, and its command line {unit}",
            file.resolution_in_ns
        ));
    }
    let threads = &file.thread.0;
    if let Some(stated) = asked.threads.filter(|stated| *stated != threads.len() as u64) {
        let found = count_with_noun(threads.len() as u64, "thread");
        return Err(format!("it has {found}, and its command line asks for {stated} (-t)"));
    }
    let fault = |(number, thread): &(u64, CyclictestJsonThread)| {
        Some(format!("thread {number}: {}", thread.bin_beyond(asked)?))
    };
    threads.iter().find_map(fault).map_or(Ok(()), Err)
}

/// Warns of cycles that take longer than the time between the dates of the run, which are whole seconds.
fn warn_of_time(report: &mut Report, file: &CyclictestJsonFile, asked: Option<&CyclictestSettings>) {
    let time = |text: &str| humantime::parse_rfc3339(text).ok();
    let took = report.finished.as_deref().and_then(time).zip(time(&report.started));
    let Some(took) = took.and_then(|(finished, started)| finished.duration_since(started).ok()) else {
        return;
    };
    let needed = |(number, thread): &(u64, CyclictestJsonThread)| {
        asked?.interval_ns(*number)?.checked_mul(thread.cycles)
    };
    let Some(needed) = file.thread.0.iter().filter_map(needed).max() else { return };
    let rest = Duration::from_secs(2);
    if Duration::from_nanos(needed) > took + rest {
        let [needed, took] = [needed as f64, took.as_nanos() as f64].map(format_time);
        let text = format!("its cycles take {needed} at their interval, and its dates are {took} apart");
        report.warnings.push(Warning { id: IMPLAUSIBLE_TIME.to_owned(), text, remedy: None });
    }
}

/// Notes that a threshold ended the run: its longest latency ended it, and says little on how rare that is.
fn note_limit(
    report: &mut Report,
    measured: &[Measurement],
    asked: Option<&CyclictestSettings>,
    tick_ps: u64,
) {
    let Some(limit) = asked.and_then(|asked| asked.limit).filter(|limit| *limit > 0) else { return };
    let above = |m: &Measurement| m.histogram.max().is_some_and(|max| max > (limit as f64) * 1e3);
    if measured.iter().any(above) {
        let unit = if tick_ps == 1_000 { " (-N)" } else { "" };
        report.plan.notes.push(format!("a latency above the threshold, -b {limit} µs{unit}, ended the run"));
    }
}

/// The most activations that are counted as missed. A run of a day has fewer.
const MOST_MISSED: u64 = 1 << 22;

/// Distribution with the activations that were certainly missed: a thread that is late by several intervals skips those
/// that were due, each later by an interval less. `None` where the interval is not known, or begins anew with each
/// wake-up.
fn with_missed(m: &Measurement, tick_ps: u64, asked: &CyclictestSettings) -> Option<Histogram> {
    let interval =
        m.numeric_param(param::INTERVAL).filter(|interval| *interval > 0 && asked.method != "relative")?;
    let interval = interval as f64;
    let skipped = |ns: f64| (ns / interval).ceil().max(1.0) as u64 - 1;
    let mut late: Vec<(f64, u64)> = m.histogram.buckets_ns().map(|(low, _, n)| (low, n)).collect();
    let longest = m.histogram.max()?;
    // The longest is known exactly; it is beyond the last bin, or one of the last that has any.
    match late.last_mut() {
        _ if m.histogram.overflow() > 0 => late.push((longest, 1)),
        Some((_, n)) => {
            *n -= 1;
            late.push((longest, 1));
        }
        None => return None,
    }
    let missed = late.iter().try_fold(0u64, |sum, (ns, n)| sum.checked_add(skipped(*ns).checked_mul(*n)?));
    missed.filter(|missed| *missed <= MOST_MISSED)?;
    let mut all = Histogram::new(tick_ps);
    for (ns, n) in late {
        for at in 1..=skipped(ns) {
            let ticks = ((ns - at as f64 * interval) * 1e3 / tick_ps as f64) as u64;
            (0..n).for_each(|_| all.record(ticks));
        }
    }
    let mut whole = m.histogram.clone();
    whole.merge(&all);
    Some(whole)
}

/// Warns of activations that were missed, which cyclictest does not count.
fn warn_of_missed(report: &mut Report, measured: &[Measurement]) {
    let missed = |m: &Measurement| Some(m.missed_at_least()).filter(|missed| *missed > 0);
    for (m, missed) in measured.iter().filter_map(|m| Some((m, missed(m)?))) {
        let text = format!(
            "{}: it was late by more than an interval, so that at least {} did not take place; verdicts count them, \
             and figures do not",
            m.title,
            count_with_noun(missed, "activation")
        );
        report.warnings.push(Warning { id: MISSED.to_owned(), text, remedy: None });
    }
}

/// Id of the warning that activations were missed, though the output does not say so.
const MISSED: &str = "activations-missed";

/// Settings of a run that the figures of its threads need.
#[derive(Clone, Copy)]
struct CyclictestRunSetup<'a> {
    tick_ps: u64,
    /// Number of all threads of the run.
    threads: usize,
    asked: Option<&'a CyclictestSettings>,
}

fn is_cyclictest(command_line: &str) -> bool {
    command_line.split_whitespace().any(|word| word.rsplit('/').next() == Some("cyclictest"))
}

impl CyclictestJsonThread {
    /// Returns which bin is beyond the histogram that was asked for; `None` if none is.
    fn bin_beyond(&self, asked: &CyclictestSettings) -> Option<String> {
        let (last, _) = self.histogram.0.last()?;
        let length = asked.length().filter(|length| last >= length)?;
        Some(format!("it has a bin of {last}, and the histogram of -h {length} ends below"))
    }

    /// Returns what cannot be of a thread that was started with these settings; `None` if nothing.
    fn contradiction(&self, asked: &CyclictestSettings) -> Option<String> {
        // A run may end early, and not go on.
        if let Some(most) = asked.loops.filter(|most| self.cycles > *most) {
            return Some(format!("it has {}, and -l allows {most}", count_with_noun(self.cycles, "cycle")));
        }
        let cpu = self.cpu.and_then(|cpu| u64::try_from(cpu).ok())?;
        let cpus = asked.cpus.as_deref().filter(|cpus| !cpus.iter().any(|(a, b)| (*a..=*b).contains(&cpu)));
        cpus.map(|_| format!("it is of CPU {cpu}, which is not among those of -a"))
    }

    fn to_measurement(&self, number: u64, setup: CyclictestRunSetup) -> Result<Measurement, String> {
        let CyclictestJsonThread { histogram: BinCounts(counts), min, max, avg, .. } = self;
        if counts.is_empty() && self.cycles > 0 {
            return Err("it has no histogram, only the least, the mean and the largest figure: \
                        run cyclictest with -h 1000"
                .to_owned());
        }
        if self.cycles > 0 && avg.is_none() {
            return Err(NO_MEAN.to_owned());
        }
        let counted = counts.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let overflow = counted.and_then(|counted| self.cycles.checked_sub(counted));
        let counted = ImportHistogram {
            tick_ps: setup.tick_ps,
            bins: None,
            counts,
            overflow: overflow.ok_or("its histogram has more counts than cycles: it is damaged")?,
            overflow_from: setup.asked.and_then(CyclictestSettings::length),
            count: Some(self.cycles),
            min: *min,
            max: *max,
            mean: avg.map(|avg| StatedNumber::to_step(avg, 0.01)),
        };
        let (params, title) = (self.params(number, setup), format!("wake-up, lateness, thread {number}"));
        Ok(sampled_point(ids::WAKE_TIMER, params, title, Semantics::OneWay, counted.histogram()?))
    }

    /// Known parameters of the thread, by the names of the probe `wake.timer`.
    fn params(&self, number: u64, setup: CyclictestRunSetup) -> Params {
        let mut params = params([(param::THREAD, number.into())]);
        let mut put = |name: &str, value: ParamValue| params.insert(name.to_owned(), value);
        match self.cpu.map(u64::try_from) {
            Some(Ok(cpu)) => drop(put(param::CPU, cpu.into())),
            Some(Err(_)) => drop(put(param::CPU, "any".into())),
            None => {}
        }
        let Some(asked) = setup.asked else { return params };
        if let Some(interval) = asked.interval_ns(number) {
            put(param::INTERVAL, interval.into());
        }
        put(param::POLICY, asked.policy.into());
        put(param::METHOD, asked.method.into());
        put(param::CLOCK, asked.clock.into());
        params.extend(asked.priority_of(number, setup.threads).map(cyclictest::priority));
        params
    }
}
