//! Findings about transactions: inheritance of the caller's priority by a server, and the cost of a lock without
//! inheritance.

use super::evidence::{EvidenceFigure, FindingBuilder, compare_figures};
use super::select::{finite_value, join_list};
use crate::transactions::{InheritanceVerdict, TransportMeasurements, transports};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Finding, Report};
use latscope_core::units::{count_with_noun, format_time};

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let tried = transports(report).into_iter().filter(|transport| {
        [transport.real_time(), transport.nice()].iter().any(|judged| *judged != InheritanceVerdict::NotTried)
    });
    let (with, without): (Vec<TransportMeasurements>, Vec<TransportMeasurements>) =
        tried.partition(|transport| transport.means().is_some() || passed_or_failed(transport));
    let mut findings: Vec<Finding> = with.iter().map(inheritance).collect();
    findings.extend(report_no_means(&without));
    findings.extend(transports(report).iter().filter_map(slower));
    findings.extend(inversion(report));
    findings
}

/// A caller of SCHED_FIFO that waits longer than one of SCHED_OTHER, where the ranges of both are apart.
fn slower(transport: &TransportMeasurements) -> Option<Finding> {
    let (fifo, other) = (EvidenceFigure::p50(transport.fifo?)?, EvidenceFigure::p50(transport.other?)?);
    let ratio = compare_figures(&fifo, &other)?;
    let said = format!(
        "Calls over {} take a SCHED_FIFO caller {} as long as a SCHED_OTHER caller: {} and {}.",
        transport.name,
        ratio.at_least(),
        fifo.format_duration(),
        other.format_duration()
    );
    let told = FindingBuilder::claim("fifo-slower").figure("fifo_ns", &fifo).figure("other_ns", &other);
    Some(told.ratio("ratio", &ratio).into_finding(said))
}

/// Returns true if the inheritance of any priority was tried and is not unsupported.
fn passed_or_failed(transport: &TransportMeasurements) -> bool {
    [transport.real_time(), transport.nice()]
        .iter()
        .any(|j| !matches!(j, InheritanceVerdict::Unsupported | InheritanceVerdict::NotTried))
}

fn inheritance(transport: &TransportMeasurements) -> Finding {
    let kinds =
        [("a SCHED_FIFO caller's priority", transport.real_time()), ("a nice value", transport.nice())];
    let [real_time, nice] = kinds.map(|(what, judged)| match judged {
        InheritanceVerdict::Fail(why) => format!("{what} FAIL ({why})"),
        InheritanceVerdict::NotTried => {
            format!("{what} not tried (the priority was not granted to the caller)")
        }
        other => format!("{what} {}", other.status_word()),
    });
    let text = format!(
        "Priority inheritance over {}: {real_time}; {nice}. Its means: {}.",
        transport.name,
        transport.means().unwrap_or("none that is known")
    );
    let counts = ["rt-calls", "rt-inherited", "rt-restored", "nice-calls", "nice-inherited", "nice-restored"];
    let m = transport.representative_point();
    let values: Vec<(&str, f64)> =
        counts.into_iter().filter_map(|name| Some((name, finite_value(m?, name)?))).collect();
    // Each call is judged by itself: this is a count, no figure that noise moves.
    FindingBuilder::claim("inheritance").values(values).points(m).into_finding(text)
}

/// Names the transports without a means, in one sentence.
fn report_no_means(transports: &[TransportMeasurements]) -> Option<Finding> {
    let names: Vec<String> = transports.iter().map(|transport| transport.name.to_owned()).collect();
    let calls = ["rt-calls", "nice-calls"].map(|name| {
        let numbers =
            transports.iter().filter_map(|transport| finite_value(transport.representative_point()?, name));
        (name, numbers.fold(0.0, f64::max))
    });
    if names.is_empty() {
        return None;
    }
    let text = format!(
        "Priority inheritance over {}: UNSUPPORTED: no priority goes with a request, the server of a SCHED_FIFO or \
         niced caller ran as it was.",
        join_list(&names)
    );
    let told = FindingBuilder::claim("inheritance")
        .points(transports.iter().filter_map(TransportMeasurements::representative_point));
    Some(told.values(calls).into_finding(text))
}

