//! Saved results judged: messages that were lost, values in bins, and nights together, in every view and by exit code.

use crate::support::{Place, json, run};
use latscope_core::fixture;
use latscope_core::report::Report;
use latscope_core::testing::with_value;
use std::fs;

/// Printed text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A result with one row of 60,000 replies, and so many lost messages and late replies.
fn lossy(place: &Place, losses: f64, late: f64) -> String {
    let mut report = fixture::wake();
    let mut m = report.measurements.remove(0);
    (m.corrected, m.rounds) = (None, Vec::new());
    m.params.insert("timeout".to_owned(), 50_000_000u64.into());
    m = with_value(with_value(m, "losses", losses), "late", late);
    m.derive_results();
    report.measurements = vec![m];
    place.file("lossy.json", report.to_json())
}

fn budget(place: &Place, probe: &str, limits: &str) -> String {
    place.file("budget.toml", format!("[[limit]]\nprobe = \"{probe}\"\n{limits}\n"))
}

#[test]
fn lost_messages_are_judged_and_have_their_exit_codes() {
    let place = Place::new();
    for (losses, late, criterion, code) in [
        (0.0, 0.0, "losses 0", 0),
        (10.0, 0.0, "losses 0", 2),
        (10.0, 0.0, "losses 9", 2),
        (10.0, 0.0, "losses 10", 0),
        (10.0, 0.0, "losses 100", 0),
        (10.0, 3.0, "late 2", 2),
        (10.0, 3.0, "late 3", 0),
        (1.0, 0.0, "max 1h", 2),
        (0.0, 0.0, "max 1h", 0),
        (10.0, 0.0, "p99 1h", 0),
        (10.0, 0.0, "p99.9999 1h", 2),
        (60_000.0, 0.0, "p90 1h", 2),
    ] {
        let result = lossy(&place, losses, late);
        let (name, limit) = criterion.split_once(' ').unwrap();
        let ran = run(&["show", &result, &format!("--{}", name.replace('.', "_")), limit]);
        ran.no_panic();
        assert_eq!(ran.code, Some(code), "{losses} lost, {criterion}: {}", ran.out);
        let limit = if limit.ends_with('h') { format!("'{limit}'") } else { limit.to_owned() };
        let budget = budget(&place, "wake.timer", &format!("{} = {limit}", name.replace('.', "_")));
        assert_eq!(run(&["gate", &result, "--budget", &budget]).code, Some(code), "{losses}, {criterion}");
    }
    let said = flat(&run(&["show", &lossy(&place, 10.0, 0.0), "--max", "1h"]).out);
    assert!(said.contains("(with the 10 lost messages, which had no reply within 50.0 ms)"), "{said}");
}

#[test]
fn what_bins_leave_open_is_inconclusive_in_every_view() {
    let place = Place::new();
    let rows = "0 700\n20 299\n40 1\nover: 0\ncount: 1000\nmin: 0\navg: 6.02\nmax: 40\n";
    let head = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:20\n";
    let result = place.file("osnoise.txt", format!("{head}Index CPU-000\n{rows}"));
    let [written, csv, markdown, html, prom] =
        ["r.json", "r.csv", "r.md", "r.html", "r.prom"].map(|name| place.at(name));
    for (limit, code, word, lava, number) in [
        ("39us", 2, "exceeded", "fail", " 2e0"),
        ("50us", 3, "inconclusive", "unknown", " 1e0"),
        ("60us", 0, "pass", "pass", " 0e0"),
    ] {
        let words =
            ["show", &result, "--max", limit, "--json", &written, "--csv", &csv, "--markdown", &markdown];
        let ran = run(&[&words[..], &["--html", &html, "--openmetrics", &prom]].concat());
        assert_eq!(ran.code, Some(code), "{limit}: {}", ran.out);
        assert!(ran.out.contains(&format!("Verdict: {word}")), "{limit}: {}", ran.out);
        assert_eq!(json(&written)["measurements"][0]["verdict"]["status"], word);
        for file in [&csv, &markdown, &html] {
            assert!(fs::read_to_string(file).unwrap().contains(word), "{limit}: {file}");
        }
        let exported = fs::read_to_string(&prom).unwrap();
        let line = exported.lines().find(|line| line.starts_with("latscope_verdict_status{")).unwrap();
        assert!(line.ends_with(number), "{line}");
        let signals = run(&["show", &result, "--max", limit, "--lava"]).out;
        assert!(signals.contains(&format!(".max RESULT={lava} ")), "{limit}: {signals}");
        let budget = budget(&place, "noise.osnoise", &format!("max = '{limit}'"));
        let [junit, summary] = ["g.xml", "g.md"].map(|name| place.at(name));
        let words = ["gate", &result, "--budget", &budget, "--junit", &junit, "--markdown", &summary];
        assert_eq!(run(&words).code, Some(code), "{limit}");
        assert!(fs::read_to_string(summary).unwrap().contains(&format!("latscope gate: {word}")));
        let element = [("pass", "<system-out"), ("exceeded", "<failure"), ("inconclusive", "<error")];
        let (_, element) = element.iter().find(|(known, _)| *known == word).unwrap();
        assert!(fs::read_to_string(junit).unwrap().contains(element), "{limit}");
    }
    let said = flat(&run(&["show", &result, "--max", "50us"]).out);
    assert!(said.contains("0 to 1 of 1,000 was above 50.0 µs (the bin from 40.0 µs to 60.0 µs"), "{said}");
    let said = flat(&run(&["show", &result, "--max", "60us"]).out);
    assert!(said.contains("none of 1,000 in 20 s was above"), "{said}");
}

