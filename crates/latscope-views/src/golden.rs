//! Golden files: each view of the fixture as it was last looked at and found
//! good. `LATSCOPE_RECORD=1 cargo test -p latscope-core` writes them anew.

use super::{Options, Scale, csv, groups, human, markdown, survey, table, text};
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::report::{Finding, Interrupted, Progress, Report, Summary};
use latscope_core::units::{format_rate, format_size, format_time, three_digits};
use latscope_judge::verdict::{Criterion, judge_report};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(golden == text, "{name} differs from its golden file; is now:\n{text}");
}

/// The fixture with findings of its own: what real ones say is not the
/// business of these files.
fn report() -> Report {
    let mut report = fixture::report();
    report.findings = [
        "The L3 cache is declared as 105 MiB, but a random chase leaves it at 6.55 MiB: on this machine it is \
         partitioned, or other guests use it.",
        "Reading in sequence shows no cache steps: the prefetcher hides them.",
    ]
    .map(|text| Finding { text: text.to_owned(), ..Finding::default() })
    .to_vec();
    report
}

fn wide(width: usize) -> Options {
    Options { width, ..Options::default() }
}

#[test]
fn tables() {
    let report = report();
    for width in [80, 120, 200] {
        let text = table::table(&report, &[], &wide(width));
        check(&format!("table-{width}.txt"), &text);
    }
    let other = fixture::other();
    check("table-beside-120.txt", &table::table(&report, &[&other], &wide(120)));
}

#[test]
fn bandwidth_has_its_rate_at_every_width() {
    let mut report = report();
    for m in report.measurements.iter_mut().filter(|m| m.probe == "memory.bandwidth") {
        m.title = format!("{}, every fourth byte, by two threads", m.title);
    }
    for width in [80, 100, 120] {
        let text = survey::survey(&report, &[], &wide(width));
        let rows: Vec<&str> =
            text.lines().filter(|line| line.contains("two threads") && line.contains("…")).collect();
        assert!(!rows.is_empty() && rows.iter().all(|line| line.contains("GB/s")), "{width}: {rows:#?}");
    }
}

#[test]
fn human_scale() {
    let options = Options { scale: Scale::Human, ..Options::default() };
    check("human-80.txt", &table::table(&report(), &[], &options));
}

#[test]
fn whole_survey() {
    check("survey-100.txt", &survey::survey(&report(), &[], &wide(100)));
}

#[test]
fn details() {
    check("details-100.txt", &text::all(&report(), &wide(100)));
}

#[test]
fn single_events() {
    let mut report = fixture::wake();
    let criteria = [("p99_9", 60_000.0), ("max", 50_000.0), ("p99_9999", 5e6), ("missed", 3.0)];
    let criteria = criteria.map(|(name, limit)| Criterion::new(name, limit).unwrap());
    judge_report(&mut report, &criteria);
    for width in [80, 140] {
        check(&format!("events-{width}.txt"), &groups::events(&report, &wide(width)));
    }
}

#[test]
fn files() {
    let report = report();
    check("survey.md", &markdown::markdown(&report, &[&fixture::other()], &Options::default()));
    check("survey.csv", &String::from_utf8(csv::csv(&report)).unwrap());
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    let (report, other) = (report(), fixture::other());
    for width in [30, 44, 61, 79, 80, 99, 120, 149, 150, 201] {
        for scale in [Scale::Time, Scale::Human] {
            let options = Options { width, scale, ..Options::default() };
            for line in survey::survey(&report, &[&other], &options).lines() {
                let used = super::grid::Text::plain(line).width();
                assert!(used <= width, "{used} of {width}: {line}");
            }
        }
    }
}

/// Every way in which a number of the JSON, or one derived from a measurement
/// as the schema says, may be written on the screen.
fn writable(report: &Report) -> HashSet<String> {
    let mut all = HashSet::new();
    let mut add = |value: f64| {
        let texts = [
            format_time(value),
            super::cells::published(value),
            format_rate(value),
            three_digits(value),
            super::cells::cycles(value),
            value.to_string(),
            format!("{value:.0}"),
            format_size(value as u64),
            three_digits(value / 1e9),
        ];
        for text in texts {
            all.extend(numbers_in(&text).map(str::to_owned));
        }
    };
    fn numbers(value: &serde_json::Value, add: &mut dyn FnMut(f64)) {
        match value {
            serde_json::Value::Number(number) => add(number.as_f64().unwrap()),
            serde_json::Value::Array(all) => all.iter().for_each(|value| numbers(value, add)),
            serde_json::Value::Object(all) => all.values().for_each(|value| numbers(value, add)),
            _ => {}
        }
    }
    // Buckets of histograms are on no screen; with them any small number would
    // be in the JSON.
    let mut json = serde_json::to_value(report).unwrap();
    for m in json["measurements"].as_array_mut().unwrap() {
        m.as_object_mut().unwrap().remove("histogram");
    }
    numbers(&json, &mut add);
    for m in &report.measurements {
        m.rate_touched().into_iter().chain(m.rate_moved()).for_each(&mut add);
        add(super::rows::rejected_share(m) * 100.0);
    }
    for level in latscope_judge::findings::level_rows(report) {
        let figures = [Some(level.ns), level.cycles, level.p10, level.p90];
        figures.into_iter().flatten().for_each(&mut add);
    }
    // A spread is in the unit of its row, so a tail may have more digits.
    for m in &report.measurements {
        let s = &m.summary;
        for tail in [s.p99, s.p95, s.p90, s.max, s.p10].into_iter().flatten() {
            all.extend([1.0, 1e3, 1e6, 1e9].map(|unit| three_digits(tail / unit)));
        }
    }
    all
}

