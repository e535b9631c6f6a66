//! The measurements of single events in a report, as a reader looks at them: by
//! probe, a row for each thread or pair, and the sum of all.

use crate::catalogue::{ParamValueKind, kind_of};
use crate::merged::{MERGED, is_merged, is_part_of};
use crate::ordered::entry;
use crate::param;
use crate::plan::{ParamValue, Params};
use crate::report::{Measurement, Report, Sampling};
use crate::units::{format_count, format_size, format_time};
use std::collections::BTreeSet;

/// The measurements of one probe.
#[derive(Debug, Clone)]
pub struct ProbeEventGroup<'a> {
    /// Id of the probe.
    pub probe: &'a str,
    /// Rows of single threads or pairs, in the order measured.
    pub singles: Vec<ProbeEventRow<'a>>,
    /// The sums over CPUs or pairs, where several are summed.
    pub merged: Vec<ProbeEventRow<'a>>,
}

/// A measurement and what it is called among the others.
#[derive(Debug, Clone)]
pub struct ProbeEventRow<'a> {
    /// `CPU 1`, `all CPUs`, with the parameters in which the rows differ.
    pub label: String,
    /// Measurement that the row shows.
    pub m: &'a Measurement,
}

/// The measurements of single events that have a number, by probe.
pub fn event_groups(report: &Report) -> Vec<ProbeEventGroup<'_>> {
    let timed = |m: &&Measurement| m.sampling == Sampling::Event && m.summary.count > 0;
    let mut probes: Vec<(&str, Vec<&Measurement>)> = Vec::new();
    for m in report.measurements.iter().filter(timed) {
        entry(&mut probes, m.probe.as_str()).push(m);
    }
    probes.into_iter().map(|(probe, of_probe)| group(probe, &of_probe)).collect()
}

impl<'a> ProbeEventGroup<'a> {
    /// Returns the rows that represent the whole probe: the sums if every row is in a sum, else all single rows.
    pub fn whole_probe_rows(&self) -> &[ProbeEventRow<'a>] {
        let summed = |row: &ProbeEventRow| self.merged.iter().any(|all| is_part_of(row.m, all.m));
        if self.singles.iter().all(summed) { &self.merged } else { &self.singles }
    }

    /// The row with the longest event.
    pub fn worst(&self) -> Option<&ProbeEventRow<'a>> {
        let max = |row: &ProbeEventRow| row.m.summary.max.unwrap_or_default();
        self.singles.iter().max_by(|a, b| max(a).total_cmp(&max(b)))
    }
}

fn group<'a>(probe: &'a str, measurements: &[&'a Measurement]) -> ProbeEventGroup<'a> {
    let (merged, singles): (Vec<&Measurement>, Vec<&Measurement>) =
        measurements.iter().partition(|m| is_merged(m));
    // A sum of one is that one again.
    let of_several = |all: &&Measurement| singles.iter().filter(|one| is_part_of(one, all)).count() > 1;
    let (singles, merged) = match singles.is_empty() {
        true => (merged, Vec::new()),
        false => (singles.clone(), merged.into_iter().filter(of_several).collect()),
    };
    let rows = |of: &[&'a Measurement]| -> Vec<ProbeEventRow<'a>> {
        let varying = varying(of);
        of.iter().map(|m| ProbeEventRow { label: label(m, &varying), m }).collect()
    };
    ProbeEventGroup { probe, singles: rows(&singles), merged: rows(&merged) }
}

/// Parameters beside the CPU in which measurements differ. The number of a thread is one of them only where CPUs do not
/// distinguish the threads.
fn varying<'a>(measurements: &[&'a Measurement]) -> Vec<&'a str> {
    let values = |name: &str| -> BTreeSet<Option<&ParamValue>> {
        measurements.iter().map(|m| m.params.get(name)).collect()
    };
    let names: BTreeSet<&str> =
        measurements.iter().flat_map(|m| m.params.keys()).map(String::as_str).collect();
    let told_apart = values(param::CPU).len() == measurements.len();
    // Of a caller's policy its priority and its thread are a part.
    let implied = |name: &str| {
        name == param::THREAD && told_apart
            || [param::PRIORITY, param::CALLER_THREAD].contains(&name) && values(param::CALLER).len() > 1
    };
    let wanted = |name: &&str| !MERGED.contains(name) && !implied(name) && values(name).len() > 1;
    let mut varying: Vec<&str> = names.into_iter().filter(wanted).collect();
    if values(param::PAIR).len() > 1 || measurements.iter().all(|m| is_merged(m)) {
        varying.push(param::PAIR);
    }
    varying
}

fn label(m: &Measurement, varying: &[&str]) -> String {
    let cpu = m.params.get(param::CPU).map(|cpu| match cpu {
        ParamValue::Number(cpu) => format!("CPU {cpu}"),
        ParamValue::Text(text) if text == "all" => "all CPUs".to_owned(),
        ParamValue::Text(text) => format!("{text} CPU"),
    });
    // Under a heading that says of whom a word is enough.
    let short = |name: &str, value: &ParamValue| match name {
        param::CALLER => value.to_string(),
        _ => format_param(name, value, &m.params),
    };
    let others = varying.iter().filter_map(|name| Some(short(name, m.params.get(*name)?)));
    let parts: Vec<String> = cpu.into_iter().chain(others).collect();
    match parts.is_empty() {
        true if m.title.is_empty() => m.probe.clone(),
        true => m.title.clone(),
        false => parts.join(", "),
    }
}