/// Effect of a lock with inheritance, and the time that it takes beyond that for which the lock is held.
fn inversion(report: &Report) -> Option<Finding> {
    let [plain, pi] = ["plain", "pi"].map(|lock| {
        let mut points = report.of_probe(ids::INVERSION);
        let of_lock = points
            .find(|m| m.has_param_value(param::LOCK, lock) && m.quality.level != QualityLevel::Unsupported);
        of_lock.filter(|m| m.summary.count > 0)
    });
    let (plain, pi) = (plain?, pi?);
    let plain_p50 = plain.summary.p50?;
    let (pi_p50, pi_max) = pi.summary.p50.zip(pi.summary.max)?;
    let hold = plain.numeric_param(param::HOLD)? as f64;
    let hog = plain.numeric_param(param::HOG)? as f64;
    // latscope chooses how long the hog works, so the time that a plain lock blocks says nothing about the machine.
    let mut message = if pi_p50 < hold + hog / 2.0 {
        format!(
            "Priority inversion: priority inheritance keeps a hog of middle priority out of the way; a waiter of high \
             priority has the lock {} after the {} for which its owner holds it (at most {} in {}).",
            format_time((pi_p50 - hold).max(0.0)),
            format_time(hold),
            format_time((pi_max - hold).max(0.0)),
            count_with_noun(pi.summary.count, "round")
        )
    } else {
        format!(
            "Priority inversion: priority inheritance does not keep a hog of middle priority out of the way; a waiter of \
             high priority has the lock after {}, although its owner holds it for {}.",
            format_time(pi_p50),
            format_time(hold)
        )
    };
    for m in report.of_probe(ids::INVERSION) {
        let figures = m.summary.p50.zip(m.summary.max);
        let (Some(lock), Some((p50, max))) = (m.text_param(param::LOCK), figures) else { continue };
        if !["plain", "pi"].contains(&lock) {
            let (p50, max) = (format_time(p50), format_time(max));
            message +=
                &format!(" A server over {lock}, as long at work, blocked it for {p50} (at most {max}).");
        }
    }
    let values = [("plain_p50_ns", plain_p50), ("pi_p50_ns", pi_p50), ("hold_ns", hold), ("hog_ns", hog)];
    let supported = EvidenceFigure::p50(plain)
        .zip(EvidenceFigure::p50(pi))
        .is_some_and(|(plain, pi)| compare_figures(&plain, &pi).is_some());
    let doubt = "the rounds are too few, degraded, or do not agree";
    let told = FindingBuilder::unless((!supported).then_some(doubt), "inversion");
    Some(told.values(values).points([plain, pi]).into_finding(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::ipc;
    use latscope_core::plan::params;
    use latscope_core::report::Semantics;
    use latscope_core::testing::{in_rounds, point, report};

    #[test]
    fn the_verdicts_are_told_with_the_means() {
        let found = findings(&ipc::latency());
        let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(
            texts[0],
            "Priority inheritance over binder: a SCHED_FIFO caller's priority FAIL (0 of 50 calls were served at the \
             caller's priority); a nice value PASS. Its means: nice, by the driver."
        );
        assert!(texts[1].starts_with("Priority inheritance over unix-stream: UNSUPPORTED"), "{}", texts[1]);
        assert_eq!(found[0].values["nice-inherited"], 100.0 / 2.0);
    }

    #[test]
    fn a_real_time_caller_that_is_slower_is_named_only_where_the_ranges_are_apart() {
        let with = |fifo: f64| {
            let mut report = ipc::latency();
            for m in &mut report.measurements {
                let p50 = if m.has_param_value("caller", "fifo") { fifo } else { 24_000.0 };
                m.values.clear();
                *m = in_rounds(m.clone(), &[0.99, 1.0, 1.01, 1.0].map(|by| p50 * by));
            }
            findings(&report)
        };
        let found = with(42_000.0);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].text.contains("unix-stream take a SCHED_FIFO caller at least ×1."),
            "{}",
            found[1].text
        );
        assert_eq!((found[1].evidence.len(), found[1].id.as_str()), (2, "fifo-slower"));
        assert!(with(24_500.0).is_empty() && with(20_500.0).is_empty());
    }

    #[test]
    fn inversion_is_what_inheritance_does_and_not_how_long_our_hog_works() {
        let row = |lock: &str, ns: f64| {
            let params =
                params([("lock", lock.into()), ("hold", 1_000_000.into()), ("hog", 20_000_000.into())]);
            in_rounds(point(ids::INVERSION, params, Semantics::Operation, ns), &[ns; 4])
        };
        let said = |pi| {
            let rows = vec![row("plain", 21e6), row("pi", pi), row("binder", 1.2e6)];
            findings(&report(rows)).remove(0).text
        };
        let text = said(1.1e6);
        assert!(text.starts_with("Priority inversion: priority inheritance keeps a hog"), "{text}");
        for part in ["has the lock 100 µs after the 1.00 ms", "A server over binder"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("21.0 ms"), "{text}");
        assert!(said(21e6).contains("does not keep a hog of middle priority out of the way"));
    }

    #[test]
    fn nothing_tried_is_nothing_found() {
        let mut report = ipc::latency();
        report.measurements.iter_mut().for_each(|m| m.values.clear());
        assert!(findings(&report).is_empty());
    }
}