#[test]
fn values_beyond_the_last_bin_stand_in_the_views() {
    let place = Place::new();
    let rows = "14 9\n15 11\nover: 5980\ncount: 6000\nmin: 14\navg: 61\nmax: 190\n";
    let head = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:06\n";
    let result = place.file("timerlat.txt", format!("{head}Index IRQ-000\n{rows}"));
    let html = place.at("r.html");
    let shown = run(&["show", &result, "--html", &html]).done();
    assert!(shown.contains("beyond") && shown.contains("5,980"), "{shown}");
    let page = fs::read_to_string(&html).unwrap();
    let (markdown, csv) =
        (run(&["show", &result, "--markdown", "-"]).done(), run(&["show", &result, "--csv", "-"]).done());
    assert!(page.contains("5,980") && markdown.contains("5,980") && csv.contains("beyond=5980"), "{csv}");
    let budget = budget(&place, "wake.timerlat", "p99 = '50us'");
    let ran = run(&["gate", &result, "--budget", &budget]);
    let said = flat(&ran.out);
    assert!(ran.code == Some(3) && said.contains("a longer histogram would (-E 51)"), "{said}");
}

/// A night of a machine with this kernel.
fn night(place: &Place, name: &str, kernel: &str) -> String {
    let mut report: Report = fixture::wake();
    (report.run_id, report.machine.kernel) = (name.to_owned(), kernel.to_owned());
    place.file(name, report.to_json())
}

#[test]
fn nights_are_judged_together() {
    let place = Place::new();
    let nights = ["a", "b", "c"].map(|name| night(&place, name, "6.12.0"));
    let (merged, mixed) = (place.at("m.json"), place.at("mixed.json"));
    run(&["merge", &nights[0], &nights[1], &nights[2], "--json", &merged]).done();
    let other = night(&place, "d", "6.13.0");
    run(&["merge", &nights[0], &other, "--json", &mixed]).done();
    let show = |file: &str, limit: &str| run(&["show", file, "--max", limit]);
    let watched = |file: &str| {
        let result = place.at("judged.json");
        run(&["show", file, "--max", "1h", "--json", &result]);
        json(&result)["measurements"][0]["tested"]["time_ns"].as_u64().unwrap()
    };
    assert_eq!(watched(&merged), 3 * watched(&nights[0]), "time watched adds up");
    for (file, limit, code) in
        [(&merged, "1h", 0), (&merged, "1ms", 2), (&mixed, "1h", 3), (&mixed, "1ms", 2)]
    {
        let ran = show(file, limit);
        assert_eq!(ran.code, Some(code), "{limit}: {}", ran.out);
        let budget = budget(&place, "wake.timer", &format!("max = '{limit}'"));
        assert_eq!(run(&["gate", file, "--budget", &budget]).code, Some(code), "{limit}");
    }
    let said = flat(&show(&mixed, "1h").out);
    assert!(
        said.contains("the merged runs differ in kernel: not judged together; as measured, none of"),
        "{said}"
    );
    // What is learnt, and a baseline, are of runs; a directory has the runs themselves.
    assert!(run(&["gate", "--learn", &merged]).refused().contains("several runs merged"));
    assert!(run(&["gate", &nights[0], "--baseline", &merged]).refused().contains("several runs merged"));
    assert!(run(&["show", &place.directory("empty"), "--max", "1h"]).refused().contains("none of a trial"));
}
