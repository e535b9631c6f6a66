use super::*;
use crate::golden::{self, check_golden};
use crate::page::{POLICY, SCRIPT};
use latscope_core::catalogue::{ProbeCatalogue, ProbeFacts, ids};
use latscope_core::fixture;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Finding, Report};
use latscope_judge::verdict::{MetricCriterion, judge_report};

/// Returns the facts on the probes, of which all but the mutex are of another revision than the fixture. The page then
/// has one sentence on what was timed, which does not depend on the real ones.
fn catalogue() -> ProbeCatalogue {
    let mut catalogue = golden::catalogue().clone();
    for facts in &mut catalogue.probes {
        let of_mutex = facts.id == ids::MUTEX;
        let (timed, revision) = ("from before the lock to after the unlock", if of_mutex { 1 } else { 0 });
        *facts = Box::leak(Box::new(ProbeFacts { timed, revision, ..**facts }));
    }
    catalogue
}

fn page(of: &Report) -> String {
    report_page(of, &[], &catalogue())
}

/// Returns a page with a line for each element, so that differences from the golden file are visible.
fn in_lines(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    body.replace("><", ">\n<")
}

#[test]
fn a_survey() {
    let mut survey = fixture::report();
    survey.findings = vec![Finding { text: "Loads cost <more> & more.".to_owned(), ..Finding::default() }];
    check_golden("survey.html", &in_lines(&page(&survey)));
}

#[test]
fn wake_ups_that_were_judged() {
    let mut wake = fixture::wake();
    judge_report(&mut wake, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
    check_golden("wake.html", &in_lines(&page(&wake)));
}

/// Returns a report in which every text that a file can hold is markup.
fn hostile() -> Report {
    let odd = || "<script>alert(1)</script>\"'&</title></style>".to_owned();
    let mut report = fixture::wake();
    report.plan.job = odd();
    (report.machine.name, report.machine.cpu_model, report.machine.kernel) = (odd(), odd(), odd());
    (report.started, report.run_id, report.tool.version) = (odd(), odd(), odd());
    report.labels = [(odd(), odd())].into();
    report.plan.notes.push(odd());
    report.findings = vec![Finding { id: odd(), text: odd(), ..Finding::default() }];
    for m in &mut report.measurements {
        m.title = odd();
        m.lower(Reason::new(QualityLevel::Degraded, "odd", odd(), ""));
        m.outliers.iter_mut().flat_map(|outlier| &mut outlier.cause).for_each(|cause| cause.name = odd());
    }
    let mut other = report.measurements[0].clone();
    other.probe = format!("{}.x", odd());
    report.measurements.push(other);
    report
}

#[test]
fn nothing_of_a_result_is_markup() {
    let text = page(&hostile());
    for markup in ["<script>alert", "</title></style>", "\"'&<"] {
        assert!(!text.contains(markup), "{markup}");
    }
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
    assert_eq!(text.matches("</style>").count(), 1);
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    for report in [fixture::report(), fixture::wake(), fixture::ipc::latency()] {
        let text = page(&report);
        for reference in ["src=", "@import", "url(", "<link", "<iframe", "href=\"http"] {
            assert!(!text.contains(reference), "{reference}");
        }
    }
}

/// The SHA-256 of a text as a policy names it.
fn source_of(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = hmac_sha256::Hash::hash(text.as_bytes());
    let digits = hash.chunks(3).flat_map(|bytes| {
        let bits = bytes.iter().enumerate().map(|(at, byte)| u32::from(*byte) << (16 - 8 * at)).sum::<u32>();
        let digit = move |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
        (0..4).map(move |at| if at > bytes.len() { '=' } else { digit(at) })
    });
    format!("'sha256-{}'", digits.collect::<String>())
}

#[test]
fn the_policy_allows_this_script_and_no_other() {
    assert_eq!(source_of("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    let allowed = POLICY.split_once("script-src ").unwrap().1;
    assert_eq!(allowed, source_of(SCRIPT), "html/script.js was changed: put this hash into POLICY");
    assert!(SCRIPT.len() <= 12_000 && !SCRIPT.contains("</"));
}

#[test]
fn what_a_run_lacks_is_said() {
    let mut survey = fixture::report();
    survey.finished = None;
    assert!(page(&survey).contains("INCOMPLETE: the run ended early"));
    survey.measurements.clear();
    assert!(page(&survey).contains("</html>"));
}

/// Wake-ups on 1,000 CPUs, each with a maximum of its own.
fn many_cpus() -> Report {
    let mut report = fixture::wake();
    let one = report.measurements[0].clone();
    report.measurements = (0..1000u64)
        .map(|cpu| {
            let mut m = one.clone();
            m.params.extend([("cpu".to_owned(), cpu.into()), ("thread".to_owned(), cpu.into())]);
            m.title = format!("wake-up every 1.00 ms, CPU {cpu}");
            m.histogram.record(90_000 + 100 * cpu);
            m.blocks.iter_mut().for_each(|block| block.max += cpu * 7 % 1000);
            m.derive_results();
            m
        })
        .chain(report.measurements.pop())
        .collect();
    report
}

#[test]
fn a_page_of_very_many_cpus_stays_small() {
    let text = page(&many_cpus());
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
    assert!(text.contains("993 others") && text.contains("from the least to the largest of 1000 threads"));
}
