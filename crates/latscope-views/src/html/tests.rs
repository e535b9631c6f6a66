use super::*;
use latscope_core::fixture;
use latscope_core::report::{Finding, Measurement, Report};
use latscope_judge::verdict::{Criterion, judge_report};
use std::fs;
use std::path::Path;

fn timed(m: &Measurement) -> Option<&'static str> {
    (m.probe == "sync.mutex").then_some("from before the lock to after the unlock")
}

fn page(of: &Report) -> String {
    report(of, &timed)
}

/// Compares with the file kept; `LATSCOPE_RECORD=1` writes it anew.
fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        golden == text,
        "{name} differs from its golden file; look at the page in a browser before you bless it"
    );
}

/// An element a line, for the golden files: what differs is then seen.
fn in_lines(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    body.replace("><", ">\n<")
}

#[test]
fn a_survey() {
    let mut survey = fixture::report();
    survey.findings = vec![Finding { text: "Loads cost <more> & more.".to_owned(), ..Finding::default() }];
    check("survey.html", &in_lines(&page(&survey)));
}

#[test]
fn wake_ups_that_were_judged() {
    let mut wake = fixture::wake();
    judge_report(&mut wake, &[Criterion::new("max", 50_000.0).unwrap()]);
    check("wake.html", &in_lines(&page(&wake)));
}

/// A report in which every text that a file can hold is markup.
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
        (m.title, m.reason) = (odd(), Some(odd()));
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

#[test]
fn what_a_run_lacks_is_said() {
    let mut survey = fixture::report();
    survey.finished = None;
    assert!(page(&survey).contains("INCOMPLETE: the run ended early"));
    survey.measurements.clear();
    assert!(page(&survey).contains("</html>"));
}
