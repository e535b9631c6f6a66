//! Transactions between processes in a report: inheritance of priority, and the transports beside each other.

use latscope_core::catalogue::families;
use latscope_core::merged::is_merged;
use latscope_core::param;
use latscope_core::quality::{POLICY_REFUSED, QualityLevel};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::format_count;

/// A transport with its measurements.
#[derive(Debug, Clone)]
pub struct TransportMeasurements<'a> {
    /// Name of the transport: `unix-stream`.
    pub name: &'a str,
    /// The sum of all pairs for a caller that ran under SCHED_FIFO, if there is one.
    pub fifo: Option<&'a Measurement>,
    /// The sum of all pairs for a caller of SCHED_OTHER, if there is one.
    pub other: Option<&'a Measurement>,
    /// The sum of all pairs for a caller that was refused SCHED_FIFO, and ran as SCHED_OTHER.
    pub refused: Option<&'a Measurement>,
}

/// Judgement on a transport for a kind of priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InheritanceVerdict {
    /// Every call was served at the caller's priority, and the server's own was
    /// restored after each.
    Pass,
    /// The transport has a means, and some calls were not served so.
    Fail(String),
    /// The transport has no means, and none was seen.
    Unsupported,
    /// The run made no such call.
    NotTried,
}

impl InheritanceVerdict {
    /// Word for the judgement in tables.
    pub fn status_word(&self) -> &'static str {
        match self {
            InheritanceVerdict::Pass => "PASS",
            InheritanceVerdict::Fail(_) => "FAIL",
            InheritanceVerdict::Unsupported => "UNSUPPORTED",
            InheritanceVerdict::NotTried => "not tried",
        }
    }
}

/// Measured quantity of a transport: `latency`, `throughput`, `one-way`.
pub fn mode(m: &Measurement) -> Option<&str> {
    m.text_param(param::MODE).filter(|_| families::of_probe(&m.probe) == families::IPC)
}

/// The transports of a report whose latency was measured, in their order. In an
/// open loop it is that of the calls themselves.
pub fn transports(report: &Report) -> Vec<TransportMeasurements<'_>> {
    let mut transports: Vec<TransportMeasurements> = Vec::new();
    for m in &report.measurements {
        let Some(name) = m.text_param(param::TRANSPORT).filter(|_| is_latency(m)) else { continue };
        let at = transports.iter().position(|transport| transport.name == name).unwrap_or_else(|| {
            transports.push(TransportMeasurements { name, fifo: None, other: None, refused: None });
            transports.len() - 1
        });
        // Of several payloads the first stands for the transport.
        let place = match m.text_param(param::CALLER) {
            Some("fifo") if is_refused(m) => &mut transports[at].refused,
            Some("fifo") => &mut transports[at].fifo,
            _ => &mut transports[at].other,
        };
        place.get_or_insert(m);
    }
    transports
}

/// Returns true if a policy that a row was to run under was refused.
fn is_refused(m: &Measurement) -> bool {
    m.quality.reasons.iter().any(|reason| reason.id == POLICY_REFUSED)
}

/// Returns true if a measurement is the latency of all pairs of a transport.
fn is_latency(m: &Measurement) -> bool {
    matches!(mode(m), Some("latency" | "one-way"))
        && m.text_param(param::SINCE) != Some("due")
        && is_merged(m)
        && m.quality.level != QualityLevel::Unsupported
        && m.summary.count > 0
}