/// The numbers in a text: digits and points between other characters.
fn numbers_in(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_ascii_digit() || c == '.';
    let parts = text.split(move |c| !inside(c)).map(|part| part.trim_matches('.'));
    parts.filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

/// Checks that a view shows no number but known ones.
fn all_known(text: &str, known: &HashSet<String>) {
    for number in numbers_in(text) {
        assert!(known.contains(number), "{number} is not in the JSON; it is in\n{text}");
    }
}

/// The strings of a JSON value, numbers within them included.
fn quoted(value: &serde_json::Value, words: &mut String) {
    match value {
        serde_json::Value::String(text) => *words += &format!(" {text}"),
        serde_json::Value::Array(all) => all.iter().for_each(|value| quoted(value, words)),
        serde_json::Value::Object(all) => all.values().for_each(|value| quoted(value, words)),
        _ => {}
    }
}

#[test]
fn every_number_on_the_screen_is_in_the_json() {
    let report = report();
    let mut known = writable(&report);
    // What is quoted as it stands, and what the references bring along.
    let mut words = String::new();
    quoted(&serde_json::from_str(&report.to_json()).unwrap(), &mut words);
    words += " 60 16.7 52.3 p10 p90 p95 p99 p99.9 p99.99 L1 1 s 1 ns ";
    for row in super::rows::rows(&report, &[]) {
        words += &format!("{} ", row.label);
        words += &format!("{} {} ", human::human(row.ns / human::second(&report)), human::per_frame(row.ns));
        for cell in row.references.iter().flatten() {
            let ratio = super::cells::times_as_long(cell.ratio);
            words += &format!(
                "{} {ratio} {} ",
                super::cells::published(cell.ns),
                cell.note.as_deref().unwrap_or("")
            );
        }
    }
    for (short, full) in super::rows::reference_names(&report, &[]) {
        words += &format!("{short} {full} ");
    }
    let counted = super::unmeasured::missing(&report);
    words += &counted.iter().map(|group| group.what.as_str()).collect::<Vec<_>>().join(" ");
    known.extend(numbers_in(&words).map(str::to_owned));
    for options in [wide(80), wide(120), wide(200), Options { scale: Scale::Human, ..wide(120) }] {
        all_known(&table::table(&report, &[], &options), &known);
        let markdown = markdown::markdown(&report, &[], &options);
        all_known(&markdown.replace("&lt;", "").replace("&#64;", ""), &known);
    }
    all_known(text::all(&report, &wide(200)).split("\nFindings").next().unwrap(), &known);
    let csv = String::from_utf8(csv::csv(&report)).unwrap();
    all_known(csv.split_once('\n').unwrap().1, &known);
    assert!(!known.contains("77.7"), "a number from nowhere would not be noticed");
}

/// One event on one CPU, one of them missed, one point: nothing of which there is one is in the plural.
#[test]
fn one_of_a_thing_is_in_the_singular() {
    let mut report = fixture::wake();
    report.measurements.truncate(1);
    report.plan.steps.truncate(1);
    report.plan.steps[0].points.truncate(1);
    let m = &mut report.measurements[0];
    m.histogram = Histogram::new(1000);
    m.histogram.record(5);
    (m.outliers, m.corrected) = (Vec::new(), None);
    m.summary = Summary::of(&m.histogram, &Summary { missed: 1, ..Summary::default() });
    let one = Progress { done: 1, of: Some(1) };
    report.finished = None;
    report.interrupted =
        Some(Interrupted { by: "SIGINT".to_owned(), points: one, events: Some(one), time: None });
    judge_report(&mut report, &[Criterion::new("p50", 1e9).unwrap(), Criterion::new("missed", 1.0).unwrap()]);
    let options = Options { width: 400, ..Options::default() };
    for text in [
        groups::events(&report, &options),
        markdown::markdown(&report, &[], &options),
        report.plan.describe(),
    ] {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && !".,'".contains(c)).collect();
        let plural = |pair: &&[&str]| {
            pair[0] == "1" && pair[1].len() > 2 && pair[1].ends_with('s') && !pair[1].ends_with("ss")
        };
        let wrong: Vec<&[&str]> = words.windows(2).filter(plural).collect();
        assert!(wrong.is_empty(), "{wrong:?} in\n{text}");
    }
}