/// Transports of `remote` whose remote another process starts: how it waits is not known.
pub const FOREIGN_REMOTES: &[&str] = &["openamp", "char", "mcs", "rptun", "tty", "tty-line"];

/// Text on how the two sides of an exchange wait, as far as it is known.
fn waits(wait: &str, params: &Params) -> String {
    let transport = params.get(param::TRANSPORT).and_then(ParamValue::as_text);
    let foreign = transport.is_some_and(|transport| FOREIGN_REMOTES.contains(&transport));
    match (foreign, wait) {
        (true, "poll") => "host asleep in poll, remote unknown".to_owned(),
        (true, _) => format!("host {wait}, remote unknown"),
        (false, _) => format!("both sides {wait}"),
    }
}

/// A parameter and its value, beside the others: `interval 1.00 ms`.
pub fn format_param(name: &str, value: &ParamValue, params: &Params) -> String {
    match (name, value) {
        (param::WAIT, ParamValue::Text(wait)) => waits(wait, params),
        (param::CALLER, ParamValue::Text(text)) if text == "other" => "SCHED_OTHER caller".to_owned(),
        (param::CALLER, ParamValue::Text(text)) if text == "fifo" => "SCHED_FIFO caller".to_owned(),
        (param::LOCK, ParamValue::Text(text)) if ["plain", "pi"].contains(&text.as_str()) => {
            format!("{text} lock")
        }
        (param::LOCK, ParamValue::Text(text)) => format!("server over {text}"),
        (param::TRANSPORT, ParamValue::Text(text)) if text == "shm" => {
            "shm: memory shared with another process".to_owned()
        }
        (param::PAIR, ParamValue::Text(_)) => "all pairs".to_owned(),
        (param::PLACEMENT, ParamValue::Text(text)) => format!("{text} placement"),
        (param::SINCE, ParamValue::Text(text)) => format!("since {text}"),
        (param::RATE, ParamValue::Number(rate)) => format!("{} a second", format_count(*rate)),
        (_, ParamValue::Number(number)) => match kind_of(name) {
            Some(ParamValueKind::Time) => format!("{name} {}", format_time(*number as f64)),
            Some(ParamValueKind::Size) => format!("{name} {}", format_size(*number)),
            _ => format!("{name} {number}"),
        },
        (_, ParamValue::Text(text)) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plan::params;
    use crate::testing::report;

    fn labels(all: &[Params]) -> Vec<String> {
        let event = |params: &Params| Measurement {
            params: params.clone(),
            ..fixture::event("wake.timer", "", [], 5e3)
        };
        let report = report(all.iter().map(event).collect());
        let groups = event_groups(&report);
        groups[0].singles.iter().chain(&groups[0].merged).map(|row| row.label.clone()).collect()
    }

    fn thread(cpu: ParamValue, thread: u64, interval: u64) -> Params {
        params([("cpu", cpu), ("thread", thread.into()), ("interval", interval.into())])
    }

    #[test]
    fn rows_are_told_apart_by_what_differs() {
        let (zero, one, all) = (0u64.into(), 1u64.into(), ParamValue::from("all"));
        assert_eq!(
            labels(&[thread(zero, 0, 5), thread(one, 1, 5), thread(all, 0, 5)]),
            ["CPU 0", "CPU 1", "all CPUs"]
        );
        assert_eq!(
            labels(&[thread("any".into(), 0, 1_000_000), thread("any".into(), 1, 1_500_000)]),
            ["any CPU, interval 1.00 ms, thread 0", "any CPU, interval 1.50 ms, thread 1"]
        );
        assert_eq!(labels(&[thread(3u64.into(), 0, 5), thread("all".into(), 0, 5)]), ["CPU 3"]);
    }

    #[test]
    fn pairs_and_callers_have_rows_and_sums() {
        let row = |caller: &str, pair: ParamValue| {
            params([("caller", caller.into()), ("pair", pair), ("priority", 95u64.into())])
        };
        let one = [row("fifo", 0u64.into()), row("other", 0u64.into()), row("fifo", "all".into())];
        assert_eq!(labels(&one), ["fifo", "other"]);
        let two = [row("fifo", 0u64.into()), row("fifo", 1u64.into()), row("fifo", "all".into())];
        assert_eq!(labels(&two), ["pair 0", "pair 1", "all pairs"]);
    }

    #[test]
    fn probes_have_their_own_groups_and_batches_none() {
        let report = fixture::wake();
        let groups = event_groups(&report);
        let probes: Vec<&str> = groups.iter().map(|group| group.probe).collect();
        assert_eq!(probes, ["wake.timer"]);
        assert_eq!((groups[0].singles.len(), groups[0].whole_probe_rows().len()), (2, 1));
        assert_eq!(groups[0].worst().unwrap().label, "CPU 1");
    }

    #[test]
    fn of_a_remote_that_others_started_nothing_is_said() {
        let wait = |transport: &str, wait: &str| {
            let params = params([("transport", transport.into()), ("wait", wait.into())]);
            format_param("wait", &params["wait"], &params)
        };
        assert_eq!(wait("shm", "spin-then-park"), "both sides spin-then-park");
        assert_eq!(wait("ivshmem", "doorbell"), "both sides doorbell");
        assert_eq!(wait("binder", "block"), "both sides block");
        for transport in FOREIGN_REMOTES {
            assert_eq!(wait(transport, "poll"), "host asleep in poll, remote unknown");
            assert_eq!(wait(transport, "spin-then-park"), "host spin-then-park, remote unknown");
        }
        assert_eq!(format_param("wait", &"futex".into(), &Params::new()), "both sides futex");
    }
}
