//! A secret in every text of a result that is not named to stay, for tests.

use super::fields::{self, RedactionFieldKind};
use crate::fixture;
use crate::plan::{BackgroundLoad, USER_PARAMETER};
use crate::report::{
    Account, Cause, Certainty, Consumer, Finding, Interrupted, Outlier, ProgressAmount, QuotaThrottling,
    RealTime, RemoteIdentity, Report, TraceEvent, TransactionHop,
};
use serde_json::Value;

/// Returns the fixture's report, with all kinds of records, and this word in each of its texts that may identify.
pub fn planted_report(secret: &str) -> Report {
    let mut value = serde_json::to_value(full()).expect("a report is JSON");
    plant(("", ""), &mut value, secret);
    let mut planted: Report = serde_json::from_value(value).expect("no text decides how a report is read");
    planted.labels.insert(secret.to_owned(), secret.to_owned());
    // Only of this one: no other field teaches the word.
    let own = format!("own{secret}");
    planted.measurements[0].params.insert(format!("{USER_PARAMETER}{own}"), own.as_str().into());
    planted
}

/// The fixture's report with the records that a run without root and outliers lacks.
fn full() -> Report {
    let mut report = fixture::report();
    let consumer = || Consumer {
        name: "cat".to_owned(),
        pid: 7,
        share: 0.9,
        latscope: Some("latscope wake".to_owned()),
        policy: Some("SCHED_FIFO 10".to_owned()),
        cpu: Some(1),
    };
    report.activity = Some(Account {
        wall_ns: 1_000_000_000,
        cpus: 2,
        others: 0.4,
        quota: Some(QuotaThrottling {
            cpus: 0.5,
            group: "/sys/fs/cgroup/a".to_owned(),
            periods: 9,
            throttled: 3,
            ..QuotaThrottling::default()
        }),
        real_time: Some(RealTime { loops: vec![consumer()], ..RealTime::default() }),
        top: vec![consumer()],
        ..Account::default()
    });
    report.findings.push(Finding {
        id: "a".to_owned(),
        text: "a finding".to_owned(),
        values: Default::default(),
        certainty: Certainty::Doubt,
        doubt: Some("a doubt".to_owned()),
        evidence: Vec::new(),
        rounds: None,
    });
    report.machine.id = Some("1d".to_owned());
    report.machine.command_line = Some("quiet".to_owned());
    report.plan.load = Some(BackgroundLoad::Command("burn".to_owned()));
    report.plan.notes.push("a note".to_owned());
    report.interrupted = Some(Interrupted {
        by: "SIGINT".to_owned(),
        points: ProgressAmount { done: 1, of: Some(2) },
        events: None,
        time: None,
    });
    let causes = [("thread", "cat"), ("irq", "virtio0"), ("hypervisor", "while cat ran")];
    report.measurements[0].outliers.push(Outlier {
        at: 1,
        cpu: 0,
        value: 9,
        cause: causes
            .map(|(kind, name)| Cause { kind: kind.to_owned(), name: name.to_owned(), pid: 7, ns: 3 })
            .into(),
        stack: Vec::new(),
        events: vec![TraceEvent {
            at: 1,
            name: "sched_wakeup".to_owned(),
            text: "comm=cat pid=7".to_owned(),
        }],
    });
    report.measurements[0].remote = Some(RemoteIdentity {
        core: "a core".to_owned(),
        clock_hz: Some(1),
        firmware: "a firmware".to_owned(),
    });
    report.measurements[0].hops.push(TransactionHop {
        role: "client".to_owned(),
        pid: 7,
        tid: 7,
        cpu: 0,
        policy: 0,
        priority: 0,
        nice: 0,
    });
    report
}

fn plant(at: (&str, &str), value: &mut Value, secret: &str) {
    match value {
        Value::String(text) => *text = plant_in_text(at, text, secret),
        Value::Array(all) => {
            for value in all {
                plant(at, value, secret);
            }
        }
        Value::Object(all) => {
            for (field, value) in all {
                plant((at.1, field), value, secret);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn plant_in_text((parent, field): (&str, &str), text: &str, secret: &str) -> String {
    match fields::field_kind(parent, field) {
        RedactionFieldKind::Word => text.to_owned(),
        RedactionFieldKind::Path => format!("/home/{secret}/{text}"),
        RedactionFieldKind::Process => secret.to_owned(),
        RedactionFieldKind::Event => format!("{text} filename={secret}"),
        // As `account` names a process, and as a message names a file.
        RedactionFieldKind::Sentence => format!("{text} {secret} (pid 7): /home/{secret}/a"),
        RedactionFieldKind::Title
        | RedactionFieldKind::Cause
        | RedactionFieldKind::Parameter
        | RedactionFieldKind::Fact
        | RedactionFieldKind::Private => {
            format!("{text} {secret}")
        }
    }
}