impl<'a> TransportMeasurements<'a> {
    /// The measurement that represents the transport: the normal caller's, if there is one.
    pub fn representative_point(&self) -> Option<&'a Measurement> {
        self.other.or(self.fifo).or(self.refused)
    }

    /// Means by which the server could inherit; `None` if there is none.
    pub fn means(&self) -> Option<&'a str> {
        self.representative_point()
            .and_then(|m| m.text_param(param::INHERITANCE))
            .filter(|means| *means != "none")
    }

    /// The inheritance of a real-time priority.
    pub fn real_time(&self) -> InheritanceVerdict {
        self.judge_inheritance("rt")
    }

    /// The inheritance of a nice value.
    pub fn nice(&self) -> InheritanceVerdict {
        self.judge_inheritance("nice")
    }

    fn judge_inheritance(&self, what: &str) -> InheritanceVerdict {
        let Some(m) = self.representative_point() else { return InheritanceVerdict::NotTried };
        let counts = ["calls", "inherited", "restored"]
            .map(|name| m.values.get(&format!("{what}-{name}")).map(|value| value.value as u64));
        let [Some(calls), Some(inherited), Some(restored)] = counts else {
            return InheritanceVerdict::NotTried;
        };
        let all = format_count(calls);
        match (inherited, restored) {
            (n, r) if n == calls && r == calls => InheritanceVerdict::Pass,
            (n, _) if n == calls => {
                let kept = format_count(calls - restored);
                InheritanceVerdict::Fail(format!(
                    "after {kept} of {all} calls the server kept the caller's priority"
                ))
            }
            (0, _) if self.means().is_none() => InheritanceVerdict::Unsupported,
            (n, _) => InheritanceVerdict::Fail(format!(
                "{} of {all} calls were served at the caller's priority",
                format_count(n)
            )),
        }
    }
}

/// Label of a row of a transport: its name, with the policy of a caller of SCHED_FIFO, or that it was refused.
pub fn label(m: &Measurement) -> String {
    let transport = m.text_param(param::TRANSPORT).unwrap_or_default();
    match m.has_param_value(param::CALLER, "fifo") {
        true if is_refused(m) => format!("{transport}, fifo refused"),
        true => format!("{transport}, fifo"),
        false => transport.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::ipc;
    use latscope_core::quality::Reason;

    #[test]
    fn a_means_that_fails_is_not_a_missing_one() {
        let report = ipc::latency();
        let transports = transports(&report);
        let names: Vec<&str> = transports.iter().map(|transport| transport.name).collect();
        assert_eq!(names, ["binder", "unix-stream"]);
        assert_eq!(
            transports[0].real_time(),
            InheritanceVerdict::Fail("0 of 50 calls were served at the caller's priority".to_owned())
        );
        assert_eq!(
            (transports[0].nice(), transports[1].nice()),
            (InheritanceVerdict::Pass, InheritanceVerdict::Unsupported)
        );
        assert_eq!(transports[0].means(), Some("nice, by the driver"));
    }

    #[test]
    fn a_caller_that_was_refused_its_policy_does_not_stand_for_it() {
        let mut report = ipc::latency();
        for m in report.measurements.iter_mut().filter(|m| m.has_param_value(param::CALLER, "fifo")) {
            m.lower(Reason::new(
                QualityLevel::Degraded,
                POLICY_REFUSED,
                "ran as SCHED_OTHER, not SCHED_FIFO 95",
                "",
            ));
        }
        for transport in transports(&report) {
            assert!(transport.fifo.is_none() && transport.other.is_some(), "{}", transport.name);
            assert_eq!(transport.representative_point().map(label).as_deref(), Some(transport.name));
            assert_eq!(transport.refused.map(label), Some(format!("{}, fifo refused", transport.name)));
        }
        report.measurements.retain(|m| m.has_param_value(param::CALLER, "fifo"));
        assert!(transports(&report).iter().all(|transport| transport.representative_point().is_some()));
    }

    #[test]
    fn a_priority_that_is_not_restored_fails() {
        let mut report = ipc::latency();
        for m in &mut report.measurements {
            m.values.get_mut("nice-restored").unwrap().value = 49.0;
        }
        let judged = transports(&report)[0].nice();
        assert_eq!(
            judged,
            InheritanceVerdict::Fail("after 1 of 50 calls the server kept the caller's priority".to_owned())
        );
        report.measurements.iter_mut().for_each(|m| m.values.clear());
        assert_eq!(transports(&report)[0].nice(), InheritanceVerdict::NotTried);
    }
}
