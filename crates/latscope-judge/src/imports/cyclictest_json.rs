//! The JSON of cyclictest. Its command line has settings that its text lacks.

use super::bins::{Counted, Counts};
use super::command_line::Asked;
use super::report::{Source, SysInfo, finish, measurement};
use super::{from_json, has_names, time};
use latscope_core::catalogue::ids;
use latscope_core::json::LARGEST;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params, params};
use latscope_core::report::{Measurement, Report, Semantics};
use latscope_core::units::counted;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns true if a text has the names with which all programs of rt-tests begin.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["file_version"])
        && (has_names(text, &["rt_test_version:"]) || has_names(text, &["rt_test_version"]))
}

// The colons are part of the names.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command_line: String,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: String,
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    sysinfo: SysInfo,
    /// 1 for ns, 0 for µs.
    resolution_in_ns: u64,
    /// Present if latscope measured as cyclictest.
    latscope: Option<Latscope>,
    num_threads: Option<usize>,
    thread: BTreeMap<String, Thread>,
}

/// Member by which latscope marks the JSON that it writes as cyclictest.
#[derive(Deserialize)]
struct Latscope {
    version: String,
    /// Missed activations of each thread.
    missed: Vec<u64>,
}

#[derive(Deserialize)]
struct Thread {
    #[serde(default)]
    histogram: Counts,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
    cpu: Option<i64>,
}

/// Reads the histograms of a run.
///
/// # Errors
/// The text is of another program of rt-tests, has no histogram, or is damaged.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let Head { command_line } = from_json(text)?;
    if !is_cyclictest(&command_line) {
        return Err(format!("it was written by `{command_line}`: of rt-tests only cyclictest is read"));
    }
    let file: File = from_json(text)?;
    if let Some(threads) = file.num_threads.filter(|threads| *threads != file.thread.len()) {
        return Err(format!(
            "it has {} of its {}: it was cut off",
            file.thread.len(),
            counted(threads as u64, "thread")
        ));
    }
    let tick_ps = match file.resolution_in_ns {
        0 => 1_000_000,
        1 => 1_000,
        other => return Err(format!("its resolution_in_ns is {other}, where 0 is µs and 1 is ns")),
    };
    let options = Asked::of(&command_line);
    let mut unknown = Vec::new();
    if file.latscope.is_none() {
        unknown.push("missed activations");
    }
    if options.is_none() {
        unknown.extend(["interval", "scheduling policy", "priority", "how the threads wait", "clock"]);
    }
    let (program, version) = match &file.latscope {
        Some(latscope) => ("latscope as cyclictest", latscope.version.clone()),
        None => ("cyclictest", file.version),
    };
    let source = Source { program, version: Some(version), text, unknown: &unknown };
    let mut report = source.report();
    report.machine = file.sysinfo.machine();
    report.started = time::read(file.start_time.as_deref())?.unwrap_or_default();
    report.finished = time::read(file.end_time.as_deref())?;
    let mut threads: Vec<(u64, &Thread)> = Vec::new();
    for (name, thread) in &file.thread {
        threads.push((name.parse().map_err(|_| format!("{name:?} is no number of a thread"))?, thread));
    }
    threads.sort_by_key(|(number, _)| *number);
    let mut measured = Vec::new();
    for (number, thread) in threads {
        let m = thread.measurement(number, tick_ps, options.as_ref());
        let mut m = m.map_err(|why| format!("thread {number}: {why}"))?;
        if let Some(latscope) = &file.latscope {
            let missed = usize::try_from(number).ok().and_then(|at| latscope.missed.get(at));
            let missed = missed.filter(|missed| **missed <= LARGEST);
            m.summary.missed =
                *missed.ok_or_else(|| format!("thread {number}: its missed activations lack"))?;
        }
        measured.push(m);
    }
    finish(report, measured)
}

fn is_cyclictest(command_line: &str) -> bool {
    command_line.split_whitespace().any(|word| word.rsplit('/').next() == Some("cyclictest"))
}

impl Thread {
    fn measurement(&self, number: u64, tick_ps: u64, asked: Option<&Asked>) -> Result<Measurement, String> {
        let Thread { histogram: Counts(counts), min, max, avg, .. } = self;
        if counts.is_empty() && self.cycles > 0 {
            return Err("it has no histogram, only the least, the mean and the largest figure: \
                        run cyclictest with -h 1000"
                .to_owned());
        }
        let counted = counts.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let overflow = counted.and_then(|counted| self.cycles.checked_sub(counted));
        let counted = Counted {
            tick_ps,
            bins: None,
            counts,
            overflow: overflow.ok_or("its histogram has more counts than cycles: it is damaged")?,
            min: *min,
            max: *max,
            mean: Some(*avg).filter(|_| overflow != Some(0)),
        };
        let (params, title) = (self.params(number, asked), format!("wake-up, lateness, thread {number}"));
        Ok(measurement(ids::WAKE_TIMER, params, title, Semantics::OneWay, counted.histogram()?))
    }

    /// Known parameters of the thread, by the names of the probe `wake.timer`.
    fn params(&self, number: u64, asked: Option<&Asked>) -> Params {
        let mut params = params([(param::THREAD, number.into())]);
        let mut put = |name: &str, value: ParamValue| params.insert(name.to_owned(), value);
        match self.cpu.map(u64::try_from) {
            Some(Ok(cpu)) => drop(put(param::CPU, cpu.into())),
            Some(Err(_)) => drop(put(param::CPU, "any".into())),
            None => {}
        }
        let Some(asked) = asked else { return params };
        if let Some(interval) = asked.interval_ns(number) {
            put(param::INTERVAL, interval.into());
        }
        put(param::POLICY, asked.policy.into());
        put(param::METHOD, asked.method.into());
        put(param::CLOCK, asked.clock.into());
        match asked.priority_of(number) {
            0 => {
                // The kernel may wake such a thread of cyclictest later, to save energy; ours asks it not to.
                put(param::SLACK, "default".into());
            }
            priority => {
                put(param::PRIORITY, priority.into());
            }
        }
        params
    }
}
